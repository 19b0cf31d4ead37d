//! Ranges, segments, turns and tallies, and the operations on them.

use super::Verifier;
use super::behaviour::Place;
use super::report::Path;
use crate::limits::*;
use crate::types::{Operand, Operation, PayloadTest, Query, RegisterType, SEGMENT_ENDS, Store, TimerQuery};
use std::collections::BTreeSet;

impl Verifier<'_> {
    pub(super) fn stores(&mut self) {
        let ranges = Path::Root.member("ranges");
        let mut buffers = 0;
        for (index, object) in self.image.ranges.iter().enumerate() {
            let item = ranges.item(index);
            if !(1..=MAX_RANGE_COUNT).contains(&object.most) {
                let problem = format_args!("{} ranges", object.most);
                self.report.add(item.member("most"), problem, format_args!("use 1 to {MAX_RANGE_COUNT}"));
            }
            if let Some(bytes) = object.bytes {
                buffers += 1;
                if !(1..=MAX_RECEIVE_BUFFER).contains(&bytes) {
                    let problem = format_args!("{bytes} bytes");
                    self.report.add(item.member("bytes"), problem, format_args!("use 1 to {MAX_RECEIVE_BUFFER}"));
                }
                if buffers > 1 {
                    self.report.add(item.member("bytes"), "a second receive buffer", "an image has at most one");
                }
            }
        }
        if let Some(bytes) = self.image.send_buffer.filter(|bytes| !(1..=MAX_SEND_BUFFER).contains(bytes)) {
            let problem = format_args!("{bytes} bytes");
            self.report.add(Path::Root.member("send_buffer"), problem, format_args!("use 1 to {MAX_SEND_BUFFER}"));
        }
        let segments = Path::Root.member("segments");
        for (index, object) in self.image.segments.iter().enumerate() {
            let item = segments.item(index);
            if !(1..=MAX_SEGMENT_COUNT).contains(&object.most) {
                let problem = format_args!("{} records", object.most);
                self.report.add(item.member("most"), problem, format_args!("use 1 to {MAX_SEGMENT_COUNT}"));
            }
            let path = item.member("fields");
            self.list_of_names(path, object.fields.iter().map(|field| &field.name), MAX_SEGMENT_FIELDS);
            for (index, field) in object.fields.iter().enumerate() {
                if SEGMENT_ENDS.contains(&field.name.as_str()) {
                    let problem = format_args!("the name `{}` again", field.name);
                    self.report.add(path.item(index), problem, "every record has `left` and `right`");
                }
            }
        }
        let tallies = Path::Root.member("tallies");
        for (index, tally) in self.image.tallies.iter().enumerate() {
            let item = tallies.item(index);
            self.listed_states(item.member("states"), &tally.states);
            let timers = item.member("timers");
            let mut seen = BTreeSet::new();
            for (index, timer) in tally.timers.iter().enumerate() {
                let known = self.image.timers.len();
                let good = self.report.index(timers.item(index), "timer", usize::from(*timer), known);
                if good && !seen.insert(timer) {
                    let problem = format_args!("timer {timer} a second time");
                    self.report.add(timers.item(index), problem, "list it once");
                }
            }
        }
        let turns = Path::Root.member("turns");
        for (index, object) in self.image.turns.iter().enumerate() {
            if !(1..=MAX_WAITING).contains(&object.most) {
                let problem = format_args!("{} flows", object.most);
                self.report.add(turns.item(index).member("most"), problem, format_args!("use 1 to {MAX_WAITING}"));
            }
        }
    }

    /// An operation on ranges or segments: what it names is there.
    pub(super) fn store_operation(&mut self, path: Path<'_>, operation: &Operation, place: Place) {
        match operation {
            Operation::Begin { store, .. } | Operation::Trim { store, .. } => {
                self.store(path.member("store"), *store);
            }
            Operation::AddRange { ranges, .. } => {
                self.store(path.member("ranges"), Store::Ranges(*ranges));
                self.no_buffer(path.member("ranges"), *ranges);
            }
            Operation::Hold { ranges, packet, .. } => {
                self.packet(path.member("packet"), *packet);
                self.buffer(path.member("ranges"), *ranges);
            }
            Operation::DeliverHeld { ranges, .. } => self.buffer(path.member("ranges"), *ranges),
            Operation::AppendSegment { segments, values, .. } => {
                self.store(path.member("segments"), Store::Segments(*segments));
                let object = self.image.segments.get(usize::from(*segments));
                if let Some(fields) = object.map(|object| object.fields.len()).filter(|fields| *fields != values.len())
                {
                    let problem = format_args!("{} values", values.len());
                    self.report.add(path.member("values"), problem, format_args!("a record has {fields} fields"));
                }
            }
            Operation::SplitSegment { segments, .. } => {
                self.store(path.member("segments"), Store::Segments(*segments));
            }
            Operation::ChangeSegments { segments, tests, writes } => {
                self.store(path.member("segments"), Store::Segments(*segments));
                self.segment_tests(path.member("tests"), *segments, tests);
                let writes_path = path.member("writes");
                self.report.at_most(writes_path, writes.len(), MAX_SEGMENT_FIELDS);
                for (index, (field, _)) in writes.iter().enumerate() {
                    let item = writes_path.item(index);
                    self.segment_field(item, *segments, *field);
                    if usize::from(*field) < SEGMENT_ENDS.len() {
                        self.report.add(item, "a record's sequence numbers can't be written", "split or trim");
                    }
                }
            }
            Operation::Query { register, query } => {
                self.target(path.member("register"), *register, place);
                self.query(path.member("query"), query);
            }
            _ => {}
        }
        for operand in operation.operands() {
            self.operand(path, operand, place.event_values);
        }
    }

    fn query(&mut self, path: Path<'_>, query: &Query) {
        match query {
            Query::Ranges { ranges, what, argument } => {
                self.store(path.member("ranges"), Store::Ranges(*ranges));
                if !what.has_argument() && *argument != Operand::Constant(0) {
                    let problem = format_args!("`{}` with an argument", what.name());
                    self.report.add(path.member("argument"), problem, "it uses none: make it a constant 0");
                }
            }
            Query::Segments { segments, what, field, tests } => {
                self.store(path.member("segments"), Store::Segments(*segments));
                if what.has_field() {
                    self.segment_field(path.member("field"), *segments, *field);
                } else if *field != 0 {
                    self.report.add(path.member("field"), "a field that is not asked for", "make it 0");
                }
                self.segment_tests(path.member("tests"), *segments, tests);
            }
            Query::PortMtu { .. } => {}
            Query::Timer { timer, what, value, kind, tests } => {
                let carried = self.timer_tests(path, *timer, tests);
                if let (true, Some(carried)) = (what.has_value(), carried) {
                    self.report.index(path.member("value"), "value of this timer", usize::from(*value), carried);
                } else if *value != 0 {
                    self.report.add(path.member("value"), "a value that is not asked for", "make it 0");
                }
                if !matches!(what, TimerQuery::Least | TimerQuery::Greatest) && *kind != RegisterType::I64 {
                    self.report.add(path.member("kind"), "an order that is not asked for", "make it `i64`");
                }
            }
        }
    }

    fn segment_tests(&mut self, path: Path<'_>, segments: u8, tests: &[PayloadTest]) {
        self.tests(path, tests);
        for (index, test) in tests.iter().enumerate() {
            let item = path.item(index);
            self.segment_field(item.member("value"), segments, test.value);
        }
    }

    fn segment_field(&mut self, path: Path<'_>, segments: u8, field: u8) {
        if let Some(object) = self.image.segments.get(usize::from(segments)) {
            let count = SEGMENT_ENDS.len() + object.fields.len();
            self.report.index(path, "field of these segments", usize::from(field), count);
        }
    }

    fn store(&mut self, path: Path<'_>, store: Store) -> bool {
        match store {
            Store::Ranges(index) => self.report.index(path, "ranges", usize::from(index), self.image.ranges.len()),
            Store::Segments(index) => {
                self.report.index(path, "segments", usize::from(index), self.image.segments.len())
            }
        }
    }

    fn buffer(&mut self, path: Path<'_>, ranges: u8) {
        if self.store(path, Store::Ranges(ranges)) && self.image.ranges[usize::from(ranges)].bytes.is_none() {
            self.report.add(path, "these ranges keep no bytes", "use the receive buffer");
        }
    }

    fn no_buffer(&mut self, path: Path<'_>, ranges: u8) {
        if self.image.ranges.get(usize::from(ranges)).is_some_and(|ranges| ranges.bytes.is_some()) {
            self.report.add(path, "these ranges keep bytes", "use `hold`");
        }
    }
}
