//! Functions in networks, faults, determinism.
#![allow(clippy::disallowed_methods, reason = "tests read the examples' files")]

use crate::network_common::*;
use std::hash::Hasher;
use weftwire_core::Port;
use weftwire_network::Network;
use weftwire_network::link::{LinkSettings, Loss};
use weftwire_network::model::{
    Change, ChangeKind, FieldFault, LinkIndex, NodeIndex, NodeKind, PortPlace, TrafficKind, Transport,
};
use weftwire_network::traffic::{Gap, Size};

fn syn_proxy(bytes: u64) -> (Network, [NodeIndex; 3]) {
    let mut network = network(30 * SECOND);
    let client = network.add_node("client", host());
    let proxy = network.add_node("proxy", function("syn-proxy.xl", true));
    let server = network.add_node("server", host());
    network.add_link([client, proxy], wire(10_000_000, 5 * MILLISECOND, 1000));
    network.add_link([proxy, server], wire(10_000_000, 5 * MILLISECOND, 1000));
    network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes });
    (network, [client, proxy, server])
}

/// A router that loses packets between the two ends of the ARQ transport.
fn arq(bytes: u64, loss: f64) -> (Network, [NodeIndex; 3]) {
    let mut network = network(600 * SECOND);
    let sender = network.add_node("sender", function("arq-sender.xl", false));
    let router = network.add_node("router", NodeKind::Router);
    let receiver = network.add_node("receiver", function("arq-receiver.xl", false));
    let settings = LinkSettings { loss: Loss::Random(loss), duplicate: 0.02, ..wire(10_000_000, MILLISECOND, 100) };
    network.add_link([sender, router], settings.clone());
    network.add_link([router, receiver], settings);
    network.add([sender, receiver], Transport::Udp, TrafficKind::Bulk { bytes });
    (network, [sender, router, receiver])
}

fn datagrams(count: u64) -> TrafficKind {
    TrafficKind::Datagrams { gap: Gap::Constant(MILLISECOND), size: Size::Constant(500), count }
}

#[test]
fn a_transfer_crosses_the_syn_proxy() {
    let (network, _) = syn_proxy(1_000_000);
    let results = run(&network);
    assert_complete(&results.flows[0]);
    let (name, counters) = &results.functions[0];
    assert_eq!((name.as_str(), counters.flows_created), ("proxy", 1));
    assert!(counters.rows.iter().map(|(_, count)| count).sum::<u64>() > 1000);
    assert!(results.run.warnings.is_empty(), "{:?}", results.run.warnings);
}

#[test]
fn arq_delivers_every_byte_once_over_loss() {
    let (network, _) = arq(300_000, 0.05);
    let results = run(&network);
    let flow = &results.flows[0];
    assert_complete(flow);
    assert_eq!(flow.transport, "sender");
    assert!(results.links[0].counts.lost > 0 && results.links[0].counts.duplicated > 0);
    assert!(results.links[0].counts.offered_packets > 300, "with repeats");
    assert!(results.progress[0].acknowledged.len() >= 300);
    assert!(results.run.warnings.is_empty(), "{:?}", results.run.warnings);
}

#[test]
fn a_link_without_mercy_lets_the_function_give_up() {
    let (mut network, _) = arq(10_000, 0.0);
    network.changes.push(Change { at: at(0), what: ChangeKind::Down { link: LinkIndex(0), direction: 0 } });
    let results = run(&network);
    assert!(results.flows[0].outcome.starts_with("failed: the function gave up"), "{}", results.flows[0].outcome);
    assert!(results.links[0].counts.dropped_down >= 20);
}

#[test]
fn a_link_goes_down_and_comes_up_again() {
    let (mut network, [client, _, server]) = path(10 * SECOND, wire(10_000_000, MILLISECOND, 100));
    network.add([client, server], Transport::Udp, datagrams(5_000));
    let (link, direction) = (LinkIndex(1), 0);
    network.changes.push(Change { at: at(SECOND), what: ChangeKind::Down { link, direction } });
    network.changes.push(Change { at: at(2 * SECOND), what: ChangeKind::Up { link, direction } });
    network.changes.push(Change { at: at(3 * SECOND), what: ChangeKind::Blackhole { link, direction, on: true } });
    network.changes.push(Change { at: at(4 * SECOND), what: ChangeKind::Blackhole { link, direction, on: false } });
    let results = run(&network);
    let counts = results.links[2].counts;
    assert!(counts.dropped_down.abs_diff(1000) <= 2, "{counts:?}");
    assert_eq!(counts.dropped_blackhole, 1000);
    assert_eq!(results.flows[0].lost, Some(counts.dropped_down + 1000));
}

