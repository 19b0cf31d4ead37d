//! The fewest prefixes for a partition of values, where the longest prefix wins: the Optimal Routing Table Constructor
//! (Draves, King, Venkatachary, Zill: "Constructing Optimal IP Routing Tables", INFOCOM 1999).

use super::rows::place;
use super::{Entry, Rows, State};
use crate::pieces::Pieces;
use crate::values::Interval;
use smallvec::SmallVec;

/// States that a prefix may lead to at no extra cost, sorted.
type Choices = SmallVec<[State; 2]>;

struct Tree {
    choices: Choices,
    halves: Option<Box<[Tree; 2]>>,
}

/// The default and the prefixes of a partition of all values of `width` bits.
pub(super) fn rows(edges: &[(Interval, State)], width: u16) -> Rows {
    let tree = tree(edges, 0, 0, width);
    let default = tree.choices[0];
    let mut entries = Vec::new();
    assign(&tree, default, 0, 0, width, &mut entries);
    entries.sort_unstable_by_key(place);
    Rows { default, entries: Pieces::short(entries), nested: true, ..Rows::default() }
}

/// The tree below a prefix; `edges` are those that touch it.
fn tree(edges: &[(Interval, State)], value: u128, length: u16, width: u16) -> Tree {
    if let [(_, next)] = edges {
        return Tree { choices: SmallVec::from_slice(&[*next]), halves: None };
    }
    let [left, right] = halves(value, length, width);
    let touching = |half: u128| {
        let half = Interval::of_prefix(half, length + 1, width);
        let first = edges.partition_point(|(values, _)| values.last < half.first);
        let end = edges.partition_point(|(values, _)| values.first <= half.last);
        &edges[first..end]
    };
    let halves = [tree(touching(left), left, length + 1, width), tree(touching(right), right, length + 1, width)];
    let [a, b] = [&halves[0].choices, &halves[1].choices];
    let mut choices: Choices = a.iter().filter(|state| b.contains(state)).copied().collect();
    if choices.is_empty() {
        choices = a.iter().chain(b).copied().collect();
        choices.sort_unstable();
    }
    Tree { choices, halves: Some(Box::new(halves)) }
}

/// Writes the entries that a tree needs below one that leads to `inherited`.
fn assign(tree: &Tree, inherited: State, value: u128, length: u16, width: u16, entries: &mut Vec<Entry>) {
    let mut next = inherited;
    if !tree.choices.contains(&inherited) {
        next = tree.choices[0];
        entries.push(Entry { values: Interval::of_prefix(value, length, width), next });
    }
    if let Some(children) = &tree.halves {
        for (child, value) in children.iter().zip(halves(value, length, width)) {
            assign(child, next, value, length + 1, width, entries);
        }
    }
}

/// The two prefixes that are one bit longer.
fn halves(value: u128, length: u16, width: u16) -> [u128; 2] {
    [value, value | 1 << (width - length - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nested_prefixes_stay_nested() {
        // 10.1.0.0/16 within 10.0.0.0/8.
        let edge = |first, last, next| (Interval { first, last }, next);
        let edges = [
            edge(0, 0x09ff_ffff, 0),
            edge(0x0a00_0000, 0x0a00_ffff, 1),
            edge(0x0a01_0000, 0x0a01_ffff, 2),
            edge(0x0a02_0000, 0x0aff_ffff, 1),
            edge(0x0b00_0000, 0xffff_ffff, 0),
        ];
        let rows = rows(&edges, 32);
        assert_eq!((rows.default, rows.entry_count()), (0, 2));
    }

    proptest! {
        #[test]
        fn prefixes_say_what_the_partition_says(nexts in proptest::collection::vec(0u32..3, 64)) {
            let mut edges: Vec<(Interval, State)> = Vec::new();
            for (value, next) in nexts.iter().enumerate() {
                match edges.last_mut() {
                    Some((values, last)) if last == next => values.last = value as u128,
                    _ => edges.push((Interval::point(value as u128), *next)),
                }
            }
            let rows = rows(&edges, 6);
            for (value, next) in nexts.iter().enumerate() {
                prop_assert_eq!(rows.next(value as u128), *next);
            }
        }
    }
}
