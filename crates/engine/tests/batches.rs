//! Frames come in batches, in buffers that go over to the engine; outputs leave in them.

use crate::support::random::{self, Step};
use crate::support::*;
use proptest::prelude::*;
use weftwire_core::buffer::{HEADROOM, SMALL};
use weftwire_core::outbox::sent;
use weftwire_core::{
    Arrival, Arrivals, Buffer, Connections, Frame, Function, LinkType, Offload, Outbox, Output, Placed, Port, Ports,
};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_image::*;

const CURRENT: PacketRef = PacketRef::Current;

fn send(packet: PacketRef, port: i64) -> Operation {
    Operation::Send { packet, port: constant(port) }
}

fn engine(image: Image) -> ReferenceEngine {
    let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ethernet), (Port(3), LinkType::Ip)]);
    ReferenceEngine::new(verified(image), ports, EngineOptions::default()).expect("a verified image")
}

/// A frame in a buffer of a pool.
fn arrival(bytes: &[u8], out: &mut Outbox) -> Arrival {
    Arrival::copied(Port(1), Frame::new(bytes), out)
}

/// Outputs with their bytes, without where these lie.
fn seen(out: &Outbox) -> Vec<(Output, Vec<u8>)> {
    let plain = |output: &Output| match output.clone() {
        Output::Send { at, port, bytes, offload } => {
            let held = out.bytes(&bytes).to_vec();
            (Output::Send { at, port, bytes: Default::default(), offload }, held)
        }
        Output::Deliver { flow, bytes } => {
            let held = out.bytes(&bytes).to_vec();
            (Output::Deliver { flow, bytes: Default::default() }, held)
        }
        other => (other, Vec::new()),
    };
    out.items().iter().map(plain).collect()
}

#[test]
fn a_frame_is_sent_in_the_memory_that_it_came_in() {
    let mut image = machine();
    image.rows.push(row(0, Event::Packet, vec![send(CURRENT, 2)]));
    let (mut engine, mut out) = (engine(image), Outbox::new());
    let arrival = arrival(&datagram(1, b"data"), &mut out);
    let memory = arrival.buffer.as_ptr();
    engine.frames(at(0), &mut Arrivals::from([arrival]), &mut out);
    let frames: Vec<_> = out.items().iter().filter_map(|output| sent(&out, output)).collect();
    assert_eq!((frames[0].0, frames[0].1.bytes.as_ptr()), (Port(2), memory));
}

#[test]
fn a_link_header_comes_and_goes_in_the_headroom() {
    let mut image = machine();
    image.rows.push(row(0, Event::Packet, vec![send(CURRENT, 3)]));
    let (mut engine, mut out) = (engine(image), Outbox::new());
    let arrival = arrival(&datagram(1, b"data"), &mut out);
    let memory = arrival.buffer.as_ptr();
    engine.frames(at(0), &mut Arrivals::from([arrival]), &mut out);
    let frames: Vec<_> = out.items().iter().filter_map(|output| sent(&out, output)).collect();
    assert_eq!((frames[0].0, frames[0].1.bytes.as_ptr()), (Port(3), memory.wrapping_add(14)));
}

#[test]
fn ports_share_a_frame_that_does_not_change() {
    let mut image = machine();
    image.rows.push(row(
        0,
        Event::Packet,
        vec![send(CURRENT, 1), send(CURRENT, 2), send(CURRENT, 3), send(CURRENT, 2)],
    ));
    let (mut engine, mut out) = (engine(image), Outbox::new());
    let frame = datagram(1, b"data");
    let arrival = arrival(&frame, &mut out);
    engine.frames(at(0), &mut Arrivals::from([arrival]), &mut out);
    let frames: Vec<_> = out.items().iter().filter_map(|output| sent(&out, output)).collect();
    let ports: Vec<u16> = frames.iter().map(|(port, _)| port.0).collect();
    assert_eq!(ports, [1, 2, 3, 2]);
    let places: Vec<*const u8> = frames.iter().map(|(_, frame)| frame.bytes.as_ptr()).collect();
    assert!(places[0] == places[1] && places[1] != places[2]);
    let right = [&frame[..], &frame, &frame[14..], &frame];
    assert!(frames.iter().zip(right).all(|((_, frame), right)| frame.bytes == right));
}

