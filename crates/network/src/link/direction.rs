//! The state machine of one direction.

use super::LinkSettings;
use serde::{Deserialize, Serialize};
use weftwire_core::Time;

/// One direction of a link, carrying packets known by handles of type `P` (the simulator's slots, the relay's buffers).
///
/// Inputs: [`Direction::offer`], [`Direction::change`], [`Direction::down`], [`Direction::up`]. Times never go back.
/// Outputs: [`Direction::next`] says when the next packet reaches the far end (it is known exactly as soon as a packet
/// is in service: one event per packet and link); [`Direction::arrive`] takes it. Dropped packets come back at
/// once or, when dropped in the queue later, by [`Direction::take_dropped`], so that nobody's buffers leak.
pub struct Direction<P> {
    settings: LinkSettings,
    _packets: Vec<P>,
}

/// A packet offered to a direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Length of the frame in bytes.
    pub bytes: u32,
    /// Its transport is ECN-capable (ECT(0), ECT(1) or CE), so it may be marked.
    pub ecn_capable: bool,
}

/// A packet at the far end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival<P> {
    /// When it arrives.
    pub at: Time,
    /// The packet. A duplicate is a second arrival with a clone of it.
    pub packet: P,
    /// It is to be marked with ECN's CE.
    pub mark: bool,
    /// A bit to invert: its number, counted from the first bit of the frame; `None`: intact.
    pub corrupt_bit: Option<u32>,
    /// It is a duplicate: its first copy has arrived before.
    pub duplicate: bool,
    /// Nanoseconds it waited in the queue before service.
    pub waited: i64,
}

/// Why a link dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropCause {
    /// Random or bursty loss.
    Loss,
    /// The queue was full.
    QueueFull,
    /// The queue's discipline (RED, CoDel) chose it.
    Discipline,
    /// The link was down, or went down with the packet on it.
    Down,
    /// The link is a black hole.
    Blackhole,
}

/// What a direction has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Packets offered.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that reached the far end, duplicates included.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets dropped as the queue was full.
    pub dropped_full: u64,
    /// Packets dropped by the discipline.
    pub dropped_early: u64,
    /// Packets lost as the link was down.
    pub dropped_down: u64,
    /// Packets swallowed by a black hole.
    pub dropped_blackhole: u64,
    /// Packets marked with CE.
    pub marked: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets delayed so that others may overtake them.
    pub reordered: u64,
    /// Packets with an inverted bit.
    pub corrupted: u64,
    /// Packets that began service: those that the waiting times below are of.
    pub served: u64,
    /// Sum of the waiting times in the queue, nanoseconds.
    pub waited_sum: u128,
    /// The longest wait, nanoseconds.
    pub waited_max: i64,
    /// Nanoseconds in which the server was busy.
    pub busy: u128,
    /// Most packets waiting at once.
    pub queue_packets_max: u64,
    /// Most bytes waiting at once.
    pub queue_bytes_max: u64,
    /// Integral of waiting bytes over time, byte-nanoseconds: its mean is this over the time.
    pub queue_bytes_integral: u128,
}

impl<P: Clone> Direction<P> {
    /// An idle direction at time 0 with its own random numbers.
    pub fn new(_settings: LinkSettings, _seed: u64) -> Direction<P> {
        todo!()
    }

    /// Offers a packet. What is dropped comes back at once with the reason.
    ///
    /// # Errors
    /// The packet and why it was dropped.
    pub fn offer(&mut self, _now: Time, _packet: P, _offer: Offer) -> Result<(), (P, DropCause)> {
        todo!()
    }

    /// When the next packet reaches the far end, if any is on the link. It may become earlier by an offer (reordering),
    /// and may be gone by then (CoDel never drops what is in service; only [`Direction::down`] empties a link).
    pub fn next(&self) -> Option<Time> {
        todo!()
    }

    /// Takes the next packet if it has reached the far end by `now`.
    pub fn arrive(&mut self, _now: Time) -> Option<Arrival<P>> {
        todo!()
    }

    /// A packet that the discipline dropped in the queue, or that was lost when the link went down.
    pub fn take_dropped(&mut self) -> Option<(P, DropCause)> {
        todo!()
    }

    /// New settings. The packet in service and those behind it on the wire keep their times.
    pub fn change(&mut self, _now: Time, _settings: LinkSettings) {
        todo!()
    }

    /// The settings in force.
    pub fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    /// The link goes down: all that is on it is lost, and what is offered until [`Direction::up`].
    pub fn down(&mut self, _now: Time) {
        todo!()
    }

    /// The link is up again.
    pub fn up(&mut self, _now: Time) {
        todo!()
    }

    /// It swallows what is offered, or no longer.
    pub fn set_blackhole(&mut self, _now: Time, _on: bool) {
        todo!()
    }

    /// Packets and bytes that wait at `now`, the one in service not counted.
    pub fn waiting(&mut self, _now: Time) -> (u64, u64) {
        todo!()
    }

    /// What it has counted up to `now`.
    pub fn counts(&mut self, _now: Time) -> Counts {
        todo!()
    }
}
