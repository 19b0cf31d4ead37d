//! The tables in flat arrays, and the walk through them.

mod patch;

pub use patch::{Patch, Touched};

use crate::search::{Bounds, Guide, Hash, Steps, Target, runs};
use std::collections::BTreeMap;
use weftwire_core::Port;
use weftwire_subscribe::clauses::Clause;
use weftwire_subscribe::compiler::{CallId, Compiler, StateId, Variable};
use weftwire_subscribe::diagram::SetId;
use weftwire_subscribe::formats::{FieldId, HeaderId};
use weftwire_subscribe::message::Message;
use weftwire_subscribe::rules::{Aggregate, Function};
use weftwire_subscribe::tables::{Change, Delta, Rows, State};
use weftwire_subscribe::window::Window;

/// So many single values of a state are hashed; fewer are as fast among bounds.
const LEAST_HASHED: usize = 4;

/// Single values that are no farther apart than this, on average, stand in an array instead.
const SPARSE: u128 = 16;

/// In targets of lookups: the tables end there, and the rest is the state.
const END: Target = 1 << 31;
/// In targets of lookups: a window is looked at there.
const WINDOW: Target = 1 << 30;

/// What a word of a row is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Column {
    /// Whether the message has a header: 1 or 0.
    Present(HeaderId),
    /// A field's low 64 bits; 0 if the message lacks it.
    Low(FieldId),
    /// The bits of a field above its low 64.
    High(FieldId),
}

/// A set of actions, see [`Pipeline::ports`] and [`Pipeline::calls`]: the number of a state at the tables' end. Equal
/// numbers of one pipeline have equal actions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ActionSet(pub u32);

/// What earlier messages left: the windows, by the numbers of the pieces of state.
#[derive(Clone, Debug, Default)]
pub struct Memory(Vec<Window>);

/// How a state looks its value up.
#[derive(Clone, Debug)]
enum Lookup {
    Steps(Steps),
    Hash(Hash),
    Guide(Guide),
    Bounds32(Bounds<u32>),
    Bounds64(Bounds<u64>),
    Bounds128(Bounds<u128>),
}

/// A state at which a value is looked up.
#[derive(Clone, Debug)]
struct Node {
    /// The word of the row, or the number of the window.
    word: u32,
    lookup: Lookup,
}

/// A piece of state that messages update.
#[derive(Clone, Debug)]
struct WindowPlan {
    window_ns: u64,
    function: Function,
    /// The word of the row with the value.
    word: Option<u32>,
    /// What tells it from others.
    what: (Aggregate, Vec<Clause>),
}

/// What happens at an end.
#[derive(Clone, Debug, Default)]
struct Actions {
    ports: Box<[Port]>,
    calls: Box<[CallId]>,
    /// The windows that are updated.
    updates: Box<[u32]>,
}

/// A compiler's tables, laid out for one processor to walk. They follow the compiler when told to:
/// [`Pipeline::apply`] what a rule changed, [`Pipeline::swap`] to what was laid out anew. Where another thread follows the compiler,
/// that one has a pipeline of its own, which [follows](Pipeline::follow), and this one [takes over](Pipeline::take) the [pieces that changed](Pipeline::pieces).
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    columns: Vec<Column>,
    /// Masks of the columns' values.
    masks: Vec<u64>,
    initial: Target,
    /// By the compiler's states: where it is among the nodes, or the end that it is.
    targets: Vec<Target>,
    nodes: Vec<Node>,
    /// Nodes that nothing leads to any more.
    free: Vec<Target>,
    /// The actions of the ends, by the compiler's states.
    ends: Vec<Actions>,
    windows: Vec<Option<WindowPlan>>,
}

impl Pipeline {
    /// Lays out a compiler's tables.
    pub fn new(compiler: &Compiler) -> Pipeline {
        let tables = compiler.tables();
        let mut pipeline = Pipeline::default();
        for (id, state) in compiler.states().iter().enumerate() {
            if state.is_used() {
                pipeline.plan(compiler, StateId(id as u32));
            }
        }
        pipeline.grow(tables.state_bound());
        for (state, set) in tables.leaves() {
            pipeline.set_end(compiler, *state, *set);
        }
        for (variable, stage) in tables.stages() {
            stage.rows.keys().for_each(|state| pipeline.add_node(compiler, variable, *state));
        }
        for (variable, stage) in tables.stages() {
            stage.rows.iter().for_each(|(state, rows)| pipeline.lay_out(compiler.width(variable), *state, rows));
        }
        pipeline.initial = pipeline.target(tables.initial());
        pipeline
    }

