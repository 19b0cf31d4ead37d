//! Changes of tables that one thread makes ready and another one, which walks them, takes over.

use super::{Actions, Column, END, Lookup, Memory, Node, Pipeline, WINDOW, WindowPlan};
use crate::search::{Hash, Target};
use std::collections::BTreeSet;
use weftwire_subscribe::compiler::Compiler;
use weftwire_subscribe::tables::{Change, Delta, State};
use weftwire_subscribe::window::Window;

/// Which pieces of a pipeline changes have made anew.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    /// How many columns there were before the first of them.
    columns: Option<usize>,
    states: BTreeSet<State>,
    places: BTreeSet<Target>,
    windows: BTreeSet<u32>,
}

impl Touched {
    /// With those of other changes, before or after these.
    pub fn join(&mut self, mut other: Touched) {
        self.columns = self.columns.into_iter().chain(other.columns).min();
        self.states.append(&mut other.states);
        self.places.append(&mut other.places);
        self.windows.append(&mut other.windows);
    }
}

/// The pieces of a pipeline that were touched, as they are afterwards: [`Pipeline::pieces`] makes it, and [`Pipeline::take`] takes it
/// over.
#[derive(Clone, Debug)]
pub struct Patch {
    touched: Touched,
    /// Behind those that there were before.
    columns: Vec<Column>,
    masks: Vec<u64>,
    initial: Target,
    /// The states that the pipeline has room for.
    states: State,
    targets: Vec<(State, Target)>,
    ends: Vec<(State, Actions)>,
    /// How many nodes there are.
    count: usize,
    nodes: Vec<(Target, Node)>,
    free: Vec<Target>,
    windows: Vec<(u32, Option<WindowPlan>)>,
}

impl Patch {
    /// Which pieces they are.
    pub fn into_touched(self) -> Touched {
        self.touched
    }
}

impl Pipeline {
    /// Follows the latest change of the compiler as [`Pipeline::apply`] does, and notes what it touches.
    pub fn follow(&mut self, compiler: &Compiler, delta: &Delta, touched: &mut Touched) {
        let states: BTreeSet<State> = delta.changes.iter().filter_map(state).collect();
        let place = |pipeline: &Pipeline, state: &State| {
            let target = pipeline.target(*state);
            (target < END).then_some(target & !WINDOW)
        };
        let mut new = Touched { columns: Some(self.columns.len()), ..Touched::default() };
        // Nodes that go, and those that come.
        new.places.extend(states.iter().filter_map(|state| place(self, state)));
        self.apply(compiler, delta, &mut Memory::default());
        new.places.extend(states.iter().filter_map(|state| place(self, state)));
        new.windows.extend(delta.gone_states.iter().chain(&delta.new_states).map(|id| id.0));
        new.states = states;
        touched.join(new);
    }

    /// These pieces, for pipelines that were like this one before they were touched.
    pub fn pieces(&self, touched: Touched) -> Patch {
        let columns = touched.columns.unwrap_or(self.columns.len());
        let plan = |id: &u32| (*id, self.windows.get(*id as usize).cloned().flatten());
        Patch {
            columns: self.columns[columns..].to_vec(),
            masks: self.masks[columns..].to_vec(),
            initial: self.initial,
            states: self.targets.len() as State,
            targets: touched.states.iter().map(|state| (*state, self.target(*state))).collect(),
            ends: touched.states.iter().map(|state| (*state, self.ends[*state as usize].clone())).collect(),
            count: self.nodes.len(),
            nodes: touched.places.iter().map(|place| (*place, self.nodes[*place as usize].clone())).collect(),
            free: self.free.clone(),
            windows: touched.windows.iter().map(plan).collect(),
            touched,
        }
    }

    /// Takes pieces over, between two packets and in time that goes with their number, and leaves what they replace there, to be
    /// freed elsewhere. Windows go on.
    pub fn take(&mut self, patch: &mut Patch, memory: &mut Memory) {
        if let Some(columns) = patch.touched.columns {
            self.columns.truncate(columns);
            self.masks.truncate(columns);
        }
        self.columns.append(&mut patch.columns);
        self.masks.append(&mut patch.masks);
        self.initial = patch.initial;
        self.grow(patch.states);
        for (state, target) in &patch.targets {
            self.targets[*state as usize] = *target;
        }
        for (state, actions) in &mut patch.ends {
            std::mem::swap(&mut self.ends[*state as usize], actions);
        }
        self.nodes.resize_with(patch.count, || Node { word: 0, lookup: Lookup::Hash(Hash::with_room(0, END)) });
        for (place, node) in &mut patch.nodes {
            std::mem::swap(&mut self.nodes[*place as usize], node);
        }
        std::mem::swap(&mut self.free, &mut patch.free);
        for (id, plan) in &mut patch.windows {
            let place = *id as usize;
            if self.windows.len() <= place {
                self.windows.resize(place + 1, None);
            }
            // What is new starts empty, whatever had its number before.
            if let Some(window) = memory.0.get_mut(place) {
                *window = Window::default();
            }
            std::mem::swap(&mut self.windows[place], plan);
        }
    }
}

/// The state whose pieces a change may make anew.
fn state(change: &Change) -> Option<State> {
    match change {
        Change::SetLeaf(state, _)
        | Change::RemoveLeaf(state)
        | Change::SetDefault(_, state, _)
        | Change::RemoveDefault(_, state)
        | Change::AddEntry(_, state, _)
        | Change::ModifyEntry(_, state, _)
        | Change::RemoveEntry(_, state, _) => Some(*state),
        Change::SetInitial(_) => None,
    }
}
