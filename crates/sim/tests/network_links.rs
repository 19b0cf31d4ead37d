//! What links do for congestion controls: marks above a step, classes, pauses. The examples, and what they are to show.
#![allow(clippy::disallowed_methods, reason = "tests read the examples")]

use crate::network_common::{Build, MILLISECOND, assert_complete, host, network, run, wire};
use std::sync::Arc;
use weftwire_network::link::Pause;
use weftwire_network::model::{NodeKind, StaticRoute, TrafficKind, Transport};
use weftwire_network::results::{LinkResult, Results};
use weftwire_network::traffic::{Gap, Size};
use weftwire_network::{Network, read};

fn example(name: &str, changes: &[(&str, &str)]) -> Network {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/networks").join(name);
    let text = std::fs::read_to_string(path).expect("the example is part of the repository");
    let changes: Vec<_> = changes.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let read = read(name, &text, &changes, &|_| Err(std::io::Error::other("no files").into()));
    read.network.unwrap_or_else(|| panic!("{:?}", read.diagnostics))
}

fn direction<'a>(results: &'a Results, from: &str, to: &str) -> &'a LinkResult {
    let is = |place: &str, node: &str| place.split(':').next() == Some(node);
    results.links.iter().find(|link| is(&link.from, from) && is(&link.to, to)).expect("such a link")
}

/// Of every direction, what came is what went, was dropped, or is there.
fn assert_balanced(results: &Results) {
    for link in &results.links {
        let counts = &link.counts;
        let went = counts.delivered_packets + link.drops() + counts.on_link;
        assert_eq!(counts.offered_packets + counts.duplicated, went, "{} from {}", link.link, link.from);
    }
}

const SHORT: [(&str, &str); 2] = [("duration", "1500ms"), ("warm_up", "500ms")];

/// RFC 8257: with marks above 20 packets DCTCP keeps about so many waiting, and the link full.
#[test]
fn a_step_keeps_the_queue_of_dctcp_short() {
    let results = run(&example("marks.toml", &SHORT));
    assert_balanced(&results);
    let link = direction(&results, "west", "east");
    let measured = results.run.measured();
    let (mean, share) = (link.queue_bytes_mean(measured) / 1_514.0, link.utilisation(measured).expect("a rate"));
    assert!((8.0..25.0).contains(&mean) && share > 0.98, "{mean:.1} packets wait, {share:.3} of the link");
    assert!(link.counts.marked > 100 && link.drops() == 0, "{:?}", link.counts);
    // CUBIC without ECN fills the queue.
    let control = |node: &str| format!("nodes.{node}.parameters.control");
    let nodes = ["left1", "left2", "right1", "right2"].map(control);
    let ecn = ["left1", "left2"].map(|node| format!("nodes.{node}.parameters.offer_ecn"));
    let mut changes = SHORT.to_vec();
    changes.extend(nodes.iter().map(|key| (key.as_str(), "cubic")));
    changes.extend(ecn.iter().map(|key| (key.as_str(), "false")));
    let results = run(&example("marks.toml", &changes));
    let mean = direction(&results, "west", "east").queue_bytes_mean(results.run.measured()) / 1_514.0;
    assert!(mean > 60.0, "{mean:.1} packets wait");
}

#[test]
fn a_call_goes_past_a_download() {
    let run_with = |priority: bool| {
        let changes = [("duration", "4s"), ("traffic.call.stop", "3.5s")];
        let mut network = example("priorities.toml", &changes);
        network
            .links
            .iter_mut()
            .flat_map(|link| &mut link.directions)
            .for_each(|settings| settings.queue.priority &= priority);
        let results = run(&network);
        assert_balanced(&results);
        let call = results.flows.iter().find(|flow| flow.traffic == "call").expect("a call");
        let lost = call.lost.unwrap_or_default();
        let download = results.flows.iter().find(|flow| flow.traffic == "download").expect("a download");
        (lost, download.delivered, direction(&results, "router", "phone").counts)
    };
    let (lost, delivered, counts) = run_with(true);
    assert!(lost == 0 && delivered > 3_500_000 && counts.dropped_full > 0, "{lost} lost, {delivered} delivered");
    // In one queue, calls wait and are lost, too.
    let (lost_without, ..) = run_with(false);
    assert!(lost_without > 0, "{lost_without} lost");
}

