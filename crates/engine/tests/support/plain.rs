//! A second executor, outside of the engine's crate and written from the semantics page: it looks through all rows of the
//! image, tests all conditions, and reads all operands of an operation before it runs. Slow, and easy to believe.

use std::cmp::Ordering;
use weftwire_core::DropReason;
use weftwire_engine::executor::{Executor, Payload, Program, Run, Tests};
use weftwire_engine::{EngineError, value};
use weftwire_image::{Comparison, Condition, Event, Operation, Query};

/// See the module.
#[derive(Debug)]
pub struct Plain;

impl Executor for Plain {
    const NAME: &'static str = "plain";

    fn load(_program: &Program) -> Result<Plain, EngineError> {
        Ok(Plain)
    }

    /// Rule E6.
    fn run_row(&self, run: &mut Run<'_>, event: Event) -> Option<usize> {
        let (image, here) = (&run.program.image, (run.instance.state, event));
        for preparation in image.preparations.iter().filter(|it| (it.state, it.event) == here) {
            execute_all(run, &preparation.operations);
        }
        let holds: Vec<bool> = image.conditions.iter().map(|condition| holds(run, condition)).collect();
        let number = image.rows.iter().position(|row| {
            (row.state, row.event) == here
                && row.when.iter().all(|&(condition, expected)| holds[usize::from(condition)] == expected)
        })?;
        execute_all(run, &image.rows[number].operations);
        Some(number)
    }
}

/// Rules V6 and V8.
fn holds(run: &Run<'_>, condition: &Condition) -> bool {
    let (left, right) = (run.read(&condition.left), run.read(&condition.right));
    let signed = left.cmp(&right);
    let unsigned = (left as u64).cmp(&(right as u64));
    let is_before = |one: i64, other: i64| (one.wrapping_sub(other) as u32 as i32) < 0;
    let same = left as u32 == right as u32;
    match condition.comparison {
        Comparison::Eq => signed == Ordering::Equal,
        Comparison::Ne => signed != Ordering::Equal,
        Comparison::Lt => signed == Ordering::Less,
        Comparison::Le => signed != Ordering::Greater,
        Comparison::Gt => signed == Ordering::Greater,
        Comparison::Ge => signed != Ordering::Less,
        Comparison::LtUnsigned => unsigned == Ordering::Less,
        Comparison::LeUnsigned => unsigned != Ordering::Greater,
        Comparison::GtUnsigned => unsigned == Ordering::Greater,
        Comparison::GeUnsigned => unsigned != Ordering::Less,
        Comparison::SeqLt => is_before(left, right),
        Comparison::SeqLe => same || is_before(left, right),
        Comparison::SeqGt => is_before(right, left),
        Comparison::SeqGe => same || is_before(right, left),
    }
}

fn execute_all(run: &mut Run<'_>, operations: &[Operation]) {
    let program = run.program;
    for operation in program.image.written_out(operations) {
        if run.out.wants_trace() {
            run.show(operation);
        }
        let values: Vec<i64> = operation.operands().into_iter().map(|operand| run.read(operand)).collect();
        execute(run, operation, &values);
    }
}

