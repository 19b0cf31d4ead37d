//! Draws a state diagram.

use super::layout::{Extent, Node, Placement, Wire, place};
use super::{Edge, Graph};
use crate::escape_markup;
use std::fmt::Write as _;

const MARGIN: f64 = 18.0;
const NODE_HEIGHT: f64 = 38.0;
const LINE_HEIGHT: f64 = 15.0;
const LOOP_REACH: f64 = 30.0;
const START_REACH: f64 = 34.0;
const END_SIZE: f64 = 20.0;

const STYLE: &str = "\
.weft-graph{--page:#fff;--box:#f4f6fa;--rim:#7b8798;--ink:#1b2330;--soft:#5a6575;--line:#8893a3;--mark:#2f6fdb;\
--first:#e6effd;font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif}\
@media (prefers-color-scheme:dark){.weft-graph{--page:#12161d;--box:#1d2430;--rim:#66748a;--ink:#e8ecf3;\
--soft:#a3afc0;--line:#75839a;--mark:#7aa8ff;--first:#1a2b49}}\
.weft-graph .page{fill:var(--page)}.weft-graph .state{fill:var(--box);stroke:var(--rim);stroke-width:1.4}\
.weft-graph .first{fill:var(--first);stroke:var(--mark)}\
.weft-graph .name{fill:var(--ink);font-size:14px;font-weight:600;text-anchor:middle}\
.weft-graph .wire{fill:none;stroke:var(--line);stroke-width:1.5}\
.weft-graph .tip{fill:var(--line)}.weft-graph .start{fill:var(--mark);stroke:var(--mark)}\
.weft-graph .event{fill:var(--ink);font-size:11.5px;font-weight:600}\
.weft-graph .when{fill:var(--soft);font-size:11px;font-family:ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',\
monospace}";

/// The diagram as an SVG document.
pub(super) fn draw(graph: &Graph, title: &str) -> String {
    let mut nodes: Vec<Node> = (0..graph.states.len()).map(|state| node(graph, state)).collect();
    if graph.has_end() {
        let extent = Extent { left: END_SIZE / 2.0, right: END_SIZE / 2.0, height: END_SIZE };
        nodes.push(Node { extent, port_width: END_SIZE / 2.0, box_height: END_SIZE });
    }
    let arrows: Vec<&Edge> = graph.edges.iter().filter(|edge| edge.from != edge.to).collect();
    let wires: Vec<Wire> =
        arrows.iter().map(|edge| Wire { from: edge.from, to: edge.to, label: label_extent(edge) }).collect();
    let placement = place(&nodes, &wires);

    let mut picture = Picture { out: String::new() };
    picture.open(&placement, title);
    for (edge, points) in arrows.iter().zip(&placement.wires) {
        picture.wire(points, &format!("{} to {}", graph.title(edge.from), graph.title(edge.to)));
    }
    for (edge, (x, y)) in arrows.iter().zip(&placement.labels) {
        picture.label(edge, x + 7.0, *y);
    }
    for (index, name) in graph.states.iter().enumerate() {
        picture.state(name, index == 0, placement.nodes[index]);
    }
    for edge in graph.edges.iter().filter(|edge| edge.from == edge.to) {
        let (x, y) = placement.nodes[edge.from];
        picture.self_loop(edge, x + state_width(&graph.states[edge.from]) / 2.0, y);
    }
    if graph.has_end() {
        picture.end(placement.nodes[graph.states.len()]);
    }
    picture.out.push_str("</g></svg>\n");
    picture.out
}

impl Graph {
    fn title(&self, state: usize) -> &str {
        self.states.get(state).map_or("the end of the flow", String::as_str)
    }
}

fn state_width(name: &str) -> f64 {
    (text_width(name, 14.0) * 1.06 + 32.0).max(84.0)
}

/// A state's box with the start mark on its left and its loop on its right.
fn node(graph: &Graph, state: usize) -> Node {
    let width = state_width(&graph.states[state]);
    let mut extent = Extent { left: width / 2.0, right: width / 2.0, height: NODE_HEIGHT };
    if state == 0 {
        extent.left += START_REACH;
    }
    if let Some(edge) = graph.edges.iter().find(|edge| edge.from == state && edge.to == state) {
        let label = label_extent(edge);
        extent.right += LOOP_REACH + label.right;
        extent.height = extent.height.max(label.height);
    }
    Node { extent, port_width: width * 0.7, box_height: NODE_HEIGHT }
}

