//! The native forwarding engine: the compiler's tables in flat arrays, and what takes packets through them.
//!
//! 1. [`Pipeline`] holds the tables: rows of values in, sets of actions out, many rows a call;
//! 2. [`Extractor`] finds the messages of packets and writes their values into rows;
//! 3. [`Engine`] does both, and gives each port its copy with its messages only;
//! 4. [`SubscriptionSwitch`] is that as a function of the project, for all its platforms.
//!
//! Once warm, none of them allocates.
#![forbid(unsafe_code)]

pub mod application;
mod extract;
mod function;
mod packets;
mod pipeline;
mod rules;
mod search;
pub mod state;
mod whole;

pub use extract::Extractor;
pub use function::SubscriptionSwitch;
pub use packets::{Engine, Outlet, Tally};
pub use pipeline::{ActionSet, Column, Memory, Patch, Pipeline, Touched};
pub use rules::{RulesChange, RulesKeeper};
