//! Platforms in virtual time: [`replay`] drives a function from captures, [`network`] runs whole networks, [`chaos`] runs
//! them under random faults. [`report`] turns captures and results into pictures, [`table`] turns results into tables,
//! [`agreement`] compares two runs.
//!
//! Nothing here opens a file: packets come in and go out through types and the [`replay::Sink`] trait.
#![forbid(unsafe_code)]

pub mod agreement;
pub mod chaos;
pub mod network;
pub mod packet;
pub mod replay;
pub mod report;
pub mod spec;
pub mod table;
