//! Timers: set, reset, cancelled, moved and asked.

use super::expression::{Value, compare, modular};
use super::ir::{Ir, Step};
use super::statement::{NO_VALUE, push};
use super::types::Type;
use super::{Fields, Lowerer, Scope, Symbol, serial};
use crate::ast::{BinaryOperator, Expression, ExpressionKind, Name, UnaryOperator};
use std::collections::BTreeSet;
use weftwire_image::{
    Comparison, Event, Image, Operand, Operation, PayloadTest, Query, RegisterType, TimerQuery, limits,
};
use weftwire_text::diagnostic::Diagnostic;

impl Lowerer<'_> {
    pub(super) fn set_timer(
        &mut self,
        name: &Name,
        arguments: &[Expression],
        delay: &Expression,
        reset: bool,
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) {
        let Some(timer) = self.timer_index(name) else { return };
        self.set_timers.insert(timer);
        let payload = self.timers[usize::from(timer)].clone();
        if arguments.len() != payload.len() {
            let names: Vec<&str> = payload.iter().map(|(name, _)| name.as_str()).collect();
            let message = format!("`{}` carries {} value(s), found {}", name.text, payload.len(), arguments.len());
            self.report(Diagnostic::error(name.span, message).help(format!(
                "write `set {}({}) in ...`",
                name.text,
                names.join(", ")
            )));
            return;
        }
        let target = if self.untyped { Type::Integer } else { Type::Time };
        let mut values = vec![self.typed(delay, target, scope)];
        if let [Ir::Operand(Operand::Constant(time))] = values[..] {
            self.long_timers.insert((delay.span, time));
        }
        for (argument, (_, kind)) in arguments.iter().zip(&payload) {
            let value = self.expression(argument, scope);
            values.push(self.held(value, *kind, argument.span));
        }
        if reset {
            push(steps, Operation::CancelTimer { timer, tests: Vec::new() }, Vec::new());
        }
        let operation = Operation::SetTimer { timer, delay: NO_VALUE, payload: vec![NO_VALUE; payload.len()] };
        push(steps, operation, values);
    }

    pub(super) fn cancel_timer(
        &mut self,
        name: &Name,
        tests: Option<&Expression>,
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) {
        let Some(timer) = self.timer_index(name) else { return };
        let (tests, values) = self.timer_tests(timer, tests, scope);
        push(steps, Operation::CancelTimer { timer, tests }, values);
    }

    /// `move` and, without a delay, `fire`.
    pub(super) fn move_timer(
        &mut self,
        name: &Name,
        tests: Option<&Expression>,
        delay: Option<&Expression>,
        scope: &mut Scope,
        steps: &mut Vec<Step>,
    ) {
        let Some(timer) = self.timer_index(name) else { return };
        let mut values = vec![delay.map_or(Ir::constant(0), |delay| self.typed(delay, Type::Time, scope))];
        if let (Some(delay), [Ir::Operand(Operand::Constant(time))]) = (delay, &values[..]) {
            self.long_timers.insert((delay.span, *time));
        }
        let (tests, right) = self.timer_tests(timer, tests, scope);
        values.extend(right);
        push(steps, Operation::MoveTimer { timer, delay: NO_VALUE, tests }, values);
    }

    /// Tests of a timer's settings, and the values of their right sides.
    fn timer_tests(&mut self, timer: u8, tests: Option<&Expression>, scope: &mut Scope) -> (Vec<PayloadTest>, Vec<Ir>) {
        let (mut made, mut values) = (Vec::new(), Vec::new());
        if let Some(tests) = tests {
            let fields = self.timers[usize::from(timer)].clone();
            self.field_tests(("the timer", &fields), tests, scope, &mut made, &mut values);
        }
        (made, values)
    }

    /// `timer.question(arguments)`
    pub(super) fn timer_question(
        &mut self,
        timer: u8,
        question: &Name,
        arguments: &[Expression],
        scope: &mut Scope,
    ) -> Value {
        let Some(what) = TimerQuery::ALL.into_iter().find(|what| what.name() == question.text) else {
            return self.no_question(question, "timers", TimerQuery::ALL.iter().map(|what| what.name()));
        };
        let fields = self.timers[usize::from(timer)].clone();
        let Some((value, tests)) = self.asked_field(question, "the timer", what.has_value(), &fields, arguments) else {
            return Value::error();
        };
        let (tests, values) = self.timer_tests(timer, tests, scope);
        let (result, kind) = if what.has_value() { fields[value].1 } else { (Type::Integer, RegisterType::I64) };
        let ordered = matches!(what, TimerQuery::Least | TimerQuery::Greatest);
        let kind = if ordered { kind } else { RegisterType::I64 };
        let query = Query::Timer { timer, what, value: value as u8, kind, tests };
        Value::new(Ir::Query { query, values }, result)
    }

    pub(super) fn timer_index(&mut self, name: &Name) -> Option<u8> {
        match self.symbol(name, "a timer")? {
            Symbol::Timer(timer) => Some(timer),
            other => {
                let message = format!("`{}` is {}, not a timer", name.text, other.describe());
                self.report(Diagnostic::error(name.span, message));
                None
            }
        }
    }

    /// Tests of fields, joined by `and`: `field == value`; a truth value may stand alone. `owner` is for messages.
    pub(super) fn field_tests(
        &mut self,
        (owner, fields): (&str, &Fields),
        tests: &Expression,
        scope: &mut Scope,
        made: &mut Vec<PayloadTest>,
        values: &mut Vec<Ir>,
    ) {
        let wrong = |lowerer: &mut Self, span| {
            let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
            let help = if names.is_empty() {
                "it carries nothing to test".to_string()
            } else {
                format!("write tests like `{} == value`, joined by `and`", names.join(" == value` or `"))
            };
            lowerer.report(Diagnostic::error(span, format!("this is no test of what {owner} carries")).help(help));
        };
        let position = |side: &Expression| match &side.kind {
            ExpressionKind::Path(path) if path.len() == 1 => fields.iter().position(|(name, _)| *name == path[0].text),
            _ => None,
        };
        if made.len() >= limits::MAX_TESTS {
            return self.too_many(tests.span, "tests of one statement", limits::MAX_TESTS);
        }
        let truth = |side: &Expression| position(side).filter(|value| fields[*value].1.0 == Type::Bool);
        let test = |value: usize, comparison| PayloadTest::new(value as u8, comparison, NO_VALUE);
        let (operator, left, right) = match &tests.kind {
            ExpressionKind::Binary(operator, left, right) => (*operator, left, right),
            ExpressionKind::Unary(UnaryOperator::Not, inner) if truth(inner).is_some() => {
                made.push(test(truth(inner).unwrap_or(0), Comparison::Eq));
                return values.push(Ir::constant(0));
            }
            _ => match truth(tests) {
                Some(value) => {
                    made.push(test(value, Comparison::Ne));
                    return values.push(Ir::constant(0));
                }
                None => return wrong(self, tests.span),
            },
        };
        if operator == BinaryOperator::And {
            self.field_tests((owner, fields), left, scope, made, values);
            self.field_tests((owner, fields), right, scope, made, values);
            return;
        }
        let (value, operator, other) = match (position(left), position(right)) {
            (Some(value), _) => (value, operator, right),
            (None, Some(value)) => (value, flipped(operator), left),
            (None, None) => return wrong(self, tests.span),
        };
        if !operator.is_comparison() {
            return wrong(self, tests.span);
        }
        let (kind, _) = fields[value].1;
        let right = self.expression(other, scope);
        let from = right.kind;
        let mut right = self.coerce(right, kind, other.span);
        // A test knows the width of sequence numbers: those of any are ordered as those of 32 bits.
        let (mut order, mut bits) = (kind, None);
        match kind {
            Type::Sequence => right = modular(Value::new(right, from)),
            Type::Serial(width) => {
                right = serial::cut(width, Value::new(right, from));
                if !matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual) {
                    (order, bits) = (Type::Sequence, Some(width));
                }
            }
            _ => {}
        }
        let shape = compare(operator, order, Ir::Operand(Operand::Event(0)), right.clone());
        let comparison = match shape {
            Ir::Compare { comparison, .. } => comparison,
            _ => Comparison::Eq,
        };
        let plain = test(value, comparison);
        made.push(PayloadTest { bits: bits.unwrap_or(plain.bits), ..plain });
        values.push(right);
    }
}

/// The operator with its sides changed.
fn flipped(operator: BinaryOperator) -> BinaryOperator {
    use BinaryOperator::*;
    match operator {
        Less => Greater,
        LessEqual => GreaterEqual,
        Greater => Less,
        GreaterEqual => LessEqual,
        other => other,
    }
}

/// How many settings of timers can be pending at once, if each takes the place of the one before: it is set behind a `cancel` of all
/// its settings, or in its own event. `None`: nothing bounds them.
pub(super) fn settings_at_once(image: &Image) -> Option<u32> {
    let mut timers = BTreeSet::new();
    for row in &image.rows {
        let mut free: BTreeSet<u8> = match row.event {
            Event::Timer(timer) => BTreeSet::from([timer]),
            _ => BTreeSet::new(),
        };
        for operation in image.written_out(&row.operations) {
            match operation {
                Operation::CancelTimer { timer, tests } if tests.is_empty() => {
                    free.insert(*timer);
                }
                Operation::SetTimer { timer, .. } if free.remove(timer) => {
                    timers.insert(*timer);
                }
                Operation::SetTimer { .. } => return None,
                _ => {}
            }
        }
    }
    Some(timers.len() as u32)
}
