//! The order of timers: wheels within wheels. See `docs/calendar.md` for the structure and what it costs.
//!
//! A timer is a slot number with a key. A bucket holds up to 16 slots of any order of keys; one more turns it into a
//! wheel of 64 finer buckets. A key's place depends on the keys alone, not on the time: nothing moves because time goes
//! by. Slots with equal keys are always in one bucket, in the order in which they came.

use crate::pool::{NONE, Pool, Pooled};
use std::cell::Cell;

/// Bits of a key that choose a bucket of a wheel.
const BITS: u32 = 6;
/// Buckets of a wheel.
const BUCKETS: usize = 1 << BITS;
/// Most slots of a bucket before it becomes a wheel, or a crowd if all their keys are equal.
const MOST: usize = 16;
/// The wheel that holds everything. It is always there; only 16 of its buckets are used.
const ROOT: u32 = 0;

/// Slots in the order of their keys.
#[derive(Clone, Debug)]
pub struct Wheels {
    /// For each slot its key; in a crowd, which has the key, its neighbours.
    words: Pool<Word>,
    wheels: Pool<Wheel>,
    fours: Pool<[u32; 4]>,
    sixteens: Pool<[u32; MOST]>,
    crowds: Pool<Crowd>,
    count: usize,
    first: Cell<First>,
    /// The wheels in which a slot was put and from which one was taken last: the next is often there too.
    put: u32,
    taken: u32,
    /// Slot numbers written from one bucket to another.
    #[cfg(test)]
    moves: usize,
}

/// What is known of the earliest slot.
#[derive(Clone, Copy, Debug)]
enum First {
    /// It is this one, and was found in this wheel.
    Known { key: u64, slot: u32, wheel: u32 },
    /// It is somewhere in this wheel.
    Within(u32),
}

/// 64 buckets, for the keys with this prefix.
#[derive(Clone, Debug)]
struct Wheel {
    /// A bit for each bucket that is not empty.
    occupied: u64,
    /// What stands above the bits that choose the bucket. All ones, which no key has there, if the wheel is free.
    prefix: u64,
    /// Where the bits are that choose the bucket.
    shift: u32,
    /// The wheel one of whose buckets this is.
    parent: u32,
    buckets: [Bucket; BUCKETS],
}

/// How many slots and where, or which crowd or wheel, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bucket(u32);

const INDEX_BITS: u32 = 27;
const CROWD: u32 = 17;
const WHEEL: u32 = 18;

/// Most slots that can be numbered.
pub const MOST_SLOTS: u32 = 1 << INDEX_BITS;

/// Any number of slots with the same key, in the order in which they came, linked in their words.
#[derive(Clone, Debug)]
struct Crowd {
    key: u64,
    head: u32,
    tail: u32,
}

/// A key or, in a crowd, the slots before and after.
#[derive(Clone, Copy, Debug)]
struct Word {
    before: u32,
    after: u32,
}

impl Bucket {
    const EMPTY: Bucket = Bucket(0);

    #[inline]
    fn new(tag: u32, index: u32) -> Bucket {
        Bucket(tag << INDEX_BITS | index)
    }

    /// The number of slots, or `CROWD`, or `WHEEL`.
    #[inline]
    fn tag(self) -> u32 {
        self.0 >> INDEX_BITS
    }

    #[inline]
    fn index(self) -> u32 {
        self.0 & (MOST_SLOTS - 1)
    }
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
        let shift = differing.ilog2() / BITS * BITS;
        Wheel { prefix: key >> shift >> BITS, shift, parent, ..Wheel::new() }
    }

    /// Puts something in a bucket.
    #[inline]
    fn fill(&mut self, position: usize, bucket: Bucket) {
        self.buckets[position % BUCKETS] = bucket;
        self.occupied |= 1 << (position % BUCKETS);
    }

    /// Empties a bucket.
    #[inline]
    fn clear(&mut self, position: usize) {
        self.buckets[position % BUCKETS] = Bucket::EMPTY;
        self.occupied &= !(1 << (position % BUCKETS));
    }

    /// The least key it may hold.
    fn start(&self) -> u64 {
        self.prefix << BITS << self.shift
    }
}

impl Pooled for Wheel {
    fn new() -> Wheel {
        Wheel { occupied: 0, prefix: u64::MAX, shift: 0, parent: NONE, buckets: [Bucket::EMPTY; BUCKETS] }
    }

