//! Calls in expressions: conversions and the built-in functions.

use super::expression::{Value, can_hold_literal, compare, fold, modular};
use super::ir::{FIRST_LOCAL, Ir, Step, local_operand};
use super::types::{self, Type};
use super::{Lowerer, Scope, serial};
use crate::ast::{BinaryOperator, Expression, ExpressionKind, Name};
use weftwire_image::{Environment, Operand, Operation, Operator, PacketRef, value};
use weftwire_text::diagnostic::{Diagnostic, nearest};
use weftwire_text::source::Span;

impl Lowerer<'_> {
    pub(super) fn call(&mut self, name: &Name, arguments: &[Expression], span: Span, scope: &mut Scope) -> Value {
        let count = |lowerer: &mut Self, wanted: usize| {
            let right = arguments.len() == wanted;
            if !right {
                let message = format!("`{}` takes {wanted} argument(s), found {}", name.text, arguments.len());
                lowerer.report(Diagnostic::error(span, message));
            }
            right
        };
        match name.text.as_str() {
            "min" | "max" if count(self, 2) => self.least_or_greatest(name.text == "min", arguments, span, scope),
            "muldiv" if count(self, 3) => self.mul_div(arguments, scope),
            "hash" if !arguments.is_empty() => {
                let mut values =
                    arguments.iter().map(|argument| self.expression(argument, scope).ir).collect::<Vec<_>>();
                let first = values.remove(0);
                let second = if values.is_empty() { Ir::constant(0) } else { values.remove(0) };
                let start = Ir::compute(Operator::Hash, first, second);
                let ir = values.into_iter().fold(start, |hash, value| Ir::compute(Operator::Hash, hash, value));
                Value::new(ir, Type::Unsigned)
            }
            "random" if count(self, 0) => self.random(span, scope),
            "present" if count(self, 1) => self.present(&arguments[0], scope),
            "nanoseconds" | "microseconds" | "milliseconds" | "seconds" if count(self, 1) => {
                let time = self.typed(&arguments[0], Type::Time, scope);
                let (scale, environment) = match name.text.as_str() {
                    "nanoseconds" => return Value::new(time, Type::Integer),
                    "microseconds" => (1_000, Some(Environment::NowMicroseconds)),
                    "milliseconds" => (1_000_000, Some(Environment::NowMilliseconds)),
                    _ => (1_000_000_000, None),
                };
                if let (Ir::Operand(Operand::Environment(Environment::Now)), Some(environment)) = (&time, environment) {
                    return Value::new(Ir::Operand(Operand::Environment(environment)), Type::Integer);
                }
                Value::new(fold(Operator::Div, time, Ir::constant(scale)), Type::Integer)
            }
            cast if types::named(cast).is_some() && count(self, 1) => self.cast(cast, &arguments[0], scope),
            "min" | "max" | "muldiv" | "random" | "present" | "nanoseconds" | "microseconds" | "milliseconds"
            | "seconds" => Value::error(),
            "hash" => {
                count(self, 2);
                Value::error()
            }
            other if types::named(other).is_some() => Value::error(),
            other => {
                let known = [
                    "min",
                    "max",
                    "muldiv",
                    "hash",
                    "random",
                    "present",
                    "nanoseconds",
                    "microseconds",
                    "milliseconds",
                    "seconds",
                ];
                let mut error = Diagnostic::error(name.span, format!("`{other}` is no function"));
                error = match nearest(other, known) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error.help(format!("functions are {} and the names of types", known.join(", "))),
                };
                self.report(error);
                Value::error()
            }
        }
    }

    /// `muldiv(a, b, c)`: a × b / c, where what a is, the result is, and b and c are alike.
    fn mul_div(&mut self, arguments: &[Expression], scope: &mut Scope) -> Value {
        let [left, right, divisor] = [0, 1, 2].map(|index| self.expression(&arguments[index], scope));
        if [&left, &right, &divisor].into_iter().any(|value| value.kind == Type::Error) {
            return Value::error();
        }
        let measure = |kind: Type| self.untyped || kind.is_number() || matches!(kind, Type::Time | Type::Rate);
        for (value, argument) in [(&left, &arguments[0]), (&right, &arguments[1]), (&divisor, &arguments[2])] {
            if !measure(value.kind) {
                let message = format!("{} can't be multiplied or divided", value.kind.name());
                self.report(Diagnostic::error(argument.span, message));
                return Value::error();
            }
        }
        let number = |value: &Value| value.kind.is_number();
        if right.kind != divisor.kind && !(number(&right) && number(&divisor)) && !self.untyped {
            let message = format!("`muldiv` divides {} by {}", right.kind.name(), divisor.kind.name());
            let error = Diagnostic::error(arguments[2].span, message);
            self.report(error.help("the second and the third argument are alike: their ratio is a number"));
            return Value::error();
        }
        let ir = match [&left, &right, &divisor].map(|value| value.ir.as_constant()) {
            [Some(left), Some(right), Some(divisor)] if divisor != 0 => {
                Ir::constant(value::mul_div(left, right, divisor))
            }
            _ => Ir::MulDiv(Box::new([left.ir, right.ir, divisor.ir])),
        };
        Value::new(ir, if left.kind == Type::Unsigned { Type::Integer } else { left.kind })
    }

    fn least_or_greatest(&mut self, least: bool, arguments: &[Expression], span: Span, scope: &mut Scope) -> Value {
        let left = self.expression(&arguments[0], scope);
        let right = self.expression(&arguments[1], scope);
        let kind = if self.untyped {
            Type::Integer
        } else if left.kind == right.kind || (right.literal && can_hold_literal(left.kind, &right)) {
            left.kind
        } else if left.literal && can_hold_literal(right.kind, &left) {
            right.kind
        } else if left.kind == Type::Error || right.kind == Type::Error {
            return Value::error();
        } else {
            let message = format!("this compares {} with {}", left.kind.name(), right.kind.name());
            self.report(Diagnostic::error(span, message).help("both sides must be of one type"));
            return Value::error();
        };
        if let Type::Serial(width) = kind {
            // One side stands twice in the result.
            right.ir.operands(&mut |_| self.values_made += 1);
            if self.is_too_large(span) {
                return Value::error();
            }
            let (left, right) = (serial::cut(width, left), serial::cut(width, right));
            return Value::new(serial::least_or_greatest(least, width, left, right), kind);
        }
        let operator = match (kind, least) {
            (Type::Unsigned | Type::Rate, true) => Operator::MinUnsigned,
            (Type::Unsigned | Type::Rate, false) => Operator::MaxUnsigned,
            (Type::Sequence, true) => Operator::SeqMin,
            (Type::Sequence, false) => Operator::SeqMax,
            (_, true) => Operator::Min,
            (_, false) => Operator::Max,
        };
        let literal = left.literal && right.literal;
        let wrap = |value: Value| if kind == Type::Sequence { modular(value) } else { value.ir };
        Value { ir: fold(operator, wrap(left), wrap(right)), kind, literal }
    }

    /// A random number is drawn in front of the statement that uses it, into a local.
    fn random(&mut self, span: Span, scope: &mut Scope) -> Value {
        if !scope.allow_random {
            let error = Diagnostic::error(span, "`random()` can't stand in a condition");
            self.report(error.help("draw it first: `let r = random();`"));
            return Value::error();
        }
        let local = self.new_local(span, scope);
        let operation = Operation::Compute {
            operator: Operator::Random,
            register: FIRST_LOCAL + local as u16,
            left: Operand::Constant(0),
            right: Operand::Constant(0),
        };
        scope.before.push(Step::Do { operation, values: Vec::new() });
        Value::new(Ir::Operand(local_operand(local)), Type::Unsigned)
    }

    fn present(&mut self, argument: &Expression, scope: &mut Scope) -> Value {
        let ExpressionKind::Path(path) = &argument.kind else {
            self.report(
                Diagnostic::error(argument.span, "`present` takes a header or a field")
                    .help("for instance `present(tcp.timestamp)`"),
            );
            return Value::error();
        };
        let mut path = path.clone();
        // `present(header)` asks for its first field.
        if let Some(last) = path.last()
            && let Some(first) = self.first_field(&last.text)
        {
            path.push(Name { text: first, span: argument.span });
        }
        if let [header] = &path[..] {
            // There is no such header; saying so also names the nearest.
            self.field(header, header);
            return Value::error();
        }
        match self.field_path(&path, PacketRef::Current, scope) {
            Some((packet, field, _)) => Value::new(Ir::Operand(Operand::Present { packet, field }), Type::Bool),
            None => Value::error(),
        }
    }

    fn cast(&mut self, name: &str, argument: &Expression, scope: &mut Scope) -> Value {
        let value = self.expression(argument, scope);
        let Some((kind, register)) = types::named(name) else { return Value::error() };
        if kind == Type::Bool {
            return Value::new(compare(BinaryOperator::NotEqual, Type::Integer, value.ir, Ir::constant(0)), Type::Bool);
        }
        let mask = register.cut(-1);
        let ir = if kind == Type::Sequence && matches!(value.kind, Type::Sequence) || mask == -1 {
            value.ir
        } else {
            fold(Operator::And, value.ir, Ir::constant(mask))
        };
        Value::new(ir, kind)
    }
}
