//! The order of timers: wheels within wheels. See `docs/calendar.md` for the structure and what it costs.
//!
//! A timer is a slot with a key. A bucket is a list of slots of any order of keys, linked both ways; one that has become
//! long is made a wheel of finer buckets, and the first one is sorted when its turn comes. A key's place depends on the
//! keys alone, not on the time: nothing moves because time goes by. Slots with equal keys are always in one bucket, in
//! the order in which they came.

use crate::pool::{NONE, Pool, Pooled};
use std::cell::Cell;
use std::mem;

/// Bits of a key that choose a bucket of a wheel.
const BITS: u32 = 5;
/// Wheels choose by the bits from here on, or from a multiple of `BITS` above it; or from bit 0.
const FINEST: u32 = 4;
/// Buckets of a wheel.
const BUCKETS: usize = 1 << BITS;
/// Most slots of a bucket before it becomes a wheel, if their keys may differ.
const MOST: u32 = 47;
/// A bucket that has at most so many when they are counted stays one.
const FEW: usize = 24;
/// The wheel that holds everything. It is always there.
const ROOT: u32 = 0;

/// Most slots that can be numbered: there are less than two wheels for every slot, and a link has to name all their
/// buckets.
pub const MOST_SLOTS: u32 = 33_000_000;

/// Slots in the order of their keys.
#[derive(Clone, Debug)]
pub struct Wheels<T> {
    slots: Pool<Slot<T>, 256>,
    wheels: Pool<Wheel, 16>,
    count: usize,
    first: Cell<First>,
    /// The bucket whose list is kept in order, as a link; `NONE` if there is none.
    sorted: u32,
    /// The wheel in which a slot was put last: the next is often put there too.
    put: u32,
    /// A wheel below the root, or the root itself: most keys are found from here.
    top: u32,
    /// A slot of the list after the one in order, or a link at its end. It is read in time, a slot at each removal of the
    /// first, so that it is in the caches when its turn comes. It may have gone since.
    ahead: u32,
    /// Keys and slots of a list, while it is sorted or becomes a wheel.
    list: [(u64, u32); MOST as usize],
    /// Slots that were looked at or moved, besides the one that is added or removed and its neighbours.
    #[cfg(test)]
    steps: Cell<usize>,
}

/// What is known about the earliest slot.
#[derive(Clone, Copy, Debug)]
struct First {
    /// Its key; if it is not known, no key is less than this.
    key: u64,
    /// `NONE` if it is not known.
    slot: u32,
    /// It is in this wheel or in a finer one.
    wheel: u32,
}

/// A timer, or a free slot.
#[derive(Clone, Debug)]
pub struct Slot<T> {
    pub key: u64,
    /// The slots before and after it in its bucket, or the bucket itself, as a link.
    before: u32,
    after: u32,
    /// Odd while the slot is taken, and different each time.
    pub generation: u32,
    pub entry: T,
}

/// Buckets for the keys that differ in no higher bits than those that choose the bucket.
#[derive(Clone, Debug)]
struct Wheel {
    /// The least key it may hold.
    start: u64,
    /// A bit for each bucket that is not empty.
    occupied: u32,
    /// Where the bits are that choose the bucket. At 0, all keys of a bucket are equal.
    shift: u8,
    /// How many buckets it has; the others are not used.
    width: u8,
    /// What is added to a bucket's head to count a slot: nothing if all its keys are equal.
    one: u32,
    /// The wheel one of whose buckets this is.
    parent: u32,
    buckets: [Bucket; BUCKETS],
}

/// A list of slots, or a wheel.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The first slot and, above `INDEX_BITS`, how many were added since they were counted, up to `MOST`; or the number
    /// of the wheel, with `MOST` too.
    head: u32,
    /// The last slot; `NONE` if there is none, or `WHEEL`.
    tail: u32,
}

/// In place of the tail: the bucket is a wheel.
const WHEEL: u32 = NONE - 1;

const INDEX_BITS: u32 = 26;

impl Bucket {
    const EMPTY: Bucket = Bucket { head: 0, tail: NONE };

    fn wheel(number: u32) -> Bucket {
        Bucket { head: MOST << INDEX_BITS | number, tail: WHEEL }
    }

    #[inline]
    fn index(self) -> u32 {
        self.head & ((1 << INDEX_BITS) - 1)
    }

