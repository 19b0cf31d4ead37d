//! Filters of rules in the routing: coarser ones match no less, text says the same, and with compiled tables in all switches
//! every subscriber gets exactly its messages, once.

use crate::common::rules;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use weftwire_route::*;
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::evaluate::Evaluator;
use weftwire_subscribe::formats::{FieldId, HeaderId};
use weftwire_subscribe::rules::{Action, Rule};
use weftwire_subscribe::{Message, MessageFormats, write};

const FORMATS: &str = r#"
    @subscribe_counter[name=hits, window="100ns"]
    header one {
        @subscribe[match=exact] bit<3> kind;
        @subscribe[match=range] bit<7> size;
        @subscribe[match=lpm] bit<8> address;
        @subscribe[text=" "] bit<16> name;
        @subscribe[decimals=1] bit<8> price;
        bit<6> rest;
        @subscribe[] bit<128> wide;
        @subscribe[] bit<8> fill;
    }
    header two {
        @subscribe[] bit<4> size;
        @subscribe[] bit<4> other;
    }
"#;

fn operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="])
}

fn test() -> impl Strategy<Value = String> {
    prop_oneof![
        (prop::sample::select(vec!["==", "!="]), 0..8u8).prop_map(|(op, n)| format!("kind {op} {n}")),
        (0..8u8, 0..8u8).prop_map(|(a, b)| format!("kind in {{{a}, {b}}}")),
        (operator(), 0..128u8).prop_map(|(op, n)| format!("one.size {op} {n}")),
        (0..128u8, 0..128u8).prop_map(|(a, b)| format!("one.size in [{}, {}]", a.min(b), a.max(b))),
        (0..32u8, 0..32u8).prop_map(|(mask, n)| format!("one.size & {mask} == {}", n & mask)),
        (any::<u8>(), 0..9u8).prop_map(|(n, length)| format!("address == {n}/{length}")),
        (prop::sample::select(vec!["==", "!="]), "[ab]{1,2}").prop_map(|(op, text)| format!("name {op} \"{text}\"")),
        (prop::sample::select(vec!["", "not "]), "[ab]{0,2}").prop_map(|(n, t)| format!("{n}name prefix \"{t}\"")),
        (operator(), 0..25u8, 0..10u8).prop_map(|(op, n, d)| format!("price {op} {n}.{d}")),
        (operator(), prop::sample::select(vec!["0", "1", "ffff::", "0xffffffffffffffffffffffffffffffff"]))
            .prop_map(|(op, n)| format!("wide {op} {n}")),
        (operator(), 0..16u8).prop_map(|(op, n)| format!("two.size {op} {n}")),
    ]
}

fn state_test() -> impl Strategy<Value = String> {
    prop_oneof![
        (operator(), 0..6u8).prop_map(|(op, n)| format!("hits {op} {n}")),
        (operator(), 0..6u8).prop_map(|(op, n)| format!("count() over 200ns {op} {n}")),
        (prop::sample::select(vec!["avg", "min", "sum"]), operator(), 0..25u8)
            .prop_map(|(f, op, n)| format!("{f}(price) over 300ns {op} {n}.5")),
    ]
}

fn filter(test: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![20 => test, 1 => Just("true".to_owned()), 1 => Just("false".to_owned())];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let parts = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            3 => parts.clone().prop_map(|p| format!("({})", p.join(" and "))),
            2 => parts.prop_map(|p| format!("({})", p.join(" or "))),
            1 => inner.prop_map(|p| format!("not ({p})")),
        ]
    })
}

/// One number for each field, which headers there are.
fn draft() -> impl Strategy<Value = ([u8; 9], u8)> {
    (any::<[u8; 9]>(), 1..8u8)
}

fn message((numbers, present): &([u8; 9], u8), formats: &MessageFormats) -> Message {
    let mut message = Message::new(formats);
    (0..2u16).filter(|header| present >> header & 1 == 1).for_each(|header| message.add_header(HeaderId(header)));
    for (index, (field, number)) in formats.fields().iter().zip(numbers).enumerate() {
        let number = *number;
        let value = match field.name.as_str() {
            "name" => {
                let letters = [b'a', b'b', b' ', b'c'];
                u128::from(letters[usize::from(number & 3)]) << 8 | u128::from(letters[usize::from(number >> 2 & 3)])
            }
            "wide" => [0, 1, 0xffff << 112, u128::MAX, u128::MAX - 1][usize::from(number % 5)],
            _ => u128::from(number) & (u128::MAX >> (128 - field.width)),
        };
        message.set(FieldId(index as u16), value);
    }
    message
}

fn subscription(text: &str, formats: &Arc<MessageFormats>) -> Option<MessageFilter> {
    let read = rules(&format!("{text} : fwd(1);"), formats);
    MessageFilter::new(&read[0].filter, formats).ok()
}

