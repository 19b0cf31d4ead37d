//! Subscriptions that come and go, links that break and are mended, and what changes in the switches.

use crate::intern::{FilterId, Interner};
use crate::tree_state::{Step, TreeState};
use crate::{
    Element, Failures, Filter, HostId, HostSet, Out, Plan, PortId, Settings, SettingsError, Source, SwitchId, Table,
    Tables, Topology,
};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// A filter that a switch begins or ceases to need.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Change<F> {
    /// The switch.
    pub switch: SwitchId,
    /// Where matching packets go.
    pub out: Out,
    /// Begins, or else ceases.
    pub added: bool,
    /// The filter, as this place is to have it.
    pub filter: F,
}

/// What an event changes in the switches. Nothing in it is void: no filter is added that is there, none removed that is not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delta<F> {
    /// The filters. Those of a switch that breaks cease too; those of a repaired one begin again.
    pub filters: Vec<Change<F>>,
    /// The switches whose logical up port is now another set of ports.
    pub up_ports: Vec<(SwitchId, Vec<PortId>)>,
}

impl<F> Default for Delta<F> {
    fn default() -> Self {
        Delta { filters: Vec::new(), up_ports: Vec::new() }
    }
}

impl<F> Delta<F> {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.up_ports.is_empty()
    }
}

/// A host that is not there, or has no such subscription.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NotSubscribed {
    /// There is no such host.
    #[error("there is no host {}; there are {hosts}, from 0", host.0)]
    UnknownHost {
        /// The host.
        host: HostId,
        /// How many there are.
        hosts: usize,
    },
    /// The host has no such subscription.
    #[error("host {} has no such subscription", host.0)]
    UnknownFilter {
        /// The host.
        host: HostId,
    },
}

/// The subscriptions of a network and the filters that each switch needs for them; its tables are always those that
/// [`crate::tables`] would make afresh.
///
/// A subscription or its end takes O(g log m + changes) for the g groups of hosts with common filters that its host is in:
/// each group's filters are kept once, however many switches have them, with how many subscriptions stand behind each.
#[derive(Clone, Debug)]
pub struct Controller<F> {
    topology: Topology,
    failures: Failures,
    state: State,
    filters: Interner<F>,
    /// By host: how often it subscribed to each filter.
    subscriptions: Vec<BTreeMap<FilterId, u32>>,
}

/// What follows from subscriptions and network.
#[derive(Clone, Debug)]
struct State {
    plan: Plan,
    /// By group: how many subscriptions stand behind each discretised filter.
    groups: Vec<BTreeMap<FilterId, u32>>,
    /// The groups that each host is in, and the place of their unit.
    memberships: Vec<Vec<(u32, usize)>>,
    trees: Vec<TreeState>,
}

impl<F: Filter> Controller<F> {
    /// Without a subscription or a failure.
    pub fn new(topology: Topology, settings: Settings) -> Result<Self, SettingsError> {
        let units = topology.switches().map(|switch| settings.unit(topology.layer(switch))).collect();
        let filters = Interner::new(units);
        let subscriptions = vec![BTreeMap::new(); topology.host_count()];
        let failures = Failures::default();
        let plan = Plan::new(&topology, &failures, settings)?;
        let state = State::new(&topology, plan, &filters);
        Ok(Controller { topology, failures, state, filters, subscriptions })
    }

    /// The network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// What is broken.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Which links are used.
    pub fn plan(&self) -> &Plan {
        &self.state.plan
    }

    /// All subscriptions, by host, each with how often it was made.
    pub fn subscriptions(&self) -> impl Iterator<Item = (HostId, &F, u32)> {
        self.topology.hosts().zip(&self.subscriptions).flat_map(move |(host, filters)| {
            filters.iter().filter_map(move |(id, count)| Some((host, self.filters.filter(*id)?, *count)))
        })
    }

    /// What all switches need for the subscriptions and the network as they are: after [`Controller::new`] it can be sent
    /// at once (with memory reduction there are filters without a subscription).
    pub fn tables(&self) -> Tables<F> {
        Tables::new(self.topology.switches().map(|switch| self.table(switch)).collect())
    }

