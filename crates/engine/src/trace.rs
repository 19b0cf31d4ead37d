//! Trace records: what an event did, in words (semantics, rules D1 to D5).

use crate::run::Run;
use std::fmt::Write;
use weftwire_core::Output;
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_image::registers::element;
use weftwire_image::{Environment, Event, Operand, Operation, Operator, PacketRef, Words};

impl Run<'_> {
    /// Puts out the record of an event, with the registers that changed since `before`. Events that a change of state
    /// or a row brings with it are not worth a record if no row waits for them.
    pub(crate) fn trace_event(&mut self, event: Event, row: Option<usize>, pending: Option<u16>, before: &[i64]) {
        let actions = std::mem::take(&mut self.actions);
        if row.is_none() && matches!(event, Event::Enter | Event::Exit | Event::Internal(_)) {
            return;
        }
        let image = &self.program.image;
        let changed = image.registers.iter().zip(&*self.instance.registers).zip(before);
        let registers = changed
            .filter(|((register, now), before)| now != before && !register.scratch)
            .map(|((register, now), _)| (register.name.clone(), *now))
            .collect();
        let row = row.map(|number| (number, &image.rows[number]));
        let record = TraceRecord {
            time: self.at,
            flow: self.instance.flow,
            kind: TraceKind::Event,
            state: self.program.state_name(self.instance.state).into(),
            event: self.program.event_name(event),
            row: row.map(|(number, _)| number as u32),
            line: row.map(|(_, row)| row.line).filter(|line| *line != 0),
            source: row.and_then(|(_, row)| image.debug.source(row.source)).map(str::to_owned),
            next: self.program.state_name(pending.unwrap_or(self.instance.state)).into(),
            actions,
            registers,
        };
        self.out.push(Output::Trace(Box::new(record)));
    }

    /// Rule D1.
    pub fn snapshot(&mut self, point: u16) {
        if !self.out.wants_trace() {
            return;
        }
        let image = &self.program.image;
        let registers = image.registers.iter().zip(&*self.instance.registers);
        let state = self.program.state_name(self.instance.state);
        let record = TraceRecord {
            time: self.at,
            flow: self.instance.flow,
            kind: TraceKind::Snapshot,
            state: state.into(),
            event: image.debug.points[usize::from(point)].clone(),
            row: None,
            line: None,
            source: None,
            next: state.into(),
            actions: Vec::new(),
            registers: registers
                .filter(|(register, _)| !register.scratch)
                .map(|(register, value)| (register.name.clone(), *value))
                .collect(),
        };
        self.out.push(Output::Trace(Box::new(record)));
    }

    fn element_name(&self, first: u16, count: u16, index: &Operand) -> &str {
        &self.program.image.registers[element(first, count, self.read(index))].name
    }

    /// An operation about to run as text: names, and the values of its operands.
    pub(crate) fn describe(&self, operation: &Operation) -> String {
        let image = &self.program.image;
        let register = |register: &u16| image.registers[usize::from(*register)].name.as_str();
        let packet = |packet: &PacketRef| self.packet_name(*packet);
        let value = |operand: &Operand| self.describe_operand(operand);
        match operation {
            Operation::Compute { operator, register: target, left, right } => {
                let target = register(target);
                match (operator, infix(*operator), *right) {
                    // Compilers write `a := b` as a sum with 0.
                    (Operator::Add, _, Operand::Constant(0)) => format!("{target} := {}", value(left)),
                    (Operator::Random, ..) => format!("{target} := random"),
                    (_, Some(sign), _) => format!("{target} := {} {sign} {}", value(left), value(right)),
                    (_, None, _) => format!("{target} := {}({}, {})", function(*operator), value(left), value(right)),
                }
            }
            Operation::MulDiv { register: target, left, right, divisor } => {
                format!("{} := {} * {} / {}", register(target), value(left), value(right), value(divisor))
            }
            Operation::Lookup { table, register: target, index } => {
                format!("{} := {}[{}]", register(target), image.tables[usize::from(*table)].name, value(index))
            }
            Operation::Element { register: target, first, count, index } => {
                format!("{} := {}", register(target), self.element_name(*first, *count, index))
            }
            Operation::SetElement { first, count, index, value: new } => {
                format!("{} := {}", self.element_name(*first, *count, index), value(new))
            }
            Operation::SetField { packet: of, field, value: new, optional } => {
                let condition = if *optional { " if present" } else { "" };
                format!("{} := {}{condition}", self.field_name(*of, *field), value(new))
            }
            Operation::Resize { packet: of, length } => format!("resize {} to {}", packet(of), value(length)),
            Operation::Cut { packet: of, size } => format!("cut {} to {}", packet(of), value(size)),
            Operation::Reverse { packet: of } => format!("reverse {}", packet(of)),
            Operation::KeepOptions { packet: of, kinds } => format!("keep_options {} {kinds:?}", packet(of)),
            Operation::Copy { from, to } => format!("copy {} to {}", packet(from), packet(to)),
            Operation::Build { template, to, options } => {
                let template = &image.templates[usize::from(*template)];
                let mut text = format!("build {} in {}", template.name, packet(to));
                for (kind, wanted) in template.tcp_options.iter().zip(options) {
                    write!(text, ", option {kind} {}", value(wanted)).expect("a String takes all text");
                }
                text
            }
            Operation::Discard { packet: of } => format!("discard {}", packet(of)),
            Operation::Send { packet: of, port } => match self.packet(*of) {
                Some(found) => format!("send {} ({} bytes) to port {}", packet(of), found.frame_length(), value(port)),
                None => format!("send {} (empty) to port {}", packet(of), value(port)),
            },
            Operation::SetTimer { timer, delay, payload } => {
                let mut text = format!("set_timer {} in {} ns", image.timers[usize::from(*timer)].name, value(delay));
                for (name, carried) in image.timers[usize::from(*timer)].payload.iter().zip(payload) {
                    write!(text, ", {name} {}", value(carried)).expect("a String takes all text");
                }
                text
            }
            Operation::Ask { turns, rank, cost } => {
                let name = &image.turns[usize::from(*turns)].name;
                format!("ask {name} rank {} for {} ns", value(rank), value(cost))
            }
            Operation::Withdraw { turns } => format!("withdraw {}", image.turns[usize::from(*turns)].name),
            Operation::AppendData { packet: to, offset, length } => {
                format!("append_data to {}: {} bytes from {}", packet(to), value(length), value(offset))
            }
            Operation::ReleaseData { length } => format!("release_data {}", value(length)),
            Operation::Deliver { packet: of, offset, length } => {
                format!("deliver {}: {} bytes from {}", packet(of), value(length), value(offset))
            }
            Operation::Notify { notice, value: of } => {
                format!("notify {} {}", image.notices[usize::from(*notice)], value(of))
            }
            Operation::DeleteInstance => "delete_instance".into(),
            Operation::RestartInstance => "restart_instance".into(),
            Operation::Query { register: target, query } => {
                let mut words = Words { value: &mut |operand| value(operand), packet: &|of| packet(&of).into() };
                format!("{} := {}", register(target), image.query_text(query, &mut words))
            }
            Operation::Run { block } => format!("run block {block}"),
            Operation::Snapshot { point } => format!("snapshot {}", image.debug.points[usize::from(*point)]),
            other => {
                let mut words = Words { value: &mut |operand| value(operand), packet: &|of| packet(&of).into() };
                image.store_text(other, &mut words)
            }
        }
    }

    fn describe_operand(&self, operand: &Operand) -> String {
        let name = match operand {
            Operand::Constant(value) => return value.to_string(),
            Operand::Register(register) => self.program.image.registers[usize::from(*register)].name.clone(),
            Operand::Field { packet, field } => self.field_name(*packet, *field),
            Operand::Present { packet, field } => format!("present {}", self.field_name(*packet, *field)),
            Operand::Event(value) => format!("event {value}"),
            Operand::Environment(Environment::Waiting(turns)) => {
                format!("{}.waiting", self.program.image.turns[usize::from(*turns)].name)
            }
            Operand::Environment(Environment::Tally(tally)) => {
                self.program.image.tallies[usize::from(*tally)].name.clone()
            }
            Operand::Environment(environment) => environment_name(*environment).into(),
        };
        format!("{name} ({})", self.read(operand))
    }

    fn field_name(&self, packet: PacketRef, field: u16) -> String {
        let name = &self.program.image.fields[usize::from(field)];
        format!("{}.{}.{}", self.packet_name(packet), name.format, name.field)
    }

    fn packet_name(&self, packet: PacketRef) -> &str {
        match packet {
            PacketRef::Current => "current",
            PacketRef::Work => "work",
            PacketRef::Slot(slot) => &self.program.image.slots[usize::from(slot)],
        }
    }
}

