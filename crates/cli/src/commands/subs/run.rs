//! `weft subs run`: rules on real ports.

use super::ends::ClientEnd;
use super::reload::Reloading;
use super::{Compiling, follow};
use crate::commands::run;
use anyhow::{Result, ensure};
use clap::{ArgGroup, Args};
use std::path::PathBuf;
use weftwire_core::function::Ports;
use weftwire_linux::application::Application;
use weftwire_linux::signals::HangUp;

/// Forward the packets of network interfaces, TUN and TAP devices by rules: each port gets the messages that its rules
/// match. The rules are those of files, or those that a controller has for a switch of its network.
#[derive(Args)]
#[command(group(ArgGroup::new("source").required(true).args(["rules", "switch"])))]
pub struct Arguments {
    /// The rules; of several files they are taken together. SIGHUP has them read again
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Be this switch of a controller's network: take its rules, and follow their changes
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
    #[command(flatten)]
    pub(super) controller: ClientEnd,
    /// The message formats: .p4 files with annotations
    #[arg(long = "format", value_name = "FILE", required = true)]
    pub(super) formats: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) compiling: Compiling,
    #[command(flatten)]
    pub(super) platform: run::Platform,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    if let Some(switch) = &arguments.switch {
        return follow::execute(arguments, switch);
    }
    ensure!(
        !arguments.controller.is_given(),
        "--controller and its options go with --switch; --rules are those of files"
    );
    let (rules, formats) = (arguments.rules.clone(), arguments.formats.clone());
    let compiling = arguments.compiling.clone();
    let load = move || super::switch(&rules, &formats, &compiling);
    let switch = load()?;
    let hangup = HangUp::hold()?;
    let start = |ports: &Ports, _, _| Reloading::start(&switch, ports, hangup, load);
    run::run(&arguments.platform, switch.name(), start, || Ok(Application::new(Vec::new())), || {}, false)
}
