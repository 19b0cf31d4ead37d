//! Hosts, switches, ports and links of a network, checked.

use std::collections::{BTreeSet, VecDeque};
use thiserror::Error;

/// A switch, by its place among the switches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SwitchId(pub u32);

/// A host, by its place among the hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId(pub u32);

/// A link between two switches, by its place among these links.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

/// A port of a switch. Ports are numbered from 0 in the order of the links that end at the switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId(pub u16);

impl SwitchId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl HostId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// Publishes and subscribes; has one link, to a switch.
    Host,
    /// Forwards.
    Switch,
}

/// A node of the description that a topology is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its name; unique.
    pub name: String,
    /// What it does.
    pub kind: NodeKind,
}

impl Node {
    /// A host.
    pub fn host(name: impl Into<String>) -> Self {
        Node { name: name.into(), kind: NodeKind::Host }
    }

    /// A switch.
    pub fn switch(name: impl Into<String>) -> Self {
        Node { name: name.into(), kind: NodeKind::Switch }
    }
}

/// Where the layers of a hierarchy come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Layers {
    /// The layer of each switch, in the switches' order; 0 is the lowest. A link may skip layers.
    Given(Vec<u16>),
    /// A switch with hosts is in layer 0, any other one above its lowest neighbour.
    Found,
    /// No hierarchy: all links join equals.
    Flat,
}

/// What a port leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attached {
    /// A host.
    Host(HostId),
    /// Another switch.
    Switch {
        /// Over this link.
        link: LinkId,
        /// The other switch.
        switch: SwitchId,
        /// The other switch's port.
        port: PortId,
    },
}

/// The way a link goes, seen from one of its ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// To a higher layer.
    Up,
    /// To a lower layer.
    Down,
    /// To the same layer.
    Peer,
}

/// A link between two switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Both ends.
    pub ends: [(SwitchId, PortId); 2],
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Switch {
    name: String,
    layer: u16,
    ports: Vec<Attached>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Host {
    name: String,
    switch: SwitchId,
    port: PortId,
}

/// A checked network: connected, each host on one switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    switches: Vec<Switch>,
    hosts: Vec<Host>,
    links: Vec<Link>,
}

/// What is wrong with a described network.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TopologyError {
    /// A link names a node that is not there.
    #[error("link {link} names node {node}, but there are only {nodes} nodes, from 0")]
    UnknownNode {
        /// The link's place.
        link: usize,
        /// What it names.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
    /// A link from a node to itself.
    #[error("link {link} joins `{node}` to itself; a link needs two nodes")]
    SelfLoop {
        /// The link's place.
        link: usize,
        /// The node.
        node: String,
    },
    /// Two nodes with one name.
    #[error("two nodes are named `{name}`; names are unique")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A host without a link.
    #[error("host `{host}` is at no switch; link it to one")]
    HostWithoutSwitch {
        /// The host.
        host: String,
    },
    /// A host with several links.
    #[error("host `{host}` has {links} links; a host has one, to a switch")]
    HostWithLinks {
        /// The host.
        host: String,
        /// How many.
        links: usize,
    },
    /// A link between hosts.
    #[error("link {link} joins the hosts `{first}` and `{second}`; a host's link goes to a switch")]
    HostToHost {
        /// The link's place.
        link: usize,
        /// One end.
        first: String,
        /// The other.
        second: String,
    },
    /// More ports than numbers.
    #[error("switch `{switch}` has {ports} links; ports have 16 bits, so 65536 are possible")]
    TooManyPorts {
        /// The switch.
        switch: String,
        /// How many links it has.
        ports: usize,
    },
    /// More nodes or links than numbers.
    #[error("{count} nodes or links; numbers have 32 bits")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// No switch.
    #[error("the network has no switch")]
    NoSwitch,
    /// Layers are to be found, but there is no host to start from.
    #[error("layers can't be found without a host; give them, or say that there are none")]
    NoHosts,
    /// As many layers are needed as there are switches.
    #[error("{given} layers are given for {switches} switches; each switch needs one")]
    LayerCount {
        /// Layers.
        given: usize,
        /// Switches.
        switches: usize,
    },
    /// A switch of a higher layer with nothing below.
    #[error("switch `{switch}` is in layer {layer} but has no link down; a layer above 0 needs a lower one")]
    NothingBelow {
        /// The switch.
        switch: String,
        /// Its layer.
        layer: u16,
    },
    /// Two parts without a link between them.
    #[error("no path joins the switches `{first}` and `{second}`; the network must be connected")]
    Disconnected {
        /// A switch of one part.
        first: String,
        /// A switch of the other.
        second: String,
    },
    /// A fat tree of an odd or a too large number.
    #[error("a fat tree of {k}-port switches: the number must be even, from 2 to 128")]
    FatTree {
        /// The number.
        k: u32,
    },
}

