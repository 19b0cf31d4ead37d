//! The order of fields: the one that needs the fewest entries for a sample of the rules.

use crate::clauses::{Term, clauses};
use crate::compiler::{Compiler, Options};
use crate::formats::{FieldId, MessageFormats};
use crate::rules::Rule;

/// Rules in a sample; fewer if they come to more than [`MOST_ENTRIES`] in the order of the formats.
const MOST_RULES: usize = 512;

/// Entries of a sample's tables beyond which no more rules join it.
const MOST_ENTRIES: usize = 10_000;

/// Fields up to which all orders are tried; of more, each field is moved to its best place in turn.
const FIELDS_FOR_ALL_ORDERS: usize = 4;

/// An order, and what it is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The fields that rules use, in order.
    pub order: Vec<FieldId>,
    /// Rules in the sample.
    pub sample: usize,
    /// Entries that the sample needs in this order.
    pub entries: usize,
    /// Entries that the sample needs in the order of the formats.
    pub entries_in_file_order: usize,
}

/// Chooses an order of the fields for these rules.
pub fn choose(formats: &MessageFormats, rules: &[Rule]) -> Choice {
    let mut sample: Vec<Rule> = Vec::new();
    let mut entries_in_file_order = 0;
    // Rules from all over the set, twice as many each time while that stays small.
    let mut size = 16;
    loop {
        let step = rules.len().div_ceil(size).max(1);
        let wider: Vec<Rule> = rules.iter().step_by(step).cloned().collect();
        let Some(entries) = entries(formats, &wider, &[]) else { break };
        if entries > MOST_ENTRIES && !sample.is_empty() {
            break;
        }
        (sample, entries_in_file_order) = (wider, entries);
        if size >= rules.len().min(MOST_RULES) {
            break;
        }
        size *= 2;
    }
    let file_order = used(formats, &sample);
    let mut best = (entries_in_file_order, file_order.clone());
    if file_order.len() <= FIELDS_FOR_ALL_ORDERS {
        permutations(&mut file_order.clone(), 0, &mut |order| consider(formats, &sample, order, &mut best));
    } else {
        for field in &file_order {
            for place in 0..file_order.len() {
                let mut order = best.1.clone();
                order.retain(|other| other != field);
                order.insert(place, *field);
                consider(formats, &sample, &order, &mut best);
            }
        }
    }
    Choice { order: best.1, sample: sample.len(), entries: best.0, entries_in_file_order }
}

fn consider(formats: &MessageFormats, sample: &[Rule], order: &[FieldId], best: &mut (usize, Vec<FieldId>)) {
    if let Some(entries) = entries(formats, sample, order)
        && entries < best.0
    {
        *best = (entries, order.to_vec());
    }
}

fn entries(formats: &MessageFormats, rules: &[Rule], order: &[FieldId]) -> Option<usize> {
    let options = Options { order: Some(order.to_vec()), without_state: true };
    Some(Compiler::new(formats.clone(), &options, rules).ok()?.tables().entry_count())
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
    use crate::workload::{Numbers, itch_rule};
    use weftwire_lang::SourceMap;

    #[test]
    fn prefers_the_selective_field() {
        let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
        // Prices first, as the file has it, costs several times as much.
        let text = "header add_order { @subscribe[] bit<32> price; @subscribe[text=\" \"] bit<64> stock; }";
        let formats = MessageFormats::read("f", text, &mut sources, &mut diagnostics).unwrap();
        let mut numbers = Numbers::new(1);
        let rules: Vec<String> = (0..300).map(|_| itch_rule(&mut numbers)).collect();
        let rules = crate::read_rules("r", &rules.join("\n"), &formats, &mut sources, &mut diagnostics);
        let choice = choose(&formats, &rules);
        let names: Vec<String> = choice.order.iter().map(|field| formats.full_name(*field)).collect();
        assert_eq!(names, ["add_order.stock", "add_order.price"]);
        assert!(choice.entries_in_file_order > 5 * choice.entries, "{choice:?}");
        assert_eq!(choose(&formats, &rules[..1]).sample, 1);
        assert_eq!(choose(&formats, &[]).entries, 0);
    }
}
