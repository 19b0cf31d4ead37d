//! The connections of a run, each joined with an end of its own: the one loop behind `weft cat`, `weft listen` and `weft proxy`.

use super::joint::{End, Joint, Outcome, Served, Totals, flow_of};
use super::readiness::Readiness;
use super::{Application, Calls};
use crate::error::LinuxError;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;
use weftwire_core::{CallError, Endpoints, FlowId, Listen, Time};

/// The other side of connections: where their ends come from, and what is to be known of them.
pub trait Side {
    /// Whether a connection is over only when the function has nothing left to do for it, but to wait for stragglers: until then the run
    /// must go on. Else as soon as everything was acknowledged.
    const SEES_OFF: bool;

    /// Where connections of others are taken.
    fn listens(&self) -> Vec<Listen> {
        Vec::new()
    }

    /// Readable when there is something for [`Side::attend`].
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The descriptor is readable; so many connections are there now.
    fn attend(&mut self, _connections: usize) {}

    /// Something else to listen at.
    fn next_listen(&mut self) -> Option<Listen> {
        None
    }

    /// Whether all connections are to be broken off.
    fn breaks_off(&self) -> bool {
        false
    }

    /// Whether there is a connection to open.
    fn wants(&self) -> bool {
        false
    }

    /// The next one.
    fn next_wanted(&mut self) -> Option<Wanted> {
        None
    }

    /// It was refused.
    ///
    /// # Errors
    /// The run can't go on without it.
    fn refused(&mut self, wanted: Wanted, error: CallError) -> Result<(), LinuxError>;

    /// Whether a connection that the other end opens is taken, if so many are there already, of which others have no end yet.
    fn takes(&mut self, connections: usize, without_end: usize) -> bool;

    /// An end for a connection that the other end has opened; `None`: not yet.
    ///
    /// # Errors
    /// There will never be one.
    fn end_for(&mut self, endpoints: Option<&Endpoints>) -> io::Result<Option<End>>;

    /// A connection that this end opens is open: that with the tag of this end.
    fn established(&mut self, _tag: u64, _endpoints: Option<Endpoints>) {}

    /// A connection is over. Its end is closed right behind.
    fn over(&mut self, tag: u64, endpoints: Option<Endpoints>, outcome: Outcome, totals: Totals);

    /// Whether nothing more will come.
    fn is_over(&self) -> bool;
}

/// A connection to be opened.
#[derive(Debug)]
pub struct Wanted {
    /// Its ends; with the local port number 0 it gets a free one.
    pub endpoints: Endpoints,
    /// How long that may take, in nanoseconds. Without it, as long as the function tries.
    pub within: Option<Duration>,
    /// What it is joined with.
    pub end: End,
}

/// An application that joins connections with the ends of a [`Side`].
///
/// It knows of a connection what the function's notices say, by their names: `established`, `finished` (the other end sends no more),
/// `refused`, `unreachable`, `reset`, `timed_out` and `failed`. One that others open counts from `established` on, or from its first bytes on.
pub struct Joints<S> {
    /// Dropped before the ends.
    side: S,
    readiness: Rc<Readiness>,
    joints: BTreeMap<FlowId, Joint>,
    /// Flows that others open, which are no connections yet.
    coming: BTreeMap<FlowId, Option<Endpoints>>,
    /// Connections that the application has not taken up yet.
    untold: Vec<FlowId>,
    /// Those without an end, in the order in which they came.
    without_end: VecDeque<FlowId>,
    /// Flows that nobody wants.
    unwanted: Vec<FlowId>,
    /// Those with something to do.
    busy: BTreeSet<FlowId>,
    /// With which of them a turn begins.
    first: FlowId,
    /// Those that the function sees off.
    leaving: BTreeSet<FlowId>,
    /// Until when those must be open that are not yet.
    opening: BTreeSet<(Time, FlowId)>,
    free_port: super::ports::FreePort,
    tokens: Vec<(u64, bool)>,
    failure: Option<io::Error>,
}

/// The token of the side's own descriptor; those of joints are numbers of flows, which never come that far.
const OWN: u64 = u64::MAX;

