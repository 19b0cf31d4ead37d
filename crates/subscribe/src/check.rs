//! What is suspicious in rules that are right: filters that never or always hold, rules that drop what others forward.

use crate::budget::Budget;
use crate::clauses::clauses;
use crate::compiler::{Compiler, Options, Variable};
use crate::diagram::NOTHING;
use crate::formats::MessageFormats;
use crate::rules::{Action, Argument, Call, Filter, Rule};
use weftwire_core::Port;
use weftwire_text::Diagnostic;

/// Errors of rules that come to too many clauses, and warnings, in order of the rules.
pub fn check(formats: &MessageFormats, rules: &[Rule]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for rule in rules {
        match clauses(&rule.filter, true, formats) {
            Err(error) => found.push(Diagnostic::error(rule.span, error.to_string())),
            Ok(clauses) if clauses.is_empty() && rule.filter != Filter::Never => {
                found.push(
                    Diagnostic::warning(rule.span, "this rule never matches").label("its tests exclude each other"),
                );
            }
            Ok(clauses) => {
                if rule.filter != Filter::Always && !clauses.is_empty() && always(formats, rule, clauses.len()) {
                    let warning = Diagnostic::warning(rule.span, "this rule matches all messages with its headers");
                    found.push(warning.help("write `true` if every message is meant"));
                }
            }
        }
    }
    found.extend(conflicts(formats, rules));
    found.sort_by_key(|diagnostic| diagnostic.span);
    found
}

/// Whether a rule matches whatever the fields' values are.
fn always(formats: &MessageFormats, rule: &Rule, clauses: usize) -> bool {
    if clauses == 1 {
        // One clause tests fields unless it is made of headers alone.
        let of_headers = |clause: &crate::clauses::Clause| {
            clause.iter().all(|(term, _)| matches!(term, crate::clauses::Term::Present(_)))
        };
        return crate::clauses::clauses(&rule.filter, true, formats).is_ok_and(|list| list.iter().all(of_headers));
    }
    let alone = Rule { actions: vec![Action::Forward(vec![Port(1)])], ..rule.clone() };
    let Some(compiler) = compiled(formats, &[alone]) else { return false };
    let mut at = compiler.root();
    while let Some(node) = compiler.diagram().node(at)
        && matches!(compiler.variable(node.level), Variable::Present(_))
    {
        at = node.next(1);
    }
    at.leaf().is_some() && at != NOTHING
}

/// Rules compiled for a warning, which is not worth as much as the rules themselves.
fn compiled(formats: &MessageFormats, rules: &[Rule]) -> Option<Compiler> {
    let budget = Budget::of_size(Budget::DEFAULT_SIZE / 32);
    Compiler::try_new(formats.clone(), &Options { budget, ..Options::default() }, rules).ok()
}

/// Warnings for rules that drop messages which others forward all the same.
fn conflicts(formats: &MessageFormats, rules: &[Rule]) -> Vec<Diagnostic> {
    let drops = |rule: &Rule| rule.actions.contains(&Action::Drop);
    if !rules.iter().any(drops) {
        return Vec::new();
    }
    // Each rule that drops becomes an action of its own, which then meets ports in a leaf, or does not.
    let marked: Vec<Rule> = rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| clauses(&rule.filter, true, formats).is_ok())
        .map(|(index, rule)| {
            let mark = Action::Call(Call { action: "drop".into(), arguments: vec![Argument::Number(index as u64)] });
            Rule { actions: if drops(rule) { vec![mark] } else { rule.actions.clone() }, ..rule.clone() }
        })
        .collect();
    let Some(compiler) = compiled(formats, &marked) else { return Vec::new() };
    let mut conflicting: Vec<u64> = Vec::new();
    for set in compiler.tables().leaves().values() {
        let actions = compiler.actions(*set);
        if actions.ports.is_empty() {
            continue;
        }
        for call in actions.calls {
            if let Call { action, arguments } = compiler.call(call)
                && action == "drop"
                && let [Argument::Number(index)] = arguments[..]
            {
                conflicting.push(index);
            }
        }
    }
    conflicting.sort_unstable();
    conflicting.dedup();
    let warning = |index: u64| {
        let rule = rules.get(index as usize)?;
        let warning = Diagnostic::warning(rule.span, "this rule drops messages that another one forwards");
        Some(warning.help("they are forwarded: `drop` takes nothing away from other rules; narrow those"))
    };
    conflicting.into_iter().filter_map(warning).collect()
}
