//! Reduced ordered decision diagrams over fields: a node tests one variable, its edges are disjoint intervals that
//! together are all values, its leaves are sets of effects.
//!
//! Nodes are made only here and each is made once: neighbouring intervals that lead to the same place are merged, and a
//! node with one edge is not made at all. So two functions are equal just if their [`NodeId`]s are.

use crate::budget::{Budget, Excess, MOST_TESTS};
use crate::pieces::{self, Piece, Pieces};
use crate::values::Interval;
use crate::watch::Watch;
use hashbrown::{HashMap, HashTable};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

/// A node or a leaf of a [`Diagram`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u32);

/// The leaf without effects.
pub const NOTHING: NodeId = NodeId(LEAF);

/// Set in the numbers of leaves.
const LEAF: u32 = 1 << 31;

impl NodeId {
    /// The set of effects of a leaf; `None` for a node.
    pub fn leaf(self) -> Option<SetId> {
        (self.0 & LEAF != 0).then_some(SetId(self.0 & !LEAF))
    }

    /// The leaf of a set of effects.
    pub fn of_set(set: SetId) -> NodeId {
        NodeId(set.0 | LEAF)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of a set of effects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SetId(u32);

impl SetId {
    /// The empty set.
    pub const EMPTY: SetId = SetId(0);
}

/// One effect of a rule, as a number: what they mean is the compiler's business.
pub type Effect = u64;

/// One interval of a node's values: from behind the edge before to `last`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Edge {
    /// The greatest value.
    pub last: u128,
    /// Where it leads.
    pub to: NodeId,
}

/// A node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// The place of its variable in the order; children have greater ones.
    pub level: u32,
    /// At least two, in order; the last ends at the variable's greatest value.
    pub(crate) edges: Pieces<Edge>,
}

impl Node {
    /// Its edges as intervals.
    pub fn intervals(&self) -> impl Iterator<Item = (Interval, NodeId)> + '_ {
        intervals(0, self.edges.iter())
    }

    /// Where a value leads.
    pub fn next(&self, value: u128) -> NodeId {
        let edges = self.edges.around(value);
        let at = edges.partition_point(|edge| edge.last < value);
        edges.get(at).or(self.edges.iter().last()).map_or(NOTHING, |edge| edge.to)
    }
}

/// Edges from a value on as intervals.
pub(crate) fn intervals<'a>(
    first: u128,
    edges: impl Iterator<Item = &'a Edge>,
) -> impl Iterator<Item = (Interval, NodeId)> {
    edges.scan(first, |first, edge| {
        let interval = Interval { first: *first, last: edge.last };
        *first = edge.last.wrapping_add(1);
        Some((interval, edge.to))
    })
}

/// All nodes and leaves.
///
/// Some bits may exclude each other: no way from a node leads through the 1 of both.
///
/// What is over the budget leaves the diagram as it is in size, with wrong nodes for what was asked last: ask
/// [`Diagram::excess`] after each change.
#[derive(Clone, Debug)]
pub struct Diagram {
    /// By level: the later levels whose bits are 0 where the one there is 1, in order. The levels behind have none.
    excluded: Vec<Box<[u32]>>,
    /// By level: the width of values that tables match by prefixes, 0 elsewhere. The levels behind have none.
    prefixed: Vec<u16>,
    nodes: Vec<Option<Node>>,
    /// By node: at least how many nodes follow each other from there on, itself among them.
    depths: Vec<u16>,
    free: Vec<u32>,
    known: HashTable<u32>,
    sets: Vec<Box<[Effect]>>,
    free_sets: Vec<u32>,
    known_sets: HashTable<u32>,
    /// Edges of all nodes, or the prefixes they take, and effects of all sets.
    size: usize,
    /// Unions that were made before; forgotten when nodes are collected.
    unions: HashMap<(NodeId, NodeId), NodeId, Mix>,
    budget: Budget,
    /// Edges and effects looked at since [`Diagram::begin`].
    steps: u64,
    excess: Option<Excess>,
    /// Hears of the steps.
    watch: Watch,
}

