//! Spanning trees of any graph.

use crate::{HostSet, LinkId, PortId, SwitchId, Topology, mix};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a link costs when a tree is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Weight {
    /// 1: the paper's MST.
    #[default]
    Uniform,
    /// The product of its ends' degrees, so that trees have few branches at a switch: the paper's MST++.
    DegreeProduct,
}

/// Which of several links of one weight is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ties {
    /// The first by an order drawn from this seed. The tree then does not depend on where it is started.
    Seeded(u64),
    /// The one that was found first. With uniform weights trees are then as wide and flat as breadth-first ones.
    FirstFound,
}

/// A link of a rooted tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Branch {
    pub(crate) parent: SwitchId,
    pub(crate) child: SwitchId,
    /// The parent's port.
    pub(crate) down: PortId,
    /// The child's port.
    pub(crate) up: PortId,
}

/// A rooted spanning tree of each connected part of a network. Every subtree is an interval of positions, so that the
/// subscriptions on one side of a link are two ranges of one sorted list at most.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tree {
    parents: Vec<Option<Branch>>,
    children: Vec<Vec<Branch>>,
    /// The switches by position: each before those below it.
    order: Vec<SwitchId>,
    /// The first and the last position of each switch's subtree; `None`: the switch is in no tree.
    spans: Vec<Option<(u32, u32)>>,
    /// The upper end of the heavy path that a switch is on.
    heads: Vec<SwitchId>,
    roots: Vec<SwitchId>,
}

/// So many trees over the switches that `member` names and the links that `usable` names. Each tree finds the links of
/// earlier ones dearer, by once their weight for each use. Prim's algorithm with a heap: O(links log links) a tree.
pub fn spanning_trees(
    topology: &Topology,
    member: impl Fn(SwitchId) -> bool,
    usable: impl Fn(LinkId) -> bool,
    weight: Weight,
    ties: Ties,
    count: usize,
) -> Vec<Tree> {
    let usable: Vec<bool> = (0..topology.links().len() as u32)
        .map(LinkId)
        .map(|link| usable(link) && topology.links()[link.index()].ends.iter().all(|(switch, _)| member(*switch)))
        .collect();
    let members: Vec<bool> = topology.switches().map(member).collect();
    let mut weights = weights(topology, &usable, weight);
    let first = weights.clone();
    let mut trees = Vec::with_capacity(count);
    for number in 0..count {
        let ties = match ties {
            Ties::Seeded(seed) => Ties::Seeded(mix(seed, number as u64)),
            Ties::FirstFound => Ties::FirstFound,
        };
        let branches = prim(topology, &members, &usable, &weights, ties);
        for (link, _) in branches.iter().flatten() {
            weights[link.index()] += first[link.index()];
        }
        trees.push(Tree::new(&members, branches.into_iter().map(|found| Some(found?.1)).collect()));
    }
    trees
}

fn weights(topology: &Topology, usable: &[bool], weight: Weight) -> Vec<u64> {
    let mut degrees = vec![0u64; topology.switch_count()];
    for (link, usable) in topology.links().iter().zip(usable) {
        for (switch, _) in link.ends {
            degrees[switch.index()] += u64::from(*usable);
        }
    }
    let product = |ends: [(SwitchId, PortId); 2]| ends.iter().map(|(switch, _)| degrees[switch.index()]).product();
    match weight {
        Weight::Uniform => vec![1; usable.len()],
        Weight::DegreeProduct => topology.links().iter().map(|link| product(link.ends)).collect(),
    }
}

/// The link to each switch's parent. Each part is started at its first switch.
fn prim(
    topology: &Topology,
    members: &[bool],
    usable: &[bool],
    weights: &[u64],
    ties: Ties,
) -> Vec<Option<(LinkId, Branch)>> {
    let mut reached = vec![false; members.len()];
    let mut parents: Vec<Option<(LinkId, Branch)>> = vec![None; members.len()];
    let mut found = 0u64;
    let mut heap = BinaryHeap::new();
    for start in topology.switches().filter(|switch| members[switch.index()]) {
        let mut next = (!reached[start.index()]).then_some(start);
        while let Some(switch) = next {
            reached[switch.index()] = true;
            for (port, link, other) in topology.neighbours(switch) {
                if usable[link.index()] && !reached[other.index()] {
                    found += 1;
                    let tie = match ties {
                        Ties::Seeded(seed) => mix(seed, u64::from(link.0)),
                        Ties::FirstFound => found,
                    };
                    heap.push(Reverse((weights[link.index()], tie, link, switch, port)));
                }
            }
            next = loop {
                let Some(Reverse((_, _, link, parent, down))) = heap.pop() else { break None };
                let [one, two] = topology.links()[link.index()].ends;
                let (child, up) = if (parent, down) == one { two } else { one };
                if !reached[child.index()] {
                    parents[child.index()] = Some((link, Branch { parent, child, down, up }));
                    break Some(child);
                }
            };
        }
    }
    parents
}

