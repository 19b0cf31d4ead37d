//! Expressions: names and types are resolved, constants folded.

use super::ir::Ir;
use super::types::Type;
use super::{Lowerer, Scope, Symbol, serial, unit_scale};
use crate::ast::{BinaryOperator, Expression, ExpressionKind, UnaryOperator};
use weftwire_image::{Comparison, Operand, Operator, value};
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::lexer::NumberValue;
use weftwire_text::quantity::UNITS;
use weftwire_text::source::Span;

/// Values and operators of one expression, its named conditions written out. It bounds what doubling can do.
const MAX_VALUES: usize = 1_500;
/// What the count of these is set to when it was said that they are too many.
const TOLD: usize = 1 << 30;
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
        if self.is_too_large(span) {
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
            ExpressionKind::Question(question) => {
                self.question(&question.object, &question.name, &question.arguments, scope)
            }
            ExpressionKind::Index(table, index) => {
                let index = self.typed(index, Type::Integer, scope);
                match self.symbol(table, "a table or an array") {
                    Some(Symbol::Table(table)) => {
                        Value::new(Ir::Lookup { table, index: Box::new(index) }, Type::Integer)
                    }
                    Some(Symbol::Array { first, count }) => {
                        self.used.insert(self.key(&table.text));
                        let element = Ir::Element { first, count, index: Box::new(index) };
                        Value::new(element, self.register_types[usize::from(first)])
                    }
                    Some(_) => {
                        let message = format!("`{}` is no table or array", table.text);
                        self.report(Diagnostic::error(table.span, message));
                        Value::error()
                    }
                    None => Value::error(),
                }
            }
            ExpressionKind::Error => Value::error(),
        }
    }

    /// Whether the expression has too many values; reports so.
    pub(super) fn is_too_large(&mut self, span: Span) -> bool {
        if (MAX_VALUES + 1..TOLD).contains(&self.values_made) {
            let message = "with its conditions written out this expression is too large";
            self.report(Diagnostic::error(span, message).help("give parts of it a name by `let`"));
            self.values_made = TOLD;
        }
        self.values_made > MAX_VALUES
    }

    fn number(&mut self, number: NumberValue, unit: &str, span: Span) -> Value {
        let Some((scale, kind)) = unit_scale(unit) else {
            let help = format!("units are {UNITS}");
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
            (a, b) if a.is_sequence() && b.is_number() => a,
            (a, b) if a.is_number() && b.is_sequence() => b,
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
        if let Type::Serial(width) = kind {
            let (left, right) = (serial::cut(width, left), serial::cut(width, right));
            return Value::new(serial::comparison(operator, width, left, right), Type::Bool);
        }
        let wrap = |value: Value| if kind == Type::Sequence { modular(value) } else { value.ir };
        Value::new(compare(operator, kind, wrap(left), wrap(right)), Type::Bool)
    }

    fn arithmetic(&mut self, operator: BinaryOperator, left: Value, right: Value, span: Span) -> Value {
        use BinaryOperator::*;
        let literal = left.literal && right.literal;
        match (left.kind, operator, right.kind) {
            (Type::Serial(width), Subtract, Type::Serial(other)) if width == other => {
                return Value::new(serial::distance(width, left.ir, right.ir), Type::Integer);
            }
            (Type::Serial(width), Add | Subtract, b) if b.is_number() => {
                let moved = serial::moved(machine_operator(operator, false), width, left.ir, right.ir);
                return Value::new(moved, Type::Serial(width));
            }
            (a, Add, Type::Serial(width)) if a.is_number() => {
                return Value::new(serial::moved(Operator::Add, width, left.ir, right.ir), Type::Serial(width));
            }
            _ => {}
        }
        let (result, machine, modular) = match (left.kind, operator, right.kind) {
            _ if self.untyped => (Type::Integer, machine_operator(operator, false), false),
            (Type::Sequence, Subtract, Type::Sequence) => (Type::Integer, Operator::SeqDistance, false),
            (Type::Sequence, Add | Subtract, b) if b.is_number() => {
                (Type::Sequence, machine_operator(operator, false), true)
            }
            (a, Add, Type::Sequence) if a.is_number() => (Type::Sequence, Operator::Add, true),
            (a, BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight | Remainder, b)
                if a.is_sequence() && b.is_number() =>
            {
                let kind = if a == Type::Serial(64) { Type::Unsigned } else { Type::Integer };
                (kind, machine_operator(operator, true), false)
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
        Type::Integer | Type::Unsigned | Type::Sequence | Type::Serial(_) => true,
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
