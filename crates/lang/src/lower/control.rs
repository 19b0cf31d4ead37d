//! From sequential steps to rows.
//!
//! A handler becomes one *node*: the rows of a (state, event). Conditions are tested before any of a row's operations,
//! so an `if` joins the node only when nothing before it changes what it reads; otherwise the node raises an internal
//! event, and the rest of the handler becomes a node of its own (architecture: "internal events"). Values that
//! conditions need are computed in the node's preparation, everything else in the rows.

use super::emit::{Allocator, emit};
use super::ir::{FIRST_LOCAL, Ir, Step, Writes};
use std::collections::{BTreeMap, BTreeSet};
use weftwire_image::{Comparison, Condition, Event, Operand, Operation, Preparation, Row};

/// More rows than an image may have; lowering stops there.
const MAX_ROWS: usize = 65_535;
/// A plain continuation of at most so many steps is copied into the branches in front of it.
const MAX_COPIED_STEPS: usize = 4;

/// What a program's rules are made of, while they are made.
pub(crate) struct Rules<'a> {
    pub(crate) preparations: Vec<Preparation>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) rows: Vec<Row>,
    pub(crate) scratch: Allocator,
    /// Whether two fields (indexes) of one packet overlap.
    pub(crate) overlaps: &'a dyn Fn(u16, u16) -> bool,
    /// Whether sending a packet may change this field of it: lengths and checksums are made right then.
    pub(crate) refreshed: &'a dyn Fn(u16) -> bool,
    pub(crate) too_large: bool,
    nodes: Vec<Node>,
}

/// The rows of a (state, event), still as steps.
#[derive(Clone)]
struct Node {
    state: u16,
    /// `None`: an internal event, numbered at the end.
    event: Option<Event>,
    steps: Vec<Step>,
    locals: BTreeMap<usize, u16>,
    line: u32,
}

/// State of one node's making.
struct Making {
    state: u16,
    event: Event,
    preparation: Vec<Operation>,
    prepared: Vec<(Ir, Operand)>,
    /// Scratch registers that the preparation writes, or that were live before.
    taken: BTreeSet<u16>,
    /// Scratch registers that some row wrote.
    row_written: BTreeSet<u16>,
    rows: Vec<Row>,
}

/// A row in the making.
#[derive(Clone)]
struct Draft {
    when: Vec<(u16, bool)>,
    operations: Vec<Operation>,
    next: Option<u16>,
    writes: Writes,
    locals: BTreeMap<usize, u16>,
    line: u32,
}

enum Guard {
    Always,
    Never,
    When(Vec<(u16, bool)>),
}

