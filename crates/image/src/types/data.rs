//! What machines keep and look up: registers, timers, tables, stored packets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// A temporary of the compiler: no part of a flow's stored state. An event writes it before it reads it.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub scratch: bool,
    /// Names of its values from 0 on, for those who give it one: of the modules that it chooses from. None: they have no names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// What a register holds. Writes keep the low bits: 8, 16, 24, 32, 48 or 64; all but `i64`, `u64`, `seq64` and `time` are
/// zero-extended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// A sequence number of 16 bits.
    Seq16,
    /// One of 24 bits.
    Seq24,
    /// One of 64 bits.
    Seq64,
    /// A time in nanoseconds, signed, 64 bits.
    Time,
    /// An Ethernet address, 48 bits.
    Mac,
    /// An IPv4 address, 32 bits.
    Ipv4,
}

/// A timer. Any number of settings of it may be pending in an instance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timer {
    /// Its name.
    pub name: String,
    /// Names of the 64-bit values it carries, at most 4.
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
