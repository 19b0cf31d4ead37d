//! How a segment of a chain is changed while its session runs: messages from agent to agent, new paths, the end of old ones.
//!
//! [`crate::lock`] decides who may, [`crate::paths`] what becomes of the data. Here is what carries both: messages are segments that repeat
//! acknowledged bytes and have a mark among their options, so firewalls and translators between two agents take them for the session's,
//! and no host gets them.

use super::make::{Made, scale_of};
use super::{Agent, NETWORK, Verdict};
use crate::face::Face;
use crate::lock::{Action, AgentId, Event, Kind, Lock, Refusal, Request, State};
use crate::message::{
    BetaMessage, Confirmation, Header, Hop, LockMessage, Message, NewPath, SessionList, begins_message, read,
};
use crate::paths::{Anchor, Beginning, Piece, Side, Stage};
use crate::segment::{Edit, Segment, edit};
use crate::session::{LEFT, Path, Phase, Place, RIGHT, Session, Way};
use crate::table::Index;
use weftwire_core::buffer::Buffer;
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_core::{FlowId, Outbox};

/// How often a request, or the SYN of a new path, is sent before it is given up.
const MOST_ATTEMPTS: u32 = 6;
/// How often a path that is not needed any more is given back before it is taken for dead.
const MOST_RELEASES: u32 = 8;

/// Why a change can't be begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is no such session.
    #[error("there is no session {0}")]
    NoFlow(FlowId),
    /// Its chain is not set up, or it ends.
    #[error("the session is {0}; only open ones are changed")]
    NotOpen(&'static str),
    /// The chain ends at this agent.
    #[error("no agent is to the right of this one")]
    End,
    /// Another change of what lies to the right is under way.
    #[error("the subsession to the right is locked for another change")]
    Locked,
    /// An agent that is not registered, or has no address of the family.
    #[error("agent {0} is not registered with an address of the session's family")]
    NoAgent(u16),
    /// This agent itself, or one twice.
    #[error("agent {0} stands twice in the new segment")]
    Loop(u16),
}

impl Agent {
    /// Begins to change a session: between this agent and `right`, an agent of its chain, there are to be these boxes and no others.
    ///
    /// # Errors
    /// See [`ChangeError`]. What comes later is counted: `changes_made`, `changes_refused`, `changes_cancelled`.
    pub fn change_chain(
        &mut self,
        flow: FlowId,
        right: u16,
        boxes: &[u16],
        out: &mut Outbox,
    ) -> Result<Request, ChangeError> {
        let index = self.table.index(flow).ok_or(ChangeError::NoFlow(flow))?;
        let session = self.table.get(index).ok_or(ChangeError::NoFlow(flow))?;
        if !matches!(session.phase, Phase::Open | Phase::HalfClosed) {
            return Err(ChangeError::NotOpen(session.phase.name()));
        }
        if self.is_end(session) {
            return Err(ChangeError::End);
        }
        let numbers = session.numbers(RIGHT).ok_or(ChangeError::NotOpen("not acknowledged"))?;
        let v4 = session.leaving.source.is_ipv4();
        let mut hops: Vec<Hop> = Vec::new();
        for number in boxes.iter().chain([&right]) {
            if *number == self.config.agent || hops.iter().any(|hop| hop.agent == *number) {
                return Err(ChangeError::Loop(*number));
            }
            hops.push(self.config.hop(*number, v4).ok_or(ChangeError::NoAgent(*number))?);
        }
        let own = AgentId(self.config.agent.into());
        let lock = session.lock.clone().unwrap_or_else(|| Box::new(Lock::new(own)));
        let request = lock.next_request(AgentId(right.into())).ok_or(ChangeError::Locked)?;
        let now = self.now;
        self.table.note(index, |session| {
            let mut face = session.faces[RIGHT].take().unwrap_or_else(|| new_face(session, request, numbers, 0));
            (face.request, face.hops, face.attempts, face.other_is_done) = (request, hops, 0, false);
            face.wait(now);
            session.faces[RIGHT] = Some(face);
        });
        self.remind(index, RIGHT);
        self.lock_event(index, Event::Start(request), None, 0, out);
        self.count("changes_begun");
        Ok(request)
    }

    /// Whether the chain ends at this agent.
    fn is_end(&self, session: &Session) -> bool {
        session.right.as_ref().is_none_or(|path| path.agent.is_none())
    }

