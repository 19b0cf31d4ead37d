//! One packet through the whole network.

use crate::{Attached, Direction, Filter, HostId, LinkId, Out, Plan, Spreader, SwitchId, Tables, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// What a network's switches do with a message: tables of filters, or anything made of them.
pub trait Forwarding<M: ?Sized> {
    /// Appends the ways out of a switch that a message matches.
    fn outs(&self, switch: SwitchId, message: &M, outs: &mut Vec<Out>);
}

impl<F: Filter> Forwarding<F::Message> for Tables<F> {
    fn outs(&self, switch: SwitchId, message: &F::Message, outs: &mut Vec<Out>) {
        let matches = |filters: &BTreeSet<F>| filters.iter().any(|filter| filter.matches(message));
        outs.extend(self.table(switch).iter().filter(|(_, filters)| matches(filters)).map(|(out, _)| *out));
    }
}

/// A packet as its publisher sends it.
#[derive(Debug)]
pub struct Packet<'a, M: ?Sized> {
    /// The publisher.
    pub publisher: HostId,
    /// What filters are asked about.
    pub message: &'a M,
    /// The number of its flow: chooses its tree, and with [`crate::Spread::FlowHash`] its path.
    pub flow: u64,
}

impl<M: ?Sized> Clone for Packet<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: ?Sized> Copy for Packet<'_, M> {}

/// A packet on a link between switches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Crossing {
    /// The link.
    pub link: LinkId,
    /// The sender.
    pub from: SwitchId,
    /// The receiver.
    pub to: SwitchId,
    /// The way.
    pub direction: Direction,
    /// Whether a host got the packet that came this way.
    pub useful: bool,
}

/// What became of a packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Walk {
    /// In the order in which they happen.
    pub crossings: Vec<Crossing>,
    /// The hosts that got it, as often as they did.
    pub deliveries: Vec<HostId>,
    /// It would have crossed a link a second time in one direction, and was stopped there: switches loop or duplicate.
    pub looped: bool,
}

/// The packets on the links of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LayerTraffic {
    /// All of them.
    pub crossings: u64,
    /// Those that no host got.
    pub extra: u64,
}

impl LayerTraffic {
    /// The packets in vain, as a share of the others; 0 without any others.
    pub fn extra_share(self) -> f64 {
        let useful = self.crossings - self.extra;
        if useful == 0 { 0.0 } else { self.extra as f64 / useful as f64 }
    }
}

impl std::ops::AddAssign for LayerTraffic {
    fn add_assign(&mut self, other: Self) {
        self.crossings += other.crossings;
        self.extra += other.extra;
    }
}

impl Walk {
    /// The traffic by layer of the links; that of a link is the one of its higher end.
    pub fn traffic(&self, topology: &Topology) -> BTreeMap<u16, LayerTraffic> {
        let mut layers: BTreeMap<u16, LayerTraffic> = BTreeMap::new();
        for crossing in &self.crossings {
            let layer = layers.entry(topology.link_layer(crossing.link)).or_default();
            layer.crossings += 1;
            layer.extra += u64::from(!crossing.useful);
        }
        layers
    }
}

/// Sends a packet through a network. What a switch does not know is given by the plan: its up ports and the number of trees.
/// A packet from an up port does not go up; none goes back where it came from.
pub fn walk<M: ?Sized>(
    topology: &Topology,
    plan: &Plan,
    forwarding: &impl Forwarding<M>,
    packet: Packet<'_, M>,
    spreader: &mut Spreader,
) -> Walk {
    let mut walk = Walk::default();
    let tree = spreader.tree(packet.flow, plan.trees().len());
    let mut seen = BTreeSet::new();
    let mut outs = Vec::new();
    // By crossing: the one before it.
    let mut before: Vec<Option<usize>> = Vec::new();
    let (first, port) = topology.access(packet.publisher);
    let mut open = std::collections::VecDeque::from([(first, port, None)]);
    while let Some((switch, ingress, crossing)) = open.pop_front() {
        outs.clear();
        forwarding.outs(switch, packet.message, &mut outs);
        for out in &outs {
            let up = plan.up_ports(switch);
            let port = match out {
                Out::Port(port) => Some(*port),
                Out::Tree { tree: of, port } => (*of == tree).then_some(*port),
                Out::Up if up.contains(&ingress) => None,
                Out::Up => spreader.choose(switch, up, packet.flow),
            };
            let Some(port) = port.filter(|port| *port != ingress) else { continue };
            match topology.ports(switch).get(usize::from(port.0)) {
                None => {}
                Some(Attached::Host(host)) => {
                    walk.deliveries.push(*host);
                    let mut next: Option<usize> = crossing;
                    while let Some(index) = next.filter(|index| !walk.crossings[*index].useful) {
                        walk.crossings[index].useful = true;
                        next = before[index];
                    }
                }
                Some(Attached::Switch { link, switch: to, port: far }) => {
                    if !seen.insert((*link, switch)) {
                        walk.looped = true;
                        continue;
                    }
                    let direction = topology.direction(switch, *to);
                    walk.crossings.push(Crossing { link: *link, from: switch, to: *to, direction, useful: false });
                    before.push(crossing);
                    open.push_back((*to, *far, Some(walk.crossings.len() - 1)));
                }
            }
        }
    }
    walk
}
