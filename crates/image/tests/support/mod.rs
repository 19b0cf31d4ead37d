//! Builds small images by hand. The engine's tests use it, too.
#![allow(dead_code, reason = "no test file needs all of it")]

use weftwire_core::format::{FormatPlace, builtin_formats};
use weftwire_image::*;

/// Indexes of the fields that [`machine`] names.
pub mod fields {
    pub const SOURCE: u16 = 0;
    pub const DESTINATION: u16 = 1;
    pub const SOURCE_PORT: u16 = 2;
    pub const DESTINATION_PORT: u16 = 3;
    pub const PROTOCOL: u16 = 4;
    pub const UDP_LENGTH: u16 = 5;
    pub const WORD_1: u16 = 6;
    pub const TCP_FLAGS: u16 = 7;
    pub const SEQUENCE: u16 = 8;
    pub const MSS: u16 = 9;
    pub const TTL: u16 = 10;
}

/// A machine with one state `start`, two slots, the key of TCP and UDP flows, room for four flows, and no rows.
pub fn machine() -> Image {
    let names = [
        ("network", "source"),
        ("network", "destination"),
        ("transport", "source_port"),
        ("transport", "destination_port"),
        ("network", "protocol"),
        ("udp", "length"),
        ("udp", "word_1"),
        ("tcp", "flags"),
        ("tcp", "sequence"),
        ("tcp", "mss"),
        ("ipv4", "ttl"),
    ];
    Image {
        weftwire_image: IMAGE_VERSION,
        name: "test".into(),
        digest: String::new(),
        features: Vec::new(),
        registers: Vec::new(),
        flow: Flow {
            source: vec![fields::SOURCE, fields::SOURCE_PORT],
            destination: vec![fields::DESTINATION, fields::DESTINATION_PORT],
            common: vec![fields::PROTOCOL],
            symmetric: true,
            expire: 0,
            hold: false,
            max: 4,
            when_full: WhenFull::Reject,
            max_timers: 8,
        },
        other_packets: OtherPackets::Drop,
        formats: ["network", "transport", "ipv4", "tcp", "udp"].map(builtin).to_vec(),
        fields: names.map(|(format, field)| FieldName { format: format.into(), field: field.into() }).to_vec(),
        slots: vec!["first".into(), "second".into()],
        templates: Vec::new(),
        timers: Vec::new(),
        tables: Vec::new(),
        notices: vec!["note".into()],
        creation: Vec::new(),
        states: vec![state("start")],
        internal_events: 0,
        repeats: Vec::new(),
        blocks: Vec::new(),
        ranges: Vec::new(),
        segments: Vec::new(),
        send_buffer: None,
        turns: Vec::new(),
        tallies: Vec::new(),
        preparations: Vec::new(),
        conditions: Vec::new(),
        rows: Vec::new(),
        debug: Debug::default(),
    }
}

/// A built-in format as images write it.
pub fn builtin(name: &str) -> Format {
    let format = builtin_formats().iter().find(|format| format.name == name).expect("a built-in format");
    assert_eq!(format.place, FormatPlace::Builtin);
    let field = |field: &weftwire_core::format::FormatField| FormatField {
        name: field.name.clone(),
        offset: field.offset,
        width: field.width,
        option: field.option,
    };
    Format {
        name: format.name.clone(),
        length: format.length,
        fields: format.fields.iter().map(field).collect(),
        place: Place::Builtin,
        invariant_crc: None,
    }
}

/// A register of type `i64` that starts at 0.
pub fn register(name: &str) -> Register {
    Register { name: name.into(), kind: RegisterType::I64, initial: 0, scratch: false, values: Vec::new() }
}

/// A state.
pub fn state(name: &str) -> State {
    State { name: name.into(), expire: None }
}

/// A timer that carries these values.
pub fn timer(name: &str, payload: &[&str]) -> Timer {
    Timer { name: name.into(), payload: payload.iter().map(|name| (*name).into()).collect() }
}

