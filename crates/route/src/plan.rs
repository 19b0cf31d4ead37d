//! Which links carry packets, and which hosts are behind each.

use crate::tree::spanning_trees;
use crate::{Direction, Failures, HostId, HostSet, LinkId, PortId, Settings, SettingsError, SwitchId, Topology, Tree};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Where a switch sends a packet that matches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Out {
    /// Out of a port, unless it came from there.
    Port(PortId),
    /// Out of one of the up ports, unless it came from one of them.
    Up,
    /// Out of a port, unless it came from there, if this is the packet's tree.
    Tree {
        /// The tree, from 0.
        tree: u16,
        /// The port.
        port: PortId,
    },
}

/// Whose filters belong to a way out of a switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// Nobody's: the filter that matches everything.
    Everything,
    /// A host's own, exact.
    Host(HostId),
    /// Those of a group of hosts, by its place among the plan's.
    Group(u32),
    /// Those of the hosts on one side of a tree's link.
    Branch {
        /// The tree, from 0.
        tree: u16,
        /// The switch at the link's lower end.
        child: SwitchId,
        /// The side at and below `child`, or else the rest of the tree.
        below: bool,
    },
}

/// How a switch takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Not at all: it is broken, or packets never come to it.
    Off,
    /// Up and down the hierarchy.
    Hierarchy,
    /// Along spanning trees.
    Trees,
}

/// Why a part of the network can't be routed up and down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fallback {
    /// Two ways down share some hosts but not all, and no choice of others makes up for it.
    Overlap {
        /// Where they part.
        switch: SwitchId,
        /// The first switch on the way that was left out.
        below: SwitchId,
    },
    /// From some hosts no way up ends where all hosts are below.
    NoTop {
        /// The hosts' switch.
        switch: SwitchId,
    },
}

impl Fallback {
    /// The reason in words.
    pub fn reason(&self, topology: &Topology) -> String {
        match self {
            Fallback::Overlap { switch, below } => format!(
                "from `{}` the ways down by `{}` and by another switch lead to some common hosts and to some others: packets \
                 would come twice or not at all",
                topology.switch_name(*switch),
                topology.switch_name(*below)
            ),
            Fallback::NoTop { switch } => {
                format!("no way up from `{}` ends at a switch with all hosts below it", topology.switch_name(*switch))
            }
        }
    }
}

/// A connected part of the network, broken links and switches left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Component {
    /// Its switches, ascending.
    pub switches: Vec<SwitchId>,
    /// Its hosts.
    pub hosts: HostSet,
    /// Why it is routed along trees; `None`: it is not, packets go up and down.
    pub fallback: Option<Fallback>,
}

/// Hosts whose filters stand together in several places, discretised alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    pub(crate) hosts: HostSet,
    pub(crate) unit: u64,
    pub(crate) places: Vec<(SwitchId, Out)>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Switch {
    mode: Mode,
    /// The logical up port.
    up: Vec<PortId>,
    sources: Vec<(Out, Source)>,
}

/// Which links carry packets, and whose filters each way needs: all that depends on the network and not on subscriptions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    settings: Settings,
    switches: Vec<Switch>,
    groups: Vec<Group>,
    trees: Vec<Tree>,
    components: Vec<Component>,
    /// Hosts with a working link to a working switch.
    hosts: HostSet,
}

impl Plan {
    /// Plans a network with some of it broken.
    pub fn new(topology: &Topology, failures: &Failures, settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let off = Switch { mode: Mode::Off, up: Vec::new(), sources: Vec::new() };
        let mut hosts = HostSet::new(topology.host_count());
        for host in topology.hosts().filter(|host| failures.host_works(topology, *host)) {
            hosts.insert(host);
        }
        let mut plan = Plan {
            switches: vec![off; topology.switch_count()],
            groups: Vec::new(),
            trees: Vec::new(),
            components: components(topology, failures, &hosts),
            hosts,
            settings,
        };
        let mut groups = BTreeMap::new();
        for index in 0..plan.components.len() {
            let component = plan.components[index].clone();
            match Hierarchy::find(topology, failures, &component, &plan.hosts) {
                Ok(hierarchy) => plan.use_hierarchy(topology, &component, &hierarchy, &mut groups),
                Err(fallback) => {
                    plan.components[index].fallback = Some(fallback);
                    for switch in &component.switches {
                        plan.switches[switch.index()].mode = Mode::Trees;
                    }
                }
            }
        }
        plan.grow_trees(topology, failures);
        Ok(plan)
    }

