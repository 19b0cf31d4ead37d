//! The errors and warnings found so far.

use weftwire_text::diagnostic::nearest;
use weftwire_text::{Diagnostic, Severity, Span};

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
    /// Adds an error or a warning, once: what concerns both directions of a link is found twice.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        self.failed |= diagnostic.severity == Severity::Error;
        if self.list.len() < MOST && !self.list.contains(&diagnostic) {
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
        self.misnamed(Diagnostic::error(span, format!("there is no {what} `{name}`")), name, known, None);
    }

    /// Adds an error about `name` with the nearest of what is known, else other help.
    pub fn misnamed<'a>(
        &mut self,
        error: Diagnostic,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
        otherwise: Option<String>,
    ) {
        // Nobody reads further errors; no need to look for what they might have meant.
        let near = if self.list.len() < MOST { near(name, known) } else { None };
        let help = near.map(|near| format!("did you mean `{near}`?")).or(otherwise);
        self.add(Diagnostic { help, ..error });
    }

    /// Whether there was an error.
    pub fn failed(&self) -> bool {
        self.failed
    }
}

/// The known name most like `name`. Of long ones none: the search takes the product of the lengths.
pub fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > 100 { None } else { nearest(name, known) }
}