/// A row without conditions.
pub fn row(state: u16, event: Event, operations: Vec<Operation>) -> Row {
    Row { state, event, when: Vec::new(), operations, next: None, raise: None, line: 0, source: 0 }
}

/// The constant operand.
pub fn constant(value: i64) -> Operand {
    Operand::Constant(value)
}

/// `register := value`.
pub fn set(register: u16, value: Operand) -> Operation {
    compute(Operator::Add, register, value, constant(0))
}

/// `register := left operator right`.
pub fn compute(operator: Operator, register: u16, left: Operand, right: Operand) -> Operation {
    Operation::Compute { operator, register, left, right }
}

/// A notice with this value.
pub fn notify(value: Operand) -> Operation {
    Operation::Notify { notice: 0, value }
}

/// A timer without payload.
pub fn set_timer(timer: u8, delay: i64) -> Operation {
    Operation::SetTimer { timer, delay: constant(delay), payload: Vec::new() }
}

/// The image, sealed and verified.
pub fn verified(mut image: Image) -> VerifiedImage {
    image.seal();
    match image.verify() {
        Ok(image) => image,
        Err(error) => panic!("the image should be good:\n{error}"),
    }
}

/// A machine that uses everything an image can say.
pub fn rich() -> Image {
    let register = |name: &str, kind: RegisterType, initial: i64, scratch: bool| Register {
        name: name.into(),
        kind,
        initial,
        scratch,
        values: Vec::new(),
    };
    let field = |packet: PacketRef, field: u16| Operand::Field { packet, field };
    let mut image = machine();
    image.registers = vec![
        register("count", RegisterType::U32, 7, false),
        register("average", RegisterType::I64, -1, false),
        register("hash", RegisterType::U16, 0, true),
        register("next", RegisterType::Seq32, 0, false),
    ];
    image.flow.expire = 1_000_000;
    image.flow.when_full = WhenFull::EvictOldestIn(vec![0, 2]);
    image.other_packets = OtherPackets::Pass(vec![(1, 2)]);
    let reports = Format {
        name: "report".into(),
        length: 64,
        fields: vec![
            FormatField { name: "kind".into(), offset: 0, width: 8, option: None },
            FormatField { name: "value".into(), offset: 8, width: 56, option: None },
        ],
        place: Place::After {
            header: "udp".into(),
            when: Some(When {
                field: FieldName { format: "udp".into(), field: "destination_port".into() },
                equals: 80,
            }),
        },
        invariant_crc: None,
    };
    image.formats.push(reports);
    let report_kind = image.fields.len() as u16;
    image.fields.push(FieldName { format: "report".into(), field: "kind".into() });
    image.templates = vec![
        Template {
            name: "syn".into(),
            transport: TemplateTransport::Tcp,
            tcp_options: vec![2, 4, 8, 3],
            headers: vec![],
            payload: 0,
            presets: vec![(fields::TCP_FLAGS, 2), (fields::MSS, 1_400)],
        },
        Template {
            name: "report".into(),
            transport: TemplateTransport::Udp,
            tcp_options: vec![],
            headers: vec!["report".into()],
            payload: 20,
            presets: vec![(report_kind, 3), (fields::TTL, 9)],
        },
    ];
    image.creation = vec![Creation { slot: 0, template: 0 }, Creation { slot: 1, template: 1 }];
    image.timers = vec![timer("tick", &[]), timer("retry", &["sequence", "attempt"])];
    image.tables = vec![Table { name: "curve".into(), base: -2, entries: vec![1, 2, 4, 8] }];
    image.states = vec![state("start"), state("busy"), state("done")];
    image.internal_events = 2;
    image.conditions = vec![
        Condition { comparison: Comparison::GtUnsigned, left: Operand::Register(2), right: constant(100) },
        Condition { comparison: Comparison::Ge, left: Operand::Event(1), right: constant(3) },
        Condition {
            comparison: Comparison::Eq,
            left: Operand::Present { packet: PacketRef::Current, field: fields::SOURCE },
            right: constant(1),
        },
    ];
    let hash = compute(Operator::Hash, 2, field(PacketRef::Current, fields::SOURCE_PORT), Operand::Event(2));
    image.preparations = vec![Preparation {
        state: 0,
        event: Event::Packet,
        operations: vec![hash, Operation::Lookup { table: 0, register: 2, index: Operand::Register(2) }],
    }];
    let busy = vec![
        compute(Operator::Add, 0, Operand::Register(0), constant(1)),
        compute(Operator::Random, 1, constant(0), constant(0)),
        compute(Operator::Div, 1, Operand::Register(1), Operand::Register(0)),
        Operation::Copy { from: PacketRef::Current, to: PacketRef::Slot(0) },
        Operation::SetField {
            packet: PacketRef::Slot(0),
            field: fields::UDP_LENGTH,
            value: constant(100),
            optional: false,
        },
        Operation::SetField {
            packet: PacketRef::Slot(0),
            field: report_kind,
            value: Operand::Register(0),
            optional: false,
        },
        Operation::KeepOptions { packet: PacketRef::Slot(0), kinds: vec![2, 8] },
        Operation::Reverse { packet: PacketRef::Slot(0) },
        Operation::Send { packet: PacketRef::Slot(0), port: Operand::Event(0) },
        Operation::SetTimer { timer: 1, delay: constant(5_000), payload: vec![Operand::Register(0), constant(1)] },
        set_timer(0, 2_000),
        Operation::Deliver { packet: PacketRef::Current, offset: constant(0), length: constant(10) },
    ];
    let resend = vec![
        Operation::Build { template: 1, to: PacketRef::Work, options: Vec::new() },
        Operation::Resize { packet: PacketRef::Work, length: constant(12) },
        Operation::AppendData { packet: PacketRef::Work, offset: constant(0), length: constant(500) },
        Operation::Send { packet: PacketRef::Work, port: constant(2) },
        Operation::SetTimer {
            timer: 1,
            delay: Operand::Environment(Environment::ApplicationAvailable),
            payload: vec![Operand::Event(0), Operand::Event(1)],
        },
        Operation::Snapshot { point: 0 },
    ];
    let first_test = PayloadTest::new(0, Comparison::SeqLe, Operand::Register(0));
    let cancel = Operation::CancelTimer { timer: 1, tests: vec![first_test] };
    image.rows = vec![
        Row { when: vec![(0, true), (2, true)], next: Some(1), line: 3, ..row(0, Event::Packet, busy) },
        Row { raise: Some(0), ..row(0, Event::Packet, vec![notify(Operand::Environment(Environment::Now))]) },
        Row { when: vec![(1, false)], raise: Some(1), ..row(0, Event::Internal(0), vec![set(3, Operand::Event(2))]) },
        Row { next: Some(1), ..row(0, Event::Internal(1), vec![]) },
        row(1, Event::Enter, vec![notify(Operand::Environment(Environment::FlowHash))]),
        Row { when: vec![(1, true)], next: Some(2), ..row(1, Event::Packet, vec![cancel]) },
        Row { raise: Some(1), ..row(1, Event::Exit, vec![Operation::Discard { packet: PacketRef::Slot(0) }]) },
        row(1, Event::Timer(1), resend),
        row(1, Event::Data, vec![Operation::ReleaseData { length: Operand::Event(0) }]),
        Row { next: Some(0), ..row(2, Event::Packet, vec![]) },
        row(2, Event::Timer(0), vec![Operation::DeleteInstance]),
        Row { next: Some(1), ..row(0, Event::Connect, vec![]) },
        row(1, Event::Close, vec![Operation::DeleteInstance]),
    ];
    image.debug = Debug {
        sources: vec![],
        points: vec!["resent".into()],
        samples: vec![Sample { register: 0, interval: 10_000 }],
    };
    image
}
