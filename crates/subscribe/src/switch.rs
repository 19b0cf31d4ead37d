//! A switch that walks the tables, message by message: what hardware does, not yet how fast.

use crate::compiler::{Actions, Compiler, StateId, Variable};
use crate::message::Message;
use crate::rules::{Aggregate, Function};
use crate::tables::Delta;
use crate::window::Window;

/// The state of a switch that runs a compiler's tables.
#[derive(Clone, Debug, Default)]
pub struct Switch {
    windows: Vec<Window>,
}

impl Switch {
    /// Follows a change of the compiler's rules: pieces of state that are new start anew.
    pub fn apply(&mut self, delta: &Delta) {
        for id in &delta.new_states {
            if let Some(window) = self.windows.get_mut(id.0 as usize) {
                *window = Window::default();
            }
        }
    }

    /// What a message gets.
    pub fn message(&mut self, compiler: &Compiler, message: &Message, now_ns: u64) -> Actions {
        let tables = compiler.tables();
        let value = |variable| match variable {
            Variable::Present(header) => u128::from(message.has(header)),
            Variable::Field(field) => message.value(field),
            Variable::State(_) => 0,
        };
        let is_state = |variable| matches!(variable, Variable::State(_));
        let mut state = tables.walk(tables.initial(), |variable| !is_state(variable), value);
        if !compiler.states().is_empty() {
            for id in compiler.actions(tables.any_leaf(state)).updates {
                self.update(compiler, id, message, now_ns);
            }
            state = tables.walk(state, is_state, |variable| match variable {
                Variable::State(id) => self.value(compiler, id),
                _ => 0,
            });
        }
        tables.leaves().get(&state).map(|set| compiler.actions(*set)).unwrap_or_default()
    }

    fn update(&mut self, compiler: &Compiler, id: StateId, message: &Message, now_ns: u64) {
        let index = id.0 as usize;
        if self.windows.len() <= index {
            self.windows.resize(compiler.states().len(), Window::default());
        }
        let (window_ns, field) = match compiler.state(id).aggregate {
            Aggregate::Counter(counter) => (compiler.formats().counters()[usize::from(counter.0)].window_ns, None),
            Aggregate::Window { field, window_ns, .. } => (window_ns, field),
        };
        let value = field.map_or(0, |field| message.value(field) as u64);
        self.windows[index].update(now_ns, window_ns, value);
    }

    fn value(&self, compiler: &Compiler, id: StateId) -> u128 {
        let function = match compiler.state(id).aggregate {
            Aggregate::Counter(_) => Function::Count,
            Aggregate::Window { function, .. } => function,
        };
        self.windows.get(id.0 as usize).copied().unwrap_or_default().value(function)
    }
}
