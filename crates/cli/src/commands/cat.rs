//! `weft cat`: one connection by a machine, from standard input and to standard output.

use super::run::{Course, Link, Machine, Platform};
use crate::arguments::parse_connection_from;
use crate::ending;
use anyhow::Result;
use clap::Args;
use std::fs::File;
use std::io::{stdin, stdout};
use std::os::fd::AsFd;
use std::time::Duration;
use weftwire_core::Endpoints;
use weftwire_linux::application::{Joints, Pipe};
use weftwire_sim::spec::parse_duration;

/// Open one connection by a machine.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    machine: Machine,
    /// Both ends. Without a port of this end a free one is drawn
    #[arg(value_name = "SRC[:PORT]-DST:PORT[/udp]", value_parser = parse_connection_from)]
    connection: Endpoints,
    /// Give up if the connection is not open after this time, e.g. 5s [default: when the machine does]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    connect_timeout: Option<Duration>,
    #[command(flatten)]
    talk: Talk,
    #[command(flatten)]
    link: Link,
    #[command(flatten)]
    platform: Platform,
}

/// What a command says that works on standard input and output.
#[derive(Args)]
#[group(skip)]
pub struct Talk {
    /// Say on standard error what the machine notices, and at the end what the ports did
    #[arg(long, short)]
    verbose: bool,
}

impl Talk {
    /// How its run goes.
    pub fn course(&self, opens_connections: bool) -> Course {
        Course { silent: !self.verbose, opens_connections, ..Course::default() }
    }
}

/// A name for a run of which there may be several at once.
pub fn run_name(machine: &str) -> String {
    format!("{machine}-{}", std::process::id())
}

/// Standard input and standard output.
pub fn standard_streams() -> Result<(File, File)> {
    Ok((stdin().as_fd().try_clone_to_owned()?.into(), stdout().as_fd().try_clone_to_owned()?.into()))
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let application = || {
        let (input, output) = standard_streams()?;
        let endpoints = arguments.link.complete(&arguments.platform, arguments.connection)?;
        Ok(Joints::new(Pipe::connect(input, output, endpoints, arguments.connect_timeout))?)
    };
    let joints = arguments.machine.run(&arguments.platform, run_name, application, arguments.talk.course(true))?;
    match joints.into_side().outcome() {
        Some((endpoints, outcome, totals)) => ending::of(endpoints.as_ref(), outcome, &totals),
        None => Ok(()),
    }
}
