//! The two ends of a stream in datagrams and a path between them with a bottleneck, in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::{Path as FilePath, PathBuf};
use weftwire_core::inspect::Inspect;
use weftwire_core::{
    Connections, Endpoints, FlowId, Frame, Function, LinkType, Listen, MacAddress, Outbox, Output, Port, Ports, Time,
};
use weftwire_engine::{EngineOptions, ReferenceEngine, Runtime};
use weftwire_image::VerifiedImage;
use weftwire_lang::{Dialect, compile};
use weftwire_text::{LoadError, Loader};

struct Folder(PathBuf);

impl Loader for Folder {
    fn load(&self, name: &str, _from: Option<&str>) -> Result<String, LoadError> {
        std::fs::read_to_string(self.0.join(name)).map_err(LoadError::from)
    }
}

fn machine(name: &str, registers: &[(&str, i64)]) -> VerifiedImage {
    let folder = Folder(FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/transports/stream"));
    let compiled = compile(name, Dialect::Xl, &folder);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let mut image = compiled.image.expect("a right program");
    for (name, value) in registers {
        let register = image.registers.iter_mut().find(|register| register.name == *name).expect("a register");
        register.initial = register.kind.cut(*value);
    }
    image.seal();
    image.verify().unwrap_or_else(|error| panic!("{error}"))
}

/// What lies between the ends.
#[derive(Clone, Debug)]
pub struct Between {
    /// Bits per second towards the receiver, from these times on.
    pub rates: Vec<(i64, i64)>,
    /// One way, from these times on; of what leaves first behind a change, at once.
    pub delays: Vec<(i64, i64)>,
    /// Bytes that wait for the bottleneck at most.
    pub queue: i64,
    /// Parts of a thousand, in both directions.
    pub lost: u64,
    pub doubled: u64,
    pub late: u64,
}

impl Between {
    /// A rate, a delay and a queue, which loses nothing else.
    pub fn clean(rate: i64, delay: i64, queue: i64) -> Between {
        Between { rates: vec![(0, rate)], delays: vec![(0, delay)], queue, lost: 0, doubled: 0, late: 0 }
    }
}

/// Where fields of the stream's header stand: behind Ethernet, IPv4 and UDP.
const SEQUENCE: usize = 46;
const DELAY: usize = 54;
const LEFT: usize = 58;

fn word(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes"))
}

fn at(table: &[(i64, i64)], now: i64) -> i64 {
    table.iter().rfind(|(from, _)| *from <= now).expect("from the start").1
}

/// An acknowledgment as it comes to the sender, and the sender when it comes.
pub struct Answer {
    pub delay: u32,
    /// Nanoseconds since the data that it answers left.
    pub trip: i64,
    pub una: i64,
    pub next: i64,
}

/// A frame under way: when it arrives, its number, to which end.
type Flying = Reverse<(i64, u64, usize, Vec<u8>)>;

pub struct Path {
    pub now: i64,
    pub received: Vec<u8>,
    /// Bytes that the bottleneck was given, those dropped, and when it is free.
    pub carried: i64,
    pub dropped: usize,
    free: i64,
    /// When data left last, by the number of its first byte.
    left: BTreeMap<u32, i64>,
    between: Between,
    engines: [ReferenceEngine; 2],
    out: Outbox,
    flow: FlowId,
    receiver: Option<FlowId>,
    to_send: Vec<u8>,
    written: usize,
    closed: bool,
    pub ended: bool,
    pub notices: Vec<String>,
    /// What left: for which end, and the frame; and what arrived, likewise.
    pub sent: Vec<(usize, Vec<u8>)>,
    pub arrived: Vec<(usize, Vec<u8>)>,
    flying: BinaryHeap<Flying>,
    number: u64,
    seed: u64,
}

impl Path {
    /// The sender has these values in registers from the start.
    pub fn new(registers: &[(&str, i64)], between: Between, to_send: Vec<u8>, seed: u64) -> Path {
        Path::of(["sender.xl", "receiver.xl"], registers, between, to_send, seed)
    }

    /// The same with other programs.
    pub fn of(
        [sender, receiver]: [&str; 2],
        registers: &[(&str, i64)],
        between: Between,
        to_send: Vec<u8>,
        seed: u64,
    ) -> Path {
        let ports = || Ports::new([(Port(1), LinkType::Ethernet)]);
        let engine = |image| {
            Runtime::new(image, ports(), EngineOptions { seed, ..EngineOptions::default() }).expect("an engine")
        };
        let mut engines = [engine(machine(sender, registers)), engine(machine(receiver, &[]))];
        let mut out = Outbox::new();
        let endpoints = Endpoints {
            protocol: 17,
            local_address: [10, 0, 0, 1].into(),
            local_port: 4_000,
            remote_address: [10, 0, 0, 2].into(),
            remote_port: 5_000,
            local_mac: MacAddress([2; 6]),
            remote_mac: MacAddress([4; 6]),
            vlan: None,
        };
        let listen = Listen { address: None, port: Some(endpoints.remote_port) };
        engines[1].listen(Time::ZERO, &listen, &mut out).expect("it listens");
        let flow = engines[0].connect(Time::ZERO, &endpoints, &mut out).expect("a flow");
        let mut path = Path {
            now: 0,
            received: Vec::new(),
            carried: 0,
            dropped: 0,
            free: 0,
            left: BTreeMap::new(),
            between,
            engines,
            out,
            flow,
            receiver: None,
            to_send,
            written: 0,
            closed: false,
            ended: false,
            notices: Vec::new(),
            sent: Vec::new(),
            arrived: Vec::new(),
            flying: BinaryHeap::new(),
            number: 0,
            seed,
        };
        path.after(0);
        path
    }

    pub fn register(&self, name: &str) -> i64 {
        let detail = self.engines[0].flow(self.flow).expect("the sender is there");
        detail.registers.iter().find(|register| register.name == name).expect("a register").value
    }

    fn dice(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % 1_000
    }

    /// Sends what an end has put out; its application writes and reads.
    fn after(&mut self, end: usize) {
        loop {
            let (mut frames, mut unread, mut again) = (Vec::new(), 0, false);
            for item in self.out.items() {
                match item {
                    Output::Send { bytes, .. } => frames.push(self.out.bytes(bytes).to_vec()),
                    Output::Deliver { bytes, flow, .. } => {
                        self.receiver = Some(*flow);
                        self.received.extend_from_slice(self.out.bytes(bytes));
                        unread += self.out.bytes(bytes).len();
                    }
                    Output::Notify { notice, .. } => {
                        self.notices.push(self.engines[end].notice_name(*notice).to_owned());
                    }
                    Output::Ended { .. } => self.ended |= end == 0,
                    _ => {}
                }
            }
            self.out.clear();
            frames.into_iter().for_each(|frame| self.leaves(1 - end, frame));
            let at = Time::from_nanoseconds(self.now);
            if unread > 0 {
                let flow = self.receiver.expect("it delivers");
                self.engines[1].consumed(at, flow, unread, &mut self.out).expect("the receiver is there");
                again = true;
            }
            if end == 0 && !self.ended {
                let rest = &self.to_send[self.written..];
                if !rest.is_empty() {
                    let accepted =
                        self.engines[0].write(at, self.flow, rest, &mut self.out).expect("the sender is there");
                    self.written += accepted;
                    again |= accepted > 0;
                } else if !self.closed {
                    self.closed = true;
                    self.engines[0].close(at, self.flow, &mut self.out).expect("the sender is there");
                    again = true;
                }
            }
            if !again {
                return self.check();
            }
        }
    }

    /// While something is not acknowledged, or not sent, a timer is pending.
    fn check(&self) {
        let Some(detail) = self.engines[0].flow(self.flow) else { return };
        let waits = self.register("una") != self.register("next") || self.written > self.register("una") as usize;
        assert!(
            !waits || detail.timers.iter().any(|timer| timer.name == "silence"),
            "nothing would get it going again"
        );
    }

    fn leaves(&mut self, to: usize, frame: Vec<u8>) {
        self.sent.push((to, frame.clone()));
        if to == 1 {
            self.left.insert(word(&frame, SEQUENCE), self.now);
        }
        if self.dice() < self.between.lost {
            return;
        }
        let mut arrives = self.now + at(&self.between.delays, self.now);
        if to == 1 {
            let (rate, length) = (at(&self.between.rates, self.now), frame.len() as i64);
            if (self.free - self.now) as i128 * i128::from(rate) > i128::from(self.between.queue) * 8_000_000_000 {
                self.dropped += 1;
                return;
            }
            self.free = self.free.max(self.now) + length * 8_000_000_000 / rate;
            self.carried += length;
            arrives += self.free - self.now;
        }
        for _ in 0..1 + u32::from(self.dice() < self.between.doubled) {
            let late = if self.dice() < self.between.late { 3_000_000 } else { 0 };
            self.number += 1;
            self.flying.push(Reverse((arrives + late, self.number, to, frame.clone())));
        }
    }

    /// The next thing that happens, and the acknowledgment if it is one; nothing if nothing is to come.
    pub fn step(&mut self) -> Option<Option<Answer>> {
        let due = (0..2).filter_map(|end| Some((self.engines[end].next_deadline()?.at.nanoseconds(), end))).min();
        let frame = self.flying.peek().map(|Reverse((at, ..))| *at);
        let mut answer = None;
        match (frame, due) {
            (Some(at), due) if due.is_none_or(|(timer, _)| at <= timer) => {
                let Reverse((at, _, to, bytes)) = self.flying.pop().expect("one is there");
                self.now = self.now.max(at);
                if to == 0 && !self.ended {
                    let (una, next) = (self.register("una"), self.register("next"));
                    if let Some(left) = bytes.get(LEFT..LEFT + 4).and_then(|_| self.left.get(&word(&bytes, LEFT))) {
                        answer = Some(Answer { delay: word(&bytes, DELAY), trip: self.now - left, una, next });
                    }
                }
                self.arrived.push((to, bytes.clone()));
                self.engines[to].frame(Time::from_nanoseconds(self.now), Port(1), Frame::new(&bytes), &mut self.out);
                self.after(to);
            }
            (_, Some((at, end))) => {
                self.now = self.now.max(at);
                self.engines[end].fire(Time::from_nanoseconds(self.now), &mut self.out);
                self.now += 1;
                self.after(end);
            }
            _ => return None,
        }
        Some(answer)
    }

    /// Until the stream has ended.
    pub fn run(&mut self) {
        while !self.ended {
            assert!(self.now < 3_600_000_000_000, "it does not end");
            self.step().expect("something is to come");
        }
    }

    /// Until this time.
    pub fn run_until(&mut self, time: i64) {
        while self.now < time {
            self.step().expect("something is to come");
        }
    }
}
