//! What an agent knows of one session, as a plain value.
//!
//! A session has a path on each side of the agent's host at most: `left` towards the end that opened it, `right` towards the other. The
//! host gets the packets of the left path as `entering` and hands them out as `leaving`; they differ if the host is a box that changes
//! addresses or ports.

use crate::config::Fail;
use crate::face::Face;
use crate::lock::{Lock, Request};
use crate::message::{Exit, Hop, NewPath};
use crate::paths::Side;
use crate::segment::Segment;
use crate::tuple::Tuple;
use serde::{Deserialize, Serialize};
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_core::{FlowId, Time};

const SECOND: i64 = 1_000_000_000;
/// The host's side towards the end that opened the session.
pub const LEFT: usize = 0;
/// Its side towards the other end.
pub const RIGHT: usize = 1;

/// One session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Session {
    /// Its number within this agent.
    pub flow: FlowId,
    /// Its number in messages.
    pub number: u64,
    /// The sequence number of its SYN, as this agent saw it first.
    pub initial_sequence: u32,
    /// Its packets to the right as the host gets them.
    pub entering: Tuple,
    /// Its packets to the right as the host hands them out.
    pub leaving: Tuple,
    /// The subsession to the left; `None` at the first agent.
    pub left: Option<Path>,
    /// The subsession to the right; `None` at the last agent, and until the host has handed out the SYN.
    pub right: Option<Path>,
    /// Agents to the right, next one first.
    pub rest: Vec<Hop>,
    /// How the chain ends.
    pub exit: Exit,
    /// Subsessions to the right have the session's destination port.
    pub keep_port: bool,
    /// What becomes of it without its chain; only the first agent decides.
    pub fail: Option<Fail>,
    /// The tag that its SYN has within the host.
    pub tag: Option<u32>,
    /// How far it is.
    pub phase: Phase,
    /// What the end that opened it has sent, and what the other has.
    pub sent: [Sent; 2],
    /// SYNs sent to the right with a list.
    pub lists: u32,
    /// When it began.
    pub created: Time,
    /// Its latest packet.
    pub active: Time,
    /// Its packets so far.
    pub packets: u64,
    /// The number of the SYN that opened it, and of the answer to that, on the host's left face and on its right one.
    pub initial: [[u32; 2]; 2],
    /// What the latest segment of each end said beside its numbers.
    pub latest: [Latest; 2],
    /// What a new path of it begins with.
    pub opening: Opening,
    /// The new path, for a box that a change has put into the chain.
    pub change: Option<NewPath>,
    /// Who may change which segment; `None` until somebody asks.
    pub lock: Option<Box<Lock>>,
    /// Requests of others on their way to the right, with what they have added up.
    pub asked: Vec<(Request, u32)>,
    /// This agent as an anchor of changes, to the left and to the right.
    pub faces: [Option<Box<Face>>; 2],
    /// The path to the left that another one has replaced: its messages are still answered.
    pub past: Option<Path>,
}

/// What a segment says beside its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Latest {
    /// Window, as it is in the header.
    pub window: u16,
    /// Time stamp (RFC 7323).
    pub stamp: Option<u32>,
}

/// What the first two segments of a session said, for those of a new path.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Opening {
    /// Options of the SYN and of its answer.
    pub options: [Vec<u8>; 2],
    /// What frames of the host have in front of the IP header.
    pub link: Vec<u8>,
}

/// A subsession.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Path {
    /// Its packets to the right as they are on this side of the network.
    pub tuple: Tuple,
    /// The agent at its other end; `None` behind the last agent.
    pub agent: Option<u16>,
    /// The counter of the list that set it up.
    pub counter: u64,
    /// To the right: agents that have confirmed the chain. To the left: empty.
    pub confirmed: Vec<u16>,
    /// What the network between the two agents adds to numbers to the right, and to the left, as far as this end sees it.
    pub shift: [u32; 2],
    /// To the right: the number that a new path's right anchor has begun with.
    pub begins: u32,
}

/// How far a session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Phase {
    /// A SYN has come.
    Opening,
    /// The other end has answered by SYN and ACK.
    Answered,
    /// Both ends have.
    Open,
    /// One end has said that it sends no more.
    HalfClosed,
    /// Both have; the last is not acknowledged.
    Closing,
    /// All is acknowledged.
    TimeWait,
    /// An end has broken it off.
    Reset,
    /// It goes without its chain.
    Direct,
    /// It goes on without this agent.
    Left,
}

/// What one end has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Sent {
    /// The sequence number behind the last byte; `None` before the first segment.
    pub end: Option<u32>,
    /// The latest acknowledgment number.
    pub acknowledged: Option<u32>,
    /// The sequence number behind FIN.
    pub fin: Option<u32>,
}

/// A direction of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the end that opened it.
    Right,
    /// To the end that opened it.
    Left,
}

