//! What an agent knows of one session, as a plain value.
//!
//! A session has a path on each side of the agent's host at most: `left` towards the end that opened it, `right` towards the other. The
//! host gets the packets of the left path as `entering` and hands them out as `leaving`; they differ if the host is a box that changes
//! addresses or ports.

use crate::config::Fail;
use crate::message::{Exit, Hop};
use crate::segment::Segment;
use crate::tuple::Tuple;
use serde::{Deserialize, Serialize};
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_core::{FlowId, Time};

const SECOND: i64 = 1_000_000_000;

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
    pub const ALL: [Place; 4] = [Place::FromLeft, Place::FromRight, Place::HostRight, Place::HostLeft];

    /// The packets' direction.
    pub fn way(self) -> Way {
        match self {
            Place::FromLeft | Place::HostRight => Way::Right,
            Place::FromRight | Place::HostLeft => Way::Left,
        }
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
            Phase::TimeWait => 60 * SECOND,
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
        }
    }

    /// The headers that packets get which came in at a place; `None` if there is no way for them.
    pub fn onward(&self, place: Place) -> Option<Tuple> {
        match place {
            Place::FromLeft => Some(self.entering),
            Place::FromRight => Some(self.leaving.reversed()),
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
    pub fn observe(&mut self, way: Way, segment: &Segment, now: Time) {
        self.active = now;
        self.packets += 1;
        let [own, other] = match way {
            Way::Right => [0, 1],
            Way::Left => [1, 0],
        };
        let has = |flag| segment.flags.contains(flag);
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
            (Phase::Direct | Phase::Reset | Phase::TimeWait, _) => self.phase,
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
