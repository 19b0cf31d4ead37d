//! Finding values in small arrays, with as few branches as can be.

use weftwire_subscribe::tables::{Rows, State};
use weftwire_subscribe::values::Interval;

/// Where a lookup leads, a number that means nothing here. [`NOWHERE`] is none.
pub type Target = u32;

/// No target.
pub const NOWHERE: Target = Target::MAX;

/// An array of steps is worth its memory if it is this short, or has few steps for each bound.
const FEW_STEPS: u64 = 256;
const STEPS_A_BOUND: u64 = 16;
/// Spans up to here are divided exactly.
const MOST_SPAN: u64 = (1 << 31) - 2;

/// An array with a target for each step of equal width, for bounds that are evenly spaced, or multiples of
/// something: prices in whole cents, or all values of a few bits.
#[derive(Clone, Debug)]
pub struct Steps {
    /// The first bound: values up to it are in step 0.
    first: u64,
    /// The width of a step; 2^64 - 1 divided by it.
    step: u64,
    reciprocal: u64,
    nexts: Box<[Target]>,
}

impl Steps {
    /// An array for runs; `None` if it were too long.
    pub fn new(runs: &[Run], target: impl Fn(State) -> Target) -> Option<Steps> {
        let (last, bounds) = runs.split_last()?;
        let first = bounds.first().map_or(0, |run| run.last);
        let span = u64::try_from(bounds.last().map_or(0, |run| run.last) - first).ok()?;
        let step = bounds.iter().fold(0, |step, run| greatest_divisor(step, (run.last - first) as u64)).max(1);
        let most = FEW_STEPS.max(STEPS_A_BOUND * bounds.len() as u64);
        if span / step + 2 > most || span > MOST_SPAN {
            return None;
        }
        let mut nexts = Vec::with_capacity((span / step + 2) as usize);
        for run in bounds {
            nexts.resize(((run.last - first) as u64 / step + 1) as usize, target(run.next));
        }
        nexts.push(target(last.next));
        Some(Steps { first: first.try_into().ok()?, step, reciprocal: u64::MAX / step, nexts: nexts.into() })
    }

    /// The target of a value.
    #[inline]
    pub fn next(&self, value: u64) -> Target {
        // (distance + step - 1) / step: with r = 2^64 - 1 - reciprocal * step, the error (distance + step) * (1 + r) is
        // below 2^64 as long as both are below 2^32; what is farther is beyond the end.
        let distance = value.saturating_sub(self.first).saturating_add(self.step);
        let place = ((u128::from(distance) * u128::from(self.reciprocal)) >> 64) as usize;
        self.nexts[place.min(self.nexts.len() - 1)]
    }

    /// The memory of its array.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.nexts)
    }
}

fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// So many bounds behind a guide's place are compared.
const GUIDED: usize = 8;

/// Bounds behind a guide: an array that says, for equal parts of the values, where among the bounds to look. For bounds that
/// lie about evenly, and not too far apart.
#[derive(Clone, Debug)]
pub struct Guide {
    /// The first bound, from which the others are counted.
    first: u64,
    /// Values of a part, as a power of two.
    shift: u32,
    starts: Box<[u16]>,
    bounds: Box<[i32]>,
    nexts: Box<[Target]>,
}

impl Guide {
    /// A guide to runs; `None` if they lie too unevenly, or are few.
    pub fn new(runs: &[Run], target: impl Fn(State) -> Target) -> Option<Guide> {
        let bounds = &runs[..runs.len() - 1];
        let (first, last) = (bounds.first()?.last, bounds.last()?.last);
        if bounds.len() <= BLOCK || bounds.len() > usize::from(u16::MAX) || last - first > MOST_SPAN.into() {
            return None;
        }
        let span = (last - first) as u64;
        // As many parts as bounds, up to twice as many.
        let shift = (span / bounds.len() as u64).checked_ilog2().unwrap_or(0);
        let distances: Vec<u64> = bounds.iter().map(|run| (run.last - first) as u64).collect();
        let below = |value: u64| distances.partition_point(|bound| *bound < value);
        let mut starts = Vec::with_capacity((span >> shift) as usize + 1);
        for part in 0..=span >> shift {
            let start = below(part << shift);
            if below((part + 1) << shift) - start > GUIDED {
                return None;
            }
            starts.push(start as u16);
        }
        let fill = std::iter::repeat_n(i32::MAX, GUIDED);
        Some(Guide {
            first: first.try_into().ok()?,
            shift,
            starts: starts.into(),
            bounds: distances.iter().map(|bound| *bound as i32).chain(fill).collect(),
            nexts: runs.iter().map(|run| target(run.next)).collect(),
        })
    }

