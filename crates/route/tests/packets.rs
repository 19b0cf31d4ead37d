//! Every subscriber gets exactly its messages, once, in any network, whatever the policy; and no link is crossed for
//! nothing where the policy says so.

use crate::route_common::*;
use proptest::prelude::*;
use weftwire_route::*;

#[derive(Clone, Debug)]
struct Case {
    topology: Topology,
    failures: Failures,
    subscriptions: Subscriptions,
    messages: Vec<Message>,
    settings: Settings,
    spread: Spread,
}

fn case(topology: impl Strategy<Value = Topology>, broken: usize) -> impl Strategy<Value = Case> {
    topology.prop_flat_map(move |topology| {
        let elements = elements(&topology);
        let spread = prop_oneof![Just(Spread::Random), Just(Spread::RoundRobin), Just(Spread::FlowHash)];
        let failures = prop::collection::vec(any::<prop::sample::Index>(), 0..=broken);
        let units = prop::collection::vec(0u64..12, 0..4);
        let subscriptions = subscriptions(topology.host_count(), 12);
        let made = (policy(), units, 1u32..4, 0u64..1_000)
            .prop_map(|(policy, units, trees, seed)| settings(policy, units, trees, seed));
        let messages = prop::collection::vec(message(), 1..4);
        (subscriptions, messages, made, spread, failures).prop_map(
            move |(subscriptions, messages, settings, spread, broken)| {
                let mut failures = Failures::default();
                for index in &broken {
                    failures.fail(*index.get(&elements));
                }
                Case { topology: topology.clone(), failures, subscriptions, messages, settings, spread }
            },
        )
    })
}

impl Case {
    fn plan(&self, settings: &Settings) -> Plan {
        Plan::new(&self.topology, &self.failures, settings.clone()).unwrap()
    }

    fn exact(&self) -> Settings {
        Settings { units: Vec::new(), ..self.settings.clone() }
    }

    /// Sends all messages from all hosts that work.
    fn walks(&self, settings: &Settings) -> Vec<(HostId, Message, Walk)> {
        let plan = self.plan(settings);
        let tables = tables(&self.topology, &plan, &self.subscriptions);
        let mut spreader = Spreader::new(self.spread, 7);
        let mut walks = Vec::new();
        for publisher in self.topology.hosts().filter(|host| self.failures.host_works(&self.topology, *host)) {
            for (number, message) in self.messages.iter().enumerate() {
                let flow = u64::from(publisher.0) * 100 + number as u64;
                let packet = Packet { publisher, message, flow };
                walks.push((publisher, *message, walk(&self.topology, &plan, &tables, packet, &mut spreader)));
            }
        }
        walks
    }

    /// Who gets what; no loop; nothing over what is broken; in a hierarchy nothing goes up after it went down.
    fn check_delivery(&self) {
        let plan = self.plan(&self.settings);
        for (publisher, message, walk) in self.walks(&self.settings) {
            assert!(!walk.looped, "{walk:?}");
            let expected = receivers(&self.topology, &self.failures, &self.subscriptions, publisher, &message);
            assert_eq!(sorted(walk.deliveries.clone()), expected, "from {publisher:?}: {walk:?}");
            for crossing in &walk.crossings {
                assert!(self.failures.link_works(&self.topology, crossing.link));
                if plan.mode(crossing.from) == Mode::Hierarchy {
                    assert_ne!(crossing.direction, Direction::Peer);
                    let came_down =
                        walk.crossings.iter().any(|it| it.to == crossing.from && it.direction == Direction::Down);
                    assert!(!(came_down && crossing.direction == Direction::Up), "{walk:?}");
                }
            }
        }
    }

    /// Without discretisation nothing is sent for nothing, but for what memory reduction sends up.
    fn check_minimal(&self) {
        let exact = self.exact();
        let plan = self.plan(&exact);
        for (_, _, walk) in self.walks(&exact) {
            for crossing in walk.crossings.iter().filter(|crossing| !crossing.useful) {
                assert_eq!(exact.policy, Policy::MemoryReduction, "{walk:?}");
                assert_eq!(crossing.direction, Direction::Up, "{walk:?}");
                assert_eq!(plan.mode(crossing.from), Mode::Hierarchy, "{walk:?}");
            }
        }
    }

