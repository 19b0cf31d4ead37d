//! That scratch registers are written before they are read (semantics, rule E5): an event begins with nothing in them, so no
//! engine has to clear them. Checked along the edges by which rows raise internal events.

use super::Verifier;
use super::report::{Path, quote};
use crate::chains::preparation;
use crate::types::{Event, Operand, Operation};
use std::collections::{BTreeMap, BTreeSet};

/// Registers by number.
type Registers = BTreeSet<u16>;

impl Verifier<'_> {
    pub(super) fn scratch(&mut self) {
        let is_scratch = |number: usize| self.image.registers.get(number).is_some_and(|register| register.scratch);
        let scratch: Registers =
            (0..self.image.registers.len()).filter(|number| is_scratch(*number)).map(|number| number as u16).collect();
        if scratch.is_empty() {
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
                _ => Registers::new(),
            };
            let mut check = Check { scratch: &scratch, written, read: Registers::new() };
            preparation(self.image, state, event).iter().for_each(|operation| check.operation(operation));
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
                row.operations.iter().for_each(|operation| check.operation(operation));
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
                    .and_modify(|before| before.retain(|register| check.written.contains(register)))
                    .or_insert_with(|| check.written.clone());
            }
        }
    }
}

/// One way through an event.
struct Check<'a> {
    scratch: &'a Registers,
    written: Registers,
    /// Scratch registers read before they were written.
    read: Registers,
}

impl Check<'_> {
    fn operand(&mut self, operand: &Operand) {
        if let Operand::Register(register) = operand
            && self.scratch.contains(register)
            && !self.written.contains(register)
        {
            self.read.insert(*register);
        }
    }

    fn operation(&mut self, operation: &Operation) {
        operation.operands().into_iter().for_each(|operand| self.operand(operand));
        self.written.extend(operation.target());
    }
}
