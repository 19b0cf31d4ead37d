//! Rules that cost too much are refused, soon, and leave what was there as it was.

use crate::common::{formats, rules};
use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use weftwire_core::Port;
use weftwire_subscribe::budget::{Budget, CompileError, Excess, MOST_TESTS};
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::formats::FieldId;
use weftwire_subscribe::{Compiler, MessageFormats, Rule, RuleId, Watch, check, order};

const SMALL: Budget = Budget { size: 100_000, steps: 1_000_000 };

/// A header of `count` fields of a byte, `f0` and on.
fn fields(count: usize) -> MessageFormats {
    let fields: String = (0..count).map(|field| format!("@subscribe[] bit<8> f{field}; ")).collect();
    formats(&format!("header message {{ {fields} }}"))
}

fn options(budget: Budget) -> Options {
    Options { budget, ..Options::default() }
}

/// Rule `i` tests the fields `i` and `i + step`: apart, they multiply; side by side they do not.
fn pairs(count: usize, step: usize, formats: &MessageFormats) -> Vec<Rule> {
    let rule = |rule: usize| {
        let (left, right) = if step == 1 { (2 * rule, 2 * rule + 1) } else { (rule, rule + step) };
        format!("f{left} == 1 and f{right} == 1: fwd(1);\n")
    };
    rules(&(0..count).map(rule).collect::<String>(), formats)
}

/// Everything that can be asked about a compiler's diagram and tables, in words.
fn state(compiler: &Compiler) -> String {
    let stages: Vec<_> = compiler.tables().stages().map(|(variable, stage)| (variable, &stage.rows)).collect();
    format!("{:?} {stages:?} {:?} {:?}", compiler.root(), compiler.tables().leaves(), compiler.tables().initial())
}

#[test]
fn rules_that_multiply_are_refused_with_the_costly_one() {
    let formats = fields(60);
    for (count, budget, excess) in [
        (30, SMALL, Excess::Size),
        (30, Budget::of_size(300_000), Excess::Size),
        (30, Budget { size: usize::MAX, steps: 1_000_000 }, Excess::Steps),
    ] {
        let all = pairs(count, 30, &formats);
        let (rule, error) = Compiler::new(formats.clone(), &options(budget), &all).unwrap_err();
        assert_eq!(error, CompileError::OverBudget(excess, budget));
        // The rules up to the one before are within the budget.
        assert!((8..30).contains(&rule), "{rule}");
        assert!(Compiler::new(formats.clone(), &options(budget), &all[..rule - 2]).is_ok());
        assert!(error.to_string().contains("which is the budget"), "{error}");
    }
}

#[test]
fn an_order_search_is_never_worse_than_the_order_of_the_formats() {
    // Side by side in the formats: any order that tears the pairs apart multiplies.
    let formats = fields(48);
    for count in [8, 16, 20, 24] {
        let all = pairs(count, 1, &formats);
        let plain = Compiler::new(formats.clone(), &options(SMALL), &all).unwrap();
        let (compiler, choice) = order::compile(&formats, &options(SMALL), &all).unwrap();
        assert!(compiler.tables().entry_count() <= plain.tables().entry_count());
        assert_eq!(choice.entries_in_file_order, Some(plain.tables().entry_count()));
    }
    // Apart in the formats, so that these are over the budget; some order is not.
    let all = pairs(20, 24, &formats);
    assert!(Compiler::new(formats.clone(), &options(SMALL), &all).is_err());
    let (compiler, choice) = order::compile(&formats, &options(SMALL), &all).unwrap();
    assert_eq!((compiler.rule_count(), choice.entries_in_file_order), (20, None));
    // No order helps here: each rule has a port of its own, and they overlap in everything.
    let text: String = (0..40).map(|rule| format!("f{rule} > 100: fwd({});\n", rule + 1)).collect();
    let all = rules(&text, &formats);
    let (_, error) = order::compile(&formats, &options(SMALL), &all).unwrap_err();
    assert!(matches!(error, CompileError::OverBudget(..)), "{error:?}");
}

