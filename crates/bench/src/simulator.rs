//! How fast the simulator is, and how much memory large networks take.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use anyhow::{Context as _, Result, bail, ensure};
use std::time::Duration;
use weftwire_core::trace::TraceRecord;
use weftwire_core::{Function, Port, Ports, Time};
use weftwire_network::Network;
use weftwire_network::link::{LinkSettings, Queue, QueueLimit, Rate};
use weftwire_network::model::{
    Link, LinkIndex, Node, NodeIndex, NodeKind, PortPlace, Routing, Traffic, TrafficKind, Transport,
};
use weftwire_network::results::Results;
use weftwire_network::traffic::{Gap, Size};
use weftwire_sim::network::{Progress, Surroundings, simulate};

const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;
const GIGABIT: u64 = 1_000_000_000;

/// Connections of the case `flows`: the first are complete before the last open, and still 100,000 are open at once.
const FLOWS: u64 = 110_000;
/// Nodes of the case `graph`.
const NODES: u32 = 10_000;

/// Runs all cases, or one, each in a process of its own when all, so that peak memory is its own.
pub fn measure(case: Option<&str>) -> Result<()> {
    let Some(case) = case else {
        for case in ["udp", "tcp", "flows", "graph"] {
            let status = std::process::Command::new(std::env::current_exe()?).args(["simulator", case]).status()?;
            ensure!(status.success(), "case {case} failed");
        }
        return Ok(());
    };
    let network = match case {
        "udp" => udp(),
        "tcp" => tcp(),
        "flows" => flows(),
        "graph" => graph(),
        other => bail!("there is no case `{other}`; there are: udp, tcp, flows, graph"),
    };
    let results = simulate(&network, &mut Nothing)?;
    let seconds = results.run.processor_seconds;
    let count = |outcome: &str| results.flows.iter().filter(|flow| flow.outcome == outcome).count();
    println!(
        "{case}: {:.2} M packet-hops/s ({} packet-hops, {} events, {seconds:.2} processor seconds for {:.1} s simulated), \
         {} of {} flows complete, {} running, at most {} at once, peak memory {} MiB",
        results.run.packet_hops as f64 / seconds / 1e6,
        results.run.packet_hops,
        results.run.events,
        results.run.lasted as f64 / 1e9,
        count("complete"),
        results.flows.len(),
        count("running"),
        most_at_once(&results),
        peak_memory()? >> 20,
    );
    for warning in &results.run.warnings {
        println!("  {warning}");
    }
    Ok(())
}

/// How many flows were open at once.
fn most_at_once(results: &Results) -> i64 {
    let ends = results.flows.iter().flat_map(|flow| [(flow.start, 1), (flow.end.unwrap_or(i64::MAX), -1)]);
    let mut ends: Vec<(i64, i64)> = ends.collect();
    ends.sort_unstable();
    let open = ends.iter().scan(0, |open, (_, change)| {
        *open += change;
        Some(*open)
    });
    open.max().unwrap_or(0)
}

/// Most bytes of memory that this process ever held.
fn peak_memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no peak memory")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes << 10)
}

struct Nothing;

impl Surroundings for Nothing {
    fn function(&mut self, _: NodeIndex, _: &Ports, _: u64) -> io::Result<Box<dyn Function>> {
        Err(io::Error::other("no functions here"))
    }

    fn capture(&mut self, _: &str) -> io::Result<Vec<(i64, Vec<u8>)>> {
        Ok(Vec::new())
    }

    fn frame(&mut self, _: Time, _: PortPlace, _: &[u8], _: bool) -> io::Result<()> {
        Ok(())
    }

    fn trace(&mut self, _: NodeIndex, _: &TraceRecord) -> io::Result<()> {
        Ok(())
    }

