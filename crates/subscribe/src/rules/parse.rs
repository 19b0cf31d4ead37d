//! From text to checked rules, in one pass. After a mistake it goes on behind the next `;`.

mod subject;

use super::constant::{Misfit, Target, domain_name};
use super::*;
use crate::formats::{ArgumentKind, Form, MatchKind, MessageFormats, NAME_WORD, NameField, nanoseconds};
use crate::values::Interval;
use std::borrow::Cow;
use weftwire_text::diagnostic::nearest;
use weftwire_text::lexer::{Kind, Lexer, NumberValue, Token};
use weftwire_text::{Diagnostic, SourceMap};

/// Deepest nesting of parentheses and negations; keeps hostile text from exhausting the stack.
const MOST_DEPTH: usize = 64;

/// Most intervals that a mask may select.
const MOST_INTERVALS: u32 = 4096;

/// A mistake that is already reported.
struct Reported;

type Parsed<T> = Result<T, Reported>;

/// Reads rules: their text under its name. What is wrong joins `diagnostics`, with places in `sources`. The rules that
/// are right are returned, whatever the others are.
pub fn read_rules(
    name: &str,
    text: &str,
    formats: &MessageFormats,
    sources: &mut SourceMap,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Rule> {
    let file = sources.add(name.to_owned(), text.to_owned());
    let mut lexer = Lexer::for_rules(file, text, diagnostics);
    let token = lexer.next();
    let mut parser = Parser { lexer, last: token.span, token, formats };
    let mut rules = Vec::new();
    while parser.token.kind != Kind::End {
        match parser.rule() {
            Ok(rule) => rules.push(rule),
            Err(Reported) => parser.skip_rule(),
        }
    }
    rules
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token.
    token: Token,
    /// Where the token before it stands.
    last: Span,
    formats: &'a MessageFormats,
}

/// The left side of a test.
struct Left<'a> {
    subject: Subject,
    name: Cow<'a, str>,
    width: u16,
    form: Form,
    kind: Option<MatchKind>,
    /// A mask that the field is compared under, with the place of it.
    mask: Option<u128>,
    /// A name of the domain name system in place of a field: its fields.
    words: Option<&'a [FieldId]>,
    span: Span,
}

/// What a name in a filter means.
enum Named<'a> {
    Field(FieldId),
    Name(&'a NameField),
}

impl Left<'_> {
    fn target(&self) -> Target<'_> {
        Target { name: &self.name, width: self.width, form: self.form }
    }
}

impl<'a> Parser<'a> {
    fn advance(&mut self) -> Token {
        let next = self.lexer.next();
        let token = std::mem::replace(&mut self.token, next);
        self.last = token.span;
        token
    }

    fn at(&self, text: &str) -> bool {
        match &self.token.kind {
            Kind::Punctuation(punctuation) => *punctuation == text,
            Kind::Word(word) => word == text,
            _ => false,
        }
    }

    fn accept(&mut self, text: &str) -> bool {
        let there = self.at(text);
        if there {
            self.advance();
        }
        there
    }

    fn expect(&mut self, text: &str, help: &str) -> Parsed<()> {
        if self.accept(text) {
            return Ok(());
        }
        let found = self.found();
        self.fail(self.token.span, format!("expected `{text}`, found {found}"), help)
    }

    fn found(&self) -> String {
        match &self.token.kind {
            Kind::End => "the end of the file".to_owned(),
            _ => format!("`{}`", self.text(self.token.span)),
        }
    }

    fn text(&self, span: Span) -> &str {
        self.lexer.text().get(span.start as usize..span.end as usize).unwrap_or("")
    }

    fn fail<T>(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) -> Parsed<T> {
        self.lexer.report(Diagnostic::error(span, message).help(help));
        Err(Reported)
    }

    fn misfit<T>(&mut self, span: Span, misfit: Misfit) -> Parsed<T> {
        self.fail(span, misfit.message, misfit.help)
    }

