//! Nodes: those of the topology, those of the file, their addresses.

use super::names::{Index, check_name};
use super::{MOST_NODES, Reader};
use crate::description::values::{Run, Word};
use crate::description::{self, File, NodeKind, Topology, TopologyKind};
use crate::model::{self, FunctionNode, LinkIndex, Node};
use crate::topology::{Made, Shape};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use weftwire_core::Time;

/// Keys that only some kinds have.
const OF_HOSTS: [&str; 2] = ["commands", "parameters"];
const OF_FUNCTIONS: [&str; 7] = ["image", "rules", "format", "engine", "transparent", "parameters", "trace"];
/// What a subscription switch has no use for.
const OF_MACHINES: [&str; 4] = ["image", "engine", "parameters", "trace"];

const PARAMETERS: [&str; 8] = ["pairs", "hops", "length", "leaves", "k", "nodes", "degree", "hosts"];

/// A node without its ports.
pub struct Draft<'a> {
    pub kind: NodeKind,
    given: Option<&'a description::Node>,
}

impl Reader<'_> {
    /// What the topology makes; `None` if its parameters are wrong.
    pub fn topology(&mut self, topology: Option<&Topology>, seed: u64) -> Option<Made> {
        let Some(topology) = topology else { return Some(Made::default()) };
        let places = &topology.places;
        let mut allowed = match topology.kind {
            TopologyKind::Dumbbell => vec!["pairs", "access", "bottleneck"],
            TopologyKind::ParkingLot => vec!["hops", "access", "bottleneck"],
            TopologyKind::Chain => vec!["length", "access", "core"],
            TopologyKind::Star => vec!["leaves", "access"],
            TopologyKind::FatTree => vec!["k", "access", "core"],
            TopologyKind::AsGraph => vec!["nodes", "degree", "hosts", "seed", "access", "core"],
        };
        allowed.push("kind");
        let all: Vec<&str> = PARAMETERS.into_iter().chain(["seed", "access", "bottleneck", "core"]).collect();
        places.only(&format!("a {}", topology.kind.word()), &all, &allowed, self.problems);
        let mut parameter = |key: &str, value: Option<u32>, least: u32| match value {
            Some(value) if value >= least => Some(value),
            Some(_) => {
                self.problems.error(places.value(key), format!("`{key}` must be at least {least}"));
                None
            }
            None => {
                let help = format!("add `{key} = {}`", least.max(4));
                self.problems.error_help(places.span, format!("`{key}` is missing"), help);
                None
            }
        };
        let shape = match topology.kind {
            TopologyKind::Dumbbell => Shape::Dumbbell { pairs: parameter("pairs", topology.pairs, 1)? },
            TopologyKind::ParkingLot => Shape::ParkingLot { hops: parameter("hops", topology.hops, 1)? },
            TopologyKind::Chain => Shape::Chain { length: parameter("length", topology.length, 0)? },
            TopologyKind::Star => Shape::Star { leaves: parameter("leaves", topology.leaves, 1)? },
            TopologyKind::FatTree => {
                let k = parameter("k", topology.k, 2)?;
                if k % 2 == 1 {
                    self.problems.error(places.value("k"), "`k` must be even");
                    return None;
                }
                Shape::FatTree { k }
            }
            TopologyKind::AsGraph => {
                let degree = parameter("degree", topology.degree.or(Some(2)), 1)?;
                if degree > 64 {
                    self.problems.error(places.value("degree"), "`degree` must be at most 64");
                    return None;
                }
                let nodes = parameter("nodes", topology.nodes, degree + 1)?;
                let seed = model::topology_seed(topology.seed.unwrap_or(seed));
                Shape::AsGraph { nodes, degree, hosts: topology.hosts, seed }
            }
        };
        // The links of each shape are at most 65 times its nodes and far fewer but for AS graphs of high degree.
        let links = match shape {
            Shape::AsGraph { nodes, degree, .. } => u64::from(nodes) * u64::from(degree),
            Shape::FatTree { k } => u64::from(k).saturating_pow(3) / 2,
            _ => 0,
        };
        if shape.node_count() > MOST_NODES as u64 || links + shape.node_count() > super::MOST_LINKS as u64 {
            self.problems.error(places.span, format!("this makes more than {MOST_NODES} nodes or a million links"));
            return None;
        }
        Some(shape.make())
    }

    /// The nodes of topology and file, by index.
    pub fn node_drafts<'f>(&mut self, made: &Made, file: &'f File) -> Option<(Vec<Draft<'f>>, Index)> {
        let mut names = Index::default();
        let mut drafts = Vec::new();
        for node in &made.nodes {
            names.add(&node.name);
            drafts.push(Draft { kind: if node.router { NodeKind::Router } else { NodeKind::Host }, given: None });
        }
        let given = file.nodes.as_ref().map_or(&[][..], |nodes| &nodes.0);
        if made.nodes.len() + given.len() > MOST_NODES {
            self.problems.error(file.places.value("nodes"), format!("there are more than {MOST_NODES} nodes"));
            return None;
        }
        for (word, node) in given {
            check_name(word, "node", 32, self.problems);
            let index = names.get(&word.text).unwrap_or_else(|| {
                names.add(&word.text);
                drafts.push(Draft { kind: NodeKind::Host, given: None });
                drafts.len() - 1
            });
            drafts[index].kind = node.kind.unwrap_or(drafts[index].kind);
            drafts[index].given = Some(node);
        }
        if drafts.is_empty() {
            let span = file.places.value("nodes");
            self.problems.error_help(span, "the network has no nodes", "add [nodes.NAME] tables or a [topology]");
            return None;
        }
        Some((drafts, names))
    }

    /// Nodes with addresses and ports.
    pub fn finish_nodes(
        &mut self,
        drafts: Vec<Draft>,
        names: &Index,
        ports: Vec<Vec<(LinkIndex, usize)>>,
    ) -> Vec<Node> {
        let given = |key: fn(&description::Node) -> Option<&Word>| {
            drafts.iter().map(|draft| draft.given.and_then(key)).collect::<Vec<_>>()
        };
        let ipv4 = self.addresses(&given(|node| node.ipv4.as_ref()), "10.0.0.1", |number| {
            Ipv4Addr::from_bits(0x0a00_0000 + number as u32)
        });
        let ipv6 = self.addresses(&given(|node| node.ipv6.as_ref()), "fd77::1", |number| {
            Ipv6Addr::from_bits((0xfd77 << 112) + number as u128)
        });
        let mut nodes = Vec::with_capacity(drafts.len());
        for (index, (draft, ports)) in drafts.iter().zip(ports).enumerate() {
            let name = &names.names[index];
            if let (true, Some(node)) = (ports.is_empty(), draft.given) {
                let warning = weftwire_text::Diagnostic::warning(node.places.span, format!("`{name}` has no link"));
                self.problems.add(warning);
            }
            let kind = self.kind(draft, ports.len());
            nodes.push(Node { name: name.clone(), kind, ipv4: ipv4[index], ipv6: ipv6[index], ports });
        }
        nodes
    }

    /// What a node is, with the keys of its kind.
    fn kind(&mut self, draft: &Draft, ports: usize) -> model::NodeKind {
        if let Some(node) = draft.given {
            let all: Vec<&str> = ["commands"].into_iter().chain(OF_FUNCTIONS).collect();
            let allowed: &[&str] = match draft.kind {
                NodeKind::Host => &OF_HOSTS,
                NodeKind::Function => &OF_FUNCTIONS,
                _ => &[],
            };
            node.places.only(&format!("a {}", draft.kind.word()), &all, allowed, self.problems);
        }
        match draft.kind {
            NodeKind::Host => {
                let commands = draft.given.and_then(|node| node.commands.as_deref()).unwrap_or_default();
                let commands = commands.iter().map(|command| self.command(command)).collect();
                model::NodeKind::Host { commands, parameters: parameters(draft.given) }
            }
            NodeKind::Source => model::NodeKind::Host { commands: Vec::new(), parameters: BTreeMap::new() },
            NodeKind::Router => model::NodeKind::Router,
            NodeKind::Switch => model::NodeKind::Switch,
            NodeKind::Sink => model::NodeKind::Sink,
            NodeKind::Echo => model::NodeKind::Echo,
            NodeKind::Function => model::NodeKind::Function(self.function(draft.given, ports)),
        }
    }

    fn function(&mut self, node: Option<&description::Node>, ports: usize) -> FunctionNode {
        let text = |word: Option<&Word>| word.map(|word| word.text.clone());
        let mut image = text(node.and_then(|node| node.image.as_ref()));
        let format = text(node.and_then(|node| node.format.as_ref()));
        if let Some(node) = node {
            match (&node.rules, &node.format) {
                (Some(rules), Some(_)) => {
                    node.places.only("a function with `rules`", &OF_MACHINES, &[], self.problems);
                    image = Some(rules.text.clone());
                }
                (Some(_), None) => {
                    let help = "add `format = \"FILE.p4\"`, relative to this file";
                    self.problems.error_help(node.places.value("rules"), "`rules` need a `format`", help);
                }
                (None, Some(_)) => {
                    let help = "add `rules = \"FILE\"`, relative to this file";
                    self.problems.error_help(node.places.value("format"), "a `format` is of `rules`", help);
                }
                (None, None) if image.as_ref().is_none_or(String::is_empty) => {
                    let help = "add `image = \"FILE.xl\"`, relative to this file, or `rules` and `format`";
                    self.problems.error_help(node.places.value("image"), "a function needs an `image`", help);
                }
                (None, None) => {}
            }
        }
        FunctionNode {
            image: image.unwrap_or_default(),
            format,
            engine: node.and_then(|node| node.engine.clone()).unwrap_or_else(|| "reference".into()),
            parameters: parameters(node),
            transparent: node.and_then(|node| node.transparent).unwrap_or(ports > 1),
            trace: node.and_then(|node| node.trace).unwrap_or(false),
        }
    }

    fn command(&mut self, command: &description::Command) -> model::Command {
        let words: Vec<String> = match &command.run {
            Run::Line(line) => line.split_whitespace().map(str::to_owned).collect(),
            Run::Words(words) => words.clone(),
        };
        if words.first().is_none_or(String::is_empty) {
            self.problems.error(command.places.value("run"), "the command names no program");
        }
        model::Command { words, at: command.at.map_or(Time::ZERO, |at| at.time()) }
    }

    /// An address for each node: the given one, else that of its number from 1, else the first free one behind.
    fn addresses<A: Address>(&mut self, given: &[Option<&Word>], example: &str, make: impl Fn(usize) -> A) -> Vec<A> {
        let mut taken: BTreeMap<A, usize> = BTreeMap::new();
        let mut addresses: Vec<Option<A>> = Vec::with_capacity(given.len());
        for (index, word) in given.iter().enumerate() {
            let address = word.and_then(|word| {
                let Some(address) = word.text.parse::<A>().ok().filter(|address| address.is_usable()) else {
                    let message = format!("`{}` is not the address of a node", word.text);
                    self.problems.error_help(word.span, message, format!("write one such as {example}"));
                    return None;
                };
                if taken.insert(address, index).is_some() {
                    self.problems.error(word.span, format!("{} is another node's address already", word.text));
                }
                Some(address)
            });
            addresses.push(address);
        }
        let mut behind = given.len();
        let fill = |(index, address): (usize, Option<A>)| {
            address.unwrap_or_else(|| {
                let mut candidate = make(index + 1);
                while taken.contains_key(&candidate) {
                    behind += 1;
                    candidate = make(behind);
                }
                candidate
            })
        };
        addresses.into_iter().enumerate().map(fill).collect()
    }
}

fn parameters(node: Option<&description::Node>) -> BTreeMap<String, String> {
    let given = node.and_then(|node| node.parameters.clone()).unwrap_or_default();
    given.0.into_iter().map(|(name, value)| (name, value.0)).collect()
}

/// An IPv4 or IPv6 address.
trait Address: Copy + Ord + FromStr {
    /// Whether a node may have it.
    fn is_usable(self) -> bool;
}

impl Address for Ipv4Addr {
    fn is_usable(self) -> bool {
        !(self.is_unspecified() || self.is_loopback() || self.is_multicast() || self.octets()[0] >= 240)
            && self.octets()[0] != 0
    }
}

impl Address for Ipv6Addr {
    fn is_usable(self) -> bool {
        !(self.is_unspecified() || self.is_loopback() || self.is_multicast() || self.is_unicast_link_local())
    }
}