    /// Works on one side of a session, if it is an anchor there.
    pub(super) fn with_face(&mut self, index: Index, face: usize, work: impl FnOnce(&mut Face)) {
        self.table.note(index, |session| {
            if let Some(face) = &mut session.faces[face] {
                work(face);
            }
        });
    }

    /// Takes a message from another agent. Whatever it is, it goes to no host.
    pub(super) fn message(
        &mut self,
        index: Index,
        place: Place,
        frame: &Buffer,
        segment: &Segment,
        out: &mut Outbox,
    ) -> Verdict {
        let (message, _) = match read(segment.payload(frame), self.config.agent, &self.keys) {
            Ok(found) => found,
            Err(error) => return Verdict::Drop(error.name()),
        };
        let (Message::Lock(LockMessage { header, .. }) | Message::Beta(BetaMessage { header, .. })) = &message else {
            return Verdict::Drop("message_out_of_place");
        };
        let Some(session) = self.table.get(index) else { return Verdict::Drop("message_out_of_place") };
        let from = match place {
            Place::FromLeft => session.left.as_ref(),
            Place::FromRight => session.right.as_ref(),
            Place::NewLeft => session.new_path(LEFT),
            Place::NewRight => session.new_path(RIGHT),
            Place::PastLeft => session.past.as_ref(),
            Place::HostLeft | Place::HostRight => None,
        };
        let is_neighbour = from.is_some_and(|path| path.agent == Some(header.from));
        if !is_neighbour || header.session != session.number {
            return Verdict::Drop("message_out_of_place");
        }
        if !self.windows.admit(header.from, header.counter) {
            return Verdict::Drop("replayed");
        }
        let shift = from.map_or(0, |path| path.shift[usize::from(place.way() == Way::Left)]);
        match message {
            Message::Lock(lock) if lock.kind.goes_right() == (place.way() == Way::Right) => {
                let delta = lock.delta.wrapping_add(shift).wrapping_add(self.enters(index, place.face()));
                self.lock_event(index, Event::Message(lock.kind, lock.request), Some(place), delta, out);
            }
            Message::Beta(beta) => self.beta(index, place, &beta, out),
            _ => return Verdict::Drop("message_out_of_place"),
        }
        Verdict::Done
    }

    /// What is added to numbers of a subsession to have those of the host on that side.
    fn enters(&self, index: Index, face: usize) -> u32 {
        let face = self.table.get(index).and_then(|session| session.faces[face].as_ref());
        face.map_or(0, |face| face.anchor.shift(Side::Old).arriving)
    }

    /// What is subtracted from numbers of the host to have those of the subsession.
    fn leaves(&self, index: Index, face: usize) -> u32 {
        let face = self.table.get(index).and_then(|session| session.faces[face].as_ref());
        face.map_or(0, |face| face.anchor.shift(Side::Old).leaving)
    }

    /// Something happens to the lock of a session. `delta` is what a message has added up, in numbers of the host where it came in.
    pub(super) fn lock_event(&mut self, index: Index, event: Event, via: Option<Place>, delta: u32, out: &mut Outbox) {
        let own = AgentId(self.config.agent.into());
        let Some(session) = self.table.get(index) else { return };
        let is_end = self.is_end(session);
        let was_anchored = session.lock.as_ref().and_then(|lock| lock.anchored());
        let mut actions = Vec::new();
        let mut unexpected = None;
        self.table.note(index, |session| {
            let lock = session.lock.get_or_insert_with(|| Box::new(Lock::new(own)));
            unexpected = lock.react(event, is_end, &mut actions).err();
            let cares = |request| lock.own() == Some(request) || lock.kept() == Some(request);
            session.asked.retain(|(request, _)| cares(*request));
            if let Event::Message(Kind::Request, request) = event
                && cares(request)
                && session.asked.iter().all(|(asked, _)| *asked != request)
            {
                session.asked.push((request, delta));
            }
        });
        if unexpected.is_some() {
            self.count("lock_unexpected");
        }
        for action in actions {
            self.act(index, action, via, delta, out);
        }
        let Some(request) = was_anchored else { return };
        let is_anchored = self.table.get(index).and_then(|session| session.lock.as_ref()?.anchored());
        if is_anchored.is_none() {
            let complete = event == Event::Message(Kind::Release, request);
            self.end_left(index, complete);
        }
    }