impl Diagram {
    /// A diagram without nodes or limits. `excluded`, by level: the later levels whose bits are 0 where the one there is 1,
    /// in order; `prefixed`: the width of values that tables match by prefixes, 0 elsewhere.
    pub fn new(excluded: Vec<Box<[u32]>>, prefixed: Vec<u16>) -> Diagram {
        let mut diagram = Diagram {
            excluded,
            prefixed,
            nodes: Vec::new(),
            depths: Vec::new(),
            free: Vec::new(),
            known: HashTable::new(),
            sets: Vec::new(),
            free_sets: Vec::new(),
            known_sets: HashTable::new(),
            size: 0,
            unions: HashMap::with_hasher(Mix(0)),
            budget: Budget::UNLIMITED,
            steps: 0,
            excess: None,
            watch: Watch::default(),
        };
        diagram.set(&[]);
        diagram
    }

    /// Counts steps from 0 on, with this budget.
    pub fn begin(&mut self, budget: Budget) {
        (self.budget, self.steps, self.excess) = (budget, 0, None);
    }

    /// What went over the budget since [`Diagram::begin`]. What was asked for since then may be wrong.
    pub fn excess(&self) -> Option<Excess> {
        self.excess
    }

    /// Edges and effects looked at since [`Diagram::begin`].
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// From now on this hears of the steps.
    pub(crate) fn watched(&mut self, watch: Watch) {
        self.watch = watch;
    }

    fn spend(&mut self, steps: usize) {
        self.steps += steps as u64;
        self.watch.spend(steps as u64);
        if self.excess.is_none() {
            if self.size.saturating_add(self.unions.len()) > self.budget.size {
                self.excess = Some(Excess::Size);
            } else if self.steps > self.budget.steps {
                self.excess = Some(Excess::Steps);
            }
        }
    }

