//! A place in a list of tokens, with the small steps that both parsers are made of.

use crate::ast::Name;
use weftwire_text::diagnostic::{Diagnostic, MAX_REPORTED};
use weftwire_text::lexer::{Kind, Token};
use weftwire_text::source::Span;

/// Blocks and parentheses may nest this deep, so that no program overflows the stack.
pub(crate) const MAX_DEPTH: usize = 100;
/// An expression has at most so many operators: `a + b + c ...` makes a tree as deep as it is long.
pub(crate) const MAX_OPERATORS: usize = 250;

/// A place in a list of tokens.
pub(crate) struct Cursor<'a> {
    tokens: &'a [Token],
    at: usize,
    pub(crate) depth: usize,
    /// Expressions being parsed, one in the other.
    pub(crate) expressions: usize,
    /// Operators between values in the outermost of them so far.
    pub(crate) operators: usize,

    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(tokens: &'a [Token]) -> Cursor<'a> {
        Cursor { tokens, at: 0, depth: 0, expressions: 0, operators: 0, diagnostics: Vec::new() }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn peek(&self) -> &'a Kind {
        self.peek_at(0)
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> &'a Kind {
        self.tokens.get(self.at + ahead).map_or(&Kind::End, |token| &token.kind)
    }

    pub(crate) fn span(&self) -> Span {
        let last = self.tokens.last().map_or(Span::default(), |token| token.span);
        self.tokens.get(self.at).map_or(last, |token| token.span)
    }

    /// The span of the token before this place.
    pub(crate) fn previous_span(&self) -> Span {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(Span::default(), |token| token.span)
    }

    pub(crate) fn at_end(&self) -> bool {
        *self.peek() == Kind::End
    }

    pub(crate) fn advance(&mut self) {
        if !self.at_end() {
            self.at += 1;
        }
    }

    /// Every loop of the parser calls this: a turn that took no token skips one.
    pub(crate) fn must_move(&mut self, before: usize) {
        if self.at == before {
            self.error_here("this can't stand here", None);
            self.advance();
        }
    }

    pub(crate) fn at_word(&self, word: &str) -> bool {
        matches!(self.peek(), Kind::Word(text) if text == word)
    }

    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn at_punctuation(&self, text: &str) -> bool {
        matches!(self.peek(), Kind::Punctuation(found) if *found == text)
    }

    pub(crate) fn take(&mut self, text: &str) -> bool {
        let found = self.at_punctuation(text);
        if found {
            self.advance();
        }
        found
    }

    /// Takes punctuation or reports that it is missing.
    pub(crate) fn expect(&mut self, text: &str, context: &str) -> bool {
        if self.take(text) {
            return true;
        }
        let found = describe(self.peek());
        self.error_here(&format!("expected `{text}` {context}, found {found}"), None);
        false
    }

    /// Takes a word or reports that it is missing.
    pub(crate) fn expect_word(&mut self, word: &str, context: &str) -> bool {
        if self.take_word(word) {
            return true;
        }
        let found = describe(self.peek());
        self.error_here(&format!("expected `{word}` {context}, found {found}"), None);
        false
    }

    /// The end of a statement; a missing one is reported where it should stand, and the parser goes on.
    pub(crate) fn semicolon(&mut self) {
        if self.take(";") {
            return;
        }
        let previous = self.previous_span();
        let place = Span { start: previous.end.saturating_sub(1), ..previous };
        let found = describe(self.peek());
        self.report(Diagnostic::error(place, format!("expected `;` behind this, found {found}")));
        self.recover();
    }

    /// Skips to behind the next `;`, or to the end of the block or a word that starts something.
    pub(crate) fn recover(&mut self) {
        const STARTS: &[&str] = &[
            "state",
            "State",
            "on",
            "action",
            "Action",
            "register",
            "Register",
            "timer",
            "template",
            "initial",
            "if",
            "send",
            "goto",
            "let",
            "const",
            "flow",
            "Event",
            "condition",
            "interface",
            "module",
        ];
        loop {
            match self.peek() {
                Kind::End | Kind::Punctuation("}") => return,
                Kind::Punctuation(";") => {
                    self.advance();
                    return;
                }
                Kind::Word(word) if STARTS.contains(&word.as_str()) => return,
                Kind::Punctuation("{") => {
                    self.skip_block();
                    return;
                }
                _ => self.advance(),
            }
        }
    }

    /// Skips a block with all that is in it.
    pub(crate) fn skip_block(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Kind::End => return,
                Kind::Punctuation("{") => depth += 1,
                Kind::Punctuation("}") => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.advance();
                        return;
                    }
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// A name; `what` says what it would have been.
    pub(crate) fn name(&mut self, what: &str) -> Option<Name> {
        if let Kind::Word(text) = self.peek() {
            let name = Name { text: text.clone(), span: self.span() };
            self.advance();
            return Some(name);
        }
        let found = describe(self.peek());
        self.error_here(&format!("expected {what}, found {found}"), None);
        None
    }

    /// A quoted text.
    pub(crate) fn text(&mut self, what: &str) -> Option<Name> {
        if let Kind::Text(text) = self.peek() {
            let name = Name { text: text.clone(), span: self.span() };
            self.advance();
            return Some(name);
        }
        let found = describe(self.peek());
        self.error_here(&format!("expected {what}, found {found}"), None);
        None
    }

    /// Names separated by commas.
    pub(crate) fn names(&mut self, what: &str) -> Vec<Name> {
        let mut names = Vec::new();
        loop {
            let Some(name) = self.name(what) else { return names };
            names.push(name);
            if !self.take(",") {
                return names;
            }
        }
    }

    pub(crate) fn error_here(&mut self, message: &str, help: Option<&str>) {
        let mut error = Diagnostic::error(self.span(), message);
        if let Some(help) = help {
            error = error.help(help);
        }
        self.report(error);
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        // One error a place: what follows from it would only distract.
        if self.diagnostics.last().is_some_and(|last| last.span == diagnostic.span) {
            return;
        }
        self.diagnostics.push(diagnostic);
        if self.diagnostics.len() > MAX_REPORTED {
            self.skip_all();
        }
    }

    /// Runs `inner` one level deeper, or reports that the program nests too deep.
    pub(crate) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if !self.enter() {
            return None;
        }
        let result = inner(self);
        self.leave();
        Some(result)
    }

    /// Goes one level deeper, or reports that the program nests too deep and goes to its end.
    pub(crate) fn enter(&mut self) -> bool {
        if self.depth >= MAX_DEPTH {
            self.give_up(&format!("this nests deeper than {MAX_DEPTH} levels"));
            return false;
        }
        self.depth += 1;
        true
    }

    /// Back from [`Cursor::enter`].
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Reports and goes to the program's end.
    pub(crate) fn give_up(&mut self, message: &str) {
        self.error_here(message, None);
        self.skip_all();
    }

    /// As [`Cursor::give_up`], with what would be right.
    pub(crate) fn give_up_with(&mut self, message: &str, help: &str) {
        self.error_here(message, Some(help));
        self.skip_all();
    }

    /// Whether a declaration of XL starts here.
    pub(crate) fn is_xl(&self) -> bool {
        const STARTS: [&str; 10] =
            ["machine", "state", "initial", "register", "timer", "flow", "slot", "const", "template", "import"];
        let next = matches!(self.peek_at(1), Kind::Word(_) | Kind::Text(_));
        matches!(self.peek(), Kind::Word(word) if next && STARTS.contains(&word.as_str()))
    }

    /// Takes a `=` where a comparison is meant, and says so.
    pub(crate) fn assignment_in_condition(&mut self) {
        self.error_here("`=` assigns, and can't stand in a condition", Some("`==` compares"));
        self.advance();
    }

    fn skip_all(&mut self) {
        self.at = self.tokens.len().saturating_sub(1);
    }
}

/// A token for people.
pub(crate) fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Word(word) => format!("`{word}`"),
        Kind::Number { .. } => "a number".into(),
        Kind::Mac(_) => "an Ethernet address".into(),
        Kind::Ipv6(_) => "an IPv6 address".into(),
        Kind::Wide(_) => "a number".into(),
        Kind::Ipv4(_) => "an IPv4 address".into(),
        Kind::Text(_) => "a quoted text".into(),
        Kind::Punctuation(text) => format!("`{text}`"),
        Kind::Debug => "`#debug`".into(),
        Kind::End => "the end of the file".into(),
    }
}
