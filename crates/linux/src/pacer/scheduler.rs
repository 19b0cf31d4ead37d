//! What a pacer keeps its entries in.

use weftwire_calendar::Calendar;
use weftwire_core::Time;

/// Entries with a time each, named by numbers, given back when they are due. Times are nanoseconds of one clock.
pub trait Scheduler {
    /// Adds an entry that is not in it, to come back at this time, or at once if that is past.
    fn add(&mut self, at: i64, entry: u32);

    /// Appends up to `most` entries that are due at `now`, with their times.
    fn take(&mut self, now: i64, most: usize, due: &mut Vec<(i64, u32)>);

    /// When to look next: not after the next entry is due. `None` without entries.
    fn next(&self) -> Option<i64>;
}

impl Scheduler for Calendar<u32> {
    #[inline]
    fn add(&mut self, at: i64, entry: u32) {
        // Whoever makes the calendar gives it room for all entries there are; one more than that is dropped.
        let _ = self.insert(Time::from_nanoseconds(at), entry);
    }

    #[inline]
    fn take(&mut self, now: i64, most: usize, due: &mut Vec<(i64, u32)>) {
        let now = Time::from_nanoseconds(now);
        due.extend(self.drain_due(now).take(most).map(|(at, _, entry)| (at.nanoseconds(), entry)));
    }

    #[inline]
    fn next(&self) -> Option<i64> {
        self.next_deadline().map(Time::nanoseconds)
    }
}

impl Scheduler for Box<dyn Scheduler> {
    fn add(&mut self, at: i64, entry: u32) {
        (**self).add(at, entry);
    }

    fn take(&mut self, now: i64, most: usize, due: &mut Vec<(i64, u32)>) {
        (**self).take(now, most, due);
    }

    fn next(&self) -> Option<i64> {
        (**self).next()
    }
}
