//! The law of live state: an engine that is replaced by its own restored state at every event boundary does what one does
//! that is left alone.

use super::circumstances::apply;
use super::random::{self, Step, timer_of_four};
use super::{client, compute, constant, datagram, notify, rich, row, segment, set_timer, verified};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::net::{IpAddr, Ipv6Addr};
use weftwire_core::build::{TemplateSpec, TemplateTransport};
use weftwire_core::format::Formats;
use weftwire_core::inspect::Inspect;
use weftwire_core::live::Clocks;
use weftwire_core::packet::Packet;
use weftwire_core::port::{Checksum, SegmentationKind};
use weftwire_core::{Endpoints, Frame, Function, LinkType, Offload, Outbox, Port, Ports, Segmentation, Time};
use weftwire_engine::state::FunctionState;
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_image::layout::FunctionLayout;
use weftwire_image::{
    Comparison, Condition, Environment, Event, Flow, Image, Operand, Operation, Operator, PacketRef, PayloadTest,
    Query, Ranges, RangesQuery, RegisterType, Row, SegmentField, Segments, SegmentsQuery, Store, TimerQuery, Turns,
    VerifiedImage,
};

/// A thing of a given number, the same in every run.
pub fn drawn<T: std::fmt::Debug>(number: u64, strategy: &impl Strategy<Value = T>) -> T {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    strategy.new_tree(&mut runner).expect("the strategy filters nothing").current()
}

/// Case `number`: a machine and what happens to it. Every second machine is [`lively`], the others are random.
pub fn case(number: u64) -> (VerifiedImage, Vec<Step>) {
    let image = drawn(number, &random::image());
    let image = if number.is_multiple_of(2) { image } else { lively(&image) };
    let mut steps = drawn(number, &random::steps());
    for step in &mut steps {
        if let (1, Step::Wait(time)) = (number % 2, step) {
            // So that much is due at one instant.
            *time = *time / 1_000 * 500;
        }
    }
    (verified(image), steps)
}

