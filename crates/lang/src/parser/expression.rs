//! Expressions, by precedence climbing. From loose to tight: `or`; `and`; `not`; comparisons (which do not chain);
//! `|`; `^`; `&`; `<< >>`; `+ -`; `* / %`; unary `- ~`.

use super::cursor::{Cursor, MAX_OPERATORS, describe};
use crate::ast::{BinaryOperator, Expression, ExpressionKind, Name, Question, UnaryOperator};
use BinaryOperator::*;
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::lexer::{Kind, NumberValue};

/// How tightly comparisons bind.
const COMPARISON: u8 = 4;

impl Cursor<'_> {
    /// An expression. What does not parse is reported and becomes [`ExpressionKind::Error`].
    pub(crate) fn expression(&mut self) -> Expression {
        let span = self.span();
        if self.expressions == 0 {
            self.operators = 0;
        }
        self.expressions += 1;
        let parsed = self.nested(|cursor| cursor.binary(0)).unwrap_or(Expression { kind: ExpressionKind::Error, span });
        self.expressions -= 1;
        parsed
    }

    /// An expression without comparisons: in front of a word that would compare, as `in` does.
    pub(crate) fn additive(&mut self) -> Expression {
        self.binary(COMPARISON + 1)
    }

    fn binary_operator(&self) -> Option<(BinaryOperator, u8)> {
        Some(match self.peek() {
            Kind::Word(word) if word == "or" => (Or, 1),
            Kind::Word(word) if word == "and" => (And, 2),
            Kind::Punctuation(text) => match *text {
                "||" => (Or, 1),
                "&&" => (And, 2),
                "==" => (Equal, 4),
                "!=" => (NotEqual, 4),
                "<" => (Less, 4),
                "<=" => (LessEqual, 4),
                ">" => (Greater, 4),
                ">=" => (GreaterEqual, 4),
                "|" => (BitOr, 5),
                "^" => (BitXor, 6),
                "&" => (BitAnd, 7),
                "<<" => (ShiftLeft, 8),
                ">>" => (ShiftRight, 8),
                "+" => (Add, 9),
                "-" => (Subtract, 9),
                "*" => (Multiply, 10),
                "/" => (Divide, 10),
                "%" => (Remainder, 10),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn binary(&mut self, weakest: u8) -> Expression {
        let mut left = self.unary(weakest);
        let mut compared = false;
        loop {
            // `x in 10.0.0.0/8` compares; it has a prefix, not a value, on its right.
            let in_prefix = self.at_word("in");
            let operator = if in_prefix { Some((Equal, COMPARISON)) } else { self.binary_operator() };
            let Some((operator, strength)) = operator else { break };
            if strength < weakest {
                break;
            }
            if operator.is_comparison() {
                if compared {
                    self.error_here(
                        "comparisons do not chain",
                        Some("write `a < b and b < c` where `a < b < c` is meant"),
                    );
                }
                compared = true;
            }
            self.operators += 1 + usize::from(in_prefix);
            if self.operators > MAX_OPERATORS {
                self.give_up(&format!("this expression has more than {MAX_OPERATORS} operators"));
                break;
            }
            self.advance();
            if in_prefix {
                left = self.prefix_test(left);
                continue;
            }
            let right = match self.nested(|cursor| cursor.binary(strength + 1)) {
                Some(right) => right,
                None => Expression { kind: ExpressionKind::Error, span: self.span() },
            };
            let span = left.span.to(right.span);
            left = Expression { kind: ExpressionKind::Binary(operator, Box::new(left), Box::new(right)), span };
        }
        left
    }

    /// `ADDRESS/BITS` behind `in`: the test whether a value has that prefix, `value & mask == address`.
    fn prefix_test(&mut self, value: Expression) -> Expression {
        const WANTED: &str = "a prefix is written `10.0.0.0/8`, or `02:00:00:00:00:00/24` for Ethernet addresses";
        let start = self.span();
        let wrong = Expression { kind: ExpressionKind::Error, span: start };
        let (address, width) = match self.peek() {
            Kind::Ipv4(address) => (u64::from(*address), 32),
            Kind::Mac(address) => (*address, 48),
            other => {
                let found = describe(other);
                self.error_here(&format!("expected a prefix behind `in`, found {found}"), Some(WANTED));
                return wrong;
            }
        };
        self.advance();
        if !self.expect("/", "and how many bits the prefix has") {
            return wrong;
        }
        let bits = match self.peek() {
            Kind::Number { value: NumberValue::Whole(bits), unit } if unit.is_empty() && *bits <= width => *bits,
            _ => {
                self.error_here(&format!("a prefix has 0 to {width} bits here"), Some(WANTED));
                return wrong;
            }
        };
        self.advance();
        let span = start.to(self.previous_span());
        let all = (1_u64 << width) - 1;
        let mask = all & !(all >> bits);
        if address & !mask != 0 {
            let shown = |address: u64| match width {
                32 => std::net::Ipv4Addr::from(address as u32).to_string(),
                _ => address.to_be_bytes()[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"),
            };
            let error = Diagnostic::error(span, format!("`{}` has bits behind its prefix of {bits}", shown(address)));
            self.report(error.help(format!("write `{}/{bits}`", shown(address & mask))));
        }
        let literal = |address: u64| match width {
            32 => ExpressionKind::Ipv4(address as u32),
            _ => ExpressionKind::Mac(address),
        };
        let whole = value.span.to(span);
        let masked =
            ExpressionKind::Binary(BitAnd, Box::new(value), Box::new(Expression { kind: literal(mask), span }));
        let address = Expression { kind: literal(address & mask), span };
        let masked = Expression { kind: masked, span: whole };
        Expression { kind: ExpressionKind::Binary(Equal, Box::new(masked), Box::new(address)), span: whole }
    }

    fn unary(&mut self, weakest: u8) -> Expression {
        let span = self.span();
        let (operator, strength) = if self.at_word("not") || self.at_punctuation("!") {
            (UnaryOperator::Not, 3)
        } else if self.at_punctuation("-") {
            (UnaryOperator::Negate, 11)
        } else if self.at_punctuation("~") {
            (UnaryOperator::Complement, 11)
        } else {
            return self.primary();
        };
        if operator == UnaryOperator::Not && weakest > 3 {
            self.error_here(
                "`not` binds looser than the operator in front of it",
                Some("put it in parentheses: `(not ...)`"),
            );
        }
        self.advance();
        let inner =
            self.nested(|cursor| cursor.binary(strength)).unwrap_or(Expression { kind: ExpressionKind::Error, span });
        let span = span.to(inner.span);
        Expression { kind: ExpressionKind::Unary(operator, Box::new(inner)), span }
    }

    fn primary(&mut self) -> Expression {
        let span = self.span();
        let kind = match self.peek() {
            Kind::Number { value, unit } => {
                self.advance();
                ExpressionKind::Number { value: *value, unit: unit.clone() }
            }
            Kind::Mac(address) => {
                self.advance();
                ExpressionKind::Mac(*address)
            }
            Kind::Ipv4(address) => {
                self.advance();
                ExpressionKind::Ipv4(*address)
            }
            Kind::Punctuation("(") => {
                self.advance();
                let inner = self.expression();
                self.expect(")", "to close the parenthesis");
                return Expression { span: span.to(self.previous_span()), ..inner };
            }
            Kind::Word(_) => return self.path_or_call(),
            other => {
                let found = describe(other);
                self.report(Diagnostic::error(span, format!("expected a value, found {found}")));
                return Expression { kind: ExpressionKind::Error, span };
            }
        };
        Expression { kind, span }
    }

    fn path_or_call(&mut self) -> Expression {
        let span = self.span();
        let Some(path) = self.path("a value") else { return Expression { kind: ExpressionKind::Error, span } };
        if let [object, question] = &path[..]
            && self.at_punctuation("(")
        {
            let (object, name) = (object.clone(), question.clone());
            let question = Question { object, name, arguments: self.arguments() };
            let kind = ExpressionKind::Question(Box::new(question));
            return Expression { kind, span: span.to(self.previous_span()) };
        }
        let single = (path.len() == 1).then(|| path[0].clone());
        let kind = match single {
            Some(name) if self.at_punctuation("(") => ExpressionKind::Call(name, self.arguments()),
            Some(name) if self.take("[") => {
                let index = self.expression();
                self.expect("]", "to close the index");
                ExpressionKind::Index(name, Box::new(index))
            }
            _ => ExpressionKind::Path(path),
        };
        Expression { kind, span: span.to(self.previous_span()) }
    }

    /// `a`, `a.b`, `a.b.c`
    pub(crate) fn path(&mut self, what: &str) -> Option<Vec<Name>> {
        let mut path = vec![self.name(what)?];
        while self.take(".") {
            path.push(self.name("a field's name behind `.`")?);
        }
        Some(path)
    }

    /// `(a, b)`
    pub(crate) fn arguments(&mut self) -> Vec<Expression> {
        let mut arguments = Vec::new();
        if !self.expect("(", "to open the arguments") || self.take(")") {
            return arguments;
        }
        loop {
            arguments.push(self.expression());
            if !self.take(",") {
                break;
            }
        }
        self.expect(")", "to close the arguments");
        arguments
    }
}
