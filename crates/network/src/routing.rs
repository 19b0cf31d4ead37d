//! Next hops over shortest paths, found when asked for, so that ten thousand nodes need no square of tables.
//!
//! Where several ways cost the same, packets are spread over them, in shares of the links' weights: by a hash of the flow
//! (RFC 2992) under a key of each node's own, so that nodes one behind another do not all choose alike; or packet by
//! packet (Dixit et al., "On the impact of packet spraying in data center networks", INFOCOM 2013).

mod flow;
mod outages;

pub use flow::Flow;
pub use outages::{Reroute, reroutes};

use crate::model::{LinkIndex, Multipath, Network, NodeIndex, NodeKind, PortPlace};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use weftwire_core::{Port, nanoseconds};

/// The way from a node towards a destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Hop {
    /// Out of this port of the node.
    pub port: Port,
    /// To this port of the next addressed node, behind any switches and transparent functions.
    pub to: PortPlace,
}

/// Next hops in a network. Paths are those with the least metric (of each way to a neighbour, the greatest metric of the
/// links that it crosses), then the least delay (of the settings at the start, both directions added); only hosts at the
/// ends, only routers between. Static routes come first.
///
/// A table is made for each destination that was asked for: 4 bytes a node. A destination behind a single router has
/// none of its own.
pub struct Routes {
    /// All neighbours of all nodes, by node, then by port, then by who is there.
    hops: Vec<Hop>,
    /// What is known of each of them.
    ways: Vec<Way>,
    /// The links that each way crosses, those of way `i` from `ways[i].links` to `ways[i + 1].links`.
    crossed: Vec<LinkIndex>,
    /// Where each node's neighbours begin, and at last where they end.
    starts: Vec<u32>,
    routers: Vec<bool>,
    multipath: Multipath,
    /// Links that are routed round.
    down: BTreeSet<LinkIndex>,
    /// By destination, then by node: the set of neighbours that are next.
    tables: Vec<Option<Box<[u32]>>>,
    /// Sets of neighbours by number; neighbours are counted within their node, so that few sets serve all nodes.
    sets: Sets,
    /// Static routes by node and destination: to whom.
    given: BTreeMap<(u32, u32), std::sync::Arc<[NodeIndex]>>,
    /// And the sets of those whose ways are up.
    fixed: BTreeMap<(u32, u32), u32>,
    seed: u64,
    /// Packets that each node has sprayed.
    sprayed: Vec<u64>,
    epoch: u32,
}

/// What is known of the way to a neighbour.
#[derive(Clone, Copy)]
struct Way {
    metric: u32,
    /// There and back.
    delay: i64,
    weight: u16,
    links: u32,
    is_up: bool,
}

/// A path's cost: metric, then delay.
type Cost = (u64, i64);

const UNREACHED: Cost = (u64::MAX, i64::MAX);

/// In a table: no way.
const NOWHERE: u32 = u32::MAX;

impl Routes {
    /// Prepares the neighbours of each node; tables are made when first asked for.
    pub fn new(network: &Network) -> Routes {
        let nodes = network.nodes.len();
        let mut routes = Routes {
            hops: Vec::new(),
            ways: Vec::new(),
            crossed: Vec::new(),
            starts: vec![0],
            routers: network.nodes.iter().map(|node| matches!(node.kind, NodeKind::Router)).collect(),
            multipath: network.routing.multipath,
            down: BTreeSet::new(),
            tables: vec![None; nodes],
            sets: Sets::default(),
            given: BTreeMap::new(),
            fixed: BTreeMap::new(),
            seed: network.seed,
            sprayed: vec![0; nodes],
            epoch: 0,
        };
        for (index, node) in network.nodes() {
            if node.is_addressed() {
                for number in 1..=node.ports.len() {
                    let from = PortPlace { node: index, port: Port(number as u16) };
                    let weight = network.link(node.ports[number - 1].0).weight;
                    for (to, links) in reachable(network, from) {
                        let delay = if network.routing.by_delay { there_and_back(network, &links) } else { 0 };
                        let metric = links.iter().map(|link| network.link(*link).metric).max().unwrap_or(1);
                        let crossed = routes.crossed.len() as u32;
                        routes.hops.push(Hop { port: from.port, to });
                        routes.ways.push(Way { metric, delay, weight, links: crossed, is_up: true });
                        routes.crossed.extend(links);
                    }
                }
            }
            routes.starts.push(routes.hops.len() as u32);
        }
        for route in &network.routing.routes {
            routes.given.insert((route.node.0, route.to.0), route.via.clone());
        }
        routes.fix();
        routes
    }

    /// All addressed nodes that `node` reaches without a router between, by port, then by who is there. A node behind
    /// two ports is there twice. None if the node itself has no address.
    pub fn neighbours(&self, node: NodeIndex) -> &[Hop] {
        &self.hops[self.range(node.0 as usize)]
    }

