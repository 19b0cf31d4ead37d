//! Filters of rules as the routing wants them, and the rules and tables of a switch made of the routing's result.

use crate::{Filter, Forwarding, Out, Plan, SwitchId, Table, Tables, Topology};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weftwire_core::Port;
use weftwire_subscribe::budget::CompileError;
use weftwire_subscribe::clauses::{Clause, Term, TooManyClauses, aggregates, clauses};
use weftwire_subscribe::compiler::{Compiler, Options};
use weftwire_subscribe::formats::{FieldId, Form, MatchKind, MessageFormats};
use weftwire_subscribe::message::Message;
use weftwire_subscribe::rules::{self, Action, Aggregate, Rule, Subject, Test};
use weftwire_subscribe::switch::Switch;
use weftwire_subscribe::values::{Interval, ValueSet};
use weftwire_text::Span;

/// The filter of a subscription in normal form. Filters are equal if their normal forms are; a clone costs little.
#[derive(Clone)]
pub struct MessageFilter {
    /// Without tests of state.
    clauses: Arc<[Clause]>,
    state: Option<Arc<Stateful>>,
    /// Of the filter that matches everything none.
    formats: Option<Arc<MessageFormats>>,
}

/// What tells filters with state apart.
type StateKey<'a> = (&'a [Clause], &'a [Aggregate]);

/// A filter that only the last switch can ask.
#[derive(Debug)]
struct Stateful {
    /// With tests of state.
    clauses: Vec<Clause>,
    aggregates: Vec<Aggregate>,
    filter: rules::Filter,
}

impl MessageFilter {
    /// The normal form of a rule's filter.
    ///
    /// # Errors
    /// [`TooManyClauses`].
    pub fn new(filter: &rules::Filter, formats: &Arc<MessageFormats>) -> Result<Self, TooManyClauses> {
        let used = aggregates(&rule(filter.clone(), Vec::new()));
        let state = if used.is_empty() {
            None
        } else {
            let clauses = clauses(filter, true, formats)?;
            Some(Arc::new(Stateful { clauses, aggregates: used, filter: filter.clone() }))
        };
        let clauses = shortest(clauses(filter, false, formats)?).into();
        Ok(MessageFilter { clauses, state, formats: Some(formats.clone()) })
    }

    /// Whether it asks for state, which only the last switch before a subscriber has.
    pub fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// How many alternatives it has, a measure of its size.
    pub fn clause_count(&self) -> usize {
        self.clauses.len() + self.state.as_ref().map_or(0, |state| state.clauses.len())
    }

    /// It as a rule may have it.
    pub fn filter(&self) -> rules::Filter {
        if let Some(state) = &self.state {
            return state.filter.clone();
        }
        let Some(formats) = &self.formats else { return rules::Filter::Always };
        let mut alternatives: Vec<rules::Filter> =
            self.clauses.iter().map(|clause| conjunction(clause, formats)).collect();
        match alternatives.len() {
            0 => rules::Filter::Never,
            1 => alternatives.remove(0),
            _ => rules::Filter::Any(alternatives),
        }
    }

    fn key(&self) -> (&[Clause], Option<StateKey<'_>>) {
        (&self.clauses, self.state.as_ref().map(|state| (&state.clauses[..], &state.aggregates[..])))
    }
}

impl std::fmt::Debug for MessageFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MessageFilter").field(&self.key()).finish()
    }
}

impl PartialEq for MessageFilter {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for MessageFilter {}

impl PartialOrd for MessageFilter {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MessageFilter {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Filter for MessageFilter {
    type Message = Message;

    fn everything() -> Self {
        MessageFilter { clauses: vec![Clause::new()].into(), state: None, formats: None }
    }

