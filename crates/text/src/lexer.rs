//! Text to tokens, for both syntaxes of machines and for the rules of packet subscriptions. It never fails: what is no
//! token is reported and skipped.

use crate::diagnostic::{Diagnostic, MAX_REPORTED};
use crate::source::Span;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where.
    pub span: Span,
}

/// Kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A name or keyword.
    Word(String),
    /// A number and the unit attached to it.
    Number {
        /// The number.
        value: NumberValue,
        /// Such as `ms` or `Mbit/s`; mostly empty.
        unit: String,
    },
    /// A whole number of 65 to 128 bits; only in rules.
    Wide(u128),
    /// `02:00:00:00:00:01`
    Mac(u64),
    /// `10.0.0.1`
    Ipv4(u32),
    /// `2001:db8::1`; only in rules.
    Ipv6(u128),
    /// `"..."`, without the quotes.
    Text(String),
    /// Punctuation; the longest match wins.
    Punctuation(&'static str),
    /// `#debug`
    Debug,
    /// Nothing follows.
    End,
}

/// A number as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NumberValue {
    /// A whole number.
    Whole(u64),
    /// A decimal fraction, rounded; who needs all its digits reads them in the source.
    Fraction(f64),
}

const PUNCTUATION: &[&str] = &[
    "<->", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "->", "..", "&&", "||", "{", "}", "(", ")", "[", "]", ";",
    ",", ".", ":", "=", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!",
];

/// The signs of logic that rules may be written with, and what they stand for.
const SIGNS: [(char, &str); 5] = [('∧', "&&"), ('∨', "||"), ('¬', "!"), ('≤', "<="), ('≥', ">=")];

/// Longest name, in bytes.
const LONGEST_NAME: usize = 100;
/// Longest text of an address.
const LONGEST_ADDRESS: usize = 64;

