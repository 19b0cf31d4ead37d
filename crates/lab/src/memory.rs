//! How much memory a real network takes, estimated before it is made. What the kernel holds was measured with Linux 6
//! on networks of 50 to 150 nodes; the constants are below that, as a network is only refused for what it takes for certain.

use super::build::has_kernel_addresses;
use super::traffic::FLOWS;
use weftwire_linux::hub_socket::RING;
use weftwire_network::Network;
use weftwire_network::memory::{self, FRAME};
use weftwire_network::model::NodeKind;
use weftwire_network::results::FlowResult;

/// Bytes of a namespace, and of a link: two pairs of interfaces with all that the kernel keeps for each.
const NAMESPACE: u64 = 128 << 10;
const LINK: u64 = 96 << 10;
/// Bytes of a kernel's way to a node: a route of IPv4 and one of IPv6.
const ROUTES: u64 = 1_024;
/// Bytes of the process that makes the network, with the ring through which the relay gets its frames; and of each
/// function's process, without its flow table.
const PROGRAM: u64 = (2 << 20) + RING;
const FUNCTION: u64 = 2 << 20;
/// Bytes of a flow's row of the results, with its names.
const ROW: u64 = size_of::<FlowResult>() as u64 + 100;
/// Bytes of a flow's two threads while it lasts, with what they read into.
const THREADS: u64 = 2 * (64 << 10);

/// The memory that a real network takes, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// How many flows a run will open.
    pub flow_count: u64,
    /// Of all flows: each is kept to the end for its row of the results.
    pub flows: u64,
    /// Of the kernel: namespaces, links and routes.
    pub kernel: u64,
    /// Of the functions' processes, without their flow tables.
    pub functions: u64,
    /// Of queues in the relay and of frames that wait to be recorded, if all of them fill up.
    pub queues: u64,
    /// Of the flows that can last at once, if so many do.
    pub buffers: u64,
}

impl Memory {
    /// What a network takes. `run`: its traffic runs too.
    pub fn of(network: &Network, run: bool) -> Memory {
        let (nodes, links) = (network.nodes.len() as u64, network.links.len() as u64);
        let kernels = network.nodes.iter().filter(|node| has_kernel_addresses(&node.kind)).count() as u64;
        let addressed = network.nodes.iter().filter(|node| node.is_addressed()).count() as u64;
        // Whoever is joined to others has a way to all of them.
        let routes = if links == 0 { 0 } else { kernels.saturating_mul(addressed).saturating_mul(ROUTES) };
        let functions = network.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Function(_))).count() as u64;
        let flow_count = if run { memory::flows(network) } else { 0 };
        let recorded = if network.captures.is_empty() || !run { 0 } else { super::captures::WAITING as u64 };
        Memory {
            flow_count,
            flows: flow_count.saturating_mul(ROW),
            kernel: ((nodes + 1) * NAMESPACE + links * LINK).saturating_add(routes),
            functions: functions * FUNCTION,
            queues: memory::waiting(network).saturating_add(recorded).saturating_mul(FRAME),
            buffers: flow_count.min(FLOWS as u64) * THREADS,
        }
    }

    /// What the process that makes the network takes for certain: its limits are its own.
    pub fn of_process(&self) -> u64 {
        PROGRAM.saturating_add(self.flows)
    }

    /// What it all takes for certain.
    pub fn least(&self) -> u64 {
        self.of_process().saturating_add(self.kernel).saturating_add(self.functions)
    }

    /// What it takes if all queues and all buffers fill up.
    pub fn most(&self) -> u64 {
        self.least().saturating_add(self.queues).saturating_add(self.buffers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(text: &str, run: bool) -> Memory {
        let reading = weftwire_network::read("test.toml", text, &[], &|_| {
            Err(std::io::Error::from(std::io::ErrorKind::NotFound).into())
        });
        Memory::of(&reading.network.expect("a network"), run)
    }

    #[test]
    fn namespaces_links_routes_functions_and_flows_count() {
        let line = |nodes: usize| {
            let kinds = (0..nodes).map(|number| format!("[nodes.n{number}]\nkind = \"router\"\n"));
            let ends = (1..nodes).map(|number| format!("[[links]]\nbetween = [\"n{}\", \"n{number}\"]\n", number - 1));
            format!("duration = \"100s\"\n{}{}", kinds.collect::<String>(), ends.collect::<String>())
        };
        let [two, fifty, more] = [2, 50, 150].map(|nodes| memory(&line(nodes), true));
        assert_eq!(two.kernel, 3 * NAMESPACE + LINK + 4 * ROUTES);
        // What was measured: 17.6 MB and 80 MB.
        assert!((8_000_000..17_600_000).contains(&fifty.kernel), "{fifty:?}");
        assert!((40_000_000..80_000_000).contains(&more.kernel), "{more:?}");
        assert_eq!((more.flows, more.functions, more.buffers), (0, 0, 0));

        let flows = "[[traffic]]\nkind = \"flows\"\nfrom = \"n0\"\nto = \"n1\"\nsize = \"1kB\"\ngap = \"1ms\"\n";
        let text = line(2).replace("kind = \"router\"\n", "") + flows;
        let (still, run) = (memory(&text, false), memory(&text, true));
        assert_eq!((still.flow_count, still.flows, run.flow_count), (0, 0, 100_000));
        assert!(run.flows > 100_000 * 200 && run.least() == still.least() + run.flows, "{run:?}");
        assert_eq!(run.buffers, FLOWS as u64 * THREADS);
    }
}