    fn link(&self) -> u32 {
        self.parent
    }

    fn set_link(&mut self, next: u32) {
        self.parent = next;
    }
}

impl Pooled for Crowd {
    fn new() -> Crowd {
        Crowd { key: 0, head: NONE, tail: NONE }
    }

    fn link(&self) -> u32 {
        self.head
    }

    fn set_link(&mut self, next: u32) {
        self.head = next;
    }
}

impl Pooled for Word {
    fn new() -> Word {
        Word { before: NONE, after: NONE }
    }

    fn link(&self) -> u32 {
        self.after
    }

    fn set_link(&mut self, next: u32) {
        self.after = next;
    }
}

impl Word {
    #[inline]
    fn of(key: u64) -> Word {
        Word { before: (key >> 32) as u32, after: key as u32 }
    }

    #[inline]
    fn key(self) -> u64 {
        u64::from(self.before) << 32 | u64::from(self.after)
    }
}

impl Wheels {
    /// No slots.
    pub fn new() -> Wheels {
        let mut wheels = Pool::new();
        wheels.add(Wheel { prefix: 0, shift: 10 * BITS, ..Wheel::new() });
        Wheels {
            words: Pool::new(),
            wheels,
            fours: Pool::new(),
            sixteens: Pool::new(),
            crowds: Pool::new(),
            count: 0,
            first: Cell::new(First::Within(ROOT)),
            put: ROOT,
            taken: ROOT,
            #[cfg(test)]
            moves: 0,
        }
    }

    /// How many slots there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Puts a slot where its key belongs, after all that are there with the same key. The slot must not be there yet.
    pub fn insert(&mut self, slot: u32, key: u64) {
        self.words.reach(slot);
        *self.words.at_mut(slot) = Word::of(key);
        let (wheel, position, bucket) = self.find(key, self.put);
        self.put = wheel;
        let earlier = match self.first.get() {
            First::Known { key: first, .. } => key < first,
            First::Within(wheel) => key < self.wheels.at(wheel).start(),
        };
        if earlier || self.count == 0 {
            self.first.set(First::Known { key, slot, wheel });
        }
        self.count += 1;
        let bucket = match bucket.tag() {
            CROWD => self.join(bucket, slot, key, wheel),
            WHEEL => self.fork(bucket, self.wheels.at(bucket.index()).start(), slot, key, wheel),
            tag if tag as usize == MOST => self.split(bucket, slot, key, wheel),
            _ => self.append(bucket, slot),
        };
        self.wheels.at_mut(wheel).fill(position, bucket);
    }

    /// Takes a slot out; false if it is not there with this key.
    pub fn remove(&mut self, slot: u32, key: u64) -> bool {
        let near = match self.first.get() {
            First::Known { slot: first, wheel, .. } if first == slot => wheel,
            _ => self.taken,
        };
        let (wheel, position, bucket) = self.find(key, near);
        self.taken = wheel;
        let rest = match bucket.tag() {
            WHEEL => None,
            CROWD => self.leave(bucket, slot, key),
            _ => self.without(bucket, slot),
        };
        let Some(rest) = rest else { return false };
        self.count -= 1;
        if matches!(self.first.get(), First::Known { slot: first, .. } if first == slot) {
            // All that is left in this wheel comes before all that is elsewhere.
            self.first.set(First::Within(wheel));
        }
        if rest == Bucket::EMPTY {
            self.wheels.at_mut(wheel).clear(position);
            self.thin_out(wheel);
        } else if rest != bucket {
            self.wheels.at_mut(wheel).fill(position, rest);
        }
        true
    }

    /// The least key, and the slot that came first of those with this key.
    #[inline]
    pub fn first(&self) -> Option<(u64, u32)> {
        match self.first.get() {
            First::Known { key, slot, .. } if self.count > 0 => Some((key, slot)),
            First::Within(wheel) if self.count > 0 => Some(self.seek(wheel)),
            _ => None,
        }
    }

    /// Finds the first slot, which is in this wheel.
    fn seek(&self, mut wheel: u32) -> (u64, u32) {
        loop {
            let found = self.wheels.at(wheel);
            // Only the root may be empty, and only if everything is.
            let bucket = found.buckets[found.occupied.trailing_zeros() as usize % BUCKETS];
            let (key, slot) = match bucket.tag() {
                WHEEL => {
                    wheel = bucket.index();
                    continue;
                }
                CROWD => {
                    let crowd = self.crowds.at(bucket.index());
                    (crowd.key, crowd.head)
                }
                _ => self.least(bucket),
            };
            self.first.set(First::Known { key, slot, wheel });
            return (key, slot);
        }
    }