    /// Filters of hosts' ports are exact, all others match at least what the exact ones do; with paths chosen by flow each
    /// packet goes where it went without discretisation, and perhaps further.
    fn check_discretisation(&self) {
        let (plan, exact_plan) = (self.plan(&self.settings), self.plan(&self.exact()));
        let loose = tables(&self.topology, &plan, &self.subscriptions);
        let exact = tables(&self.topology, &exact_plan, &self.subscriptions);
        let own = by_host(&self.subscriptions);
        for switch in self.topology.switches() {
            for (out, filters) in exact.table(switch) {
                let looser = &loose.table(switch)[out];
                assert!(looser.len() <= filters.len());
                if let Out::Port(port) = out
                    && let Attached::Host(host) = self.topology.ports(switch)[usize::from(port.0)]
                {
                    assert_eq!(filters, &own[&host]);
                    assert_eq!(looser, filters);
                }
                for message in &self.messages {
                    let matches = |filter: &Conjunction| filter.matches(message);
                    assert!(!filters.iter().any(matches) || looser.iter().any(matches));
                }
            }
            assert_eq!(exact.table(switch).len(), loose.table(switch).len());
        }
        let by_flow = Case { spread: Spread::FlowHash, ..self.clone() };
        for ((_, _, narrow), (_, _, wide)) in
            by_flow.walks(&self.exact()).into_iter().zip(by_flow.walks(&self.settings))
        {
            assert_eq!(sorted(narrow.deliveries), sorted(wide.deliveries));
            let links = |walk: &[Crossing]| walk.iter().map(|it| (it.link, it.from)).collect::<Vec<_>>();
            let wide = links(&wide.crossings);
            assert!(links(&narrow.crossings).iter().all(|link| wide.contains(link)));
        }
    }

