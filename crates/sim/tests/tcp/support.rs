//! Two ends of a connection and a line between them, in virtual time; after every event it is checked that something is
//! pending that gets things going again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};
use weftwire_core::checksum::checksum;
use weftwire_core::inspect::Inspect;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
use weftwire_core::{
    Connections, Endpoints, FlowId, Frame, Function, LinkType, Listen, MacAddress, Outbox, Output, Port, Ports, Time,
    segments,
};
use weftwire_engine::{EngineOptions, ReferenceEngine, Runtime};
use weftwire_image::{Image, VerifiedImage};
use weftwire_lang::{Dialect, compile};
use weftwire_testbed::standstill;
use weftwire_text::{LoadError, Loader};

struct Folder(PathBuf);

impl Loader for Folder {
    fn load(&self, name: &str, _from: Option<&str>) -> Result<String, LoadError> {
        std::fs::read_to_string(self.0.join(name)).map_err(LoadError::from)
    }
}

/// The folder of the machine, with a congestion control of these tests in place of DCTCP.
struct Sketched(Folder);

impl Loader for Sketched {
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, LoadError> {
        if name == "steady.xl" {
            return Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp/sketches")).load(name, from);
        }
        Ok(self.0.load(name, from)?.replace("dctcp.xl", "steady.xl").replace("dctcp by", "steady by"))
    }
}

fn folder() -> Folder {
    Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/transports/tcp"))
}

/// The machine, with these values in registers from the start.
pub fn machine(registers: &[(&str, i64)]) -> VerifiedImage {
    static PLAIN: LazyLock<VerifiedImage> = LazyLock::new(|| compiled("tcp.xl", &folder()));
    // Tests ask for the same ones hundreds of times.
    static MADE: Mutex<BTreeMap<Vec<(String, i64)>, VerifiedImage>> = Mutex::new(BTreeMap::new());
    let key = registers.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    MADE.lock().expect("machines are made").entry(key).or_insert_with(|| with(&PLAIN, registers)).clone()
}

/// The machine with all congestion controls, of which this one is chosen, and with these values in registers.
pub fn controlled(control: &str, registers: &[(&str, i64)]) -> VerifiedImage {
    static MORE: LazyLock<VerifiedImage> = LazyLock::new(|| compiled("tcp_more.xl", &folder()));
    let controls = &MORE.registers.iter().find(|register| register.name == "control").expect("a register").values;
    let number = controls.iter().position(|known| known == control).expect("a congestion control") as i64;
    with(&MORE, &[registers, &[("control", number)]].concat())
}

/// The machine with `sketches/steady.xl`, which is chosen.
pub fn steady() -> VerifiedImage {
    static STEADY: LazyLock<VerifiedImage> = LazyLock::new(|| compiled("tcp.xl", &Sketched(folder())));
    with(&STEADY, &[("control", 2)])
}

fn compiled(root: &str, loader: &dyn Loader) -> VerifiedImage {
    let compiled = compile(root, Dialect::Xl, loader);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    verified(compiled.image.expect("a right program"))
}

fn with(plain: &VerifiedImage, registers: &[(&str, i64)]) -> VerifiedImage {
    let mut image = (**plain).clone();
    for (name, value) in registers {
        let register = image.registers.iter_mut().find(|register| register.name == *name).expect("a register");
        register.initial = register.kind.cut(*value);
    }
    verified(image)
}

fn verified(mut image: Image) -> VerifiedImage {
    image.seal();
    image.verify().unwrap_or_else(|error| panic!("{error}"))
}

/// What the line does to frames, in parts of a thousand, and how long they take.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub lost: u64,
    pub doubled: u64,
    pub late: u64,
    pub delay: i64,
}

pub const CLEAN: Line = Line { lost: 0, doubled: 0, late: 0, delay: 5_000_000 };

