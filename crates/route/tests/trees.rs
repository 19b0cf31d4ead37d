//! Spanning trees and the filters along them.

use crate::route_common::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use weftwire_route::*;

fn weights(topology: &Topology, weight: Weight) -> Vec<u64> {
    let degree = |switch: SwitchId| topology.neighbours(switch).count() as u64;
    let weigh = |link: &Link| match weight {
        Weight::Uniform => 1,
        Weight::DegreeProduct => link.ends.iter().map(|(switch, _)| degree(*switch)).product(),
    };
    topology.links().iter().map(weigh).collect()
}

/// Kruskal's algorithm: the least weight of any spanning tree.
fn least_weight(topology: &Topology, weights: &[u64]) -> u64 {
    let mut links: Vec<usize> = (0..weights.len()).collect();
    links.sort_by_key(|link| weights[*link]);
    let mut part: Vec<u32> = (0..topology.switch_count() as u32).collect();
    let mut sum = 0;
    for link in links {
        let [one, two] = topology.links()[link].ends.map(|(switch, _)| part[switch.0 as usize]);
        if one != two {
            sum += weights[link];
            part.iter_mut().filter(|part| **part == two).for_each(|part| *part = one);
        }
    }
    sum
}

fn weight_of(topology: &Topology, tree: &Tree, weights: &[u64]) -> u64 {
    let mut sum = 0;
    let mut reached = BTreeSet::new();
    for switch in tree.order() {
        if let Some((port, parent)) = tree.parent(*switch) {
            assert!(reached.contains(&parent), "parents come first");
            let Attached::Switch { link, switch: above, .. } = topology.ports(*switch)[usize::from(port.0)] else {
                panic!("a host above a switch");
            };
            assert_eq!(above, parent);
            sum += weights[link.0 as usize];
        }
        assert!(reached.insert(*switch));
    }
    assert_eq!(reached.len(), topology.switch_count());
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_first_tree_has_the_least_weight(
        topology in any_network(false), seed in any::<u64>(), first_found in any::<bool>(),
    ) {
        for weight in [Weight::Uniform, Weight::DegreeProduct] {
            let ties = if first_found { Ties::FirstFound } else { Ties::Seeded(seed) };
            let trees = spanning_trees(&topology, |_| true, |_| true, weight, ties, 3);
            let weights = weights(&topology, weight);
            prop_assert_eq!(weight_of(&topology, &trees[0], &weights), least_weight(&topology, &weights));
            trees.iter().for_each(|tree| { weight_of(&topology, tree, &weights); });
        }
    }

    /// What is found switch by switch is what the tables hold, and the counts are theirs.
    #[test]
    fn filters_on_demand(
        (topology, subscriptions) in any_network(false).prop_flat_map(|topology| {
            let subscriptions = subscriptions(topology.host_count(), 12);
            (Just(topology), subscriptions)
        }),
        seed in 0u64..100,
        broken in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let mut failures = Failures::default();
        for index in &broken {
            failures.fail(Element::Link(LinkId(index.index(topology.links().len()) as u32)));
        }
        // A tree also where the plan has none: a switch with all hosts has no need of it.
        let usable = |link: LinkId| failures.link_works(&topology, link);
        let plan = Plan::new(&topology, &failures, settings(Policy::default(), vec![], 1, seed)).unwrap();
        let tree = match plan.trees() {
            [tree, ..] => tree.clone(),
            [] => spanning_trees(&topology, |_| true, usable, Weight::Uniform, Ties::Seeded(seed), 1).remove(0),
        };
        let tables = tables(&topology, &plan, &subscriptions);
        let fibs = Fibs::new(&topology, &tree, &subscriptions);
        let sizes = fibs.sizes();
        for switch in topology.switches().filter(|switch| plan.mode(*switch) == Mode::Trees) {
            prop_assert_eq!(sizes[switch.0 as usize], tables.size(switch));
            let local = &fibs.subscriptions()[fibs.local(switch)];
            prop_assert!(local.iter().all(|(host, _)| topology.access(*host).0 == switch));
            let mut behind = local.len();
            for port in fibs.ports(switch) {
                let filters: BTreeSet<Conjunction> = fibs.behind(&port).map(|(_, filter)| filter.clone()).collect();
                behind += fibs.behind(&port).count();
                let out = Out::Tree { tree: 0, port: port.port };
                prop_assert_eq!(filters, tables.table(switch).get(&out).cloned().unwrap_or_default());
            }
            let part = plan.components().iter().find(|part| part.switches.contains(&switch)).unwrap();
            prop_assert_eq!(behind, subscriptions.iter().filter(|(host, _)| part.hosts.contains(*host)).count());
        }
    }
}

/// A graph as large as the paper's: trees, and the size of every switch's table, at once.
#[test]
fn a_graph_of_26475_switches() {
    let mut state = 1u64;
    let mut random = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(state) * bound as u128) >> 64) as usize
    };
    let (count, mut text, mut ends) = (26_475, String::new(), vec![0usize]);
    for new in 1..count {
        for _ in 0..2 {
            let old = ends[random(ends.len())];
            text += &format!("{new} {old}\n");
            ends.push(old);
        }
        ends.push(new);
    }
    let list = parse_edges(&text).unwrap();
    let hosts: Vec<usize> = (0..1_000).map(|_| random(count)).collect();
    let topology = list.topology(&hosts).unwrap();
    let subscriptions: Subscriptions = (0..10_000u32)
        .map(|number| {
            let bounds = vec![(0, Operator::Above, random(500) as u64), (1, Operator::Below, random(500) as u64)];
            (HostId(number / 10), Conjunction(bounds))
        })
        .collect();
    let mut greatest = Vec::new();
    for weight in [Weight::Uniform, Weight::DegreeProduct] {
        let tree = spanning_trees(&topology, |_| true, |_| true, weight, Ties::FirstFound, 1).remove(0);
        let fibs = Fibs::new(&topology, &tree, &subscriptions);
        let sizes = fibs.sizes();
        let different = subscriptions.iter().map(|(_, filter)| filter).collect::<BTreeSet<_>>().len();
        assert!(sizes.iter().all(|size| *size >= different && *size <= 10_000));
        // A leaf without hosts has one port and all filters behind it.
        let leaf = topology.switches().find(|switch| tree.degree(*switch) == 1 && fibs.local(*switch).is_empty());
        assert_eq!(sizes[leaf.unwrap().0 as usize], different);
        greatest.push(topology.switches().map(|switch| tree.degree(switch)).max().unwrap());
    }
    assert!(greatest[1] * 4 < greatest[0], "degrees {greatest:?}");
}