impl Tree {
    fn new(members: &[bool], parents: Vec<Option<Branch>>) -> Self {
        let count = members.len();
        let mut tree = Tree {
            children: vec![Vec::new(); count],
            spans: vec![None; count],
            heads: (0..count as u32).map(SwitchId).collect(),
            parents,
            ..Tree::default()
        };
        for branch in tree.parents.iter().flatten() {
            tree.children[branch.parent.index()].push(*branch);
        }
        for root in (0..count).filter(|index| members[*index] && tree.parents[*index].is_none()) {
            tree.roots.push(SwitchId(root as u32));
        }
        let mut open: Vec<SwitchId> = tree.roots.iter().rev().copied().collect();
        while let Some(switch) = open.pop() {
            let position = tree.order.len() as u32;
            tree.spans[switch.index()] = Some((position, position));
            tree.order.push(switch);
            open.extend(tree.children[switch.index()].iter().rev().map(|branch| branch.child));
        }
        // Those below come later, so backwards each subtree is whole before it widens its parent's.
        for switch in tree.order.iter().rev() {
            if let (Some(branch), Some((_, last))) = (tree.parents[switch.index()], tree.spans[switch.index()])
                && let Some(span) = &mut tree.spans[branch.parent.index()]
            {
                span.1 = span.1.max(last);
            }
        }
        let size = |branch: &Branch| tree.spans[branch.child.index()].map(|(first, last)| last - first);
        for switch in &tree.order {
            if let Some(heavy) = tree.children[switch.index()].iter().max_by_key(|branch| size(branch)) {
                tree.heads[heavy.child.index()] = tree.heads[switch.index()];
            }
        }
        tree
    }

    /// Whether a switch is in it.
    pub fn contains(&self, switch: SwitchId) -> bool {
        self.spans[switch.index()].is_some()
    }

    /// The switch above, with the port to it; `None` for a root.
    pub fn parent(&self, switch: SwitchId) -> Option<(PortId, SwitchId)> {
        self.parents[switch.index()].map(|branch| (branch.up, branch.parent))
    }

    /// The switches below, with the ports to them.
    pub fn children(&self, switch: SwitchId) -> impl Iterator<Item = (PortId, SwitchId)> {
        self.children[switch.index()].iter().map(|branch| (branch.down, branch.child))
    }

    /// How many links of a switch are in it.
    pub fn degree(&self, switch: SwitchId) -> usize {
        self.children[switch.index()].len() + usize::from(self.parents[switch.index()].is_some())
    }

    /// The switches, each before those below it.
    pub fn order(&self) -> &[SwitchId] {
        &self.order
    }

    /// The root of each connected part.
    pub fn roots(&self) -> &[SwitchId] {
        &self.roots
    }

    pub(crate) fn branch(&self, child: SwitchId) -> Option<Branch> {
        self.parents[child.index()]
    }

    pub(crate) fn branches(&self, switch: SwitchId) -> &[Branch] {
        &self.children[switch.index()]
    }

    /// The first and the last position of a switch's subtree.
    pub(crate) fn span(&self, switch: SwitchId) -> Option<(u32, u32)> {
        self.spans[switch.index()]
    }

    /// The span of the whole part that a position is in.
    pub(crate) fn part(&self, position: u32) -> (u32, u32) {
        let after = self.roots.partition_point(|root| self.span(*root).is_some_and(|(first, _)| first <= position));
        after.checked_sub(1).and_then(|index| self.span(self.roots[index])).unwrap_or_default()
    }

    /// Which of some hosts are below each switch, or at it.
    pub(crate) fn hosts_below(&self, topology: &Topology, hosts: &HostSet) -> Vec<HostSet> {
        let mut below = vec![HostSet::default(); self.parents.len()];
        for switch in self.order.iter().rev() {
            let mut found = HostSet::new(topology.host_count());
            topology
                .hosts_at(*switch)
                .filter(|(_, host)| hosts.contains(*host))
                .for_each(|(_, host)| found.insert(host));
            self.branches(*switch).iter().for_each(|branch| found.unite(&below[branch.child.index()]));
            below[switch.index()] = found;
        }
        below
    }