/// One end.
pub struct End {
    pub engine: ReferenceEngine,
    pub out: Outbox,
    pub flow: Option<FlowId>,
    pub to_send: Vec<u8>,
    pub written: usize,
    /// Bytes of those that the other end has acknowledged.
    pub released: usize,
    pub closed: bool,
    pub received: Vec<u8>,
    pub notices: Vec<String>,
    pub ended: bool,
    /// Bytes of payload that left.
    pub sent: usize,
    /// Whether the application reads what comes, and closes when it has written everything.
    pub reads: bool,
    pub closes: bool,
    /// What was delivered and is not read.
    pub unread: usize,
}

/// A frame under way: when it arrives, its number, to which end.
type Flying = Reverse<(i64, u64, usize, Vec<u8>)>;

/// What becomes of a frame beside what the line does to all of them.
pub enum Fate {
    Passes,
    Lost,
    /// It comes so many nanoseconds later.
    Late(i64),
    /// A router says that there is congestion (RFC 3168),
    Marked,
    /// and it comes so many nanoseconds later, too.
    LateMarked(i64),
    /// A router has no room for it on a link of this MTU, and says so (RFC 1191).
    TooBig(u16),
}

/// A frame on its way: to which end, when it left, and its bytes.
pub struct Sending<'a> {
    pub to: usize,
    pub at: i64,
    pub frame: &'a [u8],
}

impl Sending<'_> {
    /// How much payload it has.
    pub fn payload(&self) -> usize {
        payload_of(self.frame)
    }

    /// The sequence number.
    pub fn sequence(&self) -> u32 {
        self.word(4)
    }

    /// The acknowledgment.
    pub fn acknowledgment(&self) -> u32 {
        self.word(8)
    }

    fn word(&self, behind: usize) -> u32 {
        let at = segment_of(self.frame) + behind;
        u32::from_be_bytes([self.frame[at], self.frame[at + 1], self.frame[at + 2], self.frame[at + 3]])
    }

    /// The flags of TCP.
    pub fn flags(&self) -> u8 {
        self.frame[segment_of(self.frame) + 13]
    }
}

/// Where the segment in a frame begins: behind a header of Ethernet and one of IPv4 or IPv6.
fn segment_of(frame: &[u8]) -> usize {
    if frame[14] >> 4 == 4 { 34 } else { 54 }
}

fn payload_of(frame: &[u8]) -> usize {
    let segment = segment_of(frame);
    frame.len() - segment - 4 * usize::from(frame[segment + 12] >> 4)
}