/// What is best for a sample may be worse for all rules: they decide.
#[test]
fn the_order_that_is_best_for_a_sample_is_tried_with_all_rules() {
    let formats = formats("header message { @subscribe[] bit<16> a; @subscribe[] bit<16> b; }");
    // The sample takes every eighth of the rules: there `b` is selective, in the others it is not.
    let rule = |rule: usize| match rule % 8 {
        0 => format!("a > {} and b == {rule}: fwd({});\n", rule % 97, 1 + rule % 100),
        _ => format!("a == {rule} and b > {}: fwd({});\n", rule * 31 % 4093, 1 + rule % 100),
    };
    let all = rules(&(0..4096).map(rule).collect::<String>(), &formats);
    let wide = options(Budget::of_size(1 << 25));
    let entries = |order: &[u16]| {
        let order = Some(order.iter().map(|field| FieldId(*field)).collect());
        let options = Options { order, ..wide.clone() };
        Compiler::new(formats.clone(), &options, &all).unwrap().tables().entry_count()
    };
    let (first, second) = (entries(&[0, 1]), entries(&[1, 0]));
    assert_eq!(order::choose(&formats, &all, &Watch::default()), [FieldId(1), FieldId(0)]);
    assert!(first < second, "{first} {second}");
    let (compiler, choice) = order::compile(&formats, &wide, &all).unwrap();
    assert_eq!(compiler.tables().entry_count(), first);
    assert_eq!(choice.order, [FieldId(0), FieldId(1)]);
}

/// Rule by rule to the budget and back: a refusal changes nothing, and what is there keeps working.
#[test]
fn a_refused_change_leaves_everything_as_it_was() {
    let formats = fields(60);
    let all = pairs(30, 30, &formats);
    let mut compiler = Compiler::new(formats.clone(), &options(SMALL), &all[..4]).unwrap();
    let (mut added, mut refused) = (4, 0);
    for rule in all[4..].iter().chain(&all[4..]) {
        let before = state(&compiler);
        match compiler.add(rule) {
            Ok(_) => added += 1,
            Err(error) => {
                assert!(matches!(error, CompileError::OverBudget(..)), "{error}");
                assert_eq!(state(&compiler), before);
                refused += 1;
            }
        }
    }
    assert!(added > 8 && refused > 20, "{added} {refused}");
    // A rule that costs nothing still fits, and all can go again.
    compiler.add(&all[0]).unwrap();
    for id in 0..compiler.rule_count() {
        compiler.remove(RuleId(id as u32)).unwrap().unwrap();
    }
    assert_eq!((compiler.rule_count(), compiler.tables().entry_count()), (0, 0));
}

/// What is forgotten to make room for a rule is nothing that this rule needs.
#[test]
fn a_rule_that_room_is_made_for_has_its_actions() {
    let formats = fields(2);
    let text: String = (1..=200).map(|rule| format!("f0 == {rule} and f1 > {rule}: fwd({rule});\n")).collect();
    let mut compiler = Compiler::new(formats.clone(), &options(Budget::of_size(3_000)), &[]).unwrap();
    for (count, rule) in (1..).zip(&rules(&text, &formats)) {
        compiler.add(rule).unwrap();
        let leaves = compiler.tables().leaves().values();
        let ports: BTreeSet<u16> =
            leaves.flat_map(|set| compiler.actions(*set).ports).map(|port: Port| port.0).collect();
        assert_eq!(ports, (1..=count).collect());
    }
}

/// To take a rule out is work too: it may have covered others.
#[test]
fn a_refused_removal_leaves_everything_as_it_was() {
    let formats = fields(60);
    let mut all = rules("f0 in [0, 255]: fwd(1);", &formats);
    all.extend(pairs(8, 30, &formats));
    let mut compiler = Compiler::new(formats.clone(), &options(SMALL), &all).unwrap();
    let before = state(&compiler);
    compiler.set_budget(Budget { steps: 0, ..SMALL });
    let error = compiler.remove(RuleId(0)).unwrap_err();
    assert!(matches!(error, CompileError::OverBudget(Excess::Steps, _)), "{error}");
    assert_eq!(state(&compiler), before);
    compiler.set_budget(SMALL);
    compiler.remove(RuleId(0)).unwrap().unwrap();
    assert_ne!(state(&compiler), before);
}

