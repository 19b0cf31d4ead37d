//! Next hops against shortest paths found by trying all edges again and again.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use weftwire_core::{Port, nanoseconds};
use weftwire_network::Network;
use weftwire_network::link::LinkSettings;
use weftwire_network::model::{
    FunctionNode, Link, LinkIndex, Multipath, Node, NodeIndex, NodeKind, PortPlace, Routing, StaticRoute,
};
use weftwire_network::read;
use weftwire_network::routing::{Flow, Hop, Routes};

/// What nodes are, by a letter: host, router, switch, transparent function.
fn kind(letter: char) -> NodeKind {
    match letter {
        'h' => NodeKind::Host { commands: Vec::new(), parameters: BTreeMap::new() },
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
    let links: Vec<_> = links.iter().map(|(a, b, delay)| (*a, *b, *delay, 1)).collect();
    with_metrics(kinds, &links)
}

/// The same, each link with its metric behind its delay.
fn with_metrics(kinds: &str, links: &[(u32, u32, i64, u32)]) -> Network {
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
        duration: Duration::ZERO,
        sample_interval: Duration::from_nanos(1),
        probes: Vec::new(),
        warm_up: Duration::ZERO,
        repetitions: 1,
        nodes: kinds.chars().map(node).collect(),
        links: Vec::new(),
        traffic: Vec::new(),
        changes: Vec::new(),
        captures: Vec::new(),
        routing: Routing::default(),
    };
    for &(a, b, delay, metric) in links {
        let link = LinkIndex(network.links.len() as u32);
        let ends = [(a, 0), (b, 1)].map(|(node, end)| {
            let ports = &mut network.nodes[node as usize].ports;
            ports.push((link, end));
            PortPlace { node: NodeIndex(node), port: Port(ports.len() as u16) }
        });
        let settings = LinkSettings { delay: Duration::from_nanos(delay as u64), ..LinkSettings::default() };
        network.links.push(Link {
            name: String::new(),
            ends,
            directions: [settings.clone(), settings],
            metric,
            weight: 1,
        });
    }
    network
}

fn hop(port: u16, node: u32, there: u16) -> Hop {
    Hop { port: Port(port), to: PortPlace { node: NodeIndex(node), port: Port(there) } }
}

fn all(routes: &mut Routes, from: u32, to: u32) -> Vec<Hop> {
    routes.all(NodeIndex(from), NodeIndex(to)).into_iter().map(|(hop, _)| hop).collect()
}

fn first(routes: &mut Routes, from: u32, to: u32) -> Option<Hop> {
    all(routes, from, to).first().copied()
}

#[test]
fn frames_cross_switches_and_transparent_functions_and_packets_cross_routers() {
    // h0 - f1 - s2 - h3, s2 - r4 - h5, and h6, which nobody reaches.
    let links = [(0, 1, 1), (1, 2, 1), (2, 3, 1), (2, 4, 1), (4, 5, 1)];
    let mut routes = Routes::new(&network("hfshrhh", &links));
    assert_eq!(routes.neighbours(NodeIndex(0)), [hop(1, 3, 1), hop(1, 4, 1)]);
    assert_eq!(routes.neighbours(NodeIndex(4)), [hop(1, 0, 1), hop(1, 3, 1), hop(2, 5, 1)]);
    assert_eq!(routes.neighbours(NodeIndex(2)), []);
    let mut next = |from, to| first(&mut routes, from, to);
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
    assert_eq!(first(&mut routes, 0, 1), Some(hop(1, 1, 1)));
    assert_eq!(first(&mut routes, 0, 2), None);
}

