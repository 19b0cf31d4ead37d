//! The simulator: a network in virtual time, one event after another, the same for the same file and seed.

mod clock;
mod flows;
mod frames;
mod function;
mod host;
mod lane;
pub mod memory;
mod opening;
mod pattern;
mod pause;
mod probes;
mod queue;
mod simulation;
mod switch;
mod tcp;
mod track;
mod wire;

pub(crate) use tcp::most_flows as most_flows_of_host;
pub use tcp::sources as sources_of_hosts;

use std::io;
use std::ops::ControlFlow;
use weftwire_core::trace::TraceRecord;
use weftwire_core::{Function, Ports, Time};
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, PortPlace};
use weftwire_network::results::Results;

/// How the warning begins that the simulator has lost buffers of frames: a defect of the simulator.
pub(crate) const LEAK: &str = "frames leaked";

/// What a simulation needs from outside.
pub trait Surroundings {
    /// Makes the function of a node, at the start and again at each restart of the node.
    ///
    /// # Errors
    /// Why there is none; it ends the simulation.
    fn function(&mut self, node: NodeIndex, ports: &Ports, seed: u64) -> io::Result<Box<dyn Function>>;

    /// What runs in place of the TCP of a host, when that is made: something around it.
    fn host(&mut self, _node: NodeIndex, _ports: &Ports, tcp: Box<dyn Function>) -> Box<dyn Function> {
        tcp
    }

    /// The frames of a capture that traffic replays: nanoseconds after its first frame, and bytes, by time.
    ///
    /// # Errors
    /// Why they cannot be had; it ends the simulation.
    fn capture(&mut self, file: &str) -> io::Result<Vec<(i64, Vec<u8>)>>;

    /// A frame crosses a port that the network's captures name; `sent` by the node, else it arrives at it.
    ///
    /// # Errors
    /// What the medium says; it ends the simulation.
    fn frame(&mut self, at: Time, place: PortPlace, bytes: &[u8], sent: bool) -> io::Result<()>;

    /// A function's trace record, if the node asks for them. Its time is the function's.
    ///
    /// # Errors
    /// As for [`Surroundings::frame`].
    fn trace(&mut self, node: NodeIndex, record: &TraceRecord) -> io::Result<()>;

    /// Called now and then; may end the run.
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()>;

    /// Processor time of this process in seconds, for the report; 0 where unknown.
    fn processor_seconds(&mut self) -> f64 {
        0.0
    }
}

/// How far a simulation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Virtual time.
    pub now: Time,
    /// Virtual time at which it ends.
    pub end: Time,
    /// Events handled.
    pub events: u64,
}

/// Sees whether the registers that a network names are those of its hosts' TCP, where nodes give them values and where probes look at them.
/// [`simulate`] says the same.
///
/// # Errors
/// Which is not, or which value does not fit.
pub fn check(network: &Network) -> io::Result<()> {
    probes::Probes::check(network)?;
    tcp::check(network)
}

/// Runs a network from its start to its end, or until [`Surroundings::progress`] breaks it off: then the results are those
/// up to there.
///
/// # Errors
/// Those of the surroundings.
pub fn simulate(network: &Network, surroundings: &mut dyn Surroundings) -> io::Result<Results> {
    simulation::Simulation::new(network, surroundings)?.run()
}
