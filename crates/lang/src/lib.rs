//! XL, the language of machines: from source text to a machine image.
//!
//! [`compile`] does it all: it lexes and parses (XL proper or the published XTRA dialect), resolves names and
//! types, and lowers to the flat image. It never stops at the first error: the result carries every diagnostic of the program.
//!
//! The crate reads no files: text comes in through a [`Loader`].
#![forbid(unsafe_code)]

mod ast;
pub mod diagnostic;
mod dialect;
mod formula;
pub mod lexer;
mod lower;
mod parser;
pub mod source;

pub use diagnostic::{Diagnostic, Severity};
pub use source::{Loader, SourceMap, Span};

use weftwire_image::Image;

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
    let mut sources = SourceMap::default();
    let mut diagnostics = Vec::new();
    let program = match dialect {
        Dialect::Xl => parser::parse_program(name, loader, &mut sources, &mut diagnostics),
        Dialect::Xtra => dialect::parse_program(name, loader, &mut sources, &mut diagnostics),
    };
    if sources.files().is_empty() {
        return Compilation { image: None, diagnostics, sources };
    }
    let image = lower::lower(&program, dialect, loader, &sources, &mut diagnostics);
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.file, diagnostic.span.start, diagnostic.severity));
    diagnostics.dedup();
    Compilation { image: image.filter(|_| !failed), diagnostics, sources }
}
