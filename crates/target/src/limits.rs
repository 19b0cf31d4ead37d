//! What Tofino has of what: checked before a compiler would.

use crate::Unsupported;
use crate::program::*;
use std::collections::BTreeMap;

/// Match-action stages of the largest switch of the kind; Tofino 1 has [`STAGES`].
const MOST_STAGES: usize = 20;

/// Match-action stages of Tofino 1.
pub const STAGES: usize = 12;

/// Bits that a state of the parser can look at.
const SELECT_BITS: u32 = 32;

/// Bits of headers and metadata that a packet takes with it.
const VECTOR_BITS: u32 = 4096;

/// Checks a program.
pub(super) fn check(program: &Program) -> Result<(), Unsupported> {
    for state in &program.states {
        let bits: u32 = state.select.iter().map(|select| u32::from(select.width())).sum();
        if bits > SELECT_BITS {
            return Err(Unsupported::Select(bits));
        }
    }
    let bridge: u32 = program.bridge.iter().map(|(_, width)| u32::from(*width)).sum();
    let bits = bridge + longest(program, "start", &mut BTreeMap::new());
    if bits > VECTOR_BITS {
        return Err(Unsupported::Vector(bits));
    }
    let stages = stages(&program.ingress).max(stages(&program.egress));
    if stages > MOST_STAGES {
        return Err(Unsupported::Stages(stages));
    }
    Ok(())
}

/// Most bits of headers on a way through the parser, which has no loops.
fn longest<'a>(program: &'a Program, name: &'a str, known: &mut BTreeMap<&'a str, u32>) -> u32 {
    if let Some(bits) = known.get(name) {
        return *bits;
    }
    let Some(state) = program.states.iter().find(|state| state.name == name) else { return 0 };
    let own: u32 = state
        .extracts
        .iter()
        .filter_map(|extract| match extract {
            Extract::Header(name) => program.headers.iter().find(|header| header.name == *name),
            Extract::Variable(..) => None,
        })
        .flat_map(|header| &header.fields)
        .map(|(_, width)| u32::from(*width))
        .sum();
    let nexts = state.cases.iter().map(|(_, next)| next).chain([&state.otherwise]);
    let behind = nexts.map(|next| longest(program, next, known)).max().unwrap_or(0);
    known.insert(name, own + behind);
    own + behind
}

/// The fewest match-action stages of a control: as many as there are tables that have to wait for each other.
pub fn stages(control: &Control) -> usize {
    let mut written = BTreeMap::new();
    walk(control, &control.nodes, 0, &mut written)
}

/// In which stage each field was last written, from 1.
type Written = BTreeMap<Place, usize>;

/// Walks nodes that are not before a stage. Returns the last stage of them all.
fn walk(control: &Control, nodes: &[Node], not_before: usize, written: &mut Written) -> usize {
    let mut last = not_before;
    for node in nodes {
        last = last.max(match node {
            Node::Apply(name) => apply(control, name, not_before, written),
            Node::Do(name) => run(control.action(name), not_before, written),
            Node::ApplyOr(name, others) => {
                let stage = apply(control, name, not_before, written);
                walk(control, others, stage, written)
            }
            Node::If(test, yes, no) => {
                // The test itself is made in the stage of what it guards.
                let mut fields = Vec::new();
                read(test, &mut fields);
                let known = fields.iter().filter_map(|field| written.get(field)).max();
                let not_before = not_before.max(known.copied().unwrap_or(0));
                let mut other = written.clone();
                let stage = walk(control, yes, not_before, written).max(walk(control, no, not_before, &mut other));
                for (field, stage) in other {
                    let known = written.entry(field).or_default();
                    *known = (*known).max(stage);
                }
                stage
            }
        });
    }
    last
}

fn apply(control: &Control, name: &str, not_before: usize, written: &mut Written) -> usize {
    let Some(table) = control.tables.iter().find(|table| table.name == name) else { return not_before };
    let mut keys = Vec::new();
    table.keys.iter().for_each(|key| read(&key.value, &mut keys));
    let known = keys.iter().filter_map(|field| written.get(field)).max();
    let not_before = not_before.max(known.copied().unwrap_or(0));
    let actions = table.actions.iter().filter_map(|name| control.action(name));
    let before = written.clone();
    let stage = actions.clone().map(|action| place(action, not_before, &before)).max().unwrap_or(not_before + 1);
    actions.for_each(|action| write(action, stage, written));
    stage
}

fn run(action: Option<&Action>, not_before: usize, written: &mut Written) -> usize {
    let Some(action) = action else { return not_before };
    let stage = place(action, not_before, written);
    write(action, stage, written);
    stage
}

/// The stage of an action: behind all that wrote what it reads or writes.
fn place(action: &Action, not_before: usize, written: &Written) -> usize {
    let mut fields = Vec::new();
    for step in &action.steps {
        if let Step::Set(to, value) = step {
            fields.push(to);
            read(value, &mut fields);
        }
    }
    let known = fields.iter().filter_map(|field| written.get(*field)).max();
    not_before.max(known.copied().unwrap_or(0)) + 1
}

fn write(action: &Action, stage: usize, written: &mut Written) {
    for step in &action.steps {
        if let Step::Set(to, _) | Step::Update(to, _) = step {
            written.insert(to.clone(), stage);
        }
    }
}

fn read<'a>(value: &'a Expression, fields: &mut Vec<&'a Place>) {
    match value {
        Expression::Field(field) => fields.push(field),
        Expression::Valid(_) | Expression::Number(..) | Expression::Parameter(_) => {}
        Expression::Of(_, left, right) => {
            read(left, fields);
            read(right, fields);
        }
        Expression::Bits(_, value) | Expression::Slice(_, _, value) => read(value, fields),
        Expression::Choice(test, yes, no) => [test, yes, no].into_iter().for_each(|value| read(value, fields)),
    }
}
