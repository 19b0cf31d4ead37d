//! Compiled tables as a document: what `weft subs compile` writes, laid out in `docs/subscriptions.md`.

use crate::compiler::{Compiler, Variable};
use crate::cost::StageCost;
use crate::formats::MatchKind;
use crate::rules::{Aggregate, Function};
use crate::tables::State;
use serde::Serialize;
use std::collections::BTreeMap;
use weftwire_core::Port;

/// Name and version of the layout.
pub const LAYOUT: &str = "weftwire-subscription-tables/1";

/// The tables of a set of rules.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// [`LAYOUT`].
    pub layout: &'static str,
    /// Where messages start.
    pub initial: State,
    /// One more than the greatest state.
    pub states: State,
    /// The stages in the order in which messages meet them.
    pub stages: Vec<StageDocument>,
    /// The states at the end.
    pub leaves: Vec<Leaf>,
    /// Multicast groups, of two ports and more.
    pub groups: Vec<Group>,
    /// The pieces of state.
    pub windows: Vec<WindowDocument>,
    /// What the stages cost in switches.
    pub costs: Vec<StageCost>,
}

/// One stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageDocument {
    /// `header`, `field` or `window`.
    pub matches: &'static str,
    /// The header's or field's name, or the window's number.
    pub name: String,
    /// The width of values in bits.
    pub width: u16,
    /// What entries match by.
    pub kind: MatchKind,
    /// The rows of each state.
    pub rows: Vec<RowsDocument>,
}

/// One state of a stage.
#[derive(Clone, Debug, Serialize)]
pub struct RowsDocument {
    /// The state.
    pub state: State,
    /// The next state for values without an entry.
    pub default: State,
    /// First and last value, in hexadecimal, and the next state.
    pub entries: Vec<(String, String, State)>,
}

/// One state at the end.
#[derive(Clone, Debug, Serialize)]
pub struct Leaf {
    /// The state.
    pub state: State,
    /// The ports that messages go to.
    pub ports: Vec<Port>,
    /// The multicast group of these ports, if they are two or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// The application's actions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// The windows that messages update, before the stages of windows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<u32>,
}

/// A multicast group.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Its number, from 1.
    pub id: u32,
    /// Its ports.
    pub ports: Vec<Port>,
}

/// A piece of state.
#[derive(Clone, Debug, Serialize)]
pub struct WindowDocument {
    /// Its number.
    pub id: u32,
    /// What is compared.
    pub function: Function,
    /// The field it is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The declared counter it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<String>,
    /// Length of the window in nanoseconds.
    pub window_ns: u64,
}

impl Document {
    /// The document of a compiler's tables.
    pub fn new(compiler: &Compiler) -> Document {
        let tables = compiler.tables();
        let formats = compiler.formats();
        let mut groups: BTreeMap<Vec<Port>, u32> = BTreeMap::new();
        let mut leaves = Vec::new();
        for (state, set) in tables.leaves() {
            let actions = compiler.actions(*set);
            let next = groups.len() as u32 + 1;
            let group = (actions.ports.len() > 1).then(|| *groups.entry(actions.ports.clone()).or_insert(next));
            leaves.push(Leaf {
                state: *state,
                group,
                calls: actions.calls.iter().map(|call| compiler.call(*call).to_string()).collect(),
                updates: actions.updates.iter().map(|state| state.0).collect(),
                ports: actions.ports,
            });
        }
        let mut groups: Vec<Group> = groups.into_iter().map(|(ports, id)| Group { id, ports }).collect();
        groups.sort_by_key(|group| group.id);
        let stages = tables.stages().map(|(variable, stage)| {
            let (matches, name) = match variable {
                Variable::Present(header) => ("header", formats.header(header).name.clone()),
                Variable::Field(field) => ("field", formats.full_name(field)),
                Variable::State(state) => ("window", state.0.to_string()),
            };
            let rows = stage.rows.iter().map(|(state, rows)| RowsDocument {
                state: *state,
                default: rows.default,
                entries: rows
                    .entries()
                    .map(|entry| {
                        (format!("{:#x}", entry.values.first), format!("{:#x}", entry.values.last), entry.next)
                    })
                    .collect(),
            });
            StageDocument { matches, name, width: compiler.width(variable), kind: stage.kind(), rows: rows.collect() }
        });
        let windows = compiler.states().iter().enumerate().map(|(id, state)| match state.aggregate {
            Aggregate::Counter(counter) => {
                let counter = &formats.counters()[usize::from(counter.0)];
                WindowDocument {
                    id: id as u32,
                    function: Function::Count,
                    field: None,
                    counter: Some(counter.name.clone()),
                    window_ns: counter.window_ns,
                }
            }
            Aggregate::Window { function, field, window_ns } => WindowDocument {
                id: id as u32,
                function,
                field: field.map(|field| formats.full_name(field)),
                counter: None,
                window_ns,
            },
        });
        Document {
            layout: LAYOUT,
            initial: tables.initial(),
            states: tables.state_bound(),
            stages: stages.collect(),
            leaves,
            groups,
            windows: windows.collect(),
            costs: tables.costs(compiler),
        }
    }
}