    /// What a switch needs, for one that starts again.
    ///
    /// # Panics
    ///
    /// If the switch is another topology's.
    pub fn table(&self, switch: SwitchId) -> Table<F> {
        let mut table = Table::new();
        for (out, source) in self.state.plan.sources(switch) {
            let filters: BTreeSet<F> = match source {
                Source::Everything => BTreeSet::from([F::everything()]),
                _ => self.contents(&self.state, switch, *source).iter().filter_map(|id| self.filter(*id)).collect(),
            };
            if !filters.is_empty() {
                table.insert(*out, filters);
            }
        }
        table
    }

    /// A host subscribes. The same subscription may be made several times; it ends when it has been ended as often.
    pub fn subscribe(&mut self, host: HostId, filter: F) -> Result<Delta<F>, NotSubscribed> {
        let hosts = self.subscriptions.len();
        let Some(subscriptions) = self.subscriptions.get_mut(host.index()) else {
            return Err(NotSubscribed::UnknownHost { host, hosts });
        };
        if let Some(count) = self.filters.find(&filter).and_then(|id| subscriptions.get_mut(&id)) {
            *count = count.saturating_add(1);
            return Ok(Delta::default());
        }
        let id = self.filters.subscribe(filter);
        subscriptions.insert(id, 1);
        Ok(self.change(host, id, true))
    }

    /// A host ends a subscription.
    pub fn unsubscribe(&mut self, host: HostId, filter: &F) -> Result<Delta<F>, NotSubscribed> {
        let hosts = self.subscriptions.len();
        let Some(subscriptions) = self.subscriptions.get_mut(host.index()) else {
            return Err(NotSubscribed::UnknownHost { host, hosts });
        };
        let found = self.filters.find(filter).and_then(|id| Some((id, subscriptions.get_mut(&id)?)));
        let Some((id, count)) = found else { return Err(NotSubscribed::UnknownFilter { host }) };
        if *count > 1 {
            *count -= 1;
            return Ok(Delta::default());
        }
        subscriptions.remove(&id);
        let delta = self.change(host, id, false);
        self.filters.unsubscribe(id);
        Ok(delta)
    }

    /// Something breaks; what is left goes on. Nothing changes if it was broken or is not there.
    pub fn fail(&mut self, element: Element) -> Delta<F> {
        if !self.exists(element) || !self.failures.fail(element) {
            return Delta::default();
        }
        self.plan_again()
    }

    /// Something works again.
    pub fn repair(&mut self, element: Element) -> Delta<F> {
        if !self.failures.repair(element) {
            return Delta::default();
        }
        self.plan_again()
    }

    fn exists(&self, element: Element) -> bool {
        match element {
            Element::Link(link) => link.index() < self.topology.links().len(),
            Element::Switch(switch) => switch.index() < self.topology.switch_count(),
            Element::Access(host) => host.index() < self.topology.host_count(),
        }
    }

    fn filter(&self, id: FilterId) -> Option<F> {
        self.filters.filter(id).cloned()
    }

    fn change(&mut self, host: HostId, id: FilterId, added: bool) -> Delta<F> {
        let mut delta = Delta::default();
        let (topology, filters) = (&self.topology, &self.filters);
        self.state.change(topology, filters, host, id, added, |switch, out, id| {
            if let Some(filter) = filters.filter(id) {
                delta.filters.push(Change { switch, out, added, filter: filter.clone() });
            }
        });
        delta
    }

    fn plan_again(&mut self) -> Delta<F> {
        // The settings were accepted before.
        let Ok(plan) = Plan::new(&self.topology, &self.failures, self.state.plan.settings().clone()) else {
            return Delta::default();
        };
        let mut next = State::new(&self.topology, plan, &self.filters);
        let kept = next.take_over(&mut self.state);
        for host in self.topology.hosts() {
            for id in self.subscriptions[host.index()].keys() {
                next.fill(&self.topology, &self.filters, &kept, host, *id);
            }
        }
        let delta = self.difference(&self.state, &next, &kept);
        self.state = next;
        delta
    }