#[test]
fn fewer_nodes_then_less_delay() {
    // Over one router of great delay rather than over two; over the faster of two; over the first of two equal links.
    let links = [(0, 1, 1), (1, 2, 1), (2, 5, 1), (0, 3, 90), (3, 5, 90), (0, 4, 80), (4, 5, 80), (4, 5, 80)];
    let mut routes = Routes::new(&network("rrrrrr", &links));
    assert_eq!(first(&mut routes, 0, 5), Some(hop(3, 4, 1)));
    assert_eq!(all(&mut routes, 4, 5), [hop(2, 5, 3), hop(3, 5, 4)], "both are used");
}

/// A destination that is cut off is looked for as if nothing were down, whatever else is.
#[test]
fn what_is_cut_off_has_the_way_that_it_had() {
    let mut routes = Routes::new(&network("rhrrh", &[(3, 0, 0), (1, 0, 0), (4, 0, 0), (3, 4, 0)]));
    assert_eq!(first(&mut routes, 4, 1), Some(hop(1, 0, 3)));
    routes.reroute(&[(LinkIndex(1), true), (LinkIndex(2), true)]);
    assert_eq!(first(&mut routes, 4, 1), Some(hop(1, 0, 3)));
    assert_eq!(first(&mut routes, 4, 0), Some(hop(2, 3, 2)));
}

/// The cost of the best way from each node to one: metric, then delay; edges tried until nothing improves.
fn costs(network: &Network, edges: &Edges, to: u32) -> BTreeMap<u32, (u32, i64)> {
    let mut costs = BTreeMap::from([(to, (0, 0))]);
    loop {
        let before = costs.clone();
        for (&(from, hop), (metric, delay)) in edges {
            let over = hop.to.node;
            let passes = over.0 == to || matches!(network.node(over).kind, NodeKind::Router);
            let Some(&(hops, sum)) = costs.get(&over.0).filter(|_| passes) else { continue };
            let cost = costs.entry(from).or_insert((u32::MAX, 0));
            *cost = (hops + metric, sum + delay).min(*cost);
        }
        if costs == before {
            return costs;
        }
    }
}

/// By node and next hop, metric and delay there and back.
type Edges = BTreeMap<(u32, Hop), (u32, i64)>;

