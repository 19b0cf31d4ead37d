//! What agents tell each other in the payload of a segment: `docs/chains.md` has the layouts.
//!
//! A message is a prefix of the payload. What follows it is the sender's own data (TCP Fast Open) and stays. The authentication code is
//! checked before anything behind the fixed header is read.

use crate::keys::{Keys, MAC_LENGTH};
use crate::lock::{AgentId, Kind, Refusal, Request};
use crate::tuple::{Tuple, read_address, write_address};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use weftwire_core::fields::Fields;

/// How a message begins.
pub const MAGIC: [u8; 4] = [0x57, 0xc4, 0xa1, 0x7e];
/// The version of the layouts.
pub const VERSION: u8 = 1;
/// Bytes of the header that all messages have.
pub const HEADER_LENGTH: usize = 32;
/// Most hops of a list.
pub const MOST_HOPS: usize = 16;

const SESSION_LIST: u8 = 1;
const CONFIRMATION: u8 = 2;
const LOCK: u8 = 3;
const BETA: u8 = 4;

/// An agent, by number and address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Hop {
    /// The agent's number in its domain.
    pub agent: u16,
    /// Where its subsessions end.
    pub address: IpAddr,
}

/// How packets go on behind the last agent of a chain if the end host has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With the original header: the agent lies on the way of both directions.
    #[default]
    Route,
    /// From the agent's own address, so that answers come back to it.
    Nat,
}

/// What all messages say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The agent that sends it.
    pub from: u16,
    /// The agent that it is for.
    pub to: u16,
    /// The session, the same at all its agents. The agent that began it has drawn the number.
    pub session: u64,
    /// Counts up with each new message of the sender; repetitions have the number of the first.
    pub counter: u64,
}

/// A chain that a SYN sets up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionList {
    /// Sender, receiver, session.
    pub header: Header,
    /// The SYN's sequence number.
    pub initial_sequence: u32,
    /// What the session's packets have in their headers where the sender's host has handed them out.
    pub session: Tuple,
    /// What the sender has written into the SYN's headers. A network address translator on the way makes it differ from what they hold.
    pub subsession: Tuple,
    /// How the chain ends.
    pub exit: Exit,
    /// The agents behind the receiver, next one first.
    pub rest: Vec<Hop>,
    /// The subsessions are to take the place of others of the session.
    pub change: Option<NewPath>,
}

/// A new path for a segment of a chain, whose right anchor is the last agent of its list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NewPath {
    /// The request that was granted.
    pub request: Request,
    /// The number behind that of the left anchor's SYN, as it has sent it.
    pub begins: u32,
}

/// What the lock protocol says to a neighbour: see [`crate::lock`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockMessage {
    /// Sender, receiver, session.
    pub header: Header,
    /// What it says.
    pub kind: Kind,
    /// About which request.
    pub request: Request,
    /// What is added to numbers of the anchor that it comes from, to have those of the subsession that it comes by.
    pub delta: u32,
}

/// What one anchor tells the other one of the new path, from agent to agent along that path: see [`crate::paths`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BetaMessage {
    /// Sender, receiver, session.
    pub header: Header,
    /// The request.
    pub request: Request,
    /// The beta of the anchor that it comes from, if the other may not know it.
    pub beta: Option<u32>,
    /// Whether that anchor knows the other's.
    pub knows: bool,
    /// Whether nothing is left for it on the old path.
    pub is_done: bool,
}

/// The answer of an agent that its part of the chain, and all behind it, is set up or refused by the end host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confirmation {
    /// Sender, receiver, session. The counter is that of the list that it answers.
    pub header: Header,
    /// The agents that have confirmed, the sender first.
    pub agents: Vec<u16>,
    /// The answer's sequence number.
    pub initial_sequence: u32,
    /// The number behind that of the answer's SYN, as the agent has sent it that made the answer: the last one, or the right anchor of a change.
    pub begins: u32,
    /// The subsession's packets as they arrive at the sender: a network address translator on the way has changed them.
    pub arrives_as: Tuple,
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Sets up a chain.
    List(SessionList),
    /// Answers a list.
    Confirmation(Confirmation),
    /// Locks a segment of a chain, or frees it.
    Lock(LockMessage),
    /// Tells of the new path of a segment.
    Beta(BetaMessage),
}

/// Why bytes that begin like a message are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MessageError {
    /// They end within the message.
    #[error("the message is cut short")]
    Truncated,
    /// Another version.
    #[error("the message has another version")]
    Version,
    /// The authentication code is wrong, missing, or by no key that is known.
    #[error("the message is not authentic")]
    NotAuthentic,
    /// It is for another agent.
    #[error("the message is for another agent")]
    NotForUs,
    /// It is authentic, but no message of this version.
    #[error("the message is malformed")]
    Malformed,
}

