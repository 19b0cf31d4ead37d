//! `weft chain`: service chains.

use crate::commands::run;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use weftwire_chain::config::Config;
use weftwire_chain::{Agent, HOST, NETWORK};
use weftwire_core::{FlowId, Function, Ports};
use weftwire_linux::control::{Request, Response};
use weftwire_linux::control_client::ControlClient;

/// Steer TCP sessions through middleboxes.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Be the agent of a host: between the host (port 1) and its network (port 2), until it is interrupted
    Agent(Box<AgentArguments>),
    /// Give a session another chain while it runs: between this agent's host and another agent of its chain
    Change(ChangeArguments),
}

#[derive(Args)]
struct ChangeArguments {
    /// The session's number at this agent, as `weft flows` shows it
    flow: u64,
    /// The agent up to which the chain changes: a box's, or that of the end host
    #[arg(long, value_name = "AGENT")]
    right: u16,
    /// Agents of the boxes that are to be between, in their order [default: none]
    #[arg(long, value_name = "AGENT", value_delimiter = ',')]
    boxes: Vec<u16>,
    /// The agent's control socket [default: the only one there is]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

#[derive(Args)]
struct AgentArguments {
    /// The agent's configuration: who it is, which agents there are, keys and policies (.toml)
    config: PathBuf,
    #[command(flatten)]
    platform: run::Platform,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Agent(arguments) => agent(arguments),
        Command::Change(arguments) => change(arguments),
    }
}

fn change(arguments: &ChangeArguments) -> Result<()> {
    let mut client = ControlClient::connect(arguments.control.as_deref())?;
    let (flow, right) = (FlowId(arguments.flow), arguments.right);
    match client.ask(&Request::Chain { flow, right, boxes: arguments.boxes.clone() })? {
        Response::Done {} => Ok(()),
        _ => bail!("the run gave an answer to another question"),
    }
}

fn agent(arguments: &AgentArguments) -> Result<()> {
    let path = arguments.config.display();
    let text = fs::read_to_string(&arguments.config).with_context(|| format!("cannot read {path}"))?;
    let config: Config = toml::from_str(&text).with_context(|| format!("cannot read {path}"))?;
    let name = format!("agent-{}", config.agent);
    // Above all counters of earlier runs, as long as the clock is not put back.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    let counter = u64::try_from(since_1970.as_nanos()).context("the clock stands behind 2554")?;
    let start = |ports: &Ports, seed, key: Option<[u64; 2]>| {
        ensure!(
            ports.link(HOST).is_some() && ports.link(NETWORK) == ports.link(HOST) && ports.iter().count() == 2,
            "an agent has two ports of one kind: --port {HOST}=INTERFACE towards the host, --port {NETWORK}=INTERFACE towards the network"
        );
        let agent = Agent::new(config, ports.clone(), key.unwrap_or([seed, !seed]), counter);
        Ok(Box::new(agent.with_context(|| path.to_string())?) as Box<dyn Function>)
    };
    run::run(&arguments.platform, &name, start, || Ok(()), || {}, run::Course::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_configuration() {
        let text = include_str!("../../../../examples/chains/client.toml");
        let config: Config = toml::from_str(text).unwrap();
        config.check().unwrap();
        assert_eq!((config.agents.len(), config.policies[0].boxes.len()), (4, 2));
        let misspelt = toml::from_str::<Config>(&text.replace("boxes", "boxen")).unwrap_err();
        assert!(misspelt.to_string().contains("boxen"), "{misspelt}");
    }
}
