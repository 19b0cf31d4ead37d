//! Graphs as lists of edges, the form in which large measured ones are published.

use crate::{Layers, Node, Topology, TopologyError};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// A graph read from text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EdgeList {
    /// The nodes' names in the text, ascending. A node's place here is its number below.
    pub names: Vec<u64>,
    /// The edges, each once, the smaller number first, ascending.
    pub edges: Vec<[usize; 2]>,
    /// Lines from a node to itself, left out.
    pub loops: usize,
    /// Lines that repeat an edge, in either direction, left out.
    pub repeated: usize,
}

/// A line that is no edge.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line}: `{text}` is no edge; two node numbers are, as in `12 7`, and a comment starts with #")]
pub struct EdgeListError {
    /// From 1.
    pub line: usize,
    /// The line, shortened.
    pub text: String,
}

/// Reads `u v` lines: an undirected edge each, numbers of up to 64 bits, blank lines and those that start with `#` left out.
pub fn parse_edges(text: &str) -> Result<EdgeList, EdgeListError> {
    let mut edges = BTreeSet::new();
    let mut names = BTreeMap::new();
    let mut list = EdgeList::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(second)), None) = (words.next(), words.next(), words.next()) else {
            return Err(EdgeListError { line: index + 1, text: line.chars().take(40).collect() });
        };
        names.insert(first, 0);
        names.insert(second, 0);
        if first == second {
            list.loops += 1;
        } else if !edges.insert([first.min(second), first.max(second)]) {
            list.repeated += 1;
        }
    }
    for (number, (name, place)) in names.iter_mut().enumerate() {
        *place = number;
        list.names.push(*name);
    }
    list.edges = edges.into_iter().map(|ends| ends.map(|name| names[&name])).collect();
    Ok(list)
}

impl EdgeList {
    /// The network with a switch per node, named by its number in the text, and a host `host{number}` at each of the given
    /// nodes (places in `names`; one may come several times: later hosts are `host{number}-2`..). All switches are equals.
    pub fn topology(&self, hosts: &[usize]) -> Result<Topology, TopologyError> {
        let mut nodes: Vec<Node> = self.names.iter().map(|name| Node::switch(name.to_string())).collect();
        let mut links = self.edges.clone();
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        for place in hosts {
            let Some(name) = self.names.get(*place) else {
                return Err(TopologyError::UnknownNode { link: links.len(), node: *place, nodes: self.names.len() });
            };
            let count = seen.entry(*place).or_default();
            *count += 1;
            let suffix = if *count > 1 { format!("-{count}") } else { String::new() };
            links.push([nodes.len(), *place]);
            nodes.push(Node::host(format!("host{name}{suffix}")));
        }
        Topology::new(&nodes, &links, Layers::Flat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_kept_once_and_loops_left_out() {
        let list = parse_edges("# a graph\n\n7 3\r\n3 7\n3 3\n10 7\n").unwrap();
        assert_eq!(list.names, [3, 7, 10]);
        assert_eq!(list.edges, [[0, 1], [1, 2]]);
        assert_eq!((list.loops, list.repeated), (1, 1));
        let topology = list.topology(&[2, 2, 0]).unwrap();
        assert_eq!((topology.switch_count(), topology.host_count()), (3, 3));
        assert_eq!(topology.host_name(crate::HostId(1)), "host10-2");
        assert!(list.topology(&[3]).is_err());
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line) in [("1 2\n1\n", 2), ("1 2 3", 1), ("#\n\na b", 3), ("-1 2", 1), ("99999999999999999999 1", 1)]
        {
            assert_eq!(parse_edges(text).unwrap_err().line, line, "{text}");
        }
    }
}
