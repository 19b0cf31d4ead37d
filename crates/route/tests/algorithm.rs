//! The tables of hierarchies against Algorithm 1, written down as the paper has it.

use crate::route_common::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use weftwire_route::*;

/// Line 22 of Algorithm 1.
#[derive(Clone, Copy, PartialEq)]
enum Line22 {
    /// `F_up += F_q`: what is below the switch itself.
    Printed,
    /// `F_up += F_p`: what is below its siblings.
    Siblings,
    /// Also what is above: `F_up += F_p` and `F_up += F_up` of the switch above, top down.
    Corrected,
}

/// Algorithm 1 with exact filters, for networks in which all links are used.
fn algorithm(topology: &Topology, subscriptions: &Subscriptions, policy: Policy, line: Line22) -> Tables<Conjunction> {
    let mut filters: Vec<BTreeMap<Out, BTreeSet<Conjunction>>> = vec![BTreeMap::new(); topology.switch_count()];
    for (host, own) in by_host(subscriptions) {
        let (switch, port) = topology.access(host);
        filters[switch.0 as usize].entry(Out::Port(port)).or_default().extend(own);
    }
    let mut bottom_up: Vec<SwitchId> = topology.switches().collect();
    bottom_up.sort_by_key(|switch| topology.layer(*switch));
    let up = |switch: SwitchId| {
        topology.ports(switch).iter().filter_map(move |attached| match attached {
            Attached::Switch { switch: above, port, .. } if topology.direction(switch, *above) == Direction::Up => {
                Some((*above, *port))
            }
            _ => None,
        })
    };
    for source in &bottom_up {
        let below: BTreeSet<Conjunction> = filters[source.0 as usize].values().flatten().cloned().collect();
        for (above, port) in up(*source) {
            filters[above.0 as usize].entry(Out::Port(port)).or_default().extend(below.clone());
        }
    }
    for source in bottom_up.iter().rev() {
        let Some((above, port)) = up(*source).next() else { continue };
        let mut found = BTreeSet::new();
        if policy == Policy::MemoryReduction {
            found.insert(Conjunction::everything());
        } else {
            for (out, below) in &filters[above.0 as usize] {
                match (out, line) {
                    (Out::Port(other), Line22::Printed) if *other != port => {
                        found.extend(filters[above.0 as usize].get(&Out::Port(port)).into_iter().flatten().cloned());
                    }
                    (Out::Port(other), _) if *other != port => found.extend(below.clone()),
                    (Out::Up, Line22::Corrected) => found.extend(below.clone()),
                    _ => {}
                }
            }
        }
        filters[source.0 as usize].insert(Out::Up, found);
    }
    filters.iter_mut().for_each(|table| table.retain(|_, filters| !filters.is_empty()));
    Tables::new(filters)
}

/// All links of these are used.
fn plain() -> impl Strategy<Value = Topology> {
    prop_oneof![
        prop::sample::select(vec![2u32, 4, 6]).prop_map(|k| fat_tree(k).unwrap()),
        (2usize..5, 1usize..4, 1usize..3).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        (2usize..4, 1usize..3).prop_map(|(width, copies)| four_layers(width, copies)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tables_are_those_of_the_algorithm(
        (topology, subscriptions) in plain().prop_flat_map(|topology| {
            let subscriptions = subscriptions(topology.host_count(), 20);
            (Just(topology), subscriptions)
        }),
        policy in policy(),
    ) {
        let plan = Plan::new(&topology, &Failures::default(), settings(policy, vec![], 1, 1)).unwrap();
        let made = tables(&topology, &plan, &subscriptions);
        let expected = algorithm(&topology, &subscriptions, policy, Line22::Corrected);
        for switch in topology.switches() {
            prop_assert_eq!(made.table(switch), expected.table(switch), "{}", topology.switch_name(switch));
        }
    }
}

/// As printed, line 22 reaches nobody outside; without the filters from above it stays in the pod.
#[test]
fn line_22_needs_both_corrections() {
    let topology = fat_tree(4).unwrap();
    let plan = Plan::new(&topology, &Failures::default(), Settings::default()).unwrap();
    let subscriptions: Subscriptions =
        topology.hosts().map(|host| (host, Conjunction(vec![(0, Operator::Equal, u64::from(host.0))]))).collect();
    let reached = |line: Line22| {
        let tables = algorithm(&topology, &subscriptions, Policy::TrafficReduction, line);
        let reaches = |host: &u64| {
            let packet = Packet { publisher: HostId(0), message: &[*host, 0], flow: 0 };
            let mut spreader = Spreader::new(Spread::FlowHash, 1);
            !walk(&topology, &plan, &tables, packet, &mut spreader).deliveries.is_empty()
        };
        (1..16).filter(reaches).collect::<Vec<_>>()
    };
    assert_eq!(reached(Line22::Printed), [1]);
    assert_eq!(reached(Line22::Siblings), [1, 2, 3]);
    assert_eq!(reached(Line22::Corrected), (1..16).collect::<Vec<_>>());
}
