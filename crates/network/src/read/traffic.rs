//! Traffic: who sends what to whom.

use super::checks::Reach;
use super::names::check_name;
use super::{Graph, MOST_TRAFFIC, Reader};
use crate::description::{self, Arrivals, Pairs, TrafficKind as Kind};
use crate::model::{self, NodeIndex, NodeKind, Traffic, TrafficKind, Transport};
use crate::topology::below;
use crate::traffic::Size;
use rand_core::SeedableRng;
use rand_pcg::Pcg64;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weftwire_core::{Port, Time};
use weftwire_text::{Diagnostic, Span};

/// Receivers' port numbers count from here, one for each part of the traffic.
const FIRST_PORT: u16 = 5_001;

/// Linux knows no longer name of a congestion control.
const LONGEST_NAME: usize = 15;

/// Senders' port numbers are given out from here on.
const FIRST_SOURCE_PORT: u16 = 40_000;

/// Payload of the largest datagram that fits a frame, behind IPv4 and UDP headers.
const MOST_PAYLOAD: u64 = 1_472;

/// So many port numbers are set aside for traffic that opens many flows.
const FLOWS_SPACING: u64 = 2_048;

const ALL_KEYS: [&str; 19] = [
    "to",
    "transport",
    "congestion_control",
    "dscp",
    "recovery",
    "port",
    "source_port",
    "bytes",
    "request",
    "response",
    "count",
    "think",
    "rate",
    "gap",
    "envelope",
    "rtt",
    "arrivals",
    "size",
    "file",
];

/// What is checked once the traffic is expanded: both ends, transport and port numbers of a flow.
type Flow = (NodeIndex, NodeIndex, Transport, u16, u16);

/// Who sends to whom, and of whom each flow has one.
type Ends = (Vec<(usize, usize)>, Option<Arc<[NodeIndex]>>);