    /// The least key of a few slots, and the first of them with it.
    fn least(&self, bucket: Bucket) -> (u64, u32) {
        let key = |slot: u32| self.words.at(slot).key();
        let single = [bucket.index()];
        let slots = self.few(bucket, &single);
        let mut least = (key(slots[0]), slots[0]);
        for &slot in &slots[1..] {
            let key = key(slot);
            if key < least.0 {
                least = (key, slot);
            }
        }
        least
    }

    /// The bucket of a key: in the finest wheel that covers it. The search begins at a wheel that may be near.
    #[inline(always)]
    fn find(&self, key: u64, near: u32) -> (u32, usize, Bucket) {
        let mut wheel = near;
        let mut found = self.wheels.at(near);
        if !found.covers(key) {
            wheel = ROOT;
            found = self.wheels.at(ROOT);
        }
        loop {
            let position = found.position(key);
            let bucket = found.buckets[position];
            if bucket.tag() != WHEEL {
                return (wheel, position, bucket);
            }
            let finer = self.wheels.at(bucket.index());
            if !finer.covers(key) {
                return (wheel, position, bucket);
            }
            (wheel, found) = (bucket.index(), finer);
        }
    }

    /// The slots of a bucket of at most 16; a single one is in the bucket's word.
    #[inline]
    fn few<'a>(&'a self, bucket: Bucket, single: &'a [u32; 1]) -> &'a [u32] {
        match bucket.tag() as usize {
            0 => &[],
            1 => single,
            count if count <= 4 => &self.fours.at(bucket.index())[..count],
            count => &self.sixteens.at(bucket.index())[..count.min(MOST)],
        }
    }

    /// Adds a slot to a bucket of fewer than 16.
    #[inline]
    fn append(&mut self, bucket: Bucket, slot: u32) -> Bucket {
        let (count, index) = (bucket.tag(), bucket.index());
        match count {
            0 => return Bucket::new(1, slot),
            1 | 4 => return self.widen(bucket, slot),
            2 | 3 => self.fours.at_mut(index)[count as usize] = slot,
            _ => self.sixteens.at_mut(index)[count as usize % MOST] = slot,
        }
        Bucket(bucket.0 + Bucket::new(1, 0).0)
    }

    /// Adds a slot to a bucket that needs more room for it.
    fn widen(&mut self, bucket: Bucket, slot: u32) -> Bucket {
        let index = bucket.index();
        if bucket.tag() == 1 {
            self.moved(1);
            return Bucket::new(2, self.fours.add([index, slot, NONE, NONE]));
        }
        self.moved(4);
        let mut slots = [NONE; MOST];
        slots[..4].copy_from_slice(self.fours.at(index));
        slots[4] = slot;
        self.fours.free(index);
        Bucket::new(5, self.sixteens.add(slots))
    }

    /// A bucket of few slots without one of them; `None` if it is not there. The others stay in order.
    #[inline(always)]
    fn without(&mut self, bucket: Bucket, slot: u32) -> Option<Bucket> {
        fn close(slots: &mut [u32], slot: u32) -> Option<usize> {
            let place = slots.iter().position(|it| *it == slot)?;
            slots.copy_within(place + 1.., place);
            Some(slots.len() - 1 - place)
        }
        let (count, index) = (bucket.tag(), bucket.index());
        match count {
            0 => None,
            1 => (index == slot).then_some(Bucket::EMPTY),
            // The oldest of two: what happens most often where timers come and go in turn.
            2 if self.fours.at(index)[0] == slot => {
                let last = self.fours.at(index)[1];
                self.moved(1);
                self.fours.free(index);
                Some(Bucket::new(1, last))
            }
            2..=4 => {
                let slots = self.fours.at_mut(index);
                let moved = close(&mut slots[..count as usize], slot)?;
                let first = slots[0];
                self.moved(moved);
                if count == 2 {
                    self.fours.free(index);
                    return Some(Bucket::new(1, first));
                }
                Some(Bucket::new(count - 1, index))
            }
            _ => {
                let slots = self.sixteens.at_mut(index);
                let moved = close(&mut slots[..(count as usize).min(MOST)], slot)?;
                let four = [slots[0], slots[1], slots[2], slots[3]];
                self.moved(moved);
                if count == 5 {
                    self.moved(4);
                    self.sixteens.free(index);
                    return Some(Bucket::new(4, self.fours.add(four)));
                }
                Some(Bucket::new(count - 1, index))
            }
        }
    }

