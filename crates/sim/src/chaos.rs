//! Networks under random faults, and what must hold all the same.
//!
//! - [`schedule()`] draws a few [`Fault`]s for a network from a seed;
//! - [`expand()`] merges them with the network's own changes, [`to_toml`] writes them as that file's blocks;
//! - [`Experiment::examine`] runs the network under them, with a [`Watch`] around each function, and tells which
//!   [`Invariant`]s broke;
//! - [`shrink()`] finds the few faults that it takes.
//!
//! Everything is the same for the same network and seed.

mod expand;
mod experiment;
mod fault;
mod finding;
mod judge;
mod schedule;
mod shrink;
mod text;
mod watch;

pub use expand::expand;
pub use experiment::{Experiment, Made, Stage, Verdict};
pub use fault::{Fault, FaultKind, Impairment};
pub use finding::{Finding, Invariant};
pub use schedule::schedule;
pub use shrink::{MOST_ATTEMPTS, shrink};
pub use text::to_toml;
pub use watch::{Claim, Log, Watch};
