//! From sequential steps to rows.
//!
//! A handler becomes one *node*: the rows of a (state, event). Conditions are tested before any of a row's operations,
//! so an `if` joins the node only when nothing before it changes what it reads; otherwise the node raises an internal
//! event, and the rest of the handler becomes a node of its own (architecture: "internal events"). Values that
//! conditions need are computed in the node's preparation, everything else in the rows.

use super::emit::{Allocator, emit};
use super::ir::{FIRST_LOCAL, Ir, SourceLine, Step, Writes};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use weftwire_image::limits::{
    MAX_CONDITIONS, MAX_INTERNAL_EVENTS, MAX_OPERATIONS, MAX_REGISTERS, MAX_ROWS, MAX_WRITTEN_OUT,
};
use weftwire_image::{Asked, Comparison, Condition, Environment, Event, Operand, Operation, Preparation, Repeat, Row};

/// All rows together test so many conditions: no document of an image holds more.
const MAX_TESTS: usize = 1 << 20;
/// All states together have so many internal events: while rows are made, they are numbered together.
const MAX_NODES: usize = 1 << 15;
/// A plain continuation of at most so many steps is copied into the branches in front of it.
const MAX_COPIED_STEPS: usize = 4;

/// What a program's rules are made of, while they are made. `'s`: the steps of its handlers.
pub(crate) struct Rules<'s, 'a> {
    pub(crate) preparations: Vec<Preparation>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) rows: Vec<Row>,
    pub(crate) repeats: Vec<Repeat>,
    pub(crate) scratch: Allocator,
    /// Whether two fields (indexes) of one packet overlap.
    pub(crate) overlaps: &'a dyn Fn(u16, u16) -> bool,
    /// Whether sending a packet may change this field of it: lengths and checksums are made right then.
    pub(crate) refreshed: &'a dyn Fn(u16) -> bool,
    /// What an image has no room for; nothing is made any more.
    pub(crate) exceeded: Option<String>,
    nodes: Vec<Node<'s>>,
    /// How many of them each state has.
    nodes_of: BTreeMap<u16, usize>,
    /// Where each condition stands.
    known_conditions: BTreeMap<Condition, u16>,
    /// Operations of all rows and preparations.
    operations: usize,
    /// Conditions that all rows test.
    tests: usize,
}

/// Steps, and what follows them. Many rests of a handler have one end.
#[derive(Clone)]
enum Rest<'s> {
    /// The handler ends.
    End,
    /// It goes on in an internal event.
    Raise(usize),
    /// A round of a repeat, if there is another one; else it goes on in an internal event.
    Round(&'s Step, usize),
    /// Steps of a block, and what follows the block.
    Steps(&'s [Step], Rc<Rest<'s>>),
}

impl<'s> Rest<'s> {
    fn new(steps: &'s [Step]) -> Rest<'s> {
        Rest::Steps(steps, Rc::new(Rest::End))
    }

    /// Whether it is short and has no `if`, so that it may be copied into the branches in front of it.
    fn is_short(&self) -> bool {
        let mut work = 0;
        let mut rest = self;
        while let Rest::Steps(steps, next) = rest {
            for step in *steps {
                match step {
                    Step::Release(_) => {}
                    Step::If { .. } | Step::Repeat { .. } => return false,
                    _ if work == MAX_COPIED_STEPS => return false,
                    _ => work += 1,
                }
            }
            rest = next;
        }
        work + usize::from(matches!(rest, Rest::Raise(_))) <= MAX_COPIED_STEPS
    }
}

/// The rows of a (state, event), still as steps.
#[derive(Clone)]
struct Node<'s> {
    state: u16,
    /// `None`: an internal event, numbered at the end.
    event: Option<Event>,
    rest: Rest<'s>,
    locals: BTreeMap<usize, u16>,
    line: SourceLine,
}

/// State of one node's making.
struct Making {
    state: u16,
    event: Event,
    preparation: Vec<Operation>,
    prepared: BTreeMap<Ir, Operand>,
    /// Scratch registers that the preparation writes, or that were live before.
    taken: BTreeSet<u16>,
    /// Scratch registers that some row wrote.
    row_written: BTreeSet<u16>,
    rows: Vec<Row>,
}

/// A row in the making.
#[derive(Clone)]
struct Draft {
    when: BTreeMap<u16, bool>,
    operations: Vec<Operation>,
    next: Option<u16>,
    writes: Writes,
    locals: BTreeMap<usize, u16>,
    line: SourceLine,
}

