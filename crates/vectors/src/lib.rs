//! Test vectors: what goes into an engine and what has to come out, as data. `docs/vectors.md` tells the format; the files are in
//! the folder `vectors` of the repository.
//!
//! - [`Vector::read`] takes a file, with `base.json`, which all images of vectors begin with;
//! - [`Vector::run`] hands it to an engine that the caller makes, and says what came out otherwise.
#![forbid(unsafe_code)]

mod bytes;
mod format;
mod run;

pub use format::{Limits, Setup, Vector, VectorError};
pub use run::Engine;