/// A machine that shows all that it knows, with the flow table of another one.
pub fn lively(image: &Image) -> Image {
    let flow = Flow { max_timers: 5, ..image.flow.clone() };
    let base = rich();
    let show = |environment| notify(Operand::Environment(environment));
    let shown = [
        Environment::Now,
        Environment::FlowHash,
        Environment::FlowFull,
        Environment::ApplicationAvailable,
        Environment::ApplicationClosed,
        Environment::ApplicationListening,
        Environment::ApplicationRoom,
        Environment::Waiting(0),
    ];
    let shows = || shown.map(show).to_vec();
    let current = |to| Operation::Copy { from: PacketRef::Current, to };
    let send = |packet| Operation::Send { packet, port: constant(1) };
    let retry = |delay| Operation::SetTimer {
        timer: 1,
        delay: constant(delay),
        payload: vec![Operand::Register(0), Operand::Register(1), Operand::Environment(Environment::Now), constant(7)],
    };
    let [first, second] = [PacketRef::Slot(0), PacketRef::Slot(1)];
    let mut packet = shows();
    packet.extend([
        compute(Operator::Add, 0, Operand::Register(0), constant(1)),
        compute(Operator::Random, 1, constant(0), constant(0)),
        notify(Operand::Register(1)),
        notify(Operand::Present { packet: first, field: REPORT_KIND }),
        Operation::Resize { packet: first, length: constant(4) },
        send(first),
        current(first),
        send(second),
        current(second),
        Operation::KeepOptions { packet: second, kinds: vec![8] },
        Operation::Build { template: 1, to: PacketRef::Work, options: Vec::new() },
        send(PacketRef::Work),
        retry(500),
        set_timer(0, 1_000),
        retry(1_000),
    ]);
    packet.extend(grow());
    let ask = || {
        let rank = Operand::Register(2);
        let rank_of_three = compute(Operator::Rem, 2, Operand::Register(0), constant(3));
        [rank_of_three, Operation::Ask { turns: 0, rank, cost: constant(500) }]
    };
    packet.extend(ask());
    let mut turn = shows();
    turn.extend(ask());
    let gone = vec![
        compute(Operator::Random, 1, constant(0), constant(0)),
        notify(Operand::Register(1)),
        Operation::DeleteInstance,
    ];
    let is_old = Condition { comparison: Comparison::Ge, left: Operand::Register(0), right: constant(9) };
    let timer = |carried: Operand| {
        let asked = Query::Timer {
            timer: 1,
            what: TimerQuery::Greatest,
            value: 2,
            kind: RegisterType::I64,
            tests: vec![PayloadTest::new(3, Comparison::Eq, constant(7))],
        };
        let mut shown = vec![notify(carried), notify(Operand::Environment(Environment::Now))];
        shown.extend([Operation::Query { register: 1, query: asked }, notify(Operand::Register(1))]);
        if carried == Operand::Event(1) {
            let tests = vec![PayloadTest::new(0, Comparison::Gt, Operand::Event(0))];
            shown.extend([notify(Operand::Event(2)), Operation::MoveTimer { timer: 1, delay: constant(200), tests }]);
        }
        shown.extend(show_sequences());
        shown
    };
    let release = Operation::ReleaseData { length: constant(700) };
    Image {
        flow,
        states: image.states.clone(),
        timers: vec![base.timers[0].clone(), timer_of_four()],
        preparations: Vec::new(),
        conditions: vec![is_old],
        internal_events: 0,
        repeats: Vec::new(),
        ranges: vec![ranges("seen", None), ranges("held", Some(40))],
        segments: vec![segments()],
        turns: vec![Turns { name: "go".into(), most: 3 }],
        rows: vec![
            Row { when: vec![(0, true)], ..row(0, Event::Packet, gone) },
            Row { next: Some(1), ..row(0, Event::Packet, packet.clone()) },
            Row { next: Some(0), ..row(1, Event::Packet, packet) },
            row(0, Event::Timer(0), timer(constant(0))),
            row(0, Event::Timer(1), timer(Operand::Event(1))),
            row(1, Event::Timer(1), timer(Operand::Event(0))),
            row(0, Event::Turn(0), shows()),
            row(1, Event::Turn(0), turn),
            row(0, Event::Data, shows()),
            row(1, Event::Data, vec![release]),
            row(0, Event::Close, shows()),
            row(1, Event::Close, vec![Operation::DeleteInstance]),
            row(0, Event::Expire, shows()),
        ],
        ..base
    }
}

fn ranges(name: &str, bytes: Option<u32>) -> Ranges {
    Ranges { name: name.into(), most: 4, bytes }
}

fn segments() -> Segments {
    let field = |name: &str, kind| SegmentField { name: name.into(), kind };
    let fields = vec![field("mark", RegisterType::U16), field("at", RegisterType::Seq32)];
    Segments { name: "sent".into(), most: 6, fields }
}

/// Ranges, bytes in the receive buffer and segments that grow with each packet.
fn grow() -> Vec<Operation> {
    let count = Operand::Register(0);
    let hold = |offset, length, at| {
        let packet = PacketRef::Current;
        Operation::Hold { ranges: 1, packet, offset: constant(offset), length: constant(length), at: constant(at) }
    };
    vec![
        Operation::AddRange { ranges: 0, left: constant(20), right: constant(30) },
        Operation::AddRange { ranges: 0, left: constant(3), right: constant(14) },
        Operation::Trim { store: Store::Ranges(0), to: count },
        hold(0, 3, 0),
        hold(3, 3, 6),
        hold(1, 2, 10),
        Operation::DeliverHeld { ranges: 1, to: constant(2) },
        Operation::AppendSegment { segments: 0, end: constant(5), values: vec![count, count] },
        Operation::AppendSegment { segments: 0, end: constant(9), values: vec![constant(1), count] },
    ]
}

