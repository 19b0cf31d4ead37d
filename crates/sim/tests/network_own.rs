//! The steps of the chapter "Write your own transport" (`examples/transports/own`): each brings every byte once and in order, and each is better than the one before at what the chapter says.
#![allow(clippy::disallowed_methods, reason = "tests read the examples' files")]

use crate::network_common::*;
use weftwire_network::link::{LinkSettings, Loss};
use weftwire_network::model::{NodeKind, TrafficKind, Transport};
use weftwire_network::results::Results;
use weftwire_network::{Network, read};

const STEPS: [(&str, &str); 4] =
    [("wait", "in-order"), ("window", "in-order"), ("selective", "any-order"), ("rate", "any-order")];

fn machine(name: &str) -> NodeKind {
    function(&format!("transports/own/{name}.xl"), false)
}

/// A sender, a receiver and a link between them.
fn between((sender, receiver): (&str, &str), settings: LinkSettings, bytes: u64, duration: i64) -> Network {
    let mut network = network(duration);
    let ends = [sender, receiver].map(|name| network.add_node(name, machine(name)));
    network.add_link(ends, settings);
    network.add(ends, Transport::Udp, TrafficKind::Bulk { bytes });
    network
}

#[test]
fn every_byte_arrives_once_and_in_order() {
    for step in STEPS {
        for (share, duplicate, reorder) in [(0.0, 0.3, 0.0), (0.01, 0.01, 0.1), (0.1, 0.1, 0.1), (0.3, 0.0, 0.0)] {
            let line = wire(10_000_000, 10 * MILLISECOND, 50);
            let reorder_delay = lasting(30 * MILLISECOND);
            let settings = LinkSettings { loss: Loss::Random(share), duplicate, reorder, reorder_delay, ..line };
            for (seed, bytes) in [(1, 1), (2, 1_200), (3, 1_201), (4, 50_000), (5, 200_000)] {
                let mut network = between(step, settings.clone(), bytes, 600 * SECOND);
                network.seed = seed;
                let results = run(&network);
                println!("{step:?} {share} {seed}: {:?}", results.flows[0]);
                assert_complete(&results.flows[0]);
            }
        }
    }
}

/// A network of the chapter, with other values.
fn example(name: &str, changes: &[(&str, &str)]) -> Network {
    let path = format!("{}/../../examples/networks/own-{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the example is part of the repository");
    let changes: Vec<_> = changes.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let read = read(name, &text, &changes, &|_| Err(std::io::Error::other("no files").into()));
    let mut network = read.network.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    for node in &mut network.nodes {
        if let NodeKind::Function(function) = &mut node.kind {
            function.image = function.image.replace("../", "");
        }
    }
    network
}

/// Mbit/s of a flow.
fn goodput(results: &Results, number: usize) -> f64 {
    results.flows[number].measured_goodput(&results.run).expect("it runs") / 1e6
}

/// Nanoseconds that a packet waits in the queue of the line, on average.
fn waited(results: &Results, from: &str) -> u128 {
    let is_it = |place: &str| place.split(':').next() == Some(from);
    let line = results.links.iter().find(|link| link.link.starts_with("line") && is_it(&link.from));
    let counts = &line.expect("the line is there").counts;
    counts.waited_sum / u128::from(counts.served.max(1))
}

const NO_LOSS: [(&str, &str); 1] = [("links.line.loss", "0%")];

#[test]
fn stop_and_wait_brings_a_segment_in_a_round_trip_and_a_window_fills_the_line() {
    let [one, many] = ["wait", "window"].map(|step| goodput(&run(&example(step, &NO_LOSS)), 0));
    println!("{one} and {many} Mbit/s");
    // A segment and its acknowledgment take 40 ms and, by 1,262 and 62 bytes, 1.06 ms.
    let expected = 1_200.0 * 8.0 / 41_060.0;
    assert!((one / expected - 1.0).abs() < 0.01, "{one} instead of {expected} Mbit/s");
    assert!(many > 9.4, "{many} Mbit/s");
}

#[test]
fn what_go_back_n_wastes_selective_recovery_does_not() {
    for seed in 1..=2 {
        let [wait, window, selective] = ["wait", "window", "selective"].map(|step| {
            let mut network = example(step, &[]);
            network.reseed(seed);
            goodput(&run(&network), 0)
        });
        println!("{wait}, {window} and {selective} Mbit/s");
        assert!(window > 10.0 * wait && window < 5.0, "{window} Mbit/s, and {wait} without a window");
        assert!(selective > 9.0, "{selective} Mbit/s");
    }
}

#[test]
fn a_rate_that_falls_with_delay_keeps_the_queue_short() {
    let image = "../transports/own/selective.xl";
    let window = [("nodes.one.image", image), ("nodes.two.image", image), ("probes.0", "window")];
    let [before, after] = [&window[..], &[]].map(|changes| run(&example("rate", changes)));
    let streams = |results: &Results| goodput(results, 0) + goodput(results, 1);
    let answer = |results: &Results| results.flows[2].rtt_mean.expect("somebody asked");
    println!(
        "{} and {} Mbit/s, queues of {} and {} ns, answers in {} and {} ns",
        streams(&before),
        streams(&after),
        waited(&before, "west"),
        waited(&after, "west"),
        answer(&before),
        answer(&after)
    );
    assert!(waited(&after, "west") < 15_000_000 && waited(&before, "west") > 60_000_000);
    assert!(2 * answer(&after) < answer(&before));
    assert!(streams(&after) > 0.85 * streams(&before));
}

#[test]
fn a_rate_that_falls_with_loss_gets_through_a_short_queue() {
    let image = "../transports/own/selective.xl";
    let queue = ("links.line.queue", "8 packets");
    let window = [queue, ("nodes.one.image", image), ("nodes.two.image", image), ("probes.0", "window")];
    let [before, after] = [&window[..], &[queue]].map(|changes| run(&example("rate", changes)));
    let streams = |results: &Results| goodput(results, 0) + goodput(results, 1);
    println!("{} and {} Mbit/s", streams(&before), streams(&after));
    assert!(streams(&before) < 1.0 && streams(&after) > 7.0);
    let line = &after.links[0].counts;
    assert!(line.dropped_full * 20 < line.offered_packets, "{line:?}");
}

/// Nobody tells it how fast the line is.
#[test]
fn the_rate_finds_the_line() {
    for rate in [2_000_000, 5_000_000, 50_000_000] {
        let mut network = between(STEPS[3], wire(rate, 20 * MILLISECOND, 1_000), 1_000_000_000, 20 * SECOND);
        network.links[0].name = "line".into();
        let results = run(&network);
        let (share, queue) = (goodput(&results, 0) * 1e6 / rate as f64, waited(&results, "rate"));
        assert!(share > 0.75 && queue < 15_000_000, "{share} of {rate} bit/s, {queue} ns in the queue");
    }
}
