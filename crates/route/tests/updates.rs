//! The controller: what it says has changed is what has changed.

use crate::route_common::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use weftwire_route::*;

#[derive(Clone, Debug)]
enum Event {
    Subscribe(prop::sample::Index, Conjunction),
    Unsubscribe(prop::sample::Index),
    Fail(prop::sample::Index),
    Repair(prop::sample::Index),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        5 => (any::<prop::sample::Index>(), filter()).prop_map(|(host, filter)| Event::Subscribe(host, filter)),
        3 => any::<prop::sample::Index>().prop_map(Event::Unsubscribe),
        1 => any::<prop::sample::Index>().prop_map(Event::Fail),
        1 => any::<prop::sample::Index>().prop_map(Event::Repair),
    ];
    prop::collection::vec(event, 1..40)
}

/// The switches' tables as they are after each change.
struct Mirror {
    tables: Vec<Table<Conjunction>>,
    up_ports: Vec<Vec<PortId>>,
}

impl Mirror {
    fn apply(&mut self, delta: Delta<Conjunction>) {
        for change in delta.filters {
            let table = &mut self.tables[change.switch.0 as usize];
            if change.added {
                assert!(table.entry(change.out).or_default().insert(change.filter.clone()), "void: {change:?}");
            } else {
                let filters = table.get_mut(&change.out).expect("there is such a way");
                assert!(filters.remove(&change.filter), "void: {change:?}");
                if filters.is_empty() {
                    table.remove(&change.out);
                }
            }
        }
        for (switch, ports) in delta.up_ports {
            assert_ne!(self.up_ports[switch.0 as usize], ports);
            self.up_ports[switch.0 as usize] = ports;
        }
    }
}

fn run(topology: &Topology, settings: &Settings, events: &[Event]) {
    let mut controller = Controller::new(topology.clone(), settings.clone()).unwrap();
    let mut mirror = Mirror {
        tables: topology.switches().map(|switch| controller.table(switch)).collect(),
        up_ports: topology.switches().map(|switch| controller.plan().up_ports(switch).to_vec()).collect(),
    };
    let mut subscriptions: Subscriptions = Vec::new();
    let elements = elements(topology);
    for event in events {
        let delta = match event {
            Event::Subscribe(host, filter) => {
                let host = HostId(host.index(topology.host_count()) as u32);
                subscriptions.push((host, filter.clone()));
                controller.subscribe(host, filter.clone()).unwrap()
            }
            Event::Unsubscribe(which) if !subscriptions.is_empty() => {
                let (host, filter) = subscriptions.swap_remove(which.index(subscriptions.len()));
                controller.unsubscribe(host, &filter).unwrap()
            }
            Event::Unsubscribe(_) => continue,
            Event::Fail(which) => controller.fail(*which.get(&elements)),
            Event::Repair(which) => {
                let broken: Vec<Element> = controller.failures().broken().collect();
                if broken.is_empty() {
                    continue;
                }
                controller.repair(*which.get(&broken))
            }
        };
        mirror.apply(delta);
        let plan = Plan::new(topology, controller.failures(), settings.clone()).unwrap();
        let fresh = tables(topology, &plan, &subscriptions);
        assert_eq!(&plan, controller.plan());
        for switch in topology.switches() {
            assert_eq!(&mirror.tables[switch.0 as usize], fresh.table(switch), "after {event:?}");
            assert_eq!(&controller.table(switch), fresh.table(switch));
            assert_eq!(mirror.up_ports[switch.0 as usize], plan.up_ports(switch));
        }
    }
    let mut listed = BTreeMap::new();
    for (host, filter) in &subscriptions {
        *listed.entry((*host, filter)).or_insert(0) += 1;
    }
    assert_eq!(
        controller.subscriptions().map(|(host, filter, count)| ((host, filter), count)).collect::<BTreeMap<_, _>>(),
        listed
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn deltas_in_hierarchies(
        topology in regular(), policy in policy(), units in prop::collection::vec(0u64..12, 0..4), events in events(),
    ) {
        run(&topology, &settings(policy, units, 2, 1), &events);
    }

    #[test]
    fn deltas_in_any_network(
        topology in prop_oneof![any_network(true), any_network(false)], policy in policy(),
        units in prop::collection::vec(0u64..12, 0..4), trees in 1u32..4, seed in 0u64..100, events in events(),
    ) {
        run(&topology, &settings(policy, units, trees, seed), &events);
    }
}
