//! `weft subs run --switch`: a switch whose rules come from a controller.

use crate::commands;
use crate::commands::subs::run;
use crate::console::tell;
use crate::load::catalog;
use anyhow::Result;
use std::sync::{Arc, mpsc};
use weftwire_catalog::{FieldsInOrder, texts};
use weftwire_control::follow::{Follower, Notice};
use weftwire_control::state::formats_digest;
use weftwire_control::switch::FollowingSwitch;
use weftwire_control::table::{FieldOrder, FollowedTable};
use weftwire_control::{Address, ClientError};
use weftwire_core::Ports;
use weftwire_linux::privileges::{drop_privileges, is_root};
use weftwire_linux::reach::Reach;

/// Runs a switch that follows.
pub fn execute(arguments: &run::Arguments, switch: &str) -> Result<()> {
    let loaded = catalog().formats(&arguments.formats)?;
    let order = match FieldsInOrder::parse(&arguments.compiling.order) {
        FieldsInOrder::Auto => FieldOrder::Chosen,
        FieldsInOrder::File => FieldOrder::Given(Vec::new()),
        FieldsInOrder::Named(names) => {
            FieldOrder::Given(names.iter().map(|name| loaded.field(name)).collect::<Result<_, _>>()?)
        }
    };
    let (address, tls) = arguments.controller.open()?;
    let keeps_privileges = arguments.platform.keeps_privileges();
    // Without privileges it could not open the controller's socket again.
    let reach = match &address {
        Address::Unix(path) if is_root() && !keeps_privileges => Reach::start_helper(&["reach"], path)?,
        _ => Reach::default(),
    };
    let follower = Follower {
        address,
        tls,
        reach,
        switch: switch.to_owned(),
        formats: formats_digest(&texts(&arguments.formats)?),
    };
    let mut table = FollowedTable::new(Arc::new(loaded.formats), order, arguments.platform.port_numbers());
    table.set_budget(arguments.compiling.budget());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut connected = true;
    match runtime.block_on(follower.fetch(&mut table)) {
        Ok(()) => compare_ports(&table, arguments),
        Err(
            error @ (ClientError::Refused { .. }
            | ClientError::Insecure { .. }
            | ClientError::Table(_)
            | ClientError::Ended),
        ) => {
            return Err(error.into());
        }
        Err(error) => {
            connected = false;
            tell!("{error}; goes on trying, and forwards nothing until then");
        }
    }
    // Its thread is made before this one takes a processor and a priority, which are not for it.
    let (go, ready) = mpsc::channel();
    let shared = table.shared().clone();
    std::thread::spawn(move || {
        // Nobody says so if the start fails.
        if ready.recv().is_err() {
            return;
        }
        // Capabilities are each thread's own.
        if !keeps_privileges && let Err(error) = drop_privileges(None) {
            tell!("{error}");
            std::process::exit(1);
        }
        let mut told = None;
        runtime.block_on(follower.follow(&mut table, |notice, table| {
            match notice {
                Notice::UpToDate => {
                    connected = true;
                    tell!("has {} rules, up to change {}", table.rule_count(), table.revision());
                }
                Notice::Changed => {}
                Notice::Lost(error) if connected => {
                    connected = false;
                    tell!("{error}; goes on with {} rules and tries again", table.rule_count());
                }
                Notice::Lost(_) => {}
            }
            let refusal = table.refusal();
            if refusal != told {
                tell!("{}", refusal.as_deref().unwrap_or("holds no rules back any more"));
                told = refusal;
            }
        }));
    });
    let start = |ports: &Ports, _, _| Ok(Box::new(FollowingSwitch::new(shared, ports.clone())) as Box<_>);
    let ready = || {
        // The thread waits for nothing else; it is there.
        let _ = go.send(());
    };
    let course = commands::run::Course::default();
    commands::run::run(&arguments.platform, switch, start, || Ok(()), ready, course)
}

/// Says where the network and the ports here differ.
fn compare_ports(table: &FollowedTable, arguments: &run::Arguments) {
    let here: Vec<u32> = arguments.platform.port_numbers().map(|port| port.0.into()).collect();
    for port in &table.start().ports {
        if !here.contains(&port.number) {
            tell!(
                "warning: no --port {}: nothing reaches `{}` from here, which is at this port in the network",
                port.number,
                port.neighbour
            );
        }
    }
    for number in here {
        if !table.start().ports.iter().any(|port| port.number == number) {
            tell!("warning: the network has no port {number} here; it gets nothing");
        }
    }
}
