//! Looking into a running function from outside (XTRA, Section IV.D.3). [`crate::control`] changes it.

use crate::control::ControlError;
use crate::flow::FlowId;
use crate::live::Clocks;
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The outside view of a function's flows and counters. Without methods of its own: a function that has no flows and
/// counts nothing.
pub trait Inspect {
    /// All live flows, by id.
    fn flows(&self) -> Vec<FlowSummary> {
        Vec::new()
    }

    /// A page of the live flows, by id: those behind `after`, at most `most`. A function with many flows does this with
    /// work that `most` bounds.
    fn flows_after(&self, after: FlowId, most: usize) -> FlowPage {
        let mut flows = self.flows();
        flows.retain(|flow| flow.flow > after);
        let more = flows.len() > most;
        flows.truncate(most);
        let next = flows.last().filter(|_| more).map(|flow| flow.flow);
        FlowPage { flows, next }
    }

    /// Everything about one flow, or `None` if it is not there.
    fn flow(&self, _flow: FlowId) -> Option<FlowDetail> {
        None
    }

    /// The name of a notice of the application, by the number that outputs have.
    fn notice_name(&self, _notice: u16) -> &str {
        "notice"
    }

    /// The state of a flow, as bytes that [`crate::Change::Adopt`] takes: at the boundary behind the latest event. `clocks` are
    /// those of the function's time, if it has any.
    ///
    /// # Errors
    /// [`ControlError::NoFlow`]; [`ControlError::Unsupported`] if the function's flows are no values.
    fn snapshot(&self, _flow: FlowId, _clocks: Option<&Clocks>) -> Result<Vec<u8>, ControlError> {
        Err(ControlError::Unsupported("flows"))
    }

    /// The state of the whole function, as bytes, at the boundary behind the latest event: one that is made alike can begin with
    /// them. `clocks` are those of the function's time, if it has any.
    ///
    /// # Errors
    /// [`ControlError::NoValue`] if it is no value, or only its flows are.
    fn whole(&self, _clocks: Option<&Clocks>) -> Result<Vec<u8>, ControlError> {
        Err(ControlError::NoValue)
    }

    /// What it runs, as a document from which one is made alike: of a machine, the canonical image with the initial values that it has
    /// now. `None`: there is no such document.
    fn program(&self) -> Option<String> {
        None
    }

    /// Counts since the start.
    fn counters(&self) -> Counters {
        Counters::default()
    }
}

/// One line about a flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowSummary {
    /// The flow.
    pub flow: FlowId,
    /// Its key as text, e.g. `10.0.0.1:4000 <-> 10.0.0.2:80 tcp`.
    pub key: String,
    /// Name of its state.
    pub state: String,
    /// When its instance was made.
    pub created: Time,
    /// Its last packet or application call.
    pub last_active: Time,
    /// Events handled.
    pub events: u64,
}

/// Some of the flows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowPage {
    /// One line about each.
    pub flows: Vec<FlowSummary>,
    /// Where the next page begins: behind this flow. `None`: there is none.
    pub next: Option<FlowId>,
}

/// Everything about a flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowDetail {
    /// The summary.
    #[serde(flatten)]
    pub summary: FlowSummary,
    /// Registers in order of declaration.
    pub registers: Vec<RegisterValue>,
    /// Pending timers, earliest first.
    pub timers: Vec<PendingTimer>,
    /// Turns that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<WaitingTurn>,
    /// Stored packets: slot name and frame length in bytes.
    pub packets: Vec<(String, usize)>,
    /// Counts of this flow.
    pub counters: BTreeMap<String, u64>,
}

/// A register's value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RegisterValue {
    /// Its name.
    pub name: String,
    /// Its value, 64-bit two's complement.
    pub value: i64,
    /// The value as its type is written: an address, a time, an unsigned number.
    pub text: String,
}

/// A timer that has not fired.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PendingTimer {
    /// The timer's name.
    pub name: String,
    /// When it fires.
    pub due: Time,
    /// What it carries.
    pub payload: Vec<i64>,
}

/// A turn that a flow waits for, in a queue that it shares with others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WaitingTurn {
    /// The queue's name.
    pub name: String,
    /// The flow's rank: the least is first.
    pub rank: i64,
    /// Nanoseconds from its turn to the next one.
    pub cost: i64,
    /// How many flows have their turn before it, as things stand.
    pub ahead: usize,
}

/// Counts since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Frames that arrived.
    pub frames_in: u64,
    /// Frames sent by the function.
    pub frames_out: u64,
    /// Frames passed between ports untouched (no flow key, transparent function).
    pub frames_passed: u64,
    /// Flows made.
    pub flows_created: u64,
    /// Flows live now.
    pub flows_live: u64,
    /// The most flows that were live at once.
    pub flows_peak: u64,
    /// Flows that ended by idle expiry.
    pub flows_expired: u64,
    /// Flows thrown out to make room.
    pub flows_evicted: u64,
    /// Events by row or by rule: name and count, in the artefact's order.
    pub rows: Vec<(String, u64)>,
    /// Drops and refusals by reason ([`crate::DropReason::name`]).
    pub drops: BTreeMap<String, u64>,
}
