//! How long a transfer would take alone, on links that never make it wait: what completion times are compared with.
//!
//! The time is a lower bound for any TCP: the handshake's round trip, then all segments without a pause, each link passing a
//! frame on when it has all of it. The slowest link decides; rates and delays are those at the start of the run, of a varying
//! rate the highest.

use crate::link::{LinkSettings, Rate};
use crate::model::{LinkIndex, Network, NodeIndex, PortPlace, Traffic};
use crate::results::FlowResult;
use crate::routing::Routes;
use std::collections::BTreeMap;
use weftwire_core::Port;

/// Payload of a full segment: MTU 1500 without options.
const SEGMENT: u64 = 1_460;
/// Bytes of a frame in front of the payload: Ethernet, IPv4, TCP.
const HEADERS: u64 = 54;
/// So many more with IPv6.
const HEADERS_OF_IPV6: u64 = 20;

/// Writes the ideal completion time into each flow that has one: streams over TCP between hosts, with a number of bytes.
pub fn add_to(network: &Network, flows: &mut [FlowResult]) {
    let nodes: BTreeMap<&str, NodeIndex> = network.nodes().map(|(index, node)| (node.name.as_str(), index)).collect();
    let traffic: BTreeMap<&str, &Traffic> = network.traffic.iter().map(|one| (one.name.as_str(), one)).collect();
    let mut paths = Paths { network, routes: Routes::new(network), known: BTreeMap::new() };
    for flow in flows {
        let stream = matches!(flow.kind.as_str(), "bulk" | "flows") && flow.transport == "tcp";
        let Some(bytes) = flow.bytes.filter(|_| stream) else { continue };
        let (from, to) = (nodes.get(flow.from.as_str()), nodes.get(flow.to.as_str()));
        let (Some(from), Some(to), Some(traffic)) = (from, to, traffic.get(flow.traffic.as_str())) else { continue };
        flow.ideal = paths.ideal(*from, *to, traffic.ipv6, bytes);
    }
}

/// The settings of the directions that packets cross, in order.
type Path<'a> = Vec<&'a LinkSettings>;

struct Paths<'a> {
    network: &'a Network,
    routes: Routes,
    known: BTreeMap<(NodeIndex, NodeIndex), Option<Path<'a>>>,
}

impl<'a> Paths<'a> {
    fn ideal(&mut self, from: NodeIndex, to: NodeIndex, ipv6: bool, bytes: u64) -> Option<i64> {
        let headers = HEADERS + if ipv6 { HEADERS_OF_IPV6 } else { 0 };
        let handshake = one_way(self.path(from, to)?, 0, headers) + one_way(self.path(to, from)?, 0, headers);
        Some((handshake + one_way(self.path(from, to)?, bytes, headers)) as i64)
    }

    fn path(&mut self, from: NodeIndex, to: NodeIndex) -> Option<&Path<'a>> {
        if !self.known.contains_key(&(from, to)) {
            let found = self.find(from, to);
            self.known.insert((from, to), found);
        }
        self.known.get(&(from, to))?.as_ref()
    }

    fn find(&mut self, from: NodeIndex, to: NodeIndex) -> Option<Path<'a>> {
        let (mut path, mut node) = (Vec::new(), from);
        while node != to {
            let (hop, _) = *self.routes.all(node, to).first()?;
            crossed(self.network, PortPlace { node, port: hop.port }, hop.to, &mut path)?;
            node = hop.to.node;
            if path.len() > 2 * self.network.links.len() {
                // Static routes may lead round in a ring.
                return None;
            }
        }
        Some(path)
    }
}

/// Adds the directions from a port to another one, through what passes frames on: there is one way, as frames find no loops.
fn crossed<'a>(network: &'a Network, from: PortPlace, to: PortPlace, path: &mut Path<'a>) -> Option<()> {
    let mut waiting = vec![(from, path.clone())];
    while let Some((out, before)) = waiting.pop() {
        let (LinkIndex(link), end) = *network.node(out.node).ports.get(usize::from(out.port.0).checked_sub(1)?)?;
        let link = network.links.get(link as usize)?;
        let mut now = before;
        now.push(&link.directions[end]);
        let there = link.ends[1 - end];
        if there == to {
            *path = now;
            return Some(());
        }
        let node = network.node(there.node);
        if !node.is_addressed() {
            let others = (1..=node.ports.len() as u16).map(Port).filter(|port| *port != there.port);
            waiting.extend(others.map(|port| (PortPlace { node: there.node, port }, now.clone())));
        }
    }
    None
}

