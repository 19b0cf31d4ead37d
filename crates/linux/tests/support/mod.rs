//! Two hosts, a bridge between them as the function under test, and the process that runs it.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

pub mod bridge;
pub mod line;
pub mod process;
