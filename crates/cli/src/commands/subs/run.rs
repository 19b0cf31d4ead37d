//! `weft subs run`: rules on real ports.

use super::Compiling;
#[cfg(feature = "services")]
use super::services::{ClientEnd, follow};
use crate::commands::run;
use crate::load::catalog;
use crate::reload::{Renewal, reload_on};
use crate::states;
#[cfg(feature = "services")]
use anyhow::ensure;
use anyhow::{Context, Result, bail};
#[cfg(feature = "services")]
use clap::ArgGroup;
use clap::Args;
use std::cell::OnceCell;
use std::path::PathBuf;
use weftwire_catalog::{Loaded, texts};
use weftwire_core::{Change, Function, Ports};
use weftwire_linux::commands::commands;
use weftwire_linux::signals::HangUp;
use weftwire_switch::SubscriptionSwitch;
use weftwire_switch::application::Registry;
use weftwire_switch::state::RulesName;

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
            ensure!(
                !arguments.platform.is_recorded(),
                "--record goes with --rules: what a controller changes meanwhile is no input of the run, so that the recording \
                 could not be repeated"
            );
            return follow::execute(arguments, switch);
        }
        ensure!(
            !arguments.controller.is_given(),
            "--controller and its options go with --switch; --rules are those of files"
        );
    }
    let (rules, formats) = (arguments.rules.clone(), arguments.formats.clone());
    let compiling = arguments.compiling.clone();
    let load = move || -> Result<(Loaded, String)> {
        let switch = catalog().switch(&rules, &formats, &compiling.begin())?;
        Ok((switch, texts(&rules)?))
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
    let ready = || {
        let ports = known_ports.get().cloned().unwrap_or_default();
        let renewed = move || {
            let (rules, text) = load()?;
            let (switch, count) = made(&rules, &ports)?;
            let done = format!("the rules are read again: {count}");
            Ok(Renewal { change: Change::Rules { text }, prepared: Box::new(switch), done })
        };
        reload_on(hangup, "the rules stay as they are", renewed, sender);
    };
    let resumes = state.as_ref().and_then(|state| Some((state.time, state.clocks?)));
    let course = run::Course { commands: Some(queue), resumes, ..run::Course::default() };
    run::run(&arguments.platform, switch.name(), start, || Ok(()), ready, course)
}

/// A switch with these rules, and their number.
pub(super) fn made(rules: &Loaded, ports: &Ports) -> Result<(SubscriptionSwitch, usize)> {
    let Loaded::Subscriptions { compiler, digest, .. } = rules else { bail!("this is no subscription switch") };
    let mut switch = SubscriptionSwitch::with_actions(compiler, ports.clone(), Registry::built_in())?;
    switch.name_rules(RulesName { revision: 0, digest: bytes(digest) });
    Ok((switch, compiler.rule_count()))
}

/// A digest in hexadecimal as bytes.
fn bytes(digest: &str) -> [u8; 32] {
    std::array::from_fn(|at| {
        digest.get(2 * at..2 * at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0)
    })
}
