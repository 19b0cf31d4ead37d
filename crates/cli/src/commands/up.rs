//! `weft up`: a network from network namespaces.

use crate::commands::run::node::Weft;
use crate::commands::subs::Compiling;
use crate::console::{self, say};
use crate::folder::OutputFolder;
use crate::memory;
use crate::network;
use crate::outputs;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use weftwire_catalog::Loaded;
use weftwire_lab::run::{RunProgress, run};
use weftwire_lab::state::{State, folder};
use weftwire_lab::supervisor::{self, UpOptions};
use weftwire_linux::LinuxError;
use weftwire_linux::privileges::User;
use weftwire_linux::signals::StopSignal;
use weftwire_network::Network;

/// What the holder says once everything is ready.
const READY: &[u8] = b"ready\n";

/// Make a network from network namespaces: each node a namespace, each link emulated by a relay.
///
/// The network stays until `weft down`. With --run its traffic, commands and changes run once, in the foreground, and it
/// is taken down at the end. Needs root.
#[derive(Args, Clone)]
pub struct Arguments {
    #[command(flatten)]
    network: network::Arguments,
    /// Another name than the file's
    #[arg(long)]
    name: Option<String>,
    /// Run the file's traffic, commands and changes, write results, take the network down
    #[arg(long, requires = "out")]
    run: bool,
    /// Write the results of --run into this folder
    #[arg(long, value_name = "DIR", requires = "run")]
    out: Option<PathBuf>,
    /// The user who runs the commands of the network's hosts [default: root, who makes the network]
    #[arg(long, value_name = "NAME", requires = "run")]
    user: Option<String>,
    /// Have the relay hardly ever sleep: it takes frames at once, and takes a whole processor
    #[arg(long, overrides_with = "no_busy")]
    busy: bool,
    /// Have the relay sleep while nothing is due: the default
    #[arg(long, overrides_with = "busy")]
    no_busy: bool,
}

/// Arguments of the process that holds a network.
#[derive(Args)]
pub struct HoldArguments {
    #[command(flatten)]
    up: Arguments,
}

impl Arguments {
    /// The network and its file's text.
    fn read(&self) -> Result<(Network, String)> {
        let mut arguments = self.network.clone();
        if let Some(name) = &self.name {
            arguments.changes.push(("name".to_owned(), toml::Value::String(name.clone())));
        }
        let file = arguments.open()?;
        let (network, sweep) = file.network(&[])?;
        ensure!(
            sweep.is_empty() || !self.run,
            "the file has a [sweep], which only `weft sim` runs; choose values with --set"
        );
        // What is wrong with a function is told before anything is made.
        let functions = file.functions(&network, &Compiling::default().begin())?;
        let tables = functions.values().map(Loaded::flow_table).fold(0, u64::saturating_add);
        memory::check_real(&network, self.run, tables)?;
        Ok((network, file.text().to_owned()))
    }

    fn options(&self) -> Result<UpOptions> {
        let file = &self.network.file;
        let file = file.canonicalize().with_context(|| format!("cannot find {}", file.display()))?;
        let program = std::env::current_exe().context("cannot find the program's own file")?;
        let includes = self.network.includes.catalog()?.includes;
        let user = self.user.as_deref().map(User::named).transpose()?;
        Ok(UpOptions { file, runner: Arc::new(Weft { program, includes }), busy: self.busy, user, ahead: false })
    }
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    match &arguments.out {
        Some(out) => run_once(arguments, out),
        None => start(),
    }
}