/// Runs an operation, given the values of its operands in the order of the document.
fn execute(run: &mut Run<'_>, operation: &Operation, values: &[i64]) {
    // Rules P21 and A5: negative is taken as 0.
    let length = |place: usize| values[place].max(0) as usize;
    // Rule V16.
    let element = |first: u16, count: u16| first + values[0].rem_euclid(count.into()) as u16;
    let payload = |values: &[i64]| {
        let mut payload = Payload::default();
        payload[..values.len()].copy_from_slice(values);
        payload
    };
    match operation {
        Operation::Compute { operator, register, .. } => run.compute(*operator, *register, values[0], values[1]),
        Operation::MulDiv { register, .. } => run.mul_div(*register, values[0], values[1], values[2]),
        Operation::Lookup { table, register, .. } => {
            let value = value::look_up(&run.shared.tables[usize::from(*table)], values[0]);
            run.write(*register, value);
        }
        Operation::Element { register, first, count, .. } => {
            let value = run.instance.registers[usize::from(element(*first, *count))];
            run.write(*register, value);
        }
        Operation::SetElement { first, count, .. } => run.write(element(*first, *count), values[1]),
        Operation::SetField { packet, field, optional, .. } => {
            let place = run.program.places[usize::from(*field)];
            run.change(*packet, |packet| match packet.set(place, values[0] as u64) {
                Err(DropReason::NoField) if *optional => Ok(()),
                result => result,
            });
        }
        Operation::Resize { packet, .. } => {
            run.make_room(*packet, length(0));
            run.change(*packet, |packet| packet.resize_payload(length(0)));
        }
        Operation::Cut { packet, .. } => run.change(*packet, |packet| packet.set_segment_size(values[0])),
        Operation::Reverse { packet } => run.change(*packet, |packet| {
            packet.reverse();
            Ok(())
        }),
        Operation::KeepOptions { packet, kinds } => run.change(*packet, |packet| packet.keep_options(kinds)),
        Operation::Copy { from, to } => run.copy(*from, *to),
        Operation::Build { template, to, .. } => run.build(*template, values, *to),
        Operation::Discard { packet } => run.discard(*packet),
        Operation::Send { packet, .. } => run.send(*packet, values[0]),
        Operation::SetTimer { timer, .. } => run.set_timer(*timer, values[0], payload(&values[1..])),
        Operation::CancelTimer { timer, tests } => run.cancel_timer(*timer, Tests { tests, right: values }),
        Operation::MoveTimer { timer, tests, .. } => {
            run.move_timer(*timer, Tests { tests, right: &values[1..] }, values[0]);
        }
        Operation::Ask { turns, .. } => run.ask(*turns, values[0], values[1]),
        Operation::Withdraw { turns } => run.withdraw(*turns),
        Operation::AppendData { packet, .. } => run.append_data(*packet, length(0), length(1)),
        Operation::ReleaseData { .. } => run.release_data(length(0)),
        Operation::Deliver { packet, .. } => run.deliver(*packet, length(0), length(1)),
        Operation::Begin { store, .. } => run.begin(*store, values[0]),
        Operation::Trim { store, .. } => run.trim(*store, values[0]),
        Operation::AddRange { ranges, .. } => run.add_range(*ranges, values[0], values[1]),
        Operation::Hold { ranges, packet, .. } => run.hold(*ranges, *packet, length(0), length(1), values[2]),
        Operation::DeliverHeld { ranges, .. } => run.deliver_held(*ranges, values[0]),
        Operation::AppendSegment { segments, .. } => run.append_segment(*segments, values[0], &values[1..]),
        Operation::SplitSegment { segments, .. } => run.split_segment(*segments, values[0]),
        Operation::ChangeSegments { segments, tests, writes } => {
            let (right, new) = values.split_at(tests.len());
            let writes: Vec<(u8, i64)> = writes.iter().zip(new).map(|((field, _), value)| (*field, *value)).collect();
            run.instance.segments[usize::from(*segments)].change(Tests { tests, right }, &writes);
        }
        Operation::Query { register, query } => {
            let value = ask(run, query, values);
            run.write(*register, value);
        }
        Operation::Notify { notice, .. } => run.notify(*notice, values[0]),
        Operation::DeleteInstance => run.deleted = true,
        Operation::RestartInstance => run.restart(),
        Operation::Snapshot { point } => run.snapshot(*point),
        Operation::Run { .. } => panic!("a block that runs a block"),
    }
}

fn ask(run: &Run<'_>, query: &Query, values: &[i64]) -> i64 {
    match query {
        Query::Ranges { ranges, what, .. } => run.instance.ranges[usize::from(*ranges)].query(*what, values[0]),
        Query::Segments { segments, what, field, tests } => {
            run.instance.segments[usize::from(*segments)].query(*what, *field, Tests { tests, right: values })
        }
        Query::PortMtu { .. } => run.port_mtu(values[0]),
        Query::Timer { timer, what, value, kind, tests } => {
            run.ask_timer(*timer, *what, (*value, *kind), Tests { tests, right: values })
        }
    }
}
