//! The calendar of entries: what [`Wheels`] put in order, with handles, a limit and a tick.

use crate::wheels::{MOST_SLOTS, Wheels};
use std::fmt;
use weftwire_core::Time;

/// Entries of type `T` in the order of their deadlines, those with equal deadlines in the order in which they were
/// inserted.
///
/// A deadline may be any instant, past ones too. With a tick of more than 1 ns, deadlines are rounded up to a multiple
/// of it: an entry is never due early, and entries due at the same tick come in the order of insertion.
#[derive(Clone, Debug)]
pub struct Calendar<T> {
    order: Wheels<T>,
    limit: u32,
    tick: i64,
}

/// Names one insertion for ever: a handle is never used again, also not after its entry is gone. It has a meaning only
/// in the calendar that gave it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimerHandle {
    deadline: Time,
    slot: u32,
    // A slot is used 2^31 times, with another generation each time, and then never again.
    generation: u32,
}

impl TimerHandle {
    /// When the entry is or was due.
    pub fn deadline(self) -> Time {
        self.deadline
    }
}

/// The calendar has as many entries as it may have. The entry that found no place comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full<T> {
    /// What was to be inserted.
    pub entry: T,
    /// How many entries there may be.
    pub limit: usize,
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the calendar is full: it may have {} entries", self.limit)
    }
}

impl<T: fmt::Debug> std::error::Error for Full<T> {}

impl<T: Default> Default for Calendar<T> {
    fn default() -> Calendar<T> {
        Calendar::with_limit(Calendar::<T>::MOST)
    }
}

impl<T: Default> Calendar<T> {
    /// Most entries that any calendar may have.
    pub const MOST: usize = MOST_SLOTS as usize;

    /// An empty calendar for [`Calendar::MOST`] entries, with a tick of 1 ns.
    pub fn new() -> Calendar<T> {
        Calendar::default()
    }

    /// An empty calendar for this many entries, at most [`Calendar::MOST`].
    pub fn with_limit(limit: usize) -> Calendar<T> {
        let limit = limit.min(Calendar::<T>::MOST) as u32;
        Calendar { order: Wheels::new(), limit, tick: 1 }
    }

    /// The same calendar with a tick of this many nanoseconds, at least 1. Entries that are there keep their times.
    #[must_use]
    pub fn with_tick(self, nanoseconds: i64) -> Calendar<T> {
        Calendar { tick: nanoseconds.max(1), ..self }
    }

    /// Adds an entry. A deadline in the past is as good as any: it is due at once.
    ///
    /// # Errors
    /// The calendar is full: nothing has changed, and the entry comes back.
    #[inline(always)]
    pub fn insert(&mut self, deadline: Time, entry: T) -> Result<TimerHandle, Full<T>> {
        if self.len() >= self.limit as usize {
            return Err(Full { entry, limit: self.limit as usize });
        }
        let deadline = if self.tick == 1 { deadline } else { round_up(deadline, self.tick) };
        let (slot, generation) = self.order.insert(key(deadline), entry);
        Ok(TimerHandle { deadline, slot, generation })
    }

    /// Takes an entry out; `None` if it has been popped or removed already.
    #[inline(always)]
    pub fn remove(&mut self, handle: TimerHandle) -> Option<T> {
        self.order.remove(handle.slot, handle.generation)
    }

    /// The entry of a handle, if it is still there.
    #[inline]
    pub fn get(&self, handle: TimerHandle) -> Option<&T> {
        self.order.get(handle.slot, handle.generation).map(|found| &found.entry)
    }

    /// The earliest deadline.
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        self.order.first_key().map(deadline)
    }

    /// The entry that comes next, with its deadline.
    #[inline]
    pub fn first(&self) -> Option<(Time, &T)> {
        self.order.first().map(|slot| (deadline(slot.key), &slot.entry))
    }

    /// Takes out the next entry if it is due at or before `now`, with its deadline and the handle it had.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, TimerHandle, T)> {
        let (key, slot, generation, entry) = self.order.remove_first(key(now))?;
        let deadline = deadline(key);
        Some((deadline, TimerHandle { deadline, slot, generation }, entry))
    }

    /// Takes out the entries that are due at or before `now`, in their order, as they are asked for. What is inserted
    /// after the iterator has been dropped, and due at `now` too, comes with the next call.
    pub fn drain_due(&mut self, now: Time) -> impl Iterator<Item = (Time, TimerHandle, T)> {
        std::iter::from_fn(move || self.pop_due(now))
    }

    /// Takes out up to `most` entries that are due at or before `now` and appends them to `batch`; returns how many.
    pub fn pop_due_batch(&mut self, now: Time, most: usize, batch: &mut Vec<(Time, TimerHandle, T)>) -> usize {
        let before = batch.len();
        batch.extend(self.drain_due(now).take(most));
        batch.len() - before
    }

    /// How many entries there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries there may be.
    pub fn limit(&self) -> usize {
        self.limit as usize
    }
}

/// Keys have the order of the deadlines, and no sign.
#[inline]
fn key(deadline: Time) -> u64 {
    deadline.nanoseconds() as u64 ^ 1 << 63
}

#[inline]
fn deadline(key: u64) -> Time {
    Time::from_nanoseconds((key ^ 1 << 63) as i64)
}

/// The next multiple of the tick, or the end of time.
#[cold]
fn round_up(deadline: Time, tick: i64) -> Time {
    match deadline.nanoseconds().rem_euclid(tick) {
        0 => deadline,
        over => deadline.after(tick - over),
    }
}