    /// Goes over to another pipeline for the same formats, and leaves this one there. Windows of the same functions over
    /// the same messages go on, others start anew.
    pub fn swap(&mut self, other: &mut Pipeline, memory: &mut Memory) {
        let old = self.windows.iter().zip(&memory.0);
        let known: BTreeMap<_, Window> =
            old.filter_map(|(plan, window)| Some((&plan.as_ref()?.what, *window))).collect();
        let kept = |plan: &Option<WindowPlan>| known.get(&plan.as_ref()?.what).copied();
        memory.0 = other.windows.iter().map(|plan| kept(plan).unwrap_or_default()).collect();
        std::mem::swap(self, other);
    }

    /// The windows in which anything is, with what they are of, as text.
    pub(crate) fn windows<'a>(&'a self, memory: &'a Memory) -> impl Iterator<Item = (String, Window)> + 'a {
        let windows = self.windows.iter().zip(&memory.0).filter(|(_, window)| **window != Window::default());
        windows.filter_map(|(plan, window)| Some((format!("{:?}", plan.as_ref()?.what), *window)))
    }

    /// The memory in which windows hold this; the rest are new. The first text that is none of this pipeline's windows is the error.
    pub(crate) fn memory(&self, mut windows: BTreeMap<String, Window>) -> Result<Memory, String> {
        let of = |plan: &Option<WindowPlan>| plan.as_ref().map(|plan| format!("{:?}", plan.what));
        let names: Vec<Option<String>> = self.windows.iter().map(of).collect();
        let known = names.iter().map(|name| name.as_ref().and_then(|name| windows.remove(name)).unwrap_or_default());
        let memory = Memory(known.collect());
        windows.into_keys().next().map_or(Ok(memory), Err)
    }

    /// Follows one change of the compiler, the latest, in time that goes with what it changes. Windows go on.
    pub fn apply(&mut self, compiler: &Compiler, delta: &Delta, memory: &mut Memory) {
        let tables = compiler.tables();
        for id in &delta.gone_states {
            if let Some(plan) = self.windows.get_mut(id.0 as usize) {
                *plan = None;
            }
        }
        for id in &delta.new_states {
            self.plan(compiler, *id);
            if let Some(window) = memory.0.get_mut(id.0 as usize) {
                *window = Window::default();
            }
        }
        // New states first, so that what leads to them finds them.
        self.grow(tables.state_bound());
        let mut touched: BTreeMap<(Variable, State), Vec<&Change>> = BTreeMap::new();
        for change in &delta.changes {
            match change {
                Change::SetLeaf(state, set) => self.set_end(compiler, *state, *set),
                Change::SetDefault(variable, state, _) => {
                    self.add_node(compiler, *variable, *state);
                    touched.entry((*variable, *state)).or_default().push(change);
                }
                Change::AddEntry(variable, state, _)
                | Change::ModifyEntry(variable, state, _)
                | Change::RemoveEntry(variable, state, _) => {
                    touched.entry((*variable, *state)).or_default().push(change);
                }
                Change::SetInitial(_) | Change::RemoveDefault(..) | Change::RemoveLeaf(_) => {}
            }
        }
        for ((variable, state), changes) in touched {
            if let Some(rows) = tables.rows(variable, state)
                && !self.patch(state, &changes)
            {
                self.lay_out(compiler.width(variable), state, rows);
            }
        }
        self.initial = self.target(tables.initial());
        for change in &delta.changes {
            match change {
                Change::RemoveDefault(_, state) => self.remove_node(*state),
                Change::RemoveLeaf(state) => self.ends[*state as usize] = Actions::default(),
                _ => {}
            }
        }
    }

    /// The words of a row, in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many words a row has: at least 1.
    pub fn row_length(&self) -> usize {
        self.columns.len().max(1)
    }

    /// Appends a message's row.
    pub fn push_row(&self, message: &Message, rows: &mut Vec<u64>) {
        for (column, mask) in self.columns.iter().zip(&self.masks) {
            let word = match column {
                Column::Present(header) => message.has(*header).into(),
                Column::Low(field) => message.value(*field) as u64,
                Column::High(field) => (message.value(*field) >> 64) as u64,
            };
            rows.push(word & mask);
        }
        if self.columns.is_empty() {
            rows.push(0);
        }
    }

    /// What each of these rows gets, appended to `sets`. All are of one instant, and update the windows in order.
    pub fn walk(&self, rows: &[u64], now_ns: u64, memory: &mut Memory, sets: &mut Vec<ActionSet>) {
        let rows = rows.chunks_exact(self.row_length());
        if self.windows.is_empty() {
            sets.extend(rows.map(|row| ActionSet(self.walk_fields(row) & !END)));
            return;
        }
        memory.0.resize(self.windows.len(), Window::default());
        for row in rows {
            let mut at = self.walk_fields(row);
            // All ends behind this place update the same windows.
            let any_end = self.walk_windows(at, |_, _| 0);
            for id in &self.ends[any_end as usize].updates {
                if let Some(plan) = &self.windows[*id as usize] {
                    let value = plan.word.map_or(0, |word| row[word as usize]);
                    memory.0[*id as usize].update(now_ns, plan.window_ns, value);
                }
            }
            at = self.walk_windows(at, |id, plan| memory.0[id].value(plan.function) as u64);
            sets.push(ActionSet(at));
        }
    }

