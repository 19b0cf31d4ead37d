//! The tables in flat arrays, and the walk through them.

use super::search::{self, Run, Slot, below, hashed, padded, runs};
use crate::compiler::{CallId, Compiler, Variable};
use crate::formats::{FieldId, HeaderId};
use crate::message::Message;
use crate::rules::{Aggregate, Function};
use crate::tables::{Rows, State};
use crate::window::Window;
use std::collections::BTreeMap;
use std::ops::Range;
use weftwire_core::Port;

/// Values of so many bits are looked up in an array of all values.
const DIRECT_BITS: u16 = 8;

/// So many single values of a state are hashed; fewer are as fast as runs.
const LEAST_HASHED: usize = 4;

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

/// A set of actions, see [`Pipeline::ports`] and [`Pipeline::calls`]. 0 is the empty one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ActionSet(pub u32);

/// What earlier messages left: the windows.
#[derive(Clone, Debug, Default)]
pub struct Memory(Vec<Window>);

/// How a state looks its value up.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// An array of all values.
    Direct,
    /// A hash table; the first of `nexts` is the default.
    Hash,
    /// Runs with bounds of 32, 64 or 128 bits.
    Runs32,
    Runs64,
    Runs128,
}

/// A state at which a value is looked up.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    /// The word of the row, or the number of the window.
    word: u32,
    /// Where its bounds or slots start, and how many there are.
    start: u32,
    length: u32,
    /// Where its next states start.
    nexts: u32,
}

/// A piece of state that messages update.
#[derive(Clone, Copy, Debug)]
struct WindowPlan {
    window_ns: u64,
    function: Function,
    /// The word of the row with the value.
    word: Option<u32>,
}

#[derive(Clone, Debug, Default)]
struct Actions {
    ports: Range<usize>,
    calls: Range<usize>,
}

/// A compiler's tables, flat. They do not follow the compiler: make a new one when rules change.
///
/// States are numbered anew: those of headers and fields first, then those of windows, then the ends.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    columns: Vec<Column>,
    /// Masks of the columns' values.
    masks: Vec<u64>,
    nodes: Vec<Node>,
    /// How many states look up headers and fields; those up to `nodes.len()` look up windows.
    fields: u32,
    initial: u32,
    bounds32: Vec<u32>,
    bounds64: Vec<u64>,
    bounds128: Vec<u128>,
    slots: Vec<Slot>,
    nexts: Vec<u32>,
    /// The actions of the ends.
    ends: Vec<ActionSet>,
    /// What is updated on the way to a state behind `fields`, in `update_list`.
    updates: Vec<Range<u32>>,
    update_list: Vec<u32>,
    windows: Vec<WindowPlan>,
    actions: Vec<Actions>,
    ports: Vec<Port>,
    calls: Vec<CallId>,
}

impl Pipeline {
    /// Lays out a compiler's tables.
    pub fn new(compiler: &Compiler) -> Pipeline {
        let tables = compiler.tables();
        let mut pipeline = Pipeline { actions: vec![Actions::default()], ..Pipeline::default() };
        // New numbers: by stages, which is the order in which messages meet them.
        let mut numbers = vec![0u32; tables.state_bound() as usize + 1];
        let mut states: Vec<(Variable, State, &Rows)> = Vec::new();
        for (variable, stage) in tables.stages() {
            states.extend(stage.rows.iter().map(|(state, rows)| (variable, *state, rows)));
        }
        for (number, (variable, state, _)) in states.iter().enumerate() {
            numbers[*state as usize] = number as u32;
            pipeline.fields += u32::from(!matches!(variable, Variable::State(_)));
        }
        for (index, state) in tables.leaves().keys().enumerate() {
            numbers[*state as usize] = (states.len() + index) as u32;
        }
        for state in compiler.states() {
            let plan = pipeline.plan(compiler, state.aggregate);
            pipeline.windows.push(plan);
        }
        for (variable, _, rows) in &states {
            let node = pipeline.node(compiler, *variable, rows, &numbers);
            pipeline.nodes.push(node);
        }
        let mut known = BTreeMap::from([((Vec::new(), Vec::new()), ActionSet(0))]);
        let mut updates: Vec<Vec<u32>> = Vec::new();
        let behind = states.iter().skip(pipeline.fields as usize).map(|(_, state, _)| tables.any_leaf(*state));
        updates.extend(behind.map(|set| updates_of(compiler, set)));
        for set in tables.leaves().values() {
            let actions = compiler.actions(*set);
            updates.push(actions.updates.iter().map(|id| id.0).collect());
            let number = *known
                .entry((actions.ports, actions.calls))
                .or_insert_with_key(|(ports, calls)| pipeline.add_actions(ports, calls));
            pipeline.ends.push(number);
        }
        for list in updates {
            let start = pipeline.update_list.len() as u32;
            pipeline.update_list.extend(list);
            pipeline.updates.push(start..pipeline.update_list.len() as u32);
        }
        if pipeline.ends.is_empty() {
            pipeline.ends.push(ActionSet(0));
            pipeline.updates.push(0..0);
        }
        pipeline.initial = numbers[tables.initial() as usize];
        pipeline
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
        let length = self.row_length();
        if self.windows.is_empty() {
            sets.extend(rows.chunks_exact(length).map(|row| self.end(self.walk_fields(row))));
            return;
        }
        memory.0.resize(self.windows.len(), Window::default());
        for row in rows.chunks_exact(length) {
            let mut state = self.walk_fields(row);
            let updates = &self.updates[(state - self.fields) as usize];
            for id in &self.update_list[updates.start as usize..updates.end as usize] {
                let plan = &self.windows[*id as usize];
                let value = plan.word.map_or(0, |word| row[word as usize]);
                memory.0[*id as usize].update(now_ns, plan.window_ns, value);
            }
            while let Some(node) = self.nodes.get(state as usize) {
                let window = node.word as usize;
                let value = memory.0[window].value(self.windows[window].function) as u64;
                state = self.next(node, value, 0);
            }
            sets.push(self.end(state));
        }
    }

