//! The commands of services and of their clients: the controller of subscriptions, and the bridge to Kafka.

mod client;
mod controller;
mod ends;
pub(super) mod follow;
mod kafka;

pub(super) use ends::ClientEnd;

use anyhow::Result;
use clap::Subcommand;

/// A service, or what is asked of one.
#[derive(Subcommand)]
pub enum Command {
    /// Be a broker to clients of Kafka: what they produce goes into the network, what comes from it they consume
    Kafka(kafka::Arguments),
    /// Keep the subscriptions of a network's hosts, and tell its switches what follows from them
    Controller(controller::Arguments),
    /// Subscribe a host at a controller
    Subscribe(client::Subscribe),
    /// End a host's subscriptions at a controller
    Unsubscribe(client::Unsubscribe),
    /// List the subscriptions of a controller
    List(client::List),
    /// Show a controller's network, and which of its switches follow it
    Topology(client::Topology),
    /// Show each subscription as it begins or ends, until interrupted
    Watch(client::Watch),
}

/// Runs the command.
pub fn execute(command: Command) -> Result<()> {
    match command {
        Command::Kafka(arguments) => kafka::execute(&arguments),
        Command::Controller(arguments) => controller::execute(&arguments),
        Command::Subscribe(arguments) => client::subscribe(&arguments),
        Command::Unsubscribe(arguments) => client::unsubscribe(&arguments),
        Command::List(arguments) => client::list(&arguments),
        Command::Topology(arguments) => client::topology(&arguments),
        Command::Watch(arguments) => client::watch(&arguments),
    }
}
