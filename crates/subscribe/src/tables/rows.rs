//! What one state does in a stage, made of a node, and the steps from one such to another.

use super::{Change, State};
use crate::diagram::{Edge, Mix, Node, NodeId, intervals};
use crate::formats::MatchKind;
use crate::pieces::{Piece, Pieces};
use crate::values::Interval;
use crate::variable::Variable;
use hashbrown::HashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// An entry of a state's rows: these values lead to another state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Entry {
    /// The values: one of them in a table of kind exact, the values of a prefix in one of kind lpm. Only those of
    /// prefixes overlap, and there the narrowest wins.
    #[serde(flatten)]
    pub values: Interval,
    /// The next state.
    pub next: State,
}

/// What one state does in a stage.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The next state for all values without an entry.
    pub default: State,
    /// Of a long node, a piece for each of its pieces.
    pub(crate) entries: Pieces<Entry>,
    /// Whether entries overlap, as prefixes do.
    pub(crate) nested: bool,
    /// Of a long node: what each default would save.
    pub(crate) savings: Savings,
}

impl Rows {
    /// The entries, by their first values; of those that start alike the widest comes first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> + '_ {
        self.entries.iter()
    }

    /// How many entries there are.
    pub fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// Whether all entries are single values.
    pub fn is_single(&self) -> bool {
        self.entries.iter().all(|entry| entry.values.is_point())
    }

    /// The next state for a value.
    pub fn next(&self, value: u128) -> State {
        let entries = self.entries.around(value);
        let end = entries.partition_point(|entry| entry.values.first <= value);
        // Prefixes nest, and of those that hold the value the narrowest starts last; other entries are disjoint.
        let candidates = if self.nested { 0..end } else { end.saturating_sub(1)..end };
        let found = entries[candidates].iter().rev().find(|entry| entry.values.contains(value));
        found.map_or(self.default, |entry| entry.next)
    }
}

/// What each default would save: entries, and then values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Savings {
    of: HashMap<State, (u128, u128), Mix>,
    /// The same, the best last; empty until [`Savings::rank`].
    ranked: BTreeSet<((u128, u128), Reverse<State>)>,
}

impl Savings {
    /// Takes edges in, or out. A default saves one entry a range, or one a value where only values match.
    fn count(&mut self, edges: impl Iterator<Item = (Interval, State)>, asked: Option<MatchKind>, add: bool) {
        for (values, next) in edges {
            let saved = self.of.entry(next).or_default();
            if !self.ranked.is_empty() {
                self.ranked.remove(&(*saved, Reverse(next)));
            }
            let entries = if asked == Some(MatchKind::Exact) { values.size() } else { 1 };
            // No state has all values, so sums of sizes stay below 2^128.
            let sum =
                |known: u128, more: u128| if add { known.saturating_add(more) } else { known.saturating_sub(more) };
            *saved = (sum(saved.0, entries), sum(saved.1, values.size()));
            if !self.ranked.is_empty() {
                self.ranked.insert((*saved, Reverse(next)));
            }
        }
    }

    fn rank(&mut self) {
        self.ranked = self.of.iter().map(|(state, saved)| (*saved, Reverse(*state))).collect();
    }

    fn best(&self) -> State {
        let best = self.of.iter().map(|(state, saved)| (*saved, Reverse(*state))).max();
        self.ranked.last().copied().or(best).map_or(0, |(_, state)| state.0)
    }
}

impl Rows {
    /// A node's edges as a default, which saves as many entries as it can, and entries. What a long node has in common
    /// with the old one in its place is taken over from that one's rows.
    pub(super) fn new(
        node: &Node,
        old: Option<(&Node, &mut Rows)>,
        asked: Option<MatchKind>,
        number: impl Fn(NodeId) -> State,
    ) -> Rows {
        let edges = &node.edges;
        if edges.shared().is_empty() {
            let mut savings = Savings::default();
            savings.count(numbered(0, edges.iter(), &number), asked, true);
            let default = savings.best();
            let entries = entries(numbered(0, edges.iter(), &number), default, asked);
            return Rows { default, entries: Pieces::short(entries), ..Rows::default() };
        }
        let Some((before, rows)) = old.filter(|(before, _)| !before.edges.shared().is_empty()) else {
            let mut savings = Savings::default();
            savings.count(numbered(0, edges.iter(), &number), asked, true);
            savings.rank();
            let default = savings.best();
            let piece = |piece: &Arc<Piece<Edge>>| entry_piece(piece, default, asked, &number);
            let entries = Pieces::long(edges.shared().iter().map(piece).collect());
            return Rows { default, entries, nested: false, savings };
        };
        let mut savings = std::mem::take(&mut rows.savings);
        for (gone, new) in before.edges.differing(edges) {
            savings.count(numbered_pieces(&before.edges, gone, &number), asked, false);
            savings.count(numbered_pieces(edges, new, &number), asked, true);
        }
        let default = savings.best();
        let mut known = before.edges.shared().iter().zip(rows.entries.shared()).peekable();
        let piece = |piece: &Arc<Piece<Edge>>| {
            while known.next_if(|(known, _)| known.last < piece.last).is_some() {}
            match known.peek() {
                Some((same, entries)) if Arc::ptr_eq(same, piece) && rows.default == default => Arc::clone(entries),
                _ => entry_piece(piece, default, asked, &number),
            }
        };
        let entries = Pieces::long(edges.shared().iter().map(piece).collect());
        Rows { default, entries, nested: false, savings }
    }
}