impl Topology {
    /// A network of nodes and of links between them, each link the places of its two nodes. Two switches may have several
    /// links between them.
    pub fn new(nodes: &[Node], links: &[[usize; 2]], layers: Layers) -> Result<Self, TopologyError> {
        for count in [nodes.len(), links.len()] {
            if u32::try_from(count).is_err() {
                return Err(TopologyError::TooMany { count });
            }
        }
        check_nodes(nodes, links)?;
        let mut topology = Topology { switches: Vec::new(), hosts: Vec::new(), links: Vec::new() };
        // The number of each node among those of its kind.
        let mut numbers = Vec::with_capacity(nodes.len());
        for node in nodes {
            let name = node.name.clone();
            numbers.push(match node.kind {
                NodeKind::Host => {
                    topology.hosts.push(Host { name, switch: SwitchId(0), port: PortId(0) });
                    topology.hosts.len() as u32 - 1
                }
                NodeKind::Switch => {
                    topology.switches.push(Switch { name, layer: 0, ports: Vec::new() });
                    topology.switches.len() as u32 - 1
                }
            });
        }
        if topology.switches.is_empty() {
            return Err(TopologyError::NoSwitch);
        }
        for [first, second] in links {
            match (nodes[*first].kind, nodes[*second].kind) {
                (NodeKind::Host, _) => topology.attach(HostId(numbers[*first]), SwitchId(numbers[*second])),
                (_, NodeKind::Host) => topology.attach(HostId(numbers[*second]), SwitchId(numbers[*first])),
                _ => topology.join(SwitchId(numbers[*first]), SwitchId(numbers[*second])),
            }
        }
        topology.check_connected()?;
        topology.set_layers(layers)?;
        Ok(topology)
    }

    /// Only after `check_nodes`, so the port's number fits.
    fn attach(&mut self, host: HostId, switch: SwitchId) {
        let port = self.next_port(switch);
        self.switches[switch.index()].ports.push(Attached::Host(host));
        let attached = &mut self.hosts[host.index()];
        (attached.switch, attached.port) = (switch, port);
    }

    fn join(&mut self, first: SwitchId, second: SwitchId) {
        let link = LinkId(self.links.len() as u32);
        let ports = [self.next_port(first), self.next_port(second)];
        self.switches[first.index()].ports.push(Attached::Switch { link, switch: second, port: ports[1] });
        self.switches[second.index()].ports.push(Attached::Switch { link, switch: first, port: ports[0] });
        self.links.push(Link { ends: [(first, ports[0]), (second, ports[1])] });
    }

    fn next_port(&self, switch: SwitchId) -> PortId {
        PortId(self.switches[switch.index()].ports.len() as u16)
    }

    fn check_connected(&self) -> Result<(), TopologyError> {
        let mut seen = vec![false; self.switches.len()];
        let mut open = vec![SwitchId(0)];
        seen[0] = true;
        while let Some(switch) = open.pop() {
            for (_, _, next) in self.neighbours(switch) {
                if !std::mem::replace(&mut seen[next.index()], true) {
                    open.push(next);
                }
            }
        }
        match seen.iter().position(|reached| !reached) {
            None => Ok(()),
            Some(index) => Err(TopologyError::Disconnected {
                first: self.switches[0].name.clone(),
                second: self.switches[index].name.clone(),
            }),
        }
    }

