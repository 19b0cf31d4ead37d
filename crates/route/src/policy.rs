//! The policies, and all filters computed in one go.

use crate::{Filter, HostId, Out, Plan, Source, SwitchId, Ties, Topology, Weight};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// What is saved on the way up a hierarchy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Memory reduction: everything goes up.
    MemoryReduction,
    /// Traffic reduction: what somebody not below wants goes up.
    #[default]
    TrafficReduction,
}

/// How subscriptions are routed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// For the links up a hierarchy.
    pub policy: Policy,
    /// The discretisation unit (the paper's alpha) by layer of the switch, in units of the fields; the last holds for all
    /// layers above. Empty, 0 or 1: filters stay as they are. Ports of hosts are always exact.
    pub units: Vec<u64>,
    /// How trees are chosen where there is no hierarchy.
    pub weight: Weight,
    /// Which of equal links a tree takes.
    pub ties: Ties,
    /// How many trees, 1 to 65,536.
    pub trees: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            policy: Policy::default(),
            units: Vec::new(),
            weight: Weight::DegreeProduct,
            ties: Ties::Seeded(1),
            trees: 1,
        }
    }
}

/// A setting that can't be.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SettingsError {
    /// No tree, or too many.
    #[error("{trees} trees; 1 to 65536 are possible")]
    Trees {
        /// The setting.
        trees: u32,
    },
}

impl Settings {
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        if !(1..=1 << 16).contains(&self.trees) {
            return Err(SettingsError::Trees { trees: self.trees });
        }
        Ok(())
    }

    /// The unit of a layer; 1: exact.
    pub fn unit(&self, layer: u16) -> u64 {
        let unit = self.units.get(usize::from(layer)).or(self.units.last());
        unit.copied().unwrap_or(1).max(1)
    }
}

/// The filters of a switch by where matching packets go. Ways without a filter are left out.
pub type Table<F> = BTreeMap<Out, BTreeSet<F>>;

/// The filters of all switches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tables<F> {
    switches: Vec<Table<F>>,
}

impl<F> Tables<F> {
    /// Takes the table of each switch, in the switches' order.
    pub fn new(switches: Vec<Table<F>>) -> Self {
        Tables { switches }
    }

    /// A switch's table.
    ///
    /// # Panics
    ///
    /// If the switch is another topology's.
    pub fn table(&self, switch: SwitchId) -> &Table<F> {
        &self.switches[switch.index()]
    }

    /// How many filters a switch has, over all ways.
    pub fn size(&self, switch: SwitchId) -> usize {
        self.table(switch).values().map(BTreeSet::len).sum()
    }
}

/// All filters of a network, made by the definition: for each way the filters of the hosts that it leads to. Takes
/// O(switches x subscriptions), as does its result; subscriptions of hosts that the plan does not reach are left out.
pub fn tables<F: Filter>(topology: &Topology, plan: &Plan, subscriptions: &[(HostId, F)]) -> Tables<F> {
    let mut by_host: BTreeMap<HostId, BTreeSet<&F>> = BTreeMap::new();
    for (host, filter) in subscriptions {
        by_host.entry(*host).or_default().insert(filter);
    }
    let table = |switch: SwitchId| {
        let unit = plan.settings().unit(topology.layer(switch));
        let mut table = Table::new();
        for (out, source) in plan.sources(switch).iter().copied() {
            let filters: BTreeSet<F> = match source {
                Source::Everything => BTreeSet::from([F::everything()]),
                Source::Host(host) => {
                    by_host.get(&host).into_iter().flatten().map(|filter| (*filter).clone()).collect()
                }
                _ => {
                    let filters = by_host.iter().filter(|(host, _)| plan.leads_to(topology, source, **host));
                    filters.flat_map(|(_, filters)| filters).map(|filter| filter.relaxed(unit)).collect()
                }
            };
            if !filters.is_empty() {
                table.insert(out, filters);
            }
        }
        table
    };
    Tables::new(topology.switches().map(table).collect())
}
