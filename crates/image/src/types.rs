//! The types of the image's JSON document. Everything is flat, indexed and bounded, so that plain hardware can run it.
//!
//! Read `docs/semantics.md` beside this file: it says what each part does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the document's form. Raised when an older reader would misunderstand.
pub const IMAGE_VERSION: u32 = 1;

/// A compiled network function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Always [`IMAGE_VERSION`].
    pub weftwire_image: u32,
    /// The machine's name.
    pub name: String,
    /// `sha256:` and 64 hexadecimal digits over the canonical document with this string empty.
    pub digest: String,
    /// Registers; those with `scratch` are 0 at the start of every event.
    pub registers: Vec<Register>,
    /// How packets find their instance.
    pub flow: Flow,
    /// What happens to frames that have no flow key.
    pub other_packets: OtherPackets,
    /// Header formats in use. Built-in ones carry the built-in definition.
    pub formats: Vec<Format>,
    /// The header fields that operands and operations name by index.
    pub fields: Vec<FieldName>,
    /// Names of the packet slots an instance has, slot 0 first.
    pub slots: Vec<String>,
    /// Packets the machine can build.
    pub templates: Vec<Template>,
    /// Timers by name.
    pub timers: Vec<Timer>,
    /// Constant look-up tables.
    pub tables: Vec<Table>,
    /// Names of notices to the application.
    pub notices: Vec<String>,
    /// Packets put into slots when `connect` makes an instance.
    pub creation: Vec<Creation>,
    /// States by name. State 0 is the initial state.
    pub states: Vec<State>,
    /// Number of internal events.
    pub internal_events: u16,
    /// Operations that run before the conditions of a (state, event); at most one entry each.
    pub preparations: Vec<Preparation>,
    /// Numbered comparisons.
    pub conditions: Vec<Condition>,
    /// The rule table. Of the rows of a (state, event), the first that matches wins.
    pub rows: Vec<Row>,
    /// What the image wants to show to a debugger.
    pub debug: Debug,
}

/// A register of 64 bits two's complement. Writing one keeps what its type holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// Its name, unique in the image.
    pub name: String,
    /// What a write keeps.
    #[serde(rename = "type")]
    pub kind: RegisterType,
    /// Value when an instance is made, already cut to the type.
    pub initial: i64,
    /// A temporary of the compiler: 0 at the start of every event, not part of a flow's stored state.
    #[serde(default, skip_serializing_if = "is_false")]
    pub scratch: bool,
}

/// What a register holds. Writes keep the low bits: 8, 16, 32, 48 or 64; all but `i64`, `u64` and `time` are
/// zero-extended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RegisterType {
    /// 0 or 1: a write keeps 1 for anything but 0.
    Bool,
    /// 8 bits.
    U8,
    /// 16 bits.
    U16,
    /// 32 bits.
    U32,
    /// 64 bits, compared and divided as unsigned.
    U64,
    /// 64 bits, signed.
    I64,
    /// A sequence number: 32 bits, compared modulo 2^32.
    Seq32,
    /// A time in nanoseconds, signed, 64 bits.
    Time,
    /// An Ethernet address, 48 bits.
    Mac,
    /// An IPv4 address, 32 bits.
    Ipv4,
}

/// How packets find their instance, and how many instances there may be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Fields of the one side (indexes into `fields`), most significant first.
    pub source: Vec<u16>,
    /// Fields of the other side, pairwise of the same widths as `source`. Empty when the key has no sides.
    pub destination: Vec<u16>,
    /// Fields that belong to no side.
    pub common: Vec<u16>,
    /// Both directions meet one instance: the smaller side comes first in the key.
    pub symmetric: bool,
    /// Idle time in nanoseconds after which an instance expires, in states without one of their own; 0: never.
    pub expire: i64,
    /// In those states an instance does not expire while a setting of a timer is pending or its application is open.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hold: bool,
    /// Greatest number of instances, at least 1.
    pub max: u32,
    /// What happens when a new flow meets a full table.
    pub when_full: WhenFull,
    /// Greatest number of timers an instance may have pending.
    pub max_timers: u32,
}

/// Policy of a full flow table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// The new flow is refused; its packet is dropped.
    Reject,
    /// The flow idle for longest goes.
    EvictOldest,
    /// Of the flows in these states the one idle for longest goes; if there is none, the new flow is refused.
    EvictOldestIn(Vec<u16>),
    /// The first of these groups that has somebody to go decides; if none has, the new flow is refused.
    EvictInTurn(Vec<Eviction>),
}

/// Flows that a full table may give up: of those in the states, the one idle for longest.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Eviction {
    /// The states.
    pub states: Vec<u16>,
    /// Only if it has been idle for this long, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero_time")]
    pub idle: i64,
    /// Only if there are more than so many flows in the states.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub above: u32,
}

