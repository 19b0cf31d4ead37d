//! What the routing's tests share: a filter, networks, and the definition of who gets what.
#![allow(dead_code, reason = "tests of targets use a part")]

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use weftwire_route::*;

pub const FIELDS: usize = 2;
pub const VALUES: u64 = 30;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Operator {
    Equal,
    Above,
    Below,
    /// Not equal, and asked by the last switch alone.
    NotAtLast,
}

/// A conjunction of comparisons of a field and a constant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Conjunction(pub Vec<(usize, Operator, u64)>);

pub type Message = [u64; FIELDS];

impl Filter for Conjunction {
    type Message = Message;

    fn everything() -> Self {
        Conjunction(Vec::new())
    }

    fn relaxed(&self, unit: u64) -> Self {
        let unit = unit.max(1);
        let relax = |(field, operator, constant): &(usize, Operator, u64)| {
            let constant = match operator {
                Operator::Equal | Operator::NotAtLast => *constant,
                Operator::Above => constant / unit * unit,
                Operator::Below => constant.div_ceil(unit) * unit,
            };
            (*field, *operator, constant)
        };
        Conjunction(self.0.iter().filter(|(_, operator, _)| *operator != Operator::NotAtLast).map(relax).collect())
    }

    fn matches(&self, message: &Message) -> bool {
        self.0.iter().all(|(field, operator, constant)| match operator {
            Operator::Equal => message[*field] == *constant,
            Operator::NotAtLast => message[*field] != *constant,
            Operator::Above => message[*field] > *constant,
            Operator::Below => message[*field] < *constant,
        })
    }
}

/// Any, or one of a few, so that hosts share some.
pub fn filter() -> impl Strategy<Value = Conjunction> {
    let operator = prop_oneof![Just(Operator::Equal), Just(Operator::Above), Just(Operator::Below)];
    let few = (0usize..2, 1u64..3).prop_map(|(field, tens)| Conjunction(vec![(field, Operator::Above, 10 * tens)]));
    prop_oneof![prop::collection::vec((0..FIELDS, operator, 0..VALUES), 1..3).prop_map(Conjunction), few]
}

pub fn message() -> impl Strategy<Value = Message> {
    [0..VALUES, 0..VALUES]
}

pub type Subscriptions = Vec<(HostId, Conjunction)>;

pub fn subscriptions(hosts: usize, most: usize) -> impl Strategy<Value = Subscriptions> {
    prop::collection::vec(((0..hosts as u32).prop_map(HostId), filter()), 0..most)
}

/// A hierarchy that packets can go up and down in: a fat tree, leaves and spines, aggregation and core fully meshed, or a
/// tree of four layers with some switches twice.
pub fn regular() -> impl Strategy<Value = Topology> {
    prop_oneof![
        prop::sample::select(vec![2u32, 4]).prop_map(|k| fat_tree(k).unwrap()),
        (1usize..5, 1usize..4, 1usize..3).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        (1usize..4, 1usize..4, 1usize..5).prop_map(|(pods, middles, cores)| meshed_core(pods, middles, cores)),
        (1usize..4, 1usize..3).prop_map(|(width, copies)| four_layers(width, copies)),
    ]
}

pub struct Sketch {
    nodes: Vec<Node>,
    links: Vec<[usize; 2]>,
    layers: Vec<u16>,
}

impl Sketch {
    pub fn new() -> Self {
        Sketch { nodes: Vec::new(), links: Vec::new(), layers: Vec::new() }
    }

    pub fn switch(&mut self, layer: u16) -> usize {
        self.layers.push(layer);
        self.nodes.push(Node::switch(format!("s{}", self.nodes.len())));
        self.nodes.len() - 1
    }

    pub fn host(&mut self, switch: usize) {
        self.nodes.push(Node::host(format!("h{}", self.nodes.len())));
        self.links.push([self.nodes.len() - 1, switch]);
    }

    pub fn link(&mut self, one: usize, two: usize) {
        self.links.push([one, two]);
    }

    pub fn build(&self) -> Topology {
        Topology::new(&self.nodes, &self.links, Layers::Given(self.layers.clone())).unwrap()
    }
}

pub fn leaf_spine(leaves: usize, spines: usize, hosts: usize) -> Topology {
    let mut sketch = Sketch::new();
    let spines: Vec<usize> = (0..spines).map(|_| sketch.switch(1)).collect();
    for _ in 0..leaves {
        let leaf = sketch.switch(0);
        spines.iter().for_each(|spine| sketch.link(leaf, *spine));
        (0..hosts).for_each(|_| sketch.host(leaf));
    }
    sketch.build()
}

/// Each core is at each aggregation switch, so that two ways lead down to each pod.
pub fn meshed_core(pods: usize, middles: usize, cores: usize) -> Topology {
    let mut sketch = Sketch::new();
    let cores: Vec<usize> = (0..cores).map(|_| sketch.switch(2)).collect();
    for _ in 0..pods {
        let middles: Vec<usize> = (0..middles).map(|_| sketch.switch(1)).collect();
        for middle in &middles {
            cores.iter().for_each(|core| sketch.link(*core, *middle));
        }
        for _ in 0..2 {
            let edge = sketch.switch(0);
            middles.iter().for_each(|middle| sketch.link(*middle, edge));
            sketch.host(edge);
        }
    }
    sketch.build()
}

