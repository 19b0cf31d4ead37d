//! The reference executor: rows as the semantics page tells them. Slow and obvious; the other executors are measured
//! against it.

use crate::program::Program;
use crate::run::{Payload, Run};
use crate::stores::Tests;
use crate::value::{compare, look_up};
use crate::{EngineError, Executor, Runtime};
use weftwire_core::DropReason;
use weftwire_image::limits::{MAX_SEGMENT_FIELDS, MAX_TEMPLATE_PARTS, MAX_TESTS};
use weftwire_image::registers::element;
use weftwire_image::{Event, Operand, Operation, PacketRef, PayloadTest, Query, Row};

/// Runs rows operation by operation, operand by operand.
#[derive(Debug)]
pub struct Reference;

/// The engine that follows the semantics page word by word.
pub type ReferenceEngine = Runtime<Reference>;

impl Executor for Reference {
    const NAME: &'static str = "reference";

    fn load(_program: &Program) -> Result<Reference, EngineError> {
        Ok(Reference)
    }

    fn run_row(&self, run: &mut Run<'_>, event: Event) -> Option<usize> {
        let program = run.program;
        let (preparation, rows) = program.cell(run.instance.state, event);
        run.execute_all(preparation);
        let number = rows.iter().copied().find(|&number| run.matches(&program.image.rows[number]))?;
        run.execute_all(&program.image.rows[number].operations);
        Some(number)
    }
}