/// What happens to frames without a flow key (ARP, ICMP, other transports, fragments).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OtherPackets {
    /// Dropped and counted.
    Drop,
    /// Passed on untouched between these pairs of ports, both ways; dropped and counted on other ports.
    Pass(Vec<(u16, u16)>),
}

/// A header format: what P4_16 calls a header type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Format {
    /// Its name in this image.
    pub name: String,
    /// Length of the fixed part in bits, a multiple of 8.
    pub length: u32,
    /// Its fields.
    pub fields: Vec<FormatField>,
    /// Where it is found.
    pub place: Place,
}

/// A field of a format.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatField {
    /// Its name.
    pub name: String,
    /// Bits from the start of the header, or of the option, to the field's most significant bit.
    pub offset: u32,
    /// Width in bits: 1 to 64, or 128 for addresses, which only flow keys may use.
    pub width: u16,
    /// Kind number of the TCP option the field lives in; absent: the header's fixed part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<u8>,
}

/// Where a header is found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// By the built-in parser; name, length and fields are those of the built-in format.
    Builtin,
    /// Directly behind another header's last byte.
    After {
        /// Name of the header in front: a built-in one, or an imported one that stands earlier in `formats`.
        header: String,
        /// Only if this field of the same packet has this value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        when: Option<When>,
    },
}

/// A test on a field.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Format and field.
    pub field: FieldName,
    /// The value it must have.
    pub equals: i64,
}

/// A field by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldName {
    /// Format's name.
    pub format: String,
    /// Field's name.
    pub field: String,
}

/// A packet the machine can build: it goes from this end of the flow to the other end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Transport header: follows the flow's protocol if `flow`.
    pub transport: TemplateTransport,
    /// TCP options in order (kind numbers: 2 MSS, 3 window scale, 4 SACK permitted, 8 timestamps), padded to 32 bits with
    /// NOPs in front.
    pub tcp_options: Vec<u8>,
    /// Imported formats behind the transport header, in order.
    pub headers: Vec<String>,
    /// Bytes of zero payload behind the headers.
    pub payload: u16,
    /// Fields that are not zero from the start (indexes into `fields`, values).
    pub presets: Vec<(u16, i64)>,
}

/// Transport of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TemplateTransport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A timer. Any number of settings of it may be pending in an instance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timer {
    /// Its name.
    pub name: String,
    /// Names of the 64-bit values it carries, at most 2.
    pub payload: Vec<String>,
}

/// A constant look-up table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Index of the first entry.
    pub base: i64,
    /// The entries, at least one. An index in front of the table reads the first, one behind it the last.
    pub entries: Vec<i64>,
}

/// A packet that `connect` puts into a slot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Creation {
    /// The slot.
    pub slot: u8,
    /// Index of the template. It is used only if its transport is the flow's.
    pub template: u16,
}

/// A state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Its name.
    pub name: String,
    /// Idle time in nanoseconds after which an instance in this state expires, in place of the flow's; 0: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire: Option<i64>,
}

/// What a row or preparation waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A packet of the flow. Event fields: 0 port, 1 frame length in bytes, 2 payload length in bytes.
    Packet,
    /// A timer fires. Event fields: its payload.
    Timer(u8),
    /// The application opens the connection.
    Connect,
    /// The application closes its sending side.
    Close,
    /// The application handed over bytes. Event fields: 0 the number of bytes now accepted.
    Data,
    /// The idle time is up; the instance is deleted behind it.
    Expire,
    /// The machine comes into the state. Event fields: those of the event that brought it there.
    Enter,
    /// The machine leaves the state. Event fields: those of the event that made it leave.
    Exit,
    /// Raised by a row. Event fields: those of the event handled before.
    Internal(u16),
}

/// Operations before the conditions. They write scratch registers only.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    /// In this state,
    pub state: u16,
    /// at this event,
    pub event: Event,
    /// these run; only `compute`, `lookup` allowed.
    pub operations: Vec<Operation>,
}

/// A comparison of two operands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// How they are compared.
    pub comparison: Comparison,
    /// Left operand.
    pub left: Operand,
    /// Right operand.
    pub right: Operand,
}

/// Comparisons: of 64-bit signed, of 64-bit unsigned, and of 32-bit sequence numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// Equal, all 64 bits.
    Eq,
    /// Not equal.
    Ne,
    /// Less, signed.
    Lt,
    /// Less or equal, signed.
    Le,
    /// Greater, signed.
    Gt,
    /// Greater or equal, signed.
    Ge,
    /// Less, unsigned.
    LtUnsigned,
    /// Less or equal, unsigned.
    LeUnsigned,
    /// Greater, unsigned.
    GtUnsigned,
    /// Greater or equal, unsigned.
    GeUnsigned,
    /// Before, modulo 2^32: the low 32 bits of left − right, as signed, are negative.
    SeqLt,
    /// Before or equal, modulo 2^32.
    SeqLe,
    /// After, modulo 2^32: right is before left.
    SeqGt,
    /// After or equal, modulo 2^32.
    SeqGe,
}

