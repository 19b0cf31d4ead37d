//! Rules that come and go: the diagram, the tables and the deltas against those of a fresh compilation.

use crate::common::rules;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::diagram::{NodeId, SetId};
use weftwire_subscribe::formats::MatchKind;
use weftwire_subscribe::tables::{Change, Delta, State, Tables};
use weftwire_subscribe::{Compiler, MessageFormats, RuleId, Variable};
use weftwire_text::SourceMap;
use weftwire_workload::Numbers;

const FORMATS: &str = r#"
    @subscribe_counter[name=hits, window="100ns"]
    header one {
        @subscribe[match=exact] bit<4> kind;
        @subscribe[match=range] bit<6> size;
        @subscribe[match=lpm] bit<6> address;
    }
    header two { @subscribe[] bit<8> other; }
"#;

fn test() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (0..16u8).prop_map(|n| format!("kind == {n}")),
        1 => (0..16u8).prop_map(|n| format!("kind != {n}")),
        3 => (0..64u8).prop_map(|n| format!("size > {n}")),
        1 => (0..64u8, 0..64u8).prop_map(|(a, b)| format!("size in [{}, {}]", a.min(b), a.max(b))),
        1 => (0..64u8, 0..64u8).prop_map(|(m, n)| format!("size & {m} == {}", n & m)),
        2 => (0..64u8, 0..7u8).prop_map(|(n, length)| format!("address in {n}/{length}")),
        1 => any::<u8>().prop_map(|n| format!("other < {n}")),
        1 => (0..4u8).prop_map(|n| format!("hits > {n}")),
        1 => (0..40u8).prop_map(|n| format!("sum(size) over 1us > {n}")),
    ]
}

fn rule() -> impl Strategy<Value = String> {
    let filter = (prop::collection::vec(test(), 1..4), prop::bool::weighted(0.8));
    (filter, 1..9u16)
        .prop_map(|((tests, all), port)| format!("{} : fwd({port});", tests.join(if all { " and " } else { " or " })))
}

/// A rule to add, or which of the present rules to remove.
#[derive(Clone, Debug)]
enum Step {
    Add(String),
    Remove(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![rule().prop_map(Step::Add), any::<prop::sample::Index>().prop_map(Step::Remove)]
}

/// A diagram written down, so that those of two compilers can be compared.
fn written(compiler: &Compiler, id: NodeId, seen: &mut BTreeMap<NodeId, usize>, lines: &mut Vec<String>) -> usize {
    if let Some(known) = seen.get(&id) {
        return *known;
    }
    let line = match compiler.diagram().node(id) {
        None => format!("{:?}", compiler.actions(id.leaf().unwrap()).ports),
        Some(node) => {
            let edges: Vec<String> = node
                .intervals()
                .map(|(values, to)| format!("{}-{}:{}", values.first, values.last, written(compiler, to, seen, lines)))
                .collect();
            format!("{:?} {}", compiler.variable(node.level), edges.join(" "))
        }
    };
    lines.push(line);
    seen.insert(id, lines.len());
    lines.len()
}

fn whole(compiler: &Compiler) -> Vec<String> {
    let mut lines = Vec::new();
    written(compiler, compiler.root(), &mut BTreeMap::new(), &mut lines);
    lines
}

/// Tables as a switch holds them, changed by deltas alone.
#[derive(Clone, PartialEq, Debug, Default)]
struct Held {
    initial: State,
    defaults: BTreeMap<(Variable, State), State>,
    entries: BTreeMap<(Variable, State, u128, u128), State>,
    leaves: BTreeMap<State, SetId>,
}

impl Held {
    fn of(tables: &Tables) -> Held {
        let mut held = Held { initial: tables.initial(), leaves: tables.leaves().clone(), ..Held::default() };
        for (variable, stage) in tables.stages() {
            for (state, rows) in &stage.rows {
                held.defaults.insert((variable, *state), rows.default);
                for entry in rows.entries() {
                    held.entries.insert((variable, *state, entry.values.first, entry.values.last), entry.next);
                }
            }
        }
        held
    }

