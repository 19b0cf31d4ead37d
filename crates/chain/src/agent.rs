//! The agent: a [`Function`] between a host and its network.
//!
//! Frames that are of no chain pass as they are. A SYN that the host hands out and a policy matches becomes the SYN of a subsession, with
//! the list of the agents behind it; the next agent takes the list off, gives the SYN to its own host with the original header, and sends
//! it on when the host hands it out. All other packets only get other headers.

use crate::config::{Config, ConfigError, Fail};
use crate::icmp::{QuotedSegment, quoted};
use crate::keys::Keys;
use crate::message::{Confirmation, Exit, Header, Hop, Message, SessionList, begins_message, read};
use crate::segment::{Edit, Found, NoEdit, Segment, checksum_is_right, edit, find};
use crate::session::{Path, Phase, Place, Sent, Session};
use crate::state::{AgentState, StateError};
use crate::table::{Index, Table};
use crate::tuple::Tuple;
use crate::windows::Windows;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use weftwire_core::buffer::Buffer;
use weftwire_core::control::{Answer, Done};
use weftwire_core::inspect::{Counters, FlowDetail, FlowSummary, Inspect};
use weftwire_core::live::Clocks;
use weftwire_core::order::{Input, InputOrder};
use weftwire_core::port::{Checksum, Offload};
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
    counts: BTreeMap<&'static str, u64>,
    drops: BTreeMap<&'static str, u64>,
}

/// What becomes of a frame.
enum Verdict {
    /// It goes on, to the other port.
    Send(Offload),
    /// It goes on as it came.
    Pass,
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
        state.sessions.into_iter().for_each(|session| {
            self.table.insert(session);
        });
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
        match self.handle(port == HOST, link, &mut frame, offload) {
            Verdict::Send(offload) => {
                self.frames[1] += 1;
                if let (NETWORK, LinkType::Ethernet, Some(gateway)) = (to, link, self.config.gateway) {
                    frame[..6].copy_from_slice(&gateway.0);
                }
                out.send_buffer(self.now, to, frame, offload);
            }
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

    fn handle(&mut self, from_host: bool, link: LinkType, frame: &mut Buffer, offload: Offload) -> Verdict {
        let found = match find(link, frame) {
            Ok(found) => found,
            // What can't be read can't be of a chain.
            Err(_) => return Verdict::Pass,
        };
        match found {
            Found::Segment(segment) => self.segment(from_host, frame, &segment, offload),
            Found::Fragment(tuple) if self.table.find(from_host, tuple).is_some() => Verdict::Drop("fragment"),
            Found::Packet { .. } => match quoted(frame, &found) {
                Some(error) => self.error(from_host, frame, &error),
                None => Verdict::Pass,
            },
            Found::Fragment(_) | Found::Other => Verdict::Pass,
        }
    }

    fn segment(&mut self, from_host: bool, frame: &mut Buffer, segment: &Segment, offload: Offload) -> Verdict {
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
            return self.syn_of_network(frame, segment, offload, known);
        }
        let Some((index, place)) = known else { return self.unknown(from_host, segment) };
        let verdict = match place {
            Place::HostLeft if sets_up => self.answer_to_left(index, frame, segment, offload),
            Place::FromRight => self.answer_from_right(index, frame, segment, offload, sets_up),
            _ => self.forward(index, place, frame, segment, offload),
        };
        if let Verdict::Send(_) = verdict {
            let now = self.now;
            self.table.note(index, |session| session.observe(place.way(), segment, now));
        }
        verdict
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

    /// The host hands out a SYN.
    fn syn_of_host(
        &mut self,
        frame: &mut Buffer,
        segment: &Segment,
        offload: Offload,
        known: Option<(Index, Place)>,
    ) -> Verdict {
        let tagged = segment.tag(frame).and_then(|tag| self.table.tagged(tag));
        let index = match (tagged, known) {
            (Some(index), _) => {
                let is_as_before = self.table.get(index).is_some_and(|session| session.leaving == segment.tuple);
                if !is_as_before {
                    // A box that changes addresses or ports: the tag tells whose SYN it is.
                    let replaced = self.table.change(index, |session| {
                        session.leaving = segment.tuple;
                        session.right = None;
                    });
                    self.count_replaced(replaced);
                }
                index
            }
            (None, Some((index, Place::HostRight))) => {
                let continues = self.table.get(index).is_some_and(|session| {
                    session.initial_sequence == segment.sequence
                        || session.left.is_some() && session.phase == Phase::Opening
                });
                if continues {
                    index
                } else {
                    self.table.remove(index);
                    self.count("incarnations");
                    match self.begin(frame, segment) {
                        Ok(index) => index,
                        Err(verdict) => return verdict,
                    }
                }
            }
            _ => match self.begin(frame, segment) {
                Ok(index) => index,
                Err(verdict) => return verdict,
            },
        };
        let verdict = self.syn_to_right(index, frame, segment, offload);
        if let Verdict::Send(_) = verdict {
            let now = self.now;
            self.table.note(index, |session| session.observe(Place::HostRight.way(), segment, now));
        }
        verdict
    }

    /// Begins a chain, if a policy asks for one.
    fn begin(&mut self, frame: &Buffer, segment: &Segment) -> Result<Index, Verdict> {
        let tuple = segment.tuple;
        let Some(policy) = self.config.policy(tuple).cloned() else { return Err(Verdict::Pass) };
        let refused = |agent: &mut Agent, reason| {
            Err(match policy.fail {
                Fail::Open => {
                    agent.count(reason);
                    Verdict::Pass
                }
                Fail::Closed => Verdict::Drop(reason),
            })
        };
        if segment.is_keyed(frame) {
            return refused(self, "keyed");
        }
        let v4 = tuple.source.is_ipv4();
        let hops: Option<Vec<Hop>> = policy.boxes.iter().map(|number| self.config.hop(*number, v4)).collect();
        let (Some(mut rest), Some(_)) = (hops, self.config.hop(self.config.agent, v4)) else {
            return refused(self, "no_address");
        };
        if let Some(agent) = self.config.agent_at(tuple.destination.ip()).filter(|agent| *agent != self.config.agent)
            && rest.iter().all(|hop| hop.agent != agent)
        {
            rest.push(Hop { agent, address: tuple.destination.ip() });
        }
        if rest.is_empty() {
            return Err(Verdict::Pass);
        }
        if let Some(reason) = self.full() {
            return refused(self, reason);
        }
        self.next_counter += 1;
        let mut session = self.blank(segment);
        session.number = u64::from(self.config.agent) << 48 | self.next_counter & ((1 << 48) - 1);
        session.rest = rest;
        session.exit = policy.exit;
        session.keep_port = policy.keep_port;
        session.fail = Some(policy.fail);
        Ok(self.insert(session))
    }

    /// Why there is no room for another session.
    fn full(&self) -> Option<&'static str> {
        if self.table.count() >= self.config.most_sessions as usize {
            return Some("table_full");
        }
        (self.table.half_open() >= self.config.most_half_open).then_some("half_open_full")
    }

