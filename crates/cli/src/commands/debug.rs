//! `weft debug`: follows the debug records of a running function.

use crate::console::{self, tell};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_linux::control::{Request, Response};
use weftwire_linux::control_client::ControlClient;
use weftwire_text::printable;

/// Follow the debug records of a running function: snapshots and samples that its source asks for by `#debug`.
#[derive(Args)]
pub struct Arguments {
    /// The run's control socket [default: the only one there is]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Show every event, not only snapshots and samples
    #[arg(long)]
    events: bool,
    /// End after this many records
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

/// Runs the command until the run ends, or `--count` is reached.
pub fn execute(arguments: Arguments) -> Result<()> {
    let mut client = ControlClient::connect(arguments.control.as_deref())?;
    client.ask(&Request::Debug { on: true, events: arguments.events })?;
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 {
        match client.next_response()? {
            Some(Response::Trace(record)) => {
                let line =
                    if arguments.json { console::json(&record)? } else { printable(&line(&record)).into_owned() };
                console::write(format!("{line}\n").as_bytes())?;
                left -= 1;
            }
            Some(Response::Lost(count)) => tell!("{count} records lost: more came than could be read"),
            Some(_) => {}
            None => break,
        }
    }
    Ok(())
}

fn line(record: &TraceRecord) -> String {
    let TraceRecord { time, flow, kind, state, event, next, .. } = record;
    let mut text = match kind {
        TraceKind::Event if state == next => format!("{time} flow {flow} {state}: {event}"),
        TraceKind::Event => format!("{time} flow {flow} {state} -> {next}: {event}"),
        TraceKind::Snapshot => format!("{time} flow {flow} {state}: snapshot {event}"),
        TraceKind::Sample => format!("{time} flow {flow} {state}: sample {event}"),
        TraceKind::Error => format!("{time} flow {flow} {state}: error {event}"),
    };
    if let Some(place) = record.place() {
        text += &format!(" ({place})");
    }
    for action in &record.actions {
        text += &format!("; {action}");
    }
    for (register, value) in &record.registers {
        text += &format!(" {register}={value}");
    }
    text
}