fn entry_piece(
    piece: &Piece<Edge>,
    default: State,
    asked: Option<MatchKind>,
    number: impl Fn(NodeId) -> State,
) -> Arc<Piece<Entry>> {
    let entries = entries(numbered(piece.first, piece.items.iter(), number), default, asked);
    Piece::new(piece.first, piece.last, entries.into())
}

/// Edges from a value on, as intervals and states.
fn numbered<'a>(
    first: u128,
    edges: impl Iterator<Item = &'a Edge>,
    number: impl Fn(NodeId) -> State,
) -> impl Iterator<Item = (Interval, State)> {
    intervals(first, edges).map(move |(values, to)| (values, number(to)))
}

fn numbered_pieces(
    edges: &Pieces<Edge>,
    pieces: Range<usize>,
    number: impl Fn(NodeId) -> State,
) -> impl Iterator<Item = (Interval, State)> {
    let first = edges.shared().get(pieces.start).map_or(0, |piece| piece.first);
    numbered(first, edges.iter_of(pieces), number)
}

/// The entries that edges need beside a default.
fn entries(edges: impl Iterator<Item = (Interval, State)>, default: State, asked: Option<MatchKind>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (values, next) in edges.filter(|(_, next)| *next != default) {
        if asked == Some(MatchKind::Exact) {
            entries.extend((values.first..=values.last).map(|value| Entry { values: Interval::point(value), next }));
        } else {
            entries.push(Entry { values, next });
        }
    }
    entries
}

/// The steps from one state's rows to others.
pub(super) fn difference(
    variable: Variable,
    state: State,
    old: Option<&Rows>,
    new: Option<&Rows>,
    changes: &mut Vec<Change>,
) {
    match (old, new) {
        (Some(_), None) => changes.push(Change::RemoveDefault(variable, state)),
        (_, Some(new)) if old.is_none_or(|old| old.default != new.default) => {
            changes.push(Change::SetDefault(variable, state, new.default));
        }
        _ => {}
    }
    let none = Pieces::default();
    let (before, after) = (old.map_or(&none, |rows| &rows.entries), new.map_or(&none, |rows| &rows.entries));
    for (gone, new) in before.differing(after) {
        entry_difference(variable, state, before.iter_of(gone), after.iter_of(new), changes);
    }
}

fn entry_difference<'a>(
    variable: Variable,
    state: State,
    before: impl Iterator<Item = &'a Entry>,
    after: impl Iterator<Item = &'a Entry>,
    changes: &mut Vec<Change>,
) {
    let (mut before, mut after) = (before.peekable(), after.peekable());
    loop {
        match (before.peek(), after.peek()) {
            (None, None) => return,
            (Some(a), Some(b)) if a.values == b.values => {
                if a.next != b.next {
                    changes.push(Change::ModifyEntry(variable, state, **b));
                }
                before.next();
                after.next();
            }
            (Some(a), b) if b.is_none_or(|b| place(a) < place(b)) => {
                changes.push(Change::RemoveEntry(variable, state, **a));
                before.next();
            }
            (_, Some(b)) => {
                changes.push(Change::AddEntry(variable, state, **b));
                after.next();
            }
            (Some(_), None) => return,
        }
    }
}

/// Where an entry stands among others.
pub(super) fn place(entry: &Entry) -> (u128, std::cmp::Reverse<u128>) {
    (entry.values.first, std::cmp::Reverse(entry.values.last))
}
