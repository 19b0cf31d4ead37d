//! The sans-I/O contract between functions and platforms.
//!
//! A platform hands in frames, commands, calls of the application and the passing of time; the function answers through an
//! [`Outbox`]. Methods fall in these families:
//!
//! - inputs: [`Function::frames`], [`Function::control`], [`Function::fire`], and those of [`Connections`];
//! - when to come back: [`Function::next_deadline`], to be asked again after every input;
//! - which time an input has: [`Function::input_time`];
//! - where an input belongs when there are many functions: [`Function::place`];
//! - outside views: [`crate::inspect::Inspect`].
//!
//! Time never goes back: an input that is told an earlier `now` than the one before has the time of that one. At one instant
//! commands come first, then calls of the application, then frames, by port and in the order of the wire, then `fire`. A platform may hand
//! them in otherwise: what belongs in front of the input before is a nanosecond later than it, by the function's
//! [`crate::order::InputOrder`]. Every input first runs, each at its own time, the timers that are due *before* it; those due
//! exactly then wait for [`Function::fire`].
//!
//! Frames come in batches. A function stops between two events when the outbox is full: what it has not consumed stays in
//! the batch. The platform does what the outbox says, clears it, and calls again at the same time. So the memory of a
//! platform is bounded whatever a function puts out.
//!
//! ```text
//! arrivals = a batch from a port                    while deadline ≤ now:
//! while arrivals:                                       fire(now, out)
//!     frames(now, arrivals, out)                        do what out says; out.clear()
//!     do what out says; out.clear()
//! ```

use crate::buffer::Buffer;
use crate::control::{Answer, Change, Command, ControlError, PortChange, Preparation};
use crate::flow::{Endpoints, FlowId};
use crate::inspect::Inspect;
use crate::order::Input;
use crate::outbox::Outbox;
use crate::port::{Frame, LinkType, Offload, Port};
use crate::time::Time;
use std::collections::VecDeque;
use std::net::IpAddr;

/// A network function: a machine, a stack, a chain agent, a subscription switch.
pub trait Function: Inspect {
    /// Frames arrive at the same instant, in this order; one by a lower port than that of the frame before is later. The function takes them from the front, and their buffers with
    /// them; those that it leaves are to be handed in again when the outbox was cleared.
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox);

    /// A change from outside. The answer is an output.
    fn control(&mut self, now: Time, command: Command, out: &mut Outbox) {
        let result = Err(ControlError::Unsupported(command.change.subject()));
        out.answer(Answer { number: command.number, at: now, result }, None);
    }

    /// What makes a change ready elsewhere, if that takes long: the function may go on meanwhile. `None`: the change needs nothing.
    fn preparation(&self, _change: &Change) -> Option<Preparation> {
        None
    }

    /// Runs what is due at or before `now`, in order; all of it unless the outbox is full before.
    fn fire(&mut self, now: Time, out: &mut Outbox);

    /// When [`Function::fire`] wants to be called next, and what for. `None`: only inputs make anything happen.
    fn next_deadline(&self) -> Option<Deadline<'_>>;

    /// The time that an input will have which is told `now` and comes next: `now`, or later (rules E1 and E2).
    fn input_time(&self, _input: Input, now: Time) -> Time {
        now
    }

    /// Where an input belongs when many functions share the work: inputs of one flow have the same number, both directions of
    /// it where its key is symmetric, whatever the function's other flows. It is the same in every function that was made alike, with the same keys.
    /// `None`: any will do.
    fn place(&self, _input: &Placed<'_>) -> Option<u64> {
        None
    }

    /// The function as one that an application can have connections with, if it is.
    fn connections(&mut self) -> Option<&mut dyn Connections> {
        None
    }

    /// One frame arrives, by a copy. For tests and tools; the outbox's bound does not hold for it.
    fn frame(&mut self, now: Time, port: Port, frame: Frame<'_>, out: &mut Outbox) {
        out.unbounded(|out| {
            let arrival = Arrival::copied(port, frame, out);
            self.frames(now, &mut Arrivals::from([arrival]), out);
        });
    }
}

/// A function that carries connections of an application.
///
/// Calls run what is due before them whatever the outbox's bound: a platform that wants it kept calls [`Function::fire`] first.
pub trait Connections: Function {
    /// The application opens a connection (event `connect`).
    ///
    /// # Errors
    /// See [`CallError`].
    fn connect(&mut self, now: Time, endpoints: &Endpoints, out: &mut Outbox) -> Result<FlowId, CallError>;

