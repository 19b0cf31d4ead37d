//! A network with everything resolved: names are indices, addresses are given out, topologies are spelled out.

use crate::link::LinkSettings;
use crate::traffic::{Gap, Size};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;
use weftwire_core::{MacAddress, Port, Time};

/// Index of a node in [`Network::nodes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeIndex(pub u32);

/// Index of a link in [`Network::links`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkIndex(pub u32);

/// A network that platforms can run.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// Its name: letters, digits, `-` and `_`, at most 24.
    pub name: String,
    /// Where all random numbers of a run come from.
    pub seed: u64,
    /// How long a run lasts.
    pub duration: Duration,
    /// How often links are sampled for plots.
    pub sample_interval: Duration,
    /// Names of registers that are sampled as often, of the flows of machines.
    pub probes: Vec<String>,
    /// So much of the beginning of a run is left out of what is measured.
    pub warm_up: Duration,
    /// How often it is run, each time with another seed.
    pub repetitions: u32,
    /// The nodes, in the order of the file.
    pub nodes: Vec<Node>,
    /// The links, in the order of the file.
    pub links: Vec<Link>,
    /// The traffic, in the order of the file.
    pub traffic: Vec<Traffic>,
    /// Changes and faults by time; equal times in the order of the file.
    pub changes: Vec<Change>,
    /// Ports to capture at.
    pub captures: Vec<PortPlace>,
    /// How packets find their ways.
    pub routing: Routing,
}

/// How packets find their ways.
#[derive(Clone, PartialEq, Debug)]
pub struct Routing {
    /// What becomes of ways of equal cost.
    pub multipath: Multipath,
    /// Of ways of equal metric, those of less delay are better; else they cost the same.
    pub by_delay: bool,
    /// A link that has been down for so long is routed round; `None`: never.
    pub convergence: Option<Duration>,
    /// Static routes; of several for the same node and destination the last one holds.
    pub routes: Vec<StaticRoute>,
}

impl Default for Routing {
    fn default() -> Routing {
        Routing {
            multipath: Multipath::Flow,
            by_delay: true,
            convergence: Some(Duration::from_secs(1)),
            routes: Vec::new(),
        }
    }
}

/// What becomes of ways of equal cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Multipath {
    /// Each flow takes one of them, by a hash.
    Flow,
    /// Each packet takes one of them.
    Packet,
    /// All take the first.
    Single,
}

/// A route that somebody has written down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaticRoute {
    /// Of this node.
    pub node: NodeIndex,
    /// Towards this one.
    pub to: NodeIndex,
    /// Over these neighbours, in shares of the weights of the links to them.
    pub via: Arc<[NodeIndex]>,
}

/// A port of a node. Ports of a node count from 1 without gaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortPlace {
    /// The node.
    pub node: NodeIndex,
    /// Its port.
    pub port: Port,
}

/// A node.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Its name: letters, digits, `-`, `_`, at most 32.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Its IPv4 address, the same on all its ports. Nodes that pass frames on without an address have one all the same.
    pub ipv4: Ipv4Addr,
    /// Its IPv6 address.
    pub ipv6: Ipv6Addr,
    /// Its ports by number from 1: the link and which of its ends (0 or 1) is here.
    pub ports: Vec<(LinkIndex, usize)>,
}

impl Node {
    /// Whether it is a packet's end or a router: it has addresses and takes part in routing. Switches and transparent
    /// functions do not; frames cross them with their Ethernet addresses unchanged.
    pub fn is_addressed(&self) -> bool {
        match &self.kind {
            NodeKind::Switch => false,
            NodeKind::Function(function) => !function.transparent,
            _ => true,
        }
    }
}

/// What a node is.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeKind {
    /// An end host: TCP and UDP, traffic from and to it. On Linux a kernel with these commands.
    Host {
        /// Commands that run when the network is real.
        commands: Vec<Command>,
        /// Initial values of its TCP's registers, in place of the machine's, where the network is simulated: the text as written.
        parameters: BTreeMap<String, String>,
    },
    /// Forwards IP packets by destination, decrements TTL.
    Router,
    /// Forwards Ethernet frames, learns addresses.
    Switch,
    /// Takes and counts every packet and answers none.
    Sink,
    /// A host that sends every UDP datagram back.
    Echo,
    /// Runs a function.
    Function(FunctionNode),
}

/// A command on a host that runs when the network is real.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Program and arguments.
    pub words: Vec<String>,
    /// When, after the start.
    pub at: Time,
}

/// A function on a node.
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionNode {
    /// File of the image or source, or of a subscription switch's rules, as written: relative to the network's file.
    pub image: String,
    /// File of the message formats, if it is a subscription switch.
    pub format: Option<String>,
    /// Name of the engine.
    pub engine: String,
    /// Initial values of registers, in place of the image's: the text as written (`200ms`, `10.0.0.1`, `7`).
    pub parameters: BTreeMap<String, String>,
    /// Frames cross it with their Ethernet addresses unchanged; else it is an end with an address.
    pub transparent: bool,
    /// Whether each event is written to `NODE.trace.jsonl`.
    pub trace: bool,
}

