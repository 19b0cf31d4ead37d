//! The two ends of a RoCEv2 connection in virtual time, and packets written by hand from the specification.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use weftwire_core::inspect::Inspect;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
use weftwire_core::{
    Connections, Endpoints, FlowId, Frame, Function, LinkType, MacAddress, Outbox, Output, Port, Ports, Time,
};
use weftwire_engine::{EngineOptions, ReferenceEngine, Runtime};
use weftwire_image::VerifiedImage;
use weftwire_lang::{Dialect, compile};
use weftwire_text::{LoadError, Loader};

pub const MICROSECOND: i64 = 1_000;
pub const MILLISECOND: i64 = 1_000_000;
pub const PORT: u16 = 40_000;
const REQUESTER: [u8; 4] = [10, 0, 0, 1];
const RESPONDER: [u8; 4] = [10, 0, 0, 2];

struct Folder(PathBuf);

impl Loader for Folder {
    fn load(&self, name: &str, _from: Option<&str>) -> Result<String, LoadError> {
        std::fs::read_to_string(self.0.join(name)).map_err(LoadError::from)
    }
}

fn machine(name: &str, registers: &[(&str, i64)]) -> VerifiedImage {
    let folder = Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/transports/roce"));
    let compiled = compile(name, Dialect::Xl, &folder);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let mut image = compiled.image.expect("a right program");
    for (name, value) in registers {
        if let Some(register) = image.registers.iter_mut().find(|register| register.name == *name) {
            register.initial = register.kind.cut(*value);
        }
    }
    image.seal();
    image.verify().unwrap_or_else(|error| panic!("{error}"))
}

/// A packet behind UDP as the specification has it (9.2): without the invariant CRC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wire {
    pub opcode: u8,
    pub pads: u8,
    pub becn: bool,
    pub pair: u32,
    pub asks: bool,
    pub psn: u32,
    /// Behind the base transport header, with the padding.
    pub rest: Vec<u8>,
}

impl Wire {
    /// An acknowledgment (9.7.5.2) with this syndrome.
    pub fn reply(pair: u32, psn: u32, syndrome: u8, messages: u32) -> Wire {
        let rest = (u32::from(syndrome) << 24 | messages).to_be_bytes().to_vec();
        Wire { opcode: 0x11, pads: 0, becn: false, pair, asks: false, psn, rest }
    }

    /// A notification of congestion (A17.9.3).
    pub fn notification(pair: u32) -> Wire {
        Wire { opcode: 0x81, pads: 0, becn: true, pair, asks: false, psn: 0, rest: vec![0; 16] }
    }

    /// Reads a frame, whose CRC has to be right.
    pub fn read(frame: &[u8]) -> Wire {
        let (bytes, crc) = frame.split_at(frame.len() - 4);
        assert_eq!(crc, invariant_crc(bytes), "the invariant CRC");
        assert_eq!(&bytes[36..38], 4791_u16.to_be_bytes(), "the UDP port");
        let bth = &bytes[42..54];
        assert_eq!((bth[1] & 0x4f, &bth[2..4]), (0, &[0xff, 0xff][..]), "version and partition");
        let wide = |at: usize| u32::from_be_bytes([0, bth[at], bth[at + 1], bth[at + 2]]);
        Wire {
            opcode: bth[0],
            pads: bth[1] >> 4 & 3,
            becn: bth[4] & 0x40 != 0,
            pair: wide(5),
            asks: bth[8] & 0x80 != 0,
            psn: wide(9),
            rest: bytes[54..].to_vec(),
        }
    }

