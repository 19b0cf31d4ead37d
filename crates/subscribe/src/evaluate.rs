//! What rules say about a message, read one by one: slow, obvious, and what everything faster is compared with.

use crate::formats::MessageFormats;
use crate::message::Message;
use crate::rules::{Action, Aggregate, Call, Filter, Function, Rule, Subject};
use crate::window::Window;
use std::collections::BTreeMap;
use weftwire_core::Port;

/// What a message gets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// The ports it goes to, sorted.
    pub ports: Vec<Port>,
    /// The application's actions, each once, in the order in which the rules first name them, whatever matches.
    pub calls: Vec<Call>,
    /// The rules that matched, by their places.
    pub matched: Vec<usize>,
}

/// Rules with the state that their tests are about.
#[derive(Clone, Debug)]
pub struct Evaluator<'a> {
    formats: &'a MessageFormats,
    rules: &'a [Rule],
    /// State by its rule; counters are common to all.
    windows: BTreeMap<(Option<usize>, Aggregate), Window>,
}

impl<'a> Evaluator<'a> {
    /// Rules before any message.
    pub fn new(formats: &'a MessageFormats, rules: &'a [Rule]) -> Evaluator<'a> {
        Evaluator { formats, rules, windows: BTreeMap::new() }
    }

    /// What a message gets, after it has updated the state of all rules whose other tests it passes.
    pub fn message(&mut self, message: &Message, now_ns: u64) -> Outcome {
        self.update(message, now_ns);
        let mut outcome = Outcome::default();
        for (index, rule) in self.rules.iter().enumerate() {
            if self.holds(&rule.filter, false, message, Some(index)) {
                outcome.matched.push(index);
                for action in &rule.actions {
                    match action {
                        Action::Forward(ports) => outcome.ports.extend(ports),
                        Action::Drop => {}
                        Action::Call(call) => outcome.calls.push(call.clone()),
                    }
                }
            }
        }
        outcome.ports.sort_unstable();
        outcome.ports.dedup();
        if outcome.calls.len() > 1 {
            let named = self.rules.iter().flat_map(|rule| &rule.actions);
            let mut ordered: Vec<Call> = Vec::new();
            for action in named {
                if let Action::Call(call) = action
                    && outcome.calls.contains(call)
                    && !ordered.contains(call)
                {
                    ordered.push(call.clone());
                }
            }
            outcome.calls = ordered;
        }
        outcome
    }

    fn update(&mut self, message: &Message, now_ns: u64) {
        let mut updated = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let aggregates = crate::clauses::aggregates(rule);
            if aggregates.is_empty() || !self.holds(&rule.filter, false, message, None) {
                continue;
            }
            for aggregate in aggregates {
                let owner = if matches!(aggregate, Aggregate::Counter(_)) { None } else { Some(index) };
                if !updated.contains(&(owner, aggregate)) {
                    updated.push((owner, aggregate));
                }
            }
        }
        for (owner, aggregate) in updated {
            let (window_ns, value) = match aggregate {
                Aggregate::Counter(id) => (self.formats.counters()[usize::from(id.0)].window_ns, Some(0)),
                Aggregate::Window { field: None, window_ns, .. } => (window_ns, Some(0)),
                Aggregate::Window { field: Some(field), window_ns, .. } => {
                    (window_ns, message.get(field, self.formats))
                }
            };
            if let Some(value) = value {
                self.windows.entry((owner, aggregate)).or_default().update(now_ns, window_ns, value as u64);
            }
        }
    }

    /// Whether a filter holds; without a rule, tests of state are taken to hold.
    fn holds(&self, filter: &Filter, negated: bool, message: &Message, rule: Option<usize>) -> bool {
        match filter {
            Filter::Always => !negated,
            Filter::Never => negated,
            Filter::Not(inner) => self.holds(inner, !negated, message, rule),
            Filter::All(parts) if !negated => parts.iter().all(|part| self.holds(part, false, message, rule)),
            Filter::Any(parts) if negated => parts.iter().all(|part| self.holds(part, true, message, rule)),
            Filter::All(parts) | Filter::Any(parts) => {
                parts.iter().any(|part| self.holds(part, negated, message, rule))
            }
            Filter::Test(test) => {
                let value = match test.subject {
                    Subject::Field(field) => message.get(field, self.formats),
                    Subject::State(aggregate) => {
                        let needed = crate::clauses::header_of(aggregate, self.formats);
                        if needed.is_some_and(|header| !message.has(header)) {
                            return false;
                        }
                        let Some(rule) = rule else { return true };
                        self.value(rule, aggregate)
                    }
                };
                value.is_some_and(|value| test.values.contains(value) != negated)
            }
        }
    }

    fn value(&self, rule: usize, aggregate: Aggregate) -> Option<u128> {
        let (owner, function) = match aggregate {
            Aggregate::Counter(_) => (None, Function::Count),
            Aggregate::Window { function, .. } => (Some(rule), function),
        };
        Some(self.windows.get(&(owner, aggregate)).copied().unwrap_or_default().value(function))
    }
}
