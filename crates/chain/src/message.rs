//! What agents tell each other in the payload of a segment: `docs/chains.md` has the layouts.
//!
//! A message is a prefix of the payload. What follows it is the sender's own data (TCP Fast Open) and stays. The authentication code is
//! checked before anything behind the fixed header is read.

use crate::keys::{Keys, MAC_LENGTH};
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
}

/// The answer of an agent that its part of the chain, and all behind it, is set up or refused by the end host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confirmation {
    /// Sender, receiver, session. The counter is that of the list that it answers.
    pub header: Header,
    /// The agents that have confirmed, the sender first.
    pub agents: Vec<u16>,
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
    one_family.then_some(SessionList { header, initial_sequence, session, subsession, exit, rest })
}

fn read_confirmation(header: Header, body: &mut Fields<'_>) -> Option<Confirmation> {
    let count = usize::from(body.u8()?);
    if count > MOST_HOPS + 1 {
        return None;
    }
    let agents = (0..count).map(|_| body.array().map(u16::from_be_bytes)).collect::<Option<Vec<_>>>()?;
    Some(Confirmation { header, agents, arrives_as: Tuple::read(body)? })
}

impl Message {
    /// The message's bytes, signed by the keys' first. Hops are at most [`MOST_HOPS`].
    pub fn write(&self, keys: &Keys) -> Vec<u8> {
        let (kind, header) = match self {
            Message::List(list) => (SESSION_LIST, list.header),
            Message::Confirmation(confirmation) => (CONFIRMATION, confirmation.header),
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
            }
            Message::Confirmation(confirmation) => {
                bytes.push(confirmation.agents.len() as u8);
                confirmation.agents.iter().for_each(|agent| bytes.extend(agent.to_be_bytes()));
                confirmation.arrives_as.write(&mut bytes);
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
