//! The errors and warnings found so far.

use weftwire_lang::diagnostic::nearest;
use weftwire_lang::{Diagnostic, Severity, Span};

/// Nobody reads more.
const MOST: usize = 100;

/// Errors and warnings, of which the first hundred are kept.
#[derive(Default)]
pub struct Problems {
    /// In the order found.
    pub list: Vec<Diagnostic>,
    failed: bool,
}

impl Problems {
    /// Adds an error or a warning.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        self.failed |= diagnostic.severity == Severity::Error;
        if self.list.len() < MOST {
            self.list.push(diagnostic);
        }
    }

    /// Adds an error.
    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        self.add(Diagnostic::error(span, message));
    }

    /// Adds an error with what would be right.
    pub fn error_help(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.add(Diagnostic::error(span, message).help(help));
    }

    /// Adds an error about a name that nothing has.
    pub fn unknown<'a>(&mut self, span: Span, what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) {
        let diagnostic = Diagnostic::error(span, format!("there is no {what} `{name}`"));
        self.add(match nearest(name, known) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic,
        });
    }

    /// Whether there was an error.
    pub fn failed(&self) -> bool {
        self.failed
    }
}
