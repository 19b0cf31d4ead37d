//! Networks by hand, and surroundings that keep everything.
#![allow(clippy::disallowed_methods, reason = "reads the files of examples")]

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;
use weftwire_core::trace::TraceRecord;
use weftwire_core::{Function, Port, Ports, Time};
use weftwire_engine::EngineOptions;
use weftwire_lang::Dialect;
use weftwire_network::Network;
use weftwire_network::link::{LinkSettings, Queue, QueueLimit, Rate};
use weftwire_network::model::{
    FunctionNode, Link, LinkIndex, Node, NodeIndex, NodeKind, PortPlace, Routing, Traffic, TrafficKind, Transport,
};
use weftwire_network::results::{FlowResult, Results};
use weftwire_sim::network::{Progress, Surroundings, simulate};
use weftwire_text::{LoadError, Loader};

pub const MILLISECOND: i64 = 1_000_000;
pub const SECOND: i64 = 1_000_000_000;

/// So many nanoseconds after the start.
pub fn at(nanoseconds: i64) -> Time {
    Time::from_nanoseconds(nanoseconds)
}

/// So many nanoseconds.
pub fn lasting(nanoseconds: i64) -> Duration {
    Duration::from_nanos(nanoseconds.unsigned_abs())
}

/// An empty network that lasts so long.
pub fn network(duration: i64) -> Network {
    Network {
        name: "test".into(),
        seed: 1,
        duration: lasting(duration),
        sample_interval: Duration::from_millis(100),
        probes: Vec::new(),
        warm_up: Duration::ZERO,
        repetitions: 1,
        nodes: Vec::new(),
        links: Vec::new(),
        traffic: Vec::new(),
        changes: Vec::new(),
        captures: Vec::new(),
        routing: Routing::default(),
    }
}

pub fn host() -> NodeKind {
    NodeKind::Host { commands: Vec::new(), parameters: BTreeMap::new() }
}

pub fn function(image: &str, transparent: bool) -> NodeKind {
    NodeKind::Function(FunctionNode {
        image: image.into(),
        format: None,
        engine: "reference".into(),
        parameters: BTreeMap::new(),
        transparent,
        trace: false,
    })
}

pub trait Build {
    fn add_node(&mut self, name: &str, kind: NodeKind) -> NodeIndex;
    fn add_link(&mut self, ends: [NodeIndex; 2], settings: LinkSettings) -> LinkIndex;
    fn add(&mut self, ends: [NodeIndex; 2], transport: Transport, kind: TrafficKind) -> &mut Traffic;
}

impl Build for Network {
    fn add_node(&mut self, name: &str, kind: NodeKind) -> NodeIndex {
        let index = self.nodes.len() as u32;
        let [_, a, b, c] = (index + 1).to_be_bytes();
        self.nodes.push(Node {
            name: name.into(),
            kind,
            ipv4: [10, a, b, c].into(),
            ipv6: [0xfd00, 0, 0, 0, 0, 0, 0, index as u16 + 1].into(),
            ports: Vec::new(),
        });
        NodeIndex(index)
    }

    fn add_link(&mut self, ends: [NodeIndex; 2], settings: LinkSettings) -> LinkIndex {
        let index = LinkIndex(self.links.len() as u32);
        let places = [0, 1].map(|end| {
            let node = &mut self.nodes[ends[end].0 as usize];
            node.ports.push((index, end));
            PortPlace { node: ends[end], port: Port(node.ports.len() as u16) }
        });
        let name = format!("{}-{}", self.node(ends[0]).name, self.node(ends[1]).name);
        self.links.push(Link { name, ends: places, directions: [settings.clone(), settings], metric: 1, weight: 1 });
        index
    }

    fn add(&mut self, ends: [NodeIndex; 2], transport: Transport, kind: TrafficKind) -> &mut Traffic {
        let number = self.traffic.len();
        self.traffic.push(Traffic {
            name: format!("traffic{number}"),
            from: ends[0],
            to: ends[1],
            choices: None,
            start: Time::ZERO,
            stop: Time::ZERO.plus(self.duration),
            ipv6: false,
            transport,
            port: 5000 + number as u16,
            source_port: 10_000,
            congestion_control: None,
            dscp: 0,
            recovery: None,
            kind,
            seed: number as u64 + 77,
        });
        self.traffic.last_mut().expect("just added")
    }
}

