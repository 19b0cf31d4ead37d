//! `weft flows`: looks into a running function and changes it, over its control socket.

use crate::arguments::assignment;
use crate::{console, states};
use anyhow::{Result, bail};
use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;
use std::path::PathBuf;
use weftwire_core::FlowId;
use weftwire_core::inspect::{FlowDetail, FlowSummary};
use weftwire_engine::parameter::{Parameter, parse_parameter};
use weftwire_linux::control::{PortStatus, Request, Response, RunCounters};
use weftwire_linux::control_client::ControlClient;
use weftwire_linux::report::write_counters;
use weftwire_text::printable;

/// Show and change the flows of a running function.
#[derive(Args)]
pub struct Arguments {
    /// The run's control socket [default: the only one there is]
    #[arg(long, global = true, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// List all flows (the default)
    List,
    /// Show one flow: registers, timers, turns that it waits for, stored packets, counters
    Show {
        /// Its number, as `list` shows it
        flow: u64,
    },
    /// Set a register of a flow
    Set {
        /// The flow's number
        flow: u64,
        /// The register and its new value
        #[arg(value_name = "REGISTER=VALUE", value_parser = assignment)]
        assignment: (String, i64),
    },
    /// Give registers other initial values: flows to come begin with them, those that live keep theirs
    Parameters {
        /// Registers and their initial values, as for `weft run --parameter`
        #[arg(value_name = "NAME=VALUE", value_parser = parse_parameter, required = true)]
        parameters: Vec<Parameter>,
    },
    /// Delete a flow with its timers and packets
    Delete {
        /// The flow's number
        flow: u64,
    },
    /// Write flows down, as they are: each exactly, at different instants
    #[command(group = ArgGroup::new("which").required(true).args(["flow", "all"]))]
    Snapshot {
        /// The flow's number
        flow: Option<u64>,
        /// All flows
        #[arg(long)]
        all: bool,
        /// Take them out: the function has them no more, and another one may adopt them
        #[arg(long)]
        take: bool,
        /// Write to this file, which only its owner may read: it holds payload and keys [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Put flows in that `snapshot` has written
    Adopt {
        /// The file
        file: PathBuf,
        /// They are copies: the function that they were copied from is gone, or both may answer
        #[arg(long)]
        copy: bool,
    },
    /// Show the function's counters
    Counters,
}

/// Runs the command.
pub fn execute(arguments: Arguments) -> Result<()> {
    let mut client = ControlClient::connect(arguments.control.as_deref())?;
    let request = match arguments.action.unwrap_or(Action::List) {
        Action::List => {
            let flows = client.flows()?;
            let text = if arguments.json { json(&flows)? } else { list(&flows) };
            return console::write(text.as_bytes());
        }
        Action::Snapshot { flow, take, out, .. } => return states::write(&mut client, flow.map(FlowId), take, out),
        Action::Adopt { file, copy } => return states::adopt(&mut client, &file, copy),
        Action::Show { flow } => Request::Flow { flow: FlowId(flow) },
        Action::Set { flow, assignment: (register, value) } => Request::Set { flow: FlowId(flow), register, value },
        Action::Parameters { parameters } => Request::Parameters { parameters },
        Action::Delete { flow } => Request::Delete { flow: FlowId(flow) },
        Action::Counters => Request::Counters,
    };
    let text = match client.ask(&request)? {
        Response::Flow(flow) if arguments.json => json(&flow)?,
        Response::Counters(counters) if arguments.json => json(&counters)?,
        Response::Flow(flow) => detail(&flow),
        Response::Counters(counters) => table(&counters)?,
        Response::Done {} => String::new(),
        Response::Page(_)
        | Response::States(_)
        | Response::Whole { .. }
        | Response::Adopted { .. }
        | Response::Plan(_)
        | Response::Error(_)
        | Response::Trace(_)
        | Response::Lost(_) => {
            bail!("the run gave an answer to another question")
        }
    };
    console::write(text.as_bytes())
}

fn json(value: &impl Serialize) -> Result<String> {
    Ok(console::pretty_json(value)? + "\n")
}

fn table(counters: &RunCounters) -> Result<String> {
    let mut text = String::new();
    write_counters(&mut text, &counters.function)?;
    for port in &counters.ports {
        let PortStatus { port: number, interface, condition, times_gone, .. } = port;
        let gone = if *times_gone > 0 { format!(", gone {times_gone} times so far") } else { String::new() };
        let count = |what: &str, count: u64| format!("{:44} {count:>12}\n", format!("port {number} {what}"));
        text += &format!("port {number} {} is {}{gone}\n", printable(interface), condition.name());
        text += &count("frames in", port.frames_in);
        text += &count("frames out", port.frames_out);
        if port.kernel_drops > 0 {
            text += &count("kernel drops", port.kernel_drops);
        }
        for (reason, times) in &port.not_sent {
            text += &count(&format!("not sent: {}", printable(reason)), *times);
        }
    }
    Ok(text)
}

fn list(flows: &[FlowSummary]) -> String {
    // A run of somebody else's program says what it likes.
    let texts: Vec<_> = flows.iter().map(|flow| (printable(&flow.key), printable(&flow.state))).collect();
    let key_width = texts.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0).max("key".len());
    let state_width = texts.iter().map(|(_, state)| state.chars().count()).max().unwrap_or(0).max("state".len());
    let mut text = format!(
        "{:>8}  {:key_width$}  {:state_width$}  {:>16}  {:>16}  {:>10}\n",
        "flow", "key", "state", "created", "last active", "events"
    );
    for (flow, (key, state)) in flows.iter().zip(texts) {
        let (created, active) = (flow.created.to_string(), flow.last_active.to_string());
        text += &format!(
            "{:>8}  {key:key_width$}  {state:state_width$}  {created:>16}  {active:>16}  {:>10}\n",
            flow.flow, flow.events
        );
    }
    text
}

