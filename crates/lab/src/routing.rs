//! Routes of kernels: several ways of equal cost as multipath routes, spread by a hash of the flow; and what changes when
//! links go down.

use crate::build::{has_kernel_addresses, namespace_name, set};
use std::fmt::Write as _;
use std::net::Ipv6Addr;
use std::path::Path;
use weftwire_linux::LinuxError;
use weftwire_linux::ip::Batch;
use weftwire_network::Network;
use weftwire_network::model::{Multipath, NodeIndex};
use weftwire_network::routing::{Hop, Routes, reroutes};

/// Where a kernel has the key of its hash, since Linux 6.11.
const HASH_SEED: &str = "ipv4/fib_multipath_hash_seed";

/// Refuses what no kernel can do.
///
/// # Errors
/// The network asks for it.
pub(crate) fn refuse_spraying(network: &Network) -> Result<(), LinuxError> {
    match network.routing.multipath {
        Multipath::Packet => Err(LinuxError::Network(
            "multipath = \"packet\" can't be on Linux: its kernel spreads flows over several ways, not packets; add --set \
             routing.multipath=flow, or use `weft sim`"
                .to_owned(),
        )),
        Multipath::Flow | Multipath::Single => Ok(()),
    }
}

/// Whether a node has several ways of equal cost to anywhere.
pub(crate) fn has_choice(network: &Network, routes: &mut Routes, node: NodeIndex) -> bool {
    routes.neighbours(node).len() > 1 && network.nodes().any(|(other, _)| routes.all(node, other).len() > 1)
}

/// Lets the kernel of the namespace that the thread is in hash addresses, protocol and ports, under a key of its own.
pub(crate) fn spread(seed: u32) -> Result<(), LinuxError> {
    set("ipv4/fib_multipath_hash_policy", "1")?;
    set("ipv6/fib_multipath_hash_policy", "1")?;
    if has_hash_seed() { set(HASH_SEED, &seed.max(1).to_string()) } else { Ok(()) }
}

fn has_hash_seed() -> bool {
    Path::new("/proc/sys/net").join(HASH_SEED).exists()
}

/// What a run says about routing that is not as described.
pub(crate) fn warning(network: &Network) -> Option<String> {
    let mut routes = Routes::new(network);
    let mut kernels = network.nodes().filter(|(_, node)| has_kernel_addresses(&node.kind));
    let spreads = |(index, _)| has_choice(network, &mut routes, index);
    (!has_hash_seed() && kernels.any(spreads)).then(|| {
        "this kernel (older than Linux 6.11) hashes flows alike in all routers: of several tiers of equal ways some are \
         not used"
            .to_owned()
    })
}

/// A link-local address by which a port's kernel knows a neighbour's port. IPv6 takes no second way without one.
pub(crate) fn link_local(network: &Network, hop: &Hop) -> Ipv6Addr {
    let [a, b, c, d, e, f] = network.mac(hop.to).octets().map(u16::from);
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, a << 8 | b, c << 8 | d, e << 8 | f)
}

/// The routes of a node, as they stand behind `ip route add` or `replace`.
pub(crate) fn route_lines(network: &Network, routes: &mut Routes, node: NodeIndex) -> Vec<String> {
    let (own4, own6) = (network.node(node).ipv4, network.node(node).ipv6);
    let mut lines = Vec::new();
    for (other, to) in network.nodes().filter(|(_, to)| to.is_addressed()) {
        match routes.all(node, other).as_slice() {
            [] => {}
            [(hop, _)] if hop.to.node == other => {
                lines.push(format!("{}/32 dev port{} src {own4}", to.ipv4, hop.port.0));
                lines.push(format!("{}/128 dev port{} src {own6}", to.ipv6, hop.port.0));
            }
            [(hop, _)] => {
                let (next, port) = (network.node(hop.to.node), hop.port.0);
                lines.push(format!("{}/32 via {} dev port{port} onlink src {own4}", to.ipv4, next.ipv4));
                lines.push(format!("{}/128 via {} dev port{port} src {own6}", to.ipv6, link_local(network, hop)));
            }
            several => {
                let (mut ipv4, mut ipv6) =
                    (format!("{}/32 src {own4}", to.ipv4), format!("{}/128 src {own6}", to.ipv6));
                for (hop, weight) in several {
                    let (next, port) = (network.node(hop.to.node).ipv4, hop.port.0);
                    let local = link_local(network, hop);
                    // Writing to a string can't fail.
                    let _ = write!(ipv4, " nexthop via {next} dev port{port} weight {weight} onlink");
                    let _ = write!(ipv6, " nexthop via {local} dev port{port} weight {weight}");
                }
                lines.extend([ipv4, ipv6]);
            }
        }
    }
    lines
}

