//! Statements: to steps with resolved names and types.

use super::calls::private;
use super::expression::fold;
use super::ir::{Ir, MAX_LOCALS, Step, local_operand};
use super::types::{self, Type};
use super::{EventKind, Lowerer, Scope, Symbol, Value};
use crate::ast::{
    BinaryOperator, Branch, ElementStatement, Expression, ExpressionKind, Name, PacketExpression, Repeat, Statement,
    StatementKind,
};
use crate::parser::MAX_DEPTH;
use std::collections::BTreeSet;
use weftwire_image::{Operand, Operation, Operator, PacketRef, RegisterType, limits};
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::source::Span;

/// A program may expand to this many steps.
const MAX_STEPS: usize = 100_000;

/// So many locals may be known at one place.
const MAX_IN_SIGHT: usize = 1_024;

pub(super) const NO_VALUE: Operand = Operand::Constant(0);

/// A header field to write.
#[derive(Clone, Copy)]
struct FieldTarget {
    packet: PacketRef,
    field: u16,
    kind: Type,
    optional: bool,
}

impl Lowerer<'_> {
    /// The statements of a block; its locals end with it.
    pub(crate) fn block(&mut self, statements: &[Statement], scope: &mut Scope) -> Vec<Step> {
        let locals = scope.locals.len();
        let first_local = scope.next_local;
        let mut steps = Vec::new();
        if scope.blocks >= MAX_DEPTH {
            let message = format!("with its actions written out, this nests deeper than {MAX_DEPTH} blocks");
            self.report(Diagnostic::error(statements.first().map_or(Span::default(), |it| it.span), message));
            return steps;
        }
        scope.blocks += 1;
        for statement in statements {
            if self.full() {
                break;
            }
            self.statement(statement, scope, &mut steps);
        }
        scope.blocks -= 1;
        scope.locals.truncate(locals);
        if scope.next_local > first_local {
            steps.push(Step::Release(first_local));
        }
        steps
    }

    fn statement(&mut self, statement: &Statement, scope: &mut Scope, steps: &mut Vec<Step>) {
        self.steps_made += 1;
        if self.steps_made > MAX_STEPS {
            if self.steps_made == MAX_STEPS + 1 {
                let message = format!("the program expands to more than {MAX_STEPS} steps");
                self.report(
                    Diagnostic::error(statement.span, message).help("actions are expanded where they are called"),
                );
            }
            return;
        }
        scope.allow_random = true;
        self.values_made = 0;
        let mut made = Vec::new();
        self.statement_kind(statement, scope, &mut made);
        steps.append(&mut scope.before);
        steps.append(&mut made);
    }

    fn statement_kind(&mut self, statement: &Statement, scope: &mut Scope, steps: &mut Vec<Step>) {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Assign { target, operator, value, optional } => {
                self.assign(target, *operator, value, *optional, scope, steps);
            }
            StatementKind::SetElement(statement) => self.set_element(statement, scope, steps),
            StatementKind::Let { name, kind, value } => self.let_local(name, kind.as_ref(), value, scope, steps),
            StatementKind::If { branches, otherwise } => self.if_statement(branches, otherwise, scope, steps),
            StatementKind::Repeat(repeat) => self.repeat(repeat, span, scope, steps),
            StatementKind::Send { packet, port, cut } => {
                let packet = self.packet_expression(packet, PacketRef::Work, scope, steps);
                let size = cut.as_ref().map(|size| self.typed(size, Type::Integer, scope));
                let port = self.port(port, scope);
                let Some(packet) = packet else { return };
                if let Some(size) = size {
                    steps.append(&mut scope.before);
                    push(steps, Operation::Cut { packet, size: NO_VALUE }, vec![size]);
                }
                push(steps, Operation::Send { packet, port: NO_VALUE }, vec![port]);
            }
            StatementKind::Store { packet, slot } => {
                let Some(to) = self.slot(slot) else { return };
                let mut built = Vec::new();
                let mut from = self.packet_expression(packet, to, scope, &mut built);
                // Built in its slot, a template would lose what its own fields still read there.
                if built.iter().any(|step| reads_packet(step, to)) {
                    built.clear();
                    from = self.packet_expression(packet, PacketRef::Work, scope, &mut built);
                }
                steps.append(&mut built);
                if let Some(from) = from.filter(|from| *from != to) {
                    push(steps, Operation::Copy { from, to }, Vec::new());
                }
            }
            StatementKind::Discard { slot } => {
                if let Some(packet) = self.slot(slot) {
                    push(steps, Operation::Discard { packet }, Vec::new());
                }
            }
            StatementKind::Reverse { packet } => {
                if let Some(packet) = self.packet_name(packet, scope) {
                    push(steps, Operation::Reverse { packet }, Vec::new());
                }
            }
            StatementKind::KeepOptions { kinds, packet } => {
                let mut known: Vec<u8> = kinds.iter().filter_map(|kind| self.option_kind(kind)).collect();
                let mut seen = BTreeSet::new();
                known.retain(|kind| seen.insert(*kind));
                let kinds = known;
                if let Some(packet) = self.packet_name(packet, scope) {
                    push(steps, Operation::KeepOptions { packet, kinds }, Vec::new());
                }
            }
            StatementKind::Resize { packet, length } => {
                let length = self.typed(length, Type::Integer, scope);
                if let Some(packet) = self.packet_name(packet, scope) {
                    push(steps, Operation::Resize { packet, length: NO_VALUE }, vec![length]);
                }
            }
            StatementKind::Set { timer, arguments, delay, reset } => {
                self.set_timer(timer, arguments, delay, *reset, scope, steps);
            }
            StatementKind::Pace(pace) => self.pace(pace, span, scope, steps),
            StatementKind::Restart { pacer } => self.restart(pacer, scope, steps),
            StatementKind::Cancel { timer, tests } => self.cancel_timer(timer, tests.as_ref(), scope, steps),
            StatementKind::Move { timer, tests, delay } => {
                self.move_timer(timer, tests.as_ref(), delay.as_ref(), scope, steps);
            }
            StatementKind::Ask { turns, rank, cost } => self.ask(turns, rank.as_ref(), cost, scope, steps),
            StatementKind::Withdraw { turns } => {
                if let Some(turns) = self.turns_index(turns) {
                    push(steps, Operation::Withdraw { turns }, Vec::new());
                }
            }
            StatementKind::Goto { state } => {
                if scope.no_goto {
                    self.report(Diagnostic::error(
                        span,
                        "`goto` can't stand in `exit`: the machine is on its way already",
                    ));
                } else if let Some(state) = self.state(state) {
                    steps.push(Step::Goto(state));
                }
            }
            StatementKind::DeleteInstance => push(steps, Operation::DeleteInstance, Vec::new()),
            StatementKind::RestartInstance => {
                self.need_arrival(span, scope);
                push(steps, Operation::RestartInstance, Vec::new());
            }
            StatementKind::Deliver { packet, range } => {
                let Some(packet) = self.packet_name(packet, scope) else { return };
                let (offset, length) = match range {
                    Some((offset, length)) => {
                        (self.typed(offset, Type::Integer, scope), self.typed(length, Type::Integer, scope))
                    }
                    None => (Ir::constant(0), Ir::constant(65_535)),
                };
                push(steps, Operation::Deliver { packet, offset: NO_VALUE, length: NO_VALUE }, vec![offset, length]);
            }
            StatementKind::Release { length } => {
                let length = self.typed(length, Type::Integer, scope);
                push(steps, Operation::ReleaseData { length: NO_VALUE }, vec![length]);
            }
            StatementKind::Notify { name, value } => {
                let value = match value {
                    Some(value) => self.expression(value, scope).ir,
                    None => Ir::constant(0),
                };
                let notice = self.notice(name);
                push(steps, Operation::Notify { notice, value: NO_VALUE }, vec![value]);
            }
            StatementKind::Sequence(statement) => self.sequence_statement(statement, scope, steps),
            StatementKind::Call { action, arguments } => self.call_action(action, arguments, scope, steps),
        }
    }

    fn assign(
        &mut self,
        target: &[Name],
        operator: Option<BinaryOperator>,
        value: &Expression,
        optional: bool,
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) {
        let Some(last) = target.last() else { return };
        let span = target[0].span.to(last.span);
        let mut new = self.expression(value, scope);
        if let Some(operator) = operator {
            let path = Expression { kind: ExpressionKind::Path(target.to_vec()), span };
            let old = self.expression(&path, scope);
            new = self.binary(operator, old, new, span.to(value.span));
        }
        if let [module, name, ..] = target
            && let Some(Symbol::Module) = self.known(&module.text)
        {
            let error = Diagnostic::error(span, format!("`{}` can't be reached from here", name.text));
            return self.report(error.help(private(&name.text, &module.text)));
        }
        if let [name] = target {
            if optional {
                self.report(
                    Diagnostic::error(span, "only a header field can be absent").help("leave `if present` away"),
                );
            }
            if scope.locals.iter().any(|(known, _)| *known == name.text) {
                let message = format!("`{}` is a local value and can't change", name.text);
                self.report(Diagnostic::error(span, message).help("use a register, or another `let`"));
                return;
            }
            match self.known(&name.text) {
                Some(Symbol::Register(register)) => {
                    let value = self.for_register(register, new, value.span);
                    steps.push(Step::Assign { register, value });
                }
                Some(Symbol::Array { .. }) => {
                    let error =
                        Diagnostic::error(span, format!("`{}` is an array: one element is assigned", name.text));
                    self.report(error.help(format!("write `{}[index] = value;`", name.text)));
                }
                Some(other) => {
                    let message = format!("`{}` is {} and can't be assigned", name.text, other.describe());
                    self.report(Diagnostic::error(span, message).help("registers and header fields can be"));
                }
                None => self.unknown(name, "a register or a header field", scope),
            }
            return;
        }
        if let Some((packet, field, kind)) = self.field_path(target, PacketRef::Current, scope) {
            let target = FieldTarget { packet, field, kind, optional };
            self.set_field(target, new, span, value.span, steps);
        }
    }

    /// `array[index] = value;`
    fn set_element(&mut self, statement: &ElementStatement, scope: &mut Scope, steps: &mut Vec<Step>) {
        let ElementStatement { array, index, operator, value } = statement;
        let Some(Symbol::Array { first, count }) = self.known(&array.text) else {
            if let Some(other) = self.symbol(array, "an array") {
                let message = format!("`{}` is {}, not an array", array.text, other.describe());
                self.report(Diagnostic::error(array.span, message));
            }
            return;
        };
        let span = array.span.to(index.span);
        let mut new = self.expression(value, scope);
        if let Some(operator) = operator {
            let element = ExpressionKind::Index(array.clone(), Box::new(index.clone()));
            let old = self.expression(&Expression { kind: element, span }, scope);
            new = self.binary(*operator, old, new, span.to(value.span));
        }
        let index = self.typed(index, Type::Integer, scope);
        let value = self.for_register(first, new, value.span);
        steps.append(&mut scope.before);
        push(steps, Operation::SetElement { first, count, index: NO_VALUE, value: NO_VALUE }, vec![index, value]);
    }

    /// A value that a register is to hold.
    fn for_register(&mut self, register: u16, value: Value, span: Span) -> Ir {
        let kind = self.register_types[usize::from(register)];
        let register_type = self.image.registers[usize::from(register)].kind;
        self.check_literal(register_type, &value, span);
        let ir = self.coerce(value, kind, span);
        // The write to the register cuts, but not to the 32 bits of a sequence number if it holds more.
        if register_type.cut(-1) == -1 && matches!(ir, Ir::Compute { modular: true, .. }) {
            return fold(Operator::And, ir, Ir::constant(0xffff_ffff));
        }
        ir
    }

    /// A number that the type can't hold is a mistake, not a wish for its low bits.
    pub(super) fn check_literal(&mut self, kind: RegisterType, value: &Value, span: Span) {
        let Some(constant) = value.ir.as_constant() else { return };
        let beyond_sign = value.kind == Type::Unsigned && constant < 0 && kind == RegisterType::I64;
        if value.literal && !self.untyped && (kind.cut(constant) != constant || beyond_sign) {
            let message = match value.kind {
                Type::Unsigned => format!("{} does not fit the register's type", constant as u64),
                _ => format!("{constant} does not fit the register's type"),
            };
            self.report(Diagnostic::error(span, message));
        }
    }

    /// A value as a local, a parameter or a timer of a declared type carries it: cut like a register of that type.
    pub(super) fn held(&mut self, value: Value, (kind, holder): (Type, RegisterType), span: Span) -> Ir {
        self.check_literal(holder, &value, span);
        let bits = holder.cut(-1);
        let from = value.kind;
        let fits = match value.ir {
            Ir::Operand(Operand::Register(register)) => {
                self.image.registers.get(usize::from(register)).is_some_and(|known| known.kind.cut(-1) & !bits == 0)
            }
            _ => from == Type::Sequence && bits == 0xffff_ffff,
        };
        let ir = self.coerce(value, kind, span);
        if self.untyped || fits || bits == -1 || !(from.is_number() || from.is_sequence()) {
            return ir;
        }
        fold(Operator::And, ir, Ir::constant(bits))
    }

    fn set_field(&mut self, target: FieldTarget, value: Value, span: Span, value_span: Span, steps: &mut Vec<Step>) {
        let FieldTarget { packet, field, kind, optional } = target;
        if !self.writable(field, span) {
            return;
        }
        let value = self.coerce(value, kind, value_span);
        self.check_field_constant(field, &value, value_span);
        push(steps, Operation::SetField { packet, field, value: NO_VALUE, optional }, vec![value]);
    }

    /// Warns of a constant of which a field keeps only the low bits.
    pub(super) fn check_field_constant(&mut self, field: u16, value: &Ir, span: Span) {
        let (format, _, width, _) = self.place(&self.image.fields[usize::from(field)]);
        let Some(constant) = value.as_constant().filter(|_| width < 64) else { return };
        // A negative number is written for its bits.
        if !(-(1_i64 << (width - 1))..1_i64 << width).contains(&constant) {
            let name = &self.image.fields[usize::from(field)].field;
            let kept = constant & ((1_i64 << width) - 1);
            let message = format!("{constant} does not fit the {width} bits of `{format}.{name}`, which keeps {kept}");
            self.report(Diagnostic::warning(span, message));
        }
    }

    /// A port to send to: ports count from 1.
    fn port(&mut self, port: &Expression, scope: &mut Scope) -> Ir {
        let value = self.typed(port, Type::Integer, scope);
        self.check_port(&value, port.span);
        value
    }

    /// Warns of a port that is never there.
    pub(super) fn check_port(&mut self, port: &Ir, span: Span) {
        if let Some(port) = port.as_constant().filter(|port| !(1..=65_535).contains(port)) {
            let warning = Diagnostic::warning(span, format!("there is no port {port}"));
            self.report(warning.help("ports count from 1 to 65535"));
        }
    }

    /// Whether a field may be written; reports if not.
    pub(crate) fn writable(&mut self, field: u16, span: Span) -> bool {
        let name = &self.image.fields[usize::from(field)];
        let forbidden = matches!(
            (name.format.as_str(), name.field.as_str()),
            ("network", _) | ("ipv4", "version" | "header_length") | ("ipv6", "version") | ("tcp", "data_offset")
        );
        if forbidden {
            let message = format!("`{}.{}` can't be set: the packet's layout hangs on it", name.format, name.field);
            self.report(Diagnostic::error(span, message));
        }
        !forbidden
    }

    fn let_local(
        &mut self,
        name: &Name,
        kind: Option<&Name>,
        value: &Expression,
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) {
        let value_span = value.span;
        let mut value = self.expression(value, scope);
        if let Some(kind) = kind {
            match types::named(&kind.text) {
                Some(wanted) => value = Value::new(self.held(value, wanted, value_span), wanted.0),
                None => self.unknown_type(kind),
            }
        }
        if self.known(&name.text).is_some() {
            let message = format!("`{}` hides a declaration of the same name", name.text);
            self.report(Diagnostic::error(name.span, message).help("give the local another name"));
        }
        value.literal = false;
        if scope.locals.len() >= MAX_IN_SIGHT {
            self.report(Diagnostic::error(name.span, format!("more than {MAX_IN_SIGHT} locals are known here")));
            return;
        }
        let kind = value.kind;
        if value.ir.as_constant().is_some() {
            scope.locals.push((name.text.clone(), value));
            return;
        }
        let local = self.new_local(name.span, scope);
        steps.push(Step::Local { local, value: value.ir, tested: false });
        scope.locals.push((name.text.clone(), Value::new(Ir::Operand(local_operand(local)), kind)));
    }

    /// A local that no other place of the handler uses.
    pub(super) fn new_local(&mut self, span: Span, scope: &mut Scope) -> usize {
        if scope.next_local == MAX_LOCALS {
            self.report(Diagnostic::error(span, format!("this handler has more than {MAX_LOCALS} locals")));
            return MAX_LOCALS;
        }
        scope.next_local += 1;
        scope.next_local - 1
    }

    fn repeat(
        &mut self,
        Repeat { count, condition, body }: &Repeat,
        span: Span,
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) {
        let most = self.bounded(count, Type::Integer, 1, limits::MAX_ROUNDS as i64) as u32;
        let line = self.source_line(span);
        let condition = condition.as_ref().map_or(Ir::constant(1), |condition| self.condition(condition, scope));
        let body = self.block(body, scope);
        steps.push(Step::Repeat { most, condition, body, line });
    }

    fn if_statement(&mut self, branches: &[Branch], otherwise: &[Statement], scope: &mut Scope, steps: &mut Vec<Step>) {
        let mut made = Vec::new();
        for branch in branches {
            self.values_made = 0;
            let condition = self.condition(&branch.condition, scope);
            let line = self.source_line(branch.condition.span);
            let mut body = Vec::new();
            if branch.debug {
                let point = self.debug_point(format!("if line {}", line.line));
                push(&mut body, Operation::Snapshot { point }, Vec::new());
            }
            body.extend(self.block(&branch.body, scope));
            made.push((condition, body, line));
        }
        let otherwise = self.block(otherwise, scope);
        steps.push(Step::If { branches: made, otherwise, hoisted: self.untyped });
    }

    /// The packet that `send` and `store` name; a template is built in `place` first.
    fn packet_expression(
        &mut self,
        packet: &PacketExpression,
        place: PacketRef,
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) -> Option<PacketRef> {
        let template = match self.known(&packet.name.text) {
            Some(Symbol::Template(template)) if packet.name.text != "packet" => template,
            _ => {
                if !packet.fields.is_empty() || packet.data.is_some() {
                    let message = "only a template takes fields and data here";
                    self.report(
                        Diagnostic::error(packet.name.span, message)
                            .help("set the fields of another packet in statements of their own"),
                    );
                }
                return self.packet_name(&packet.name, scope);
            }
        };
        let wanted = self.wanted_options(template, scope);
        let options = vec![NO_VALUE; wanted.len()];
        push(steps, Operation::Build { template, to: place, options }, wanted);
        for (path, value) in &packet.fields {
            let span = path.first().map_or(value.span, |name| name.span);
            if path.len() != 2 {
                self.report(Diagnostic::error(span, "a template's fields are written `header.field`"));
                continue;
            }
            let Some((index, kind)) = self.field(&path[0], &path[1]) else { continue };
            let new = self.expression(value, scope);
            steps.append(&mut scope.before);
            let optional = self.may_lack(template, index);
            let target = FieldTarget { packet: place, field: index, kind, optional };
            self.set_field(target, new, span, value.span, steps);
        }
        if let Some((offset, length)) = &packet.data {
            let offset = self.typed(offset, Type::Integer, scope);
            let length = self.typed(length, Type::Integer, scope);
            steps.append(&mut scope.before);
            push(
                steps,
                Operation::AppendData { packet: place, offset: NO_VALUE, length: NO_VALUE },
                vec![offset, length],
            );
        }
        Some(place)
    }

    fn slot(&mut self, name: &Name) -> Option<PacketRef> {
        match self.known(&name.text) {
            Some(Symbol::Slot(slot)) => Some(PacketRef::Slot(slot)),
            _ => {
                let message = format!("`{}` is no slot", name.text);
                self.report(Diagnostic::error(name.span, message).help(format!("declare it: `slot {};`", name.text)));
                None
            }
        }
    }

    /// Number of a TCP option.
    pub(crate) fn option_kind(&mut self, name: &Name) -> Option<u8> {
        let kind = match name.text.as_str() {
            "mss" => 2,
            "window_scale" => 3,
            "sack_permitted" => 4,
            "sack" => 5,
            "timestamps" => 8,
            _ => {
                let error = Diagnostic::error(name.span, format!("`{}` is no TCP option", name.text));
                self.report(error.help("options are mss, window_scale, sack_permitted, sack and timestamps"));
                return None;
            }
        };
        Some(kind)
    }

    /// The scope of a handler.
    pub(crate) fn scope(event: EventKind) -> Scope {
        Scope {
            event,
            locals: Vec::new(),
            next_local: 0,
            before: Vec::new(),
            allow_random: true,
            calls: Vec::new(),
            call_line: 0,
            chosen: Vec::new(),
            depth: 0,
            blocks: 0,
            no_goto: false,
        }
    }
}

pub(super) fn push(steps: &mut Vec<Step>, operation: Operation, values: Vec<Ir>) {
    steps.push(Step::Do { operation, values });
}

/// Whether a value that the step computes is read from this packet.
fn reads_packet(step: &Step, wanted: PacketRef) -> bool {
    let Step::Do { values, .. } = step else { return false };
    let mut found = false;
    for value in values {
        value.operands(&mut |operand| {
            if let Operand::Field { packet, .. } | Operand::Present { packet, .. } = operand {
                found |= packet == wanted;
            }
        });
    }
    found
}
