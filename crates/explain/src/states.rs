//! The state diagram of an image.
//!
//! A transition may be spread over a chain of internal events; the diagram shows it as one arrow from the state where
//! the outside event met the machine.

use crate::phrase::Phrases;
use std::collections::BTreeMap;
use weftwire_draw::graph::{Edge, Graph, Label};
use weftwire_image::chains::{Chains, event_name, state_name};
use weftwire_image::*;
use weftwire_lang::Phases;

/// The states of an image and the ways between them.
pub fn states(image: &Image) -> Graph {
    let chains = Chains::new(image);
    let mut arrows: BTreeMap<(usize, usize), Vec<Label>> = BTreeMap::new();
    let mut walk = Walk { image, chains: &chains, known: BTreeMap::new() };
    for state in 0..u16::try_from(image.states.len()).unwrap_or(u16::MAX) {
        for event in chains.events(state).into_iter().filter(|event| !matches!(event, Event::Internal(_))) {
            for outcome in walk.outcomes(state, event) {
                let target = match (outcome.deleted, outcome.next) {
                    (true, _) => image.states.len(),
                    (false, Some(next)) if usize::from(next) < image.states.len() => usize::from(next),
                    _ => continue,
                };
                let event = event_name(image, &chains, state, event);
                let label = Label { event, conditions: outcome.conditions };
                let labels = arrows.entry((usize::from(state), target)).or_default();
                if !labels.contains(&label) {
                    labels.push(label);
                }
            }
        }
    }
    let states = (0..image.states.len()).map(|index| state_name(image, u16::try_from(index).unwrap_or(u16::MAX)));
    let edges = arrows.into_iter().map(|((from, to), labels)| Edge { from, to, labels });
    Graph::new(states.collect(), edges.collect())
}

/// The phases of a module and the ways between them.
pub fn phases(phases: Phases) -> Graph {
    let mut arrows: BTreeMap<(usize, usize), Vec<Label>> = BTreeMap::new();
    for change in phases.changes {
        let label = Label { event: change.event, conditions: change.conditions };
        arrows.entry((change.from, change.to)).or_default().push(label);
    }
    let edges = arrows.into_iter().map(|((from, to), labels)| Edge { from, to, labels });
    Graph::new(phases.names, edges.collect())
}

/// What handling an event may lead to.
#[derive(Clone)]
struct Outcome {
    next: Option<u16>,
    deleted: bool,
    /// The conditions on the way, without those that only exclude something where others say enough.
    conditions: Vec<String>,
}

/// Follows rows and the internal events they raise.
struct Walk<'a> {
    image: &'a Image,
    chains: &'a Chains<'a>,
    known: BTreeMap<(u16, Event), Vec<Outcome>>,
}

impl Walk<'_> {
    /// What handling `event` in `state` may lead to: for each row, one outcome a target.
    fn outcomes(&mut self, state: u16, event: Event) -> Vec<Outcome> {
        if let Some(known) = self.known.get(&(state, event)) {
            return known.clone();
        }
        let image = self.image;
        let mut phrases = Phrases::new(image, state, event, self.chains.value_names(state, event));
        let mut outcomes: Vec<Outcome> = Vec::new();
        let rows = image.rows.iter().filter(|row| row.state == state && row.event == event);
        for (position, row) in rows.enumerate() {
            let ends = [Operation::DeleteInstance, Operation::RestartInstance];
            let deleted = matches!(event, Event::Expire | Event::Abort)
                || image.written_out(&row.operations).any(|operation| ends.contains(operation));
            let mut own = key_conditions(image, &mut phrases, row);
            if row.when.is_empty() && position > 0 && !matches!(event, Event::Internal(_)) {
                own.push("otherwise".into());
            }
            // Internal events only raise greater numbers; a raise that does not is not followed.
            let further = match (row.raise, event) {
                (Some(raised), Event::Internal(number)) if raised <= number => Vec::new(),
                (Some(raised), _) => self.outcomes(state, Event::Internal(raised)),
                (None, _) => Vec::new(),
            };
            let stays = Outcome { next: row.next, deleted, conditions: own.clone() };
            let further = further.into_iter().map(|outcome| Outcome {
                next: outcome.next.or(row.next),
                deleted: outcome.deleted || deleted,
                conditions: join(&own, outcome.conditions),
            });
            let ways = further.chain(row.raise.is_none().then_some(stays));
            let first = outcomes.len();
            for way in ways {
                // Of the ways from one row to one target only what all of them ask for decides.
                let same = |known: &&mut Outcome| (known.next, known.deleted) == (way.next, way.deleted);
                match outcomes[first..].iter_mut().find(same) {
                    Some(known) => known.conditions.retain(|condition| way.conditions.contains(condition)),
                    None => outcomes.push(way),
                }
            }
        }
        self.known.insert((state, event), outcomes.clone());
        outcomes
    }
}

/// A row's conditions as a label shows them: those that ask for something, or else the first that excludes something. What tests a
/// temporary of the compiler says nothing.
fn key_conditions(image: &Image, phrases: &mut Phrases<'_>, row: &Row) -> Vec<String> {
    let all = row.when.iter().map(|(index, value)| phrases.condition(*index, *value));
    let temporary = |text: &String| image.registers.iter().any(|it| it.scratch && text.contains(&it.name));
    let all: Vec<String> = all.filter(|condition| !temporary(condition)).collect();
    let asks = |condition: &&String| !condition.starts_with("not ") && !condition.starts_with("lacks ");
    let shown: Vec<String> = all.iter().filter(asks).cloned().collect();
    if shown.is_empty() { all.into_iter().take(1).collect() } else { shown }
}

fn join(first: &[String], second: Vec<String>) -> Vec<String> {
    let new = second.into_iter().filter(|condition| !first.contains(condition));
    first.iter().cloned().chain(new.collect::<Vec<_>>()).collect()
}
