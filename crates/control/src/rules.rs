//! The rules of a switch's table, compiled within a budget: what does not fit is held back, the others are compiled.

use crate::state::shorten;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weftwire_core::Port;
use weftwire_route::MessageFilter;
use weftwire_subscribe::budget::Excess;
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::formats::FieldId;
use weftwire_subscribe::rules::{Action, Rule};
use weftwire_subscribe::tables::Delta;
use weftwire_subscribe::{Budget, CompileError, Compiler, MessageFormats, RuleId, Watch, order, write};
use weftwire_text::Span;

/// The part of the budget's steps that adding one rule may take, and the steps that it may take in any case. What it adds is
/// then small beside the budget, and what it takes if it fails is short.
const EACH: u64 = 512;
const LEAST: u64 = 8192;
/// The steps of so many may be spent in one update on rules that are then held back.
const FAILURES: u64 = 16;
/// The part of the steps of one that each of the others may take then, and the steps that it may take in any case.
const LITTLE: u64 = 64;
const LEAST_LITTLE: u64 = 1024;
/// Removing a rule may take so many times the steps of adding one.
const REMOVAL: u64 = 4;
/// So many rules that are held back may fail again in one update.
const TRIES: usize = 4;

/// A rule: what matches the filter goes out of the port.
pub(crate) type Forward = (Port, MessageFilter);

/// How the fields of a table are ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldOrder {
    /// As suits the first rules that come, if there are some; else as in the formats.
    Chosen,
    /// These first, the others as in the formats.
    Given(Vec<FieldId>),
}

/// The rules of a table: each is compiled or held back.
pub(crate) struct Rules {
    formats: Arc<MessageFormats>,
    order: FieldOrder,
    budget: Budget,
    compiler: Compiler,
    compiled: BTreeMap<Forward, RuleId>,
    held: Held,
}

impl Rules {
    /// None yet.
    pub(crate) fn new(formats: Arc<MessageFormats>, order: FieldOrder) -> Rules {
        Rules {
            compiler: Compiler::without_rules(&formats, &[]),
            formats,
            order,
            budget: Budget::default(),
            compiled: BTreeMap::new(),
            held: Held::default(),
        }
    }

    pub(crate) fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// The steps that adding a rule may take.
    fn each(&self) -> u64 {
        (self.budget.steps / EACH).max(LEAST)
    }

    /// The steps that it may take where many others have failed.
    fn little(&self) -> u64 {
        (self.each() / LITTLE).max(LEAST_LITTLE)
    }

    /// Those that are not held back.
    pub(crate) fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    pub(crate) fn compiled(&self) -> impl ExactSizeIterator<Item = &Forward> {
        self.compiled.keys()
    }

    pub(crate) fn held(&self) -> impl ExactSizeIterator<Item = &Forward> {
        self.held.rules.keys()
    }

