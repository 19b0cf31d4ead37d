//! Changes of tables that one thread makes ready and another one, which walks them, takes over.

use super::{Actions, Column, END, Lookup, Memory, Node, Pipeline, WINDOW, WindowPlan};
use crate::search::{Hash, Target};
use std::collections::BTreeSet;
use weftwire_subscribe::compiler::Compiler;
use weftwire_subscribe::tables::{Change, Delta, State};
use weftwire_subscribe::window::Window;

/// The pieces of a pipeline that one change of the compiler has made anew: [`Pipeline::follow`] makes it, and
/// [`Pipeline::take`] takes it over.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Behind those that there were.
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

impl Pipeline {
    /// Follows the latest change of the compiler as [`Pipeline::apply`] does. The result makes the same of pipelines that were
    /// like this one before.
    pub fn follow(&mut self, compiler: &Compiler, delta: &Delta) -> Patch {
        let states: BTreeSet<State> = delta.changes.iter().filter_map(state).collect();
        let place = |pipeline: &Pipeline, state: &State| {
            let target = pipeline.target(*state);
            (target < END).then_some(target & !WINDOW)
        };
        let columns = self.columns.len();
        let mut places: BTreeSet<Target> = states.iter().filter_map(|state| place(self, state)).collect();
        self.apply(compiler, delta, &mut Memory::default());
        places.extend(states.iter().filter_map(|state| place(self, state)));
        let windows =
            delta.gone_states.iter().chain(&delta.new_states).filter(|id| (id.0 as usize) < self.windows.len());
        Patch {
            columns: self.columns[columns..].to_vec(),
            masks: self.masks[columns..].to_vec(),
            initial: self.initial,
            states: self.targets.len() as State,
            targets: states.iter().map(|state| (*state, self.target(*state))).collect(),
            ends: states.iter().map(|state| (*state, self.ends[*state as usize].clone())).collect(),
            count: self.nodes.len(),
            nodes: places.iter().map(|place| (*place, self.nodes[*place as usize].clone())).collect(),
            free: self.free.clone(),
            windows: windows.map(|id| (id.0, self.windows[id.0 as usize].clone())).collect(),
        }
    }

    /// Takes a change over, between two packets and in time that goes with the number of its pieces, and leaves what they replace
    /// there, to be freed elsewhere. Windows go on.
    pub fn take(&mut self, patch: &mut Patch, memory: &mut Memory) {
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
