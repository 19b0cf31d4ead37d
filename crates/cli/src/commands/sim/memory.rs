//! Whether there is memory enough for what is to be simulated.

use crate::console::tell;
use anyhow::{Result, bail};
use weftwire_linux::memory::available;
use weftwire_network::Network;
use weftwire_sim::network::memory::Memory;

/// Refuses a network whose simulation, so many at once, takes more memory than there is for certain; warns of one that may.
pub fn check(network: &Network, at_once: usize) -> Result<()> {
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
        let reduce = match memory.flows > memory.nodes {
            true => "open fewer flows (a longer gap, a count, a shorter duration)",
            false => "make it smaller, or send to fewer of its nodes",
        };
        bail!(
            "{runs} at least {} of memory, and {} are there: {} for {} flows, {} for {} nodes, {} links and their routes each; \
             {reduce}{jobs}",
            words(least),
            words(there),
            words(memory.flows),
            memory.flow_count,
            words(memory.nodes),
            network.nodes.len(),
            network.links.len(),
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
