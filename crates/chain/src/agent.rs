//! The agent: a [`Function`] between a host and its network.
//!
//! Frames that are of no chain pass as they are. A SYN that the host hands out and a policy matches becomes the SYN of a subsession, with
//! the list of the agents behind it; the next agent takes the list off, gives the SYN to its own host with the original header, and sends
//! it on when the host hands it out. All other packets only get other headers.

mod change;
mod make;
mod setup;
mod show;
mod two_paths;

pub use change::ChangeError;

use crate::config::{Config, ConfigError};
use crate::icmp::{QuotedSegment, quoted};
use crate::keys::Keys;
use crate::message::begins_message;
use crate::paths::Side;
use crate::segment::{Found, Segment, find};
use crate::session::{LEFT, Phase, Place, RIGHT, Session};
use crate::state::{AgentState, StateError};
use crate::table::{Index, Table};
use crate::tuple::Tuple;
use crate::windows::Windows;
use std::collections::{BTreeMap, BTreeSet};
use weftwire_core::buffer::Buffer;
use weftwire_core::control::{Answer, Done};
use weftwire_core::inspect::{Counters, FlowDetail, FlowSummary, Inspect};
use weftwire_core::live::Clocks;
use weftwire_core::order::{Input, InputOrder};
use weftwire_core::port::Offload;
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_core::{
    Arrival, Arrivals, Change, Command, ControlError, Deadline, FlowId, Function, LinkType, Outbox, Port, Ports, Time,
};

/// The port towards the host.
pub const HOST: Port = Port(1);
/// The port towards the network.
pub const NETWORK: Port = Port(2);
/// SYNs with a list that may stay without a confirmed answer: the next one goes without, if the policy allows it.
const LISTS: u32 = 2;
/// The longest packet of a port whose length nobody has told.
const DEFAULT_MTU: u32 = 1_500;

/// A chain agent.
#[derive(Clone, Debug)]
pub struct Agent {
    config: Config,
    keys: Keys,
    ports: Ports,
    table: Table,
    windows: Windows,
    order: InputOrder,
    now: Time,
    next_flow: u64,
    next_counter: u64,
    next_tag: u32,
    next_port: u32,
    frames: [u64; 3],
    created: u64,
    expired: u64,
    peak: u64,
    /// When which side of which session is looked at: some have nothing to say any more.
    alarms: BTreeSet<(Time, FlowId, usize)>,
    counts: BTreeMap<&'static str, u64>,
    drops: BTreeMap<&'static str, u64>,
}

/// What becomes of a frame.
enum Verdict {
    /// It goes on, to the other port.
    Send(Offload),
    /// It goes on as it came.
    Pass,
    /// It has done what it was for.
    Done,
    /// It goes no further, for this reason.
    Drop(&'static str),
}

impl Agent {
    /// An agent with ports [`HOST`] and [`NETWORK`]. `key` is for its dictionaries; `counter` is above all that an earlier run of the agent
    /// has used: others take no message with a counter that they know.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn new(config: Config, ports: Ports, key: [u64; 2], counter: u64) -> Result<Agent, ConfigError> {
        config.check()?;
        Ok(Agent {
            keys: Keys::new(config.keys.clone()),
            table: Table::new(key, config.idle_seconds),
            ports,
            windows: Windows::default(),
            order: InputOrder::default(),
            now: Time::ZERO,
            next_flow: 1,
            next_counter: counter,
            next_tag: 1,
            next_port: key[0] as u32,
            frames: [0; 3],
            created: 0,
            expired: 0,
            peak: 0,
            alarms: BTreeSet::new(),
            counts: BTreeMap::new(),
            drops: BTreeMap::new(),
            config,
        })
    }