impl<S: Side> Joints<S> {
    /// Joins connections with the ends of `side`.
    ///
    /// # Errors
    /// The kernel has no descriptor left.
    pub fn new(side: S) -> Result<Joints<S>, LinuxError> {
        let failed = |error| LinuxError::system("watch descriptors", error);
        let readiness = Readiness::new().map_err(failed)?;
        if let Some(descriptor) = side.descriptor() {
            readiness.add(descriptor, OWN).map_err(failed)?;
        }
        Ok(Joints {
            side,
            readiness,
            joints: BTreeMap::new(),
            coming: BTreeMap::new(),
            untold: Vec::new(),
            without_end: VecDeque::new(),
            unwanted: Vec::new(),
            busy: BTreeSet::new(),
            first: FlowId(0),
            leaving: BTreeSet::new(),
            opening: BTreeSet::new(),
            free_port: super::ports::FreePort::new().map_err(failed)?,
            tokens: Vec::new(),
            failure: None,
        })
    }

    /// The side, when the run has ended.
    pub fn into_side(self) -> S {
        self.side
    }

    /// A joint that something has happened to.
    fn joint(&mut self, flow: FlowId) -> Option<&mut Joint> {
        let joint = self.joints.get_mut(&flow)?;
        self.busy.insert(flow);
        Some(joint)
    }

    /// A flow that another end has opened is a connection now.
    fn take(&mut self, flow: FlowId) {
        let Some(endpoints) = self.coming.remove(&flow) else { return };
        if self.side.takes(self.joints.len(), self.without_end.len()) {
            self.joints.insert(flow, Joint::new(flow, endpoints));
            self.untold.push(flow);
            self.without_end.push_back(flow);
        } else {
            self.unwanted.push(flow);
        }
    }

    fn look(&mut self) {
        let mut tokens = std::mem::take(&mut self.tokens);
        if let Err(error) = self.readiness.told(&mut tokens) {
            self.failure = Some(error);
        }
        for (token, hung_up) in tokens.drain(..) {
            if token == OWN {
                self.side.attend(self.joints.len());
            } else if let Some(joint) = self.joint(flow_of(token)) {
                joint.set_ready(token, hung_up);
            }
        }
        self.tokens = tokens;
    }

    /// Gives ends to those that have none.
    fn attach(&mut self) {
        while let Some(flow) = self.without_end.front().copied() {
            let Some(joint) = self.joints.get_mut(&flow) else {
                self.without_end.pop_front();
                continue;
            };
            match self.side.end_for(joint.endpoints.as_ref()) {
                Ok(Some(end)) => joint.attach(end, &self.readiness),
                Ok(None) => return,
                Err(error) => joint.fail(Outcome::Broken(error)),
            }
            self.without_end.pop_front();
            self.busy.insert(flow);
        }
    }

    fn give_up(&mut self, now: Time) {
        while let Some((until, flow)) = self.opening.first().copied().filter(|(until, _)| *until <= now) {
            self.opening.remove(&(until, flow));
            if let Some(joint) = self.joint(flow) {
                joint.fail(Outcome::NotOpened);
            }
        }
    }

    fn serve(&mut self, flow: FlowId, calls: &mut Calls<'_>) {
        let Some(joint) = self.joints.get_mut(&flow) else { return };
        // Without an end, what it delivers is kept for the one that it will get.
        if !joint.is_attached() && joint.outcome.is_none() && !joint.gone {
            return;
        }
        self.leaving.remove(&flow);
        match joint.serve(calls, S::SEES_OFF) {
            Served::More => drop(self.busy.insert(flow)),
            Served::Waits => {}
            Served::Leaving => drop(self.leaving.insert(flow)),
            Served::Over => self.end(flow),
        }
    }

    fn end(&mut self, flow: FlowId) {
        let Some(mut joint) = self.joints.remove(&flow) else { return };
        if let Some(until) = joint.opened_until {
            self.opening.remove(&(until, flow));
        }
        self.busy.remove(&flow);
        let (outcome, totals) = joint.end();
        self.side.over(joint.tag, joint.endpoints, outcome, totals);
    }

