//! `weft proxy`: the kernel's TCP on one side, a machine on the other.

use super::cat::{Talk, run_name};
use super::run::{Link, Machine, Platform};
use crate::arguments::{parse_connection_from, parse_listen, parse_socket_address};
use crate::console::{tell, tell_text};
use anyhow::{Context, Result};
use clap::Args;
use std::net::{SocketAddr, TcpListener};
use weftwire_core::{Endpoints, Listen};
use weftwire_linux::application::{Joints, Proxy, ProxySide};

/// Join connections of the kernel's TCP with connections of a machine.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    machine: Machine,
    /// Where the kernel listens
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        value_parser = parse_socket_address,
        requires = "connect",
        conflicts_with = "listen",
        required_unless_present = "listen"
    )]
    kernel_listen: Option<SocketAddr>,
    /// What the machine connects for each of the kernel's clients. Without a port of this end a free one is drawn for each
    #[arg(
        long,
        value_name = "SRC[:PORT]-DST:PORT",
        value_parser = parse_connection_from,
        requires = "kernel_listen"
    )]
    connect: Option<Endpoints>,
    /// Where the machine listens; 10.0.0.1 is all of its ports, :80 this port of all addresses
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen, requires = "kernel_connect")]
    listen: Option<Listen>,
    /// Where the kernel connects to for each of the machine's clients
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_socket_address, requires = "listen")]
    kernel_connect: Option<SocketAddr>,
    /// Connections at once; more are reset, and counted
    #[arg(long, value_name = "N", default_value_t = 256)]
    most: usize,
    #[command(flatten)]
    talk: Talk,
    #[command(flatten)]
    link: Link,
    #[command(flatten)]
    platform: Platform,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let application = || {
        let (side, said) = side(arguments)?;
        let joints = Joints::new(Proxy::new(side, arguments.most)?)?;
        tell!("{said}; Ctrl-C ends it");
        Ok(joints)
    };
    let course = arguments.talk.course(arguments.connect.is_some());
    let joints = arguments.machine.run(&arguments.platform, run_name, application, course)?;
    tell_text(format_args!("{}", joints.into_side().summary()));
    Ok(())
}

/// Who connects to whom, and the same in words.
fn side(arguments: &Arguments) -> Result<(ProxySide, String)> {
    if let (Some(local), Some(connection)) = (arguments.kernel_listen, arguments.connect) {
        let endpoints = arguments.link.complete(&arguments.platform, connection)?;
        let listener = TcpListener::bind(local).with_context(|| format!("cannot listen on {local}"))?;
        let (local, to) = (listener.local_addr()?, SocketAddr::new(connection.remote_address, connection.remote_port));
        return Ok((
            ProxySide::Kernel(listener, endpoints),
            format!("the kernel listens on {local}, the machine connects to {to}"),
        ));
    }
    let (listen, to) = arguments.listen.zip(arguments.kernel_connect).context("clap lets none of both pass")?;
    let said = format!("the machine listens on {}, the kernel connects to {to}", printed(&listen));
    Ok((ProxySide::Function(listen, to), said))
}

/// What is listened at, as it is given.
fn printed(listen: &Listen) -> String {
    match (listen.address, listen.port) {
        (Some(address), Some(port)) => SocketAddr::new(address, port).to_string(),
        (Some(address), None) => format!("all ports of {address}"),
        (None, port) => format!(":{}", port.unwrap_or_default()),
    }
}
