//! Operands, conditions and operations of an image in the words a person would use.
//!
//! Scratch registers are temporaries of the compiler. Wherever the value is still the one the preparation or the row
//! computed, the defining expression stands in their place.

use crate::types::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// An expression longer than this many operands keeps its register's name.
const LONGEST_EXPRESSION: usize = 6;

/// An expression, kept as a tree so that it can be negated and bracketed.
#[derive(Clone, Debug)]
enum Expression {
    /// A name or a number.
    Leaf(String),
    /// A truth value, with the words for both cases.
    Truth { yes: String, no: String },
    /// A constant, written as its neighbour asks for.
    Constant(i64),
    /// An infix operator.
    Infix { operator: &'static str, rank: u8, left: Box<Expression>, right: Box<Expression> },
    /// A comparison.
    Compare { comparison: Comparison, left: Box<Expression>, right: Box<Expression> },
    /// A named function.
    Call { name: &'static str, arguments: Vec<Expression> },
}

/// How a constant is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Duration,
    Ipv4,
    Mac,
    Bits,
}

impl Expression {
    fn rank(&self) -> u8 {
        match self {
            Expression::Infix { rank, .. } => *rank,
            Expression::Compare { .. } => 1,
            Expression::Truth { .. } => 2,
            _ => 10,
        }
    }

    fn weight(&self) -> usize {
        match self {
            Expression::Leaf(_) | Expression::Truth { .. } | Expression::Constant(_) => 1,
            Expression::Infix { left, right, .. } | Expression::Compare { left, right, .. } => {
                left.weight() + right.weight()
            }
            Expression::Call { arguments, .. } => arguments.iter().map(Expression::weight).sum::<usize>().max(1),
        }
    }

    /// The expression as text; constants directly in it are written in `style`.
    fn text(&self, style: Style) -> String {
        match self {
            Expression::Leaf(name) => name.clone(),
            Expression::Truth { yes, .. } => yes.clone(),
            Expression::Constant(value) => constant(*value, style),
            Expression::Infix { operator, rank, left, right } => {
                let inner = match *operator {
                    "&" | "|" | "^" => Style::Bits,
                    "+" | "-" => style,
                    _ => Style::Plain,
                };
                // Nobody knows the ranks of bit operators by heart: around them all is bracketed.
                let bits = matches!(*operator, "&" | "|" | "^" | "<<" | ">>");
                let (for_left, for_right) = if bits { (10, 10) } else { (*rank, *rank + 1) };
                format!("{} {operator} {}", left.bracketed(for_left, inner), right.bracketed(for_right, inner))
            }
            Expression::Compare { comparison, left, right } => {
                let (left, right) = (left.bracketed(2, style), right.bracketed(2, style));
                match comparison {
                    Comparison::Eq => format!("{left} == {right}"),
                    Comparison::Ne => format!("{left} != {right}"),
                    Comparison::Lt => format!("{left} < {right}"),
                    Comparison::Le => format!("{left} <= {right}"),
                    Comparison::Gt => format!("{left} > {right}"),
                    Comparison::Ge => format!("{left} >= {right}"),
                    Comparison::LtUnsigned => format!("unsigned {left} < {right}"),
                    Comparison::LeUnsigned => format!("unsigned {left} <= {right}"),
                    Comparison::GtUnsigned => format!("unsigned {left} > {right}"),
                    Comparison::GeUnsigned => format!("unsigned {left} >= {right}"),
                    Comparison::SeqLt => format!("{left} before {right}"),
                    Comparison::SeqLe => format!("{left} at or before {right}"),
                    Comparison::SeqGt => format!("{left} after {right}"),
                    Comparison::SeqGe => format!("{left} at or after {right}"),
                }
            }
            Expression::Call { name, arguments } => {
                let inner = if *name == "hash" { Style::Plain } else { style };
                let arguments: Vec<String> = arguments.iter().map(|argument| argument.text(inner)).collect();
                format!("{name}({})", arguments.join(", "))
            }
        }
    }

    fn bracketed(&self, at_least: u8, style: Style) -> String {
        let text = self.text(style);
        if self.rank() < at_least { format!("({text})") } else { text }
    }

    /// What is so when the expression's truth value is `value`.
    fn holds(&self, value: bool, style: Style) -> String {
        match self {
            Expression::Truth { yes, no } => if value { yes } else { no }.clone(),
            Expression::Compare { comparison, left, right } if !value => match opposite(*comparison) {
                Some(comparison) => {
                    Expression::Compare { comparison, left: left.clone(), right: right.clone() }.text(style)
                }
                None => format!("not ({})", self.text(style)),
            },
            _ if value => self.text(style),
            _ => format!("not ({})", self.text(style)),
        }
    }