    /// `old` has lost the groups that were taken over.
    fn difference(&self, old: &State, new: &State, kept: &Kept) -> Delta<F> {
        let mut delta = Delta::default();
        let (old_sides, new_sides) = (old.sides(&self.topology), new.sides(&self.topology));
        for switch in self.topology.switches() {
            if old.plan.up_ports(switch) != new.plan.up_ports(switch) {
                delta.up_ports.push((switch, new.plan.up_ports(switch).to_vec()));
            }
            let mut ways: BTreeMap<Out, (Option<Source>, Option<Source>)> = BTreeMap::new();
            for (out, source) in old.plan.sources(switch) {
                ways.entry(*out).or_default().0 = Some(*source);
            }
            for (out, source) in new.plan.sources(switch) {
                ways.entry(*out).or_default().1 = Some(*source);
            }
            for (out, (before, after)) in ways {
                let hosts_before = before.and_then(|source| old.hosts_behind(&old_sides, source));
                let hosts_after = after.and_then(|source| new.hosts_behind(&new_sides, source));
                if kept.same(before, after) || (hosts_before.is_some() && hosts_before == hosts_after) {
                    continue;
                }
                let everything = |source| source == Some(Source::Everything);
                let contents = |state: &State, source: Option<Source>, hosts: Option<HostSet>| match (source, hosts) {
                    (_, Some(hosts)) => self.relaxed(state, switch, hosts.iter()),
                    (Some(Source::Group(index)), _) if std::ptr::eq(state, old) => {
                        let state = kept.new_of_old.get(&index).map_or((old, index), |place| (new, *place));
                        self.contents(state.0, switch, Source::Group(state.1))
                    }
                    (Some(source), _) => self.contents(state, switch, source),
                    (None, _) => BTreeSet::new(),
                };
                let mut push = |added: bool, filter: F| {
                    delta.filters.push(Change { switch, out, added, filter });
                };
                match (everything(before), everything(after)) {
                    (false, true) => push(true, F::everything()),
                    (true, false) => push(false, F::everything()),
                    _ => {}
                }
                let (before, after) = (contents(old, before, hosts_before), contents(new, after, hosts_after));
                after.difference(&before).filter_map(|id| self.filter(*id)).for_each(|filter| push(true, filter));
                before.difference(&after).filter_map(|id| self.filter(*id)).for_each(|filter| push(false, filter));
            }
        }
        delta
    }

    /// The filters of a way out, but for the one that matches everything.
    fn contents(&self, state: &State, switch: SwitchId, source: Source) -> BTreeSet<FilterId> {
        match source {
            Source::Everything => BTreeSet::new(),
            Source::Host(host) => self.subscriptions[host.index()].keys().copied().collect(),
            Source::Group(index) => state.groups[index as usize].keys().copied().collect(),
            Source::Branch { .. } => {
                let hosts = self.topology.hosts().filter(|host| state.plan.leads_to(&self.topology, source, *host));
                self.relaxed(state, switch, hosts)
            }
        }
    }

    /// The filters of some hosts as a switch is to have them.
    fn relaxed(&self, state: &State, switch: SwitchId, hosts: impl Iterator<Item = HostId>) -> BTreeSet<FilterId> {
        let unit = self.filters.unit_place(state.plan.settings().unit(self.topology.layer(switch)));
        let ids = hosts.flat_map(|host| self.subscriptions[host.index()].keys());
        ids.filter_map(|id| self.filters.relaxed(*id, unit)).collect()
    }
}

/// The groups that an old and a new plan have in common.
struct Kept {
    new_of_old: BTreeMap<u32, u32>,
    /// The new ones.
    new: BTreeSet<u32>,
}

impl Kept {
    /// Whether two sources surely have the same filters.
    fn same(&self, before: Option<Source>, after: Option<Source>) -> bool {
        match (before, after) {
            (Some(Source::Group(old)), Some(Source::Group(new))) => self.new_of_old.get(&old) == Some(&new),
            // Trees of two plans may differ.
            (Some(Source::Branch { .. }), _) => false,
            _ => before == after,
        }
    }
}

