//! Random images, all of them good, and random things that happen to them.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use weftwire_image::*;

const STATES: u16 = 3;
const STORED: u16 = 3;
const REGISTERS: u16 = 5;
const CONDITIONS: u16 = 3;

/// Something that happens to a machine.
#[derive(Clone, Debug)]
pub enum Step {
    /// A frame on a port from a client.
    Frame { port: u16, client: u16, tcp: bool, payload: Vec<u8> },
    /// Bytes that may be anything.
    Noise(Vec<u8>),
    /// The application opens a flow.
    Connect(u16),
    /// It writes to the flow of this number.
    Write(u64, usize),
    /// It closes the flow of this number.
    Close(u64),
    /// It listens at this port, or at all if it is 0.
    Listen(u16),
    /// It takes up the flow of this number.
    Accept(u64),
    /// It has read so many bytes on the flow of this number.
    Consumed(u64, usize),
    /// It gives up the flow of this number.
    Abort(u64),
    /// What is due runs.
    Fire,
    /// Time passes, in nanoseconds.
    Wait(i64),
}

/// What may happen in a run.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let payload = || vec(any::<u8>(), 0..40);
    let step = prop_oneof![
        6 => (1..3_u16, 0..6_u16, any::<bool>(), payload())
            .prop_map(|(port, client, tcp, payload)| Step::Frame { port, client, tcp, payload }),
        1 => vec(any::<u8>(), 0..120).prop_map(Step::Noise),
        1 => (0..6_u16).prop_map(Step::Connect),
        1 => (0..12_u64, 0..3_000_usize).prop_map(|(flow, length)| Step::Write(flow, length)),
        1 => (0..12_u64).prop_map(Step::Close),
        1 => (0..3_u16).prop_map(Step::Listen),
        1 => (0..12_u64).prop_map(Step::Accept),
        1 => (0..12_u64, 0..40_usize).prop_map(|(flow, length)| Step::Consumed(flow, length)),
        1 => (0..12_u64).prop_map(Step::Abort),
        3 => Just(Step::Fire),
        3 => (0..3_000_i64).prop_map(Step::Wait),
    ];
    vec(step, 0..60)
}

/// A good image: registers, tables, templates and timers are those of the rich one, behaviour is random.
pub fn image() -> impl Strategy<Value = Image> {
    let group = (vec(0..STATES, 1..2), select(vec![0_i64, 800]), 0..2_u32).prop_map(|(states, idle, above)| Eviction {
        states,
        idle,
        above,
    });
    let policy = prop_oneof![
        Just(WhenFull::Reject),
        Just(WhenFull::EvictOldest),
        Just(WhenFull::EvictOldestIn(vec![1])),
        vec(group, 0..3).prop_map(WhenFull::EvictInTurn),
    ];
    let expire = (select(vec![0_i64, 500, 5_000]), any::<bool>(), select(vec![None, Some(0), Some(700)]));
    let head = (any::<bool>(), expire, 1..4_u32, policy, 0..6_u32);
    let conditions = vec(condition(), usize::from(CONDITIONS));
    let preparation = vec(calculation(STORED..REGISTERS), 0..3);
    (head, conditions, preparation, vec(row_of_any_kind(), 0..16)).prop_map(
        |((symmetric, (expire, hold, own), max, when_full, max_timers), conditions, operations, rows)| {
            let mut image = rich();
            let flow = Flow { symmetric, expire, hold, max, when_full, max_timers, ..image.flow.clone() };
            image.flow = flow;
            image.states[1].expire = own;
            image.registers = (0..REGISTERS)
                .map(|number| Register {
                    kind: RegisterType::ALL[usize::from(number) * 2],
                    scratch: number >= STORED,
                    ..register(&format!("r{number}"))
                })
                .collect();
            image.timers[1] = timer_of_four();
            image.conditions = conditions;
            image.ranges = vec![
                Ranges { name: "seen".into(), most: 3, bytes: None },
                Ranges { name: "held".into(), most: 3, bytes: Some(70) },
            ];
            let field = |name: &str, kind| SegmentField { name: name.into(), kind };
            let fields = vec![field("mark", RegisterType::U16), field("at", RegisterType::Seq32)];
            image.segments = vec![Segments { name: "sent".into(), most: 5, fields }];
            image.tallies = vec![Tally { name: "busy".into(), states: vec![1, 2], timers: vec![1] }];
            image.turns = vec![Turns { name: "go".into(), most: 2 }];
            image.repeats = (0..STATES).map(|state| Repeat { state, event: 0, most: 2, then: 2 }).collect();
            image.internal_events = 3;
            image.preparations = preparations(&rows, operations);
            image.rows = rows;
            image.debug.samples = vec![Sample { register: 0, interval: 1_000 }];
            image
        },
    )
}