enum Guard {
    Always,
    Never,
    When(BTreeMap<u16, bool>),
}

impl<'s, 'a> Rules<'s, 'a> {
    pub(crate) fn new(
        first_scratch: u16,
        overlaps: &'a dyn Fn(u16, u16) -> bool,
        refreshed: &'a dyn Fn(u16) -> bool,
    ) -> Rules<'s, 'a> {
        Rules {
            preparations: Vec::new(),
            conditions: Vec::new(),
            rows: Vec::new(),
            repeats: Vec::new(),
            scratch: Allocator::new(first_scratch),
            overlaps,
            refreshed,
            exceeded: None,
            nodes: Vec::new(),
            nodes_of: BTreeMap::new(),
            known_conditions: BTreeMap::new(),
            operations: 0,
            tests: 0,
        }
    }

    /// Adds the rows of a handler.
    pub(crate) fn handler(&mut self, state: u16, event: Event, steps: &'s [Step], line: SourceLine) {
        let node = Node { state, event: Some(event), rest: Rest::new(steps), locals: BTreeMap::new(), line };
        let first = self.nodes.len();
        self.make(node, event);
        // Internal nodes of this handler, which may add more.
        let mut next = first;
        while next < self.nodes.len() && self.exceeded.is_none() {
            self.make(self.nodes[next].clone(), Event::Internal(next as u16));
            next += 1;
        }
    }

    fn make(&mut self, node: Node<'s>, event: Event) {
        let mut making = Making {
            state: node.state,
            event,
            preparation: Vec::new(),
            prepared: BTreeMap::new(),
            taken: node.locals.values().copied().collect(),
            row_written: BTreeSet::new(),
            rows: Vec::new(),
        };
        let draft = Draft {
            when: BTreeMap::new(),
            operations: Vec::new(),
            next: None,
            writes: Writes::default(),
            locals: node.locals,
            line: node.line,
        };
        self.steps(&mut making, draft, node.rest);
        // An empty last row changes nothing; without it the event counts as unmatched.
        while making.rows.last().is_some_and(|row| {
            row.operations.is_empty() && row.next.is_none() && row.raise.is_none() && node.event.is_some()
        }) {
            making.rows.pop();
        }
        if !making.preparation.is_empty() && !making.rows.is_empty() {
            let operations = making.preparation;
            self.operations += operations.len();
            self.preparations.push(Preparation { state: node.state, event, operations });
        }
        self.rows.append(&mut making.rows);
    }

    /// Notes what there is too much of; lowering then comes to its end.
    fn bound(&mut self, found: usize, most: usize, what: &str) {
        if found > most && self.exceeded.is_none() {
            self.exceeded = Some(format!("{what} than an image may have ({most})"));
        }
    }

    /// Notes what a row in the making has too much of.
    fn bound_row(&mut self, making: &Making, draft: &Draft) {
        self.bound(draft.operations.len(), MAX_OPERATIONS, "a row needs more operations");
        self.bound(making.preparation.len(), MAX_OPERATIONS, "a preparation needs more operations");
        self.bound(self.conditions.len(), MAX_CONDITIONS, "the program needs more conditions");
        let registers = usize::from(self.scratch.first()) + self.scratch.kinds().len();
        self.bound(registers, MAX_REGISTERS, "the program needs more registers, scratch ones included,");
        let nodes = self.nodes_of.get(&making.state).copied().unwrap_or(0);
        self.bound(nodes, MAX_INTERNAL_EVENTS.into(), "a state needs more internal events");
        self.bound(self.nodes.len(), MAX_NODES, "all states need more internal events");
    }