/// Where a packet of a session comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// From the network, by the left subsession.
    FromLeft,
    /// From the network, by the right subsession.
    FromRight,
    /// From the host, to the right.
    HostRight,
    /// From the host, to the left.
    HostLeft,
    /// From the network, by the path that is to replace the left one.
    NewLeft,
    /// From the network, by the path that is to replace the right one.
    NewRight,
    /// From the network, by a path to the left that was replaced.
    PastLeft,
}

impl Path {
    /// One that is being set up.
    pub fn new(tuple: Tuple, agent: Option<u16>, counter: u64) -> Path {
        Path { tuple, agent, counter, confirmed: Vec::new(), shift: [0; 2], begins: 0 }
    }
}

impl Way {
    /// The other one.
    #[must_use]
    pub fn reversed(self) -> Way {
        match self {
            Way::Right => Way::Left,
            Way::Left => Way::Right,
        }
    }
}

impl Place {
    /// All places.
    pub const ALL: [Place; 7] = [
        Place::FromLeft,
        Place::FromRight,
        Place::HostRight,
        Place::HostLeft,
        Place::NewLeft,
        Place::NewRight,
        Place::PastLeft,
    ];

    /// The packets' direction.
    pub fn way(self) -> Way {
        match self {
            Place::FromLeft | Place::HostRight | Place::NewLeft | Place::PastLeft => Way::Right,
            Place::FromRight | Place::HostLeft | Place::NewRight => Way::Left,
        }
    }

    /// On which side of the host it is.
    pub fn face(self) -> usize {
        match self {
            Place::FromLeft | Place::HostLeft | Place::NewLeft | Place::PastLeft => LEFT,
            Place::FromRight | Place::HostRight | Place::NewRight => RIGHT,
        }
    }

    /// By which of two paths they come, or go.
    pub fn side(self) -> Side {
        if matches!(self, Place::NewLeft | Place::NewRight) { Side::New } else { Side::Old }
    }

    /// Whether they come from the host.
    pub fn is_host(self) -> bool {
        matches!(self, Place::HostRight | Place::HostLeft)
    }
}

impl Phase {
    /// The name as lists show it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Opening => "opening",
            Phase::Answered => "answered",
            Phase::Open => "open",
            Phase::HalfClosed => "half_closed",
            Phase::Closing => "closing",
            Phase::TimeWait => "time_wait",
            Phase::Reset => "reset",
            Phase::Direct => "direct",
            Phase::Left => "left",
        }
    }

    /// Whether it is being set up.
    pub fn is_half_open(self) -> bool {
        matches!(self, Phase::Opening | Phase::Answered)
    }

    /// Nanoseconds without a packet until it ends.
    fn patience(self, idle_seconds: u32) -> i64 {
        match self {
            // Longer than the longest pause between SYNs of Linux.
            Phase::Opening | Phase::Answered => 75 * SECOND,
            Phase::Open | Phase::HalfClosed | Phase::Direct => i64::from(idle_seconds) * SECOND,
            // Twice the maximum segment lifetime as RFC 9293 has it, section 3.4.2.
            Phase::Closing => 240 * SECOND,
            // As long as Linux waits.
            Phase::TimeWait | Phase::Left => 60 * SECOND,
            Phase::Reset => 5 * SECOND,
        }
    }
}

impl Session {
    /// The headers of packets that come in at a place; `None` if none can.
    pub fn key(&self, place: Place) -> Option<Tuple> {
        match place {
            Place::FromLeft => self.left.as_ref().map(|path| path.tuple),
            Place::FromRight => self.right.as_ref().map(|path| path.tuple.reversed()),
            Place::HostRight => (!self.ends_here()).then_some(self.leaving),
            Place::HostLeft => self.left.as_ref().map(|_| self.entering.reversed()),
            Place::NewLeft => self.new_path(LEFT).map(|path| path.tuple),
            Place::NewRight => self.new_path(RIGHT).map(|path| path.tuple.reversed()),
            Place::PastLeft => self.past.as_ref().map(|path| path.tuple),
        }
    }

    /// The path that is to replace that of a face.
    pub fn new_path(&self, face: usize) -> Option<&Path> {
        self.faces[face].as_ref()?.new.as_ref()
    }

    /// What the host adds to numbers on their way through it: those of the end that opened the session to the right, the other's to the left.
    pub fn host_shift(&self, way: Way) -> u32 {
        match way {
            _ if self.left.is_none() || self.right.is_none() => 0,
            Way::Right => self.initial[RIGHT][0].wrapping_sub(self.initial[LEFT][0]),
            Way::Left => self.initial[LEFT][1].wrapping_sub(self.initial[RIGHT][1]),
        }
    }

    /// The face whose numbers are those of [`Session::sent`].
    fn main_face(&self) -> usize {
        if self.left.is_none() || self.right.is_some() { RIGHT } else { LEFT }
    }