    fn use_hierarchy(
        &mut self,
        topology: &Topology,
        component: &Component,
        hierarchy: &Hierarchy,
        groups: &mut BTreeMap<(HostSet, u64), u32>,
    ) {
        for (switch, found) in component.switches.iter().zip(&hierarchy.switches) {
            if !found.used {
                continue;
            }
            let unit = self.settings.unit(topology.layer(*switch));
            let mut sources: Vec<(Out, Source)> = self.host_sources(topology, *switch);
            let mut group = |hosts: HostSet, out: Out, plan: &mut Plan| {
                let index = *groups.entry((hosts, unit)).or_insert_with_key(|(hosts, unit)| {
                    plan.groups.push(Group { hosts: hosts.clone(), unit: *unit, places: Vec::new() });
                    plan.groups.len() as u32 - 1
                });
                plan.groups[index as usize].places.push((*switch, out));
                (out, Source::Group(index))
            };
            for (port, below) in &found.down {
                sources.push(group(hierarchy.switches[*below].hosts.clone(), Out::Port(*port), self));
            }
            if !found.up.is_empty() {
                sources.push(match self.settings.policy {
                    crate::Policy::MemoryReduction => (Out::Up, Source::Everything),
                    crate::Policy::TrafficReduction => group(component.hosts.without(&found.hosts), Out::Up, self),
                });
            }
            sources.sort_unstable();
            self.switches[switch.index()] = Switch { mode: Mode::Hierarchy, up: found.up.clone(), sources };
        }
    }

    fn grow_trees(&mut self, topology: &Topology, failures: &Failures) {
        let members: Vec<bool> = self.switches.iter().map(|switch| switch.mode == Mode::Trees).collect();
        if !members.contains(&true) {
            return;
        }
        let usable = |link: LinkId| failures.link_works(topology, link);
        let Settings { weight, ties, trees, .. } = self.settings;
        self.trees = spanning_trees(topology, |switch| members[switch.index()], usable, weight, ties, trees as usize);
        for switch in topology.switches().filter(|switch| members[switch.index()]) {
            let mut sources = self.host_sources(topology, switch);
            for (tree, found) in (0..=u16::MAX).zip(&self.trees) {
                if let Some(branch) = found.branch(switch) {
                    let out = Out::Tree { tree, port: branch.up };
                    sources.push((out, Source::Branch { tree, child: switch, below: false }));
                }
                for branch in found.branches(switch) {
                    let out = Out::Tree { tree, port: branch.down };
                    sources.push((out, Source::Branch { tree, child: branch.child, below: true }));
                }
            }
            sources.sort_unstable();
            self.switches[switch.index()].sources = sources;
        }
    }

    fn host_sources(&self, topology: &Topology, switch: SwitchId) -> Vec<(Out, Source)> {
        let hosts = topology.hosts_at(switch).filter(|(_, host)| self.hosts.contains(*host));
        hosts.map(|(port, host)| (Out::Port(port), Source::Host(host))).collect()
    }

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The connected parts, by their first switches.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// The trees that parts without a usable hierarchy are routed along.
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// How a switch takes part.
    ///
    /// # Panics
    ///
    /// This and the methods below panic if the switch is another topology's.
    pub fn mode(&self, switch: SwitchId) -> Mode {
        self.switches[switch.index()].mode
    }

    /// The ports that are a switch's logical up port. A packet that comes from one of them goes to none of them.
    pub fn up_ports(&self, switch: SwitchId) -> &[PortId] {
        &self.switches[switch.index()].up
    }

    /// The ways out of a switch, ascending, and whose filters each has.
    pub fn sources(&self, switch: SwitchId) -> &[(Out, Source)] {
        &self.switches[switch.index()].sources
    }

    /// Whether a host's filters belong to a source.
    pub fn leads_to(&self, topology: &Topology, source: Source, host: HostId) -> bool {
        if !self.hosts.contains(host) {
            return false;
        }
        match source {
            Source::Everything => true,
            Source::Host(only) => only == host,
            Source::Group(index) => self.groups.get(index as usize).is_some_and(|group| group.hosts.contains(host)),
            Source::Branch { tree, child, below } => {
                let Some(tree) = self.trees.get(usize::from(tree)) else { return false };
                let (Some((first, last)), Some((position, _))) = (tree.span(child), tree.span(topology.access(host).0))
                else {
                    return false;
                };
                let inside = (first..=last).contains(&position);
                inside == below && tree.part(first) == tree.part(position)
            }
        }
    }

    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(crate) fn hosts(&self) -> &HostSet {
        &self.hosts
    }
}

fn components(topology: &Topology, failures: &Failures, hosts: &HostSet) -> Vec<Component> {
    let mut seen = vec![false; topology.switch_count()];
    let mut components = Vec::new();
    for start in topology.switches().filter(|switch| failures.switch_works(*switch)) {
        if std::mem::replace(&mut seen[start.index()], true) {
            continue;
        }
        let mut found = Component { switches: vec![start], hosts: HostSet::new(topology.host_count()), fallback: None };
        let mut next = 0;
        while let Some(switch) = found.switches.get(next).copied() {
            next += 1;
            topology.hosts_at(switch).filter(|(_, host)| hosts.contains(*host)).for_each(|(_, host)| {
                found.hosts.insert(host);
            });
            for (_, link, other) in topology.neighbours(switch) {
                if failures.link_works(topology, link) && !std::mem::replace(&mut seen[other.index()], true) {
                    found.switches.push(other);
                }
            }
        }
        found.switches.sort_unstable();
        if !found.hosts.is_empty() {
            components.push(found);
        }
    }
    components
}

