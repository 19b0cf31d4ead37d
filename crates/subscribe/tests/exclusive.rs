//! Headers that no message has together: tables have no states for them.

use proptest::prelude::*;
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::diagram::NodeId;
use weftwire_subscribe::evaluate::Evaluator;
use weftwire_subscribe::formats::{FieldId, HeaderId};
use weftwire_subscribe::switch::Switch;
use weftwire_subscribe::{Compiler, Message, MessageFormats, Variable};

/// Messages are of one of three kinds; the third one's may go on, in one of two ways; and the batch may have a stamp.
const FORMATS: &str = r#"
    @subscribe[after=udp, when=udp.destination_port == 9, messages=count, prefix=16] header base { bit<8> count; }
    @subscribe[message=base, when=kind == 3] header third { bit<8> kind; @subscribe[] bit<8> more; }
    @subscribe[message=base, when=kind == 1] header first { bit<8> kind; @subscribe[] bit<8> size; }
    @subscribe[message=base, when=kind == 2] header second { bit<8> kind; @subscribe[] bit<8> size; }
    @subscribe[after=third, when=third.more == 1] header left { @subscribe[] bit<8> size; }
    @subscribe[after=third, when=third.more == 2] header right { @subscribe[] bit<8> size; }
    header stamp { @subscribe[] bit<8> age; }
"#;

fn header(formats: &MessageFormats, name: &str) -> HeaderId {
    formats.header_named(name).unwrap()
}

#[test]
fn what_excludes_what() {
    let formats = crate::common::formats(FORMATS);
    let exclude = |left, right| formats.exclude(header(&formats, left), header(&formats, right));
    for (left, right) in [("first", "second"), ("first", "third"), ("left", "right"), ("left", "first")] {
        assert!(exclude(left, right) && exclude(right, left), "{left}, {right}");
    }
    for (left, right) in [("third", "left"), ("first", "stamp"), ("first", "base"), ("first", "first")] {
        assert!(!exclude(left, right) && !exclude(right, left), "{left}, {right}");
    }
}

fn test() -> impl Strategy<Value = String> {
    let field = ["first.size", "second.size", "third.more", "left.size", "right.size", "stamp.age"];
    (prop::sample::select(field.to_vec()), prop::sample::select(vec![">", "<", "=="]), 0..8u8)
        .prop_map(|(field, operator, value)| format!("{field} {operator} {value}"))
}

fn rule() -> impl Strategy<Value = String> {
    let filter = prop_oneof![
        3 => test(),
        1 => (test(), test()).prop_map(|(left, right)| format!("{left} or not ({right})")),
        1 => (test(), test()).prop_map(|(left, right)| format!("{left} and {right}")),
        1 => Just("true".to_owned()),
        1 => test().prop_map(|test| format!("{test} and count() over 1us > 1")),
    ];
    (filter, 1..6u16).prop_map(|(filter, port)| format!("{filter} : fwd({port});"))
}

/// A message that there can be: its kind, how it goes on, and its fields' values.
fn message(formats: &MessageFormats, (kind, stamp, values): (u8, bool, [u8; 6])) -> Message {
    let names: &[&str] = match kind {
        0 => &[],
        1 => &["first"],
        2 => &["second"],
        3 => &["third"],
        4 => &["third", "left"],
        _ => &["third", "right"],
    };
    let mut message = Message::new(formats);
    names.iter().chain(["stamp"].iter().filter(|_| stamp)).for_each(|name| message.add_header(header(formats, name)));
    for (field, value) in values.into_iter().enumerate() {
        message.set(FieldId(field as u16), (value % 8).into());
    }
    message
}

/// Fails if a way through the diagram has two headers that exclude each other.
fn has_no_impossible_way(compiler: &Compiler, at: NodeId, present: &mut Vec<HeaderId>) {
    let Some(node) = compiler.diagram().node(at) else { return };
    let Variable::Present(header) = compiler.variable(node.level) else { return };
    has_no_impossible_way(compiler, node.next(0), present);
    let other = present.iter().find(|other| compiler.formats().exclude(**other, header));
    assert_eq!(other, None, "beside {}", compiler.formats().header(header).name);
    present.push(header);
    has_no_impossible_way(compiler, node.next(1), present);
    present.pop();
}

fn entries(compiler: &Compiler) -> usize {
    compiler.tables().stages().flat_map(|(_, stage)| stage.rows.values()).map(|rows| rows.entry_count()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn tables_do_what_rules_say(
        texts in prop::collection::vec(rule(), 0..10),
        gone in rule(),
        drafts in prop::collection::vec((0..6u8, any::<bool>(), any::<[u8; 6]>()), 100),
    ) {
        let formats = crate::common::formats(FORMATS);
        let rules = crate::common::rules(&texts.join("\n"), &formats);
        let options = Options::default();
        let compiler = Compiler::new(formats.clone(), &options, &rules).unwrap();
        let mut changed = Compiler::new(formats.clone(), &options, &[]).unwrap();
        let gone = changed.add(&crate::common::rules(&gone, &formats)[0]).unwrap().0;
        rules.iter().for_each(|rule| drop(changed.add(rule).unwrap()));
        changed.remove(gone).unwrap().unwrap();
        let mut evaluator = Evaluator::new(&formats, &rules);
        let mut switches = [Switch::default(), Switch::default()];
        for compiler in [&compiler, &changed] {
            has_no_impossible_way(compiler, compiler.root(), &mut Vec::new());
        }
        prop_assert_eq!(entries(&compiler), entries(&changed));
        for draft in drafts {
            let message = message(&formats, draft);
            let expected = evaluator.message(&message, 0);
            for (compiler, switch) in [&compiler, &changed].into_iter().zip(&mut switches) {
                prop_assert_eq!(&switch.message(compiler, &message, 0).ports, &expected.ports, "{:?}\n{:?}", texts, draft);
            }
        }
    }
}

/// Of ports for kinds of messages no sets are made.
#[test]
fn sets_of_ports_are_of_messages_that_there_are() {
    let formats = crate::common::formats(FORMATS);
    let text = "first.size > 3 : fwd(1); second.size > 3 : fwd(2); third.more == 1 : fwd(3); left.size == 1 : fwd(4);";
    let compiler = Compiler::new(formats.clone(), &Options::default(), &crate::common::rules(text, &formats)).unwrap();
    let sets: std::collections::BTreeSet<Vec<u16>> = compiler
        .tables()
        .leaves()
        .values()
        .map(|set| compiler.actions(*set).ports.iter().map(|port| port.0).collect())
        .collect();
    assert_eq!(sets.into_iter().collect::<Vec<_>>(), [vec![], vec![1], vec![2], vec![3], vec![3, 4], vec![4]]);
}