    fn act(&mut self, index: Index, action: Action, via: Option<Place>, delta: u32, out: &mut Outbox) {
        let own = AgentId(self.config.agent.into());
        match action {
            Action::Send(kind, request) => {
                let Some(session) = self.table.get(index) else { return };
                let sum = match kind {
                    Kind::Request if request.left != own => {
                        let asked = session.asked.iter().find(|(asked, _)| *asked == request).map(|(_, delta)| *delta);
                        asked.unwrap_or(delta).wrapping_add(session.host_shift(Way::Right))
                    }
                    Kind::Ack if request.right != own => delta.wrapping_add(session.host_shift(Way::Left)),
                    _ => 0,
                };
                let face = if kind.goes_right() { RIGHT } else { LEFT };
                let delta = sum.wrapping_sub(self.leaves(index, face));
                let place = match (face, via) {
                    (LEFT, Some(Place::PastLeft)) => Place::PastLeft,
                    (LEFT, _) => Place::FromLeft,
                    _ => Place::FromRight,
                };
                self.send_message(
                    index,
                    place,
                    |header| Message::Lock(LockMessage { header, kind, request, delta }),
                    out,
                );
            }
            Action::Accepted(request) => self.accepted(index, request, delta),
            Action::Granted(request) => self.granted(index, request, delta, out),
            Action::Refused(_, why) => {
                self.count(match why {
                    Refusal::Busy => "changes_refused_busy",
                    Refusal::NoRightAnchor => "changes_refused_no_right_anchor",
                    Refusal::Ended | Refusal::Full => "changes_refused",
                });
                self.with_face(index, RIGHT, |face| face.due = None);
            }
            Action::Patience(_) => self.with_face(index, RIGHT, |face| face.attempts = 0),
            Action::Ended(_) => self.end_right(index),
            Action::Left => {
                self.count("chains_left");
                self.table.note(index, |session| session.phase = Phase::Left);
            }
        }
    }

    /// This agent is the right anchor of a request.
    fn accepted(&mut self, index: Index, request: Request, delta: u32) {
        let Some(numbers) = self.table.get(index).and_then(|session| session.numbers(LEFT)) else { return };
        self.table.note(index, |session| {
            let mut face = session.faces[LEFT].take().unwrap_or_else(|| new_face(session, request, numbers, delta));
            face.anchor.set_delta(delta);
            (face.request, face.attempts, face.other_is_done) = (request, 0, false);
            session.faces[LEFT] = Some(face);
        });
    }

    /// The left anchor may set the new path up.
    fn granted(&mut self, index: Index, request: Request, delta: u32, out: &mut Outbox) {
        let now = self.now;
        let mut hops = Vec::new();
        let mut begins = 0;
        self.with_face(index, RIGHT, |face| {
            face.anchor.set_delta(delta);
            begins = face.anchor.begin();
            hops.clone_from(&face.hops);
            face.attempts = 0;
            face.wait(now);
        });
        self.remind(index, RIGHT);
        let Some(session) = self.table.get(index) else { return };
        let (leaving, keep_port) = (session.leaving, session.keep_port);
        let own = self.config.hop(self.config.agent, leaving.source.is_ipv4());
        let ports = match (own, hops.first()) {
            (Some(own), Some(hop)) => {
                let keep = keep_port.then_some(leaving.destination.port());
                self.free_ports(own.address, hop.address, keep, u16::from(self.config.agent > hop.agent))
                    .map(|tuple| (tuple, hop.agent))
            }
            _ => Err("no_address"),
        };
        match ports {
            Ok((tuple, agent)) => {
                self.next_counter += 1;
                let path = Path { begins, ..Path::new(tuple, Some(agent), self.next_counter) };
                self.set_path(index, RIGHT, Some(path));
                self.open_new(index, request, out);
            }
            Err(reason) => {
                self.count(reason);
                self.lock_event(index, Event::Abort, None, 0, out);
            }
        }
    }

    /// Gives a face another new path; headers are found by it then.
    fn set_path(&mut self, index: Index, face: usize, path: Option<Path>) {
        let replaced = self.table.change(index, |session| {
            if let Some(face) = &mut session.faces[face] {
                face.new = path;
            }
        });
        self.count_replaced(replaced);
    }

