//! The two ends of a TCP session or subsession, as the headers of one direction name them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use weftwire_core::fields::Fields;

/// Source and destination of the packets of one direction. Both are of one address family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Tuple {
    /// Where packets come from.
    pub source: SocketAddr,
    /// Where they go.
    pub destination: SocketAddr,
}

impl Tuple {
    /// Of these ends; `None` if their families differ.
    pub fn new(source: SocketAddr, destination: SocketAddr) -> Option<Tuple> {
        (source.is_ipv4() == destination.is_ipv4()).then_some(Tuple { source, destination })
    }

    /// That of the other direction.
    #[must_use]
    pub fn reversed(self) -> Tuple {
        Tuple { source: self.destination, destination: self.source }
    }

    /// Appends family, addresses and ports.
    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        bytes.push(family(self.source.ip()));
        for end in [self.source, self.destination] {
            write_octets(end.ip(), bytes);
        }
        for end in [self.source, self.destination] {
            bytes.extend(end.port().to_be_bytes());
        }
    }

    /// Reads what [`Tuple::write`] has written.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Tuple> {
        let family = fields.u8()?;
        let (source, destination) = (read_octets(family, fields)?, read_octets(family, fields)?);
        let ports = fields.array::<4>()?;
        let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
        Some(Tuple { source: SocketAddr::new(source, port(0)), destination: SocketAddr::new(destination, port(2)) })
    }
}

impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.source, self.destination)
    }
}

/// Appends family and address.
pub(crate) fn write_address(address: IpAddr, bytes: &mut Vec<u8>) {
    bytes.push(family(address));
    write_octets(address, bytes);
}

/// Reads what [`write_address`] has written.
pub(crate) fn read_address(fields: &mut Fields<'_>) -> Option<IpAddr> {
    let family = fields.u8()?;
    read_octets(family, fields)
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

fn write_octets(address: IpAddr, bytes: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => bytes.extend(address.octets()),
        IpAddr::V6(address) => bytes.extend(address.octets()),
    }
}

fn read_octets(family: u8, fields: &mut Fields<'_>) -> Option<IpAddr> {
    match family {
        4 => fields.array::<4>().map(|octets| Ipv4Addr::from(octets).into()),
        6 => fields.array::<16>().map(|octets| Ipv6Addr::from(octets).into()),
        _ => None,
    }
}
