//! Operands, conditions and operations of an image in the words a person would use.
//!
//! Scratch registers are temporaries of the compiler. Wherever the value is still the one the preparation or the row
//! computed, the defining expression stands in their place.

use crate::expression::{Expression, Style, comparison, compute};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use weftwire_image::chains::preparation;
use weftwire_image::registers::element_of;
use weftwire_image::*;

/// An expression longer than this many operands keeps its register's name.
const LONGEST_EXPRESSION: usize = 6;

/// The name of a TCP option kind.
pub(crate) fn option_name(kind: u8) -> String {
    match kind {
        1 => "nop".into(),
        2 => "mss".into(),
        3 => "window_scale".into(),
        4 => "sack_permitted".into(),
        5 => "sack".into(),
        8 => "timestamps".into(),
        _ => format!("option {kind}"),
    }
}

/// A scratch register's value as it was computed.
struct Definition {
    register: u16,
    expression: Expression,
    style: Style,
    /// What the expression reads, through other scratch registers too.
    reads: Vec<Operand>,
    /// Something it reads has changed since.
    stale: bool,
}

/// The words for one (state, event): what its preparation defines and what the event carries.
pub(crate) struct Phrases<'a> {
    image: &'a Image,
    values: Vec<String>,
    definitions: Vec<Definition>,
    current: BTreeMap<u16, usize>,
    /// Definitions that keep their register's name.
    named: BTreeSet<usize>,
}