    /// Sends the SYN of a new path.
    fn open_new(&mut self, index: Index, request: Request, out: &mut Outbox) {
        let Some(session) = self.table.get(index) else { return };
        let (Some(face), Some(path)) = (&session.faces[RIGHT], session.new_path(RIGHT)) else { return };
        let Some(to) = path.agent else { return };
        let sequence = path.begins.wrapping_sub(1);
        let list = Message::List(SessionList {
            header: Header { from: self.config.agent, to, session: session.number, counter: path.counter },
            initial_sequence: sequence,
            session: session.leaving,
            subsession: path.tuple,
            exit: session.exit,
            rest: face.hops[1..].to_vec(),
            change: Some(NewPath { request, begins: path.begins }),
        });
        let tuple = path.tuple;
        let made = Made { tuple, way: Way::Right, flags: TcpFlags::SYN, sequence, acknowledgment: 0, payload: &[] };
        let syn = self.made_opening(session, made);
        self.send_opening(syn, &list, out);
    }

    /// Sends a SYN, or the answer to one, with a message in it.
    fn send_opening(&mut self, frame: Option<Vec<u8>>, message: &Message, out: &mut Outbox) {
        let link = self.ports.link(NETWORK);
        let Some((link, frame)) = link.zip(frame) else { return };
        let Ok(crate::segment::Found::Segment(segment)) = crate::segment::find(link, &frame) else { return };
        let mut buffer = Buffer::from(frame);
        let insert = message.write(&self.keys);
        let size = self.segment_size(segment.tuple);
        let what = Edit { insert: &insert, segment_size: Some(size), ..Edit::default() };
        if edit(&mut buffer, &segment, segment.tuple, what).is_ok() {
            self.emit(NETWORK, Some(buffer.to_vec()), out);
        }
    }

    /// Refuses the SYN of a new path: its left anchor learns of it, and the boxes up to here too.
    pub(super) fn refuse_path(&mut self, list: &SessionList, segment: &Segment, out: &mut Outbox) {
        let confirmation = Message::Confirmation(Confirmation {
            header: Header { from: list.header.to, to: list.header.from, ..list.header },
            agents: vec![self.config.agent],
            initial_sequence: 0,
            begins: 0,
            arrives_as: segment.tuple,
        });
        let made = Made {
            tuple: segment.tuple.reversed(),
            way: Way::Left,
            flags: TcpFlags::RST.with(TcpFlags::ACK),
            sequence: 0,
            acknowledgment: segment.sequence.wrapping_add(1),
            payload: &[],
        };
        let Some(session) = self.table.numbered(list.header.session).and_then(|index| self.table.get(index)) else {
            return;
        };
        let answer = self.made_opening(session, made);
        self.send_opening(answer, &confirmation, out);
    }

    /// The SYN of a new path comes to its right anchor.
    pub(super) fn new_path(
        &mut self,
        list: &SessionList,
        change: NewPath,
        segment: &Segment,
        out: &mut Outbox,
    ) -> Verdict {
        let Some(index) = self.table.numbered(list.header.session) else { return Verdict::Drop("change_refused") };
        let Some(session) = self.table.get(index) else { return Verdict::Drop("change_refused") };
        let is_anchor = session.lock.as_ref().is_some_and(|lock| lock.anchored() == Some(change.request));
        let Some(face) = session.faces[LEFT].as_ref().filter(|_| is_anchor) else {
            return Verdict::Drop("change_refused");
        };
        let counter = list.header.counter;
        let is_repeated = face.new.as_ref().is_some_and(|path| path.tuple == segment.tuple && path.counter == counter);
        if !is_repeated {
            if face.anchor.stage() == Stage::Two || !self.windows.admit(list.header.from, counter) {
                return Verdict::Drop("replayed");
            }
            let mut path = Path::new(segment.tuple, Some(list.header.from), counter);
            path.shift[0] = segment.sequence.wrapping_sub(list.initial_sequence);
            let beginning = Beginning { told: change.begins, arrived: segment.sequence.wrapping_add(1) };
            self.with_face(index, LEFT, |face| path.begins = face.anchor.begin_with(beginning));
            self.set_path(index, LEFT, Some(path));
        }
        let Some(session) = self.table.get(index) else { return Verdict::Done };
        let Some(path) = session.new_path(LEFT) else { return Verdict::Done };
        let behind = session.right.as_ref().map_or(&[][..], |path| &path.confirmed);
        let (sequence, to) = (path.begins.wrapping_sub(1), list.header.from);
        let confirmation = Message::Confirmation(Confirmation {
            header: Header { from: self.config.agent, to, session: session.number, counter: path.counter },
            agents: std::iter::once(self.config.agent).chain(behind.iter().copied()).collect(),
            initial_sequence: sequence,
            begins: path.begins,
            arrives_as: path.tuple,
        });
        let made = Made {
            tuple: path.tuple.reversed(),
            way: Way::Left,
            flags: TcpFlags::SYN.with(TcpFlags::ACK),
            sequence,
            acknowledgment: segment.sequence.wrapping_add(1),
            payload: &[],
        };
        let answer = self.made_opening(session, made);
        self.send_opening(answer, &confirmation, out);
        Verdict::Done
    }

