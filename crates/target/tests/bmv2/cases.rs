//! Random rules and packets: what the interpreted program does against what the rules say.

use super::{bfrt as runtime_of_tofino, commands, p4, p4runtime, vm};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use weftwire_core::LinkType;
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::evaluate::Evaluator;
use weftwire_subscribe::{Compiler, MessageFormats, packet};
use weftwire_target::{
    Architecture, Program, Targets, Unsupported, bfrt, bmv2, commands as written, p4 as p4text, p4runtime as runtime,
    tna,
};

pub use crate::common::{formats, rules};

pub const ITCH: &str = include_str!("../../../../examples/subscriptions/itch.p4");

/// Packets with one message each, fields of all kinds.
pub const SINGLE: &str = r#"
    @subscribe_counter[name=hits, window="100us"]
    @subscribe_action[name=note, arguments="number ipv4 text"]
    @subscribe[after=udp, when=udp.destination_port == 7]
    header one {
        @subscribe[match=exact] bit<3> kind;
        @subscribe[match=range] bit<5> size;
        @subscribe[match=lpm] bit<8> address;
        @subscribe[text=" "] bit<16> name;
        @subscribe[match=lpm] bit<7> fill;
        bit<1> last;
        @subscribe[] bit<64> wide;
        bit<64> rest;
    }
    @subscribe[after=one, when=one.kind == 1]
    header two {
        @subscribe[] bit<4> size;
        @subscribe[] bit<4> other;
    }
"#;

pub fn compiler(formats: &MessageFormats, text: &str) -> Compiler {
    Compiler::new(formats.clone(), &Options::default(), &rules(text, formats)).expect("few clauses")
}

pub fn program(formats: &MessageFormats, text: &str, targets: &Targets) -> Program {
    Program::new(&compiler(formats, text), Architecture::V1model, targets).expect("a program")
}

/// A switch that is interpreted: from bmv2's JSON, or from the P4 text.
pub enum Switch {
    Bmv2(vm::Switch),
    P4(p4::Switch),
}

impl Switch {
    /// A packet at a time in nanoseconds, from a port that no rule names.
    pub fn packet(&mut self, frame: &[u8], now_ns: u64) -> vm::Sent {
        self.packet_from(0, frame, now_ns)
    }

    /// A packet that came in by a port.
    pub fn packet_from(&mut self, from: u16, frame: &[u8], now_ns: u64) -> vm::Sent {
        match self {
            Switch::Bmv2(switch) => switch.packet(from, frame, now_ns / 1000),
            Switch::P4(switch) if switch.is_tofino() => switch.packet(from, frame, now_ns),
            Switch::P4(switch) => switch.packet(from, frame, now_ns / 1000),
        }
    }
}

/// The interpreted switches of v1model: the JSON with commands and with entries of P4Runtime, and the text with the first.
pub fn switches(program: &Program) -> [Switch; 3] {
    let json = bmv2::json(program);
    let with_commands = commands::load(&json, &written::text(program));
    let mut text = p4::Switch::new(&p4text::v1model(program), p4::Kind::V1model, vm::First::SmallestPriority);
    for (name, entries) in &with_commands.entries {
        entries.iter().for_each(|entry| text.add(name, entry.clone()));
    }
    for (name, (action, data)) in &with_commands.defaults {
        text.set_default(name, action, data.clone());
    }
    text.groups.clone_from(&with_commands.groups);
    let with_runtime = p4runtime::load(&json, &runtime::info(program), &runtime::entries(program));
    [Switch::Bmv2(with_commands), Switch::Bmv2(with_runtime), Switch::P4(text)]
}

/// The interpreted program for Tofino.
pub fn tofino(program: &Program) -> Switch {
    Switch::P4(runtime_of_tofino::load(&tna::text(program), &bfrt::json(program)))
}