    /// The ports of a set of actions, sorted.
    pub fn ports(&self, set: ActionSet) -> &[Port] {
        self.ends.get(set.0 as usize).map_or(&[], |actions| &actions.ports)
    }

    /// The application's actions of a set.
    pub fn calls(&self, set: ActionSet) -> &[CallId] {
        self.ends.get(set.0 as usize).map_or(&[], |actions| &actions.calls)
    }

    /// Whether a set has no action at all.
    pub fn is_empty(&self, set: ActionSet) -> bool {
        self.ports(set).is_empty() && self.calls(set).is_empty()
    }

    /// How many bytes the tables take.
    pub fn bytes(&self) -> usize {
        let arrays = self.nodes.iter().map(|node| match &node.lookup {
            Lookup::Steps(steps) => steps.bytes(),
            Lookup::Hash(hash) => hash.bytes(),
            Lookup::Guide(guide) => guide.bytes(),
            Lookup::Bounds32(bounds) => bounds.bytes(),
            Lookup::Bounds64(bounds) => bounds.bytes(),
            Lookup::Bounds128(bounds) => bounds.bytes(),
        });
        size_of_val(&self.nodes[..]) + arrays.sum::<usize>()
    }

    /// Where the fields of a row lead: an end, or a window.
    #[inline]
    fn walk_fields(&self, row: &[u64]) -> Target {
        let mut at = self.initial;
        while at < WINDOW {
            let node = &self.nodes[at as usize];
            let word = node.word as usize;
            let low = row[word];
            at = match &node.lookup {
                Lookup::Bounds128(bounds) => bounds.next(u128::from(row[word + 1]) << 64 | u128::from(low)),
                lookup => lookup.next(low),
            };
        }
        at
    }

    /// The state at whose end the windows from here lead.
    fn walk_windows(&self, mut at: Target, value: impl Fn(usize, &WindowPlan) -> u64) -> State {
        while at < END {
            let node = &self.nodes[(at - WINDOW) as usize];
            let window = node.word as usize;
            let plan = self.windows.get(window).and_then(Option::as_ref);
            at = node.lookup.next(plan.map_or(0, |plan| value(window, plan)));
        }
        at - END
    }

    fn target(&self, state: State) -> Target {
        self.targets.get(state as usize).copied().unwrap_or(END)
    }

    fn grow(&mut self, states: State) {
        // Tables without rules have a state nevertheless.
        let states = self.targets.len().max(states as usize).max(1);
        self.targets.resize(states, END);
        self.ends.resize(states, Actions::default());
    }

    fn set_end(&mut self, compiler: &Compiler, state: State, set: SetId) {
        let actions = compiler.actions(set);
        self.targets[state as usize] = END | state;
        self.ends[state as usize] = Actions {
            ports: actions.ports.into(),
            calls: actions.calls.into(),
            updates: actions.updates.iter().map(|id| id.0).collect(),
        };
    }

    /// Gives a state a node, if it has none.
    fn add_node(&mut self, compiler: &Compiler, variable: Variable, state: State) {
        let known = self.targets[state as usize];
        let (word, kind) = match variable {
            Variable::Present(header) => (self.word(Column::Present(header), 1), 0),
            Variable::Field(field) => (self.word(Column::Low(field), compiler.width(variable)), 0),
            Variable::State(id) => (id.0, WINDOW),
        };
        if known < END {
            self.nodes[(known & !WINDOW) as usize].word = word;
            return;
        }
        let node = Node { word, lookup: Lookup::Hash(Hash::with_room(0, END)) };
        let place = match self.free.pop() {
            Some(place) => {
                self.nodes[place as usize] = node;
                place
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as Target - 1
            }
        };
        self.targets[state as usize] = kind | place;
    }

    fn remove_node(&mut self, state: State) {
        let target = std::mem::replace(&mut self.targets[state as usize], END);
        if target < END {
            let place = target & !WINDOW;
            self.nodes[place as usize].lookup = Lookup::Hash(Hash::with_room(0, END));
            self.free.push(place);
        }
    }

    /// Makes the lookup of a state that has a node, for values of `width` bits.
    fn lay_out(&mut self, width: u16, state: State, rows: &Rows) {
        let lookup = Lookup::new(rows, width, |state| self.target(state));
        let place = (self.target(state) & !WINDOW) as usize;
        if let Some(node) = self.nodes.get_mut(place) {
            node.lookup = lookup;
        }
    }

