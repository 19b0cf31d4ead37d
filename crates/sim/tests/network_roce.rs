//! RoCEv2 (`examples/transports/roce`) in networks: what bits are wrong is dropped, senders share a port, and pauses leave go-back-N nothing to do.
#![allow(clippy::disallowed_methods, reason = "tests read the examples' files")]

use crate::network_common::*;
use weftwire_network::Network;
use weftwire_network::link::{Discipline, LinkSettings, Loss, Pause, Queue, QueueLimit};
use weftwire_network::model::{NodeKind, TrafficKind, Transport};
use weftwire_network::results::Results;

const LINE: u64 = 10_000_000_000;

/// One requester for each of these lengths, and one responder, around a switch: links of the senders, and of the receiver.
fn to_one(lengths: &[u64], links: [&LinkSettings; 2], parameters: &[(&str, &str)]) -> Network {
    let mut network = network(20 * SECOND);
    let end = |name: &str| {
        let mut kind = function(&format!("transports/roce/{name}.xl"), false);
        if let NodeKind::Function(function) = &mut kind {
            let known = parameters.iter().filter(|(parameter, _)| name == "requester" || *parameter == "mtu");
            function.parameters = known.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        }
        kind
    };
    let switch = network.add_node("switch", NodeKind::Switch);
    let receiver = network.add_node("receiver", end("responder"));
    network.add_link([switch, receiver], links[1].clone());
    for (number, bytes) in lengths.iter().enumerate() {
        let sender = network.add_node(&format!("sender{number}"), end("requester"));
        network.add_link([sender, switch], links[0].clone());
        network.add([sender, receiver], Transport::Udp, TrafficKind::Bulk { bytes: *bytes }).port = 4791;
    }
    network
}

#[test]
fn streams_are_complete_over_losses_and_wrong_bits() {
    for (share, duplicate, corrupt, six) in [(0.0, 0.1, 0.01, false), (0.01, 0.01, 0.01, true), (0.05, 0.0, 0.0, false)]
    {
        let loss = Loss::Random(share);
        let settings = LinkSettings { loss, duplicate, corrupt, ..wire(LINE, 5_000, 4_000) };
        for seed in 1..=3 {
            let parameters = [("timeout", "500us"), ("outstanding", "64"), ("retries", "30")];
            let mut network = to_one(&[1, 1_024, 1_025, 65_537, 300_000], [&settings; 2], &parameters);
            network.seed = seed;
            network.traffic.iter_mut().for_each(|traffic| traffic.ipv6 = six);
            let results = run(&network);
            results.flows.iter().for_each(assert_complete);
            // Over IPv4 nothing else looks at what lies behind the network header.
            let counters = &results.functions.iter().find(|(name, _)| name == "receiver").expect("it is there").1;
            let found = counters.drops.get("bad_invariant_crc").copied().unwrap_or(0);
            assert!(found > 0 || corrupt == 0.0 || six, "{corrupt}: {found}");
        }
    }
}

/// All begin at once at the rate of the line, towards a port with room for so much, which marks.
fn incast(pause: Option<Pause>, limit: u64, discipline: Discipline) -> (Results, u64) {
    let queue = Queue { limit: QueueLimit::Bytes(limit), discipline, ecn: true, priority: true };
    let line = LinkSettings { queue, ..wire(LINE, 2_000, 0) };
    let own = Queue { limit: QueueLimit::Bytes(4_000_000), priority: true, ..LinkSettings::default().queue };
    let settings = LinkSettings { queue: own, pause, ..wire(LINE, 2_000, 0) };
    let results = run(&to_one(&[1_500_000; 8], [&settings, &line], &[("timeout", "1ms")]));
    results.flows.iter().for_each(assert_complete);
    let lost = results.links.iter().map(|link| link.counts.dropped_full + link.counts.dropped_early).sum();
    (results, lost)
}

#[test]
fn pauses_leave_go_back_n_nothing_to_do() {
    let pause = Pause { xoff: 100_000, xon: 50_000, headroom: 20_000, classes: 1 << 3 };
    // As in the paper of DCQCN (section 5).
    let marking = Discipline::Red { minimum: 5_000, maximum: 200_000, probability: 0.01, weight: 1.0 };
    let (results, lost) = incast(Some(pause), 200_000, marking);
    assert_eq!((lost, dropped(&results, "switch", "no_headroom")), (0, 0));
    assert!(results.links.iter().any(|link| link.counts.pauses > 0), "nobody was paused");
    // Each stream has 22 messages of 64 packets, one of 57, and the end.
    let line = results
        .links
        .iter()
        .find(|link| link.from.starts_with("switch") && link.to.starts_with("receiver"))
        .expect("it is there");
    assert_eq!(line.counts.delivered_packets, 8 * (22 * 64 + 57 + 1), "something was sent again");
    let last = results.flows.iter().filter_map(|flow| flow.end).max().expect("they are complete");
    let ideal = 8 * 1_500_000 * 8 * 1_082 / 1_024 / 10;
    println!("{last} ns, where the line takes {ideal}");
    assert!(last < ideal * 2, "{last} instead of {ideal} ns");
}

#[test]
fn without_pauses_go_back_n_recovers() {
    let (results, lost) = incast(None, 200_000, Discipline::Step { threshold: 20_000 });
    assert!(lost > 50, "{lost} lost");
    let last = results.flows.iter().filter_map(|flow| flow.end).max().expect("they are complete");
    println!("{last} ns, {lost} lost");
}
