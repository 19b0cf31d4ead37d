//! The published XFSM-Lang dialect (XTRA, Section IV.C), read into the same syntax tree as XL.
//!
//! Names of headers, fields and actions become XL's. What the dialect leaves untyped stays so: the lowering treats
//! every value of such a program as a 64-bit signed number.

mod calls;

use crate::ast::{
    ActionDeclaration, BinaryOperator, Branch, Expression, ExpressionKind, Handler, Item, Name, Program,
    StateDeclaration, Statement, StatementKind,
};
use crate::parser::{Cursor, MAX_OPERATORS, load_tokens, stem};
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::lexer::{Kind, NumberValue};
use weftwire_text::source::{Loader, SourceMap, Span};

/// Name of the one timer of a dialect program.
pub(crate) const TIMER: &str = "timeout";
/// Name of the action that stands for statements at a program's top; they run once, before the initial state.
pub(crate) const PROLOGUE: &str = "(prologue)";

/// The dialect's header fields and XL's names for them.
const FIELDS: &[(&str, &str, [&str; 2])] = &[
    ("eth", "src", ["ethernet", "source"]),
    ("eth", "dst", ["ethernet", "destination"]),
    ("eth", "type", ["ethernet", "type"]),
    ("ipv4", "src", ["ipv4", "source"]),
    ("ipv4", "dst", ["ipv4", "destination"]),
    ("ipv4", "ttl", ["ipv4", "ttl"]),
    ("ipv4", "proto", ["ipv4", "protocol"]),
    ("ipv4", "checksum", ["ipv4", "checksum"]),
    ("tcp", "sport", ["tcp", "source_port"]),
    ("tcp", "dport", ["tcp", "destination_port"]),
    ("tcp", "seqNo", ["tcp", "sequence"]),
    ("tcp", "ackNo", ["tcp", "acknowledgment"]),
    ("tcp", "window", ["tcp", "window"]),
    ("tcp", "flags", ["tcp", "flags"]),
    ("tcp", "checksum", ["tcp", "checksum"]),
    ("tcp", "timestamp", ["tcp", "timestamp"]),
    ("tcp", "timestampEchoReply", ["tcp", "timestamp_echo"]),
    ("tcp", "mss", ["tcp", "mss"]),
    ("tcp", "windowScale", ["tcp", "window_scale"]),
    ("udp", "sport", ["udp", "source_port"]),
    ("udp", "dport", ["udp", "destination_port"]),
    ("udp", "checksum", ["udp", "checksum"]),
    ("udp", "length", ["udp", "length"]),
    ("udp", "p1", ["udp", "word_1"]),
    ("udp", "p2", ["udp", "word_2"]),
    ("udp", "p3", ["udp", "word_3"]),
    ("udp", "p4", ["udp", "word_4"]),
];

/// Parses a program of the dialect.
pub(crate) fn parse_program(
    name: &str,
    loader: &dyn Loader,
    sources: &mut SourceMap,
    diagnostics: &mut Vec<Diagnostic>,
) -> Program {
    let mut program = Program { name: stem(name), items: Vec::new() };
    let Some((_, tokens)) = load_tokens(name, None, loader, sources, diagnostics) else { return program };
    let mut parser = Parser { cursor: Cursor::new(&tokens), states_began: false };
    let mut prologue = Vec::new();
    while !parser.cursor.at_end() {
        let before = parser.cursor.position();
        parser.top_level(&mut program.items, &mut prologue);
        parser.cursor.must_move(before);
    }
    if let Some(first) = prologue.first() {
        let name = Name { text: PROLOGUE.into(), span: first.span };
        program.items.push(Item::Action(ActionDeclaration { name, parameters: Vec::new(), body: prologue }));
    }
    let timer = |text: &str| Name { text: text.into(), span: Span::default() };
    program
        .items
        .push(Item::Timer { name: timer(TIMER), payload: vec![(timer("data0"), None), (timer("data1"), None)] });
    diagnostics.append(&mut parser.cursor.diagnostics);
    program
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    /// A state was read.
    states_began: bool,
}