/// A link of this rate and delay with room for so many packets.
pub fn wire(rate: u64, delay: i64, packets: u64) -> LinkSettings {
    LinkSettings {
        rate: Some(Rate::Constant(rate)),
        delay: lasting(delay),
        queue: Queue { limit: QueueLimit::Packets(packets), ..LinkSettings::default().queue },
        ..LinkSettings::default()
    }
}

/// Client, router, server; the bottleneck is behind the router.
pub fn path(duration: i64, bottleneck: LinkSettings) -> (Network, [NodeIndex; 3]) {
    let mut network = network(duration);
    let client = network.add_node("client", host());
    let router = network.add_node("router", NodeKind::Router);
    let server = network.add_node("server", host());
    network.add_link([client, router], wire(1_000_000_000, MILLISECOND, 1000));
    network.add_link([router, server], bottleneck);
    (network, [client, router, server])
}

/// Keeps everything.
#[derive(Default)]
pub struct Kept {
    pub frames: Vec<(i64, PortPlace, Vec<u8>, bool)>,
    pub captures: BTreeMap<String, Vec<(i64, Vec<u8>)>>,
    pub traces: Vec<(NodeIndex, TraceRecord)>,
    pub images: Vec<(NodeIndex, FunctionNode)>,
    /// End after so many calls of progress.
    pub patience: Option<u32>,
    pub made: u32,
}

/// The programs of a folder of the examples.
struct Examples<'a>(&'a str);

impl Loader for Examples<'_> {
    fn load(&self, name: &str, _: Option<&str>) -> Result<String, LoadError> {
        let path = format!("{}/../../examples/{}/{name}", env!("CARGO_MANIFEST_DIR"), self.0);
        Ok(std::fs::read_to_string(path)?)
    }
}

impl Surroundings for Kept {
    fn function(&mut self, node: NodeIndex, ports: &Ports, seed: u64) -> io::Result<Box<dyn Function>> {
        self.made += 1;
        let (_, function) = self.images.iter().find(|(index, _)| *index == node).expect("an image");
        let name = &function.image;
        let (folder, name) = name.rsplit_once('/').unwrap_or((".", name));
        let compilation = weftwire_lang::compile(name, Dialect::Xl, &Examples(folder));
        let image = compilation.image.expect("the example compiles").verify().expect("and verifies");
        let parameters: Vec<_> = function.parameters.clone().into_iter().collect();
        let image = weftwire_engine::parameter::apply(image, &parameters).map_err(io::Error::other)?;
        let options = EngineOptions { seed, ..EngineOptions::default() };
        weftwire_engine::make("reference", image, ports.clone(), options).map_err(io::Error::other)
    }

    fn capture(&mut self, file: &str) -> io::Result<Vec<(i64, Vec<u8>)>> {
        self.captures.get(file).cloned().ok_or_else(|| io::Error::other("no such capture"))
    }

    fn frame(&mut self, at: Time, place: PortPlace, bytes: &[u8], sent: bool) -> io::Result<()> {
        self.frames.push((at.nanoseconds(), place, bytes.to_vec(), sent));
        Ok(())
    }

    fn trace(&mut self, node: NodeIndex, record: &TraceRecord) -> io::Result<()> {
        self.traces.push((node, record.clone()));
        Ok(())
    }

    fn progress(&mut self, _: &Progress) -> ControlFlow<()> {
        match &mut self.patience {
            Some(0) => ControlFlow::Break(()),
            Some(left) => {
                *left -= 1;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Continue(()),
        }
    }
}

/// Runs it, with the images of its functions taken from the examples.
pub fn run_keeping(network: &Network, mut kept: Kept) -> (Results, Kept) {
    for (index, node) in network.nodes() {
        if let NodeKind::Function(function) = &node.kind {
            kept.images.push((index, function.clone()));
        }
    }
    let results = simulate(network, &mut kept).expect("it runs");
    (results, kept)
}

pub fn run(network: &Network) -> Results {
    run_keeping(network, Kept::default()).0
}

/// Packets that a node dropped for a reason.
pub fn dropped(results: &Results, node: &str, reason: &str) -> u64 {
    let drops = results.node_drops.iter();
    drops.filter(|(name, why, _)| name == node && why == reason).map(|(_, _, count)| count).sum()
}

/// It is complete and its data right.
pub fn assert_complete(flow: &FlowResult) {
    assert_eq!(flow.outcome, "complete", "{flow:?}");
    assert_eq!(Some(flow.delivered), flow.bytes, "{flow:?}");
}
