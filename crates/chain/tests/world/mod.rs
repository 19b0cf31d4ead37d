//! Hosts with agents on a network in virtual time. Packets go by their destination address; the network loses, doubles and delays by a
//! seed.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod peer;

use peer::Peer;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use weftwire_chain::agent::ChangeError;
use weftwire_chain::config::{Config, Policy, Registered};
use weftwire_chain::keys::Key;
use weftwire_chain::lock::Request;
use weftwire_chain::segment::{Edit, Found, Segment, edit, find};
use weftwire_chain::session::Phase;
use weftwire_chain::tuple::Tuple;
use weftwire_chain::{Agent, HOST, NETWORK};
use weftwire_core::buffer::Buffer;
use weftwire_core::outbox::sent;
use weftwire_core::port::Checksum;
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_core::{FlowId, Frame, Function as _, LinkType, Outbox, Port, Ports, Time};

pub const SECOND: i64 = 1_000_000_000;
/// A way between two nodes, in nanoseconds.
const DELAY: i64 = 1_000_000;

/// What a host does with packets that are not for itself.
pub enum Kind {
    /// An end of connections.
    Peer(Box<Peer>),
    /// Forwards.
    Router,
    /// Forwards, from its own address and a port of its own.
    Nat(BTreeMap<Tuple, Tuple>),
    /// Drops everything.
    Dead,
}

pub struct Node {
    pub address: IpAddr,
    pub kind: Kind,
    pub agent: Option<Agent>,
    /// TCP segments that came to the host.
    pub seen: Vec<Segment>,
}

/// Numbers by a seed (xorshift64*).
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }
}

pub struct World {
    pub seed: u64,
    pub nodes: Vec<Node>,
    pub now: Time,
    events: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    serial: u64,
    pub chance: Chance,
    /// Packets of a hundred that are lost, and that come twice.
    pub loss: u64,
    pub twice: u64,
    /// Packets that crossed the network.
    pub crossed: Vec<Vec<u8>>,
}

pub fn address(v6: bool, number: usize) -> IpAddr {
    if v6 { format!("fd00::{number}").parse().unwrap() } else { format!("10.0.0.{number}").parse().unwrap() }
}

/// The configuration of agent `own` among agents 1 to `count`.
pub fn config(own: u16, count: u16, v6: bool, policies: Vec<Policy>) -> Config {
    let agents = (1..=count).map(|number| Registered { number, addresses: vec![address(v6, number.into())] });
    Config {
        agent: own,
        agents: agents.collect(),
        keys: vec![Key { number: 1, secret: "a secret of tests".into() }],
        policies,
        subsession_ports: [61_000, 64_999],
        gateway: None,
        segment_reserve: 12,
        most_sessions: 1_000,
        most_half_open: 500,
        idle_seconds: 600,
    }
}

pub fn policy(boxes: &[u16]) -> Policy {
    Policy {
        source: None,
        destination: None,
        destination_ports: None,
        boxes: boxes.to_vec(),
        fail: Default::default(),
        exit: Default::default(),
        keep_port: false,
    }
}

pub fn agent(config: Config) -> Agent {
    let key = [config.agent.into(), 99];
    Agent::new(config, Ports::new([(HOST, LinkType::Ip), (NETWORK, LinkType::Ip)]), key, 1_000).unwrap()
}

impl World {
    pub fn new(seed: u64) -> World {
        World {
            seed,
            nodes: Vec::new(),
            now: Time::ZERO,
            events: BTreeMap::new(),
            serial: 0,
            chance: Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            loss: 0,
            twice: 0,
            crossed: Vec::new(),
        }
    }

    /// Client, boxes and server, all with agents; the client's has a policy of all boxes.
    pub fn chain(seed: u64, v6: bool, boxes: Vec<Kind>, bytes: [usize; 2]) -> World {
        let mut world = World::new(seed);
        let count = boxes.len() as u16 + 2;
        let through: Vec<u16> = (2..count).collect();
        let (client, server) = (address(v6, 1), address(v6, count.into()));
        let ends = [SocketAddr::new(client, 40_000), SocketAddr::new(server, 80)];
        let kinds = std::iter::once(Kind::Peer(Box::new(Peer::client(ends[0], ends[1], bytes[0], bytes[1]))))
            .chain(boxes)
            .chain([Kind::Peer(Box::new(Peer::server(ends[1], bytes[1], bytes[0])))]);
        for (number, kind) in (1..).zip(kinds) {
            let policies = if number == 1 { vec![policy(&through)] } else { Vec::new() };
            world.nodes.push(Node {
                address: address(v6, number.into()),
                kind,
                agent: Some(agent(config(number, count, v6, policies))),
                seen: Vec::new(),
            });
        }
        world
    }

