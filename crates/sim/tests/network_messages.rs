//! Messages whose receiver grants its link (`examples/transports/messages`): complete over losses, the one with least left first.
#![allow(clippy::disallowed_methods, reason = "tests read the examples' files")]

use crate::network_common::*;
use weftwire_network::Network;
use weftwire_network::link::{LinkSettings, Loss, Queue, QueueLimit};
use weftwire_network::model::{NodeKind, TrafficKind, Transport};

const LINE: u64 = 10_000_000_000;

/// One sender for each of these messages, and one receiver, around a switch.
fn to_one(lengths: &[u64], settings: &LinkSettings, parameters: &[(&str, &str)]) -> Network {
    let mut network = network(20 * SECOND);
    let end = |name: &str| {
        let mut kind = function(&format!("transports/messages/{name}.xl"), false);
        if let NodeKind::Function(function) = &mut kind {
            function.parameters =
                parameters.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        }
        kind
    };
    let switch = network.add_node("switch", NodeKind::Switch);
    let receiver = network.add_node("receiver", end("receiver"));
    network.add_link([switch, receiver], settings.clone());
    for (number, bytes) in lengths.iter().enumerate() {
        let sender = network.add_node(&format!("sender{number}"), end("sender"));
        network.add_link([sender, switch], settings.clone());
        network.add([sender, receiver], Transport::Udp, TrafficKind::Bulk { bytes: *bytes });
    }
    network
}

#[test]
fn messages_are_complete_over_losses() {
    for (share, duplicate) in [(0.0, 0.1), (0.01, 0.01), (0.1, 0.0), (0.3, 0.0)] {
        let settings = LinkSettings { loss: Loss::Random(share), duplicate, ..wire(LINE, 5_000, 4_000) };
        for seed in 1..=4 {
            let mut network = to_one(&[1, 1_400, 1_401, 60_000, 200_000, 60_001], &settings, &[]);
            network.seed = seed;
            let results = run(&network);
            results.flows.iter().for_each(assert_complete);
        }
    }
}

/// Ends of messages in nanoseconds, shortest first, when all begin at once; also in what order they were asked.
#[test]
fn the_shortest_is_first_and_the_line_is_full() {
    let lengths = [2_000_000, 400_000, 1_600_000, 800_000, 1_200_000];
    let results = run(&to_one(&lengths, &wire(LINE, 5_000, 4_000), &[]));
    results.flows.iter().for_each(assert_complete);
    let mut ends: Vec<(u64, i64)> =
        results.flows.iter().map(|flow| (flow.delivered, flow.end.expect("it is complete"))).collect();
    ends.sort_unstable();
    println!("{ends:?}");
    assert!(ends.is_sorted_by_key(|(_, end)| *end), "{ends:?}");
    // 1,400 bytes of 1,458 in a frame, and 60 kB of each message that come first, whatever is left of it.
    let mut before = 0;
    for (index, (length, end)) in ends.iter().enumerate() {
        before += length;
        let first = 60_000 * (ends.len() - 1 - index) as u64;
        let ideal = ((before + first) * 8 * 1_458 / 1_400) as f64 / 10.0;
        assert!((*end as f64) < ideal * 1.12 + 100_000.0, "{length} bytes took {end} instead of {ideal} ns");
    }
}

/// A hundred short messages at once, while a long one is under way: those that the switch has room for unasked take no longer than their line needs for all of them.
#[test]
fn a_hundred_senders_at_once_lose_nothing_and_wait_for_no_timeout() {
    let mut lengths = vec![20_000; 100];
    lengths.push(5_000_000);
    let queue = Queue { limit: QueueLimit::Bytes(1_000_000), priority: true, ..LinkSettings::default().queue };
    let settings = LinkSettings { queue, ..wire(LINE, 2_000, 0) };
    let results = run(&to_one(&lengths, &settings, &[("unscheduled", "9000")]));
    results.flows.iter().for_each(assert_complete);
    let slowest = results.flows[..100].iter().filter_map(|flow| flow.end).max().expect("they are complete");
    let ideal = 100 * 20_000 * 8 * 1_458 / 1_400 / 10;
    println!("{slowest} ns, where the line takes {ideal}");
    assert!(slowest < ideal * 11 / 10, "{slowest} instead of {ideal} ns");
}