impl Parser<'_> {
    fn top_level(&mut self, items: &mut Vec<Item>, prologue: &mut Vec<Statement>) {
        let states_began = self.states_began;
        let cursor = &mut self.cursor;
        if cursor.take_debug() {
            if cursor.at_word("State") {
                items.extend(self.state(true));
            } else {
                items.extend(self.sample());
            }
        } else if cursor.take_word("Register") {
            let names = cursor.names("a register's name");
            cursor.semicolon();
            items.push(Item::Register { names, kind: None, initial: None });
        } else if cursor.take_word("Event") {
            items.extend(self.custom_event());
        } else if cursor.take_word("Action") {
            items.extend(self.action());
        } else if cursor.at_word("State") {
            items.extend(self.state(false));
        } else if cursor.is_xl() {
            let help = "programs in XL are in files that end in .xl";
            cursor.give_up_with("this is XL, not the published dialect", help);
        } else if matches!(cursor.peek(), Kind::Word(_)) {
            if states_began {
                cursor.error_here(
                    "only states can follow a state",
                    Some("`Register`, `Action` and statements come first"),
                );
                cursor.recover();
            } else {
                prologue.extend(self.statement());
            }
        } else {
            cursor.error_here("expected `Register`, `Event`, `Action` or `State`", None);
            cursor.advance();
            cursor.recover();
        }
    }

    fn sample(&mut self) -> Option<Item> {
        let register = self.cursor.name("a register to sample, or `State`")?;
        let span = self.cursor.span();
        let Kind::Number { value: NumberValue::Whole(interval), unit } = self.cursor.peek() else {
            self.cursor.error_here("expected the interval in microseconds", Some("for instance `#debug cwnd 1000`"));
            return None;
        };
        let interval =
            ExpressionKind::Number { value: NumberValue::Whole(interval.saturating_mul(1000)), unit: unit.clone() };
        self.cursor.advance();
        self.cursor.take(";");
        Some(Item::Sample { register, interval: Expression { kind: interval, span } })
    }

    fn custom_event(&mut self) -> Option<Item> {
        let name = self.cursor.name("the event's name")?;
        self.cursor.expect("=", "behind the event's name");
        let value = self.conditions()?;
        self.cursor.semicolon();
        Some(Item::Condition { name, value })
    }

    fn action(&mut self) -> Option<Item> {
        let name = self.cursor.name("the action's name")?;
        if calls::BUILT_IN.contains(&name.text.as_str()) {
            let message = format!("`{}` is an action of the language: this one would never be called", name.text);
            self.cursor.report(Diagnostic::error(name.span, message).help("give the action another name"));
        }
        if self.cursor.at_punctuation("(") {
            self.cursor.error_here("an `Action` of this dialect has no parameters", Some("XL proper (.xl) has them"));
            self.cursor.recover();
            return None;
        }
        let body = self.block("to open the action");
        Some(Item::Action(ActionDeclaration { name, parameters: Vec::new(), body }))
    }

    fn block(&mut self, context: &str) -> Vec<Statement> {
        let mut statements = Vec::new();
        if !self.cursor.expect("{", context) {
            self.cursor.recover();
            return statements;
        }
        while !self.cursor.at_end() && !self.cursor.at_punctuation("}") {
            let before = self.cursor.position();
            if self.cursor.at_word("if") || self.cursor.at_word("on") {
                self.cursor.error_here(
                    "`if` stands only directly in an `on` block, `on` only in a state",
                    Some("XL proper (.xl) nests"),
                );
                self.cursor.recover();
            } else {
                statements.extend(self.statement());
            }
            self.cursor.must_move(before);
        }
        self.cursor.expect("}", "to close the block");
        statements
    }

    fn state(&mut self, debug: bool) -> Option<Item> {
        self.cursor.advance();
        let initial = self.cursor.take_word("initial");
        let name = self.cursor.name("the state's name")?;
        let mut state = StateDeclaration {
            name,
            initial,
            debug,
            expire: None,
            enter: Vec::new(),
            exit: Vec::new(),
            handlers: Vec::new(),
        };
        if !self.cursor.expect("{", "to open the state") {
            self.cursor.recover();
            return None;
        }
        while !self.cursor.at_end() && !self.cursor.at_punctuation("}") {
            let before = self.cursor.position();
            let debug = self.cursor.take_debug();
            if debug && !self.cursor.at_word("on") {
                self.cursor.misplaced_debug();
            }
            if self.cursor.take_word("on") {
                state.handlers.extend(self.handler(debug));
            } else if self.cursor.at_word("if") {
                self.cursor.error_here("an `if` stands only in an `on` block", None);
                self.cursor.recover();
            } else {
                state.enter.extend(self.statement());
            }
            self.cursor.must_move(before);
        }
        self.cursor.expect("}", "to close the state");
        self.states_began = true;
        Some(Item::State(state))
    }

    fn handler(&mut self, debug: bool) -> Option<Handler> {
        self.cursor.expect("(", "behind `on`");
        let mut event = self.cursor.name("an event: `pktRcvd`, `timeout`, `connect`, `close` or `appData`")?;
        if self.cursor.take("(") {
            // The paper writes `connect()`, `appData(data)`.
            while !self.cursor.at_end() && !self.cursor.take(")") {
                self.cursor.advance();
            }
        }
        self.cursor.expect(")", "behind the event");
        event.text = match event.text.as_str() {
            "pktRcvd" => "packet",
            "timeout" => TIMER,
            "connect" => "connect",
            "close" => "close",
            "appData" => "data",
            other => {
                let error = Diagnostic::error(event.span, format!("`{other}` is no event"));
                let help = "events are `pktRcvd`, `timeout`, `connect`, `close` and `appData`; an `Event` is a named condition for `if`";
                self.cursor.report(error.help(help));
                "packet"
            }
        }
        .to_string();
        let body = self.handler_body();
        Some(Handler { event, from: None, when: None, debug, body })
    }

    /// Statements, then `if` blocks of which the first that holds wins.
    fn handler_body(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        let mut branches = Vec::new();
        let mut span = self.cursor.span();
        if !self.cursor.expect("{", "to open the `on` block") {
            self.cursor.recover();
            return statements;
        }
        while !self.cursor.at_end() && !self.cursor.at_punctuation("}") {
            let before = self.cursor.position();
            let debug = self.cursor.take_debug();
            if debug && !self.cursor.at_word("if") {
                self.cursor.misplaced_debug();
            }
            if self.cursor.take_word("if") {
                if branches.is_empty() {
                    span = self.cursor.previous_span();
                }
                branches.extend(self.branch(debug));
            } else {
                let start = self.cursor.span();
                if let Some(statement) = self.statement() {
                    if branches.is_empty() {
                        statements.push(statement);
                    } else {
                        let error = Diagnostic::error(start, "a plain statement behind an `if` would never run");
                        let help = "of the `if` blocks the first that holds wins, and nothing follows it; put the statement in front of the `if`s, or into them";
                        self.cursor.report(error.help(help));
                    }
                }
            }
            self.cursor.must_move(before);
        }
        self.cursor.expect("}", "to close the `on` block");
        if !branches.is_empty() {
            let kind = StatementKind::If { branches, otherwise: Vec::new() };
            statements.push(Statement { kind, span });
        }
        statements
    }

    fn branch(&mut self, debug: bool) -> Option<Branch> {
        self.cursor.expect("(", "behind `if`");
        let condition = self.conditions();
        self.cursor.expect(")", "behind the conditions");
        let body = self.block("to open the `if` block");
        if self.cursor.at_word("else") {
            self.cursor.error_here(
                "this dialect has no `else`",
                Some("write a second `if` behind it: the first that holds wins; XL proper (.xl) has `else`"),
            );
            self.cursor.advance();
            self.cursor.recover();
        }
        Some(Branch { condition: condition?, body, debug })
    }

    /// Conditions joined by commas, which mean AND.
    fn conditions(&mut self) -> Option<Expression> {
        let mut joined = self.condition()?;
        for count in 0.. {
            if !self.cursor.take(",") {
                break;
            }
            if count == MAX_OPERATORS {
                self.cursor.give_up(&format!("more than {MAX_OPERATORS} conditions"));
                return None;
            }
            let next = self.condition()?;
            joined = binary(BinaryOperator::And, joined, next);
        }
        Some(joined)
    }

    fn condition(&mut self) -> Option<Expression> {
        let left = self.term()?;
        let operator = match self.cursor.peek() {
            Kind::Punctuation("==") => BinaryOperator::Equal,
            Kind::Punctuation("!=") => BinaryOperator::NotEqual,
            Kind::Punctuation("<") => BinaryOperator::Less,
            Kind::Punctuation("<=") => BinaryOperator::LessEqual,
            Kind::Punctuation(">") => BinaryOperator::Greater,
            Kind::Punctuation(">=") => BinaryOperator::GreaterEqual,
            Kind::Punctuation("=") => {
                self.cursor.assignment_in_condition();
                self.term()?;
                return None;
            }
            _ => return Some(left),
        };
        self.cursor.advance();
        Some(binary(operator, left, self.term()?))
    }

    fn statement(&mut self) -> Option<Statement> {
        let start = self.cursor.span();
        let name = self.cursor.name("a statement")?;
        let kind = if self.cursor.at_punctuation("(") {
            self.call(name)
        } else if self.cursor.take("=") {
            self.expression().map(|value| StatementKind::Assign {
                target: vec![name],
                operator: None,
                value,
                optional: false,
            })
        } else {
            self.cursor.error_here("expected `=` or `(` behind this name", None);
            self.cursor.recover();
            return None;
        };
        let Some(kind) = kind else {
            self.cursor.recover();
            return None;
        };
        self.cursor.semicolon();
        Some(Statement { kind, span: start.to(self.cursor.previous_span()) })
    }

    fn expression(&mut self) -> Option<Expression> {
        let left = self.term()?;
        let operator = match self.cursor.peek() {
            Kind::Punctuation("+") => BinaryOperator::Add,
            Kind::Punctuation("-") => BinaryOperator::Subtract,
            Kind::Punctuation("*") => BinaryOperator::Multiply,
            Kind::Punctuation("/") => BinaryOperator::Divide,
            _ => return Some(left),
        };
        self.cursor.advance();
        let whole = binary(operator, left, self.term()?);
        if matches!(self.cursor.peek(), Kind::Punctuation("+" | "-" | "*" | "/")) {
            self.cursor.error_here(
                "this dialect allows one operator in an expression",
                Some("use a register for the intermediate result, or XL proper (.xl)"),
            );
            return None;
        }
        Some(whole)
    }

    fn term(&mut self) -> Option<Expression> {
        let span = self.cursor.span();
        if let Kind::Number { value, unit } = self.cursor.peek() {
            if !unit.is_empty() {
                self.cursor.error_here("this dialect's numbers have no units", Some("XL proper (.xl) has them"));
            }
            self.cursor.advance();
            return Some(Expression { kind: ExpressionKind::Number { value: *value, unit: String::new() }, span });
        }
        let name = self.cursor.name("a value")?;
        if self.cursor.at_punctuation("(") {
            if !self.cursor.enter() {
                return None;
            }
            let arguments = self.arguments();
            self.cursor.leave();
            return self.function(name, arguments?);
        }
        if !self.cursor.take(".") {
            let kind = match name.text.as_str() {
                "currentTime" => call("milliseconds", span, vec![path(&["(now)"], span)]),
                _ => ExpressionKind::Path(vec![name]),
            };
            return Some(Expression { kind, span });
        }
        let field = self.cursor.name("a field's name behind `.`")?;
        let span = span.to(field.span);
        match (name.text.as_str(), field.text.as_str()) {
            ("timeout", "data0" | "data1") => Some(path(&[TIMER, &field.text], span)),
            ("pktRcvd", "port") => Some(path(&["packet", "port"], span)),
            ("tcp", "timestampEchoReply") => Some(elapsed_since_echo(span)),
            _ => Some(Expression { kind: ExpressionKind::Path(self.header_field(&name, &field)?), span }),
        }
    }

    fn function(&mut self, name: Name, arguments: Vec<Expression>) -> Option<Expression> {
        let wanted = match name.text.as_str() {
            "max" | "min" => 2,
            "random" => 0,
            other => {
                let error = Diagnostic::error(name.span, format!("`{other}` gives no value"));
                self.cursor.report(error.help("functions are `max(a, b)`, `min(a, b)` and `random()`"));
                return None;
            }
        };
        self.check_count(&name, &arguments, wanted..=wanted)?;
        let span = name.span.to(self.cursor.previous_span());
        let kind = ExpressionKind::Call(name.clone(), arguments);
        let value = Expression { kind, span };
        // A random *unsigned* integer, small enough for sequence numbers: 32 bits.
        Some(if name.text == "random" {
            binary(BinaryOperator::BitAnd, value, number(0xffff_ffff, span))
        } else {
            value
        })
    }

    /// `(a, b)`
    fn arguments(&mut self) -> Option<Vec<Expression>> {
        let mut arguments = Vec::new();
        self.cursor.expect("(", "to open the arguments");
        if self.cursor.take(")") {
            return Some(arguments);
        }
        loop {
            arguments.push(self.term()?);
            if !self.comma()? {
                break;
            }
        }
        self.cursor.expect(")", "to close the arguments").then_some(arguments)
    }

    /// Whether one more argument follows, behind its comma. The published compiler lets the commas be left out.
    fn comma(&mut self) -> Option<bool> {
        if self.cursor.take(",") {
            return Some(true);
        }
        if matches!(self.cursor.peek(), Kind::Word(_) | Kind::Number { .. }) {
            self.cursor.error_here("a comma is missing in front of this", Some("arguments are written `(a, b)`"));
            return None;
        }
        Some(false)
    }

    fn header_field(&mut self, header: &Name, field: &Name) -> Option<Vec<Name>> {
        let wanted = if header.text == "ip" { "ipv4" } else { header.text.as_str() };
        let found = FIELDS.iter().find(|(known, name, _)| *known == wanted && *name == field.text);
        if let Some((_, _, path)) = found {
            let name = |text: &str, span| Name { text: text.to_string(), span };
            return Some(vec![name(path[0], header.span), name(path[1], field.span)]);
        }
        let fields: Vec<&str> =
            FIELDS.iter().filter(|(known, ..)| *known == wanted).map(|(_, name, _)| *name).collect();
        let error = if fields.is_empty() {
            Diagnostic::error(header.span, format!("`{}` is no header or event", header.text))
                .help("headers are eth, ipv4 (or ip), tcp and udp; events carry timeout.data0, timeout.data1 and pktRcvd.port")
        } else {
            Diagnostic::error(field.span, format!("`{}` has no field `{}`", header.text, field.text))
                .help(format!("its fields are {}", fields.join(", ")))
        };
        self.cursor.report(error);
        None
    }
}