/// Hosts at all layers but the top, one link that skips a layer.
pub fn four_layers(width: usize, copies: usize) -> Topology {
    let mut sketch = Sketch::new();
    let top: Vec<usize> = (0..copies).map(|_| sketch.switch(9)).collect();
    for _ in 0..width {
        let third = sketch.switch(5);
        top.iter().for_each(|top| sketch.link(*top, third));
        sketch.host(third);
        for _ in 0..width {
            let second = sketch.switch(2);
            sketch.link(third, second);
            let edge = sketch.switch(0);
            sketch.link(second, edge);
            sketch.host(edge);
            sketch.host(edge);
        }
        let skipping = sketch.switch(0);
        sketch.link(third, skipping);
        sketch.host(skipping);
    }
    sketch.build()
}

/// Any connected network: layers, hosts and links as they come.
pub fn any_network(hierarchy: bool) -> impl Strategy<Value = Topology> {
    (2usize..9, 1usize..8).prop_flat_map(move |(switches, hosts)| {
        let layers = prop::collection::vec(0..if hierarchy { 4u16 } else { 1 }, switches);
        let spanning = prop::collection::vec(any::<prop::sample::Index>(), switches - 1);
        let more = prop::collection::vec((0..switches, 0..switches), 0..8);
        let hosts = prop::collection::vec(0..switches, hosts);
        (layers, spanning, more, hosts).prop_map(|(layers, spanning, more, hosts)| {
            let mut sketch = Sketch::new();
            layers.iter().for_each(|layer| {
                sketch.switch(*layer);
            });
            for (index, choice) in spanning.iter().enumerate() {
                sketch.link(index + 1, choice.index(index + 1));
            }
            more.iter().filter(|(one, two)| one != two).for_each(|(one, two)| sketch.link(*one, *two));
            hosts.iter().for_each(|switch| sketch.host(*switch));
            // A switch with nothing below is in no layer above the lowest.
            loop {
                match Topology::new(&sketch.nodes, &sketch.links, Layers::Given(sketch.layers.clone())) {
                    Ok(topology) => return topology,
                    Err(TopologyError::NothingBelow { switch, .. }) => {
                        let place = sketch.nodes.iter().position(|node| node.name == switch).unwrap();
                        sketch.layers[place] = 0;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        })
    })
}

pub fn settings(policy: Policy, units: Vec<u64>, trees: u32, seed: u64) -> Settings {
    let weight = if seed.is_multiple_of(2) { Weight::Uniform } else { Weight::DegreeProduct };
    Settings { policy, units, weight, ties: Ties::Seeded(seed), trees }
}

pub fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![Just(Policy::MemoryReduction), Just(Policy::TrafficReduction)]
}

pub fn elements(topology: &Topology) -> Vec<Element> {
    let links = (0..topology.links().len() as u32).map(|link| Element::Link(LinkId(link)));
    let switches = topology.switches().map(Element::Switch);
    links.chain(switches).chain(topology.hosts().map(Element::Access)).collect()
}

/// The hosts that a publisher can reach over what works.
pub fn reachable(topology: &Topology, failures: &Failures, publisher: HostId) -> BTreeSet<HostId> {
    let mut found = BTreeSet::new();
    if !failures.host_works(topology, publisher) {
        return found;
    }
    let mut open = vec![topology.access(publisher).0];
    let mut seen: BTreeSet<SwitchId> = open.iter().copied().collect();
    while let Some(switch) = open.pop() {
        found.extend(
            topology.hosts_at(switch).map(|(_, host)| host).filter(|host| failures.host_works(topology, *host)),
        );
        for (_, link, next) in topology.neighbours(switch) {
            if failures.link_works(topology, link) && seen.insert(next) {
                open.push(next);
            }
        }
    }
    found
}

/// Who is to get a message, ascending, by the definition.
pub fn receivers(
    topology: &Topology,
    failures: &Failures,
    subscriptions: &Subscriptions,
    publisher: HostId,
    message: &Message,
) -> Vec<HostId> {
    let reachable = reachable(topology, failures, publisher);
    let matching = subscriptions.iter().filter(|(_, filter)| filter.matches(message)).map(|(host, _)| *host);
    let found: BTreeSet<HostId> = matching.filter(|host| *host != publisher && reachable.contains(host)).collect();
    found.into_iter().collect()
}

pub fn sorted(mut hosts: Vec<HostId>) -> Vec<HostId> {
    hosts.sort_unstable();
    hosts
}

/// The different filters of each host.
pub fn by_host(subscriptions: &Subscriptions) -> BTreeMap<HostId, BTreeSet<Conjunction>> {
    let mut hosts: BTreeMap<HostId, BTreeSet<Conjunction>> = BTreeMap::new();
    for (host, filter) in subscriptions {
        hosts.entry(*host).or_default().insert(filter.clone());
    }
    hosts
}