    fn blank(&mut self, segment: &Segment) -> Session {
        let flow = FlowId(self.next_flow);
        self.next_flow += 1;
        Session {
            flow,
            number: 0,
            initial_sequence: segment.sequence,
            entering: segment.tuple,
            leaving: segment.tuple,
            left: None,
            right: None,
            rest: Vec::new(),
            exit: Exit::default(),
            keep_port: false,
            fail: None,
            tag: None,
            phase: Phase::Opening,
            sent: [Sent::default(); 2],
            lists: 0,
            created: self.now,
            active: self.now,
            packets: 0,
        }
    }

    fn insert(&mut self, session: Session) -> Index {
        let (index, replaced) = self.table.insert(session);
        self.count_replaced(replaced);
        self.created += 1;
        self.peak = self.peak.max(self.table.count() as u64);
        index
    }

    fn count_replaced(&mut self, replaced: u32) {
        if replaced > 0 {
            *self.counts.entry("replaced").or_default() += u64::from(replaced);
        }
    }

    /// Sends a SYN on by the right subsession, with the list if an agent is there.
    fn syn_to_right(&mut self, index: Index, frame: &mut Buffer, segment: &Segment, offload: Offload) -> Verdict {
        if self.table.get(index).is_some_and(|session| session.right.is_none() && session.phase != Phase::Direct)
            && let Err(reason) = self.make_right(index)
        {
            let fail = self.table.get(index).and_then(|session| session.fail);
            self.table.remove(index);
            return match fail {
                Some(Fail::Open) => {
                    self.count(reason);
                    Verdict::Pass
                }
                _ => Verdict::Drop(reason),
            };
        }
        let Some(session) = self.table.get(index) else { return Verdict::Pass };
        let gives_up = session.lists >= LISTS && !session.is_confirmed() && session.phase == Phase::Opening;
        if gives_up && session.fail == Some(Fail::Open) {
            self.count("direct");
            self.table.change(index, |session| {
                session.right = None;
                session.phase = Phase::Direct;
            });
        }
        let Some(session) = self.table.get(index) else { return Verdict::Pass };
        if session.phase == Phase::Direct {
            return Verdict::Send(offload);
        }
        let Some(path) = &session.right else { return Verdict::Drop("no_path") };
        let message = path.agent.map(|to| {
            let header = Header { from: self.config.agent, to, session: session.number, counter: path.counter };
            let list = SessionList {
                header,
                initial_sequence: segment.sequence,
                session: session.leaving,
                subsession: path.tuple,
                exit: session.exit,
                rest: session.rest[1..].to_vec(),
            };
            Message::List(list).write(&self.keys)
        });
        let to = path.tuple;
        let insert = message.as_deref().unwrap_or_default();
        let edit = Edit { insert, untag: true, segment_size: Some(self.segment_size(to)), ..Edit::default() };
        let verdict = self.edited(frame, segment, offload, to, edit);
        if matches!(verdict, Verdict::Send(_)) {
            self.table.note(index, |session| session.lists = session.lists.saturating_add(1));
        }
        verdict
    }