    fn skip_rule(&mut self) {
        // The mistake may be that the rule ends too early.
        if self.text(self.last) == ";" {
            return;
        }
        while self.token.kind != Kind::End && !self.accept(";") {
            self.advance();
        }
    }

    fn rule(&mut self) -> Parsed<Rule> {
        let start = self.token.span;
        let filter = self.any(0)?;
        self.expect(":", "a rule is `filter : action, action;`")?;
        let mut actions = vec![self.action()?];
        while self.accept(",") {
            actions.push(self.action()?);
        }
        let span = start.to(self.last);
        self.expect(";", "a rule ends with `;`")?;
        let drops = actions.contains(&Action::Drop);
        if drops && actions.iter().any(|action| matches!(action, Action::Forward(_))) {
            return self.fail(span, "this rule both forwards and drops", "leave one of them out");
        }
        Ok(Rule { filter, actions, span })
    }

    fn any(&mut self, depth: usize) -> Parsed<Filter> {
        let first = self.all(depth)?;
        if !(self.at("or") || self.at("||")) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.accept("or") || self.accept("||") {
            parts.push(self.all(depth)?);
        }
        Ok(Filter::Any(parts))
    }

    fn all(&mut self, depth: usize) -> Parsed<Filter> {
        let first = self.unary(depth)?;
        if !(self.at("and") || self.at("&&")) {
            return Ok(first);
        }
        let mut parts = Vec::with_capacity(2);
        parts.push(first);
        while self.accept("and") || self.accept("&&") {
            parts.push(self.unary(depth)?);
        }
        Ok(Filter::All(parts))
    }

    fn unary(&mut self, depth: usize) -> Parsed<Filter> {
        if depth > MOST_DEPTH {
            let span = self.token.span;
            return self.fail(span, "this is nested too deeply", format!("go at most {MOST_DEPTH} levels deep"));
        }
        if self.accept("not") || self.accept("!") {
            return Ok(Filter::Not(Box::new(self.unary(depth + 1)?)));
        }
        if self.accept("(") {
            let inner = self.any(depth + 1)?;
            self.expect(")", "every `(` needs its `)`")?;
            return Ok(inner);
        }
        if self.accept("true") {
            return Ok(Filter::Always);
        }
        if self.accept("false") {
            return Ok(Filter::Never);
        }
        self.test()
    }

    fn test(&mut self) -> Parsed<Filter> {
        let mut left = self.left()?;
        if let Some(words) = left.words {
            return self.name_test(&left, words);
        }
        if self.accept("&") {
            let (mask, _) = self.constant(&left)?;
            left.mask = Some(mask);
        }
        let (values, negated) = self.comparison(&left)?;
        let all = Interval::of_width(left.width);
        let values = if negated { values.complement(all) } else { values };
        let span = left.span.to(self.last);
        let is_all = values.intervals() == [all];
        if values.is_empty() || is_all {
            let (how, why) = if is_all { ("always", "every value passes") } else { ("never", "no value passes") };
            let warning = Diagnostic::warning(span, format!("this {how} holds")).label(why);
            self.lexer.report(warning);
        }
        Ok(Filter::Test(Test { subject: left.subject, values, span }))
    }

    /// A test of a name of the domain name system, of which the left side is read.
    fn name_test(&mut self, left: &Left<'a>, words: &[FieldId]) -> Parsed<Filter> {
        let help = "names compare by `==`, `!=`, `in {..}` and `not in {..}`, like `name == \"www.example.com\"`";
        let mut negated = self.accept("not");
        let mut any = Vec::new();
        if self.accept("in") {
            self.expect("{", help)?;
            loop {
                any.push(self.name_constant(left, words)?);
                if !self.accept(",") {
                    break;
                }
            }
            self.expect("}", "a set is `{a, b, c}`")?;
        } else {
            let unequal = self.accept("!=");
            if negated || !(unequal || self.accept("==") || self.accept("=")) {
                let found = self.found();
                return self.fail(self.token.span, format!("{found} is no comparison of names"), help);
            }
            negated = unequal;
            any.push(self.name_constant(left, words)?);
        }
        let filter = if any.len() == 1 { any.remove(0) } else { Filter::Any(any) };
        Ok(if negated { Filter::Not(Box::new(filter)) } else { filter })
    }

