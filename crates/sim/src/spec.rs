//! The small texts that say what to replay or run: durations, connections, and sources of packets.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;
use weftwire_capture::Headers;
use weftwire_core::{Endpoints, MacAddress, Time};
use weftwire_text::quantity::QuantityError;

pub use weftwire_text::quantity::parse_duration;

/// Why a text was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpecError {
    /// Not a duration.
    #[error(transparent)]
    Duration(#[from] QuantityError),
    /// Not `SRC:PORT-DST:PORT`.
    #[error("`{0}` is not a connection; write SRC:PORT-DST:PORT, such as 10.0.0.1:4000-10.0.0.2:80, {IPV6_HELP}")]
    Connection(String),
    /// Not an address with a port number.
    #[error("`{0}` is not an address with a port number; write 10.0.0.1:80 or [2001:db8::1]:80")]
    Endpoint(String),
    /// An IPv4 and an IPv6 address in one connection.
    #[error("{0} and {1} are not of one address family")]
    Families(IpAddr, IpAddr),
    /// Not `tcp` or `udp`.
    #[error("`{0}` is not a transport; write /tcp or /udp")]
    Protocol(String),
    /// Neither an IP nor an Ethernet address.
    #[error("`{0}` is neither an IP address nor an Ethernet address such as 02:00:00:00:00:01")]
    Source(String),
}

const IPV6_HELP: &str = "with IPv6 addresses in brackets, and /udp behind for UDP";

/// A connection to open, as `SRC:PORT-DST:PORT[/udp][@TIME]`: `SRC` is this end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connect {
    /// Both ends, as [`parse_connection`] gives them.
    pub endpoints: Endpoints,
    /// When, after the replay's start.
    pub at: Time,
}

impl FromStr for Connect {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Connect, SpecError> {
        let (rest, at) = match text.rsplit_once('@') {
            Some((rest, time)) => (rest, parse_duration(time)?),
            None => (text, Duration::ZERO),
        };
        Ok(Connect { endpoints: parse_connection(rest)?, at: Time::ZERO.plus(at) })
    }
}

/// The ends of a connection, written `SRC:PORT-DST:PORT[/udp]`: `SRC` is this end. The Ethernet addresses are zero.
///
/// # Errors
/// [`SpecError::Connection`], [`SpecError::Endpoint`], [`SpecError::Families`] or [`SpecError::Protocol`].
pub fn parse_connection(text: &str) -> Result<Endpoints, SpecError> {
    let (ends, protocol) = match text.rsplit_once('/') {
        None => (text, 6),
        Some((ends, "tcp")) => (ends, 6),
        Some((ends, "udp")) => (ends, 17),
        Some((_, other)) => return Err(SpecError::Protocol(other.to_owned())),
    };
    let (local, remote) = ends.split_once('-').ok_or_else(|| SpecError::Connection(text.to_owned()))?;
    let endpoint = |text: &str| text.parse::<SocketAddr>().map_err(|_| SpecError::Endpoint(text.to_owned()));
    let (local, remote) = (endpoint(local)?, endpoint(remote)?);
    if local.is_ipv4() != remote.is_ipv4() {
        return Err(SpecError::Families(local.ip(), remote.ip()));
    }
    Ok(Endpoints {
        protocol,
        local_address: local.ip(),
        local_port: local.port(),
        remote_address: remote.ip(),
        remote_port: remote.port(),
        local_mac: MacAddress::UNSPECIFIED,
        remote_mac: MacAddress::UNSPECIFIED,
        vlan: None,
    })
}

/// Which packets of a capture came from outside: those with this source address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// IP source address.
    Ip(IpAddr),
    /// Ethernet source address.
    Ethernet(MacAddress),
}

impl Source {
    /// Whether a packet has this source.
    pub fn matches(&self, packet: &Headers) -> bool {
        match self {
            Source::Ip(address) => packet.source == *address,
            Source::Ethernet(address) => packet.ethernet.is_some_and(|(source, _)| source == *address),
        }
    }
}

impl FromStr for Source {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Source, SpecError> {
        if let Ok(address) = text.parse() {
            return Ok(Source::Ip(address));
        }
        text.parse().map(Source::Ethernet).map_err(|_| SpecError::Source(text.to_owned()))
    }
}

impl fmt::Display for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends = &self.endpoints;
        let local = SocketAddr::new(ends.local_address, ends.local_port);
        let remote = SocketAddr::new(ends.remote_address, ends.remote_port);
        write!(f, "{local}-{remote}{}", if ends.protocol == 17 { "/udp" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connects() {
        let connect: Connect = "10.0.0.1:4000-10.0.0.2:80@1.5s".parse().unwrap();
        assert_eq!((connect.at.nanoseconds(), connect.endpoints.protocol), (1_500_000_000, 6));
        assert_eq!(connect.to_string(), "10.0.0.1:4000-10.0.0.2:80");
        let connect: Connect = "[2001:db8::1]:53-[2001:db8::2]:5353/udp".parse().unwrap();
        assert_eq!((connect.at.nanoseconds(), connect.endpoints.protocol, connect.endpoints.local_port), (0, 17, 53));
        assert_eq!(connect.to_string(), "[2001:db8::1]:53-[2001:db8::2]:5353/udp");
        assert!("10.0.0.1:1-10.0.0.2:2/tcp".parse::<Connect>().is_ok());
    }

    #[test]
    fn refused_connects_say_what_is_wrong() {
        for (text, part) in [
            ("10.0.0.1:4000", "SRC:PORT-DST:PORT"),
            ("10.0.0.1-10.0.0.2:80", "`10.0.0.1` is not an address with a port number"),
            ("2001:db8::1:53-[::1]:1", "[2001:db8::1]:80"),
            ("10.0.0.1:1-[::1]:1", "not of one address family"),
            ("10.0.0.1:1-10.0.0.2:1/sctp", "`sctp` is not a transport"),
            ("10.0.0.1:1-10.0.0.2:1@soon", "`soon` is not a duration"),
            ("10.0.0.1:70000-10.0.0.2:1", "`10.0.0.1:70000`"),
        ] {
            let error = text.parse::<Connect>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn sources() {
        assert_eq!("10.0.0.1".parse(), Ok(Source::Ip([10, 0, 0, 1].into())));
        assert_eq!("02:00:00:00:00:0a".parse(), Ok(Source::Ethernet(MacAddress([2, 0, 0, 0, 0, 10]))));
        for text in ["02:00:00:00:00", "02:00:00:00:00:01:02", "+2:00:00:00:00:01", "host"] {
            assert!(text.parse::<Source>().is_err(), "{text}");
        }
    }
}