/// The links of a part that are used up and down, chosen so that it does not matter which up port a packet takes:
///
/// 1. the links down from a switch lead to sets of hosts of which no two share any;
/// 2. a link is used in both directions or in none;
/// 3. every way up ends at a switch with all hosts below it.
///
/// By 1 no packet comes twice on its way down. By 1 and 2 a packet that goes up has been sent to all that is below, and
/// the switch above sends it to all the rest below itself; by 3 that ends with all hosts.
struct Hierarchy {
    /// In the order of the component's.
    switches: Vec<Step>,
}

#[derive(Clone)]
struct Step {
    /// The hosts below, and its own.
    hosts: HostSet,
    /// Links down: the port here, the place of the switch below among the component's, the port there.
    links: Vec<(PortId, usize, PortId)>,
    /// Links up that were chosen by the switches above: how many.
    chosen: usize,
    used: bool,
    up: Vec<PortId>,
    down: Vec<(PortId, usize)>,
}

impl Hierarchy {
    fn find(
        topology: &Topology,
        failures: &Failures,
        component: &Component,
        hosts: &HostSet,
    ) -> Result<Self, Fallback> {
        let (mut steps, overlap) = choose_down(topology, failures, component, hosts);
        let by_layer = by_layer(topology, component);
        for index in by_layer.iter().rev().copied() {
            let all = steps[index].hosts == component.hosts;
            // One below has all hosts as well: nothing comes up here.
            let idle = steps[index].links.iter().any(|(_, below, _)| steps[*below].hosts == component.hosts);
            let step = &mut steps[index];
            step.used = !idle && (all || !step.up.is_empty());
            if step.used {
                for (port, below, port_below) in step.links.clone() {
                    steps[index].down.push((port, below));
                    steps[below].up.push(port_below);
                }
            }
        }
        for (switch, step) in component.switches.iter().zip(&mut steps) {
            step.up.sort_unstable();
            if !step.used && topology.hosts_at(*switch).any(|(_, host)| hosts.contains(host)) {
                return Err(overlap.unwrap_or(Fallback::NoTop { switch: *switch }));
            }
        }
        Ok(Hierarchy { switches: steps })
    }
}

/// The places of a component's switches, the lowest layer first.
fn by_layer(topology: &Topology, component: &Component) -> Vec<usize> {
    let mut places: Vec<usize> = (0..component.switches.len()).collect();
    places.sort_by_key(|place| topology.layer(component.switches[*place]));
    places
}

/// Bottom up, the links down of each switch: first those that lead to most, then those to switches that few others have
/// chosen, as long as they lead to no host twice. Also the first link left out that would have led to new hosts.
fn choose_down(
    topology: &Topology,
    failures: &Failures,
    component: &Component,
    hosts: &HostSet,
) -> (Vec<Step>, Option<Fallback>) {
    let empty = Step {
        hosts: HostSet::new(topology.host_count()),
        links: Vec::new(),
        chosen: 0,
        used: false,
        up: Vec::new(),
        down: Vec::new(),
    };
    let mut steps = vec![empty.clone(); component.switches.len()];
    let mut overlap = None;
    for index in by_layer(topology, component) {
        let switch = component.switches[index];
        let mut reached = empty.hosts.clone();
        topology.hosts_at(switch).filter(|(_, host)| hosts.contains(*host)).for_each(|(_, host)| reached.insert(host));
        let mut candidates = Vec::new();
        for (port, link, other) in topology.neighbours(switch) {
            let down = topology.direction(switch, other) == Direction::Down;
            if let (true, true, Ok(below)) =
                (down, failures.link_works(topology, link), component.switches.binary_search(&other))
            {
                let [one, two] = topology.links()[link.index()].ends;
                let port_below = if one == (switch, port) { two.1 } else { one.1 };
                let step: &Step = &steps[below];
                candidates.push((Reverse(step.hosts.len()), step.chosen, port, below, port_below));
            }
        }
        candidates.sort_unstable();
        for (_, _, port, below, port_below) in candidates {
            let step = &mut steps[below];
            if step.hosts.is_empty() {
                continue;
            }
            if step.hosts.is_disjoint(&reached) {
                reached.unite(&step.hosts);
                step.chosen += 1;
                steps[index].links.push((port, below, port_below));
            } else if !step.hosts.without(&reached).is_empty() {
                overlap.get_or_insert(Fallback::Overlap { switch, below: component.switches[below] });
            }
        }
        steps[index].hosts = reached;
    }
    (steps, overlap)
}
