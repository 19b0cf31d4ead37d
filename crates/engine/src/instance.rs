//! One flow's instance of the machine.

use crate::axis::Axis;
use std::collections::{BTreeMap, VecDeque};
use weftwire_calendar::TimerHandle;
use weftwire_core::packet::Packet;
use weftwire_core::{DropReason, Endpoints, FlowId, Time};

/// When something happened to an instance that counts for its expiry or eviction: the time, and its place among all such
/// things. Those of two instances differ (rule F7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Activity {
    /// The time.
    pub at: Time,
    /// Its place.
    pub number: u64,
}

/// An instance: everything that lives as long as its flow.
#[derive(Debug)]
pub struct Instance {
    /// Its flow.
    pub flow: FlowId,
    /// How its time stands to the engine's.
    pub axis: Axis,
    /// Whose keys it has: a number of [`crate::key_sets::KeySets`].
    pub keys: usize,
    /// Its flow key.
    pub key: Box<[u8]>,
    /// Its state.
    pub state: u16,
    /// All registers, scratch ones included.
    pub registers: Box<[i64]>,
    /// The packet slots.
    pub slots: Box<[Option<Packet>]>,
    /// Pending settings of timers, earliest first.
    pub timers: VecDeque<TimerHandle>,
    /// Both ends as this end sees them (rule F18); `None` if the packet that made it has no transport header.
    pub endpoints: Option<Endpoints>,
    /// The application's bytes that are not released yet.
    pub send_buffer: VecDeque<u8>,
    /// Whether the application has closed its sending side.
    pub closed: bool,
    /// When it was made, on its own axis. All other times are the engine's.
    pub created: Time,
    /// How many instances of its key were made before it at that instant.
    pub earlier: u32,
    /// How many random numbers it has drawn.
    pub draws: u64,
    /// Its last packet or application call.
    pub last_active: Activity,
    /// Whether an application has connected or written, and not closed.
    pub open: bool,
    /// Its last packet, application call, or change into states from which a full table evicts and to which its state
    /// before did not belong (rule F10).
    pub rank: Activity,
    /// Whether such a change has just happened.
    pub came_into_group: bool,
    /// Where the flow table has it: in which lines, and there at which activity.
    pub filed: [Option<(usize, Activity)>; 2],
    /// What happened to it.
    pub counts: FlowCounts,
}

impl Instance {
    /// Whether it waits for something of its own: a timer, or its application (rule F13).
    pub fn is_held(&self) -> bool {
        self.open || !self.timers.is_empty()
    }

    /// One more pending setting of a timer.
    pub fn add_timer(&mut self, handle: TimerHandle) {
        let place = self.timers.partition_point(|pending| pending.deadline() <= handle.deadline());
        self.timers.insert(place, handle);
    }

    /// A setting that is not pending any more.
    pub fn forget_timer(&mut self, handle: TimerHandle) {
        let from = self.timers.partition_point(|pending| pending.deadline() < handle.deadline());
        if let Some(place) = self.timers.range(from..).position(|pending| *pending == handle) {
            self.timers.remove(from + place);
        }
    }
}

/// Counts of one flow.
#[derive(Clone, Default, Debug)]
pub struct FlowCounts {
    /// Events handled.
    pub events: u64,
    /// Its packets that arrived.
    pub packets_in: u64,
    /// Packets it sent.
    pub packets_out: u64,
    /// Refusals by reason.
    pub drops: BTreeMap<DropReason, u64>,
}
