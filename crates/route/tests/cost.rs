//! What updates cost at scale. Figures: `cargo test --release -p weftwire-route --test all cost -- --ignored
//! --nocapture --test-threads 1`.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a measurement reads the clock")]

use crate::route_common::*;
use std::time::Instant;
use weftwire_route::*;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }

    /// A host, and a filter of the kind `stock == S and price > P` with 100 symbols and 999 prices.
    fn subscription(&mut self, hosts: usize) -> (HostId, Conjunction) {
        let (stock, price) = (self.below(100), 1 + self.below(999));
        let filter = Conjunction(vec![(0, Operator::Equal, stock), (1, Operator::Above, price)]);
        (HostId(self.below(hosts as u64) as u32), filter)
    }
}

/// Deltas alone build tables of the same sizes, and a subscription touches no more places than there are.
#[test]
fn many_subscriptions_over_20_switches() {
    let topology = fat_tree(4).unwrap();
    let settings = Settings { units: vec![1, 10, 10], ..Settings::default() };
    let mut controller = Controller::new(topology.clone(), settings).unwrap();
    let mut random = Random(1);
    let mut sizes = [0usize; 20];
    let mut list = Vec::new();
    for _ in 0..5_000 {
        let (host, filter) = random.subscription(16);
        list.push((host, filter.clone()));
        let delta = controller.subscribe(host, filter).unwrap();
        assert!(delta.filters.len() <= 20);
        delta.filters.iter().for_each(|change| sizes[change.switch.0 as usize] += 1);
    }
    let fresh = tables(&topology, controller.plan(), &list);
    for switch in topology.switches() {
        assert_eq!(sizes[switch.0 as usize], fresh.size(switch));
        assert_eq!(&controller.table(switch), fresh.table(switch));
    }
}

fn microseconds(mut times: Vec<u64>) -> String {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100] as f64 / 1e3;
    format!("median {:.1} us, 99 % {:.1} us, most {:.1} us", at(50), at(99), at(100))
}

fn timed<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_nanos() as u64, result)
}