    /// Rounds the constants of `<`, `<=`, `>`, `>=` and ranges, of numbers that are matched by ranges. Single values, prefixes,
    /// texts, and sets of several ranges, as of `!=` and masks, stay as they are.
    fn relaxed(&self, unit: u64) -> Self {
        let Some(formats) = self.formats.as_ref().filter(|_| unit > 1) else {
            return MessageFilter { state: None, ..self.clone() };
        };
        let relax = |clause: &Clause| -> Clause {
            let tests = clause.iter().map(|(term, values)| match term {
                Term::Field(field) => (*term, rounded(values, *field, formats, unit.into())),
                _ => (*term, values.clone()),
            });
            tests.filter(|(term, values)| values.intervals() != [term.domain(formats)]).collect()
        };
        let clauses = shortest(self.clauses.iter().map(relax).collect());
        MessageFilter { clauses: clauses.into(), state: None, formats: self.formats.clone() }
    }

    /// Tests of state are taken to hold.
    fn matches(&self, message: &Message) -> bool {
        let holds = |(term, values): &(Term, ValueSet)| match term {
            Term::Present(header) => values.contains(message.has(*header).into()),
            // The clause asks for the field's header, too.
            Term::Field(field) => values.contains(message.value(*field)),
            Term::State(_) => true,
        };
        self.clauses.iter().any(|clause| clause.iter().all(holds))
    }
}

/// Each clause once; one that always holds stands for all.
fn shortest(mut clauses: Vec<Clause>) -> Vec<Clause> {
    clauses.sort_unstable();
    clauses.dedup();
    if clauses.first().is_some_and(|clause| clause.is_empty()) {
        clauses.truncate(1);
    }
    clauses
}

fn rounded(values: &ValueSet, field: FieldId, formats: &MessageFormats, unit: u128) -> ValueSet {
    let field = formats.field(field);
    let ordered = matches!(field.kind, None | Some(MatchKind::Range)) && matches!(field.form, Form::Number { .. });
    let [interval] = values.intervals() else { return values.clone() };
    if !ordered || interval.is_point() {
        return values.clone();
    }
    let greatest = Interval::of_width(field.width).last;
    // `x > c` begins at c + 1, `x < c` ends at c - 1.
    let first = interval.first.checked_sub(1).map_or(0, |constant| constant / unit * unit + 1);
    let last = match interval.last.checked_add(1).filter(|constant| *constant <= greatest) {
        Some(constant) => constant.div_ceil(unit).checked_mul(unit).map_or(greatest, |up| (up - 1).min(greatest)),
        None => greatest,
    };
    ValueSet::interval(Interval { first, last })
}

/// A clause without tests of state as a filter. A header that nothing else asks for is asked for by any value of a field.
fn conjunction(clause: &Clause, formats: &MessageFormats) -> rules::Filter {
    let test = |field: FieldId, values: ValueSet| {
        rules::Filter::Test(Test { subject: Subject::Field(field), values, span: Span::default() })
    };
    let asked: Vec<_> = clause
        .iter()
        .filter_map(|(term, _)| match term {
            Term::Field(field) => Some(formats.field(*field).header),
            _ => None,
        })
        .collect();
    let fields = || (0..=u16::MAX).map(FieldId).zip(formats.fields());
    let mut tests = Vec::with_capacity(clause.len());
    for (term, values) in clause {
        match term {
            Term::Field(field) => tests.push(test(*field, values.clone())),
            Term::Present(header) if !asked.contains(header) => {
                // Of a field that is matched exactly no one test says "any value".
                let of_header = fields().filter(|(_, field)| field.header == *header);
                let any = of_header.min_by_key(|(_, field)| field.kind == Some(MatchKind::Exact));
                tests.extend(any.map(|(id, field)| test(id, ValueSet::interval(Interval::of_width(field.width)))));
            }
            _ => {}
        }
    }
    match tests.len() {
        0 => rules::Filter::Always,
        1 => tests.remove(0),
        _ => rules::Filter::All(tests),
    }
}

fn rule(filter: rules::Filter, ports: Vec<Port>) -> Rule {
    Rule { filter, actions: vec![Action::Forward(ports)], span: Span::default() }
}

/// What one switch has: rules and their tables, with a port number for each way out.
///
/// Port p of the topology is number p + 1. The logical up port, and ports along the second and further trees, have the
/// numbers that follow the switch's last port, in the order of [`Plan::sources`].
#[derive(Clone, Debug)]
pub struct SwitchProgram {
    ways: BTreeMap<Port, Out>,
    filters: usize,
    rules: Vec<Rule>,
    compiler: Compiler,
}

impl SwitchProgram {
    /// Makes rules of a switch's filters, one for each filter, and compiles them.
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn new(
        topology: &Topology,
        plan: &Plan,
        switch: SwitchId,
        table: &Table<MessageFilter>,
        formats: &MessageFormats,
        options: &Options,
    ) -> Result<Self, CompileError> {
        let ways = ways(topology, plan, switch);
        let port_of: BTreeMap<Out, Port> = ways.iter().map(|(port, out)| (*out, *port)).collect();
        let mut ports: BTreeMap<&MessageFilter, Vec<Port>> = BTreeMap::new();
        for (out, filters) in table {
            for filter in filters {
                ports.entry(filter).or_default().extend(port_of.get(out));
            }
        }
        let rules: Vec<Rule> = ports
            .into_iter()
            .map(|(filter, mut ports)| {
                ports.sort_unstable();
                rule(filter.filter(), ports)
            })
            .collect();
        let compiler = Compiler::new(formats.clone(), options, &rules).map_err(|(_, error)| error)?;
        let filters = table.values().map(BTreeSet::len).sum();
        Ok(SwitchProgram { ways, filters, rules, compiler })
    }