/// Each way between addressed nodes through others over links that are not down, by walking on from every port.
fn edges(network: &Network, down: &BTreeSet<LinkIndex>) -> Edges {
    let mut edges = BTreeMap::new();
    for (index, node) in network.nodes().filter(|(_, node)| node.is_addressed()) {
        for port in (1..=node.ports.len() as u16).map(Port) {
            let mut walks = vec![(PortPlace { node: index, port }, (0, 0), BTreeSet::new())];
            while let Some((out, (metric, delay), crossed)) = walks.pop() {
                let (link, end) = network.node(out.node).ports[usize::from(out.port.0) - 1];
                let there = network.link(link).ends[1 - end];
                if down.contains(&link) {
                    continue;
                }
                let cost = (
                    network.link(link).metric.max(metric),
                    delay + 2 * nanoseconds(network.link(link).directions[0].delay),
                );
                if network.node(there.node).is_addressed() {
                    if there.node != index {
                        edges.insert((index.0, Hop { port, to: there }), cost);
                    }
                } else if !crossed.contains(&there.node) {
                    let mut crossed = crossed.clone();
                    crossed.insert(there.node);
                    for port in (1..=network.node(there.node).ports.len() as u16).map(Port) {
                        if port != there.port {
                            walks.push((PortPlace { node: there.node, port }, cost, crossed.clone()));
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

    /// All best ways are found and no others, also when links go down and up; where there is none over links that are
    /// up, those that there were. No way leads round in a circle.
    #[test]
    fn next_hops_are_the_best(
        kinds in "[hrrrrs]{2,9}",
        ends in proptest::collection::vec((0u32..9, 0u32..9, 0i64..3, 1u32..4), 1..12),
        down in proptest::collection::btree_set(0u32..12, 0..3),
    ) {
        let nodes = kinds.len() as u32;
        // Frames know no loops: each switch is joined once to each other node and to no other switch.
        let switch = |node: u32| kinds.as_bytes()[node as usize] == b's';
        let links: Vec<_> = ends
            .into_iter()
            .map(|(a, b, delay, metric)| (a % nodes, b % nodes, delay, metric))
            .filter(|(a, b, ..)| a != b && !(switch(*a) && switch(*b)))
            .collect();
        let network = with_metrics(&kinds, &links);
        let mut routes = Routes::new(&network);
        let whole = edges(&network, &BTreeSet::new());
        for from in 0..nodes {
            let neighbours: Vec<_> = whole.keys().filter(|(node, _)| *node == from).map(|(_, hop)| *hop).collect();
            prop_assert_eq!(routes.neighbours(NodeIndex(from)), neighbours);
        }
        let down: BTreeSet<_> = down.into_iter().map(LinkIndex).filter(|link| (link.0 as usize) < links.len()).collect();
        for down in [BTreeSet::new(), down.clone(), BTreeSet::new()] {
            let changes: Vec<_> = (0..links.len() as u32).map(|link| (LinkIndex(link), down.contains(&LinkIndex(link)))).collect();
            routes.reroute(&changes);
            let up = edges(&network, &down);
            for to in 0..nodes {
                let (costs_up, costs_whole) = (costs(&network, &up, to), costs(&network, &whole, to));
                for from in (0..nodes).filter(|from| *from != to) {
                    let (edges, costs) =
                        if costs_up.contains_key(&from) { (&up, &costs_up) } else { (&whole, &costs_whole) };
                    let best = costs.get(&from).map_or_else(Vec::new, |cost| {
                        let of_node = edges.iter().filter(|((node, _), _)| *node == from);
                        let best = of_node.filter(|((_, hop), (metric, delay))| {
                            let over = hop.to.node;
                            let passes = over.0 == to || matches!(network.node(over).kind, NodeKind::Router);
                            passes && costs.get(&over.0).is_some_and(|rest| (rest.0 + metric, rest.1 + delay) == *cost)
                        });
                        best.map(|((_, hop), _)| *hop).collect()
                    });
                    prop_assert_eq!(all(&mut routes, from, to), best, "{} to {}", from, to);
                }
            }
        }
    }
}

/// A flow number so and so from the first host to the last.
fn flow(number: u16) -> Flow {
    Flow {
        source: Ipv4Addr::new(10, 0, 0, 1).into(),
        destination: Ipv4Addr::new(10, 0, 0, 9).into(),
        protocol: 6,
        ports: [number, 5_001],
    }
}

/// Two tiers: h0 - r1 -< r2, r3 >- each to both r4, r5 - r6 - h7.
fn two_tiers() -> Network {
    let links = [(0, 1), (1, 2), (1, 3), (2, 4), (2, 5), (3, 4), (3, 5), (4, 6), (5, 6), (6, 7)];
    network("hrrrrrrh", &links.map(|(a, b)| (a, b, 1)))
}

/// Over which nodes a packet goes.
fn path(routes: &mut Routes, mut from: u32, to: u32, flow: Flow) -> Vec<u32> {
    let mut path = vec![from];
    while let Some(hop) = routes.next(NodeIndex(from), NodeIndex(to), || flow) {
        from = hop.to.node.0;
        path.push(from);
    }
    path
}

fn counts<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, u32> {
    let mut counts = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts
}

#[test]
fn flows_are_spread_anew_at_each_tier_and_keep_their_way() {
    let mut routes = Routes::new(&two_tiers());
    let ways = |routes: &mut Routes| (0..8_000).map(|number| path(routes, 0, 7, flow(number))).collect::<Vec<_>>();
    let first = ways(&mut routes);
    assert_eq!(first, ways(&mut routes), "a flow keeps its way");
    let counts = counts(first.iter());
    assert_eq!(counts.len(), 4, "if both tiers hashed alike, two of four ways would be used: {counts:?}");
    // 2,000 each, four standard deviations.
    assert!(counts.values().all(|count| count.abs_diff(2_000) < 155), "{counts:?}");
    let mut reseeded = two_tiers();
    reseeded.seed = 2;
    assert_ne!(ways(&mut Routes::new(&reseeded)), first, "another run, another hash");
}

#[test]
fn weights_are_shares() {
    let mut network = two_tiers();
    network.links[2].weight = 3;
    let mut routes = Routes::new(&network);
    assert_eq!(routes.all(NodeIndex(1), NodeIndex(7)).iter().map(|(_, weight)| *weight).collect::<Vec<_>>(), [1, 3]);
    let over = counts((0..8_000).map(|number| path(&mut routes, 0, 7, flow(number))[2]));
    assert!(over[&2].abs_diff(2_000) < 155 && over[&3].abs_diff(6_000) < 155, "{over:?}");
}

#[test]
fn packets_of_one_flow_are_sprayed_or_all_take_the_first_way() {
    let mut network = two_tiers();
    network.routing.multipath = Multipath::Packet;
    let mut routes = Routes::new(&network);
    let over = counts((0..8_000).map(|_| path(&mut routes, 0, 7, flow(1))));
    assert!(over.len() == 4 && over.values().all(|count| count.abs_diff(2_000) < 155), "{over:?}");
    network.routing.multipath = Multipath::Single;
    let mut routes = Routes::new(&network);
    assert_eq!(counts((0..100).map(|number| path(&mut routes, 0, 7, flow(number)))).len(), 1);
    assert_eq!(all(&mut routes, 1, 7).len(), 1);
}

#[test]
fn static_routes_come_first_and_fall_away_with_their_links() {
    let mut network = two_tiers();
    let route = |node, to, via: &[u32]| StaticRoute {
        node: NodeIndex(node),
        to: NodeIndex(to),
        via: via.iter().copied().map(NodeIndex).collect(),
    };
    // The second one for the same pair holds.
    network.routing.routes = vec![route(1, 7, &[2]), route(1, 7, &[3]), route(1, 6, &[2, 3])];
    let mut routes = Routes::new(&network);
    assert_eq!(all(&mut routes, 1, 7), [hop(3, 3, 1)]);
    assert_eq!(all(&mut routes, 1, 6).len(), 2);
    routes.reroute(&[(LinkIndex(2), true)]);
    assert_eq!((all(&mut routes, 1, 7), all(&mut routes, 1, 6)), (vec![hop(2, 2, 1)], vec![hop(2, 2, 1)]));
    routes.reroute(&[(LinkIndex(2), false)]);
    assert_eq!(all(&mut routes, 1, 7), [hop(3, 3, 1)]);
}

#[test]
fn delay_counts_only_if_it_is_to() {
    let mut network = two_tiers();
    network.links[1].directions[0].delay = Duration::from_nanos(5);
    assert_eq!(all(&mut Routes::new(&network), 1, 7), [hop(3, 3, 1)]);
    network.routing.by_delay = false;
    assert_eq!(all(&mut Routes::new(&network), 1, 7).len(), 2);
}

#[test]
fn all_cores_of_a_fat_tree_are_used_evenly() {
    let text = "duration = \"1s\"\n[topology]\nkind = \"fat-tree\"\nk = 8\n";
    let network =
        read("tree.toml", text, &[], &|_| Err(std::io::Error::other("no files").into())).network.expect("it is valid");
    let named = |name: &str| network.nodes().find(|(_, node)| node.name == name).expect("it is there").0;
    let (from, to) = (named("pod1-host1").0, named("pod5-host9").0);
    let mut routes = Routes::new(&network);
    let over = counts((0..16_000).map(|number| path(&mut routes, from, to, flow(number))[3]));
    assert_eq!(over.len(), 16, "{over:?}");
    // 1,000 each, four standard deviations.
    assert!(over.values().all(|count| count.abs_diff(1_000) < 123), "{over:?}");
}
