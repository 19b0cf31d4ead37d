//! An engine that runs while rules come and go: against the rules read one by one, and against an engine made anew.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use weftwire_core::Port;
use weftwire_subscribe::evaluate::Evaluator;
use weftwire_subscribe::formats::{FieldId, HeaderId};
use weftwire_subscribe::rules::Call;
use weftwire_subscribe::switch::Switch;
use weftwire_subscribe::tables::Delta;
use weftwire_subscribe::{Compiler, Message, MessageFormats, Rule, RuleId};
use weftwire_switch::{ActionSet, Memory, Pipeline, Touched};

const FORMATS: &str = r#"
    @subscribe_counter[name=hits, window="700ns"]
    @subscribe_action[name=note, arguments="number"]
    header one {
        @subscribe[match=exact] bit<16> kind;
        @subscribe[match=range] bit<10> size;
        @subscribe[match=lpm] bit<6> address;
    }
    header two { @subscribe[] bit<96> wide; @subscribe[] bit<16> other; }
"#;

fn rule(text: &str, formats: &MessageFormats) -> Rule {
    crate::common::rules(text, formats).into_iter().next().expect("one rule")
}

fn compile(formats: &MessageFormats, rules: &[Rule]) -> Compiler {
    Compiler::new(formats.clone(), &Default::default(), rules).expect("few clauses")
}

/// A test, by what it asks for; some of state.
fn test() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0..12u8).prop_map(|n| format!("kind == {}", 1000 * u16::from(n))),
        1 => (0..12u8).prop_map(|n| format!("kind != {}", 1000 * u16::from(n))),
        3 => (0..32u8).prop_map(|n| format!("size > {n}")),
        2 => (0..64u8, 0..7u8).prop_map(|(n, length)| format!("address in {n}/{length}")),
        1 => (0..8u8).prop_map(|n| format!("other < {}", 500 * u16::from(n))),
        1 => (0..4u8).prop_map(|n| format!("wide > {}", u128::from(n) << 80)),
        1 => (0..6u8).prop_map(|n| format!("hits > {n}")),
        2 => (0..5u8).prop_map(|n| format!("count() over 2us > {n}")),
        2 => (0..90u8).prop_map(|n| format!("sum(size) over 3us > {n}")),
        1 => (0..30u8).prop_map(|n| format!("max(size) over 3us < {n}")),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<String>, bool, u16, bool),
    Remove(prop::sample::Index),
    /// The engine is given the rules as a whole.
    Update,
}

fn step() -> impl Strategy<Value = Step> {
    let add = (prop::collection::vec(test(), 1..4), prop::bool::weighted(0.8), 1..9u16, prop::bool::weighted(0.1));
    prop_oneof![
        6 => add.prop_map(|(tests, all, port, note)| Step::Add(tests, all, port, note)),
        4 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => Just(Step::Update),
    ]
}

fn message(formats: &MessageFormats, (values, headers): ([u8; 5], u8)) -> Message {
    let mut message = Message::new(formats);
    if headers != 0 {
        message.add_header(HeaderId(0));
    }
    if headers > 1 {
        message.add_header(HeaderId(1));
    }
    let [kind, size, address, wide, other] = values.map(u128::from);
    let numbers = [kind % 12 * 1000, size % 32, address % 64, ((wide % 4) << 80) + wide % 3, other * 16 % 4096];
    for (field, value) in numbers.into_iter().enumerate() {
        message.set(FieldId(field as u16), value);
    }
    message
}

/// The engine beside the compiler whose changes it follows, and one that takes them over from another.
struct Running {
    compiler: Compiler,
    pipeline: Pipeline,
    memory: Memory,
    kept: Pipeline,
    touched: Touched,
    taking: Pipeline,
    taking_memory: Memory,
    switch: Switch,
}

impl Running {
    fn new(compiler: Compiler) -> Running {
        let pipeline = Pipeline::new(&compiler);
        let (kept, taking) = (pipeline.clone(), pipeline.clone());
        let [memory, taking_memory] = <[Memory; 2]>::default();
        Running {
            compiler,
            pipeline,
            memory,
            kept,
            touched: Touched::default(),
            taking,
            taking_memory,
            switch: Switch::default(),
        }
    }

    fn lay_out(&mut self) {
        self.pipeline.swap(&mut Pipeline::new(&self.compiler), &mut self.memory);
        self.kept = Pipeline::new(&self.compiler);
        self.taking.swap(&mut self.kept.clone(), &mut self.taking_memory);
    }

    fn follow(&mut self, delta: &Delta) {
        self.pipeline.apply(&self.compiler, delta, &mut self.memory);
        self.kept.follow(&self.compiler, delta, &mut self.touched);
        let mut patch = self.kept.pieces(std::mem::take(&mut self.touched));
        self.taking.take(&mut patch, &mut self.taking_memory);
        // All of it is alike, so that it stays so.
        assert_eq!(format!("{:?}", self.taking), format!("{:?}", self.kept));
        self.switch.apply(delta);
    }

    fn add(&mut self, rule: &Rule) -> RuleId {
        let (id, delta) = self.compiler.add(rule).expect("few clauses");
        self.follow(&delta);
        id
    }

    fn remove(&mut self, id: RuleId) {
        let delta = self.compiler.remove(id).unwrap().expect("it is there");
        self.follow(&delta);
    }