    /// That a name is this one: a test of each of its fields.
    fn name_constant(&mut self, left: &Left<'a>, words: &[FieldId]) -> Parsed<Filter> {
        let token = self.advance();
        let wire = match &token.kind {
            Kind::Text(text) | Kind::Word(text) => domain_name(text, words.len()),
            _ => Err(Misfit::of_name("this is no name", words.len())),
        };
        let wire = match wire {
            Ok(wire) => wire,
            Err(misfit) => return self.misfit(token.span, misfit),
        };
        let span = left.span.to(token.span);
        let tests = words
            .iter()
            .zip(wire)
            .map(|(word, values)| Filter::Test(Test { subject: Subject::Field(*word), values, span }));
        Ok(Filter::All(tests.collect()))
    }

    /// The right side of a test: the values, and whether they are those that do not pass.
    fn comparison(&mut self, left: &Left<'_>) -> Parsed<(ValueSet, bool)> {
        let operator = self.advance();
        let symbol = match &operator.kind {
            Kind::Punctuation(symbol) => *symbol,
            Kind::Word(word) if word == "in" => "in",
            Kind::Word(word) if word == "prefix" => "prefix",
            Kind::Word(word) if word == "not" && self.accept("in") => {
                return Ok((self.members(left)?, true));
            }
            _ => "",
        };
        let ordered = matches!(symbol, "<" | "<=" | ">" | ">=");
        if left.mask.is_some() && !matches!(symbol, "==" | "=" | "!=") {
            return self.fail(operator.span, "under a mask only `==` and `!=` compare", "like `flags & 0x12 == 0x02`");
        }
        if ordered || symbol == "prefix" {
            self.check_exact(left, operator.span)?;
        }
        match symbol {
            "==" | "=" => Ok((self.element(left)?, false)),
            "!=" => Ok((self.element(left)?, true)),
            "<" | "<=" | ">" | ">=" => {
                let (value, _) = self.constant(left)?;
                let below = |last| ValueSet::interval(Interval { first: 0, last });
                Ok(match symbol {
                    "<=" => (below(value), false),
                    ">" => (below(value), true),
                    _ => (value.checked_sub(1).map_or(ValueSet::empty(), below), symbol == ">="),
                })
            }
            "in" => Ok((self.members(left)?, false)),
            "prefix" => {
                let token = self.advance();
                let (Kind::Text(text) | Kind::Word(text)) = &token.kind else {
                    return self.fail(token.span, "a prefix is a text", "like `stock prefix \"GO\"`");
                };
                match left.target().starting_with(text) {
                    Ok(interval) => Ok((ValueSet::interval(interval), false)),
                    Err(misfit) => self.misfit(token.span, misfit),
                }
            }
            _ => {
                let found = self.text(operator.span).to_owned();
                let help = "compare with == != < <= > >=, `in [a, b]`, `in {a, b}` or `prefix \"text\"`";
                self.fail(operator.span, format!("`{found}` is no comparison"), help)
            }
        }
    }

    /// What stands behind `in`: `[a, b]`, `{a, [b, c], ...}`, or a prefix.
    fn members(&mut self, left: &Left<'_>) -> Parsed<ValueSet> {
        if !self.accept("{") {
            return self.member(left);
        }
        let mut intervals = Vec::new();
        loop {
            intervals.extend_from_slice(self.member(left)?.intervals());
            if !self.accept(",") {
                break;
            }
        }
        self.expect("}", "a set is `{a, b, c}`")?;
        Ok(ValueSet::union_of(intervals))
    }