    /// The answer to the SYN of a new path comes back to the left anchor, or a refusal.
    pub(super) fn new_answer(&mut self, index: Index, frame: &Buffer, segment: &Segment, out: &mut Outbox) -> Verdict {
        let Some(session) = self.table.get(index) else { return Verdict::Drop("no_path") };
        let Some(path) = session.new_path(RIGHT) else { return Verdict::Drop("no_path") };
        let expected = (path.agent, session.number, path.counter);
        let confirmation = match read(segment.payload(frame), self.config.agent, &self.keys) {
            Ok((Message::Confirmation(found), _))
                if begins_message(segment.payload(frame))
                    && expected == (Some(found.header.from), found.header.session, found.header.counter) =>
            {
                found
            }
            _ => return Verdict::Drop("unconfirmed_answer"),
        };
        if segment.flags.contains(TcpFlags::RST) {
            let waits = session.faces[RIGHT].as_ref().is_some_and(|face| face.anchor.stage() == Stage::Waiting)
                && session.lock.as_ref().is_some_and(|lock| lock.state() == State::Locked);
            if waits {
                self.lock_event(index, Event::Abort, None, 0, out);
            }
            return Verdict::Done;
        }
        let beginning = Beginning { told: confirmation.begins, arrived: segment.sequence.wrapping_add(1) };
        let shift = segment.sequence.wrapping_sub(confirmation.initial_sequence);
        let now = self.now;
        let mut piece = None;
        self.with_face(index, RIGHT, |face| {
            if let Some(path) = &mut face.new {
                path.confirmed = confirmation.agents;
                path.shift[1] = shift;
            }
            piece = face.anchor.answered(beginning);
            face.attempts = 0;
            face.wait(now);
        });
        if let Some(piece) = piece {
            self.count("paths_taken");
            self.remind(index, RIGHT);
            self.introduce(index, RIGHT, piece, out);
        }
        Verdict::Done
    }

    /// Tells of the new path, to the boxes on it and to the other anchor.
    fn introduce(&mut self, index: Index, face: usize, piece: Piece, out: &mut Outbox) {
        self.send_piece(index, face, piece, out);
        self.tell(index, face, piece.beta, piece.knows, out);
    }

    /// Tells the other anchor of the new path, by way of the agents on it.
    pub(super) fn tell(&mut self, index: Index, face: usize, beta: Option<u32>, knows: bool, out: &mut Outbox) {
        let Some(found) = self.table.get(index).and_then(|session| session.faces[face].as_ref()) else { return };
        let (request, is_done) = (found.request, found.anchor.is_done());
        let place = if face == RIGHT { Place::NewRight } else { Place::NewLeft };
        self.send_message(
            index,
            place,
            |header| Message::Beta(BetaMessage { header, request, beta, knows, is_done }),
            out,
        );
    }