    /// As a frame from the responder to the requester, or the other way.
    pub fn frame(&self, to_requester: bool) -> Vec<u8> {
        let mut behind = vec![self.opcode, self.pads << 4, 0xff, 0xff];
        behind.extend((u32::from(self.becn) << 30 | self.pair).to_be_bytes());
        behind.extend((u32::from(self.asks) << 31 | self.psn).to_be_bytes());
        behind.extend(&self.rest);
        behind.extend([0; 4]);
        let (source, destination) = if to_requester { (RESPONDER, REQUESTER) } else { (REQUESTER, RESPONDER) };
        let ip = Ipv4Fields { source: source.into(), destination: destination.into(), ..Ipv4Fields::default() };
        let frame = FrameBuilder::ethernet([2; 6], [4; 6]).ipv4(&ip).udp(PORT, 4791).payload(&behind);
        let mut frame = frame.finish().expect("a short frame").to_vec();
        frame[40..42].fill(0);
        let end = frame.len() - 4;
        let crc = invariant_crc(&frame[..end]);
        frame[end..].copy_from_slice(&crc);
        frame
    }
}

/// The invariant CRC over an IPv4 frame without it, bit by bit (7.8.1, A17.3).
fn invariant_crc(frame: &[u8]) -> [u8; 4] {
    let mut covered = [&[0xff; 8], &frame[14..]].concat();
    for ones in [9, 16, 18, 19, 34, 35, 40] {
        covered[ones] = 0xff;
    }
    let mut crc = u32::MAX;
    for bit in covered.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1)) {
        crc = crc >> 1 ^ if (crc ^ u32::from(bit)) & 1 == 1 { 0xedb8_8320 } else { 0 };
    }
    (!crc).to_le_bytes()
}

/// What becomes of a frame that an end sends: how much later than others its copies arrive, none if it is lost.
pub type Fate = Box<dyn FnMut(usize, &mut Vec<u8>) -> Vec<i64>>;

/// A frame under way: when it arrives, its number, to which end.
type Flying = Reverse<(i64, u64, usize, Vec<u8>)>;

/// The requester is end 0.
pub struct Ends {
    pub now: i64,
    pub received: Vec<u8>,
    pub notices: Vec<String>,
    /// What each end has sent, and when.
    pub sent: [Vec<(i64, Vec<u8>)>; 2],
    /// The receiving application reads at once.
    pub reads: bool,
    pub ended: bool,
    engines: [ReferenceEngine; 2],
    out: Outbox,
    flow: FlowId,
    receiver: Option<FlowId>,
    unread: usize,
    to_send: Vec<u8>,
    written: usize,
    closes: bool,
    closed: bool,
    fate: Fate,
    flying: BinaryHeap<Flying>,
    number: u64,
}

/// One way.
const DELAY: i64 = 5 * MICROSECOND;

impl Ends {
    /// Both have these values in registers, as far as they have them. Without `closes` the stream does not end.
    pub fn new(registers: &[(&str, i64)], to_send: Vec<u8>, closes: bool, fate: Fate) -> Ends {
        let engine = |name| {
            let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
            Runtime::new(machine(name, registers), ports, EngineOptions::default()).expect("an engine")
        };
        let mut engines: [ReferenceEngine; 2] = [engine("requester.xl"), engine("responder.xl")];
        let mut out = Outbox::new();
        let endpoints = Endpoints {
            protocol: 17,
            local_address: REQUESTER.into(),
            local_port: PORT,
            remote_address: RESPONDER.into(),
            remote_port: 4791,
            local_mac: MacAddress([2; 6]),
            remote_mac: MacAddress([4; 6]),
            vlan: None,
        };
        let flow = engines[0].connect(Time::ZERO, &endpoints, &mut out).expect("a flow");
        let mut ends = Ends {
            now: 0,
            received: Vec::new(),
            notices: Vec::new(),
            sent: Default::default(),
            reads: true,
            ended: false,
            engines,
            out,
            flow,
            receiver: None,
            unread: 0,
            to_send,
            written: 0,
            closes,
            closed: false,
            fate,
            flying: BinaryHeap::new(),
            number: 0,
        };
        ends.after(0);
        ends
    }

    pub fn register(&self, name: &str) -> i64 {
        let detail = self.engines[0].flow(self.flow).expect("the requester is there");
        detail.registers.iter().find(|register| register.name == name).expect("a register").value
    }