type Fates = Box<dyn FnMut(&Sending<'_>) -> Fate>;

/// Loses the first segment with payload that leaves for the second end later than this, and nothing else.
pub fn one_loss_after(time: i64) -> Fates {
    let mut lost = false;
    Box::new(move |sending| {
        let loses = !lost && sending.to == 1 && sending.payload() > 0 && sending.at > time;
        lost |= loses;
        if loses { Fate::Lost } else { Fate::Passes }
    })
}

/// Two ends and a line between them, in virtual time.
pub struct Connection {
    pub ends: [End; 2],
    pub line: Line,
    /// Their addresses; others may try to connect, too.
    between: [IpAddr; 2],
    seed: u64,
    pub now: i64,
    pub flying: BinaryHeap<Flying>,
    number: u64,
    pub lost: usize,
    pub fates: Fates,
}

pub fn endpoints() -> Endpoints {
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
    pub fn new(images: [VerifiedImage; 2], data: [Vec<u8>; 2], line: Line, seed: u64) -> Connection {
        let ports = || Ports::new([(Port(1), LinkType::Ethernet)]);
        let end = |(image, to_send)| End {
            engine: Runtime::new(image, ports(), EngineOptions { seed, ..EngineOptions::default() })
                .expect("an engine"),
            out: Outbox::new(),
            flow: None,
            to_send,
            written: 0,
            released: 0,
            closed: false,
            received: Vec::new(),
            notices: Vec::new(),
            ended: false,
            sent: 0,
            reads: true,
            closes: true,
            unread: 0,
        };
        let ends = images.into_iter().zip(data).map(end).collect::<Vec<_>>();
        let Ok(ends) = ends.try_into() else { panic!("two ends") };
        let fates: Fates = Box::new(|_| Fate::Passes);
        let between = [endpoints().local_address, endpoints().remote_address];
        Connection { ends, line, between, seed, now: 0, flying: BinaryHeap::new(), number: 0, lost: 0, fates }
    }

    /// A number from 0 to 999, the same in every run of this seed.
    fn dice(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % 1_000
    }

    pub fn at(&self) -> Time {
        Time::from_nanoseconds(self.now)
    }

    /// Does what an end asks for, and lets its application read and write.
    pub fn after(&mut self, end: usize) {
        loop {
            let mut frames = Vec::new();
            let mut again = false;
            {
                let End { engine, out, flow, received, notices, ended, sent, unread, released, .. } =
                    &mut self.ends[end];
                for item in out.items() {
                    match item {
                        Output::Send { bytes, offload, .. } => {
                            let frame = Frame { bytes: out.bytes(bytes), offload: *offload };
                            frames.extend(segments(LinkType::Ethernet, frame).expect("a good super-frame"));
                        }
                        Output::Deliver { bytes, .. } => {
                            received.extend_from_slice(out.bytes(bytes));
                            *unread += out.bytes(bytes).len();
                        }
                        Output::Notify { notice, .. } => notices.push(engine.notice_name(*notice).to_owned()),
                        Output::Opened { flow: opened, endpoints: Some(ends) }
                            if self.between.contains(&ends.remote_address) =>
                        {
                            *flow = Some(*opened);
                            *ended = false;
                        }
                        Output::Ended { flow: gone } => *ended |= Some(*gone) == *flow,
                        Output::Released { length, .. } => {
                            *released += length;
                            again = true;
                        }
                        _ => {}
                    }
                }
                out.clear();
                *sent += frames.iter().map(|frame| payload_of(frame)).sum::<usize>();
            }
            for frame in frames {
                self.fly(1 - end, frame.to_vec());
            }
            let at = self.at();
            let this = &mut self.ends[end];
            let Some(flow) = this.flow.filter(|_| !this.ended) else { return };
            if this.unread > 0 && this.reads {
                let read = std::mem::take(&mut this.unread);
                this.engine.consumed(at, flow, read, &mut this.out).expect("the flow is there");
                again = true;
            }
            let rest = &this.to_send[this.written..];
            if !rest.is_empty() {
                let accepted = this.engine.write(at, flow, rest, &mut this.out).unwrap_or(0);
                this.written += accepted;
                again |= accepted > 0;
            } else if !this.closed && this.closes {
                this.closed = true;
                let _ = this.engine.close(at, flow, &mut this.out);
                again = true;
            }
            let this = &self.ends[end];
            check(&this.engine, this.flow, Some(this.written - this.released));
            if !again {
                return;
            }
        }
    }

    fn fly(&mut self, to: usize, mut frame: Vec<u8>) {
        if self.dice() < self.line.lost {
            self.lost += 1;
            return;
        }
        let mut later = 0;
        match (self.fates)(&Sending { to, at: self.now, frame: &frame }) {
            Fate::Passes => {}
            Fate::Lost => {
                self.lost += 1;
                return;
            }
            Fate::Late(time) => later = time,
            Fate::Marked => mark(&mut frame),
            Fate::LateMarked(time) => {
                later = time;
                mark(&mut frame);
            }
            Fate::TooBig(mtu) => {
                self.number += 1;
                let arrives = self.now + self.line.delay;
                return self.flying.push(Reverse((arrives, self.number, 1 - to, too_big(&frame, mtu))));
            }
        }
        let copies = if self.dice() < self.line.doubled { 2 } else { 1 };
        for _ in 0..copies {
            let late = if self.dice() < self.line.late { self.line.delay / 2 } else { 0 };
            self.number += 1;
            self.flying.push(Reverse((self.now + self.line.delay + late + later, self.number, to, frame.clone())));
        }
    }

    /// The next thing that happens; `false` if nothing is to come.
    pub fn step(&mut self) -> bool {
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

    /// The second end listens, the first opens the connection.
    pub fn open(&mut self) {
        self.open_to(&endpoints());
    }

    /// The same between other addresses.
    pub fn open_to(&mut self, endpoints: &Endpoints) {
        let mut out = std::mem::take(&mut self.ends[1].out);
        self.ends[1]
            .engine
            .listen(Time::ZERO, &Listen { address: None, port: Some(80) }, &mut out)
            .expect("it listens");
        self.ends[1].out = out;
        self.connect(0, endpoints);
    }

    /// An end opens the connection.
    pub fn connect(&mut self, end: usize, endpoints: &Endpoints) {
        self.between = [endpoints.local_address, endpoints.remote_address];
        let this = &mut self.ends[end];
        this.flow = Some(this.engine.connect(Time::ZERO, endpoints, &mut this.out).expect("a connection"));
        self.after(end);
    }

    /// Goes on until something is so, or nothing is to come; gives whether it is so.
    pub fn until(&mut self, mut done: impl FnMut(&Connection) -> bool) -> bool {
        let (mut steps, began) = (0_u32, self.now);
        while !done(self) {
            if !self.step() {
                return false;
            }
            steps += 1;
            assert!(steps < 200_000 && self.now - began < 7_200_000_000_000, "it does not end: {:?}", self.shown());
        }
        true
    }

    /// Until both ends are gone; how long that took, in seconds.
    pub fn run(&mut self) -> f64 {
        self.open();
        self.until(|_| false);
        self.now as f64 / 1e9
    }

    /// A register of an end's flow, while there is one.
    pub fn register(&self, end: usize, name: &str) -> Option<i64> {
        let End { engine, flow, .. } = &self.ends[end];
        let detail = engine.flow((*flow)?)?;
        detail.registers.iter().find(|register| register.name == name).map(|register| register.value)
    }

    pub fn shown(&self) -> Vec<String> {
        let flows = self.ends.iter().filter_map(|end| end.engine.flow(end.flow?));
        flows.map(|flow| format!("{} {:?}", flow.summary.state, flow.timers)).collect()
    }
}

/// Whatever waits for the other end has a timer behind it.
pub fn check(engine: &ReferenceEngine, flow: Option<FlowId>, held: Option<usize>) {
    let flow = flow.and_then(|flow| engine.flow(flow));
    assert_eq!(flow.and_then(|flow| standstill(&flow, held)), None);
}

pub fn data(length: usize, step: usize) -> Vec<u8> {
    (0..length).map(|at| (at * step % 251) as u8).collect()
}

/// Brings these bytes over, each way; checks that they arrive and both ends close. Returns the connection and how long it took.
pub fn brought(images: [VerifiedImage; 2], lengths: [usize; 2], line: Line, seed: u64) -> (Connection, f64) {
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

/// The error about a frame that is too big.
pub fn too_big(frame: &[u8], mtu: u16) -> Vec<u8> {
    let mut message = [&[3, 4, 0, 0, 0, 0][..], &mtu.to_be_bytes(), &frame[14..42]].concat();
    let checksum = checksum(&message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let source = [frame[26], frame[27], frame[28], frame[29]];
    let addresses = Ipv4Fields { source: [192, 0, 2, 1].into(), destination: source.into(), ..Ipv4Fields::default() };
    let packet = FrameBuilder::ethernet(MacAddress([2; 6]), MacAddress([6; 6])).ipv4(&addresses).protocol(1);
    packet.payload(&message).finish().expect("a packet")
}

/// "Congestion experienced" in an IPv4 header, and its checksum made right.
fn mark(frame: &mut [u8]) {
    frame[15] |= 3;
    frame[24..26].fill(0);
    let words = frame[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}
