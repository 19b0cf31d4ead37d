//! One flow's instance of the machine.

use crate::axis::Axis;
use crate::counts::DropCounts;
use crate::stores::{Ranges, Segments};
use crate::turns::Place;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::mem::take;
use weftwire_calendar::TimerHandle;
use weftwire_core::packet::Packet;
use weftwire_core::{Endpoints, FlowId, Time};

/// When something happened to an instance that counts for its expiry or eviction: the time, and its place among all such
/// things. Those of two instances differ (rule F7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Activity {
    /// The time.
    pub at: Time,
    /// Its place.
    pub number: u64,
}

/// Settings of timers for which an instance keeps room from one flow to the next.
const KEPT_TIMERS: usize = 256;
/// Bytes of the application for which it keeps room.
const KEPT_BYTES: usize = 4_096;

/// An instance: everything that lives as long as its flow. By default it is of none.
#[derive(Default, Debug)]
pub struct Instance {
    /// Its flow.
    pub flow: FlowId,
    /// How its time stands to the engine's.
    pub axis: Axis,
    /// Whose keys it has: a number of [`crate::key_sets::KeySets`].
    pub keys: usize,
    /// Its flow key: at hand, as every look-up compares it.
    pub key: SmallVec<[u8; 40]>,
    /// Its state.
    pub state: u16,
    /// All registers, scratch ones included.
    pub registers: Vec<i64>,
    /// The packet slots.
    pub slots: Vec<Option<Packet>>,
    /// Its ranges of sequence numbers, the receive buffer among them.
    pub ranges: Vec<Ranges>,
    /// Its records of segments.
    pub segments: Vec<Segments>,
    /// Where it stands in the queue of each kind of turns, if it waits.
    pub waiting: SmallVec<[Option<Place>; 1]>,
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
    /// In which lines the flow table has it.
    pub lines: [Option<usize>; 2],
    /// What happened to it.
    pub counts: FlowCounts,
}

impl Instance {
    /// Makes it of no flow again. It keeps its memory, for another one.
    pub fn clear(&mut self) {
        let Instance { key, registers, slots, ranges, segments, timers, send_buffer, .. } = self;
        key.clear();
        registers.clear();
        slots.clear();
        ranges.iter_mut().for_each(|ranges| ranges.blank(KEPT_BYTES));
        segments.iter_mut().for_each(|segments| segments.blank(KEPT_BYTES));
        timers.clear();
        send_buffer.clear();
        timers.shrink_to(KEPT_TIMERS);
        send_buffer.shrink_to(KEPT_BYTES);
        *self = Instance {
            key: take(key),
            registers: take(registers),
            slots: take(slots),
            ranges: take(ranges),
            segments: take(segments),
            timers: take(timers),
            send_buffer: take(send_buffer),
            ..Instance::default()
        };
    }

    /// Whether it waits for something of its own: a timer, its application, or a turn (rule F13).
    pub fn is_held(&self) -> bool {
        self.open || !self.timers.is_empty() || self.waiting.iter().any(Option::is_some)
    }

    /// One more pending setting of a timer.
    pub fn add_timer(&mut self, handle: TimerHandle) {
        let place = self.timers.partition_point(|pending| pending.deadline() <= handle.deadline());
        self.timers.insert(place, handle);
    }

    /// More pending settings, all with this deadline, in their order.
    pub fn add_timers(&mut self, deadline: Time, handles: impl Iterator<Item = TimerHandle>) {
        let place = self.timers.partition_point(|pending| pending.deadline() <= deadline);
        let before = self.timers.len();
        self.timers.extend(handles);
        let added = self.timers.len() - before;
        self.timers.make_contiguous()[place..].rotate_right(added);
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
    pub drops: DropCounts,
}
