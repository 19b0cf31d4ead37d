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
        registers: Vec::new(),
        flow: Flow {
            source: vec![fields::SOURCE, fields::SOURCE_PORT],
            destination: vec![fields::DESTINATION, fields::DESTINATION_PORT],
            common: vec![fields::PROTOCOL],
            symmetric: true,
            expire: 0,
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
        states: vec![State { name: "start".into() }],
        internal_events: 0,
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
    }
}

/// A register of type `i64` that starts at 0.
pub fn register(name: &str) -> Register {
    Register { name: name.into(), kind: RegisterType::I64, initial: 0, scratch: false }
}

/// A state.
pub fn state(name: &str) -> State {
    State { name: name.into() }
}

/// A timer that carries these values.
pub fn timer(name: &str, payload: &[&str]) -> Timer {
    Timer { name: name.into(), payload: payload.iter().map(|name| (*name).into()).collect() }
}

/// A row without conditions.
pub fn row(state: u16, event: Event, operations: Vec<Operation>) -> Row {
    Row { state, event, when: Vec::new(), operations, next: None, raise: None, line: 0 }
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
