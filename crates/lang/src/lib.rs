//! XL, the language of machines: from source text to a machine image.
//!
//! [`compile`] does it all: it lexes and parses (XL proper or the published XTRA dialect), resolves names and
//! types, and lowers to the flat image. It never stops at the first error: the result carries every diagnostic of the program.
//!
//! The crate reads no files: text comes in through a [`Loader`].
#![forbid(unsafe_code)]

mod ast;
mod dialect;
mod formula;
mod lower;
mod parser;
mod phases;

pub use phases::{PhaseChange, Phases};

use weftwire_image::{Image, limits};
use weftwire_text::diagnostic::MAX_REPORTED;
use weftwire_text::{Diagnostic, Loader, Severity, SourceMap, Span};

/// Which of the two syntaxes a program is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// XL proper (`.xl`).
    Xl,
    /// The published XFSM-Lang dialect (`.xtra`).
    Xtra,
}

impl Dialect {
    /// The dialect that a file name's ending stands for.
    pub fn of_file_name(name: &str) -> Option<Dialect> {
        match name.rsplit('.').next() {
            Some("xl") => Some(Dialect::Xl),
            Some("xtra") => Some(Dialect::Xtra),
            _ => None,
        }
    }
}

/// What compiling gave.
#[derive(Debug)]
pub struct Compilation {
    /// The image, sealed with its digest, if there was no error.
    pub image: Option<Image>,
    /// Errors and warnings in order of their place.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts that spans point into.
    pub sources: SourceMap,
}

/// Compiles the program in the file `name`, which `loader` is asked for.
pub fn compile(name: &str, dialect: Dialect, loader: &dyn Loader) -> Compilation {
    compile_for(name, dialect, loader, None)
}

/// The same for a platform that has room for so many pending settings of timers in an instance, where neither the program says how
/// many there may be nor its handlers show it; `None`: as the language has it.
pub fn compile_for(name: &str, dialect: Dialect, loader: &dyn Loader, timers: Option<u32>) -> Compilation {
    let mut sources = SourceMap::default();
    let mut diagnostics = Vec::new();
    let program = match dialect {
        Dialect::Xl => parser::parse_program(name, loader, &mut sources, &mut diagnostics),
        Dialect::Xtra => dialect::parse_program(name, loader, &mut sources, &mut diagnostics),
    };
    if sources.files().is_empty() {
        return Compilation { image: None, diagnostics, sources };
    }
    let image = lower::lower(&program, dialect, loader, &sources, timers, &mut diagnostics);
    let image = image.and_then(|image| verified(image, &mut diagnostics));
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.file, diagnostic.span.start, diagnostic.severity));
    diagnostics.dedup();
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    shorten(&mut diagnostics);
    Compilation { image: image.filter(|_| !failed), diagnostics, sources }
}

/// The phases that `register` of the module `module` goes through, as the program in the XL file `name` says; `None` if it does not
/// parse, has no such module, or that sets the register to no constants.
pub fn phases(name: &str, loader: &dyn Loader, module: &str, register: &str) -> Option<Phases> {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    let program = parser::parse_program(name, loader, &mut sources, &mut diagnostics);
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    phases::find(&program, &sources, module, register).filter(|_| !failed)
}

/// The image, if it can run: what an engine would refuse is an error of the program.
fn verified(image: Image, diagnostics: &mut Vec<Diagnostic>) -> Option<Image> {
    if image.to_json().len() > limits::MAX_DOCUMENT {
        let message = format!("the image of this program is larger than {} MiB", limits::MAX_DOCUMENT >> 20);
        diagnostics.push(Diagnostic::error(Span::default(), message));
        return None;
    }
    match image.verify() {
        Ok(image) => Some(image.into_image()),
        Err(error) => {
            let message = format!("{UNVERIFIED}: {error}");
            diagnostics.push(Diagnostic::error(Span::default(), message));
            None
        }
    }
}

/// What is said of an image that does not verify though no other error was found.
pub const UNVERIFIED: &str = "the image of this program can't run";

/// Leaves the first errors and warnings.
fn shorten(diagnostics: &mut Vec<Diagnostic>) {
    for (severity, what) in [(Severity::Error, "errors"), (Severity::Warning, "warnings")] {
        let mut count = 0;
        let mut last = None;
        diagnostics.retain(|diagnostic| {
            count += usize::from(diagnostic.severity == severity);
            let kept = diagnostic.severity != severity || count <= MAX_REPORTED;
            if kept && diagnostic.severity == severity {
                last = Some(diagnostic.span);
            }
            kept
        });
        if let Some(span) = last.filter(|_| count > MAX_REPORTED) {
            let message = format!("there are more {what}: the first {MAX_REPORTED} are shown");
            diagnostics.push(Diagnostic { severity, ..Diagnostic::error(span, message) });
        }
    }
}
