//! The compiled tables and diagrams against the rules read one by one, over random rules and messages.

use crate::common::rules;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use weftwire_subscribe::compiler::{Options, Variable};
use weftwire_subscribe::evaluate::Evaluator;
use weftwire_subscribe::formats::{FieldId, HeaderId};
use weftwire_subscribe::switch::Switch;
use weftwire_subscribe::{Compiler, Message, MessageFormats};
use weftwire_switch::{Memory, Pipeline};

/// Two headers with fields of all kinds, small enough for rules to meet.
const FORMATS: &str = r#"
    @subscribe_counter[name=hits, window="100ns"]
    @subscribe_action[name=note, arguments="number"]
    header one {
        @subscribe[match=exact] bit<3> kind;
        @subscribe[match=range] bit<5> size;
        @subscribe[match=lpm] bit<8> address;
        @subscribe[text=" "] bit<16> name;
        @subscribe[decimals=1] bit<8> price;
        @subscribe[] bit<128> wide;
        @subscribe[] bit<8> fill;
    }
    header two {
        @subscribe[] bit<4> size;
        @subscribe[] bit<4> other;
    }
"#;

fn operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["==", "=", "!=", "<", "<=", ">", ">="])
}

fn name() -> impl Strategy<Value = String> {
    "[ab]{1,2}"
}

/// One test of a field.
fn field_test() -> impl Strategy<Value = String> {
    prop_oneof![
        (prop::sample::select(vec!["==", "!="]), 0..8u8).prop_map(|(op, n)| format!("kind {op} {n}")),
        prop::collection::vec(0..8u8, 1..4)
            .prop_map(|n| format!("kind in {{{}}}", n.iter().map(u8::to_string).collect::<Vec<_>>().join(", "))),
        (operator(), 0..32u8).prop_map(|(op, n)| format!("one.size {op} {n}")),
        (0..32u8, 0..32u8).prop_map(|(a, b)| format!("one.size in [{}, {}]", a.min(b), a.max(b))),
        (0..32u8, 0..32u8).prop_map(|(mask, n)| format!("one.size & {mask} == {}", n & mask)),
        (any::<u8>(), 0..9u8).prop_map(|(n, length)| format!("address == {n}/{length}")),
        (any::<u8>(), any::<u8>(), 4..9u8).prop_map(|(a, b, length)| format!("address not in {{{a}/{length}, {b}}}")),
        (prop::sample::select(vec!["==", "!="]), name()).prop_map(|(op, text)| format!("name {op} \"{text}\"")),
        (prop::sample::select(vec!["", "not "]), "[ab]{0,2}")
            .prop_map(|(not, text)| format!("{not}name prefix \"{text}\"")),
        (operator(), 0..26u8, 0..10u8).prop_map(|(op, n, d)| format!("price {op} {}.{d}", n.min(24))),
        (operator(), prop::sample::select(vec!["0", "1", "::1", "ffff::", "0xffffffffffffffffffffffffffffffff"]))
            .prop_map(|(op, n)| format!("wide {op} {n}")),
        (operator(), 0..16u8).prop_map(|(op, n)| format!("two.size {op} {n}")),
        (operator(), 0..16u8).prop_map(|(op, n)| format!("other {op} {n}")),
    ]
}

fn state_test() -> impl Strategy<Value = String> {
    prop_oneof![
        (operator(), 0..6u8).prop_map(|(op, n)| format!("hits {op} {n}")),
        (operator(), 0..6u8).prop_map(|(op, n)| format!("count() over 200ns {op} {n}")),
        (prop::sample::select(vec!["avg", "min", "max"]), operator(), 0..32u8)
            .prop_map(|(f, op, n)| format!("{f}(one.size) over 300ns {op} {n}")),
        (operator(), 0..90u8).prop_map(|(op, n)| format!("sum(one.size) over 300ns {op} {n}")),
    ]
}

fn filter(test: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![20 => test, 1 => Just("true".to_owned()), 1 => Just("false".to_owned())];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let parts = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            2 => (parts.clone(), prop::sample::select(vec![" and ", " && ", " ∧ "])).prop_map(|(p, by)| format!("({})", p.join(by))),
            2 => (parts, prop::sample::select(vec![" or ", " || ", " ∨ "])).prop_map(|(p, by)| format!("({})", p.join(by))),
            1 => (inner, prop::sample::select(vec!["!", "not ", "¬"])).prop_map(|(p, not)| format!("{not}({p})")),
        ]
    })
}

fn rule(state: bool) -> impl Strategy<Value = String> {
    let test = if state { prop_oneof![3 => field_test(), 1 => state_test()].boxed() } else { field_test().boxed() };
    let action = prop_oneof![
        6 => (1..7u16).prop_map(|p| format!("fwd({p})")),
        2 => (1..5u16, 1..9u16).prop_map(|(p, q)| format!("fwd({p}, {q})")),
        1 => (0..3u8).prop_map(|n| format!("note({n})")),
        1 => (0..3u8, 1..4u16).prop_map(|(n, p)| format!("note({n}), fwd({p})")),
        1 => Just("drop".to_owned()),
    ];
    (filter(test), action).prop_map(|(filter, action)| format!("{filter} : {action};"))
}