    /// What an anchor tells of the new path.
    fn beta(&mut self, index: Index, place: Place, beta: &BetaMessage, out: &mut Outbox) {
        if !matches!(place, Place::NewLeft | Place::NewRight) {
            // It is for an anchor further on, which has taken the path.
            self.table.note(index, |session| {
                if session.phase.is_half_open() {
                    session.phase = Phase::Open;
                }
            });
            let onward = if place == Place::FromLeft { Place::FromRight } else { Place::FromLeft };
            return self.send_message(index, onward, |header| Message::Beta(BetaMessage { header, ..*beta }), out);
        }
        let face = place.face();
        let mut said = None;
        let mut reminder = None;
        self.with_face(index, face, |face| {
            if face.request == beta.request {
                let was = face.anchor.stage();
                said = face.anchor.told(beta.beta, beta.knows).map(|piece| (piece, was == Stage::Waiting));
                face.other_is_done |= beta.is_done;
                reminder = face.anchor.reminder().filter(|_| !beta.knows);
            }
        });
        match (said, reminder) {
            (Some((piece, takes)), _) => {
                if takes {
                    self.count("paths_taken");
                    let now = self.now;
                    self.with_face(index, face, |face| face.wait(now));
                    self.remind(index, face);
                }
                self.tell(index, face, piece.beta, piece.knows, out);
            }
            (None, Some(piece)) => self.tell(index, face, piece.beta, piece.knows, out),
            (None, None) => {}
        }
        self.proceed(index, face, out);
    }

    /// Goes on if nothing is left on the old path.
    pub(super) fn proceed(&mut self, index: Index, face: usize, out: &mut Outbox) {
        let Some(session) = self.table.get(index) else { return };
        let Some(found) = &session.faces[face] else { return };
        if !found.anchor.is_done() {
            return;
        }
        let state = session.lock.as_ref().map(|lock| lock.state());
        if face == RIGHT {
            if found.other_is_done && state == Some(State::Locked) {
                let now = self.now;
                self.with_face(index, RIGHT, |face| {
                    face.attempts = 0;
                    face.wait(now);
                });
                self.remind(index, RIGHT);
                self.lock_event(index, Event::Complete, None, 0, out);
            }
        } else if !found.other_is_done {
            // Said once at once, and then by the clock.
            let now = self.now;
            self.with_face(index, LEFT, |face| {
                face.other_is_done = true;
                face.attempts = 0;
                face.wait(now);
            });
            self.remind(index, LEFT);
            self.tell(index, LEFT, None, true, out);
        }
    }

    /// The change at the left anchor is over.
    fn end_right(&mut self, index: Index) {
        let mut complete = false;
        let replaced = self.table.change(index, |session| {
            let Some(face) = &mut session.faces[RIGHT] else { return };
            face.due = None;
            complete = face.anchor.stage() == Stage::Two;
            let new = face.new.take();
            if complete {
                face.anchor.release();
                session.right = new;
            } else {
                face.anchor.cancel();
            }
        });
        self.count_replaced(replaced);
        self.count(if complete { "changes_made" } else { "changes_cancelled" });
    }

    /// The change at the right anchor is over.
    fn end_left(&mut self, index: Index, complete: bool) {
        let replaced = self.table.change(index, |session| {
            let Some(face) = &mut session.faces[LEFT] else { return };
            face.due = None;
            let new = face.new.take();
            if complete && face.anchor.stage() == Stage::Two {
                face.anchor.release();
                session.past = std::mem::replace(&mut session.left, new);
            } else {
                face.anchor.cancel();
            }
        });
        self.count_replaced(replaced);
    }

    /// Sends a message to the neighbour at a place, as a segment that repeats what it has acknowledged.
    fn send_message(&mut self, index: Index, place: Place, message: impl FnOnce(Header) -> Message, out: &mut Outbox) {
        self.next_counter += 1;
        let Some(session) = self.table.get(index) else { return };
        let face = place.face();
        let path = match place {
            Place::FromLeft => session.left.as_ref(),
            Place::FromRight => session.right.as_ref(),
            Place::NewLeft | Place::NewRight => session.new_path(face),
            _ => session.past.as_ref(),
        };
        let Some((path, to)) = path.and_then(|path| Some((path, path.agent?))) else { return };
        let header = Header { from: self.config.agent, to, session: session.number, counter: self.next_counter };
        let payload = message(header).write(&self.keys);
        let side = place.side();
        let numbers = match &session.faces[face] {
            Some(face) => {
                let piece = face.anchor.keep_alive(side);
                Some([piece.sequence, piece.acknowledgment])
            }
            None => session.numbers(face).map(|[_, acknowledged, given]| [acknowledged, given]),
        };
        let Some([sequence, acknowledgment]) = numbers else { return };
        let (tuple, way) = if face == RIGHT { (path.tuple, Way::Right) } else { (path.tuple.reversed(), Way::Left) };
        let sequence = sequence.wrapping_sub(payload.len() as u32);
        let made = Made { tuple, way, flags: TcpFlags::ACK, sequence, acknowledgment, payload: &payload };
        let frame = self.made(session, NETWORK, made);
        self.emit(NETWORK, frame, out);
    }

