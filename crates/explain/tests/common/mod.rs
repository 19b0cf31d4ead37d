//! A hand-built image that uses most of what an image can hold: a small TCP client.

use weftwire_image::*;

pub fn field(index: u16) -> Operand {
    Operand::Field { packet: PacketRef::Current, field: index }
}

fn compute(operator: Operator, register: u16, left: Operand, right: Operand) -> Operation {
    Operation::Compute { operator, register, left, right }
}

fn register(name: &str, kind: RegisterType, initial: i64, scratch: bool) -> Register {
    Register { name: name.into(), kind, initial, scratch, values: Vec::new() }
}

fn row(state: u16, event: Event, when: &[(u16, bool)], operations: Vec<Operation>) -> Row {
    Row { state, event, when: when.to_vec(), operations, next: None, raise: None, line: 0, source: 0 }
}

/// States CLOSED, SYN_SENT, ESTABLISHED, FIN_WAIT; registers next, rto, retries, and scratch t0.
pub fn sample() -> Image {
    use Operand::{Constant, Register as Reg};
    let builtin = |name: &str, bits: &[(&str, u32, u16)]| Format {
        name: name.into(),
        length: 160,
        fields: bits
            .iter()
            .map(|(name, offset, width)| FormatField {
                name: (*name).into(),
                offset: *offset,
                width: *width,
                option: None,
            })
            .collect(),
        place: Place::Builtin,
        invariant_crc: None,
    };
    let tcp = [("sequence", 32, 32), ("acknowledgment", 64, 32), ("ack", 107, 1), ("syn", 110, 1), ("rst", 109, 1)];
    let names = ["sequence", "acknowledgment", "ack", "syn", "rst"];
    let condition = |comparison, left, right| Condition { comparison, left, right };
    let send = Operation::Send { packet: PacketRef::Slot(0), port: Constant(1) };
    let arm = Operation::SetTimer { timer: 0, delay: Reg(1), payload: vec![Reg(0)] };
    Image {
        weftwire_image: IMAGE_VERSION,
        name: "tiny_tcp".into(),
        digest: String::new(),
        features: vec![],
        registers: vec![
            register("next", RegisterType::Seq32, 0, false),
            register("rto", RegisterType::Time, 200_000_000, false),
            register("retries", RegisterType::U32, 0, false),
            register("t0", RegisterType::I64, 0, true),
        ],
        flow: Flow {
            source: vec![],
            destination: vec![],
            common: vec![],
            symmetric: true,
            expire: 60_000_000_000,
            hold: false,
            max: 100,
            when_full: WhenFull::EvictOldestIn(vec![3]),
            max_timers: 4,
        },
        other_packets: OtherPackets::Drop,
        formats: vec![builtin("tcp", &tcp)],
        fields: names.iter().map(|field| FieldName { format: "tcp".into(), field: (*field).into() }).collect(),
        slots: vec!["syn".into()],
        templates: vec![Template {
            name: "segment".into(),
            transport: TemplateTransport::Tcp,
            tcp_options: vec![2, 3],
            headers: vec![],
            payload: 0,
            presets: vec![(3, 1)],
        }],
        timers: vec![Timer { name: "retransmit".into(), payload: vec!["sequence".into()] }],
        tables: vec![],
        notices: vec!["failed".into()],
        creation: vec![Creation { slot: 0, template: 0 }],
        states: ["CLOSED", "SYN_SENT", "ESTABLISHED", "FIN_WAIT"]
            .iter()
            .map(|name| State { name: (*name).into(), expire: None })
            .collect(),
        internal_events: 1,
        repeats: Vec::new(),
        blocks: Vec::new(),
        ranges: Vec::new(),
        segments: Vec::new(),
        send_buffer: None,
        turns: Vec::new(),
        tallies: Vec::new(),
        preparations: vec![
            Preparation {
                state: 1,
                event: Event::Packet,
                operations: vec![compute(Operator::Add, 3, Reg(0), Constant(1))],
            },
            Preparation {
                state: 1,
                event: Event::Internal(0),
                operations: vec![compute(Operator::Lt, 3, Reg(2), Constant(5))],
            },
        ],
        conditions: vec![
            condition(Comparison::Eq, field(3), Constant(1)),
            condition(Comparison::Eq, field(1), Reg(3)),
            condition(Comparison::Ne, field(4), Constant(0)),
            condition(Comparison::Ne, Reg(3), Constant(0)),
            condition(Comparison::SeqGe, field(1), Reg(0)),
        ],
        rows: vec![
            Row { next: Some(1), line: 12, ..row(0, Event::Connect, &[], vec![send.clone(), arm.clone()]) },
            Row {
                next: Some(2),
                line: 20,
                ..row(
                    1,
                    Event::Packet,
                    &[(0, true), (1, true), (2, false)],
                    vec![
                        compute(Operator::Add, 0, field(1), Constant(0)),
                        // t0 was next + 1: it is read after `next` has changed, so it must be named.
                        compute(Operator::Max, 2, Reg(3), Reg(2)),
                        Operation::CancelTimer { timer: 0, tests: vec![] },
                    ],
                )
            },
            Row {
                line: 24,
                ..row(
                    1,
                    Event::Packet,
                    &[(2, true)],
                    vec![Operation::Notify { notice: 0, value: Reg(2) }, Operation::DeleteInstance],
                )
            },
            Row {
                raise: Some(0),
                line: 28,
                ..row(1, Event::Timer(0), &[], vec![compute(Operator::Add, 2, Reg(2), Constant(1))])
            },
            Row { next: Some(1), line: 29, ..row(1, Event::Internal(0), &[(3, true)], vec![send, arm]) },
            Row {
                next: Some(0),
                line: 31,
                ..row(
                    1,
                    Event::Internal(0),
                    &[(3, false)],
                    vec![Operation::Notify { notice: 0, value: Operand::Event(0) }],
                )
            },
            Row { next: Some(3), line: 40, ..row(2, Event::Close, &[], vec![]) },
            Row { next: Some(0), line: 44, ..row(3, Event::Packet, &[(4, true)], vec![Operation::DeleteInstance]) },
            Row { next: Some(0), line: 45, ..row(3, Event::Packet, &[(2, true)], vec![]) },
        ],
        debug: Debug::default(),
    }
}