    /// The switch at the top of a switch's part.
    pub(crate) fn root(&self, switch: SwitchId) -> Option<SwitchId> {
        let (first, _) = self.span(switch)?;
        Some(self.order[self.part(first).0 as usize])
    }

    /// The lowest switch above, or at, both, which are in one part: O(log switches).
    pub(crate) fn meet(&self, first: SwitchId, second: SwitchId) -> SwitchId {
        let (mut one, mut two) = (first, second);
        let position = |switch: SwitchId| self.spans[switch.index()].map(|(first, _)| first);
        loop {
            let (head_one, head_two) = (self.heads[one.index()], self.heads[two.index()]);
            if head_one == head_two {
                return if position(one) < position(two) { one } else { two };
            }
            // The path that starts later is not above the other switch.
            let (lower, head) =
                if position(head_one) > position(head_two) { (&mut one, head_one) } else { (&mut two, head_two) };
            match self.parents[head.index()] {
                Some(branch) => *lower = branch.parent,
                None => return head,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_edges;

    fn graph(text: &str) -> Topology {
        parse_edges(text).unwrap().topology(&[]).unwrap()
    }

    fn tree(topology: &Topology, weight: Weight, ties: Ties) -> Tree {
        spanning_trees(topology, |_| true, |_| true, weight, ties, 1).remove(0)
    }

    /// Around a hub, a ring: the degree weight takes the ring but for one spoke.
    #[test]
    fn degree_weights_avoid_the_hub() {
        let mut text = String::new();
        for number in 1..=8 {
            text += &format!("0 {number}\n{number} {}\n", number % 8 + 1);
        }
        let topology = graph(&text);
        assert_eq!(tree(&topology, Weight::Uniform, Ties::FirstFound).degree(SwitchId(0)), 8);
        let low = tree(&topology, Weight::DegreeProduct, Ties::Seeded(1));
        assert_eq!(low.degree(SwitchId(0)), 1);
        assert!(topology.switches().all(|switch| low.degree(switch) <= 3));
    }

    #[test]
    fn seeds_choose_and_repeat() {
        let mut text = String::new();
        for one in 0..12 {
            for two in 0..one {
                text += &format!("{one} {two}\n");
            }
        }
        let topology = graph(&text);
        let first = tree(&topology, Weight::Uniform, Ties::Seeded(1));
        assert_eq!(first, tree(&topology, Weight::Uniform, Ties::Seeded(1)));
        assert_ne!(first, tree(&topology, Weight::Uniform, Ties::Seeded(2)));
        // A complete graph of 12 has room for six trees without a common link.
        let trees = spanning_trees(&topology, |_| true, |_| true, Weight::Uniform, Ties::Seeded(1), 3);
        let links = |tree: &Tree| {
            let pairs = topology.switches().filter_map(|switch| Some((switch, tree.parent(switch)?.1)));
            pairs.map(|(one, two)| (one.min(two), one.max(two))).collect::<std::collections::BTreeSet<_>>()
        };
        assert!(links(&trees[0]).intersection(&links(&trees[1])).count() <= 2);
    }

    #[test]
    fn meetings_are_those_found_step_by_step() {
        for seed in 0..20 {
            let text: String =
                (1..40).map(|new| format!("{new} {}\n", crate::below(mix(seed, new), new as usize))).collect();
            let topology = graph(&text);
            let tree = tree(&topology, Weight::Uniform, Ties::FirstFound);
            let above = |switch: SwitchId| {
                std::iter::successors(Some(switch), |switch| tree.parent(*switch).map(|(_, parent)| parent))
            };
            for one in topology.switches() {
                for two in topology.switches() {
                    let expected = above(one).find(|switch| above(two).any(|other| other == *switch));
                    assert_eq!(Some(tree.meet(one, two)), expected);
                }
            }
        }
    }

    #[test]
    fn parts_are_kept_apart() {
        let topology = graph("0 1\n1 2\n2 3\n3 4");
        let trees = spanning_trees(&topology, |switch| switch.0 != 2, |_| true, Weight::Uniform, Ties::Seeded(1), 1);
        assert_eq!(trees[0].roots(), [SwitchId(0), SwitchId(3)]);
        assert!(!trees[0].contains(SwitchId(2)));
        assert_eq!([0, 1, 2, 3].map(|position| trees[0].part(position)), [(0, 1), (0, 1), (2, 3), (2, 3)]);
    }
}
