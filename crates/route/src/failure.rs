//! What is broken.

use crate::{HostId, LinkId, SwitchId, Topology};
use std::collections::BTreeSet;

/// Something that can fail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Element {
    /// A link between switches.
    Link(LinkId),
    /// A switch with all its links.
    Switch(SwitchId),
    /// The link of a host.
    Access(HostId),
}

/// The set of what is broken.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Failures {
    broken: BTreeSet<Element>,
}

impl Failures {
    /// Breaks something; says whether it worked before.
    pub fn fail(&mut self, element: Element) -> bool {
        self.broken.insert(element)
    }

    /// Mends something; says whether it was broken.
    pub fn repair(&mut self, element: Element) -> bool {
        self.broken.remove(&element)
    }

    /// What is broken.
    pub fn broken(&self) -> impl Iterator<Item = Element> {
        self.broken.iter().copied()
    }

    /// Whether a switch works.
    pub fn switch_works(&self, switch: SwitchId) -> bool {
        !self.broken.contains(&Element::Switch(switch))
    }

    /// Whether a link and both its ends work.
    pub fn link_works(&self, topology: &Topology, link: LinkId) -> bool {
        let ends = topology.links()[link.index()].ends;
        !self.broken.contains(&Element::Link(link)) && ends.iter().all(|(switch, _)| self.switch_works(*switch))
    }

    /// Whether a host reaches its switch.
    pub fn host_works(&self, topology: &Topology, host: HostId) -> bool {
        !self.broken.contains(&Element::Access(host)) && self.switch_works(topology.access(host).0)
    }
}