fn binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression {
    let span = left.span.to(right.span);
    Expression { kind: ExpressionKind::Binary(operator, Box::new(left), Box::new(right)), span }
}

fn number(value: u64, span: Span) -> Expression {
    Expression { kind: ExpressionKind::Number { value: NumberValue::Whole(value), unit: String::new() }, span }
}

fn path(names: &[&str], span: Span) -> Expression {
    let names = names.iter().map(|text| Name { text: text.to_string(), span }).collect();
    Expression { kind: ExpressionKind::Path(names), span }
}

fn call(function: &str, span: Span, arguments: Vec<Expression>) -> ExpressionKind {
    ExpressionKind::Call(Name { text: function.into(), span }, arguments)
}

/// The elapsed time in microseconds since the echoed time stamp was sent, on the 32-bit millisecond clock:
/// (currentTime - TSecr) * 1000, and 0 if the packet has no time stamp.
fn elapsed_since_echo(span: Span) -> Expression {
    let echo = || path(&["tcp", "timestamp_echo"], span);
    let now = Expression { kind: call("milliseconds", span, vec![path(&["(now)"], span)]), span };
    let elapsed = binary(BinaryOperator::Subtract, now, echo());
    let elapsed = binary(BinaryOperator::BitAnd, elapsed, number(0xffff_ffff, span));
    let elapsed = binary(BinaryOperator::Multiply, elapsed, number(1000, span));
    let present = Expression { kind: call("present", span, vec![echo()]), span };
    binary(BinaryOperator::Multiply, elapsed, present)
}
