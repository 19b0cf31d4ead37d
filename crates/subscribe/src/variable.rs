//! What tables match, in which order.

use crate::clauses::{Clause, Term};
use crate::formats::{FieldId, HeaderId, MessageFormats};
use crate::rules::Aggregate;
use crate::values::Interval;
use serde::Serialize;

/// Number of a piece of state, see [`crate::Compiler::state`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct StateId(pub u32);

/// What a table matches. They come in this order: headers, then fields in the chosen order, then state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Variable {
    /// Whether the message has a header: 1 or 0.
    Present(HeaderId),
    /// A field; 0 if the message lacks it, which no table then asks for.
    Field(FieldId),
    /// A piece of state, after this message's update.
    State(StateId),
}

/// A piece of state: what it is, and which messages update it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateVariable {
    /// What it is.
    pub aggregate: Aggregate,
    /// The filters, without tests of state, of the rules that use it: a message for which one holds updates it. For all
    /// but counters there is one.
    pub updated_by: Vec<Clause>,
    /// How many rules use it; 0: the number is free.
    pub(crate) rules: u32,
}

impl StateVariable {
    /// Whether a rule uses it; if not, its number is free.
    pub fn is_used(&self) -> bool {
        self.rules > 0
    }
}

/// What stands at which level of the diagram.
pub(crate) struct Levels<'a> {
    pub formats: &'a MessageFormats,
    pub order: &'a [FieldId],
    pub states: &'a [StateVariable],
}

impl Levels<'_> {
    pub fn level(&self, places: &[u32], variable: Variable) -> u32 {
        let headers = self.formats.headers().len() as u32;
        match variable {
            Variable::Present(header) => header.0.into(),
            Variable::Field(field) => headers + places[usize::from(field.0)],
            Variable::State(state) => headers + places.len() as u32 + state.0,
        }
    }

    pub fn variable(&self, level: u32) -> Variable {
        let headers = self.formats.headers().len();
        let level = level as usize;
        if level < headers {
            Variable::Present(HeaderId(level as u16))
        } else if let Some(field) = self.order.get(level - headers) {
            Variable::Field(*field)
        } else {
            Variable::State(StateId((level - headers - self.order.len()) as u32))
        }
    }

    pub fn width(&self, variable: Variable) -> u16 {
        match variable {
            Variable::Present(_) => 1,
            Variable::Field(field) => self.formats.field(field).width,
            Variable::State(state) => {
                self.states.get(state.0 as usize).map_or(64, |state| Term::State(state.aggregate).width(self.formats))
            }
        }
    }

    pub fn domain(&self, level: u32) -> Interval {
        Interval::of_width(self.width(self.variable(level)))
    }
}
