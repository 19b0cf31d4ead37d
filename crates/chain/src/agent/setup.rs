//! How chains are set up: SYNs with lists to the right, confirmed answers to the left.

use super::{Agent, DEFAULT_MTU, HOST, LISTS, NETWORK, Verdict};
use crate::config::Fail;
use crate::lock::AgentId;
use crate::message::{Confirmation, Exit, Header, Hop, Message, NewPath, SessionList, begins_message, read};
use crate::segment::{Edit, NoEdit, Segment, checksum_is_right, edit};
use crate::session::{Latest, Opening, Path, Phase, Place, Sent, Session};
use crate::table::Index;
use crate::tuple::Tuple;
use std::net::{IpAddr, SocketAddr};
use weftwire_core::buffer::Buffer;
use weftwire_core::port::{Checksum, Offload};
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_core::{FlowId, Outbox};

impl Agent {
    /// The host hands out a SYN.
    pub(super) fn syn_of_host(
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
        let latest = segment.latest(frame);
        let (options, link) = segment.opening(frame);
        self.table.note(index, |session| {
            session.opening.options[0] = options;
            session.opening.link = link;
        });
        let verdict = self.syn_to_right(index, frame, segment, offload);
        if let Verdict::Send(_) = verdict {
            let now = self.now;
            self.table.note(index, |session| session.observe(Place::HostRight, segment, latest, now));
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
            initial: [[0; 2]; 2],
            latest: [Latest::default(); 2],
            opening: Opening::default(),
            change: None,
            lock: None,
            asked: Vec::new(),
            faces: [None, None],
            past: None,
        }
    }

    fn insert(&mut self, session: Session) -> Index {
        let (index, replaced) = self.table.insert(session);
        self.count_replaced(replaced);
        self.created += 1;
        self.peak = self.peak.max(self.table.count() as u64);
        index
    }

    pub(super) fn count_replaced(&mut self, replaced: u32) {
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
                change: session.change,
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
        let path = Path::new(tuple, next.map(|hop| hop.agent), self.next_counter);
        let replaced = self.table.change(index, |session| session.right = Some(path));
        self.count_replaced(replaced);
        Ok(())
    }

