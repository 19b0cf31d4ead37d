//! Networks of interpreted switches that run the programs of their routed rules: every subscriber gets its message once, and
//! nothing goes round.

use super::cases::{self, Switch, switches, tofino, udp};
use super::route_common::{any_network, regular};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::VecDeque;
use std::sync::Arc;
use weftwire_route::*;
use weftwire_subscribe::MessageFormats;
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::evaluate::Evaluator;
use weftwire_target::{Architecture, Program, Targets};

const FORMATS: &str = r#"
    @subscribe[after=udp, when=udp.destination_port == 7]
    header news {
        @subscribe[match=exact] bit<4> topic;
        @subscribe[match=lpm] bit<12> place;
        @subscribe[match=range] bit<8> size;
    }
"#;

/// A network with a program in each switch.
struct Network {
    topology: Topology,
    plan: Plan,
    switches: Vec<Switch>,
}

/// What became of a packet: the hosts that got it, and how many links between switches it crossed.
struct Journey {
    deliveries: Vec<HostId>,
    crossings: usize,
}

impl Network {
    /// `first` chooses which kind of switch the first one is, and those behind follow in turn.
    fn new(
        topology: Topology,
        settings: Settings,
        wanted: &[(HostId, MessageFilter)],
        formats: &MessageFormats,
        targets: &Targets,
        first: usize,
    ) -> Network {
        let plan = Plan::new(&topology, &Failures::default(), settings).expect("settings");
        let tables = tables(&topology, &plan, wanted);
        let programs = Programs::new(&topology, &plan, &tables, formats, &Options::default()).expect("few clauses");
        let made = topology.switches().enumerate().map(|(index, switch)| {
            let compiler = programs.of(switch).compiler();
            let program = |architecture| Program::new(compiler, architecture, targets).expect("a program");
            let kind = (first + index) % 4;
            if kind == 3 {
                return tofino(&program(Architecture::Tna));
            }
            let [commands, runtime, text] = switches(&program(Architecture::V1model));
            [commands, runtime, text].into_iter().nth(kind).expect("three")
        });
        let switches = made.collect();
        Network { topology, plan, switches }
    }

    /// The number of the port that a switch has in its rules. The links up are one port of it, as of a group of links.
    fn number(&self, switch: SwitchId, port: PortId) -> u16 {
        if self.plan.mode(switch) == Mode::Hierarchy && self.plan.up_ports(switch).contains(&port) {
            return self.topology.ports(switch).len() as u16 + 1;
        }
        port.0 + 1
    }

    /// Sends a packet from a host. It ends after so many crossings as no packet that does not go round can have.
    fn send(&mut self, publisher: HostId, frame: &[u8], flow: u64, spreader: &mut Spreader) -> Journey {
        let most = 2 * self.topology.links().len();
        let mut journey = Journey { deliveries: Vec::new(), crossings: 0 };
        let (first, port) = self.topology.access(publisher);
        let mut open = VecDeque::from([(first, port)]);
        while let Some((switch, from)) = open.pop_front().filter(|_| journey.crossings <= most) {
            let from = self.number(switch, from);
            for (to, bytes) in self.switches[switch.0 as usize].packet_from(from, frame, 1).copies {
                assert_eq!(bytes, frame);
                let up = usize::from(to) == self.topology.ports(switch).len() + 1;
                let port = match up {
                    true => spreader.choose(switch, self.plan.up_ports(switch), flow).expect("a link up"),
                    false => PortId(to - 1),
                };
                match self.topology.ports(switch)[usize::from(port.0)] {
                    Attached::Host(host) => journey.deliveries.push(host),
                    Attached::Switch { switch: next, port: far, .. } => {
                        journey.crossings += 1;
                        open.push_back((next, far));
                    }
                }
            }
        }
        journey.deliveries.sort_unstable();
        journey
    }
}

fn filter(text: &str, formats: &Arc<MessageFormats>) -> MessageFilter {
    let rules = cases::rules(&format!("{text} : fwd(1);"), formats);
    MessageFilter::new(&rules[0].filter, formats).expect("few clauses")
}

fn frame(topic: u8, place: u16, size: u8) -> Vec<u8> {
    let [high, low] = (u16::from(topic) << 12 | place).to_be_bytes();
    udp(7, &[high, low, size])
}