/// What is there of them; one byte more is delivered.
fn show_sequences() -> Vec<Operation> {
    let ask = |query| [Operation::Query { register: 1, query }, notify(Operand::Register(1))];
    let of_ranges = |ranges, what, argument| ask(Query::Ranges { ranges, what, argument: constant(argument) });
    let of_segments = |what, field| ask(Query::Segments { segments: 0, what, field, tests: Vec::new() });
    let mut shown = vec![Operation::DeliverHeld { ranges: 1, to: constant(3) }];
    shown.extend(of_ranges(0, RangesQuery::Floor, 0));
    shown.extend(of_ranges(0, RangesQuery::Right, 0));
    shown.extend(of_ranges(1, RangesQuery::Left, 0));
    shown.extend(of_segments(SegmentsQuery::Bytes, 0));
    shown.extend(of_segments(SegmentsQuery::Greatest, 2));
    shown
}

/// A field of the imported header of [`rich`].
const REPORT_KIND: u16 = 11;

/// An engine for this image, with two ports.
pub fn engine(image: &VerifiedImage, seed: u64) -> ReferenceEngine {
    let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), LinkType::Ip)]);
    ReferenceEngine::new(image.clone(), ports, EngineOptions { seed, ..EngineOptions::default() })
        .expect("a verified image")
}

/// What is done to a state on its way.
pub type Change = fn(&mut FunctionState);

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// What both put out and show.
    Behaviour,
    /// That, and the bytes of their states.
    Everything,
}

/// How the law fell.
pub struct Run {
    /// Event boundaries at which the engine was replaced.
    pub boundaries: usize,
    /// The first difference, if there was one.
    pub difference: Option<String>,
}

/// Runs two engines through these steps, one of them replaced at every event boundary by what its bytes, changed, say.
pub fn law(image: &VerifiedImage, steps: &[Step], seed: u64, change: Change, compare: Compare) -> Run {
    let layout = FunctionLayout::of(image);
    let [left, right] = [(); 2].map(|()| (engine(image, seed), Outbox::tracing()));
    let mut pair = Pair { layout: &layout, left, right, boundaries: 0, change, compare };
    let mut now = 0;
    let difference = steps.iter().find_map(|step| pair.step(step, &mut now).err());
    Run { boundaries: pair.boundaries, difference }
}

struct Pair<'a> {
    layout: &'a FunctionLayout,
    left: (ReferenceEngine, Outbox),
    right: (ReferenceEngine, Outbox),
    boundaries: usize,
    change: Change,
    compare: Compare,
}

/// The clocks of the function's time in these runs.
pub const CLOCKS: Clocks = Clocks { boot: [7; 16], monotonic: 1_000_000, tai: 9_000_000_000 };

