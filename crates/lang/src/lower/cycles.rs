//! Which nodes of a graph lead back to themselves.

use std::collections::{BTreeMap, BTreeSet};

/// All nodes that stand on a cycle: those of strongly connected components with an edge inside (Tarjan 1972, without
/// recursion).
pub(super) fn on_cycles(edges: &BTreeMap<u16, BTreeSet<u16>>) -> BTreeSet<u16> {
    let mut order: BTreeMap<u16, usize> = BTreeMap::new();
    let mut lowest: BTreeMap<u16, usize> = BTreeMap::new();
    let (mut stack, mut on_stack) = (Vec::new(), BTreeSet::new());
    let mut found = BTreeSet::new();
    for start in edges.keys() {
        // The way from `start`, each node with the edges it still has to try.
        let mut way: Vec<(u16, Vec<u16>)> = Vec::new();
        let mut step = (!order.contains_key(start)).then_some(*start);
        loop {
            if let Some(node) = step.take() {
                lowest.insert(node, order.len());
                order.insert(node, order.len());
                stack.push(node);
                on_stack.insert(node);
                way.push((node, edges.get(&node).into_iter().flatten().copied().collect()));
            }
            let Some((node, untried)) = way.last_mut() else { break };
            let node = *node;
            if let Some(next) = untried.pop() {
                if !order.contains_key(&next) {
                    step = Some(next);
                } else if on_stack.contains(&next) {
                    let reached = order[&next].min(lowest[&node]);
                    lowest.insert(node, reached);
                }
                continue;
            }
            way.pop();
            if let Some((before, _)) = way.last() {
                let reached = lowest[&node].min(lowest[before]);
                lowest.insert(*before, reached);
            }
            if lowest[&node] == order[&node] {
                let from = stack.iter().rposition(|known| *known == node).unwrap_or(0);
                let component: Vec<u16> = stack.drain(from..).collect();
                for member in &component {
                    on_stack.remove(member);
                }
                let itself = edges.get(&node).is_some_and(|next| next.contains(&node));
                if component.len() > 1 || itself {
                    found.extend(component);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(edges: &[(u16, u16)]) -> Vec<u16> {
        let mut graph: BTreeMap<u16, BTreeSet<u16>> = BTreeMap::new();
        for (from, to) in edges {
            graph.entry(*from).or_default().insert(*to);
        }
        on_cycles(&graph).into_iter().collect()
    }

    #[test]
    fn only_nodes_on_cycles_are_found() {
        assert_eq!(found(&[(0, 1), (0, 2), (1, 3), (2, 3)]), [0; 0]);
        assert_eq!(found(&[(5, 5), (4, 5), (5, 6)]), [5]);
        assert_eq!(found(&[(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 3)]), [0, 1, 3, 4], "2 lies between two cycles");
        assert_eq!(found(&[(1, 2), (2, 3), (3, 1), (3, 4), (4, 2)]), [1, 2, 3, 4]);
    }

    #[test]
    fn a_long_way_is_no_problem() {
        let mut chain: Vec<(u16, u16)> = (0..60_000).map(|node| (node, node + 1)).collect();
        assert_eq!(found(&chain), [0; 0]);
        chain.push((60_000, 0));
        assert_eq!(found(&chain).len(), 60_001);
    }
}
