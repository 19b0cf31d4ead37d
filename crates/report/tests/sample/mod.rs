//! A network and results of it as a run could give them: made up, but with the shapes of real ones.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use weftwire_core::inspect::Counters;
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_core::{FlowId, Port, Time, nanoseconds};
use weftwire_network::Network;
use weftwire_network::link::{Counts, LinkSettings, Rate};
use weftwire_network::model::{FunctionNode, Link, LinkIndex, Node, NodeIndex, NodeKind, PortPlace, Routing};
use weftwire_network::results::{FlowProgress, FlowResult, Lateness, LinkResult, LinkSample, Results, RunFacts};
use weftwire_report::agreement::Run;

const SECOND: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;

/// A network of named nodes (`name!image` runs a function, `name+` is a router) and links: name, ends, rate, delay.
pub fn network(name: &str, nodes: &[&str], links: &[(&str, usize, usize, u64, i64)]) -> Network {
    let node = |index: usize, text: &str| {
        let (name, kind) = match text.split_once('!') {
            Some((name, image)) => {
                let function = FunctionNode {
                    image: format!("examples/{image}.xl"),
                    format: None,
                    engine: "reference".into(),
                    parameters: BTreeMap::new(),
                    transparent: true,
                    trace: true,
                };
                (name, NodeKind::Function(function))
            }
            None if text.ends_with('+') => (&text[..text.len() - 1], NodeKind::Router),
            None => (text, NodeKind::Host { commands: Vec::new(), parameters: BTreeMap::new() }),
        };
        Node {
            name: name.into(),
            kind,
            ipv4: Ipv4Addr::new(10, 0, (index / 250) as u8, (index % 250 + 1) as u8),
            ipv6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, index as u16 + 1),
            ports: Vec::new(),
        }
    };
    let mut nodes: Vec<Node> = nodes.iter().enumerate().map(|(index, text)| node(index, text)).collect();
    let mut all = Vec::new();
    for (index, (name, a, b, rate, delay)) in links.iter().enumerate() {
        let mut end = |node: usize, side: usize| {
            nodes[node].ports.push((LinkIndex(index as u32), side));
            PortPlace { node: NodeIndex(node as u32), port: Port(nodes[node].ports.len() as u16) }
        };
        let ends = [end(*a, 0), end(*b, 1)];
        let settings = LinkSettings {
            rate: Some(Rate::Constant(*rate)),
            delay: Duration::from_nanos(delay.unsigned_abs()),
            ..LinkSettings::default()
        };
        all.push(Link { name: (*name).into(), ends, directions: [settings.clone(), settings], metric: 1, weight: 1 });
    }
    Network {
        name: name.into(),
        seed: 7,
        duration: Duration::from_secs(20),
        sample_interval: Duration::from_millis(20),
        probes: Vec::new(),
        warm_up: Duration::ZERO,
        repetitions: 1,
        nodes,
        links: all,
        traffic: Vec::new(),
        changes: Vec::new(),
        captures: Vec::new(),
        routing: Routing::default(),
    }
}

/// Three senders and three receivers at the ends of one slow link, with a proxy in front of it.
pub fn dumbbell() -> Network {
    let nodes = ["alice", "bob", "carol", "left+", "proxy!syn-proxy", "right+", "dave", "erin", "frank"];
    let fast = 100_000_000;
    let links = [
        ("alice-left", 0, 3, fast, MS),
        ("bob-left", 1, 3, fast, MS),
        ("carol-left", 2, 3, fast, 2 * MS),
        ("left-proxy", 3, 4, fast, 0),
        ("bottleneck", 4, 5, 10_000_000, 20 * MS),
        ("right-dave", 5, 6, fast, MS),
        ("right-erin", 5, 7, fast, MS),
        ("right-frank", 5, 8, fast, 500_000),
    ];
    network("dumbbell", &nodes, &links)
}

/// Noise from 0 to 1 that is the same each time.
pub fn noise(number: u64) -> f64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 40) as f64 / (1_u64 << 24) as f64
}

/// Results of a network: `slow` is the index of its busy link, which fills its queue like a saw.
pub fn results(network: &Network, slow: usize, flow_count: u64) -> Results {
    let mut results = Results {
        run: RunFacts {
            network: network.name.clone(),
            platform: "simulator".into(),
            seed: network.seed,
            duration: nanoseconds(network.duration),
            lasted: nanoseconds(network.duration),
            packet_hops: 412_345,
            events: 1_234_567,
            processor_seconds: 0.21,
            warnings: vec!["traffic `web` & co: more than 100,000 flows were cut".into()],
            ..RunFacts::default()
        },
        ..Results::default()
    };
    for (index, link) in network.links() {
        for direction in 0..2 {
            let busy = index.0 as usize == slow && direction == 0;
            results.links.push(direction_result(network, link, direction, busy));
            sample(&mut results, network, busy);
        }
    }
    flows(&mut results, flow_count);
    results.functions.push(("proxy".into(), counters()));
    results.node_drops.push(("left".into(), "ttl_expired".into(), 3));
    results.progress.push(sawtooth(0));
    results
}

