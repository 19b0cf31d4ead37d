//! Routes of kernels: several ways of equal cost as multipath routes, spread by a hash of the flow; and what changes when
//! links go down.

use crate::build::{has_kernel_addresses, in_namespace, namespace_name, port_name, set};
use crate::error::LabError;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use weftwire_core::Time;
use weftwire_linux::netlink::{Netlink, NextHop, Route};
use weftwire_network::Network;
use weftwire_network::model::{Multipath, NodeIndex};
use weftwire_network::routing::{Hop, Routes, reroutes};

/// Where a kernel has the key of its hash, since Linux 6.11.
const HASH_SEED: &str = "ipv4/fib_multipath_hash_seed";

/// Refuses what no kernel can do.
///
/// # Errors
/// The network asks for it.
pub(crate) fn refuse_spraying(network: &Network) -> Result<(), LabError> {
    match network.routing.multipath {
        Multipath::Packet => Err(LabError::PacketMultipath),
        Multipath::Flow | Multipath::Single => Ok(()),
    }
}

/// Whether a node has several ways of equal cost to anywhere.
pub(crate) fn has_choice(network: &Network, routes: &mut Routes, node: NodeIndex) -> bool {
    routes.neighbours(node).len() > 1 && network.nodes().any(|(other, _)| routes.all(node, other).len() > 1)
}

/// Lets the kernel of the namespace that the thread is in hash addresses, protocol and ports, under a key of its own.
pub(crate) fn spread(seed: u32) -> Result<(), LabError> {
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

/// The routes of a node.
pub(crate) fn routes_of(network: &Network, routes: &mut Routes, node: NodeIndex) -> Vec<Route> {
    let (own4, own6) = (network.node(node).ipv4, network.node(node).ipv6);
    let mut list = Vec::new();
    for (other, to) in network.nodes().filter(|(_, to)| to.is_addressed()) {
        let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
        let ways = routes.all(node, other);
        for (hop, weight) in &ways {
            // Of several ways each has a router, be it the destination itself.
            let direct = ways.len() == 1 && hop.to.node == other;
            let next = |via: IpAddr| NextHop {
                interface: port_name(hop.port),
                via: (!direct).then_some(via),
                weight: *weight,
            };
            ipv4.push(next(network.node(hop.to.node).ipv4.into()));
            ipv6.push(next(link_local(network, hop).into()));
        }
        if !ipv4.is_empty() {
            list.push(Route { destination: to.ipv4.into(), source: own4.into(), hops: ipv4 });
            list.push(Route { destination: to.ipv6.into(), source: own6.into(), hops: ipv6 });
        }
    }
    list
}

/// Routes that change at a time of a run.
pub(crate) struct Turn {
    /// Nanoseconds after the start.
    pub(crate) at: Time,
    /// By namespace, what changes there.
    changes: Vec<(String, Vec<Route>)>,
}

impl Turn {
    /// Changes the routes.
    pub(crate) fn perform(self) -> Result<(), LabError> {
        self.changes.into_iter().try_for_each(|(namespace, routes)| {
            in_namespace(&namespace, || {
                let mut netlink = Netlink::open()?;
                routes.iter().try_for_each(|route| netlink.replace_route(route).map_err(LabError::from))
            })
        })
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
    let lists = |routes: &mut Routes| -> Vec<Vec<Route>> {
        nodes.iter().map(|node| routes_of(network, routes, *node)).collect()
    };
    let mut before = lists(&mut routes);
    let mut turns = Vec::new();
    for reroute in reroutes {
        routes.reroute(&reroute.links);
        let after = lists(&mut routes);
        let mut changes = Vec::new();
        for (node, (before, after)) in nodes.iter().zip(before.iter().zip(&after)) {
            // Whoever has a way at the start always has one, so routes stand for the same destinations.
            let changed = before.iter().zip(after).filter(|(before, after)| before != after);
            let changed: Vec<Route> = changed.map(|(_, route)| route.clone()).collect();
            if !changed.is_empty() {
                changes.push((namespace_name(&network.name, &network.node(*node).name), changed));
            }
        }
        turns.push(Turn { at: reroute.at, changes });
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
        let routes = routes_of(&network, &mut Routes::new(&network), NodeIndex(2));
        let lines: Vec<String> = routes.iter().map(Route::to_string).collect();
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
        assert_eq!(turns.iter().map(|turn| turn.at.nanoseconds()).collect::<Vec<_>>(), [2_000_000_000, 5_000_000_000]);
        for turn in turns {
            let names: Vec<&str> = turn.changes.iter().map(|(namespace, _)| namespace.as_str()).collect();
            assert_eq!(names, ["weft.n.r", "weft.n.q"]);
        }
        assert!(super::turns(&network("")).is_empty());
    }
}
