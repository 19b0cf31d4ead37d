//! `weft flows`: looks into a running function and changes it, over its control socket.

use crate::arguments::assignment;
use crate::console;
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::PathBuf;
use weftwire_core::FlowId;
use weftwire_core::inspect::{Counters, FlowDetail, FlowSummary};
use weftwire_linux::control::{Request, Response};
use weftwire_linux::control_client::ControlClient;
use weftwire_linux::report::write_counters;

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
    /// Show one flow: registers, timers, stored packets, counters
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
    /// Delete a flow with its timers and packets
    Delete {
        /// The flow's number
        flow: u64,
    },
    /// Show the function's counters
    Counters,
}

/// Runs the command.
pub fn execute(arguments: Arguments) -> Result<()> {
    let mut client = ControlClient::connect(arguments.control.as_deref())?;
    let request = match arguments.action.unwrap_or(Action::List) {
        Action::List => Request::Flows,
        Action::Show { flow } => Request::Flow { flow: FlowId(flow) },
        Action::Set { flow, assignment: (register, value) } => Request::Set { flow: FlowId(flow), register, value },
        Action::Delete { flow } => Request::Delete { flow: FlowId(flow) },
        Action::Counters => Request::Counters,
    };
    let text = match client.ask(&request)? {
        Response::Flows(flows) if arguments.json => json(&flows)?,
        Response::Flow(flow) if arguments.json => json(&flow)?,
        Response::Counters(counters) if arguments.json => json(&counters)?,
        Response::Flows(flows) => list(&flows),
        Response::Flow(flow) => detail(&flow),
        Response::Counters(counters) => table(&counters)?,
        Response::Done {} => String::new(),
        Response::Error(_) | Response::Trace(_) | Response::Lost(_) => {
            bail!("the run gave an answer to another question")
        }
    };
    console::write(text.as_bytes())
}

fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

fn table(counters: &Counters) -> Result<String> {
    let mut text = String::new();
    write_counters(&mut text, counters)?;
    Ok(text)
}

fn list(flows: &[FlowSummary]) -> String {
    let widest = |title: &str, text: fn(&FlowSummary) -> &str| {
        flows.iter().map(|flow| text(flow).chars().count()).max().unwrap_or(0).max(title.len())
    };
    let (key_width, state_width) = (widest("key", |flow| &flow.key), widest("state", |flow| &flow.state));
    let mut text = format!(
        "{:>8}  {:key_width$}  {:state_width$}  {:>16}  {:>16}  {:>10}\n",
        "flow", "key", "state", "created", "last active", "events"
    );
    for flow in flows {
        let (created, active) = (flow.created.to_string(), flow.last_active.to_string());
        text += &format!(
            "{:>8}  {:key_width$}  {:state_width$}  {created:>16}  {active:>16}  {:>10}\n",
            flow.flow, flow.key, flow.state, flow.events
        );
    }
    text
}

fn detail(flow: &FlowDetail) -> String {
    let mut text = list(std::slice::from_ref(&flow.summary));
    let width = flow.registers.iter().map(|register| register.name.len()).max().unwrap_or(0);
    for register in &flow.registers {
        text += &format!("register  {:width$}  {}\n", register.name, register.text);
    }
    for timer in &flow.timers {
        text += &format!("timer     {} due at {}", timer.name, timer.due);
        text += &if timer.payload.is_empty() { "\n".to_owned() } else { format!(" with {:?}\n", timer.payload) };
    }
    for (slot, length) in &flow.packets {
        text += &format!("packet    {slot}, {length} bytes\n");
    }
    for (name, count) in &flow.counters {
        text += &format!("counter   {name}  {count}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use weftwire_core::Time;
    use weftwire_core::inspect::{PendingTimer, RegisterValue};

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
                "packet    last, 60 bytes",
                "counter   no_row  1"
            ]
        );
    }
}
