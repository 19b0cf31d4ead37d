//! `weft listen`: connections that others open, to standard output and from standard input.

use super::cat::{Talk, run_name, standard_streams};
use super::run::{Machine, Platform};
use crate::arguments::parse_listen;
use crate::console::tell_line;
use crate::ending;
use anyhow::Result;
use clap::Args;
use weftwire_core::Listen;
use weftwire_linux::application::{Joints, Pipe};

/// Take connections by a machine.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    machine: Machine,
    /// This end; 10.0.0.1 is all of its ports, :80 this port of all addresses
    #[arg(value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    local: Listen,
    /// Take one connection after the other until Ctrl-C, and say on standard error how each has ended. Standard input goes to the one
    /// at hand; those after its end are closed for sending at once
    #[arg(long, short = 'k')]
    many: bool,
    #[command(flatten)]
    talk: Talk,
    #[command(flatten)]
    platform: Platform,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let application = || {
        let (input, output) = standard_streams()?;
        let tell = |ends: Option<&_>, outcome: &_, totals: &_| {
            tell_line(format_args!("{}", ending::line(ends, outcome, totals)));
        };
        Ok(Joints::new(Pipe::listen(input, output, arguments.local, arguments.many.then_some(tell)))?)
    };
    let joints = arguments.machine.run(&arguments.platform, run_name, application, arguments.talk.course(false))?;
    match joints.into_side().outcome() {
        Some((endpoints, outcome, totals)) if !arguments.many => ending::of(endpoints.as_ref(), outcome, &totals),
        _ => Ok(()),
    }
}
