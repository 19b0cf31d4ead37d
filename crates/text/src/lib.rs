//! Texts of users: where a word stands ([`Span`], [`SourceMap`]), what is wrong with it ([`Diagnostic`]), words and
//! numbers ([`lexer`]), quantities with units ([`quantity`]), and texts from elsewhere made fit for a terminal
//! ([`printable()`]).
//!
//! The crate reads no files: text comes in through a [`Loader`].
#![forbid(unsafe_code)]

pub mod diagnostic;
pub mod lexer;
mod printable;
pub mod quantity;
pub mod source;

pub use diagnostic::{Diagnostic, Severity};
pub use printable::{printable, printable_json, printable_lines};
pub use source::{LoadError, Loader, SourceMap, Span};