fn holds(text: &str, formats: &MessageFormats, message: &Message) -> bool {
    let read = rules(&format!("{text} : fwd(1);"), formats);
    !Evaluator::new(formats, &read).message(message, 0).matched.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Coarser filters match no less, and a unit of 1 changes nothing.
    #[test]
    fn relaxed_covers(
        text in filter(test().boxed()),
        unit in 0u64..60,
        drafts in prop::collection::vec(draft(), 40),
    ) {
        let formats = Arc::new(crate::common::formats(FORMATS));
        let Some(exact) = subscription(&text, &formats) else { return Ok(()) };
        let coarse = exact.relaxed(unit);
        prop_assert_eq!(&exact.relaxed(1), &exact);
        for draft in &drafts {
            let message = message(draft, &formats);
            prop_assert_eq!(exact.matches(&message), holds(&text, &formats, &message), "{}", text);
            prop_assert!(!exact.matches(&message) || coarse.matches(&message), "{}", text);
            prop_assert!(MessageFilter::everything().matches(&message));
            let as_rule = [Rule { filter: coarse.filter(), actions: vec![Action::Drop], span: Default::default() }];
            let matched = Evaluator::new(&formats, &as_rule).message(&message, 0).matched;
            prop_assert_eq!(coarse.matches(&message), !matched.is_empty());
        }
    }

    /// Without state a filter matches whenever it may match with some state, and only hosts' ports keep state.
    #[test]
    fn state_is_dropped_on_the_way(
        text in filter(prop_oneof![3 => test(), 2 => state_test()].boxed()),
        drafts in prop::collection::vec((draft(), 0u64..400), 30),
    ) {
        let formats = Arc::new(crate::common::formats(FORMATS));
        let Some(exact) = subscription(&text, &formats) else { return Ok(()) };
        let coarse = exact.relaxed(1);
        prop_assert!(!coarse.has_state());
        let read = rules(&format!("{text} : fwd(1);"), &formats);
        let mut evaluator = Evaluator::new(&formats, &read);
        let mut now = 0;
        for (draft, later) in &drafts {
            now += later;
            let message = message(draft, &formats);
            let matched = !evaluator.message(&message, now).matched.is_empty();
            prop_assert!(!matched || coarse.matches(&message), "{}", text);
        }
    }

    /// What is written reads as a filter of the same normal form, which matches the same messages.
    #[test]
    fn text_says_the_same(
        text in filter(prop_oneof![6 => test(), 1 => state_test()].boxed()),
        unit in 0u64..30,
        drafts in prop::collection::vec(draft(), 40),
    ) {
        let formats = Arc::new(crate::common::formats(FORMATS));
        let Some(exact) = subscription(&text, &formats) else { return Ok(()) };
        for filter in [exact.relaxed(unit), exact] {
            let written = write::filter(&formats, &filter.filter());
            let again = subscription(&written, &formats).expect("no more clauses than before");
            prop_assert_eq!(&again, &filter, "{} as {}", text, written);
            for draft in &drafts {
                let message = message(draft, &formats);
                prop_assert_eq!(again.matches(&message), filter.matches(&message), "{} as {}", text, written);
            }
        }
    }

    /// Compiled tables in every switch of a network: who gets what.
    #[test]
    fn compiled_networks_deliver_exactly(
        k in prop::sample::select(vec![2u32, 4]),
        traffic_reduction in any::<bool>(),
        flat in prop::bool::weighted(0.3),
        units in prop::collection::vec(0u64..20, 0..4),
        trees in 1u32..3,
        wanted in prop::collection::vec((any::<prop::sample::Index>(), filter(test().boxed())), 0..9),
        drafts in prop::collection::vec(draft(), 1..5),
    ) {
        let formats = Arc::new(crate::common::formats(FORMATS));
        let mut topology = fat_tree(k).unwrap();
        if flat {
            topology.set_layers(Layers::Flat).unwrap();
        }
        let hosts: Vec<HostId> = topology.hosts().collect();
        let subscriptions: Vec<(HostId, MessageFilter, &str)> = wanted
            .iter()
            .filter_map(|(host, text)| Some((*host.get(&hosts), subscription(text, &formats)?, text.as_str())))
            .collect();
        let policy = if traffic_reduction { Policy::TrafficReduction } else { Policy::MemoryReduction };
        let settings = Settings { policy, units, trees, ..Settings::default() };
        let plan = Plan::new(&topology, &Failures::default(), settings).unwrap();
        let list: Vec<_> = subscriptions.iter().map(|(host, filter, _)| (*host, filter.clone())).collect();
        let tables = tables(&topology, &plan, &list);
        let Ok(programs) = Programs::new(&topology, &plan, &tables, &formats, &Options::default()) else {
            return Ok(());
        };
        let mut spreader = Spreader::new(Spread::FlowHash, 3);
        for (flow, draft) in drafts.iter().enumerate() {
            let message = message(draft, &formats);
            for publisher in &hosts {
                let packet = Packet { publisher: *publisher, message: &message, flow: flow as u64 };
                let walk = walk(&topology, &plan, &programs, packet, &mut spreader);
                let mut found = walk.deliveries.clone();
                found.sort_unstable();
                let matching = subscriptions.iter().filter(|(_, _, text)| holds(text, &formats, &message));
                let expected: BTreeSet<HostId> =
                    matching.map(|(host, _, _)| *host).filter(|host| host != publisher).collect();
                prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
                prop_assert!(!walk.looped);
            }
        }
    }
}

#[test]
fn constants_are_rounded_outward_and_nothing_else() {
    let formats = Arc::new(crate::common::formats(FORMATS));
    let relaxed = |text: &str, unit| {
        let filter = subscription(text, &formats).unwrap().relaxed(unit);
        write::filter(&formats, &filter.filter())
    };
    for (text, unit, expected) in [
        ("one.size > 53", 10, "one.size > 50"),
        ("one.size < 53", 10, "one.size < 60"),
        ("one.size > 53 and one.size < 58", 10, "one.size in [51, 59]"),
        ("one.size == 53", 10, "one.size == 53"),
        ("one.size < 125", 10, "one.size >= 0"),
        ("one.size > 3", 0, "one.size > 3"),
        ("price > 5.3", 10, "one.price > 5.0"),
        ("address == 64/2", 10, "one.address in [64, 127]"),
        ("name prefix \"a\"", 1000, "one.name prefix \"a\""),
        ("kind != 3", 10, "one.kind not in {3}"),
    ] {
        assert_eq!(relaxed(text, unit), expected, "{text}");
    }
}