    fn apply(&mut self, delta: &Delta) {
        for change in &delta.changes {
            match *change {
                Change::SetInitial(state) => self.initial = state,
                Change::SetLeaf(state, set) => {
                    self.leaves.insert(state, set);
                }
                Change::RemoveLeaf(state) => assert!(self.leaves.remove(&state).is_some()),
                Change::SetDefault(variable, state, next) => {
                    self.defaults.insert((variable, state), next);
                }
                Change::RemoveDefault(variable, state) => {
                    assert!(self.defaults.remove(&(variable, state)).is_some());
                }
                Change::AddEntry(variable, state, entry) => {
                    let key = (variable, state, entry.values.first, entry.values.last);
                    assert!(self.entries.insert(key, entry.next).is_none(), "added twice");
                }
                Change::ModifyEntry(variable, state, entry) => {
                    let key = (variable, state, entry.values.first, entry.values.last);
                    assert!(self.entries.insert(key, entry.next).is_some(), "never added");
                }
                Change::RemoveEntry(variable, state, entry) => {
                    let key = (variable, state, entry.values.first, entry.values.last);
                    assert!(self.entries.remove(&key).is_some(), "never added");
                }
            }
        }
    }
}

#[test]
fn rules_that_come_and_go_leave_what_a_fresh_compilation_makes() {
    let formats = crate::common::formats(FORMATS);
    let inputs = (prop::collection::vec(rule(), 0..12), prop::collection::vec(step(), 1..24));
    TestRunner::new(Config::with_cases(400))
        .run(&inputs, |(start, steps)| {
            let mut present: Vec<(RuleId, String)> =
                start.iter().enumerate().map(|(id, text)| (RuleId(id as u32), text.clone())).collect();
            let mut compiler =
                Compiler::new(formats.clone(), &Options::default(), &rules(&start.join("\n"), &formats)).unwrap();
            let mut held = Held::of(compiler.tables());
            for step in steps {
                let delta = match step {
                    Step::Add(text) => {
                        let (id, delta) = compiler.add(&rules(&text, &formats)[0]).unwrap();
                        present.push((id, text));
                        delta
                    }
                    Step::Remove(_) if present.is_empty() => continue,
                    Step::Remove(which) => {
                        compiler.remove(present.remove(which.index(present.len())).0).unwrap().unwrap()
                    }
                };
                held.apply(&delta);
                prop_assert_eq!(&held, &Held::of(compiler.tables()));
            }
            let text: Vec<&str> = present.iter().map(|(_, text)| text.as_str()).collect();
            let fresh =
                Compiler::new(formats.clone(), &Options::default(), &rules(&text.join("\n"), &formats)).unwrap();
            // Which numbers pieces of state have depends on their history.
            if !text.iter().any(|text| text.contains("sum(")) && !text.iter().any(|text| text.contains("hits")) {
                prop_assert_eq!(whole(&compiler), whole(&fresh));
                prop_assert_eq!(compiler.tables().entry_count(), fresh.tables().entry_count());
            }
            Ok(())
        })
        .unwrap();
}

/// Nodes of thousands of edges, which are kept in pieces, around the size where that begins.
#[test]
fn long_nodes_change_like_short_ones() {
    let text = "header wide {
        @subscribe[match=exact] bit<16> name; @subscribe[match=range] bit<16> size; @subscribe[match=lpm] bit<16> address;
        @subscribe[] bit<8> other;
    }";
    let formats = MessageFormats::read("f", text, &mut SourceMap::default(), &mut Vec::new()).unwrap();
    for seed in 0..12 {
        let mut numbers = Numbers::new(seed);
        let field = ["name", "size", "address"][numbers.below(3) as usize];
        // Few or many places to lead to, and at times a test behind that one.
        let ports = [2, 3, 500][numbers.below(3) as usize];
        let mut line = || {
            let (value, port) = (numbers.below(1 << 16), 1 + numbers.below(ports));
            let more = if numbers.below(4) == 0 { format!(" and other > {}", numbers.below(4)) } else { String::new() };
            match (field, numbers.below(60)) {
                ("size", 0) => format!("size > {value}{more} : fwd({port});"),
                ("size", 1) => format!("size != {value} : fwd({port});"),
                ("size", 2..30) => format!("size in [{value}, {}] : fwd({port});", value + (65_535 - value) / 2000),
                _ => format!("{field} == {value}{more} : fwd({port});"),
            }
        };
        let start: Vec<String> = (0..1_000 + 20 * seed).map(|_| line()).collect();
        let mut present: Vec<(RuleId, String)> = (0..).map(RuleId).zip(start.iter().cloned()).collect();
        let compile = |text: &str| Compiler::new(formats.clone(), &Options::default(), &rules(text, &formats)).unwrap();
        let mut compiler = compile(&start.join("\n"));
        let mut held = Held::of(compiler.tables());
        for step in 0..120usize {
            // The set grows, shrinks and grows again, past the border each time.
            let delta = if step % 80 < 50 {
                let text = line();
                let (id, delta) = compiler.add(&rules(&text, &formats)[0]).unwrap();
                present.push((id, text));
                delta
            } else {
                compiler.remove(present.swap_remove(step * 7919 % present.len()).0).unwrap().unwrap()
            };
            held.apply(&delta);
            if step % 5 == 0 {
                assert_eq!(held, Held::of(compiler.tables()), "seed {seed}, step {step}");
            }
            if step % 30 == 0 {
                let text: Vec<&str> = present.iter().map(|(_, text)| text.as_str()).collect();
                let fresh = compile(&text.join("\n"));
                assert_eq!(whole(&compiler), whole(&fresh), "seed {seed}, step {step}");
                assert_eq!(kinds(&compiler), kinds(&fresh), "seed {seed}, step {step}");
            }
        }
    }
}

