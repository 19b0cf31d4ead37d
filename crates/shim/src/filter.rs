//! What a host looks at in a packet before its machine does: whether it is for this host, and whether it asks for a connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A packet's destination, as far as a host needs to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Destination {
    /// The address; the port number is 0 in what has none.
    pub address: SocketAddr,
    /// It is the first segment of a connection.
    pub opens: bool,
}

const TCP: u8 = 6;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const RST: u8 = 0x04;

/// Reads a packet's destination. `None`: it is no whole packet of IPv4 or IPv6.
pub fn destination(packet: &[u8]) -> Option<Destination> {
    let (address, protocol, transport): (IpAddr, u8, &[u8]) = match packet.first()? >> 4 {
        4 => {
            let address: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            let header = usize::from(packet[0] & 0x0f) * 4;
            (Ipv4Addr::from(address).into(), packet[9], packet.get(header..)?)
        }
        6 => {
            let address: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            (Ipv6Addr::from(address).into(), packet[6], packet.get(40..)?)
        }
        _ => return None,
    };
    let port = transport.get(2..4).map_or(0, |port| u16::from_be_bytes([port[0], port[1]]));
    let flags = transport.get(13).filter(|_| protocol == TCP).copied().unwrap_or(ACK);
    Some(Destination { address: SocketAddr::new(address, port), opens: flags & (SYN | ACK | RST) == SYN })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_of_both_families_are_read() {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[9] = TCP;
        packet[16..20].copy_from_slice(&[10, 0, 0, 1]);
        packet[22..24].copy_from_slice(&8080_u16.to_be_bytes());
        packet[33] = SYN;
        let expected = Destination { address: "10.0.0.1:8080".parse().unwrap(), opens: true };
        assert_eq!(destination(&packet), Some(expected));
        packet[33] = SYN | ACK;
        assert_eq!(destination(&packet).map(|it| it.opens), Some(false));

        let mut packet = vec![0; 60];
        packet[0] = 0x60;
        packet[6] = TCP;
        packet[39] = 1;
        packet[43] = 80;
        packet[53] = SYN;
        let expected = Destination { address: "[::1]:80".parse().unwrap(), opens: true };
        assert_eq!(destination(&packet), Some(expected));
    }

    #[test]
    fn what_is_cut_short_is_none() {
        for packet in [&[][..], &[0x45; 10], &[0x60; 39], &[0x25; 60]] {
            assert_eq!(destination(packet), None, "{packet:?}");
        }
    }
}