    /// All next hops from `from` towards `to` that are used alike, each with its weight; none if there is no way, or both
    /// are the same.
    pub fn all(&mut self, from: NodeIndex, to: NodeIndex) -> Vec<(Hop, u16)> {
        match self.look_up(from, to) {
            Found::Nowhere => Vec::new(),
            Found::Last(hop) => vec![(hop, 1)],
            Found::Set(set) => {
                let start = self.starts[from.0 as usize];
                let place = |number: &u32| (start + number) as usize;
                self.sets.list[set as usize]
                    .iter()
                    .map(|number| (self.hops[place(number)], self.ways[place(number)].weight))
                    .collect()
            }
        }
    }

    /// The next hop from `from` towards `to` of a packet; `None` if there is no way, or both are the same. `flow` is asked
    /// only where there is a choice.
    pub fn next(&mut self, from: NodeIndex, to: NodeIndex, flow: impl FnOnce() -> Flow) -> Option<Hop> {
        let set = match self.look_up(from, to) {
            Found::Nowhere => return None,
            Found::Last(hop) => return Some(hop),
            Found::Set(set) => set as usize,
        };
        let start = self.starts[from.0 as usize];
        let number = match &*self.sets.list[set] {
            [only] => *only,
            all => {
                let hash = match self.multipath {
                    Multipath::Single => 0,
                    Multipath::Flow => flow().hash(self.seed, from),
                    Multipath::Packet => {
                        let count = &mut self.sprayed[from.0 as usize];
                        *count += 1;
                        flow::hash_of_number(self.seed, from, *count)
                    }
                };
                let weight = |number: &u32| u64::from(self.ways[(start + number) as usize].weight);
                let sum: u64 = all.iter().map(weight).sum();
                let mut point = ((u128::from(hash) * u128::from(sum)) >> 64) as u64;
                let chosen = all.iter().find(|number| {
                    let weight = weight(number);
                    let hit = point < weight;
                    point = point.saturating_sub(weight);
                    hit
                });
                *chosen.or(all.last())?
            }
        };
        Some(self.hops[(start + number) as usize])
    }

    /// Whether each packet takes a way of its own.
    pub fn sprays(&self) -> bool {
        self.multipath == Multipath::Packet
    }

    /// How often routes have changed.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Routes round links from now on (`true`), or uses them again. Where no way is left, packets go on to the link that
    /// is down, and are lost there.
    pub fn reroute(&mut self, links: &[(LinkIndex, bool)]) {
        for (link, down) in links {
            if *down {
                self.down.insert(*link)
            } else {
                self.down.remove(link)
            };
        }
        for way in 0..self.ways.len() {
            let end = self.ways.get(way + 1).map_or(self.crossed.len(), |next| next.links as usize);
            let crossed = &self.crossed[self.ways[way].links as usize..end];
            self.ways[way].is_up = !crossed.iter().any(|link| self.down.contains(link));
        }
        self.tables.fill(None);
        self.fix();
        self.epoch += 1;
    }

    fn range(&self, node: usize) -> std::ops::Range<usize> {
        self.starts[node] as usize..self.starts[node + 1] as usize
    }

    fn look_up(&mut self, from: NodeIndex, to: NodeIndex) -> Found {
        if from == to {
            return Found::Nowhere;
        }
        if let Some(set) = self.fixed.get(&(from.0, to.0)) {
            return Found::Set(*set);
        }
        // All ways to a node with a single neighbour lead over it, so the neighbour's table does, unless that is cut off.
        let mut towards = to.0 as usize;
        if let [only] = self.neighbours(to)
            && self.ways[self.range(towards).start].is_up
        {
            let last = Hop { port: only.to.port, to: PortPlace { node: to, port: only.port } };
            let over = only.to.node;
            if from == over {
                return Found::Last(last);
            }
            if !self.routers[over.0 as usize] {
                return Found::Nowhere;
            }
            towards = over.0 as usize;
        }
        if self.tables[towards].is_none() {
            self.tables[towards] = Some(self.table(towards));
        }
        match self.tables[towards].as_ref().map_or(NOWHERE, |table| table[from.0 as usize]) {
            NOWHERE => Found::Nowhere,
            set => Found::Set(set),
        }
    }

    /// Shortest paths from all nodes to one. What can't be reached over links that are up has the way that it would have
    /// if all were.
    fn table(&mut self, to: usize) -> Box<[u32]> {
        let up = self.costs(to, |way| way.is_up);
        let all = match self.down.is_empty() {
            true => None,
            false => Some(self.costs(to, |_| true)),
        };
        let nodes = 0..self.routers.len();
        let next = nodes.map(|node| {
            if node == to {
                return NOWHERE;
            }
            match &all {
                Some(all) if up[node] == UNREACHED => self.best(node, to, all, |_| true),
                _ => self.best(node, to, &up, |way| way.is_up),
            }
        });
        next.collect()
    }

