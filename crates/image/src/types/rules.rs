//! States, the table of rules, and the values that it reads.

use super::Operation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// A turn comes to the flow, which waits for it no more.
    Turn(u8),
    /// The application opens the connection.
    Connect,
    /// The application closes its sending side.
    Close,
    /// The application handed over bytes. Event fields: 0 the number of bytes now accepted.
    Data,
    /// The application gives the flow up; the instance is deleted behind it.
    Abort,
    /// The application has read bytes that were delivered from the receive buffer. Event fields: 0 how many.
    Read,
    /// An ICMP error about a packet of the flow, as it was sent; `current` is that packet as far as the error quotes it. Event
    /// fields: 0 type, 1 code, 2 the MTU that it tells, or 0.
    Icmp,
    /// A register was changed from outside: it has its new value.
    Set,
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
    /// these run; only `compute`, `mul_div`, `lookup`, `element`, `query`, and `run` of blocks of these, allowed.
    pub operations: Vec<Operation>,
}

/// Operations that [`Operation::Run`] does in place of itself: they stand once, for all rows and preparations that share them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// These, in order; no `run` among them.
    pub operations: Vec<Operation>,
}

/// A bounded loop: an internal event that rows of its own, or of greater numbers, may raise again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// In this state,
    pub state: u16,
    /// this internal event
    pub event: u16,
    /// is raised again at most so often,
    pub most: u32,
    /// and in place of once more this internal event is raised, which has a greater number than those that raise it again.
    pub then: u16,
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
    /// and before that handle this internal event, which has a greater number than the one handled now unless it is a
    /// [`Repeat`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise: Option<u16>,
    /// Source line the row comes from; 0: unknown.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub line: u32,
    /// Which source that line is in: 0 is the program's main one, n the n-th of `debug.sources`, from 1.
    #[serde(default, skip_serializing_if = "super::is_zero_source")]
    pub source: u16,
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
    /// Keyed hash of the flow's key: SipHash-2-4, all 64 bits, with the function's secret key.
    FlowHash,
    /// 1 in the first event of an instance that will take the place of another one, as the flow table is full.
    FlowFull,
    /// Bytes handed over by the application and not released.
    ApplicationAvailable,
    /// 1 once the application has closed its sending side.
    ApplicationClosed,
    /// 1 while an application listens at this end of the flow.
    ApplicationListening,
    /// Bytes that the receive buffer has room for behind its floor.
    ApplicationRoom,
    /// 1 while the flow waits for a turn of these turns.
    Waiting(u8),
    /// How many there are now of what is counted.
    Tally(u8),
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
