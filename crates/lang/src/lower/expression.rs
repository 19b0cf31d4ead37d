//! Expressions: names and types are resolved, constants folded.

use super::ir::Ir;
use super::types::Type;
use super::{EventKind, Lowerer, Scope, Symbol, unit_scale};
use crate::ast::{BinaryOperator, Expression, ExpressionKind, Name, UnaryOperator};
use crate::diagnostic::{Diagnostic, nearest};
use crate::lexer::NumberValue;
use crate::source::Span;
use weftwire_image::{Comparison, Environment, Operand, Operator, PacketRef, value};

/// Values and operators of one expression, its named conditions written out. It bounds what doubling can do.
const MAX_VALUES: usize = 1_500;
/// Those of all expressions together.
const MAX_ALL_VALUES: usize = 4_000_000;

/// A resolved expression.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) ir: Ir,
    pub(crate) kind: Type,
    /// A number written without unit: it takes the other side's type.
    pub(crate) literal: bool,
}

impl Value {
    pub(crate) fn new(ir: Ir, kind: Type) -> Value {
        Value { ir, kind, literal: false }
    }

    pub(crate) fn error() -> Value {
        Value::new(Ir::constant(0), Type::Error)
    }
}

impl Lowerer<'_> {
    /// Resolves an expression whose value must fit `target`.
    pub(crate) fn typed(&mut self, expression: &Expression, target: Type, scope: &mut Scope) -> Ir {
        let value = self.expression(expression, scope);
        self.coerce(value, target, expression.span)
    }

    pub(crate) fn coerce(&mut self, value: Value, target: Type, span: Span) -> Ir {
        if self.untyped || value.kind.fits(target) {
            return value.ir;
        }
        if target == Type::Bool && value.literal && matches!(value.ir.as_constant(), Some(0 | 1)) {
            return value.ir;
        }
        if value.literal && value.ir.as_constant() == Some(0) && matches!(target, Type::Time | Type::Rate) {
            return value.ir;
        }
        if value.literal && matches!(target, Type::Mac | Type::Ipv4) {
            return value.ir;
        }
        let mut error = Diagnostic::error(span, format!("expected {}, found {}", target.name(), value.kind.name()));
        error = match (target, value.kind) {
            (Type::Time, kind) if kind.is_number() => error.help("give it a unit (`10ms`), or multiply: `x * 1us`"),
            (kind, Type::Time) if kind.is_number() => {
                error.help("convert it: `nanoseconds(t)`, `microseconds(t)`, `milliseconds(t)`")
            }
            (Type::Bool, _) => error.help("compare it, for instance `x != 0`"),
            (_, Type::Bool) => error.help("convert it: `u8(x)` is 1 or 0"),
            (_, Type::Mac | Type::Ipv4) => error.help("convert it: `u64(x)`"),
            _ => error,
        };
        self.report(error);
        Ir::constant(0)
    }

    /// Resolves a condition.
    pub(crate) fn condition(&mut self, expression: &Expression, scope: &mut Scope) -> Ir {
        let pure = scope.allow_random;
        scope.allow_random = false;
        let value = self.expression(expression, scope);
        scope.allow_random = pure;
        self.warn_of_exclusion(&value.ir, expression.span, scope);
        match value.kind {
            Type::Bool | Type::Error => value.ir,
            _ if self.untyped && !value.literal => {
                self.report(
                    Diagnostic::error(expression.span, "this is no condition")
                        .help("compare two values, or name an `Event` declared at the top"),
                );
                Ir::constant(0)
            }
            _ => self.coerce(value, Type::Bool, expression.span),
        }
    }

    pub(crate) fn expression(&mut self, expression: &Expression, scope: &mut Scope) -> Value {
        let span = expression.span;
        self.values_made += 1;
        if self.values_made > MAX_VALUES {
            if self.values_made == MAX_VALUES + 1 {
                let message = "with its conditions written out this expression is too large";
                self.report(Diagnostic::error(span, message).help("give parts of it a name by `let`"));
            }
            return Value::error();
        }
        self.all_values += 1;
        if self.all_values > MAX_ALL_VALUES {
            self.too_many(span, "values and operators, its conditions and actions written out", MAX_ALL_VALUES);
            return Value::error();
        }
        match &expression.kind {
            ExpressionKind::Number { value, unit } => self.number(*value, unit, span),
            ExpressionKind::Mac(address) => Value::new(Ir::constant(*address as i64), Type::Mac),
            ExpressionKind::Ipv4(address) => Value::new(Ir::constant(i64::from(*address)), Type::Ipv4),
            ExpressionKind::Path(path) => self.path(path, span, scope),
            ExpressionKind::Unary(operator, inner) => self.unary(*operator, inner, scope),
            ExpressionKind::Binary(operator, left, right) => {
                let left_value = self.expression(left, scope);
                let right_value = self.expression(right, scope);
                let value = self.binary(*operator, left_value, right_value, span);
                if operator.is_comparison() {
                    self.warn_of_comparison(&value.ir, span, scope);
                }
                value
            }
            ExpressionKind::Call(name, arguments) => self.call(name, arguments, span, scope),
            ExpressionKind::Index(table, index) => {
                let index = self.typed(index, Type::Integer, scope);
                match self.symbol(table, "a table") {
                    Some(Symbol::Table(table)) => {
                        Value::new(Ir::Lookup { table, index: Box::new(index) }, Type::Integer)
                    }
                    Some(_) => {
                        self.report(Diagnostic::error(table.span, format!("`{}` is no table", table.text)));
                        Value::error()
                    }
                    None => Value::error(),
                }
            }
            ExpressionKind::Error => Value::error(),
        }
    }

    fn number(&mut self, number: NumberValue, unit: &str, span: Span) -> Value {
        let Some((scale, kind)) = unit_scale(unit) else {
            let help = "units are ns us ms s min h, B kB MB GB KiB MiB GiB, bps kbps Mbps Gbps";
            self.report(Diagnostic::error(span, format!("unknown unit `{unit}`")).help(help));
            return Value::error();
        };
        let scaled = match number {
            NumberValue::Whole(value) if unit.is_empty() => Some(value as i64),
            NumberValue::Whole(value) => i64::try_from(value).ok().and_then(|value| value.checked_mul(scale)),
            NumberValue::Fraction(value) => {
                let scaled = value * scale as f64;
                let rounded = libm::round(scaled);
                if (scaled - rounded).abs() > 1e-6 * scaled.abs().max(1.0) {
                    let message = "this is no whole number of its smallest unit";
                    let whole = "values are whole numbers: of nanoseconds, bytes, bits per second";
                    let help = match quotient(self.sources.text(span)).filter(|_| unit.is_empty()) {
                        Some((above, below)) => format!("{whole}; as a factor, write `* {above} / {below}`"),
                        None => whole.to_string(),
                    };
                    self.report(Diagnostic::error(span, message).help(help));
                    return Value::error();
                }
                (rounded.abs() < 9e18).then_some(rounded as i64)
            }
        };
        let Some(scaled) = scaled else {
            self.report(Diagnostic::error(span, "this number does not fit 64 bits in its smallest unit"));
            return Value::error();
        };
        let kind = match number {
            NumberValue::Whole(value) if value > i64::MAX as u64 && self.untyped => {
                let error = Diagnostic::error(span, "this number does not fit 64 bits with sign");
                self.report(error.help(format!("the greatest is {}", i64::MAX)));
                return Value::error();
            }
            NumberValue::Whole(value) if value > i64::MAX as u64 => Type::Unsigned,
            _ => kind,
        };
        Value { ir: Ir::constant(scaled), kind, literal: unit.is_empty() }
    }

    fn unary(&mut self, operator: UnaryOperator, inner: &Expression, scope: &mut Scope) -> Value {
        match operator {
            UnaryOperator::Not => {
                let condition = self.condition(inner, scope);
                Value::new(negate(condition), Type::Bool)
            }
            UnaryOperator::Negate => {
                let value = self.expression(inner, scope);
                if !(value.kind.is_number() || matches!(value.kind, Type::Time | Type::Error)) {
                    self.report(Diagnostic::error(inner.span, format!("{} has no negative", value.kind.name())));
                    return Value::error();
                }
                let kind = if value.kind == Type::Unsigned { Type::Integer } else { value.kind };
                Value { ir: fold(Operator::Sub, Ir::constant(0), value.ir), kind, literal: value.literal }
            }
            UnaryOperator::Complement => {
                let value = self.expression(inner, scope);
                let ir = self.coerce(value, Type::Integer, inner.span);
                Value::new(fold(Operator::Xor, ir, Ir::constant(-1)), Type::Integer)
            }
        }
    }

    /// The value of an operator, by the types of its sides.
    pub(crate) fn binary(&mut self, operator: BinaryOperator, left: Value, right: Value, span: Span) -> Value {
        use BinaryOperator::*;
        if left.kind == Type::Error || right.kind == Type::Error {
            return Value { kind: if operator.is_comparison() { Type::Bool } else { Type::Error }, ..Value::error() };
        }
        match operator {
            And | Or => {
                let (left, right) = (self.coerce(left, Type::Bool, span), self.coerce(right, Type::Bool, span));
                Value::new(if operator == And { and(left, right) } else { or(left, right) }, Type::Bool)
            }
            _ if operator.is_comparison() => self.comparison(operator, left, right, span),
            _ => self.arithmetic(operator, left, right, span),
        }
    }

    fn mismatch(&mut self, operator: BinaryOperator, left: &Value, right: &Value, span: Span) -> Value {
        let message = format!("`{}` can't join {} and {}", operator.symbol(), left.kind.name(), right.kind.name());
        let mut error = Diagnostic::error(span, message);
        if (left.kind == Type::Time) != (right.kind == Type::Time) {
            error = error.help("give the number a unit (`10ms`), or convert the time: `microseconds(t)`");
        } else if left.kind == Type::Bool || right.kind == Type::Bool {
            error = error.help("a truth value is joined by `and`, `or`, `not`; `u8(x)` makes it 1 or 0");
        }
        self.report(error);
        Value::error()
    }

    fn comparison(&mut self, operator: BinaryOperator, left: Value, right: Value, span: Span) -> Value {
        let kind = match (left.kind, right.kind) {
            _ if self.untyped => Type::Integer,
            (a, b) if a == b => a,
            (a, _) if right.literal && can_hold_literal(a, &right) => a,
            (_, b) if left.literal && can_hold_literal(b, &left) => b,
            (Type::Sequence, b) if b.is_number() => Type::Sequence,
            (a, Type::Sequence) if a.is_number() => Type::Sequence,
            (a, b) if a.is_number() && b.is_number() => {
                let message = "this compares a signed with an unsigned 64-bit number";
                self.report(Diagnostic::error(span, message).help("convert one side: `i64(x)` or `u64(x)`"));
                return Value::error();
            }
            _ => return self.mismatch(operator, &left, &right, span),
        };
        let ordered = !matches!(kind, Type::Bool | Type::Mac | Type::Ipv4);
        if !ordered && !matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual) {
            let message = format!("`{}` has no meaning for {}", operator.symbol(), kind.name());
            self.report(Diagnostic::error(span, message).help("these are only equal or not"));
            return Value::error();
        }
        let wrap = |value: Value| if kind == Type::Sequence { modular(value) } else { value.ir };
        Value::new(compare(operator, kind, wrap(left), wrap(right)), Type::Bool)
    }

    fn arithmetic(&mut self, operator: BinaryOperator, left: Value, right: Value, span: Span) -> Value {
        use BinaryOperator::*;
        let literal = left.literal && right.literal;
        let (result, machine, modular) = match (left.kind, operator, right.kind) {
            _ if self.untyped => (Type::Integer, machine_operator(operator, false), false),
            (Type::Sequence, Subtract, Type::Sequence) => (Type::Integer, Operator::SeqDistance, false),
            (Type::Sequence, Add | Subtract, b) if b.is_number() => {
                (Type::Sequence, machine_operator(operator, false), true)
            }
            (a, Add, Type::Sequence) if a.is_number() => (Type::Sequence, Operator::Add, true),
            (Type::Sequence, BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight | Remainder, b) if b.is_number() => {
                (Type::Integer, machine_operator(operator, true), false)
            }
            // Masks of addresses.
            (a @ (Type::Ipv4 | Type::Mac), BitAnd, b) if a == b => (a, Operator::And, false),
            (Type::Time, Add | Subtract | Remainder, Type::Time) => {
                (Type::Time, machine_operator(operator, false), false)
            }
            (Type::Time, Divide, Type::Time) => (Type::Integer, Operator::Div, false),
            (Type::Time, Multiply | Divide | ShiftLeft | ShiftRight, b) if b.is_number() => {
                (Type::Time, machine_operator(operator, false), false)
            }
            (a, Multiply, Type::Time) if a.is_number() => (Type::Time, Operator::Mul, false),
            (Type::Rate, Add | Subtract, Type::Rate) => (Type::Rate, machine_operator(operator, true), false),
            (Type::Rate, Multiply | Divide | ShiftLeft | ShiftRight, b) if b.is_number() => {
                (Type::Rate, machine_operator(operator, true), false)
            }
            (Type::Rate, Divide, Type::Rate) => (Type::Integer, Operator::DivUnsigned, false),
            (a, Multiply, Type::Rate) if a.is_number() => (Type::Rate, Operator::Mul, false),
            // bytes / rate: how long they take to send.
            (a, Divide, Type::Rate) if a.is_number() => {
                if self.divides_by_zero(&right, span) {
                    return Value::error();
                }
                let bit_nanoseconds = fold(Operator::Mul, left.ir, Ir::constant(8_000_000_000));
                return Value::new(fold(Operator::DivUnsigned, bit_nanoseconds, right.ir), Type::Time);
            }
            // bytes / time: how fast that is.
            (a, Divide, Type::Time) if a.is_number() => {
                if self.divides_by_zero(&right, span) {
                    return Value::error();
                }
                let bit_nanoseconds = fold(Operator::Mul, left.ir, Ir::constant(8_000_000_000));
                return Value::new(fold(Operator::DivUnsigned, bit_nanoseconds, right.ir), Type::Rate);
            }
            // rate * time: how many bytes.
            (Type::Rate, Multiply, Type::Time) | (Type::Time, Multiply, Type::Rate) => {
                let product = fold(Operator::Mul, left.ir, right.ir);
                return Value::new(fold(Operator::DivUnsigned, product, Ir::constant(8_000_000_000)), Type::Integer);
            }
            (a, _, b) if a.is_number() && b.is_number() => {
                let unsigned =
                    a == Type::Unsigned || (b == Type::Unsigned && !matches!(operator, ShiftLeft | ShiftRight));
                let sensitive = matches!(operator, Divide | Remainder);
                if sensitive && a != b && !left.literal && !right.literal {
                    let message = "this divides a signed and an unsigned 64-bit number";
                    self.report(Diagnostic::error(span, message).help("convert one side: `i64(x)` or `u64(x)`"));
                    return Value::error();
                }
                (if unsigned { Type::Unsigned } else { Type::Integer }, machine_operator(operator, unsigned), false)
            }
            _ => return self.mismatch(operator, &left, &right, span),
        };
        if matches!(operator, Divide | Remainder) && self.divides_by_zero(&right, span) {
            return Value::error();
        }
        // What `x + 0` leaves of the two sides: a sequence number, or a number that is still to be cut to one.
        let left_over = if left.ir.as_constant().is_some() { right.kind } else { left.kind };
        let ir = match fold(machine, left.ir, right.ir) {
            folded if !modular => folded,
            Ir::Compute { operator, left, right, .. } => Ir::Compute { operator, left, right, modular },
            folded => self::modular(Value::new(folded, left_over)),
        };
        Value { ir, kind: result, literal }
    }

    /// Whether a constant divisor is 0, which is an error. The dialect gives it a meaning: 0, and counted.
    fn divides_by_zero(&mut self, divisor: &Value, span: Span) -> bool {
        if divisor.ir.as_constant() != Some(0) {
            return false;
        }
        let found = if self.untyped {
            Diagnostic::warning(span, "this divides by zero, which gives 0")
        } else {
            Diagnostic::error(span, "this divides by zero")
        };
        self.report(found);
        !self.untyped
    }

    fn path(&mut self, path: &[Name], span: Span, scope: &mut Scope) -> Value {
        let texts: Vec<&str> = path.iter().map(|name| name.text.as_str()).collect();
        if let [name] = path {
            return self.single_name(name, scope);
        }
        if let [timer, value] = path
            && let Some(Symbol::Timer(index)) = self.symbols.get(&timer.text).map(|(symbol, _)| symbol.clone())
        {
            return self.timer_value(timer, value, index, scope);
        }
        let environment = match texts[..] {
            ["packet", name @ ("port" | "length" | "payload")] => {
                if scope.event != EventKind::Packet {
                    let message = if self.untyped {
                        format!("`pktRcvd.{name}` is known only in `on (pktRcvd)`")
                    } else {
                        format!("`packet.{name}` is known only in `on packet`")
                    };
                    let help = self.called_from("keep it in a register", scope);
                    self.report(Diagnostic::error(span, message).help(help));
                }
                let index = ["port", "length", "payload"].iter().position(|known| *known == name).unwrap_or(0);
                return Value::new(Ir::Operand(Operand::Event(index as u8)), Type::Integer);
            }
            ["data", "length"] => {
                if scope.event != EventKind::Data {
                    self.report(Diagnostic::error(span, "`data.length` is known only in `on data`"));
                }
                return Value::new(Ir::Operand(Operand::Event(0)), Type::Integer);
            }
            ["flow", "id"] => Some((Environment::Flow, Type::Integer)),
            ["flow", "hash"] => Some((Environment::FlowHash, Type::Unsigned)),
            ["application", "available"] => Some((Environment::ApplicationAvailable, Type::Integer)),
            ["application", "closed"] => Some((Environment::ApplicationClosed, Type::Bool)),
            _ => None,
        };
        if let Some((environment, kind)) = environment {
            return Value::new(Ir::Operand(Operand::Environment(environment)), kind);
        }
        match self.field_path(path, PacketRef::Current, scope) {
            Some((packet, field, kind)) => Value::new(Ir::Operand(Operand::Field { packet, field }), kind),
            None => Value::error(),
        }
    }

    fn single_name(&mut self, name: &Name, scope: &mut Scope) -> Value {
        if let Some((_, value)) = scope.locals.iter().rev().find(|(known, _)| *known == name.text) {
            return value.clone();
        }
        let flags = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        match self.symbols.get(&name.text).map(|(symbol, _)| symbol.clone()) {
            Some(Symbol::Constant(value)) => value,
            Some(Symbol::Register(index)) => {
                self.used.insert(name.text.clone());
                Value::new(Ir::Operand(Operand::Register(index)), self.register_types[usize::from(index)])
            }
            Some(Symbol::Condition(condition)) => {
                if scope.depth > 50 {
                    self.report(Diagnostic::error(name.span, format!("the condition `{}` names itself", name.text)));
                    return Value::error();
                }
                scope.depth += 1;
                // A condition is read where it is declared: it sees no locals, nor parameters that hide a register.
                let locals = std::mem::take(&mut scope.locals);
                let ir = self.condition(&condition, scope);
                scope.locals = locals;
                scope.depth -= 1;
                Value::new(ir, Type::Bool)
            }
            Some(other) => {
                let message = format!("`{}` is {}, not a value", name.text, other.describe());
                self.report(Diagnostic::error(name.span, message));
                Value::error()
            }
            None if name.text == "now" || name.text == "(now)" => {
                Value::new(Ir::Operand(Operand::Environment(Environment::Now)), Type::Time)
            }
            None if name.text == "true" || name.text == "false" => {
                Value::new(Ir::constant(i64::from(name.text == "true")), Type::Bool)
            }
            None => match flags.iter().position(|flag| *flag == name.text) {
                Some(bit) => Value { ir: Ir::constant(1 << bit), kind: Type::Integer, literal: true },
                None => {
                    self.unknown(name, "a value", scope);
                    Value::error()
                }
            },
        }
    }

    fn timer_value(&mut self, timer: &Name, value: &Name, index: u8, scope: &Scope) -> Value {
        let (names, kinds) = {
            let known = &self.timers[usize::from(index)];
            (known.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), known.clone())
        };
        if scope.event != EventKind::Timer(index) {
            let event = if self.untyped { format!("({})", timer.text) } else { timer.text.clone() };
            let message = format!("`{}.{}` is known only in `on {event}`", timer.text, value.text);
            let help = self.called_from("keep it in a register", scope);
            self.report(Diagnostic::error(timer.span.to(value.span), message).help(help));
            return Value::error();
        }
        match names.iter().position(|name| *name == value.text) {
            Some(position) => Value::new(Ir::Operand(Operand::Event(position as u8)), kinds[position].1.0),
            None => {
                let message = format!("the timer `{}` carries no `{}`", timer.text, value.text);
                let carries = if names.is_empty() { "nothing".to_string() } else { names.join(", ") };
                self.report(Diagnostic::error(value.span, message).help(format!("it carries {carries}")));
                Value::error()
            }
        }
    }

    /// `header.field` of `base`, or `packet.header.field` of a named packet.
    pub(crate) fn field_path(
        &mut self,
        path: &[Name],
        base: PacketRef,
        scope: &Scope,
    ) -> Option<(PacketRef, u16, Type)> {
        let (packet, header, field) = match path {
            [header, field] => (base, header, field),
            [packet, header, field] => (self.packet_name(packet, scope)?, header, field),
            _ => {
                let span = path.first().map_or(Span::default(), |name| name.span);
                self.report(Diagnostic::error(span, "expected `header.field` or `packet.header.field`"));
                return None;
            }
        };
        if packet == PacketRef::Current {
            self.need_packet(header.span.to(field.span), scope);
        }
        let (index, kind) = self.field(header, field)?;
        Some((packet, index, kind))
    }

    /// `packet` or the name of a slot.
    pub(crate) fn packet_name(&mut self, name: &Name, scope: &Scope) -> Option<PacketRef> {
        if name.text == "packet" {
            self.need_packet(name.span, scope);
            return Some(PacketRef::Current);
        }
        match self.symbols.get(&name.text).map(|(symbol, _)| symbol.clone()) {
            Some(Symbol::Slot(slot)) => Some(PacketRef::Slot(slot)),
            Some(other) => {
                let message = format!("`{}` is {}, not a packet", name.text, other.describe());
                self.report(Diagnostic::error(name.span, message).help("packets are `packet` and slots"));
                None
            }
            None => {
                self.unknown(name, "a packet", scope);
                None
            }
        }
    }

    pub(crate) fn need_packet(&mut self, span: Span, scope: &Scope) {
        if matches!(scope.event, EventKind::Packet | EventKind::Other) {
            return;
        }
        let help = if self.untyped {
            "only `on (pktRcvd)` (and the states it leads to) handles a packet; `storePacket(n)` keeps one for later"
        } else {
            "only `on packet` (and what it enters) handles a packet; store it in a slot to use it later"
        };
        let help = self.called_from(help, scope);
        self.report(Diagnostic::error(span, "there is no packet at this event").help(help));
    }

    /// The help; in an action, also which call brought it here.
    fn called_from(&self, help: &str, scope: &Scope) -> String {
        let Some((action, line)) = scope.calls.first().map(|index| (&self.actions[*index].name.text, scope.call_line))
        else {
            return help.to_string();
        };
        let event = match scope.event {
            EventKind::Packet => "a packet".to_string(),
            EventKind::Timer(timer) => format!("the timer `{}`", self.image.timers[usize::from(timer)].name),
            EventKind::Data | EventKind::Call => "a call of the application".to_string(),
            EventKind::Other => "entering or leaving a state".to_string(),
        };
        format!("{help}; `{action}` is called at {event} on line {line}")
    }

    pub(crate) fn unknown(&mut self, name: &Name, what: &str, scope: &Scope) {
        let mut error = Diagnostic::error(name.span, format!("`{}` is not known; expected {what}", name.text));
        let known = self.symbols.keys().map(String::as_str).chain(scope.locals.iter().map(|(known, _)| known.as_str()));
        if let Some(near) = nearest(&name.text, known.chain(["now", "packet"])) {
            error = error.help(format!("did you mean `{near}`?"));
        }
        self.report(error);
    }
}

