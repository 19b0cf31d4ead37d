//! The order of fields: the one that needs the fewest entries, found with a sample of the rules.
//!
//! The search is bounded by what the order of the formats costs: an order that takes more steps is given up, and so is
//! the search after some dozens of orders.

use crate::budget::{Budget, CompileError};
use crate::clauses::{Term, clauses};
use crate::compiler::{Compiler, Options};
use crate::formats::{FieldId, MessageFormats};
use crate::rules::Rule;
use crate::watch::Watch;

/// Rules in a sample; fewer if they come to more than [`MOST_ENTRIES`] in the order of the formats.
const MOST_RULES: usize = 512;

/// Entries of a sample's tables beyond which no more rules join it.
const MOST_ENTRIES: usize = 10_000;

/// What one order of a sample may cost.
const SAMPLE: Budget = Budget { size: 1 << 19, steps: 1 << 22 };

/// What all orders of a sample may cost, in steps: so many times what the order of the formats does, and no more than this.
const MOST_TIMES: u64 = 64;
const MOST_STEPS: u64 = 1 << 26;

/// Fields up to which all orders are tried; of more, each field is moved to its best place in turn.
const FIELDS_FOR_ALL_ORDERS: usize = 4;

/// Orders that are best for the sample and are tried with all rules.
const FINALISTS: usize = 2;

/// An order, and what it is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The fields that rules use, in order.
    pub order: Vec<FieldId>,
    /// Entries that all rules need in this order.
    pub entries: usize,
    /// Entries that they need in the order of the formats; `None` if that is over the budget.
    pub entries_in_file_order: Option<usize>,
}

/// Compiles rules in the order of fields that needs the fewest entries: that of the formats, or one that is better for a
/// sample. `options.order` is not used.
///
/// # Errors
/// What [`Compiler::new`] says of the order of the formats, where no order is within the budget.
pub fn compile(
    formats: &MessageFormats,
    options: &Options,
    rules: &[Rule],
) -> Result<(Compiler, Choice), (usize, CompileError)> {
    let watch = &options.watch;
    let sample = Sample::of(formats, rules, watch);
    let new = |order: &[FieldId], budget: Budget| {
        let options = Options { order: Some(order.to_vec()), budget, ..options.clone() };
        Compiler::try_new(formats.clone(), &options, rules)
    };
    // The search, and then the finalists, which take no more steps than the order of the formats.
    let rest = |once: u64| sample.search_steps(formats).saturating_add(once.saturating_mul(FINALISTS as u64));
    if watch.is_on() {
        let once = expected_steps(formats, &Options { order: None, ..options.clone() }, rules);
        watch.expect(rest(once).saturating_add(once));
    }
    let in_file_order = new(&[], options.budget);
    let once = in_file_order.as_ref().map_or(options.budget.steps, Compiler::steps);
    watch.expect(rest(once));
    let entries_in_file_order = in_file_order.as_ref().ok().map(|compiler| compiler.tables().entry_count());
    let mut best = in_file_order.map(|compiler| (compiler, sample.file_order.clone()));
    let orders = sample.best_orders(formats, watch);
    for (tried, order) in orders.iter().enumerate() {
        watch.expect(once.saturating_mul((orders.len() - tried) as u64));
        let known = best.as_ref().ok().map(|(compiler, _)| compiler);
        // An order that takes more steps is hardly better.
        let steps = known.map_or(options.budget.steps, |known| known.steps().min(options.budget.steps));
        let least = known.map_or(usize::MAX, |known| known.tables().entry_count());
        if let Ok(mut compiler) = new(order, Budget { steps, ..options.budget })
            && compiler.tables().entry_count() < least
        {
            compiler.set_budget(options.budget);
            best = Ok((compiler, order.clone()));
        }
    }
    let (compiler, order) = match best {
        Ok(best) => best,
        Err((Some(rule), error)) => return Err((rule, error)),
        Err((None, error)) => {
            let options = Options { order: None, ..options.clone() };
            return Err((Compiler::costliest(formats.clone(), &options, rules), error));
        }
    };
    let entries = compiler.tables().entry_count();
    Ok((compiler, Choice { order, entries, entries_in_file_order }))
}