    fn steps(&mut self, making: &mut Making, mut draft: Draft, mut rest: Rest<'s>) {
        loop {
            self.bound_row(making, &draft);
            if self.exceeded.is_some() {
                return;
            }
            let (step, others, next) = match rest {
                Rest::End => return self.finish(making, draft, None),
                Rest::Raise(node) => return self.finish(making, draft, Some(node)),
                Rest::Round(step, then) => {
                    let Event::Internal(head) = making.event else { return };
                    return self.round(making, draft, step, usize::from(head), then);
                }
                Rest::Steps(steps, next) => match steps.split_first() {
                    Some((step, others)) => (step, others, next),
                    None => {
                        rest = Rest::clone(&next);
                        continue;
                    }
                },
            };
            match step {
                Step::Assign { register, value } => {
                    self.row_emit(making, &mut draft, value, Some(*register));
                    draft.writes.registers.insert(*register);
                }
                Step::Local { local, value, tested } => self.local(making, &mut draft, *local, value, *tested),
                Step::Do { operation, values } => self.operation(making, &mut draft, operation, values),
                Step::Goto(state) => draft.next = Some(*state),
                Step::Release(first) => draft.locals.retain(|local, _| local < first),
                Step::If { branches, otherwise, hoisted } => {
                    let testable = *hoisted || branches.iter().all(|(condition, ..)| self.testable(condition, &draft));
                    if !testable {
                        let node = self.continuation(
                            making.state,
                            &draft,
                            Rest::Steps(std::slice::from_ref(step), Rc::new(Rest::Steps(others, next))),
                        );
                        return self.finish(making, draft, Some(node));
                    }
                    return self.branches(making, draft, branches, otherwise, Rest::Steps(others, next));
                }
                Step::Repeat { .. } => return self.repeat(making, draft, step, Rest::Steps(others, next)),
            }
            rest = Rest::Steps(others, next);
        }
    }

    /// A repeat is two nodes: one that tests whether there is another round, and the rest of the handler.
    fn repeat(&mut self, making: &mut Making, draft: Draft, step: &'s Step, rest: Rest<'s>) {
        let Step::Repeat { most, .. } = step else { return };
        let then = self.continuation(making.state, &draft, rest);
        let head = self.continuation(making.state, &draft, Rest::Round(step, then));
        // The first round is raised from before it.
        self.repeats.push(Repeat { state: making.state, event: head as u16, most: most - 1, then: then as u16 });
        self.finish(making, draft, Some(head));
    }

    /// The first node of a repeat, whose number is `head`.
    fn round(&mut self, making: &mut Making, draft: Draft, step: &'s Step, head: usize, then: usize) {
        let Step::Repeat { condition, body, line, .. } = step else { return };
        let again = |draft| (Draft { line: *line, ..draft }, Rest::Steps(body, Rc::new(Rest::Raise(head))));
        match self.guard(making, &draft, condition) {
            Guard::Never => {}
            Guard::Always => {
                let (draft, rest) = again(draft);
                return self.steps(making, draft, rest);
            }
            Guard::When(when) => {
                let (round, rest) = again(Draft { when, ..draft.clone() });
                self.steps(making, round, rest);
            }
        }
        self.finish(making, draft, Some(then));
    }

    /// A node for the rest of a handler.
    fn continuation(&mut self, state: u16, draft: &Draft, rest: Rest<'s>) -> usize {
        self.nodes.push(Node { state, event: None, rest, locals: draft.locals.clone(), line: draft.line });
        *self.nodes_of.entry(state).or_default() += 1;
        self.nodes.len() - 1
    }

    fn finish(&mut self, making: &mut Making, draft: Draft, raise: Option<usize>) {
        self.operations += draft.operations.len();
        self.tests += draft.when.len();
        making.rows.push(Row {
            state: making.state,
            event: making.event,
            when: draft.when.into_iter().collect(),
            operations: draft.operations,
            next: draft.next,
            raise: raise.map(|node| node as u16),
            line: draft.line.line,
            source: draft.line.file,
        });
        self.bound(self.rows.len() + making.rows.len(), MAX_ROWS, "the program needs more rows");
        self.bound(self.operations + making.preparation.len(), MAX_WRITTEN_OUT, "the program needs more operations");
        self.bound(self.tests, MAX_TESTS, "the rows test more conditions together");
    }

    fn branches(
        &mut self,
        making: &mut Making,
        draft: Draft,
        branches: &'s [(Ir, Vec<Step>, SourceLine)],
        otherwise: &'s [Step],
        rest: Rest<'s>,
    ) {
        let tail = if rest.is_short() { rest } else { Rest::Raise(self.continuation(making.state, &draft, rest)) };
        let tail = Rc::new(tail);
        for (condition, body, line) in branches {
            if self.exceeded.is_some() {
                return;
            }
            let steps = Rest::Steps(body, Rc::clone(&tail));
            match self.guard(making, &draft, condition) {
                Guard::Never => {}
                Guard::Always => return self.steps(making, Draft { line: *line, ..draft }, steps),
                Guard::When(when) => {
                    let branch = Draft { when, line: *line, ..draft.clone() };
                    self.steps(making, branch, steps);
                }
            }
        }
        self.steps(making, draft, Rest::Steps(otherwise, tail));
    }