    /// What paths from all nodes to one cost (Dijkstra's, from the destination: links lead both ways).
    fn costs(&self, to: usize, usable: impl Fn(&Way) -> bool) -> Vec<Cost> {
        let mut costs = vec![UNREACHED; self.routers.len()];
        costs[to] = (0, 0);
        let mut heap = BinaryHeap::from([Reverse(((0, 0), to))]);
        while let Some(Reverse((cost, node))) = heap.pop() {
            if cost > costs[node] || !self.passes(node, to) {
                continue;
            }
            for hop in self.range(node).filter(|hop| usable(&self.ways[*hop])) {
                let next = self.hops[hop].to.node.0 as usize;
                let cost = self.ways[hop].further(cost);
                if cost < costs[next] {
                    costs[next] = cost;
                    heap.push(Reverse((cost, next)));
                }
            }
        }
        costs
    }

    /// Whether paths to `to` may lead over a node, or end there.
    fn passes(&self, node: usize, to: usize) -> bool {
        node == to || self.routers[node]
    }

    /// The set of a node's neighbours over which it costs least; the first of them alone if one way is to be used.
    fn best(&mut self, node: usize, to: usize, costs: &[Cost], usable: impl Fn(&Way) -> bool) -> u32 {
        let range = self.range(node);
        let over = |hop: usize| self.hops[hop].to.node.0 as usize;
        let ways = range
            .clone()
            .filter(|hop| usable(&self.ways[*hop]) && self.passes(over(*hop), to) && costs[over(*hop)] != UNREACHED);
        let cost = |hop: usize| self.ways[hop].further(costs[over(hop)]);
        let Some(least) = ways.clone().map(cost).min() else { return NOWHERE };
        let most = if self.multipath == Multipath::Single { 1 } else { usize::MAX };
        let best = ways.filter(|hop| cost(*hop) == least).map(|hop| (hop - range.start) as u32).take(most);
        let set = best.collect();
        self.sets.number(set)
    }

    /// Makes the sets of static routes: those of their ways that are up.
    fn fix(&mut self) {
        self.fixed.clear();
        let most = if self.multipath == Multipath::Single { 1 } else { usize::MAX };
        for ((node, to), via) in &self.given {
            let range = self.starts[*node as usize] as usize..self.starts[*node as usize + 1] as usize;
            let fits = |hop: &usize| self.ways[*hop].is_up && via.contains(&self.hops[*hop].to.node);
            let set: Vec<u32> = range.clone().filter(fits).map(|hop| (hop - range.start) as u32).take(most).collect();
            if !set.is_empty() {
                self.fixed.insert((*node, *to), self.sets.number(set));
            }
        }
    }
}

impl Way {
    fn further(&self, cost: Cost) -> Cost {
        (cost.0 + u64::from(self.metric), cost.1.saturating_add(self.delay))
    }
}

/// What is next.
enum Found {
    Nowhere,
    /// The destination itself, behind its only neighbour.
    Last(Hop),
    /// One of a set of neighbours.
    Set(u32),
}

/// Sets of numbers, each once.
#[derive(Default)]
struct Sets {
    list: Vec<Box<[u32]>>,
    numbers: BTreeMap<Box<[u32]>, u32>,
}

impl Sets {
    fn number(&mut self, set: Vec<u32>) -> u32 {
        let set = set.into_boxed_slice();
        if let Some(number) = self.numbers.get(&set) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(set.clone());
        self.numbers.insert(set, number);
        number
    }
}

fn there_and_back(network: &Network, links: &[LinkIndex]) -> i64 {
    let directions = links.iter().flat_map(|link| &network.link(*link).directions);
    directions.fold(0, |sum: i64, direction| sum.saturating_add(nanoseconds(direction.delay)))
}

/// The addressed ports that a frame out of a port reaches, through whatever forwards Ethernet frames, with the links on
/// the way of least delay there and back; in order of node and port.
fn reachable(network: &Network, from: PortPlace) -> Vec<(PortPlace, Vec<LinkIndex>)> {
    let mut found = BTreeMap::new();
    let mut crossed = BTreeSet::new();
    // By the delay up to the far end of the link: what is crossed first is crossed on the fastest way.
    let over = |delay: i64, links: &[LinkIndex], out: PortPlace| {
        let &(link, end) = network.node(out.node).ports.get(usize::from(out.port.0).checked_sub(1)?)?;
        let delay = delay.saturating_add(there_and_back(network, &[link]));
        let links = [links, &[link]].concat();
        Some(Reverse((delay, network.link(link).ends[1 - end], links)))
    };
    let mut heap: BinaryHeap<_> = over(0, &[], from).into_iter().collect();
    while let Some(Reverse((delay, there, links))) = heap.pop() {
        if network.node(there.node).is_addressed() {
            if there.node != from.node {
                found.entry(there).or_insert(links);
            }
        } else if crossed.insert(there.node) {
            // Out of all others of its ports.
            for port in (1..=network.node(there.node).ports.len() as u16).map(Port).filter(|port| *port != there.port) {
                heap.extend(over(delay, &links, PortPlace { node: there.node, port }));
            }
        }
    }
    found.into_iter().collect()
}
