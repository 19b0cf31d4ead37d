//! What an agent is told: who it is, which agents there are, and which sessions go which way.

use crate::keys::Key;
use crate::message::{Exit, Hop, MOST_HOPS};
use crate::tuple::Tuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use weftwire_core::MacAddress;

/// An agent's configuration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The agent's own number, one of `agents`.
    pub agent: u16,
    /// All agents of the domain.
    pub agents: Vec<Registered>,
    /// Keys of the domain; the first one signs. Without any, messages are not authenticated.
    #[serde(default)]
    pub keys: Vec<Key>,
    /// Which sessions go through which boxes; the first one that matches counts.
    #[serde(default)]
    pub policies: Vec<Policy>,
    /// First and last port of subsessions.
    #[serde(default = "default_ports")]
    pub subsession_ports: [u16; 2],
    /// The Ethernet address that frames of subsessions go to. `None`: that which the host has chosen for the session.
    #[serde(default, with = "text")]
    pub gateway: Option<MacAddress>,
    /// Bytes kept free in every segment, for options that agents may add.
    #[serde(default = "default_reserve")]
    pub segment_reserve: u16,
    /// Most sessions at once.
    #[serde(default = "default_sessions")]
    pub most_sessions: u32,
    /// Most sessions at once that are being set up.
    #[serde(default = "default_half_open")]
    pub most_half_open: u32,
    /// Seconds without a packet until a session ends, once it is set up.
    #[serde(default = "default_idle")]
    pub idle_seconds: u32,
}

/// An agent that there is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registered {
    /// Its number.
    pub number: u16,
    /// Its addresses; the first of each family is where its subsessions end.
    pub addresses: Vec<IpAddr>,
}

/// Sessions and the boxes that they go through.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Addresses that sessions come from; without, all.
    #[serde(default, with = "text")]
    pub source: Option<Prefix>,
    /// Addresses that sessions go to; without, all.
    #[serde(default, with = "text")]
    pub destination: Option<Prefix>,
    /// First and last port that sessions go to; without, all.
    #[serde(default)]
    pub destination_ports: Option<[u16; 2]>,
    /// Agents of the boxes, in order.
    pub boxes: Vec<u16>,
    /// What becomes of a session whose chain can't be set up.
    #[serde(default)]
    pub fail: Fail,
    /// How packets go on behind the last box if the end host has no agent.
    #[serde(default)]
    pub exit: Exit,
    /// Subsessions have the session's destination port.
    #[serde(default)]
    pub keep_port: bool,
}

/// What becomes of a session whose chain can't be set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fail {
    /// It goes without the chain.
    Open,
    /// Its packets are dropped.
    #[default]
    Closed,
}

/// Addresses that begin alike, written `10.0.0.0/8`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// What is wrong with a configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// The agent's own number, or one that a policy names, is not registered.
    #[error("agent {0} is not among `agents`")]
    NotRegistered(u16),
    /// Two agents have one number, or an address.
    #[error("agent {0} is registered twice, or has the address of another")]
    Twice(u16),
    /// A policy names this agent itself.
    #[error("a policy of agent {0} has that agent among its boxes")]
    OwnBox(u16),
    /// A policy names a box twice.
    #[error("a policy names box {0} twice")]
    Loop(u16),
    /// A policy names too many boxes: the end host's agent needs a place too.
    #[error("a policy names {0} boxes; the most are {most}", most = MOST_HOPS - 1)]
    TooManyBoxes(usize),
    /// Fewer than two ports, or the last one is below the first.
    #[error("subsession ports {0} to {1} are no range of two at least")]
    Ports(u16, u16),
    /// Key number 0 is that of messages without a code; two keys have one number; or a secret is empty.
    #[error("key {0}: numbers are from 1 and differ, secrets are not empty")]
    Key(u8),
}

