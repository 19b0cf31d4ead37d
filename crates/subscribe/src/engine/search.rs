//! Finding values in flat arrays, with as few branches as can be.

use crate::tables::{Rows, State};
use crate::values::Interval;

/// So many bounds are compared one and all, which compilers turn into vector code.
const BLOCK: usize = 16;
/// States with so few bounds take no whole block.
const FEW: usize = 4;

/// How many bounds a state with `count` of them takes, the greatest value filling up: no value is above it. So halves
/// are whole, and the last block is of one size.
pub fn padded(count: usize) -> usize {
    match count {
        0..=FEW => FEW,
        _ => count.next_power_of_two().max(BLOCK),
    }
}

/// How many of the sorted `bounds` are below `value`; there are as many of them as [`padded`] says.
#[inline]
pub fn below<T: Copy + PartialOrd>(bounds: &[T], value: T) -> usize {
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
    let mut runs: Vec<Run> = Vec::with_capacity(2 * rows.entries.len() + 1);
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
    for entry in &rows.entries {
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

/// A slot of a hash table of single values.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    key: u64,
    next: State,
}

/// No state: the slot is free.
const FREE: State = State::MAX;

/// Slots for so many keys: a power of two, at most half of them taken.
fn slot_count(keys: usize) -> usize {
    (2 * keys).next_power_of_two()
}

/// By the golden ratio, upper bits first (Knuth, volume 3, section 6.4).
#[inline]
fn place(key: u64, slots: usize) -> usize {
    // Lower halves of keys are mixed in: texts differ there.
    let mixed = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize & (slots - 1)
}

/// Appends a hash table of these keys, which differ. Returns how many slots it has.
pub fn add_hash(slots: &mut Vec<Slot>, keys: &[(u64, State)]) -> usize {
    let start = slots.len();
    let count = slot_count(keys.len());
    slots.resize(start + count, Slot { key: 0, next: FREE });
    let table = &mut slots[start..];
    for (key, next) in keys {
        let mut at = place(*key, count);
        while table[at].next != FREE {
            at = (at + 1) & (count - 1);
        }
        table[at] = Slot { key: *key, next: *next };
    }
    count
}

/// The state of a key in a table that [`add_hash`] made. It ends: half of the slots are free.
#[inline]
pub fn hashed(table: &[Slot], key: u64) -> Option<State> {
    let mut at = place(key, table.len());
    loop {
        let slot = table[at & (table.len() - 1)];
        if slot.key == key || slot.next == FREE {
            return (slot.next != FREE).then_some(slot.next);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn below_counts(mut bounds in prop::collection::vec(any::<u16>(), 0..100), value: u16) {
            let counted = bounds.iter().filter(|bound| **bound < value).count();
            bounds.sort_unstable();
            bounds.resize(padded(bounds.len()), u16::MAX);
            prop_assert_eq!(below(&bounds, value), counted);
        }

        #[test]
        fn hashes_find_what_is_there(keys in prop::collection::btree_map(0..400u64, 0..9u32, 1..80), shift in 0..56u32) {
            let list: Vec<(u64, State)> = keys.iter().map(|(key, next)| (key << shift, *next)).collect();
            let mut slots = vec![Slot { key: 1, next: 1 }];
            let count = add_hash(&mut slots, &list);
            for key in 0..400 {
                prop_assert_eq!(hashed(&slots[1..1 + count], key << shift), keys.get(&key).copied());
            }
        }
    }
}
