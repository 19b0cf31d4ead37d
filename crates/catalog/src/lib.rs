//! Functions from files: the one place where engines, compilers and files meet, for the command line and for every other
//! program that loads functions.
//!
//! A [`Catalog`] says what files may include and who hears of warnings. It gives images ([`Catalog::image`]), machines
//! ([`Catalog::machine`]), subscription switches ([`Catalog::switch`]) and networks with all that they name
//! ([`Catalog::network`]). Whatever it loads, a [`Loaded`] starts on any platform's ports.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_types, reason = "this is where functions come from files")]

pub mod capture;
mod error;
pub mod file;
mod loaded;
mod network;
mod program;
mod rules;

pub use weftwire_engine::parameter;

pub use error::{CatalogError, summary};
pub use loaded::{Loaded, engine_options};
pub use network::{Change, Functions, NetworkFile, NetworkSource, NoChange, Sweep, parse_change, parse_value};
pub use program::dialect;
pub use rules::{Compiling, FieldsInOrder, Rules, texts};

use std::path::PathBuf;
use weftwire_text::{Diagnostic, SourceMap};

/// Where functions come from.
#[derive(Clone)]
pub struct Catalog<'a> {
    /// Programs may include files of these folders, beside those of their own: whole paths.
    pub includes: Vec<PathBuf>,
    /// How many settings of timers an instance may have pending where a program does not say; `None`: as the language has it.
    pub timers: Option<u32>,
    /// Hears of errors and warnings, with the texts that they point into.
    pub report: &'a (dyn Fn(&[Diagnostic], &SourceMap) + Sync),
}