impl<'a> Rules<'a> {
    pub(crate) fn new(
        first_scratch: u16,
        overlaps: &'a dyn Fn(u16, u16) -> bool,
        refreshed: &'a dyn Fn(u16) -> bool,
    ) -> Rules<'a> {
        Rules {
            preparations: Vec::new(),
            conditions: Vec::new(),
            rows: Vec::new(),
            scratch: Allocator::new(first_scratch),
            overlaps,
            refreshed,
            too_large: false,
            nodes: Vec::new(),
        }
    }

    /// Adds the rows of a handler.
    pub(crate) fn handler(&mut self, state: u16, event: Event, steps: Vec<Step>, line: u32) {
        let node = Node { state, event: Some(event), steps, locals: BTreeMap::new(), line };
        let first = self.nodes.len();
        self.make(&node, event);
        // Internal nodes of this handler, which may add more.
        let mut next = first;
        while next < self.nodes.len() && !self.too_large {
            // Made once: its steps, of which there may be many, are needed no longer.
            let steps = std::mem::take(&mut self.nodes[next].steps);
            let node = Node { steps, ..self.nodes[next].clone() };
            self.make(&node, Event::Internal(next as u16));
            next += 1;
        }
    }

    fn make(&mut self, node: &Node, event: Event) {
        let mut making = Making {
            state: node.state,
            event,
            preparation: Vec::new(),
            prepared: Vec::new(),
            taken: node.locals.values().copied().collect(),
            row_written: BTreeSet::new(),
            rows: Vec::new(),
        };
        let draft = Draft {
            when: Vec::new(),
            operations: Vec::new(),
            next: None,
            writes: Writes::default(),
            locals: node.locals.clone(),
            line: node.line,
        };
        self.steps(&mut making, draft, &node.steps);
        // An empty last row changes nothing; without it the event counts as unmatched.
        while making.rows.last().is_some_and(|row| {
            row.operations.is_empty() && row.next.is_none() && row.raise.is_none() && node.event.is_some()
        }) {
            making.rows.pop();
        }
        if !making.preparation.is_empty() && !making.rows.is_empty() {
            let operations = making.preparation;
            self.preparations.push(Preparation { state: node.state, event, operations });
        }
        self.rows.append(&mut making.rows);
        self.too_large |= self.rows.len() > MAX_ROWS || self.nodes.len() > 4096;
    }

    fn steps(&mut self, making: &mut Making, mut draft: Draft, steps: &[Step]) {
        for (position, step) in steps.iter().enumerate() {
            if self.too_large {
                return;
            }
            let rest = &steps[position + 1..];
            match step {
                Step::Assign { register, value } => {
                    self.row_emit(making, &mut draft, value, Some(*register));
                    draft.writes.registers.push(*register);
                }
                Step::Local { local, value } => self.local(making, &mut draft, *local, value, rest),
                Step::Do { operation, values } => self.operation(making, &mut draft, operation, values),
                Step::Goto(state) => draft.next = Some(*state),
                Step::Release(first) => draft.locals.retain(|local, _| local < first),
                Step::Raise(node) => return self.finish(making, draft, Some(*node)),
                Step::If { branches, otherwise, hoisted } => {
                    let testable = *hoisted || branches.iter().all(|(condition, ..)| self.testable(condition, &draft));
                    if !testable {
                        let node = self.continuation(making.state, &draft, steps[position..].to_vec());
                        return self.finish(making, draft, Some(node));
                    }
                    return self.branches(making, draft, branches, otherwise, rest);
                }
            }
        }
        self.finish(making, draft, None);
    }

    /// A node for the rest of a handler.
    fn continuation(&mut self, state: u16, draft: &Draft, steps: Vec<Step>) -> usize {
        self.nodes.push(Node { state, event: None, steps, locals: draft.locals.clone(), line: draft.line });
        self.nodes.len() - 1
    }

    fn finish(&mut self, making: &mut Making, draft: Draft, raise: Option<usize>) {
        making.rows.push(Row {
            state: making.state,
            event: making.event,
            when: draft.when,
            operations: draft.operations,
            next: draft.next,
            raise: raise.map(|node| node as u16),
            line: draft.line,
        });
        self.too_large |= making.rows.len() > MAX_ROWS;
    }

    fn branches(
        &mut self,
        making: &mut Making,
        draft: Draft,
        branches: &[(Ir, Vec<Step>, u32)],
        otherwise: &[Step],
        rest: &[Step],
    ) {
        let work = rest.iter().filter(|step| !matches!(step, Step::Release(_))).count();
        let plain = !rest.iter().any(|step| matches!(step, Step::If { .. }));
        let tail = if work == 0 || (plain && work <= MAX_COPIED_STEPS) {
            rest.to_vec()
        } else {
            vec![Step::Raise(self.continuation(making.state, &draft, rest.to_vec()))]
        };
        for (condition, body, line) in branches {
            let mut branch = draft.clone();
            branch.line = *line;
            let steps: Vec<Step> = body.iter().chain(&tail).cloned().collect();
            match self.guard(making, &draft, condition) {
                Guard::Never => {}
                Guard::Always => return self.steps(making, branch, &steps),
                Guard::When(when) => {
                    branch.when = when;
                    self.steps(making, branch, &steps);
                }
            }
        }
        let steps: Vec<Step> = otherwise.iter().chain(&tail).cloned().collect();
        self.steps(making, draft, &steps);
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
                Operand::Environment(_) => !writes.application,
                Operand::Constant(_) | Operand::Event(_) => true,
            };
        });
        independent
    }

    fn local(&mut self, making: &mut Making, draft: &mut Draft, local: usize, value: &Ir, rest: &[Step]) {
        let guarded_division = !draft.when.is_empty() && value.may_divide_by_zero();
        let tested = tests_local(rest, local);
        if tested && !guarded_division && self.independent(value, &draft.writes) {
            // Conditions will read it: compute it in the preparation, where no row's temporaries come in its way.
            let value = substitute(value, &draft.locals);
            let avoid = making.taken.union(&making.row_written).copied().collect::<BTreeSet<u16>>();
            let register = self.scratch.take(&value, |register| !avoid.contains(&register));
            making.taken.insert(register);
            let Making { preparation, taken, .. } = making;
            let scratch = &mut self.scratch;
            emit(&value, Some(register), preparation, &mut |value| {
                let temporary =
                    scratch.take(value, |register| !taken.contains(&register) && !avoid.contains(&register));
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
        draft.writes.registers.push(FIRST_LOCAL + local as u16);
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
        for place in super::emit::operands_mut(&mut operation) {
            if let Some(operand) = operands.next() {
                *place = operand;
            }
        }
        if let Operation::Compute { register, .. } | Operation::Lookup { register, .. } = &mut operation
            && *register >= FIRST_LOCAL
        {
            let local = usize::from(*register - FIRST_LOCAL);
            let used: BTreeSet<u16> = draft.locals.values().copied().collect();
            let scratch = self.scratch.take(&Ir::constant(0), |register| !used.contains(&register));
            draft.locals.insert(local, scratch);
            draft.writes.registers.push(*register);
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
            let index = match self.conditions.iter().position(|known| *known == test) {
                Some(index) => index,
                None => {
                    self.conditions.push(test);
                    self.conditions.len() - 1
                }
            } as u16;
            let bit = wanted == holds;
            match when.iter().find(|(known, _)| *known == index) {
                Some((_, known)) if *known != bit => return Guard::Never,
                Some(_) => {}
                None => when.push((index, bit)),
            }
        }
        when.sort_unstable();
        Guard::When(when)
    }

    /// Computes a value in the node's preparation.
    fn prepare(&mut self, making: &mut Making, draft: &Draft, value: Ir) -> Operand {
        let value = substitute(&value, &draft.locals);
        if let Ir::Operand(operand) = value {
            return operand;
        }
        if let Some((_, operand)) = making.prepared.iter().find(|(known, _)| *known == value) {
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
        making.prepared.push((value, operand));
        operand
    }

    /// Numbers the internal events so that each raises only greater numbers, and returns how many there are.
    pub(crate) fn number_internal_events(&mut self) -> u16 {
        let count = self.nodes.len();
        let mut raises: Vec<Vec<usize>> = vec![Vec::new(); count];
        for row in &self.rows {
            if let (Event::Internal(from), Some(to)) = (row.event, row.raise) {
                raises[usize::from(from)].push(usize::from(to));
            }
        }
        // Depth-first; a node is finished after all it raises, so numbers are given from the back.
        let mut number = vec![usize::MAX; count];
        let mut next = count;
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
                        next -= 1;
                        number[node] = next;
                    }
                }
            }
        }
        let renumber = |old: u16| number[usize::from(old)] as u16;
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
        count as u16
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
        Ir::Lookup { table, index } => Ir::Lookup { table: *table, index: inner(index) },
        Ir::Compare { comparison, left, right } => {
            Ir::Compare { comparison: *comparison, left: inner(left), right: inner(right) }
        }
        Ir::And(left, right) => Ir::And(inner(left), inner(right)),
        Ir::Or(left, right) => Ir::Or(inner(left), inner(right)),
        Ir::Not(value) => Ir::Not(inner(value)),
    }
}

/// Whether some `if` in these steps tests the local.
fn tests_local(steps: &[Step], local: usize) -> bool {
    let wanted = Operand::Register(FIRST_LOCAL + local as u16);
    let reads = |value: &Ir| {
        let mut found = false;
        value.operands(&mut |operand| found |= operand == wanted);
        found
    };
    steps.iter().any(|step| match step {
        Step::If { branches, otherwise, .. } => {
            branches.iter().any(|(condition, body, _)| reads(condition) || tests_local(body, local))
                || tests_local(otherwise, local)
        }
        Step::Local { local: other, value } => reads(value) && tests_local(steps, *other),
        _ => false,
    })
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
    match operation {
        Operation::SetField { packet, field, .. } => writes.fields.push((*packet, *field)),
        Operation::Resize { packet, .. }
        | Operation::Reverse { packet }
        | Operation::KeepOptions { packet, .. }
        | Operation::AppendData { packet, .. }
        | Operation::Discard { packet } => writes.packets.push(*packet),
        Operation::Copy { to, .. } | Operation::Build { to, .. } => writes.packets.push(*to),
        Operation::Send { packet, .. } => writes.sent.push(*packet),
        Operation::ReleaseData { .. } => writes.application = true,
        _ => {}
    }
}