impl State {
    fn new<F: Filter>(topology: &Topology, plan: Plan, filters: &Interner<F>) -> Self {
        let mut memberships = vec![Vec::new(); topology.host_count()];
        for (index, group) in (0..).zip(plan.groups()) {
            let unit = filters.unit_place(group.unit);
            group.hosts.iter().for_each(|host| memberships[host.index()].push((index, unit)));
        }
        let groups = vec![BTreeMap::new(); plan.groups().len()];
        let trees = vec![TreeState::new(filters.units().len()); plan.trees().len()];
        State { plan, groups, memberships, trees }
    }

    fn change<F: Filter>(
        &mut self,
        topology: &Topology,
        filters: &Interner<F>,
        host: HostId,
        id: FilterId,
        added: bool,
        mut emit: impl FnMut(SwitchId, Out, FilterId),
    ) {
        if !self.plan.hosts().contains(host) {
            return;
        }
        let (switch, port) = topology.access(host);
        emit(switch, Out::Port(port), id);
        for (index, unit) in &self.memberships[host.index()] {
            let Some(relaxed) = filters.relaxed(id, *unit) else { continue };
            if count(&mut self.groups[*index as usize], relaxed, added) {
                let places = &self.plan.groups()[*index as usize].places;
                places.iter().for_each(|(switch, out)| emit(*switch, *out, relaxed));
            }
        }
        let settings = self.plan.settings();
        for ((number, tree), state) in (0..=u16::MAX).zip(self.plan.trees()).zip(&mut self.trees) {
            for (unit, value) in filters.units().iter().enumerate() {
                let Some(filter) = filters.relaxed(id, unit) else { continue };
                state.change(tree, number, Step { unit, filter, switch, added }, |at, out| {
                    if settings.unit(topology.layer(at)) == *value {
                        emit(at, out, filter);
                    }
                });
            }
        }
    }

    /// By tree and switch: the hosts below.
    fn sides(&self, topology: &Topology) -> Vec<Vec<HostSet>> {
        self.plan.trees().iter().map(|tree| tree.hosts_below(topology, self.plan.hosts())).collect()
    }

    /// The hosts behind a tree's link.
    fn hosts_behind(&self, sides: &[Vec<HostSet>], source: Source) -> Option<HostSet> {
        let Source::Branch { tree, child, below } = source else { return None };
        let hosts = sides.get(usize::from(tree))?;
        let inside = hosts.get(child.index())?;
        if below {
            return Some(inside.clone());
        }
        let root = self.plan.trees().get(usize::from(tree))?.root(child)?;
        Some(hosts[root.index()].without(inside))
    }

    /// Takes the groups from an old state that are the same in this one.
    fn take_over(&mut self, old: &mut State) -> Kept {
        let mut places: BTreeMap<(&HostSet, u64), u32> = BTreeMap::new();
        for (index, group) in (0..).zip(old.plan.groups()) {
            places.insert((&group.hosts, group.unit), index);
        }
        let mut kept = Kept { new_of_old: BTreeMap::new(), new: BTreeSet::new() };
        for (index, group) in (0..).zip(self.plan.groups()) {
            if let Some(place) = places.get(&(&group.hosts, group.unit)) {
                self.groups[index as usize] = std::mem::take(&mut old.groups[*place as usize]);
                kept.new_of_old.insert(*place, index);
                kept.new.insert(index);
            }
        }
        kept
    }

    /// Counts a subscription in the groups that were not taken over, and along the trees.
    fn fill<F: Filter>(&mut self, topology: &Topology, filters: &Interner<F>, kept: &Kept, host: HostId, id: FilterId) {
        for (index, unit) in &self.memberships[host.index()] {
            if let (false, Some(relaxed)) = (kept.new.contains(index), filters.relaxed(id, *unit)) {
                count(&mut self.groups[*index as usize], relaxed, true);
            }
        }
        if self.plan.hosts().contains(host) {
            let switch = topology.access(host).0;
            for (tree, state) in self.plan.trees().iter().zip(&mut self.trees) {
                for unit in 0..filters.units().len() {
                    if let Some(filter) = filters.relaxed(id, unit) {
                        state.place(tree, unit, filter, switch);
                    }
                }
            }
        }
    }
}

