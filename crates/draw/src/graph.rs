//! State diagrams: boxes and labelled arrows, as Graphviz, as Mermaid, and as a finished SVG picture.

mod layout;
mod svg;

use std::fmt::Write as _;

/// Greatest number of labels on one arrow; further ones are counted.
const MOST_LABELS: usize = 3;
/// Greatest number of conditions in one label.
const MOST_CONDITIONS: usize = 3;

/// States and arrows. The state behind the last one is the end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    states: Vec<String>,
    edges: Vec<Edge>,
}

/// An arrow between two states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The state it comes from.
    pub from: usize,
    /// The state it goes to, or the number of states: the end.
    pub to: usize,
    /// Each way to take it.
    pub labels: Vec<Label>,
}

/// One way to take an arrow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// What happens.
    pub event: String,
    /// What must hold then.
    pub conditions: Vec<String>,
}

/// A line of an arrow's label.
struct LabelLine {
    text: String,
    is_event: bool,
}

impl Graph {
    /// With these names of states, of which the first is marked as the start, and arrows; one from or to a state that is
    /// not there is left out.
    pub fn new(states: Vec<String>, mut edges: Vec<Edge>) -> Graph {
        edges.retain(|edge| edge.from < states.len() && edge.to <= states.len());
        Graph { states, edges }
    }

    /// In Graphviz's language.
    pub fn dot(&self, name: &str) -> String {
        let mut out = format!(
            "digraph {} {{\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n  \
             edge [fontname=\"sans-serif\", fontsize=10];\n  start [shape=point];\n  start -> s0;\n",
            dot_string(name)
        );
        for (index, name) in self.states.iter().enumerate() {
            let _ = writeln!(out, "  s{index} [label={}];", dot_string(name));
        }
        if self.has_end() {
            out.push_str("  end [shape=doublecircle, style=filled, fillcolor=black, label=\"\", width=0.12];\n");
        }
        for edge in &self.edges {
            let label = edge.lines().iter().map(|line| line.text.clone()).collect::<Vec<_>>().join("\n");
            let _ = writeln!(out, "  s{} -> {} [label={}];", edge.from, self.id(edge.to), dot_string(&label));
        }
        out.push_str("}\n");
        out
    }

    /// In Mermaid's language (`stateDiagram-v2`).
    pub fn mermaid(&self) -> String {
        let mut out = String::from("stateDiagram-v2\n");
        for (index, name) in self.states.iter().enumerate() {
            let _ = writeln!(out, "  state \"{}\" as s{index}", mermaid_text(name));
        }
        out.push_str("  [*] --> s0\n");
        for edge in &self.edges {
            let label: Vec<String> = edge.lines().iter().map(|line| mermaid_text(&line.text)).collect();
            let target = if edge.to == self.states.len() { "[*]".into() } else { self.id(edge.to) };
            let _ = writeln!(out, "  s{} --> {target}: {}", edge.from, label.join("<br/>"));
        }
        out
    }

    /// As a self-contained SVG document: states in layers from the first one down, one labelled arrow for each pair of
    /// states, the end as a ringed dot. It follows the reader's light or dark scheme.
    pub fn svg(&self, title: &str) -> String {
        svg::draw(self, title)
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
            let more = self.labels.len() - shown;
            let cases = if more == 1 { "case" } else { "cases" };
            lines.push(LabelLine { text: format!("or in {more} more {cases}"), is_event: true });
        }
        lines
    }
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
