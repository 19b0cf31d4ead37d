//! That scratch registers are written before they are read (semantics, rule E5): an event begins with nothing in them, so no
//! engine has to clear them. Checked along the edges by which rows raise internal events.

use super::Verifier;
use super::report::{Path, quote};
use crate::chains::preparation;
use crate::types::{Event, Operand, Operation, Register};
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

/// A set of registers: of each 64 a word. What is written is kept for every way of every event, and blocks make ways long.
#[derive(Clone, Default)]
struct Registers(Vec<u64>);

impl Registers {
    fn place(register: u16) -> (usize, u64) {
        (usize::from(register / 64), 1 << (register % 64))
    }

    fn insert(&mut self, register: u16) {
        let (word, bit) = Registers::place(register);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    fn contains(&self, register: u16) -> bool {
        let (word, bit) = Registers::place(register);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Takes out what is not in `other`.
    fn intersect(&mut self, other: &Registers) {
        let others = other.0.iter().chain(iter::repeat(&0));
        self.0.iter_mut().zip(others).for_each(|(word, other)| *word &= other);
    }

    fn is_subset(&self, other: &Registers) -> bool {
        let others = other.0.iter().chain(iter::repeat(&0));
        self.0.iter().zip(others).all(|(word, other)| word & !other == 0)
    }
}

impl Verifier<'_> {
    pub(super) fn scratch(&mut self) {
        if !self.image.registers.iter().any(|register| register.scratch) {
            return;
        }
        let mut rows_at: BTreeMap<(u16, Event), Vec<usize>> = BTreeMap::new();
        for (number, row) in self.image.rows.iter().enumerate() {
            rows_at.entry((row.state, row.event)).or_default().push(number);
        }
        // What every way to an internal event has written. Events of the outside come first in a state, and internal ones raise
        // greater numbers only, so each is complete when its turn comes.
        let mut written_before: BTreeMap<(u16, Event), Registers> = BTreeMap::new();
        for (&(state, event), rows) in &rows_at {
            let written = match event {
                // Nothing raises it: it never runs.
                Event::Internal(_) => match written_before.get(&(state, event)) {
                    Some(written) => written.clone(),
                    None => continue,
                },
                _ => Registers::default(),
            };
            let mut check = Check { registers: &self.image.registers, written, read: BTreeSet::new() };
            preparation(self.image, state, event).for_each(|operation| check.operation(operation));
            let prepared = check.written.clone();
            for &number in rows {
                let row = &self.image.rows[number];
                check.written.clone_from(&prepared);
                for (condition, _) in &row.when {
                    if let Some(condition) = self.image.conditions.get(usize::from(*condition)) {
                        check.operand(&condition.left);
                        check.operand(&condition.right);
                    }
                }
                self.image.written_out(&row.operations).for_each(|operation| check.operation(operation));
                for register in std::mem::take(&mut check.read) {
                    let name = quote(&self.image.registers[usize::from(register)].name);
                    let problem = format_args!("the scratch register {name} is read before it is written");
                    let rows = Path::Root.member("rows");
                    self.report.add(
                        rows.item(number),
                        problem,
                        "write it first, on every way to this row, or store it",
                    );
                }
                let Some(raised) = row.raise else { continue };
                let again = Event::Internal(raised) <= event;
                let next = match self.image.repeat_of(state, raised).filter(|_| again) {
                    Some(repeat) => {
                        // What was written on the way to the first round has to be written on the way to the next.
                        let first = written_before.get(&(state, Event::Internal(raised)));
                        if first.is_none_or(|first| !first.is_subset(&check.written)) {
                            let problem = format_args!("internal event {raised} is repeated without its first round");
                            let rows = Path::Root.member("rows");
                            self.report.add(rows.item(number), problem, "raise it first from an event before it");
                        }
                        self.image.repeats[repeat].then
                    }
                    None => raised,
                };
                written_before
                    .entry((state, Event::Internal(next)))
                    .and_modify(|before| before.intersect(&check.written))
                    .or_insert_with(|| check.written.clone());
            }
        }
    }
}

/// One way through an event.
struct Check<'a> {
    registers: &'a [Register],
    written: Registers,
    /// Scratch registers read before they were written.
    read: BTreeSet<u16>,
}

impl Check<'_> {
    fn operand(&mut self, operand: &Operand) {
        if let Operand::Register(register) = operand
            && self.registers[usize::from(*register)].scratch
            && !self.written.contains(*register)
        {
            self.read.insert(*register);
        }
    }

    fn operation(&mut self, operation: &Operation) {
        operation.operands().into_iter().for_each(|operand| self.operand(operand));
        if let Some(register) = operation.target() {
            self.written.insert(register);
        }
    }
}