    /// Whether a condition can be tested before this draft's operations.
    fn testable(&self, condition: &Ir, draft: &Draft) -> bool {
        if !draft.when.is_empty() && condition.may_divide_by_zero() {
            return false;
        }
        self.independent(condition, &draft.writes)
    }

    /// Whether a value is the same before and after these writes.
    fn independent(&self, value: &Ir, writes: &Writes) -> bool {
        let mut independent = true;
        value.operands(&mut |operand| {
            independent &= match operand {
                Operand::Register(register) => !writes.registers.contains(&register),
                Operand::Field { packet, field } | Operand::Present { packet, field } => {
                    let refreshed = writes.sent.contains(&packet) && (self.refreshed)(field);
                    !refreshed
                        && !writes.packets.contains(&packet)
                        && !writes.fields.iter().any(|(p, f)| *p == packet && (self.overlaps)(*f, field))
                }
                Operand::Environment(Environment::Waiting(_)) => !writes.turns,
                // Which timers it counts does not matter: few programs set one in front of a test of such a number.
                Operand::Environment(Environment::Tally(_)) => {
                    !writes.asked.iter().any(|asked| matches!(asked, Asked::Timer(_)))
                }
                Operand::Environment(_) => !writes.application,
                Operand::Constant(_) | Operand::Event(_) => true,
            };
        });
        value.asked(&mut |asked| independent &= !writes.asked.contains(&asked));
        independent
    }

    fn local(&mut self, making: &mut Making, draft: &mut Draft, local: usize, value: &Ir, tested: bool) {
        let guarded_division = !draft.when.is_empty() && value.may_divide_by_zero();
        if tested && !guarded_division && self.independent(value, &draft.writes) {
            // Conditions will read it: compute it in the preparation, where no row's temporaries come in its way.
            let value = substitute(value, &draft.locals);
            let Making { preparation, taken, row_written, .. } = making;
            let scratch = &mut self.scratch;
            let register =
                scratch.take(&value, |register| !taken.contains(&register) && !row_written.contains(&register));
            taken.insert(register);
            emit(&value, Some(register), preparation, &mut |value| {
                let temporary =
                    scratch.take(value, |register| !taken.contains(&register) && !row_written.contains(&register));
                taken.insert(temporary);
                temporary
            });
            draft.locals.insert(local, register);
            return;
        }
        let used: BTreeSet<u16> = draft.locals.values().copied().collect();
        let register = self.scratch.take(value, |register| !used.contains(&register));
        draft.locals.insert(local, register);
        self.row_emit(making, draft, value, Some(register));
        draft.writes.registers.insert(FIRST_LOCAL + local as u16);
    }

    /// Computes a value among a row's operations.
    fn row_emit(&mut self, making: &mut Making, draft: &mut Draft, value: &Ir, target: Option<u16>) -> Operand {
        let value = substitute(value, &draft.locals);
        let mut used: BTreeSet<u16> = draft.locals.values().copied().collect();
        let scratch = &mut self.scratch;
        let first_scratch = scratch.first();
        let operand = emit(&value, target, &mut draft.operations, &mut |value| {
            let register = scratch.take(value, |register| !used.contains(&register));
            used.insert(register);
            register
        });
        making.row_written.extend(used);
        making.row_written.extend(target.filter(|register| *register >= first_scratch));
        operand
    }

    fn operation(&mut self, making: &mut Making, draft: &mut Draft, operation: &Operation, values: &[Ir]) {
        // All values of one operation are alive together.
        let mut operands = Vec::new();
        let mut held = Vec::new();
        for value in values {
            let operand = self.row_emit(making, draft, value, None);
            if let Operand::Register(register) = operand
                && register >= self.scratch.first()
            {
                // Holding it as a nameless local keeps it from being reused for the next value.
                let name = usize::MAX - held.len();
                draft.locals.entry(name).or_insert(register);
                held.push(name);
            }
            operands.push(operand);
        }
        for name in held {
            draft.locals.remove(&name);
        }
        let mut operation = operation.clone();
        let mut operands = operands.into_iter();
        for place in operation.operands_mut() {
            if let Some(operand) = operands.next() {
                *place = operand;
            }
        }
        if let Operation::Compute { register, .. }
        | Operation::MulDiv { register, .. }
        | Operation::Lookup { register, .. }
        | Operation::Element { register, .. }
        | Operation::Query { register, .. } = &mut operation
            && *register >= FIRST_LOCAL
        {
            let local = usize::from(*register - FIRST_LOCAL);
            let used: BTreeSet<u16> = draft.locals.values().copied().collect();
            let scratch = self.scratch.take(&Ir::constant(0), |register| !used.contains(&register));
            draft.locals.insert(local, scratch);
            draft.writes.registers.insert(*register);
            making.row_written.insert(scratch);
            *register = scratch;
        }
        note_writes(&operation, &mut draft.writes);
        draft.operations.push(operation);
    }

