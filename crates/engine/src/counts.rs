//! Counts since the start.

use std::collections::BTreeMap;
use weftwire_core::DropReason;

/// Counts of drops and refusals, by reason.
#[derive(Clone, Default, Debug)]
pub struct DropCounts([u64; DropReason::ALL.len()]);

impl DropCounts {
    /// One more.
    pub fn count(&mut self, reason: DropReason) {
        self.0[reason.number() as usize] += 1;
    }

    /// Those that are not 0, in order.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

impl FromIterator<(DropReason, u64)> for DropCounts {
    fn from_iter<I: IntoIterator<Item = (DropReason, u64)>>(counts: I) -> DropCounts {
        let mut made = DropCounts::default();
        for (reason, count) in counts {
            made.0[reason.number() as usize] = count;
        }
        made
    }
}

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
