//! The order of timers: wheels within wheels. See `docs/calendar.md` for the structure and what it costs.
//!
//! A timer is a slot with a key. A bucket is a list of slots of any order of keys, linked both ways; one that has become
//! long, or not quite so long and is the first, is made a wheel of 64 finer buckets. A key's place depends on the keys
//! alone, not on the time: nothing moves because time goes by. Slots with equal keys are always in one bucket, in the
//! order in which they came.

use crate::pool::{NONE, Pool, Pooled};
use std::cell::Cell;

/// Bits of a key that choose a bucket of a wheel.
const BITS: u32 = 6;
/// Buckets of a wheel.
const BUCKETS: usize = 1 << BITS;
/// Most slots of a bucket before it becomes a wheel, if their keys may differ.
const MOST: u32 = 31;
/// A bucket that has at most so many when they are counted stays one.
const FEW: u32 = 16;
/// Most slots of the first bucket, which is searched for its least key again and again.
const MOST_FIRST: u32 = 8;
/// The wheel that holds everything. It is always there; only 16 of its buckets are used.
const ROOT: u32 = 0;

/// Most slots that can be numbered. There are less than two wheels for every slot, and what a link can say besides a
/// slot is enough to name all their buckets.
pub const MOST_SLOTS: u32 = 33_000_000;

/// Slots in the order of their keys.
#[derive(Clone, Debug)]
pub struct Wheels<T> {
    slots: Pool<Slot<T>, 512>,
    wheels: Pool<Wheel, 32>,
    count: usize,
    first: Cell<First>,
    /// The wheel in which a slot was put last: the next is often put there too.
    put: u32,
    /// Slots moved from one bucket to another.
    #[cfg(test)]
    moves: usize,
}

/// Where the earliest slot is: in this wheel or a finer one; and, if it is known, the slot and its key.
#[derive(Clone, Copy, Debug)]
struct First {
    key: u64,
    /// `NONE` if it is not known.
    slot: u32,
    wheel: u32,
}

/// The earliest slot, the bucket it is in, how many are looked through to find it there, and in which bits they differ.
struct Sought {
    first: First,
    position: usize,
    count: u32,
    differing: u64,
}

/// A timer, or a free slot, which has no entry.
#[derive(Clone, Debug)]
pub struct Slot<T> {
    pub key: u64,
    pub serial: u64,
    /// The slots before and after it in its bucket, or the bucket itself.
    before: u32,
    after: u32,
    pub entry: Option<T>,
}

/// 64 buckets, for the keys with this prefix.
#[derive(Clone, Debug)]
struct Wheel {
    /// A bit for each bucket that is not empty.
    occupied: u64,
    /// A bit for each bucket that is a wheel.
    finer: u64,
    /// What stands above the bits that choose the bucket. All ones, which no key has there, if the wheel is free.
    prefix: u64,
    /// Where the bits are that choose the bucket. At 0, all keys of a bucket are equal.
    shift: u32,
    /// The wheel one of whose buckets this is.
    parent: u32,
    buckets: [Bucket; BUCKETS],
}

/// A list, or the number of a wheel in place of the head. It means nothing while the bucket is empty.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The first slot and, above `INDEX_BITS`, how many were added since they were counted, up to `MOST`.
    head: u32,
    tail: u32,
}

const INDEX_BITS: u32 = 27;

impl Bucket {
    const EMPTY: Bucket = Bucket { head: 0, tail: 0 };

    #[inline]
    fn index(self) -> u32 {
        self.head & ((1 << INDEX_BITS) - 1)
    }

    #[inline]
    fn added(self) -> u32 {
        self.head >> INDEX_BITS
    }
}

/// How a slot names its bucket.
#[inline]
fn link(wheel: u32, position: usize) -> u32 {
    MOST_SLOTS + (wheel << BITS) + position as u32
}

/// The bucket that a link names; `None` if it names a slot.
#[inline]
fn bucket(link: u32) -> Option<(u32, usize)> {
    let number = link.checked_sub(MOST_SLOTS)?;
    Some((number >> BITS, number as usize % BUCKETS))
}