    /// A pair of ports, of this parity, that no subsession to that address has.
    pub(super) fn free_ports(
        &mut self,
        own: IpAddr,
        to: IpAddr,
        keep: Option<u16>,
        parity: u16,
    ) -> Result<Tuple, &'static str> {
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
    pub(super) fn syn_of_network(
        &mut self,
        frame: &mut Buffer,
        segment: &Segment,
        offload: Offload,
        known: Option<(Index, Place)>,
        out: &mut Outbox,
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
        if let Some(change) = list.change
            && change.request.right == AgentId(self.config.agent.into())
        {
            return self.new_path(&list, change, segment, out);
        }
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
                Err(reason) => {
                    if list.change.is_some() {
                        self.refuse_path(&list, segment, out);
                    }
                    return Verdict::Drop(reason);
                }
            },
        };
        let Some(session) = self.table.get(index) else { return Verdict::Pass };
        let to = session.entering;
        let edit =
            Edit { remove: length, tag: session.tag, segment_size: Some(self.segment_size(to)), ..Edit::default() };
        let latest = segment.latest(frame);
        let (options, _) = segment.opening(frame);
        let verdict = self.edited(frame, segment, offload, to, edit);
        if let Verdict::Send(_) = verdict {
            let now = self.now;
            let stripped = Segment { payload: segment.payload + length, ..*segment };
            self.table.note(index, |session| {
                session.opening.options[0] = options;
                session.observe(Place::FromLeft, &stripped, latest, now);
            });
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
        let is_in_chain = |session: &Session, change: NewPath| {
            // The same anchor asks again: it has given up what was only begun before.
            let was_given_up = session.phase.is_half_open()
                && session.change.is_some_and(|before| {
                    before.request.left == change.request.left && before.request.epoch < change.request.epoch
                });
            !was_given_up && !matches!(session.phase, Phase::Left | Phase::Reset | Phase::TimeWait)
        };
        let other = self.table.numbered(list.header.session).and_then(|index| self.table.get(index));
        if list.change.zip(other).is_some_and(|(change, other)| is_in_chain(other, change)) {
            return Err("already_in_chain");
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
        let mut path = Path::new(segment.tuple, Some(list.header.from), list.header.counter);
        path.shift[0] = segment.sequence.wrapping_sub(list.initial_sequence);
        session.left = Some(path);
        session.change = list.change;
        // The end host needs no tag: it hands nothing on.
        if self.config.agent_at(list.session.destination.ip()) != Some(self.config.agent) {
            session.tag = Some(self.next_tag);
            self.next_tag = self.next_tag.wrapping_add(1);
        }
        Ok(self.insert(session))
    }

    /// SYN and ACK, or RST, go to the left: with a confirmation, if an agent is there.
    pub(super) fn answer_to_left(
        &mut self,
        index: Index,
        frame: &mut Buffer,
        segment: &Segment,
        offload: Offload,
    ) -> Verdict {
        let (options, link) = segment.opening(frame);
        self.table.note(index, |session| {
            if session.opening.options[1].is_empty() {
                session.opening.options[1] = options;
            }
            session.opening.link = link;
        });
        let Some(session) = self.table.get(index) else { return Verdict::Pass };
        let Some(path) = &session.left else { return Verdict::Drop("no_path") };
        let to = path.tuple.reversed();
        let behind = session.right.as_ref().map_or(&[][..], |path| &path.confirmed);
        let agents: Vec<u16> = std::iter::once(self.config.agent).chain(behind.iter().copied()).collect();
        // Who has acknowledged anything has had one.
        let confirmation = path.agent.filter(|_| session.sent[0].acknowledged.is_none()).map(|agent| {
            let header = Header { from: self.config.agent, to: agent, session: session.number, counter: path.counter };
            let own = segment.sequence.wrapping_add(1);
            // Only the right anchor of a change has begun another stretch of numbers.
            let begins = session.change.and(session.right.as_ref()).map_or(own, |path| path.begins);
            let initial_sequence = segment.sequence;
            let arrives_as = path.tuple;
            Message::Confirmation(Confirmation { header, agents, initial_sequence, begins, arrives_as })
                .write(&self.keys)
        });
        let insert = confirmation.as_deref().unwrap_or_default();
        let edit = Edit { insert, segment_size: Some(self.segment_size(to)), ..Edit::default() };
        self.edited(frame, segment, offload, to, edit)
    }

    /// A segment comes from the right: until the chain is confirmed, the first one has to do so.
    pub(super) fn answer_from_right(
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
        let (mut length, mut agents, mut begins, mut shift) = (0, Vec::new(), 0, 0);
        if begins_message(segment.payload(frame)) {
            match read(segment.payload(frame), self.config.agent, &self.keys) {
                Ok((Message::Confirmation(found), bytes))
                    if expected == Some((Some(found.header.from), found.header.session, found.header.counter)) =>
                {
                    (length, agents, begins) = (bytes, found.agents, found.begins);
                    shift = segment.sequence.wrapping_sub(found.initial_sequence);
                }
                Ok(_) => self.count("message_out_of_place"),
                Err(error) => self.count(error.name()),
            }
        }
        if !confirmed && agents.is_empty() {
            return Verdict::Drop("unconfirmed_answer");
        }
        if !confirmed {
            let (options, _) = segment.opening(frame);
            self.count("confirmed");
            self.table.note(index, |session| {
                if let Some(path) = &mut session.right {
                    path.confirmed = agents;
                    path.begins = begins;
                    // A refusal has a number of its own.
                    path.shift[1] = if segment.flags.contains(TcpFlags::SYN) { shift } else { 0 };
                }
                session.opening.options[1] = options;
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
    pub(super) fn segment_size(&self, tuple: Tuple) -> u16 {
        let mtu = [HOST, NETWORK].into_iter().filter_map(|port| self.ports.mtu(port)).min().unwrap_or(DEFAULT_MTU);
        let headers = if tuple.source.is_ipv4() { 40 } else { 60 };
        let size = mtu.saturating_sub(headers + u32::from(self.config.segment_reserve));
        u16::try_from(size).unwrap_or(u16::MAX).max(1)
    }
}
