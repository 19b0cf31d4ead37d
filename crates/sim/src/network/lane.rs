//! Directions of links with what the simulator knows of them.

use super::frames::Slot;
use weftwire_core::{LinkType, Port};
use weftwire_network::Network;
use weftwire_network::link::field::FieldCorruptor;
use weftwire_network::link::{Direction, LinkSettings, frame};
use weftwire_network::model::{LinkIndex, NodeIndex, PortPlace};

/// "Never", of instants.
pub const NEVER: i64 = i64::MAX;

/// One direction of a link.
pub struct Lane {
    /// The link's state. Its packets are slots of frames; a copy shares its original's.
    pub direction: Direction<Slot>,
    /// When its next arrival is in the queue of events; [`NEVER`] if it is not.
    pub scheduled: i64,
    /// Where packets enter.
    pub from: PortPlace,
    /// Where they leave.
    pub to: PortPlace,
    /// Frames are captured where they enter.
    pub capture_from: bool,
    /// Frames are captured where they leave.
    pub capture_to: bool,
    /// It has made duplicates, or may.
    pub duplicates: bool,
    /// The queue marks.
    pub ecn: bool,
    /// It has a queue for each class.
    pub priority: bool,
    /// Corrupts a field of headers.
    pub corruptor: Option<Box<FieldCorruptor>>,
}

impl Lane {
    /// New settings were given.
    pub fn note(&mut self, settings: &LinkSettings) {
        self.duplicates |= settings.duplicate > 0.0;
        self.ecn = settings.queue.marks();
        self.priority = settings.queue.priority;
    }

    /// The class that a frame has here.
    pub fn class(&self, bytes: &[u8]) -> u8 {
        if self.priority { frame::class(LinkType::Ethernet, bytes) } else { 0 }
    }
}

/// All lanes, numbered by the port that they lead to.
pub struct Lanes {
    lanes: Vec<Lane>,
    /// By node, where its ports begin in `outgoing`.
    first_port: Vec<u32>,
    /// By port, the lane that begins there.
    outgoing: Vec<u32>,
    /// By link and direction.
    of_link: Vec<[u32; 2]>,
}

impl Lanes {
    /// Those of a network.
    pub fn new(network: &Network) -> Lanes {
        let mut order: Vec<(PortPlace, usize, usize)> = Vec::with_capacity(network.links.len() * 2);
        for (index, link) in network.links.iter().enumerate() {
            order.push((link.ends[1], index, 0));
            order.push((link.ends[0], index, 1));
        }
        order.sort_unstable();
        let mut first_port = Vec::with_capacity(network.nodes.len());
        let mut ports = 0;
        for node in &network.nodes {
            first_port.push(ports);
            ports += node.ports.len() as u32;
        }
        let mut all = Lanes {
            lanes: Vec::with_capacity(order.len()),
            first_port,
            outgoing: vec![u32::MAX; ports as usize],
            of_link: vec![[u32::MAX; 2]; network.links.len()],
        };
        for (number, (to, index, direction)) in order.into_iter().enumerate() {
            let link = &network.links[index];
            let from = link.ends[direction];
            let settings = &link.directions[direction];
            let seed = network.link_seed(LinkIndex(index as u32), direction);
            let mut lane = Lane {
                direction: Direction::new(settings.clone(), seed),
                scheduled: NEVER,
                from,
                to,
                capture_from: network.captures.contains(&from),
                capture_to: network.captures.contains(&to),
                duplicates: false,
                ecn: false,
                priority: false,
                corruptor: None,
            };
            lane.note(settings);
            all.lanes.push(lane);
            all.of_link[index][direction] = number as u32;
            let place = all.first_port[from.node.0 as usize] + u32::from(from.port.0).saturating_sub(1);
            if let Some(outgoing) = all.outgoing.get_mut(place as usize) {
                *outgoing = number as u32;
            }
        }
        all
    }

    /// The lane that begins at a port, if there is such a port.
    pub fn out(&self, node: NodeIndex, port: Port) -> Option<u32> {
        let node = node.0 as usize;
        let first = self.first_port[node];
        let end = self.first_port.get(node + 1).map_or(self.outgoing.len(), |end| *end as usize);
        let place = (first + u32::from(port.0).checked_sub(1)?) as usize;
        self.outgoing[..end].get(place).copied().filter(|lane| *lane != u32::MAX)
    }

    /// How many ports a node has.
    pub fn ports(&self, node: NodeIndex) -> u16 {
        let node = node.0 as usize;
        let end = self.first_port.get(node + 1).map_or(self.outgoing.len(), |end| *end as usize);
        (end - self.first_port[node] as usize) as u16
    }

    /// The lane of a link's direction.
    pub fn of(&self, link: LinkIndex, direction: usize) -> u32 {
        self.of_link[link.0 as usize][direction & 1]
    }

    /// The lane of the same link the other way.
    pub fn back(&self, lane: u32) -> u32 {
        let Lane { to, .. } = self.get(lane);
        self.out(to.node, to.port).unwrap_or(lane)
    }

    /// A lane.
    pub fn get(&self, lane: u32) -> &Lane {
        &self.lanes[lane as usize]
    }

    /// A lane, to be changed.
    pub fn get_mut(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[lane as usize]
    }
}