    /// The application hands over bytes to send on `flow` (event `data`). Returns how many were accepted; fewer than
    /// offered means that the flow's buffer is full: offer the rest after an [`crate::Output::Released`] for this flow.
    ///
    /// # Errors
    /// See [`CallError`].
    fn write(&mut self, now: Time, flow: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError>;

    /// The application will send no more on `flow` (event `close`).
    ///
    /// # Errors
    /// See [`CallError`].
    fn close(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError>;

    /// The application wants no more of `flow`, at once: the connection ends without a farewell.
    ///
    /// # Errors
    /// See [`CallError`].
    fn abort(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError>;

    /// From now on, connections that others open to this end are flows; both are the wildcard where they are `None`. A
    /// function that does not wait to be told takes all of them anyway.
    ///
    /// # Errors
    /// See [`CallError`].
    fn listen(&mut self, _now: Time, _local: &Listen, _out: &mut Outbox) -> Result<(), CallError> {
        Ok(())
    }

    /// Takes a [`Connections::listen`] back. Flows that there are go on.
    ///
    /// # Errors
    /// See [`CallError`].
    fn unlisten(&mut self, _now: Time, _local: &Listen, _out: &mut Outbox) -> Result<(), CallError> {
        Ok(())
    }

    /// The application takes up a flow that [`crate::Output::Opened`] has told of.
    ///
    /// # Errors
    /// See [`CallError`].
    fn accept(&mut self, _now: Time, _flow: FlowId, _out: &mut Outbox) -> Result<(), CallError> {
        Ok(())
    }

    /// The application has read so many of the bytes delivered on `flow`.
    ///
    /// # Errors
    /// See [`CallError`].
    fn consumed(&mut self, _now: Time, _flow: FlowId, _length: usize, _out: &mut Outbox) -> Result<(), CallError> {
        Ok(())
    }

    /// Sets a parameter of `flow`; the flow is told (event `set`).
    ///
    /// # Errors
    /// See [`CallError`].
    fn set(
        &mut self,
        _now: Time,
        _flow: FlowId,
        parameter: &str,
        _value: i64,
        _out: &mut Outbox,
    ) -> Result<(), CallError> {
        Err(CallError::NoParameter(parameter.into()))
    }
}

/// The register, if a machine has it, by which platforms say that a flow's application has closed it and does not read either: so the end
/// of the other side need not be waited for without limit. A number other than 0 says so.
pub const ORPHAN: &str = "orphan";

/// What [`Connections::listen`] waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Listen {
    /// The address of this end, or any.
    pub address: Option<IpAddr>,
    /// The port number of this end, or any.
    pub port: Option<u16>,
}

/// A frame that has arrived, in a buffer that goes over to the function.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The port it came by.
    pub port: Port,
    /// Its bytes, from the link header (or the IP header on an [`LinkType::Ip`] port), without the frame check sequence.
    pub buffer: Buffer,
    /// What is left undone on it.
    pub offload: Offload,
}

impl Arrival {
    /// A copy of a frame, in memory of the outbox's pool.
    pub fn copied(port: Port, frame: Frame<'_>, out: &mut Outbox) -> Arrival {
        Arrival { port, buffer: out.buffer_with(frame.bytes), offload: frame.offload }
    }

    /// The frame.
    pub fn frame(&self) -> Frame<'_> {
        Frame { bytes: &self.buffer, offload: self.offload }
    }
}

/// Frames that have arrived, first to last.
pub type Arrivals = VecDeque<Arrival>;

/// An input that is to be placed.
#[derive(Clone, Copy, Debug)]
pub enum Placed<'a> {
    /// A frame on a port.
    Frame(Port, Frame<'a>),
    /// A connection that an application opens.
    Connection(&'a Endpoints),
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
    /// The function carries no connections.
    #[error("this function opens no connections")]
    NoConnections,
    /// Flows have no such parameter.
    #[error("flows of this function have no parameter `{0}`")]
    NoParameter(String),
    /// There are as many ends to listen at as the function has room for.
    #[error("applications listen at {0} ends already, as many as there may be")]
    TooManyListening(usize),
    /// The application said before that it will send no more.
    #[error("flow {0} was closed for sending")]
    Closed(FlowId),
}

/// The ports a function is built for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ports(Vec<KnownPort>);

/// What is known of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct KnownPort {
    port: Port,
    link: LinkType,
    up: bool,
    /// As far as the platform has said.
    mtu: Option<u32>,
}

