//! What is measured: one packet a call.

use std::hint::black_box;

use weftwire_core::port::{Checksum, SegmentationKind};
use weftwire_core::{
    Arrival, Arrivals, Buffer, Formats, Frame, Function, LinkType, Offload, Outbox, Output, Packet, Port, Ports,
    Segmentation, Time,
};
use weftwire_engine::{EngineOptions, make};
use weftwire_lang::{Dialect, compile};
use weftwire_text::{LoadError, Loader};

use super::tcp;
use super::traffic::{ARQ_SEQUENCE, Client, arq_data, sequence};

/// Flows of the SYN proxy's full table.
pub const TABLE: u32 = 65_536;
/// Payload bytes of a segment with time stamps in an Ethernet frame of full size.
pub const SEGMENT: usize = 1_448;
/// Virtual time between packets, in nanoseconds.
pub const INTERVAL: i64 = 1_000;

const CLIENTS: Port = Port(1);
const SERVERS: Port = Port(2);
const VERIFIED: Offload = Offload { segmentation: None, checksum: Checksum::Verified };
const UNVERIFIED: Offload = Offload { segmentation: None, checksum: Checksum::Unverified };
const SUPER_FRAME: Offload = Offload {
    segmentation: Some(Segmentation { size: SEGMENT as u16, kind: SegmentationKind::TcpIpv4 { ecn: false } }),
    checksum: Checksum::Partial,
};

/// Something to measure.
pub struct Case {
    /// A word to choose it by.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Makes everything ready and returns what handles one packet.
    pub prepare: fn() -> Box<dyn FnMut()>,
}

/// All cases, the cheapest first.
pub const CASES: [Case; 17] = [
    Case { name: "copy-ack", what: "copy an ACK of 66 bytes", prepare: || copy(ack()) },
    Case { name: "copy-data", what: "copy a segment of 1,514 bytes", prepare: || copy(data()) },
    Case { name: "etherparse-ack", what: "etherparse slices the ACK", prepare: || etherparse(ack()) },
    Case { name: "etherparse-data", what: "etherparse slices the segment", prepare: || etherparse(data()) },
    Case { name: "packet-ack", what: "parse, finish and emit the ACK", prepare: || packet(ack(), VERIFIED) },
    Case { name: "packet-data", what: "parse, finish and emit the segment", prepare: || packet(data(), VERIFIED) },
    Case { name: "ack-1k", what: "SYN proxy, ACK, 1,024 flows", prepare: || acks(1_024, 0) },
    Case { name: "ack-64k", what: "SYN proxy, ACK, 65,536 flows", prepare: || acks(TABLE, 0) },
    Case { name: "sack-1k", what: "SYN proxy, ACK with 3 SACK blocks, 1,024 flows", prepare: || acks(1_024, 3) },
    Case { name: "sack-64k", what: "SYN proxy, ACK with 3 SACK blocks, 65,536 flows", prepare: || acks(TABLE, 3) },
    Case { name: "data-1k", what: "SYN proxy, segment, 1,024 flows", prepare: || segments(1_024, SEGMENT, VERIFIED) },
    Case { name: "data-64k", what: "SYN proxy, segment, 65,536 flows", prepare: || segments(TABLE, SEGMENT, VERIFIED) },
    Case {
        name: "data-unverified",
        what: "SYN proxy, segment with its checksum to verify, 1 flow",
        prepare: || segments(1, SEGMENT, UNVERIFIED),
    },
    Case {
        name: "super-frame",
        what: "SYN proxy, 45 segments in one frame of 64 KB, 1,024 flows",
        prepare: || segments(1_024, 45 * SEGMENT, SUPER_FRAME),
    },
    Case { name: "syn-flood", what: "SYN proxy, SYN of a new client, full table", prepare: flood },
    Case { name: "arq", what: "ARQ receiver, 1,000 bytes delivered and acknowledged", prepare: arq },
    Case {
        name: "tcp",
        what: "TCP, a segment from one end to the other, acknowledged by twos",
        prepare: tcp::segments,
    },
];

fn ack() -> Vec<u8> {
    Client(0).ack(1, 0)
}

fn data() -> Vec<u8> {
    Client(0).server_data(SEGMENT)
}

fn copy(frame: Vec<u8>) -> Box<dyn FnMut()> {
    let mut buffer = vec![0; frame.len()];
    Box::new(move || {
        buffer.copy_from_slice(black_box(&frame));
        black_box(&mut buffer);
    })
}

fn etherparse(frame: Vec<u8>) -> Box<dyn FnMut()> {
    Box::new(move || {
        let sliced = etherparse::SlicedPacket::from_ethernet(black_box(&frame));
        assert!(black_box(sliced).is_ok_and(|packet| packet.transport.is_some()));
    })
}

fn packet(frame: Vec<u8>, offload: Offload) -> Box<dyn FnMut()> {
    let (formats, mut buffer) = (Formats::default(), Buffer::default());
    Box::new(move || {
        let frame = Frame { bytes: black_box(&frame), offload };
        let mut packet = Packet::parse(LinkType::Ethernet, frame, &formats).expect("the frame is well-formed");
        packet.finish();
        black_box(packet.emit(LinkType::Ethernet, &mut buffer));
    })
}