    /// Compiled or not.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Forward> {
        self.compiled().chain(self.held())
    }

    pub(crate) fn contains(&self, rule: &Forward) -> bool {
        self.compiled.contains_key(rule) || self.held.rules.contains_key(rule)
    }

    /// How many are held back, and the first with the reason; `None`: all are compiled.
    pub(crate) fn refusal(&self) -> Option<String> {
        let ((port, filter), (_, error)) = self.held.rules.first_key_value()?;
        let (count, size, port) = (self.held.rules.len(), self.budget.size, port.0);
        let text = shorten(&write::filter(&self.formats, &filter.filter()));
        let reason = match error {
            CompileError::OverBudget(Excess::Size | Excess::Steps, _) => format!(
                "it is over the budget of {size} edges together with the rules there; give a greater --budget, or narrow such \
                 filters and test the same fields in them"
            ),
            error => error.to_string(),
        };
        Some(format!(
            "holds {count} rules back, whose subscribers get nothing through it; the first is `{text}` to port {port}: {reason}"
        ))
    }

    /// Takes rules that are not there, and removes others that are. `again`: it is time to try all that are held back.
    /// `follow` sees each change of the tables. `false`: they are to be laid out anew.
    pub(crate) fn update(
        &mut self,
        added: BTreeSet<Forward>,
        removed: &BTreeSet<Forward>,
        again: bool,
        follow: &mut dyn FnMut(&Compiler, &Delta),
    ) -> bool {
        let mut ignore = |_: &Compiler, _: &Delta| ();
        let mut spare = FAILURES * self.each();
        let afresh = self.compiled.is_empty() && !added.is_empty();
        if afresh {
            self.begin(added, &mut spare);
        } else {
            // What comes goes first: a message that had a way and is to have another one is not lost meanwhile.
            added.into_iter().for_each(|rule| self.add(rule, &mut spare, follow));
        }
        let removals = self.remove(removed, if afresh { &mut ignore } else { follow });
        if removals == Removals::OverBudget {
            self.rebuild(&mut spare);
        }
        if again || removals != Removals::None {
            self.held.all_are_due();
        }
        let as_told = !afresh && removals != Removals::OverBudget;
        self.retry(if as_told { follow } else { &mut ignore });
        as_told
    }

    /// Compiles the first rules: all at once, which is much faster, or else one by one.
    fn begin(&mut self, added: BTreeSet<Forward>, spare: &mut u64) {
        let rules: Vec<Rule> = added.iter().map(rule).collect();
        let steps = self.each().saturating_add(self.little().saturating_mul(rules.len() as u64));
        let budget = Budget { steps: steps.min(self.budget.steps), ..self.budget };
        let options = Options { budget, ..Options::default() };
        let compiled = match &self.order {
            FieldOrder::Given(fields) => {
                let options = Options { order: Some(fields.clone()), ..options };
                Compiler::new((*self.formats).clone(), &options, &rules)
            }
            FieldOrder::Chosen => order::compile(&self.formats, &options, &rules).map(|(compiler, _)| compiler),
        };
        if let Ok(compiler) = compiled {
            self.compiler = compiler;
            self.compiled = added.into_iter().zip((0..).map(RuleId)).collect();
            return;
        }
        let order = match &self.order {
            FieldOrder::Given(fields) => fields.clone(),
            FieldOrder::Chosen => order::choose(&self.formats, &rules, &Watch::default()),
        };
        self.compiler = Compiler::without_rules(&self.formats, &order);
        added.into_iter().for_each(|rule| self.add(rule, spare, &mut |_, _| ()));
    }

    /// Compiles all anew, the oldest first, and holds back what no longer fits.
    fn rebuild(&mut self, spare: &mut u64) {
        self.compiler = Compiler::without_rules(&self.formats, self.compiler.order());
        let mut rules: Vec<(Forward, RuleId)> = std::mem::take(&mut self.compiled).into_iter().collect();
        rules.sort_unstable_by_key(|(_, id)| *id);
        rules.into_iter().for_each(|(rule, _)| self.add(rule, spare, &mut |_, _| ()));
    }

    /// Compiles one more, or holds it back. `spare` is what those that fail may still take.
    fn add(&mut self, rule: Forward, spare: &mut u64, follow: &mut dyn FnMut(&Compiler, &Delta)) {
        let each = self.each();
        let steps = each.min(*spare).max(self.little());
        if let Err(error) = self.compile(&rule, steps, follow) {
            *spare = spare.saturating_sub(steps);
            self.held.insert(rule, error);
            if steps < each {
                // It may fit all the same.
                self.held.all_are_due();
            }
        }
    }

    fn compile(
        &mut self,
        forward: &Forward,
        steps: u64,
        follow: &mut dyn FnMut(&Compiler, &Delta),
    ) -> Result<(), CompileError> {
        self.compiler.set_budget(Budget { steps, ..self.budget });
        let (id, delta) = self.compiler.add(&rule(forward))?;
        self.compiled.insert(forward.clone(), id);
        follow(&self.compiler, &delta);
        Ok(())
    }

    /// Removes rules; if they hid what others cost, the compiler is to be made anew.
    fn remove(&mut self, removed: &BTreeSet<Forward>, follow: &mut dyn FnMut(&Compiler, &Delta)) -> Removals {
        self.compiler.set_budget(Budget { steps: self.each().saturating_mul(REMOVAL), ..self.budget });
        let mut removals = Removals::None;
        for rule in removed {
            self.held.remove(rule);
            let Some(id) = self.compiled.remove(rule) else { continue };
            if removals == Removals::OverBudget {
                continue;
            }
            removals = match self.compiler.remove(id) {
                Ok(delta) => {
                    follow(&self.compiler, &delta.unwrap_or_default());
                    if self.fits() { Removals::Made } else { Removals::OverBudget }
                }
                Err(_) => Removals::OverBudget,
            };
        }
        removals
    }

    /// A removal may make the diagram larger than others may.
    fn fits(&mut self) -> bool {
        let most = self.budget.size;
        if self.compiler.diagram().size() > most {
            self.compiler.collect();
        }
        self.compiler.diagram().size() <= most
    }

    /// Tries rules that are held back and due, those first that were not tried for the longest time, until some fail.
    fn retry(&mut self, follow: &mut dyn FnMut(&Compiler, &Delta)) {
        let mut failed = 0;
        while failed < TRIES
            && let Some(rule) = self.held.take_due()
        {
            if let Err(error) = self.compile(&rule, self.each(), follow) {
                self.held.insert(rule, error);
                failed += 1;
            }
        }
    }
}

/// What removing rules came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Removals {
    /// None was compiled.
    None,
    /// Some were.
    Made,
    /// The compiler still has some of them: without them it is over the budget.
    OverBudget,
}

/// The rules that are held back.
#[derive(Default)]
struct Held {
    /// With the number of the last try, and why it failed.
    rules: BTreeMap<Forward, (u64, CompileError)>,
    by_try: BTreeMap<u64, Forward>,
    next_try: u64,
    /// Those whose last try was before this one are to be tried again.
    due_before: u64,
}

impl Held {
    /// One that was just tried.
    fn insert(&mut self, rule: Forward, error: CompileError) {
        self.by_try.insert(self.next_try, rule.clone());
        self.rules.insert(rule, (self.next_try, error));
        self.next_try += 1;
    }

    fn remove(&mut self, rule: &Forward) {
        if let Some((tried, _)) = self.rules.remove(rule) {
            self.by_try.remove(&tried);
        }
    }

    fn all_are_due(&mut self) {
        self.due_before = self.next_try;
    }

    /// Takes the one out that was not tried for the longest time, if it is due.
    fn take_due(&mut self) -> Option<Forward> {
        let first = self.by_try.first_entry().filter(|first| *first.key() < self.due_before)?;
        let rule = first.remove();
        self.rules.remove(&rule);
        Some(rule)
    }
}

fn rule((port, filter): &Forward) -> Rule {
    Rule { filter: filter.filter(), actions: vec![Action::Forward(vec![*port])], span: Span::default() }
}