impl Pair<'_> {
    fn step(&mut self, step: &Step, now: &mut i64) -> Result<(), String> {
        // What the input would run first is run one by one.
        let first = if matches!(step, Step::Fire) { *now } else { *now - 1 };
        if !matches!(step, Step::Wait(_)) {
            let limit = Time::from_nanoseconds(first);
            while self.left.0.run_next(limit, &mut self.left.1) {
                let also = self.right.0.run_next(limit, &mut self.right.1);
                self.boundary(also)?;
            }
        }
        let mut then = *now;
        do_step(step, &mut self.left.0, &mut then, &mut self.left.1);
        do_step(step, &mut self.right.0, now, &mut self.right.1);
        self.boundary(true)
    }

    fn boundary(&mut self, both: bool) -> Result<(), String> {
        self.boundaries += 1;
        let ((left, left_out), (right, right_out)) = (&mut self.left, &mut self.right);
        same("what they do", &true, &both)?;
        same("outputs", &left_out.items(), &right_out.items())?;
        for item in left_out.items() {
            use weftwire_core::Output::{Deliver, Send};
            if let Send { bytes, .. } | Deliver { bytes, .. } = item {
                same("bytes", &left_out.bytes(bytes), &right_out.bytes(bytes))?;
            }
        }
        left_out.clear();
        right_out.clear();
        same("deadlines", &left.next_deadline(), &right.next_deadline())?;
        same("counters", &left.counters(), &right.counters())?;
        let shown = |engine: &ReferenceEngine| -> Vec<_> {
            engine.flows().iter().map(|flow| Inspect::flow(engine, flow.flow)).collect()
        };
        same("flows", &shown(left), &shown(right))?;
        let bytes = right.snapshot_all(Some(&CLOCKS)).to_bytes(self.layout);
        if self.compare == Compare::Everything {
            same("states", &left.snapshot_all(Some(&CLOCKS)).to_bytes(self.layout), &bytes)?;
        }
        let mut state = FunctionState::from_bytes(&bytes, self.layout).map_err(|error| error.to_string())?;
        (self.change)(&mut state);
        let options = EngineOptions { seed: 99, ..EngineOptions::default() };
        let mut fresh = right.another(options).expect("as before");
        fresh.restore_all(&state).map_err(|error| error.to_string())?;
        if self.compare == Compare::Everything {
            let again = fresh.snapshot_all(state.clocks.as_ref()).to_bytes(self.layout);
            same("state after restoring", &bytes, &again)?;
        }
        *right = fresh;
        Ok(())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, left: &T, right: &T) -> Result<(), String> {
    if left == right { Ok(()) } else { Err(format!("{what} differ:\n{left:?}\n{right:?}")) }
}

/// A step, whose frames may also be tagged, of IPv6, or left to hardware in part; now and then the clock is behind.
pub fn do_step(step: &Step, engine: &mut ReferenceEngine, now: &mut i64, out: &mut Outbox) {
    let Step::Frame { port, client: number, tcp, payload } = step else {
        return apply(step, engine, now, out);
    };
    let mut frame = match (number % 3, *tcp) {
        (2, true) => of_ipv6(*number, TemplateTransport::Tcp, payload),
        (2, false) => of_ipv6(*number, TemplateTransport::Udp, payload),
        (_, true) => segment(*number, &[2, 8], payload),
        (_, false) => datagram(*number, payload),
    };
    if number % 3 == 1 {
        frame.splice(12..12, [0x81, 0x00, 0x20, payload.len() as u8]);
    }
    let link_header = if number % 3 == 1 { 18 } else { 14 };
    let bytes = if *port == 1 { &frame[..] } else { &frame[link_header..] };
    let segmentation = (payload.len() % 5 == 4 && *tcp)
        .then_some(Segmentation { size: 8, kind: SegmentationKind::TcpIpv4 { ecn: payload.len() % 2 == 0 } });
    let checksum = [Checksum::Unverified, Checksum::Partial][usize::from(payload.len() % 5 > 2)];
    let at = Time::from_nanoseconds(*now - i64::from(payload.len() % 7 == 3) * 100);
    engine.frame(at, Port(*port), Frame { bytes, offload: Offload { segmentation, checksum } }, out);
}

fn of_ipv6(number: u16, transport: TemplateTransport, payload: &[u8]) -> Vec<u8> {
    let address = |last| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
    let protocol = if transport == TemplateTransport::Tcp { 6 } else { 17 };
    let ends = Endpoints { protocol, local_address: address(number), remote_address: address(99), ..client(number) };
    let bare = TemplateSpec { transport, tcp_options: &[2, 8], wanted: &[], headers: &[], payload: 0, presets: &[] };
    let mut packet = Packet::build(&bare, &ends, &Formats::default());
    packet.append_payload(payload).expect("a small payload");
    packet.finish();
    let mut frame = weftwire_core::Buffer::default();
    packet.emit(LinkType::Ethernet, &mut frame);
    frame.to_vec()
}
