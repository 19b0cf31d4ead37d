//! Graphs like those of the Internet's autonomous systems.

use std::collections::BTreeSet;
use weftwire_route::EdgeList;
use weftwire_workload::Numbers;

/// Of the steps, in 10,000: links between nodes that are there; steps with a second link; the shift of preference. The
/// values that Bu and Towsley found for the graph of autonomous systems.
const LINK_STEPS: u64 = 4_695;
const SECOND_LINKS: u64 = 1_300;
const SHIFT: u64 = 6_447;
const WHOLE: u64 = 10_000;

/// A connected graph of `nodes` nodes whose degrees follow a power law: generalised linear preference (Bu and Towsley, "On
/// Distinguishing between Internet Power Law Topology Generators", INFOCOM 2002). Each step adds links between nodes that are
/// there, or a node with its links; a node is chosen in proportion to its degree less 0.6447.
pub fn as_like(nodes: usize, seed: u64) -> EdgeList {
    let mut numbers = Numbers::new(seed);
    let nodes = nodes.max(3);
    let mut growth = Growth { degrees: vec![1, 2, 1], ends: vec![0, 1, 1, 2], edges: BTreeSet::from([[0, 1], [1, 2]]) };
    while growth.degrees.len() < nodes {
        let links = 1 + usize::from(numbers.below(WHOLE) < SECOND_LINKS);
        if numbers.below(WHOLE) < LINK_STEPS {
            for _ in 0..links {
                let (one, two) = (growth.choose(&mut numbers), growth.choose(&mut numbers));
                growth.link(one, two);
            }
        } else {
            let others: Vec<usize> = (0..links).map(|_| growth.choose(&mut numbers)).collect();
            let node = growth.degrees.len();
            growth.degrees.push(0);
            others.into_iter().for_each(|other| growth.link(other, node));
        }
    }
    EdgeList { names: (0..nodes as u64).collect(), edges: growth.edges.into_iter().collect(), loops: 0, repeated: 0 }
}

struct Growth {
    degrees: Vec<u64>,
    /// Both ends of each link.
    ends: Vec<usize>,
    edges: BTreeSet<[usize; 2]>,
}

impl Growth {
    fn choose(&self, numbers: &mut Numbers) -> usize {
        loop {
            let node = self.ends[numbers.below(self.ends.len() as u64) as usize];
            // An end is drawn in proportion to its degree d, and kept with (d - shift) / d.
            if numbers.below(self.degrees[node] * WHOLE) >= SHIFT {
                return node;
            }
        }
    }

    fn link(&mut self, one: usize, two: usize) {
        if one != two && self.edges.insert([one.min(two), one.max(two)]) {
            self.ends.extend([one, two]);
            self.degrees[one] += 1;
            self.degrees[two] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_are_as_uneven_as_of_autonomous_systems() {
        let graph = as_like(26_475, 1);
        assert_eq!(graph, as_like(26_475, 1));
        assert_ne!(graph, as_like(26_475, 2));
        assert_eq!(graph.names.len(), 26_475);
        // The graph measured in 2007 has 53,381 links, its largest node 2,628.
        assert!((45_000..65_000).contains(&graph.edges.len()), "{}", graph.edges.len());
        let mut degrees = vec![0; graph.names.len()];
        graph.edges.iter().flatten().for_each(|node| degrees[*node] += 1);
        degrees.sort_unstable();
        assert!((800..6_000).contains(degrees.last().unwrap()), "{:?}", degrees.last());
        assert!(degrees[0] >= 1 && degrees[degrees.len() / 2] <= 2);
        // It is connected, or this fails.
        graph.topology(&[0]).unwrap();
    }
}
