//! Operations on ranges and segments in words: as programs write them.

use crate::types::{Asked, Comparison, Image, Operand, Operation, PacketRef, PayloadTest, Query, Store};

/// How operands and packets are shown.
pub struct Words<'a> {
    /// An operand.
    pub value: &'a mut dyn FnMut(&Operand) -> String,
    /// A packet.
    pub packet: &'a dyn Fn(PacketRef) -> String,
}

impl Image {
    /// The name of ranges or segments, or their number if the image has none.
    pub fn store_name(&self, store: Store) -> String {
        let (kind, index, found) = match store {
            Store::Ranges(index) => ("ranges", index, self.ranges.get(usize::from(index)).map(|it| &it.name)),
            Store::Segments(index) => ("segments", index, self.segments.get(usize::from(index)).map(|it| &it.name)),
        };
        found.cloned().unwrap_or_else(|| format!("{kind} {index}"))
    }

    fn segment_field(&self, segments: u8, field: u8) -> String {
        let found = self.segments.get(usize::from(segments)).and_then(|object| object.field_name(field));
        found.map_or_else(|| format!("field {field}"), str::to_owned)
    }

    /// The name of a value that a timer carries, or its number if the image has none.
    fn timer_value(&self, timer: u8, value: u8) -> String {
        let found = self.timers.get(usize::from(timer)).and_then(|timer| timer.payload.get(usize::from(value)));
        found.cloned().unwrap_or_else(|| format!("value {value}"))
    }

    /// Tests of fields or of what timers carry, by their names.
    fn tests_text(&self, asked: Asked, tests: &[PayloadTest], words: &mut Words<'_>) -> String {
        let text = |test: &PayloadTest| {
            let name = self.part_name(asked, test.value);
            format!("{name} {} {}", sign(test.comparison), (words.value)(&test.right))
        };
        tests.iter().map(text).collect::<Vec<String>>().join(" and ")
    }

    /// The name of a field of segments, or of a value of a timer.
    fn part_name(&self, asked: Asked, number: u8) -> String {
        match asked {
            Asked::Timer(timer) => self.timer_value(timer, number),
            Asked::Store(Store::Segments(index) | Store::Ranges(index)) => self.segment_field(index, number),
        }
    }

    /// What is asked or changed, by its name.
    fn asked_name(&self, asked: Asked) -> String {
        match asked {
            Asked::Store(store) => self.store_name(store),
            Asked::Timer(timer) => {
                let found = self.timers.get(usize::from(timer)).map(|timer| timer.name.clone());
                found.unwrap_or_else(|| format!("timer {timer}"))
            }
        }
    }

    fn question_text(
        &self,
        asked: Asked,
        (what, part): (&str, Option<u8>),
        tests: &[PayloadTest],
        words: &mut Words<'_>,
    ) -> String {
        let part = part.map(|part| self.part_name(asked, part));
        let tests = self.tests_text(asked, tests, words);
        let arguments: Vec<String> = part.into_iter().chain((!tests.is_empty()).then_some(tests)).collect();
        match arguments.is_empty() {
            true => format!("{}.{what}", self.asked_name(asked)),
            false => format!("{}.{what}({})", self.asked_name(asked), arguments.join(", ")),
        }
    }

    /// A question: `arrived.after(x)`, `sent.count(lost == 1)`.
    pub fn query_text(&self, query: &Query, words: &mut Words<'_>) -> String {
        match query {
            Query::Ranges { ranges, what, argument } => {
                let name = self.store_name(Store::Ranges(*ranges));
                let argument = what.has_argument().then(|| format!("({})", (words.value)(argument)));
                format!("{name}.{}{}", what.name(), argument.unwrap_or_default())
            }
            Query::Segments { segments, what, field, tests } => {
                let asked = Asked::Store(Store::Segments(*segments));
                self.question_text(asked, (what.name(), what.has_field().then_some(*field)), tests, words)
            }
            Query::Timer { timer, what, value, tests, .. } => {
                let asked = Asked::Timer(*timer);
                self.question_text(asked, (what.name(), what.has_value().then_some(*value)), tests, words)
            }
            Query::PortMtu { port } => format!("port.mtu({})", (words.value)(port)),
        }
    }

    /// An operation on ranges, segments or settings of timers, but a query; of any other its name.
    pub fn store_text(&self, operation: &Operation, words: &mut Words<'_>) -> String {
        let ranges = |index: u8| self.store_name(Store::Ranges(index));
        let segments = |index: u8| self.store_name(Store::Segments(index));
        match operation {
            Operation::Begin { store, at } => format!("begin {} at {}", self.store_name(*store), (words.value)(at)),
            Operation::Trim { store, to } => format!("trim {} to {}", self.store_name(*store), (words.value)(to)),
            Operation::AddRange { ranges: index, left, right } => {
                let (left, right) = ((words.value)(left), (words.value)(right));
                format!("add {}({left}, {right})", ranges(*index))
            }
            Operation::Hold { ranges: index, packet, offset, length, at } => {
                let packet = (words.packet)(*packet);
                let (offset, length, at) = ((words.value)(offset), (words.value)(length), (words.value)(at));
                format!("hold {packet}({offset}, {length}) at {at} in {}", ranges(*index))
            }
            Operation::DeliverHeld { ranges: index, to } => {
                format!("deliver {} to {}", ranges(*index), (words.value)(to))
            }
            Operation::AppendSegment { segments: index, end, values } => {
                let all: Vec<String> = [end].into_iter().chain(values).map(|value| (words.value)(value)).collect();
                format!("append {}({})", segments(*index), all.join(", "))
            }
            Operation::SplitSegment { segments: index, at } => {
                format!("split {} at {}", segments(*index), (words.value)(at))
            }
            Operation::CancelTimer { timer, tests } => {
                let tests = self.tests_text(Asked::Timer(*timer), tests, words);
                let which = if tests.is_empty() { String::new() } else { format!(" where {tests}") };
                format!("cancel_timer {}{which}", self.asked_name(Asked::Timer(*timer)))
            }
            Operation::MoveTimer { timer, delay, tests } => {
                let tests = self.tests_text(Asked::Timer(*timer), tests, words);
                let which = if tests.is_empty() { String::new() } else { format!(" where {tests}") };
                format!("move_timer {}{which} in {} ns", self.asked_name(Asked::Timer(*timer)), (words.value)(delay))
            }
            Operation::ChangeSegments { segments: index, tests, writes } => {
                let tests = self.tests_text(Asked::Store(Store::Segments(*index)), tests, words);
                let which = if tests.is_empty() { String::new() } else { format!(" where {tests}") };
                let write = |(field, value): &(u8, Operand)| {
                    format!("{} := {}", self.segment_field(*index, *field), (words.value)(value))
                };
                let writes: Vec<String> = writes.iter().map(write).collect();
                format!("change {}{which}: {}", segments(*index), writes.join(", "))
            }
            other => other.name().into(),
        }
    }
}

/// The sign of a comparison.
fn sign(comparison: Comparison) -> &'static str {
    use Comparison::*;
    match comparison {
        Eq => "==",
        Ne => "!=",
        Lt | LtUnsigned | SeqLt => "<",
        Le | LeUnsigned | SeqLe => "<=",
        Gt | GtUnsigned | SeqGt => ">",
        Ge | GeUnsigned | SeqGe => ">=",
    }
}