#[test]
fn what_was_sent_does_not_change_any_more() {
    let mut image = machine();
    image.slots.push("kept".into());
    let resize = |length| Operation::Resize { packet: CURRENT, length: constant(length) };
    let kept = PacketRef::Slot(0);
    image.rows.push(row(
        0,
        Event::Packet,
        vec![
            send(CURRENT, 1),
            resize(2),
            send(CURRENT, 1),
            Operation::Copy { from: CURRENT, to: kept },
            Operation::Reverse { packet: CURRENT },
            send(CURRENT, 1),
            Operation::Copy { from: kept, to: PacketRef::Work },
            send(PacketRef::Work, 1),
            Operation::Resize { packet: PacketRef::Work, length: constant(0) },
            send(kept, 1),
            Operation::Resize { packet: kept, length: constant(0) },
        ],
    ));
    let (mut engine, mut out) = (engine(image), Outbox::new());
    let whole = datagram(1, b"data");
    let arrival = arrival(&whole, &mut out);
    engine.frames(at(0), &mut Arrivals::from([arrival]), &mut out);
    let frames: Vec<Vec<u8>> =
        out.items().iter().filter_map(|output| sent(&out, output)).map(|(_, frame)| frame.bytes.to_vec()).collect();
    let short = datagram(1, b"da");
    assert_eq!(frames.len(), 5);
    assert!(frames[0] == whole && frames[1] == short && frames[3] == short && frames[4] == short);
    assert_eq!((&frames[2][..6], &frames[2][6..12]), (&short[6..12], &short[..6]));
}

#[test]
fn a_stored_packet_leaves_the_buffers_of_the_pool() {
    let mut image = machine();
    image.slots.push("kept".into());
    image.rows.push(row(0, Event::Packet, vec![Operation::Copy { from: CURRENT, to: PacketRef::Slot(0) }]));
    let (mut engine, mut out) = (engine(image), Outbox::new());
    let first = arrival(&datagram(1, b"data"), &mut out);
    let memory = first.buffer.as_ptr();
    engine.frames(at(0), &mut Arrivals::from([first]), &mut out);
    out.clear();
    // The buffer is free again though the packet is kept.
    assert_eq!(arrival(&datagram(2, b"data"), &mut out).buffer.as_ptr(), memory);
}

#[test]
fn an_engine_stops_where_the_outbox_is_full_and_goes_on() {
    let mut image = machine();
    image.timers.push(timer("again", &[]));
    image.rows.push(row(0, Event::Packet, vec![send(CURRENT, 2), set_timer(0, 50)]));
    image.rows.push(row(0, Event::Timer(0), vec![notify(constant(7))]));
    let frames: Vec<Vec<u8>> = (0..40).map(|client| datagram(client % 7, &[client as u8; 100])).collect();
    let (mut whole, mut parted) = (Vec::new(), Vec::new());
    for (bound, seen_here) in [(usize::MAX, &mut whole), (400, &mut parted)] {
        let (mut engine, mut out) = (engine(image.clone()), Outbox::new().bounded(bound));
        let (mut calls, mut serial) = (0, 0);
        for now in [0, 60] {
            let mut arrivals: Arrivals = frames.iter().map(|frame| arrival(frame, &mut out)).collect();
            while !arrivals.is_empty() {
                engine.frames(at(now), &mut arrivals, &mut out);
                assert_eq!(out.first_serial(), serial);
                serial += out.items().len() as u64;
                seen_here.extend(seen(&out));
                out.clear();
                calls += 1;
            }
        }
        while engine.next_deadline().is_some() {
            engine.fire(at(1_000), &mut out);
            seen_here.extend(seen(&out));
            out.clear();
            calls += 1;
        }
        // The last call runs the timers.
        assert!(if bound == usize::MAX { calls == 3 } else { calls > 10 }, "{calls} calls");
    }
    assert_eq!(whole, parted);
    let order: Vec<bool> = whole.iter().map(|(output, _)| matches!(output, Output::Notify { .. })).collect();
    assert!(order.iter().filter(|notice| **notice).count() > 40, "timers fired");
}

