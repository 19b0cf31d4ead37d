//! Networks described in one file, and the emulation of their links.
//!
//! - [`model`]: a network with everything resolved (nodes, ports, links, traffic, faults): what platforms run;
//! - [`read()`] makes it from a `network.toml`, [`description`] is that file's form;
//! - [`topology`] makes nodes and links by a rule;
//! - [`routing`] finds the next hops;
//! - [`link`] is one direction of a link as a state machine without clock: the simulator and the relay on Linux use
//!   the same one;
//! - [`traffic`] draws flow sizes and arrival times, the same on all platforms;
//! - [`memory`]: what a network keeps in memory while it runs;
//! - [`results`]: what a run of a network gives, on whichever platform; [`ideal`]: what a transfer would take alone.
#![forbid(unsafe_code)]

mod chance;
pub mod description;
pub mod ideal;
pub mod link;
pub mod memory;
pub mod model;
pub mod read;
pub mod results;
pub mod routing;
pub mod topology;
pub mod traffic;

pub use description::schema;
pub use model::Network;
pub use read::{Reading, read};