    /// A node. Leaves and ids of collected nodes have none.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        if id.leaf().is_some() { None } else { self.nodes.get(id.index())?.as_ref() }
    }

    /// The effects of a set, in order.
    pub fn effects(&self, set: SetId) -> &[Effect] {
        &self.sets[set.0 as usize]
    }

    /// How many edges (or the prefixes that they take in a table) and effects there are, those of nodes that nothing leads to
    /// any more among them.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many unions are remembered.
    pub(crate) fn remembered(&self) -> usize {
        self.unions.len()
    }

    /// The set of effects, which are sorted and differ.
    pub fn set(&mut self, effects: &[Effect]) -> SetId {
        self.spend(1 + effects.len());
        let hash = hash_of(&effects);
        if let Some(known) = self.known_sets.find(hash, |known| &*self.sets[*known as usize] == effects) {
            return SetId(*known);
        }
        let index = self.free_sets.pop().unwrap_or(self.sets.len() as u32);
        self.size += 1 + effects.len();
        match self.sets.get_mut(index as usize) {
            Some(place) => *place = effects.into(),
            None => self.sets.push(effects.into()),
        }
        self.known_sets.insert_unique(hash, index, |known| hash_of(&&*self.sets[*known as usize]));
        SetId(index)
    }

    /// The node of these edges, whose neighbours may lead to the same place; the place itself if all do.
    pub fn make(&mut self, level: u32, mut edges: Vec<Edge>) -> NodeId {
        merge(&mut edges);
        if let [_, one] = &mut edges[..]
            && self.excluded.get(level as usize).is_some_and(|levels| !levels.is_empty())
        {
            one.to = self.without(one.to, level);
            merge(&mut edges);
        }
        let [_, _, ..] = edges[..] else { return edges.first().map_or(NOTHING, |edge| edge.to) };
        let size = self.weight(level, 0, edges.iter());
        let depth = self.depth(edges.iter());
        let edges = if edges.len() < pieces::LONG { Pieces::short(edges) } else { Pieces::long(cut(0, &edges)) };
        self.intern(Node { level, edges }, size, depth)
    }

    /// How much memory edges from a value on take, here or in a table.
    fn weight<'a>(&self, level: u32, first: u128, edges: impl Iterator<Item = &'a Edge>) -> usize {
        match self.prefixed.get(level as usize) {
            None | Some(0) => edges.count(),
            Some(width) => intervals(first, edges).map(|(values, _)| values.prefix_count(*width)).sum(),
        }
    }

    /// The depth of a node with such edges.
    fn depth<'a>(&self, edges: impl Iterator<Item = &'a Edge>) -> u16 {
        1 + edges.map(|edge| self.depth_of(edge.to)).max().unwrap_or(0)
    }

    fn depth_of(&self, id: NodeId) -> u16 {
        if id.leaf().is_some() { 0 } else { self.depths.get(id.index()).copied().unwrap_or(0) }
    }

    /// What `id` does if the bits are 0 that the one at `level` excludes.
    fn without(&mut self, id: NodeId, level: u32) -> NodeId {
        let excluded = &self.excluded[level as usize];
        let Some(node) = self.node(id).filter(|node| Some(&node.level) <= excluded.last()) else { return id };
        if excluded.contains(&node.level) {
            let zero = node.next(0);
            return self.without(zero, level);
        }
        let (here, mut edges) = (node.level, node.edges.iter().copied().collect::<Vec<_>>());
        for edge in &mut edges {
            edge.to = self.without(edge.to, level);
        }
        self.make(here, edges)
    }

    /// A node with other edges for some of its values. `edges` gets the edges around them, starting with the given value,
    /// and changes them. A long node keeps its other pieces.
    pub fn patch(
        &mut self,
        id: NodeId,
        level: u32,
        values: Interval,
        change: impl FnOnce(&mut Diagram, &mut Vec<Edge>),
    ) -> NodeId {
        let pieces = self.node(id).filter(|node| node.level == level).map_or(&[][..], |node| node.edges.shared());
        if pieces.is_empty() {
            let mut edges = self.edges_at(id, level);
            change(self, &mut edges);
            return self.make(level, edges);
        }
        // One piece more on both sides: edges at the border may merge with theirs.
        let start = pieces.partition_point(|piece| piece.last < values.first).saturating_sub(1);
        let end = (pieces.partition_point(|piece| piece.last < values.last) + 2).min(pieces.len());
        let mut edges: Vec<Edge> = pieces[start..end].iter().flat_map(|piece| piece.items.iter().copied()).collect();
        let first = pieces[start].first;
        let (mut all, behind) = (pieces[..start].to_vec(), pieces[end..].to_vec());
        change(self, &mut edges);
        merge(&mut edges);
        let size = self.weight(level, first, edges.iter());
        // What deep edges had led to may be gone; a new compilation finds out.
        let depth = self.depth(edges.iter()).max(self.depth_of(id));
        all.extend(cut(first, &edges));
        all.extend(behind);
        if all.iter().map(|piece| piece.items.len()).sum::<usize>() < pieces::LONG {
            return self.make(level, all.iter().flat_map(|piece| piece.items.iter().copied()).collect());
        }
        let size = size + all.len() / 4;
        self.intern(Node { level, edges: Pieces::long(all) }, size, depth)
    }

    /// The number of a node, which may be known. `size` is the memory it takes, in edges.
    fn intern(&mut self, node: Node, size: usize, depth: u16) -> NodeId {
        self.spend(node.edges.piece_count().max(size));
        if usize::from(depth) > MOST_TESTS {
            self.excess.get_or_insert(Excess::Depth);
        }
        let hash = hash_of(&(node.level, &node.edges));
        let same = |known: &u32| self.nodes[*known as usize].as_ref() == Some(&node);
        if let Some(known) = self.known.find(hash, same) {
            return NodeId(*known);
        }
        let index = self.free.pop().unwrap_or(self.nodes.len() as u32);
        self.size += size;
        let node = Some(node);
        match self.nodes.get_mut(index as usize) {
            Some(place) => (*place, self.depths[index as usize]) = (node, depth),
            None => {
                self.nodes.push(node);
                self.depths.push(depth);
            }
        }
        self.known.insert_unique(hash, index, |known| hash_node(&self.nodes[*known as usize]));
        NodeId(index)
    }

    /// What both do.
    pub fn union(&mut self, left: NodeId, right: NodeId) -> NodeId {
        if left == right || right == NOTHING || self.excess.is_some() {
            return left;
        }
        if left == NOTHING {
            return right;
        }
        let key = (left.min(right), left.max(right));
        if let Some(known) = self.unions.get(&key) {
            return *known;
        }
        let result = match (left.leaf(), right.leaf()) {
            (Some(left), Some(right)) => {
                let mut effects = [self.effects(left), self.effects(right)].concat();
                effects.sort_unstable();
                effects.dedup();
                NodeId::of_set(self.set(&effects))
            }
            _ => self.union_nodes(left, right),
        };
        if self.excess.is_none() {
            self.unions.insert(key, result);
        }
        result
    }

    fn union_nodes(&mut self, left: NodeId, right: NodeId) -> NodeId {
        let level_of = |id| self.node(id).map_or(u32::MAX, |node| node.level);
        let level = level_of(left).min(level_of(right));
        // Nodes are moved out of the way of the changes below, and back; recursion only meets greater levels.
        let left_edges = self.edges_at(left, level);
        let right_edges = self.edges_at(right, level);
        self.spend(left_edges.len() + right_edges.len());
        let mut edges = Vec::with_capacity(left_edges.len() + right_edges.len());
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (left_edges.get(i), right_edges.get(j)) {
            edges.push(Edge { last: a.last.min(b.last), to: self.union(a.to, b.to) });
            i += usize::from(a.last <= b.last);
            j += usize::from(b.last <= a.last);
        }
        self.make(level, edges)
    }

    /// The edges of what `id` does with the variable at `level`, which is not behind its own.
    pub fn edges_at(&self, id: NodeId, level: u32) -> Vec<Edge> {
        match self.node(id) {
            Some(node) if node.level == level => node.edges.iter().copied().collect(),
            _ => vec![Edge { last: u128::MAX, to: id }],
        }
    }

    /// Forgets all nodes and sets that these roots do not lead to. The ids of others stay.
    pub fn collect(&mut self, roots: impl IntoIterator<Item = NodeId>) {
        let mut used = vec![false; self.nodes.len()];
        let mut used_sets = vec![false; self.sets.len()];
        used_sets[0] = true;
        let mut open: Vec<NodeId> = roots.into_iter().collect();
        while let Some(id) = open.pop() {
            if let Some(set) = id.leaf() {
                used_sets[set.0 as usize] = true;
            } else if let Some(node) = self.node(id)
                && !std::mem::replace(&mut used[id.index()], true)
            {
                open.extend(node.edges.iter().map(|edge| edge.to));
            }
        }
        self.size = 0;
        self.unions.clear();
        self.known.clear();
        self.free.clear();
        for (index, used) in used.into_iter().enumerate() {
            if used {
                self.size += self.nodes[index].as_ref().map_or(0, |node| self.weight(node.level, 0, node.edges.iter()));
                let hash = hash_node(&self.nodes[index]);
                self.known.insert_unique(hash, index as u32, |known| hash_node(&self.nodes[*known as usize]));
            } else {
                self.nodes[index] = None;
                self.free.push(index as u32);
            }
        }
        self.known_sets.clear();
        self.free_sets.clear();
        for (index, used) in used_sets.into_iter().enumerate() {
            if used {
                self.size += 1 + self.sets[index].len();
                let hash = hash_of(&&*self.sets[index]);
                self.known_sets.insert_unique(hash, index as u32, |known| hash_of(&&*self.sets[*known as usize]));
            } else {
                self.sets[index] = Box::default();
                self.free_sets.push(index as u32);
            }
        }
    }
}