impl MessageError {
    /// The name that counters have.
    pub fn name(self) -> &'static str {
        match self {
            MessageError::Truncated => "message_truncated",
            MessageError::Version => "message_version",
            MessageError::NotAuthentic => "message_not_authentic",
            MessageError::NotForUs => "message_not_for_us",
            MessageError::Malformed => "message_malformed",
        }
    }
}

/// Whether a payload begins like a message.
pub fn begins_message(payload: &[u8]) -> bool {
    payload.starts_with(&MAGIC)
}

/// Reads the message at the start of a payload, for this agent. The second value is the message's length.
///
/// # Errors
/// See [`MessageError`]. Nothing behind the header is read before the code was found right.
pub fn read(payload: &[u8], own: u16, keys: &Keys) -> Result<(Message, usize), MessageError> {
    let header = payload.get(..HEADER_LENGTH).ok_or(MessageError::Truncated)?;
    let (version, kind, key) = (header[4], header[5], header[6]);
    if !begins_message(payload) || version != VERSION {
        return Err(MessageError::Version);
    }
    let length = usize::from(u16::from_be_bytes([header[8], header[9]]));
    let code_length = if key == 0 { 0 } else { MAC_LENGTH };
    let whole = payload.get(..length).filter(|whole| whole.len() >= HEADER_LENGTH + code_length);
    let (signed, code) = whole.ok_or(MessageError::Truncated)?.split_at(length - code_length);
    // Fixed places: see `write`.
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
    let from = u16::from_be_bytes([header[10], header[11]]);
    let to = u16::from_be_bytes([header[12], header[13]]);
    if !keys.vouch(key, from, to, signed, code) {
        return Err(MessageError::NotAuthentic);
    }
    if to != own {
        return Err(MessageError::NotForUs);
    }
    let header = Header { from, to, session: long(16), counter: long(24) };
    let body = &mut Fields::new(&signed[HEADER_LENGTH..]);
    let message = match kind {
        SESSION_LIST => read_list(header, body).map(Message::List),
        CONFIRMATION => read_confirmation(header, body).map(Message::Confirmation),
        LOCK => read_lock(header, body).map(Message::Lock),
        BETA => read_beta(header, body).map(Message::Beta),
        _ => None,
    };
    match message {
        Some(message) if body.is_empty() => Ok((message, length)),
        _ => Err(MessageError::Malformed),
    }
}

fn read_list(header: Header, body: &mut Fields<'_>) -> Option<SessionList> {
    let initial_sequence = body.array().map(u32::from_be_bytes)?;
    let (session, subsession) = (Tuple::read(body)?, Tuple::read(body)?);
    let exit = match body.u8()? {
        0 => Exit::Route,
        1 => Exit::Nat,
        _ => return None,
    };
    let count = usize::from(body.u8()?);
    if count > MOST_HOPS || session.source.is_ipv4() != subsession.source.is_ipv4() {
        return None;
    }
    let rest =
        (0..count).map(|_| Some(Hop { agent: body.array().map(u16::from_be_bytes)?, address: read_address(body)? }));
    let rest = rest.collect::<Option<Vec<_>>>()?;
    let one_family = rest.iter().all(|hop| hop.address.is_ipv4() == session.source.is_ipv4());
    let change = match body.u8()? {
        0 => None,
        1 => Some(NewPath { request: read_request(body)?, begins: body.array().map(u32::from_be_bytes)? }),
        _ => return None,
    };
    one_family.then_some(SessionList { header, initial_sequence, session, subsession, exit, rest, change })
}

fn read_request(body: &mut Fields<'_>) -> Option<Request> {
    let mut agent = || body.array().map(u16::from_be_bytes).map(|number| AgentId(number.into()));
    let (left, right) = (agent()?, agent()?);
    Some(Request { left, right, epoch: body.array().map(u32::from_be_bytes)? })
}

fn read_lock(header: Header, body: &mut Fields<'_>) -> Option<LockMessage> {
    let kind = body.u8()?;
    let kind = KINDS.iter().find(|(number, _)| *number == kind)?.1;
    Some(LockMessage { header, kind, request: read_request(body)?, delta: body.array().map(u32::from_be_bytes)? })
}

