//! How much memory a simulation takes, estimated from its network before it begins.

use super::frames;
use std::collections::BTreeSet;
use weftwire_network::Network;
use weftwire_network::memory::{self, FRAME};
use weftwire_network::model::{Traffic, TrafficKind, Transport};

/// Bytes of a flow with its row of the results, measured.
const FLOW: u64 = 900;
/// Bytes of a node, and of a link with both directions, without routes.
const NODE: u64 = 1_024;
const LINK: u64 = 4_096;
/// The program itself.
const PROGRAM: u64 = 16 << 20;

/// The memory that a simulation takes, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// How many flows there will be.
    pub flow_count: u64,
    /// Of all flows: each is kept to the end for its row of the results.
    pub flows: u64,
    /// Of nodes, links and routes.
    pub nodes: u64,
    /// Of connections, if all buffers of those that last fill up.
    pub buffers: u64,
    /// Of queues, if all of them fill up.
    pub queues: u64,
}

impl Memory {
    /// What a network's simulation takes.
    pub fn of(network: &Network) -> Memory {
        let flow_count = memory::flows(network);
        let (nodes, links) = (network.nodes.len() as u64, network.links.len() as u64);
        // Each node that packets go to has a table with an entry for each node.
        let ends = |traffic: &Traffic| {
            [traffic.from].into_iter().chain(traffic.receivers().iter().copied()).collect::<Vec<_>>()
        };
        let towards: BTreeSet<_> = network.traffic.iter().flat_map(ends).collect();
        let routes = (towards.len() as u64).saturating_mul(nodes).saturating_mul(4);
        let lasting = network.traffic.iter().filter(|traffic| is_lasting(traffic)).count();
        let waiting = memory::waiting(network).min(frames::LIMIT as u64);
        Memory {
            flow_count,
            flows: flow_count.saturating_mul(FLOW),
            nodes: (nodes * NODE + links * LINK).saturating_add(routes),
            // What is to be sent at one end, and all of that out of order at the other.
            buffers: (1..=lasting).map(|open| 2 * buffer_size(open)).sum(),
            queues: waiting * FRAME,
        }
    }

    /// What it takes for certain.
    pub fn least(&self) -> u64 {
        PROGRAM.saturating_add(self.flows).saturating_add(self.nodes)
    }

    /// What it takes if all buffers and queues fill up.
    pub fn most(&self) -> u64 {
        self.least().saturating_add(self.buffers).saturating_add(self.queues)
    }
}

/// How many bytes the application of a host hands to a connection ahead of what is acknowledged, when so many are open: large windows
/// for few, all of 100,000 flows in memory.
pub fn buffer_size(open: usize) -> u64 {
    match open {
        0..32 => 4 << 20,
        32..128 => 1 << 20,
        128..2_048 => 256 << 10,
        2_048..8_192 => 64 << 10,
        _ => 8 << 10,
    }
}

/// Whether a traffic is one connection that lasts.
fn is_lasting(traffic: &Traffic) -> bool {
    traffic.transport == Transport::Tcp
        && matches!(traffic.kind, TrafficKind::Bulk { .. } | TrafficKind::RequestResponse { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_text::LoadError;

    fn memory(text: &str) -> Memory {
        let reading = weftwire_network::read("test.toml", text, &[], &|name| Err(LoadError::Unknown(name.to_owned())));
        Memory::of(&reading.network.expect("a network"))
    }

    #[test]
    fn flows_nodes_buffers_and_queues_count() {
        let network = |more: &str, traffic: &str| {
            format!(
                "duration = \"100s\"\n[nodes.a]\n[nodes.b]\n[[links]]\nbetween = [\"a\", \"b\"]\nrate = \"1Gbit/s\"\n{more}\n\
                 [[traffic]]\nfrom = \"a\"\nto = \"b\"\n{traffic}"
            )
        };
        let flows = |more: &str| memory(&network("", &format!("kind = \"flows\"\nsize = \"1kB\"\n{more}"))).flow_count;
        assert_eq!(flows("gap = \"1ms\""), 100_000);
        assert_eq!(flows("gap = \"1ms\"\ncount = 7"), 7);
        assert_eq!(flows("gap = \"1ms\"\nstart = \"90s\""), 10_000);
        let bulk = |more: &str| memory(&network(more, "kind = \"bulk\"\nbytes = \"1MB\""));
        let plain = bulk("");
        assert_eq!((plain.flow_count, plain.buffers, plain.queues), (1, 8 << 20, 200 * FRAME));
        assert_eq!(bulk("queue = \"1000 packets\"").queues, 2_000 * FRAME);
        assert_eq!(bulk("queue = \"1600kB\"").queues, 2_000 * FRAME);
        // No more frames are under way than the simulator keeps.
        assert_eq!(bulk("queue = \"1000000000 packets\"").queues, frames::LIMIT as u64 * FRAME);
        assert!(plain.least() < plain.most() && plain.least() < 32 << 20, "{plain:?}");
    }
}