    /// The target of a value.
    #[inline]
    pub fn next(&self, value: u64) -> Target {
        let distance = value.saturating_sub(self.first).min(i32::MAX as u64);
        let part = (distance >> self.shift) as usize;
        let start = usize::from(self.starts[part.min(self.starts.len() - 1)]);
        let block = &self.bounds[start..start + GUIDED];
        let counted = block.iter().map(|bound| u32::from(*bound < distance as i32)).sum::<u32>() as usize;
        self.nexts[start + counted]
    }

    /// The memory of its arrays.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.bounds) + size_of_val(&*self.nexts)
    }
}

/// Sorted bounds, and the targets between them.
#[derive(Clone, Debug)]
pub struct Bounds<T> {
    bounds: Box<[T]>,
    nexts: Box<[Target]>,
}

impl<T: Copy + PartialOrd> Bounds<T> {
    /// The bounds of runs. `fill` is the greatest value of the type.
    pub fn new(runs: &[Run], fill: T, bound: impl Fn(u128) -> T, target: impl Fn(State) -> Target) -> Bounds<T> {
        // The last run needs no bound: it holds all values behind the others.
        let mut bounds: Vec<T> = runs.iter().take(runs.len() - 1).map(|run| bound(run.last)).collect();
        bounds.resize(padded(bounds.len()), fill);
        Bounds { bounds: bounds.into(), nexts: runs.iter().map(|run| target(run.next)).collect() }
    }

    /// The target of a value.
    #[inline]
    pub fn next(&self, value: T) -> Target {
        self.nexts[below(&self.bounds, value)]
    }

    /// The memory of its arrays.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.bounds) + size_of_val(&*self.nexts)
    }
}

/// So many bounds are compared one and all, which compilers turn into vector code.
const BLOCK: usize = 16;
/// States with so few bounds take no whole block.
const FEW: usize = 4;

/// How many bounds a state with `count` of them takes, the greatest value filling up: no value is above it. So halves
/// are whole, and the last block is of one size.
fn padded(count: usize) -> usize {
    match count {
        0..=FEW => FEW,
        _ => count.next_power_of_two().max(BLOCK),
    }
}

/// How many of the sorted `bounds` are below `value`; there are as many of them as [`padded`] says.
#[inline]
fn below<T: Copy + PartialOrd>(bounds: &[T], value: T) -> usize {
    let mut rest = bounds;
    let mut base = 0;
    while rest.len() > BLOCK {
        let half = rest.len() / 2;
        // No branch: which half it is cannot be guessed.
        let skipped = half * usize::from(rest[half - 1] < value);
        base += skipped;
        rest = &rest[skipped..skipped + half];
    }
    let count = |bounds: &[T]| bounds.iter().map(|bound| u32::from(*bound < value)).sum::<u32>() as usize;
    base + match <&[T; BLOCK]>::try_from(rest) {
        Ok(block) => count(block),
        Err(_) => count(rest),
    }
}

/// A run of values that lead to one state: up to `last`, from behind the run before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The last of the values.
    pub last: u128,
    /// The state.
    pub next: State,
}

/// A state's rows as runs that cover all values of `width` bits; nested prefixes are cut to where they win.
pub fn runs(rows: &Rows, width: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::with_capacity(2 * rows.entry_count() + 1);
    let mut covered: Option<u128> = None;
    let mut cover = |last: u128, next: State| {
        if covered.is_some_and(|covered| covered >= last) {
            return;
        }
        covered = Some(last);
        match runs.last_mut() {
            Some(run) if run.next == next => run.last = last,
            _ => runs.push(Run { last, next }),
        }
    };
    let mut open: Vec<(Interval, State)> = Vec::new();
    for entry in rows.entries() {
        while let Some((values, next)) = open.pop_if(|(values, _)| values.last < entry.values.first) {
            cover(values.last, next);
        }
        if let Some(before) = entry.values.first.checked_sub(1) {
            cover(before, open.last().map_or(rows.default, |(_, next)| *next));
        }
        open.push((entry.values, entry.next));
    }
    while let Some((values, next)) = open.pop() {
        cover(values.last, next);
    }
    cover(Interval::of_width(width).last, rows.default);
    runs
}

/// A hash table of single values, at most half of whose slots are taken; what finds its slot taken stands in the next
/// that is free.
#[derive(Clone, Debug)]
pub struct Hash {
    slots: Box<[Slot]>,
    length: usize,
    /// The target of values that are not there.
    pub default: Target,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u64,
    /// [`NOWHERE`]: the slot is free.
    next: Target,
}

const FREE: Slot = Slot { key: 0, next: NOWHERE };

impl Hash {
    /// A table with room for so many keys.
    pub fn with_room(keys: usize, default: Target) -> Hash {
        let slots = (2 * keys).next_power_of_two();
        Hash { slots: vec![FREE; slots].into(), length: 0, default }
    }

