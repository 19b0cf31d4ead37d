//! Pictures of the diagram.

use crate::compiler::Compiler;
use crate::diagram::NodeId;
use crate::show;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use weftwire_draw::graph::{Edge, Graph, Label};

/// Most boxes of a picture that anybody can read.
pub const MOST_BOXES: usize = 200;

/// The diagram has too many nodes for a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the diagram has more than {MOST_BOXES} nodes, too many for a picture; draw fewer rules")]
pub struct TooLarge;

struct Boxes {
    names: Vec<String>,
    arrows: Vec<(usize, usize, Vec<String>)>,
}

/// The diagram as a self-contained SVG document.
///
/// # Errors
/// [`TooLarge`].
pub fn svg(compiler: &Compiler, title: &str) -> Result<String, TooLarge> {
    let Boxes { names, arrows } = boxes(compiler)?;
    let labels = |lines: Vec<String>| lines.into_iter().map(|event| Label { event, conditions: Vec::new() }).collect();
    let edges = arrows.into_iter().map(|(from, to, lines)| Edge { from, to, labels: labels(lines) });
    Ok(Graph::new(names, edges.collect()).svg(title))
}

/// The diagram in Graphviz's language.
///
/// # Errors
/// [`TooLarge`].
pub fn dot(compiler: &Compiler, title: &str) -> Result<String, TooLarge> {
    let Boxes { names, arrows } = boxes(compiler)?;
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = format!("digraph {} {{\n  node [shape=box, style=rounded];\n", quoted(title));
    for (index, name) in names.iter().enumerate() {
        let _ = writeln!(out, "  n{index} [label={}];", quoted(name));
    }
    for (from, to, lines) in arrows {
        let _ = writeln!(out, "  n{from} -> n{to} [label={}];", quoted(&lines.join("\n")));
    }
    out.push_str("}\n");
    Ok(out)
}

fn boxes(compiler: &Compiler) -> Result<Boxes, TooLarge> {
    let mut boxes = Boxes { names: Vec::new(), arrows: Vec::new() };
    let mut numbers: BTreeMap<NodeId, usize> = BTreeMap::from([(compiler.root(), 0)]);
    let mut open = VecDeque::from([compiler.root()]);
    while let Some(id) = open.pop_front() {
        let from = boxes.names.len();
        let Some(node) = compiler.diagram().node(id) else {
            let set = id.leaf().unwrap_or(crate::diagram::SetId::EMPTY);
            boxes.names.push(show::actions(compiler, &compiler.actions(set)));
            continue;
        };
        let variable = compiler.variable(node.level);
        boxes.names.push(compiler.variable_name(variable));
        let mut conditions: Vec<(NodeId, Vec<String>)> = Vec::new();
        for (values, to) in node.intervals() {
            let text = show::interval(compiler, variable, values);
            match conditions.iter_mut().find(|(known, _)| *known == to) {
                Some((_, list)) => list.push(text),
                None => conditions.push((to, vec![text])),
            }
        }
        // What most intervals lead to needs no list of them.
        let most = conditions.iter().map(|(_, list)| list.len()).max().unwrap_or(0);
        if let Some((_, list)) = conditions.iter_mut().find(|(_, list)| list.len() == most && most > 1) {
            *list = vec!["otherwise".to_owned()];
        }
        for (to, lines) in conditions {
            let next = numbers.len();
            let number = *numbers.entry(to).or_insert_with(|| {
                open.push_back(to);
                next
            });
            boxes.arrows.push((from, number, lines));
        }
        if numbers.len() > MOST_BOXES {
            return Err(TooLarge);
        }
    }
    Ok(boxes)
}
