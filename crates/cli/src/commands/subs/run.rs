//! `weft subs run`: rules on real ports.

use super::follow;
use crate::commands::run;
use anyhow::Result;
use clap::{ArgGroup, Args};
use std::path::PathBuf;
use weftwire_control::Address;
use weftwire_linux::application::Application;

/// Forward the packets of network interfaces, TUN and TAP devices by rules: each port gets the messages that its rules
/// match. The rules are those of a file, or those that a controller has for a switch of its network.
#[derive(Args)]
#[command(group(ArgGroup::new("source").required(true).args(["rules", "switch"])))]
pub struct Arguments {
    /// The rules
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Be this switch of a controller's network: take its rules, and follow their changes
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
    /// The controller: unix:PATH or HOST:PORT [default: where `weft subs controller` of the same user listens]
    #[arg(long, value_name = "ADDRESS", requires = "switch")]
    pub(super) controller: Option<Address>,
    /// The message formats: a .p4 file with annotations
    #[arg(long, value_name = "FILE")]
    pub(super) format: PathBuf,
    /// The order of fields: `auto`, `file`, or names like `add_order.stock,add_order.price`
    #[arg(long, default_value = "auto")]
    pub(super) order: String,
    #[command(flatten)]
    pub(super) platform: run::Platform,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    match (&arguments.rules, &arguments.switch) {
        (Some(rules), _) => {
            let switch = super::switch(rules, &arguments.format, &arguments.order)?;
            let start = |ports: &_, seed, key| switch.start("", ports, seed, key);
            run::run(&arguments.platform, switch.name(), start, || Ok(Application::new(Vec::new())), || {}, false)
        }
        (None, Some(switch)) => follow::execute(arguments, switch),
        // The arguments say so.
        (None, None) => anyhow::bail!("name a file by --rules, or a switch by --switch"),
    }
}