    /// The target of a key.
    #[inline]
    pub fn next(&self, key: u64) -> Target {
        let slot = self.slots[self.find(key)];
        if slot.next == NOWHERE { self.default } else { slot.next }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether so many keys are too many for it, or far too few.
    pub fn is_ill_sized_for(&self, keys: usize) -> bool {
        2 * keys > self.slots.len() || 16 * keys < self.slots.len()
    }

    /// Sets a key's target. At most half of the slots may be taken then.
    pub fn insert(&mut self, key: u64, next: Target) {
        let at = self.find(key);
        self.length += usize::from(self.slots[at].next == NOWHERE);
        self.slots[at] = Slot { key, next };
    }

    /// Removes a key.
    pub fn remove(&mut self, key: u64) {
        let mut at = self.find(key);
        let mut moved = std::mem::replace(&mut self.slots[at], FREE);
        // All from here to the next free slot may stand there for want of this one.
        while moved.next != NOWHERE {
            self.length -= 1;
            if moved.key != key {
                self.insert(moved.key, moved.next);
            }
            at = (at + 1) & (self.slots.len() - 1);
            moved = std::mem::replace(&mut self.slots[at], FREE);
        }
    }

    /// The memory of its slots.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// The slot of a key, or the free one where it would stand. There is one: half of them are free.
    #[inline]
    fn find(&self, key: u64) -> usize {
        // By the golden ratio, upper bits first (Knuth, volume 3, section 6.4). Lower halves of keys are mixed in: texts
        // differ there.
        let mixed = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (mixed >> 32) as usize;
        loop {
            at &= self.slots.len() - 1;
            let slot = &self.slots[at];
            if slot.key == key || slot.next == NOWHERE {
                return at;
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn runs_of(bounds: &std::collections::BTreeSet<u64>, scale: u64, offset: u64) -> Vec<Run> {
        let lasts = bounds.iter().map(|bound| u128::from(bound * scale + offset)).chain([u128::from(u64::MAX)]);
        lasts.enumerate().map(|(next, last)| Run { last, next: next as State }).collect()
    }

    proptest! {
        #[test]
        fn below_counts(mut bounds in prop::collection::vec(any::<u16>(), 0..100), value: u16) {
            let counted = bounds.iter().filter(|bound| **bound < value).count();
            bounds.sort_unstable();
            bounds.resize(padded(bounds.len()), u16::MAX);
            prop_assert_eq!(below(&bounds, value), counted);
        }

        #[test]
        fn steps_and_bounds_find_the_run(
            bounds in prop::collection::btree_set(0..200u64, 0..99),
            scale in prop::sample::select(vec![1, 3, 100, 10_000, 10_737_418]),
            offset in prop::sample::select(vec![0, 1, 77, u64::from(u32::MAX), u64::MAX >> 1]),
            values in prop::collection::vec(any::<u64>(), 10),
        ) {
            let runs = runs_of(&bounds, scale, offset);
            let steps = Steps::new(&runs, |state| state).expect("few steps");
            let searched = Bounds::new(&runs, u64::MAX, |last| last as u64, |state| state);
            let guide = Guide::new(&runs, |state| state);
            prop_assert!(guide.is_some() || bounds.len() < 40);
            let near = runs.iter().map(|run| run.last as u64);
            let near = near.flat_map(|last| [last.wrapping_sub(1), last, last.wrapping_add(1), last.wrapping_add(scale)]);
            for value in near.chain(values).chain([0, 1, u64::MAX]) {
                let expected = runs.partition_point(|run| run.last < u128::from(value)) as Target;
                prop_assert_eq!(steps.next(value), expected, "{}", value);
                prop_assert_eq!(searched.next(value), expected, "{}", value);
                prop_assert!(guide.as_ref().is_none_or(|guide| guide.next(value) == expected), "{}", value);
            }
        }

        #[test]
        fn hashes_find_what_is_there(
            steps in prop::collection::vec((0..60u64, prop::option::weighted(0.7, 0..9u32)), 1..400),
            shift in 0..56u32,
        ) {
            let (mut hash, mut model) = (Hash::with_room(60, 99), BTreeMap::new());
            for (key, next) in steps {
                match next {
                    Some(next) => {
                        hash.insert(key << shift, next);
                        model.insert(key, next);
                    }
                    None => {
                        hash.remove(key << shift);
                        model.remove(&key);
                    }
                }
                prop_assert_eq!(hash.len(), model.len());
            }
            for key in 0..60 {
                prop_assert_eq!(hash.next(key << shift), model.get(&key).copied().unwrap_or(99));
            }
        }
    }

    #[test]
    fn long_arrays_are_not_made() {
        let bounds = std::collections::BTreeSet::from([0, 5, 1 << 20]);
        assert!(Steps::new(&runs_of(&bounds, 1, 0), |state| state).is_none());
        assert!(Steps::new(&runs_of(&bounds, 1 << 40, 0), |state| state).is_none());
    }
}
