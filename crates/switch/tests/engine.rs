//! The engine on packets against the slow way: messages found one by one, tables walked, copies made anew.

use proptest::prelude::*;
use std::collections::BTreeMap;
use weftwire_core::inspect::Inspect;
use weftwire_core::port::Checksum;
use weftwire_core::{Frame, Function, LinkType, Offload, Outbox, Output, Packet, Port, Time, function::Ports};
use weftwire_subscribe::switch::Switch;
use weftwire_subscribe::{Compiler, packet, read_rules};
use weftwire_switch::{Engine, SubscriptionSwitch};
use weftwire_text::SourceMap;
use weftwire_workload::Numbers;

fn compile(text: &str) -> Compiler {
    crate::common::compile(&[weftwire_workload::ITCH_FORMATS], text)
}

/// Rules about batches, single packets, state, several ports and prefixes.
const RULES: &str = "
    add_order.stock == \"S01\" or add_order.stock == \"S02\" : fwd(1);
    add_order.price > 200 : fwd(2, 3);
    add_order.stock in {\"S10\", \"S21\", \"S22\", \"S23\", \"S24\"} and add_order.shares in [100, 700] : fwd(4);
    trade.price <= 500 : fwd(3);
    count() over 300ns > 2 and add_order.side == \"B\" : fwd(5);
    avg(trade.price) over 1us > 400 : fwd(6);
    orders > 3 and add_order.price < 300 : fwd(7);
    ipv4.source == 10.0.0.0/8 : fwd(8);
    udp.destination_port != 26400 : fwd(9);
";

type Copies = Vec<(Port, Vec<u8>)>;

fn fast(engine: &mut Engine, now_ns: u64, frame: &[u8]) -> Result<Copies, &'static str> {
    let mut copies = Vec::new();
    let copy = |port, copy: Frame<'_>| copies.push((port, copy.bytes.to_vec()));
    engine.frame(now_ns, LinkType::Ethernet, Frame::new(frame), copy, |_| {}).map_err(|reason| reason.name())?;
    Ok(copies)
}

fn slow(compiler: &Compiler, switch: &mut Switch, now_ns: u64, frame: &[u8]) -> Result<Copies, &'static str> {
    let formats = compiler.formats();
    let found = packet::messages(formats, LinkType::Ethernet, frame).map_err(|reason| reason.name())?;
    let mut wanted: BTreeMap<Port, Vec<bool>> = BTreeMap::new();
    for (index, message) in found.messages.iter().enumerate() {
        for port in switch.message(compiler, message, now_ns).ports {
            wanted.entry(port).or_insert_with(|| vec![false; found.messages.len()])[index] = true;
        }
    }
    let pruned = wanted.into_iter().map(|(port, keep)| {
        let copy = packet::pruned(formats, LinkType::Ethernet, frame, &found, &keep);
        (port, copy.expect("it was parsed before"))
    });
    Ok(pruned.collect())
}

