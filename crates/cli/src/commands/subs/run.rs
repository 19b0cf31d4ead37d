//! `weft subs run`: rules on real ports.

use super::Compiling;
use super::reload::{made, reload_on};
#[cfg(feature = "services")]
use super::services::{ClientEnd, follow};
use crate::commands::run;
use crate::load::catalog;
use crate::states;
#[cfg(feature = "services")]
use anyhow::ensure;
use anyhow::{Context, Result};
#[cfg(feature = "services")]
use clap::ArgGroup;
use clap::Args;
use std::cell::OnceCell;
use std::path::PathBuf;
use weftwire_catalog::file::{self, Kind};
use weftwire_core::{Function, Ports};
use weftwire_linux::commands::commands;
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
    /// Begin with the state that `weft subs snapshot` has written of a switch with these rules: its windows, memories and counts go on
    #[arg(long, value_name = "FILE", requires = "rules", conflicts_with = "record")]
    from: Option<PathBuf>,
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
    let load = move || {
        let switch = catalog().switch(&rules, &formats, &compiling.begin())?;
        let texts = rules.iter().map(|path| file::text(path, Kind::Rules)).collect::<Result<Vec<_>, _>>()?;
        Ok((switch, texts.concat()))
    };
    let (switch, _) = load()?;
    let hangup = HangUp::hold()?;
    let (sender, queue) = commands()?;
    let known_ports = OnceCell::new();
    let state = arguments.from.as_deref().map(states::read_switch).transpose()?;
    let start = |ports: &Ports, _, _| {
        let (mut function, _) = made(&switch, ports)?;
        if let (Some(state), Some(path)) = (&state, &arguments.from) {
            let name = function.rules_name();
            function.restore(state, name).with_context(|| format!("cannot begin with {}", path.display()))?;
        }
        // Ports are opened once.
        let _ = known_ports.set(ports.clone());
        Ok(Box::new(function) as Box<dyn Function>)
    };
    let ready = || reload_on(hangup, known_ports.get().cloned().unwrap_or_default(), load, sender);
    let resumes = state.as_ref().and_then(|state| Some((state.time, state.clocks?)));
    let course = run::Course { commands: Some(queue), resumes, ..run::Course::default() };
    run::run(&arguments.platform, switch.name(), start, || Ok(()), ready, course)
}
