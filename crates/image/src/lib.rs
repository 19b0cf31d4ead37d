//! The machine image: the one contract between compiler and platforms. `docs/semantics.md` says what it means.
//!
//! A compiler fills an [`Image`], seals it ([`Image::seal`]) and writes it ([`Image::to_json`]). A platform reads it by
//! [`VerifiedImage::from_json`], which lets nothing through that an engine would have to check again.
#![forbid(unsafe_code)]

mod blocks;
mod canonical;
pub mod chains;
mod error;
mod features;
mod formats;
pub mod layout;
pub mod limits;
pub mod profile;
pub mod registers;
mod repeats;
mod schema;
mod store_text;
mod succession;
pub mod types;
pub mod value;
mod verify;
mod worst;

pub use error::{Finding, Findings, ImageError};
pub use schema::schema;
pub use store_text::Words;
pub use types::*;
pub use verify::VerifiedImage;
pub use worst::WorstCase;