#[test]
fn tcp_outlives_a_pause_of_the_link() {
    let (mut network, [client, _, server]) = path(60 * SECOND, wire(10_000_000, MILLISECOND, 1000));
    network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 3_000_000 });
    for direction in 0..2 {
        let link = LinkIndex(1);
        network.changes.push(Change { at: at(SECOND), what: ChangeKind::Down { link, direction } });
        network.changes.push(Change { at: at(3 * SECOND), what: ChangeKind::Up { link, direction } });
    }
    network.changes.sort_by_key(|change| change.at);
    let results = run(&network);
    assert_complete(&results.flows[0]);
    assert!(results.flows[0].end.is_some_and(|end| end > 3 * SECOND));
}

#[test]
fn new_settings_count_from_their_time_on() {
    let (mut network, [client, _, server]) = path(4 * SECOND, wire(100_000_000, MILLISECOND, 100));
    network.add([client, server], Transport::Udp, datagrams(2_000)).stop = at(2 * SECOND);
    let settings = Box::new(LinkSettings { loss: Loss::Random(1.0), ..wire(1_000_000, MILLISECOND, 5) });
    let what = ChangeKind::Settings { link: LinkIndex(1), direction: 0, settings };
    network.changes.push(Change { at: at(SECOND), what });
    let results = run(&network);
    assert!(results.links[2].counts.lost.abs_diff(1000) <= 2);
}

#[test]
fn a_corrupted_field_is_found_by_its_checksum() {
    let (mut network, [client, _, server]) = path(5 * SECOND, wire(10_000_000, MILLISECOND, 100));
    network.add([client, server], Transport::Udp, datagrams(4_000));
    let fault = |field: &str| {
        let field = Some(FieldFault { field: field.into(), mask: 0x3, share_millionths: 1_000_000 });
        ChangeKind::CorruptField { link: LinkIndex(0), direction: 0, field }
    };
    network.changes.push(Change { at: at(SECOND), what: fault("udp.length") });
    network.changes.push(Change { at: at(2 * SECOND), what: fault("ipv4.ttl") });
    let none = ChangeKind::CorruptField { link: LinkIndex(0), direction: 0, field: None };
    network.changes.push(Change { at: at(3 * SECOND), what: none });
    let results = run(&network);
    let at_server = dropped(&results, "server", "bad_checksum") + dropped(&results, "server", "bad_header");
    assert!(at_server.abs_diff(1000) <= 2, "{:?}", results.node_drops);
    assert!(dropped(&results, "router", "bad_header").abs_diff(1000) <= 2, "{:?}", results.node_drops);
    assert_eq!(results.flows[0].lost, Some(at_server + dropped(&results, "router", "bad_header")));
}

#[test]
fn a_restart_resets_the_flows_of_a_function() {
    let (mut network, [_, _, receiver]) = arq(300_000, 0.0);
    network.changes.push(Change { at: at(SECOND / 2), what: ChangeKind::Restart { node: receiver } });
    let (results, kept) = run_keeping(&network, Kept::default());
    assert_eq!(results.flows[0].outcome, "reset");
    assert!(results.flows[0].delivered < 300_000 && results.flows[0].delivered > 10_000);
    assert_eq!(kept.made, 3, "the receiver twice");
}

#[test]
fn a_restart_of_a_host_ends_its_connections() {
    let (mut network, [client, _, server]) = path(20 * SECOND, wire(10_000_000, MILLISECOND, 100));
    network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 10_000_000 });
    network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 10_000 }).start = at(5 * SECOND);
    network.changes.push(Change { at: at(SECOND), what: ChangeKind::Restart { node: server } });
    let results = run(&network);
    assert_eq!(results.flows[0].outcome, "reset");
    assert_complete(&results.flows[1]);
    // The client heard of it: a RST answered its next segment.
    let later = results.links[0].counts.offered_packets;
    assert!(later < 3_000, "{later}");
}

#[test]
fn a_fast_clock_makes_timers_early() {
    // The first segment is lost: it is sent again after 100 ms of the sender's time.
    let first_repeat = |drift_ppm: i64| {
        let (mut network, [sender, ..]) = arq(1_000, 0.0);
        network.captures.push(PortPlace { node: sender, port: Port(1) });
        let (link, direction) = (LinkIndex(0), 0);
        network.changes.push(Change { at: at(0), what: ChangeKind::Blackhole { link, direction, on: true } });
        network
            .changes
            .push(Change { at: at(0), what: ChangeKind::Clock { node: sender, drift_ppm, leap: lasting(0) } });
        let (_, kept) = run_keeping(&network, Kept::default());
        kept.frames[1].0 - kept.frames[0].0
    };
    assert_eq!(first_repeat(0), 100 * MILLISECOND);
    assert_eq!(first_repeat(1_000_000), 50 * MILLISECOND, "twice as fast");
    assert_eq!(first_repeat(-500_000), 200 * MILLISECOND, "half as fast");
}

