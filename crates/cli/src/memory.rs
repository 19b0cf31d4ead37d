//! Whether there is memory enough for a network that is to be simulated, or to be made.

use crate::console::tell;
use anyhow::{Result, bail};
use weftwire_lab::memory::Memory as RealMemory;
use weftwire_linux::memory::{available, available_to_all};
use weftwire_network::Network;
use weftwire_sim::network::memory::Memory;

/// Refuses a network whose simulation, so many at once, takes more memory than there is for certain; warns of one that may.
pub fn check_simulation(network: &Network, at_once: usize) -> Result<()> {
    let Some(there) = available() else { return Ok(()) };
    let (memory, at_once) = (Memory::of(network), at_once as u64);
    let [least, most] = [memory.least(), memory.most()].map(|bytes| bytes.saturating_mul(at_once));
    let runs = if at_once > 1 {
        format!("{at_once} runs of {} at once need", network.name)
    } else {
        format!("{} needs", network.name)
    };
    if least > there {
        let jobs = if at_once > 1 && memory.least() <= there { ", or give fewer --jobs" } else { "" };
        bail!(
            "{runs} at least {} of memory, and {} are there: {} for {} flows, {} for {} nodes, {} links and their routes each; \
             {}{jobs}",
            words(least),
            words(there),
            words(memory.flows),
            memory.flow_count,
            words(memory.nodes),
            network.nodes.len(),
            network.links.len(),
            reduce(memory.flows > memory.nodes, "make it smaller, or send to fewer of its nodes"),
        );
    }
    if most > there {
        tell!(
            "warning: {runs} up to {} of memory if all queues ({}) and connections ({}) fill up, and {} are there",
            words(most),
            words(memory.queues),
            words(memory.buffers),
            words(there)
        );
    }
    Ok(())
}

/// Refuses a real network that takes more memory than there is for certain; warns of one that may. `run`: its traffic
/// runs too. `tables`: the bytes of its functions' flow tables, if they fill up.
pub fn check_real(network: &Network, run: bool, tables: u64) -> Result<()> {
    let memory = RealMemory::of(network, run);
    let limits = [(memory.of_process(), available()), (memory.least(), available_to_all())];
    let over =
        limits.into_iter().find_map(|(least, there)| there.filter(|there| least > *there).map(|there| (least, there)));
    let fixed = memory.kernel.saturating_add(memory.functions);
    if let Some((least, there)) = over {
        bail!(
            "{} needs at least {} of memory, and {} are there: {} for {} flows, {} for {} nodes, {} links and their routes; {}",
            network.name,
            words(least),
            words(there),
            words(memory.flows),
            memory.flow_count,
            words(fixed),
            network.nodes.len(),
            network.links.len(),
            reduce(memory.flows > fixed, "make it smaller"),
        );
    }
    let most = memory.most().saturating_add(tables);
    if let Some(there) = available_to_all().filter(|there| most > *there) {
        tell!(
            "warning: {} needs up to {} of memory if all queues ({}), connections ({}) and flow tables ({}) fill up, and {} are there",
            network.name,
            words(most),
            words(memory.queues),
            words(memory.buffers),
            words(tables),
            words(there)
        );
    }
    Ok(())
}

/// What a user can do about it: about flows, or else.
fn reduce(flows: bool, otherwise: &'static str) -> &'static str {
    match flows {
        true => "open fewer flows (a longer gap, a count, a shorter duration)",
        false => otherwise,
    }
}

fn words(bytes: u64) -> String {
    let mut value = bytes as f64 / f64::from(1 << 20);
    for unit in ["MiB", "GiB", "TiB"] {
        if value < 1_000.0 {
            return format!("{value:.1} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} PiB")
}