#[test]
#[ignore = "a measurement"]
fn cost_of_updates() {
    let topology = fat_tree(4).unwrap();
    for (policy, unit) in [
        (Policy::MemoryReduction, 1),
        (Policy::MemoryReduction, 10),
        (Policy::TrafficReduction, 1),
        (Policy::TrafficReduction, 10),
    ] {
        let settings = Settings { policy, units: vec![unit], ..Settings::default() };
        let mut controller = Controller::new(topology.clone(), settings).unwrap();
        let mut random = Random(1);
        let mut list = Vec::new();
        let start = Instant::now();
        for _ in 0..100_000 {
            let (host, filter) = random.subscription(16);
            list.push((host, filter.clone()));
            controller.subscribe(host, filter).unwrap();
        }
        println!("{policy:?}, unit {unit}: 100,000 subscriptions in {:.2} s", start.elapsed().as_secs_f64());
        let (mut adding, mut removing, mut changes) = (Vec::new(), Vec::new(), 0);
        for old in list.iter_mut().take(10_000) {
            let (host, filter) = random.subscription(16);
            let (time, delta) = timed(|| controller.subscribe(host, filter.clone()).unwrap());
            adding.push(time);
            changes += delta.filters.len();
            let (host, filter) = std::mem::replace(old, (host, filter));
            removing.push(timed(|| controller.unsubscribe(host, &filter).unwrap()).0);
        }
        println!("  subscribe   {}, {:.1} changes", microseconds(adding), changes as f64 / 1e4);
        println!("  unsubscribe {}", microseconds(removing));
        let (time, tables_now) = timed(|| controller.tables());
        let by_layer = |layer: u16| {
            let switches = topology.switches().filter(|switch| topology.layer(*switch) == layer);
            switches.map(|switch| tables_now.size(switch)).max().unwrap_or_default()
        };
        println!(
            "  filters, most of a switch by layer: {:?}; all tables in {} ms",
            [0, 1, 2].map(by_layer),
            time / 1_000_000
        );
        for element in [Element::Link(LinkId(0)), Element::Switch(SwitchId(0)), Element::Switch(SwitchId(4))] {
            let (failing, failed) = timed(|| controller.fail(element));
            let (mending, mended) = timed(|| controller.repair(element));
            assert_eq!(failed.filters.len(), mended.filters.len());
            println!(
                "  {element:?}: {} ms, {} changes; repaired in {} ms",
                failing / 1_000_000,
                failed.filters.len(),
                mending / 1_000_000
            );
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn cost_of_large_trees() {
    let mut random = Random(1);
    let (count, mut text, mut ends) = (26_475u64, String::new(), vec![0u64]);
    for new in 1..count {
        for _ in 0..2 {
            let old = ends[random.below(ends.len() as u64) as usize];
            text += &format!("{new} {old}\n");
            ends.push(old);
        }
        ends.push(new);
    }
    let list = parse_edges(&text).unwrap();
    let hosts: Vec<usize> = (0..10_000).map(|_| random.below(count) as usize).collect();
    let topology = list.topology(&hosts).unwrap();
    let subscriptions: Subscriptions = (0..10_000).map(|_| random.subscription(10_000)).collect();
    for (weight, ties) in [
        (Weight::Uniform, Ties::Seeded(1)),
        (Weight::Uniform, Ties::FirstFound),
        (Weight::DegreeProduct, Ties::Seeded(1)),
    ] {
        let (tree_time, trees) = timed(|| spanning_trees(&topology, |_| true, |_| true, weight, ties, 1));
        let (time, fibs) = timed(|| Fibs::new(&topology, &trees[0], &subscriptions));
        let (size_time, sizes) = timed(|| fibs.sizes());
        let (port_time, ports) = timed(|| topology.switches().map(|switch| fibs.ports(switch).len()).sum::<usize>());
        println!(
            "{weight:?}, {ties:?}: tree {} ms, sorted {} ms, sizes {} ms (most {}), all {ports} ports {} ms; degree {}",
            tree_time / 1_000_000,
            time / 1_000_000,
            size_time / 1_000_000,
            sizes.iter().max().unwrap(),
            port_time / 1_000_000,
            topology.switches().map(|switch| trees[0].degree(switch)).max().unwrap()
        );
    }
    let mut controller = Controller::new(topology, Settings::default()).unwrap();
    let times = |controller: &mut Controller<Conjunction>, list: &Subscriptions| {
        let subscribe = |(host, filter): &(HostId, Conjunction)| {
            timed(|| controller.subscribe(*host, filter.clone()).unwrap().filters.len())
        };
        list.iter().map(subscribe).collect::<Vec<_>>()
    };
    let first = times(&mut controller, &subscriptions);
    let further: Subscriptions =
        subscriptions.iter().map(|(host, filter)| (HostId(9_999 - host.0), filter.clone())).collect();
    let second = times(&mut controller, &further);
    for (name, times) in [("new filters", first), ("known filters", second)] {
        let changes: usize = times.iter().map(|(_, changes)| changes).sum();
        let times = times.into_iter().map(|(time, _)| time).collect();
        println!("controller, {name}: {}, {} changes each", microseconds(times), changes / 10_000);
    }
    for link in [0, 1_000, 30_000] {
        let (failing, failed) = timed(|| controller.fail(Element::Link(LinkId(link))));
        let (mending, _) = timed(|| controller.repair(Element::Link(LinkId(link))));
        println!(
            "  link {link}: {} ms, {} changes; repaired in {} ms",
            failing / 1_000_000,
            failed.filters.len(),
            mending / 1_000_000
        );
    }
}

#[test]
#[ignore = "a measurement"]
fn cost_of_discretisation() {
    let topology = fat_tree(4).unwrap();
    let mut random = Random(1);
    let subscriptions: Subscriptions = (0..10_000).map(|_| random.subscription(16)).collect();
    let messages: Vec<(HostId, Message)> =
        (0..2_000).map(|_| (HostId(random.below(16) as u32), [random.below(100), random.below(1_000)])).collect();
    for policy in [Policy::MemoryReduction, Policy::TrafficReduction] {
        for unit in [1, 2, 5, 10, 20, 50, 100, 200] {
            let settings = Settings { policy, units: vec![unit], ..Settings::default() };
            let plan = Plan::new(&topology, &Failures::default(), settings).unwrap();
            let tables = tables(&topology, &plan, &subscriptions);
            let mut spreader = Spreader::new(Spread::FlowHash, 1);
            let mut layers = [LayerTraffic::default(); 3];
            for (flow, (publisher, message)) in messages.iter().enumerate() {
                let packet = Packet { publisher: *publisher, message, flow: flow as u64 };
                for (layer, traffic) in walk(&topology, &plan, &tables, packet, &mut spreader).traffic(&topology) {
                    layers[usize::from(layer)] += traffic;
                }
            }
            let most = |layer: u16| {
                let switches = topology.switches().filter(|switch| topology.layer(*switch) == layer);
                switches.map(|switch| tables.size(switch)).max().unwrap_or_default()
            };
            println!(
                "{policy:?}, unit {unit}: filters by layer {:?}, extra below aggregation {:.2} %, core {:.2} %",
                [0, 1, 2].map(most),
                100.0 * layers[1].extra_share(),
                100.0 * layers[2].extra_share()
            );
        }
    }
}