#[test]
fn a_pause_loses_nothing_where_there_is_headroom() {
    let results = run(&example("pause.toml", &[]));
    results.flows.iter().for_each(assert_complete);
    assert_balanced(&results);
    assert!(results.links.iter().all(|link| link.drops() == 0) && results.node_drops.is_empty());
    assert_eq!(results.flows.iter().filter_map(|flow| flow.retransmissions).sum::<u64>(), 0);
    for name in ["left1", "left2", "left3"] {
        let counts = direction(&results, name, "switch").counts;
        assert!(counts.pauses > 10 && counts.paused > 1_000_000, "{name}: {counts:?}");
    }
    let back = direction(&results, "switch", "store").counts;
    // Of three hosts each so many bytes: up to XOFF, and what was on its way.
    assert!(back.queue_bytes_max > 30_000 && back.queue_bytes_max <= 3 * 21_000, "{}", back.queue_bytes_max);
    assert_eq!(back.pauses, 0);
    // On its way are 5 us there, 5 us back, the frame in service at either end: without headroom it is lost.
    let no_headroom: Vec<String> =
        (0..3).map(|link| format!("links.left{}-switch.forward.pause.headroom", link + 1)).collect();
    let changes: Vec<_> = no_headroom.iter().map(|key| (key.as_str(), "0B")).collect();
    let results = run(&example("pause.toml", &changes));
    assert_balanced(&results);
    let dropped: u64 = results.node_drops.iter().filter(|drop| drop.1 == "no_headroom").map(|drop| drop.2).sum();
    assert!(dropped > 0, "{:?}", results.node_drops);
    // Without pauses the queue of ten packets overflows.
    let mut network = example("pause.toml", &[]);
    network.links.iter_mut().for_each(|link| link.directions.iter_mut().for_each(|settings| settings.pause = None));
    let results = run(&network);
    assert!(direction(&results, "switch", "store").counts.dropped_full > 0);
}

/// Pauses for buffers that wait for each other in a ring: nothing goes on, and the run says so.
#[test]
fn a_deadlock_is_told() {
    let ring = |pauses: bool| {
        let mut network = network(200 * MILLISECOND);
        let routers = ["r1", "r2", "r3"].map(|name| network.add_node(name, NodeKind::Router));
        let hosts = ["h1", "h2", "h3"].map(|name| network.add_node(name, host()));
        let pause = pauses.then_some(Pause { xoff: 10_000, xon: 5_000, headroom: 100_000, classes: 1 });
        for place in 0..3 {
            let settings =
                weftwire_network::link::LinkSettings { pause: pause.clone(), ..wire(100_000_000, 10_000, 1_000) };
            network.add_link([routers[place], routers[(place + 1) % 3]], settings);
            network.add_link([hosts[place], routers[place]], wire(100_000_000, 10_000, 100_000));
        }
        for place in 0..3 {
            // Each goes two hops round the ring, all the same way.
            let to = hosts[(place + 2) % 3];
            for step in 0..2 {
                let via = Arc::from([routers[(place + step + 1) % 3]]);
                network.routing.routes.push(StaticRoute { node: routers[(place + step) % 3], to, via });
            }
            let kind = TrafficKind::Datagrams { gap: Gap::Constant(150_000), size: Size::Constant(1_400), count: 400 };
            network.add([hosts[place], to], Transport::Udp, kind);
        }
        let results = run(&network);
        assert_balanced(&results);
        results
    };
    let results = ring(true);
    let told: Vec<_> = results.run.warnings.iter().filter(|warning| warning.starts_with("deadlock")).collect();
    assert_eq!(told.len(), 1, "{:?}", results.run.warnings);
    assert!(["r1:1 to r2", "r2", "r3"].iter().all(|name| told[0].contains(name)), "{}", told[0]);
    let stuck: u64 = results.links.iter().map(|link| link.counts.on_link).sum();
    assert!(stuck > 20, "{stuck} are stuck");
    let results = ring(false);
    assert!(results.run.warnings.iter().all(|warning| !warning.starts_with("deadlock")), "{:?}", results.run.warnings);
    assert_eq!(results.links.iter().map(|link| link.counts.on_link).sum::<u64>(), 0);
}
