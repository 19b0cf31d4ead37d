//! Counts since the start.

use std::collections::BTreeMap;
use weftwire_core::DropReason;

/// Counts since the start, as the engine keeps them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Frames that arrived.
    pub frames_in: u64,
    /// Frames sent by the machine.
    pub frames_out: u64,
    /// Frames passed on untouched.
    pub frames_passed: u64,
    /// Flows made, provisional ones included.
    pub flows_created: u64,
    /// The most flows in the table at once.
    pub flows_peak: u64,
    /// Flows that expired.
    pub flows_expired: u64,
    /// Flows that were evicted.
    pub flows_evicted: u64,
    /// Times each row was taken, by number.
    pub rows: Vec<u64>,
    /// Drops and refusals.
    pub drops: BTreeMap<DropReason, u64>,
}

impl Counts {
    /// One more drop or refusal.
    pub fn drop(&mut self, reason: DropReason) {
        *self.drops.entry(reason).or_default() += 1;
    }
}