    /// The condition bits under which a condition holds, besides those of the draft.
    fn guard(&mut self, making: &mut Making, draft: &Draft, condition: &Ir) -> Guard {
        let mut literals = Vec::new();
        if !collect_literals(condition, true, &mut literals) {
            return Guard::Never;
        }
        if literals.is_empty() {
            return Guard::Always;
        }
        let mut when = draft.when.clone();
        for (literal, wanted) in literals {
            let (comparison, left, right, holds) = canonical_test(&literal);
            let left = self.prepare(making, draft, left);
            let right = self.prepare(making, draft, right);
            let test = Condition { comparison, left, right };
            let conditions = &mut self.conditions;
            let index = *self.known_conditions.entry(test).or_insert_with(|| {
                conditions.push(test);
                (conditions.len() - 1) as u16
            });
            let bit = wanted == holds;
            if *when.entry(index).or_insert(bit) != bit {
                return Guard::Never;
            }
        }
        Guard::When(when)
    }

    /// Computes a value in the node's preparation.
    fn prepare(&mut self, making: &mut Making, draft: &Draft, value: Ir) -> Operand {
        let value = substitute(&value, &draft.locals);
        if let Ir::Operand(operand) = value {
            return operand;
        }
        if let Some(operand) = making.prepared.get(&value) {
            return *operand;
        }
        let live: BTreeSet<u16> = draft.locals.values().copied().collect();
        let Making { preparation, taken, .. } = making;
        let scratch = &mut self.scratch;
        let operand = emit(&value, None, preparation, &mut |value| {
            let register = scratch.take(value, |register| !taken.contains(&register) && !live.contains(&register));
            taken.insert(register);
            register
        });
        making.prepared.insert(value, operand);
        operand
    }

    /// Numbers the internal events of each state so that each raises only greater numbers, and returns how many the state with the
    /// most has.
    pub(crate) fn number_internal_events(&mut self) -> u16 {
        let count = self.nodes.len();
        let behind: BTreeMap<u16, u16> = self.repeats.iter().map(|repeat| (repeat.event, repeat.then)).collect();
        let mut raises: Vec<Vec<usize>> = vec![Vec::new(); count];
        for row in &self.rows {
            if let (Event::Internal(from), Some(to)) = (row.event, row.raise) {
                // The nodes of a round are made after the first; what comes behind a repeat needs a greater number than they.
                let then = behind.get(&to).filter(|_| from >= to);
                raises[usize::from(from)].push(usize::from(*then.unwrap_or(&to)));
            }
        }
        // Depth-first; a node is finished after all it raises, so numbers are given from the back.
        let mut number = vec![usize::MAX; count];
        let mut next = self.nodes_of.clone();
        for root in 0..count {
            let mut stack = vec![(root, 0)];
            while let Some((node, edge)) = stack.pop() {
                if number[node] != usize::MAX {
                    continue;
                }
                match raises[node].get(edge) {
                    Some(child) => {
                        stack.push((node, edge + 1));
                        stack.push((*child, 0));
                    }
                    None => {
                        let next = next.entry(self.nodes[node].state).or_default();
                        *next -= 1;
                        number[node] = *next;
                    }
                }
            }
        }
        let renumber = |old: u16| number[usize::from(old)] as u16;
        for repeat in &mut self.repeats {
            repeat.event = renumber(repeat.event);
            repeat.then = renumber(repeat.then);
        }
        self.repeats.sort_by_key(|repeat| (repeat.state, repeat.event));
        for row in &mut self.rows {
            row.raise = row.raise.map(renumber);
        }
        let events = self.rows.iter_mut().map(|row| &mut row.event);
        for event in events.chain(self.preparations.iter_mut().map(|preparation| &mut preparation.event)) {
            if let Event::Internal(old) = *event {
                *event = Event::Internal(renumber(old));
            }
        }
        self.rows.sort_by_key(|row| (row.state, row.event));
        self.preparations.sort_by_key(|preparation| (preparation.state, preparation.event));
        self.nodes_of.values().max().map_or(0, |count| *count as u16)
    }
}