fn test() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..3u8).prop_map(|topic| format!("topic == {topic}")),
        (0..3u8, 0..6u8).prop_map(|(topic, size)| format!("topic == {topic} and news.size > {size}")),
        (0..4096u16, 0..13u8).prop_map(|(place, bits)| format!("place == {place}/{bits}")),
        Just("true".to_owned()),
    ]
}

/// Whether a rule of a filter matches a frame, by the definition.
fn holds(text: &str, formats: &MessageFormats, frame: &[u8]) -> bool {
    let rules = cases::rules(&format!("{text} : fwd(1);"), formats);
    let found = weftwire_subscribe::packet::messages(formats, weftwire_core::LinkType::Ethernet, frame).expect("right");
    !Evaluator::new(formats, &rules).message(&found.messages[0], 0).matched.is_empty()
}

#[test]
fn every_subscriber_gets_one_copy_and_nothing_goes_round() {
    let formats = Arc::new(cases::formats(FORMATS));
    let networks = prop_oneof![regular(), any_network(true), any_network(false)];
    let wanted = prop::collection::vec((any::<prop::sample::Index>(), test()), 1..7);
    let packet = (any::<prop::sample::Index>(), 0..3u8, 0..4096u16, 0..8u8, 0..9u64);
    let inputs = (networks, wanted, prop::collection::vec(packet, 3), any::<bool>(), 0..4usize);
    let result = TestRunner::new(Config::with_cases(80)).run(&inputs, |(topology, wanted, packets, reduce, first)| {
        let hosts: Vec<HostId> = topology.hosts().collect();
        let wanted: Vec<(HostId, String)> =
            wanted.iter().map(|(host, text)| (*host.get(&hosts), text.clone())).collect();
        let filters: Vec<_> = wanted.iter().map(|(host, text)| (*host, filter(text, &formats))).collect();
        let policy = if reduce { Policy::TrafficReduction } else { Policy::MemoryReduction };
        let settings = Settings { policy, ..Settings::default() };
        let mut network = Network::new(topology, settings, &filters, &formats, &Targets::default(), first);
        let mut spreader = Spreader::new(Spread::FlowHash, 3);
        for (publisher, topic, place, size, flow) in packets {
            let (publisher, frame) = (*publisher.get(&hosts), frame(topic, place, size));
            let journey = network.send(publisher, &frame, flow, &mut spreader);
            let matching = wanted.iter().filter(|(host, text)| *host != publisher && holds(text, &formats, &frame));
            let mut expected: Vec<HostId> = matching.map(|(host, _)| *host).collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(journey.deliveries, expected);
            // Each link once in each direction at most.
            prop_assert!(journey.crossings <= 2 * network.topology.links().len());
        }
        Ok(())
    });
    result.unwrap();
}

/// Two switches that both want a message for a host behind the other one.
#[test]
fn two_switches_do_not_send_a_packet_to_and_fro() {
    let formats = Arc::new(cases::formats(FORMATS));
    let nodes = ["s1", "s2"].map(Node::switch).into_iter().chain(["h1", "h2", "h3"].map(Node::host));
    let nodes: Vec<Node> = nodes.collect();
    let links = [[0, 1], [2, 0], [3, 0], [4, 1]];
    let all = |host| (HostId(host), filter("topic == 1", &formats));
    for first in 0..4 {
        for hairpin in [false, true] {
            let topology = Topology::new(&nodes, &links, Layers::Flat).expect("a network");
            let targets = Targets { hairpin, ..Targets::default() };
            let wanted = [all(0), all(1), all(2)];
            let mut network = Network::new(topology, Settings::default(), &wanted, &formats, &targets, first);
            let journey = network.send(HostId(0), &frame(1, 5, 5), 0, &mut Spreader::new(Spread::FlowHash, 3));
            if hairpin {
                // Who asks for copies back gets them, and a network that does so must have no way round.
                assert!(journey.deliveries.len() > 3 && journey.crossings > 2);
            } else {
                assert_eq!((journey.deliveries, journey.crossings), (vec![HostId(1), HostId(2)], 1));
            }
        }
    }
}
