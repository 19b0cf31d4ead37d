//! A calendar: what is due when. It holds any number of entries with a deadline each and gives them back in order; it
//! reads no clock, the caller says what time it is.
//!
//! - inputs: [`Calendar::insert`], [`Calendar::remove`];
//! - when to come back: [`Calendar::next_deadline`];
//! - what is due: [`Calendar::pop_due`].
//!
//! Entries with equal deadlines come in the order in which they were inserted. The hardware calendar that it stands
//! for is described in the XTRA hardware paper; an entry here is one of its timers.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use weftwire_core::Time;

/// Entries of type `T` in the order of their deadlines.
#[derive(Clone, Debug)]
pub struct Calendar<T> {
    entries: BTreeMap<TimerHandle, T>,
    inserted: u64,
}

/// Names one insertion for ever: a handle is never used again, also not after its entry is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TimerHandle {
    // The order of the members makes the order of the calendar.
    deadline: Time,
    serial: u64,
}

impl TimerHandle {
    /// When the entry is or was due.
    pub fn deadline(self) -> Time {
        self.deadline
    }
}

impl<T> Default for Calendar<T> {
    fn default() -> Calendar<T> {
        Calendar { entries: BTreeMap::new(), inserted: 0 }
    }
}

impl<T> Calendar<T> {
    /// An empty calendar.
    pub fn new() -> Calendar<T> {
        Calendar::default()
    }

    /// Adds an entry. A deadline in the past is as good as any: it is due at once.
    pub fn insert(&mut self, deadline: Time, entry: T) -> TimerHandle {
        let handle = TimerHandle { deadline, serial: self.inserted };
        self.inserted += 1;
        self.entries.insert(handle, entry);
        handle
    }

    /// Takes an entry out; `None` if it has been popped or removed already.
    pub fn remove(&mut self, handle: TimerHandle) -> Option<T> {
        self.entries.remove(&handle)
    }

    /// The entry of a handle, if it is still there.
    pub fn get(&self, handle: TimerHandle) -> Option<&T> {
        self.entries.get(&handle)
    }

    /// The earliest deadline.
    pub fn next_deadline(&self) -> Option<Time> {
        self.first().map(|(deadline, _)| deadline)
    }

    /// The entry that comes next, with its deadline.
    pub fn first(&self) -> Option<(Time, &T)> {
        self.entries.first_key_value().map(|(handle, entry)| (handle.deadline, entry))
    }

    /// Takes out the next entry if it is due at or before `now`, with its deadline and the handle it had.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, TimerHandle, T)> {
        let first = self.entries.first_entry()?;
        if first.key().deadline > now {
            return None;
        }
        let (handle, entry) = first.remove_entry();
        Some((handle.deadline, handle, entry))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