#[test]
fn a_router_tells_what_it_drops() {
    // Two routers that each know the other as the way to nowhere: none; and a chain longer than a TTL.
    let mut network = network(SECOND);
    let client = network.add_node("client", host());
    let mut last = client;
    for number in 0..64 {
        let router = network.add_node(&format!("r{number}"), NodeKind::Router);
        network.add_link([last, router], LinkSettings { delay: lasting(1000), ..LinkSettings::default() });
        last = router;
    }
    let far = network.add_node("far", host());
    network.add_link([last, far], LinkSettings { delay: lasting(1000), ..LinkSettings::default() });
    let lonely = network.add_node("lonely", host());
    network.add([client, far], Transport::Udp, datagrams(10));
    network.add([client, lonely], Transport::Udp, datagrams(10));
    let results = run(&network);
    assert_eq!(dropped(&results, "r63", "ttl"), 10, "{:?}", results.node_drops);
    assert_eq!(results.flows[0].lost, Some(10));
    assert_eq!(results.flows[1].outcome, "failed: there is no way");
}

#[test]
fn a_switch_learns() {
    let mut network = network(SECOND);
    let switch = network.add_node("switch", NodeKind::Switch);
    let hosts = ["a", "b", "c"].map(|name| network.add_node(name, host()));
    for host in hosts {
        network.add_link([switch, host], wire(100_000_000, 1000, 100));
    }
    network.add([hosts[0], hosts[1]], Transport::Udp, datagrams(10));
    network.add([hosts[1], hosts[0]], Transport::Udp, datagrams(10)).start = at(5 * MILLISECOND + 1);
    let results = run(&network);
    assert_eq!((results.flows[0].lost, results.flows[1].lost), (Some(0), Some(0)));
    // Towards c only what came before b had spoken.
    assert_eq!(results.links[4].counts.offered_packets, 6);
    assert_eq!(dropped(&results, "c", "other_address"), 6);
}

#[test]
fn equal_seeds_give_equal_runs() {
    let hashed = |seed: u64| {
        let (mut network, [client, proxy, server]) = syn_proxy(200_000);
        for link in &mut network.links {
            for direction in &mut link.directions {
                direction.loss = Loss::Random(0.01);
                direction.jitter = lasting(MILLISECOND);
            }
        }
        let kind = TrafficKind::Flows {
            gap: Gap::Exponential(20.0 * MILLISECOND as f64),
            size: Size::Pareto(1.3, 1000, 100_000),
            count: 50,
        };
        network.add([server, client], Transport::Tcp, kind);
        for node in [client, proxy, server] {
            network.captures.push(PortPlace { node, port: Port(1) });
        }
        network.reseed(seed);
        let (results, kept) = run_keeping(&network, Kept::default());
        #[allow(deprecated, reason = "any fixed hash does")]
        let mut hash = std::hash::SipHasher::new();
        for (at, place, bytes, sent) in &kept.frames {
            hash.write_i64(*at);
            hash.write_u32(place.node.0 * 2 + u32::from(*sent));
            hash.write(bytes);
        }
        assert!(kept.frames.len() > 1000);
        (results, hash.finish())
    };
    let (first, again, other) = (hashed(5), hashed(5), hashed(6));
    assert!(first == again);
    assert_ne!(first.1, other.1);
}

#[test]
fn an_interrupted_run_gives_what_there_is() {
    let (mut network, [client, _, server]) = path(100 * SECOND, wire(10_000_000, MILLISECOND, 100));
    network.add([client, server], Transport::Udp, datagrams(1_000_000));
    let (results, _) = run_keeping(&network, Kept { patience: Some(3), ..Kept::default() });
    assert!(results.run.interrupted && results.run.lasted < 100 * SECOND);
    assert_eq!(results.run.events, 4 * 8192);
    assert!(results.flows[0].delivered > 0 && results.run.packet_hops > 0);
    let (whole, _) = run_keeping(&network, Kept::default());
    assert!(!whole.run.interrupted && whole.run.lasted == 100 * SECOND);
}