/// A row of the rule table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// In this state,
    pub state: u16,
    /// at this event,
    pub event: Event,
    /// if each of these conditions (index, by increasing index) has this value,
    pub when: Vec<(u16, bool)>,
    /// do these in order,
    pub operations: Vec<Operation>,
    /// come into this state (absent: stay),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u16>,
    /// and before that handle this internal event, which has a greater number than the one handled now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise: Option<u16>,
    /// Source line the row comes from; 0: unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u32,
}

/// A value to read. Reading has no effects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operand {
    /// A register.
    Register(u16),
    /// A constant.
    Constant(i64),
    /// A header field of a packet, zero-extended; 0 if the packet, header or option is not there.
    Field {
        /// Which packet.
        packet: PacketRef,
        /// Index into `fields`.
        field: u16,
    },
    /// 1 if that packet has that field, else 0.
    Present {
        /// Which packet.
        packet: PacketRef,
        /// Index into `fields`.
        field: u16,
    },
    /// A value the event carries; see [`Event`]. 0 if the event has no such value.
    Event(u8),
    /// A value of the platform.
    Environment(Environment),
}

/// Values of the platform.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Environment {
    /// The event's time in nanoseconds.
    Now,
    /// The same in whole microseconds, rounded down.
    NowMicroseconds,
    /// The same in whole milliseconds, rounded down.
    NowMilliseconds,
    /// The flow's serial number.
    Flow,
    /// Keyed hash of the flow's key: SipHash-2-4, all 64 bits, with the function's secret key.
    FlowHash,
    /// Bytes handed over by the application and not released.
    ApplicationAvailable,
    /// 1 once the application has closed its sending side.
    ApplicationClosed,
}

/// Which packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PacketRef {
    /// The packet being handled: of a packet event and of the events within it. At other events there is none.
    Current,
    /// The packet under construction; empty at the start of every event.
    Work,
    /// A stored packet of the instance.
    Slot(u8),
}

/// Something a row does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// `register := left operator right`.
    Compute {
        /// The operator.
        operator: Operator,
        /// Register to write.
        register: u16,
        /// Left operand.
        left: Operand,
        /// Right operand.
        right: Operand,
    },
    /// `register := table[index]`.
    Lookup {
        /// Index of the table.
        table: u16,
        /// Register to write.
        register: u16,
        /// Index of the entry.
        index: Operand,
    },
    /// Writes a field; keeps the low bits. Writing UDP's `length` sizes the payload.
    SetField {
        /// Which packet.
        packet: PacketRef,
        /// Index into `fields`.
        field: u16,
        /// The value.
        value: Operand,
        /// A packet without the field is left as it is, and nothing is counted.
        #[serde(default, skip_serializing_if = "is_false")]
        optional: bool,
    },
    /// Makes the payload this many bytes long (0 to 65,535); new bytes are 0.
    Resize {
        /// Which packet.
        packet: PacketRef,
        /// The new length.
        length: Operand,
    },
    /// Turns a packet round: swaps Ethernet addresses, IP addresses and ports.
    Reverse {
        /// Which packet.
        packet: PacketRef,
    },
    /// Keeps only the TCP options of these kinds, in their order, and closes the gaps.
    KeepOptions {
        /// Which packet.
        packet: PacketRef,
        /// Option kind numbers.
        kinds: Vec<u8>,
    },
    /// Copies a packet, over whatever was there.
    Copy {
        /// Which packet.
        from: PacketRef,
        /// Where to: `work` or a slot.
        to: PacketRef,
    },
    /// Builds a packet from a template, over whatever was there.
    Build {
        /// Index of the template.
        template: u16,
        /// Where to: `work` or a slot.
        to: PacketRef,
    },
    /// Empties a slot.
    Discard {
        /// Which packet: `work` or a slot.
        packet: PacketRef,
    },
    /// Sends a packet as it is now, with lengths and checksums made right.
    Send {
        /// Which packet.
        packet: PacketRef,
        /// Out of this port.
        port: Operand,
    },
    /// Adds a pending setting of a timer.
    SetTimer {
        /// Index of the timer.
        timer: u8,
        /// Nanoseconds from now; 0 or less: at this instant, after the events already due.
        delay: Operand,
        /// What it carries; as many as the timer declares.
        payload: Vec<Operand>,
    },
    /// Cancels the pending settings of a timer that satisfy all tests.
    CancelTimer {
        /// Index of the timer.
        timer: u8,
        /// Tests on the payload; none: all settings.
        tests: Vec<PayloadTest>,
    },
    /// Appends bytes of the application's send buffer to a packet's payload.
    AppendData {
        /// Which packet: `work` or a slot.
        packet: PacketRef,
        /// Bytes behind the first unreleased one.
        offset: Operand,
        /// How many; fewer are appended if there are fewer.
        length: Operand,
    },
    /// Forgets this many bytes at the front of the application's send buffer.
    ReleaseData {
        /// How many.
        length: Operand,
    },
    /// Hands bytes of a packet's payload to the application.
    Deliver {
        /// Which packet.
        packet: PacketRef,
        /// First byte of the payload.
        offset: Operand,
        /// How many; fewer are delivered if there are fewer.
        length: Operand,
    },
    /// Tells the application something.
    Notify {
        /// Index into `notices`.
        notice: u16,
        /// A value.
        value: Operand,
    },
    /// Deletes the instance when the event is done, with its timers and packets. A state change has then no effect.
    DeleteInstance,
    /// Shows a debug point: all registers at this place.
    Snapshot {
        /// Index into `debug.points`.
        point: u16,
    },
}

