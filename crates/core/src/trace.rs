//! Trace records: one for each event a function handles, the same on every platform.

use crate::flow::FlowId;
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// What one event did. Platforms write it as one JSON line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceRecord {
    /// When.
    pub time: Time,
    /// Whose.
    pub flow: FlowId,
    /// What kind of record this is.
    pub kind: TraceKind,
    /// State before the event.
    pub state: String,
    /// The event: `packet`, `connect`, `close`, `data`, a timer's name, `enter`, `exit`, `internal N`, or for a
    /// sample or snapshot its name.
    pub event: String,
    /// Number of the row that matched, or `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u32>,
    /// Source line of that row, if the image says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The source of that line, if it is none of the program's main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// State after the event.
    pub next: String,
    /// The row's actions in order, as text with their operands' values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// Registers whose value changed (of a snapshot or sample: those shown), with the new value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registers: Vec<(String, i64)>,
}

impl TraceRecord {
    /// Where its row comes from, for people: `line 7`, `line 7 of timers.xl`. `None`: the image does not say.
    pub fn place(&self) -> Option<String> {
        let line = self.line?;
        Some(match &self.source {
            Some(source) => format!("line {line} of {source}"),
            None => format!("line {line}"),
        })
    }
}

/// Kinds of trace records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceKind {
    /// An event was handled.
    Event,
    /// A `#debug` directive in front of a state, event or condition (XTRA, IV.D.1).
    Snapshot,
    /// A `#debug register interval` directive (XTRA, IV.D.2).
    Sample,
    /// An error of the function, named in `event` (a zero-time loop).
    Error,
}