/// Of each stage its kind and how many entries it has.
fn kinds(compiler: &Compiler) -> Vec<(MatchKind, usize)> {
    compiler.tables().stages().map(|(_, stage)| (stage.kind(), stage.entry_count())).collect()
}

#[test]
fn the_diagram_does_not_depend_on_the_order_of_rules() {
    let formats = crate::common::formats(FORMATS);
    let inputs =
        prop::collection::vec(rule(), 1..14).prop_flat_map(|rules| (Just(rules.clone()), Just(rules).prop_shuffle()));
    TestRunner::new(Config::with_cases(400))
        .run(&inputs, |(rules_in_order, shuffled)| {
            let stateless = |list: &[String]| -> String {
                list.iter()
                    .filter(|text| !text.contains("hits") && !text.contains("sum("))
                    .map(|text| format!("{text}\n"))
                    .collect()
            };
            let compile =
                |text: &str| Compiler::new(formats.clone(), &Options::default(), &rules(text, &formats)).unwrap();
            prop_assert_eq!(whole(&compile(&stateless(&rules_in_order))), whole(&compile(&stateless(&shuffled))));
            Ok(())
        })
        .unwrap();
}

#[test]
fn rules_that_mean_the_same_give_the_same_diagram() {
    let formats = crate::common::formats(FORMATS);
    let compile =
        |text: &str| whole(&Compiler::new(formats.clone(), &Options::default(), &rules(text, &formats)).unwrap());
    for (left, right) in [
        // The published compiler keeps the test of 50 here.
        ("size > 50 : fwd(1); size > 40 : fwd(1);", "size > 40 : fwd(1);"),
        ("size > 40 and kind == 1 : fwd(1);", "kind == 1 and not size <= 40 : fwd(1);"),
        ("kind == 1 or kind == 2 : fwd(1, 2);", "kind in {2, 1} : fwd(2), fwd(1);"),
        ("size >= 10 and size < 20 : fwd(1); size in [20, 30] : fwd(1);", "size in [10, 30] : fwd(1);"),
        ("address in 32/1 : fwd(1); address in 0/1 : fwd(1);", "address in 0/0 : fwd(1);"),
        ("size > 5 or size <= 5 : fwd(1);", "size >= 0 : fwd(1);"),
        ("kind == 1 and kind == 2 : fwd(1); size < 9 : fwd(2);", "size < 9 : fwd(2); false : fwd(3);"),
        ("not (size > 5 or other == 1) : fwd(1);", "size <= 5 and other != 1 : fwd(1);"),
    ] {
        assert_eq!(compile(left), compile(right), "{left} and {right}");
    }
    assert_ne!(compile("size >= 0 : fwd(1);"), compile("true : fwd(1);"), "a test asks for its header");
}
