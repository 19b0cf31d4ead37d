//! The commands that ask a controller.

use super::ends::ClientEnd;
use crate::console::{self, say, tell};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::oneshot;
use weftwire_catalog::file::{self, Kind};
use weftwire_control::protocol::{self, NumberedSubscription, Outcome, Subscription};
use weftwire_control::{Client, ClientError};
use weftwire_linux::signals::StopSignal;
use weftwire_text::printable;

/// Subscriptions that go in one request.
const BATCH: usize = 1_000;
/// How often a controller is asked how far the switches are.
const LOOK: Duration = Duration::from_millis(10);

/// Where the controller is and how its answers are shown.
#[derive(Args)]
struct Connection {
    #[command(flatten)]
    controller: ClientEnd,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Subscribe a host, or all that a file says. It is in the controller's store when this ends.
#[derive(Args)]
pub struct Subscribe {
    /// The host's name in the network
    #[arg(required_unless_present = "file")]
    host: Option<String>,
    /// The filter, e.g. 'add_order.stock == AAPL and add_order.price > 7'
    #[arg(required_unless_present = "file")]
    filter: Option<String>,
    /// A file of lines `HOST: filter`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "filter"])]
    file: Option<PathBuf>,
    /// Wait until every switch that follows the controller has it; an error if none follows, or one cannot take it
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    connection: Connection,
}

/// End a host's subscription, all that it has, or all that a file says.
#[derive(Args)]
pub struct Unsubscribe {
    /// The host's name in the network
    #[arg(required_unless_present = "file")]
    host: Option<String>,
    /// The filter, e.g. 'add_order.stock == AAPL and add_order.price > 7'
    #[arg(required_unless_present_any = ["file", "all"])]
    filter: Option<String>,
    /// A file of lines `HOST: filter`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "filter"])]
    file: Option<PathBuf>,
    /// All subscriptions of the host
    #[arg(long, conflicts_with_all = ["filter", "file"], requires = "host")]
    all: bool,
    /// Wait until every switch that follows the controller has it; an error if none follows, or one cannot take it
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    connection: Connection,
}

/// List subscriptions in the order in which they were made.
#[derive(Args)]
pub struct List {
    /// Those of this host alone
    #[arg(long)]
    host: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// Show the controller's network: its switches with the numbers of their ports, and which of them follow.
#[derive(Args)]
pub struct Topology {
    #[command(flatten)]
    connection: Connection,
}

/// Show each subscription as it begins or ends, until interrupted.
#[derive(Args)]
pub struct Watch {
    #[command(flatten)]
    connection: Connection,
}

#[derive(Serialize)]
struct ShownSubscription {
    number: u64,
    host: String,
    filter: String,
}

#[derive(Serialize)]
struct ShownOutcome {
    revision: u64,
    changed: u64,
    unchanged: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct ShownChange {
    subscribed: bool,
    #[serde(flatten)]
    subscription: ShownSubscription,
}

#[derive(Serialize)]
struct ShownTopology {
    revision: u64,
    subscriptions: u64,
    policy: String,
    alpha: Vec<u64>,
    switches: Vec<ShownSwitch>,
    hosts: Vec<ShownHost>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct ShownSwitch {
    name: String,
    layer: u32,
    ports: Vec<ShownPort>,
    followers: u32,
    revision: u64,
    refusal: String,
}

#[derive(Serialize)]
struct ShownPort {
    number: u32,
    neighbour: String,
    up: bool,
}

#[derive(Serialize)]
struct ShownHost {
    name: String,
    switch: String,
    port: u32,
}

/// Tells when the process is asked to stop. The thread that waits for it does not keep the process from ending.
pub(super) fn stopped() -> Result<oneshot::Receiver<()>> {
    let stop = StopSignal::install()?;
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        stop.wait();
        // Nobody listens any more if the process ends by itself.
        let _ = tell.send(());
    });
    Ok(told)
}

/// Does something with a controller.
fn ask<T, F: Future<Output = Result<T>>>(connection: &Connection, work: impl FnOnce(Client) -> F) -> Result<T> {
    let (address, tls) = connection.controller.open()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { work(Client::connect(&address, tls.as_ref()).await?).await })
}

fn json(value: &impl Serialize) -> Result<()> {
    say!("{}", console::json(value)?);
    Ok(())
}

/// `weft subs subscribe`.
pub fn subscribe(arguments: &Subscribe) -> Result<()> {
    let list = wanted(&arguments.file, &arguments.host, &arguments.filter)?;
    let count = list.len();
    let outcome = ask(&arguments.connection, |client| async move {
        let outcome = send(&client, true, list, arguments.file.as_deref()).await?;
        if arguments.wait {
            wait(&client, outcome.revision).await?;
        }
        Ok(outcome)
    })?;
    if arguments.connection.json {
        return json(&outcome);
    }
    match (count, outcome.unchanged) {
        (1, 0) => say!("subscribed"),
        (1, _) => say!("subscribed before; nothing changed"),
        (_, 0) => say!("{count} subscriptions made"),
        (_, there) => say!("{} subscriptions made, {there} were there before", outcome.changed),
    }
    Ok(())
}

/// `weft subs unsubscribe`.
pub fn unsubscribe(arguments: &Unsubscribe) -> Result<()> {
    let mut list =
        if arguments.all { Vec::new() } else { wanted(&arguments.file, &arguments.host, &arguments.filter)? };
    let outcome = ask(&arguments.connection, |client| async move {
        if arguments.all {
            pages(&client, arguments.host.as_deref(), |page| {
                list.extend(page.into_iter().map(|it| Subscription { host: it.host, filter: it.filter }));
                Ok(())
            })
            .await?;
        }
        let outcome = send(&client, false, list, arguments.file.as_deref()).await?;
        if arguments.wait {
            wait(&client, outcome.revision).await?;
        }
        Ok(outcome)
    })?;
    if arguments.connection.json {
        json(&outcome)?;
    }
    if let (Some(host), false) = (&arguments.host, arguments.all || outcome.unchanged == 0) {
        bail!("host `{host}` has no such subscription; `weft subs list --host {host}` shows what it has");
    }
    if !arguments.connection.json {
        match outcome.unchanged {
            0 => say!("{} subscriptions ended", outcome.changed),
            absent => say!("{} subscriptions ended, {absent} were not there", outcome.changed),
        }
    }
    Ok(())
}

/// `weft subs list`.
pub fn list(arguments: &List) -> Result<()> {
    let mut count = 0_u64;
    ask(&arguments.connection, |client| async move {
        pages(&client, arguments.host.as_deref(), |page| {
            let mut text = String::new();
            for it in page {
                count += 1;
                if arguments.connection.json {
                    text += &console::json(&ShownSubscription::of(it))?;
                } else {
                    text += &format!("{}: {}", printable(&it.host), printable(&it.filter));
                }
                text.push('\n');
            }
            console::write(text.as_bytes())
        })
        .await?;
        if count == 0 && !arguments.connection.json {
            tell!("no subscription");
        }
        Ok(())
    })
}

/// `weft subs topology`.
pub fn topology(arguments: &Topology) -> Result<()> {
    let found = ask(&arguments.connection, |client| async move { Ok(client.topology().await?) })?;
    if arguments.connection.json {
        say!("{}", console::pretty_json(&ShownTopology::of(found))?);
        return Ok(());
    }
    let alpha: Vec<String> = found.alpha.iter().map(u64::to_string).collect();
    let alpha = if alpha.is_empty() { String::new() } else { format!(", alpha {}", alpha.join(",")) };
    say!(
        "{} switches, {} hosts, {} subscriptions; change {}; policy {}{alpha}",
        found.switches.len(),
        found.hosts.len(),
        found.subscriptions,
        found.revision,
        found.policy
    );
    found.notes.iter().for_each(|note| say!("note: {note}"));
    let width = found.switches.iter().map(|switch| switch.name.len()).max().unwrap_or(0).max(6);
    say!("{:<width$} {:>5} {:<22} ports", "switch", "layer", "follows");
    for switch in &found.switches {
        let follows = match switch.followers {
            0 => "no".to_owned(),
            1 if switch.revision == found.revision => "up to date".to_owned(),
            1 => format!("at change {}", switch.revision),
            count => format!("{count} times"),
        };
        let port = |port: &protocol::SwitchPort| {
            format!("{} {}{}", port.number, port.neighbour, if port.up { " (up)" } else { "" })
        };
        let ports: Vec<String> = switch.ports.iter().map(port).collect();
        say!("{:<width$} {:>5} {follows:<22} {}", switch.name, switch.layer, ports.join(", "));
    }
    for switch in found.switches.iter().filter(|switch| !switch.refusal.is_empty()) {
        say!("`{}` {}", switch.name, printable(&switch.refusal));
    }
    Ok(())
}

/// `weft subs watch`.
pub fn watch(arguments: &Watch) -> Result<()> {
    let mut stopped = stopped()?;
    ask(&arguments.connection, |client| async move {
        let mut replies = client.watch().await?;
        loop {
            let reply = tokio::select! {
                reply = replies.message() => reply.map_err(ClientError::from)?,
                _ = &mut stopped => return Ok(()),
            };
            let Some(reply) = reply else { bail!("the controller ended the watch") };
            if reply.changes.is_empty() {
                tell!("watches from change {} on; Ctrl-C ends it", reply.revision);
            }
            for change in reply.changes {
                let Some(it) = change.subscription else { continue };
                if arguments.connection.json {
                    json(&ShownChange { subscribed: change.subscribed, subscription: ShownSubscription::of(it) })?;
                } else {
                    let sign = if change.subscribed { '+' } else { '-' };
                    say!("{sign} {}: {}", printable(&it.host), printable(&it.filter));
                }
            }
            console::finish()?;
        }
    })
}

/// The subscriptions that the arguments name.
fn wanted(file: &Option<PathBuf>, host: &Option<String>, filter: &Option<String>) -> Result<Vec<Subscription>> {
    match (file, host, filter) {
        (Some(file), ..) => lines(file),
        (None, Some(host), Some(filter)) => Ok(vec![Subscription { host: host.clone(), filter: filter.clone() }]),
        // The arguments say so.
        _ => bail!("name a host and a filter, or a file"),
    }
}

/// Lines `HOST: filter`; blank ones and comments are left out.
fn lines(file: &Path) -> Result<Vec<Subscription>> {
    let mut list = Vec::new();
    for (number, line) in (1..).zip(file::text(file, Kind::Rules)?.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("//") {
            continue;
        }
        let (host, filter) = line
            .split_once(':')
            .with_context(|| format!("{}:{number}: this is no subscription; write `HOST: filter`", file.display()))?;
        list.push(Subscription { host: host.trim().to_owned(), filter: filter.trim().to_owned() });
    }
    ensure!(!list.is_empty(), "{} has no subscription", file.display());
    Ok(list)
}

/// Sends a list in batches.
async fn send(client: &Client, subscribe: bool, list: Vec<Subscription>, file: Option<&Path>) -> Result<ShownOutcome> {
    let mut sum = ShownOutcome { revision: 0, changed: 0, unchanged: 0, warnings: Vec::new() };
    for batch in list.chunks(BATCH) {
        let done = sum.changed + sum.unchanged;
        let answer = match subscribe {
            true => client.subscribe(batch.to_vec()).await,
            false => client.unsubscribe(batch.to_vec()).await,
        };
        let Outcome { revision, changed, unchanged, warnings } = match (answer, file) {
            (Ok(outcome), _) => outcome,
            (Err(error), None) => return Err(error.into()),
            (Err(error), Some(file)) => {
                bail!("{}, behind the first {done} subscriptions, which are done: {error}", file.display())
            }
        };
        sum.revision = revision;
        sum.changed += u64::from(changed);
        sum.unchanged += u64::from(unchanged);
        warnings.iter().for_each(|warning| tell!("warning: {warning}"));
        sum.warnings.extend(warnings);
    }
    Ok(sum)
}

/// Waits until every switch that follows has a change, and warns of those that hold rules back. That none follows is an
/// error: then nothing forwards by it, however long one waits.
async fn wait(client: &Client, revision: u64) -> Result<()> {
    loop {
        let switches = client.topology().await?.switches;
        let mut following = switches.iter().filter(|switch| switch.followers > 0).peekable();
        ensure!(
            following.peek().is_some(),
            "it is in the controller's store, but no switch follows the controller, so nothing forwards by it yet; \
             `weft subs run --switch` starts one"
        );
        if following.clone().all(|switch| switch.revision >= revision) {
            for switch in following.filter(|switch| !switch.refusal.is_empty()) {
                tell!("warning: switch `{}` {}", switch.name, printable(&switch.refusal));
            }
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn pages(
    client: &Client,
    host: Option<&str>,
    mut take: impl FnMut(Vec<NumberedSubscription>) -> Result<()>,
) -> Result<()> {
    let mut after = 0;
    loop {
        let page = client.list(host, after, 0).await?;
        take(page.subscriptions)?;
        if page.next == 0 {
            return Ok(());
        }
        after = page.next;
    }
}

impl ShownSubscription {
    fn of(it: NumberedSubscription) -> ShownSubscription {
        ShownSubscription { number: it.number, host: it.host, filter: it.filter }
    }
}

impl ShownTopology {
    fn of(it: protocol::TopologyReply) -> ShownTopology {
        let port = |it: protocol::SwitchPort| ShownPort { number: it.number, neighbour: it.neighbour, up: it.up };
        let switch = |it: protocol::Switch| ShownSwitch {
            name: it.name,
            layer: it.layer,
            ports: it.ports.into_iter().map(port).collect(),
            followers: it.followers,
            revision: it.revision,
            refusal: it.refusal,
        };
        ShownTopology {
            revision: it.revision,
            subscriptions: it.subscriptions,
            policy: it.policy,
            alpha: it.alpha,
            switches: it.switches.into_iter().map(switch).collect(),
            hosts: it
                .hosts
                .into_iter()
                .map(|it| ShownHost { name: it.name, switch: it.switch, port: it.port })
                .collect(),
            notes: it.notes,
        }
    }
}