impl Reader<'_> {
    /// All traffic, spelled out.
    pub fn traffic(&mut self, given: &[description::Traffic], graph: &Graph) -> Vec<Traffic> {
        let mut all: Vec<Traffic> = Vec::new();
        let mut reach = Reach::new(graph);
        let mut next_source: BTreeMap<NodeIndex, u64> = BTreeMap::new();
        let names = self.traffic_names(given);
        let mut flows: Vec<(Flow, usize)> = Vec::new();
        for (index, (item, name)) in given.iter().zip(names).enumerate() {
            let Some(pattern) = self.pattern(item, graph, index) else { continue };
            let Some((pairs, choices)) = self.pairs(item, graph, index) else { continue };
            let copies = item.copies.unwrap_or(1) as usize;
            if copies == 0 {
                self.problems.error(item.places.value("copies"), "`copies` must be at least 1");
                continue;
            }
            if all.len().saturating_add(pairs.len().saturating_mul(copies)) > MOST_TRAFFIC {
                let message = format!("this makes more than {MOST_TRAFFIC} parts of traffic");
                self.problems.error(item.places.span, message);
                break;
            }
            let chosen = choices.as_deref().map(|all| samples(&pairs, all));
            if !self.check_pairs(item, chosen.as_deref().unwrap_or(&pairs), graph, &mut reach) {
                continue;
            }
            let several = pairs.len() * copies > 1;
            let spacing = match &pattern.kind {
                TrafficKind::Flows { count, .. } => (*count).min(FLOWS_SPACING),
                _ => 1,
            };
            let last = item.source_port.map_or(0, |port| u64::from(port) + (copies as u64 * spacing).saturating_sub(1));
            if last > u64::from(u16::MAX) && copies > 1 {
                let message = "there are not enough port numbers behind this one for all copies";
                self.problems.error(item.places.value("source_port"), message);
                continue;
            }
            let ends = pairs.iter().flat_map(|pair| std::iter::repeat_n(*pair, copies));
            for (number, (from, to)) in ends.enumerate() {
                let name = if several { format!("{name}-{}", number + 1) } else { name.clone() };
                let choices = choices.clone();
                let mut traffic = Traffic { name, from: node(from), to: node(to), choices, ..pattern.clone() };
                let range = u64::from(u16::MAX - FIRST_SOURCE_PORT) + 1;
                traffic.source_port = match item.source_port {
                    // Copies of one flow each need numbers of their own; that there are is checked above.
                    Some(port) => port.saturating_add(((number % copies) as u64 * spacing) as u16),
                    None => {
                        let next = next_source.entry(traffic.from).or_default();
                        let offset = if *next % range + spacing > range { 0 } else { *next % range };
                        *next = offset + spacing;
                        FIRST_SOURCE_PORT + offset as u16
                    }
                };
                if !matches!(traffic.kind, TrafficKind::Capture { .. }) {
                    let key = (traffic.from, traffic.to, traffic.transport, traffic.source_port, traffic.port);
                    flows.push((key, index));
                }
                all.push(traffic);
            }
        }
        self.check_unique(given, &all, flows);
        all
    }

    /// The name of each part: the given one, else its kind, a number appended if that is taken.
    fn traffic_names(&mut self, given: &[description::Traffic]) -> Vec<String> {
        let mut taken = BTreeSet::new();
        for word in given.iter().filter_map(|item| item.name.as_ref()) {
            check_name(word, "traffic", 64, self.problems);
            if !taken.insert(word.text.clone()) {
                self.problems.error(word.span, format!("there is traffic `{}` already", word.text));
            }
        }
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut name = |item: &description::Traffic| {
            if let Some(word) = &item.name {
                return word.text.clone();
            }
            let base = item.kind.word();
            let number = numbers.entry(base).or_default();
            loop {
                *number += 1;
                let name = if *number == 1 { base.to_owned() } else { format!("{base}{number}") };
                if taken.insert(name.clone()) {
                    return name;
                }
            }
        };
        given.iter().map(&mut name).collect()
    }

    /// Names and flows that are there twice.
    fn check_unique(&mut self, given: &[description::Traffic], all: &[Traffic], mut flows: Vec<(Flow, usize)>) {
        let mut names: Vec<&str> = all.iter().map(|traffic| traffic.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let item = given.iter().find(|item| item.name.as_ref().is_some_and(|word| word.text == pair[0]));
            let span = item.or(given.first()).map_or_else(Span::default, |item| item.places.value("name"));
            let message = format!("two parts of the traffic are called `{}`", pair[0]);
            self.problems.error_help(span, message, "parts with several flows are called NAME-1, NAME-2 and so on");
        }
        flows.sort_unstable();
        let mut told = BTreeSet::new();
        for pair in flows.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            let (item, index) = (&given[pair[1].1], pair[1].1);
            if told.insert(index) {
                let key = if item.source_port.is_some() { "source_port" } else { "port" };
                let message = "two flows between the same nodes have the same port numbers";
                self.problems.error_help(
                    item.places.value(key),
                    message,
                    format!("leave out `{key}`, or write another"),
                );
            }
        }
    }

    /// One part without its ends.
    fn pattern(&mut self, item: &description::Traffic, graph: &Graph, index: usize) -> Option<Traffic> {
        let transport = match (item.transport, item.kind) {
            (None, Kind::Datagrams) | (Some(description::Transport::Udp), _) => Transport::Udp,
            _ => Transport::Tcp,
        };
        let allowed: &[&str] = match item.kind {
            Kind::Bulk => {
                &["to", "transport", "congestion_control", "dscp", "recovery", "port", "source_port", "bytes"]
            }
            Kind::RequestResponse => &[
                "to",
                "transport",
                "congestion_control",
                "dscp",
                "recovery",
                "port",
                "source_port",
                "request",
                "response",
                "count",
                "think",
            ],
            Kind::Flows | Kind::Datagrams => &[
                "to",
                "transport",
                "congestion_control",
                "dscp",
                "recovery",
                "port",
                "source_port",
                "count",
                "rate",
                "gap",
                "envelope",
                "rtt",
                "arrivals",
                "size",
            ],
            Kind::Capture => &["file", "port"],
        };
        let places = &item.places;
        places.only(&format!("traffic of kind {}", item.kind.word()), &ALL_KEYS, allowed, self.problems);
        if item.kind == Kind::Datagrams && transport == Transport::Tcp {
            self.problems.error(places.value("transport"), "datagrams are sent over UDP");
        }
        let choices = [
            ("congestion_control", "congestion control", "`cubic` or `reno`", &item.congestion_control),
            ("recovery", "recovery from losses", "`rack` or `rfc6675`", &item.recovery),
        ];
        for (key, what, known, chosen) in choices {
            let Some(chosen) = chosen else { continue };
            let letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter);
            let name = &chosen.text;
            if transport == Transport::Udp {
                let message = format!("UDP has no {what}");
                self.problems.error_help(places.value(key), message, format!("leave out `{key}`"));
            } else if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(letter) {
                let message = format!("`{name}` is not the name of a {what}");
                let help = format!("{known}, say: at most {LONGEST_NAME} lower-case letters, digits, `-`, `_`");
                self.problems.error_help(chosen.span, message, help);
            }
        }
        if item.dscp.is_some_and(|dscp| dscp > 63) {
            self.problems.error(places.value("dscp"), "a DSCP is from 0 to 63");
        }
        let end = Time::from_nanoseconds(graph.duration);
        let start = item.start.map_or(Time::ZERO, |start| start.time());
        let stop = item.stop.map_or(end, |stop| stop.time().min(end));
        if start >= end || item.stop.is_some_and(|stop| stop.time() <= start) {
            let key = if item.stop.is_some() && start < end { "stop" } else { "start" };
            let message = "this traffic never begins: it starts behind its stop or the end of the run";
            self.problems.add(Diagnostic::warning(places.value(key), message));
        }
        let ipv6 = match item.family {
            None | Some(4) => false,
            Some(6) => true,
            Some(_) => {
                self.problems.error(places.value("family"), "the family is 4 or 6");
                false
            }
        };
        for (key, port) in [("port", item.port), ("source_port", item.source_port)] {
            if port == Some(0) {
                self.problems.error(places.value(key), "port numbers count from 1");
            }
        }
        let kind = self.traffic_kind(item, graph)?;
        let port = match kind {
            TrafficKind::Capture { .. } => 0,
            _ => item.port.unwrap_or(FIRST_PORT.saturating_add(u16::try_from(index).unwrap_or(u16::MAX))),
        };
        let (from, to) = (NodeIndex(0), NodeIndex(0));
        Some(Traffic {
            name: String::new(),
            from,
            to,
            choices: None,
            start,
            stop,
            ipv6,
            transport,
            port,
            source_port: 0,
            congestion_control: item.congestion_control.as_ref().map(|word| word.text.clone()),
            dscp: item.dscp.unwrap_or(0) as u8,
            recovery: item.recovery.as_ref().map(|word| word.text.clone()),
            kind,
            seed: 0,
        })
    }

    fn traffic_kind(&mut self, item: &description::Traffic, graph: &Graph) -> Option<TrafficKind> {
        let places = &item.places;
        let count = item.count.unwrap_or(if item.kind == Kind::RequestResponse { 1 } else { u64::MAX });
        if count == 0 {
            self.problems.error(places.value("count"), "`count` must be at least 1");
        }
        Some(match item.kind {
            Kind::Bulk => {
                let bytes = item.bytes.map_or(u64::MAX, |bytes| bytes.0);
                if bytes == 0 {
                    self.problems.error(places.value("bytes"), "`bytes` must be at least 1B");
                }
                TrafficKind::Bulk { bytes }
            }
            Kind::RequestResponse => {
                let request = item.request.map_or(100, |bytes| bytes.0);
                let response = item.response.map_or(10_000, |bytes| bytes.0);
                for (key, bytes) in [("request", request), ("response", response)] {
                    if bytes == 0 || bytes.checked_mul(count).is_none_or(|all| all > i64::MAX as u64) {
                        let message = format!("`{key}` must be at least 1B, and all together less than 9 exabytes");
                        self.problems.error(places.value(key), message);
                    }
                }
                let think = self.pause(item.think.as_ref(), places.value("think"));
                TrafficKind::RequestResponse { request, response, count, think }
            }
            Kind::Flows | Kind::Datagrams => {
                let Some(size) = &item.size else {
                    let help = "add `size = \"1kB\"`";
                    self.problems.error_help(places.span, "`size` is missing", help);
                    return None;
                };
                let mut size = self.size(size, places.value("size"))?;
                if let (Size::Exponential(mean), Kind::Datagrams) = (&size, item.kind) {
                    // What would have to be cut into fragments is drawn again.
                    let most = if item.family == Some(6) { MOST_PAYLOAD - 20 } else { MOST_PAYLOAD };
                    if *mean > most as f64 {
                        let message = format!("the mean is above {most} bytes, the most that fits a frame");
                        self.problems.error(places.value("size"), message);
                    }
                    size = Size::ExponentialUpTo(*mean, most);
                }
                if item.kind == Kind::Flows {
                    TrafficKind::Flows { gap: self.gap(item, &size, Arrivals::Poisson)?, size, count }
                } else {
                    let most = if item.family == Some(6) { 65_527 } else { 65_507 };
                    if greatest(&size).is_none_or(|bytes| bytes > most) {
                        let help = "a fixed size, or a distribution with an upper bound";
                        let message = format!("a datagram's payload is at most {most} bytes");
                        self.problems.error_help(places.value("size"), message, help);
                    }
                    TrafficKind::Datagrams { gap: self.gap(item, &size, Arrivals::Constant)?, size, count }
                }
            }
            Kind::Capture => {
                let Some(file) = &item.file else {
                    self.problems.error_help(places.span, "`file` is missing", "add `file = \"FILE.pcapng\"`");
                    return None;
                };
                let port = item.port.unwrap_or(1);
                for from in graph.node_names.all_matching("node", &item.from, &mut super::Problems::default()) {
                    if usize::from(port) > graph.nodes[from].ports.len() {
                        let message = format!("`{}` has no port {port}", graph.nodes[from].name);
                        self.problems.error(places.value("port"), message);
                    }
                }
                TrafficKind::Capture { file: file.text.clone(), port: Port(port) }
            }
        })
    }

    fn pairs(&mut self, item: &description::Traffic, graph: &Graph, index: usize) -> Option<Ends> {
        let from = graph.node_names.all_matching("node", &item.from, self.problems);
        if item.kind == Kind::Capture {
            return Some((from.into_iter().map(|node| (node, node)).collect(), None));
        }
        let Some(to) = &item.to else {
            self.problems.error_help(item.places.span, "`to` is missing", "add `to = \"NODE\"`");
            return None;
        };
        let to = graph.node_names.all_matching("node", to, self.problems);
        if from.is_empty() || to.is_empty() {
            return None;
        }
        let pairs = match item.pairs {
            Some(pairs) => pairs,
            None if from.len() == to.len() => Pairs::InOrder,
            None if from.len() == 1 || to.len() == 1 => Pairs::All,
            None => {
                let message = format!("{} senders and {} receivers are not equally many", from.len(), to.len());
                let help = "add `pairs = \"all\"` or `pairs = \"random\"`";
                self.problems.error_help(item.places.value("to"), message, help);
                return None;
            }
        };
        let pairs = match pairs {
            Pairs::PerFlow => return self.per_flow(item, graph, &from, &to),
            Pairs::InOrder if from.len() != to.len() => {
                let message = format!("{} senders and {} receivers are not equally many", from.len(), to.len());
                self.problems.error_help(item.places.value("pairs"), message, "`all` and `random` take any number");
                None
            }
            Pairs::InOrder => Some(from.into_iter().zip(to).collect()),
            Pairs::All => {
                if from.len().saturating_mul(to.len()) > MOST_TRAFFIC {
                    let message = format!("this makes more than {MOST_TRAFFIC} parts of traffic");
                    self.problems.error(item.places.span, message);
                    return None;
                }
                let all = from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to)));
                Some(all.filter(|(from, to)| from != to).collect())
            }
            Pairs::Random => Some(random_pairs(from, to, model::pairs_seed(graph.seed, index as u64))),
        };
        pairs.map(|pairs| (pairs, None))
    }

    /// Each sender with another that may receive, and all that may.
    fn per_flow(&mut self, item: &description::Traffic, graph: &Graph, from: &[usize], to: &[usize]) -> Option<Ends> {
        let span = item.places.value("pairs");
        if item.kind != Kind::Flows {
            let help = "`random` gives each sender one receiver";
            self.problems.error_help(span, "only traffic of kind flows chooses for each flow", help);
            return None;
        }
        let function = from.iter().chain(to).find(|node| matches!(graph.nodes[**node].kind, NodeKind::Function(_)));
        if let Some(function) = function {
            let message =
                format!("`{}` is a function; flows that choose are between hosts", graph.nodes[*function].name);
            self.problems.error_help(span, message, "`random` gives each sender one receiver");
            return None;
        }
        // The sender itself is never drawn; who has nobody else to send to keeps itself, which is an error.
        let another = |from: &usize| (*from, to.iter().copied().find(|to| to != from).unwrap_or(*from));
        let pairs = from.iter().map(another).collect();
        Some((pairs, Some(to.iter().map(|to| node(*to)).collect())))
    }

    /// Sees that both ends can be what they should; `false` after an error.
    fn check_pairs(
        &mut self,
        item: &description::Traffic,
        pairs: &[(usize, usize)],
        graph: &Graph,
        reach: &mut Reach,
    ) -> bool {
        if item.kind == Kind::Capture {
            return true;
        }
        let udp = item.transport == Some(description::Transport::Udp) || item.kind == Kind::Datagrams;
        if pairs.is_empty() {
            self.problems.error(item.places.value("to"), "nobody is left to send to");
        }
        for (from, to) in pairs {
            let (sender, receiver) = (&graph.nodes[*from], &graph.nodes[*to]);
            let function = |node: &model::Node| matches!(node.kind, NodeKind::Function(_));
            let wrong = if from == to {
                Some(("to", format!("`{}` would send to itself", sender.name), "`pairs = \"random\"` avoids it"))
            } else if let Some((what, help)) = no_end(&sender.kind) {
                Some(("from", format!("`{}` is {what}, which sends nothing itself", sender.name), help))
            } else if matches!(sender.kind, NodeKind::Sink | NodeKind::Echo) {
                let what = if sender.kind == NodeKind::Sink { "a sink" } else { "an echo" };
                Some(("from", format!("`{}` is {what}, which opens nothing", sender.name), "send from a host"))
            } else if let Some((what, help)) = no_end(&receiver.kind) {
                Some(("to", format!("`{}` is {what}, which receives nothing itself", receiver.name), help))
            } else if graph.sources.contains(to) {
                Some(("to", format!("`{}` is a source, which only sends", receiver.name), "send to a host or sink"))
            } else if matches!(receiver.kind, NodeKind::Sink | NodeKind::Echo) && item.kind != Kind::Datagrams {
                let message = format!("`{}` takes only datagrams", receiver.name);
                Some(("to", message, "send `kind = \"datagrams\"`, or to a host"))
            } else if udp && item.kind != Kind::Datagrams && !(function(sender) && function(receiver)) {
                let message = format!("hosts have no {} over UDP", item.kind.word());
                Some(("transport", message, "write `kind = \"datagrams\"`, use TCP, or let functions be both ends"))
            } else if item.congestion_control.is_some() && (function(sender) || function(receiver)) {
                let message = "here a function is the transport, which has its own congestion control".to_owned();
                Some(("congestion_control", message, "leave it out; it is of TCP between hosts"))
            } else if item.recovery.is_some() && (function(sender) || function(receiver)) {
                let message = "here a function is the transport, which has its own recovery from losses".to_owned();
                Some(("recovery", message, "leave it out; it is of TCP between hosts"))
            } else if !reach.between(*from, *to) {
                let message = format!("there is no way from `{}` to `{}`", sender.name, receiver.name);
                Some(("to", message, "only routers, switches and transparent functions pass packets on"))
            } else {
                None
            };
            if let Some((key, message, help)) = wrong {
                self.problems.error_help(item.places.value(key), message, help);
                return false;
            }
        }
        true
    }
}

