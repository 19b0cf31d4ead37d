//! ICMP and ICMPv6 errors, and the packets that they quote (RFC 792, RFC 1191, RFC 4443).

use super::builder::{FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
use super::ipv4::IPV4_LENGTH;
use super::ipv6::IPV6_LENGTH;
use super::{PROTOCOL_TCP, PROTOCOL_UDP};
use crate::drop_reason::DropReason;
use std::net::{Ipv4Addr, Ipv6Addr};

/// IP protocol number of ICMP.
pub const PROTOCOL_ICMP: u8 = 1;
/// IP protocol number of ICMPv6.
pub const PROTOCOL_ICMPV6: u8 = 58;

/// Type, code, checksum and four bytes that depend on the type.
const HEADER: usize = 8;
/// What an error quotes of the transport at least: ports and the word behind them.
const QUOTED: usize = 8;

const UNREACHABLE: u8 = 3;
const FRAGMENTATION_NEEDED: u8 = 4;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;
const PACKET_TOO_BIG: u8 = 2;
/// ICMPv6 messages with lower types are errors.
const FIRST_INFORMATION: u8 = 128;

/// An error about a packet of TCP or UDP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IcmpError {
    /// Its type: those of ICMP and of ICMPv6 differ.
    pub kind: u8,
    /// Its code.
    pub code: u8,
    /// What fits the link that the packet was too big for, in bytes with the IP header; 0 if that is not what it says.
    pub mtu: u32,
    /// The packet that it is about, without link header. Of the transport it has what every error quotes, ports and for
    /// TCP the sequence number; all else there is 0.
    pub about: Vec<u8>,
}

impl IcmpError {
    /// Reads what follows an IPv4 header, whose checksum has been found right. `None`: not an error, not about TCP or UDP,
    /// about a later fragment, or cut short.
    pub fn of_ipv4(message: &[u8]) -> Option<IcmpError> {
        let (header, quoted) = message.split_first_chunk::<HEADER>()?;
        let (kind, code) = (header[0], header[1]);
        if !matches!(kind, UNREACHABLE | TIME_EXCEEDED | PARAMETER_PROBLEM) {
            return None;
        }
        let ip = quoted.get(..IPV4_LENGTH)?;
        let length = usize::from(ip[0] & 15) * 4;
        let first = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff == 0;
        if ip[0] >> 4 != 4 || length < IPV4_LENGTH || !first {
            return None;
        }
        let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
        let fields = Ipv4Fields { source: address(12), destination: address(16), ..Ipv4Fields::default() };
        let about = transport(FrameBuilder::raw_ip().ipv4(&fields), ip[9], quoted.get(length..)?)?;
        let too_big = kind == UNREACHABLE && code == FRAGMENTATION_NEEDED;
        let mtu = if too_big { u16::from_be_bytes([header[6], header[7]]).into() } else { 0 };
        Some(IcmpError { kind, code, mtu, about })
    }

    /// As [`IcmpError::of_ipv4`], of what follows an IPv6 header and its extension headers. Packets quoted with extension
    /// headers are not understood.
    pub fn of_ipv6(message: &[u8]) -> Option<IcmpError> {
        let (header, quoted) = message.split_first_chunk::<HEADER>()?;
        let (kind, code) = (header[0], header[1]);
        let (ip, rest) = quoted.split_first_chunk::<IPV6_LENGTH>()?;
        if kind >= FIRST_INFORMATION || ip[0] >> 4 != 6 {
            return None;
        }
        let address = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?));
        let fields = Ipv6Fields { source: address(8)?, destination: address(24)?, ..Ipv6Fields::default() };
        let about = transport(FrameBuilder::raw_ip().ipv6(&fields), ip[6], rest)?;
        let mtu = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        Some(IcmpError { kind, code, mtu: if kind == PACKET_TOO_BIG { mtu } else { 0 }, about })
    }
}

/// The packet with the transport header of which `quoted` has the beginning.
fn transport(packet: FrameBuilder, protocol: u8, quoted: &[u8]) -> Option<Vec<u8>> {
    let quoted = quoted.first_chunk::<QUOTED>()?;
    let port = |at: usize| u16::from_be_bytes([quoted[at], quoted[at + 1]]);
    let sequence = u32::from_be_bytes([quoted[4], quoted[5], quoted[6], quoted[7]]);
    let tcp =
        TcpFields { source_port: port(0), destination_port: port(2), sequence, window: 0, ..TcpFields::default() };
    let made: Result<Vec<u8>, DropReason> = match protocol {
        PROTOCOL_TCP => packet.tcp(&tcp, &[]).finish(),
        PROTOCOL_UDP => packet.udp(port(0), port(2)).finish(),
        _ => return None,
    };
    made.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(link_mtu: u16) -> Vec<u8> {
        let fields =
            Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), ..Ipv4Fields::default() };
        let tcp = TcpFields { source_port: 4_000, destination_port: 80, sequence: 77, ..TcpFields::default() };
        let packet = FrameBuilder::raw_ip().ipv4(&fields).tcp(&tcp, &[]).payload(&[9; 1_400]).finish().unwrap();
        let mut message = vec![UNREACHABLE, FRAGMENTATION_NEEDED, 0, 0, 0, 0];
        message.extend(link_mtu.to_be_bytes());
        message.extend(&packet[..28]);
        message
    }

    #[test]
    fn the_packet_is_found_in_28_bytes() {
        let error = IcmpError::of_ipv4(&quoted(1_280)).unwrap();
        assert_eq!((error.kind, error.code, error.mtu), (3, 4, 1_280));
        assert_eq!(error.about.len(), 40);
        assert_eq!(error.about[12..28], quoted(1_280)[20..36]);
    }

    #[test]
    fn what_is_cut_short_or_no_error_is_none() {
        let whole = quoted(1_280);
        for length in 0..whole.len() {
            assert_eq!(IcmpError::of_ipv4(&whole[..length]), None, "{length} bytes");
        }
        for (at, value) in [(0, 8), (0, 0), (8, 0x65), (8, 0x44), (15, 1), (17, 47)] {
            let mut other = whole.clone();
            other[at] = value;
            assert_eq!(IcmpError::of_ipv4(&other), None, "byte {at} is {value}");
        }
    }

    #[test]
    fn of_ipv6_too() {
        let fields =
            Ipv6Fields { source: Ipv6Addr::LOCALHOST, destination: Ipv6Addr::LOCALHOST, ..Ipv6Fields::default() };
        let packet = FrameBuilder::raw_ip().ipv6(&fields).udp(5, 6).payload(&[1; 100]).finish().unwrap();
        let mut message = vec![PACKET_TOO_BIG, 0, 0, 0, 0, 0, 5, 0];
        message.extend(&packet);
        let error = IcmpError::of_ipv6(&message).unwrap();
        assert_eq!((error.kind, error.code, error.mtu, error.about.len()), (2, 0, 1_280, 48));
        message[0] = 129;
        assert_eq!(IcmpError::of_ipv6(&message), None);
    }
}
