//! Next hops over shortest paths, found when asked for, so that ten thousand nodes need no square of tables.

use crate::model::{Network, NodeIndex, NodeKind, PortPlace};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use weftwire_core::Port;

/// The way from a node towards a destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Hop {
    /// Out of this port of the node.
    pub port: Port,
    /// To this port of the next addressed node, behind any switches and transparent functions.
    pub to: PortPlace,
}

/// Next hops in a network. Paths are those with the fewest addressed nodes, then the least delay (of the settings at the
/// start, both directions added), then the lowest port number; only hosts at the ends, only routers between.
///
/// A table is made for each destination that was asked for: 2 bytes a node. A destination behind a single router has
/// none of its own.
pub struct Routes {
    /// All neighbours of all nodes, by node, then by port, then by who is there.
    hops: Vec<Hop>,
    /// The delay to each of them and back.
    delays: Vec<i64>,
    /// Where each node's neighbours begin, and at last where they end.
    starts: Vec<u32>,
    routers: Vec<bool>,
    /// By destination, then by node: which of the node's neighbours is next.
    tables: Vec<Option<Box<[u16]>>>,
}

/// In a table: no way.
const NOWHERE: u16 = u16::MAX;

impl Routes {
    /// Prepares the neighbours of each node; tables are made when first asked for.
    pub fn new(network: &Network) -> Routes {
        let nodes = network.nodes.len();
        let mut routes = Routes {
            hops: Vec::new(),
            delays: Vec::new(),
            starts: vec![0],
            routers: network.nodes.iter().map(|node| matches!(node.kind, NodeKind::Router)).collect(),
            tables: vec![None; nodes],
        };
        for (index, node) in network.nodes() {
            if node.is_addressed() {
                for number in 1..=node.ports.len() {
                    let from = PortPlace { node: index, port: Port(number as u16) };
                    for (to, delay) in reachable(network, from) {
                        routes.hops.push(Hop { port: from.port, to });
                        routes.delays.push(delay);
                    }
                }
            }
            routes.starts.push(routes.hops.len() as u32);
        }
        routes
    }

    /// All addressed nodes that `node` reaches without a router between, by port, then by who is there. A node behind
    /// two ports is there twice. None if the node itself has no address.
    pub fn neighbours(&self, node: NodeIndex) -> &[Hop] {
        &self.hops[self.range(node.0 as usize)]
    }

    /// The next hop from `from` towards `to`; `None` if there is no way, or both are the same.
    pub fn next(&mut self, from: NodeIndex, to: NodeIndex) -> Option<Hop> {
        if from == to {
            return None;
        }
        // All ways to a node with a single neighbour lead over it, so the neighbour's table does.
        if let [only] = self.neighbours(to) {
            let last = Hop { port: only.to.port, to: PortPlace { node: to, port: only.port } };
            let over = only.to.node;
            if from == over {
                return Some(last);
            }
            return if self.routers[over.0 as usize] { self.look_up(from, over) } else { None };
        }
        self.look_up(from, to)
    }

    fn range(&self, node: usize) -> std::ops::Range<usize> {
        self.starts[node] as usize..self.starts[node + 1] as usize
    }

    fn look_up(&mut self, from: NodeIndex, to: NodeIndex) -> Option<Hop> {
        let (from, to) = (from.0 as usize, to.0 as usize);
        if self.tables[to].is_none() {
            self.tables[to] = Some(self.table(to));
        }
        let number = self.tables[to].as_ref()?[from];
        if number == NOWHERE { None } else { Some(self.hops[self.range(from)][usize::from(number)]) }
    }

    /// Shortest paths from all nodes to one (Dijkstra's, from the destination: links lead both ways).
    fn table(&self, to: usize) -> Box<[u16]> {
        const UNREACHED: (u32, i64) = (u32::MAX, i64::MAX);
        let mut costs = vec![UNREACHED; self.routers.len()];
        costs[to] = (0, 0);
        let mut heap = BinaryHeap::from([Reverse(((0, 0), to))]);
        let further = |cost: (u32, i64), hop: usize| (cost.0 + 1, cost.1.saturating_add(self.delays[hop]));
        let passes = |node: usize| node == to || self.routers[node];
        while let Some(Reverse((cost, node))) = heap.pop() {
            if cost > costs[node] || !passes(node) {
                continue;
            }
            for hop in self.range(node) {
                let next = self.hops[hop].to.node.0 as usize;
                let cost = further(cost, hop);
                if cost < costs[next] {
                    costs[next] = cost;
                    heap.push(Reverse((cost, next)));
                }
            }
        }
        // Each node's first neighbour over which it costs least.
        let best = |node: usize| {
            let over = |hop: &usize| self.hops[*hop].to.node.0 as usize;
            let ways = self.range(node).filter(|hop| passes(over(hop)) && costs[over(hop)] != UNREACHED);
            let best = ways.min_by_key(|hop| further(costs[over(hop)], *hop))?;
            u16::try_from(best - self.range(node).start).ok()
        };
        (0..self.routers.len()).map(|node| if node == to { NOWHERE } else { best(node).unwrap_or(NOWHERE) }).collect()
    }
}

/// The addressed ports that a frame out of a port reaches, through whatever forwards Ethernet frames, with the least delay
/// there and back; in order of node and port.
fn reachable(network: &Network, from: PortPlace) -> Vec<(PortPlace, i64)> {
    let mut found = BTreeMap::new();
    let mut crossed = BTreeSet::new();
    // By the delay up to the far end of the link: what is crossed first is crossed on the fastest way.
    let over = |delay: i64, out: PortPlace| {
        let &(link, end) = network.node(out.node).ports.get(usize::from(out.port.0).checked_sub(1)?)?;
        let link = network.link(link);
        let delay = link.directions.iter().fold(delay, |sum, direction| sum.saturating_add(direction.delay));
        Some(Reverse((delay, link.ends[1 - end])))
    };
    let mut heap: BinaryHeap<_> = over(0, from).into_iter().collect();
    while let Some(Reverse((delay, there))) = heap.pop() {
        if network.node(there.node).is_addressed() {
            if there.node != from.node {
                found.entry(there).or_insert(delay);
            }
        } else if crossed.insert(there.node) {
            // Out of all others of its ports.
            for port in (1..=network.node(there.node).ports.len() as u16).map(Port).filter(|port| *port != there.port) {
                heap.extend(over(delay, PortPlace { node: there.node, port }));
            }
        }
    }
    found.into_iter().collect()
}