/// The timer that carries as much as one may.
pub fn timer_of_four() -> Timer {
    timer("retry", &["first", "second", "third", "fourth"])
}

/// The same image without what flows share: they need not be in one engine.
pub fn apart(mut image: Image) -> Image {
    let instead = |operand: &mut Operand| {
        if matches!(operand, Operand::Environment(Environment::Waiting(_) | Environment::Tally(_))) {
            *operand = constant(0);
        }
    };
    let of_rows = image.rows.iter_mut().map(|row| &mut row.operations);
    for operations in of_rows.chain(image.preparations.iter_mut().map(|it| &mut it.operations)) {
        operations.retain(|it| !matches!(it, Operation::Ask { .. } | Operation::Withdraw { .. }));
        operations.iter_mut().flat_map(Operation::operands_mut).for_each(instead);
    }
    image.conditions.iter_mut().flat_map(|it| [&mut it.left, &mut it.right]).for_each(instead);
    image.preparations.retain(|it| it.event != Event::Turn(0));
    image.rows.retain(|row| row.event != Event::Turn(0));
    image.turns.clear();
    image.tallies.clear();
    image
}

/// The same image with a part of each row and preparation in a block: from one place to another of its operations, as `cuts` say in turn.
pub fn in_blocks(mut image: Image, cuts: &[(usize, usize)]) -> Image {
    let of_rows = image.rows.iter_mut().map(|row| &mut row.operations);
    let lists = of_rows.chain(image.preparations.iter_mut().map(|it| &mut it.operations));
    for (operations, (from, length)) in lists.zip(cuts.iter().cycle()) {
        let from = (*from).min(operations.len());
        let to = (from + length).min(operations.len());
        let run = Operation::Run { block: image.blocks.len() as u16 };
        image.blocks.push(Block { operations: operations.splice(from..to, [run]).collect() });
    }
    image
}

/// For each event of the outside that has rows: writes all scratch registers first, as the verifier wants; then, at the packet
/// event of state 0, these operations.
fn preparations(rows: &[Row], operations: Vec<Operation>) -> Vec<Preparation> {
    let outside =
        rows.iter().map(|row| (row.state, row.event)).filter(|(_, event)| !matches!(event, Event::Internal(_)));
    let cells: std::collections::BTreeSet<(u16, Event)> = outside.chain([(0, Event::Packet)]).collect();
    let written = || (STORED..REGISTERS).map(|register| set(register, Operand::Register(0)));
    let prepare = |(state, event)| {
        let more = if (state, event) == (0, Event::Packet) { operations.clone() } else { Vec::new() };
        Preparation { state, event, operations: written().chain(more).collect() }
    };
    cells.into_iter().map(prepare).collect()
}

fn row_of_any_kind() -> impl Strategy<Value = Row> {
    let event = select(vec![
        Event::Packet,
        Event::Packet,
        Event::Timer(0),
        Event::Timer(1),
        Event::Turn(0),
        Event::Connect,
        Event::Close,
        Event::Data,
        Event::Expire,
        Event::Enter,
        Event::Exit,
        Event::Internal(0),
        Event::Internal(1),
        Event::Internal(2),
        Event::Abort,
        Event::Read,
        Event::Icmp,
        Event::Set,
    ]);
    let when = vec(proptest::option::of(any::<bool>()), usize::from(CONDITIONS));
    let goes = (proptest::option::of(0..STATES), proptest::option::weighted(0.2, 0..2_u16));
    (0..STATES, event, when, vec(operation(), 0..6), goes).prop_map(
        |(state, event, when, operations, (next, raise))| {
            let when = when.iter().enumerate().filter_map(|(number, value)| Some((number as u16, (*value)?))).collect();
            // What the verifier wants: exits stay, entries only lead up, internal events only raise greater ones.
            let next = match event {
                Event::Exit | Event::Internal(_) => None,
                Event::Enter => next.filter(|next| *next > state),
                _ => next,
            };
            let raise = match event {
                // A repeat, or on to the next.
                Event::Internal(0) => raise,
                Event::Internal(_) => None,
                _ => raise,
            };
            Row { when, next, raise, ..row(state, event, operations) }
        },
    )
}

fn condition() -> impl Strategy<Value = Condition> {
    let comparison = select(vec![
        Comparison::Eq,
        Comparison::Ne,
        Comparison::Lt,
        Comparison::Ge,
        Comparison::LeUnsigned,
        Comparison::SeqLt,
        Comparison::SeqGe,
    ]);
    (comparison, operand(), operand()).prop_map(|(comparison, left, right)| Condition { comparison, left, right })
}

