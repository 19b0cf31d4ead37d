//! Live flows, and whole functions, as values: what an engine knows at an event boundary, as canonical bytes and back.
//!
//! [`FlowState`] is one flow, [`FunctionState`] all of an engine. [`weftwire_image::layout::StateLayout`] says where
//! everything is in the bytes of a flow. Nothing that an engine knows of a flow may live outside of them.

mod bytes;
mod check;
mod error;
mod file;
mod function;
mod live;
mod packet;
mod read;
mod write;

pub use error::StateError;
pub use file::{STATES_MAGIC, StatesHeader, states};
pub use function::FunctionState;
pub use read::{StateHead, header};

use crate::run::Payload;
use weftwire_core::live::Clocks;
use weftwire_core::packet_parts::PacketParts;
use weftwire_core::{DropReason, Endpoints, FlowId, Time};

/// The keys that a flow's hashes and random numbers are made with (semantics, rules V9 and V11).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Keys {
    /// Of `hash` and `flow.hash`.
    pub hash: [u8; 16],
    /// Of `random`.
    pub random: [u8; 16],
}

/// Keys are shown to nobody.
impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

/// Everything about one flow at an event boundary. Times are on the flow's own axis.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FlowState {
    /// SHA-256 of the image.
    pub image: [u8; 32],
    /// The boundary: the time of the latest event of the function.
    pub time: Time,
    /// How its time stands to clocks, if it ever had to do with any.
    pub clocks: Option<Clocks>,
    /// Its keys.
    pub keys: Keys,
    /// Its number in the function that it was in.
    pub flow: FlowId,
    /// Its flow key.
    pub key: Vec<u8>,
    /// The number of its state.
    pub state: u16,
    /// Its registers, without scratch ones.
    pub registers: Vec<i64>,
    /// Its ends (semantics, rule F18).
    pub endpoints: Option<Endpoints>,
    /// Whether the application has closed its sending side.
    pub closed: bool,
    /// Whether an application has connected or written, and not closed.
    pub open: bool,
    /// When it was made.
    pub created: Time,
    /// How many instances of its key were made before it at that instant.
    pub earlier: u32,
    /// Its last packet or call of the application.
    pub last_active: Time,
    /// Which of all packets and calls that was.
    pub activity: u64,
    /// From when on it waits for its eviction (rule F10).
    pub rank: Time,
    /// Which of all packets, calls and changes that was.
    pub rank_activity: u64,
    /// Random numbers that it has drawn.
    pub draws: u64,
    /// Events handled.
    pub events: u64,
    /// Its packets that arrived.
    pub packets_in: u64,
    /// Packets that it sent.
    pub packets_out: u64,
    /// Refusals, those that happened, in the order of the reasons.
    pub drops: Vec<(DropReason, u64)>,
    /// Pending settings, earliest first, those of one instant in the order of setting.
    pub timers: Vec<TimerState>,
    /// When each sample of the image is shown next.
    pub samples: Vec<Time>,
    /// The packet slots.
    pub packets: Vec<Option<PacketParts>>,
    /// Ranges of sequence numbers.
    pub ranges: Vec<RangesState>,
    /// Bytes of the receive buffer, range by range in order.
    pub held: Vec<u8>,
    /// Bytes delivered from it that the application has not read.
    pub unread: u32,
    /// Records of segments.
    pub segments: Vec<SegmentsState>,
    /// What it waits for, of each kind of turns.
    pub turns: Vec<Option<TurnState>>,
    /// The application's bytes that were accepted and not released.
    pub send_buffer: Vec<u8>,
}

/// A pending setting of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerState {
    /// When it is due.
    pub due: Time,
    /// Which timer.
    pub timer: u8,
    /// How many timer events of this instant it comes from, each set by the one before (semantics, rule E15).
    pub depth: u16,
    /// What it carries; values that the timer does not declare are 0.
    pub payload: Payload,
}

/// A flow that waits for a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TurnState {
    /// Its rank.
    pub rank: i64,
    /// Nanoseconds from its turn to the next one.
    pub cost: i64,
}

/// Turns that flows share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnsState {
    /// No turn comes before.
    pub next: Time,
    /// The flows that wait, first who is next.
    pub waiting: Vec<FlowId>,
}

/// Ranges of sequence numbers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RangesState {
    /// The sequence number that they are at or above.
    pub floor: u32,
    /// Where each begins and ends behind the floor, the one changed last first.
    pub entries: Vec<(u32, u32)>,
}

/// Records of segments.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SegmentsState {
    /// The sequence number that the first one begins at.
    pub start: u32,
    /// How many sequence numbers each has, and its fields.
    pub records: Vec<(u32, Vec<i64>)>,
}