#[test]
fn both_ways_of_a_flow_have_one_place() {
    let mut image = machine();
    image.flow.symmetric = true;
    image.rows.push(row(0, Event::Packet, vec![]));
    let engine = engine(image);
    let there = datagram(1, b"data");
    let formats = weftwire_core::Formats::default();
    let mut answer = weftwire_core::Packet::parse(LinkType::Ethernet, Frame::new(&there), &formats).unwrap();
    answer.reverse();
    answer.finish();
    let mut back = Buffer::default();
    answer.emit(LinkType::Ethernet, &mut back);
    let place = |frame: &[u8]| engine.place(&Placed::Frame(Port(1), Frame::new(frame)));
    assert!(place(&there).is_some());
    assert_eq!(place(&there), place(&back));
    assert_eq!(place(&there), engine.place(&Placed::Connection(&client(1))));
    assert_ne!(place(&there), place(&datagram(2, b"data")));
    assert_eq!(place(b"no packet"), None);
}

#[test]
fn buffers_are_large_enough_for_frames_of_an_ethernet_mtu() {
    let mut out = Outbox::new();
    let buffer = out.buffer(1_522);
    assert_eq!((buffer.headroom(), buffer.capacity()), (HEADROOM, SMALL));
}

/// Hands in what happens, frames of an instant together.
fn outputs(image: &VerifiedImage, steps: &[Step], bound: usize, together: bool) -> Vec<(Output, Vec<u8>)> {
    let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ip)]);
    let mut engine = ReferenceEngine::new(image.clone(), ports, EngineOptions::default()).expect("a verified image");
    let (mut out, mut arrivals, mut all) = (Outbox::tracing().bounded(bound), Arrivals::new(), Vec::new());
    let mut now = 0;
    let hand_in = |engine: &mut ReferenceEngine, now, arrivals: &mut Arrivals, out: &mut Outbox, all: &mut Vec<_>| {
        while !arrivals.is_empty() {
            engine.frames(at(now), arrivals, out);
            all.extend(seen(out));
            out.clear();
        }
    };
    for step in steps {
        let frame = match step {
            Step::Frame { port, client, tcp, payload } => {
                let bytes = if *tcp { segment(*client, &[8], payload) } else { datagram(*client, payload) };
                Some((Port(*port), if *port == 2 { bytes[14..].to_vec() } else { bytes }))
            }
            Step::Noise(bytes) => Some((Port(1), bytes.clone())),
            _ => None,
        };
        if let Some((port, bytes)) = frame {
            arrivals.push_back(Arrival { port, buffer: out.buffer_with(&bytes), offload: Offload::default() });
            if together {
                continue;
            }
        }
        hand_in(&mut engine, now, &mut arrivals, &mut out, &mut all);
        match step {
            Step::Connect(number) => drop(engine.connect(at(now), &client(*number), &mut out)),
            Step::Fire => {
                while engine.next_deadline().is_some_and(|deadline| deadline.at <= at(now)) {
                    engine.fire(at(now), &mut out);
                    all.extend(seen(&out));
                    out.clear();
                }
            }
            Step::Wait(time) => now += time,
            _ => {}
        }
        all.extend(seen(&out));
        out.clear();
    }
    hand_in(&mut engine, now, &mut arrivals, &mut out, &mut all);
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// How frames are put together, and how full the outbox may be, makes no difference to what comes out.
    #[test]
    fn batches_and_bounds_change_nothing(image in random::image(), steps in random::steps(), bound in 1..3_000_usize) {
        let image = verified(image);
        let one_by_one = outputs(&image, &steps, usize::MAX, false);
        prop_assert_eq!(&outputs(&image, &steps, usize::MAX, true), &one_by_one);
        prop_assert_eq!(&outputs(&image, &steps, bound, true), &one_by_one);
    }
}