    /// A node's end of connections.
    pub fn peer(&mut self, node: usize) -> &mut Peer {
        match &mut self.nodes[node].kind {
            Kind::Peer(peer) => peer,
            _ => panic!("node {node} is a box"),
        }
    }

    pub fn drops(&self, node: usize) -> BTreeMap<String, u64> {
        use weftwire_core::inspect::Inspect as _;
        self.nodes[node].agent.as_ref().map(|agent| agent.counters().drops).unwrap_or_default()
    }

    pub fn sessions(&self, node: usize) -> usize {
        self.nodes[node].agent.as_ref().unwrap().sessions().count()
    }

    /// The host of a node hands out a packet.
    pub fn hand_out(&mut self, node: usize, packet: Vec<u8>) {
        match &mut self.nodes[node].agent {
            Some(_) => self.through_agent(node, HOST, &packet),
            None => self.cross(packet),
        }
    }

    fn through_agent(&mut self, node: usize, port: Port, packet: &[u8]) {
        let mut out = Outbox::new();
        let Some(agent) = &mut self.nodes[node].agent else { return };
        agent.frame(self.now, port, Frame::new(packet), &mut out);
        self.spread(node, &out);
    }

    /// What an agent has sent goes its ways.
    fn spread(&mut self, node: usize, out: &Outbox) {
        let frames: Vec<(Port, Vec<u8>)> = out
            .items()
            .iter()
            .filter_map(|item| sent(out, item))
            .map(|(port, frame)| (port, frame.bytes.to_vec()))
            .collect();
        for (port, frame) in frames {
            if port == NETWORK { self.cross(frame) } else { self.reach(node, frame) }
        }
    }

    /// A packet is on the network.
    pub fn cross(&mut self, packet: Vec<u8>) {
        self.crossed.push(packet.clone());
        let to = match find(LinkType::Ip, &packet) {
            Ok(Found::Segment(segment)) => segment.tuple.destination.ip(),
            // The tests' other packets are ICMP of IPv4.
            _ => IpAddr::from(<[u8; 4]>::try_from(&packet[16..20]).unwrap()),
        };
        let Some(node) = self.nodes.iter().position(|node| node.address == to) else { return };
        let copies = match self.chance.below(100) {
            lot if lot < self.loss => 0,
            lot if lot < self.loss + self.twice => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let jitter = if self.loss + self.twice > 0 { self.chance.below(DELAY as u64) as i64 } else { 0 };
            self.serial += 1;
            self.events.insert((self.now.after(DELAY + jitter), self.serial), (node, packet.clone()));
        }
    }

    /// A packet is at a host.
    fn reach(&mut self, node: usize, packet: Vec<u8>) {
        let segment = match find(LinkType::Ip, &packet) {
            Ok(Found::Segment(segment)) => segment,
            _ => return,
        };
        assert!(weftwire_chain::segment::checksum_is_right(&packet, &segment), "a host gets a wrong checksum");
        let here = &mut self.nodes[node];
        here.seen.push(segment);
        let answers = match &mut here.kind {
            Kind::Peer(peer) => {
                assert_eq!(segment.tag(&packet), None, "an end host gets a tag");
                if segment.tuple.destination.ip() == here.address {
                    peer.receive(self.now, &segment, &packet)
                } else {
                    vec![]
                }
            }
            Kind::Router => vec![packet],
            Kind::Nat(table) => nat(here.address, table, &segment, packet),
            Kind::Dead => vec![],
        };
        for packet in answers {
            self.hand_out(node, packet);
        }
    }