    fn check(&self) {
        self.check_delivery();
        self.check_minimal();
        self.check_discretisation();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn regular_hierarchies(case in case(regular(), 0)) {
        let plan = case.plan(&case.settings);
        prop_assert!(plan.components().iter().all(|component| component.fallback.is_none()));
        case.check();
    }

    #[test]
    fn broken_hierarchies(case in case(regular(), 4)) {
        case.check();
    }

    #[test]
    fn any_hierarchies(case in case(any_network(true), 2)) {
        case.check();
    }

    #[test]
    fn any_graphs(case in case(any_network(false), 2)) {
        case.check();
    }
}

/// Of all packets of a fat tree, those of a flow keep one path, and over many flows all cores are used.
#[test]
fn up_ports_share_the_load() {
    let topology = fat_tree(4).unwrap();
    for spread in [Spread::Random, Spread::RoundRobin, Spread::FlowHash] {
        let plan = Plan::new(&topology, &Failures::default(), Settings::default()).unwrap();
        let subscriptions = vec![(HostId(15), Conjunction(vec![]))];
        let tables = tables(&topology, &plan, &subscriptions);
        let mut spreader = Spreader::new(spread, 3);
        let mut cores = std::collections::BTreeMap::new();
        for flow in 0..400 {
            let packet = Packet { publisher: HostId(0), message: &[0, 0], flow };
            let walk = walk(&topology, &plan, &tables, packet, &mut spreader);
            assert_eq!(walk.crossings.len(), 4);
            *cores.entry(walk.crossings[1].to).or_insert(0) += 1;
        }
        assert_eq!(cores.len(), 4, "{spread:?}");
        assert!(cores.values().all(|count| *count > 60), "{spread:?} {cores:?}");
    }
}

/// One broken link takes the cores above it out of use, and the rest goes on without trees.
#[test]
fn a_broken_link_is_gone_around() {
    let topology = fat_tree(4).unwrap();
    for link in 0..topology.links().len() as u32 {
        let mut failures = Failures::default();
        failures.fail(Element::Link(LinkId(link)));
        let plan = Plan::new(&topology, &failures, Settings::default()).unwrap();
        assert_eq!(plan.components().len(), 1);
        assert_eq!(plan.components()[0].fallback, None);
        let used = topology.switches().filter(|switch| plan.mode(*switch) == Mode::Hierarchy).count();
        assert_eq!(used, if topology.link_layer(LinkId(link)) == 2 { 19 } else { 14 });
    }
}

#[test]
fn fallbacks_have_a_reason() {
    // Two switches above three, each above two of them.
    let mut sketch = Sketch::new();
    let lower: Vec<usize> = (0..3).map(|_| sketch.switch(0)).collect();
    let upper: Vec<usize> = (0..2).map(|_| sketch.switch(1)).collect();
    for (one, two) in [(0, 0), (1, 0), (1, 1), (2, 1)] {
        sketch.link(lower[one], upper[two]);
    }
    lower.iter().for_each(|switch| sketch.host(*switch));
    let plan = |sketch: &Sketch| Plan::new(&sketch.build(), &Failures::default(), Settings::default()).unwrap();
    let fallback = plan(&sketch).components()[0].fallback;
    assert_eq!(fallback, Some(Fallback::NoTop { switch: SwitchId(0) }));
    let top = sketch.switch(2);
    upper.iter().for_each(|switch| sketch.link(*switch, top));
    let fallback = plan(&sketch).components()[0].fallback;
    assert_eq!(fallback, Some(Fallback::Overlap { switch: SwitchId(5), below: SwitchId(4) }));
    let reason = fallback.unwrap().reason(&sketch.build());
    assert!(reason.starts_with("from `s8` the ways down by `s4` and"), "{reason}");
}

/// Each of several ways down to a pod is taken by another core, so that both aggregation switches are used.
#[test]
fn equal_ways_down_are_shared_out() {
    let topology = meshed_core(3, 2, 2);
    let plan = Plan::new(&topology, &Failures::default(), Settings::default()).unwrap();
    for switch in topology.switches() {
        assert_eq!(plan.mode(switch), Mode::Hierarchy, "{}", topology.switch_name(switch));
        assert_eq!(plan.up_ports(switch).len(), [2, 1, 0][usize::from(topology.layer(switch))]);
    }
}

/// Above a switch with all hosts there is nothing to reach: with memory reduction, too, nothing goes there.
#[test]
fn nothing_goes_higher_than_needed() {
    let mut sketch = Sketch::new();
    let [top, middle, low, lower] = [3, 2, 1, 0].map(|layer| sketch.switch(layer));
    for (one, two) in [(top, middle), (middle, low), (top, low), (low, lower)] {
        sketch.link(one, two);
    }
    sketch.host(low);
    sketch.host(lower);
    let topology = sketch.build();
    let settings = Settings { policy: Policy::MemoryReduction, ..Settings::default() };
    let plan = Plan::new(&topology, &Failures::default(), settings).unwrap();
    let modes: Vec<Mode> = topology.switches().map(|switch| plan.mode(switch)).collect();
    assert_eq!(modes, [Mode::Off, Mode::Off, Mode::Hierarchy, Mode::Hierarchy]);
    assert_eq!(plan.up_ports(SwitchId(2)), []);
    assert_eq!(plan.up_ports(SwitchId(3)).len(), 1);
}

/// The coarser the unit, the fewer filters above the hosts' switches, and the more packets that nobody wants.
#[test]
fn discretisation_trades_traffic_for_memory() {
    let topology = fat_tree(4).unwrap();
    let subscriptions: Subscriptions = (0..400u64)
        .map(|number| {
            let price = number * 7_919 % 1_000;
            let bounds = vec![(0, Operator::Equal, number % 10), (1, Operator::Above, 300 + price / 2)];
            (HostId((number * 31 % 16) as u32), Conjunction(bounds))
        })
        .collect();
    let mut found = Vec::new();
    for unit in [1, 20, 200] {
        let settings = Settings { units: vec![1, unit], ..Settings::default() };
        let plan = Plan::new(&topology, &Failures::default(), settings).unwrap();
        let tables = tables(&topology, &plan, &subscriptions);
        let mut spreader = Spreader::new(Spread::FlowHash, 1);
        let (mut core, mut edge) = (LayerTraffic::default(), LayerTraffic::default());
        for number in 0..500 {
            let packet = Packet {
                publisher: HostId(number % 16),
                message: &[u64::from(number % 10), u64::from(number)],
                flow: 1,
            };
            let traffic = walk(&topology, &plan, &tables, packet, &mut spreader).traffic(&topology);
            for (sum, layer) in [(&mut edge, 1), (&mut core, 2)] {
                *sum += traffic.get(&layer).copied().unwrap_or_default();
            }
        }
        found.push((tables.size(SwitchId(0)), core.extra, core.crossings - core.extra, edge.crossings - edge.extra));
    }
    assert!(found[0].0 > found[1].0 && found[1].0 > found[2].0, "{found:?}");
    assert!(found[0].1 == 0 && found[1].1 > 0 && found[2].1 > found[1].1, "{found:?}");
    assert!(found.iter().all(|it| (it.2, it.3) == (found[0].2, found[0].3)), "{found:?}");
}

/// What only the last switch may ask is in hosts' ports alone, with and without discretisation.
#[test]
fn the_last_switch_alone_asks_for_state() {
    let topology = fat_tree(4).unwrap();
    let whole = Conjunction(vec![(0, Operator::Above, 5), (1, Operator::NotAtLast, 3)]);
    for units in [vec![], vec![1, 5]] {
        let settings = Settings { units, ..Settings::default() };
        let mut controller = Controller::new(topology.clone(), settings).unwrap();
        controller.subscribe(HostId(15), whole.clone()).unwrap();
        let tables = controller.tables();
        for switch in topology.switches() {
            for (out, filters) in tables.table(switch) {
                let last =
                    topology.access(HostId(15)) == (switch, if let Out::Port(port) = out { *port } else { PortId(99) });
                let expected = if last { whole.clone() } else { Conjunction(vec![(0, Operator::Above, 5)]) };
                assert!(filters.iter().eq([&expected]));
            }
        }
        for (message, delivered) in [([6, 3], 0), ([6, 4], 1)] {
            let packet = Packet { publisher: HostId(0), message: &message, flow: 0 };
            let walk = walk(&topology, controller.plan(), &tables, packet, &mut Spreader::new(Spread::FlowHash, 1));
            assert_eq!((walk.deliveries.len(), walk.crossings.len()), (delivered, 4));
        }
    }
}
