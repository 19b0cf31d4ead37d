//! Tables: the diagram sliced by variables, each slice a table `(state, value) -> state`.
//!
//! A message starts in [`Tables::initial`] and meets the stages in order. A stage that knows its state takes it to
//! another; any other stage leaves it alone. The state behind the last stage has the message's actions.

pub mod cost;
mod lpm;

use crate::compiler::{Levels, StateId, Variable};
use crate::diagram::{Diagram, NodeId, SetId};
use crate::formats::MatchKind;
use crate::values::Interval;
use hashbrown::{HashMap, HashSet};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A state: a place of the diagram. Numbers are dense at first; the least free ones are taken again.
pub type State = u32;

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
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Rows {
    /// The next state for all values without an entry.
    pub default: State,
    entries: Vec<Entry>,
    /// Whether entries overlap, as prefixes do.
    #[serde(skip)]
    nested: bool,
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
        let end = self.entries.partition_point(|entry| entry.values.first <= value);
        // Prefixes nest, and of those that hold the value the narrowest starts last; other entries are disjoint.
        let candidates = if self.nested { 0..end } else { end.saturating_sub(1)..end };
        let found = self.entries[candidates].iter().rev().find(|entry| entry.values.contains(value));
        found.map_or(self.default, |entry| entry.next)
    }
}

/// All rows of one variable.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// By state.
    pub rows: BTreeMap<State, Rows>,
    /// Kind that the format asks for.
    asked: Option<MatchKind>,
    /// Entries that hold more than one value.
    wide: usize,
    entries: usize,
}

impl Stage {
    /// What it matches by: as the format asks; else exactly if all entries are single values, by ranges if not.
    pub fn kind(&self) -> MatchKind {
        self.asked.unwrap_or(if self.wide == 0 { MatchKind::Exact } else { MatchKind::Range })
    }

    /// How many entries it has, without defaults.
    pub fn entry_count(&self) -> usize {
        self.entries
    }

    fn put(&mut self, state: State, rows: Rows) -> Option<Rows> {
        self.count(&rows, true);
        let old = self.rows.insert(state, rows);
        if let Some(old) = &old {
            self.count(old, false);
        }
        old
    }

    fn take(&mut self, state: State) -> Option<Rows> {
        let old = self.rows.remove(&state)?;
        self.count(&old, false);
        Some(old)
    }

    fn count(&mut self, rows: &Rows, add: bool) {
        let wide = rows.entries.iter().filter(|entry| !entry.values.is_point()).count();
        if add {
            self.wide += wide;
            self.entries += rows.entries.len();
        } else {
            self.wide -= wide;
            self.entries -= rows.entries.len();
        }
    }
}

/// One step of a [`Delta`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    /// A state appears at the end of the tables with these actions, or its actions change.
    SetLeaf(State, SetId),
    /// What a state does by default in a stage, for the first time or anew.
    SetDefault(Variable, State, State),
    /// A new entry.
    AddEntry(Variable, State, Entry),
    /// An entry leads elsewhere.
    ModifyEntry(Variable, State, Entry),
    /// Messages start in this state from now on.
    SetInitial(State),
    /// An entry goes.
    RemoveEntry(Variable, State, Entry),
    /// A state does nothing any more in a stage.
    RemoveDefault(Variable, State),
    /// A state is no end of the tables any more.
    RemoveLeaf(State),
}

/// What changes in the tables. Carried out in order, new states are there before anything leads to them, and old ones
/// until nothing does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delta {
    /// The steps in order.
    pub changes: Vec<Change>,
    /// Pieces of state that are new. Their numbers may have been those of others: their windows start empty.
    pub new_states: Vec<StateId>,
}

impl Delta {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.new_states.is_empty()
    }

    /// The actions that states at the end get.
    pub fn leaves(&self) -> impl Iterator<Item = SetId> + '_ {
        self.changes.iter().filter_map(|change| match change {
            Change::SetLeaf(_, set) => Some(*set),
            _ => None,
        })
    }
}

/// The tables of a diagram.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    stages: BTreeMap<Variable, Stage>,
    order: BTreeMap<u32, Variable>,
    leaves: BTreeMap<State, SetId>,
    initial: State,
    root: Option<NodeId>,
    numbers: HashMap<NodeId, State, crate::diagram::Mix>,
    /// How many nodes lead to a node.
    references: HashMap<NodeId, u32, crate::diagram::Mix>,
    free: BTreeSet<State>,
    next: State,
}

