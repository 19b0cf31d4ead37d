//! `weft subs run`: rules on real ports.

use crate::commands::run;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use weftwire_linux::application::Application;

/// Forward the packets of network interfaces, TUN and TAP devices by rules: each port gets the messages that its rules
/// match.
#[derive(Args)]
pub struct Arguments {
    /// The rules
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// The message formats: a .p4 file with annotations
    #[arg(long, value_name = "FILE")]
    format: PathBuf,
    /// The order of fields: `auto`, `file`, or names like `add_order.stock,add_order.price`
    #[arg(long, default_value = "auto")]
    order: String,
    #[command(flatten)]
    platform: run::Platform,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let switch = super::switch(&arguments.rules, &arguments.format, &arguments.order)?;
    let start = |ports: &_, seed, key| switch.start("", ports, seed, key);
    run::run(&arguments.platform, switch.name(), start, || Ok(Application::new(Vec::new())), false)
}