/// A decimal fraction like `0.9` as the quotient 9 / 10.
fn quotient(text: &str) -> Option<(u64, u64)> {
    let (whole, decimals) = text.split_once('.')?;
    let below = 10_u64.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let above: u64 = format!("{whole}{decimals}").parse().ok()?;
    let (mut divisor, mut rest) = (below, above);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    Some((above / divisor, below / divisor))
}

pub(super) fn can_hold_literal(kind: Type, literal: &Value) -> bool {
    match kind {
        Type::Integer | Type::Unsigned | Type::Sequence => true,
        Type::Mac | Type::Ipv4 => true,
        Type::Bool => matches!(literal.ir.as_constant(), Some(0 | 1)),
        Type::Time | Type::Rate => literal.ir.as_constant() == Some(0),
        Type::Error => true,
    }
}

fn machine_operator(operator: BinaryOperator, unsigned: bool) -> Operator {
    use BinaryOperator::*;
    match (operator, unsigned) {
        (Add, _) => Operator::Add,
        (Subtract, _) => Operator::Sub,
        (Multiply, _) => Operator::Mul,
        (Divide, false) => Operator::Div,
        (Divide, true) => Operator::DivUnsigned,
        (Remainder, false) => Operator::Rem,
        (Remainder, true) => Operator::RemUnsigned,
        (BitAnd, _) => Operator::And,
        (BitOr, _) => Operator::Or,
        (BitXor, _) => Operator::Xor,
        (ShiftLeft, _) => Operator::Shl,
        (ShiftRight, false) => Operator::ShrSigned,
        (ShiftRight, true) => Operator::Shr,
        // Comparisons and logic never come here: `binary` sorts them out.
        (Or | And | Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual, _) => Operator::Add,
    }
}

