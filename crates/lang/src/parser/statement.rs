//! Statements of XL proper.

use super::cursor::{Cursor, describe};
use crate::ast::{BinaryOperator, ElementStatement, Expression, ExpressionKind};
use crate::ast::{Branch, Name, PaceStatement, PacketExpression, Repeat, SequenceStatement, Statement, StatementKind};
use weftwire_text::diagnostic::{Diagnostic, nearest};
use weftwire_text::lexer::Kind;

/// The words that start statements. `pace`, `restart`, `ask` and `withdraw` do so only in front of a name.
pub(super) const STATEMENTS: &[&str] = &[
    "if", "else", "let", "send", "store", "discard", "reverse", "keep", "resize", "set", "reset", "cancel", "goto",
    "delete", "deliver", "release", "notify",
];

impl Cursor<'_> {
    /// `{ statement ... }`
    pub(crate) fn block(&mut self, context: &str) -> Vec<Statement> {
        let mut statements = Vec::new();
        if !self.expect("{", context) {
            self.recover();
            return statements;
        }
        self.nested(|cursor| {
            while !cursor.at_end() && !cursor.at_punctuation("}") {
                let before = cursor.position();
                if let Some(statement) = cursor.statement() {
                    statements.push(statement);
                }
                cursor.must_move(before);
            }
        });
        self.expect("}", "to close the block");
        statements
    }

    fn statement(&mut self) -> Option<Statement> {
        let start = self.span();
        let debug = self.take_debug();
        let Kind::Word(word) = self.peek() else {
            let found = describe(self.peek());
            self.error_here(&format!("expected a statement, found {found}"), None);
            self.recover();
            return None;
        };
        let kind = match word.as_str() {
            "if" => self.if_statement(debug)?,
            _ if debug => {
                self.misplaced_debug();
                return None;
            }
            "let" => self.let_statement()?,
            // Only in front of a count: a good name for a register, too.
            "repeat" if !self.is_target() => self.repeat_statement()?,
            "send" => self.send_statement()?,
            "store" => self.store_statement()?,
            "discard" => {
                self.advance();
                StatementKind::Discard { slot: self.name("a slot")? }
            }
            "reverse" => {
                self.advance();
                StatementKind::Reverse { packet: self.name("a packet")? }
            }
            "keep" => self.keep_statement()?,
            "resize" => self.resize_statement()?,
            "set" | "reset" => self.set_statement()?,
            "cancel" => self.cancel_statement()?,
            // Only in front of a name: both are good names for registers, too.
            "pace" if self.word_follows() => self.pace_statement()?,
            "restart" if self.word_follows() => {
                self.advance();
                if self.take_word("instance") {
                    StatementKind::RestartInstance
                } else {
                    StatementKind::Restart { pacer: self.name("a pacer")? }
                }
            }
            "ask" if self.word_follows() => self.ask_statement()?,
            "withdraw" if self.word_follows() => {
                self.advance();
                StatementKind::Withdraw { turns: self.name("turns")? }
            }
            "goto" => {
                self.advance();
                StatementKind::Goto { state: self.name("a state")? }
            }
            "delete" => {
                self.advance();
                self.expect_word("instance", "behind `delete`");
                StatementKind::DeleteInstance
            }
            "deliver" => self.deliver_statement()?,
            // Only in front of a name, as above.
            "begin" | "trim" | "add" | "hold" | "append" | "split" | "change" if self.word_follows() => {
                StatementKind::Sequence(Box::new(self.sequence_statement(word)?))
            }
            "move" | "fire" if self.word_follows() => self.move_statement(word == "fire")?,
            "release" => {
                self.advance();
                StatementKind::Release { length: self.expression() }
            }
            "notify" => self.notify_statement()?,
            "else" => {
                self.error_here("`else` without `if`", Some("an `else` stands directly behind the `}` of its `if`"));
                self.advance();
                self.recover();
                return None;
            }
            "while" | "for" | "loop" if !self.is_target() => {
                let message = format!("XL has no loop `{word}`");
                let help = "how often at most must be known: `repeat 64 while CONDITION { ... }`";
                self.error_here(&message, Some(help));
                self.advance();
                while !self.at_end() && !matches!(self.peek(), Kind::Punctuation("{" | ";" | "}")) {
                    self.advance();
                }
                self.recover();
                return None;
            }
            _ => self.assignment_or_call()?,
        };
        if !kind.ends_with_block() {
            self.semicolon();
        }
        Some(Statement { kind, span: start.to(self.previous_span()) })
    }

    pub(crate) fn misplaced_debug(&mut self) {
        self.error_here("`#debug` stands before a state, an `on` or an `if`", None);
    }

    pub(crate) fn take_debug(&mut self) -> bool {
        let found = *self.peek() == Kind::Debug;
        if found {
            self.advance();
        }
        found
    }

    fn if_statement(&mut self, debug: bool) -> Option<StatementKind> {
        self.advance();
        let mut branches = vec![self.branch(debug)];
        let mut otherwise = Vec::new();
        while self.take_word("else") {
            let debug = self.take_debug();
            if self.take_word("if") {
                branches.push(self.branch(debug));
            } else {
                if debug {
                    self.misplaced_debug();
                }
                otherwise = self.block("to open the `else` block");
                break;
            }
        }
        Some(StatementKind::If { branches, otherwise })
    }

    fn branch(&mut self, debug: bool) -> Branch {
        let condition = self.condition();
        let body = self.block("to open the block behind the condition");
        Branch { condition, body, debug }
    }

    /// An expression that is a condition: `=` is no comparison.
    pub(super) fn condition(&mut self) -> Expression {
        let condition = self.expression();
        if self.at_punctuation("=") {
            self.assignment_in_condition();
            let right = self.expression();
            return Expression { kind: ExpressionKind::Error, span: condition.span.to(right.span) };
        }
        condition
    }

    fn let_statement(&mut self) -> Option<StatementKind> {
        self.advance();
        let name = self.name("a name")?;
        let kind = if self.take(":") { Some(self.name("a type")?) } else { None };
        self.expect("=", "behind the name");
        Some(StatementKind::Let { name, kind, value: self.expression() })
    }

    /// `packet`, `slot`, `template { field = value; } with data(offset, length)`
    fn packet_expression(&mut self) -> Option<PacketExpression> {
        let name = self.name("a packet: `packet`, a slot or a template")?;
        let mut fields = Vec::new();
        if self.at_punctuation("{") {
            fields = self.field_block();
        }
        let mut data = None;
        if self.take_word("with") {
            self.expect_word("data", "behind `with`");
            data = self.pair("data");
        }
        Some(PacketExpression { name, fields, data })
    }

    /// `{ a.b = value; ... }`
    pub(crate) fn field_block(&mut self) -> Vec<(Vec<Name>, Expression)> {
        let mut fields = Vec::new();
        self.expect("{", "to open the fields");
        while !self.at_end() && !self.at_punctuation("}") {
            let before = self.position();
            if let Some(path) = self.path("a field") {
                self.expect("=", "behind the field");
                let value = self.expression();
                self.semicolon();
                fields.push((path, value));
            }
            self.must_move(before);
        }
        self.expect("}", "to close the fields");
        fields
    }

    fn pair(&mut self, what: &str) -> Option<(Expression, Expression)> {
        let span = self.span();
        let mut arguments = self.arguments();
        if arguments.len() == 2 {
            let second = arguments.pop()?;
            let first = arguments.pop()?;
            return Some((first, second));
        }
        let error = weftwire_text::Diagnostic::error(
            span.to(self.previous_span()),
            format!("`{what}` takes an offset and a length"),
        );
        self.report(error.help(format!("for instance `{what}(0, 1000)`")));
        None
    }

    fn send_statement(&mut self) -> Option<StatementKind> {
        self.advance();
        let packet = self.packet_expression()?;
        self.expect_word("to", "and a port behind the packet");
        let port = self.expression();
        let cut = self.take_word("cut").then(|| {
            self.expect_word("to", "and the bytes of a segment behind `cut`");
            Box::new(self.expression())
        });
        Some(StatementKind::Send { packet, port, cut })
    }

    fn store_statement(&mut self) -> Option<StatementKind> {
        self.advance();
        let packet = self.packet_expression()?;
        self.expect_word("in", "and a slot behind the packet");
        Some(StatementKind::Store { packet, slot: self.name("a slot")? })
    }

    fn repeat_statement(&mut self) -> Option<StatementKind> {
        self.advance();
        let count = self.expression();
        let condition = if self.take_word("while") { Some(self.condition()) } else { None };
        let body = self.block("to open what is repeated");
        Some(StatementKind::Repeat(Box::new(Repeat { count, condition, body })))
    }

    fn keep_statement(&mut self) -> Option<StatementKind> {
        self.advance();
        self.expect_word("options", "behind `keep`");
        let kinds = if self.take_word("none") { Vec::new() } else { self.names("a TCP option, or `none`") };
        self.expect_word("in", "and a packet behind the options");
        Some(StatementKind::KeepOptions { kinds, packet: self.name("a packet")? })
    }

    fn resize_statement(&mut self) -> Option<StatementKind> {
        self.advance();
        let packet = self.name("a packet")?;
        self.expect_word("to", "and a length behind the packet");
        Some(StatementKind::Resize { packet, length: self.expression() })
    }

    fn set_statement(&mut self) -> Option<StatementKind> {
        let reset = self.at_word("reset");
        self.advance();
        let timer = self.name("a timer")?;
        let arguments = if self.at_punctuation("(") { self.arguments() } else { Vec::new() };
        self.expect_word("in", "and a time behind the timer");
        Some(StatementKind::Set { timer, arguments, delay: self.expression(), reset })
    }

    /// Whether the word here is assigned or called, or part of a longer name.
    fn is_target(&self) -> bool {
        matches!(self.peek_at(1), Kind::Punctuation("=" | "+=" | "-=" | "." | "["))
    }

    fn word_follows(&self) -> bool {
        matches!(self.peek_at(1), Kind::Word(_))
    }

    fn pace_statement(&mut self) -> Option<StatementKind> {
        self.advance();
        let timer = self.name("a timer")?;
        let arguments = if self.at_punctuation("(") { self.arguments() } else { Vec::new() };
        self.expect_word("with", "and a pacer behind the timer");
        let pacer = self.name("a pacer")?;
        let span = self.span();
        let mut given = if self.at_punctuation("(") { self.arguments() } else { Vec::new() };
        if given.len() > 1 {
            let span = span.to(self.previous_span());
            let error = weftwire_text::Diagnostic::error(span, "a pacer takes one time: how long a round trip is");
            self.report(error);
        }
        given.truncate(1);
        Some(StatementKind::Pace(PaceStatement { timer, arguments, pacer, unit: given.pop() }))
    }

    fn cancel_statement(&mut self) -> Option<StatementKind> {
        self.advance();
        let timer = self.name("a timer")?;
        let tests = if self.take_word("where") { Some(self.expression()) } else { None };
        Some(StatementKind::Cancel { timer, tests })
    }

    /// `move` and `fire`.
    fn move_statement(&mut self, fire: bool) -> Option<StatementKind> {
        self.advance();
        let timer = self.name("a timer")?;
        let tests = if self.take_word("where") { Some(self.expression()) } else { None };
        let mut delay = None;
        if !fire {
            self.expect_word("to", "and `in` with a time behind the timer");
            self.expect_word("in", "and a time behind `to`");
            delay = Some(self.expression());
        }
        Some(StatementKind::Move { timer, tests, delay })
    }

    fn ask_statement(&mut self) -> Option<StatementKind> {
        self.advance();
        let turns = self.name("turns")?;
        let rank = if self.take_word("rank") { Some(self.expression()) } else { None };
        self.expect_word("for", "and how long a turn takes");
        Some(StatementKind::Ask { turns, rank, cost: self.expression() })
    }

    /// Statements about ranges, the receive buffer and segments.
    fn sequence_statement(&mut self, word: &str) -> Option<SequenceStatement> {
        self.advance();
        let name = self.name("ranges, segments or a packet")?;
        Some(match word {
            "begin" => {
                self.expect_word("at", "and a sequence number behind the name");
                SequenceStatement::Begin { store: name, at: self.expression() }
            }
            "trim" => {
                self.expect_word("to", "and a sequence number behind the name");
                SequenceStatement::Trim { store: name, to: self.expression() }
            }
            "add" => SequenceStatement::Add { ranges: name, arguments: self.arguments() },
            "append" => SequenceStatement::Append { segments: name, arguments: self.arguments() },
            "split" => {
                self.expect_word("at", "and a sequence number behind the name");
                SequenceStatement::Split { segments: name, at: self.expression() }
            }
            "hold" => {
                let range = if self.at_punctuation("(") { self.pair(&name.text) } else { None };
                self.expect_word("at", "and the sequence number of the first byte");
                let at = self.nested(|cursor| cursor.additive())?;
                self.expect_word("in", "and the receive buffer behind the sequence number");
                SequenceStatement::Hold { packet: name, range, at, buffer: self.name("the receive buffer")? }
            }
            _ => {
                let tests = if self.take_word("where") { Some(self.condition()) } else { None };
                self.expect("{", "and the fields to change");
                let mut writes = Vec::new();
                while !self.at_end() && !self.at_punctuation("}") {
                    let before = self.position();
                    if let Some(field) = self.name("a field of the segments") {
                        self.expect("=", "behind the field");
                        writes.push((field, self.expression()));
                    }
                    self.semicolon();
                    self.must_move(before);
                }
                self.expect("}", "to close the changes");
                SequenceStatement::Change { segments: name, tests, writes }
            }
        })
    }

    fn deliver_statement(&mut self) -> Option<StatementKind> {
        self.advance();
        let packet = self.name("a packet, or the receive buffer")?;
        if self.take_word("to") {
            let statement = SequenceStatement::DeliverHeld { buffer: packet, to: self.expression() };
            return Some(StatementKind::Sequence(Box::new(statement)));
        }
        let range = if self.at_punctuation("(") { self.pair(&packet.text) } else { None };
        Some(StatementKind::Deliver { packet, range })
    }

    fn notify_statement(&mut self) -> Option<StatementKind> {
        self.advance();
        let name = self.name("the notice's name")?;
        let mut value = None;
        if self.take("(") {
            value = Some(self.expression());
            self.expect(")", "to close the value");
        }
        Some(StatementKind::Notify { name, value })
    }

    fn assignment_or_call(&mut self) -> Option<StatementKind> {
        let target = self.path("a statement")?;
        if self.at_punctuation("(") && target.len() == 1 {
            let action = target.into_iter().next()?;
            return Some(StatementKind::Call { action, arguments: self.arguments() });
        }
        let mut element = None;
        if target.len() == 1 && self.take("[") {
            element = Some(self.expression());
            self.expect("]", "to close the index");
        }
        let operator = if self.take("+=") {
            Some(BinaryOperator::Add)
        } else if self.take("-=") {
            Some(BinaryOperator::Subtract)
        } else if self.take("=") {
            None
        } else {
            let near = match &target[..] {
                [name] => nearest(
                    &name.text,
                    STATEMENTS.iter().chain(&["pace", "restart", "move", "fire", "ask", "withdraw"]).copied(),
                ),
                _ => None,
            };
            match near {
                Some(near) => {
                    let message = format!("`{}` starts no statement", target[0].text);
                    let error = Diagnostic::error(target[0].span, message);
                    self.report(error.help(format!("did you mean `{near}`?")));
                }
                None => {
                    let found = describe(self.peek());
                    let help = "statements are assignments, `if`, `send`, `set`, `cancel`, `goto`, `store`, ... and calls of actions";
                    self.error_here(
                        &format!("expected `=`, `+=`, `-=` or `(` behind this name, found {found}"),
                        Some(help),
                    );
                }
            }
            self.recover();
            return None;
        };
        let value = self.expression();
        if let Some(index) = element {
            let array = target.into_iter().next()?;
            return Some(StatementKind::SetElement(Box::new(ElementStatement { array, index, operator, value })));
        }
        let optional = self.take_word("if");
        if optional {
            self.expect_word("present", "behind `if` in an assignment");
        }
        Some(StatementKind::Assign { target, operator, value, optional })
    }
}