impl Config {
    /// Finds what is wrong.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        let named = |number| self.agents.iter().filter(move |agent| agent.number == number);
        for agent in &self.agents {
            let shares = |other: &&Registered| other.addresses.iter().any(|address| agent.addresses.contains(address));
            if named(agent.number).count() > 1 || self.agents.iter().filter(shares).count() > 1 {
                return Err(ConfigError::Twice(agent.number));
            }
        }
        let boxes = self.policies.iter().flat_map(|policy| policy.boxes.iter().copied());
        for number in boxes.chain([self.agent]) {
            named(number).next().ok_or(ConfigError::NotRegistered(number))?;
        }
        for policy in &self.policies {
            if policy.boxes.len() >= MOST_HOPS {
                return Err(ConfigError::TooManyBoxes(policy.boxes.len()));
            }
            for (at, number) in policy.boxes.iter().enumerate() {
                if *number == self.agent {
                    return Err(ConfigError::OwnBox(*number));
                }
                if policy.boxes[..at].contains(number) {
                    return Err(ConfigError::Loop(*number));
                }
            }
        }
        let [first, last] = self.subsession_ports;
        if first == 0 || last <= first {
            return Err(ConfigError::Ports(first, last));
        }
        for (at, key) in self.keys.iter().enumerate() {
            let twice = self.keys[..at].iter().any(|other| other.number == key.number);
            if key.number == 0 || twice || key.secret.is_empty() {
                return Err(ConfigError::Key(key.number));
            }
        }
        Ok(())
    }

    /// The hop to an agent for sessions of one family.
    pub(crate) fn hop(&self, number: u16, v4: bool) -> Option<Hop> {
        let agent = self.agents.iter().find(|agent| agent.number == number)?;
        let address = *agent.addresses.iter().find(|address| address.is_ipv4() == v4)?;
        Some(Hop { agent: number, address })
    }

    /// The agent that has an address.
    pub(crate) fn agent_at(&self, address: IpAddr) -> Option<u16> {
        self.agents.iter().find(|agent| agent.addresses.contains(&address)).map(|agent| agent.number)
    }

    /// The policy of a session.
    pub(crate) fn policy(&self, session: Tuple) -> Option<&Policy> {
        self.policies.iter().find(|policy| policy.matches(session))
    }

    /// Whether a port is one of subsessions.
    pub(crate) fn is_subsession_port(&self, port: u16) -> bool {
        (self.subsession_ports[0]..=self.subsession_ports[1]).contains(&port)
    }
}

impl Policy {
    fn matches(&self, session: Tuple) -> bool {
        let holds = |prefix: Option<Prefix>, address| prefix.is_none_or(|prefix| prefix.contains(address));
        holds(self.source, session.source.ip())
            && holds(self.destination, session.destination.ip())
            && self.destination_ports.is_none_or(|[first, last]| (first..=last).contains(&session.destination.port()))
    }
}

impl Prefix {
    /// Whether an address begins so.
    pub fn contains(self, address: IpAddr) -> bool {
        let bits = |address| match address {
            IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
            IpAddr::V6(address) => u128::from(address),
        };
        let different = bits(self.address) ^ bits(address);
        self.address.is_ipv4() == address.is_ipv4() && different.leading_zeros() >= u32::from(self.length)
    }
}

/// Not an address with the length of a prefix, or without.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no prefix; write 10.0.0.0/8 or 2001:db8::/32")]
pub struct NoPrefix(String);

impl FromStr for Prefix {
    type Err = NoPrefix;

    fn from_str(text: &str) -> Result<Prefix, NoPrefix> {
        let wrong = || NoPrefix(text.to_owned());
        let (address, length) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = if text.contains('/') { length.parse().map_err(|_| wrong())? } else { most };
        if length > most { Err(wrong()) } else { Ok(Prefix { address, length }) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Values that may be missing, by their text.
mod text {
    use super::{Deserialize, Deserializer, FromStr, Serializer, fmt};

    pub fn serialize<T: fmt::Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, T: FromStr<Err: fmt::Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
    }
}

fn default_ports() -> [u16; 2] {
    [61_000, 64_999]
}

fn default_reserve() -> u16 {
    12
}

fn default_sessions() -> u32 {
    1 << 20
}

fn default_half_open() -> u32 {
    1 << 14
}

fn default_idle() -> u32 {
    7_440
}