    /// Frames that an end has dropped for a reason.
    pub fn dropped(&self, end: usize, reason: &str) -> u64 {
        self.engines[end].counters().drops.get(reason).copied().unwrap_or(0)
    }

    /// A frame arrives at an end now.
    pub fn arrives(&mut self, end: usize, frame: &[u8]) {
        self.engines[end].frame(Time::from_nanoseconds(self.now), Port(1), Frame::new(frame), &mut self.out);
        self.after(end);
    }

    /// The receiving application reads all that has come.
    pub fn read(&mut self) {
        let (at, unread) = (Time::from_nanoseconds(self.now), std::mem::take(&mut self.unread));
        if let (Some(flow), 1..) = (self.receiver, unread) {
            self.engines[1].consumed(at, flow, unread, &mut self.out).expect("the responder is there");
            self.after(1);
        }
    }

    /// Sends what an end has put out; its application writes and reads.
    fn after(&mut self, end: usize) {
        loop {
            let (mut frames, mut again) = (Vec::new(), false);
            for item in self.out.items() {
                match item {
                    Output::Send { bytes, .. } => frames.push(self.out.bytes(bytes).to_vec()),
                    Output::Deliver { bytes, flow, .. } => {
                        self.receiver = Some(*flow);
                        self.received.extend_from_slice(self.out.bytes(bytes));
                        self.unread += self.out.bytes(bytes).len();
                    }
                    Output::Notify { notice, .. } => {
                        self.notices.push(self.engines[end].notice_name(*notice).to_owned());
                    }
                    Output::Ended { .. } => self.ended |= end == 0,
                    _ => {}
                }
            }
            self.out.clear();
            for mut frame in frames {
                self.sent[end].push((self.now, frame.clone()));
                for late in (self.fate)(end, &mut frame) {
                    self.number += 1;
                    self.flying.push(Reverse((self.now + DELAY + late, self.number, 1 - end, frame.clone())));
                }
            }
            let at = Time::from_nanoseconds(self.now);
            if end == 0 && !self.ended {
                let rest = &self.to_send[self.written..];
                if !rest.is_empty() {
                    let accepted = self.engines[0].write(at, self.flow, rest, &mut self.out).expect("it is there");
                    self.written += accepted;
                    // A call behind a frame of its instant first runs the timers of that instant (semantics, E2).
                    again |= !self.out.items().is_empty();
                } else if self.closes && !self.closed {
                    self.closed = true;
                    self.engines[0].close(at, self.flow, &mut self.out).expect("it is there");
                    again = true;
                }
            }
            if !again {
                break;
            }
        }
        if end == 1 && self.reads {
            self.read();
        }
    }

    /// When the next thing happens; nothing if nothing is to come.
    pub fn next(&self) -> Option<i64> {
        let due = (0..2).filter_map(|end| Some(self.engines[end].next_deadline()?.at.nanoseconds())).min();
        let frame = self.flying.peek().map(|Reverse((at, ..))| *at);
        [due, frame].into_iter().flatten().min().map(|at| at.max(self.now))
    }

    /// Lets the next thing happen; `false` if nothing is to come.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.next() else { return false };
        self.now = next;
        match self.flying.peek() {
            Some(Reverse((at, ..))) if *at <= next => {
                let Reverse((_, _, to, bytes)) = self.flying.pop().expect("it is there");
                self.arrives(to, &bytes);
            }
            _ => {
                for end in 0..2 {
                    if self.engines[end].next_deadline().is_some_and(|due| due.at.nanoseconds() <= next) {
                        self.engines[end].fire(Time::from_nanoseconds(next), &mut self.out);
                        self.after(end);
                    }
                }
            }
        }
        true
    }

    /// Until the requester's stream has ended, in whatever way.
    pub fn run(&mut self) {
        while !self.ended {
            assert!(self.now < 100_000 * MILLISECOND && self.step(), "it does not end");
        }
    }

    /// Until this time.
    pub fn run_until(&mut self, time: i64) {
        while self.next().is_some_and(|next| next <= time) {
            self.step();
        }
        self.now = self.now.max(time);
    }
}