impl Tables {
    /// The stages in the order in which messages meet them.
    pub fn stages(&self) -> impl Iterator<Item = (Variable, &Stage)> + '_ {
        self.order.values().filter_map(|variable| Some((*variable, self.stages.get(variable)?)))
    }

    /// What a state does in a stage.
    pub fn rows(&self, variable: Variable, state: State) -> Option<&Rows> {
        self.stages.get(&variable)?.rows.get(&state)
    }

    /// The actions of the states at the end.
    pub fn leaves(&self) -> &BTreeMap<State, SetId> {
        &self.leaves
    }

    /// Where messages start.
    pub fn initial(&self) -> State {
        self.initial
    }

    /// One more than the greatest state there is or was.
    pub fn state_bound(&self) -> State {
        self.next
    }

    /// How many entries all stages have, without defaults.
    pub fn entry_count(&self) -> usize {
        self.stages.values().map(Stage::entry_count).sum()
    }

    /// The state that a message is in after the stages for which `value` is asked.
    pub fn walk(&self, from: State, stages: impl Fn(Variable) -> bool, value: impl Fn(Variable) -> u128) -> State {
        let mut state = from;
        for (variable, stage) in self.stages() {
            if stages(variable)
                && let Some(rows) = stage.rows.get(&state)
            {
                state = rows.next(value(variable));
            }
        }
        state
    }

    /// The actions of some leaf behind a state at which the stages of state begin. All such leaves update the same pieces of state.
    pub fn any_leaf(&self, state: State) -> SetId {
        let leaf = self.walk(state, |variable| matches!(variable, Variable::State(_)), |_| 0);
        self.leaves.get(&leaf).copied().unwrap_or(SetId::EMPTY)
    }

    /// Makes the tables those of another root of the same diagram.
    pub(crate) fn renew(&mut self, diagram: &Diagram, root: NodeId, levels: &Levels<'_>) -> Delta {
        if self.root == Some(root) {
            return Delta::default();
        }
        let mut heirs = BTreeMap::new();
        if let Some(old) = self.root {
            self.pair(diagram, old, root, &mut heirs);
        }
        let mut born = self.retain(diagram, root);
        let dead = self.root.map_or(Vec::new(), |old| self.release(diagram, old));
        self.root = Some(root);
        // States of nodes that are gone pass to the nodes in their place; the rest get numbers of their own.
        let dying: BTreeSet<NodeId> = dead.iter().copied().collect();
        let mut inherited = BTreeSet::new();
        for node in &born {
            let old = heirs.get(node).filter(|old| dying.contains(*old) && inherited.insert(**old));
            let number = match old.and_then(|old| self.numbers.remove(old)) {
                Some(number) => number,
                None => self.free.pop_first().unwrap_or_else(|| {
                    self.next += 1;
                    self.next - 1
                }),
            };
            self.numbers.insert(*node, number);
        }
        let mut changes = Vec::new();
        // What is led to comes before what leads there.
        born.sort_by_key(|node| std::cmp::Reverse(diagram.node(*node).map_or(u32::MAX, |node| node.level)));
        for node in &born {
            self.put(diagram, *node, levels, &mut changes);
        }
        let initial = self.numbers[&root];
        if initial != self.initial {
            self.initial = initial;
            changes.push(Change::SetInitial(initial));
        }
        for node in dead {
            // Heirs have taken the other numbers with them.
            if let Some(number) = self.numbers.remove(&node) {
                self.drop_state(number, &mut changes);
                self.free.insert(number);
            }
        }
        Delta { changes, new_states: Vec::new() }
    }

    /// Finds for nodes of the new diagram those of the old one in whose place they are.
    fn pair(&self, diagram: &Diagram, old: NodeId, new: NodeId, heirs: &mut BTreeMap<NodeId, NodeId>) {
        if old == new || self.references.contains_key(&new) || heirs.contains_key(&new) {
            return;
        }
        match (diagram.node(old), diagram.node(new)) {
            (None, None) => {
                heirs.insert(new, old);
            }
            (Some(before), Some(after)) if before.level == after.level => {
                heirs.insert(new, old);
                let (mut i, mut j) = (0, 0);
                while let (Some(a), Some(b)) = (before.edges.get(i), after.edges.get(j)) {
                    if a.to != b.to {
                        self.pair(diagram, a.to, b.to, heirs);
                    }
                    i += usize::from(a.last <= b.last);
                    j += usize::from(b.last <= a.last);
                }
            }
            _ => {}
        }
    }

    /// Counts the references of a new root. Returns the nodes that are new, parents first.
    fn retain(&mut self, diagram: &Diagram, root: NodeId) -> Vec<NodeId> {
        let mut born = Vec::new();
        let mut open = std::collections::VecDeque::from([root]);
        while let Some(id) = open.pop_front() {
            let count = self.references.entry(id).or_default();
            *count += 1;
            if *count == 1 {
                born.push(id);
                open.extend(children(diagram, id));
            }
        }
        born
    }

    /// Takes the references of an old root away. Returns the nodes that are gone.
    fn release(&mut self, diagram: &Diagram, root: NodeId) -> Vec<NodeId> {
        let mut dead = Vec::new();
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            let Some(count) = self.references.get_mut(&id) else { continue };
            *count -= 1;
            if *count == 0 {
                self.references.remove(&id);
                dead.push(id);
                open.extend(children(diagram, id));
            }
        }
        dead
    }

    /// Writes a node's rows, or a leaf's actions, under its number.
    fn put(&mut self, diagram: &Diagram, id: NodeId, levels: &Levels<'_>, changes: &mut Vec<Change>) {
        let state = self.numbers[&id];
        let Some(node) = diagram.node(id) else {
            let set = id.leaf().unwrap_or(SetId::EMPTY);
            if self.leaves.insert(state, set) != Some(set) {
                changes.push(Change::SetLeaf(state, set));
            }
            return;
        };
        let variable = levels.variable(node.level);
        let asked = match variable {
            Variable::Field(field) => levels.formats.field(field).kind,
            Variable::Present(_) => Some(MatchKind::Exact),
            Variable::State(_) => None,
        };
        let edges: Vec<(Interval, State)> = node.intervals().map(|(values, to)| (values, self.numbers[&to])).collect();
        let rows = rows(&edges, asked, levels.width(variable));
        self.order.insert(node.level, variable);
        let stage = self.stages.entry(variable).or_default();
        stage.asked = asked;
        let old = stage.put(state, rows);
        difference(variable, state, old.as_ref(), stage.rows.get(&state), changes);
    }

    fn drop_state(&mut self, state: State, changes: &mut Vec<Change>) {
        if self.leaves.remove(&state).is_some() {
            changes.push(Change::RemoveLeaf(state));
        }
        for (variable, stage) in &mut self.stages {
            if let Some(old) = stage.take(state) {
                difference(*variable, state, Some(&old), None, changes);
            }
        }
    }
}