    #[inline]
    fn set_index(&mut self, slot: u32) {
        self.head = self.head >> INDEX_BITS << INDEX_BITS | slot;
    }

    /// Whether it is a wheel or a list to which as many were added as it may have.
    #[inline]
    fn is_full(self) -> bool {
        self.head >= MOST << INDEX_BITS
    }
}

/// Set in a link, which names a bucket; the number of a slot is less.
const LINK: u32 = 1 << 31;

/// How a slot names its bucket.
#[inline]
fn link(wheel: u32, position: usize) -> u32 {
    LINK | wheel << BITS | position as u32
}

/// The wheel and the position of the bucket that a link names.
#[inline]
fn bucket(link: u32) -> (u32, usize) {
    ((link & !LINK) >> BITS, link as usize % BUCKETS)
}

impl Wheel {
    /// Which bucket is for a key; `None` if none is.
    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        let position = (key ^ self.start) >> self.shift;
        (position < u64::from(self.width)).then_some(position as usize % BUCKETS)
    }

    /// Which bucket is for a key for which there is one.
    #[inline]
    fn position(&self, key: u64) -> usize {
        ((key ^ self.start) >> self.shift) as usize % BUCKETS
    }

    /// The first bucket that is not empty.
    #[inline]
    fn first_position(&self) -> usize {
        self.occupied.trailing_zeros() as usize % BUCKETS
    }

    /// An empty wheel for keys that differ in these bits, the highest of which are to choose the bucket.
    fn finer(key: u64, differing: u64, parent: u32) -> Wheel {
        let above = differing.checked_ilog2().and_then(|highest| highest.checked_sub(FINEST));
        let shift = above.map_or(0, |above| above / BITS * BITS + FINEST);
        let bits = if shift == 0 { FINEST } else { BITS };
        let start = key >> shift >> bits << bits << shift;
        let one = u32::from(shift > 0) << INDEX_BITS;
        Wheel { start, shift: shift as u8, width: 1 << bits, one, parent, ..Wheel::new() }
    }

    /// Puts a wheel in a bucket.
    fn put_wheel(&mut self, position: usize, wheel: u32) {
        self.buckets[position % BUCKETS] = Bucket::wheel(wheel);
        self.occupied |= 1 << position;
    }

    /// Adds a slot at the end of a list that is not full; what stands before it there.
    #[inline]
    fn append(&mut self, link: u32, slot: u32) -> u32 {
        let position = link as usize % BUCKETS;
        let bucket = &mut self.buckets[position];
        let last = mem::replace(&mut bucket.tail, slot);
        if last != NONE {
            bucket.head += self.one;
            return last;
        }
        bucket.head = self.one | slot;
        self.occupied |= 1 << position;
        link
    }
}

impl Pooled for Wheel {
    fn new() -> Wheel {
        Wheel { start: 0, occupied: 0, shift: 0, width: 0, one: 0, parent: NONE, buckets: [Bucket::EMPTY; BUCKETS] }
    }

    fn link(&self) -> u32 {
        self.parent
    }

    fn set_link(&mut self, next: u32) -> bool {
        self.parent = next;
        true
    }
}

impl<T: Default> Pooled for Slot<T> {
    fn new() -> Slot<T> {
        Slot { key: 0, before: NONE, after: NONE, generation: 0, entry: T::default() }
    }

    #[inline]
    fn link(&self) -> u32 {
        self.after
    }

    /// A slot whose generations are used up is never used again, so that no handle ever names two timers.
    #[inline]
    fn set_link(&mut self, next: u32) -> bool {
        self.after = next;
        self.generation = self.generation.wrapping_add(1);
        self.generation != 0
    }
}

impl<T: Default> Wheels<T> {
    /// No slots.
    pub fn new() -> Wheels<T> {
        let mut wheels: Pool<Wheel, 16> = Pool::new();
        *wheels.add().1 = Wheel::finer(0, u64::MAX, NONE);
        Wheels {
            slots: Pool::new(),
            wheels,
            count: 0,
            first: Cell::new(First { key: u64::MAX, slot: NONE, wheel: ROOT }),
            sorted: NONE,
            put: ROOT,
            top: ROOT,
            ahead: NONE,
            list: [(0, NONE); MOST as usize],
            #[cfg(test)]
            steps: Cell::new(0),
        }
    }