fn environment_name(environment: Environment) -> &'static str {
    match environment {
        Environment::Now => "now",
        Environment::NowMicroseconds => "now_microseconds",
        Environment::NowMilliseconds => "now_milliseconds",
        Environment::FlowHash => "flow_hash",
        Environment::ApplicationAvailable => "application_available",
        Environment::ApplicationClosed => "application_closed",
        Environment::FlowFull => "flow_full",
        Environment::ApplicationListening => "application_listening",
        Environment::ApplicationRoom => "application_room",
        Environment::Waiting(_) => "waiting",
        Environment::Tally(_) => "tally",
    }
}

/// The sign of an operator that stands between its operands.
fn infix(operator: Operator) -> Option<&'static str> {
    Some(match operator {
        Operator::Add => "+",
        Operator::Sub => "-",
        Operator::Mul => "*",
        Operator::Div => "/",
        Operator::Rem => "%",
        Operator::And => "&",
        Operator::Or => "|",
        Operator::Xor => "^",
        Operator::Shl => "<<",
        Operator::Shr => ">>",
        Operator::Eq => "==",
        Operator::Ne => "!=",
        Operator::Lt => "<",
        Operator::Le => "<=",
        _ => return None,
    })
}

/// The name of an operator that is written like a function.
fn function(operator: Operator) -> &'static str {
    match operator {
        Operator::DivUnsigned => "div_unsigned",
        Operator::RemUnsigned => "rem_unsigned",
        Operator::Min => "min",
        Operator::Max => "max",
        Operator::MinUnsigned => "min_unsigned",
        Operator::MaxUnsigned => "max_unsigned",
        Operator::SeqMin => "seq_min",
        Operator::SeqMax => "seq_max",
        Operator::SeqDistance => "seq_distance",
        Operator::ShrSigned => "shr_signed",
        Operator::LtUnsigned => "lt_unsigned",
        Operator::LeUnsigned => "le_unsigned",
        Operator::SeqLt => "seq_lt",
        Operator::SeqLe => "seq_le",
        Operator::Hash => "hash",
        other => infix(other).unwrap_or("random"),
    }
}