    /// The sessions, by number.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.table.iter()
    }

    /// All that the agent knows, as a value.
    pub fn state(&self) -> AgentState {
        AgentState {
            agent: self.config.agent,
            time: self.now,
            sessions: self.table.iter().cloned().collect(),
            windows: self.windows.clone(),
            next_flow: self.next_flow,
            next_counter: self.next_counter,
            next_tag: self.next_tag,
            next_port: self.next_port,
        }
    }

    /// Goes on with what another run has known.
    ///
    /// # Errors
    /// [`StateError`]: it is of another agent.
    pub fn restore(&mut self, state: AgentState) -> Result<(), StateError> {
        if state.agent != self.config.agent {
            return Err(StateError::OtherAgent(state.agent));
        }
        self.now = state.time;
        for session in state.sessions {
            let (index, _) = self.table.insert(session);
            self.remind(index, LEFT);
            self.remind(index, RIGHT);
        }
        self.peak = self.table.count() as u64;
        self.windows = state.windows;
        self.next_flow = state.next_flow;
        self.next_counter = self.next_counter.max(state.next_counter);
        self.next_tag = state.next_tag;
        self.next_port = state.next_port;
        Ok(())
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn arrive(&mut self, arrival: Arrival, out: &mut Outbox) {
        let Arrival { port, buffer: mut frame, offload } = arrival;
        self.frames[0] += 1;
        let (link, to) = match (self.ports.link(port), port) {
            (Some(link), HOST) => (link, NETWORK),
            (Some(link), NETWORK) => (link, HOST),
            _ => return out.recycle(frame),
        };
        match self.handle(port == HOST, link, &mut frame, offload, out) {
            Verdict::Send(offload) => self.send_frame(to, link, frame, offload, out),
            Verdict::Done => out.recycle(frame),
            Verdict::Pass => {
                self.frames[2] += 1;
                out.send_buffer(self.now, to, frame, offload);
            }
            Verdict::Drop(reason) => {
                *self.drops.entry(reason).or_default() += 1;
                out.recycle(frame);
            }
        }
    }

    /// Sends a frame of a chain on.
    fn send_frame(&mut self, to: Port, link: LinkType, mut frame: Buffer, offload: Offload, out: &mut Outbox) {
        self.frames[1] += 1;
        if let (NETWORK, LinkType::Ethernet, Some(gateway)) = (to, link, self.config.gateway) {
            frame[..6].copy_from_slice(&gateway.0);
        }
        out.send_buffer(self.now, to, frame, offload);
    }

    fn handle(
        &mut self,
        from_host: bool,
        link: LinkType,
        frame: &mut Buffer,
        offload: Offload,
        out: &mut Outbox,
    ) -> Verdict {
        let found = match find(link, frame) {
            Ok(found) => found,
            // What can't be read can't be of a chain.
            Err(_) => return Verdict::Pass,
        };
        match found {
            Found::Segment(segment) => self.segment(from_host, link, frame, &segment, offload, out),
            Found::Fragment(tuple) if self.table.find(from_host, tuple).is_some() => Verdict::Drop("fragment"),
            Found::Packet { .. } => match quoted(frame, &found) {
                Some(error) => self.error(from_host, frame, &error),
                None => Verdict::Pass,
            },
            Found::Fragment(_) | Found::Other => Verdict::Pass,
        }
    }

    fn segment(
        &mut self,
        from_host: bool,
        link: LinkType,
        frame: &mut Buffer,
        segment: &Segment,
        offload: Offload,
        out: &mut Outbox,
    ) -> Verdict {
        let sets_up = segment.flags.contains(TcpFlags::SYN) || segment.flags.contains(TcpFlags::RST);
        if sets_up && offload.segmentation.is_some() {
            return Verdict::Drop("long_syn");
        }
        let opens = sets_up && is_opening(segment.flags);
        let known = self.table.find(from_host, segment.tuple);
        if opens && from_host {
            return self.syn_of_host(frame, segment, offload, known);
        }
        if opens && begins_message(segment.payload(frame)) {
            return self.syn_of_network(frame, segment, offload, known, out);
        }
        let Some((index, place)) = known else { return self.unknown(from_host, segment) };
        if !from_host && begins_message(segment.payload(frame)) && segment.is_message(frame) {
            return self.message(index, place, frame, segment, out);
        }
        let opens_or_answers = segment.flags.contains(TcpFlags::SYN);
        let has_face = self.table.get(index).is_some_and(|session| session.faces[place.face()].is_some());
        if has_face {
            return match place {
                Place::NewRight if sets_up => self.new_answer(index, frame, segment, out),
                Place::PastLeft => Verdict::Drop("old_path"),
                _ if opens_or_answers => Verdict::Drop("late_syn"),
                Place::HostLeft | Place::HostRight => self.leave((index, place), link, frame, segment, offload, out),
                _ => self.arrive_by((index, place), frame, segment, offload, out),
            };
        }
        // Of the segment as it came: what is sent on may have other bytes.
        let seen = (*segment, segment.latest(frame));
        let verdict = match place {
            Place::HostLeft if sets_up => self.answer_to_left(index, frame, segment, offload),
            Place::FromRight => self.answer_from_right(index, frame, segment, offload, sets_up),
            _ => self.forward(index, place, frame, segment, offload),
        };
        if let Verdict::Send(_) = verdict {
            let now = self.now;
            self.table.note(index, |session| session.observe(place, &seen.0, seen.1, now));
        }
        verdict
    }

    /// Takes note of a segment in numbers of the host.
    fn note(&mut self, index: Index, place: Place, frame: &[u8], segment: &Segment) {
        let (now, latest) = (self.now, segment.latest(frame));
        self.table.note(index, |session| session.observe(place, segment, latest, now));
    }

    /// A segment of no session. What comes for a subsession that is not there must not reach the host, which would answer by RST.
    fn unknown(&self, from_host: bool, segment: &Segment) -> Verdict {
        let Tuple { source, destination } = segment.tuple;
        let of_agents = || {
            self.config.agent_at(destination.ip()) == Some(self.config.agent)
                && self.config.agent_at(source.ip()).is_some()
        };
        if !from_host && self.config.is_subsession_port(destination.port()) && of_agents() {
            return Verdict::Drop("unknown_subsession");
        }
        Verdict::Pass
    }

    /// An ordinary packet of a session: it gets the headers of its next way.
    fn forward(&self, index: Index, place: Place, frame: &mut Buffer, segment: &Segment, offload: Offload) -> Verdict {
        let Some(session) = self.table.get(index) else { return Verdict::Pass };
        match session.onward(place) {
            Some(to) => {
                segment.redirect(frame, to, offload.checksum);
                Verdict::Send(offload)
            }
            None if session.phase == Phase::Direct => Verdict::Send(offload),
            None => Verdict::Drop("no_path"),
        }
    }

    /// An ICMP error about a packet of a session: it goes to who has sent that.
    fn error(&mut self, from_host: bool, frame: &mut Buffer, error: &QuotedSegment) -> Verdict {
        let Some((index, place)) = self.table.find(from_host, error.tuple.reversed()) else { return Verdict::Pass };
        let Some(session) = self.table.get(index) else { return Verdict::Pass };
        let face = session.faces[place.face()].as_ref().map(|face| &face.anchor);
        // The packet that it quotes went the other way than its answers come.
        let (to, host, told) = if place.is_host() {
            let side = face.map_or(Side::Old, |anchor| anchor.side_of(error.sequence));
            let shift = face.map_or(0, |anchor| anchor.shift(side).arriving);
            let to = self.tuple_of(index, place.face(), side);
            (to, error.sequence, error.sequence.wrapping_sub(shift))
        } else {
            let shift = face.map_or(0, |anchor| anchor.shift(place.side()).leaving);
            let host = error.sequence.wrapping_add(shift);
            (session.onward(place), host, host)
        };
        let Some(to) = to.map(Tuple::reversed) else { return Verdict::Drop("no_path") };
        if !session.is_under_way(place.way().reversed(), host) {
            return Verdict::Drop("stray_icmp_error");
        }
        if told != error.sequence {
            error.renumber(frame, told);
        }
        error.redirect(frame, to);
        self.count("icmp_errors");
        Verdict::Send(Offload::default())
    }
}

