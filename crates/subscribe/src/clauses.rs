//! Filters in disjunctive normal form: clauses, each a conjunction of value sets of variables.
//!
//! A field of a header that a message lacks passes no test, plain or negated. So negations are pushed down to the
//! tests first, and each test of a field then also asks for the field's header.

use crate::formats::{FieldId, HeaderId, MessageFormats};
use crate::rules::{Aggregate, Filter, Function, Rule, Subject, Test};
use crate::values::{Interval, ValueSet};
use smallvec::SmallVec;
use std::cell::Cell;

/// What a clause may ask about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Term {
    /// Whether the message has a header: 1 or 0.
    Present(HeaderId),
    /// A field's value.
    Field(FieldId),
    /// A value of state.
    State(Aggregate),
}

impl Term {
    /// All values that it may have.
    pub fn domain(self, formats: &MessageFormats) -> Interval {
        Interval::of_width(self.width(formats))
    }

    /// The width of its values in bits.
    pub fn width(self, formats: &MessageFormats) -> u16 {
        match self {
            Term::Present(_) => 1,
            Term::Field(field) => formats.field(field).width,
            Term::State(Aggregate::Window {
                function: Function::Avg | Function::Min | Function::Max, field, ..
            }) => field.map_or(64, |field| formats.field(field).width),
            Term::State(_) => 64,
        }
    }
}

/// Tests that must all hold, one a term, in order of the terms. No set is empty or all values.
pub type Clause = SmallVec<[(Term, ValueSet); 3]>;

/// Most clauses that one rule may come to.
pub const MOST_CLAUSES: usize = 4096;

/// Most intervals looked at on the way to them.
const MOST_STEPS: u64 = 1 << 26;

/// A rule's filter comes to more than [`MOST_CLAUSES`] clauses, or on the way to them to far more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the filter comes to more than {MOST_CLAUSES} alternatives; split the rule, or write `in {{..}}` instead of `or`"
)]
pub struct TooManyClauses;

/// A filter as clauses, of which at least one must hold. A clause that cannot hold is left out; no clause: the filter
/// never holds. Without `state`, tests of state are taken to hold.
///
/// # Errors
/// [`TooManyClauses`].
pub fn clauses(filter: &Filter, state: bool, formats: &MessageFormats) -> Result<Vec<Clause>, TooManyClauses> {
    let normal = Normal { formats, state, steps: Cell::new(0) };
    if let Filter::All(parts) = filter
        && let Some(single) = normal.single(parts)
    {
        return Ok(single.into_iter().filter(|clause| is_possible(clause, formats)).collect());
    }
    let mut clauses = normal.clauses(filter, false)?;
    clauses.retain(|clause| is_possible(clause, formats));
    clauses.sort_unstable();
    clauses.dedup();
    Ok(clauses)
}