fn read_beta(header: Header, body: &mut Fields<'_>) -> Option<BetaMessage> {
    let request = read_request(body)?;
    let flags = body.u8().filter(|flags| *flags < 8)?;
    let beta = body.array().map(u32::from_be_bytes)?;
    Some(BetaMessage {
        header,
        request,
        beta: (flags & 1 != 0).then_some(beta),
        knows: flags & 2 != 0,
        is_done: flags & 4 != 0,
    })
}

/// What lock messages say, by number.
const KINDS: [(u8, Kind); 11] = [
    (1, Kind::Request),
    (2, Kind::Ack),
    (3, Kind::Nack(Refusal::Busy)),
    (4, Kind::Nack(Refusal::NoRightAnchor)),
    (5, Kind::Nack(Refusal::Ended)),
    (6, Kind::Nack(Refusal::Full)),
    (7, Kind::Held),
    (8, Kind::Cancel),
    (9, Kind::Cancelled),
    (10, Kind::Release),
    (11, Kind::Released),
];

/// Appends a request. Agents have numbers of 16 bits.
fn write_request(request: Request, bytes: &mut Vec<u8>) {
    bytes.extend((request.left.0 as u16).to_be_bytes());
    bytes.extend((request.right.0 as u16).to_be_bytes());
    bytes.extend(request.epoch.to_be_bytes());
}

fn read_confirmation(header: Header, body: &mut Fields<'_>) -> Option<Confirmation> {
    let count = usize::from(body.u8()?);
    if count > MOST_HOPS + 1 {
        return None;
    }
    let agents = (0..count).map(|_| body.array().map(u16::from_be_bytes)).collect::<Option<Vec<_>>>()?;
    let initial_sequence = body.array().map(u32::from_be_bytes)?;
    let begins = body.array().map(u32::from_be_bytes)?;
    Some(Confirmation { header, agents, initial_sequence, begins, arrives_as: Tuple::read(body)? })
}

impl Message {
    /// The message's bytes, signed by the keys' first. Hops are at most [`MOST_HOPS`].
    pub fn write(&self, keys: &Keys) -> Vec<u8> {
        let (kind, header) = match self {
            Message::List(list) => (SESSION_LIST, list.header),
            Message::Confirmation(confirmation) => (CONFIRMATION, confirmation.header),
            Message::Lock(lock) => (LOCK, lock.header),
            Message::Beta(beta) => (BETA, beta.header),
        };
        let key = keys.signing();
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(MAGIC);
        bytes.extend([VERSION, kind, key, 0, 0, 0]);
        bytes.extend(header.from.to_be_bytes());
        bytes.extend(header.to.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(header.session.to_be_bytes());
        bytes.extend(header.counter.to_be_bytes());
        match self {
            Message::List(list) => {
                bytes.extend(list.initial_sequence.to_be_bytes());
                list.session.write(&mut bytes);
                list.subsession.write(&mut bytes);
                bytes.push(match list.exit {
                    Exit::Route => 0,
                    Exit::Nat => 1,
                });
                bytes.push(list.rest.len() as u8);
                for hop in &list.rest {
                    bytes.extend(hop.agent.to_be_bytes());
                    write_address(hop.address, &mut bytes);
                }
                bytes.push(list.change.is_some().into());
                if let Some(change) = list.change {
                    write_request(change.request, &mut bytes);
                    bytes.extend(change.begins.to_be_bytes());
                }
            }
            Message::Confirmation(confirmation) => {
                bytes.push(confirmation.agents.len() as u8);
                confirmation.agents.iter().for_each(|agent| bytes.extend(agent.to_be_bytes()));
                bytes.extend(confirmation.initial_sequence.to_be_bytes());
                bytes.extend(confirmation.begins.to_be_bytes());
                confirmation.arrives_as.write(&mut bytes);
            }
            Message::Lock(lock) => {
                bytes.extend(KINDS.iter().find(|(_, kind)| *kind == lock.kind).map(|(number, _)| *number));
                write_request(lock.request, &mut bytes);
                bytes.extend(lock.delta.to_be_bytes());
            }
            Message::Beta(beta) => {
                write_request(beta.request, &mut bytes);
                bytes.push(u8::from(beta.beta.is_some()) | u8::from(beta.knows) << 1 | u8::from(beta.is_done) << 2);
                bytes.extend(beta.beta.unwrap_or(0).to_be_bytes());
            }
        }
        let length = bytes.len() + if key == 0 { 0 } else { MAC_LENGTH };
        bytes[8..10].copy_from_slice(&(length as u16).to_be_bytes());
        if let Some(code) = keys.code(key, header.from, header.to, &bytes) {
            bytes.extend(code);
        }
        bytes
    }
}