    fn open(&mut self, mut wanted: Wanted, calls: &mut Calls<'_>) -> Result<(), LinuxError> {
        let opened = match wanted.endpoints.local_port {
            0 => self.free_port.connect(&mut wanted.endpoints, calls),
            _ => calls.connect(&wanted.endpoints),
        };
        let flow = match opened {
            Ok(flow) => flow,
            Err(error) => return self.side.refused(wanted, error),
        };
        let mut joint = Joint::new(flow, Some(wanted.endpoints));
        joint.opened_until = wanted.within.map(|within| calls.now.plus(within));
        self.opening.extend(joint.opened_until.map(|until| (until, flow)));
        joint.attach(wanted.end, &self.readiness);
        self.joints.insert(flow, joint);
        self.busy.insert(flow);
        Ok(())
    }
}

impl<S: Side> Application for Joints<S> {
    fn listens(&self) -> Vec<Listen> {
        self.side.listens()
    }

    fn connects(&self) -> bool {
        self.side.wants()
    }

    fn connect(&mut self, calls: &mut Calls<'_>) -> Result<(), LinuxError> {
        while let Some(wanted) = self.side.next_wanted() {
            self.open(wanted, calls)?;
        }
        Ok(())
    }

    fn opened(&mut self, flow: FlowId, endpoints: Option<&Endpoints>) {
        self.coming.insert(flow, endpoints.copied());
    }

    fn notified(&mut self, flow: FlowId, notice: &str) {
        if notice == "established" {
            self.take(flow);
        }
        let Some(joint) = self.joint(flow) else { return };
        match notice {
            "established" => {
                joint.established = true;
                let (until, tag, endpoints) = (joint.opened_until.take(), joint.tag, joint.endpoints);
                if let Some(until) = until {
                    self.opening.remove(&(until, flow));
                }
                self.side.established(tag, endpoints);
            }
            "finished" => joint.finished = true,
            "unreachable" => joint.unreachable = true,
            "refused" => joint.fail(Outcome::Refused),
            "reset" => joint.fail(Outcome::Reset),
            "timed_out" | "failed" => joint.fail(Outcome::TimedOut),
            _ => {}
        }
    }

    fn delivered(&mut self, flow: FlowId, bytes: &[u8]) {
        self.take(flow);
        if let Some(joint) = self.joint(flow) {
            joint.deliver(bytes);
        }
    }

    fn released(&mut self, flow: FlowId, length: usize) {
        if let Some(joint) = self.joint(flow) {
            joint.released(length);
        }
    }

    fn ended(&mut self, flow: FlowId) {
        self.coming.remove(&flow);
        if let Some(joint) = self.joint(flow) {
            joint.ended();
        }
    }

    fn work(&mut self, calls: &mut Calls<'_>) -> bool {
        self.look();
        while let Some(local) = self.side.next_listen() {
            if let Err(error) = calls.listen(&local) {
                self.failure = Some(io::Error::other(error));
            }
        }
        if self.side.breaks_off() {
            self.interrupt(calls);
        }
        self.attach();
        self.give_up(calls.now);
        for flow in self.untold.drain(..) {
            calls.accept(flow);
        }
        for flow in self.unwanted.drain(..) {
            calls.abort(flow);
        }
        // Each in its turn; the one for which there is no room comes first next time.
        let mut turn = std::mem::take(&mut self.busy);
        turn.append(&mut self.leaving);
        let behind = turn.split_off(&self.first);
        let mut turn = behind.into_iter().chain(turn);
        while let Some(flow) = turn.next() {
            if calls.out.is_full() {
                self.first = flow;
                self.busy.insert(flow);
                self.busy.extend(turn);
                break;
            }
            self.serve(flow, calls);
        }
        !self.busy.is_empty() || self.side.wants()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.readiness.descriptor())
    }

    fn deadline(&self) -> Option<Time> {
        self.opening.first().map(|(until, _)| *until)
    }

    fn is_over(&self) -> bool {
        self.failure.is_some() || self.joints.is_empty() && self.side.is_over()
    }

    fn interrupt(&mut self, calls: &mut Calls<'_>) {
        for (flow, joint) in &mut self.joints {
            joint.fail(Outcome::Stopped);
            if !joint.gone {
                calls.abort(*flow);
            }
        }
        while let Some((flow, _)) = self.joints.first_key_value() {
            self.end(*flow);
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