/// Makes the network, runs it, and writes what came of it.
fn run_once(arguments: &Arguments, out: &Path) -> Result<()> {
    let (network, text) = arguments.read()?;
    let options = arguments.options()?;
    let folder = OutputFolder::begin(out)?;
    let stop = StopSignal::install()?;
    let network = Arc::new(network);
    let mut line = ProgressLine::begin();
    let results = run(&network, &options, folder.path(), &stop, &mut |progress| show(&mut line, progress));
    drop(line);
    let results = match results {
        Ok(results) => results,
        Err(error) => {
            folder.leave();
            return Err(error.into());
        }
    };
    if results.run.interrupted && folder.replaces_results() {
        bail!("interrupted; {} stays as it was", out.display());
    }
    outputs::write_run(folder.path(), &text, &network, &results)?;
    folder.finish()?;
    outputs::describe(&results, out);
    for (who, lateness) in [("relay", results.run.lateness), ("sources", results.run.source_lateness)] {
        let Some(lateness) = lateness else { continue };
        let microseconds = |nanoseconds: i64| nanoseconds as f64 / 1e3;
        say!(
            "{:<15} {:>11.1} us  at the median, p99 {:.1} us, worst {:.1} us",
            format!("{who} late by"),
            microseconds(lateness.p50),
            microseconds(lateness.p99),
            microseconds(lateness.worst)
        );
    }
    Ok(())
}

fn show(line: &mut ProgressLine, progress: &RunProgress<'_>) {
    let delivered: u64 = progress.relay.directions.iter().map(|it| it.counts.delivered_packets).sum();
    let [now, all] = [progress.now, progress.all].map(|duration| duration.as_secs_f64());
    let late = progress.relay.lateness.p99 / 1000;
    let share = now / all;
    line.tell(share, format_args!("{now:.1} of {all} s, {delivered} packet-hops, relay p99 {late} us late"));
}

/// Starts a process that makes and holds the network, and waits until it is ready.
fn start() -> Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("hold").args(std::env::args_os().skip_while(|word| word != "up").skip(1));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start the process that holds the network")?;
    let mut said = Vec::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_end(&mut said).context("cannot read from the process that holds the network")?;
    }
    if !said.ends_with(READY) {
        // It has said why on standard error.
        let status = child.wait()?;
        std::process::exit(status.code().filter(|code| *code != 0).unwrap_or(1));
    }
    said.truncate(said.len() - READY.len());
    console::write(&said)
}

/// What was made and how to use it.
fn description(network: &Network) -> String {
    let name = &network.name;
    let mut text = String::new();
    let mut println = |line: std::fmt::Arguments<'_>| {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{line}");
    };
    println(format_args!("{name} is up: {} nodes, {} links", network.nodes.len(), network.links.len()));
    let width = network.nodes.iter().map(|node| node.name.len()).max().unwrap_or(0);
    for node in network.nodes.iter().take(20) {
        let kind = weftwire_lab::build::kind_name(&node.kind);
        let addresses = match node.is_addressed() {
            true => format!("{}  {}", node.ipv4, node.ipv6),
            false => String::new(),
        };
        println(format_args!("  {:width$}  {kind:8}  {addresses}", node.name));
    }
    if network.nodes.len() > 20 {
        println(format_args!("  and {} more", network.nodes.len() - 20));
    }
    let node = network.nodes.first().map_or("NODE", |node| &node.name);
    println(format_args!("run a command in a node    weft exec --network {name} {node} -- COMMAND"));
    println(format_args!("look at links and relay    weft status {name}"));
    println(format_args!("take it down               weft down {name}"));
    text
}

/// Makes and holds the network, in the background process.
pub fn hold(arguments: &HoldArguments) -> Result<()> {
    // What ends this terminal's processes is not meant for the network.
    weftwire_linux::session::lead()?;
    let (network, _) = arguments.up.read()?;
    let options = arguments.up.options()?;
    let stop = StopSignal::install()?;
    let text = description(&network);
    supervisor::hold(&Arc::new(network), &options, &stop, |state| Ok(tell(state, &text)?))?;
    Ok(())
}

/// Tells `weft up` that the network is ready, and from then on speaks to a log. Fails if nobody listens any more.
fn tell(state: &State, text: &str) -> Result<(), LinuxError> {
    let failed = |error| LinuxError::system("tell `weft up` that the network is ready", error);
    let log = File::create(folder(&state.name).join("log")).map_err(failed)?;
    let mut output = io::stdout();
    output
        .write_all(text.as_bytes())
        .and_then(|()| output.write_all(READY))
        .and_then(|()| output.flush())
        .map_err(failed)?;
    weftwire_linux::session::speak_to(log.as_fd()).map_err(failed)
}