    /// Gives the switches other layers; with an error some may be changed.
    pub fn set_layers(&mut self, layers: Layers) -> Result<(), TopologyError> {
        let layers = match layers {
            Layers::Flat => vec![0; self.switches.len()],
            Layers::Given(layers) if layers.len() == self.switches.len() => layers,
            Layers::Given(layers) => {
                return Err(TopologyError::LayerCount { given: layers.len(), switches: self.switches.len() });
            }
            Layers::Found => self.find_layers()?,
        };
        for (switch, layer) in self.switches.iter_mut().zip(layers) {
            switch.layer = layer;
        }
        for switch in self.switches() {
            let layer = self.layer(switch);
            let down = self.neighbours(switch).any(|(_, _, next)| self.layer(next) < layer);
            if layer > 0 && !down {
                return Err(TopologyError::NothingBelow { switch: self.switch_name(switch).into(), layer });
            }
        }
        Ok(())
    }

    fn find_layers(&self) -> Result<Vec<u16>, TopologyError> {
        if self.hosts.is_empty() {
            return Err(TopologyError::NoHosts);
        }
        let mut layers = vec![None; self.switches.len()];
        let mut open = VecDeque::new();
        for host in &self.hosts {
            if layers[host.switch.index()].replace(0).is_none() {
                open.push_back((host.switch, 0u16));
            }
        }
        while let Some((switch, layer)) = open.pop_front() {
            for (_, _, next) in self.neighbours(switch) {
                if layers[next.index()].is_none() {
                    // A chain so long has no use for more layers; its last switches are equals.
                    let above = layer.saturating_add(1);
                    layers[next.index()] = Some(above);
                    open.push_back((next, above));
                }
            }
        }
        Ok(layers.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// All switches.
    pub fn switches(&self) -> impl DoubleEndedIterator<Item = SwitchId> + use<> {
        (0..self.switches.len() as u32).map(SwitchId)
    }

    /// All hosts.
    pub fn hosts(&self) -> impl DoubleEndedIterator<Item = HostId> + use<> {
        (0..self.hosts.len() as u32).map(HostId)
    }

    /// All links between switches, in the order of their numbers.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// How many switches there are.
    pub fn switch_count(&self) -> usize {
        self.switches.len()
    }

    /// How many hosts there are.
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// A switch's name.
    ///
    /// # Panics
    ///
    /// This and the methods below panic if the switch or host is another topology's.
    pub fn switch_name(&self, switch: SwitchId) -> &str {
        &self.switches[switch.index()].name
    }

    /// A host's name.
    pub fn host_name(&self, host: HostId) -> &str {
        &self.hosts[host.index()].name
    }

    /// A switch's layer, 0 the lowest.
    pub fn layer(&self, switch: SwitchId) -> u16 {
        self.switches[switch.index()].layer
    }

    /// What a switch's ports lead to, by port number.
    pub fn ports(&self, switch: SwitchId) -> &[Attached] {
        &self.switches[switch.index()].ports
    }

    /// Where a host is.
    pub fn access(&self, host: HostId) -> (SwitchId, PortId) {
        let host = &self.hosts[host.index()];
        (host.switch, host.port)
    }

    /// The hosts at a switch, with their ports.
    pub fn hosts_at(&self, switch: SwitchId) -> impl Iterator<Item = (PortId, HostId)> {
        self.numbered_ports(switch).filter_map(|(port, attached)| match attached {
            Attached::Host(host) => Some((port, host)),
            Attached::Switch { .. } => None,
        })
    }

    /// The links of a switch: its port, the link, the other switch.
    pub fn neighbours(&self, switch: SwitchId) -> impl Iterator<Item = (PortId, LinkId, SwitchId)> {
        self.numbered_ports(switch).filter_map(|(port, attached)| match attached {
            Attached::Host(_) => None,
            Attached::Switch { link, switch, .. } => Some((port, link, switch)),
        })
    }

    fn numbered_ports(&self, switch: SwitchId) -> impl Iterator<Item = (PortId, Attached)> {
        self.ports(switch).iter().enumerate().map(|(port, attached)| (PortId(port as u16), *attached))
    }

    /// The way from one switch to a neighbour.
    pub fn direction(&self, from: SwitchId, to: SwitchId) -> Direction {
        match self.layer(from).cmp(&self.layer(to)) {
            std::cmp::Ordering::Less => Direction::Up,
            std::cmp::Ordering::Greater => Direction::Down,
            std::cmp::Ordering::Equal => Direction::Peer,
        }
    }

    /// The layer of a link: that of its higher end.
    pub fn link_layer(&self, link: LinkId) -> u16 {
        self.links[link.index()].ends.iter().map(|(switch, _)| self.layer(*switch)).max().unwrap_or_default()
    }
}

/// What can be said before anything has a number.
fn check_nodes(nodes: &[Node], links: &[[usize; 2]]) -> Result<(), TopologyError> {
    let mut names = BTreeSet::new();
    if let Some(node) = nodes.iter().find(|node| !names.insert(node.name.as_str())) {
        return Err(TopologyError::DuplicateName { name: node.name.clone() });
    }
    let mut degrees = vec![0usize; nodes.len()];
    for (link, ends) in links.iter().enumerate() {
        for node in ends {
            match degrees.get_mut(*node) {
                Some(degree) => *degree += 1,
                None => return Err(TopologyError::UnknownNode { link, node: *node, nodes: nodes.len() }),
            }
        }
        let [first, second] = ends.map(|end| &nodes[end]);
        if ends[0] == ends[1] {
            return Err(TopologyError::SelfLoop { link, node: first.name.clone() });
        }
        if first.kind == NodeKind::Host && second.kind == NodeKind::Host {
            let (first, second) = (first.name.clone(), second.name.clone());
            return Err(TopologyError::HostToHost { link, first, second });
        }
    }
    for (node, degree) in nodes.iter().zip(degrees) {
        match (node.kind, degree) {
            (NodeKind::Host, 0) => return Err(TopologyError::HostWithoutSwitch { host: node.name.clone() }),
            (NodeKind::Host, 2..) => {
                return Err(TopologyError::HostWithLinks { host: node.name.clone(), links: degree });
            }
            (NodeKind::Switch, ports) if ports > 1 << 16 => {
                return Err(TopologyError::TooManyPorts { switch: node.name.clone(), ports });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The folded Clos network of k-port switches (Al-Fares, Loukissas and Vahdat 2008) with k^3/4 hosts: `core1`.., and in pod
/// `p` `pod{p}-agg1`.., `pod{p}-edge1`.., `pod{p}-host1`...
pub fn fat_tree(k: u32) -> Result<Topology, TopologyError> {
    if !(2..=128).contains(&k) || !k.is_multiple_of(2) {
        return Err(TopologyError::FatTree { k });
    }
    let half = k as usize / 2;
    let (mut nodes, mut links, mut layers) = (Vec::new(), Vec::new(), Vec::new());
    let mut switch = |nodes: &mut Vec<Node>, name: String, layer: u16| {
        nodes.push(Node::switch(name));
        layers.push(layer);
        nodes.len() - 1
    };
    let cores: Vec<usize> = (1..=half * half).map(|number| switch(&mut nodes, format!("core{number}"), 2)).collect();
    for pod in 1..=k {
        let aggregation: Vec<usize> =
            (1..=half).map(|number| switch(&mut nodes, format!("pod{pod}-agg{number}"), 1)).collect();
        for (index, middle) in aggregation.iter().enumerate() {
            links.extend(cores[index * half..(index + 1) * half].iter().map(|core| [*middle, *core]));
        }
        for edge_number in 0..half {
            let edge = switch(&mut nodes, format!("pod{pod}-edge{}", edge_number + 1), 0);
            links.extend(aggregation.iter().map(|middle| [edge, *middle]));
            for number in 1..=half {
                nodes.push(Node::host(format!("pod{pod}-host{}", edge_number * half + number)));
                links.push([nodes.len() - 1, edge]);
            }
        }
    }
    Topology::new(&nodes, &links, Layers::Given(layers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(hosts: usize, switches: usize) -> Vec<Node> {
        let hosts = (0..hosts).map(|number| Node::host(format!("h{number}")));
        hosts.chain((0..switches).map(|number| Node::switch(format!("s{number}")))).collect()
    }

    #[test]
    fn a_fat_tree_has_its_counts_and_layers() {
        for (k, switches, hosts, links) in [(2, 5, 2, 4), (4, 20, 16, 32), (8, 80, 128, 256)] {
            let topology = fat_tree(k).unwrap();
            assert_eq!(topology.switch_count(), switches);
            assert_eq!(topology.host_count(), hosts);
            assert_eq!(topology.links().len(), links);
            for switch in topology.switches() {
                assert_eq!(topology.ports(switch).len(), k as usize, "{}", topology.switch_name(switch));
            }
            let mut found = topology.clone();
            found.set_layers(Layers::Found).unwrap();
            assert_eq!(found, topology);
        }
        assert!(fat_tree(3).is_err() && fat_tree(0).is_err());
    }

    #[test]
    fn ports_are_numbered_in_the_order_of_links() {
        let topology = Topology::new(&nodes(1, 2), &[[1, 2], [2, 0], [2, 1]], Layers::Found).unwrap();
        assert_eq!(topology.access(HostId(0)), (SwitchId(1), PortId(1)));
        let ports: Vec<_> = topology.neighbours(SwitchId(1)).collect();
        assert_eq!(ports, [(PortId(0), LinkId(0), SwitchId(0)), (PortId(2), LinkId(1), SwitchId(0))]);
        assert_eq!(topology.direction(SwitchId(1), SwitchId(0)), Direction::Up);
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let error =
            |nodes: &[Node], links: &[[usize; 2]], layers| Topology::new(nodes, links, layers).unwrap_err().to_string();
        for (text, expected) in [
            (error(&nodes(1, 1), &[], Layers::Found), "host `h0` is at no switch; link it to one"),
            (error(&nodes(1, 2), &[[0, 1], [0, 2]], Layers::Found), "host `h0` has 2 links"),
            (error(&nodes(2, 1), &[[0, 1]], Layers::Found), "joins the hosts `h0` and `h1`"),
            (error(&nodes(0, 2), &[], Layers::Flat), "no path joins the switches `s0` and `s1`"),
            (error(&nodes(0, 2), &[[0, 5]], Layers::Flat), "link 0 names node 5, but there are only 2"),
            (error(&nodes(0, 1), &[[0, 0]], Layers::Flat), "joins `s0` to itself"),
            (error(&nodes(0, 1), &[], Layers::Found), "can't be found without a host"),
            (error(&nodes(0, 2), &[[0, 1]], Layers::Given(vec![0])), "1 layers are given for 2 switches"),
            (error(&nodes(0, 2), &[[0, 1]], Layers::Given(vec![1, 1])), "`s0` is in layer 1 but has no link down"),
            (error(&[], &[], Layers::Flat), "no switch"),
            (error(&[Node::switch("s"), Node::host("s")], &[], Layers::Flat), "two nodes are named `s`"),
        ] {
            assert!(text.contains(expected), "{text}");
        }
        let many: Vec<[usize; 2]> = vec![[0, 1]; (1 << 16) + 1];
        assert!(error(&nodes(0, 2), &many, Layers::Flat).contains("65537 links"));
        assert!(Topology::new(&nodes(0, 2), &many[1..], Layers::Flat).is_ok());
    }
}
