//! Frames put together header by header.

use super::ethernet::{TYPE_ARP, TYPE_IPV4, TYPE_IPV6, TYPE_VLAN, VlanTag};
use super::ipv4::IPV4_LENGTH;
use super::ipv6::IPV6_LENGTH;
use super::tcp::{MAX_OPTIONS_LENGTH, OPTION_END, OPTION_NOP, TCP_LENGTH, TcpFlags, TcpOption};
use super::{PROTOCOL_TCP, PROTOCOL_UDP};
use crate::MacAddress;
use crate::buffer::Buffer;
use crate::checksum::checksum;
use crate::drop_reason::DropReason;
use crate::format::Formats;
use crate::packet::Packet;
use crate::port::LinkType;
use std::net::{Ipv4Addr, Ipv6Addr};

/// IPv6's number for nothing (RFC 8200, section 4.7).
const NO_NEXT_HEADER: u8 = 59;
/// Room in a new frame's buffer: for all headers but long options.
const ROOM: usize = 128;

/// Puts a frame together from the outside in: Ethernet, VLAN tags, ARP or IP, TCP or UDP, payload. Types, protocol
/// numbers, lengths and checksums are filled in.
///
/// ```
/// use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
/// use weftwire_core::wire::tcp::{TcpFlags, TcpOption};
///
/// let syn = TcpFields { source_port: 4000, destination_port: 80, flags: TcpFlags::SYN, ..TcpFields::default() };
/// let frame = FrameBuilder::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
///     .ipv4(&Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), ..Ipv4Fields::default() })
///     .tcp(&syn, &[TcpOption::MaximumSegmentSize(1460)])
///     .finish()?;
/// assert_eq!(frame.len(), 14 + 20 + 24);
/// # Ok::<(), weftwire_core::DropReason>(())
/// ```
#[derive(Clone, Debug)]
pub struct FrameBuilder {
    bytes: Buffer,
    link: LinkType,
    /// EtherType and start of the IP header.
    network: Option<(u16, usize)>,
    /// Start of the UDP header.
    udp: Option<usize>,
    options_fit: bool,
}

/// What an IPv4 header says besides lengths, protocol and checksum. Default: TTL 64, don't-fragment, all else 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Fields {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Differentiated services code point (high 6 bits) and ECN (low 2 bits).
    pub traffic_class: u8,
    /// Identification.
    pub identification: u16,
    /// Routers must not fragment it.
    pub dont_fragment: bool,
    /// Time to live, in hops.
    pub ttl: u8,
}

impl Default for Ipv4Fields {
    fn default() -> Ipv4Fields {
        let zero = Ipv4Addr::UNSPECIFIED;
        Ipv4Fields {
            source: zero,
            destination: zero,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            ttl: 64,
        }
    }
}

/// What an IPv6 header says besides length and next header. Default: hop limit 64, all else 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Fields {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Differentiated services code point (high 6 bits) and ECN (low 2 bits).
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
}

impl Default for Ipv6Fields {
    fn default() -> Ipv6Fields {
        let zero = Ipv6Addr::UNSPECIFIED;
        Ipv6Fields { source: zero, destination: zero, traffic_class: 0, flow_label: 0, hop_limit: 64 }
    }
}

/// What a TCP header says besides data offset and checksum. Default: window 65,535, all else 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpFields {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// Receive window, not scaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent_pointer: u16,
}

impl Default for TcpFields {
    fn default() -> TcpFields {
        TcpFields {
            source_port: 0,
            destination_port: 0,
            sequence: 0,
            acknowledgment: 0,
            flags: TcpFlags::default(),
            window: 65_535,
            urgent_pointer: 0,
        }
    }
}

/// An ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArpFields {
    /// 1 request, 2 reply.
    pub operation: u16,
    /// The sender's Ethernet address.
    pub sender_mac: MacAddress,
    /// The sender's IPv4 address.
    pub sender_address: Ipv4Addr,
    /// The target's Ethernet address; zero in requests.
    pub target_mac: MacAddress,
    /// The target's IPv4 address.
    pub target_address: Ipv4Addr,
}

impl FrameBuilder {
    /// Begins a frame for an Ethernet port.
    pub fn ethernet(destination: impl Into<MacAddress>, source: impl Into<MacAddress>) -> FrameBuilder {
        FrameBuilder::ethernet_in(Buffer::with_capacity(ROOM), destination, source)
    }

    /// As [`FrameBuilder::ethernet`], in a buffer whose bytes it replaces.
    pub fn ethernet_in(
        buffer: Buffer,
        destination: impl Into<MacAddress>,
        source: impl Into<MacAddress>,
    ) -> FrameBuilder {
        let builder = FrameBuilder::of(buffer, LinkType::Ethernet);
        builder.with(&destination.into().octets()).with(&source.into().octets()).with(&[0; 2])
    }

    /// Begins a frame for a raw-IP port.
    pub fn raw_ip() -> FrameBuilder {
        FrameBuilder::of(Buffer::with_capacity(ROOM), LinkType::Ip)
    }

    fn of(mut buffer: Buffer, link: LinkType) -> FrameBuilder {
        buffer.clear();
        FrameBuilder { bytes: buffer, link, network: None, udp: None, options_fit: true }
    }

    /// Adds an 802.1Q tag behind the Ethernet header or another tag.
    #[must_use]
    pub fn vlan(self, tag: VlanTag) -> FrameBuilder {
        self.announce(TYPE_VLAN).with(&tag.0.to_be_bytes()).with(&[0; 2])
    }

