//! What instances keep of sequence numbers: ranges of them, the bytes that stand there, and records of segments.

use super::{Operand, PayloadTest, RegisterType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Disjoint ranges of sequence numbers above a floor (semantics, rules R1 to R7).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ranges {
    /// Its name.
    pub name: String,
    /// Most ranges.
    pub most: u32,
    /// It is the receive buffer: the bytes of its ranges are kept too, within so many behind the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u32>,
}

/// Records of segments, side by side in the order of their sequence numbers (rules G1 to G7).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Segments {
    /// Its name.
    pub name: String,
    /// Most records.
    pub most: u32,
    /// What a record keeps beside its first sequence number and that behind its last, which are its fields 0 and 1.
    pub fields: Vec<SegmentField>,
}

/// The sequence numbers of a record, in front of its own fields.
pub const SEGMENT_ENDS: [&str; 2] = ["left", "right"];

impl Segments {
    /// The name of a record's field, by its number.
    pub fn field_name(&self, field: u8) -> Option<&str> {
        match SEGMENT_ENDS.get(usize::from(field)) {
            Some(end) => Some(end),
            None => self.fields.get(usize::from(field) - SEGMENT_ENDS.len()).map(|field| field.name.as_str()),
        }
    }

    /// The type of a record's field, by its number.
    pub fn field_type(&self, field: u8) -> Option<RegisterType> {
        match usize::from(field).checked_sub(SEGMENT_ENDS.len()) {
            None => Some(RegisterType::Seq32),
            Some(own) => self.fields.get(own).map(|field| field.kind),
        }
    }
}

/// A field of the records.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SegmentField {
    /// Its name.
    pub name: String,
    /// What a write keeps.
    #[serde(rename = "type")]
    pub kind: RegisterType,
}

/// Ranges or segments, by index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Store {
    /// Index into `ranges`.
    Ranges(u8),
    /// Index into `segments`.
    Segments(u8),
}

/// What [`super::Operation::Query`] asks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Query {
    /// Something about ranges.
    Ranges {
        /// Index into `ranges`.
        ranges: u8,
        /// What.
        what: RangesQuery,
        /// A sequence number, or which range; 0 where nothing is asked for.
        argument: Operand,
    },
    /// Something about those records of segments that pass all tests.
    Segments {
        /// Index into `segments`.
        segments: u8,
        /// What.
        what: SegmentsQuery,
        /// Which field; 0 where none is asked for.
        field: u8,
        /// Tests on the fields.
        tests: Vec<PayloadTest>,
    },
    /// Most bytes of a packet that can leave by a port (rule P27).
    PortMtu {
        /// Number of the port.
        port: Operand,
    },
    /// Something about those pending settings of a timer that pass all tests.
    Timer {
        /// Index of the timer.
        timer: u8,
        /// What.
        what: TimerQuery,
        /// Which value of the payload; 0 where none is asked for.
        value: u8,
        /// The type by whose order values are least and greatest; `i64` where none is asked for.
        kind: RegisterType,
        /// Tests on the payload.
        tests: Vec<PayloadTest>,
    },
}

impl Query {
    /// What is asked, if operations can change it.
    pub fn asks(&self) -> Option<Asked> {
        match self {
            Query::Ranges { ranges, .. } => Some(Asked::Store(Store::Ranges(*ranges))),
            Query::Segments { segments, .. } => Some(Asked::Store(Store::Segments(*segments))),
            Query::Timer { timer, .. } => Some(Asked::Timer(*timer)),
            Query::PortMtu { .. } => None,
        }
    }
}

/// What a query asks, and other operations change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Asked {
    /// Ranges or segments.
    Store(Store),
    /// The pending settings of a timer, by its index.
    Timer(u8),
}

/// Questions about ranges (rule R5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RangesQuery {
    /// The floor.
    Floor,
    /// Where the last range ends; the floor if there is none.
    Top,
    /// How many there are.
    Count,
    /// How many sequence numbers lie in them.
    Bytes,
    /// 1 if a sequence number lies in one, else 0.
    Has,
    /// The first sequence number from one on that lies in none.
    After,
    /// The first sequence number from one on that lies in one; `top` if there is none.
    Next,
    /// Where a range begins, the one changed last being 0; the floor if there is none.
    Left,
    /// Where it ends; the floor if there is none.
    Right,
}

impl RangesQuery {
    /// Whether it has an argument.
    pub fn has_argument(self) -> bool {
        !matches!(self, RangesQuery::Floor | RangesQuery::Top | RangesQuery::Count | RangesQuery::Bytes)
    }

    /// Its name in programs.
    pub fn name(self) -> &'static str {
        match self {
            RangesQuery::Floor => "floor",
            RangesQuery::Top => "top",
            RangesQuery::Count => "count",
            RangesQuery::Bytes => "bytes",
            RangesQuery::Has => "has",
            RangesQuery::After => "after",
            RangesQuery::Next => "next",
            RangesQuery::Left => "left",
            RangesQuery::Right => "right",
        }
    }
}

/// Questions about segments (rule G7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SegmentsQuery {
    /// Where the first record of all begins.
    Start,
    /// Where the last record of all ends.
    End,
    /// How many records.
    Count,
    /// How many sequence numbers lie in them.
    Bytes,
    /// The field's value in the first of them; 0 if there is none.
    First,
    /// The field's value in the last of them.
    Last,
    /// The field's least value.
    Least,
    /// Its greatest value.
    Greatest,
}

impl SegmentsQuery {
    /// Whether it asks for a field.
    pub fn has_field(self) -> bool {
        use SegmentsQuery::*;
        matches!(self, First | Last | Least | Greatest)
    }

    /// Its name in programs.
    pub fn name(self) -> &'static str {
        match self {
            SegmentsQuery::Start => "start",
            SegmentsQuery::End => "end",
            SegmentsQuery::Count => "count",
            SegmentsQuery::Bytes => "bytes",
            SegmentsQuery::First => "first",
            SegmentsQuery::Last => "last",
            SegmentsQuery::Least => "least",
            SegmentsQuery::Greatest => "greatest",
        }
    }
}

/// Questions about the pending settings of a timer (rule E22).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimerQuery {
    /// How many settings.
    Count,
    /// The value in the one that fires first; 0 if there is none.
    First,
    /// The value in the one that fires last.
    Last,
    /// The least value.
    Least,
    /// The greatest value.
    Greatest,
}

impl TimerQuery {
    /// All of them.
    pub const ALL: [TimerQuery; 5] =
        [TimerQuery::Count, TimerQuery::First, TimerQuery::Last, TimerQuery::Least, TimerQuery::Greatest];

    /// Whether it asks for a value of the payload.
    pub fn has_value(self) -> bool {
        self != TimerQuery::Count
    }

    /// Its name in programs.
    pub fn name(self) -> &'static str {
        match self {
            TimerQuery::Count => "count",
            TimerQuery::First => "first",
            TimerQuery::Last => "last",
            TimerQuery::Least => "least",
            TimerQuery::Greatest => "greatest",
        }
    }
}