    /// A range `[a, b]`, or an element.
    fn member(&mut self, left: &Left<'_>) -> Parsed<ValueSet> {
        let start = self.token.span;
        if !self.accept("[") {
            return self.element(left);
        }
        self.check_exact(left, start)?;
        let (first, _) = self.constant(left)?;
        self.expect(",", "a range is `[first, last]`, both included")?;
        let (last, _) = self.constant(left)?;
        self.expect("]", "a range is `[first, last]`, both included")?;
        if first > last {
            return self.fail(start.to(self.last), "this range ends before it begins", "swap its ends");
        }
        Ok(ValueSet::interval(Interval { first, last }))
    }

    /// A constant, a prefix `constant/length`, or what a mask makes of a constant.
    fn element(&mut self, left: &Left<'_>) -> Parsed<ValueSet> {
        let (value, span) = self.constant(left)?;
        if self.at("/") && left.mask.is_none() {
            self.advance();
            let token = self.advance();
            let length = match token.kind {
                Kind::Number { value: NumberValue::Whole(length), .. } if length <= left.width.into() => length as u16,
                _ => {
                    let help = format!("`{}` has prefixes of 0 to {} bits", left.name, left.width);
                    return self.fail(token.span, "this is no length of a prefix", help);
                }
            };
            let interval = Interval::of_prefix(value, length, left.width);
            if length < left.width {
                self.check_exact(left, span.to(token.span))?;
            }
            if interval.first != value {
                let warning = Diagnostic::warning(span.to(token.span), "there are bits behind the prefix");
                self.lexer.report(warning.help("they are ignored; make them 0"));
            }
            return Ok(ValueSet::interval(interval));
        }
        match left.mask {
            Some(mask) => self.masked(left, mask, value, span),
            None => Ok(ValueSet::point(value)),
        }
    }

    /// The values that are `value` under `mask`.
    fn masked(&mut self, left: &Left<'_>, mask: u128, value: u128, span: Span) -> Parsed<ValueSet> {
        self.check_exact(left, span)?;
        let all = Interval::of_width(left.width).last;
        if value & !mask != 0 {
            self.lexer.report(Diagnostic::warning(span, "this never holds").label("it has bits outside of the mask"));
            return Ok(ValueSet::empty());
        }
        // Below the mask's lowest bit values are one run; each free bit above it doubles the runs.
        let low = mask.trailing_zeros().min(left.width.into());
        let run = if low == 128 { u128::MAX } else { (1u128 << low) - 1 };
        let free = !mask & all & !run;
        if free.count_ones() > MOST_INTERVALS.trailing_zeros() {
            let message = format!("this mask selects 2^{} ranges", free.count_ones());
            return self.fail(
                span,
                message,
                format!("at most {MOST_INTERVALS} are possible; declare the bits as fields"),
            );
        }
        let mut intervals = Vec::new();
        let mut bits: u128 = 0;
        loop {
            let first = value | bits;
            intervals.push(Interval { first, last: first | run });
            // The next subset of the free bits.
            bits = bits.wrapping_sub(free) & free;
            if bits == 0 {
                return Ok(ValueSet::union_of(intervals));
            }
        }
    }

    /// Fields that are matched exactly have tables of single values.
    fn check_exact(&mut self, left: &Left<'_>, span: Span) -> Parsed<()> {
        if left.kind != Some(MatchKind::Exact) {
            return Ok(());
        }
        let message = format!("`{}` is matched exactly", left.name);
        self.fail(span, message, "use == != or `in {..}`, or let the format say match=range")
    }

    fn constant(&mut self, left: &Left<'_>) -> Parsed<(u128, Span)> {
        let token = self.advance();
        if token.kind == Kind::Punctuation("-") {
            return self.fail(token.span, "fields are never negative", "give a number from 0 on");
        }
        let value = left.target().value(&token.kind, self.text(token.span));
        match value {
            Ok(value) => Ok((value, token.span)),
            Err(misfit) => self.misfit(token.span, misfit),
        }
    }

