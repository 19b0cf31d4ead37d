//! Rules that are written and read again are the same rules.

use proptest::prelude::*;
use weftwire_core::Port;
use weftwire_subscribe::formats::{CounterId, FieldId, MatchKind};
use weftwire_subscribe::rules::{Action, Aggregate, Argument, Call, Filter, Function, Rule, Subject, Test};
use weftwire_subscribe::values::{Interval, ValueSet};
use weftwire_subscribe::{MessageFormats, read_rules, write};
use weftwire_text::{Severity, SourceMap, Span};

const FORMATS: &str = r#"
    @subscribe_counter[name=hits, window="100ns"]
    @subscribe_action[name=note, arguments="number text ipv4 ipv6 mac"]
    header one {
        @subscribe[match=exact] bit<4> kind;
        @subscribe[match=range] bit<36> size;
        @subscribe[match=lpm] bit<32> address;
        @subscribe[text=" "] bit<32> name;
        @subscribe[text="x", match=exact] bit<16> code;
        @subscribe[decimals=3] bit<32> price;
        @subscribe[] bit<128> wide;
    }
"#;

/// Values near the edges of bytes and of letters.
fn number() -> impl Strategy<Value = u128> {
    let byte = prop::sample::select(vec![0u8, 1, b' ', b'"', b'\\', b'A', b'B', b'x', b'~', 0x7f, 0x80, 0xfe, 0xff]);
    prop_oneof![
        prop::collection::vec(byte, 16)
            .prop_map(|bytes| bytes.iter().fold(0, |all, byte| all << 8 | u128::from(*byte))),
        any::<u128>(),
        (0u128..20),
    ]
}

fn set(width: u16, numbers: &[(u128, u128)]) -> ValueSet {
    let all = Interval::of_width(width).last;
    let interval = |(a, b): &(u128, u128)| match (a & all, b & all) {
        (a, b) if b % 3 == 0 => Interval { first: a, last: a },
        (a, b) => Interval { first: a.min(b), last: a.max(b) },
    };
    ValueSet::union_of(numbers.iter().map(interval))
}

/// A test of what the numbers say.
fn test(subject: usize, numbers: &[(u128, u128)]) -> Filter {
    let formats = crate::common::formats(FORMATS);
    let window = |function, field, window_ns| Subject::State(Aggregate::Window { function, field, window_ns });
    let fields = formats.fields();
    let place = |name: &str| FieldId(fields.iter().position(|field| field.name == name).expect("it is there") as u16);
    let (subject, width) = match subject {
        0..7 => (Subject::Field(FieldId(subject as u16)), fields[subject].width),
        7 => (Subject::State(Aggregate::Counter(CounterId(0))), 64),
        8 => (window(Function::Count, None, 1), 64),
        9 => (window(Function::Sum, Some(place("price")), 1_000), 64),
        10 => (window(Function::Avg, Some(place("price")), 1_500_000), 32),
        _ => (window(Function::Max, Some(place("size")), 1_000_000_000), 36),
    };
    let exact = matches!(subject, Subject::Field(field) if formats.field(field).kind == Some(MatchKind::Exact));
    let values = if exact {
        let points = set(width, &numbers.iter().map(|(a, _)| (*a, 0)).collect::<Vec<_>>());
        // Sets that a field has no test for are told by several.
        let turned = numbers.len().is_multiple_of(2) && points.intervals().len() > 1;
        if turned { points.complement(Interval::of_width(width)) } else { points }
    } else {
        set(width, numbers)
    };
    Filter::Test(Test { subject, values, span: Span::default() })
}