    /// What the host has sent on a face, what of it was acknowledged there, and what it has acknowledged: numbers of that face.
    pub fn numbers(&self, face: usize) -> Option<[u32; 3]> {
        let [own, other] = if face == RIGHT { [0, 1] } else { [1, 0] };
        let numbers = [self.sent[own].end?, self.sent[other].acknowledged?, self.sent[own].acknowledged?];
        if face == self.main_face() {
            return Some(numbers);
        }
        // On the left face, and the numbers are those of the right one.
        let own = self.host_shift(Way::Left);
        let other = self.host_shift(Way::Right);
        Some([numbers[0].wrapping_add(own), numbers[1].wrapping_add(own), numbers[2].wrapping_sub(other)])
    }

    /// The headers that packets get which came in at a place; `None` if there is no way for them.
    pub fn onward(&self, place: Place) -> Option<Tuple> {
        match place {
            Place::FromLeft | Place::NewLeft => Some(self.entering),
            Place::FromRight | Place::NewRight => Some(self.leaving.reversed()),
            Place::PastLeft => None,
            Place::HostRight => self.right.as_ref().map(|path| path.tuple),
            Place::HostLeft => self.left.as_ref().map(|path| path.tuple.reversed()),
        }
    }

    /// Whether this agent's host is the session's end on the right: the host hands nothing on.
    fn ends_here(&self) -> bool {
        self.left.is_some() && self.tag.is_none()
    }

    /// When it is over unless a packet comes.
    pub fn expires(&self, idle_seconds: u32) -> Time {
        self.active.after(self.phase.patience(idle_seconds))
    }

    /// Whether the chain to the right is confirmed, or needs no confirmation.
    pub fn is_confirmed(&self) -> bool {
        self.right.as_ref().is_some_and(|path| path.agent.is_none() || !path.confirmed.is_empty())
    }

    /// Takes note of a segment, and goes to another phase.
    pub fn observe(&mut self, place: Place, segment: &Segment, latest: Latest, now: Time) {
        self.packets += 1;
        if self.phase == Phase::Left {
            return;
        }
        self.active = now;
        let way = place.way();
        let [own, other] = match way {
            Way::Right => [0, 1],
            Way::Left => [1, 0],
        };
        let has = |flag| segment.flags.contains(flag);
        if has(TcpFlags::SYN) {
            self.initial[place.face()][own] = segment.sequence;
        }
        if place.face() != self.main_face() && !has(TcpFlags::RST) {
            return;
        }
        self.latest[own] = latest;
        if has(TcpFlags::RST) {
            // Only the exact number ends a connection for sure (RFC 5961, section 3.2), or the answer to a SYN.
            let exact = self.sent[other].acknowledged == Some(segment.sequence);
            let refused = has(TcpFlags::ACK) && self.sent[other].end == Some(segment.acknowledgment);
            if exact || refused && self.phase == Phase::Opening {
                self.phase = Phase::Reset;
            }
            return;
        }
        let end = segment.sequence.wrapping_add(segment.length());
        let sent = &mut self.sent[own];
        raise(&mut sent.end, end);
        if has(TcpFlags::ACK) {
            raise(&mut sent.acknowledged, segment.acknowledgment);
        }
        if has(TcpFlags::FIN) {
            sent.fin = Some(end);
        }
        self.phase = self.next_phase(way, segment.flags);
    }

    fn next_phase(&self, way: Way, flags: TcpFlags) -> Phase {
        let is_acked = |own: usize, other: usize| match (self.sent[own].fin, self.sent[other].acknowledged) {
            (Some(fin), Some(acknowledged)) => !is_behind(fin, acknowledged),
            _ => false,
        };
        let opens = way == Way::Right && flags.contains(TcpFlags::ACK);
        match (self.phase, self.sent.map(|sent| sent.fin.is_some())) {
            (Phase::Direct | Phase::Reset | Phase::TimeWait | Phase::Left, _) => self.phase,
            (_, [true, true]) if is_acked(0, 1) && is_acked(1, 0) => Phase::TimeWait,
            (_, [true, true]) => Phase::Closing,
            (_, [true, false] | [false, true]) => Phase::HalfClosed,
            (Phase::Opening, _) if way == Way::Left && flags.contains(TcpFlags::SYN.with(TcpFlags::ACK)) => {
                Phase::Answered
            }
            (Phase::Answered, _) if opens => Phase::Open,
            (phase, _) => phase,
        }
    }

    /// Whether a sequence number that an ICMP error quotes is of bytes under way (RFC 5927, section 4.1).
    pub fn is_under_way(&self, way: Way, sequence: u32) -> bool {
        let (own, other) = match way {
            Way::Right => (self.sent[0], self.sent[1]),
            Way::Left => (self.sent[1], self.sent[0]),
        };
        let begins = other.acknowledged.is_none_or(|acknowledged| !is_behind(acknowledged, sequence));
        begins && own.end.is_some_and(|end| is_behind(end, sequence))
    }
}

/// Whether a sequence number lies behind another one (RFC 9293, section 3.4).
pub(crate) fn is_behind(number: u32, other: u32) -> bool {
    number.wrapping_sub(other) as i32 > 0
}

fn raise(highest: &mut Option<u32>, number: u32) {
    if highest.is_none_or(|highest| is_behind(number, highest)) {
        *highest = Some(number);
    }
}