    /// What the engine does with a message; the slow switch must do the same.
    fn message(&mut self, message: &Message, now_ns: u64) -> (Vec<Port>, Vec<String>) {
        let (mut row, mut sets) = (Vec::new(), Vec::new());
        self.pipeline.push_row(message, &mut row);
        self.pipeline.walk(&row, now_ns, &mut self.memory, &mut sets);
        let name = |id: &_| self.compiler.call(*id).to_string();
        let named = |pipeline: &Pipeline, set: ActionSet| {
            (pipeline.ports(set).to_vec(), pipeline.calls(set).iter().map(name).collect::<Vec<_>>())
        };
        let found = named(&self.pipeline, sets[0]);
        row.clear();
        self.taking.push_row(message, &mut row);
        self.taking.walk(&row, now_ns, &mut self.taking_memory, &mut sets);
        assert_eq!(named(&self.taking, sets[1]), found);
        let slow = self.switch.message(&self.compiler, message, now_ns);
        assert_eq!(found, (slow.ports, slow.calls.iter().map(name).collect()));
        found
    }
}

/// Each rule by itself, with the windows it has had since it came.
fn expected(rules: &mut BTreeMap<RuleId, Evaluator<'_>>, message: &Message, now_ns: u64) -> (Vec<Port>, Vec<Call>) {
    let (mut ports, mut calls) = (BTreeSet::new(), BTreeSet::new());
    for evaluator in rules.values_mut() {
        let outcome = evaluator.message(message, now_ns);
        ports.extend(outcome.ports);
        calls.extend(outcome.calls);
    }
    (ports.into_iter().collect(), calls.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_running_engine_does_what_rules_say(
        steps in prop::collection::vec(step(), 1..30),
        drafts in prop::collection::vec((any::<[u8; 5]>(), 0..8u8), 300),
    ) {
        let formats = crate::common::formats(FORMATS);
        // No two rules have the same state at a time: who comes later shares what the earlier has seen, which rules by
        // themselves do not know.
        let all: Vec<Option<Rule>> = steps.iter().map(|step| match step {
            Step::Add(tests, all, port, note) => {
                let action = if *note { format!("note({port})") } else { format!("fwd({port})") };
                Some(rule(&format!("{} : {action};", tests.join(if *all { " and " } else { " or " })), &formats))
            }
            _ => None,
        }).collect();
        let mut running = Running::new(compile(&formats, &[]));
        let mut present: BTreeMap<RuleId, Evaluator<'_>> = BTreeMap::new();
        let mut sources: BTreeMap<RuleId, &Rule> = BTreeMap::new();
        let mut now_ns = 0;
        let mut drafts = drafts.iter();
        for (step, new) in steps.iter().zip(&all) {
            match (step, new) {
                (Step::Remove(_), _) if present.is_empty() => {}
                (Step::Remove(which), _) => {
                    let id = *present.keys().nth(which.index(present.len())).expect("one of them");
                    present.remove(&id);
                    sources.remove(&id);
                    running.remove(id);
                }
                (Step::Update, _) => running.lay_out(),
                (_, Some(rule)) => {
                    if sources.values().any(|other| share_state(other, rule, &formats)) {
                        continue;
                    }
                    let id = running.add(rule);
                    sources.insert(id, rule);
                    present.insert(id, Evaluator::new(&formats, std::slice::from_ref(rule)));
                }
                _ => {}
            }
            for draft in drafts.by_ref().take(10) {
                let message = message(&formats, *draft);
                let (ports, calls) = running.message(&message, now_ns);
                let (wanted, wanted_calls) = expected(&mut present, &message, now_ns);
                prop_assert_eq!(ports, wanted);
                let calls: BTreeSet<String> = calls.into_iter().collect();
                prop_assert_eq!(calls, wanted_calls.iter().map(Call::to_string).collect::<BTreeSet<_>>());
                now_ns += 97;
            }
        }
    }
}

/// Whether two rules have a piece of state in common.
fn share_state(left: &Rule, right: &Rule, formats: &MessageFormats) -> bool {
    let both = compile(formats, &[left.clone(), right.clone()]);
    let states = |rule: &Rule| compile(formats, std::slice::from_ref(rule)).states().len();
    both.states().len() < states(left) + states(right)
}

#[test]
fn a_number_that_is_used_again_starts_anew() {
    let formats = crate::common::formats(FORMATS);
    let first = rule("size > 3 and count() over 1s > 2 : fwd(1);", &formats);
    let second = rule("size > 4 and count() over 1s > 2 : fwd(2);", &formats);
    let large = message(&formats, ([0, 9, 0, 0, 0], 1));
    let mut running = Running::new(compile(&formats, &[]));
    let id = running.add(&first);
    let other = running.add(&rule("kind == 7000 : fwd(9);", &formats));
    for _ in 0..2 {
        assert!(running.message(&large, 0).0.is_empty());
    }
    // Other rules come and go: the window goes on.
    running.remove(other);
    running.lay_out();
    assert_eq!(running.message(&large, 0).0, [Port(1)]);
    running.remove(id);
    running.add(&second);
    assert_eq!(running.compiler.states().len(), 1, "the number is used again");
    for _ in 0..2 {
        assert!(running.message(&large, 0).0.is_empty());
    }
    assert_eq!(running.message(&large, 0).0, [Port(2)]);

    // The same rule in another compiler, under another number, is the same window; a counter is known by its name.
    let counter = rule("hits > 1 : fwd(3);", &formats);
    let whole = compile(&formats, &[counter, first, second]);
    running.pipeline.swap(&mut Pipeline::new(&whole), &mut running.memory);
    let (mut row, mut sets) = (Vec::new(), Vec::new());
    running.pipeline.push_row(&large, &mut row);
    running.pipeline.walk(&row, 0, &mut running.memory, &mut sets);
    running.pipeline.walk(&row, 0, &mut running.memory, &mut sets);
    let ports = sets.iter().map(|set| running.pipeline.ports(*set)).collect::<Vec<_>>();
    assert_eq!(ports, [&[Port(2)][..], &[Port(2), Port(3)]]);
}