fn filter() -> impl Strategy<Value = Filter> {
    let numbers = prop::collection::vec((number(), number()), 1..5);
    let test = (0..12usize, numbers).prop_map(|(subject, numbers)| test(subject, &numbers));
    let leaf = prop_oneof![20 => test, 1 => Just(Filter::Always), 1 => Just(Filter::Never)];
    leaf.prop_recursive(4, 20, 4, |inner| {
        let parts = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            parts.clone().prop_map(Filter::All),
            parts.prop_map(Filter::Any),
            inner.prop_map(|part| Filter::Not(Box::new(part))),
        ]
    })
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let ports = prop::collection::btree_set(1..=u16::MAX, 1..4);
    let forward = ports.prop_map(|ports| Action::Forward(ports.into_iter().map(Port).collect()));
    let call = (any::<u64>(), "[ -!#-~]{0,5}", any::<[u8; 4]>(), any::<[u16; 8]>(), 0..1u64 << 48).prop_map(
        |(number, text, ipv4, ipv6, mac)| {
            let ipv6 =
                if number.is_multiple_of(3) { std::net::Ipv4Addr::from(ipv4).to_ipv6_mapped() } else { ipv6.into() };
            let arguments = vec![
                Argument::Number(number),
                Argument::Text(text),
                Argument::Ipv4(ipv4.into()),
                Argument::Ipv6(ipv6),
                Argument::Mac(mac),
            ];
            Action::Call(Call { action: "note".to_owned(), arguments })
        },
    );
    prop_oneof![forward.prop_map(|it| vec![it]), Just(vec![Action::Drop]), prop::collection::vec(call, 1..3),]
}

fn erase_spans(filter: &mut Filter) {
    match filter {
        Filter::Always | Filter::Never => {}
        Filter::Test(test) => test.span = Span::default(),
        Filter::Not(part) => erase_spans(part),
        Filter::All(parts) | Filter::Any(parts) => parts.iter_mut().for_each(erase_spans),
    }
}

fn read(text: &str, formats: &MessageFormats) -> Vec<Rule> {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    let mut rules = read_rules("rules", text, formats, &mut sources, &mut diagnostics);
    let severe = diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let errors: Vec<String> = severe.map(|it| it.to_text(&sources)).collect();
    assert!(errors.is_empty(), "{text}\n{}", errors.join("\n"));
    for rule in &mut rules {
        erase_spans(&mut rule.filter);
        rule.span = Span::default();
    }
    rules
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_written_is_read_again(filter in filter(), actions in actions()) {
        let formats = crate::common::formats(FORMATS);
        let rule = Rule { filter, actions, span: Span::default() };
        let text = write::rule(&formats, &rule);
        let again = read(&text, &formats);
        prop_assert_eq!(again.first(), Some(&rule), "{}", text);
    }
}

#[test]
fn texts_of_any_bytes_are_written() {
    let formats = crate::common::formats(FORMATS);
    let written = |text: &str| {
        let rules = read(&format!("{text} : drop;"), &formats);
        write::filter(&formats, &rules[0].filter)
    };
    for (text, expected) in [
        ("name == 0x41422020", "one.name == \"AB\""),
        ("name == 0x41420020", "one.name == 0x41420020"),
        ("name == 0x41222020", "one.name == 0x41222020"),
        ("name in {A, 0x00, [B, 0x42202121]}", "one.name in {0x0, \"A\", [\"B\", \"B !!\"]}"),
        ("code not in {a, 0x00ff}", "one.code not in {0xff, \"a\"}"),
        ("size & 0xffffffff6 == 2", "one.size in {[2, 3], [10, 11]}"),
    ] {
        assert_eq!(written(text).get(..expected.len()), Some(expected));
    }
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    for wrong in ["name == 5", "name == 0x0141422020", "name == 1.5"] {
        read_rules("rules", &format!("{wrong} : drop;"), &formats, &mut sources, &mut diagnostics);
    }
    assert_eq!(diagnostics.len(), 3);
}

/// As deep as can be read is as deep as can be written.
#[test]
fn deep_filters_are_read_again() {
    let formats = crate::common::formats(FORMATS);
    let chain =
        |open: &str| format!("{}kind == 1{} : drop;", open.repeat(60), ")".repeat(60 * open.matches('(').count()));
    for text in [chain("not "), chain("kind == 2 or kind == 3 and ("), chain("kind == 3 and (kind == 2 or ")] {
        let rules = read(&text, &formats);
        assert_eq!(read(&write::rule(&formats, &rules[0]), &formats), rules);
    }
}