/// Pairs in which each sender and each possible receiver is once, at least.
fn samples(pairs: &[(usize, usize)], choices: &[NodeIndex]) -> Vec<(usize, usize)> {
    let receivers = choices.iter().filter_map(|to| {
        let to = to.0 as usize;
        pairs.iter().map(|(from, _)| *from).find(|from| *from != to).map(|from| (from, to))
    });
    pairs.iter().copied().chain(receivers).collect()
}

fn node(index: usize) -> NodeIndex {
    NodeIndex(index as u32)
}

/// What a node is that traffic can't begin or end at, and what helps.
fn no_end(kind: &NodeKind) -> Option<(&'static str, &'static str)> {
    match kind {
        NodeKind::Router => Some(("a router", "name a host")),
        NodeKind::Switch => Some(("a switch", "name a host")),
        NodeKind::Function(function) if function.transparent => {
            Some(("a transparent function", "add `transparent = false` to the node if it is an end"))
        }
        _ => None,
    }
}

/// The greatest size, if there is one.
fn greatest(size: &Size) -> Option<u64> {
    match size {
        Size::Constant(bytes)
        | Size::ExponentialUpTo(_, bytes)
        | Size::Uniform(_, bytes)
        | Size::Pareto(_, _, bytes) => Some(*bytes),
        Size::Exponential(_) => None,
        Size::Empirical(points) => points.last().map(|point| point.0),
    }
}

/// Each sender with one receiver, these in random order, used again from the start if they are too few. Nobody sends to
/// itself unless there is no other.
fn random_pairs(from: Vec<usize>, mut to: Vec<usize>, seed: u64) -> Vec<(usize, usize)> {
    let mut random = Pcg64::seed_from_u64(seed);
    for last in (1..to.len()).rev() {
        to.swap(last, below(&mut random, last + 1));
    }
    let count = to.len();
    let mut chosen: Vec<usize> = (0..from.len()).map(|index| to[index % count]).collect();
    for index in 0..from.len() {
        if chosen[index] == from[index] {
            // Swapping with one that neither gives is always possible with three or more different receivers.
            let fits = |other: &usize| chosen[*other] != from[index] && chosen[index] != from[*other];
            if let Some(other) = (index + 1..from.len()).chain(0..index).find(fits) {
                chosen.swap(index, other);
            }
        }
    }
    from.into_iter().zip(chosen).collect()
}