/// Replaces locals by their scratch registers.
fn substitute(value: &Ir, locals: &BTreeMap<usize, u16>) -> Ir {
    let inner = |value: &Ir| Box::new(substitute(value, locals));
    match value {
        Ir::Operand(Operand::Register(register)) if *register >= FIRST_LOCAL => {
            let local = usize::from(*register - FIRST_LOCAL);
            Ir::Operand(Operand::Register(locals.get(&local).copied().unwrap_or(*register)))
        }
        Ir::Operand(operand) => Ir::Operand(*operand),
        Ir::Compute { operator, left, right, modular } => {
            Ir::Compute { operator: *operator, left: inner(left), right: inner(right), modular: *modular }
        }
        Ir::MulDiv(values) => Ir::MulDiv(Box::new(values.each_ref().map(|value| substitute(value, locals)))),
        Ir::Lookup { table, index } => Ir::Lookup { table: *table, index: inner(index) },
        Ir::Element { first, count, index } => Ir::Element { first: *first, count: *count, index: inner(index) },
        Ir::Query { query, values } => {
            let values = values.iter().map(|value| substitute(value, locals)).collect();
            Ir::Query { query: query.clone(), values }
        }
        Ir::Compare { comparison, left, right } => {
            Ir::Compare { comparison: *comparison, left: inner(left), right: inner(right) }
        }
        Ir::And(left, right) => Ir::And(inner(left), inner(right)),
        Ir::Or(left, right) => Ir::Or(inner(left), inner(right)),
        Ir::Not(value) => Ir::Not(inner(value)),
    }
}

/// Splits a condition into tests that must all have their value. False: it never holds.
fn collect_literals(condition: &Ir, wanted: bool, literals: &mut Vec<(Ir, bool)>) -> bool {
    match (condition, wanted) {
        (Ir::Operand(Operand::Constant(value)), _) => (*value != 0) == wanted,
        (Ir::Not(inner), _) => collect_literals(inner, !wanted, literals),
        (Ir::And(left, right), true) | (Ir::Or(left, right), false) => {
            collect_literals(left, wanted, literals) && collect_literals(right, wanted, literals)
        }
        _ => {
            literals.push((condition.clone(), wanted));
            true
        }
    }
}

/// A test as a comparison of the image, and the value of it that means the test holds. Opposites share one condition.
fn canonical_test(test: &Ir) -> (Comparison, Ir, Ir, bool) {
    use Comparison::*;
    let Ir::Compare { comparison, left, right } = test else {
        return (Eq, test.clone(), Ir::constant(0), false);
    };
    let (comparison, holds) = match comparison {
        Ne => (Eq, false),
        Ge => (Lt, false),
        Gt => (Le, false),
        GeUnsigned => (LtUnsigned, false),
        GtUnsigned => (LeUnsigned, false),
        // Modulo 2^32 `>=` is not the opposite of `<` at a distance of 2^31.
        other => (*other, true),
    };
    (comparison, (**left).clone(), (**right).clone(), holds)
}

fn note_writes(operation: &Operation, writes: &mut Writes) {
    writes.asked.extend(operation.changes());
    if let Operation::SetElement { first, .. } = operation {
        writes.registers.insert(*first);
    }
    let Writes { fields, packets, sent, application, turns, .. } = writes;
    let _new = match operation {
        Operation::SetField { packet, field, .. } => fields.insert((*packet, *field)),
        Operation::Resize { packet, .. }
        | Operation::Cut { packet, .. }
        | Operation::Reverse { packet }
        | Operation::KeepOptions { packet, .. }
        | Operation::AppendData { packet, .. }
        | Operation::Discard { packet } => packets.insert(*packet),
        Operation::Copy { to, .. } | Operation::Build { to, .. } => packets.insert(*to),
        Operation::Send { packet, .. } => sent.insert(*packet),
        Operation::ReleaseData { .. } | Operation::DeliverHeld { .. } => !std::mem::replace(application, true),
        Operation::Ask { .. } | Operation::Withdraw { .. } => !std::mem::replace(turns, true),
        _ => false,
    };
}
