//! Preparations, conditions, rows and their operations.

use super::Verifier;
use super::report::Path;
use crate::limits::*;
use crate::types::{Block, Environment, Event, Image, Operand, Operation, Operator, PacketRef, PayloadTest};
use std::collections::BTreeSet;

/// What an operation may refer to, by where it stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// How many values the event carries.
    pub(super) event_values: u8,
    /// Whether it stands in a preparation.
    preparation: bool,
}

/// What a block needs of the place where it runs.
pub(super) struct Needs {
    /// So many values of the event.
    event_values: u8,
    /// That it may do more than write scratch registers.
    acts: bool,
}

impl Needs {
    fn of(block: &Block, image: &Image) -> Needs {
        let is_scratch =
            |number: u16| image.registers.get(usize::from(number)).is_some_and(|register| register.scratch);
        let event_value = |operand: &Operand| match operand {
            Operand::Event(value) => Some(value.saturating_add(1)),
            _ => None,
        };
        let operands = block.operations.iter().flat_map(Operation::operands);
        let prepares = |operation: &Operation| operation.is_pure() && operation.target().is_some_and(is_scratch);
        Needs {
            event_values: operands.filter_map(event_value).max().unwrap_or(0),
            acts: !block.operations.iter().all(prepares),
        }
    }
}