/// A UDP packet over IPv4 with right checksums.
pub fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let total = 28 + payload.len() as u16;
    let mut ip = vec![0x45, 0];
    ip.extend(total.to_be_bytes());
    ip.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let sum: u32 = ip.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    frame.extend(1000u16.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend((total - 20).to_be_bytes());
    // No checksum: the checks of the rest are enough.
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

fn field_test() -> impl Strategy<Value = String> {
    let operator = || prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    prop_oneof![
        (prop::sample::select(vec!["==", "!="]), 0..8u8).prop_map(|(op, n)| format!("kind {op} {n}")),
        (operator(), 0..32u8).prop_map(|(op, n)| format!("one.size {op} {n}")),
        (0..32u8, 0..32u8).prop_map(|(a, b)| format!("one.size in [{}, {}]", a.min(b), a.max(b))),
        (any::<u8>(), 0..9u8).prop_map(|(n, length)| format!("address == {n}/{length}")),
        (0..128u8, 0..8u8).prop_map(|(n, length)| format!("fill == {n}/{length}")),
        "[ab]{1,2}".prop_map(|text| format!("name == \"{text}\"")),
        "[ab]{0,2}".prop_map(|text| format!("name prefix \"{text}\"")),
        (operator(), prop::sample::select(vec!["0", "1", "0xffffffffffffffff", "0x8000000000000000"]))
            .prop_map(|(op, n)| format!("wide {op} {n}")),
        (operator(), 0..16u8).prop_map(|(op, n)| format!("two.size {op} {n}")),
        (operator(), 0..16u8).prop_map(|(op, n)| format!("other {op} {n}")),
        (operator(), 0..9u16).prop_map(|(op, n)| format!("udp.destination_port {op} {n}")),
    ]
}

fn state_test() -> impl Strategy<Value = String> {
    let operator = || prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    prop_oneof![
        (operator(), 0..6u8).prop_map(|(op, n)| format!("hits {op} {n}")),
        (prop::sample::select(vec!["sum", "avg", "min", "max"]), operator(), 0..32u8)
            .prop_map(|(f, op, n)| format!("{f}(one.size) over 100us {op} {n}")),
        (prop::sample::select(vec!["sum", "avg", "min", "max"]), operator(), 0..5u8)
            .prop_map(|(f, op, n)| format!("{f}(wide) over 64us {op} {}", (u64::MAX >> 2).wrapping_mul(n.into()))),
        (operator(), 0..6u8).prop_map(|(op, n)| format!("count() over 100us {op} {n}")),
    ]
}

fn rule(state: bool) -> impl Strategy<Value = String> {
    let test = if state { prop_oneof![2 => field_test(), 1 => state_test()].boxed() } else { field_test().boxed() };
    let action = prop_oneof![
        6 => (1..7u16).prop_map(|p| format!("fwd({p})")),
        2 => (1..5u16, 1..9u16).prop_map(|(p, q)| format!("fwd({p}, {q})")),
        1 => (0..3u8).prop_map(|n| format!("note({n}, 10.0.0.{n}, \"n{n}\")")),
        1 => (0..3u8, 1..4u16).prop_map(|(n, p)| format!("note({n}, 10.0.0.{n}, \"\"), fwd({p})")),
        1 => Just("drop".to_owned()),
    ];
    let filter = prop::collection::vec((test, prop::sample::select(vec![" and ", " or ", " and not "])), 1..4);
    (filter, action).prop_map(|(parts, action)| {
        let mut text = String::new();
        for (index, (test, joint)) in parts.iter().enumerate() {
            if index > 0 {
                text = format!("({text}){joint}");
            }
            text += test;
        }
        format!("{text} : {action};")
    })
}

/// A payload of `one`, and of `two` behind it.
fn single() -> impl Strategy<Value = Vec<u8>> {
    let letter = || prop::sample::select(vec![b' ', b'a', b'b']);
    let wide = prop::sample::select(vec![0, 1, 2, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1]);
    (any::<[u8; 4]>(), letter(), letter(), wide, 0..16usize).prop_map(|(bytes, a, b, wide, cut)| {
        let mut payload = vec![bytes[0], bytes[1], a, b, bytes[2]];
        payload.extend(wide.to_be_bytes());
        payload.extend([0; 8]);
        payload.push(bytes[3]);
        let port = if bytes[2] & 7 == 0 { 8 } else { 7 };
        // Most packets are whole; those that end within a header lack it.
        if cut == 0 {
            payload.truncate(16 + usize::from(bytes[2]) % (payload.len() - 16));
        }
        udp(port, &payload)
    })
}

fn batch() -> impl Strategy<Value = Vec<u8>> {
    let symbol = prop::sample::select(vec!["AAPL", "GOOGL", "MSFT"]);
    let message = (0..4u8, symbol, 0..4u32, 0..4u32, prop::sample::select(vec![b'B', b'S']), 0..3usize);
    let message = message.prop_map(|(kind, symbol, price, shares, side, more)| {
        let mut bytes = vec![[b'A', b'P', b'S', b'A'][usize::from(kind)]];
        bytes.extend([0; 18]);
        bytes.push(side);
        bytes.extend((shares * 100).to_be_bytes());
        bytes.extend(format!("{symbol:<8}").as_bytes());
        bytes.extend((price * 10_000).to_be_bytes());
        match kind {
            1 => bytes.extend([0; 8]),
            2 => bytes.truncate(12),
            // Too short for its kind, or longer than it.
            3 if more == 0 => bytes.truncate(20),
            _ => bytes.extend(vec![0xee; more]),
        }
        bytes
    });
    (prop::collection::vec(message, 0..6), any::<bool>()).prop_map(|(messages, _)| {
        let mut payload = vec![0x20; 10];
        payload.extend(7u64.to_be_bytes());
        payload.extend((messages.len() as u16).to_be_bytes());
        for message in messages {
            payload.extend((message.len() as u16).to_be_bytes());
            payload.extend(message);
        }
        udp(26400, &payload)
    })
}

fn batch_rule() -> impl Strategy<Value = String> {
    let symbol = || prop::sample::select(vec!["AAPL", "GOOGL", "MSFT"]);
    let test = prop_oneof![
        (symbol(), 0..4u8).prop_map(|(s, p)| format!("add_order.stock == \"{s}\" and add_order.price > {p}")),
        (symbol(), 0..400u16).prop_map(|(s, n)| format!("trade.stock == \"{s}\" and trade.shares < {n}")),
        Just("add_order.side == \"B\"".to_owned()),
        (0..400u16).prop_map(|n| format!("add_order.shares != {n}")),
        Just("udp.destination_port == 26400".to_owned()),
        Just("udp.length < 100 or add_order.price == 2".to_owned()),
    ];
    (test, 1..6u16, 1..6u16).prop_map(|(test, p, q)| format!("{test} : fwd({p}, {q});"))
}

/// What the rules ask for: the copies with their bytes, and of packets of one message the calls.
type Wanted = (BTreeMap<u16, Vec<u8>>, Vec<String>);

fn wanted(
    formats: &MessageFormats,
    evaluator: &mut Evaluator<'_>,
    frame: &[u8],
    found: &packet::Messages,
    now_ns: u64,
) -> Wanted {
    let outcomes: Vec<_> = found.messages.iter().map(|it| evaluator.message(it, now_ns)).collect();
    let calls = outcomes[0].calls.iter().map(ToString::to_string).collect();
    let mut copies = BTreeMap::new();
    let ports = outcomes.iter().flat_map(|outcome| &outcome.ports);
    for port in ports {
        let keep: Vec<bool> = outcomes.iter().map(|outcome| outcome.ports.contains(port)).collect();
        let pruned = packet::pruned(formats, LinkType::Ethernet, frame, found, &keep).expect("it can be pruned");
        copies.insert(port.0, pruned);
    }
    (copies, calls)
}

/// The calls that the metadata holds, as the rules write them.
fn calls(metadata: &BTreeMap<String, u128>) -> Vec<String> {
    let mut calls = Vec::new();
    for (called, value) in metadata {
        let Some(table) = called.strip_suffix("_called").filter(|_| *value == 1) else { continue };
        let argument = |index| metadata[&format!("{table}_argument_{index}")];
        let text: Vec<u8> = argument(2).to_be_bytes().into_iter().take_while(|byte| *byte != 0).collect();
        let address = std::net::Ipv4Addr::from(argument(1) as u32);
        calls.push(format!("note({}, {address}, \"{}\")", argument(0), String::from_utf8(text).expect("text")));
    }
    calls
}

/// Times of packets in microseconds: anywhere at first, then a little or much later.
#[derive(Clone, Debug)]
struct Times {
    start: u64,
    gaps: Vec<u64>,
}

impl Times {
    fn now(&self, index: usize) -> u64 {
        self.start + self.gaps[..index.min(self.gaps.len())].iter().sum::<u64>()
    }
}

fn times() -> impl Strategy<Value = Times> {
    let start = prop_oneof![0..500u64, 0..1u64 << 47];
    let gap = prop_oneof![3 => 0..30u64, 1 => 90..110u64, 1 => 0..100_000u64];
    (start, prop::collection::vec(gap, 32)).prop_map(|(start, gaps)| Times { start, gaps })
}

fn agree(formats: &MessageFormats, text: &str, frames: &[Vec<u8>], targets: &Targets, times: &Times) {
    let switches = switches(&program(formats, text, targets));
    let nanoseconds = |index| times.now(index) * 1000 + 7 * index as u64 % 1000;
    compare(formats, text, frames, targets, &nanoseconds, &|_| true, switches);
}

/// The same on Tofino, unless it can't have the rules.
fn agree_on_tofino(
    formats: &MessageFormats,
    text: &str,
    frames: &[Vec<u8>],
    targets: &Targets,
    times: &Times,
    takes_apart: &dyn Fn(&[u8]) -> bool,
) -> Result<(), Unsupported> {
    let program = Program::new(&compiler(formats, text), Architecture::Tna, targets)?;
    let nanoseconds = |index| times.now(index) % (1 << 41) * 100 + 7 * index as u64 % 100;
    compare(formats, text, frames, targets, &nanoseconds, takes_apart, [tofino(&program)]);
    Ok(())
}

fn compare(
    formats: &MessageFormats,
    text: &str,
    frames: &[Vec<u8>],
    targets: &Targets,
    nanoseconds: &dyn Fn(usize) -> u64,
    takes_apart: &dyn Fn(&[u8]) -> bool,
    switches: impl IntoIterator<Item = Switch>,
) {
    let rules = rules(text, formats);
    let everyone: BTreeSet<u16> = rules
        .iter()
        .flat_map(|rule| &rule.actions)
        .flat_map(|action| match action {
            weftwire_subscribe::rules::Action::Forward(ports) => ports.iter().map(|port| port.0).collect(),
            _ => Vec::new(),
        })
        .collect();
    for mut switch in switches {
        let mut evaluator = Evaluator::new(formats, &rules);
        for (index, frame) in frames.iter().enumerate() {
            let now_ns = nanoseconds(index);
            let from = index as u16 % 8;
            let sent = switch.packet_from(from, frame, now_ns);
            let mut copies: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
            for (port, bytes) in sent.copies {
                assert!(copies.insert(port, bytes).is_none(), "one copy a port");
            }
            let found = packet::messages(formats, LinkType::Ethernet, frame).expect("right");
            let (mut expected, named) = wanted(formats, &mut evaluator, frame, &found, now_ns);
            if !targets.hairpin {
                assert!(!copies.contains_key(&from), "a packet goes back to where it came from");
                expected.remove(&from);
            }
            // Packets that the parser can't take apart go to all ports as they are. Ports of rules that can never hold are
            // no ports of the program.
            let too_long = |place: &Range<usize>| !takes_apart(&frame[place.clone()]);
            let whole = found.places.iter().any(too_long) && copies != expected;
            if whole || found.places.len() > targets.messages {
                assert!(copies.keys().all(|port| everyone.contains(port)) && copies.values().all(|it| it == frame));
                assert!(expected.keys().all(|port| copies.contains_key(port)));
                continue;
            }
            assert_eq!(copies.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{text}\n{frame:?}");
            assert!(copies == expected, "{text}\n{copies:?}\n{expected:?}");
            assert_eq!(calls(&sent.metadata), named, "{text}\n{frame:?}");
        }
    }
}

/// Whether Tofino's parser takes a message of the feed, with its length in front, apart whatever rules ask for: those that
/// are longer than what is known of them it may not.
fn takes_apart(message: &[u8]) -> bool {
    match (message.get(2), message.len() - 2) {
        (Some(b'A'), bytes) => bytes <= 36,
        (Some(b'P'), bytes) => bytes <= 44,
        (_, bytes) => bytes <= 63,
    }
}

#[test]
fn random_rules_on_single_messages() {
    let formats = formats(SINGLE);
    let inputs =
        (prop::collection::vec(rule(false), 0..8), prop::collection::vec(single(), 12), any::<(bool, bool)>(), times());
    let mut runner = TestRunner::new(Config::with_cases(150));
    runner
        .run(&inputs, |(rules, frames, (ternary, compress), times)| {
            let targets = Targets { ternary, compress, ..Targets::default() };
            agree(&formats, &rules.join("\n"), &frames, &targets, &times);
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_rules_with_windows() {
    let formats = formats(SINGLE);
    let inputs =
        (prop::collection::vec(rule(true), 1..5), prop::collection::vec(single(), 16), any::<(bool, bool)>(), times());
    let mut runner = TestRunner::new(Config::with_cases(100));
    runner
        .run(&inputs, |(rules, frames, (ternary, compress), times)| {
            let targets = Targets { ternary, compress, ..Targets::default() };
            agree(&formats, &rules.join("\n"), &frames, &targets, &times);
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_rules_on_batches() {
    let formats = formats(ITCH);
    let inputs = (
        prop::collection::vec(batch_rule(), 0..6),
        prop::collection::vec(batch(), 8),
        1..6usize,
        any::<(bool, bool)>(),
        times(),
    );
    let mut runner = TestRunner::new(Config::with_cases(80));
    runner
        .run(&inputs, |(rules, frames, messages, (ternary, compress), times)| {
            agree(
                &formats,
                &rules.join("\n"),
                &frames,
                &Targets { messages, ternary, compress, ..Targets::default() },
                &times,
            );
            Ok(())
        })
        .unwrap();
}

/// Frames that have all of their headers: Tofino drops others.
fn whole() -> impl Strategy<Value = Vec<u8>> {
    single().prop_filter("whole", |frame| frame.len() == 64)
}

#[test]
fn random_rules_on_tofino() {
    let formats = formats(SINGLE);
    let inputs =
        (prop::collection::vec(rule(false), 0..8), prop::collection::vec(whole(), 12), any::<(bool, bool)>(), times());
    let mut runner = TestRunner::new(Config::with_cases(150));
    runner
        .run(&inputs, |(rules, frames, (ternary, compress), times)| {
            let targets = Targets { ternary, compress, ..Targets::default() };
            let result = agree_on_tofino(&formats, &rules.join("\n"), &frames, &targets, &times, &takes_apart);
            prop_assume!(!matches!(result, Err(Unsupported::Stages(_))), "more stages than Tofino has");
            prop_assert_eq!(result, Ok(()));
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_rules_with_windows_on_tofino() {
    // Windows that Tofino can have: a power of two nanoseconds long, and without means and wide fields.
    let formats = formats(&SINGLE.replace("100us", "8192ns"));
    let rule = rule(true).prop_filter("no wide field", |rule| !rule.contains("(wide)"));
    let rule = rule.prop_map(|rule| rule.replace("100us", "8192ns").replace("avg", "max"));
    let inputs =
        (prop::collection::vec(rule, 1..5), prop::collection::vec(whole(), 16), any::<(bool, bool)>(), times());
    let mut runner = TestRunner::new(Config::with_cases(150));
    runner
        .run(&inputs, |(rules, frames, (ternary, compress), times)| {
            let targets = Targets { ternary, compress, ..Targets::default() };
            let result = agree_on_tofino(&formats, &rules.join("\n"), &frames, &targets, &times, &takes_apart);
            prop_assume!(!matches!(result, Err(Unsupported::Stages(_))), "more stages than Tofino has");
            prop_assert_eq!(result, Ok(()));
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_rules_on_batches_on_tofino() {
    let formats = formats(ITCH);
    let inputs = (
        prop::collection::vec(batch_rule(), 0..6),
        prop::collection::vec(batch(), 8),
        1..6usize,
        any::<(bool, bool)>(),
        times(),
    );
    let mut runner = TestRunner::new(Config::with_cases(100));
    runner
        .run(&inputs, |(rules, frames, messages, (ternary, compress), times)| {
            let targets = Targets { messages, ternary, compress, hairpin: messages % 2 == 0 };
            let result = agree_on_tofino(&formats, &rules.join("\n"), &frames, &targets, &times, &takes_apart);
            prop_assume!(!matches!(result, Err(Unsupported::Stages(_))), "more stages than Tofino has");
            prop_assert_eq!(result, Ok(()));
            Ok(())
        })
        .unwrap();
}

/// Packets of small messages: `framing` says how they follow each other.
fn small(framing: &str) -> String {
    format!(
        r#"
        @subscribe[after=udp, when=udp.destination_port == 9, messages=count, {framing}]
        header pack {{ bit<8> count; }}
        @subscribe[message=pack, when=kind == 1]
        header point {{ bit<8> kind; @subscribe[] bit<8> place; }}
        @subscribe[after=point, when=point.kind == 1]
        header more {{ @subscribe[] bit<8> color; }}
        @subscribe[message=pack, when=kind == 2]
        header line {{ bit<8> kind; @subscribe[match=lpm] bit<16> length; }}
        "#
    )
}

/// Messages of all lengths up to 5 bytes, or of exactly 4, each behind its length in `prefix` bytes.
fn packed(prefix: usize) -> impl Strategy<Value = Vec<u8>> {
    let message = (0..4u8, prop::collection::vec(0..4u8, 0..5), any::<bool>());
    prop::collection::vec(message, 0..6).prop_map(move |messages| {
        let mut payload = vec![messages.len() as u8];
        for (kind, rest, empty) in messages {
            let mut bytes = vec![kind];
            bytes.extend(rest);
            if prefix == 0 {
                bytes.resize(4, 7);
            } else if empty && kind == 3 {
                bytes.clear();
            }
            payload.extend(&(bytes.len() as u32).to_be_bytes()[4 - prefix..]);
            payload.extend(bytes);
        }
        udp(9, &payload)
    })
}

fn small_rule() -> impl Strategy<Value = String> {
    let operator = || prop::sample::select(vec!["==", "!=", "<", ">"]);
    let test = prop_oneof![
        (operator(), 0..4u8).prop_map(|(op, n)| format!("place {op} {n}")),
        (operator(), 0..4u8).prop_map(|(op, n)| format!("color {op} {n}")),
        (0..4u16, 0..4u16, 8..17u8).prop_map(|(a, b, bits)| format!("line.length == {}/{bits}", a << 8 | b)),
        (operator(), 0..3u8).prop_map(|(op, n)| format!("place > 0 and count() over 64us {op} {n}")),
        (operator(), 0..3u8).prop_map(|(op, n)| format!("place > 0 and avg(place) over 64us {op} {n}")),
        Just("ipv4.total_length > 36".to_owned()),
    ];
    (test, 1..5u16, 1..5u16).prop_map(|(test, p, q)| format!("{test} : fwd({p}, {q});"))
}

/// All ways in which messages follow each other, on both architectures; windows only where there are several messages.
#[test]
fn random_rules_on_small_messages() {
    for (framing, prefix) in [("prefix=8", 1), ("prefix=16", 2), ("prefix=32", 4), ("size=4", 0)] {
        let formats = formats(&small(framing));
        let inputs = (
            prop::collection::vec(small_rule(), 1..6),
            prop::collection::vec(packed(prefix), 8),
            1..6usize,
            any::<(bool, bool)>(),
            times(),
        );
        let mut runner = TestRunner::new(Config::with_cases(40));
        let result = runner.run(&inputs, |(mut rules, frames, messages, (ternary, compress), times)| {
            let targets = Targets { messages, ternary, compress, hairpin: messages % 2 == 0 };
            // Packets with more messages than are looked at update no windows.
            let messages = if rules.iter().any(|rule| rule.contains("over")) { 6 } else { messages };
            agree(&formats, &rules.join("\n"), &frames, &Targets { messages, ..targets }, &times);
            rules.retain(|rule| !rule.contains("over"));
            // Longer messages go on whole where they are behind a length.
            let takes_apart = |message: &[u8]| prefix == 0 || message.len() - prefix < 3;
            let result = agree_on_tofino(&formats, &rules.join("\n"), &frames, &targets, &times, &takes_apart);
            // A length of 32 bits and a kind are more than a state of the parser looks at.
            let is_too_much = prefix == 4 && result == Err(Unsupported::Select(40));
            prop_assert!(result.is_ok() || is_too_much, "{:?}", result);
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{framing}: {error}"));
    }
}
