//! Calls in statements: the dialect's own actions, which become XL's statements, and macros.

use super::{Parser, TIMER, binary, number, path};
use crate::ast::{BinaryOperator, Expression, ExpressionKind, Name, PacketExpression, StatementKind};
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::lexer::NumberValue;
use weftwire_text::source::Span;

/// The actions of the dialect itself.
pub(super) const BUILT_IN: &[&str] = &[
    "sendPacket",
    "setField",
    "storePacket",
    "deletePacket",
    "setTimer",
    "removeTimer",
    "setNextState",
    "deleteInstance",
    "closeSocket",
    "notifyRcvd",
];
const SET_FIELD: &str = "write `setField(header.field, packet, value)`";

impl Parser<'_> {
    pub(super) fn call(&mut self, name: Name) -> Option<StatementKind> {
        if name.text == "setField" {
            return self.set_field();
        }
        let arguments = self.arguments()?;
        let range = match name.text.as_str() {
            "sendPacket" => 2..=2,
            "storePacket" | "deletePacket" | "setNextState" => 1..=1,
            "setTimer" => 3..=3,
            "removeTimer" => 0..=2,
            _ => 0..=0,
        };
        self.check_count(&name, &arguments, range)?;
        let mut arguments = arguments.into_iter();
        let mut next = || arguments.next();
        Some(match name.text.as_str() {
            "sendPacket" => {
                let packet = self.packet(&next()?)?;
                StatementKind::Send { packet: plain(packet), port: next()?, cut: None }
            }
            "storePacket" => {
                let slot = self.slot(&next()?)?;
                StatementKind::Store { packet: plain(Name { text: "packet".into(), span: name.span }), slot }
            }
            "deletePacket" => StatementKind::Discard { slot: self.slot(&next()?)? },
            "setNextState" => match next()? {
                Expression { kind: ExpressionKind::Path(path), .. } if path.len() == 1 => {
                    StatementKind::Goto { state: path.into_iter().next()? }
                }
                other => {
                    self.cursor.report(Diagnostic::error(other.span, "`setNextState` takes a state's name"));
                    return None;
                }
            },
            "setTimer" => {
                let values = vec![next()?, next()?];
                let delay = next()?;
                self.warn_of_short_timer(&values, &delay);
                let span = delay.span;
                let delay = binary(BinaryOperator::Multiply, delay, number(1000, span));
                StatementKind::Set { timer: timer(name.span), arguments: values, delay, reset: false }
            }
            "removeTimer" => {
                let mut tests: Option<Expression> = None;
                for field in ["data0", "data1"] {
                    let Some(value) = next() else { break };
                    let span = value.span;
                    let test = binary(BinaryOperator::Equal, path(&[field], span), value);
                    tests = Some(match tests {
                        Some(tests) => binary(BinaryOperator::And, tests, test),
                        None => test,
                    });
                }
                StatementKind::Cancel { timer: timer(name.span), tests }
            }
            "deleteInstance" => StatementKind::DeleteInstance,
            "closeSocket" => {
                StatementKind::Notify { name: Name { text: "closed".into(), span: name.span }, value: None }
            }
            "notifyRcvd" => {
                StatementKind::Deliver { packet: Name { text: "packet".into(), span: name.span }, range: None }
            }
            _ => StatementKind::Call { action: name, arguments: Vec::new() },
        })
    }

    /// `setField(header.field, packet, value)`: its first argument is a place, not a value.
    fn set_field(&mut self) -> Option<StatementKind> {
        self.cursor.expect("(", "behind `setField`");
        let header = self.cursor.name("a header")?;
        self.cursor.expect(".", "and a field behind the header");
        let field = self.cursor.name("a field")?;
        let field = self.header_field(&header, &field)?;
        if !self.comma()? {
            self.cursor.error_here("expected a packet behind the field", Some(SET_FIELD));
            return None;
        }
        let packet = self.term()?;
        let packet = self.packet(&packet)?;
        if !self.comma()? {
            self.cursor.error_here("expected a value behind the packet", Some(SET_FIELD));
            return None;
        }
        let value = self.term()?;
        self.cursor.expect(")", "to close the arguments of `setField`");
        let target = std::iter::once(packet).chain(field).collect();
        Some(StatementKind::Assign { target, operator: None, value, optional: false })
    }

    pub(super) fn check_count(
        &mut self,
        name: &Name,
        arguments: &[Expression],
        range: std::ops::RangeInclusive<usize>,
    ) -> Option<()> {
        if range.contains(&arguments.len()) {
            return Some(());
        }
        let wanted = match (range.start(), range.end()) {
            (0, 0) => "no arguments".to_string(),
            (low, high) if low == high => format!("{low} argument{}", if *low == 1 { "" } else { "s" }),
            (low, high) => format!("{low} to {high} arguments"),
        };
        let error = Diagnostic::error(name.span, format!("`{}` takes {wanted}, found {}", name.text, arguments.len()));
        self.cursor.report(error);
        None
    }

    /// The slot that a packet reference stands for; the paper's `storePacket(CURR_PKT)` means slot 0.
    fn slot(&mut self, argument: &Expression) -> Option<Name> {
        let mut slot = self.packet(argument)?;
        if slot.text == "packet" {
            slot.text = "0".into();
        }
        Some(slot)
    }

    /// A packet reference: a constant 0 to 31, or 255 or `CURR_PKT`.
    fn packet(&mut self, argument: &Expression) -> Option<Name> {
        let text = match &argument.kind {
            ExpressionKind::Number { value: NumberValue::Whole(255), .. } => "packet".to_string(),
            ExpressionKind::Number { value: NumberValue::Whole(slot @ 0..=31), .. } => slot.to_string(),
            ExpressionKind::Path(path) if path.len() == 1 && path[0].text == "CURR_PKT" => "packet".to_string(),
            _ => {
                let error = Diagnostic::error(argument.span, "this is no packet");
                self.cursor
                    .report(error.help("packets are 0 to 31 (stored) and 255 or CURR_PKT (the packet being handled)"));
                return None;
            }
        };
        Some(Name { text, span: argument.span })
    }

    /// `setTimer(1, 50000000, 1)` is what the paper's Figure 13 writes, and fires after a microsecond.
    fn warn_of_short_timer(&mut self, values: &[Expression], delay: &Expression) {
        let constant = |expression: &Expression| match expression.kind {
            ExpressionKind::Number { value: NumberValue::Whole(value), .. } => Some(value),
            _ => None,
        };
        let Some(delay_us) = constant(delay) else { return };
        if delay_us < 1000 && values.iter().filter_map(constant).any(|value| value >= 1000) {
            let message = format!("this timer fires after {delay_us} microseconds, sooner than any answer can come");
            let help = "the order is setTimer(data0, data1, t), t in microseconds";
            self.cursor.diagnostics.push(Diagnostic::warning(delay.span, message).help(help));
        }
    }
}

fn plain(name: Name) -> PacketExpression {
    PacketExpression { name, fields: Vec::new(), data: None }
}

fn timer(span: Span) -> Name {
    Name { text: TIMER.into(), span }
}