fn detail(flow: &FlowDetail) -> String {
    let mut text = list(std::slice::from_ref(&flow.summary));
    let width = flow.registers.iter().map(|register| register.name.chars().count()).max().unwrap_or(0);
    for register in &flow.registers {
        text += &format!("register  {:width$}  {}\n", printable(&register.name), printable(&register.text));
    }
    for timer in &flow.timers {
        text += &format!("timer     {} due at {}", printable(&timer.name), timer.due);
        text += &if timer.payload.is_empty() { "\n".to_owned() } else { format!(" with {:?}\n", timer.payload) };
    }
    for turn in &flow.turns {
        let (name, rank, ahead) = (printable(&turn.name), turn.rank, turn.ahead);
        text += &format!("turn      {name} with rank {rank} and cost {} ns, {ahead} ahead\n", turn.cost);
    }
    for (slot, length) in &flow.packets {
        text += &format!("packet    {}, {length} bytes\n", printable(slot));
    }
    for (name, count) in &flow.counters {
        text += &format!("counter   {}  {count}\n", printable(name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use weftwire_core::Time;
    use weftwire_core::inspect::{PendingTimer, RegisterValue, WaitingTurn};

    #[test]
    fn columns_stay_aligned_and_all_of_a_flow_is_shown() {
        let summary = FlowSummary {
            flow: FlowId(12),
            key: "10.0.0.1:4000 <-> 10.0.0.2:80 tcp".into(),
            state: "established".into(),
            created: Time::from_nanoseconds(1_000_000_000),
            last_active: Time::from_nanoseconds(2_500_000_000),
            events: 7,
        };
        let rendered = detail(&FlowDetail {
            summary,
            registers: vec![RegisterValue { name: "window".into(), value: 10, text: "10".into() }],
            timers: vec![PendingTimer { name: "resend".into(), due: Time::ZERO, payload: vec![3] }],
            turns: vec![WaitingTurn { name: "pull".into(), rank: -5, cost: 1_200, ahead: 2 }],
            packets: vec![("last".into(), 60)],
            counters: BTreeMap::from([("no_row".into(), 1)]),
        });
        let lines: Vec<&str> = rendered.lines().collect();
        assert_eq!(lines[0].len(), lines[1].len());
        assert_eq!(
            lines[2..],
            [
                "register  window  10",
                "timer     resend due at 0.000000000 with [3]",
                "turn      pull with rank -5 and cost 1200 ns, 2 ahead",
                "packet    last, 60 bytes",
                "counter   no_row  1"
            ]
        );
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_escaped() {
        let summary = FlowSummary {
            flow: FlowId(1),
            key: "\x1b]0;owned\x07".into(),
            state: "open\nflow".into(),
            created: Time::ZERO,
            last_active: Time::ZERO,
            events: 0,
        };
        let registers = vec![RegisterValue { name: "\x1b[2J".into(), value: 0, text: "\u{9b}1m".into() }];
        let flow = FlowDetail {
            summary,
            registers,
            timers: vec![],
            turns: vec![],
            packets: vec![],
            counters: BTreeMap::new(),
        };
        let rendered = detail(&flow);
        assert_eq!(rendered.lines().count(), 3, "{rendered}");
        assert!(rendered.chars().all(|letter| letter == '\n' || !letter.is_control()), "{rendered:?}");
        assert!(rendered.contains(r"\u{1b}]0;owned\u{7}  open\u{a}flow"), "{rendered}");
    }
}