    /// A full bucket of a wheel, and one more slot: finer buckets, or a crowd if there is nothing to tell them apart.
    #[cold]
    fn split(&mut self, bucket: Bucket, slot: u32, key: u64, parent: u32) -> Bucket {
        let slots = *self.sixteens.at(bucket.index());
        self.sixteens.free(bucket.index());
        self.moved(MOST);
        let keys = slots.map(|slot| self.words.at(slot).key());
        let differing = keys.iter().fold(0, |bits, other| bits | (other ^ key));
        if differing == 0 {
            let crowd = self.crowds.add(Crowd { key, head: NONE, tail: NONE });
            slots.iter().chain([&slot]).for_each(|slot| self.push(crowd, *slot));
            return Bucket::new(CROWD, crowd);
        }
        let wheel = self.wheels.add(Wheel::finer(key, differing, parent));
        for (slot, key) in slots.into_iter().zip(keys).chain([(slot, key)]) {
            let position = self.wheels.at(wheel).position(key);
            // Their keys differ in the bits of this wheel, so that no bucket gets all 17.
            let bucket = self.append(self.wheels.at(wheel).buckets[position], slot);
            self.wheels.at_mut(wheel).fill(position, bucket);
        }
        Bucket::new(WHEEL, wheel)
    }

    /// A new wheel with a crowd or a wheel, one of whose keys is `other`, and a slot that does not belong in there.
    #[cold]
    fn fork(&mut self, bucket: Bucket, other: u64, slot: u32, key: u64, parent: u32) -> Bucket {
        let mut wheel = Wheel::finer(key, other ^ key, parent);
        wheel.fill(wheel.position(other), bucket);
        wheel.fill(wheel.position(key), Bucket::new(1, slot));
        let wheel = self.wheels.add(wheel);
        if bucket.tag() == WHEEL {
            self.wheels.at_mut(bucket.index()).parent = wheel;
        }
        Bucket::new(WHEEL, wheel)
    }

    /// After a bucket of this wheel has become empty: a wheel with only one bucket is not needed.
    #[inline]
    fn thin_out(&mut self, wheel: u32) {
        let occupied = self.wheels.at(wheel).occupied;
        if occupied & occupied.wrapping_sub(1) == 0 && wheel != ROOT {
            self.drop_wheel(wheel);
        }
    }

    /// Puts the only bucket of a wheel in the wheel's place.
    fn drop_wheel(&mut self, wheel: u32) {
        let found = self.wheels.at(wheel);
        let (start, parent) = (found.start(), found.parent);
        let last = found.buckets[found.occupied.trailing_zeros() as usize % BUCKETS];
        if last.tag() == WHEEL {
            self.wheels.at_mut(last.index()).parent = parent;
        }
        let above = self.wheels.at_mut(parent);
        above.fill(above.position(start), last);
        self.wheels.at_mut(wheel).prefix = u64::MAX;
        self.wheels.free(wheel);
        if matches!(self.first.get(), First::Within(within) if within == wheel) {
            self.first.set(First::Within(parent));
        }
    }

    fn join(&mut self, bucket: Bucket, slot: u32, key: u64, parent: u32) -> Bucket {
        let crowd = self.crowds.at(bucket.index());
        if crowd.key != key {
            return self.fork(bucket, crowd.key, slot, key, parent);
        }
        self.push(bucket.index(), slot);
        bucket
    }

    /// Adds a slot at the end of a crowd.
    fn push(&mut self, crowd: u32, slot: u32) {
        let found = self.crowds.at_mut(crowd);
        let last = std::mem::replace(&mut found.tail, slot);
        if last == NONE {
            found.head = slot;
        } else {
            self.words.at_mut(last).after = slot;
        }
        *self.words.at_mut(slot) = Word { before: last, after: NONE };
    }

