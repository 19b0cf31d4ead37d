//! The clauses of all rules, sorted by their beginnings, with the diagram of every beginning.
//!
//! A branch stands for all clauses that begin with the same tests; its diagram is what the rest of them does. A change
//! of one clause changes the diagrams on its way through the trie, and there only the values that its tests are about.

use crate::diagram::{Diagram, Edge, Effect, NOTHING, NodeId, SetId};
use crate::values::{Interval, ValueSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// A clause with levels instead of terms, in order of the levels.
pub(crate) type Tests = SmallVec<[(u32, ValueSet); 3]>;

/// More separate intervals in one test than this, and a node is made anew instead of being patched.
const MOST_PATCHES: usize = 4;

/// All clauses that begin alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branch {
    /// The effects of the clauses that end here, and how many clauses have them.
    ends: SmallVec<[(SetId, u32); 1]>,
    /// The clauses that go on, by the level of their next test, in order.
    groups: Vec<Group>,
    diagram: Option<NodeId>,
}

/// The clauses of a branch whose next test is at one level.
#[derive(Clone, Debug)]
struct Group {
    level: u32,
    domain: Interval,
    /// By single values.
    points: BTreeMap<u128, Branch>,
    /// By all other sets of values.
    wide: BTreeMap<ValueSet, Branch>,
    diagram: NodeId,
}

impl Branch {
    /// What the clauses do.
    pub fn diagram(&self) -> NodeId {
        self.diagram.unwrap_or(NOTHING)
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.groups.is_empty()
    }

    /// Adds a clause without making diagrams; [`Branch::build`] does that for all at once.
    pub fn insert(&mut self, tests: &[(u32, ValueSet)], set: SetId, domain: &impl Fn(u32) -> Interval) {
        self.diagram = None;
        match tests {
            [] => self.count(set, true),
            [(level, values), rest @ ..] => {
                self.group(*level, domain).child(values).insert(rest, set, domain);
            }
        }
    }

    /// Makes the diagrams of this branch and of all behind it.
    pub fn build(&mut self, diagram: &mut Diagram) -> NodeId {
        if let Some(known) = self.diagram {
            return known;
        }
        for group in &mut self.groups {
            for branch in group.points.values_mut().chain(group.wide.values_mut()) {
                branch.build(diagram);
            }
            group.diagram = group.build(diagram);
        }
        self.join(diagram)
    }

    /// Adds or removes a clause and makes the diagrams that this changes. Whether the branch's own is another now.
    pub fn change(
        &mut self,
        tests: &[(u32, ValueSet)],
        set: SetId,
        add: bool,
        diagram: &mut Diagram,
        domain: &impl Fn(u32) -> Interval,
    ) -> bool {
        let before = self.diagram();
        match tests {
            [] => self.count(set, add),
            [(level, values), rest @ ..] => {
                let group = self.group(*level, domain);
                let child = group.child(values);
                let changed = child.change(rest, set, add, diagram, domain);
                if child.is_empty() {
                    group.remove(values);
                }
                if changed {
                    group.diagram = group.patch(values, diagram);
                }
                self.groups.retain(|group| !group.points.is_empty() || !group.wide.is_empty());
                if !changed {
                    return false;
                }
            }
        }
        self.join(diagram) != before
    }

    /// All diagrams and sets that the trie holds on to.
    pub fn roots(&self, roots: &mut Vec<NodeId>) {
        roots.push(self.diagram());
        roots.extend(self.ends.iter().map(|(set, _)| NodeId::of_set(*set)));
        for group in &self.groups {
            roots.push(group.diagram);
            for branch in group.points.values().chain(group.wide.values()) {
                branch.roots(roots);
            }
        }
    }

    fn count(&mut self, set: SetId, add: bool) {
        match self.ends.iter().position(|(known, _)| *known == set) {
            Some(at) if add => self.ends[at].1 += 1,
            Some(at) => {
                self.ends[at].1 -= 1;
                if self.ends[at].1 == 0 {
                    self.ends.remove(at);
                }
            }
            None if add => self.ends.push((set, 1)),
            None => {}
        }
    }

    fn group(&mut self, level: u32, domain: &impl Fn(u32) -> Interval) -> &mut Group {
        let at = match self.groups.binary_search_by_key(&level, |group| group.level) {
            Ok(at) => at,
            Err(at) => {
                let domain = domain(level);
                let group = Group { level, domain, points: BTreeMap::new(), wide: BTreeMap::new(), diagram: NOTHING };
                self.groups.insert(at, group);
                at
            }
        };
        &mut self.groups[at]
    }

