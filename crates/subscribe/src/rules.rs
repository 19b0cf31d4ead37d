//! Rules: a filter on messages and what to do with those that pass it.
//!
//! [`read_rules`] takes text; every rule it gives is checked: names exist, constants fit their fields.

mod constant;
mod parse;

pub use parse::read_rules;

use crate::formats::{ArgumentKind, CounterId, FieldId};
use crate::values::ValueSet;
use serde::Serialize;
use weftwire_core::{MacAddress, Port};
use weftwire_text::Span;

/// A rule.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// Which messages it is about.
    pub filter: Filter,
    /// What to do with them; at least one.
    pub actions: Vec<Action>,
    /// Where it is written.
    pub span: Span,
}

/// A filter. Negations are of any part; [`crate::clauses`] pushes them down.
#[derive(Clone, PartialEq, Debug)]
pub enum Filter {
    /// Every message.
    Always,
    /// No message.
    Never,
    /// One test.
    Test(Test),
    /// What the part does not hold for.
    Not(Box<Filter>),
    /// All parts hold.
    All(Vec<Filter>),
    /// Some part holds.
    Any(Vec<Filter>),
}

/// A field or a piece of state has one of these values. False, plain or negated, if the message lacks the field.
#[derive(Clone, PartialEq, Debug)]
pub struct Test {
    /// What is tested.
    pub subject: Subject,
    /// The values that pass.
    pub values: ValueSet,
    /// Where it is written.
    pub span: Span,
}

/// What a test looks at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Subject {
    /// A field of the message.
    Field(FieldId),
    /// Something that earlier messages left.
    State(Aggregate),
}

/// A piece of state, updated by every message for which the rest of the rule holds, and compared after that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Aggregate {
    /// A declared counter, common to all rules that name it.
    Counter(CounterId),
    /// A function of the messages of a tumbling window, of this rule alone.
    Window {
        /// The function.
        function: Function,
        /// The field it is of; none for `count`.
        field: Option<FieldId>,
        /// Length of the window in nanoseconds; windows start at multiples of it.
        window_ns: u64,
    },
}

/// A function over the messages of a window. All are whole numbers; the sum stops at 2^64 - 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Function {
    /// How many.
    Count,
    /// The sum of a field.
    Sum,
    /// The mean of a field, rounded down to the field's unit.
    Avg,
    /// The least value of a field.
    Min,
    /// The greatest value of a field.
    Max,
}

impl Function {
    /// The function of a name.
    pub fn of_name(name: &str) -> Option<Function> {
        Some(match name {
            "count" => Function::Count,
            "sum" => Function::Sum,
            "avg" => Function::Avg,
            "min" => Function::Min,
            "max" => Function::Max,
            _ => return None,
        })
    }

    /// Its name in rules.
    pub fn name(self) -> &'static str {
        match self {
            Function::Count => "count",
            Function::Sum => "sum",
            Function::Avg => "avg",
            Function::Min => "min",
            Function::Max => "max",
        }
    }
}

/// What to do with a message.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// Send it out of these ports.
    Forward(Vec<Port>),
    /// Send it nowhere. It takes nothing away from other rules.
    Drop,
    /// Something that an application knows.
    Call(Call),
}

/// An action of an application with its arguments.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Call {
    /// The action's name.
    pub action: String,
    /// Its arguments, of the kinds that the action's signature asks for.
    pub arguments: Vec<Argument>,
}

/// An argument.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Argument {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
    /// An IPv4 address.
    Ipv4(std::net::Ipv4Addr),
    /// An IPv6 address.
    Ipv6(std::net::Ipv6Addr),
    /// An Ethernet address.
    Mac(u64),
}

impl Argument {
    /// Its kind.
    pub fn kind(&self) -> ArgumentKind {
        match self {
            Argument::Number(_) => ArgumentKind::Number,
            Argument::Text(_) => ArgumentKind::Text,
            Argument::Ipv4(_) => ArgumentKind::Ipv4,
            Argument::Ipv6(_) => ArgumentKind::Ipv6,
            Argument::Mac(_) => ArgumentKind::Mac,
        }
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}(", self.action)?;
        for (index, argument) in self.arguments.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            match argument {
                Argument::Number(number) => write!(f, "{number}")?,
                Argument::Text(text) => write!(f, "\"{text}\"")?,
                Argument::Ipv4(address) => write!(f, "{address}")?,
                Argument::Ipv6(address) => write!(f, "{address}")?,
                Argument::Mac(address) => write!(f, "{}", MacAddress::from_bits(*address))?,
            }
        }
        f.write_str(")")
    }
}