impl Verifier<'_> {
    pub(super) fn behaviour(&mut self) {
        let limit = usize::from(MAX_INTERNAL_EVENTS);
        self.report.at_most(Path::Root.member("internal_events"), usize::from(self.image.internal_events), limit);
        self.conditions();
        self.blocks();
        self.preparations();
        self.repeats();
        self.rows();
        let rows = Path::Root.member("rows");
        let all = self.image.operation_count();
        if all > MAX_ALL_OPERATIONS {
            let remedy = format_args!("at most {MAX_ALL_OPERATIONS} in all rows, preparations and blocks together");
            self.report.add(rows, format_args!("{all} operations"), remedy);
        }
        let all: usize = self.image.operation_lists().map(|list| self.image.written_out_length(list)).sum();
        if all > MAX_WRITTEN_OUT {
            let remedy = format_args!("at most {MAX_WRITTEN_OUT} in all rows and preparations together");
            self.report.add(rows, format_args!("{all} operations, blocks written out"), remedy);
        }
    }

    fn blocks(&mut self) {
        let blocks = Path::Root.member("blocks");
        self.report.at_most(blocks, self.image.blocks.len(), MAX_BLOCKS);
        self.blocks = self.image.blocks.iter().map(|block| Needs::of(block, self.image)).collect();
        for (index, block) in self.image.blocks.iter().enumerate() {
            let path = blocks.item(index);
            let path = path.member("operations");
            // Which event values there are, and what may be done, depends on who runs the block: they check it.
            self.operations(path, &block.operations, Place { event_values: u8::MAX, preparation: false });
            for (index, operation) in block.operations.iter().enumerate() {
                if matches!(operation, Operation::Run { .. }) {
                    let remedy = "write out the operations of the other one";
                    self.report.add(path.item(index), "a block that runs a block", remedy);
                }
            }
        }
    }

    /// Sees that a block can run at this place.
    fn run(&mut self, path: Path<'_>, block: u16, place: Place) {
        let block = usize::from(block);
        if !self.report.index(path, "block", block, self.image.blocks.len()) {
            return;
        }
        let Needs { event_values, acts } = self.blocks[block];
        if let Some(greatest) = event_values.checked_sub(1) {
            self.report.index(path, "value of this event", usize::from(greatest), usize::from(place.event_values));
        }
        if acts && place.preparation {
            let problem = format_args!("block {block} does more in a preparation than compute scratch registers");
            self.report.add(path, problem, "run blocks that only write scratch registers");
        }
    }

    fn conditions(&mut self) {
        let conditions = Path::Root.member("conditions");
        self.report.at_most(conditions, self.image.conditions.len(), MAX_CONDITIONS);
        for (index, condition) in self.image.conditions.iter().enumerate() {
            let item = conditions.item(index);
            // Which event values there are depends on the rows that use the condition; they check it.
            self.operand(item.member("left"), &condition.left, u8::MAX);
            self.operand(item.member("right"), &condition.right, u8::MAX);
        }
    }

    fn preparations(&mut self) {
        let preparations = Path::Root.member("preparations");
        self.report.at_most(preparations, self.image.preparations.len(), MAX_PREPARATIONS);
        let mut seen = BTreeSet::new();
        for (index, preparation) in self.image.preparations.iter().enumerate() {
            let path = preparations.item(index);
            self.state(path.member("state"), preparation.state);
            self.event(path.member("event"), preparation.event);
            if !seen.insert((preparation.state, preparation.event)) {
                let problem = "a second preparation of this state and event";
                self.report.add(path, problem, "put all operations into one");
            }
            let place = Place { event_values: self.event_values(preparation.event), preparation: true };
            self.operations(path.member("operations"), &preparation.operations, place);
        }
    }

    fn repeats(&mut self) {
        let repeats = Path::Root.member("repeats");
        let mut before = None;
        for (index, repeat) in self.image.repeats.iter().enumerate() {
            let path = repeats.item(index);
            let place = Some((repeat.state, repeat.event));
            if before >= place {
                self.report.add(path, "the repeat stands too late", "sort them by state and event, each once");
            }
            before = place;
            self.state(path.member("state"), repeat.state);
            self.internal_event(path.member("event"), repeat.event);
            self.internal_event(path.member("then"), repeat.then);
        }
        if let Some((index, rounds)) = self.image.most_rounds().filter(|(_, rounds)| *rounds > MAX_ROUNDS) {
            let problem = format_args!("{rounds} rounds, with those of the repeats around it");
            self.report.add(repeats.item(index), problem, format_args!("at most {MAX_ROUNDS}"));
        }
    }

    fn rows(&mut self) {
        let rows = Path::Root.member("rows");
        self.report.at_most(rows, self.image.rows.len(), MAX_ROWS);
        for (index, row) in self.image.rows.iter().enumerate() {
            let path = rows.item(index);
            self.state(path.member("state"), row.state);
            self.event(path.member("event"), row.event);
            let event_values = self.event_values(row.event);
            let mut before = None;
            for (index, (condition, _)) in row.when.iter().enumerate() {
                let when = path.member("when");
                let when = when.item(index);
                let number = usize::from(*condition);
                if before.is_some_and(|before| before >= *condition) {
                    self.report.add(
                        when,
                        format_args!("condition {condition} stands too late"),
                        "use increasing indexes",
                    );
                }
                before = Some(*condition);
                if self.report.index(when, "condition", number, self.image.conditions.len()) {
                    let condition = &self.image.conditions[number];
                    self.event_value(when, &condition.left, event_values);
                    self.event_value(when, &condition.right, event_values);
                }
            }
            self.operations(path.member("operations"), &row.operations, Place { event_values, preparation: false });
            if usize::from(row.source) > self.image.debug.sources.len() {
                let problem = format_args!("there is no source {}", row.source);
                self.report.add(path.member("source"), problem, "sources count from 1; 0 is the main one");
            }
            if let Some(next) = row.next {
                self.state(path.member("next"), next);
            }
            if let Some(raise) = row.raise {
                let raise_path = path.member("raise");
                self.internal_event(raise_path, raise);
                if let Event::Internal(handled) = row.event
                    && raise <= handled
                {
                    let then = self.image.repeat_of(row.state, raise).map(|index| self.image.repeats[index].then);
                    if then.is_none_or(|then| then <= handled) {
                        let problem = format_args!("internal event {raise} raised from internal event {handled}");
                        let remedy = "raise a greater number than the one handled, or one that `repeats` has, with a greater `then`";
                        self.report.add(raise_path, problem, remedy);
                    }
                }
            }
        }
    }

    fn operations(&mut self, path: Path<'_>, operations: &[Operation], place: Place) {
        self.report.at_most(path, self.image.written_out_length(operations), MAX_OPERATIONS);
        for (index, operation) in operations.iter().enumerate() {
            let item = path.item(index);
            if place.preparation && !operation.is_pure() && !matches!(operation, Operation::Run { .. }) {
                self.report.add(
                    item,
                    "an action in a preparation",
                    "use `compute`, `mul_div`, `lookup` and `query` only",
                );
            }
            self.operation(item, operation, place);
        }
    }

    fn operation(&mut self, path: Path<'_>, operation: &Operation, place: Place) {
        let values = place.event_values;
        match operation {
            Operation::Compute { operator, register, left, right } => {
                self.target(path.member("register"), *register, place);
                self.operand(path.member("left"), left, values);
                self.operand(path.member("right"), right, values);
                if *operator == Operator::Random && (left, right) != (&Operand::Constant(0), &Operand::Constant(0)) {
                    self.report.add(path, "`random` with operands", "it uses none: make them constants 0");
                }
            }
            Operation::MulDiv { register, left, right, divisor } => {
                self.target(path.member("register"), *register, place);
                self.operand(path.member("left"), left, values);
                self.operand(path.member("right"), right, values);
                self.operand(path.member("divisor"), divisor, values);
            }
            Operation::Lookup { table, register, index } => {
                let table = usize::from(*table);
                self.report.index(path.member("table"), "table", table, self.image.tables.len());
                self.target(path.member("register"), *register, place);
                self.operand(path.member("index"), index, values);
            }
            Operation::Element { register, first, count, index } => {
                self.target(path.member("register"), *register, place);
                self.row_of_registers(path, *first, *count);
                self.operand(path.member("index"), index, values);
            }
            Operation::SetElement { first, count, index, value } => {
                self.row_of_registers(path, *first, *count);
                self.operand(path.member("index"), index, values);
                self.operand(path.member("value"), value, values);
            }
            Operation::SetField { packet, field, value, .. } => {
                self.packet(path.member("packet"), *packet);
                self.written_field(path.member("field"), *field);
                self.operand(path.member("value"), value, values);
            }
            Operation::Resize { packet, length } => {
                self.packet(path.member("packet"), *packet);
                self.operand(path.member("length"), length, values);
            }
            Operation::Cut { packet, size } => {
                self.packet(path.member("packet"), *packet);
                self.operand(path.member("size"), size, values);
            }
            Operation::Reverse { packet } => self.packet(path.member("packet"), *packet),
            Operation::KeepOptions { packet, kinds } => {
                self.packet(path.member("packet"), *packet);
                let path = path.member("kinds");
                self.report.at_most(path, kinds.len(), MAX_TESTS);
                for (index, kind) in kinds.iter().enumerate().filter(|(_, kind)| **kind < 2) {
                    let problem = format_args!("kind {kind} is padding");
                    self.report.add(path.item(index), problem, "list kinds from 2 on");
                }
            }
            Operation::Copy { from, to } => {
                self.packet(path.member("from"), *from);
                self.stored_packet(path.member("to"), *to);
            }
            Operation::Build { template, to, options } => {
                let template = usize::from(*template);
                let options_path = path.member("options");
                if self.report.index(path.member("template"), "template", template, self.image.templates.len()) {
                    let count = self.image.templates[template].tcp_options.len();
                    if !options.is_empty() && options.len() != count {
                        let problem = format_args!("{} values", options.len());
                        self.report.add(options_path, problem, format_args!("none, or {count}: one for each option"));
                    }
                }
                for (index, value) in options.iter().enumerate() {
                    self.operand(options_path.item(index), value, values);
                }
                self.stored_packet(path.member("to"), *to);
            }
            Operation::Discard { packet } => self.stored_packet(path.member("packet"), *packet),
            Operation::Send { packet, port } => {
                self.packet(path.member("packet"), *packet);
                self.operand(path.member("port"), port, values);
            }
            Operation::SetTimer { timer, delay, payload } => {
                self.operand(path.member("delay"), delay, values);
                let payload_path = path.member("payload");
                if let Some(carried) = self.timer(path.member("timer"), *timer)
                    && carried != payload.len()
                {
                    let problem = format_args!("{} values", payload.len());
                    self.report.add(payload_path, problem, format_args!("the timer carries {carried}"));
                }
                for (index, value) in payload.iter().enumerate() {
                    self.operand(payload_path.item(index), value, values);
                }
            }
            Operation::CancelTimer { timer, tests } => {
                self.timer_tests(path, *timer, tests);
                for (index, test) in tests.iter().enumerate() {
                    self.operand(path.member("tests").item(index).member("right"), &test.right, values);
                }
            }
            Operation::MoveTimer { timer, delay, tests } => {
                self.operand(path.member("delay"), delay, values);
                self.timer_tests(path, *timer, tests);
                for (index, test) in tests.iter().enumerate() {
                    self.operand(path.member("tests").item(index).member("right"), &test.right, values);
                }
            }
            Operation::Ask { turns, rank, cost } => {
                self.turns_index(path.member("turns"), *turns);
                self.operand(path.member("rank"), rank, values);
                self.operand(path.member("cost"), cost, values);
            }
            Operation::Withdraw { turns } => self.turns_index(path.member("turns"), *turns),
            Operation::AppendData { packet, offset, length } => {
                self.stored_packet(path.member("packet"), *packet);
                self.operand(path.member("offset"), offset, values);
                self.operand(path.member("length"), length, values);
            }
            Operation::ReleaseData { length } => self.operand(path.member("length"), length, values),
            Operation::Deliver { packet, offset, length } => {
                self.packet(path.member("packet"), *packet);
                self.operand(path.member("offset"), offset, values);
                self.operand(path.member("length"), length, values);
            }
            Operation::Notify { notice, value } => {
                let notice = usize::from(*notice);
                self.report.index(path.member("notice"), "notice", notice, self.image.notices.len());
                self.operand(path.member("value"), value, values);
            }
            Operation::Begin { .. }
            | Operation::Trim { .. }
            | Operation::AddRange { .. }
            | Operation::Hold { .. }
            | Operation::DeliverHeld { .. }
            | Operation::AppendSegment { .. }
            | Operation::SplitSegment { .. }
            | Operation::ChangeSegments { .. }
            | Operation::Query { .. } => self.store_operation(path, operation, place),
            Operation::DeleteInstance | Operation::RestartInstance => {}
            Operation::Snapshot { point } => {
                let point = usize::from(*point);
                self.report.index(path.member("point"), "debug point", point, self.image.debug.points.len());
            }
            Operation::Run { block } => self.run(path.member("block"), *block, place),
        }
    }

    /// Sees that an array lies among the registers that a flow keeps.
    fn row_of_registers(&mut self, path: Path<'_>, first: u16, count: u16) {
        let end = usize::from(first) + usize::from(count);
        let registers = self.image.registers.get(usize::from(first)..end).filter(|_| count > 0);
        let problem = match registers {
            None => "no such row of registers",
            Some(found) if found.iter().any(|register| register.scratch) => "a row with scratch registers",
            Some(_) => return,
        };
        let many = self.image.registers.len();
        let remedy = format_args!("use 1 or more of the {many} registers, none of them scratch");
        self.report.add(path.member("count"), problem, remedy);
    }

    pub(super) fn operand(&mut self, path: Path<'_>, operand: &Operand, event_values: u8) {
        match *operand {
            Operand::Register(register) => {
                let register = usize::from(register);
                self.report.index(path.member("register"), "register", register, self.image.registers.len());
            }
            Operand::Field { packet, field } => {
                let path = path.member("field");
                self.packet(path.member("packet"), packet);
                self.value_field(path.member("field"), field);
            }
            Operand::Present { packet, field } => {
                let path = path.member("present");
                self.packet(path.member("packet"), packet);
                self.report.index(path.member("field"), "field", usize::from(field), self.image.fields.len());
            }
            Operand::Event(_) => self.event_value(path, operand, event_values),
            Operand::Environment(Environment::Waiting(turns)) => {
                self.turns_index(path.member("environment").member("waiting"), turns);
            }
            Operand::Environment(Environment::Tally(tally)) => {
                let path = path.member("environment");
                self.report.index(path.member("tally"), "tally", usize::from(tally), self.image.tallies.len());
            }
            Operand::Constant(_) | Operand::Environment(_) => {}
        }
    }

    /// Checks an operand that reads a value of the event against how many the event carries.
    fn event_value(&mut self, path: Path<'_>, operand: &Operand, event_values: u8) {
        if let Operand::Event(value) = operand {
            self.report.index(path, "value of this event", usize::from(*value), usize::from(event_values));
        }
    }

    /// How many values an event carries. What happens within another event has that one's: at most four.
    fn event_values(&self, event: Event) -> u8 {
        match event {
            Event::Packet | Event::Icmp | Event::Internal(_) | Event::Enter | Event::Exit => MAX_TIMER_PAYLOAD as u8,
            Event::Timer(timer) => self.image.timers.get(usize::from(timer)).map_or(0, |it| it.payload.len() as u8),
            Event::Data | Event::Read => 1,
            Event::Turn(_) | Event::Connect | Event::Close | Event::Abort | Event::Set | Event::Expire => 0,
        }
    }

    fn event(&mut self, path: Path<'_>, event: Event) {
        match event {
            Event::Timer(timer) => {
                self.timer(path.member("timer"), timer);
            }
            Event::Turn(turns) => self.turns_index(path.member("turn"), turns),
            Event::Internal(number) => self.internal_event(path.member("internal"), number),
            Event::Packet
            | Event::Connect
            | Event::Close
            | Event::Data
            | Event::Enter
            | Event::Exit
            | Event::Abort
            | Event::Read
            | Event::Icmp
            | Event::Set
            | Event::Expire => {}
        }
    }

    fn internal_event(&mut self, path: Path<'_>, number: u16) {
        let count = usize::from(self.image.internal_events);
        self.report.index(path, "internal event", usize::from(number), count);
    }

    /// Checks a timer's index; returns how many values the timer carries.
    fn timer(&mut self, path: Path<'_>, timer: u8) -> Option<usize> {
        let timer = usize::from(timer);
        let good = self.report.index(path, "timer", timer, self.image.timers.len());
        good.then(|| self.image.timers[timer].payload.len())
    }

    /// Checks a timer and what tests of its settings name; returns how many values the timer carries.
    pub(super) fn timer_tests(&mut self, path: Path<'_>, timer: u8, tests: &[PayloadTest]) -> Option<usize> {
        let carried = self.timer(path.member("timer"), timer);
        let tests_path = path.member("tests");
        self.tests(tests_path, tests);
        for (index, test) in tests.iter().enumerate().filter(|_| carried.is_some()) {
            let item = tests_path.item(index);
            self.report.index(
                item.member("value"),
                "value of this timer",
                usize::from(test.value),
                carried.unwrap_or(0),
            );
        }
        carried
    }

    /// How many tests there are, and of which widths.
    pub(super) fn tests(&mut self, path: Path<'_>, tests: &[PayloadTest]) {
        use crate::types::Comparison::{SeqGe, SeqGt, SeqLe, SeqLt};
        self.report.at_most(path, tests.len(), MAX_TESTS);
        for (index, PayloadTest { comparison, bits, .. }) in tests.iter().enumerate() {
            let known: &[u8] =
                if matches!(comparison, SeqLt | SeqLe | SeqGt | SeqGe) { &[16, 24, 32, 64] } else { &[32] };
            if !known.contains(bits) {
                let expected = format_args!("use one of {known:?}");
                self.report.add(path.item(index).member("bits"), format_args!("{bits} bits"), expected);
            }
        }
    }

    fn turns_index(&mut self, path: Path<'_>, turns: u8) {
        self.report.index(path, "turns", usize::from(turns), self.image.turns.len());
    }

    fn state(&mut self, path: Path<'_>, state: u16) {
        self.report.index(path, "state", usize::from(state), self.image.states.len());
    }

    /// A register that an operation writes: in a preparation a scratch one.
    pub(super) fn target(&mut self, path: Path<'_>, register: u16, place: Place) {
        let register = usize::from(register);
        let good = self.report.index(path, "register", register, self.image.registers.len());
        if good && place.preparation && !self.image.registers[register].scratch {
            let problem = format_args!("a preparation writes register {register}, which is stored");
            self.report.add(path, problem, "write scratch registers only");
        }
    }

    pub(super) fn packet(&mut self, path: Path<'_>, packet: PacketRef) {
        if let PacketRef::Slot(slot) = packet {
            self.slot(path.member("slot"), slot);
        }
    }

    /// A packet that an operation puts somewhere: `work` or a slot.
    fn stored_packet(&mut self, path: Path<'_>, packet: PacketRef) {
        if packet == PacketRef::Current {
            self.report.add(path, "`current` is the packet being handled", "use `work` or a slot");
        }
        self.packet(path, packet);
    }

    pub(super) fn slot(&mut self, path: Path<'_>, slot: u8) {
        self.report.index(path, "slot", usize::from(slot), self.image.slots.len());
    }
}