impl<'a> Phrases<'a> {
    /// The words for `event` in `state`. `values` are the names of the event's values.
    pub(crate) fn new(image: &'a Image, state: u16, event: Event, values: Vec<String>) -> Phrases<'a> {
        let mut phrases =
            Phrases { image, values, definitions: Vec::new(), current: BTreeMap::new(), named: BTreeSet::new() };
        for operation in preparation(image, state, event) {
            phrases.operation(operation);
        }
        phrases
    }

    /// Definitions of the preparation that are too long to stand in place, as `name = expression`.
    pub(crate) fn where_lines(&self) -> Vec<String> {
        self.named.iter().filter_map(|at| self.definitions.get(*at)).map(|found| self.assignment(found)).collect()
    }

    /// What a row asks of a condition.
    pub(crate) fn condition(&mut self, index: u16, value: bool) -> String {
        let Some(condition) = self.image.conditions.get(usize::from(index)) else {
            return format!("condition {index} is {value}");
        };
        let style = self.style_of(&condition.left).or_else(|| self.style_of(&condition.right));
        let (left, right) = (self.operand(&condition.left), self.operand(&condition.right));
        comparison(condition.comparison, left, right).holds(value, style.unwrap_or(Style::Plain))
    }

    /// A row's operations as statements, oldest first. `live` are the scratch registers that the internal event it
    /// raises will read.
    pub(crate) fn statements(&mut self, row: &Row, live: &BTreeSet<u16>) -> Vec<String> {
        let prepared = self.definitions.len();
        let before = (self.current.clone(), self.named.clone());
        // The first walk finds the definitions that are read after something in them has changed.
        self.walk(row);
        let late: Vec<usize> = live.iter().filter_map(|register| self.current.get(register)).copied().collect();
        self.named.extend(late);
        self.restart(prepared, before.0.clone());
        // The second walk writes the statements, these definitions by name.
        let mut lines: Vec<String> = self
            .named
            .difference(&before.1)
            .filter(|at| **at < prepared)
            .map(|at| self.assignment(&self.definitions[*at]))
            .collect();
        lines.extend(self.walk(row));
        self.restart(prepared, before.0);
        self.named = before.1;
        lines
    }

    fn walk(&mut self, row: &Row) -> Vec<String> {
        self.image.written_out(&row.operations).filter_map(|operation| self.operation(operation)).collect()
    }

    fn restart(&mut self, prepared: usize, current: BTreeMap<u16, usize>) {
        self.definitions.truncate(prepared);
        self.definitions.iter_mut().for_each(|definition| definition.stale = false);
        self.current = current;
    }

    fn assignment(&self, definition: &Definition) -> String {
        format!("{} := {}", self.register(definition.register), definition.expression.text(definition.style))
    }

    /// The statement for an operation; `None` if it only defines a scratch register that is shown in place.
    fn operation(&mut self, operation: &Operation) -> Option<String> {
        Some(match operation {
            Operation::Compute { operator, register, left, right } => {
                let style = self.register_style(*register).or(self.style_of(left)).or(self.style_of(right));
                let reads = self.reads(&[*left, *right]);
                let mut expression = self.operand(left);
                if *operator != Operator::And || !self.is_whole_mask(left, right) {
                    expression = compute(*operator, expression, self.operand(right));
                }
                return self.define(*register, expression, style.unwrap_or(Style::Plain), reads);
            }
            Operation::MulDiv { register, left, right, divisor } => {
                let style = self.register_style(*register).or(self.style_of(left)).or(self.style_of(right));
                let reads = self.reads(&[*left, *right, *divisor]);
                let values = [left, right, divisor].map(|operand| self.value(operand));
                let expression = Expression::Leaf(format!("muldiv({})", values.join(", ")));
                return self.define(*register, expression, style.unwrap_or(Style::Plain), reads);
            }
            Operation::Lookup { table, register, index } => {
                let reads = self.reads(&[*index]);
                let name = name(self.image.tables.get(usize::from(*table)).map(|table| &table.name), "table", *table);
                let expression = Expression::Leaf(format!("{name}[{}]", self.value(index)));
                return self.define(*register, expression, Style::Plain, reads);
            }
            Operation::Element { register, first, count, index } => {
                let reads = self.reads(&[*index]);
                let text = self.element(*first, *count, index);
                // What it reads may change behind it: it keeps its name.
                self.named.insert(self.definitions.len());
                let style = self.register_style(*first).unwrap_or(Style::Plain);
                return self.define(*register, Expression::Leaf(text), style, reads);
            }
            Operation::SetElement { first, count, index, value } => {
                let style = self.register_style(*first).unwrap_or(Style::Plain);
                let (element, value) = (self.element(*first, *count, index), self.operand(value).text(style));
                let row = *first..first.saturating_add(*count);
                self.changed(|read| matches!(read, Operand::Register(register) if row.contains(register)));
                format!("{element} := {value}")
            }
            Operation::SetField { packet, field, value, optional } => {
                let condition = if *optional { " if present" } else { "" };
                let style = self.field_style(*field).unwrap_or(Style::Plain);
                let value = self.operand(value).text(style);
                self.changed_packet(*packet);
                format!("{} := {value}{condition}", self.field(*packet, *field))
            }
            Operation::Resize { packet, length } => {
                let length = self.value(length);
                self.changed_packet(*packet);
                format!("resize the payload of {} to {length} bytes", self.packet(*packet))
            }
            Operation::Cut { packet, size } => {
                let size = self.value(size);
                self.changed_packet(*packet);
                format!("cut {} to segments of {size} bytes", self.packet(*packet))
            }
            Operation::Reverse { packet } => {
                self.changed_packet(*packet);
                format!("reverse {}", self.packet(*packet))
            }
            Operation::KeepOptions { packet, kinds } => {
                self.changed_packet(*packet);
                let kinds: Vec<String> = kinds.iter().map(|kind| option_name(*kind)).collect();
                let kinds = if kinds.is_empty() { "no TCP options".into() } else { kinds.join(", ") };
                format!("keep of the TCP options of {} only {kinds}", self.packet(*packet))
            }
            Operation::Copy { from, to } => {
                self.changed_packet(*to);
                format!("{} := copy of {}", self.packet(*to), self.packet(*from))
            }
            Operation::Build { template, to, options } => {
                let kinds =
                    self.image.templates.get(usize::from(*template)).map_or(&[][..], |found| &found.tcp_options);
                let mut conditions = Vec::new();
                for (kind, wanted) in kinds.iter().zip(options).filter(|(_, wanted)| **wanted != Operand::Constant(1)) {
                    let wanted = self.value(wanted);
                    conditions.push(match *kind {
                        5 => format!("{wanted} blocks of sack"),
                        kind => format!("{} if {wanted}", option_name(kind)),
                    });
                }
                self.changed_packet(*to);
                let template = self.template(*template);
                let with =
                    if conditions.is_empty() { String::new() } else { format!(" with {}", conditions.join(", ")) };
                format!("{} := new {template}{with}", self.packet(*to))
            }
            Operation::Discard { packet } => {
                self.changed_packet(*packet);
                format!("discard {}", self.packet(*packet))
            }
            Operation::Send { packet, port } => {
                format!("send {} to port {}", self.packet(*packet), self.operand(port).bracketed(2, Style::Plain))
            }
            Operation::SetTimer { timer, delay, payload } => {
                let mut text =
                    format!("set timer {} in {}", self.timer(*timer), self.operand(delay).text(Style::Duration));
                for (index, value) in payload.iter().enumerate() {
                    let joint = if index == 0 { " with" } else { "," };
                    let name = self.payload_name(*timer, index);
                    let _ = write!(text, "{joint} {name} = {}", self.value(value));
                }
                text
            }
            Operation::CancelTimer { timer, tests } => {
                format!("cancel timer {}{}", self.timer(*timer), self.which_settings(*timer, tests))
            }
            Operation::MoveTimer { timer, delay, tests } => {
                let (name, which) = (self.timer(*timer), self.which_settings(*timer, tests));
                match delay {
                    Operand::Constant(0) => format!("fire timer {name}{which}"),
                    _ => format!("move timer {name}{which} to in {}", self.operand(delay).text(Style::Duration)),
                }
            }
            Operation::AppendData { packet, offset, length } => {
                let (offset, length) = (self.value(offset), self.value(length));
                self.changed_packet(*packet);
                format!("append to {} the application's data, {length} bytes from {offset} on", self.packet(*packet))
            }
            Operation::ReleaseData { length } => {
                format!("release {} bytes of the application's data", self.operand(length).bracketed(2, Style::Plain))
            }
            Operation::Deliver { packet, offset, length } => {
                let (offset, length) = (self.value(offset), self.value(length));
                format!("deliver the payload of {}, {length} bytes from {offset} on", self.packet(*packet))
            }
            Operation::Notify { notice, value } => {
                let notice = name(self.image.notices.get(usize::from(*notice)), "notice", *notice);
                format!("notify {notice}({})", self.value(value))
            }
            Operation::Query { register, query } => {
                let reads = self.reads(&operation.operands().into_iter().copied().collect::<Vec<Operand>>());
                let image = self.image;
                let text = image.query_text(
                    query,
                    &mut Words { value: &mut |operand| self.value(operand), packet: &|_| String::new() },
                );
                // What it reads may change behind it: it keeps its name.
                self.named.insert(self.definitions.len());
                return self.define(*register, Expression::Leaf(text), Style::Plain, reads);
            }
            Operation::Ask { turns, rank, cost } => {
                let text = format!(
                    "ask {} rank {} for {}",
                    self.turns(*turns),
                    self.value(rank),
                    self.operand(cost).text(Style::Duration)
                );
                self.changed(|read| *read == Operand::Environment(Environment::Waiting(*turns)));
                text
            }
            Operation::Withdraw { turns } => {
                self.changed(|read| *read == Operand::Environment(Environment::Waiting(*turns)));
                format!("withdraw {}", self.turns(*turns))
            }
            Operation::DeleteInstance => "delete the flow".into(),
            Operation::RestartInstance => "delete the flow; the packet begins a new one".into(),
            Operation::Snapshot { point } => {
                format!("snapshot {}", name(self.image.debug.points.get(usize::from(*point)), "point", *point))
            }
            Operation::Run { block } => format!("run block {block}"),
            other => {
                let image = self.image;
                let packet = match other {
                    Operation::Hold { packet, .. } => self.packet(*packet),
                    _ => String::new(),
                };
                image.store_text(
                    other,
                    &mut Words { value: &mut |operand| self.value(operand), packet: &|_| packet.clone() },
                )
            }
        })
    }

    fn turns(&self, turns: u8) -> String {
        name(self.image.turns.get(usize::from(turns)).map(|it| &it.name), "turns", turns.into())
    }

    /// A register gets a value. Scratch registers are remembered, others written.
    fn define(&mut self, register: u16, expression: Expression, style: Style, reads: Vec<Operand>) -> Option<String> {
        self.changed(|read| *read == Operand::Register(register));
        if !self.is_scratch(register) {
            return Some(format!("{} := {}", self.register(register), expression.text(style)));
        }
        let at = self.definitions.len();
        if expression.weight() > LONGEST_EXPRESSION {
            self.named.insert(at);
        }
        // A definition that reads its own old value could not be read again in its place.
        let stale = reads.contains(&Operand::Register(register));
        self.definitions.push(Definition { register, expression, style, reads, stale });
        self.current.insert(register, at);
        self.named.contains(&at).then(|| self.assignment(&self.definitions[at]))
    }

    /// An element of an array, by the array's name: that of its first register in front of the bracket.
    fn element(&mut self, first: u16, count: u16, index: &Operand) -> String {
        let name = self.register(first);
        let array = element_of(&name).map_or(&*name, |(array, _)| array);
        let index = match index {
            Operand::Constant(constant) => constant.rem_euclid(count.max(1).into()).to_string(),
            index => self.value(index),
        };
        format!("{array}[{index}]")
    }

    fn changed(&mut self, is_changed: impl Fn(&Operand) -> bool) {
        for definition in &mut self.definitions {
            definition.stale |= definition.reads.iter().any(&is_changed);
        }
    }

    fn changed_packet(&mut self, changed: PacketRef) {
        self.changed(|read| {
            matches!(read, Operand::Field { packet, .. } | Operand::Present { packet, .. } if *packet == changed)
        });
    }

    /// The operands, and for a scratch register shown in place what its definition reads.
    fn reads(&self, operands: &[Operand]) -> Vec<Operand> {
        let mut reads = Vec::new();
        for operand in operands {
            match self.shown_in_place(operand) {
                Some(at) => reads.extend_from_slice(&self.definitions[at].reads),
                None => reads.push(*operand),
            }
        }
        reads
    }

    fn shown_in_place(&self, operand: &Operand) -> Option<usize> {
        let Operand::Register(register) = operand else { return None };
        let at = *self.current.get(register)?;
        (!self.named.contains(&at) && !self.definitions[at].stale).then_some(at)
    }

    fn value(&mut self, operand: &Operand) -> String {
        let style = self.style_of(operand).unwrap_or(Style::Plain);
        self.operand(operand).text(style)
    }

    fn operand(&mut self, operand: &Operand) -> Expression {
        match *operand {
            Operand::Register(register) => {
                if let Some(at) = self.shown_in_place(operand) {
                    return self.definitions[at].expression.clone();
                }
                self.named.extend(self.current.get(&register));
                let name = self.register(register);
                match self.image.registers.get(usize::from(register)) {
                    Some(found) if found.kind == RegisterType::Bool => {
                        Expression::Truth { no: format!("not {name}"), yes: name }
                    }
                    _ => Expression::Leaf(name),
                }
            }
            Operand::Constant(value) => Expression::Constant(value),
            Operand::Field { packet, field } => {
                let name = self.field(packet, field);
                match self.field_definition(field) {
                    Some(found) if found.width == 1 => Expression::Truth { no: format!("not {name}"), yes: name },
                    _ => Expression::Leaf(name),
                }
            }
            Operand::Present { packet, field } => {
                let name = self.field(packet, field);
                Expression::Truth { yes: format!("has {name}"), no: format!("lacks {name}") }
            }
            Operand::Event(index) => Expression::Leaf(
                self.values.get(usize::from(index)).cloned().unwrap_or_else(|| format!("event.{index}")),
            ),
            Operand::Environment(value) => Expression::Leaf(
                match value {
                    Environment::Now => "now",
                    Environment::NowMicroseconds => "now_us",
                    Environment::NowMilliseconds => "now_ms",
                    Environment::FlowHash => "flow.hash",
                    Environment::ApplicationAvailable => "application.available",
                    Environment::ApplicationRoom => "application.room",
                    Environment::ApplicationListening => {
                        return Expression::Truth {
                            yes: "application.listening".into(),
                            no: "not application.listening".into(),
                        };
                    }
                    Environment::Waiting(turns) => {
                        let turns = self.turns(turns);
                        return Expression::Truth {
                            yes: format!("{turns}.waiting"),
                            no: format!("not {turns}.waiting"),
                        };
                    }
                    Environment::Tally(tally) => {
                        let found = self.image.tallies.get(usize::from(tally)).map(|it| &it.name);
                        return Expression::Leaf(name(found, "tally", tally.into()));
                    }
                    Environment::FlowFull => {
                        return Expression::Truth { yes: "flow.full".into(), no: "not flow.full".into() };
                    }
                    Environment::ApplicationClosed => {
                        return Expression::Truth {
                            yes: "application.closed".into(),
                            no: "not application.closed".into(),
                        };
                    }
                }
                .into(),
            ),
        }
    }

    fn style_of(&self, operand: &Operand) -> Option<Style> {
        match operand {
            Operand::Register(register) => self.register_style(*register),
            Operand::Field { field, .. } => self.field_style(*field),
            Operand::Environment(Environment::Now) => Some(Style::Duration),
            _ => None,
        }
    }

    fn register_style(&self, register: u16) -> Option<Style> {
        match self.image.registers.get(usize::from(register))?.kind {
            RegisterType::Time => Some(Style::Duration),
            RegisterType::Ipv4 => Some(Style::Ipv4),
            RegisterType::Mac => Some(Style::Mac),
            _ => None,
        }
    }

    fn field_style(&self, field: u16) -> Option<Style> {
        let name = self.image.fields.get(usize::from(field))?;
        match self.field_definition(field)?.width {
            48 => Some(Style::Mac),
            32 if name.format == "ipv4" => Some(Style::Ipv4),
            _ if name.field == "flags" => Some(Style::Bits),
            _ => None,
        }
    }

    /// Whether `mask` is all ones and as wide as the values of `operand`, so that `&` changes nothing.
    fn is_whole_mask(&self, operand: &Operand, mask: &Operand) -> bool {
        let Operand::Constant(mask) = *mask else { return false };
        let mask = mask.cast_unsigned();
        let width = match *operand {
            Operand::Field { field, .. } => self.field_definition(field).map(|found| u32::from(found.width)),
            Operand::Present { .. } => Some(1),
            Operand::Register(register) => {
                let kind = self.image.registers.get(usize::from(register)).map(|found| found.kind);
                kind.map(|kind| match kind {
                    RegisterType::Bool => 1,
                    RegisterType::U8 => 8,
                    RegisterType::U16 | RegisterType::Seq16 => 16,
                    RegisterType::Seq24 => 24,
                    RegisterType::U32 | RegisterType::Seq32 | RegisterType::Ipv4 => 32,
                    RegisterType::Mac => 48,
                    RegisterType::U64 | RegisterType::Seq64 | RegisterType::I64 | RegisterType::Time => 64,
                })
            }
            _ => None,
        };
        mask & mask.wrapping_add(1) == 0 && width.is_some_and(|width| mask.trailing_ones() >= width)
    }

    fn field_definition(&self, field: u16) -> Option<&'a FormatField> {
        let name = self.image.fields.get(usize::from(field))?;
        let format = self.image.formats.iter().find(|format| format.name == name.format)?;
        format.fields.iter().find(|candidate| candidate.name == name.field)
    }

