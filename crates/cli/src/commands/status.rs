//! `weft status`: the networks that are up.

use super::down::only;
use crate::console::{self, say};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::fmt::Write as _;
use weftwire_lab::relay::drops;
use weftwire_lab::state::{Phase, State, folder, names, read, read_json};
use weftwire_lab::supervisor::Status;
use weftwire_text::{printable, printable_lines};

/// Show the networks that are up: nodes, links, the relay's lateness, and what a crash has left behind.
#[derive(Args)]
pub struct Arguments {
    /// One network, with all its links
    name: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// A network as it is.
#[derive(Serialize)]
struct Shown {
    name: String,
    /// `up`, `building`, or `left over`: nobody holds it any more.
    condition: &'static str,
    state: Option<State>,
    status: Option<Status>,
}

impl Shown {
    fn of(name: String) -> Shown {
        let state = read(&name);
        let condition = match &state {
            Some(state) if state.supervisor.is_alive() => match state.phase {
                Phase::Ready => "up",
                Phase::Building => "building",
            },
            _ => "left over",
        };
        let status = read_json(&folder(&name).join("status.json")).ok();
        Shown { name, condition, state, status }
    }
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let wanted = match &arguments.name {
        Some(name) => vec![only(Some(name))?],
        None => names(),
    };
    let shown: Vec<Shown> = wanted.into_iter().map(Shown::of).collect();
    if arguments.json {
        say!("{}", console::pretty_json(&shown)?);
        return Ok(());
    }
    if shown.is_empty() {
        say!("no network is up");
    }
    for network in &shown {
        console::say_text(format_args!("{}", printable_lines(&text(network)?)));
    }
    Ok(())
}

fn text(network: &Shown) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let Shown { name, condition, state, status } = network;
    let hint = if *condition == "left over" { format!(": weft down {name} removes it") } else { String::new() };
    writeln!(text, "{name}: {condition}{hint}")?;
    let Some(state) = state else { return Ok(text) };
    let holder = if state.supervisor.is_alive() { "" } else { ", which has ended" };
    writeln!(
        text,
        "  from {}, held by process {}{holder}",
        printable(&state.file.to_string_lossy()),
        state.supervisor.pid
    )?;
    let width = state.nodes.iter().map(|node| node.name.len()).max().unwrap_or(0).max(4);
    writeln!(text, "  {:width$}  {:8}  {:15}  {:24}  interfaces", "node", "kind", "IPv4", "IPv6")?;
    for node in &state.nodes {
        let ipv4 = node.ipv4.map_or(String::new(), |address| address.to_string());
        let ipv6 = node.ipv6.map_or(String::new(), |address| address.to_string());
        let interfaces: Vec<String> = node.interfaces.iter().map(|(port, link)| format!("{port}={link}")).collect();
        let ended = status.as_ref().is_some_and(|status| status.ended.contains(&node.name));
        let ended = if ended { "  (its function has ended)" } else { "" };
        let interfaces = interfaces.join(" ");
        writeln!(text, "  {:width$}  {:8}  {ipv4:15}  {ipv6:24}  {interfaces}{ended}", node.name, node.kind)?;
    }
    let Some(status) = status else { return Ok(text) };
    let names: Vec<String> = state
        .links
        .iter()
        .flat_map(|link| {
            [format!("{} > {}", link.ends[0], link.ends[1]), format!("{} > {}", link.ends[1], link.ends[0])]
        })
        .collect();
    let rates = state.links.iter().flat_map(|link| link.rates);
    let width = names.iter().map(String::len).max().unwrap_or(0).max(4);
    writeln!(
        text,
        "  {:width$}  {:>14}  {:>12}  {:>10}  {:>9}  {:>12}",
        "link", "rate", "delivered", "dropped", "queued", "queued bytes"
    )?;
    for ((name, rate), direction) in names.iter().zip(rates).zip(&status.relay.directions) {
        let rate = rate.map_or("-".to_owned(), |rate| format!("{rate} bit/s"));
        writeln!(
            text,
            "  {name:width$}  {rate:>14}  {:>12}  {:>10}  {:>9}  {:>12}",
            direction.counts.delivered_packets,
            drops(&direction.counts),
            direction.queue_packets,
            direction.queue_bytes
        )?;
    }
    let (relay, lateness) = (&status.relay, status.relay.lateness);
    let microseconds = |nanoseconds: i64| nanoseconds as f64 / 1e3;
    writeln!(
        text,
        "  relay: {} packets, late by {:.1} us (median), {:.1} us (p99), {:.1} us (worst), allowed {:.1} us{}{}{}",
        lateness.packets,
        microseconds(lateness.p50),
        microseconds(lateness.p99),
        microseconds(lateness.worst),
        microseconds(lateness.allowed),
        if lateness.late { ": TOO LATE" } else { "" },
        if relay.busy { ", busy" } else { "" },
        if relay.realtime { ", real-time priority" } else { "" },
    )?;
    if relay.kernel_drops > 0 {
        writeln!(text, "  {} frames were lost in front of the relay", relay.kernel_drops)?;
    }
    Ok(text)
}