/// The best order for a sample of the rules.
pub fn choose(formats: &MessageFormats, rules: &[Rule], watch: &Watch) -> Vec<FieldId> {
    let sample = Sample::of(formats, rules, watch);
    watch.expect(sample.search_steps(formats));
    sample.best_orders(formats, watch).into_iter().next().unwrap_or(sample.file_order)
}

/// How many steps all rules will take in the order of the options, as far as a sample tells.
pub(crate) fn expected_steps(formats: &MessageFormats, options: &Options, rules: &[Rule]) -> u64 {
    let order = options.order.as_deref().unwrap_or_default();
    // Small beside them all.
    let size = (rules.len() / 8).max(16);
    let [(fewer, less), (more, steps)] = [size / 2, size].map(|size| {
        let sample = spread(rules, size);
        let cost = cost(formats, &sample, order, SAMPLE.steps, &options.watch);
        (sample.len().max(1) as f64, cost.map_or(SAMPLE.steps, |(_, steps)| steps).max(1) as f64)
    });
    // If steps go on to grow as they do from one sample to the other.
    let power = if more > fewer { ((steps / less).ln() / (more / fewer).ln()).clamp(1.0, 3.0) } else { 1.0 };
    let expected = steps * (rules.len() as f64 / more).max(1.0).powf(power);
    (expected as u64).min(options.budget.steps)
}

/// So many rules from all over a set.
fn spread(rules: &[Rule], size: usize) -> Vec<Rule> {
    rules.iter().step_by(rules.len().div_ceil(size).max(1)).cloned().collect()
}

/// Rules from all over a set.
struct Sample {
    rules: Vec<Rule>,
    file_order: Vec<FieldId>,
    /// Entries in the order of the formats, and the steps to them; `None` if that is too much for any sample.
    cost: Option<(usize, u64)>,
}

impl Sample {
    fn of(formats: &MessageFormats, rules: &[Rule], watch: &Watch) -> Sample {
        let mut sample = Sample { rules: Vec::new(), file_order: Vec::new(), cost: None };
        // Twice as many each time while that stays small.
        let mut size = 16;
        loop {
            let wider = spread(rules, size);
            let cost = cost(formats, &wider, &[], SAMPLE.steps, watch);
            let small = cost.is_some_and(|(entries, _)| entries <= MOST_ENTRIES);
            if sample.rules.is_empty() || small {
                sample.rules = wider;
                sample.cost = cost;
            }
            if !small || size >= rules.len().min(MOST_RULES) {
                break;
            }
            size *= 2;
        }
        sample.file_order = used(formats, &sample.rules);
        sample
    }

    /// Steps of the search for a better order at most.
    fn search_steps(&self, formats: &MessageFormats) -> u64 {
        let (_, steps) = self.cost.unwrap_or((usize::MAX, SAMPLE.steps));
        (steps + self.each(formats)).saturating_mul(MOST_TIMES).min(MOST_STEPS)
    }

    /// What a try takes beside the steps of compiling: even an order that is given up at once takes its time.
    fn each(&self, formats: &MessageFormats) -> u64 {
        (self.rules.len() + formats.fields().len()) as u64
    }

    /// Orders that need fewer entries than that of the formats, the best first.
    fn best_orders(&self, formats: &MessageFormats, watch: &Watch) -> Vec<Vec<FieldId>> {
        let (entries, steps) = self.cost.unwrap_or((usize::MAX, SAMPLE.steps));
        let mut search = Search {
            formats,
            sample: &self.rules,
            entries,
            steps,
            each: self.each(formats),
            left: self.search_steps(formats),
            watch,
            found: Vec::new(),
        };
        if self.file_order.len() <= FIELDS_FOR_ALL_ORDERS {
            permutations(&mut self.file_order.clone(), 0, &mut |order| search.consider(order));
        } else {
            let mut best = self.file_order.clone();
            for field in &self.file_order {
                for place in 0..self.file_order.len() {
                    if search.is_over() {
                        break;
                    }
                    let mut order = best.clone();
                    order.retain(|other| other != field);
                    order.insert(place, *field);
                    search.consider(&order);
                    if let Some((_, found)) = search.found.first() {
                        best.clone_from(found);
                    }
                }
            }
        }
        search.found.into_iter().map(|(_, order)| order).collect()
    }
}

