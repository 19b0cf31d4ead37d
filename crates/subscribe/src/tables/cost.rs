//! What tables cost in memories of switches: entries and bits, with ranges as prefixes and with compressed domains.

use super::{Stage, State, Tables};
use crate::compiler::{Compiler, Variable};
use crate::formats::MatchKind;
use crate::values::Interval;
use serde::Serialize;

/// What one stage costs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StageCost {
    /// What it matches.
    pub variable: String,
    /// By what.
    pub kind: MatchKind,
    /// The width of its values in bits.
    pub width: u16,
    /// How many states it knows; each has one default beside its entries.
    pub states: usize,
    /// Its entries as they are.
    pub entries: usize,
    /// Its entries if defaults were written out, as intervals.
    pub entries_without_defaults: usize,
    /// Bits of the keys of all entries: state and value; twice for a range (both ends) and a prefix (value and mask).
    pub key_bits: u64,
    /// Its ranges as prefixes of a ternary memory.
    pub ternary: Memory,
    /// The same with values mapped to few bits first.
    pub compressed: Compressed,
}

/// Entries and bits of their keys, value and mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Memory {
    /// Entries.
    pub entries: u64,
    /// Bits of all keys.
    pub bits: u64,
}

/// A stage behind a table that maps values to classes: values that every state treats alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Compressed {
    /// How many classes there are.
    pub classes: usize,
    /// Bits of a class.
    pub class_bits: u32,
    /// The table from values to classes, as prefixes.
    pub map: Memory,
    /// The stage on classes, as prefixes.
    pub stage: Memory,
}

impl Tables {
    /// What each stage costs, in the order of the stages.
    pub fn costs(&self, compiler: &Compiler) -> Vec<StageCost> {
        let state_bits = bits_for(u128::from(self.state_bound()));
        self.stages().map(|(variable, stage)| cost(compiler, variable, stage, state_bits)).collect()
    }
}

fn cost(compiler: &Compiler, variable: Variable, stage: &Stage, state_bits: u32) -> StageCost {
    let width = compiler.width(variable);
    let kind = stage.kind();
    let value_bits = u64::from(width) * if kind == MatchKind::Exact { 1 } else { 2 };
    let entries = stage.entry_count();
    let ternary_bits = 2 * (u64::from(state_bits) + u64::from(width));
    let ternary_entries: u64 = all(stage).map(|(_, values)| prefixes(values, width)).sum();
    // Where one entry of any state ends, a class ends.
    let mut lasts: Vec<u128> = Vec::new();
    for (_, values) in all(stage) {
        lasts.extend(values.first.checked_sub(1));
        lasts.push(values.last);
    }
    lasts.push(Interval::of_width(width).last);
    lasts.sort_unstable();
    lasts.dedup();
    let class_bits = bits_for(lasts.len() as u128);
    let class = |value: u128| lasts.partition_point(|last| *last < value) as u128;
    let mut map_entries = 0;
    let mut first = 0;
    for last in &lasts {
        map_entries += prefixes(Interval { first, last: *last }, width);
        first = last.wrapping_add(1);
    }
    let stage_entries: u64 = all(stage)
        .map(|(_, values)| Interval { first: class(values.first), last: class(values.last) })
        .map(|classes| prefixes(classes, class_bits.max(1) as u16))
        .sum();
    StageCost {
        variable: compiler.variable_name(variable),
        kind,
        width,
        states: stage.rows.len(),
        entries,
        entries_without_defaults: stage.rows.values().map(|rows| written_out(rows, width)).sum(),
        key_bits: entries as u64 * (u64::from(state_bits) + value_bits),
        ternary: Memory { entries: ternary_entries, bits: ternary_entries * ternary_bits },
        compressed: Compressed {
            classes: lasts.len(),
            class_bits,
            map: Memory { entries: map_entries, bits: map_entries * 2 * u64::from(width) },
            stage: Memory { entries: stage_entries, bits: stage_entries * 2 * u64::from(state_bits + class_bits) },
        },
    }
}

fn all(stage: &Stage) -> impl Iterator<Item = (State, Interval)> + '_ {
    stage.rows.iter().flat_map(|(state, rows)| rows.entries().map(|entry| (*state, entry.values)))
}

/// Entries and the gaps between them.
fn written_out(rows: &super::Rows, width: u16) -> usize {
    let mut gaps = 0;
    let mut next = Some(0u128);
    for entry in rows.entries() {
        gaps += usize::from(next.is_some_and(|next| next < entry.values.first));
        next = next.and_then(|next| entry.values.last.checked_add(1).map(|behind| behind.max(next)));
    }
    gaps += usize::from(next.is_some_and(|next| next <= Interval::of_width(width).last));
    rows.entry_count() + gaps
}

/// Bits that tell `count` things apart.
fn bits_for(count: u128) -> u32 {
    128 - count.saturating_sub(1).leading_zeros()
}

/// How many prefixes make up an interval of values of `width` bits.
pub fn prefixes(values: Interval, width: u16) -> u64 {
    prefix_list(values, width).count() as u64
}

/// The prefixes that make up an interval, in order: each the greatest that starts where the one before ended.
pub fn prefix_list(values: Interval, width: u16) -> impl Iterator<Item = Interval> {
    let mut next = Some(values.first);
    std::iter::from_fn(move || {
        let first = next?;
        let rest = values.last - first;
        let aligned = first.trailing_zeros().min(width.into());
        // The greatest power of two that fits the rest.
        let fitting = rest.checked_add(1).map_or(128, |count| 127 - count.leading_zeros());
        let size = aligned.min(fitting);
        let last = first + if size >= 128 { u128::MAX } else { (1 << size) - 1 };
        next = last.checked_add(1).filter(|next| *next <= values.last);
        Some(Interval { first, last })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_as_prefixes() {
        let list = |first, last, width| prefix_list(Interval { first, last }, width).collect::<Vec<_>>();
        assert_eq!(list(0, 255, 8).len(), 1);
        // The worst case: 2w - 2.
        assert_eq!(list(1, 254, 8).len(), 14);
        assert_eq!(list(0, u128::MAX, 128).len(), 1);
        assert_eq!(list(1, u128::MAX, 128).len(), 128);
        for (first, last) in [(3, 17), (0, 0), (7, 8)] {
            let parts = list(first, last, 8);
            assert_eq!(parts.first().unwrap().first, first);
            assert_eq!(parts.last().unwrap().last, last);
            assert!(parts.windows(2).all(|pair| pair[0].last + 1 == pair[1].first));
        }
    }

    #[test]
    fn bits() {
        assert_eq!([1, 2, 3, 4, 5, 256, 257].map(bits_for), [0, 1, 2, 2, 3, 8, 9]);
    }
}
