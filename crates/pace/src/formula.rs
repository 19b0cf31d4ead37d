//! The text of an envelope: `R(t) = ...`, `N(t) = ...`, `T(n) = ...` or a shape's name. Units are checked while parsing.

use crate::envelope::{Envelope, Setting, Shape, TimeUnit};
use crate::expression::{Expression, Function, Node, Operator};
use crate::fault::Fault;
use crate::lexer::{Token, TokenKind, tokens};
use crate::shape;
use std::ops::Range;

/// Parentheses and signs in each other.
const DEEPEST: usize = 64;

/// Reads an envelope.
pub fn parse(text: &str, setting: &Setting) -> Result<Envelope, Fault> {
    let mut parser = Parser::new(text, setting)?;
    let TokenKind::Name(name) = parser.peek().kind.clone() else {
        return Err(Fault::new(parser.peek().span.clone(), "an envelope begins with a name").help(BEGINNINGS));
    };
    let shape = match (name.as_str(), parser.is_profile()) {
        ("R", true) => Shape::Rate(parser.profile("t", Wanted::Rate)?),
        ("N", true) => Shape::Sent(parser.profile("t", Wanted::Packets)?),
        ("T", true) => Shape::Time(parser.profile("n", Wanted::Time)?),
        (_, true) => {
            return Err(
                Fault::new(parser.peek().span.clone(), format!("`{name}` is no kind of formula")).help(BEGINNINGS)
            );
        }
        (_, false) => shape::parse(&mut parser)?,
    };
    parser.expect_end()?;
    Ok(Envelope { shape, unit: parser.unit() })
}

const BEGINNINGS: &str = "write `R(t) = ...`, `N(t) = ...`, `T(n) = ...`, or a shape: constant, slow_start, linear, ramp, \
                          cubic, bbr, token_bucket, sawtooth, poisson";

/// Exponents of time and of data; packets are plain numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Dimension {
    time: i8,
    data: i8,
}

const PLAIN: Dimension = Dimension { time: 0, data: 0 };
const TIME: Dimension = Dimension { time: 1, data: 0 };
const DATA: Dimension = Dimension { time: 0, data: 1 };

impl Dimension {
    fn times(self, other: Dimension, power: i8) -> Option<Dimension> {
        let sum = |left: i8, right: i8| left.checked_add(right.checked_mul(power)?).filter(|sum| sum.abs() <= 16);
        Some(Dimension { time: sum(self.time, other.time)?, data: sum(self.data, other.data)? })
    }

    fn text(self) -> String {
        match (self.time, self.data) {
            (0, 0) => "a plain number".to_owned(),
            (1, 0) => "a time".to_owned(),
            (0, 1) => "a number of bytes".to_owned(),
            (-1, 0) => "packets per time".to_owned(),
            (-1, 1) => "bits per time".to_owned(),
            (time, 0) => format!("time^{time}"),
            (0, data) => format!("data^{data}"),
            (time, data) => format!("data^{data} time^{time}"),
        }
    }
}

/// What a formula or an argument must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    Plain,
    /// Packets, or data by way of the packet's size.
    Packets,
    Time,
    /// Packets or data per time.
    Rate,
    /// Packets or data per time squared.
    Slope,
}

impl Wanted {
    fn words(self) -> (&'static str, Dimension, &'static str) {
        match self {
            Wanted::Plain => ("a plain number", PLAIN, "leave the unit away"),
            Wanted::Packets => ("a number of packets", PLAIN, "times divide: `t/RTT`, `t/(10 ms)`"),
            Wanted::Time => ("a time", TIME, "multiply by a unit of time: `RTT`, `s`, `ms`"),
            Wanted::Rate => ("a rate", Dimension { time: -1, data: 0 }, "as in `10 pkt/RTT`, `1000 pkt/s`, `5 Mbit/s`"),
            Wanted::Slope => {
                ("a rate per time", Dimension { time: -2, data: 0 }, "as in `1 pkt/RTT^2`, `50 pkt/s^2`, `5 Mbit/s^2`")
            }
        }
    }
}

/// A part of a formula with its dimension.
pub(crate) struct Part {
    pub(crate) node: Node,
    dimension: Dimension,
    pub(crate) span: Range<usize>,
}

impl Part {
    /// A 0 without unit, which is also a time and a rate.
    fn is_zero(&self) -> bool {
        self.node == Node::Constant(0.0)
    }
}

