//! One process takes over the run of another one: with its ports, its control socket and its live flows.
//!
//! The successor asks on the control socket ([`crate::control::Request::Plan`], [`crate::control::Request::Replace`]), and gets what it needs
//! by messages with descriptors. The predecessor serves meanwhile. When the successor is ready, the predecessor stops between two
//! inputs, sends its flows, and lets go of its ports once it hears that all flows are there. [`agreement`] says who owns the ports, and is
//! what to read first.

pub mod agreement;
mod descriptors;
mod offer;
mod succession;
mod word;

pub(crate) use offer::{Looked, Offer};
pub use succession::Succession;
pub(crate) use succession::{Heard, Pause};

use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;
use weftwire_core::live::Clocks;
use weftwire_core::{Port, Time};

/// The version of the messages. Both processes have to speak the same one.
pub const PROTOCOL: u32 = 1;

/// What a process has to know that is to take over a run. It holds the keys of the function.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The process.
    pub process: u32,
    /// The canonical document of the image that runs, with the parameters that it has now.
    pub image: String,
    /// The seed that the function was started with.
    pub seed: u64,
    /// Its hash key, unless that is made from the seed.
    pub key: Option<[u64; 2]>,
    /// Its ports.
    pub ports: Vec<PlannedPort>,
    /// How many flows are alive.
    pub flows: u64,
}

/// A port that changes hands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlannedPort {
    /// Its number.
    pub port: Port,
    /// What it is made of: `socket`, `ring`, `xdp`, `tun`, `tap`.
    pub kind: String,
    /// Its interface.
    pub interface: String,
}

/// What a run says of itself to one that is to replace it.
#[derive(Debug)]
pub struct Replaceable {
    /// As of [`Plan::seed`].
    pub seed: u64,
    /// As of [`Plan::key`].
    pub key: Option<[u64; 2]>,
    /// Its ports.
    pub ports: Vec<PlannedPort>,
    /// The lock on its name, if it has one.
    pub lock: Option<OwnedFd>,
    /// Why it can't be replaced.
    pub refusal: Option<String>,
}

/// Where a run has stopped.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Stopped {
    /// The function's time and how it stands to the machine's clocks, if it has begun.
    pub(crate) resumes: Option<(Time, Clocks)>,
    /// `CLOCK_MONOTONIC` of the last turn with an input, if there was any.
    pub(crate) last_input: Option<i64>,
    /// `CLOCK_MONOTONIC` when it stopped.
    pub(crate) stopped: i64,
}

/// Which descriptors come, behind those of the word and of the listening control socket.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Passed {
    /// The ports.
    ports: Vec<Port>,
    /// The lock on the run's name.
    lock: bool,
}