fn direction_result(network: &Network, link: &Link, direction: usize, busy: bool) -> LinkResult {
    let rate = match &link.directions[direction].rate {
        Some(Rate::Constant(rate)) => Some(*rate),
        _ => None,
    };
    let share = if busy { 0.94 } else { 0.02 + 0.01 * direction as f64 };
    let bytes = (rate.unwrap_or(0) as f64 / 8.0 * share * network.duration.as_secs_f64()) as u64;
    let counts = Counts {
        offered_packets: bytes / 1_400 + 60,
        offered_bytes: bytes + 84_000,
        delivered_packets: bytes / 1_400,
        delivered_bytes: bytes,
        lost: if busy { 12 } else { 0 },
        dropped_full: if busy { 48 } else { 0 },
        marked: if busy { 5 } else { 0 },
        served: bytes / 1_400,
        waited_sum: u128::from(bytes / 1_400) * if busy { 31_000_000 } else { 4_000 },
        waited_max: if busy { 61_000_000 } else { 120_000 },
        busy: (share * network.duration.as_nanos() as f64) as u128,
        queue_packets_max: if busy { 50 } else { 3 },
        queue_bytes_max: if busy { 75_700 } else { 4_500 },
        queue_bytes_integral: network.duration.as_nanos() * if busy { 38_000 } else { 12 },
        ..Counts::default()
    };
    LinkResult {
        link: link.name.clone(),
        from: network.place_name(link.ends[direction]),
        to: network.place_name(link.ends[1 - direction]),
        rate,
        counts,
    }
}

fn sample(results: &mut Results, network: &Network, busy: bool) {
    let link = results.links.len() - 1;
    let rate = results.links[link].counts.delivered_bytes as f64 / (network.duration.as_secs_f64());
    let mut queue = 0.0;
    for index in 1..=nanoseconds(network.duration) / nanoseconds(network.sample_interval) {
        let chance = noise(index as u64 * 31 + link as u64);
        queue = if queue > 74_000.0 { 20_000.0 } else { queue + 900.0 * chance };
        let interval = network.sample_interval.as_secs_f64();
        results.samples.push(LinkSample {
            link,
            at: index * nanoseconds(network.sample_interval),
            delivered_bytes: (rate * interval * if busy { 1.0 } else { 2.0 * chance }) as u64,
            queue_packets: if busy { queue as u64 / 1_514 } else { 0 },
            queue_bytes: if busy { queue as u64 } else { 0 },
            drops: u64::from(busy && queue > 74_000.0),
            marks: 0,
        });
    }
}

fn flows(results: &mut Results, count: u64) {
    for number in 0..count {
        let web = number % 5 != 0;
        let start = number as i64 * 15 * SECOND / count.max(1) as i64;
        let bytes = if web { (2_000.0 / (1.001 - noise(number))) as u64 } else { 250_000 };
        let took = 42 * MS + (bytes as f64 * 8e9 / (2e6 + 3e6 * noise(number + 900))) as i64;
        let end = (start + took < results.run.lasted).then_some(start + took);
        results.flows.push(FlowResult {
            traffic: if web { "web <b>" } else { "bulk" }.into(),
            number,
            from: if web { "alice" } else { "bob" }.into(),
            to: "dave".into(),
            transport: "tcp".into(),
            start,
            first_byte: Some(start + 42 * MS),
            end,
            bytes: Some(bytes),
            delivered: if end.is_some() { bytes } else { bytes / 2 },
            packets: Some(bytes / 1_460 + 1),
            retransmissions: Some(if noise(number + 77) > 0.9 { 2 } else { 0 }),
            lost: None,
            rtt_samples: 4,
            rtt_min: Some(43 * MS),
            rtt_mean: Some(43 * MS + (40e6 * noise(number + 5)) as i64),
            rtt_max: Some(105 * MS),
            outcome: if end.is_some() { "complete" } else { "running" }.into(),
            ..FlowResult::default()
        });
    }
}