/// Makes the IPv4 and UDP checksums of a damaged frame right where that can be, so that it is not simply dropped.
fn with_checksums(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = weftwire_core::checksum::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[40..42].fill(0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn packets_are_taken_as_the_slow_way_takes_them(
        seed: u64,
        sizes in prop::collection::vec(0u16..12, 1..40),
        damage in prop::collection::vec((any::<bool>(), 14usize..400, any::<u8>(), 0usize..80), 40),
    ) {
        let compiler = compile(RULES);
        let (mut engine, mut switch) = (Engine::new(&compiler), Switch::default());
        let mut numbers = Numbers::new(seed);
        for (index, (size, (damaged, at, byte, cut))) in sizes.iter().zip(damage).enumerate() {
            let mut frame = weftwire_workload::itch_packet(*size, 1, &mut numbers);
            if damaged {
                frame.truncate((frame.len() - cut.min(frame.len() - 42)).max(42));
                if let Some(place) = frame.get_mut(at) {
                    *place = byte;
                }
                with_checksums(&mut frame);
            }
            let now_ns = 70 * index as u64;
            prop_assert_eq!(
                fast(&mut engine, now_ns, &frame),
                slow(&compiler, &mut switch, now_ns, &frame),
                "{}: {:02x?}", index, frame
            );
        }
    }
}

/// A header is there in whole, however little follows it.
#[test]
fn a_datagram_with_little_payload_has_its_udp_header() {
    let compiler = compile("udp.destination_port == 26400 : fwd(1); udp.length < 20 : fwd(2); ipv4.ttl > 0 : fwd(3);");
    for payload in 0..20 {
        let mut frame = weftwire_workload::itch_packet(0, 1, &mut Numbers::new(1));
        frame.truncate(42 + payload);
        frame[16..18].copy_from_slice(&(28 + payload as u16).to_be_bytes());
        frame[38..40].copy_from_slice(&(8 + payload as u16).to_be_bytes());
        with_checksums(&mut frame);
        let copies = slow(&compiler, &mut Switch::default(), 0, &frame).expect("it is right");
        let ports: Vec<u16> = copies.iter().map(|(port, _)| port.0).collect();
        assert_eq!(ports, if payload < 12 { vec![1, 2, 3] } else { vec![1, 3] }, "{payload} bytes");
        assert_eq!(fast(&mut Engine::new(&compiler), 0, &frame).expect("it is right"), copies);
    }
}

#[test]
fn a_running_engine_follows_single_rules() {
    let rules = |compiler: &Compiler, text: &str| {
        read_rules("rules", text, compiler.formats(), &mut SourceMap::default(), &mut Vec::new())
    };
    let mut compiler = compile("");
    let (mut engine, mut switch) = (Engine::new(&compiler), Switch::default());
    let mut numbers = Numbers::new(9);
    let mut present = Vec::new();
    for (step, line) in RULES.lines().chain(["REMOVE"; 9]).filter(|line| !line.trim().is_empty()).enumerate() {
        // Each rule asks for fields that none before it did.
        let delta = match &rules(&compiler, line)[..] {
            [rule] => {
                let (id, delta) = compiler.add(rule).expect("few clauses");
                present.push(id);
                delta
            }
            _ => compiler.remove(present.remove(step * 5 % present.len())).unwrap().expect("it is there"),
        };
        engine.apply(&compiler, &delta);
        switch.apply(&delta);
        for index in 0..30 {
            let now_ns = 70 * (30 * step as u64 + index);
            let frame = weftwire_workload::itch_packet(8, 1, &mut numbers);
            assert_eq!(
                fast(&mut engine, now_ns, &frame),
                slow(&compiler, &mut switch, now_ns, &frame),
                "{step} {line}"
            );
        }
    }
    assert!(present.is_empty());
}

/// The messages of a packet, by their reference numbers, and that its checksums and lengths are right.
fn references(frame: &[u8]) -> Vec<u64> {
    let compiler = compile("true : fwd(1);");
    let parsed = Packet::parse(LinkType::Ethernet, Frame::new(frame), compiler.formats().packet_formats());
    assert_eq!(parsed.expect("checksums are right").frame_length(), frame.len());
    let found = packet::messages(compiler.formats(), LinkType::Ethernet, frame).expect("right");
    let count = u16::from_be_bytes([frame[60], frame[61]]);
    assert_eq!(usize::from(count), found.places.len());
    found
        .places
        .iter()
        .map(|place| u64::from_be_bytes(frame[place.start + 13..place.start + 21].try_into().expect("8 bytes")))
        .collect()
}

fn sent(out: &Outbox) -> Vec<(u16, Vec<u8>, Offload)> {
    let send = |item: &Output| match item {
        Output::Send { port, bytes, offload, .. } => Some((port.0, out.bytes(bytes).to_vec(), *offload)),
        _ => None,
    };
    out.items().iter().filter_map(send).collect()
}

#[test]
fn a_switch_gives_each_port_its_messages() {
    let compiler = compile(
        "add_order.side == \"B\" : fwd(2); trade.price >= 0 : fwd(3); 
        udp.destination_port == 26400 : fwd(1, 4); add_order.side == \"S\" : fwd(9);",
    );
    let ports = Ports::new((1..=4).map(|port| (Port(port), LinkType::Ethernet)));
    let mut switch = SubscriptionSwitch::new(&compiler, ports);
    let frame = weftwire_workload::itch_packet(20, 500, &mut Numbers::new(3));
    let mut out = Outbox::new();
    switch.frame(Time::ZERO, Port(1), Frame::new(&frame), &mut out);
    let copies = sent(&out);
    assert_eq!(copies.iter().map(|(port, ..)| *port).collect::<Vec<_>>(), [2, 3, 4]);
    let kind = |reference: u64| {
        let mut at = 62;
        for _ in 500..reference {
            at += 2 + usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
        }
        (frame[at + 2], frame[at + 21])
    };
    let of = |wanted: &dyn Fn((u8, u8)) -> bool| (500..520).filter(|it| wanted(kind(*it))).collect::<Vec<u64>>();
    assert_eq!(references(&copies[0].1), of(&|kind| kind == (b'A', b'B')));
    assert_eq!(references(&copies[1].1), of(&|(kind, _)| kind == b'P'));
    assert_eq!(copies[2].1, frame);
    // Port 9 is not there, port 1 is where the packet came in.
    let counters = switch.counters();
    assert_eq!((counters.frames_in, counters.frames_out), (1, 3));
    assert_eq!(counters.drops, BTreeMap::from([("no_port".to_owned(), 1)]));
    assert_eq!(counters.rows[0], ("messages".to_owned(), 20));

    // A checksum that the sender's hardware was to complete is left to the next.
    out.clear();
    let offload = Offload { checksum: Checksum::Partial, ..Offload::default() };
    switch.frame(Time::ZERO, Port(4), Frame { bytes: &frame, offload }, &mut out);
    assert!(sent(&out).iter().all(|(_, _, offload)| offload.checksum == Checksum::Partial));

    out.clear();
    let mut wrong = frame.clone();
    wrong[70] ^= 1;
    switch.frame(Time::ZERO, Port(1), Frame::new(&wrong), &mut out);
    assert!(out.items().is_empty());
    assert_eq!(switch.counters().drops["bad_checksum"], 1);
}