/// Clients' ACKs in established flows.
fn acks(flows: u32, sack_blocks: u32) -> Box<dyn FnMut()> {
    let (machine, sequences) = established(flows);
    let frames = (0..flows).map(|client| {
        let acknowledgment = sequences[client as usize].wrapping_add(SEGMENT as u32);
        Client(client).ack(acknowledgment, sack_blocks)
    });
    in_turns(machine, CLIENTS, frames.collect(), VERIFIED)
}

/// The server's segments in established flows.
fn segments(flows: u32, payload: usize, offload: Offload) -> Box<dyn FnMut()> {
    let (mut machine, _) = established(flows);
    // Only the headers differ; with a payload for each, the frames would not fit the memory.
    let mut frame = Client(0).server_data(payload);
    let headers = frame.len() - payload;
    let mut turns = Turns::new((0..flows).map(|it| Client(it).server_data(payload)[..headers].to_vec()).collect());
    Box::new(move || {
        frame[..headers].copy_from_slice(turns.next());
        machine.handle(SERVERS, &frame, offload);
    })
}

/// SYNs of ever new clients, in a table that is full of half-open flows.
fn flood() -> Box<dyn FnMut()> {
    let mut machine = half_open(TABLE);
    let mut frame = Client(0).syn();
    let mut client = TABLE;
    Box::new(move || {
        client += 1;
        Client(client).claim(&mut frame);
        machine.handle(CLIENTS, &frame, VERIFIED);
    })
}

fn arq() -> Box<dyn FnMut()> {
    let mut machine = Harness::new("arq-receiver.xl");
    let mut frame = arq_data();
    let mut number = 0u32;
    Box::new(move || {
        number += 1;
        frame[ARQ_SEQUENCE..ARQ_SEQUENCE + 4].copy_from_slice(&number.to_be_bytes());
        machine.handle(CLIENTS, &frame, VERIFIED);
    })
}

fn in_turns(mut machine: Harness, port: Port, frames: Vec<Vec<u8>>, offload: Offload) -> Box<dyn FnMut()> {
    let mut turns = Turns::new(frames);
    Box::new(move || {
        machine.handle(port, turns.next(), offload);
    })
}

/// Frames, one after the other in an order that caches and prefetchers do not foresee. A power of two of them.
struct Turns {
    frames: Vec<Vec<u8>>,
    next: usize,
}

impl Turns {
    fn new(frames: Vec<Vec<u8>>) -> Turns {
        Turns { frames, next: 0 }
    }

    fn next(&mut self) -> &[u8] {
        // Odd, so that every frame has its turn.
        self.next = self.next.wrapping_add(40_503) & (self.frames.len() - 1);
        &self.frames[self.next]
    }
}

/// A SYN proxy with this many half-open flows.
pub fn half_open(flows: u32) -> Harness {
    let mut machine = Harness::new("syn-proxy.xl");
    for client in 0..flows {
        machine.handle(CLIENTS, &Client(client).syn(), VERIFIED);
    }
    machine
}

/// A SYN proxy with this many established flows, and the sequence numbers that the clients know as the server's.
pub fn established(flows: u32) -> (Harness, Vec<u32>) {
    let mut machine = Harness::new("syn-proxy.xl");
    let mut sequences = Vec::new();
    for client in (0..flows).map(Client) {
        let answer = machine.handle(CLIENTS, &client.syn(), VERIFIED);
        sequences.push(sequence(answer));
        let acknowledgment = sequence(answer).wrapping_add(1);
        machine.handle(CLIENTS, &client.ack(acknowledgment, 0), VERIFIED);
        machine.handle(SERVERS, &client.server_syn_ack(), VERIFIED);
    }
    (machine, sequences)
}

/// A function with its clock.
pub struct Harness {
    function: Box<dyn Function>,
    arrivals: Arrivals,
    out: Outbox,
    now: Time,
}

impl Harness {
    /// The reference engine with one of the example programs.
    fn new(program: &str) -> Harness {
        let compiled = compile(program, Dialect::Xl, &Examples).image.expect("the examples compile");
        let image = compiled.verify().expect("the compiler makes images that verify");
        let ports = Ports::new([CLIENTS, SERVERS].map(|port| (port, LinkType::Ethernet)));
        let function = make("reference", image, ports, EngineOptions::default()).expect("the engine exists");
        Harness { function, arrivals: Arrivals::new(), out: Outbox::new(), now: Time::ZERO }
    }

    /// Handles one frame, and returns the first that it was answered or forwarded with: in all cases here there is one.
    fn handle(&mut self, port: Port, bytes: &[u8], offload: Offload) -> &[u8] {
        self.now = self.now.after(INTERVAL);
        self.out.clear();
        self.arrivals.push_back(Arrival::copied(port, Frame { bytes, offload }, &mut self.out));
        self.function.frames(self.now, &mut self.arrivals, &mut self.out);
        let sent = self.out.items().iter().find_map(|item| match item {
            Output::Send { bytes, .. } => Some(self.out.bytes(bytes)),
            _ => None,
        });
        sent.expect("every packet of these cases leads to one")
    }
}

/// The example programs.
struct Examples;

impl Loader for Examples {
    fn load(&self, name: &str, _from: Option<&str>) -> Result<String, LoadError> {
        let text = match name {
            "syn-proxy.xl" => include_str!("../../../../examples/syn-proxy.xl"),
            "arq-receiver.xl" => include_str!("../../../../examples/arq-receiver.xl"),
            "arq.p4" => include_str!("../../../../examples/arq.p4"),
            _ => return Err(LoadError::Unknown(name.to_owned())),
        };
        Ok(text.to_owned())
    }
}