    /// The ways out by port number.
    pub fn ways(&self) -> &BTreeMap<Port, Out> {
        &self.ways
    }

    /// The rules, one for each filter.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The compiled rules.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// How many filters it was made of, counted at each way out.
    pub fn filters(&self) -> usize {
        self.filters
    }

    /// Appends the ways out that a message matches, tests of state asked as by a switch that has seen no message before.
    pub fn outs(&self, message: &Message, outs: &mut Vec<Out>) {
        let actions = Switch::default().message(&self.compiler, message, 0);
        outs.extend(actions.ports.iter().filter_map(|port| self.ways.get(port)));
    }

    /// How many entries its tables have.
    pub fn entries(&self) -> usize {
        self.compiler.tables().stages().map(|(_, stage)| stage.entry_count()).sum()
    }
}

/// The ways out of a switch by port number, see [`SwitchProgram`].
pub fn ways(topology: &Topology, plan: &Plan, switch: SwitchId) -> BTreeMap<Port, Out> {
    let mut next = topology.ports(switch).len();
    let mut number = |out: &Out| match out {
        Out::Port(port) | Out::Tree { tree: 0, port } => usize::from(port.0) + 1,
        _ => {
            next += 1;
            next
        }
    };
    let numbered = plan.sources(switch).iter().map(|(out, _)| (number(out), *out));
    // A switch with more ways than ports have numbers keeps the first ones.
    numbered.filter_map(|(number, out)| Some((Port(u16::try_from(number).ok()?), out))).collect()
}

/// The programs of all switches, which forward as their tables say. Tests of state are asked as by a switch that has seen
/// no message before.
#[derive(Clone, Debug)]
pub struct Programs(Vec<SwitchProgram>);

impl Programs {
    /// Compiles the tables of all switches.
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn new(
        topology: &Topology,
        plan: &Plan,
        tables: &Tables<MessageFilter>,
        formats: &MessageFormats,
        options: &Options,
    ) -> Result<Self, CompileError> {
        let program = |switch| SwitchProgram::new(topology, plan, switch, tables.table(switch), formats, options);
        topology.switches().map(program).collect::<Result<_, _>>().map(Programs)
    }

    /// A switch's program.
    ///
    /// # Panics
    ///
    /// If the switch is another topology's.
    pub fn of(&self, switch: SwitchId) -> &SwitchProgram {
        &self.0[switch.index()]
    }
}

impl Forwarding<Message> for Programs {
    fn outs(&self, switch: SwitchId, message: &Message, outs: &mut Vec<Out>) {
        self.of(switch).outs(message, outs);
    }
}