    fn progress(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// What the scheduler says: nanoseconds on a processor.
    fn processor_seconds(&mut self) -> f64 {
        let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
    }
}

fn empty(name: &str, duration: i64) -> Network {
    Network {
        name: name.into(),
        seed: 1,
        duration: Duration::from_nanos(duration as u64),
        sample_interval: Duration::from_secs(1),
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

fn add_node(network: &mut Network, kind: NodeKind) -> NodeIndex {
    let index = network.nodes.len() as u32;
    let [_, a, b, c] = (index + 1).to_be_bytes();
    let [d, e] = (index as u16 + 1).to_be_bytes();
    let mut ipv6 = [0; 16];
    (ipv6[0], ipv6[14], ipv6[15]) = (0xfd, d, e);
    network.nodes.push(Node {
        name: format!("n{index}"),
        kind,
        ipv4: [10, a, b, c].into(),
        ipv6: ipv6.into(),
        ports: Vec::new(),
    });
    NodeIndex(index)
}

fn add_link(network: &mut Network, ends: [NodeIndex; 2], rate: u64, delay: i64, packets: u64) {
    let index = LinkIndex(network.links.len() as u32);
    let settings = LinkSettings {
        rate: Some(Rate::Constant(rate)),
        delay: Duration::from_nanos(delay as u64),
        queue: Queue { limit: QueueLimit::Packets(packets), ..LinkSettings::default().queue },
        ..LinkSettings::default()
    };
    let places = [0, 1].map(|end| {
        let node = &mut network.nodes[ends[end].0 as usize];
        node.ports.push((index, end));
        PortPlace { node: ends[end], port: Port(node.ports.len() as u16) }
    });
    let name = format!("l{}", index.0);
    network.links.push(Link { name, ends: places, directions: [settings.clone(), settings], metric: 1, weight: 1 });
}

fn add_traffic(network: &mut Network, from: NodeIndex, to: NodeIndex, transport: Transport, kind: TrafficKind) {
    let number = network.traffic.len();
    network.traffic.push(Traffic {
        name: format!("t{number}"),
        from,
        to,
        choices: None,
        start: Time::ZERO,
        stop: Time::ZERO.plus(network.duration),
        ipv6: false,
        transport,
        port: 5000 + (number % 50_000) as u16,
        source_port: 10_000,
        congestion_control: None,
        dscp: 0,
        recovery: None,
        kind,
        seed: number as u64,
    });
}

fn host() -> NodeKind {
    NodeKind::Host { commands: Vec::new(), parameters: BTreeMap::new() }
}

/// `pairs` of hosts with a link of two routers between them.
fn dumbbell(duration: i64, pairs: usize, rate: u64, queue: u64) -> (Network, Vec<[NodeIndex; 2]>) {
    let mut network = empty("dumbbell", duration);
    let routers = [0, 1].map(|_| add_node(&mut network, NodeKind::Router));
    add_link(&mut network, routers, rate, 5 * MILLISECOND, queue);
    let ends = (0..pairs)
        .map(|_| {
            [0, 1].map(|side| {
                let end = add_node(&mut network, host());
                add_link(&mut network, [end, routers[side]], GIGABIT, MILLISECOND, 1000);
                end
            })
        })
        .collect();
    (network, ends)
}

/// Datagrams of 1000 bytes at random times, three links each.
fn udp() -> Network {
    let (mut network, ends) = dumbbell(60 * SECOND, 8, GIGABIT, 1000);
    for [from, to] in ends {
        let gap = Gap::Exponential(100_000.0);
        let kind = TrafficKind::Datagrams { gap, size: Size::Constant(1000), count: u64::MAX };
        add_traffic(&mut network, from, to, Transport::Udp, kind);
    }
    network
}

/// Bulk transfers that share a link.
fn tcp() -> Network {
    let (mut network, ends) = dumbbell(20 * SECOND, 8, GIGABIT, 1000);
    for [from, to] in ends {
        add_traffic(&mut network, from, to, Transport::Tcp, TrafficKind::Bulk { bytes: u64::MAX });
    }
    network
}

/// 100,000 connections at once, and some more in all.
fn flows() -> Network {
    let pairs = 10;
    let (mut network, ends) = dumbbell(30 * SECOND, pairs, 10 * GIGABIT, 100_000);
    for [from, to] in ends {
        // Each flow needs 8 s at its share of the link at least; all open within 2 s.
        let gap = Gap::Constant(2 * SECOND / (FLOWS as i64 / pairs as i64));
        let kind = TrafficKind::Flows { gap, size: Size::Constant(100_000), count: FLOWS / pairs as u64 };
        add_traffic(&mut network, from, to, Transport::Tcp, kind);
    }
    network
}

/// A random graph in which each new node is linked to two old ones, the much linked more often (Barabási and Albert 1999): a
/// fifth of the nodes are routers, the others hosts at random ones.
fn graph() -> Network {
    let mut network = empty("graph", 10 * SECOND);
    let mut state = 7_u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let routers: Vec<NodeIndex> = (0..NODES / 5).map(|_| add_node(&mut network, NodeKind::Router)).collect();
    let mut linked = vec![routers[0]];
    for router in &routers[1..] {
        let mut others = [linked[below(linked.len())], linked[below(linked.len())]].to_vec();
        others.dedup();
        for other in others {
            add_link(&mut network, [*router, other], 10 * GIGABIT, MILLISECOND, 1000);
            linked.extend([*router, other]);
        }
    }
    let hosts: Vec<NodeIndex> = (0..NODES - NODES / 5)
        .map(|_| {
            let end = add_node(&mut network, host());
            add_link(&mut network, [end, routers[below(routers.len())]], GIGABIT, MILLISECOND, 1000);
            end
        })
        .collect();
    for (index, from) in hosts.iter().enumerate() {
        let to = hosts[(index + hosts.len() / 2) % hosts.len()];
        let kind = TrafficKind::Datagrams {
            gap: Gap::Exponential(20.0 * MILLISECOND as f64),
            size: Size::Constant(500),
            count: u64::MAX,
        };
        add_traffic(&mut network, *from, to, Transport::Udp, kind);
    }
    network
}