/// All pieces of state that a rule names, each once, in order.
pub fn aggregates(rule: &Rule) -> Vec<Aggregate> {
    fn collect(filter: &Filter, found: &mut Vec<Aggregate>) {
        match filter {
            Filter::Always | Filter::Never => {}
            Filter::Test(test) => {
                if let Subject::State(aggregate) = test.subject {
                    found.push(aggregate);
                }
            }
            Filter::Not(inner) => collect(inner, found),
            Filter::All(parts) | Filter::Any(parts) => parts.iter().for_each(|part| collect(part, found)),
        }
    }
    let mut found = Vec::new();
    collect(&rule.filter, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

/// The header that a message needs to update a piece of state.
pub fn header_of(aggregate: Aggregate, formats: &MessageFormats) -> Option<HeaderId> {
    match aggregate {
        Aggregate::Window { field: Some(field), .. } => Some(formats.field(field).header),
        _ => None,
    }
}

/// The clause that also asks for a header; `None` if then it cannot hold.
pub fn with_header(clause: &Clause, header: HeaderId, formats: &MessageFormats) -> Option<Clause> {
    let present: Clause = SmallVec::from_iter([(Term::Present(header), ValueSet::point(1))]);
    conjunction(clause, &present).filter(|clause| is_possible(clause, formats))
}

/// Whether a message may have all headers that a clause asks for.
fn is_possible(clause: &Clause, formats: &MessageFormats) -> bool {
    let present = |(term, values): &(Term, ValueSet)| match term {
        Term::Present(header) if values.as_point() == Some(1) => Some(*header),
        _ => None,
    };
    let mut headers = clause.iter().filter_map(present);
    while let Some(header) = headers.next() {
        if headers.clone().any(|other| formats.exclude(header, other)) {
            return false;
        }
    }
    true
}

struct Normal<'a> {
    formats: &'a MessageFormats,
    state: bool,
    steps: Cell<u64>,
}

/// How many intervals some clauses have, each clause counted as one more.
fn sizes(clauses: &[Clause]) -> usize {
    clauses.iter().map(|clause| 1 + clause.iter().map(|(_, values)| values.intervals().len()).sum::<usize>()).sum()
}

impl Normal<'_> {
    fn spend(&self, steps: usize) -> Result<(), TooManyClauses> {
        self.steps.set(self.steps.get() + steps as u64);
        if self.steps.get() > MOST_STEPS { Err(TooManyClauses) } else { Ok(()) }
    }

    fn clauses(&self, filter: &Filter, negated: bool) -> Result<Vec<Clause>, TooManyClauses> {
        match (filter, negated) {
            (Filter::Always, false) | (Filter::Never, true) => Ok(vec![Clause::new()]),
            (Filter::Always, true) | (Filter::Never, false) => Ok(Vec::new()),
            (Filter::Not(inner), _) => self.clauses(inner, !negated),
            (Filter::Test(test), _) => Ok(self.test(test.subject, &test.values, negated).into_iter().collect()),
            (Filter::Any(parts), false) | (Filter::All(parts), true) => {
                let mut all = Vec::new();
                for part in parts {
                    all.append(&mut self.clauses(part, negated)?);
                    if all.len() > MOST_CLAUSES {
                        return Err(TooManyClauses);
                    }
                }
                Ok(all)
            }
            (Filter::All(parts), false) | (Filter::Any(parts), true) => {
                let mut all = vec![Clause::new()];
                for part in parts {
                    let right = self.clauses(part, negated)?;
                    if all.len().saturating_mul(right.len()) > 4 * MOST_CLAUSES {
                        return Err(TooManyClauses);
                    }
                    self.spend(all.len() * sizes(&right) + right.len() * sizes(&all))?;
                    all = all.iter().flat_map(|left| right.iter().filter_map(|it| conjunction(left, it))).collect();
                    all.sort_unstable();
                    all.dedup();
                    if all.len() > MOST_CLAUSES {
                        return Err(TooManyClauses);
                    }
                }
                Ok(all)
            }
        }
    }

    /// The clause of plain tests of fields that must all hold, which is what most filters are: the same as going part
    /// by part, and faster. `None` for filters of other shapes, `Some(None)` if the tests exclude each other.
    fn single(&self, parts: &[Filter]) -> Option<Option<Clause>> {
        let mut clause = Clause::new();
        for part in parts {
            let Filter::Test(Test { subject: Subject::Field(field), values, .. }) = part else { return None };
            let present = Term::Present(self.formats.field(*field).header);
            if !clause.iter().any(|(term, _)| *term == present) {
                clause.push((present, ValueSet::point(1)));
            }
            let term = Term::Field(*field);
            match clause.iter_mut().find(|(known, _)| *known == term) {
                Some((_, known)) => *known = known.intersection(values),
                None if values.intervals() == [term.domain(self.formats)] => continue,
                None => clause.push((term, values.clone())),
            }
        }
        if clause.iter().any(|(_, values)| values.is_empty()) {
            return Some(None);
        }
        clause.sort_unstable();
        Some(Some(clause))
    }

    /// The clause of one test; `None` if it cannot hold.
    fn test(&self, subject: Subject, values: &ValueSet, negated: bool) -> Option<Clause> {
        let (term, header) = match subject {
            Subject::Field(field) => (Term::Field(field), Some(self.formats.field(field).header)),
            Subject::State(aggregate) => (Term::State(aggregate), header_of(aggregate, self.formats)),
        };
        let mut clause = Clause::new();
        if let Some(header) = header {
            clause.push((Term::Present(header), ValueSet::point(1)));
        }
        if matches!(term, Term::State(_)) && !self.state {
            return Some(clause);
        }
        let all = term.domain(self.formats);
        let values = if negated { values.complement(all) } else { values.clone() };
        if values.is_empty() {
            return None;
        }
        if values.intervals() != [all] {
            clause.push((term, values));
        }
        Some(clause)
    }
}

/// Both clauses at once; `None` if they exclude each other.
fn conjunction(left: &Clause, right: &Clause) -> Option<Clause> {
    let mut both = Clause::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (None, None) => return Some(both),
            (Some((a, _)), Some((b, _))) if a == b => {
                let (term, values) = left.next()?;
                let values = values.intersection(&right.next()?.1);
                if values.is_empty() {
                    return None;
                }
                (*term, values)
            }
            (Some((a, _)), Some((b, _))) if a > b => right.next()?.clone(),
            (Some(_), _) => left.next()?.clone(),
            (None, Some(_)) => right.next()?.clone(),
        };
        both.push(next);
    }
}