    /// Adds an ARP packet.
    #[must_use]
    pub fn arp(self, arp: &ArpFields) -> FrameBuilder {
        self.announce(TYPE_ARP)
            .with(&[0, 1, 8, 0, 6, 4])
            .with(&arp.operation.to_be_bytes())
            .with(&arp.sender_mac.octets())
            .with(&arp.sender_address.octets())
            .with(&arp.target_mac.octets())
            .with(&arp.target_address.octets())
    }

    /// Adds an IPv4 header.
    #[must_use]
    pub fn ipv4(mut self, ip: &Ipv4Fields) -> FrameBuilder {
        self = self.announce(TYPE_IPV4);
        self.network = Some((TYPE_IPV4, self.bytes.len()));
        self.with(&[0x45, ip.traffic_class, 0, 0])
            .with(&ip.identification.to_be_bytes())
            .with(&[u8::from(ip.dont_fragment) << 6, 0, ip.ttl, 0, 0, 0])
            .with(&ip.source.octets())
            .with(&ip.destination.octets())
    }

    /// Adds an IPv6 header.
    #[must_use]
    pub fn ipv6(mut self, ip: &Ipv6Fields) -> FrameBuilder {
        self = self.announce(TYPE_IPV6);
        self.network = Some((TYPE_IPV6, self.bytes.len()));
        let first = 6 << 28 | u32::from(ip.traffic_class) << 20 | ip.flow_label & 0xf_ffff;
        self.with(&first.to_be_bytes())
            .with(&[0, 0, NO_NEXT_HEADER, ip.hop_limit])
            .with(&ip.source.octets())
            .with(&ip.destination.octets())
    }

    /// Adds a TCP header with options, padded to a multiple of 32 bits: with NOPs in front, or if there are NOPs among the
    /// options, with ends of list behind.
    #[must_use]
    pub fn tcp(mut self, tcp: &TcpFields, options: &[TcpOption<'_>]) -> FrameBuilder {
        let length: usize = options.iter().map(TcpOption::length).sum();
        let padding = length.next_multiple_of(4) - length;
        let (front, behind) = if options.contains(&TcpOption::NoOperation) { (0, padding) } else { (padding, 0) };
        self.options_fit &= length <= MAX_OPTIONS_LENGTH;
        let data_offset = ((TCP_LENGTH + padding + length) as u8) << 2;
        self = self
            .protocol(PROTOCOL_TCP)
            .with(&tcp.source_port.to_be_bytes())
            .with(&tcp.destination_port.to_be_bytes())
            .with(&tcp.sequence.to_be_bytes())
            .with(&tcp.acknowledgment.to_be_bytes())
            .with(&[data_offset, tcp.flags.0])
            .with(&tcp.window.to_be_bytes())
            .with(&[0; 2])
            .with(&tcp.urgent_pointer.to_be_bytes())
            .with(&[OPTION_NOP; 4][..front]);
        for option in options {
            option.write(&mut self.bytes);
        }
        self.with(&[OPTION_END; 4][..behind])
    }

    /// Adds a UDP header.
    #[must_use]
    pub fn udp(mut self, source_port: u16, destination_port: u16) -> FrameBuilder {
        self.udp = Some(self.bytes.len());
        // A checksum that is not 0: the packet has one.
        self.protocol(PROTOCOL_UDP)
            .with(&source_port.to_be_bytes())
            .with(&destination_port.to_be_bytes())
            .with(&[0, 0, 0xff, 0xff])
    }

    /// Says what follows the IP header, if it is neither TCP nor UDP: a protocol number.
    #[must_use]
    pub fn protocol(mut self, protocol: u8) -> FrameBuilder {
        match self.network {
            Some((TYPE_IPV4, start)) => self.bytes[start + 9] = protocol,
            Some((_, start)) => self.bytes[start + 6] = protocol,
            None => {}
        }
        self
    }

    /// Adds payload.
    #[must_use]
    pub fn payload(self, bytes: &[u8]) -> FrameBuilder {
        self.with(bytes)
    }

    /// Adds so many bytes of payload that are 0.
    #[must_use]
    pub fn zeros(mut self, length: usize) -> FrameBuilder {
        self.bytes.resize(self.bytes.len() + length);
        self
    }

    /// The frame.
    ///
    /// # Errors
    /// `TooLong` beyond 65,535 bytes of IP length, `BadLength` for more than 40 bytes of TCP options.
    pub fn finish(self) -> Result<Vec<u8>, DropReason> {
        let link = self.link;
        let mut packet = Packet::from_frame(link, self.unsummed()?, &Formats::default())?;
        packet.finish();
        Ok(packet.into_buffer().to_vec())
    }

    /// The frame with everything right but the transport checksum.
    pub(crate) fn unsummed(mut self) -> Result<Buffer, DropReason> {
        if !self.options_fit {
            return Err(DropReason::BadLength);
        }
        let end = self.bytes.len();
        let length_from = |start: usize| u16::try_from(end - start).map_err(|_| DropReason::TooLong);
        match self.network {
            Some((TYPE_IPV4, start)) => {
                self.put(start + 2, length_from(start)?);
                let sum = checksum(&self.bytes[start..start + IPV4_LENGTH]);
                self.put(start + 10, sum);
            }
            Some((_, start)) => self.put(start + 4, length_from(start + IPV6_LENGTH)?),
            None => {}
        }
        if let Some(start) = self.udp {
            self.put(start + 4, length_from(start)?);
        }
        Ok(self.bytes)
    }

    /// Fills in the type field at the end of the Ethernet header or tag.
    fn announce(mut self, ether_type: u16) -> FrameBuilder {
        if self.link == LinkType::Ethernet {
            self.put(self.bytes.len() - 2, ether_type);
        }
        self
    }

    fn put(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    fn with(mut self, bytes: &[u8]) -> FrameBuilder {
        self.bytes.extend_from_slice(bytes);
        self
    }
}
