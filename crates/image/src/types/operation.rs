//! What rows do.

use super::{Asked, Comparison, Operand, PacketRef, Query, Store};
use crate::value::compare_at;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something a row does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// `register := left × right / divisor`, the product of 128 bits, signed, towards zero; by 0: 0 and counted.
    MulDiv {
        /// Register to write.
        register: u16,
        /// Left factor.
        left: Operand,
        /// Right factor.
        right: Operand,
        /// Divisor.
        divisor: Operand,
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
    /// `register := ` one of `count` registers in a row.
    Element {
        /// Register to write.
        register: u16,
        /// The first of the row.
        first: u16,
        /// How many there are.
        count: u16,
        /// Which, from 0, modulo `count`.
        index: Operand,
    },
    /// Writes one of `count` registers in a row.
    SetElement {
        /// The first of the row.
        first: u16,
        /// How many there are.
        count: u16,
        /// Which, from 0, modulo `count`.
        index: Operand,
        /// The value.
        value: Operand,
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
        #[serde(default, skip_serializing_if = "super::is_false")]
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
        /// For each of the template's TCP options whether it is there: 0 if not; of SACK the number of blocks. Absent: all
        /// are.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<Operand>,
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
    /// Lets a TCP packet stand for many segments, which whoever sends it makes of it (TSO).
    Cut {
        /// Which packet.
        packet: PacketRef,
        /// Bytes of payload of a segment; not 1 to 65,535: it stands for itself.
        size: Operand,
    },
    /// Gives the pending settings of a timer that satisfy all tests a new deadline.
    MoveTimer {
        /// Index of the timer.
        timer: u8,
        /// How many nanoseconds from now; 0 and less: due at this instant.
        delay: Operand,
        /// Tests on the payload.
        tests: Vec<PayloadTest>,
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
    /// Waits for a turn; a flow that waits already has this rank and cost from now on.
    Ask {
        /// Index into `turns`.
        turns: u8,
        /// The least rank is first, signed.
        rank: Operand,
        /// Nanoseconds from this flow's turn to the next one, 1 to 2^32 - 1.
        cost: Operand,
    },
    /// Waits for a turn no more.
    Withdraw {
        /// Index into `turns`.
        turns: u8,
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
    /// Empties ranges or segments; they begin at this sequence number.
    Begin {
        /// Which.
        store: Store,
        /// The sequence number.
        at: Operand,
    },
    /// Takes what lies in front of this sequence number out of ranges or segments.
    Trim {
        /// Of which.
        store: Store,
        /// The sequence number.
        to: Operand,
    },
    /// Adds the sequence numbers from `left` to in front of `right` to ranges.
    AddRange {
        /// Index into `ranges`.
        ranges: u8,
        /// The first.
        left: Operand,
        /// The one behind the last.
        right: Operand,
    },
    /// Keeps bytes of a packet's payload in the receive buffer, and adds their sequence numbers to its ranges.
    Hold {
        /// Index into `ranges`.
        ranges: u8,
        /// Which packet.
        packet: PacketRef,
        /// First byte of the payload.
        offset: Operand,
        /// How many; fewer if there are fewer.
        length: Operand,
        /// Sequence number of the first.
        at: Operand,
    },
    /// Hands the application the bytes of the receive buffer from its floor to in front of a sequence number.
    DeliverHeld {
        /// Index into `ranges`.
        ranges: u8,
        /// The sequence number.
        to: Operand,
    },
    /// Adds a record behind the last one.
    AppendSegment {
        /// Index into `segments`.
        segments: u8,
        /// The sequence number behind its last.
        end: Operand,
        /// Values of its fields, as many as there are.
        values: Vec<Operand>,
    },
    /// Cuts the record around a sequence number in two.
    SplitSegment {
        /// Index into `segments`.
        segments: u8,
        /// The sequence number, the first of the second part.
        at: Operand,
    },
    /// Writes fields of all records that satisfy all tests.
    ChangeSegments {
        /// Index into `segments`.
        segments: u8,
        /// Tests on the fields.
        tests: Vec<PayloadTest>,
        /// Numbers of fields, and their new values.
        writes: Vec<(u8, Operand)>,
    },
    /// `register := ` what ranges, segments, the pending settings of a timer or a port say.
    Query {
        /// Register to write.
        register: u16,
        /// The question.
        query: Query,
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
    /// The same; then the packet makes a new instance of the same key, which handles it.
    RestartInstance,
    /// Shows a debug point: all registers at this place.
    Snapshot {
        /// Index into `debug.points`.
        point: u16,
    },
    /// Does the operations of a block here.
    Run {
        /// Index into `blocks`.
        block: u16,
    },
}

/// Visits each operand of an operation, in the order of the document.
macro_rules! visit_operands {
    ($operation:expr, $visit:expr) => {
        match $operation {
            Operation::Compute { left, right, .. } => {
                $visit(left);
                $visit(right);
            }
            Operation::Lookup { index: value, .. }
            | Operation::Element { index: value, .. }
            | Operation::SetField { value, .. }
            | Operation::Resize { length: value, .. }
            | Operation::Cut { size: value, .. }
            | Operation::Send { port: value, .. }
            | Operation::ReleaseData { length: value }
            | Operation::Begin { at: value, .. }
            | Operation::Trim { to: value, .. }
            | Operation::DeliverHeld { to: value, .. }
            | Operation::SplitSegment { at: value, .. }
            | Operation::Query {
                query: Query::Ranges { argument: value, .. } | Query::PortMtu { port: value }, ..
            }
            | Operation::Notify { value, .. } => $visit(value),
            Operation::MulDiv { left, right, divisor, .. } => {
                $visit(left);
                $visit(right);
                $visit(divisor);
            }
            Operation::SetElement { index, value, .. } => {
                $visit(index);
                $visit(value);
            }
            Operation::AddRange { left, right, .. } | Operation::Ask { rank: left, cost: right, .. } => {
                $visit(left);
                $visit(right);
            }
            Operation::Hold { offset, length, at, .. } => {
                $visit(offset);
                $visit(length);
                $visit(at);
            }
            Operation::AppendSegment { end, values, .. } => {
                $visit(end);
                for value in values {
                    $visit(value);
                }
            }
            Operation::ChangeSegments { tests, writes, .. } => {
                for PayloadTest { right, .. } in tests {
                    $visit(right);
                }
                for (_, value) in writes {
                    $visit(value);
                }
            }
            Operation::SetTimer { delay, payload, .. } => {
                $visit(delay);
                for value in payload {
                    $visit(value);
                }
            }
            Operation::MoveTimer { delay, tests, .. } => {
                $visit(delay);
                for PayloadTest { right, .. } in tests {
                    $visit(right);
                }
            }
            Operation::CancelTimer { tests, .. }
            | Operation::Query { query: Query::Segments { tests, .. } | Query::Timer { tests, .. }, .. } => {
                for PayloadTest { right, .. } in tests {
                    $visit(right);
                }
            }
            Operation::AppendData { offset, length, .. } | Operation::Deliver { offset, length, .. } => {
                $visit(offset);
                $visit(length);
            }
            Operation::Build { options, .. } => {
                for value in options {
                    $visit(value);
                }
            }
            Operation::Reverse { .. }
            | Operation::KeepOptions { .. }
            | Operation::Copy { .. }
            | Operation::Discard { .. }
            | Operation::Withdraw { .. }
            | Operation::DeleteInstance
            | Operation::RestartInstance
            | Operation::Snapshot { .. }
            | Operation::Run { .. } => {}
        }
    };
}

impl Operation {
    /// What it reads, in the order of the document.
    pub fn operands(&self) -> Vec<&Operand> {
        let mut operands = Vec::new();
        visit_operands!(self, |operand| operands.push(operand));
        operands
    }

    /// The same, to put other operands there.
    pub fn operands_mut(&mut self) -> Vec<&mut Operand> {
        let mut operands = Vec::new();
        visit_operands!(self, |operand| operands.push(operand));
        operands
    }

    /// The register it writes.
    pub fn target(&self) -> Option<u16> {
        match self {
            Operation::Compute { register, .. }
            | Operation::MulDiv { register, .. }
            | Operation::Lookup { register, .. }
            | Operation::Element { register, .. }
            | Operation::Query { register, .. } => Some(*register),
            _ => None,
        }
    }

    /// Whether it only computes: what a preparation may do.
    pub fn is_pure(&self) -> bool {
        matches!(
            self,
            Operation::Compute { .. }
                | Operation::MulDiv { .. }
                | Operation::Lookup { .. }
                | Operation::Element { .. }
                | Operation::Query { .. }
        )
    }

    /// What it changes that can be asked.
    pub fn changes(&self) -> Option<Asked> {
        match self {
            Operation::Begin { store, .. } | Operation::Trim { store, .. } => Some(Asked::Store(*store)),
            Operation::AddRange { ranges, .. }
            | Operation::Hold { ranges, .. }
            | Operation::DeliverHeld { ranges, .. } => Some(Asked::Store(Store::Ranges(*ranges))),
            Operation::AppendSegment { segments, .. }
            | Operation::SplitSegment { segments, .. }
            | Operation::ChangeSegments { segments, .. } => Some(Asked::Store(Store::Segments(*segments))),
            Operation::SetTimer { timer, .. }
            | Operation::CancelTimer { timer, .. }
            | Operation::MoveTimer { timer, .. } => Some(Asked::Timer(*timer)),
            _ => None,
        }
    }

    /// Its name in the document.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Compute { .. } => "compute",
            Operation::MulDiv { .. } => "mul_div",
            Operation::Lookup { .. } => "lookup",
            Operation::Element { .. } => "element",
            Operation::SetElement { .. } => "set_element",
            Operation::SetField { .. } => "set_field",
            Operation::Resize { .. } => "resize",
            Operation::Reverse { .. } => "reverse",
            Operation::KeepOptions { .. } => "keep_options",
            Operation::Copy { .. } => "copy",
            Operation::Build { .. } => "build",
            Operation::Discard { .. } => "discard",
            Operation::Send { .. } => "send",
            Operation::Cut { .. } => "cut",
            Operation::SetTimer { .. } => "set_timer",
            Operation::CancelTimer { .. } => "cancel_timer",
            Operation::MoveTimer { .. } => "move_timer",
            Operation::Ask { .. } => "ask",
            Operation::Withdraw { .. } => "withdraw",
            Operation::AppendData { .. } => "append_data",
            Operation::ReleaseData { .. } => "release_data",
            Operation::Deliver { .. } => "deliver",
            Operation::Begin { .. } => "begin",
            Operation::Trim { .. } => "trim",
            Operation::AddRange { .. } => "add_range",
            Operation::Hold { .. } => "hold",
            Operation::DeliverHeld { .. } => "deliver_held",
            Operation::AppendSegment { .. } => "append_segment",
            Operation::SplitSegment { .. } => "split_segment",
            Operation::ChangeSegments { .. } => "change_segments",
            Operation::Query { .. } => "query",
            Operation::Notify { .. } => "notify",
            Operation::DeleteInstance => "delete_instance",
            Operation::RestartInstance => "restart_instance",
            Operation::Snapshot { .. } => "snapshot",
            Operation::Run { .. } => "run",
        }
    }
}

/// A test on what a setting of a timer carries, or on the fields of a segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PayloadTest {
    /// Which value of the payload, or which field, from 0; it is the left side.
    pub value: u8,
    /// How it is compared.
    pub comparison: Comparison,
    /// The right side, read once when the operation runs.
    pub right: Operand,
    /// Bits of the sequence numbers that it compares: 16, 24, 32 or 64. Other comparisons have 32, which says nothing there.
    #[serde(default = "usual_bits", skip_serializing_if = "is_usual")]
    pub bits: u8,
}

impl PayloadTest {
    /// A test whose sequence numbers, if it compares any, are of 32 bits.
    pub fn new(value: u8, comparison: Comparison, right: Operand) -> PayloadTest {
        PayloadTest { value, comparison, right, bits: usual_bits() }
    }

    /// Whether a value passes, given the right side's.
    #[inline]
    pub fn passes(&self, value: i64, right: i64) -> bool {
        compare_at(self.comparison, self.bits, value, right)
    }
}

fn usual_bits() -> u8 {
    32
}

fn is_usual(bits: &u8) -> bool {
    *bits == usual_bits()
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