    /// Carries changes out in a state's lookup as it is; whether that can be done.
    fn patch(&mut self, state: State, changes: &[&Change]) -> bool {
        let target = self.target(state);
        let Pipeline { nodes, targets, .. } = self;
        let Some(Node { lookup: Lookup::Hash(hash), .. }) = nodes.get_mut((target & !WINDOW) as usize) else {
            return false;
        };
        let wide = |change: &&Change| matches!(change, Change::AddEntry(_, _, entry) if !entry.values.is_point());
        if hash.is_ill_sized_for(hash.len() + changes.len()) || changes.iter().any(wide) {
            return false;
        }
        let target = |state: State| targets.get(state as usize).copied().unwrap_or(END);
        for change in changes {
            match change {
                Change::SetDefault(_, _, next) => hash.default = target(*next),
                Change::AddEntry(_, _, entry) | Change::ModifyEntry(_, _, entry) => {
                    hash.insert(entry.values.first as u64, target(entry.next));
                }
                Change::RemoveEntry(_, _, entry) => hash.remove(entry.values.first as u64),
                _ => {}
            }
        }
        true
    }

    /// The word of a column; a new one if there was none.
    fn word(&mut self, column: Column, width: u16) -> u32 {
        let known = self.columns.iter().position(|known| *known == column);
        let place = known.unwrap_or_else(|| {
            self.columns.push(column);
            self.masks.push(u64::MAX >> (64 - width.clamp(1, 64)));
            if let (Column::Low(field), true) = (column, width > 64) {
                self.columns.push(Column::High(field));
                self.masks.push(u64::MAX >> (128 - width.min(128)));
                return self.columns.len() - 2;
            }
            self.columns.len() - 1
        });
        place as u32
    }

    fn plan(&mut self, compiler: &Compiler, id: StateId) {
        let state = compiler.state(id);
        let (window_ns, function, word) = match state.aggregate {
            Aggregate::Counter(counter) => {
                (compiler.formats().counters()[usize::from(counter.0)].window_ns, Function::Count, None)
            }
            Aggregate::Window { function, field, window_ns } => {
                let word = field.map(|field| self.word(Column::Low(field), compiler.width(Variable::Field(field))));
                (window_ns, function, word)
            }
        };
        let place = id.0 as usize;
        if self.windows.len() <= place {
            self.windows.resize(place + 1, None);
        }
        let what = (state.aggregate, state.updated_by.clone());
        self.windows[place] = Some(WindowPlan { window_ns, function, word, what });
    }
}

impl Lookup {
    fn new(rows: &Rows, width: u16, target: impl Fn(State) -> Target) -> Lookup {
        if width <= 64 && rows.is_single() && is_sparse(rows) {
            let mut hash = Hash::with_room(rows.entry_count(), target(rows.default));
            rows.entries().for_each(|entry| hash.insert(entry.values.first as u64, target(entry.next)));
            return Lookup::Hash(hash);
        }
        let runs = runs(rows, width);
        if width <= 64
            && let Some(steps) = Steps::new(&runs, &target)
        {
            return Lookup::Steps(steps);
        }
        if width <= 64
            && let Some(guide) = Guide::new(&runs, &target)
        {
            return Lookup::Guide(guide);
        }
        match width {
            ..=32 => Lookup::Bounds32(Bounds::new(&runs, u32::MAX, |last| last as u32, target)),
            33..=64 => Lookup::Bounds64(Bounds::new(&runs, u64::MAX, |last| last as u64, target)),
            _ => Lookup::Bounds128(Bounds::new(&runs, u128::MAX, |last| last, target)),
        }
    }

    /// Where a value of up to 64 bits leads.
    #[inline]
    fn next(&self, value: u64) -> Target {
        match self {
            Lookup::Steps(steps) => steps.next(value),
            Lookup::Hash(hash) => hash.next(value),
            Lookup::Guide(guide) => guide.next(value),
            Lookup::Bounds32(bounds) => bounds.next(value as u32),
            Lookup::Bounds64(bounds) => bounds.next(value),
            Lookup::Bounds128(bounds) => bounds.next(value.into()),
        }
    }
}

/// Whether single values are too many for bounds, and too far apart for an array.
fn is_sparse(rows: &Rows) -> bool {
    let count = rows.entry_count();
    let mut values = rows.entries().map(|entry| entry.values.first);
    let (first, last) = (values.next().unwrap_or(0), values.last().unwrap_or(0));
    count >= LEAST_HASHED && last.saturating_sub(first) > SPARSE * count as u128 && last - first > 254
}