/// Sequence numbers that come from wider arithmetic are cut before they are used as such.
pub(crate) fn modular(value: Value) -> Ir {
    match (value.kind, value.ir) {
        (_, Ir::Operand(Operand::Constant(constant))) => Ir::constant(constant & 0xffff_ffff),
        (Type::Integer | Type::Unsigned, ir) => fold(Operator::And, ir, Ir::constant(0xffff_ffff)),
        (_, ir) => ir,
    }
}

/// The comparison of two values of one type; folded if both are constant.
pub(crate) fn compare(operator: BinaryOperator, kind: Type, left: Ir, right: Ir) -> Ir {
    use BinaryOperator::*;
    let comparison = match (operator, kind) {
        (Equal, _) => Comparison::Eq,
        (NotEqual, _) => Comparison::Ne,
        (Less, Type::Sequence) => Comparison::SeqLt,
        (LessEqual, Type::Sequence) => Comparison::SeqLe,
        (Greater, Type::Sequence) => Comparison::SeqGt,
        (GreaterEqual, Type::Sequence) => Comparison::SeqGe,
        (Less, Type::Unsigned | Type::Rate) => Comparison::LtUnsigned,
        (LessEqual, Type::Unsigned | Type::Rate) => Comparison::LeUnsigned,
        (Greater, Type::Unsigned | Type::Rate) => Comparison::GtUnsigned,
        (GreaterEqual, Type::Unsigned | Type::Rate) => Comparison::GeUnsigned,
        (Less, _) => Comparison::Lt,
        (LessEqual, _) => Comparison::Le,
        (Greater, _) => Comparison::Gt,
        _ => Comparison::Ge,
    };
    match (left.as_constant(), right.as_constant()) {
        (Some(l), Some(r)) => Ir::constant(i64::from(value::compare(comparison, l, r))),
        _ => Ir::Compare { comparison, left: Box::new(left), right: Box::new(right) },
    }
}