fn label_extent(edge: &Edge) -> Extent {
    let lines = edge.lines();
    let width = lines.iter().map(|line| match line.is_event {
        true => text_width(&line.text, 11.5) * 1.06,
        false => line.text.chars().count() as f64 * 11.0 * 0.61,
    });
    Extent { left: 4.0, right: width.fold(0.0, f64::max) + 10.0, height: lines.len() as f64 * LINE_HEIGHT + 4.0 }
}

/// Width of text in an average sans-serif face: no font is at hand, so letters are taken in three classes.
fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|character| match character {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '(' | ')' => 0.32,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.9,
            'A'..='Z' | '_' => 0.68,
            _ => 0.57,
        })
        .sum();
    em * size
}

struct Picture {
    out: String,
}

impl Picture {
    fn open(&mut self, placement: &Placement, title: &str) {
        let (width, height) = (placement.width + 2.0 * MARGIN, placement.height + 2.0 * MARGIN);
        let _ = write!(
            self.out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"weft-graph\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>States of {}</title>\n<style>{STYLE}</style>\n\
             <rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n<g transform=\"translate({MARGIN} {MARGIN})\">\n",
            escape_markup(title)
        );
    }

    /// A line through pairs of points: straight within a pair, curved from pair to pair, with a tip at the end.
    fn wire(&mut self, points: &[(f64, f64)], title: &str) {
        let Some((last, before)) = points.split_last() else { return };
        let Some(direction) = before.iter().rev().find(|point| *point != last).map(|from| (last.1 - from.1).signum())
        else {
            return;
        };
        let tip = (last.0, last.1 - direction * 7.0);
        let mut path = String::new();
        for (index, (x, y)) in before.iter().chain([&tip]).enumerate() {
            if index == 0 {
                let _ = write!(path, "M{x:.1} {y:.1}");
            } else if index % 2 == 1 {
                let _ = write!(path, "L{x:.1} {y:.1}");
            } else {
                let (from_x, from_y) = points[index - 1];
                let middle = (from_y + y) / 2.0;
                let _ = write!(path, "C{from_x:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {y:.1}");
            }
        }
        let _ = writeln!(
            self.out,
            "<g><title>{}</title><path class=\"wire\" d=\"{path}\"/>\
             <path class=\"tip\" d=\"M{:.1} {:.1}l-4.5 {:.1}h9z\"/></g>",
            escape_markup(title),
            last.0,
            last.1,
            -direction * 9.0
        );
    }

    fn label(&mut self, edge: &Edge, x: f64, middle: f64) {
        let lines = edge.lines();
        let first = middle - (lines.len() as f64 - 1.0) * LINE_HEIGHT / 2.0 + 4.0;
        for (index, line) in lines.iter().enumerate() {
            let y = first + index as f64 * LINE_HEIGHT;
            let class = if line.is_event { "event" } else { "when" };
            let _ = writeln!(
                self.out,
                "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
                escape_markup(&line.text)
            );
        }
    }

    fn state(&mut self, name: &str, first: bool, (x, y): (f64, f64)) {
        let width = state_width(name);
        let (left, top) = (x - width / 2.0, y - NODE_HEIGHT / 2.0);
        let class = if first { "state first" } else { "state" };
        if first {
            let _ = writeln!(
                self.out,
                "<circle class=\"start\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\"/>\
                 <path class=\"start\" fill=\"none\" stroke-width=\"1.5\" d=\"M{:.1} {y:.1}H{:.1}\"/>\
                 <path class=\"start\" d=\"M{left:.1} {y:.1}l-8 -4v8z\"/>",
                left - START_REACH + 7.0,
                left - START_REACH + 12.0,
                left - 7.0
            );
        }
        let _ = writeln!(
            self.out,
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{NODE_HEIGHT}\" rx=\"9\"/>\
             <text class=\"name\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            y + 5.0,
            escape_markup(name)
        );
    }

    fn self_loop(&mut self, edge: &Edge, right: f64, y: f64) {
        let reach = right + LOOP_REACH;
        let _ = writeln!(
            self.out,
            "<path class=\"wire\" d=\"M{right:.1} {:.1}C{reach:.1} {:.1} {reach:.1} {:.1} {:.1} {:.1}\"/>\
             <path class=\"tip\" d=\"M{right:.1} {:.1}l9 -3v8z\"/>",
            y - 9.0,
            y - 20.0,
            y + 20.0,
            right + 6.0,
            y + 10.5,
            y + 9.0
        );
        self.label(edge, reach + 1.0, y);
    }

    fn end(&mut self, (x, y): (f64, f64)) {
        let _ = writeln!(
            self.out,
            "<g><title>the flow ends</title><circle class=\"wire\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\"/>\
             <circle class=\"tip\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5.5\"/></g>",
            END_SIZE / 2.0 - 1.0
        );
    }
}