/// Makes one of neighbours that lead to the same place: the last is kept, which ends where all of them do.
fn merge(edges: &mut Vec<Edge>) {
    edges.reverse();
    edges.dedup_by_key(|edge| edge.to);
    edges.reverse();
}

/// Edges of a long node from a value on, in pieces.
fn cut(mut first: u128, edges: &[Edge]) -> Vec<Arc<Piece<Edge>>> {
    let pieces = edges.split_inclusive(|edge| pieces::is_end(edge.last));
    let piece = |items: &[Edge]| {
        let last = items.last().map_or(first, |edge| edge.last);
        let piece = Piece::new(first, last, items.into());
        first = last.wrapping_add(1);
        piece
    };
    pieces.map(piece).collect()
}

fn hash_node(node: &Option<Node>) -> u64 {
    node.as_ref().map_or(0, |node| hash_of(&(node.level, &node.edges)))
}

fn hash_of(value: &impl Hash) -> u64 {
    Mix(0).hash_one(value)
}

/// A fixed hash: multiply and fold, word by word.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Mix(u64);

impl Mix {
    fn add(&mut self, word: u64) {
        let product = u128::from(self.0.rotate_left(23) ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = ((product >> 64) as u64 ^ product as u64).wrapping_add(0xf39c_c060_5ced_c835);
    }
}

impl BuildHasher for Mix {
    type Hasher = Mix;

    fn build_hasher(&self) -> Mix {
        Mix(0x243f_6a88_85a3_08d3)
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.add(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_u128(&mut self, value: u128) {
        self.add(value as u64);
        if value >> 64 != 0 {
            self.add((value >> 64) as u64);
        }
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }
}
