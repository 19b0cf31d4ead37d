//! Tables: the diagram sliced by variables, each slice a table `(state, value) -> state`.
//!
//! A message starts in [`Tables::initial`] and meets the stages in order. A stage that knows its state takes it to
//! another; any other stage leaves it alone. The state behind the last stage has the message's actions.

mod lpm;
mod rows;

pub use rows::{Entry, Rows};

use crate::diagram::{Diagram, Edge, Mix, NodeId, SetId};
use crate::formats::MatchKind;
use crate::pieces::Piece;
use crate::values::Interval;
use crate::variable::{Levels, StateId, Variable};
use hashbrown::{HashMap, HashSet};
use rows::difference;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A state: a place of the diagram. Numbers are dense at first; the least free ones are taken again.
pub type State = u32;

/// All rows of one variable.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// By state.
    pub rows: BTreeMap<State, Rows>,
    /// Kind that the format asks for.
    pub(crate) asked: Option<MatchKind>,
    /// Entries that hold more than one value.
    pub(crate) wide: usize,
    pub(crate) entries: usize,
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

    /// Replaces a state's rows. `changes` gets the steps.
    fn put(&mut self, variable: Variable, state: State, rows: Option<Rows>, changes: &mut Vec<Change>) {
        let start = changes.len();
        let old = match rows {
            Some(rows) => self.rows.insert(state, rows),
            None => self.rows.remove(&state),
        };
        difference(variable, state, old.as_ref(), self.rows.get(&state), changes);
        for change in &changes[start..] {
            match change {
                Change::AddEntry(_, _, entry) => {
                    self.entries += 1;
                    self.wide += usize::from(!entry.values.is_point());
                }
                Change::RemoveEntry(_, _, entry) => {
                    self.entries -= 1;
                    self.wide -= usize::from(!entry.values.is_point());
                }
                _ => {}
            }
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
    /// Pieces of state that no rule uses any more.
    pub gone_states: Vec<StateId>,
}

impl Delta {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.new_states.is_empty() && self.gone_states.is_empty()
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
    numbers: HashMap<NodeId, State, Mix>,
    /// How many nodes, or shared pieces of nodes, lead to a node.
    references: HashMap<NodeId, u32, Mix>,
    /// How many nodes have a shared piece, by where it is. Keeping it here keeps its place.
    pieces: HashMap<usize, (u32, Arc<Piece<Edge>>), Mix>,
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
        let mut inherited = BTreeMap::new();
        for node in &born {
            let old = heirs.get(node).filter(|old| dying.contains(*old) && !inherited.contains_key(*old));
            let number = match old.and_then(|old| Some((*old, self.numbers.remove(old)?))) {
                Some((old, number)) => {
                    inherited.insert(old, number);
                    number
                }
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
            let old = heirs.get(node).filter(|old| inherited.get(*old) == self.numbers.get(node));
            self.put(diagram, (old.copied(), *node), &inherited, levels, &mut changes);
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
        Delta { changes, ..Delta::default() }
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
                for (gone, new) in before.edges.differing(&after.edges) {
                    let (mut gone, mut new) =
                        (before.edges.iter_of(gone).peekable(), after.edges.iter_of(new).peekable());
                    while let (Some(a), Some(b)) = (gone.peek().copied(), new.peek().copied()) {
                        if a.to != b.to {
                            self.pair(diagram, a.to, b.to, heirs);
                        }
                        gone.next_if(|_| a.last <= b.last);
                        new.next_if(|_| b.last <= a.last);
                    }
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
                let Some(node) = diagram.node(id) else { continue };
                for piece in node.edges.shared() {
                    let (count, _) = self.pieces.entry(address(piece)).or_insert_with(|| (0, Arc::clone(piece)));
                    *count += 1;
                    if *count == 1 {
                        open.extend(targets(piece.items.iter()));
                    }
                }
                if node.edges.shared().is_empty() {
                    open.extend(targets(node.edges.iter()));
                }
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
                let Some(node) = diagram.node(id) else { continue };
                for piece in node.edges.shared() {
                    let Some((count, _)) = self.pieces.get_mut(&address(piece)) else { continue };
                    *count -= 1;
                    if *count == 0 {
                        self.pieces.remove(&address(piece));
                        open.extend(targets(piece.items.iter()));
                    }
                }
                if node.edges.shared().is_empty() {
                    open.extend(targets(node.edges.iter()));
                }
            }
        }
        dead
    }

    /// Writes a node's rows, or a leaf's actions, under its number: that of the old node, if there is one. `inherited` has
    /// the numbers that old nodes had.
    fn put(
        &mut self,
        diagram: &Diagram,
        (old, id): (Option<NodeId>, NodeId),
        inherited: &BTreeMap<NodeId, State>,
        levels: &Levels<'_>,
        changes: &mut Vec<Change>,
    ) {
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
        self.order.insert(node.level, variable);
        let stage = self.stages.entry(variable).or_default();
        stage.asked = asked;
        let number =
            |node: NodeId| self.numbers.get(&node).or_else(|| inherited.get(&node)).copied().unwrap_or_default();
        let rows = if asked == Some(MatchKind::Lpm) {
            let edges: Vec<(Interval, State)> = node.intervals().map(|(values, to)| (values, number(to))).collect();
            lpm::rows(&edges, levels.width(variable))
        } else {
            let old = old.and_then(|old| Some((diagram.node(old)?, stage.rows.get_mut(&state)?)));
            Rows::new(node, old, asked, number)
        };
        stage.put(variable, state, Some(rows), changes);
    }

    fn drop_state(&mut self, state: State, changes: &mut Vec<Change>) {
        if self.leaves.remove(&state).is_some() {
            changes.push(Change::RemoveLeaf(state));
        }
        for (variable, stage) in &mut self.stages {
            stage.put(*variable, state, None, changes);
        }
    }
}

fn address(piece: &Arc<Piece<Edge>>) -> usize {
    Arc::as_ptr(piece).addr()
}

/// Where edges lead, each place once.
fn targets<'a>(edges: impl Iterator<Item = &'a Edge>) -> Vec<NodeId> {
    let distinct: HashSet<NodeId, Mix> = edges.map(|edge| edge.to).collect();
    let mut targets: Vec<NodeId> = distinct.into_iter().collect();
    targets.sort_unstable();
    targets
}
