//! Why something does not come from files.

use crate::parameter::ParameterError;
use std::io;
use std::string::FromUtf8Error;
use thiserror::Error;
use weftwire_capture::CaptureError;
use weftwire_engine::EngineError;
use weftwire_image::ImageError;
use weftwire_switch::application::ActionError;
use weftwire_text::{Diagnostic, Severity};

/// Why something does not come from files.
#[derive(Debug, Error)]
pub enum CatalogError {
    /// A file cannot be read.
    #[error("cannot {action} {path}")]
    File {
        /// What was tried: `read` or `open`.
        action: &'static str,
        /// The file.
        path: String,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// A file is no text.
    #[error("cannot read {path}: it is no UTF-8 text")]
    NoText {
        /// The file.
        path: String,
        /// Where it is none.
        #[source]
        error: FromUtf8Error,
    },
    /// A capture cannot be read.
    #[error("cannot read {path}")]
    Capture {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        error: CaptureError,
    },
    /// A source with errors, which were reported; their number and that of warnings, behind the source's name where it was
    /// not said yet.
    #[error("{0}")]
    Wrong(String),
    /// Sources have names that tell their language.
    #[error("{path} is no source: sources end in .xl or .xtra")]
    NoSource {
        /// The file.
        path: String,
    },
    /// A file is no image, or one that cannot run.
    #[error("{path} is no image that can run")]
    NoImage {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        error: ImageError,
    },
    /// The compiler made what nobody can run.
    #[error("the compiler made an image that does not verify; this is a defect of the compiler")]
    Defect(#[source] ImageError),
    /// A function does not start with these parameters.
    #[error("cannot start {path}")]
    Parameter {
        /// The function's file.
        path: String,
        /// Why not.
        #[source]
        error: ParameterError,
    },
    /// A function cannot be started.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A switch cannot carry an action out.
    #[error(transparent)]
    Action(#[from] ActionError),
    /// Rules name an action that the switch cannot carry out.
    #[error("{files}")]
    Rules {
        /// The rules' files.
        files: String,
        /// Why not.
        #[source]
        error: ActionError,
    },
    /// The rules cost more than the budget; the costly one was reported.
    #[error("the rules are too much")]
    TooMuch,
    /// An order of fields names something else.
    #[error("there is no one field `{0}` that filters may use")]
    NoField(String),
    /// A seed that TOML cannot hold.
    #[error("a seed is at most 9223372036854775807")]
    Seed,
    /// A network that was right is wrong with another seed.
    #[error("{path}: not a network with seed {seed}")]
    NoNetwork {
        /// The file.
        path: String,
        /// The seed.
        seed: u64,
    },
    /// The function of a node cannot be loaded.
    #[error("node {node}")]
    Node {
        /// The node's name.
        node: String,
        /// Why not.
        #[source]
        error: Box<CatalogError>,
    },
}

/// How many errors and warnings there are, in words.
pub fn summary(diagnostics: &[Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|found| found.severity == severity).count();
    let words = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    format!("{}, {}", words(count(Severity::Error), "error"), words(count(Severity::Warning), "warning"))
}