    fn is_truth(&self) -> bool {
        matches!(self, Expression::Truth { .. } | Expression::Compare { .. })
    }
}

/// The comparison that holds exactly when this one does not. Sequence numbers have none: at a distance of 2^31 both
/// orders hold.
fn opposite(comparison: Comparison) -> Option<Comparison> {
    Some(match comparison {
        Comparison::Eq => Comparison::Ne,
        Comparison::Ne => Comparison::Eq,
        Comparison::Lt => Comparison::Ge,
        Comparison::Le => Comparison::Gt,
        Comparison::Gt => Comparison::Le,
        Comparison::Ge => Comparison::Lt,
        Comparison::LtUnsigned => Comparison::GeUnsigned,
        Comparison::LeUnsigned => Comparison::GtUnsigned,
        Comparison::GtUnsigned => Comparison::LeUnsigned,
        Comparison::GeUnsigned => Comparison::LtUnsigned,
        Comparison::SeqLt | Comparison::SeqLe | Comparison::SeqGt | Comparison::SeqGe => return None,
    })
}

fn constant(value: i64, style: Style) -> String {
    match style {
        Style::Plain => value.to_string(),
        Style::Duration => duration(value),
        Style::Ipv4 => match u32::try_from(value) {
            Ok(bits) => std::net::Ipv4Addr::from(bits).to_string(),
            Err(_) => value.to_string(),
        },
        Style::Mac => value.to_be_bytes()[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"),
        Style::Bits if value > 9 => format!("{value:#x}"),
        Style::Bits => value.to_string(),
    }
}

/// Nanoseconds in the largest unit that divides them: `200 ms`.
pub(crate) fn duration(nanoseconds: i64) -> String {
    for (unit, length) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if nanoseconds != 0 && nanoseconds % length == 0 {
            return format!("{} {unit}", nanoseconds / length);
        }
    }
    if nanoseconds == 0 { "0 s".into() } else { format!("{nanoseconds} ns") }
}

/// The name of a TCP option kind.
pub(crate) fn option_name(kind: u8) -> String {
    match kind {
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
        row.operations.iter().filter_map(|operation| self.operation(operation)).collect()
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
            Operation::Lookup { table, register, index } => {
                let reads = self.reads(&[*index]);
                let name = name(self.image.tables.get(usize::from(*table)).map(|table| &table.name), "table", *table);
                let expression = Expression::Leaf(format!("{name}[{}]", self.value(index)));
                return self.define(*register, expression, Style::Plain, reads);
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
            Operation::Build { template, to } => {
                self.changed_packet(*to);
                let template = self.template(*template);
                format!("{} := new {template}", self.packet(*to))
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
                let tests: Vec<String> = tests
                    .iter()
                    .map(|test| {
                        let left = Expression::Leaf(self.payload_name(*timer, usize::from(test.value)));
                        comparison(test.comparison, left, self.operand(&test.right)).text(Style::Plain)
                    })
                    .collect();
                let which = if tests.is_empty() { String::new() } else { format!(" where {}", tests.join(" and ")) };
                format!("cancel timer {}{which}", self.timer(*timer))
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
            Operation::DeleteInstance => "delete the flow".into(),
            Operation::Snapshot { point } => {
                format!("snapshot {}", name(self.image.debug.points.get(usize::from(*point)), "point", *point))
            }
        })
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
                    Environment::Flow => "flow.id",
                    Environment::FlowHash => "flow.hash",
                    Environment::ApplicationAvailable => "application.available",
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
                    RegisterType::U16 => 16,
                    RegisterType::U32 | RegisterType::Seq32 | RegisterType::Ipv4 => 32,
                    RegisterType::Mac => 48,
                    RegisterType::U64 | RegisterType::I64 | RegisterType::Time => 64,
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

    fn payload_name(&self, timer: u8, index: usize) -> String {
        let declared = self.image.timers.get(usize::from(timer)).and_then(|found| found.payload.get(index));
        declared.cloned().unwrap_or_else(|| format!("value {index}"))
    }

    fn template(&self, template: u16) -> String {
        name(self.image.templates.get(usize::from(template)).map(|found| &found.name), "template", template)
    }
}

/// The operations of the preparation of (state, event).
pub(crate) fn preparation(image: &Image, state: u16, event: Event) -> &[Operation] {
    let found = image.preparations.iter().find(|entry| entry.state == state && entry.event == event);
    found.map_or(&[], |entry| &entry.operations)
}

/// A name, or the kind and number of something an image names but does not have.
fn name(found: Option<&String>, kind: &str, index: u16) -> String {
    found.cloned().unwrap_or_else(|| format!("{kind} {index}"))
}

/// A comparison; a truth value compared with 0 or 1 is said directly.
fn comparison(comparison: Comparison, left: Expression, right: Expression) -> Expression {
    let asks = match (&right, comparison) {
        (Expression::Constant(value @ (0 | 1)), Comparison::Eq) if left.is_truth() => Some(*value == 1),
        (Expression::Constant(value @ (0 | 1)), Comparison::Ne) if left.is_truth() => Some(*value == 0),
        _ => None,
    };
    match asks {
        Some(true) => left,
        Some(false) => match left {
            Expression::Truth { yes, no } => Expression::Truth { yes: no, no: yes },
            Expression::Compare { comparison: inner, left: a, right: b } => match opposite(inner) {
                Some(inner) => Expression::Compare { comparison: inner, left: a, right: b },
                None => {
                    let positive = Expression::Compare { comparison: inner, left: a, right: b }.text(Style::Plain);
                    Expression::Truth { yes: format!("not ({positive})"), no: positive }
                }
            },
            other => Expression::Compare {
                comparison: Comparison::Eq,
                left: Box::new(other),
                right: Box::new(Expression::Constant(0)),
            },
        },
        None => Expression::Compare { comparison, left: Box::new(left), right: Box::new(right) },
    }
}

/// The expression of a `compute`; adding nothing is said as a plain move.
fn compute(operator: Operator, left: Expression, right: Expression) -> Expression {
    let zero = |side: &Expression| matches!(side, Expression::Constant(0));
    if matches!(operator, Operator::Add | Operator::Sub | Operator::Or | Operator::Xor) && zero(&right) {
        return left;
    }
    if matches!(operator, Operator::Add | Operator::Or | Operator::Xor) && zero(&left) {
        return right;
    }
    let truth = left.is_truth() && (right.is_truth() || matches!(right, Expression::Constant(0 | 1)));
    let infix = |symbol, rank| (Some((symbol, rank)), None, "");
    let compare = |comparison| (None, Some(comparison), "");
    let call = |name| (None, None, name);
    let (infix, compared, name) = match operator {
        Operator::Add => infix("+", 8),
        Operator::Sub => infix("-", 8),
        Operator::Mul => infix("*", 9),
        Operator::Div => infix("/", 9),
        Operator::Rem => infix("%", 9),
        Operator::And if truth => infix("and", 0),
        Operator::Or if truth => infix("or", 0),
        Operator::And => infix("&", 6),
        Operator::Or => infix("|", 4),
        Operator::Xor => infix("^", 5),
        Operator::Shl => infix("<<", 7),
        Operator::Shr => infix(">>", 7),
        Operator::ShrSigned => call("shift_right_signed"),
        Operator::DivUnsigned => call("divide_unsigned"),
        Operator::RemUnsigned => call("remainder_unsigned"),
        Operator::Min => call("min"),
        Operator::Max => call("max"),
        Operator::MinUnsigned => call("min_unsigned"),
        Operator::MaxUnsigned => call("max_unsigned"),
        Operator::SeqMin => call("seq_min"),
        Operator::SeqMax => call("seq_max"),
        Operator::SeqDistance => call("seq_distance"),
        Operator::Hash => call("hash"),
        Operator::Random => return Expression::Leaf("random()".into()),
        Operator::Eq => compare(Comparison::Eq),
        Operator::Ne => compare(Comparison::Ne),
        Operator::Lt => compare(Comparison::Lt),
        Operator::Le => compare(Comparison::Le),
        Operator::LtUnsigned => compare(Comparison::LtUnsigned),
        Operator::LeUnsigned => compare(Comparison::LeUnsigned),
        Operator::SeqLt => compare(Comparison::SeqLt),
        Operator::SeqLe => compare(Comparison::SeqLe),
    };
    match (infix, compared) {
        (Some((operator, rank)), _) => {
            Expression::Infix { operator, rank, left: Box::new(left), right: Box::new(right) }
        }
        (None, Some(which)) => comparison(which, left, right),
        (None, None) => Expression::Call { name, arguments: vec![left, right] },
    }
}