    /// How many slots are taken.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// A slot that is taken, if this is its generation.
    #[inline]
    pub fn get(&self, slot: u32, generation: u32) -> Option<&Slot<T>> {
        self.slots.get(slot).filter(|found| found.generation == generation)
    }

    /// The earliest slot.
    #[inline]
    pub fn first(&self) -> Option<&Slot<T>> {
        Some(self.slots.at(self.known_first()?.slot))
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
            first = self.seek(first.wheel);
            self.first.set(first);
        }
        Some(first)
    }

    /// Takes a slot for an entry, after all that are there with the same key; its number and its generation.
    // Calls of this and of `remove` would be a fifth of their cost.
    #[inline(always)]
    pub fn insert(&mut self, key: u64, entry: T) -> (u32, u32) {
        let mut wheel = self.put;
        let mut found = self.wheels.at_mut(wheel);
        let position = match found.find(key) {
            Some(position) if !found.buckets[position].is_full() => position,
            _ => {
                let (other, position) = self.place(key);
                (wheel, self.put) = (other, other);
                found = self.wheels.at_mut(other);
                position
            }
        };
        let (slot, taken) = self.slots.add();
        let link = link(wheel, position);
        let before = found.append(link, slot);
        let generation = taken.generation.wrapping_add(1);
        *taken = Slot { key, before, after: link, generation, entry };
        if before & LINK == 0 {
            self.slots.at_mut(before).after = slot;
            if link == self.sorted {
                self.put_in_order(slot, key, link);
            }
        }
        let first = self.first.get();
        if key < first.key {
            self.first.set(First { key, slot, wheel });
        }
        self.count += 1;
        (slot, generation)
    }

    /// Frees a slot that is taken, if this is its generation; its entry.
    #[inline(always)]
    pub fn remove(&mut self, slot: u32, generation: u32) -> Option<T> {
        let (before, after, entry) = self.slots.free_if(slot, |found| {
            (found.generation == generation).then(|| (found.before, found.after, mem::take(&mut found.entry)))
        })?;
        self.count -= 1;
        if slot == self.first.get().slot {
            self.lose_first(before, after);
        }
        if before & LINK == 0 {
            self.slots.at_mut(before).after = after;
        } else if before == after {
            self.emptied(before);
            return Some(entry);
        } else {
            let (wheel, position) = bucket(before);
            self.wheels.at_mut(wheel).buckets[position].set_index(after);
        }
        if after & LINK == 0 {
            self.slots.at_mut(after).before = before;
        } else {
            let (wheel, position) = bucket(after);
            self.wheels.at_mut(wheel).buckets[position].tail = before;
        }
        Some(entry)
    }

    /// The first slot goes. In a list in order it is known which comes next; else all that is left in its wheel comes
    /// before all that is elsewhere.
    #[inline]
    fn lose_first(&mut self, before: u32, after: u32) {
        let next = if before == self.sorted && after & LINK == 0 { after } else { NONE };
        let first = self.first.get_mut();
        first.slot = next;
        if next != NONE {
            first.key = self.slots.at(next).key;
        }
    }

    /// Frees the slot that comes first if its key is at most this one; the key, the slot, its generation, the entry.
    #[inline]
    pub fn remove_first(&mut self, most: u64) -> Option<(u64, u32, u32, T)> {
        if self.first.get().slot == NONE {
            self.settle();
        }
        let First { key, slot, .. } = self.first.get();
        if key > most || slot == NONE {
            return None;
        }
        let generation = self.slots.at(slot).generation;
        let entry = self.remove(slot, generation)?;
        if self.first.get().slot == NONE {
            self.settle();
        } else if self.ahead & LINK == 0 {
            self.ahead = self.slots.at(self.ahead).after;
        }
        Some((key, slot, generation, entry))
    }

    /// Finds the first slot, and puts the list it is in in order: it will be asked for the next.
    #[inline(never)]
    fn settle(&mut self) {
        if self.count == 0 {
            return;
        }
        let (wheel, position) = self.first_bucket(self.first.get().wheel);
        let found = self.wheels.at(wheel);
        let link = link(wheel, position);
        let mut head = found.buckets[position].index();
        let others = found.occupied & found.occupied.wrapping_sub(1);
        let next = found.buckets[others.trailing_zeros() as usize % BUCKETS];
        self.ahead = if others == 0 || next.tail == WHEEL { NONE } else { next.index() };
        if found.shift > 0 && head != found.buckets[position].tail && link != self.sorted {
            head = self.sort(wheel, position);
        }
        self.sorted = link;
        self.first.set(First { key: self.slots.at(head).key, slot: head, wheel });
    }

    /// Puts a list in order; its head.
    fn sort(&mut self, wheel: u32, position: usize) -> u32 {
        let count = self.gather(self.wheels.at(wheel).buckets[position]);
        let order = &mut self.list[..count];
        let mut moved = false;
        for place in 1..count {
            let one = order[place];
            let mut hole = place;
            while hole > 0 && order[hole - 1].0 > one.0 {
                order[hole] = order[hole - 1];
                hole -= 1;
                moved = true;
            }
            order[hole] = one;
        }
        let head = order.first().map_or(NONE, |it| it.1);
        if moved {
            let link = link(wheel, position);
            let mut before = link;
            for (place, (_, slot)) in order.iter().enumerate() {
                let after = order.get(place + 1).map_or(link, |it| it.1);
                let slot_found = self.slots.at_mut(*slot);
                (slot_found.before, slot_found.after) = (before, after);
                before = *slot;
            }
            let bucket = &mut self.wheels.at_mut(wheel).buckets[position];
            *bucket = Bucket { head: (count as u32) << INDEX_BITS | head, tail: before };
            self.took(count);
        }
        head
    }

    /// Writes down the keys and slots of a list that is not empty, in the order of the list; how many there are.
    fn gather(&mut self, list: Bucket) -> usize {
        let order = &mut self.list;
        // From both ends, so that the processor fetches two slots at once.
        let (mut near, mut far) = (list.index(), list.tail);
        let (mut count, mut rest) = (0, order.len());
        while count < rest {
            let slot = self.slots.at(near);
            order[count] = (slot.key, near);
            count += 1;
            if near == far || count == rest {
                break;
            }
            let last = self.slots.at(far);
            rest -= 1;
            order[rest] = (last.key, far);
            if slot.after == far {
                break;
            }
            (near, far) = (slot.after, last.before);
        }
        order.copy_within(rest.., count);
        count += order.len() - rest;
        self.took(count);
        count
    }

    /// The first bucket of a wheel, which must not be empty.
    #[inline]
    fn first_bucket(&self, mut wheel: u32) -> (u32, usize) {
        loop {
            let found = self.wheels.at(wheel);
            let position = found.first_position();
            let bucket = found.buckets[position];
            if bucket.tail != WHEEL {
                return (wheel, position);
            }
            wheel = bucket.index();
        }
    }

    /// Finds the first slot of a wheel, which must not be empty.
    fn seek(&self, wheel: u32) -> First {
        let (wheel, position) = self.first_bucket(wheel);
        let found = self.wheels.at(wheel);
        let mut slot = found.buckets[position].index();
        let mut least = self.slots.at(slot);
        if found.shift > 0 && link(wheel, position) != self.sorted {
            let mut next = least.after;
            while next & LINK == 0 {
                let found = self.slots.at(next);
                if found.key < least.key {
                    (least, slot) = (found, next);
                }
                next = found.after;
                self.took(1);
            }
        }
        First { key: least.key, slot, wheel }
    }

    /// The place for a key: a list, in the finest wheel that has a bucket for it, and with room for it.
    fn place(&mut self, key: u64) -> (u32, usize) {
        let (mut above, mut wheel) = (ROOT, self.top);
        if self.wheels.at(wheel).find(key).is_none() {
            wheel = ROOT;
        }
        loop {
            let found = self.wheels.at(wheel);
            let Some(position) = found.find(key) else { return self.fork(above, wheel, key) };
            let bucket = found.buckets[position];
            if !bucket.is_full() {
                return (wheel, position);
            }
            if bucket.tail != WHEEL {
                return self.relieve(wheel, position, key);
            }
            (above, wheel) = (wheel, bucket.index());
            if above == ROOT {
                self.top = wheel;
            }
        }
    }

    /// Moves the last slot of a list in order to its place there.
    #[cold]
    fn put_in_order(&mut self, slot: u32, key: u64, link: u32) {
        let last = self.slots.at(slot).before;
        let (mut before, mut after) = (last, link);
        while before & LINK == 0 && self.slots.at(before).key > key {
            (before, after) = (self.slots.at(before).before, before);
            self.took(1);
        }
        if after == link {
            return;
        }
        let (wheel, position) = bucket(link);
        let bucket = &mut self.wheels.at_mut(wheel).buckets[position];
        bucket.tail = last;
        if before & LINK != 0 {
            bucket.set_index(slot);
        } else {
            self.slots.at_mut(before).after = slot;
        }
        self.slots.at_mut(last).after = link;
        self.slots.at_mut(after).before = slot;
        let moved = self.slots.at_mut(slot);
        (moved.before, moved.after) = (before, after);
    }

    /// Makes room for one more key in a list to which many were added; the key's place.
    #[cold]
    fn relieve(&mut self, wheel: u32, position: usize, key: u64) -> (u32, usize) {
        let list = self.wheels.at(wheel).buckets[position];
        let count = self.gather(list);
        if count <= FEW {
            self.wheels.at_mut(wheel).buckets[position].head = (count as u32) << INDEX_BITS | list.index();
            return (wheel, position);
        }
        let order = &self.list[..count];
        let differing = order.iter().fold(0, |differing, (other, _)| differing | (other ^ key));
        // The list becomes a wheel.
        let (finer, added) = self.wheels.add();
        *added = Wheel::finer(key, differing, wheel);
        for (key, slot) in order {
            let position = added.position(*key);
            let link = link(finer, position);
            let before = added.append(link, *slot);
            let moved = self.slots.at_mut(*slot);
            (moved.before, moved.after) = (before, link);
            if before & LINK == 0 {
                self.slots.at_mut(before).after = *slot;
            }
        }
        let place = added.position(key);
        self.wheels.at_mut(wheel).put_wheel(position, finer);
        if self.sorted == link(wheel, position) {
            self.sorted = NONE;
        }
        self.took(count);
        (finer, place)
    }

    /// Puts a new wheel between two, of which the lower has no bucket for a key; the key's place in it.
    #[cold]
    fn fork(&mut self, wheel: u32, below: u32, key: u64) -> (u32, usize) {
        let start = self.wheels.at(below).start;
        let (number, added) = self.wheels.add();
        *added = Wheel::finer(key, start ^ key, wheel);
        added.put_wheel(added.position(start), below);
        let place = added.position(key);
        self.wheels.at_mut(below).parent = number;
        let above = self.wheels.at_mut(wheel);
        above.put_wheel(above.position(start), number);
        (number, place)
    }

    /// After the last slot of a bucket is gone: wheels that are not needed go too.
    #[inline]
    fn emptied(&mut self, link: u32) {
        let (wheel, position) = bucket(link);
        let found = self.wheels.at_mut(wheel);
        found.buckets[position] = Bucket::EMPTY;
        found.occupied &= !(1 << position);
        if found.occupied & found.occupied.wrapping_sub(1) == 0 && wheel != ROOT {
            self.thin_out(wheel);
        }
    }

    /// Drops a wheel with at most one bucket, and puts that in the wheel's place.
    #[cold]
    fn thin_out(&mut self, wheel: u32) {
        let found = self.wheels.at(wheel);
        let (parent, empty) = (found.parent, found.occupied == 0);
        let last = found.first_position();
        let mut left = found.buckets[last];
        if !empty && found.shift == 0 {
            // Equal keys stay apart from others, as their list may be of any length, and is not counted.
            if left.index() != left.tail {
                return;
            }
            left.head |= 1 << INDEX_BITS;
        }
        let above = self.wheels.at(parent).position(found.start);
        let place = link(parent, above);
        if bucket(self.sorted).0 == wheel {
            self.sorted = if self.sorted == link(wheel, last) && !empty { place } else { NONE };
        }
        self.wheels.at_mut(parent).buckets[above] = left;
        if left.tail == WHEEL {
            self.wheels.at_mut(left.index()).parent = parent;
        } else if !empty {
            self.slots.at_mut(left.index()).before = place;
            self.slots.at_mut(left.tail).after = place;
        }
        self.wheels.free(wheel);
        if self.put == wheel {
            self.put = ROOT;
        }
        if self.top == wheel {
            self.top = ROOT;
        }
        let first = self.first.get_mut();
        if first.wheel == wheel {
            first.wheel = parent;
        }
        if empty {
            self.emptied(place);
        }
    }

    /// Counts slots that were looked at or moved, for the tests.
    #[inline(always)]
    fn took(&self, _steps: usize) {
        #[cfg(test)]
        self.steps.set(self.steps.get() + _steps);
    }
}

#[cfg(test)]
mod tests;
