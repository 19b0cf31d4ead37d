//! What a chain agent costs per packet of 64 bytes in memory, by the number of sessions, and what its parts cost.
//!
//! `cargo run --release -p weftwire-bench --no-default-features --bin chain-speed`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;
use weftwire_chain::config::{Config, Policy, Registered};
use weftwire_chain::segment::{Found, find};
use weftwire_chain::tuple::Tuple;
use weftwire_chain::{Agent, HOST, NETWORK};
use weftwire_core::outbox::sent;
use weftwire_core::port::{Checksum, Offload};
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_core::{Arrival, Arrivals, Frame, Function as _, LinkType, Outbox, Port, Ports, Time};

/// Packets of a measurement, and of a batch.
const PACKETS: usize = 1_000_000;
const BATCH: usize = 64;
const ROUNDS: usize = 7;

fn main() {
    println!(
        "nanoseconds per packet of 64 bytes, the best of {ROUNDS} rounds of {PACKETS} packets in random order of sessions"
    );
    println!("sessions  copy alone  of no chain  to the network  from the network     find  redirect");
    for sessions in [1_000, 60_000, 1_000_000] {
        let [mut first, mut last] = [agent(1, sessions), agent(2, sessions)];
        let (mut out, mut inside, mut on_network) = (Outbox::new(), Vec::new(), Vec::new());
        for number in 0..sessions {
            // One SYN makes the session at both agents.
            pass(&mut first, HOST, &packet(number, TcpFlags::SYN), &mut out);
            let (_, syn) = sent(&out, &out.items()[0]).expect("the SYN goes on");
            let syn = syn.bytes.to_vec();
            pass(&mut last, NETWORK, &syn, &mut out);
            assert_eq!(out.items().len(), 1, "the list is taken");
            inside.push(packet(number, TcpFlags::ACK));
            pass(&mut first, HOST, &inside[number as usize], &mut out);
            let (_, ack) = sent(&out, &out.items()[0]).expect("the segment goes on");
            on_network.push(ack.bytes.to_vec());
        }
        let others: Vec<_> =
            (0..sessions.min(60_000)).map(|number| packet(number + (1 << 24), TcpFlags::ACK)).collect();
        let order = order(sessions as usize);
        let tuples: Vec<Tuple> = on_network.iter().map(|packet| segment(packet).tuple).collect();
        let mut copies = inside.clone();
        println!(
            "{sessions:>8}  {:>10.1}  {:>11.1}  {:>14.1}  {:>16.1}  {:>7.1}  {:>8.1}",
            best(|| copied(&order, &inside)),
            best(|| through(&mut first, HOST, &order, &others)),
            best(|| through(&mut first, HOST, &order, &inside)),
            best(|| through(&mut last, NETWORK, &order, &on_network)),
            best(|| order.iter().for_each(|at| _ = black_box(find(LinkType::Ip, &inside[*at])))),
            best(|| {
                for at in &order {
                    let found = segment(&inside[*at]);
                    found.redirect(&mut copies[*at], tuples[*at], Checksum::Unverified);
                }
            }),
        );
    }
    println!("`redirect` contains a `find`.");
}

fn agent(own: u16, sessions: u32) -> Agent {
    let address = |number: u16| IpAddr::from([10, 255, 0, number as u8]);
    let policy = Policy {
        source: None,
        destination: None,
        destination_ports: Some([80, 80]),
        boxes: vec![2],
        fail: Default::default(),
        exit: Default::default(),
        keep_port: false,
    };
    let config = Config {
        agent: own,
        agents: (1..=2).map(|number| Registered { number, addresses: vec![address(number)] }).collect(),
        keys: Vec::new(),
        policies: if own == 1 { vec![policy] } else { Vec::new() },
        subsession_ports: [61_000, 64_999],
        gateway: None,
        segment_reserve: 12,
        most_sessions: sessions,
        most_half_open: sessions,
        idle_seconds: 7_440,
    };
    let ports = Ports::new([(HOST, LinkType::Ip), (NETWORK, LinkType::Ip)]);
    Agent::new(config, ports, [1, 2], 0).expect("the configuration is sound")
}

/// A packet of a session: 64 bytes, of which 24 are payload, but for SYNs.
fn packet(number: u32, flags: TcpFlags) -> Vec<u8> {
    let source = Ipv4Addr::from(0x0a00_0000 | number >> 14);
    let fields = TcpFields {
        source_port: 10_000 + (number & 0x3fff) as u16,
        destination_port: 80,
        sequence: number,
        flags,
        ..TcpFields::default()
    };
    let payload: &[u8] = if flags == TcpFlags::SYN { &[] } else { &[7; 24] };
    let ip = Ipv4Fields { source, destination: [10, 255, 0, 9].into(), ..Ipv4Fields::default() };
    FrameBuilder::raw_ip().ipv4(&ip).tcp(&fields, &[]).payload(payload).finish().expect("it is short")
}

fn segment(packet: &[u8]) -> weftwire_chain::segment::Segment {
    match find(LinkType::Ip, packet) {
        Ok(Found::Segment(segment)) => segment,
        other => unreachable!("{other:?}"),
    }
}

fn pass(agent: &mut Agent, port: Port, bytes: &[u8], out: &mut Outbox) {
    out.clear();
    agent.frame(Time::ZERO, port, Frame::new(bytes), out);
}

/// Sessions in a random order (xorshift), as many as there are packets.
fn order(sessions: usize) -> Vec<usize> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % sessions as u64) as usize
    };
    (0..PACKETS).map(|_| draw()).collect()
}

fn through(agent: &mut Agent, port: Port, order: &[usize], packets: &[Vec<u8>]) {
    let (mut out, mut arrivals) = (Outbox::new(), Arrivals::new());
    for batch in order.chunks(BATCH) {
        for at in batch {
            let bytes = &packets[at % packets.len()];
            arrivals.push_back(Arrival { port, buffer: out.buffer_with(bytes), offload: Offload::default() });
        }
        agent.frames(Time::ZERO, &mut arrivals, &mut out);
        assert_eq!(out.items().len(), batch.len(), "every packet goes on");
        out.clear();
    }
}

/// What the measurement itself costs: a copy in, an output.
fn copied(order: &[usize], packets: &[Vec<u8>]) {
    let mut out = Outbox::new();
    for batch in order.chunks(BATCH) {
        for at in batch {
            let buffer = out.buffer_with(&packets[*at]);
            out.send_buffer(Time::ZERO, NETWORK, buffer, Offload::default());
        }
        black_box(out.items());
        out.clear();
    }
}

/// Nanoseconds per packet in the best round.
fn best(mut round: impl FnMut()) -> f64 {
    let measure = |_| {
        let begun = Instant::now();
        round();
        begun.elapsed().as_nanos() as f64 / PACKETS as f64
    };
    (0..ROUNDS).map(measure).fold(f64::INFINITY, f64::min)
}
