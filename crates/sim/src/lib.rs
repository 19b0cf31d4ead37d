//! Platforms in virtual time: [`replay`] drives a function from captures, [`report`] turns captures into pictures.
//!
//! Nothing here opens a file: packets come in and go out through types and the [`replay::Sink`] trait.
#![forbid(unsafe_code)]

pub mod packet;
pub mod replay;
pub mod report;
pub mod spec;
