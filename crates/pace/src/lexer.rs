//! The words of a formula.

use crate::fault::Fault;
use std::ops::Range;

/// Longest text of an envelope, in bytes.
const LONGEST: usize = 4_096;

/// One word.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum TokenKind {
    Number(f64),
    Name(String),
    /// `+ - * / ^ ( ) , = < > <= >=`
    Sign(&'static str),
    End,
}

/// Longer ones first.
const SIGNS: [&str; 13] = ["<=", ">=", "+", "-", "*", "/", "^", "(", ")", ",", "=", "<", ">"];

/// Cuts the text into words; the last is the end.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    if text.len() > LONGEST {
        return Err(Fault::new(0..0, format!("this text has {} bytes; it may have {LONGEST}", text.len())));
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let kind = if first.is_ascii_digit() || first == '.' {
            let length = number_length(&text[at..]);
            let written = text[at..at + length].replace('_', "");
            let value = written.parse().ok().filter(|value: &f64| value.is_finite());
            let value = value
                .ok_or_else(|| Fault::new(at..at + length, format!("`{}` is no number", &text[at..at + length])))?;
            (TokenKind::Number(value), length)
        } else if first.is_ascii_alphabetic() || first == 'µ' || first == '_' {
            let rest = &text[at..];
            let length =
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == 'µ')).unwrap_or(rest.len());
            (TokenKind::Name(rest[..length].to_owned()), length)
        } else if let Some(sign) = SIGNS.iter().find(|sign| text[at..].starts_with(**sign)) {
            (TokenKind::Sign(sign), sign.len())
        } else {
            let span = at..at + first.len_utf8();
            return Err(Fault::new(span, format!("`{}` means nothing in a formula", first.escape_debug())));
        };
        found.push(Token { kind: kind.0, span: at..at + kind.1 });
        at += kind.1;
    }
    found.push(Token { kind: TokenKind::End, span: text.len()..text.len() });
    Ok(found)
}

/// Digits, one point, and an exponent only if digits follow: `2e` is the number 2 and a name.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'_') {
            at += 1;
        }
        at
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    end.max(1)
}