    /// Takes a slot out of a crowd; `None` if it is not in it.
    fn leave(&mut self, bucket: Bucket, slot: u32, key: u64) -> Option<Bucket> {
        let Word { before, after } = *self.words.get(slot)?;
        let crowd = self.crowds.at_mut(bucket.index());
        if crowd.key != key {
            return None;
        }
        match before {
            NONE => crowd.head = after,
            _ => self.words.at_mut(before).after = after,
        }
        match after {
            NONE => crowd.tail = before,
            _ => self.words.at_mut(after).before = before,
        }
        if (before, after) == (NONE, NONE) {
            self.crowds.free(bucket.index());
            return Some(Bucket::EMPTY);
        }
        Some(bucket)
    }

    #[inline]
    fn moved(&mut self, _slots: usize) {
        #[cfg(test)]
        {
            self.moves += _slots;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slot numbers that one operation may write at most: a split writes 16, each perhaps once more on the way from one
    /// size of bucket to the next (1, then 4), and the one that is inserted.
    const MOST_MOVES: usize = 64;

    /// Wheels, a list of what is in them, and how many moves one operation took at most.
    #[derive(Default)]
    struct Watched {
        wheels: Option<Wheels>,
        most: usize,
    }

    impl Watched {
        fn run<R>(&mut self, operation: impl FnOnce(&mut Wheels) -> R) -> R {
            let wheels = self.wheels.get_or_insert_with(Wheels::new);
            let before = wheels.moves;
            let result = operation(wheels);
            self.most = self.most.max(wheels.moves - before);
            result
        }

        fn pop(&mut self) -> Option<(u64, u32)> {
            self.run(|wheels| {
                let (key, slot) = wheels.first()?;
                assert!(wheels.remove(slot, key));
                Some((key, slot))
            })
        }
    }

    /// Not random, and without a pattern that matters here.
    fn scattered(number: u32) -> u64 {
        (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn no_operation_moves_many() {
        type Shape = (&'static str, fn(u32) -> u64);
        let shapes: [Shape; 7] = [
            ("all in one bucket far away", |it| (1 << 40) + u64::from(it)),
            ("all equal", |_| 7),
            ("spread over everything", scattered),
            ("spread over a second", |it| scattered(it) % 1_000_000_000),
            ("a few ticks", |it| scattered(it) % 100),
            ("clusters far apart", |it| (u64::from(it) / 20) << 33),
            ("every power of two", |it| 1 << (it % 64)),
        ];
        for (name, shape) in shapes {
            let mut watched = Watched::default();
            let count = 50_000;
            // One before all others, which keeps them from being looked at until it is gone.
            watched.run(|wheels| wheels.insert(count, 0));
            for slot in 0..count {
                watched.run(|wheels| wheels.insert(slot, shape(slot).max(1)));
            }
            for slot in (0..count).step_by(3) {
                assert!(watched.run(|wheels| wheels.remove(slot, shape(slot).max(1))), "{name}");
            }
            let mut last = (0, 0);
            assert_eq!(watched.pop(), Some((0, count)));
            while let Some(next) = watched.pop() {
                assert!(last <= next, "{name}: {last:?} before {next:?}");
                last = next;
            }
            assert_eq!(watched.wheels.map(|wheels| wheels.len()), Some(0));
            assert!(watched.most <= MOST_MOVES, "{name}: {} moves at once", watched.most);
        }
    }

    #[test]
    fn nothing_is_left_behind() {
        let mut wheels = Wheels::new();
        for slot in 0..5_000 {
            wheels.insert(slot, scattered(slot) % 100_000);
        }
        for slot in 0..5_000 {
            assert!(wheels.remove(slot, scattered(slot) % 100_000));
            assert!(!wheels.remove(slot, scattered(slot) % 100_000));
        }
        assert_eq!((wheels.first(), wheels.wheels.at(ROOT).occupied), (None, 0));
        assert_eq!(wheels.wheels.used(), 1);
        assert_eq!((wheels.fours.used(), wheels.sixteens.used(), wheels.crowds.used()), (0, 0, 0));
    }

    #[test]
    fn a_wheel_has_at_least_two_buckets() {
        let mut wheels = Wheels::new();
        for slot in 0..2_000 {
            wheels.insert(slot, scattered(slot) % (1 << 30));
        }
        for slot in 0..1_990 {
            assert!(wheels.remove(slot, scattered(slot) % (1 << 30)));
            assert!(wheels.wheels.used() <= wheels.len());
        }
    }
}
