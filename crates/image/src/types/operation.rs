//! What rows do.

use super::{Comparison, Operand, PacketRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// Visits each operand of an operation, in the order of the document.
macro_rules! visit_operands {
    ($operation:expr, $visit:expr) => {
        match $operation {
            Operation::Compute { left, right, .. } => {
                $visit(left);
                $visit(right);
            }
            Operation::Lookup { index: value, .. }
            | Operation::SetField { value, .. }
            | Operation::Resize { length: value, .. }
            | Operation::Send { port: value, .. }
            | Operation::ReleaseData { length: value }
            | Operation::Notify { value, .. } => $visit(value),
            Operation::SetTimer { delay, payload, .. } => {
                $visit(delay);
                for value in payload {
                    $visit(value);
                }
            }
            Operation::CancelTimer { tests, .. } => {
                for PayloadTest { right, .. } in tests {
                    $visit(right);
                }
            }
            Operation::AppendData { offset, length, .. } | Operation::Deliver { offset, length, .. } => {
                $visit(offset);
                $visit(length);
            }
            Operation::Reverse { .. }
            | Operation::KeepOptions { .. }
            | Operation::Copy { .. }
            | Operation::Build { .. }
            | Operation::Discard { .. }
            | Operation::DeleteInstance
            | Operation::Snapshot { .. } => {}
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
            Operation::Compute { register, .. } | Operation::Lookup { register, .. } => Some(*register),
            _ => None,
        }
    }

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
