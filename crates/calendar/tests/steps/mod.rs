//! Sequences of operations, run on a calendar and on a sorted list. The fuzz target `calendar` uses this file too.

use std::collections::BTreeMap;
use weftwire_calendar::{Calendar, TimerHandle};
use weftwire_core::Time;

/// An operation.
#[derive(Clone, Debug)]
pub enum Step {
    /// One entry with this deadline.
    Insert(i64),
    /// Entries with the same deadline.
    InsertMany(i64, u8),
    /// Removes the entry inserted as the n-th, whether it is still there or not.
    Remove(usize),
    /// Pops the next entry if it is due at this time.
    PopDue(i64),
    /// Pops this many entries.
    PopSome(u8),
    /// Pops up to so many entries that are due at this time.
    Batch(i64, usize),
}

/// Runs the steps on a calendar with this tick and limit, and on a list.
///
/// # Panics
/// If they disagree.
pub fn run(tick: i64, limit: usize, steps: &[Step]) {
    let mut pair = Pair {
        calendar: Calendar::with_limit(limit).with_tick(tick),
        limit,
        tick,
        handles: Vec::new(),
        list: BTreeMap::new(),
    };
    for step in steps {
        match *step {
            Step::Insert(at) => pair.insert(at),
            Step::InsertMany(at, count) => (0..count).for_each(|_| pair.insert(at)),
            Step::Remove(number) => pair.remove(number),
            Step::PopDue(now) => _ = pair.pop(now),
            Step::PopSome(count) => (0..count).for_each(|_| _ = pair.pop(i64::MAX)),
            Step::Batch(now, most) => pair.batch(now, most),
        }
        pair.compare();
    }
    while pair.pop(i64::MAX) {
        pair.compare();
    }
}

struct Pair {
    calendar: Calendar<usize>,
    limit: usize,
    tick: i64,
    handles: Vec<TimerHandle>,
    /// Deadline and number of insertion: in order.
    list: BTreeMap<(i64, usize), ()>,
}

impl Pair {
    fn insert(&mut self, at: i64) {
        let number = self.handles.len();
        let rounded = (i128::from(at) + i128::from(self.tick) - 1).div_euclid(self.tick.into()) * i128::from(self.tick);
        let due = i64::try_from(rounded).unwrap_or(i64::MAX);
        match self.calendar.insert(Time::from_nanoseconds(at), number) {
            Ok(handle) => {
                assert!(self.list.len() < self.limit, "more than the limit");
                assert_eq!(handle.deadline().nanoseconds(), due);
                assert!(!self.handles.contains(&handle), "a handle came twice");
                self.handles.push(handle);
                self.list.insert((due, number), ());
            }
            Err(full) => assert_eq!((self.list.len(), full.entry), (self.limit, number)),
        }
    }

    fn remove(&mut self, number: usize) {
        let Some(&handle) = self.handles.get(number) else { return };
        let expected = self.list.remove(&(handle.deadline().nanoseconds(), number)).map(|()| number);
        assert_eq!(self.calendar.get(handle).copied(), expected);
        assert_eq!(self.calendar.remove(handle), expected);
        assert_eq!(self.calendar.get(handle), None);
    }

    fn pop(&mut self, now: i64) -> bool {
        let expected = self.list.first_key_value().map(|(key, ())| *key).filter(|(due, _)| *due <= now);
        let popped = self.calendar.pop_due(Time::from_nanoseconds(now));
        self.check(expected, popped)
    }

    fn batch(&mut self, now: i64, most: usize) {
        let mut batch = Vec::new();
        let count = self.calendar.pop_due_batch(Time::from_nanoseconds(now), most, &mut batch);
        let due = self.list.range(..=(now, usize::MAX)).take(most).map(|(key, ())| *key).collect::<Vec<_>>();
        assert_eq!((count, batch.len()), (due.len(), due.len()));
        for (popped, expected) in batch.into_iter().zip(due) {
            self.check(Some(expected), Some(popped));
        }
    }

    fn check(&mut self, expected: Option<(i64, usize)>, popped: Option<(Time, TimerHandle, usize)>) -> bool {
        assert_eq!(popped.map(|(due, _, number)| (due.nanoseconds(), number)), expected);
        let Some((_, handle, number)) = popped else { return false };
        assert_eq!(handle, self.handles[number]);
        self.list.remove(&(handle.deadline().nanoseconds(), number));
        true
    }

    fn compare(&self) {
        assert_eq!(self.calendar.len(), self.list.len());
        let first = self.list.first_key_value().map(|((due, number), ())| (*due, *number));
        assert_eq!(self.calendar.first().map(|(due, number)| (due.nanoseconds(), *number)), first);
        assert_eq!(self.calendar.next_deadline().map(Time::nanoseconds), first.map(|(due, _)| due));
    }
}

/// The body of the fuzz target `calendar`: two bytes for tick and limit, then steps of an operation and a number each.
pub fn calendar(data: &[u8]) {
    let [tick, limit, bytes @ ..] = data else { return };
    let steps: Vec<Step> = bytes.chunks_exact(4).take(2_000).map(decode).collect();
    run(1 + i64::from(tick & 15), if *limit == 0 { 1_000 } else { usize::from(*limit) }, &steps);
}

/// Three bytes are the time: the first says how far to shift the others, so that times are near, far, equal and past.
fn decode(bytes: &[u8]) -> Step {
    let number = i64::from(bytes[2]) | i64::from(bytes[3]) << 8;
    let at = match bytes[1] & 63 {
        shift @ 0..48 => number << shift,
        48..60 => number - 1_000,
        60 => i64::MAX - number,
        61 => i64::MIN + number,
        _ => 1_000_000_000 + number,
    };
    match bytes[0] % 8 {
        0..=2 => Step::Insert(at),
        3 => Step::InsertMany(at, bytes[0] >> 3),
        4 => Step::Remove(number as usize),
        5 => Step::PopDue(at),
        6 => Step::PopSome(bytes[1] & 15),
        _ => Step::Batch(at, usize::from(bytes[0] >> 3)),
    }
}