impl Operation {
    /// Its name in the document.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Compute { .. } => "compute",
            Operation::Lookup { .. } => "lookup",
            Operation::SetField { .. } => "set_field",
            Operation::Resize { .. } => "resize",
            Operation::Reverse { .. } => "reverse",
            Operation::KeepOptions { .. } => "keep_options",
            Operation::Copy { .. } => "copy",
            Operation::Build { .. } => "build",
            Operation::Discard { .. } => "discard",
            Operation::Send { .. } => "send",
            Operation::SetTimer { .. } => "set_timer",
            Operation::CancelTimer { .. } => "cancel_timer",
            Operation::AppendData { .. } => "append_data",
            Operation::ReleaseData { .. } => "release_data",
            Operation::Deliver { .. } => "deliver",
            Operation::Notify { .. } => "notify",
            Operation::DeleteInstance => "delete_instance",
            Operation::Snapshot { .. } => "snapshot",
        }
    }
}

/// A test of [`Operation::CancelTimer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PayloadTest {
    /// Which value of the payload, from 0; it is the left side.
    pub value: u8,
    /// How it is compared.
    pub comparison: Comparison,
    /// The right side, read once when the operation runs.
    pub right: Operand,
}

/// Operators of [`Operation::Compute`]. Results wrap modulo 2^64, then the register's type cuts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product, low 64 bits.
    Mul,
    /// Signed quotient, towards zero; by 0: 0 and counted.
    Div,
    /// Unsigned quotient; by 0: 0 and counted.
    DivUnsigned,
    /// Signed remainder, sign of the left; by 0: 0 and counted.
    Rem,
    /// Unsigned remainder; by 0: 0 and counted.
    RemUnsigned,
    /// Smaller, signed.
    Min,
    /// Greater, signed.
    Max,
    /// Smaller, unsigned.
    MinUnsigned,
    /// Greater, unsigned.
    MaxUnsigned,
    /// The earlier sequence number ([`Comparison::SeqLt`]).
    SeqMin,
    /// The later sequence number.
    SeqMax,
    /// Distance of sequence numbers: low 32 bits of left − right, sign-extended.
    SeqDistance,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift; by less than 0 or more than 63: 0.
    Shl,
    /// Logical right shift; by less than 0 or more than 63: 0.
    Shr,
    /// Arithmetic right shift; by less than 0 or more than 63: all sign bits.
    ShrSigned,
    /// 1 if equal, else 0.
    Eq,
    /// 1 if not equal, else 0.
    Ne,
    /// 1 if less, signed, else 0.
    Lt,
    /// 1 if less or equal, signed, else 0.
    Le,
    /// 1 if less, unsigned, else 0.
    LtUnsigned,
    /// 1 if less or equal, unsigned, else 0.
    LeUnsigned,
    /// 1 if before modulo 2^32, else 0.
    SeqLt,
    /// 1 if before or equal modulo 2^32, else 0.
    SeqLe,
    /// Keyed hash of both operands: SipHash-2-4, all 64 bits, with the function's secret key.
    Hash,
    /// The next random number; the operands are not used (constants 0).
    Random,
}

/// What the image wants to show to a debugger (XTRA, Section IV.D).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Debug {
    /// Names of the snapshot points.
    pub points: Vec<String>,
    /// Registers to sample.
    pub samples: Vec<Sample>,
}

/// A register sampled in every live flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// The register.
    pub register: u16,
    /// Nanoseconds between samples of one flow, counted from the flow's creation; at least 1,000.
    pub interval: i64,
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_zero_time(value: &i64) -> bool {
    *value == 0
}