    fn action(&mut self) -> Parsed<Action> {
        let token = self.advance();
        let Kind::Word(name) = token.kind else {
            return self.fail(token.span, "an action is missing", "like `fwd(1)`, `fwd(1, 2)` or `drop`");
        };
        if name == "drop" {
            if self.accept("(") {
                self.expect(")", "`drop` has no arguments")?;
            }
            return Ok(Action::Drop);
        }
        self.expect("(", "an action has its arguments in parentheses, like `fwd(1)`")?;
        let mut arguments = Vec::new();
        if !self.accept(")") {
            loop {
                let token = self.advance();
                arguments.push(token);
                if !self.accept(",") {
                    break;
                }
            }
            self.expect(")", "every `(` needs its `)`")?;
        }
        let span = token.span.to(self.last);
        if name == "fwd" { self.forward(&arguments, span) } else { self.call(name, &arguments, token.span) }
    }

    fn forward(&mut self, arguments: &[Token], span: Span) -> Parsed<Action> {
        if arguments.is_empty() {
            return self.fail(span, "`fwd` goes nowhere", "name a port, or write `drop`");
        }
        let mut ports = Vec::with_capacity(arguments.len());
        for token in arguments {
            match &token.kind {
                Kind::Number { value: NumberValue::Whole(port @ 1..=65_535), unit } if unit.is_empty() => {
                    ports.push(Port(*port as u16));
                }
                _ => return self.fail(token.span, "this is no port", "ports are numbers from 1 to 65535"),
            }
        }
        ports.sort_unstable();
        ports.dedup();
        Ok(Action::Forward(ports))
    }

    fn call(&mut self, name: String, arguments: &[Token], span: Span) -> Parsed<Action> {
        let Some(signature) = self.formats.actions().iter().find(|action| action.name == name) else {
            let known = self.formats.actions().iter().map(|action| action.name.as_str());
            let help = match nearest(&name, known.chain(["fwd", "drop"])) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "actions are `fwd`, `drop`, and what the application registers".to_owned(),
            };
            return self.fail(span, format!("there is no action `{name}`"), help);
        };
        if signature.arguments.len() != arguments.len() {
            let (wanted, given) = (signature.arguments.len(), arguments.len());
            let message = format!("`{name}` has {given} arguments here");
            return self.fail(span.to(self.last), message, format!("it takes {wanted}"));
        }
        let kinds = signature.arguments.clone();
        let mut values = Vec::with_capacity(arguments.len());
        for (token, kind) in arguments.iter().zip(kinds) {
            let value = match (&token.kind, kind) {
                (Kind::Number { value: NumberValue::Whole(value), unit }, ArgumentKind::Number) if unit.is_empty() => {
                    Argument::Number(*value)
                }
                (Kind::Text(text), ArgumentKind::Text) => Argument::Text(text.clone()),
                (Kind::Ipv4(address), ArgumentKind::Ipv4) => Argument::Ipv4((*address).into()),
                (Kind::Ipv6(address), ArgumentKind::Ipv6) => Argument::Ipv6((*address).into()),
                (Kind::Mac(address), ArgumentKind::Mac) => Argument::Mac(*address),
                _ => {
                    let wanted = match kind {
                        ArgumentKind::Number => "a number",
                        ArgumentKind::Text => "a quoted text",
                        ArgumentKind::Ipv4 => "an IPv4 address",
                        ArgumentKind::Ipv6 => "an IPv6 address",
                        ArgumentKind::Mac => "an Ethernet address",
                    };
                    return self.fail(token.span, "this argument is of another type", format!("give {wanted}"));
                }
            };
            values.push(value);
        }
        Ok(Action::Call(Call { action: name, arguments: values }))
    }
}
