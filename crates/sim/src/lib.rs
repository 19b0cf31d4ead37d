//! Platforms in virtual time: [`replay`] drives a function from captures, [`network`] runs whole networks, [`chaos`] runs
//! them under random faults.
//!
//! Nothing here opens a file: packets come in and go out through types and the [`replay::Sink`] trait.
#![forbid(unsafe_code)]

pub mod chaos;
pub mod network;
pub mod repeat;
pub mod replay;
pub mod spec;