/// All tokens of a text; the last is [`Kind::End`]. A text with very many errors ends there.
pub fn lex(file: u16, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Token> {
    let mut lexer = Lexer { file, text, at: after_mark(text), rules: false, diagnostics };
    let before = lexer.diagnostics.len();
    let mut tokens = Vec::new();
    loop {
        if lexer.diagnostics.len() - before > MAX_REPORTED {
            lexer.at = text.len();
        }
        let token = lexer.next();
        let end = token.kind == Kind::End;
        tokens.push(token);
        if end {
            return tokens;
        }
    }
}

/// Where a text begins: some editors put a mark of the encoding in front.
fn after_mark(text: &str) -> usize {
    text.strip_prefix('\u{feff}').map_or(0, |rest| text.len() - rest.len())
}

/// Gives the tokens of a text one by one.
pub struct Lexer<'a> {
    file: u16,
    text: &'a str,
    at: usize,
    /// Whether IPv6 addresses, numbers beyond 64 bits and the signs of logic are tokens.
    rules: bool,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Lexer<'a> {
    /// For the rules of packet subscriptions.
    pub fn for_rules(file: u16, text: &'a str, diagnostics: &'a mut Vec<Diagnostic>) -> Lexer<'a> {
        Lexer { file, text, at: after_mark(text), rules: true, diagnostics }
    }

    /// The source text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Adds a diagnostic to those of the lexer.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn span(&self, start: usize) -> Span {
        Span { file: self.file, start: start as u32, end: self.at as u32 }
    }

    /// The next token; at the end of the text [`Kind::End`], again and again.
    #[expect(clippy::should_implement_trait, reason = "it never ends with nothing, as iterators do")]
    pub fn next(&mut self) -> Token {
        loop {
            self.skip_blanks();
            let start = self.at;
            let Some(first) = self.rest().chars().next() else {
                return Token { kind: Kind::End, span: self.span(start) };
            };
            if let Some(kind) = self.token(first) {
                return Token { kind, span: self.span(start) };
            }
        }
    }

    fn token(&mut self, first: char) -> Option<Kind> {
        let start = self.at;
        if let Some(mac) = mac_literal(self.rest()) {
            self.at += 17;
            return Some(Kind::Mac(mac));
        }
        if self.rules
            && let Some((address, length)) = ipv6_literal(self.rest())
        {
            self.at += length;
            return Some(Kind::Ipv6(address));
        }
        if first.is_ascii_digit() {
            return Some(self.number());
        }
        if first.is_alphabetic() || first == '_' {
            let word = self.take_while(|c| c.is_alphanumeric() || c == '_').to_string();
            if word.len() > LONGEST_NAME && !self.rules {
                let error = Diagnostic::error(self.span(start), format!("this name has {} letters", word.len()));
                self.diagnostics.push(error.help(format!("names have at most {LONGEST_NAME}")));
                return Some(Kind::Word(word.chars().take(LONGEST_NAME).collect()));
            }
            if !word.is_ascii() {
                let error = Diagnostic::error(self.span(start), format!("`{word}` has letters outside ASCII"));
                self.diagnostics.push(error.help("names are made of a-z, A-Z, 0-9 and _"));
            }
            return Some(Kind::Word(word));
        }
        if first == '"' {
            return Some(self.quoted());
        }
        if first == '#' {
            self.at += 1;
            let word = self.take_while(|c| c.is_alphanumeric() || c == '_').to_string();
            if word == "debug" {
                return Some(Kind::Debug);
            }
            let error = Diagnostic::error(self.span(start), format!("unknown directive `#{word}`"));
            self.diagnostics.push(error.help("the only directive is `#debug`"));
            return None;
        }
        for punctuation in PUNCTUATION {
            // Comparing first bytes first makes long texts twice as fast.
            if self.text.as_bytes()[start] == punctuation.as_bytes()[0] && self.rest().starts_with(punctuation) {
                self.at += punctuation.len();
                return Some(Kind::Punctuation(punctuation));
            }
        }
        self.at += first.len_utf8();
        if let Some((_, meant)) = SIGNS.iter().find(|(sign, _)| self.rules && *sign == first) {
            return Some(Kind::Punctuation(meant));
        }
        let message = format!("`{}` means nothing here", first.escape_debug());
        self.diagnostics.push(Diagnostic::error(self.span(start), message));
        None
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &str {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !keep(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn skip_blanks(&mut self) {
        loop {
            let text = self.text;
            let rest = &text[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                self.skip_block_comment();
            } else {
                return;
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let start = self.at;
        let mut depth = 0;
        while !self.rest().is_empty() {
            if self.rest().starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if self.rest().starts_with("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += self.rest().chars().next().map_or(0, char::len_utf8);
            }
        }
        let opening = Span { file: self.file, start: start as u32, end: start as u32 + 2 };
        self.diagnostics.push(
            Diagnostic::error(opening, "this comment does not end").help("comments nest: every `/*` needs its `*/`"),
        );
    }

    fn quoted(&mut self) -> Kind {
        let start = self.at;
        self.at += 1;
        let text = self.take_while(|c| c != '"' && c != '\n').to_string();
        if self.rest().starts_with('"') {
            self.at += 1;
        } else {
            self.diagnostics.push(Diagnostic::error(self.span(start), "this text does not end on its line"));
        }
        Kind::Text(text)
    }

    fn number(&mut self) -> Kind {
        let start = self.at;
        if let Some((address, length)) = ipv4_literal(self.rest()) {
            self.at += length;
            return Kind::Ipv4(address);
        }
        let (radix, prefix) = match self.rest().get(..2) {
            Some("0x" | "0X") => (16, 2),
            Some("0b" | "0B") => (2, 2),
            _ => (10, 0),
        };
        self.at += prefix;
        let digits = self.take_while(|c| c.is_digit(radix) || c == '_').replace('_', "");
        let mut fraction = None;
        let mut after = self.rest().chars();
        if radix == 10 && after.next() == Some('.') && after.next().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
            let decimals = self.take_while(|c| c.is_ascii_digit() || c == '_').replace('_', "");
            fraction = format!("{digits}.{decimals}").parse().ok();
        }
        let mut unit = self.take_while(|c| c.is_alphanumeric() || c == '_').to_string();
        let is_rate = |rest: &str| {
            rest.strip_prefix("/s").is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        };
        if unit.ends_with("bit") && is_rate(self.rest()) {
            unit.push_str(&self.text[self.at..self.at + 2]);
            self.at += 2;
        }
        let value = match fraction {
            Some(value) => NumberValue::Fraction(value),
            None => match u64::from_str_radix(&digits, radix) {
                Ok(value) => NumberValue::Whole(value),
                Err(_) => {
                    match u128::from_str_radix(&digits, radix) {
                        Ok(wide) if self.rules && unit.is_empty() => return Kind::Wide(wide),
                        _ => {}
                    }
                    let error = Diagnostic::error(self.span(start), "this number does not fit 64 bits");
                    self.diagnostics.push(error.help("the greatest is 18446744073709551615"));
                    NumberValue::Whole(0)
                }
            },
        };
        Kind::Number { value, unit }
    }
}

/// `02:00:00:00:00:01` at the start of a text.
fn mac_literal(text: &str) -> Option<u64> {
    // Most tokens are none: look at one byte first.
    if text.as_bytes().get(2) != Some(&b':') {
        return None;
    }
    let candidate = text.get(..17)?;
    // A colon may follow, as between the filter and the actions of a rule, but no further byte.
    let more = |text: &str| text.starts_with(|c: char| c.is_ascii_hexdigit());
    let rest = &text[17..];
    if more(rest) || rest.strip_prefix(':').is_some_and(|rest| more(rest) && more(&rest[1..])) {
        return None;
    }
    let bytes = candidate.as_bytes();
    let shaped = bytes.iter().enumerate().all(|(i, b)| if i % 3 == 2 { *b == b':' } else { b.is_ascii_hexdigit() });
    if !shaped {
        return None;
    }
    u64::from_str_radix(&candidate.replace(':', ""), 16).ok()
}

/// The start of a text, long enough for any address: looking further would make long runs of digits cost their square.
fn beginning(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_ADDRESS);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// `10.0.0.1` at the start of a text, with its length.
fn ipv4_literal(text: &str) -> Option<(u32, usize)> {
    let text = beginning(text);
    let length = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let address: std::net::Ipv4Addr = text[..length].parse().ok()?;
    Some((address.to_bits(), length))
}

/// `2001:db8::1` at the start of a text, with its length. It ends where letters, digits and colons end, or before a colon
/// that makes no address: the one between the filter and the actions of a rule.
fn ipv6_literal(text: &str) -> Option<(u128, usize)> {
    // Most tokens are none: the first group has up to four digits, then comes a colon.
    let digits = text.bytes().take(5).take_while(u8::is_ascii_hexdigit).count();
    if text.as_bytes().get(digits) != Some(&b':') {
        return None;
    }
    let text = beginning(text);
    let part = |c: char| c.is_ascii_hexdigit() || c == ':';
    let mut length = text.find(|c: char| !part(c)).unwrap_or(text.len());
    if text[..length].matches(':').count() < 2 {
        return None;
    }
    // The last 32 bits may be written as an IPv4 address.
    if text[length..].starts_with('.') {
        length = text.find(|c: char| !part(c) && c != '.').unwrap_or(text.len());
    }
    let address = |length: usize| {
        let goes_on = text[length..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let address: std::net::Ipv6Addr = if goes_on { return None } else { text[..length].parse().ok()? };
        Some((address.to_bits(), length))
    };
    // The longest one is 45 bytes.
    let colons = text[..length.min(46)].bytes().enumerate().rev().filter(|(_, byte)| *byte == b':');
    address(length).or_else(|| colons.map(|(at, _)| at).find_map(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let mut diagnostics = Vec::new();
        let tokens = lex(0, text, &mut diagnostics);
        assert_eq!(diagnostics, []);
        tokens.into_iter().map(|token| token.kind).filter(|kind| *kind != Kind::End).collect()
    }

    #[test]
    fn numbers_with_units_addresses_and_ranges() {
        let number = |value, unit: &str| Kind::Number { value, unit: unit.into() };
        assert_eq!(
            kinds("10Mbit/s 3bit/sum"),
            [
                number(NumberValue::Whole(10), "Mbit/s"),
                number(NumberValue::Whole(3), "bit"),
                Kind::Punctuation("/"),
                Kind::Word("sum".into()),
            ]
        );
        assert_eq!(
            kinds("10ms 1.5us 0xff 1..4 10.0.0.1 02:00:00:00:00:0a"),
            [
                number(NumberValue::Whole(10), "ms"),
                number(NumberValue::Fraction(1.5), "us"),
                number(NumberValue::Whole(255), ""),
                number(NumberValue::Whole(1), ""),
                Kind::Punctuation(".."),
                number(NumberValue::Whole(4), ""),
                Kind::Ipv4(0x0a00_0001),
                Kind::Mac(0x0200_0000_000a),
            ]
        );
    }

    #[test]
    fn rules_know_wider_numbers_addresses_and_signs() {
        let mut diagnostics = Vec::new();
        let mut lexer =
            Lexer::for_rules(0, "2001:db8::1 ::1 340282366920938463463374607431768211455 ∧ a:b", &mut diagnostics);
        let mut kinds = Vec::new();
        while kinds.last() != Some(&Kind::End) {
            kinds.push(lexer.next().kind);
        }
        let expected = [
            Kind::Ipv6(0x2001_0db8 << 96 | 1),
            Kind::Ipv6(1),
            Kind::Wide(u128::MAX),
            Kind::Punctuation("&&"),
            Kind::Word("a".into()),
            Kind::Punctuation(":"),
            Kind::Word("b".into()),
            Kind::End,
        ];
        assert_eq!(kinds, expected);
        assert_eq!(diagnostics, []);
    }

    /// The colon behind an address is the one in front of a rule's actions.
    #[test]
    fn a_rule_may_go_on_right_behind_an_address() {
        for (address, kind) in [
            ("fd00::1", Kind::Ipv6(0xfd00 << 112 | 1)),
            ("fd00::", Kind::Ipv6(0xfd00 << 112)),
            ("::", Kind::Ipv6(0)),
            ("1:2:3:4:5:6:7:8", Kind::Ipv6(0x0001_0002_0003_0004_0005_0006_0007_0008)),
            ("::ffff:10.0.0.1", Kind::Ipv6(0xffff_0a00_0001)),
            ("02:00:00:00:00:0a", Kind::Mac(0x0200_0000_000a)),
            ("10.0.0.1", Kind::Ipv4(0x0a00_0001)),
        ] {
            for behind in [": fwd", ":fwd", ":\nfwd", " : fwd"] {
                let text = format!("{address}{behind}");
                let mut diagnostics = Vec::new();
                let mut lexer = Lexer::for_rules(0, &text, &mut diagnostics);
                let found = [lexer.next().kind, lexer.next().kind, lexer.next().kind];
                assert_eq!(found, [kind.clone(), Kind::Punctuation(":"), Kind::Word("fwd".into())], "{text}");
            }
        }
        // Eight bytes are no address of six, and a colon that belongs to one stays in it.
        let mut diagnostics = Vec::new();
        let mut lexer = Lexer::for_rules(0, "02:00:00:00:00:01:02:03 fd00::1:f", &mut diagnostics);
        assert!(matches!([lexer.next().kind, lexer.next().kind], [Kind::Ipv6(_), Kind::Ipv6(_)]));
    }

    #[test]
    fn a_mark_of_the_encoding_in_front_is_skipped() {
        assert_eq!(kinds("\u{feff}a"), [Kind::Word("a".into())]);
        let mut diagnostics = Vec::new();
        assert_eq!(Lexer::for_rules(0, "\u{feff}a", &mut diagnostics).next().kind, Kind::Word("a".into()));
        lex(0, "a \u{feff}", &mut diagnostics);
        assert_eq!(diagnostics.len(), 1, "only in front");
    }

    #[test]
    fn comments_nest_and_strangers_are_reported() {
        assert_eq!(kinds("a /* b /* c */ d */ e // f"), [Kind::Word("a".into()), Kind::Word("e".into())]);
        let mut diagnostics = Vec::new();
        lex(0, "a $ /* b", &mut diagnostics);
        assert_eq!(diagnostics.len(), 2);
    }
}
