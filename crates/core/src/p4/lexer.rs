//! Words, numbers and marks of P4 text. Comments, strings and preprocessor lines are left out.

use std::fmt;

/// A token and where it starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    /// From 1.
    pub(super) line: u32,
    /// In characters, from 1.
    pub(super) column: u32,
    /// In bytes from the start of the text.
    pub(super) start: usize,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum TokenKind<'a> {
    Name(&'a str),
    Number(i128),
    /// A number that is malformed or too large.
    BadNumber(&'a str),
    Mark(char),
    End,
}

impl fmt::Display for TokenKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenKind::Name(text) | TokenKind::BadNumber(text) => write!(f, "`{text}`"),
            TokenKind::Number(value) => write!(f, "`{value}`"),
            TokenKind::Mark(mark) => write!(f, "`{mark}`"),
            TokenKind::End => f.write_str("the end of the text"),
        }
    }
}

/// All tokens; the last one is of kind `End`.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    // Some editors put a mark of the encoding in front.
    let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lexer = Lexer { length: text.len(), rest, line: 1, column: 1 };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.token();
        tokens.push(token);
        if token.kind == TokenKind::End {
            return tokens;
        }
    }
}

struct Lexer<'a> {
    /// Of the whole text.
    length: usize,
    rest: &'a str,
    line: u32,
    column: u32,
}

impl<'a> Lexer<'a> {
    fn token(&mut self) -> Token<'a> {
        self.skip();
        let (line, column, start) = (self.line, self.column, self.length - self.rest.len());
        let kind = match self.rest.chars().next() {
            None => TokenKind::End,
            Some(first) if first.is_ascii_alphanumeric() || first == '_' => {
                let length =
                    self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
                let word = self.take(length);
                if first.is_ascii_digit() { number(word) } else { TokenKind::Name(word) }
            }
            Some(mark) => {
                self.take(mark.len_utf8());
                TokenKind::Mark(mark)
            }
        };
        Token { kind, line, column, start }
    }

    /// Skips white space, comments, strings and preprocessor lines.
    fn skip(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            let length = if blank > 0 {
                blank
            } else if self.rest.starts_with("//") {
                self.rest.find('\n').unwrap_or(self.rest.len())
            } else if self.rest.starts_with("/*") {
                self.rest[2..].find("*/").map_or(self.rest.len(), |end| end + 4)
            } else if self.rest.starts_with('#') {
                end_of_line(self.rest)
            } else if self.rest.starts_with('"') {
                end_of_string(self.rest)
            } else {
                return;
            };
            self.take(length);
        }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        for c in taken.chars() {
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        taken
    }
}

/// Length of a preprocessor line; a backslash at its end continues it.
fn end_of_line(text: &str) -> usize {
    let mut start = 0;
    while let Some(end) = text[start..].find('\n') {
        let line = &text[start..start + end];
        start += end + 1;
        if !line.trim_end().ends_with('\\') {
            return start;
        }
    }
    text.len()
}

fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// `16`, `0xff`, `0b1010`, `0o17`, with underscores, and with a width in front: `8w255`, `4s7`.
fn number(word: &str) -> TokenKind<'_> {
    let digits_before = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let digits = match word[digits_before..].chars().next() {
        Some('w' | 's') => &word[digits_before + 1..],
        _ => word,
    };
    let (digits, radix) = match digits.get(..2) {
        Some("0x" | "0X") => (&digits[2..], 16),
        Some("0b" | "0B") => (&digits[2..], 2),
        Some("0o" | "0O") => (&digits[2..], 8),
        Some("0d" | "0D") => (&digits[2..], 10),
        _ => (digits, 10),
    };
    i128::from_str_radix(&digits.replace('_', ""), radix).map_or(TokenKind::BadNumber(word), TokenKind::Number)
}