    /// Finds the right subsession of a session: ports that no other one has.
    fn make_right(&mut self, index: Index) -> Result<(), &'static str> {
        let Some(session) = self.table.get(index) else { return Err("no_path") };
        let (leaving, next) = (session.leaving, session.rest.first().copied());
        let own = self.config.hop(self.config.agent, leaving.source.is_ipv4()).ok_or("no_address")?.address;
        let tuple = match (next, session.exit) {
            (None, Exit::Route) => leaving,
            (None, Exit::Nat) => self.free_ports(own, leaving.destination.ip(), Some(leaving.destination.port()), 0)?,
            (Some(hop), _) => {
                let keep = session.keep_port.then_some(leaving.destination.port());
                // Both ends of a pair of agents may open subsessions to each other: one uses even ports, the other odd ones.
                self.free_ports(own, hop.address, keep, u16::from(self.config.agent > hop.agent))?
            }
        };
        self.next_counter += 1;
        let path = Path { tuple, agent: next.map(|hop| hop.agent), counter: self.next_counter, confirmed: Vec::new() };
        let replaced = self.table.change(index, |session| session.right = Some(path));
        self.count_replaced(replaced);
        Ok(())
    }

    /// A pair of ports, of this parity, that no subsession to that address has.
    fn free_ports(&mut self, own: IpAddr, to: IpAddr, keep: Option<u16>, parity: u16) -> Result<Tuple, &'static str> {
        let [first, last] = self.config.subsession_ports.map(u32::from);
        let start = first + (first ^ u32::from(parity)) % 2;
        let count = (last - start) / 2 + 1;
        for _ in 0..count {
            self.next_port = self.next_port.wrapping_add(1);
            let port = |place: u32| (start + place % count * 2) as u16;
            let destination = keep.unwrap_or_else(|| port(self.next_port / count));
            let tuple = Tuple {
                source: SocketAddr::new(own, port(self.next_port)),
                destination: SocketAddr::new(to, destination),
            };
            if self.table.find(false, tuple.reversed()).is_none() {
                return Ok(tuple);
            }
        }
        Err("no_port")
    }

    /// A SYN comes that seems to bring a list.
    fn syn_of_network(
        &mut self,
        frame: &mut Buffer,
        segment: &Segment,
        offload: Offload,
        known: Option<(Index, Place)>,
    ) -> Verdict {
        let (list, length) = match read(segment.payload(frame), self.config.agent, &self.keys) {
            Ok((Message::List(list), length)) => (list, length),
            Ok(_) => return Verdict::Drop("message_out_of_place"),
            Err(error) => {
                // Not for this agent to judge: it is an ordinary segment.
                self.count(error.name());
                return self.unknown(false, segment);
            }
        };
        let known = known.filter(|(index, place)| {
            let same = |session: &Session| {
                session.number == list.header.session && session.initial_sequence == list.initial_sequence
            };
            *place == Place::FromLeft && self.table.get(*index).is_some_and(same)
        });
        let index = match known {
            Some((index, _)) => {
                self.count("repeated_lists");
                index
            }
            None => match self.accept(&list, segment) {
                Ok(index) => index,
                Err(reason) => return Verdict::Drop(reason),
            },
        };
        let Some(session) = self.table.get(index) else { return Verdict::Pass };
        let to = session.entering;
        let edit =
            Edit { remove: length, tag: session.tag, segment_size: Some(self.segment_size(to)), ..Edit::default() };
        let verdict = self.edited(frame, segment, offload, to, edit);
        if let Verdict::Send(_) = verdict {
            let now = self.now;
            let stripped = Segment { payload: segment.payload + length, ..*segment };
            self.table.note(index, |session| session.observe(Place::FromLeft.way(), &stripped, now));
        }
        verdict
    }

    /// Begins a session that a list asks for.
    fn accept(&mut self, list: &SessionList, segment: &Segment) -> Result<Index, &'static str> {
        let registered = |hop: &Hop| self.config.agent_at(hop.address) == Some(hop.agent);
        let differs = |at: usize, hop: &Hop| {
            hop.agent != self.config.agent && list.rest[..at].iter().all(|other| other.agent != hop.agent)
        };
        let sound = list.rest.iter().enumerate().all(|(at, hop)| registered(hop) && differs(at, hop));
        if !sound || !self.config.agents.iter().any(|agent| agent.number == list.header.from) {
            return Err("list_refused");
        }
        if let Some(reason) = self.full() {
            return Err(reason);
        }
        if self.table.find(false, segment.tuple).is_some_and(|(_, place)| place == Place::FromRight) {
            return Err("ports_taken");
        }
        if !self.windows.admit(list.header.from, list.header.counter) {
            return Err("replayed");
        }
        if segment.tuple != list.subsession {
            self.count("translated_on_the_way");
        }
        let mut session = self.blank(segment);
        session.number = list.header.session;
        session.entering = list.session;
        session.leaving = list.session;
        session.rest = list.rest.clone();
        session.exit = list.exit;
        session.left = Some(Path {
            tuple: segment.tuple,
            agent: Some(list.header.from),
            counter: list.header.counter,
            confirmed: Vec::new(),
        });
        // The end host needs no tag: it hands nothing on.
        if self.config.agent_at(list.session.destination.ip()) != Some(self.config.agent) {
            session.tag = Some(self.next_tag);
            self.next_tag = self.next_tag.wrapping_add(1);
        }
        Ok(self.insert(session))
    }

    /// SYN and ACK, or RST, go to the left: with a confirmation, if an agent is there.
    fn answer_to_left(&mut self, index: Index, frame: &mut Buffer, segment: &Segment, offload: Offload) -> Verdict {
        let Some(session) = self.table.get(index) else { return Verdict::Pass };
        let Some(path) = &session.left else { return Verdict::Drop("no_path") };
        let to = path.tuple.reversed();
        let behind = session.right.as_ref().map_or(&[][..], |path| &path.confirmed);
        let agents: Vec<u16> = std::iter::once(self.config.agent).chain(behind.iter().copied()).collect();
        // Who has acknowledged anything has had one.
        let confirmation = path.agent.filter(|_| session.sent[0].acknowledged.is_none()).map(|agent| {
            let header = Header { from: self.config.agent, to: agent, session: session.number, counter: path.counter };
            Message::Confirmation(Confirmation { header, agents, arrives_as: path.tuple }).write(&self.keys)
        });
        let insert = confirmation.as_deref().unwrap_or_default();
        let edit = Edit { insert, segment_size: Some(self.segment_size(to)), ..Edit::default() };
        self.edited(frame, segment, offload, to, edit)
    }

    /// A segment comes from the right: until the chain is confirmed, the first one has to do so.
    fn answer_from_right(
        &mut self,
        index: Index,
        frame: &mut Buffer,
        segment: &Segment,
        offload: Offload,
        sets_up: bool,
    ) -> Verdict {
        let Some(session) = self.table.get(index) else { return Verdict::Pass };
        let (to, confirmed) = (session.leaving.reversed(), session.is_confirmed());
        if !sets_up {
            return match confirmed {
                true => self.forward(index, Place::FromRight, frame, segment, offload),
                false => Verdict::Drop("unconfirmed_answer"),
            };
        }
        let expected = session.right.as_ref().map(|path| (path.agent, session.number, path.counter));
        let (mut length, mut agents) = (0, Vec::new());
        if begins_message(segment.payload(frame)) {
            match read(segment.payload(frame), self.config.agent, &self.keys) {
                Ok((Message::Confirmation(found), bytes))
                    if expected == Some((Some(found.header.from), found.header.session, found.header.counter)) =>
                {
                    (length, agents) = (bytes, found.agents);
                }
                Ok(_) => self.count("message_out_of_place"),
                Err(error) => self.count(error.name()),
            }
        }
        if !confirmed && agents.is_empty() {
            return Verdict::Drop("unconfirmed_answer");
        }
        if !confirmed {
            self.count("confirmed");
            self.table.note(index, |session| {
                if let Some(path) = &mut session.right {
                    path.confirmed = agents;
                }
            });
        }
        let edit = Edit { remove: length, segment_size: Some(self.segment_size(to)), ..Edit::default() };
        self.edited(frame, segment, offload, to, edit)
    }

    /// Edits a SYN or RST, whose checksum is to be right.
    fn edited(
        &mut self,
        frame: &mut Buffer,
        segment: &Segment,
        offload: Offload,
        to: Tuple,
        what: Edit<'_>,
    ) -> Verdict {
        if offload.checksum == Checksum::Unverified && !checksum_is_right(frame, segment) {
            return Verdict::Drop("bad_checksum");
        }
        match edit(frame, segment, to, what) {
            Ok((offload, fitted)) => {
                if !fitted {
                    self.count("no_room_for_tag");
                }
                Verdict::Send(offload)
            }
            Err(NoEdit::TooLong) => Verdict::Drop("too_long"),
        }
    }

    /// The longest segment that passes by both ports, with what is kept free.
    fn segment_size(&self, tuple: Tuple) -> u16 {
        let mtu = [HOST, NETWORK].into_iter().filter_map(|port| self.ports.mtu(port)).min().unwrap_or(DEFAULT_MTU);
        let headers = if tuple.source.is_ipv4() { 40 } else { 60 };
        let size = mtu.saturating_sub(headers + u32::from(self.config.segment_reserve));
        u16::try_from(size).unwrap_or(u16::MAX).max(1)
    }

    /// An ICMP error about a packet of a session: it goes to who has sent that.
    fn error(&mut self, from_host: bool, frame: &mut Buffer, error: &QuotedSegment) -> Verdict {
        let Some((index, place)) = self.table.find(from_host, error.tuple.reversed()) else { return Verdict::Pass };
        let Some(session) = self.table.get(index) else { return Verdict::Pass };
        // The packet that it quotes went the other way than its answers come.
        let Some(to) = session.onward(place).map(Tuple::reversed) else { return Verdict::Drop("no_path") };
        let way = if place.way() == crate::session::Way::Right {
            crate::session::Way::Left
        } else {
            crate::session::Way::Right
        };
        if !session.is_under_way(way, error.sequence) {
            return Verdict::Drop("stray_icmp_error");
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
            other => Err(ControlError::Unsupported(other.subject())),
        };
        out.answer(Answer { number: command.number, at: self.now, result }, None);
    }

    fn fire(&mut self, now: Time, _: &mut Outbox) {
        self.now = self.order.time(Input::Fire, now);
        self.end_sessions(self.now);
    }

    fn input_time(&self, input: Input, now: Time) -> Time {
        let mut order = self.order;
        order.time(input, now)
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        self.table.next_due().map(|at| Deadline { at, reason: "expiry" })
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
        self.table.iter().map(summary).collect()
    }

    fn flow(&self, flow: FlowId) -> Option<FlowDetail> {
        let session = self.table.flow(flow)?;
        Some(FlowDetail {
            summary: summary(session),
            registers: Vec::new(),
            timers: Vec::new(),
            turns: Vec::new(),
            packets: Vec::new(),
            counters: BTreeMap::from([("packets".into(), session.packets), ("lists".into(), session.lists.into())]),
        })
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

/// One line about a session: its ends, and its subsessions.
fn summary(session: &Session) -> FlowSummary {
    let side = |name: &str, path: &Option<Path>| {
        path.as_ref().map(|path| format!(", {name} {}", path.tuple)).unwrap_or_default()
    };
    let key = format!("{}{}{}", session.entering, side("left", &session.left), side("right", &session.right));
    FlowSummary {
        flow: session.flow,
        key,
        state: session.phase.name().to_owned(),
        created: session.created,
        last_active: session.active,
        events: session.packets,
    }
}