/// Routes that change at a time of a run.
pub(crate) struct Turn {
    /// Nanoseconds after the start.
    pub(crate) at_ns: i64,
    /// By namespace, what to do there.
    batches: Vec<(String, Batch)>,
}

impl Turn {
    /// Changes the routes.
    pub(crate) fn perform(self) -> Result<(), LinuxError> {
        self.batches.into_iter().try_for_each(|(namespace, batch)| batch.run(Some(&namespace)))
    }
}

/// All changes of routes during a run, made ready, by time.
pub(crate) fn turns(network: &Network) -> Vec<Turn> {
    let reroutes = reroutes(network);
    if reroutes.is_empty() {
        return Vec::new();
    }
    let mut routes = Routes::new(network);
    let nodes: Vec<NodeIndex> =
        network.nodes().filter(|(_, node)| has_kernel_addresses(&node.kind)).map(|(index, _)| index).collect();
    let lines_of = |routes: &mut Routes| -> Vec<Vec<String>> {
        nodes.iter().map(|node| route_lines(network, routes, *node)).collect()
    };
    let mut before = lines_of(&mut routes);
    let mut turns = Vec::new();
    for reroute in reroutes {
        routes.reroute(&reroute.links);
        let after = lines_of(&mut routes);
        let mut batches = Vec::new();
        for (node, (before, after)) in nodes.iter().zip(before.iter().zip(&after)) {
            let mut batch = Batch::default();
            // Whoever has a way at the start always has one, so lines stand for the same destinations.
            let changed = before.iter().zip(after).filter(|(before, after)| before != after);
            changed.for_each(|(_, line)| batch.line(format_args!("route replace {line}")));
            if !batch.is_empty() {
                batches.push((namespace_name(&network.name, &network.node(*node).name), batch));
            }
        }
        turns.push(Turn { at_ns: reroute.at, batches });
        before = after;
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(more: &str) -> Network {
        let text = format!(
            "name = \"n\"\nduration = \"9s\"\n[nodes.a]\n[nodes.b]\n[nodes.r]\nkind = \"router\"\n[nodes.q]\nkind = \"router\"\n\
             [[links]]\nbetween = [\"a\", \"r\"]\n[[links]]\nbetween = [\"r\", \"q\"]\nweight = 3\n\
             [[links]]\nname = \"second\"\nbetween = [\"r\", \"q\"]\n[[links]]\nbetween = [\"q\", \"b\"]\n{more}"
        );
        weftwire_network::read("n.toml", &text, &[], &|_| Err(std::io::Error::other("no files").into()))
            .network
            .expect("it is valid")
    }

    #[test]
    fn equal_ways_are_one_route_with_weights() {
        let network = network("");
        let lines = route_lines(&network, &mut Routes::new(&network), NodeIndex(2));
        let expected = [
            "10.0.0.1/32 dev port1 src 10.0.0.3",
            "fd77::1/128 dev port1 src fd77::3",
            "10.0.0.2/32 src 10.0.0.3 nexthop via 10.0.0.4 dev port2 weight 3 onlink nexthop via 10.0.0.4 dev port3 weight 1 \
             onlink",
            "fd77::2/128 src fd77::3 nexthop via fe80::200:3:1 dev port2 weight 3 nexthop via fe80::200:3:2 dev port3 weight \
             1",
        ];
        assert_eq!(lines[..4], expected);
        assert!(has_choice(&network, &mut Routes::new(&network), NodeIndex(2)));
        assert!(!has_choice(&network, &mut Routes::new(&network), NodeIndex(0)));
    }

    #[test]
    fn only_what_changes_is_replaced() {
        let down = "[[faults]]\nat = \"1s\"\nfor = \"3s\"\nkind = \"link-down\"\nlink = \"second\"\n";
        let turns = turns(&network(down));
        assert_eq!(turns.iter().map(|turn| turn.at_ns).collect::<Vec<_>>(), [2_000_000_000, 5_000_000_000]);
        for turn in turns {
            let names: Vec<&str> = turn.batches.iter().map(|(namespace, _)| namespace.as_str()).collect();
            assert_eq!(names, ["weft.n.r", "weft.n.q"]);
        }
        assert!(super::turns(&network("")).is_empty());
    }
}
