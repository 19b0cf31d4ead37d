//! The filters of each switch of a large tree, found when asked for.

use crate::{HostId, PortId, SwitchId, Topology, Tree};
use std::collections::BTreeMap;
use std::ops::Range;

/// A port of a switch along a tree, and which subscriptions are behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreePort {
    /// The port.
    pub port: PortId,
    /// The switch that it leads to.
    pub neighbour: SwitchId,
    /// Ranges of [`Fibs::subscriptions`].
    pub ranges: [Range<usize>; 2],
}

/// The subscriptions of a network, sorted along a tree: what is behind a port is two ranges at most. Making it takes
/// O(m log m) for m subscriptions, a switch O(ports log m), whatever the filters; nothing is stored per switch. Filters are
/// taken as they are: for discretised tables, hand in [`crate::Filter::relaxed`] ones.
#[derive(Clone, Debug)]
pub struct Fibs<'a, F> {
    topology: &'a Topology,
    tree: &'a Tree,
    sorted: Vec<&'a (HostId, F)>,
    positions: Vec<u32>,
}

impl<'a, F: Ord> Fibs<'a, F> {
    /// Sorts subscriptions along a tree. Those of hosts outside the tree are left out.
    pub fn new(topology: &'a Topology, tree: &'a Tree, subscriptions: &'a [(HostId, F)]) -> Self {
        let position = |subscription: &'a (HostId, F)| {
            let (switch, _) = topology.access(subscription.0);
            Some((tree.span(switch)?.0, subscription))
        };
        let mut placed: Vec<(u32, &(HostId, F))> = subscriptions.iter().filter_map(position).collect();
        placed.sort_by_key(|(position, subscription)| (*position, subscription.0));
        let (positions, sorted) = placed.into_iter().unzip();
        Fibs { topology, tree, sorted, positions }
    }

    /// All subscriptions, in the tree's order.
    pub fn subscriptions(&self) -> &[&'a (HostId, F)] {
        &self.sorted
    }

    /// The subscriptions of a switch's own hosts.
    pub fn local(&self, switch: SwitchId) -> Range<usize> {
        self.tree.span(switch).map_or(0..0, |(first, _)| self.range(first, first))
    }

    /// The ports of a switch along the tree.
    pub fn ports(&self, switch: SwitchId) -> Vec<TreePort> {
        let Some((first, last)) = self.tree.span(switch) else { return Vec::new() };
        let mut ports = Vec::with_capacity(self.tree.degree(switch));
        if let Some(branch) = self.tree.branch(switch) {
            let ((start, end), inside) = (self.tree.part(first), self.range(first, last));
            let part = self.range(start, end);
            let ranges = [part.start..inside.start, inside.end..part.end];
            ports.push(TreePort { port: branch.up, neighbour: branch.parent, ranges });
        }
        for branch in self.tree.branches(switch) {
            let range = self.tree.span(branch.child).map_or(0..0, |(first, last)| self.range(first, last));
            let ranges = [range.clone(), range.end..range.end];
            ports.push(TreePort { port: branch.down, neighbour: branch.child, ranges });
        }
        ports
    }

    /// The subscriptions behind a port.
    pub fn behind(&self, port: &TreePort) -> impl Iterator<Item = &'a (HostId, F)> {
        port.ranges.clone().into_iter().flat_map(|range| self.sorted[range].iter().copied())
    }

    fn range(&self, first: u32, last: u32) -> Range<usize> {
        let start = self.positions.partition_point(|position| *position < first);
        start..self.positions.partition_point(|position| *position <= last)
    }

    /// How many filters each switch needs: different ones per port, its hosts' ports included. All switches together take
    /// O(n + m log(n m)) for n switches.
    pub fn sizes(&self) -> Vec<usize> {
        let Counts { below, inside } = self.counts();
        let mut sizes = vec![0; self.topology.switch_count()];
        for switch in self.tree.order() {
            let local = &self.sorted[self.local(*switch)];
            let mut filters: Vec<&(HostId, F)> = local.to_vec();
            filters.sort_unstable();
            filters.dedup();
            let children = self.tree.children(*switch).map(|(_, child)| below[child.index()]);
            let root = self.tree.branch(*switch).and(self.tree.root(*switch));
            let above = root.map_or(0, |root| below[root.index()] - inside[switch.index()]);
            sizes[switch.index()] = filters.len() + children.sum::<i64>() as usize + above as usize;
        }
        sizes
    }

    /// A filter that is at some positions counts once at each, and once less where neighbours among these positions meet:
    /// so once in every subtree with any of them. It is nowhere outside a subtree that has the meeting of all.
    fn counts(&self) -> Counts {
        let mut places: BTreeMap<(u32, &F), Vec<SwitchId>> = BTreeMap::new();
        for (position, subscription) in self.positions.iter().zip(&self.sorted) {
            let key = (self.tree.part(*position).0, &subscription.1);
            places.entry(key).or_default().push(self.tree.order()[*position as usize]);
        }
        let count = self.topology.switch_count();
        let mut counts = Counts { below: vec![0; count], inside: vec![0; count] };
        for switches in places.values() {
            for switch in switches {
                counts.below[switch.index()] += 1;
            }
            for pair in switches.windows(2) {
                counts.below[self.tree.meet(pair[0], pair[1]).index()] -= 1;
            }
            let all = self.tree.meet(switches[0], switches[switches.len() - 1]);
            counts.inside[all.index()] += 1;
        }
        for switch in self.tree.order().iter().rev() {
            if let Some(branch) = self.tree.branch(*switch) {
                counts.below[branch.parent.index()] += counts.below[switch.index()];
                counts.inside[branch.parent.index()] += counts.inside[switch.index()];
            }
        }
        counts
    }
}

/// Per switch: the different filters in its subtree, and those of them that are nowhere else.
struct Counts {
    below: Vec<i64>,
    inside: Vec<i64>,
}
