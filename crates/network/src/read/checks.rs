//! Whether frames get where they should, and do not circulate.

use super::{Graph, Reader};
use crate::description::File;
use crate::model::{Node, NodeKind};
use std::collections::BTreeMap;
use weftwire_text::Diagnostic;

/// Sets that are joined (union-find).
struct Sets(Vec<u32>);

impl Sets {
    fn new(count: usize) -> Sets {
        Sets((0..count as u32).collect())
    }

    fn root(&mut self, mut item: u32) -> u32 {
        while self.0[item as usize] != item {
            self.0[item as usize] = self.0[self.0[item as usize] as usize];
            item = self.0[item as usize];
        }
        item
    }

    /// Joins two sets; `false` if they are one already.
    fn join(&mut self, left: u32, right: u32) -> bool {
        let (left, right) = (self.root(left), self.root(right));
        self.0[left as usize] = right;
        left != right
    }
}

/// Which nodes have a way to each other: over routers, switches and transparent functions only.
pub struct Reach {
    /// Of each node, the sets of links that it is at, ascending.
    sets: Vec<Vec<u32>>,
    known: BTreeMap<(usize, usize), bool>,
}

impl Reach {
    pub fn new(graph: &Graph) -> Reach {
        let mut links = Sets::new(graph.links.len());
        for node in graph.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Router) || !node.is_addressed()) {
            for pair in node.ports.windows(2) {
                links.join(pair[0].0.0, pair[1].0.0);
            }
        }
        let mut of = |node: &Node| {
            let mut sets: Vec<u32> = node.ports.iter().map(|(link, _)| links.root(link.0)).collect();
            sets.sort_unstable();
            sets.dedup();
            sets
        };
        Reach { sets: graph.nodes.iter().map(&mut of).collect(), known: BTreeMap::new() }
    }

    /// Whether there is a way.
    pub fn between(&mut self, from: usize, to: usize) -> bool {
        let (from_sets, to_sets) = (&self.sets[from], &self.sets[to]);
        if let ([from], [to]) = (from_sets.as_slice(), to_sets.as_slice()) {
            return from == to;
        }
        let search = || {
            let (few, many) = if from_sets.len() < to_sets.len() { (from_sets, to_sets) } else { (to_sets, from_sets) };
            few.iter().any(|set| many.binary_search(set).is_ok())
        };
        *self.known.entry((from.min(to), from.max(to))).or_insert_with(search)
    }
}

impl Reader<'_> {
    /// Sees that no frame can go round over switches and transparent functions, which know no time to live.
    pub fn check_loops(&mut self, graph: &Graph, file: &File) {
        let mut nodes = Sets::new(graph.nodes.len());
        let given = file.links.iter().flatten().filter(|link| link.between.is_some());
        let places: Vec<_> = given.map(|link| link.places.value("between")).collect();
        let made = graph.links.len() - places.len().min(graph.links.len());
        for (index, link) in graph.links.iter().enumerate() {
            let ends = link.ends.map(|end| end.node.0);
            if ends.iter().all(|end| !graph.nodes[*end as usize].is_addressed()) && !nodes.join(ends[0], ends[1]) {
                let span = index.checked_sub(made).and_then(|index| places.get(index)).copied().unwrap_or_default();
                let message = format!("with the link `{}`, frames go round for ever", link.name);
                let help = "switches and transparent functions make no loops; put a router into it";
                self.problems.add(Diagnostic::error(span, message).help(help));
            }
        }
    }
}