impl Wheel {
    #[inline]
    fn covers(&self, key: u64) -> bool {
        key >> self.shift >> BITS == self.prefix
    }

    #[inline]
    fn position(&self, key: u64) -> usize {
        (key >> self.shift) as usize % BUCKETS
    }

    /// An empty wheel for keys that differ in these bits, the highest of which are to choose the bucket.
    fn finer(key: u64, differing: u64, parent: u32) -> Wheel {
        let shift = (differing | 1).ilog2() / BITS * BITS;
        Wheel { prefix: key >> shift >> BITS, shift, parent, ..Wheel::new() }
    }

    /// Puts a wheel in a bucket.
    fn put_wheel(&mut self, position: usize, wheel: u32) {
        self.buckets[position % BUCKETS] = Bucket { head: wheel, tail: NONE };
        self.occupied |= 1 << position;
        self.finer |= 1 << position;
    }

    /// The least key it may hold.
    fn start(&self) -> u64 {
        self.prefix << BITS << self.shift
    }
}

impl Pooled for Wheel {
    fn new() -> Wheel {
        Wheel { occupied: 0, finer: 0, prefix: u64::MAX, shift: 0, parent: NONE, buckets: [Bucket::EMPTY; BUCKETS] }
    }

    fn link(&self) -> u32 {
        self.parent
    }

    fn set_link(&mut self, next: u32) {
        self.parent = next;
    }
}

impl<T> Pooled for Slot<T> {
    fn new() -> Slot<T> {
        Slot { key: 0, serial: 0, before: NONE, after: NONE, entry: None }
    }

    #[inline]
    fn link(&self) -> u32 {
        self.after
    }

    #[inline]
    fn set_link(&mut self, next: u32) {
        self.after = next;
    }
}

impl<T> Wheels<T> {
    /// No slots.
    pub fn new() -> Wheels<T> {
        let mut wheels = Pool::new();
        wheels.add(Wheel { prefix: 0, shift: 10 * BITS, ..Wheel::new() });
        Wheels {
            slots: Pool::new(),
            wheels,
            count: 0,
            first: Cell::new(First { key: 0, slot: NONE, wheel: ROOT }),
            put: ROOT,
            #[cfg(test)]
            moves: 0,
        }
    }

