//! The state diagram of an image: as Graphviz, as Mermaid, and as a finished SVG picture.
//!
//! A transition may be spread over a chain of internal events; the diagram shows it as one arrow from the state where
//! the outside event met the machine.

mod layout;
mod svg;

use crate::explain::{Chains, Phrases, event_name, state_name};
use crate::types::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Greatest number of labels on one arrow; further ones are counted.
const MOST_LABELS: usize = 3;
/// Greatest number of conditions in one label.
const MOST_CONDITIONS: usize = 3;

/// The state diagram in Graphviz's language.
pub fn dot(image: &Image) -> String {
    let graph = Graph::new(image);
    let mut out = format!(
        "digraph {} {{\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n  \
         edge [fontname=\"sans-serif\", fontsize=10];\n  start [shape=point];\n  start -> s0;\n",
        dot_string(&image.name)
    );
    for (index, name) in graph.states.iter().enumerate() {
        let _ = writeln!(out, "  s{index} [label={}];", dot_string(name));
    }
    if graph.has_end() {
        out.push_str("  end [shape=doublecircle, style=filled, fillcolor=black, label=\"\", width=0.12];\n");
    }
    for edge in &graph.edges {
        let label = edge.lines().iter().map(|line| line.text.clone()).collect::<Vec<_>>().join("\n");
        let _ = writeln!(out, "  s{} -> {} [label={}];", edge.from, graph.id(edge.to), dot_string(&label));
    }
    out.push_str("}\n");
    out
}

/// The state diagram in Mermaid's language (`stateDiagram-v2`).
pub fn mermaid(image: &Image) -> String {
    let graph = Graph::new(image);
    let mut out = String::from("stateDiagram-v2\n");
    for (index, name) in graph.states.iter().enumerate() {
        let _ = writeln!(out, "  state \"{}\" as s{index}", mermaid_text(name));
    }
    out.push_str("  [*] --> s0\n");
    for edge in &graph.edges {
        let label: Vec<String> = edge.lines().iter().map(|line| mermaid_text(&line.text)).collect();
        let target = if edge.to == graph.states.len() { "[*]".into() } else { graph.id(edge.to) };
        let _ = writeln!(out, "  s{} --> {target}: {}", edge.from, label.join("<br/>"));
    }
    out
}

/// The state diagram as a self-contained SVG document: states in layers from the initial state down, one labelled
/// arrow for each pair of states, the end of a flow as a ringed dot. It follows the reader's light or dark scheme.
pub fn svg(image: &Image) -> String {
    svg::draw(&Graph::new(image), &image.name)
}

/// Other boxes and arrows in the same style: the boxes' names, of which the first is marked as the start, and for each
/// arrow its two boxes and the lines of its label.
pub fn svg_of(title: &str, boxes: Vec<String>, arrows: Vec<(usize, usize, Vec<String>)>) -> String {
    let label = |event: String| Label { event, conditions: Vec::new() };
    let edges = arrows
        .into_iter()
        .filter(|(from, to, _)| (*from).max(*to) < boxes.len())
        .map(|(from, to, lines)| Edge { from, to, labels: lines.into_iter().map(label).collect() })
        .collect();
    svg::draw(&Graph { states: boxes, edges }, title)
}

/// States and arrows. The state behind the last one is the end of the flow.
struct Graph {
    states: Vec<String>,
    edges: Vec<Edge>,
}

/// An arrow between two states.
struct Edge {
    from: usize,
    to: usize,
    labels: Vec<Label>,
}

/// One way to take an arrow.
#[derive(PartialEq, Eq)]
struct Label {
    event: String,
    conditions: Vec<String>,
}

/// A line of an arrow's label.
struct LabelLine {
    text: String,
    is_event: bool,
}

impl Graph {
    fn new(image: &Image) -> Graph {
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
        let edges = arrows.into_iter().map(|((from, to), labels)| Edge { from, to, labels }).collect();
        Graph { states: states.collect(), edges }
    }

    fn has_end(&self) -> bool {
        self.edges.iter().any(|edge| edge.to == self.states.len())
    }

    fn id(&self, state: usize) -> String {
        if state == self.states.len() { "end".into() } else { format!("s{state}") }
    }
}

impl Edge {
    /// The label, event by event, shortened to what a picture can hold.
    fn lines(&self) -> Vec<LabelLine> {
        let mut lines: Vec<LabelLine> = Vec::new();
        let mut shown = 0;
        let mut last_event = None;
        for label in self.labels.iter().take(MOST_LABELS) {
            if last_event != Some(&label.event) {
                lines.push(LabelLine { text: label.event.clone(), is_event: true });
                last_event = Some(&label.event);
            } else if !label.conditions.is_empty() {
                lines.push(LabelLine { text: "or".into(), is_event: true });
            }
            let more = label.conditions.len().saturating_sub(MOST_CONDITIONS);
            for condition in label.conditions.iter().take(MOST_CONDITIONS) {
                lines.push(LabelLine { text: shorten(condition), is_event: false });
            }
            if more > 0 {
                lines.push(LabelLine { text: format!("and {more} more"), is_event: false });
            }
            shown += 1;
        }
        if shown < self.labels.len() {
            lines.push(LabelLine { text: format!("or in {} more cases", self.labels.len() - shown), is_event: true });
        }
        lines
    }
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
            let deleted = event == Event::Expire || row.operations.contains(&Operation::DeleteInstance);
            let mut own = key_conditions(&mut phrases, row);
            if own.is_empty() && position > 0 && !matches!(event, Event::Internal(_)) {
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

/// A row's conditions as a label shows them: those that ask for something, or else the first that excludes something.
fn key_conditions(phrases: &mut Phrases<'_>, row: &Row) -> Vec<String> {
    let all: Vec<String> = row.when.iter().map(|(index, value)| phrases.condition(*index, *value)).collect();
    let asks = |condition: &&String| !condition.starts_with("not ") && !condition.starts_with("lacks ");
    let shown: Vec<String> = all.iter().filter(asks).cloned().collect();
    if shown.is_empty() { all.into_iter().take(1).collect() } else { shown }
}

fn join(first: &[String], second: Vec<String>) -> Vec<String> {
    let new = second.into_iter().filter(|condition| !first.contains(condition));
    first.iter().cloned().chain(new.collect::<Vec<_>>()).collect()
}

/// At most 40 characters, cut with an ellipsis.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 40;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(LONGEST - 3).collect();
    short.push_str("...");
    short
}

fn dot_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// Mermaid reads `#`, `;`, `:` and quotes; they are written as its entities.
fn mermaid_text(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '#' | ';' | ':' | '"' | '<' | '>' | '&' => {
                let _ = write!(out, "#{};", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out
}