    /// The union of what ends here and what goes on, the later levels first: the earlier ones then meet finished nodes.
    fn join(&mut self, diagram: &mut Diagram) -> NodeId {
        let mut all = NOTHING;
        for (set, _) in &self.ends {
            all = diagram.union(all, NodeId::of_set(*set));
        }
        for group in self.groups.iter().rev() {
            all = diagram.union(all, group.diagram);
        }
        self.diagram = Some(all);
        all
    }
}

impl Group {
    fn child(&mut self, values: &ValueSet) -> &mut Branch {
        match values.as_point() {
            Some(value) => self.points.entry(value).or_default(),
            None => self.wide.entry(values.clone()).or_default(),
        }
    }

    fn remove(&mut self, values: &ValueSet) {
        match values.as_point() {
            Some(value) => self.points.remove(&value),
            None => self.wide.remove(values),
        };
    }

    fn build(&self, diagram: &mut Diagram) -> NodeId {
        let edges = self.edges(self.domain, diagram);
        diagram.make(self.level, edges)
    }

    /// The diagram after a change of the branches of these values.
    fn patch(&self, values: &ValueSet, diagram: &mut Diagram) -> NodeId {
        if values.intervals().len() > MOST_PATCHES {
            return self.build(diagram);
        }
        let mut node = self.diagram;
        for region in values.intervals() {
            node = diagram.patch(node, self.level, *region, |diagram, edges| self.patch_edges(*region, edges, diagram));
        }
        node
    }

    /// Changes the edges around a region to what the branches do there.
    fn patch_edges(&self, region: Interval, edges: &mut Vec<Edge>, diagram: &mut Diagram) {
        // The edges that the region touches, of which the first and the last may reach out of it.
        let start = edges.partition_point(|edge| edge.last < region.first);
        let end = edges.partition_point(|edge| edge.last < region.last);
        let behind = edges[end];
        let mut new = Vec::new();
        if let Some(last) = region.first.checked_sub(1) {
            new.push(Edge { last, to: edges[start].to });
        }
        new.extend(self.edges(region, diagram));
        if behind.last.min(self.domain.last) > region.last {
            new.push(Edge { last: behind.last.min(self.domain.last), to: behind.to });
        }
        // The piece in front may be empty: the edge before already ends there.
        if start > 0 && region.first > 0 && edges[start - 1].last == region.first - 1 {
            new.remove(0);
        }
        edges.splice(start..=end, new);
    }

    /// What the branches do within a region.
    fn edges(&self, region: Interval, diagram: &mut Diagram) -> Vec<Edge> {
        let mut pieces: Vec<(Interval, NodeId)> = Vec::new();
        pieces.extend(
            self.points
                .range(region.first..=region.last)
                .map(|(value, branch)| (Interval::point(*value), branch.diagram())),
        );
        if !self.wide.is_empty() {
            for (values, branch) in &self.wide {
                let touched = values.intervals().iter().filter_map(|interval| interval.intersection(region));
                pieces.extend(touched.map(|interval| (interval, branch.diagram())));
            }
            pieces.sort_unstable();
        }
        if pieces.windows(2).all(|pair| pair[0].0.last < pair[1].0.first) {
            disjoint(&pieces, region)
        } else if pieces.iter().all(|(_, to)| to.leaf().is_some()) {
            overlapping_leaves(&pieces, region, diagram)
        } else {
            overlapping(&pieces, region, diagram)
        }
    }
}

fn disjoint(pieces: &[(Interval, NodeId)], region: Interval) -> Vec<Edge> {
    let mut edges = Vec::with_capacity(2 * pieces.len() + 1);
    let mut next = Some(region.first);
    for (interval, to) in pieces {
        if next.is_some_and(|next| next < interval.first) {
            edges.push(Edge { last: interval.first - 1, to: NOTHING });
        }
        edges.push(Edge { last: interval.last, to: *to });
        next = interval.last.checked_add(1);
    }
    if next.is_some_and(|next| next <= region.last) {
        edges.push(Edge { last: region.last, to: NOTHING });
    }
    edges
}