pub(crate) struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    setting: &'a Setting,
    /// The formula's variable.
    variable: &'static str,
    /// Where seconds, and where round trips were first named.
    seconds: Option<Range<usize>>,
    round_trips: Option<Range<usize>>,
}

impl<'a> Parser<'a> {
    fn new(text: &str, setting: &'a Setting) -> Result<Parser<'a>, Fault> {
        let tokens = tokens(text)?;
        Ok(Parser { tokens, at: 0, depth: 0, setting, variable: "", seconds: None, round_trips: None })
    }

    pub(crate) fn setting(&self) -> &Setting {
        self.setting
    }

    pub(crate) fn unit(&self) -> TimeUnit {
        match self.setting.round_trip.is_some() || self.seconds.is_some() {
            true => TimeUnit::Second,
            false => TimeUnit::RoundTrip,
        }
    }

    pub(crate) fn peek(&self) -> &Token {
        &self.tokens[self.at]
    }

    pub(crate) fn advance(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    pub(crate) fn at_sign(&self, sign: &str) -> bool {
        matches!(self.peek().kind, TokenKind::Sign(found) if found == sign)
    }

    pub(crate) fn take(&mut self, sign: &str) -> bool {
        let there = self.at_sign(sign);
        if there {
            self.advance();
        }
        there
    }

    pub(crate) fn expect(&mut self, sign: &str, what: &str) -> Result<(), Fault> {
        if self.take(sign) {
            return Ok(());
        }
        Err(Fault::new(self.peek().span.clone(), format!("expected `{sign}` {what}, found {}", self.found())))
    }

    fn expect_end(&self) -> Result<(), Fault> {
        match self.peek().kind {
            TokenKind::End => Ok(()),
            _ => Err(Fault::new(self.peek().span.clone(), format!("{} can't follow here", self.found()))),
        }
    }

    fn found(&self) -> String {
        match &self.peek().kind {
            TokenKind::Number(_) => "a number".to_owned(),
            TokenKind::Name(name) => format!("`{name}`"),
            TokenKind::Sign(sign) => format!("`{sign}`"),
            TokenKind::End => "the end".to_owned(),
        }
    }

    /// Whether a name and one in parentheses and `=` come next.
    fn is_profile(&self) -> bool {
        let kind = |ahead: usize| self.tokens.get(self.at + ahead).map(|token| &token.kind);
        matches!(
            (kind(0), kind(1), kind(2), kind(3), kind(4)),
            (
                Some(TokenKind::Name(_)),
                Some(TokenKind::Sign("(")),
                Some(TokenKind::Name(_)),
                Some(TokenKind::Sign(")")),
                Some(TokenKind::Sign("="))
            )
        )
    }

    fn profile(&mut self, variable: &'static str, wanted: Wanted) -> Result<Expression, Fault> {
        self.advance();
        self.advance();
        let named = self.advance();
        if named.kind != TokenKind::Name(variable.to_owned()) {
            return Err(Fault::new(named.span, format!("the variable of this formula is `{variable}`")));
        }
        self.advance();
        self.advance();
        self.variable = variable;
        let part = self.sum()?;
        // What can't be read comes before what it would mean.
        self.expect_end()?;
        Ok(Expression(self.converted(part, wanted)?))
    }

    /// `NAME =`, if that comes next.
    pub(crate) fn named_argument(&mut self) -> Option<String> {
        let TokenKind::Name(name) = self.peek().kind.clone() else { return None };
        if self.tokens.get(self.at + 1)?.kind != TokenKind::Sign("=") {
            return None;
        }
        self.advance();
        self.advance();
        Some(name)
    }

    /// A constant argument.
    pub(crate) fn argument(&mut self, wanted: Wanted) -> Result<(f64, Range<usize>), Fault> {
        let part = self.sum()?;
        let span = part.span.clone();
        match self.converted(part, wanted)? {
            Node::Constant(value) if value.is_finite() => Ok((value, span)),
            Node::Constant(value) => Err(Fault::new(span, format!("this is {value}, which is no number"))),
            _ => Err(Fault::new(span, "an argument is a constant")),
        }
    }

    /// The part as what it must be, in packets and the envelope's unit of time.
    fn converted(&self, part: Part, wanted: Wanted) -> Result<Node, Fault> {
        let (words, dimension, help) = wanted.words();
        if part.dimension == dimension || part.is_zero() {
            return Ok(part.node);
        }
        let in_data = Dimension { data: 1, ..dimension };
        if part.dimension == in_data && !matches!(wanted, Wanted::Plain | Wanted::Time) {
            let size = self.setting.packet_size.ok_or_else(|| {
                Fault::new(part.span.clone(), "how many packets this is depends on their size").help(
                    "give the size of a packet: `--packet-size 1500`, or `packet size 1500B` behind a pacer's envelope",
                )
            })?;
            return Ok(binary(Operator::Divide, part.node, Node::Constant(size)));
        }
        Err(Fault::new(part.span, format!("this must be {words}, and is {}", part.dimension.text())).help(help))
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth >= DEEPEST {
            return Err(Fault::new(self.peek().span.clone(), format!("more than {DEEPEST} parentheses in each other")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// `sum = product { ("+" | "-") product }`
    fn sum(&mut self) -> Result<Part, Fault> {
        let mut left = self.product()?;
        loop {
            let operator = match &self.peek().kind {
                TokenKind::Sign("+") => Operator::Add,
                TokenKind::Sign("-") => Operator::Subtract,
                _ => return Ok(left),
            };
            self.advance();
            let right = self.product()?;
            left = alike(operator, left, right)?;
        }
    }

    /// `product = signed { ("*" | "/") signed }`
    fn product(&mut self) -> Result<Part, Fault> {
        let mut left = self.signed()?;
        loop {
            let (operator, power) = match &self.peek().kind {
                TokenKind::Sign("*") => (Operator::Multiply, 1),
                TokenKind::Sign("/") => (Operator::Divide, -1),
                _ => return Ok(left),
            };
            self.advance();
            let right = self.signed()?;
            left = product(operator, power, left, right)?;
        }
    }

    /// `signed = ["-"] power`
    fn signed(&mut self) -> Result<Part, Fault> {
        let start = self.peek().span.start;
        if !self.take("-") {
            return self.power();
        }
        let inner = self.deeper(Self::signed)?;
        let node = binary(Operator::Subtract, Node::Constant(0.0), inner.node);
        Ok(Part { node, dimension: inner.dimension, span: start..inner.span.end })
    }

    /// `power = quantity ["^" signed]`; the exponent belongs to the unit if there is one: `2 s^2` is `2 (s^2)`.
    fn power(&mut self) -> Result<Part, Fault> {
        if let TokenKind::Number(value) = self.peek().kind {
            let token = self.advance();
            let number = Part { node: Node::Constant(value), dimension: PLAIN, span: token.span };
            let unit_follows =
                matches!(&self.peek().kind, TokenKind::Name(name) if name != self.variable && unit(name).is_some());
            if unit_follows {
                let unit = self.raised()?;
                return product(Operator::Multiply, 1, number, unit);
            }
            return self.exponent(number);
        }
        self.raised()
    }

    fn raised(&mut self) -> Result<Part, Fault> {
        let base = self.primary()?;
        self.exponent(base)
    }

    fn exponent(&mut self, base: Part) -> Result<Part, Fault> {
        if !self.take("^") {
            return Ok(base);
        }
        let exponent = self.deeper(Self::signed)?;
        let span = base.span.start..exponent.span.end;
        if exponent.dimension != PLAIN {
            let message = format!("an exponent is a plain number, this is {}", exponent.dimension.text());
            return Err(Fault::new(exponent.span, message).help("divide by a unit: `2^(t/RTT)`"));
        }
        let dimension = match (base.dimension, &exponent.node) {
            (PLAIN, _) => PLAIN,
            (base_dimension, Node::Constant(power)) if power.abs() <= 8.0 && *power == libm::trunc(*power) => {
                PLAIN.times(base_dimension, *power as i8).ok_or_else(|| too_high(&span))?
            }
            (other, _) => {
                let message = format!("{} can only have a whole exponent from -8 to 8", other.text());
                return Err(Fault::new(exponent.span, message));
            }
        };
        Ok(Part { node: binary(Operator::Power, base.node, exponent.node), dimension, span })
    }

    fn primary(&mut self) -> Result<Part, Fault> {
        let token = self.peek().clone();
        match token.kind {
            TokenKind::Number(value) => {
                self.advance();
                Ok(Part { node: Node::Constant(value), dimension: PLAIN, span: token.span })
            }
            TokenKind::Sign("(") => {
                self.advance();
                let inner = self.deeper(Self::sum)?;
                let end = self.peek().span.end;
                self.expect(")", "to close the parenthesis")?;
                Ok(Part { span: token.span.start..end, ..inner })
            }
            TokenKind::Name(name) => {
                self.advance();
                if self.at_sign("(") {
                    return self.deeper(|parser| parser.call(&name, token.span));
                }
                self.name(&name, token.span)
            }
            _ => Err(Fault::new(token.span, format!("expected a value, found {}", self.found()))),
        }
    }

    fn name(&mut self, name: &str, span: Range<usize>) -> Result<Part, Fault> {
        if name == self.variable {
            let dimension = if name == "t" { TIME } else { PLAIN };
            return Ok(Part { node: Node::Variable, dimension, span });
        }
        if name == "pi" {
            return Ok(Part { node: Node::Constant(std::f64::consts::PI), dimension: PLAIN, span });
        }
        let Some((mut size, dimension)) = unit(name) else {
            let known =
                if self.variable.is_empty() { String::new() } else { format!("the variable `{}`, ", self.variable) };
            return Err(Fault::new(span, format!("`{name}` is not known")).help(format!(
                "known are {known}pi, and the units pkt, bit, kbit, Mbit, Gbit, B, kB, MB, RTT, s, ms, us, ns, bps, kbps, \
                 Mbps, Gbps"
            )));
        };
        if name == "RTT" {
            size = self.setting.round_trip.unwrap_or(1.0);
            self.round_trips.get_or_insert(span.clone());
        } else if dimension.time != 0 {
            self.seconds.get_or_insert(span.clone());
        }
        if self.seconds.is_some() && self.round_trips.is_some() && self.setting.round_trip.is_none() {
            return Err(Fault::new(span, "round trips and seconds together, and the round trip is not known")
                .help("give the round trip: `--rtt 100ms`, or in a network `rtt = \"100ms\"`"));
        }
        Ok(Part { node: Node::Constant(size), dimension, span })
    }

    fn call(&mut self, name: &str, span: Range<usize>) -> Result<Part, Fault> {
        self.expect("(", "behind the function")?;
        if name == "if" {
            return self.choice(span);
        }
        let mut arguments = vec![self.sum()?];
        while self.take(",") {
            arguments.push(self.sum()?);
        }
        let end = self.peek().span.end;
        self.expect(")", "to close the arguments")?;
        let whole = span.start..end;
        let count = arguments.len();
        let (first, second) = {
            let mut arguments = arguments.into_iter();
            (arguments.next(), arguments.next())
        };
        let two = match name {
            "min" => Some(Operator::Minimum),
            "max" => Some(Operator::Maximum),
            "mod" => Some(Operator::Remainder),
            _ => None,
        };
        let one = FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, function)| *function);
        match (two, one, first, second, count) {
            (Some(operator), _, Some(left), Some(right), 2) => {
                let part = alike(operator, left, right)?;
                Ok(Part { span: whole, ..part })
            }
            (_, Some(function), Some(inner), None, 1) => applied(function, name, inner, whole),
            (None, None, ..) => Err(Fault::new(span, format!("`{name}` is no function")).help(FUNCTION_NAMES)),
            (..) => Err(Fault::new(whole, format!("`{name}` can't have {count} argument(s)")).help(FUNCTION_NAMES)),
        }
    }

    /// `if(left < right, then, otherwise)`, behind the parenthesis.
    fn choice(&mut self, span: Range<usize>) -> Result<Part, Fault> {
        let left = self.sum()?;
        let comparison = self.advance();
        let (swapped, or_equal) = match comparison.kind {
            TokenKind::Sign("<") => (false, false),
            TokenKind::Sign("<=") => (false, true),
            TokenKind::Sign(">") => (true, false),
            TokenKind::Sign(">=") => (true, true),
            _ => {
                return Err(Fault::new(comparison.span, "expected a comparison, `<`, `<=`, `>` or `>=`")
                    .help("as in `if(t < 2 RTT, 10 pkt/RTT, 20 pkt/RTT)`"));
            }
        };
        let right = self.sum()?;
        same(&left, &right)?;
        self.expect(",", "behind the condition")?;
        let then = self.sum()?;
        self.expect(",", "between both values")?;
        let otherwise = self.sum()?;
        let dimension = same(&then, &otherwise)?;
        let end = self.peek().span.end;
        self.expect(")", "to close the `if`")?;
        let (left, right) = if swapped { (right, left) } else { (left, right) };
        let boxed = |part: Part| Box::new(part.node);
        let node = Node::If {
            left: boxed(left),
            right: boxed(right),
            or_equal,
            then: boxed(then),
            otherwise: boxed(otherwise),
        };
        Ok(Part { node: node.folded(), dimension, span: span.start..end })
    }
}

const FUNCTIONS: [(&str, Function); 10] = [
    ("log2", Function::Log2),
    ("ln", Function::Ln),
    ("exp", Function::Exp),
    ("sqrt", Function::Sqrt),
    ("cbrt", Function::Cbrt),
    ("abs", Function::Abs),
    ("floor", Function::Floor),
    ("ceil", Function::Ceil),
    ("sin", Function::Sin),
    ("cos", Function::Cos),
];

const FUNCTION_NAMES: &str = "functions are log2(x), ln(x), exp(x), sqrt(x), cbrt(x), abs(x), floor(x), ceil(x), sin(x), \
                              cos(x), min(x, y), max(x, y), mod(x, y) and if(x < y, then, otherwise)";

/// A unit's size in seconds (round trips for `RTT`) and bytes.
fn unit(name: &str) -> Option<(f64, Dimension)> {
    let rate = Dimension { time: -1, data: 1 };
    Some(match name {
        "pkt" | "packets" => (1.0, PLAIN),
        "RTT" | "s" => (1.0, TIME),
        "ms" => (1e-3, TIME),
        "us" | "µs" => (1e-6, TIME),
        "ns" => (1e-9, TIME),
        "bit" => (0.125, DATA),
        "kbit" => (125.0, DATA),
        "Mbit" => (125e3, DATA),
        "Gbit" => (125e6, DATA),
        "B" => (1.0, DATA),
        "kB" => (1e3, DATA),
        "MB" => (1e6, DATA),
        "bps" => (0.125, rate),
        "kbps" => (125.0, rate),
        "Mbps" => (125e3, rate),
        "Gbps" => (125e6, rate),
        _ => return None,
    })
}

fn binary(operator: Operator, left: Node, right: Node) -> Node {
    Node::Binary(operator, Box::new(left), Box::new(right)).folded()
}

/// The dimension of two that must have one; a 0 has any.
fn same(left: &Part, right: &Part) -> Result<Dimension, Fault> {
    if left.dimension == right.dimension || right.is_zero() {
        return Ok(left.dimension);
    }
    if left.is_zero() {
        return Ok(right.dimension);
    }
    let message = format!("{} and {} don't go together", left.dimension.text(), right.dimension.text());
    Err(Fault::new(left.span.start.min(right.span.start)..right.span.end.max(left.span.end), message)
        .help("give both sides the same unit"))
}

fn alike(operator: Operator, left: Part, right: Part) -> Result<Part, Fault> {
    let dimension = same(&left, &right)?;
    let span = left.span.start..right.span.end;
    Ok(Part { node: binary(operator, left.node, right.node), dimension, span })
}

fn product(operator: Operator, power: i8, left: Part, right: Part) -> Result<Part, Fault> {
    let span = left.span.start..right.span.end;
    let dimension = left.dimension.times(right.dimension, power).ok_or_else(|| too_high(&span))?;
    Ok(Part { node: binary(operator, left.node, right.node), dimension, span })
}

fn too_high(span: &Range<usize>) -> Fault {
    Fault::new(span.clone(), "units to a power of more than 16")
}

fn applied(function: Function, name: &str, inner: Part, span: Range<usize>) -> Result<Part, Fault> {
    let root = match function {
        Function::Abs => 1,
        Function::Sqrt => 2,
        Function::Cbrt => 3,
        _ => 0,
    };
    let Dimension { time, data } = inner.dimension;
    let dimension = match root {
        0 if inner.dimension == PLAIN => PLAIN,
        0 => {
            let message = format!("`{name}` takes a plain number, this is {}", inner.dimension.text());
            return Err(Fault::new(inner.span, message).help("divide by a unit: `exp(t/RTT)`"));
        }
        _ if time % root == 0 && data % root == 0 => Dimension { time: time / root, data: data / root },
        _ => return Err(Fault::new(inner.span, format!("{} has no such root", inner.dimension.text()))),
    };
    let node = Node::Call(function, Box::new(inner.node)).folded();
    Ok(Part { node, dimension, span })
}