/// Where a node leads, each place once.
fn children(diagram: &Diagram, id: NodeId) -> Vec<NodeId> {
    let Some(node) = diagram.node(id) else { return Vec::new() };
    let distinct: HashSet<NodeId, crate::diagram::Mix> = node.edges.iter().map(|edge| edge.to).collect();
    let mut children: Vec<NodeId> = distinct.into_iter().collect();
    children.sort_unstable();
    children
}

/// A node's edges as a default and entries.
fn rows(edges: &[(Interval, State)], asked: Option<MatchKind>, width: u16) -> Rows {
    if asked == Some(MatchKind::Lpm) {
        return lpm::rows(edges, width);
    }
    // The default saves as many entries as it can: one a range, or one a value where only values match.
    let mut savings: HashMap<State, (u128, u128), crate::diagram::Mix> = HashMap::default();
    for (values, next) in edges {
        let (entries, size) = savings.entry(*next).or_default();
        *entries = entries.saturating_add(if asked == Some(MatchKind::Exact) { values.size() } else { 1 });
        *size = size.saturating_add(values.size());
    }
    let best = savings.iter().max_by_key(|(state, savings)| (**savings, std::cmp::Reverse(**state)));
    let default = best.map_or(0, |(state, _)| *state);
    let mut entries = Vec::with_capacity(edges.len());
    for (values, next) in edges.iter().filter(|(_, next)| *next != default) {
        if asked == Some(MatchKind::Exact) {
            entries.extend(
                (values.first..=values.last).map(|value| Entry { values: Interval::point(value), next: *next }),
            );
        } else {
            entries.push(Entry { values: *values, next: *next });
        }
    }
    Rows { default, entries, nested: false }
}

/// The steps from one state's rows to others.
fn difference(variable: Variable, state: State, old: Option<&Rows>, new: Option<&Rows>, changes: &mut Vec<Change>) {
    match (old, new) {
        (Some(_), None) => changes.push(Change::RemoveDefault(variable, state)),
        (_, Some(new)) if old.is_none_or(|old| old.default != new.default) => {
            changes.push(Change::SetDefault(variable, state, new.default));
        }
        _ => {}
    }
    let mut before = old.into_iter().flat_map(|rows| rows.entries.iter().copied()).peekable();
    let mut after = new.into_iter().flat_map(|rows| rows.entries.iter().copied()).peekable();
    loop {
        match (before.peek(), after.peek()) {
            (None, None) => return,
            (Some(a), Some(b)) if a.values == b.values => {
                if a.next != b.next {
                    changes.push(Change::ModifyEntry(variable, state, *b));
                }
                before.next();
                after.next();
            }
            (Some(a), b) if b.is_none_or(|b| place(a) < place(b)) => {
                changes.push(Change::RemoveEntry(variable, state, *a));
                before.next();
            }
            (_, Some(b)) => {
                changes.push(Change::AddEntry(variable, state, *b));
                after.next();
            }
            (Some(_), None) => return,
        }
    }
}

/// Where an entry stands among others.
fn place(entry: &Entry) -> (u128, std::cmp::Reverse<u128>) {
    (entry.values.first, std::cmp::Reverse(entry.values.last))
}