    /// Looks at a face when its time has come.
    pub(super) fn remind(&mut self, index: Index, face: usize) {
        let Some(session) = self.table.get(index) else { return };
        if let Some(due) = session.faces[face].as_ref().and_then(|face| face.due) {
            self.alarms.insert((due, session.flow, face));
        }
    }

    /// Says again what was not answered until this time.
    pub(super) fn say_again(&mut self, out: &mut Outbox) {
        while let Some(first) = self.alarms.first().copied().filter(|(due, ..)| *due <= self.now) {
            self.alarms.remove(&first);
            let (due, flow, face) = first;
            let Some(index) = self.table.index(flow) else { continue };
            let mut attempts = None;
            let now = self.now;
            self.with_face(index, face, |face| {
                if face.due == Some(due) {
                    face.attempts += 1;
                    face.wait(now);
                    attempts = Some(face.attempts);
                }
            });
            let Some(attempts) = attempts else { continue };
            let goes_on = if face == RIGHT {
                self.left_anchor_again(index, attempts, out)
            } else {
                self.right_anchor_again(index, out)
            };
            if goes_on {
                self.remind(index, face);
            } else {
                self.with_face(index, face, |face| face.due = None);
            }
        }
    }

    fn left_anchor_again(&mut self, index: Index, attempts: u32, out: &mut Outbox) -> bool {
        let Some(session) = self.table.get(index) else { return false };
        let (Some(face), Some(lock)) = (&session.faces[RIGHT], &session.lock) else { return false };
        let request = face.request;
        if lock.own() != Some(request) {
            return false;
        }
        let (state, stage, reminder) = (lock.state(), face.anchor.stage(), face.anchor.reminder());
        match state {
            State::Pending if attempts > MOST_ATTEMPTS => self.lock_event(index, Event::Abort, None, 0, out),
            State::Releasing if attempts > MOST_RELEASES => {
                // Both anchors are done, and the old path is dead.
                self.count("releases_unanswered");
                self.lock_event(index, Event::Message(Kind::Released, request), None, 0, out);
                return false;
            }
            State::Pending | State::Cancelling | State::Releasing => {
                self.lock_event(index, Event::Timer, None, 0, out);
            }
            State::Locked if stage == Stage::Waiting && attempts > MOST_ATTEMPTS => {
                self.lock_event(index, Event::Abort, None, 0, out);
            }
            State::Locked if stage == Stage::Waiting => self.open_new(index, request, out),
            State::Locked => match reminder {
                Some(piece) => self.introduce(index, RIGHT, piece, out),
                None => return false,
            },
            State::Unlocked => return false,
        }
        true
    }

    fn right_anchor_again(&mut self, index: Index, out: &mut Outbox) -> bool {
        let Some(session) = self.table.get(index) else { return false };
        let Some(face) = &session.faces[LEFT] else { return false };
        if session.lock.as_ref().and_then(|lock| lock.anchored()) != Some(face.request) {
            return false;
        }
        let done = face.anchor.is_done();
        match face.anchor.reminder() {
            Some(piece) => self.introduce(index, LEFT, piece, out),
            None if done => self.tell(index, LEFT, None, true, out),
            None => return false,
        }
        true
    }
}

/// A side of the host that has not been an anchor before.
fn new_face(session: &Session, request: Request, numbers: [u32; 3], delta: u32) -> Box<Face> {
    let [sent, acknowledged, given] = numbers;
    let scales = [0, 1].map(|end: usize| scale_of(&session.opening.options[end]));
    let both = session
        .opening
        .options
        .iter()
        .all(|options| crate::segment::walk(options).any(|(at, length)| options[at] == 3 && length == 3));
    Box::new(Face {
        anchor: Anchor::new(sent, acknowledged, given, delta),
        request,
        hops: Vec::new(),
        new: None,
        scale: if both { scales } else { [0, 0] },
        other_is_done: false,
        attempts: 0,
        due: None,
    })
}