/// A link between two ports.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Its name; `A-B` by default.
    pub name: String,
    /// Its two ends.
    pub ends: [PortPlace; 2],
    /// From end 0 to end 1, and back.
    pub directions: [LinkSettings; 2],
    /// What it costs to go over it, at least 1.
    pub metric: u32,
    /// Its share where a node has several ways of equal cost, from 1 to 256.
    pub weight: u16,
}

/// Traffic between two nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Traffic {
    /// Its name, for tables.
    pub name: String,
    /// Who opens flows and sends.
    pub from: NodeIndex,
    /// Who receives (and, of request and response, answers).
    pub to: NodeIndex,
    /// Of [`TrafficKind::Flows`] between hosts: each flow goes to one of these by chance, never back to [`Traffic::from`];
    /// [`Traffic::to`] is one of them. At least one is not `from`.
    pub choices: Option<Arc<[NodeIndex]>>,
    /// When the first flow, datagram or frame leaves, after the start of the run; Poisson arrivals a gap later.
    pub start: Time,
    /// Nothing new begins after this.
    pub stop: Time,
    /// IPv6, else IPv4.
    pub ipv6: bool,
    /// The transport protocol.
    pub transport: Transport,
    /// The receiver's port number. Flow `i` (from 0) of this traffic has the sender's port number `source_port + i`.
    pub port: u16,
    /// The sender's port number of the first flow.
    pub source_port: u16,
    /// The congestion control of its TCP connections, as Linux names it (`cubic`, `reno`); `None`: the platform's own.
    pub congestion_control: Option<String>,
    /// The DSCP of the packets that hosts send for it, below 64.
    pub dscp: u8,
    /// How they recover from losses, as the simulator's TCP names it (`rack`, `rfc6675`, `tb_tcp`); `None`: the platform's own way.
    pub recovery: Option<String>,
    /// What is sent.
    pub kind: TrafficKind,
    /// For its own random numbers: the same on every platform. Made from the network's seed by [`Network::reseed`].
    pub seed: u64,
}

impl Traffic {
    /// All who may receive: one, or those of whom each flow has one.
    pub fn receivers(&self) -> &[NodeIndex] {
        self.choices.as_deref().unwrap_or(std::slice::from_ref(&self.to))
    }
}

/// Transport protocol of traffic. When an end is a function, that function is the transport, over this protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// `tcp` or `udp`.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        }
    }
}

/// What is sent.
#[derive(Clone, PartialEq, Debug)]
pub enum TrafficKind {
    /// One flow of so many bytes, then the sender closes. `u64::MAX`: until [`Traffic::stop`].
    Bulk {
        /// Bytes of the application.
        bytes: u64,
    },
    /// On one flow, requests and answers in turn; then the sender closes.
    RequestResponse {
        /// Bytes of a request.
        request: u64,
        /// Bytes of an answer.
        response: u64,
        /// How many pairs.
        count: u64,
        /// From an answer's end to the next request.
        think: Gap,
    },
    /// Flows that open at random or regular times, each with a size of its own.
    Flows {
        /// From one opening to the next.
        gap: Gap,
        /// Bytes of each flow.
        size: Size,
        /// At most so many.
        count: u64,
    },
    /// UDP datagrams on one flow. Not acknowledged, not repeated.
    Datagrams {
        /// From one datagram to the next.
        gap: Gap,
        /// Payload bytes of each.
        size: Size,
        /// At most so many.
        count: u64,
    },
    /// The frames of a capture file leave [`Traffic::from`] at their times; [`Traffic::to`] is unused (equal to `from`).
    Capture {
        /// The file, relative to the network's file.
        file: String,
        /// Out of this port.
        port: Port,
    },
}

impl TrafficKind {
    /// Its name, as files write it.
    pub fn name(&self) -> &'static str {
        match self {
            TrafficKind::Bulk { .. } => "bulk",
            TrafficKind::RequestResponse { .. } => "request-response",
            TrafficKind::Flows { .. } => "flows",
            TrafficKind::Datagrams { .. } => "datagrams",
            TrafficKind::Capture { .. } => "capture",
        }
    }
}

/// Something changes during a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// When, after the start.
    pub at: Time,
    /// What.
    pub what: ChangeKind,
}

