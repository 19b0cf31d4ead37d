//! A flood of new flows through a full table. The large ones run in the release profile: `make system`.

mod support;

use std::net::{IpAddr, Ipv4Addr};
use support::*;
use weftwire_core::build::{TemplateSpec, TemplateTransport};
use weftwire_core::format::Formats;
use weftwire_core::inspect::Inspect;
use weftwire_core::packet::Packet;
use weftwire_core::{Endpoints, Frame, Function, LinkType, Outbox, Port, Ports};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_image::{Event, Operand, Operator, WhenFull};

#[test]
fn a_flood_meets_a_full_table() {
    flood(5_000, 1_024);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn a_million_flows_meet_a_full_table() {
    flood(1_000_000, 65_536);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn a_million_packets_of_known_flows() {
    let mut image = machine();
    image.flow.max = 65_536;
    image.flow.expire = 1_000_000_000;
    image.registers.push(register("packets"));
    let count = compute(Operator::Add, 0, Operand::Register(0), constant(1));
    image.rows.push(row(0, Event::Packet, vec![count]));
    let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
    let mut engine = ReferenceEngine::new(verified(image), ports, EngineOptions::default()).expect("a verified image");
    let mut out = Outbox::new();
    let frames: Vec<Vec<u8>> = (0..1_024).map(|number| datagram(number, b"some payload")).collect();
    for number in 0..1_000_000 {
        let frame = Frame::new(&frames[number % frames.len()]);
        engine.frame(at(number as i64), Port(1), frame, &mut out);
        out.clear();
    }
    assert_eq!((engine.flows().len(), engine.counters().rows[0].1), (1_024, 1_000_000));
}

fn flood(flows: u32, room: u32) {
    let mut image = machine();
    image.flow.max = room;
    image.flow.when_full = WhenFull::EvictOldest;
    image.flow.expire = 1_000_000_000;
    image.registers.push(register("packets"));
    image.timers.push(timer("tick", &[]));
    let count = compute(Operator::Add, 0, Operand::Register(0), constant(1));
    image.rows.push(row(0, Event::Packet, vec![count, set_timer(0, 500_000_000)]));
    let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
    let mut engine = ReferenceEngine::new(verified(image), ports, EngineOptions::default()).expect("a verified image");
    let mut out = Outbox::new();
    let bare = TemplateSpec {
        transport: TemplateTransport::Udp,
        tcp_options: &[],
        wanted: &[],
        headers: &[],
        payload: 0,
        presets: &[],
    };
    let mut frame = weftwire_core::Buffer::default();
    for number in 0..flows {
        // Scattered over the address space, so that neighbours in time are no neighbours in the table.
        let address = Ipv4Addr::from(number.wrapping_mul(0x9e37_79b1));
        let ends = Endpoints { local_address: IpAddr::V4(address), ..client(1) };
        Packet::build(&bare, &ends, &Formats::default()).emit(LinkType::Ethernet, &mut frame);
        engine.frame(at(i64::from(number)), Port(1), Frame::new(&frame), &mut out);
        out.clear();
    }
    let counters = engine.counters();
    assert_eq!((counters.flows_created, counters.flows_peak), (u64::from(flows), u64::from(room)));
    assert_eq!(counters.flows_evicted, u64::from(flows - room));
    // More comes of it than an outbox takes in one go.
    while engine.next_deadline().is_some() {
        engine.fire(at(10_000_000_000), &mut out);
        out.clear();
    }
    assert!(engine.flows().is_empty());
}