fn calculation(target: std::ops::Range<u16>) -> impl Strategy<Value = Operation> {
    let operator = select(vec![
        Operator::Add,
        Operator::Sub,
        Operator::Mul,
        Operator::Div,
        Operator::RemUnsigned,
        Operator::SeqMax,
        Operator::Shl,
        Operator::ShrSigned,
        Operator::Le,
        Operator::Hash,
    ]);
    prop_oneof![
        4 => (operator, target.clone(), operand(), operand())
            .prop_map(|(operator, register, left, right)| compute(operator, register, left, right)),
        1 => target.clone().prop_map(|register| compute(Operator::Random, register, constant(0), constant(0))),
        1 => (target.clone(), operand()).prop_map(|(register, index)| Operation::Lookup { table: 0, register, index }),
        1 => (target.clone(), timer_query()).prop_map(|(register, query)| Operation::Query { register, query }),
        1 => (target, 0..STORED, operand())
            .prop_map(|(register, first, index)| Operation::Element { register, first, count: STORED - first, index }),
    ]
}

fn timer_query() -> impl Strategy<Value = Query> {
    let kind = select(vec![RegisterType::I64, RegisterType::Seq16, RegisterType::Seq32]);
    let test = (0..4_u8, operand(), select(vec![16, 32, 64]))
        .prop_map(|(value, right, bits)| PayloadTest { bits, ..PayloadTest::new(value, Comparison::SeqLe, right) });
    (select(TimerQuery::ALL.to_vec()), 0..4_u8, kind, vec(test, 0..2)).prop_map(|(what, value, kind, tests)| {
        let ordered = matches!(what, TimerQuery::Least | TimerQuery::Greatest);
        let kind = if ordered { kind } else { RegisterType::I64 };
        Query::Timer { timer: 1, what, value: if what.has_value() { value } else { 0 }, kind, tests }
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let writable = || select(vec![fields::UDP_LENGTH, fields::WORD_1, fields::TCP_FLAGS, fields::MSS, fields::TTL, 11]);
    let stored = || select(vec![PacketRef::Work, PacketRef::Slot(0), PacketRef::Slot(1)]);
    let small = || (-2..60_i64).prop_map(constant);
    let test = || (0..4_u8, operand()).prop_map(|(value, right)| PayloadTest::new(value, Comparison::Lt, right));
    prop_oneof![
        6 => calculation(0..REGISTERS),
        1 => (packet(), writable(), operand(), any::<bool>())
            .prop_map(|(packet, field, value, optional)| Operation::SetField { packet, field, value, optional }),
        1 => (0..STORED, operand(), operand()).prop_map(|(first, index, value)| Operation::SetElement {
            first,
            count: STORED - first,
            index,
            value,
        }),
        1 => (packet(), operand()).prop_map(|(packet, length)| Operation::Resize { packet, length }),
        1 => packet().prop_map(|packet| Operation::Reverse { packet }),
        1 => (packet(), vec(2..9_u8, 0..3)).prop_map(|(packet, kinds)| Operation::KeepOptions { packet, kinds }),
        2 => (packet(), stored()).prop_map(|(from, to)| Operation::Copy { from, to }),
        2 => (0..2_u16, stored()).prop_map(|(template, to)| Operation::Build { template, to, options: Vec::new() }),
        1 => stored().prop_map(|packet| Operation::Discard { packet }),
        3 => (packet(), 0..4_i64).prop_map(|(packet, port)| Operation::Send { packet, port: constant(port) }),
        2 => delay().prop_map(|delay| set_timer(0, delay)),
        2 => (vec(operand(), 4), delay())
            .prop_map(|(payload, delay)| Operation::SetTimer { timer: 1, delay: constant(delay), payload }),
        1 => vec(test(), 0..3).prop_map(|tests| Operation::CancelTimer { timer: 1, tests }),
        1 => (vec(test(), 0..3), delay())
            .prop_map(|(tests, delay)| Operation::MoveTimer { timer: 1, delay: constant(delay), tests }),
        1 => (stored(), small(), small())
            .prop_map(|(packet, offset, length)| Operation::AppendData { packet, offset, length }),
        1 => small().prop_map(|length| Operation::ReleaseData { length }),
        1 => (packet(), small(), small())
            .prop_map(|(packet, offset, length)| Operation::Deliver { packet, offset, length }),
        2 => (-2..2_i64, delay()).prop_map(|(rank, cost)| Operation::Ask {
            turns: 0,
            rank: constant(rank),
            cost: constant(cost),
        }),
        1 => Just(Operation::Withdraw { turns: 0 }),
        2 => on_ranges(),
        2 => on_segments(),
        1 => operand().prop_map(notify),
        1 => Just(Operation::DeleteInstance),
        1 => Just(Operation::RestartInstance),
        1 => Just(Operation::Snapshot { point: 0 }),
    ]
}

/// Sequence numbers near one another, some of them on the other side of 2^32, and some others.
fn number() -> impl Strategy<Value = Operand> {
    prop_oneof![8 => (-40..90_i64).prop_map(|number| constant(number & 0xffff_ffff)), 1 => operand()]
}

fn on_ranges() -> impl Strategy<Value = Operation> {
    let store = || select(vec![Store::Ranges(0), Store::Ranges(1)]);
    let what = select(vec![RangesQuery::Top, RangesQuery::Bytes, RangesQuery::After, RangesQuery::Left]);
    let query = |(register, ranges, what, argument): (u16, u8, RangesQuery, Operand)| {
        let argument = if what.has_argument() { argument } else { constant(0) };
        Operation::Query { register, query: Query::Ranges { ranges, what, argument } }
    };
    prop_oneof![
        1 => (store(), number()).prop_map(|(store, at)| Operation::Begin { store, at }),
        2 => (store(), number()).prop_map(|(store, to)| Operation::Trim { store, to }),
        3 => (number(), number()).prop_map(|(left, right)| Operation::AddRange { ranges: 0, left, right }),
        5 => (packet(), number(), number()).prop_map(|(packet, length, at)| Operation::Hold {
            ranges: 1,
            packet,
            offset: constant(0),
            length,
            at
        }),
        2 => number().prop_map(|to| Operation::DeliverHeld { ranges: 1, to }),
        3 => (0..REGISTERS, 0..2_u8, what, number()).prop_map(query),
    ]
}

fn on_segments() -> impl Strategy<Value = Operation> {
    let store = Store::Segments(0);
    let test = || (0..4_u8, number()).prop_map(|(value, right)| PayloadTest::new(value, Comparison::SeqGe, right));
    let what = select(vec![SegmentsQuery::Count, SegmentsQuery::Bytes, SegmentsQuery::Last, SegmentsQuery::Greatest]);
    let query = |(register, what, field, tests): (u16, SegmentsQuery, u8, Vec<PayloadTest>)| {
        let field = if what.has_field() { field } else { 0 };
        Operation::Query { register, query: Query::Segments { segments: 0, what, field, tests } }
    };
    prop_oneof![
        1 => number().prop_map(move |at| Operation::Begin { store, at }),
        2 => number().prop_map(move |to| Operation::Trim { store, to }),
        5 => (number(), operand(), operand())
            .prop_map(|(end, one, two)| Operation::AppendSegment { segments: 0, end, values: vec![one, two] }),
        2 => number().prop_map(|at| Operation::SplitSegment { segments: 0, at }),
        2 => (vec(test(), 0..2), 2..4_u8, operand()).prop_map(|(tests, field, value)| Operation::ChangeSegments {
            segments: 0,
            tests,
            writes: vec![(field, value)],
        }),
        3 => (0..REGISTERS, what, 0..4_u8, vec(test(), 0..2)).prop_map(query),
    ]
}

/// Mostly longer ones: a run of one-nanosecond timers is long.
fn delay() -> impl Strategy<Value = i64> {
    prop_oneof![1 => -1..3_i64, 9 => 300..3_000_i64]
}

fn packet() -> impl Strategy<Value = PacketRef> {
    select(vec![PacketRef::Current, PacketRef::Work, PacketRef::Slot(0), PacketRef::Slot(1)])
}

/// Any operand but values of the event, which not every event has.
fn operand() -> impl Strategy<Value = Operand> {
    let readable = || {
        let port = fields::SOURCE_PORT;
        select(vec![port, fields::PROTOCOL, fields::UDP_LENGTH, fields::WORD_1, fields::SEQUENCE, fields::MSS, 11])
    };
    prop_oneof![
        3 => (0..REGISTERS).prop_map(Operand::Register),
        2 => select(vec![0, 1, -1, 63, 64, 1 << 31, 1 << 32, i64::MIN, i64::MAX]).prop_map(Operand::Constant),
        2 => (packet(), readable()).prop_map(|(packet, field)| Operand::Field { packet, field }),
        1 => (packet(), readable()).prop_map(|(packet, field)| Operand::Present { packet, field }),
        1 => select(vec![
            Environment::Now,
            Environment::NowMicroseconds,
            Environment::FlowHash,
            Environment::FlowFull,
            Environment::ApplicationAvailable,
            Environment::ApplicationClosed,
            Environment::ApplicationListening,
            Environment::ApplicationRoom,
            Environment::Waiting(0),
            Environment::Tally(0),
        ])
        .prop_map(Operand::Environment),
    ]
}