/// Counts one more or one less; says whether the filter came or went.
fn count(counts: &mut BTreeMap<FilterId, u32>, id: FilterId, added: bool) -> bool {
    let count = counts.entry(id).or_default();
    if added {
        *count += 1;
        return *count == 1;
    }
    *count = count.saturating_sub(1);
    let gone = *count == 0;
    if gone {
        counts.remove(&id);
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fat_tree;

    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct Above(u64);

    impl Filter for Above {
        type Message = u64;
        fn everything() -> Self {
            Above(0)
        }
        fn relaxed(&self, unit: u64) -> Self {
            Above(self.0 / unit.max(1) * unit.max(1))
        }
        fn matches(&self, message: &u64) -> bool {
            *message >= self.0
        }
    }

    #[test]
    fn nothing_is_left_when_all_subscriptions_have_ended() {
        let settings = Settings { units: vec![1, 10, 100], ..Settings::default() };
        let mut controller = Controller::new(fat_tree(4).unwrap(), settings).unwrap();
        for host in 0..16 {
            for constant in [3, 10, 14, 100, 250] {
                controller.subscribe(HostId(host), Above(constant)).unwrap();
                assert!(controller.subscribe(HostId(host), Above(constant)).unwrap().is_empty());
            }
        }
        let (filters, groups) = (controller.filters.len(), controller.state.groups.len());
        assert_eq!((filters, groups), (7, 24), "3, 10, 14, 100, 250, 0 and 200");
        for host in 0..16 {
            for constant in [3, 10, 14, 100, 250] {
                assert!(controller.unsubscribe(HostId(host), &Above(constant)).unwrap().is_empty());
                assert!(!controller.unsubscribe(HostId(host), &Above(constant)).unwrap().is_empty());
            }
        }
        assert_eq!(controller.filters.len(), 0);
        assert!(controller.state.groups.iter().all(BTreeMap::is_empty));
        let tables = controller.tables();
        assert!(controller.topology().switches().all(|switch| tables.size(switch) == 0));
    }

    #[test]
    fn aggregated_filters_change_nothing_above() {
        let settings = Settings { units: vec![1, 10, 10], ..Settings::default() };
        let mut controller = Controller::new(fat_tree(4).unwrap(), settings).unwrap();
        let first = controller.subscribe(HostId(0), Above(53)).unwrap();
        // The host's port; its pod's 2 switches above, 4 cores; 7 other switches with hosts, 6 switches of other pods.
        assert_eq!(first.filters.len(), 1 + 2 + 4 + 7 + 6);
        let second = controller.subscribe(HostId(0), Above(57)).unwrap();
        assert_eq!(second.filters.len(), 1 + 7, "only the lowest layer is exact");
        let gone = controller.unsubscribe(HostId(0), &Above(53)).unwrap();
        assert_eq!(gone.filters.len(), 1 + 7);
        assert!(gone.filters.iter().all(|change| !change.added && change.filter == Above(53)));
    }

    #[test]
    fn unknown_things_are_refused() {
        let mut controller = Controller::new(fat_tree(2).unwrap(), Settings::default()).unwrap();
        let error = controller.subscribe(HostId(2), Above(1)).unwrap_err();
        assert_eq!(error.to_string(), "there is no host 2; there are 2, from 0");
        assert!(controller.unsubscribe(HostId(1), &Above(1)).is_err());
        controller.subscribe(HostId(0), Above(1)).unwrap();
        assert_eq!(controller.unsubscribe(HostId(1), &Above(1)), Err(NotSubscribed::UnknownFilter { host: HostId(1) }));
        assert!(controller.fail(Element::Switch(SwitchId(99))).is_empty());
        assert!(Controller::<Above>::new(fat_tree(2).unwrap(), Settings { trees: 0, ..Settings::default() }).is_err());
    }
}