/// What walks a diagram goes as deep as it has levels.
#[test]
fn deep_rules_are_refused() {
    let formats = fields(2_000);
    let tests: Vec<String> = (0..1_000).map(|field| format!("f{field} == 1")).collect();
    let one = rules(&format!("{}: fwd(1);", tests.join(" and ")), &formats);
    let error = Compiler::new(formats.clone(), &Options::default(), &one).unwrap_err();
    assert_eq!(error, (0, CompileError::TooManyTests));
    // One test a rule, and the same port: a chain as long as there are rules.
    let text: String = (0..2_000).map(|field| format!("f{field} == 1: fwd(1);\n")).collect();
    let many = rules(&text, &formats);
    let (rule, error) = Compiler::new(formats.clone(), &Options::default(), &many).unwrap_err();
    assert_eq!((rule, error), (MOST_TESTS - 1, CompileError::OverBudget(Excess::Depth, Budget::default())));
    assert!(Compiler::new(formats.clone(), &Options::default(), &many[..500]).is_ok());
    assert!(order::compile(&formats, &Options::default(), &many).is_err());
}

/// Prefixes of a table count, not only edges.
#[test]
fn ranges_of_prefixes_count_as_the_prefixes_that_they_take() {
    let formats = formats("header message { @subscribe[match=lpm] bit<32> address; @subscribe[] bit<32> size; }");
    let rule =
        |n: u32, field: &str| format!("{field} in [{}, {}]: fwd({});\n", n * 1000 + 1, n * 1000 + 998, 1 + n % 50);
    let all = |field: &str| rules(&(0..200).map(|n| rule(n, field)).collect::<String>(), &formats);
    let budget = Budget { size: 2_000, steps: 1_000_000 };
    assert!(Compiler::new(formats.clone(), &options(budget), &all("size")).is_ok());
    assert!(Compiler::new(formats.clone(), &options(budget), &all("address")).is_err());
}

/// `check` of rules each of which would take long alone, or all of which would.
#[test]
fn checking_is_bounded() {
    let formats = fields(60);
    let all = pairs(30, 30, &formats);
    let alternatives: Vec<String> = (0..30).map(|n| format!("(f{n} == 1 and f{} == 1)", n + 30)).collect();
    let one = rules(&format!("{}: fwd(1);", alternatives.join(" or ")), &formats);
    let dropping = rules(
        &(0..30).map(|n| format!("f{n} > 3: drop();\nf{n} > 5: fwd({});\n", n + 1)).collect::<String>(),
        &formats,
    );
    for set in [&all, &one, &dropping] {
        check::check(&formats, set);
    }
}

/// What compiling is expected to take is near enough what it takes, whatever the order.
#[test]
fn who_watches_hears_how_far_it_is() {
    let formats = formats(weftwire_workload::ITCH_FORMATS);
    let all = rules(&weftwire_workload::itch(20_000, 1), &formats);
    let shares = |compile: &dyn Fn(&Options)| {
        let (sender, shares) = channel();
        let watch = Watch::new(move |share| sender.send(share).unwrap());
        compile(&Options { watch, ..Options::default() });
        shares.iter().collect::<Vec<f64>>()
    };
    for shares in [
        shares(&|options| drop(Compiler::new(formats.clone(), options, &all).unwrap())),
        shares(&|options| drop(order::compile(&formats, options, &all).unwrap())),
    ] {
        assert!(shares.len() > 10 && shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
        // A guess of the whole that is four times too much, or too little, would be no better than none.
        let (before, last) = (shares[shares.len() / 4], shares[shares.len() - 1]);
        assert!(before < 0.75 && last > 0.25, "{shares:?}");
    }
}