/// A search for orders that are better than that of the formats.
struct Search<'a> {
    formats: &'a MessageFormats,
    sample: &'a [Rule],
    /// Entries that an order must save, and steps that it must not take.
    entries: usize,
    steps: u64,
    /// Steps of each try beside those of compiling.
    each: u64,
    /// Steps that the search may still take.
    left: u64,
    watch: &'a Watch,
    /// The best orders, the very best first, with their entries.
    found: Vec<(usize, Vec<FieldId>)>,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.left <= self.each
    }

    fn consider(&mut self, order: &[FieldId]) {
        if self.is_over() || self.found.iter().any(|(_, known)| known == order) {
            return;
        }
        self.left -= self.each;
        // Twice: an order may take more steps to fewer entries.
        let most = self.steps.saturating_mul(2).min(self.left);
        let cost = cost(self.formats, self.sample, order, most, self.watch);
        self.left -= cost.map_or(most, |(_, steps)| steps.min(most));
        if let Some((entries, _)) = cost.filter(|(entries, _)| *entries < self.entries) {
            let at = self.found.partition_point(|(known, _)| *known <= entries);
            self.found.insert(at, (entries, order.to_vec()));
            self.found.truncate(FINALISTS);
        }
    }
}

/// Entries of rules in an order, and the steps to them; `None` if there are more steps.
fn cost(
    formats: &MessageFormats,
    rules: &[Rule],
    order: &[FieldId],
    steps: u64,
    watch: &Watch,
) -> Option<(usize, u64)> {
    let budget = Budget { steps, ..SAMPLE };
    let options = Options { order: Some(order.to_vec()), without_state: true, budget, watch: watch.clone() };
    let compiler = Compiler::try_new(formats.clone(), &options, rules).ok()?;
    Some((compiler.tables().entry_count(), compiler.steps()))
}

/// The fields that rules test, in the order of the formats.
fn used(formats: &MessageFormats, rules: &[Rule]) -> Vec<FieldId> {
    let terms = rules.iter().filter_map(|rule| clauses(&rule.filter, false, formats).ok()).flatten().flatten();
    let fields = terms.filter_map(|(term, _)| match term {
        Term::Field(field) => Some(field),
        _ => None,
    });
    fields.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

fn permutations(order: &mut Vec<FieldId>, from: usize, visit: &mut impl FnMut(&[FieldId])) {
    if from + 1 >= order.len() {
        return visit(order);
    }
    for place in from..order.len() {
        order.swap(from, place);
        permutations(order, from + 1, visit);
        order.swap(from, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_text::SourceMap;
    use weftwire_workload::{Numbers, itch_rule};

    #[test]
    fn prefers_the_selective_field() {
        let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
        // Prices first, as the file has it, costs several times as much.
        let text = "header add_order { @subscribe[] bit<32> price; @subscribe[text=\" \"] bit<64> stock; }";
        let formats = MessageFormats::read("f", text, &mut sources, &mut diagnostics).unwrap();
        let mut numbers = Numbers::new(1);
        let rules: Vec<String> = (0..300).map(|_| itch_rule(&mut numbers)).collect();
        let rules = crate::read_rules("r", &rules.join("\n"), &formats, &mut sources, &mut diagnostics);
        let (_, choice) = compile(&formats, &Options::default(), &rules).unwrap();
        let names: Vec<String> = choice.order.iter().map(|field| formats.full_name(*field)).collect();
        assert_eq!(names, ["add_order.stock", "add_order.price"]);
        assert_eq!(choose(&formats, &rules, &Watch::default()), choice.order);
        assert!(choice.entries_in_file_order.unwrap() > 5 * choice.entries, "{choice:?}");
        assert_eq!(compile(&formats, &Options::default(), &[]).unwrap().1.entries, 0);
    }
}
