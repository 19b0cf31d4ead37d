//! The entries of one owner, by a number that the owner gives each.

use crate::{Calendar, Full, TimerHandle};
use std::collections::VecDeque;
use std::ops::RangeBounds;
use weftwire_core::Time;

/// Entries kept besides those that are known to be pending.
const SPARE: usize = 16;

/// The entries of one owner in a calendar, in the order of a number that the owner gives each: the sequence number of
/// a segment, say, so that an acknowledgment cancels a range. Who does not use it pays nothing for it.
///
/// Numbers that grow, as sequence numbers do (extended to 64 bits by the owner, so that they do not wrap), cost least.
/// Entries that have fired may be named by [`Owned::forget`]; if they are not, they are noticed when they are in the
/// way: memory is at most proportional to the most entries that were pending at one time.
#[derive(Clone, Debug)]
pub struct Owned {
    /// By number; equal numbers in the order of setting.
    entries: VecDeque<(u64, TimerHandle)>,
    /// With this many entries, those that are gone are looked for.
    sweep: usize,
}

impl Default for Owned {
    fn default() -> Owned {
        Owned { entries: VecDeque::new(), sweep: SPARE }
    }
}

impl Owned {
    /// An owner without entries.
    pub fn new() -> Owned {
        Owned::default()
    }

    /// Inserts an entry with a number.
    ///
    /// # Errors
    /// The calendar is full.
    pub fn insert<T: Default>(
        &mut self,
        calendar: &mut Calendar<T>,
        deadline: Time,
        number: u64,
        entry: T,
    ) -> Result<TimerHandle, Full<T>> {
        if self.entries.len() >= self.sweep {
            self.entries.retain(|(_, handle)| calendar.get(*handle).is_some());
            self.sweep = 2 * self.entries.len() + SPARE;
        }
        let handle = calendar.insert(deadline, entry)?;
        if self.entries.back().is_none_or(|(last, _)| *last <= number) {
            self.entries.push_back((number, handle));
        } else {
            let place = self.entries.partition_point(|(other, _)| *other <= number);
            self.entries.insert(place, (number, handle));
        }
        Ok(handle)
    }

    /// Cancels all pending entries with a number in the range; returns how many there were.
    pub fn cancel_range<T: Default>(&mut self, calendar: &mut Calendar<T>, numbers: impl RangeBounds<u64>) -> usize {
        let before = |bound: std::ops::Bound<&u64>, number: u64, end: bool| match bound {
            std::ops::Bound::Unbounded => end,
            std::ops::Bound::Included(bound) => number < *bound || (end && number == *bound),
            std::ops::Bound::Excluded(bound) => number < *bound || (!end && number == *bound),
        };
        let from = match self.entries.front() {
            Some((first, _)) if !before(numbers.start_bound(), *first, false) => 0,
            _ => self.entries.partition_point(|(number, _)| before(numbers.start_bound(), *number, false)),
        };
        let mut cancelled = 0;
        if from == 0 {
            while let Some((_, handle)) = self.entries.pop_front_if(|(it, _)| before(numbers.end_bound(), *it, true)) {
                cancelled += usize::from(calendar.remove(handle).is_some());
            }
            return cancelled;
        }
        let to = self.entries.partition_point(|(number, _)| before(numbers.end_bound(), *number, true));
        for (_, handle) in self.entries.drain(from..to.max(from)) {
            cancelled += usize::from(calendar.remove(handle).is_some());
        }
        cancelled
    }

    /// Forgets an entry that has fired or was cancelled by its handle. Not needed, but it keeps the list short.
    pub fn forget(&mut self, number: u64, handle: TimerHandle) {
        let from = self.entries.partition_point(|(other, _)| *other < number);
        let same = self.entries.iter().skip(from).take_while(|(other, _)| *other == number);
        if let Some(place) = same.into_iter().position(|(_, other)| *other == handle) {
            self.entries.remove(from + place);
        }
    }

    /// The entries that are kept, with those that are gone but not noticed yet.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no entry is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
