//! `weft subs run`: rules on real ports.

use super::Compiling;
use super::reload::Reloading;
#[cfg(feature = "services")]
use super::services::{ClientEnd, follow};
use crate::commands::run;
use crate::load::catalog;
use anyhow::Result;
#[cfg(feature = "services")]
use anyhow::ensure;
#[cfg(feature = "services")]
use clap::ArgGroup;
use clap::Args;
use std::path::PathBuf;
use weftwire_core::Ports;
use weftwire_linux::application::Application;
use weftwire_linux::signals::HangUp;

/// Forward the packets of network interfaces, TUN and TAP devices by rules: each port gets the messages that its rules
/// match. The rules are those of files, or those that a controller has for a switch of its network.
#[derive(Args)]
#[cfg_attr(feature = "services", command(group(ArgGroup::new("source").required(true).args(["rules", "switch"]))))]
pub struct Arguments {
    /// The rules; of several files they are taken together. SIGHUP has them read again
    #[arg(long, value_name = "FILE")]
    #[cfg_attr(not(feature = "services"), arg(required = true))]
    rules: Vec<PathBuf>,
    #[cfg(feature = "services")]
    /// Be this switch of a controller's network: take its rules, and follow their changes
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
    #[cfg(feature = "services")]
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
    #[cfg(feature = "services")]
    {
        if let Some(switch) = &arguments.switch {
            return follow::execute(arguments, switch);
        }
        ensure!(
            !arguments.controller.is_given(),
            "--controller and its options go with --switch; --rules are those of files"
        );
    }
    let (rules, formats) = (arguments.rules.clone(), arguments.formats.clone());
    let compiling = arguments.compiling.clone();
    let load = move || Ok(catalog().switch(&rules, &formats, &compiling.begin())?);
    let switch = load()?;
    let hangup = HangUp::hold()?;
    let start = |ports: &Ports, _, _| Reloading::start(&switch, ports, hangup, load);
    run::run(&arguments.platform, switch.name(), start, || Ok(Application::new(Vec::new())), || {}, false)
}
