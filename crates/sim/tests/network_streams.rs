//! LEDBAT beside a TCP that fills the queue: it gives way, and comes back.
#![allow(clippy::disallowed_methods, reason = "tests read the examples' files")]

use crate::network_common::*;
use weftwire_core::Port;
use weftwire_network::model::{NodeKind, PortPlace, TrafficKind, Transport};

#[test]
fn ledbat_gives_way_to_tcp_and_comes_back() {
    let mut network = network(70 * SECOND);
    let sender = network.add_node("sender", function("transports/stream/sender.xl", false));
    let client = network.add_node("client", host());
    let [west, east] = ["west", "east"].map(|name| network.add_node(name, NodeKind::Router));
    let receiver = network.add_node("receiver", function("transports/stream/receiver.xl", false));
    let server = network.add_node("server", host());
    let access = wire(1_000_000_000, MILLISECOND, 1000);
    network.add_link([sender, west], access.clone());
    network.add_link([client, west], access.clone());
    // Room for 150 ms, where the target is 100.
    network.add_link([west, east], wire(5_000_000, 20 * MILLISECOND, 75));
    network.add_link([east, receiver], access.clone());
    network.add_link([east, server], access);
    network.add([sender, receiver], Transport::Udp, TrafficKind::Bulk { bytes: 100_000_000 });
    let tcp = network.add([client, server], Transport::Tcp, TrafficKind::Bulk { bytes: 12_500_000 });
    tcp.start = at(15 * SECOND);
    let place = PortPlace { node: receiver, port: Port(1) };
    network.captures.push(place);
    let (results, kept) = run_keeping(&network, Kept::default());
    assert_complete(&results.flows[1]);
    // What comes to the receiver of LEDBAT, in Mbit/s.
    let rate = |from: i64, until: i64| {
        let came = kept.frames.iter().filter(|(at, to, _, sent)| *to == place && !sent && (from..until).contains(at));
        came.map(|(_, _, bytes, _)| bytes.len()).sum::<usize>() as f64 * 8e3 / (until - from) as f64
    };
    let over = results.flows[1].end.expect("it is complete");
    let [alone, beside, again] = [(10, 15), (25, 30)]
        .map(|(from, until)| (from * SECOND, until * SECOND))
        .into_iter()
        .chain([(over + 5 * SECOND, over + 10 * SECOND)])
        .map(|(from, until)| rate(from, until))
        .collect::<Vec<_>>()
        .try_into()
        .expect("three");
    println!("{alone} Mbit/s alone, {beside} beside TCP, {again} after it, which ended at {over} ns");
    assert!(alone > 4.8, "{alone} Mbit/s alone");
    assert!(beside < 0.5, "{beside} Mbit/s beside TCP");
    assert!(again > 4.8, "{again} Mbit/s after it");
}