    fn field(&self, packet: PacketRef, field: u16) -> String {
        let name = match self.image.fields.get(usize::from(field)) {
            Some(name) => format!("{}.{}", name.format, name.field),
            None => format!("field {field}"),
        };
        match packet {
            PacketRef::Current => name,
            _ => format!("{}.{name}", self.packet(packet)),
        }
    }

    fn packet(&self, packet: PacketRef) -> String {
        match packet {
            PacketRef::Current => "packet".into(),
            PacketRef::Work => "work".into(),
            PacketRef::Slot(slot) => name(self.image.slots.get(usize::from(slot)), "slot", u16::from(slot)),
        }
    }

    fn register(&self, register: u16) -> String {
        name(self.image.registers.get(usize::from(register)).map(|found| &found.name), "register", register)
    }

    fn is_scratch(&self, register: u16) -> bool {
        self.image.registers.get(usize::from(register)).is_some_and(|found| found.scratch)
    }

    fn timer(&self, timer: u8) -> String {
        name(self.image.timers.get(usize::from(timer)).map(|found| &found.name), "timer", u16::from(timer))
    }

    /// Tests of a timer's settings, with the word in front; empty if there are none.
    fn which_settings(&mut self, timer: u8, tests: &[PayloadTest]) -> String {
        let test = |test: &PayloadTest| {
            let left = Expression::Leaf(self.payload_name(timer, usize::from(test.value)));
            comparison(test.comparison, left, self.operand(&test.right)).text(Style::Plain)
        };
        let tests: Vec<String> = tests.iter().map(test).collect();
        if tests.is_empty() { String::new() } else { format!(" where {}", tests.join(" and ")) }
    }

    fn payload_name(&self, timer: u8, index: usize) -> String {
        let declared = self.image.timers.get(usize::from(timer)).and_then(|found| found.payload.get(index));
        declared.cloned().unwrap_or_else(|| format!("value {index}"))
    }

    fn template(&self, template: u16) -> String {
        name(self.image.templates.get(usize::from(template)).map(|found| &found.name), "template", template)
    }
}

/// A name, or the kind and number of something an image names but does not have.
fn name(found: Option<&String>, kind: &str, index: u16) -> String {
    found.cloned().unwrap_or_else(|| format!("{kind} {index}"))
}
