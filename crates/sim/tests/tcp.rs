//! The TCP of `examples/transports/tcp`, both ends of it, over a line that loses, doubles, delays and reorders: every byte
//! arrives once and in order, both ends close, and after every event something is pending that gets things going again.
#![allow(clippy::disallowed_methods, reason = "a test reads an example")]

use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use weftwire_core::inspect::{FlowDetail, Inspect};

use weftwire_core::{
    Connections, Endpoints, FlowId, Frame, Function, LinkType, Listen, MacAddress, Outbox, Output, Port, Ports, Time,
    segments,
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

/// The machine, with these values in registers from the start.
fn machine(registers: &[(&str, i64)]) -> VerifiedImage {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/transports/tcp");
    let compiled = compile("tcp.xl", Dialect::Xl, &Folder(folder));
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let mut image = compiled.image.expect("a right program");
    for (name, value) in registers {
        let register = image.registers.iter_mut().find(|register| register.name == *name).expect("a register");
        register.initial = register.kind.cut(*value);
    }
    image.seal();
    image.verify().unwrap_or_else(|error| panic!("{error}"))
}

/// What the line does to frames, in parts of a thousand, and how long they take.
#[derive(Clone, Copy, Debug)]
struct Line {
    lost: u64,
    doubled: u64,
    late: u64,
    delay: i64,
}

const CLEAN: Line = Line { lost: 0, doubled: 0, late: 0, delay: 5_000_000 };

/// One end.
struct End {
    engine: ReferenceEngine,
    out: Outbox,
    flow: Option<FlowId>,
    to_send: Vec<u8>,
    written: usize,
    closed: bool,
    received: Vec<u8>,
    notices: Vec<String>,
    ended: bool,
    /// Bytes of payload that left.
    sent: usize,
}

/// A frame under way: when it arrives, its number, to which end.
type Flying = Reverse<(i64, u64, usize, Vec<u8>)>;

/// Two ends and a line between them, in virtual time.
struct Connection {
    ends: [End; 2],
    line: Line,
    seed: u64,
    now: i64,
    flying: BinaryHeap<Flying>,
    number: u64,
    lost: usize,
}

fn endpoints() -> Endpoints {
    Endpoints {
        protocol: 6,
        local_address: [10, 0, 0, 1].into(),
        local_port: 4_000,
        remote_address: [10, 0, 0, 2].into(),
        remote_port: 80,
        local_mac: MacAddress([2; 6]),
        remote_mac: MacAddress([4; 6]),
        vlan: None,
    }
}

impl Connection {
    fn new(images: [VerifiedImage; 2], data: [Vec<u8>; 2], line: Line, seed: u64) -> Connection {
        let ports = || Ports::new([(Port(1), LinkType::Ethernet)]);
        let end = |(image, to_send)| End {
            engine: Runtime::new(image, ports(), EngineOptions { seed, ..EngineOptions::default() })
                .expect("an engine"),
            out: Outbox::new(),
            flow: None,
            to_send,
            written: 0,
            closed: false,
            received: Vec::new(),
            notices: Vec::new(),
            ended: false,
            sent: 0,
        };
        let ends = images.into_iter().zip(data).map(end).collect::<Vec<_>>();
        let Ok(ends) = ends.try_into() else { panic!("two ends") };
        Connection { ends, line, seed, now: 0, flying: BinaryHeap::new(), number: 0, lost: 0 }
    }

    /// A number from 0 to 999, the same in every run of this seed.
    fn dice(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % 1_000
    }

    fn at(&self) -> Time {
        Time::from_nanoseconds(self.now)
    }

    /// Does what an end asks for, and lets its application read and write.
    fn after(&mut self, end: usize) {
        loop {
            let mut frames = Vec::new();
            let (mut read, mut again) = (0, false);
            {
                let End { engine, out, flow, received, notices, ended, sent, .. } = &mut self.ends[end];
                for item in out.items() {
                    match item {
                        Output::Send { bytes, offload, .. } => {
                            let frame = Frame { bytes: out.bytes(bytes), offload: *offload };
                            frames.extend(segments(LinkType::Ethernet, frame).expect("a good super-frame"));
                        }
                        Output::Deliver { bytes, .. } => {
                            received.extend_from_slice(out.bytes(bytes));
                            read += out.bytes(bytes).len();
                        }
                        Output::Notify { notice, .. } => notices.push(engine.notice_name(*notice).to_owned()),
                        Output::Opened { flow: opened, .. } => {
                            *flow = Some(*opened);
                            *ended = false;
                        }
                        Output::Ended { .. } => *ended = true,
                        Output::Released { .. } => again = true,
                        _ => {}
                    }
                }
                out.clear();
                *sent += frames.iter().map(|frame| frame.len() - 34 - 4 * usize::from(frame[46] >> 4)).sum::<usize>();
            }
            for frame in frames {
                self.fly(1 - end, frame.to_vec());
            }
            let at = self.at();
            let this = &mut self.ends[end];
            let Some(flow) = this.flow.filter(|_| !this.ended) else { return };
            if read > 0 {
                this.engine.consumed(at, flow, read, &mut this.out).expect("the flow is there");
                again = true;
            }
            let rest = &this.to_send[this.written..];
            if !rest.is_empty() {
                let accepted = this.engine.write(at, flow, rest, &mut this.out).unwrap_or(0);
                this.written += accepted;
                again |= accepted > 0;
            } else if !this.closed {
                this.closed = true;
                let _ = this.engine.close(at, flow, &mut this.out);
                again = true;
            }
            self.check(end);
            if !again {
                return;
            }
        }
    }

    fn fly(&mut self, to: usize, frame: Vec<u8>) {
        if self.dice() < self.line.lost {
            self.lost += 1;
            return;
        }
        let copies = if self.dice() < self.line.doubled { 2 } else { 1 };
        for _ in 0..copies {
            let late = if self.dice() < self.line.late { self.line.delay / 2 } else { 0 };
            self.number += 1;
            self.flying.push(Reverse((self.now + self.line.delay + late, self.number, to, frame.clone())));
        }
    }

    /// The next thing that happens; `false` if nothing is to come.
    fn step(&mut self) -> bool {
        let frame = self.flying.peek().map(|Reverse((at, ..))| *at);
        let due = (0..2).filter_map(|end| Some((self.ends[end].engine.next_deadline()?.at.nanoseconds(), end)));
        match (frame, due.min()) {
            (Some(at), timer) if timer.is_none_or(|(timer, _)| at <= timer) => {
                let Some(Reverse((at, _, to, bytes))) = self.flying.pop() else { return false };
                self.now = self.now.max(at);
                let (now, end) = (self.at(), &mut self.ends[to]);
                end.engine.frame(now, Port(1), Frame::new(&bytes), &mut end.out);
                self.after(to);
            }
            (_, Some((at, to))) => {
                self.now = self.now.max(at);
                let (now, end) = (self.at(), &mut self.ends[to]);
                end.engine.fire(now, &mut end.out);
                self.now += 1;
                self.after(to);
            }
            _ => return false,
        }
        true
    }

    /// Until both ends are gone; how long that took, in seconds.
    fn run(&mut self) -> f64 {
        let mut out = std::mem::take(&mut self.ends[1].out);
        self.ends[1]
            .engine
            .listen(Time::ZERO, &Listen { address: None, port: Some(80) }, &mut out)
            .expect("it listens");
        self.ends[1].out = out;
        let first = &mut self.ends[0];
        first.flow = Some(first.engine.connect(Time::ZERO, &endpoints(), &mut first.out).expect("a connection"));
        self.after(0);
        let mut steps = 0_u32;
        while self.step() {
            steps += 1;
            assert!(steps < 3_000_000 && self.now < 7_200_000_000_000, "it does not end: {:?}", self.shown());
        }
        self.now as f64 / 1e9
    }

    fn shown(&self) -> Vec<String> {
        let flows = self.ends.iter().filter_map(|end| end.engine.flow(end.flow?));
        flows.map(|flow| format!("{} {:?} {:?}", flow.summary.state, flow.registers, flow.timers)).collect()
    }

    /// Whatever waits for the other end has a timer behind it.
    fn check(&self, end: usize) {
        let End { engine, flow, .. } = &self.ends[end];
        let Some(FlowDetail { summary, registers, timers, .. }) = flow.and_then(|flow| engine.flow(flow)) else {
            return;
        };
        let register = |name: &str| registers.iter().find(|it| it.name == name).map_or(0, |it| it.value);
        let pending = |name: &str| timers.iter().filter(|timer| timer.name == name).count();
        let under_way = register("una") != register("next");
        let (retransmit, probe) = (pending("retransmit"), pending("probe"));
        assert!(!under_way || retransmit == 1, "unacknowledged without a timer in {}", summary.state);
        assert!(retransmit + probe <= 1, "retransmission and probe at once in {}", summary.state);
        assert!(
            under_way || retransmit == 0 || summary.state == "time_wait",
            "a timer for nothing in {}",
            summary.state
        );
        assert!(summary.state != "time_wait" || pending("linger") == 1, "it lingers for ever");
        assert!(timers.len() <= 4, "{timers:?}");
    }
}

fn data(length: usize, step: usize) -> Vec<u8> {
    (0..length).map(|at| (at * step % 251) as u8).collect()
}

/// Brings these bytes over, each way; checks that they arrive and both ends close. Returns the connection and how long it took.
fn brought(images: [VerifiedImage; 2], lengths: [usize; 2], line: Line, seed: u64) -> (Connection, f64) {
    let data = [data(lengths[0], 7), data(lengths[1], 11)];
    let mut connection = Connection::new(images, data.clone(), line, seed);
    let took = connection.run();
    for end in 0..2 {
        assert!(connection.ends[end].received == data[1 - end], "other bytes arrive at end {end}");
        assert!(connection.ends[end].ended, "end {end} is still there");
        let notices = &connection.ends[end].notices;
        assert_eq!(notices.iter().map(String::as_str).collect::<Vec<_>>(), ["established", "finished"]);
    }
    (connection, took)
}

#[test]
fn nothing_is_sent_twice_where_nothing_is_lost() {
    let (connection, took) = brought([machine(&[]), machine(&[])], [3_000_000, 0], CLEAN, 1);
    assert_eq!(connection.ends[0].sent, 3_000_000);
    // Slow start doubles from ten segments each round trip of 10 ms; then 60 s of TIME-WAIT.
    assert!((60.0..60.3).contains(&took), "{took} s");
}

#[test]
fn a_burst_of_losses_is_sent_once_more_each() {
    let line = Line { lost: 20, ..CLEAN };
    let (connection, _) = brought([machine(&[]), machine(&[])], [2_000_000, 0], line, 3);
    // A few of those that are lost are acknowledgments.
    let again = (connection.ends[0].sent - 2_000_000) / 1_448;
    assert!(connection.lost > 10 && again <= connection.lost, "{again} again, {} lost", connection.lost);
}

#[test]
fn sequence_numbers_wrap() {
    for first in [u32::MAX - 5, (1 << 31) - 70_000, u32::MAX - 200_000] {
        let images = [machine(&[("first", first.into())]), machine(&[("first", i64::from(first) + 3)])];
        brought(images, [400_000, 300_000], Line { lost: 10, ..CLEAN }, u64::from(first));
    }
}

#[test]
fn peers_without_options_are_understood() {
    let plain = [("offer_scaling", 0), ("offer_stamps", 0), ("offer_selective", 0)];
    for count in 0..3 {
        let images = [machine(&plain[..=count]), machine(&[])];
        brought(images.clone(), [200_000, 100_000], Line { lost: 20, ..CLEAN }, count as u64);
        let [one, other] = images;
        brought([other, one], [200_000, 100_000], Line { lost: 20, ..CLEAN }, count as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives(
        lengths in (0..80_000_usize, 0..50_000_usize),
        lost in 0..150_u64,
        doubled in 0..100_u64,
        late in 0..100_u64,
        delay in 100_000..100_000_000_i64,
        seed in any::<u64>(),
    ) {
        let line = Line { lost, doubled, late, delay };
        brought([machine(&[]), machine(&[])], [lengths.0, lengths.1], line, seed);
    }
}