/// An operator on two values; folded if both are constant (but never a division by zero, which counts when it runs).
pub(crate) fn fold(operator: Operator, left: Ir, right: Ir) -> Ir {
    if let (Some(l), Some(r)) = (left.as_constant(), right.as_constant())
        && !value::divides_by_zero(operator, r)
        && let Some(result) = value::compute(operator, l, r)
    {
        return Ir::constant(result);
    }
    match (operator, left.as_constant(), right.as_constant()) {
        (Operator::Add | Operator::Or | Operator::Xor, Some(0), None) => right,
        (
            Operator::Add | Operator::Sub | Operator::Or | Operator::Xor | Operator::Shl | Operator::Shr,
            None,
            Some(0),
        ) => left,
        (Operator::Mul, Some(1), None) => right,
        (Operator::Mul | Operator::Div | Operator::DivUnsigned, None, Some(1)) => left,
        _ => Ir::compute(operator, left, right),
    }
}

/// Logical negation, pushed inwards.
pub(crate) fn negate(condition: Ir) -> Ir {
    match condition {
        Ir::Operand(Operand::Constant(value)) => Ir::constant(i64::from(value == 0)),
        Ir::Not(inner) => *inner,
        Ir::And(left, right) => or(negate(*left), negate(*right)),
        Ir::Or(left, right) => and(negate(*left), negate(*right)),
        other => Ir::Not(Box::new(other)),
    }
}

fn and(left: Ir, right: Ir) -> Ir {
    match (left.as_constant(), right.as_constant()) {
        (Some(0), _) | (_, Some(0)) => Ir::constant(0),
        (Some(_), _) => right,
        (_, Some(_)) => left,
        _ => Ir::And(Box::new(left), Box::new(right)),
    }
}

fn or(left: Ir, right: Ir) -> Ir {
    match (left.as_constant(), right.as_constant()) {
        (Some(0), _) => right,
        (_, Some(0)) => left,
        (Some(_), _) | (_, Some(_)) => Ir::constant(1),
        _ => Ir::Or(Box::new(left), Box::new(right)),
    }
}