impl Run<'_> {
    fn matches(&self, row: &Row) -> bool {
        row.when.iter().all(|&(condition, expected)| {
            let condition = &self.program.image.conditions[usize::from(condition)];
            compare(condition.comparison, self.read(&condition.left), self.read(&condition.right)) == expected
        })
    }

    /// The right sides of tests, read once.
    fn right_sides(&self, tests: &[PayloadTest]) -> [i64; MAX_TESTS] {
        let mut right = [0; MAX_TESTS];
        for (value, test) in right.iter_mut().zip(tests) {
            *value = self.read(&test.right);
        }
        right
    }

    // Once, with `execute` in it.
    #[inline(never)]
    fn execute_all(&mut self, operations: &[Operation]) {
        let tracing = self.out.wants_trace();
        for operation in operations {
            if tracing {
                self.show(operation);
            }
            self.execute(operation);
        }
    }

    #[inline(always)]
    fn execute(&mut self, operation: &Operation) {
        match operation {
            Operation::Compute { operator, register, left, right } => {
                self.compute(*operator, *register, self.read(left), self.read(right));
            }
            Operation::MulDiv { register, left, right, divisor } => {
                self.mul_div(*register, self.read(left), self.read(right), self.read(divisor));
            }
            Operation::Lookup { table, register, index } => {
                let value = look_up(&self.shared.tables[usize::from(*table)], self.read(index));
                self.write(*register, value);
            }
            Operation::Element { register, first, count, index } => {
                let value = self.instance.registers[element(*first, *count, self.read(index))];
                self.write(*register, value);
            }
            Operation::SetElement { first, count, index, value } => {
                let place = element(*first, *count, self.read(index));
                self.write(place as u16, self.read(value));
            }
            Operation::SetField { packet, field, value, optional } => {
                let value = self.read(value) as u64;
                let place = self.program.places[usize::from(*field)];
                self.change(*packet, |packet| match packet.set(place, value) {
                    Err(DropReason::NoField) if *optional => Ok(()),
                    result => result,
                });
            }
            Operation::Resize { packet, length } => {
                let length = self.read_length(length);
                self.make_room(*packet, length);
                self.change(*packet, |packet| packet.resize_payload(length));
            }
            Operation::Cut { packet, size } => {
                let size = self.read(size);
                self.change(*packet, |packet| packet.set_segment_size(size));
            }
            Operation::Reverse { packet } => self.change(*packet, |packet| {
                packet.reverse();
                Ok(())
            }),
            Operation::KeepOptions { packet, kinds } => self.change(*packet, |packet| packet.keep_options(kinds)),
            Operation::Copy { from, to } => self.copy(*from, *to),
            Operation::Build { template, to, options } => self.build_with(*template, options, *to),
            Operation::Discard { packet } => self.discard(*packet),
            Operation::Send { packet, port } => self.send(*packet, self.read(port)),
            Operation::SetTimer { timer, delay, payload } => {
                let mut values = Payload::default();
                for (value, operand) in values.iter_mut().zip(payload) {
                    *value = self.read(operand);
                }
                self.set_timer(*timer, self.read(delay), values);
            }
            Operation::CancelTimer { timer, tests } => self.cancel_where(*timer, tests),
            Operation::MoveTimer { timer, delay, tests } => self.move_where(*timer, tests, self.read(delay)),
            Operation::Ask { turns, rank, cost } => self.ask(*turns, self.read(rank), self.read(cost)),
            Operation::Withdraw { turns } => self.withdraw(*turns),
            Operation::AppendData { packet, offset, length } => {
                self.append_data(*packet, self.read_length(offset), self.read_length(length));
            }
            Operation::ReleaseData { length } => self.release_data(self.read_length(length)),
            Operation::Deliver { packet, offset, length } => {
                self.deliver(*packet, self.read_length(offset), self.read_length(length));
            }
            Operation::Begin { store, at } => self.begin(*store, self.read(at)),
            Operation::Trim { store, to } => self.trim(*store, self.read(to)),
            Operation::AddRange { ranges, left, right } => self.add_range(*ranges, self.read(left), self.read(right)),
            Operation::Hold { ranges, packet, offset, length, at } => {
                self.hold(*ranges, *packet, self.read_length(offset), self.read_length(length), self.read(at));
            }
            Operation::DeliverHeld { ranges, to } => self.deliver_held(*ranges, self.read(to)),
            Operation::AppendSegment { segments, end, values } => self.append_with(*segments, self.read(end), values),
            Operation::SplitSegment { segments, at } => self.split_segment(*segments, self.read(at)),
            Operation::ChangeSegments { segments, tests, writes } => self.change_where(*segments, tests, writes),
            Operation::Query { register, query } => {
                let value = self.query(query);
                self.write(*register, value);
            }
            Operation::Notify { notice, value } => self.notify(*notice, self.read(value)),
            Operation::DeleteInstance => self.deleted = true,
            Operation::RestartInstance => self.restart(),
            Operation::Snapshot { point } => self.snapshot(*point),
            Operation::Run { block } => self.execute_all(&self.program.image.blocks[usize::from(*block)].operations),
        }
    }

    // What follows has arrays on the stack, which the other operations are not to make room for.

    #[inline(never)]
    fn build_with(&mut self, template: u16, options: &[Operand], to: PacketRef) {
        let mut wanted = [0; MAX_TEMPLATE_PARTS];
        for (value, option) in wanted.iter_mut().zip(options) {
            *value = self.read(option);
        }
        self.build(template, &wanted[..options.len()], to);
    }

    #[inline(never)]
    fn cancel_where(&mut self, timer: u8, tests: &[PayloadTest]) {
        let right = self.right_sides(tests);
        self.cancel_timer(timer, Tests { tests, right: &right });
    }

    #[inline(never)]
    fn move_where(&mut self, timer: u8, tests: &[PayloadTest], delay: i64) {
        let right = self.right_sides(tests);
        self.move_timer(timer, Tests { tests, right: &right }, delay);
    }

    #[inline(never)]
    fn append_with(&mut self, segments: u8, end: i64, values: &[Operand]) {
        let mut fields = [0; MAX_SEGMENT_FIELDS];
        for (field, value) in fields.iter_mut().zip(values) {
            *field = self.read(value);
        }
        self.append_segment(segments, end, &fields[..values.len()]);
    }

    #[inline(never)]
    fn change_where(&mut self, segments: u8, tests: &[PayloadTest], writes: &[(u8, Operand)]) {
        let right = self.right_sides(tests);
        let mut new = [(0, 0); MAX_SEGMENT_FIELDS];
        for (write, (field, value)) in new.iter_mut().zip(writes) {
            *write = (*field, self.read(value));
        }
        let tests = Tests { tests, right: &right };
        self.instance.segments[usize::from(segments)].change(tests, &new[..writes.len()]);
    }

    #[inline(never)]
    fn query(&self, query: &Query) -> i64 {
        match query {
            Query::Ranges { ranges, what, argument } => {
                self.instance.ranges[usize::from(*ranges)].query(*what, self.read(argument))
            }
            Query::Segments { segments, what, field, tests } => {
                let tests = Tests { tests, right: &self.right_sides(tests) };
                self.instance.segments[usize::from(*segments)].query(*what, *field, tests)
            }
            Query::PortMtu { port } => self.port_mtu(self.read(port)),
            Query::Timer { timer, what, value, kind, tests } => {
                let tests = Tests { tests, right: &self.right_sides(tests) };
                self.ask_timer(*timer, *what, (*value, *kind), tests)
            }
        }
    }
}
