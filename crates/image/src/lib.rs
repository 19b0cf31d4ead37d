//! The machine image: the one contract between compiler and platforms. `docs/semantics.md` says what it means.
#![forbid(unsafe_code)]

pub mod explain;
pub mod graph;
pub mod types;
pub mod value;

pub use types::*;
