//! Packets over several ways: spread over equal ones, round links that are down.
#![allow(clippy::disallowed_methods, reason = "tests read the examples")]

use crate::network_common::{Build, MILLISECOND, SECOND, assert_complete, at, host, lasting, network, run, wire};
use std::collections::BTreeMap;
use weftwire_network::model::{Change, ChangeKind, LinkIndex, Multipath, NodeIndex, NodeKind, TrafficKind, Transport};
use weftwire_network::results::Results;
use weftwire_network::traffic::{Gap, Size};
use weftwire_network::{Network, read};

fn example(name: &str, changes: &[(&str, &str)]) -> Network {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/networks").join(name);
    let text = std::fs::read_to_string(path).expect("the example is part of the repository");
    let changes: Vec<_> = changes.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    read(name, &text, &changes, &|_| Err(std::io::Error::other("no files").into())).network.expect("it is valid")
}

fn datagrams(gap: i64, count: u64) -> TrafficKind {
    TrafficKind::Datagrams { gap: Gap::Constant(gap), size: Size::Constant(200), count }
}

/// Bytes that came to each core.
fn to_cores(results: &Results) -> BTreeMap<String, u64> {
    let mut bytes = BTreeMap::new();
    for link in results.links.iter().filter(|link| link.to.starts_with("core")) {
        let core = link.to.split(':').next().unwrap_or_default();
        *bytes.entry(core.to_owned()).or_default() += link.counts.delivered_bytes;
    }
    bytes
}

#[test]
fn the_fat_tree_of_the_examples_uses_all_its_cores() {
    let changes = [("duration", "12ms"), ("traffic.search.rate", "400Mbit/s"), ("traffic.search.size", "20kB")];
    let mut network = example("fat-tree.toml", &changes);
    let results = run(&network);
    let bytes = to_cores(&results);
    let (least, most) = (bytes.values().min(), bytes.values().max());
    println!("{bytes:?}");
    assert!(bytes.len() == 4 && least.is_some_and(|least| *least * 2 > *most.expect("four")), "{bytes:?}");
    // With the key of one router in all of them the tiers would choose alike; with one way, one core has everything.
    network.routing.multipath = Multipath::Single;
    assert_eq!(to_cores(&run(&network)).values().filter(|bytes| **bytes > 0).count(), 1);
}

/// client - west =< north, south >= east - server, all links alike.
fn square(duration: i64) -> (Network, [NodeIndex; 2]) {
    let mut network = network(duration);
    let client = network.add_node("client", host());
    let routers = ["west", "north", "south", "east"].map(|name| network.add_node(name, NodeKind::Router));
    let server = network.add_node("server", host());
    let [west, north, south, east] = routers;
    for ends in [[client, west], [west, north], [west, south], [north, east], [south, east], [east, server]] {
        network.add_link(ends, wire(100_000_000, MILLISECOND, 100));
    }
    (network, [client, server])
}

fn offered(results: &Results, link: usize) -> u64 {
    results.links[link * 2].counts.offered_packets
}

#[test]
fn a_link_that_is_down_is_routed_round_after_the_convergence_time() {
    let (mut network, ends) = square(4 * SECOND);
    network.routing.convergence = Some(lasting(300 * MILLISECOND));
    network.add(ends, Transport::Udp, datagrams(MILLISECOND, 3_000));
    let way = if offered(&run(&network), 1) > 0 { 1 } else { 2 };
    let (link, direction) = (LinkIndex(way), 0);
    network.changes = vec![
        Change { at: at(SECOND), what: ChangeKind::Down { link, direction } },
        Change { at: at(2 * SECOND), what: ChangeKind::Up { link, direction } },
    ];
    let results = run(&network);
    // Lost are those that came to the link or were on it in 300 ms; from 2.3 s on it is used again.
    let lost = results.flows[0].lost.expect("datagrams");
    assert!((300..=303).contains(&lost), "{lost}");
    assert_eq!(offered(&results, 3 - way as usize), 1_000);
    network.routing.convergence = None;
    assert!((1_000..=1_003).contains(&run(&network).flows[0].lost.expect("datagrams")));
}

#[test]
fn where_no_way_is_left_packets_are_lost_at_the_link() {
    let (mut network, ends) = square(4 * SECOND);
    network.add(ends, Transport::Udp, datagrams(MILLISECOND, 3_000));
    let change = |when, down| {
        let (link, direction) = (LinkIndex(5), 0);
        let what = if down { ChangeKind::Down { link, direction } } else { ChangeKind::Up { link, direction } };
        Change { at: at(when), what }
    };
    network.changes = vec![change(100 * MILLISECOND, true), change(2_500 * MILLISECOND, false)];
    let results = run(&network);
    assert!(results.node_drops.is_empty(), "{:?}", results.node_drops);
    let lost = results.flows[0].lost.expect("datagrams");
    assert_eq!(results.links[10].counts.dropped_down, lost);
    assert!((2_398..2_402).contains(&lost), "{lost}");
}

#[test]
fn packets_sprayed_use_all_ways_and_streams_stay_whole() {
    let (mut network, ends) = square(10 * SECOND);
    network.routing.multipath = Multipath::Packet;
    let bulk = TrafficKind::Bulk { bytes: 1_000_000 };
    network.add(ends, Transport::Tcp, bulk);
    let results = run(&network);
    assert_complete(&results.flows[0]);
    let (north, south) = (offered(&results, 1), offered(&results, 2));
    assert!(north.min(south) * 10 > north.max(south) * 8, "{north} {south}");
}

#[test]
fn a_host_with_two_ports_changes_its_own_way() {
    let mut network = network(20 * SECOND);
    let client = network.add_node("client", host());
    let routers = ["north", "south"].map(|name| network.add_node(name, NodeKind::Router));
    let server = network.add_node("server", host());
    for router in routers {
        network.add_link([client, router], wire(10_000_000, MILLISECOND, 100));
        network.add_link([router, server], wire(10_000_000, MILLISECOND, 100));
    }
    let bulk = TrafficKind::Bulk { bytes: 5_000_000 };
    network.add([client, server], Transport::Tcp, bulk);
    let way = if offered(&run(&network), 0) > 1_000 { 0 } else { 2 };
    for direction in 0..2 {
        let link = LinkIndex(way);
        network.changes.push(Change { at: at(SECOND), what: ChangeKind::Down { link, direction } });
    }
    let results = run(&network);
    assert_complete(&results.flows[0]);
    assert!(offered(&results, 2 - way as usize) > 1_000, "the rest goes the other way");
}
