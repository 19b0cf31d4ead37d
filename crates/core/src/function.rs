//! The sans-I/O contract between functions and platforms.
//!
//! A platform hands in frames, calls of the application and the passing of time; the function answers through an
//! [`Outbox`]. Methods fall in three families:
//!
//! - inputs: [`Function::frame`], [`Function::connect`], [`Function::write`], [`Function::close`],
//!   [`Function::fire`];
//! - when to come back: [`Function::next_deadline`], to be asked again after every input;
//! - outside views: [`crate::inspect::Inspect`].
//!
//! Time never goes back: each input's `now` is at least that of the input before (a smaller one is taken as equal).
//! Every input first runs, each at its own time, the timers that are due *before* `now`; those due exactly at
//! `now` wait for [`Function::fire`]. So at one instant, arrivals come first, in the order of the calls, then timers.

use crate::flow::{Endpoints, FlowId};
use crate::inspect::Inspect;
use crate::port::{Frame, LinkType, Offload, Port};
use crate::time::Time;
use crate::trace::TraceRecord;
use std::ops::Range;

/// A network function: a machine, a stack, a chain agent, a subscription switch.
pub trait Function: Inspect {
    /// A frame arrives on `port`.
    fn frame(&mut self, now: Time, port: Port, frame: Frame<'_>, out: &mut Outbox);

    /// A vector of frames arrives at the same instant. Platforms should prefer this call.
    fn frames(&mut self, now: Time, batch: &[(Port, Frame<'_>)], out: &mut Outbox) {
        for (port, frame) in batch {
            self.frame(now, *port, *frame, out);
        }
    }

    /// The application opens a connection (event `connect`).
    ///
    /// # Errors
    /// See [`CallError`].
    fn connect(&mut self, now: Time, endpoints: &Endpoints, out: &mut Outbox) -> Result<FlowId, CallError>;

    /// The application hands over bytes to send on `flow` (event `data`). Returns how many were accepted; fewer than
    /// offered means that the flow's buffer is full: offer the rest after an [`Output::Released`] for this flow.
    ///
    /// # Errors
    /// See [`CallError`].
    fn write(&mut self, now: Time, flow: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError>;

    /// The application will send no more on `flow` (event `close`).
    ///
    /// # Errors
    /// See [`CallError`].
    fn close(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError>;

    /// Runs everything that is due at or before `now`, in order.
    fn fire(&mut self, now: Time, out: &mut Outbox);

    /// When [`Function::fire`] wants to be called next, and what for. `None`: only inputs make anything happen.
    fn next_deadline(&self) -> Option<Deadline<'_>>;
}

/// The next instant at which a function has something to do by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadline<'a> {
    /// The instant.
    pub at: Time,
    /// What waits for it: a timer's name, or `expiry`, or `sample`.
    pub reason: &'a str,
}

/// Why a call of the application was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// The flow key of these endpoints has an instance already.
    #[error("a flow with these endpoints exists already (flow {0})")]
    Exists(FlowId),
    /// The flow table is full and its policy evicts nobody. Try again when flows have ended.
    #[error("the flow table is full")]
    TableFull,
    /// No such flow: never opened, ended, expired or evicted.
    #[error("no flow {0}: it has ended, expired or been evicted")]
    NoFlow(FlowId),
    /// These endpoints can't be a flow of this function: other protocol, or both families mixed.
    #[error("these endpoints do not fit the function's flow key: {0}")]
    Unfit(String),
    /// The application said before that it will send no more.
    #[error("flow {0} was closed for sending")]
    Closed(FlowId),
}

/// One thing a function wants done or known, in the order it asked.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// Send a frame.
    Send {
        /// The event's time.
        at: Time,
        /// Out of this port.
        port: Port,
        /// The frame's bytes within [`Outbox::bytes`].
        bytes: Range<usize>,
        /// What the sender's platform still has to do on it.
        offload: Offload,
    },
    /// Bytes for the application on `flow`, in order.
    Deliver {
        /// The flow.
        flow: FlowId,
        /// The bytes within [`Outbox::bytes`].
        bytes: Range<usize>,
    },
    /// The flow has room again for bytes of the application.
    Released {
        /// The flow.
        flow: FlowId,
        /// Bytes released.
        length: usize,
    },
    /// A notice to the application.
    Notify {
        /// The event's time.
        at: Time,
        /// The flow.
        flow: FlowId,
        /// The notice's name.
        name: String,
        /// Its value.
        value: i64,
    },
    /// The flow's instance is gone; no new flow will have its id.
    Ended {
        /// The flow.
        flow: FlowId,
    },
    /// One event's record; only while tracing is on.
    Trace(Box<TraceRecord>),
}

/// Where a function puts its outputs. Reused from call to call: no allocation once warm.
#[derive(Default, Debug)]
pub struct Outbox {
    bytes: Vec<u8>,
    items: Vec<Output>,
    tracing: bool,
}

impl Outbox {
    /// An empty outbox; tracing is off.
    pub fn new() -> Outbox {
        Outbox::default()
    }

    /// An empty outbox that asks functions for trace records.
    pub fn tracing() -> Outbox {
        Outbox { tracing: true, ..Outbox::default() }
    }

    /// Whether functions should make trace records.
    pub fn wants_trace(&self) -> bool {
        self.tracing
    }

    /// Turns trace records on or off from now on.
    pub fn set_tracing(&mut self, on: bool) {
        self.tracing = on;
    }

    /// The outputs, oldest first.
    pub fn items(&self) -> &[Output] {
        &self.items
    }

    /// The bytes of an output's range.
    pub fn bytes(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
    }

    /// Forgets all outputs and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
    }

    /// Asks for a frame to be sent.
    pub fn send(&mut self, at: Time, port: Port, bytes: &[u8], offload: Offload) {
        let range = self.keep(bytes);
        self.items.push(Output::Send { at, port, bytes: range, offload });
    }

    /// Hands bytes to the application.
    pub fn deliver(&mut self, flow: FlowId, bytes: &[u8]) {
        let range = self.keep(bytes);
        self.items.push(Output::Deliver { flow, bytes: range });
    }

    /// Any other output.
    pub fn push(&mut self, item: Output) {
        self.items.push(item);
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}

/// The ports a function is built for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ports(Vec<(Port, LinkType)>);

impl Ports {
    /// The given ports; the last mention of a port wins.
    pub fn new(ports: impl IntoIterator<Item = (Port, LinkType)>) -> Ports {
        let mut list: Vec<(Port, LinkType)> = Vec::new();
        for (port, link) in ports {
            match list.iter_mut().find(|(known, _)| *known == port) {
                Some(entry) => entry.1 = link,
                None => list.push((port, link)),
            }
        }
        list.sort_unstable();
        Ports(list)
    }

    /// The link type of `port`, or `None` if there is no such port.
    pub fn link(&self, port: Port) -> Option<LinkType> {
        self.0.iter().find(|(known, _)| *known == port).map(|(_, link)| *link)
    }

    /// All ports in order.
    pub fn iter(&self) -> impl Iterator<Item = (Port, LinkType)> + '_ {
        self.0.iter().copied()
    }
}