/// Whether it is a SYN that opens a connection.
fn is_opening(flags: TcpFlags) -> bool {
    flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK) && !flags.contains(TcpFlags::RST)
}

impl Function for Agent {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        while !out.is_full()
            && let Some(arrival) = arrivals.pop_front()
        {
            self.now = self.order.time(Input::Frame(arrival.port), now);
            self.end_sessions(self.now.after(-1));
            self.say_again(out);
            self.arrive(arrival, out);
        }
    }

    fn control(&mut self, now: Time, command: Command, out: &mut Outbox) {
        self.now = self.order.time(Input::Change, now);
        let result = match command.change {
            Change::Port { port, change } => {
                self.ports.change(port, change);
                Ok(Done::Done)
            }
            Change::Delete { flow } => match self.table.index(flow) {
                Some(index) => {
                    self.table.remove(index);
                    Ok(Done::Done)
                }
                None => Err(ControlError::NoFlow(flow)),
            },
            Change::Chain { flow, right, boxes } => match self.change_chain(flow, right, &boxes, out) {
                Ok(_) => Ok(Done::Done),
                Err(ChangeError::NoFlow(flow)) => Err(ControlError::NoFlow(flow)),
                Err(error) => Err(ControlError::Unfit(error.to_string())),
            },
            other => Err(ControlError::Unsupported(other.subject())),
        };
        out.answer(Answer { number: command.number, at: self.now, result }, None);
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        self.now = self.order.time(Input::Fire, now);
        self.end_sessions(self.now);
        self.say_again(out);
    }

    fn input_time(&self, input: Input, now: Time) -> Time {
        let mut order = self.order;
        order.time(input, now)
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        let expiry = self.table.next_due().map(|at| Deadline { at, reason: "expiry" });
        let again = self.alarms.first().map(|(at, ..)| Deadline { at: *at, reason: "again" });
        expiry.into_iter().chain(again).min_by_key(|deadline| deadline.at)
    }
}

impl Agent {
    /// Ends the sessions that are over at this time.
    fn end_sessions(&mut self, now: Time) {
        while self.table.expire(now).is_some() {
            self.expired += 1;
        }
    }
}

impl Inspect for Agent {
    fn flows(&self) -> Vec<FlowSummary> {
        self.table.iter().map(show::summary).collect()
    }

    fn flow(&self, flow: FlowId) -> Option<FlowDetail> {
        self.table.flow(flow).map(show::detail)
    }

    fn whole(&self, clocks: Option<&Clocks>) -> Result<Vec<u8>, ControlError> {
        Ok(self.state().to_bytes(clocks))
    }

    fn counters(&self) -> Counters {
        let named = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>()
        };
        Counters {
            frames_in: self.frames[0],
            frames_out: self.frames[1],
            frames_passed: self.frames[2],
            flows_created: self.created,
            flows_live: self.table.count() as u64,
            flows_peak: self.peak,
            flows_expired: self.expired,
            flows_evicted: 0,
            rows: named(&self.counts),
            drops: named(&self.drops).into_iter().collect(),
        }
    }
}
