//! Next hops against shortest paths found by trying all edges again and again.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use weftwire_core::Port;
use weftwire_network::Network;
use weftwire_network::link::LinkSettings;
use weftwire_network::model::{FunctionNode, Link, LinkIndex, Node, NodeIndex, NodeKind, PortPlace};
use weftwire_network::routing::{Hop, Routes};

/// What nodes are, by a letter: host, router, switch, transparent function.
fn kind(letter: char) -> NodeKind {
    match letter {
        'h' => NodeKind::Host { commands: Vec::new() },
        'r' => NodeKind::Router,
        's' => NodeKind::Switch,
        _ => NodeKind::Function(FunctionNode {
            image: String::new(),
            format: None,
            engine: String::new(),
            parameters: BTreeMap::new(),
            transparent: true,
            trace: false,
        }),
    }
}

/// A network of these nodes, with links between two of them and their delay in each direction.
fn network(kinds: &str, links: &[(u32, u32, i64)]) -> Network {
    let node = |letter| Node {
        name: String::new(),
        kind: kind(letter),
        ipv4: Ipv4Addr::UNSPECIFIED,
        ipv6: Ipv6Addr::UNSPECIFIED,
        ports: Vec::new(),
    };
    let mut network = Network {
        name: String::new(),
        seed: 0,
        duration: 0,
        sample_interval: 1,
        repetitions: 1,
        nodes: kinds.chars().map(node).collect(),
        links: Vec::new(),
        traffic: Vec::new(),
        changes: Vec::new(),
        captures: Vec::new(),
    };
    for &(a, b, delay) in links {
        let link = LinkIndex(network.links.len() as u32);
        let ends = [(a, 0), (b, 1)].map(|(node, end)| {
            let ports = &mut network.nodes[node as usize].ports;
            ports.push((link, end));
            PortPlace { node: NodeIndex(node), port: Port(ports.len() as u16) }
        });
        let settings = LinkSettings { delay, ..LinkSettings::default() };
        network.links.push(Link { name: String::new(), ends, directions: [settings.clone(), settings] });
    }
    network
}

fn hop(port: u16, node: u32, there: u16) -> Hop {
    Hop { port: Port(port), to: PortPlace { node: NodeIndex(node), port: Port(there) } }
}

#[test]
fn frames_cross_switches_and_transparent_functions_and_packets_cross_routers() {
    // h0 - f1 - s2 - h3, s2 - r4 - h5, and h6, which nobody reaches.
    let links = [(0, 1, 1), (1, 2, 1), (2, 3, 1), (2, 4, 1), (4, 5, 1)];
    let mut routes = Routes::new(&network("hfshrhh", &links));
    assert_eq!(routes.neighbours(NodeIndex(0)), [hop(1, 3, 1), hop(1, 4, 1)]);
    assert_eq!(routes.neighbours(NodeIndex(4)), [hop(1, 0, 1), hop(1, 3, 1), hop(2, 5, 1)]);
    assert_eq!(routes.neighbours(NodeIndex(2)), []);
    let mut next = |from, to| routes.next(NodeIndex(from), NodeIndex(to));
    assert_eq!(next(0, 3), Some(hop(1, 3, 1)));
    assert_eq!(next(0, 5), Some(hop(1, 4, 1)));
    assert_eq!(next(4, 5), Some(hop(2, 5, 1)));
    assert_eq!(next(5, 0), Some(hop(1, 4, 2)));
    assert_eq!(next(4, 0), Some(hop(1, 0, 1)));
    assert_eq!((next(0, 0), next(0, 6), next(6, 0), next(0, 2), next(2, 0)), (None, None, None, None, None));
}

#[test]
fn hosts_are_no_way_through() {
    let mut routes = Routes::new(&network("hhh", &[(0, 1, 1), (1, 2, 1)]));
    assert_eq!(routes.next(NodeIndex(0), NodeIndex(1)), Some(hop(1, 1, 1)));
    assert_eq!(routes.next(NodeIndex(0), NodeIndex(2)), None);
}