    /// The ports of a set of actions, sorted.
    pub fn ports(&self, set: ActionSet) -> &[Port] {
        &self.ports[self.actions[set.0 as usize].ports.clone()]
    }

    /// The application's actions of a set.
    pub fn calls(&self, set: ActionSet) -> &[CallId] {
        &self.calls[self.actions[set.0 as usize].calls.clone()]
    }

    /// How many bytes the tables take.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.nodes[..])
            + size_of_val(&self.bounds32[..])
            + size_of_val(&self.bounds64[..])
            + size_of_val(&self.bounds128[..])
            + size_of_val(&self.slots[..])
            + size_of_val(&self.nexts[..])
            + size_of_val(&self.ends[..])
    }

    #[inline]
    fn walk_fields(&self, row: &[u64]) -> State {
        let mut state = self.initial;
        while state < self.fields {
            let node = &self.nodes[state as usize];
            let word = node.word as usize;
            let high = if matches!(node.kind, Kind::Runs128) { row[word + 1] } else { 0 };
            state = self.next(node, row[word], high);
        }
        state
    }

    #[inline]
    fn next(&self, node: &Node, low: u64, high: u64) -> State {
        let (start, length) = (node.start as usize, node.length as usize);
        let place = match node.kind {
            Kind::Direct => (low as usize).min(length - 1),
            Kind::Hash => match hashed(&self.slots[start..start + length], low) {
                Some(next) => return next,
                None => 0,
            },
            Kind::Runs32 => below(&self.bounds32[start..start + length], low as u32),
            Kind::Runs64 => below(&self.bounds64[start..start + length], low),
            Kind::Runs128 => below(&self.bounds128[start..start + length], u128::from(high) << 64 | u128::from(low)),
        };
        self.nexts[node.nexts as usize + place]
    }

    fn end(&self, state: State) -> ActionSet {
        self.ends[state as usize - self.nodes.len()]
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

    fn plan(&mut self, compiler: &Compiler, aggregate: Aggregate) -> WindowPlan {
        match aggregate {
            Aggregate::Counter(counter) => WindowPlan {
                window_ns: compiler.formats().counters()[usize::from(counter.0)].window_ns,
                function: Function::Count,
                word: None,
            },
            Aggregate::Window { function, field, window_ns } => {
                let word = field.map(|field| self.word(Column::Low(field), compiler.width(Variable::Field(field))));
                WindowPlan { window_ns, function, word }
            }
        }
    }

    fn node(&mut self, compiler: &Compiler, variable: Variable, rows: &Rows, numbers: &[u32]) -> Node {
        let width = compiler.width(variable);
        let word = match variable {
            Variable::Present(header) => self.word(Column::Present(header), 1),
            Variable::Field(field) => self.word(Column::Low(field), width),
            Variable::State(state) => state.0,
        };
        let number = |state: State| numbers[state as usize];
        let nexts = self.nexts.len() as u32;
        let node =
            |kind, start: usize, length: usize| Node { kind, word, start: start as u32, length: length as u32, nexts };
        if width <= DIRECT_BITS {
            self.nexts.extend((0..1u128 << width).map(|value| number(rows.next(value))));
            return node(Kind::Direct, 0, 1 << width);
        }
        let single = rows.entries.iter().all(|entry| entry.values.is_point());
        if single && width <= 64 && rows.entries.len() >= LEAST_HASHED {
            let keys: Vec<(u64, u32)> =
                rows.entries.iter().map(|entry| (entry.values.first as u64, number(entry.next))).collect();
            let start = self.slots.len();
            let length = search::add_hash(&mut self.slots, &keys);
            self.nexts.push(number(rows.default));
            return node(Kind::Hash, start, length);
        }
        let runs = runs(rows, width);
        self.nexts.extend(runs.iter().map(|run| number(run.next)));
        // The last run needs no bound: it holds all values behind the others.
        let bounds = runs.iter().take(runs.len() - 1).map(|Run { last, .. }| *last);
        let length = padded(bounds.len());
        let fill = length - bounds.len();
        match width {
            ..=32 => {
                let start = self.bounds32.len();
                self.bounds32.extend(bounds.map(|last| last as u32).chain(std::iter::repeat_n(u32::MAX, fill)));
                node(Kind::Runs32, start, length)
            }
            33..=64 => {
                let start = self.bounds64.len();
                self.bounds64.extend(bounds.map(|last| last as u64).chain(std::iter::repeat_n(u64::MAX, fill)));
                node(Kind::Runs64, start, length)
            }
            _ => {
                let start = self.bounds128.len();
                self.bounds128.extend(bounds.chain(std::iter::repeat_n(u128::MAX, fill)));
                node(Kind::Runs128, start, length)
            }
        }
    }

    fn add_actions(&mut self, ports: &[Port], calls: &[CallId]) -> ActionSet {
        let (first_port, first_call) = (self.ports.len(), self.calls.len());
        self.ports.extend_from_slice(ports);
        self.calls.extend_from_slice(calls);
        self.actions.push(Actions { ports: first_port..self.ports.len(), calls: first_call..self.calls.len() });
        ActionSet(self.actions.len() as u32 - 1)
    }
}

fn updates_of(compiler: &Compiler, set: crate::diagram::SetId) -> Vec<u32> {
    compiler.actions(set).updates.iter().map(|id| id.0).collect()
}