impl Ports {
    /// The given ports, up; the last mention of a port wins.
    pub fn new(ports: impl IntoIterator<Item = (Port, LinkType)>) -> Ports {
        let mut list = Ports::default();
        ports.into_iter().for_each(|(port, link)| list.insert(port, link));
        list
    }

    /// The same ports, with packets of at most so many bytes.
    #[must_use]
    pub fn with_mtu(mut self, bytes: u32) -> Ports {
        self.0.iter_mut().for_each(|known| known.mtu = Some(bytes));
        self
    }

    /// The link type of `port`, or `None` if there is no such port.
    pub fn link(&self, port: Port) -> Option<LinkType> {
        self.known(port).map(|known| known.link)
    }

    /// Whether there is such a port, and frames can leave by it as far as the platform has said.
    pub fn is_up(&self, port: Port) -> bool {
        self.known(port).is_some_and(|known| known.up)
    }

    /// Most bytes of a packet that can leave by `port`, without the Ethernet header; `None`: the platform has said nothing.
    pub fn mtu(&self, port: Port) -> Option<u32> {
        self.known(port).and_then(|known| known.mtu)
    }

    /// Adds a port, or changes what its frames begin with. It is up.
    pub fn insert(&mut self, port: Port, link: LinkType) {
        self.remove(port);
        let place = self.0.partition_point(|known| known.port < port);
        self.0.insert(place, KnownPort { port, link, up: true, mtu: None });
    }

    /// Takes a port out.
    pub fn remove(&mut self, port: Port) {
        self.0.retain(|known| known.port != port);
    }

    /// What has happened to a port. Of one that is not there, only that it was added matters.
    pub fn change(&mut self, port: Port, change: PortChange) {
        let known = self.0.iter_mut().find(|known| known.port == port);
        match (change, known) {
            (PortChange::Added { link }, _) => self.insert(port, link),
            (PortChange::Gone, _) => self.remove(port),
            (PortChange::Up | PortChange::Down, Some(known)) => known.up = change == PortChange::Up,
            (PortChange::Mtu { bytes }, Some(known)) => known.mtu = Some(bytes),
            (PortChange::Up | PortChange::Down | PortChange::Mtu { .. }, None) => {}
        }
    }

    /// All ports in order.
    pub fn iter(&self) -> impl Iterator<Item = (Port, LinkType)> + '_ {
        self.0.iter().map(|known| (known.port, known.link))
    }

    fn known(&self, port: Port) -> Option<&KnownPort> {
        self.0.iter().find(|known| known.port == port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_know_what_has_happened_to_them() {
        let mut ports = Ports::new([(Port(2), LinkType::Ip), (Port(1), LinkType::Ip), (Port(2), LinkType::Ethernet)]);
        assert!(ports.iter().eq([(Port(1), LinkType::Ip), (Port(2), LinkType::Ethernet)]));
        assert!(ports.is_up(Port(2)) && !ports.is_up(Port(3)));
        ports.change(Port(2), PortChange::Down);
        ports.change(Port(2), PortChange::Mtu { bytes: 1_400 });
        assert_eq!(
            (ports.is_up(Port(2)), ports.mtu(Port(2)), ports.link(Port(2))),
            (false, Some(1_400), Some(LinkType::Ethernet))
        );
        assert_eq!((ports.is_up(Port(1)), ports.mtu(Port(1))), (true, None));
        ports.change(Port(2), PortChange::Up);
        assert!(ports.is_up(Port(2)));
        for change in [PortChange::Up, PortChange::Down, PortChange::Mtu { bytes: 9 }, PortChange::Gone] {
            ports.change(Port(3), change);
        }
        assert_eq!((ports.link(Port(3)), ports.iter().count()), (None, 2));
        ports.change(Port(2), PortChange::Gone);
        ports.change(Port(2), PortChange::Added { link: LinkType::Ip });
        assert_eq!((ports.link(Port(2)), ports.mtu(Port(2))), (Some(LinkType::Ip), None));
    }
}