/// What changes. Faults with a duration are two changes.
#[derive(Clone, PartialEq, Debug)]
pub enum ChangeKind {
    /// Direction `direction` of a link has these settings from now on; what is queued or on its way stays.
    Settings {
        /// The link.
        link: LinkIndex,
        /// From end 0 to end 1 (0) or back (1).
        direction: usize,
        /// The new settings, complete. Boxed as they are large.
        settings: Box<LinkSettings>,
    },
    /// A direction goes down: everything queued, on its way and offered later is lost until it is up again.
    Down {
        /// The link.
        link: LinkIndex,
        /// The direction.
        direction: usize,
    },
    /// A direction is up again.
    Up {
        /// The link.
        link: LinkIndex,
        /// The direction.
        direction: usize,
    },
    /// A direction silently swallows everything offered (what is on its way still arrives), or no longer does.
    Blackhole {
        /// The link.
        link: LinkIndex,
        /// The direction.
        direction: usize,
        /// It starts, else it ends.
        on: bool,
    },
    /// A direction writes a value into a header field of packets, checksums not corrected; or no longer does.
    CorruptField {
        /// The link.
        link: LinkIndex,
        /// The direction.
        direction: usize,
        /// The field (`tcp.sequence`, `ipv4.ttl`) and what to exclusive-or into it; `None` ends it.
        field: Option<FieldFault>,
    },
    /// A node starts anew: flows, timers and buffers are gone. A function is made again from its image.
    Restart {
        /// The node.
        node: NodeIndex,
    },
    /// A node's clock runs faster by so many parts in a million from now on (0: rightly), after a leap.
    Clock {
        /// The node, one that runs a function.
        node: NodeIndex,
        /// Parts per million, above -1,000,000.
        drift_ppm: i64,
        /// So far it leaps forward at once; clocks never go back.
        leap: Duration,
    },
}

/// A header field to be corrupted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldFault {
    /// `format.field`, of the built-in formats.
    pub field: String,
    /// Exclusive-ored into the field.
    pub mask: u64,
    /// Share of packets, in millionths.
    pub share_millionths: u32,
}

impl Network {
    /// The node at an index.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.0 as usize]
    }

    /// The link at an index.
    pub fn link(&self, index: LinkIndex) -> &Link {
        &self.links[index.0 as usize]
    }

    /// All nodes with their indices.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeIndex, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeIndex(index as u32), node))
    }

    /// All links with their indices.
    pub fn links(&self) -> impl Iterator<Item = (LinkIndex, &Link)> {
        self.links.iter().enumerate().map(|(index, link)| (LinkIndex(index as u32), link))
    }

    /// The Ethernet address of a port: locally administered, from the node's index and the port's number.
    pub fn mac(&self, place: PortPlace) -> MacAddress {
        let [_, a, b, c] = place.node.0.to_be_bytes();
        let [p, q] = place.port.0.to_be_bytes();
        MacAddress([0x02, a, b, c, p, q])
    }

    /// `NODE:PORT`, as files and tables name a port.
    pub fn place_name(&self, place: PortPlace) -> String {
        format!("{}:{}", self.node(place.node).name, place.port)
    }

    /// The address of a node in a family.
    pub fn address(&self, node: NodeIndex, ipv6: bool) -> IpAddr {
        match ipv6 {
            true => self.node(node).ipv6.into(),
            false => self.node(node).ipv4.into(),
        }
    }

    /// The same network with another seed, in all its parts.
    pub fn reseed(&mut self, seed: u64) {
        self.seed = seed;
        for (index, traffic) in self.traffic.iter_mut().enumerate() {
            traffic.seed = mix(seed, TRAFFIC_STREAM, index as u64);
        }
    }

    /// Seed of one direction of a link: the same on all platforms.
    pub fn link_seed(&self, link: LinkIndex, direction: usize) -> u64 {
        mix(self.seed, LINK_STREAM, u64::from(link.0) * 2 + direction as u64)
    }

    /// What a kernel in place of a node mixes into its hash of flows.
    pub fn route_seed(&self, node: NodeIndex) -> u32 {
        route_seed(self.seed, node, 0) as u32
    }

    /// Seed of a node's function or host: the same on all platforms.
    pub fn node_seed(&self, node: NodeIndex) -> u64 {
        mix(self.seed, NODE_STREAM, u64::from(node.0))
    }
}

const TRAFFIC_STREAM: u64 = 1;
const LINK_STREAM: u64 = 2;
const NODE_STREAM: u64 = 3;
const TOPOLOGY_STREAM: u64 = 4;
const PAIRS_STREAM: u64 = 5;
const ROUTES_STREAM: u64 = 6;

/// Seed of the choices that a topology makes.
pub(crate) fn topology_seed(seed: u64) -> u64 {
    mix(seed, TOPOLOGY_STREAM, 0)
}

/// Seed of who sends to whom in part `index` of the traffic.
pub(crate) fn pairs_seed(seed: u64, index: u64) -> u64 {
    mix(seed, PAIRS_STREAM, index)
}

/// Half of the key under which a node spreads packets over ways of equal cost.
pub(crate) fn route_seed(seed: u64, node: NodeIndex, half: u64) -> u64 {
    mix(seed, ROUTES_STREAM, u64::from(node.0) * 2 + half)
}

/// A well-mixed seed for part `index` of a kind `stream` (the finaliser of SplitMix64).
fn mix(seed: u64, stream: u64, index: u64) -> u64 {
    let mut z = seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03);
    for _ in 0..2 {
        z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
    }
    z
}
