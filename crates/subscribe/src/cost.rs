//! What tables cost in memories of switches: entries and bits, with ranges as prefixes and with compressed domains.

use crate::compiler::Compiler;
use crate::formats::MatchKind;
use crate::tables::{Entry, Rows, Stage, State, Tables};
use crate::values::Interval;
use crate::variable::Variable;
use serde::Serialize;
use std::collections::BTreeMap;

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
    /// How many classes there are, with that of all values that no state has an entry for.
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
    let classes = Classes::of(stage);
    let map_entries = classes.intervals.iter().map(|values| prefixes(*values, width)).sum::<u64>();
    let own = |rows| disjoint(rows).into_iter().filter(|entry| entry.next != rows.default);
    let stage_entries: u64 = stage
        .rows
        .values()
        .flat_map(|rows: &Rows| own(rows))
        .map(|entry| prefixes(classes.codes(entry.values), classes.bits()))
        .sum();
    let class_bits = u32::from(classes.bits());
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
            classes: classes.intervals.len() + 1,
            class_bits,
            map: Memory { entries: map_entries, bits: map_entries * 2 * u64::from(width) },
            stage: Memory { entries: stage_entries, bits: stage_entries * 2 * u64::from(state_bits + class_bits) },
        },
    }
}

/// Values that every state of a stage treats alike.
///
/// The ends of all entries cut the values that any state has an entry for into intervals. Each is a class, with codes from
/// 1 in order, so that entries are intervals of codes; what no state has an entry for is the class 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Classes {
    intervals: Vec<Interval>,
}

impl Classes {
    /// The classes of a stage.
    pub fn of(stage: &Stage) -> Classes {
        let of_rows = |rows: &Rows| {
            let default = rows.default;
            disjoint(rows).into_iter().filter(move |entry| entry.next != default)
        };
        // How many more entries hold the values from here on.
        let mut depths: BTreeMap<u128, i64> = BTreeMap::new();
        for entry in stage.rows.values().flat_map(of_rows) {
            *depths.entry(entry.values.first).or_default() += 1;
            if let Some(behind) = entry.values.last.checked_add(1) {
                *depths.entry(behind).or_default() -= 1;
            }
        }
        let mut intervals = Vec::new();
        let mut depth = 0;
        let mut places = depths.iter().peekable();
        while let Some((first, change)) = places.next() {
            depth += change;
            if depth > 0 {
                let last = places.peek().map_or(u128::MAX, |(next, _)| **next - 1);
                intervals.push(Interval { first: *first, last });
            }
        }
        Classes { intervals }
    }

    /// The classes with codes, in order; without the class 0.
    pub fn list(&self) -> impl Iterator<Item = (u128, Interval)> + '_ {
        (1..).zip(self.intervals.iter().copied())
    }

    /// Bits of a code; at least 1.
    pub fn bits(&self) -> u16 {
        bits_for(self.intervals.len() as u128 + 1).max(1) as u16
    }

    /// The codes of the values of an entry.
    pub fn codes(&self, values: Interval) -> Interval {
        let code = |value| self.intervals.partition_point(|class| class.last < value) as u128 + 1;
        Interval { first: code(values.first), last: code(values.last) }
    }
}

/// A state's entries without overlaps: each value in the narrowest that holds it.
pub fn disjoint(rows: &Rows) -> Vec<Entry> {
    let mut open: Vec<Entry> = Vec::new();
    let mut all = Vec::new();
    // From here on the values of `open` are in none of `all`.
    let mut at = 0u128;
    for entry in rows.entries() {
        while let Some(outer) = open.pop_if(|outer| outer.values.last < entry.values.first) {
            push(&mut all, at, outer.values.last, outer.next);
            at = outer.values.last.saturating_add(1).max(at);
        }
        if let (Some(outer), Some(last)) = (open.last(), entry.values.first.checked_sub(1)) {
            push(&mut all, at, last, outer.next);
        }
        at = entry.values.first;
        open.push(*entry);
    }
    while let Some(outer) = open.pop() {
        push(&mut all, at, outer.values.last, outer.next);
        at = outer.values.last.saturating_add(1).max(at);
    }
    all
}

fn push(all: &mut Vec<Entry>, first: u128, last: u128, next: State) {
    if first <= last {
        all.push(Entry { values: Interval { first, last }, next });
    }
}

fn all(stage: &Stage) -> impl Iterator<Item = (State, Interval)> + '_ {
    stage.rows.iter().flat_map(|(state, rows)| rows.entries().map(|entry| (*state, entry.values)))
}

/// Entries and the gaps between them.
fn written_out(rows: &Rows, width: u16) -> usize {
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
    use crate::pieces::Pieces;

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
    fn entries_without_overlaps() {
        let entry = |first, last, next| Entry { values: Interval { first, last }, next };
        let entries = vec![entry(0, 15, 1), entry(4, 7, 2), entry(6, 6, 3), entry(12, 15, 4), entry(20, 23, 1)];
        let rows = Rows { default: 9, entries: Pieces::short(entries), ..Rows::default() };
        let wanted = [(0, 3, 1), (4, 5, 2), (6, 6, 3), (7, 7, 2), (8, 11, 1), (12, 15, 4), (20, 23, 1)];
        assert_eq!(disjoint(&rows), wanted.map(|(first, last, next)| entry(first, last, next)));
    }

    #[test]
    fn classes_keep_the_order_of_values() {
        let entry = |first, last, next| Entry { values: Interval { first, last }, next };
        let rows = |entries| Rows { default: 0, entries: Pieces::short(entries), ..Rows::default() };
        let stage = Stage {
            rows: [(1, rows(vec![entry(10, 19, 1), entry(30, u128::MAX, 2)])), (2, rows(vec![entry(15, 24, 1)]))]
                .into(),
            ..Stage::default()
        };
        let classes = Classes::of(&stage);
        let wanted = [(10, 14), (15, 19), (20, 24), (30, u128::MAX)];
        assert_eq!(classes.intervals, wanted.map(|(first, last)| Interval { first, last }));
        assert_eq!(classes.bits(), 3);
        assert_eq!(classes.codes(Interval { first: 15, last: 24 }), Interval { first: 2, last: 3 });
        assert_eq!(classes.codes(Interval { first: 30, last: u128::MAX }), Interval::point(4));
    }

    #[test]
    fn bits() {
        assert_eq!([1, 2, 3, 4, 5, 256, 257].map(bits_for), [0, 1, 2, 2, 3, 8, 9]);
    }
}