/// Sets of effects over overlapping intervals: one walk along the values that counts each effect.
fn overlapping_leaves(pieces: &[(Interval, NodeId)], region: Interval, diagram: &mut Diagram) -> Vec<Edge> {
    let mut ends: Vec<(u128, NodeId)> = pieces.iter().map(|(interval, to)| (interval.last, *to)).collect();
    ends.sort_unstable();
    let mut counts: BTreeMap<Effect, u32> = BTreeMap::new();
    let mut active: Vec<Effect> = Vec::new();
    let mut edges: Vec<Edge> = Vec::new();
    let (mut starting, mut ending) = (pieces.iter().peekable(), ends.iter().peekable());
    let mut at = region.first;
    loop {
        if diagram.excess().is_some() {
            edges.push(Edge { last: region.last, to: NOTHING });
            return edges;
        }
        let mut changed = edges.is_empty();
        while let Some((_, to)) = ending.next_if(|(last, _)| *last < at) {
            for effect in diagram.effects(to.leaf().unwrap_or(SetId::EMPTY)) {
                let count = counts.entry(*effect).or_default();
                *count -= 1;
                if *count == 0
                    && let Ok(place) = active.binary_search(effect)
                {
                    active.remove(place);
                    changed = true;
                }
            }
        }
        while let Some((_, to)) = starting.next_if(|(interval, _)| interval.first == at) {
            for effect in diagram.effects(to.leaf().unwrap_or(SetId::EMPTY)) {
                let count = counts.entry(*effect).or_default();
                *count += 1;
                if *count == 1
                    && let Err(place) = active.binary_search(effect)
                {
                    active.insert(place, *effect);
                    changed = true;
                }
            }
        }
        // Up to the next start, or to the next end.
        let next_start = starting.peek().map(|(interval, _)| interval.first - 1);
        let next_end = ending.peek().map(|(last, _)| *last);
        let last = [next_start, next_end, Some(region.last)].into_iter().flatten().min().unwrap_or(region.last);
        match edges.last_mut() {
            Some(edge) if !changed => edge.last = last,
            _ => edges.push(Edge { last, to: NodeId::of_set(diagram.set(&active)) }),
        }
        match last.checked_add(1).filter(|next| *next <= region.last) {
            Some(next) => at = next,
            None => return edges,
        }
    }
}

/// Diagrams over overlapping intervals: a segment tree, so that each is united with others a logarithmic number of
/// times, and not once for every interval of values.
fn overlapping(pieces: &[(Interval, NodeId)], region: Interval, diagram: &mut Diagram) -> Vec<Edge> {
    let mut lasts: Vec<u128> = vec![region.last];
    for (interval, _) in pieces {
        lasts.extend(interval.first.checked_sub(1).filter(|last| *last >= region.first));
        lasts.push(interval.last);
    }
    lasts.sort_unstable();
    lasts.dedup();
    let mut tree = vec![NOTHING; 4 * lasts.len()];
    for (interval, to) in pieces {
        let first = lasts.partition_point(|last| *last < interval.first);
        let last = lasts.partition_point(|last| *last < interval.last);
        place(&mut tree, diagram, (1, 0, lasts.len() - 1), (first, last), *to);
    }
    let mut edges = Vec::with_capacity(lasts.len());
    gather(&tree, diagram, (1, 0, lasts.len() - 1), NOTHING, &lasts, &mut edges);
    edges
}

/// A node of the segment tree: its number, and the first and last of its leaves.
type Segment = (usize, usize, usize);

fn halves((number, first, last): Segment) -> [Segment; 2] {
    let middle = (first + last) / 2;
    [(2 * number, first, middle), (2 * number + 1, middle + 1, last)]
}

fn place(tree: &mut [NodeId], diagram: &mut Diagram, segment: Segment, wanted: (usize, usize), to: NodeId) {
    let (number, first, last) = segment;
    if wanted.0 > last || wanted.1 < first {
        return;
    }
    if wanted.0 <= first && last <= wanted.1 {
        tree[number] = diagram.union(tree[number], to);
        return;
    }
    for half in halves(segment) {
        place(tree, diagram, half, wanted, to);
    }
}

fn gather(
    tree: &[NodeId],
    diagram: &mut Diagram,
    segment: Segment,
    above: NodeId,
    lasts: &[u128],
    edges: &mut Vec<Edge>,
) {
    let (number, first, last) = segment;
    let here = diagram.union(above, tree[number]);
    if first == last {
        edges.push(Edge { last: lasts[first], to: here });
        return;
    }
    for half in halves(segment) {
        gather(tree, diagram, half, here, lasts, edges);
    }
}