/// A message as one number for each field, and which headers it has.
type Draft = ([u8; 7], u8, u8);

fn draft() -> impl Strategy<Value = Draft> {
    (any::<[u8; 7]>(), any::<u8>(), 0..8u8)
}

fn message(formats: &MessageFormats, draft: &Draft) -> Message {
    let mut message = Message::new(formats);
    let (values, more, headers) = *draft;
    // Most messages have both headers.
    if headers != 0 {
        message.add_header(HeaderId(0));
    }
    if headers > 1 {
        message.add_header(HeaderId(1));
    }
    let [kind, size, address, name, price, wide, other] = values;
    let letter = |n: u8| u128::from(if n & 3 == 0 { b' ' } else { b'a' + (n & 3) - 1 });
    let wides = [0, 1, 2, u128::MAX, u128::MAX - 1, 0xffff << 112];
    let numbers = [
        u128::from(kind & 7),
        u128::from(size & 31),
        address.into(),
        letter(name) << 8 | letter(name >> 2),
        price.into(),
        wides[usize::from(wide) % wides.len()],
        0,
        u128::from(more & 15),
        u128::from(other & 15),
    ];
    for (field, value) in numbers.into_iter().enumerate() {
        message.set(FieldId(field as u16), value);
    }
    message
}

/// What the diagram alone says: for rules without state.
fn walk_diagram(compiler: &Compiler, message: &Message) -> weftwire_subscribe::Actions {
    let mut at = compiler.root();
    while let Some(node) = compiler.diagram().node(at) {
        at = node.next(match compiler.variable(node.level) {
            Variable::Present(header) => message.has(header).into(),
            Variable::Field(field) => message.value(field),
            Variable::State(_) => 0,
        });
    }
    compiler.actions(at.leaf().unwrap())
}

thread_local! {
    static COMPARISONS: Cell<u64> = const { Cell::new(0) };
    static FORWARDED: Cell<u64> = const { Cell::new(0) };
}

fn compare(formats: &MessageFormats, text: &str, drafts: &[Draft], state: bool, compiler: &Compiler) {
    let rules = rules(text, formats);
    let mut evaluator = Evaluator::new(formats, &rules);
    let mut switch = Switch::default();
    let (pipeline, mut memory, mut row, mut sets) = (Pipeline::new(compiler), Memory::default(), vec![], vec![]);
    for (index, draft) in drafts.iter().enumerate() {
        let message = message(formats, draft);
        let now_ns = 37 * index as u64;
        let expected = evaluator.message(&message, now_ns);
        let found = switch.message(compiler, &message, now_ns);
        let calls: Vec<_> = found.calls.iter().map(|id| compiler.call(*id).clone()).collect();
        assert_eq!((&found.ports, &calls), (&expected.ports, &expected.calls), "{text}\n{draft:?}");
        row.clear();
        sets.clear();
        pipeline.push_row(&message, &mut row);
        pipeline.walk(&row, now_ns, &mut memory, &mut sets);
        let fast = (pipeline.ports(sets[0]), pipeline.calls(sets[0]));
        assert_eq!(fast, (&found.ports[..], &found.calls[..]), "{text}\n{draft:?}");
        if !state {
            assert_eq!(walk_diagram(compiler, &message), found, "{text}\n{draft:?}");
        }
        COMPARISONS.with(|count| count.set(count.get() + 1));
        FORWARDED.with(|count| count.set(count.get() + u64::from(!found.ports.is_empty())));
    }
}

fn compile(formats: &MessageFormats, text: &str, options: &Options) -> Compiler {
    Compiler::new(formats.clone(), options, &rules(text, formats)).unwrap()
}

fn order() -> impl Strategy<Value = Vec<FieldId>> {
    Just((0..9).map(FieldId).collect::<Vec<_>>()).prop_shuffle()
}

fn run(cases: u32, state: bool, most_rules: usize, messages: usize) {
    let formats = crate::common::formats(FORMATS);
    let mut runner = TestRunner::new(Config::with_cases(cases));
    let inputs = (prop::collection::vec(rule(state), 0..most_rules), prop::collection::vec(draft(), messages), order());
    runner
        .run(&inputs, |(rules, drafts, order)| {
            let text = rules.join("\n");
            let options = Options { order: Some(order), ..Options::default() };
            compare(&formats, &text, &drafts, state, &compile(&formats, &text, &options));
            Ok(())
        })
        .unwrap();
}

#[test]
fn tables_do_what_rules_say() {
    run(800, false, 12, 1500);
    counted(1_200_000);
}

#[test]
fn tables_with_state_do_what_rules_say() {
    run(300, true, 6, 400);
    counted(120_000);
}

/// That much was compared, and rules neither match nothing nor everything.
fn counted(wanted: u64) {
    let (compared, forwarded) = (COMPARISONS.get(), FORWARDED.get());
    assert!(compared >= wanted, "{compared}");
    assert!((compared / 5..compared * 19 / 20).contains(&forwarded), "{forwarded} of {compared}");
}