/// Nanoseconds from the first bit sent to the last received, of so many bytes in full segments; of none of a bare header.
fn one_way(path: &Path<'_>, bytes: u64, headers: u64) -> f64 {
    let segments = bytes.div_ceil(SEGMENT).max(1);
    let last = bytes - (segments - 1) * SEGMENT;
    let first = bytes.min(SEGMENT);
    let time = |link: &LinkSettings, frames: u64, payload: u64| {
        let bytes = payload as f64 + frames as f64 * (headers + u64::from(link.overhead)) as f64;
        rate(link).map_or(0.0, |rate| bytes * 8e9 / rate)
    };
    // The frames queue up at one of the links: the first gets there undisturbed, the last goes on so.
    let mut most = 0.0_f64;
    for slowest in 0..path.len() {
        let before: f64 = path[..slowest].iter().map(|link| time(link, 1, first)).sum();
        let behind: f64 = path[slowest + 1..].iter().map(|link| time(link, 1, last)).sum();
        most = most.max(before + time(path[slowest], segments, bytes) + behind);
    }
    most + path.iter().map(|link| link.delay.as_nanos() as f64).sum::<f64>()
}

/// Bits per second, if limited; of a varying rate the highest.
fn rate(link: &LinkSettings) -> Option<f64> {
    let rate = match link.rate.as_ref()? {
        Rate::Constant(rate) => *rate,
        Rate::Trace(trace) => trace.steps.iter().map(|step| step.1).max()?,
    };
    (rate > 0).then_some(rate as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    fn network(links: &str) -> Network {
        let text = format!(
            "duration = \"1s\"\n[nodes.a]\n[nodes.s]\nkind = \"switch\"\n[nodes.r]\nkind = \"router\"\n[nodes.b]\n{links}\n\
             [[traffic]]\nname = \"t\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"1MB\"\n\
             [[traffic]]\nname = \"six\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"1MB\"\nfamily = 6\n"
        );
        let reading = read("t.toml", &text, &[], &|_| Err(std::io::Error::other("no files").into()));
        assert_eq!(reading.diagnostics, []);
        reading.network.expect("a valid network")
    }

    fn flow(traffic: &str, kind: &str, bytes: Option<u64>) -> FlowResult {
        FlowResult {
            traffic: traffic.into(),
            kind: kind.into(),
            from: "a".into(),
            to: "b".into(),
            transport: "tcp".into(),
            bytes,
            ..FlowResult::default()
        }
    }

    #[test]
    fn the_slowest_link_and_all_delays_make_the_time() {
        let network = network(
            "[[links]]\nbetween = [\"a\", \"s\"]\nrate = \"100Mbit/s\"\ndelay = \"1ms\"\n\
             [[links]]\nbetween = [\"s\", \"r\"]\nrate = \"10Mbit/s\"\ndelay = \"5ms\"\noverhead = 24\n\
             [[links]]\nbetween = [\"r\", \"b\"]\ndelay = \"2ms\"\n",
        );
        let mut flows = [
            flow("t", "bulk", Some(3_000)),
            flow("six", "flows", Some(3_000)),
            flow("t", "bulk", None),
            flow("t", "datagrams", Some(3_000)),
            FlowResult { transport: "arq".into(), ..flow("t", "bulk", Some(3_000)) },
        ];
        add_to(&network, &mut flows);
        // Three segments, of 1460, 1460 and 80 bytes. The handshake: 54 bytes over both limited links there and back.
        let frame = |bytes: u64, over: u64| (bytes + 54) * 80 + (bytes + 54 + over) * 800;
        let handshake = 2 * frame(0, 24) + 16_000_000;
        let data = (1460 + 54) * 80 + (3_000 + 3 * (54 + 24)) * 800 + 8_000_000;
        assert_eq!(flows[0].ideal, Some((handshake + data) as i64));
        let six = 2 * 20 * 880 + 20 * 80 + 3 * 20 * 800;
        assert_eq!(flows[1].ideal, Some((handshake + data + six) as i64));
        assert!(flows[2..].iter().all(|flow| flow.ideal.is_none()));
    }

    #[test]
    fn without_rates_there_are_only_delays() {
        let network = network(
            "[[links]]\nbetween = [\"a\", \"r\"]\ndelay = \"3ms\"\nbackward = { delay = \"1ms\" }\n\
             [[links]]\nbetween = [\"r\", \"b\"]\n[[links]]\nbetween = [\"s\", \"r\"]\n",
        );
        let mut flows = [flow("t", "bulk", Some(1_000_000_000))];
        add_to(&network, &mut flows);
        assert_eq!(flows[0].ideal, Some(7_000_000));
    }
}