fn counters() -> Counters {
    Counters {
        frames_in: 41_234,
        frames_out: 41_100,
        flows_created: 300,
        flows_peak: 21,
        rows: vec![("listen: packet, row 1".into(), 300), ("open: packet, row 4".into(), 40_000)],
        drops: BTreeMap::from([("no_flow_key".into(), 12)]),
        ..Counters::default()
    }
}

/// A transfer with a window that is halved now and then, and a segment repeated each time.
pub fn sawtooth(flow: usize) -> FlowProgress {
    let mut progress = FlowProgress { flow, ..FlowProgress::default() };
    let (mut at, mut byte, mut window) = (0, 0_u64, 2_u64);
    while at < 10 * SECOND {
        for segment in 0..window {
            let sent = at + segment as i64 * 1_168_000;
            progress.sent.push((sent, byte, 1_460, false));
            byte += 1_460;
            progress.acknowledged.push((sent + 45 * MS, byte));
        }
        at += (50 * MS).max(window as i64 * 1_168_000);
        window += 1;
        if window > 70 {
            progress.sent.push((at, byte - 35 * 1_460, 1_460, true));
            at += 60 * MS;
            window /= 2;
        }
    }
    progress.sent.sort_unstable();
    progress.acknowledged.sort_unstable();
    progress
}

/// A run that was too late.
pub fn late() -> Lateness {
    Lateness { packets: 412_345, p50: 40_000, p99: 2_300_000, worst: 9_000_000, allowed: 500_000, late: true }
}

/// A simulated and a real run of a stop-and-wait transfer; the real one has a lost acknowledgment more, and some jitter.
pub fn two_runs() -> (Run, Run) {
    let network = network("arq", &["sender!arq-sender", "receiver!arq-receiver"], &[("wire", 0, 1, 1_000_000, 5 * MS)]);
    let run = |real: bool| {
        let mut results = results(&network, 0, 0);
        results.run.platform = if real { "linux" } else { "simulator" }.into();
        results.run.lateness = real.then(|| Lateness { late: false, ..late() });
        results.links[0].counts.lost += u64::from(real);
        let mut progress = sawtooth(0);
        progress.sent.iter_mut().for_each(|segment| segment.0 = segment.0 * if real { 51 } else { 50 } / 50);
        results.progress = vec![progress];
        let mut traces = Vec::new();
        for node in ["sender", "receiver"] {
            traces.push((node.to_owned(), arq_trace(node == "sender", real)));
        }
        results.flows = vec![FlowResult {
            traffic: "file".into(),
            number: 0,
            from: "sender".into(),
            to: "receiver".into(),
            transport: "arq".into(),
            start: 0,
            first_byte: Some(17 * MS),
            end: Some(if real { 6_090 * MS } else { 6_000 * MS }),
            bytes: Some(300_000),
            delivered: 300_000,
            packets: Some(300),
            retransmissions: Some(if real { 4 } else { 3 }),
            lost: None,
            rtt_samples: 296,
            rtt_min: Some(10 * MS),
            rtt_mean: Some(11 * MS),
            rtt_max: Some(15 * MS),
            outcome: "complete".into(),
            ..FlowResult::default()
        }];
        results.functions = vec![("sender".into(), Counters { frames_in: 300 - u64::from(real), ..counters() })];
        Run { results, traces }
    };
    (run(false), run(true))
}

fn arq_trace(sender: bool, real: bool) -> Vec<TraceRecord> {
    let mut records = Vec::new();
    let mut push = |at: i64, state: &str, event: &str, row: u32, next: &str, actions: &[String]| {
        let late = if real { (noise(at as u64) * 60_000.0) as i64 } else { 0 };
        records.push(TraceRecord {
            time: Time::from_nanoseconds(at + late),
            flow: FlowId(1),
            kind: TraceKind::Event,
            state: state.into(),
            event: event.into(),
            row: Some(row),
            line: None,
            source: None,
            next: next.into(),
            actions: actions.to_vec(),
            registers: Vec::new(),
        });
    };
    for number in 0..300_i64 {
        let at = number * 20 * MS;
        let send =
            ["send work (1042 bytes) to port 1".to_owned(), format!("set_timer retransmit in {} ns", 200 + number)];
        if sender {
            push(at, "idle", "data", 2, "waiting", &send);
            if number == 120 || (real && number == 200) {
                push(at + 8 * MS, "waiting", "retransmit", 4, "waiting", &send);
            }
            push(at + 10 * MS, "waiting", "packet", 3, "idle", &["cancel_timer retransmit".to_owned()]);
        } else {
            push(at + 5 * MS, "open", "packet", 1, "open", &["deliver current: 1000 bytes from 0".to_owned()]);
        }
    }
    records
}
