//! What needs no peer: the engine's own cases, which `weftwire-bench engine` times and `engine-once` runs for a tool that counts.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock and writes files")]

pub mod allocations;
pub mod engine;