    /// How many slots are taken.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// A slot; `None` if there never was one with this number.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&Slot<T>> {
        self.slots.get(slot)
    }

    /// The earliest slot, its number and what is in it.
    #[inline]
    pub fn first(&self) -> Option<(u32, &Slot<T>)> {
        let slot = self.known_first()?.slot;
        Some((slot, self.slots.at(slot)))
    }

    /// The least key.
    #[inline]
    pub fn first_key(&self) -> Option<u64> {
        self.known_first().map(|first| first.key)
    }

    /// The earliest slot. It is looked for only if somebody asks: who cancels the oldest timer again and again does not.
    #[inline]
    fn known_first(&self) -> Option<First> {
        if self.count == 0 {
            return None;
        }
        let mut first = self.first.get();
        if first.slot == NONE {
            first = self.seek(first.wheel).first;
            self.first.set(first);
        }
        Some(first)
    }

    /// Takes a slot for an entry, after all that are there with the same key.
    #[inline]
    pub fn insert(&mut self, key: u64, serial: u64, entry: T) -> u32 {
        let (mut wheel, mut position) = self.find(key);
        let found = self.wheels.at(wheel);
        if found.occupied >> position & 1 != 0 {
            let full = found.buckets[position].added() == MOST && found.shift > 0;
            if found.finer >> position & 1 != 0 {
                (wheel, position) = self.fork(wheel, position, key);
            } else if full {
                (wheel, position) = self.relieve(wheel, position, key);
            }
        }
        self.put = wheel;
        let slot = self.slots.reserve();
        let (before, after) = self.append(wheel, position, slot);
        *self.slots.at_mut(slot) = Slot { key, serial, before, after, entry: Some(entry) };
        let first = self.first.get();
        // If it is not known, what comes before all of its wheel is it.
        let least = if first.slot == NONE { self.wheels.at(first.wheel).start() } else { first.key };
        if key < least || self.count == 0 {
            self.first.set(First { key, slot, wheel });
        }
        self.count += 1;
        slot
    }

    /// Frees a slot that is taken; its entry.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> Option<T> {
        let found = self.slots.at_mut(slot);
        let entry = found.entry.take()?;
        let (before, after) = (found.before, found.after);
        self.slots.free(slot);
        self.count -= 1;
        if slot == self.first.get().slot {
            // All that is left in this wheel comes before all that is elsewhere.
            self.first.get_mut().slot = NONE;
        }
        if before == after {
            self.emptied(before);
            return Some(entry);
        }
        match bucket(before) {
            None => self.slots.at_mut(before).after = after,
            Some((wheel, position)) => {
                let head = &mut self.wheels.at_mut(wheel).buckets[position].head;
                *head = *head >> INDEX_BITS << INDEX_BITS | after;
            }
        }
        match bucket(after) {
            None => self.slots.at_mut(after).before = before,
            Some((wheel, position)) => self.wheels.at_mut(wheel).buckets[position].tail = before,
        }
        Some(entry)
    }

    /// Frees the slot that comes first; its entry. The first bucket is kept short, as this is done again and again.
    #[inline]
    pub fn remove_first(&mut self) -> Option<T> {
        let entry = self.remove(self.known_first()?.slot)?;
        if self.count > 0 {
            let mut sought = self.seek(self.first.get().wheel);
            if sought.count > MOST_FIRST {
                // Once: if the first of the new buckets is long too, it is split the next time.
                let finer = self.split(sought.first.wheel, sought.position, sought.first.key, sought.differing);
                sought = self.seek(finer);
            }
            self.first.set(sought.first);
        }
        Some(entry)
    }

    /// Finds the first slot of a wheel, which must not be empty.
    fn seek(&self, mut wheel: u32) -> Sought {
        let (position, bucket, shift) = loop {
            let found = self.wheels.at(wheel);
            let position = found.occupied.trailing_zeros() as usize % BUCKETS;
            let bucket = found.buckets[position];
            if found.finer >> position & 1 == 0 {
                break (position, bucket, found.shift);
            }
            wheel = bucket.index();
        };
        let (mut near, mut far) = (bucket.index(), bucket.tail);
        let mut head = self.slots.at(near);
        let (mut key, mut slot) = (head.key, near);
        let (mut count, mut differing) = (1, 0);
        if shift > 0 && near != far {
            // From both ends, so that the processor fetches two slots at once.
            let one = key;
            let mut tail = self.slots.at(far);
            let (mut last_key, mut last) = (tail.key, far);
            loop {
                count += 1;
                differing |= (head.key ^ one) | (tail.key ^ one);
                if head.key < key {
                    (key, slot) = (head.key, near);
                }
                if tail.key <= last_key {
                    (last_key, last) = (tail.key, far);
                }
                if head.after == far {
                    break;
                }
                near = head.after;
                head = self.slots.at(near);
                count += 1;
                if tail.before == near {
                    differing |= head.key ^ one;
                    if head.key < key {
                        (key, slot) = (head.key, near);
                    }
                    break;
                }
                far = tail.before;
                tail = self.slots.at(far);
            }
            if last_key < key {
                (key, slot) = (last_key, last);
            }
        }
        Sought { first: First { key, slot, wheel }, position, count, differing }
    }

    /// The bucket of a key: in the finest wheel that covers it.
    #[inline(always)]
    fn find(&self, key: u64) -> (u32, usize) {
        let mut wheel = self.put;
        let mut found = self.wheels.at(wheel);
        if !found.covers(key) {
            wheel = ROOT;
            found = self.wheels.at(ROOT);
        }
        loop {
            let position = found.position(key);
            if found.finer >> position & 1 == 0 {
                return (wheel, position);
            }
            let index = found.buckets[position].index();
            let finer = self.wheels.at(index);
            if !finer.covers(key) {
                return (wheel, position);
            }
            (wheel, found) = (index, finer);
        }
    }

    /// Adds a slot at the end of a list; what stands before and after it there.
    #[inline]
    fn append(&mut self, wheel: u32, position: usize, slot: u32) -> (u32, u32) {
        let found = self.wheels.at_mut(wheel);
        let bucket = &mut found.buckets[position % BUCKETS];
        let link = link(wheel, position);
        let last = if found.occupied >> position & 1 == 0 {
            found.occupied |= 1 << position;
            *bucket = Bucket { head: 1 << INDEX_BITS | slot, tail: slot };
            link
        } else {
            if bucket.added() < MOST {
                bucket.head += 1 << INDEX_BITS;
            }
            let last = std::mem::replace(&mut bucket.tail, slot);
            self.slots.at_mut(last).after = slot;
            last
        };
        (last, link)
    }

    /// Makes room for one more key in a bucket to which many were added; its place.
    #[cold]
    fn relieve(&mut self, wheel: u32, position: usize, key: u64) -> (u32, usize) {
        let (mut count, mut differing) = (0, 0);
        let mut next = self.wheels.at(wheel).buckets[position].index();
        while next < MOST_SLOTS {
            let slot = self.slots.at(next);
            differing |= slot.key ^ key;
            next = slot.after;
            count += 1;
        }
        if count <= FEW {
            let bucket = &mut self.wheels.at_mut(wheel).buckets[position];
            bucket.head = count << INDEX_BITS | bucket.index();
            return (wheel, position);
        }
        let finer = self.split(wheel, position, key, differing);
        (finer, self.wheels.at(finer).position(key))
    }

    /// Makes a list a wheel of finer buckets, for keys that differ in these bits from this one; its number.
    #[cold]
    fn split(&mut self, wheel: u32, position: usize, key: u64, differing: u64) -> u32 {
        let mut next = self.wheels.at(wheel).buckets[position].index();
        let finer = self.wheels.add(Wheel::finer(key, differing, wheel));
        while next < MOST_SLOTS {
            let slot = self.slots.at(next);
            let (key, moved) = (slot.key, next);
            next = slot.after;
            let links = self.append(finer, self.wheels.at(finer).position(key), moved);
            let slot = self.slots.at_mut(moved);
            (slot.before, slot.after) = links;
            #[cfg(test)]
            {
                self.moves += 1;
            }
        }
        self.wheels.at_mut(wheel).put_wheel(position, finer);
        finer
    }

    /// Puts a new wheel above one that does not cover a key; the key's place in it.
    #[cold]
    fn fork(&mut self, wheel: u32, position: usize, key: u64) -> (u32, usize) {
        let below = self.wheels.at(wheel).buckets[position].index();
        let start = self.wheels.at(below).start();
        let mut above = Wheel::finer(key, start ^ key, wheel);
        above.put_wheel(above.position(start), below);
        let place = above.position(key);
        let above = self.wheels.add(above);
        self.wheels.at_mut(below).parent = above;
        self.wheels.at_mut(wheel).put_wheel(position, above);
        (above, place)
    }

    /// After the last slot of a bucket is gone: wheels that are not needed go too.
    #[inline]
    fn emptied(&mut self, link: u32) {
        let Some((wheel, position)) = bucket(link) else { return };
        let found = self.wheels.at_mut(wheel);
        found.occupied &= !(1 << position);
        found.finer &= !(1 << position);
        if found.occupied & found.occupied.wrapping_sub(1) == 0 && wheel != ROOT {
            self.thin_out(wheel);
        }
    }

    /// Drops a wheel with at most one bucket, and puts that in the wheel's place.
    fn thin_out(&mut self, wheel: u32) {
        let found = self.wheels.at(wheel);
        let (start, parent, shift) = (found.start(), found.parent, found.shift);
        let last = (found.occupied != 0).then_some(found.occupied.trailing_zeros() as usize % BUCKETS);
        let above = self.wheels.at(parent).position(start);
        if let Some(last) = last {
            let bucket = found.buckets[last];
            if found.finer >> last & 1 != 0 {
                let below = bucket.index();
                self.wheels.at_mut(below).parent = parent;
                self.wheels.at_mut(parent).put_wheel(above, below);
            } else {
                // Equal keys stay apart from others, as their list may be of any length.
                if shift == 0 && bucket.index() != bucket.tail {
                    return;
                }
                let place = self.wheels.at_mut(parent);
                place.buckets[above] = bucket;
                place.finer &= !(1 << above);
                self.slots.at_mut(bucket.index()).before = link(parent, above);
                self.slots.at_mut(bucket.tail).after = link(parent, above);
            }
        }
        self.wheels.at_mut(wheel).prefix = u64::MAX;
        self.wheels.free(wheel);
        let first = self.first.get_mut();
        if first.wheel == wheel {
            first.wheel = parent;
        }
        if last.is_none() {
            self.emptied(link(parent, above));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots that one operation may move at most: a list that is split.
    const MOST_MOVES: usize = MOST as usize;

    /// Wheels, and how many moves one operation took at most.
    struct Watched {
        wheels: Wheels<()>,
        most: usize,
    }

    impl Watched {
        fn run<R>(&mut self, operation: impl FnOnce(&mut Wheels<()>) -> R) -> R {
            let before = self.wheels.moves;
            let result = operation(&mut self.wheels);
            self.most = self.most.max(self.wheels.moves - before);
            result
        }

        fn pop(&mut self) -> Option<(u64, u64)> {
            self.run(|wheels| {
                let (slot, found) = wheels.first()?;
                let next = (found.key, found.serial);
                assert!(wheels.first_key() == Some(next.0) && wheels.slots.at(slot).entry.is_some());
                assert!(wheels.remove_first().is_some());
                Some(next)
            })
        }
    }

    /// Not random, and without a pattern that matters here.
    fn scattered(number: u64) -> u64 {
        (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn no_operation_moves_many() {
        type Shape = (&'static str, fn(u64) -> u64);
        let shapes: [Shape; 7] = [
            ("all in one bucket far away", |it| (1 << 40) + it),
            ("all equal", |_| 7),
            ("spread over everything", scattered),
            ("spread over a second", |it| scattered(it) % 1_000_000_000),
            ("a few ticks", |it| scattered(it) % 100),
            ("clusters far apart", |it| (it / 20) << 33),
            ("every power of two", |it| 1 << (it % 64)),
        ];
        for (name, shape) in shapes {
            let mut watched = Watched { wheels: Wheels::new(), most: 0 };
            let count = 50_000;
            // One before all others, which keeps them from being looked at until it is gone.
            watched.run(|wheels| wheels.insert(0, count, ()));
            let insert = |serial| watched.run(|wheels| wheels.insert(shape(serial).max(1), serial, ()));
            let slots: Vec<u32> = (0..count).map(insert).collect();
            for slot in slots.iter().step_by(3) {
                assert!(watched.run(|wheels| wheels.remove(*slot)).is_some(), "{name}");
            }
            let mut last = (0, 0);
            assert_eq!(watched.pop(), Some((0, count)));
            while let Some(next) = watched.pop() {
                assert!(last <= next, "{name}: {last:?} before {next:?}");
                last = next;
            }
            assert_eq!(watched.wheels.len(), 0);
            assert!(watched.most <= MOST_MOVES, "{name}: {} moves at once", watched.most);
        }
    }

    #[test]
    fn nothing_is_left_behind() {
        let mut wheels = Wheels::new();
        let slots: Vec<u32> = (0..5_000).map(|it| wheels.insert(scattered(it) % 100_000, it, ())).collect();
        for slot in slots {
            assert!(wheels.remove(slot).is_some());
            assert!(wheels.remove(slot).is_none());
        }
        assert!(wheels.first().is_none() && wheels.wheels.at(ROOT).occupied == 0);
        assert_eq!((wheels.wheels.used(), wheels.slots.used()), (1, 0));
    }

    #[test]
    fn there_are_fewer_wheels_than_twice_the_slots() {
        for spread in [1 << 30, 1 << 12, 200] {
            let mut wheels = Wheels::new();
            let slots: Vec<u32> = (0..2_000).map(|it| wheels.insert(scattered(it) % spread, it, ())).collect();
            for slot in &slots[..1_990] {
                assert!(wheels.remove(*slot).is_some());
                assert!(wheels.wheels.used() <= 2 * wheels.len());
            }
        }
    }
}