    /// Runs until nothing happens any more, or this time.
    pub fn run(&mut self, until: Time) {
        loop {
            let arrival = self.events.keys().next().map(|(at, _)| *at);
            let timer = self.nodes.iter().filter_map(|node| match &node.kind {
                Kind::Peer(peer) => peer.timer(),
                _ => None,
            });
            let expiry = self.nodes.iter().filter_map(|node| node.agent.as_ref()?.next_deadline().map(|due| due.at));
            let Some(next) = timer.chain(arrival).chain(expiry).min().filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let ((_, _), (node, packet)) = self.events.pop_first().unwrap();
                match self.nodes[node].agent {
                    Some(_) => self.through_agent(node, NETWORK, &packet),
                    None => self.reach(node, packet),
                }
                continue;
            }
            for node in 0..self.nodes.len() {
                if let Some(agent) = &mut self.nodes[node].agent {
                    let mut out = Outbox::new();
                    agent.fire(self.now, &mut out);
                    self.spread(node, &out);
                }
                let packets = match &mut self.nodes[node].kind {
                    Kind::Peer(peer) => peer.fire(self.now),
                    _ => vec![],
                };
                for packet in packets {
                    self.hand_out(node, packet);
                }
            }
        }
        self.now = self.now.max(until);
    }

    /// A node's agent is told to change its session: up to the agent `right` there are to be these boxes.
    pub fn change(&mut self, node: usize, right: u16, boxes: &[u16]) -> Result<Request, ChangeError> {
        let mut out = Outbox::new();
        let now = self.now;
        let Some(agent) = &mut self.nodes[node].agent else { panic!("node {node} has no agent") };
        let flow = agent.sessions().filter(|session| session.phase != Phase::Left).map(|session| session.flow).next();
        // Its clock goes on.
        agent.fire(now, &mut out);
        let result = agent.change_chain(flow.unwrap_or(FlowId(0)), right, boxes, &mut out);
        self.spread(node, &out);
        result
    }

    /// An end that was held sends.
    pub fn let_go(&mut self, node: usize) {
        let now = self.now;
        let packets = self.peer(node).let_go(now);
        packets.into_iter().for_each(|packet| self.hand_out(node, packet));
    }

    /// Asserts that no box has seen a number behind the end of what it has seen before, nor an acknowledgment of what it has not seen: as a
    /// firewall that follows connections demands. Only without losses.
    pub fn assert_no_gaps(&self, node: usize) {
        let mut ends: BTreeMap<Tuple, u32> = BTreeMap::new();
        let is_behind = |number: u32, other: u32| number.wrapping_sub(other) as i32 > 0;
        for (at, segment) in self.nodes[node].seen.iter().enumerate() {
            let end = segment.sequence.wrapping_add(segment.length());
            if segment.flags.contains(TcpFlags::SYN) {
                ends.insert(segment.tuple, end);
                continue;
            }
            let known = ends.get_mut(&segment.tuple).expect("a SYN comes first");
            assert!(!is_behind(segment.sequence, *known), "box {node}, segment {at}: {segment:?} behind {known}");
            if is_behind(end, *known) {
                *known = end;
            }
            let other = ends[&segment.tuple.reversed()];
            assert!(!is_behind(segment.acknowledgment, other), "box {node}, segment {at}: {segment:?}, sent {other}");
        }
    }

    /// Asserts that both ends have all bytes, and that every box has seen the session both ways.
    pub fn assert_whole(&mut self) {
        let last = self.nodes.len() - 1;
        for node in [0, last] {
            let drops = self.drops(node);
            let peer = self.peer(node);
            assert!(peer.is_done(), "node {node}: {peer:?}, drops {drops:?}");
        }
        for node in 1..last {
            let forward = self.nodes[node].seen.iter().filter(|segment| segment.tuple.destination.port() == 80).count();
            let back = self.nodes[node].seen.len() - forward;
            assert!(forward > 2 && back > 1, "box {node} has seen {forward} and {back} segments");
        }
    }
}

/// Translates sources to the box's own address, and back.
fn nat(own: IpAddr, table: &mut BTreeMap<Tuple, Tuple>, segment: &Segment, packet: Vec<u8>) -> Vec<Vec<u8>> {
    let to = match table.get(&segment.tuple) {
        Some(to) => *to,
        None if segment.tuple.destination.ip() == own => return vec![],
        None => {
            let port = 50_000 + table.len() as u16;
            let to = Tuple { source: SocketAddr::new(own, port), ..segment.tuple };
            table.insert(segment.tuple, to);
            table.insert(to.reversed(), segment.tuple.reversed());
            to
        }
    };
    let mut buffer = Buffer::from(packet);
    if segment.payload > segment.tcp + 20 {
        // Checksums by increments, as kernels do.
        segment.redirect(&mut buffer, to, Checksum::Unverified);
    } else {
        edit(&mut buffer, segment, to, Edit::default()).unwrap();
    }
    vec![buffer.to_vec()]
}