#[test]
fn fewer_nodes_then_less_delay_then_the_lower_port() {
    // Over one router of great delay rather than over two; over the faster of two; over the first of two equal links.
    let links = [(0, 1, 1), (1, 2, 1), (2, 5, 1), (0, 3, 90), (3, 5, 90), (0, 4, 80), (4, 5, 80), (4, 5, 80)];
    let mut routes = Routes::new(&network("rrrrrr", &links));
    assert_eq!(routes.next(NodeIndex(0), NodeIndex(5)), Some(hop(3, 4, 1)));
    assert_eq!(routes.next(NodeIndex(4), NodeIndex(5)), Some(hop(2, 5, 3)));
}

/// The cost of the best way from each node to one: addressed nodes, then delay; edges tried until nothing improves.
fn costs(network: &Network, edges: &BTreeMap<(u32, Hop), i64>, to: u32) -> BTreeMap<u32, (u32, i64)> {
    let mut costs = BTreeMap::from([(to, (0, 0))]);
    loop {
        let before = costs.clone();
        for (&(from, hop), delay) in edges {
            let over = hop.to.node;
            let passes = over.0 == to || matches!(network.node(over).kind, NodeKind::Router);
            let Some(&(hops, sum)) = costs.get(&over.0).filter(|_| passes) else { continue };
            let cost = costs.entry(from).or_insert((u32::MAX, 0));
            *cost = (hops + 1, sum + delay).min(*cost);
        }
        if costs == before {
            return costs;
        }
    }
}

/// Each way between addressed nodes through others, by walking on from every port; with its least delay there and back.
fn edges(network: &Network) -> BTreeMap<(u32, Hop), i64> {
    let mut edges = BTreeMap::new();
    for (index, node) in network.nodes().filter(|(_, node)| node.is_addressed()) {
        for port in (1..=node.ports.len() as u16).map(Port) {
            let mut walks = vec![(PortPlace { node: index, port }, 0, BTreeSet::new())];
            while let Some((out, delay, crossed)) = walks.pop() {
                let (link, end) = network.node(out.node).ports[usize::from(out.port.0) - 1];
                let there = network.link(link).ends[1 - end];
                let delay = delay + 2 * network.link(link).directions[0].delay;
                if network.node(there.node).is_addressed() {
                    if there.node != index {
                        let least = edges.entry((index.0, Hop { port, to: there })).or_insert(delay);
                        *least = delay.min(*least);
                    }
                } else if !crossed.contains(&there.node) {
                    let mut crossed = crossed.clone();
                    crossed.insert(there.node);
                    for port in (1..=network.node(there.node).ports.len() as u16).map(Port) {
                        if port != there.port {
                            walks.push((PortPlace { node: there.node, port }, delay, crossed.clone()));
                        }
                    }
                }
            }
        }
    }
    edges
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn next_hops_are_the_best(
        kinds in "[hrrrsf]{2,9}",
        ends in proptest::collection::vec((0u32..9, 0u32..9, 0i64..4), 1..12),
    ) {
        let nodes = kinds.len() as u32;
        let links: Vec<_> =
            ends.into_iter().map(|(a, b, delay)| (a % nodes, b % nodes, delay)).filter(|(a, b, _)| a != b).collect();
        let network = network(&kinds, &links);
        let edges = edges(&network);
        let mut routes = Routes::new(&network);
        for from in 0..nodes {
            let neighbours: Vec<_> = edges.keys().filter(|(node, _)| *node == from).map(|(_, hop)| *hop).collect();
            prop_assert_eq!(routes.neighbours(NodeIndex(from)), neighbours);
        }
        for to in 0..nodes {
            let costs = costs(&network, &edges, to);
            for from in (0..nodes).filter(|from| *from != to) {
                let best = costs.get(&from).and_then(|cost| {
                    edges.iter().filter(|((node, _), _)| *node == from).find(|((_, hop), delay)| {
                        let over = hop.to.node;
                        let passes = over.0 == to || matches!(network.node(over).kind, NodeKind::Router);
                        passes && costs.get(&over.0).is_some_and(|rest| (rest.0 + 1, rest.1 + **delay) == *cost)
                    })
                });
                prop_assert_eq!(routes.next(NodeIndex(from), NodeIndex(to)), best.map(|((_, hop), _)| *hop));
            }
        }
    }
}
