//! A packet taken apart into plain values and put together again, so that a stored packet can be written down.
//!
//! Where the headers are is part of it: a machine may have written over the bytes that once told.

use crate::format::Formats;
use crate::layout::{Fragment, Layout, Network, Transport};
use crate::packet::Packet;
use crate::port::{Segmentation, SegmentationKind};
use crate::wire::arp::ARP_LENGTH;
use crate::wire::ethernet::{ETHERNET_LENGTH, VLAN_LENGTH};
use crate::wire::ipv6::IPV6_LENGTH;
use crate::wire::tcp::{MAX_OPTIONS_LENGTH, TCP_LENGTH};
use crate::wire::udp::UDP_LENGTH;
use crate::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use std::net::Ipv6Addr;

/// Most bytes of a packet with its link header.
pub const MAX_PACKET: usize = 1 << 17;

/// A packet as plain values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PacketParts {
    /// Its bytes with the link header.
    pub bytes: Vec<u8>,
    /// Whether they begin with an Ethernet header.
    pub ethernet: bool,
    /// What the network header is.
    pub network: NetworkPart,
    /// Where the network header starts.
    pub network_start: u32,
    /// Where it ends, options and extension headers included; 0 if it is not IP.
    pub network_end: u32,
    /// The address that the transport's checksum covers, if it is not the IPv6 header's destination.
    pub final_destination: Option<Ipv6Addr>,
    /// Protocol number of what follows the network header.
    pub protocol: u8,
    /// 0: no fragment; 1: the first; 2: a later one.
    pub fragment: u8,
    /// Where the TCP or UDP header ends; 0 if there is none.
    pub transport_end: u32,
    /// Where the payload starts.
    pub payload: u32,
    /// Start and end of each imported header, in the order of the formats; (0, 0): it is not there.
    pub imported: Vec<(u32, u32)>,
    /// How the frame is to be cut into segments.
    pub segmentation: Option<Segmentation>,
    /// Whether the transport checksum is left to whoever sends the packet.
    pub partial: bool,
}

/// Parts that make no packet, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoPacket(pub &'static str);

/// What a network header is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NetworkPart {
    /// None that is known.
    #[default]
    None,
    /// ARP.
    Arp,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Packet {
    /// The packet taken apart.
    pub fn to_parts(&self) -> PacketParts {
        let layout = self.layout();
        let (network, final_destination) = match layout.network {
            None => (NetworkPart::None, None),
            Some(Network::Arp) => (NetworkPart::Arp, None),
            Some(Network::Ipv4) => (NetworkPart::Ipv4, None),
            Some(Network::Ipv6 { final_destination }) => (NetworkPart::Ipv6, final_destination),
        };
        // Frames are far shorter than 4 GiB.
        PacketParts {
            bytes: self.bytes().to_vec(),
            ethernet: layout.ethernet,
            network,
            network_start: layout.network_start as u32,
            network_end: layout.network_end as u32,
            final_destination,
            protocol: layout.protocol,
            fragment: match layout.fragment {
                Fragment::No => 0,
                Fragment::First => 1,
                Fragment::Later => 2,
            },
            transport_end: layout.transport_end as u32,
            payload: layout.payload as u32,
            imported: layout.imported.iter().map(|place| place.unwrap_or((0, 0))).collect(),
            segmentation: self.segmentation(),
            partial: self.is_partial(),
        }
    }

    /// A packet of these parts, which may come from anywhere.
    ///
    /// # Errors
    /// No packet has such parts: what is wrong.
    pub fn from_parts(parts: PacketParts, formats: &Formats) -> Result<Packet, NoPacket> {
        let transport = parts.check(formats)?;
        let network = match parts.network {
            NetworkPart::None => None,
            NetworkPart::Arp => Some(Network::Arp),
            NetworkPart::Ipv4 => Some(Network::Ipv4),
            NetworkPart::Ipv6 => Some(Network::Ipv6 { final_destination: parts.final_destination }),
        };
        let mut layout = Layout {
            ethernet: parts.ethernet,
            network_start: parts.network_start as usize,
            network_end: parts.network_end as usize,
            network,
            protocol: parts.protocol,
            fragment: [Fragment::No, Fragment::First, Fragment::Later][usize::from(parts.fragment)],
            transport,
            transport_end: parts.transport_end as usize,
            imported: parts.imported.iter().map(|&place| (place != (0, 0)).then_some(place)).collect(),
            payload: parts.payload as usize,
            ending: None,
        };
        layout.find_ending(formats);
        Ok(Packet::of_layout(parts.bytes, layout, parts.segmentation, parts.partial))
    }
}

impl PacketParts {
    /// Whether everything lies within the bytes, in order, as after parsing and any change. Returns the transport.
    fn check(&self, formats: &Formats) -> Result<Option<Transport>, NoPacket> {
        let length = self.bytes.len();
        let [start, network_end, transport_end, payload] =
            [self.network_start, self.network_end, self.transport_end, self.payload].map(|place| place as usize);
        let must = |holds: bool, what| if holds { Ok(()) } else { Err(NoPacket(what)) };
        must(length <= MAX_PACKET, "the packet is longer than any")?;
        must(self.fragment <= 2, "there is no such kind of fragment")?;
        let starts = [ETHERNET_LENGTH, ETHERNET_LENGTH + VLAN_LENGTH, ETHERNET_LENGTH + 2 * VLAN_LENGTH];
        let starts = if self.ethernet { &starts[..] } else { &[0] };
        must(starts.contains(&start) && start <= length, "the network header starts where none can")?;
        must(
            self.final_destination.is_none() || self.network == NetworkPart::Ipv6,
            "only IPv6 has a routing header's final destination",
        )?;
        let is_ip = matches!(self.network, NetworkPart::Ipv4 | NetworkPart::Ipv6);
        let outside = if self.network == NetworkPart::Ipv6 { IPV6_LENGTH } else { 0 };
        match self.network {
            NetworkPart::Ipv4 => {
                let header = network_end.wrapping_sub(start);
                must((20..=60).contains(&header) && header.is_multiple_of(4), "no IPv4 header has this length")?;
            }
            NetworkPart::Ipv6 => {
                let header = network_end.wrapping_sub(start);
                must(network_end >= start + outside && header.is_multiple_of(4), "no IPv6 header has this length")?;
            }
            NetworkPart::Arp | NetworkPart::None => {
                let none = network_end == 0 && self.protocol == 0 && self.fragment == 0;
                must(none, "what is not IP has no protocol behind it")?;
                let arp = self.network == NetworkPart::Arp;
                must(!arp || start + ARP_LENGTH <= length, "the ARP message does not fit")?;
            }
        }
        must(network_end <= length, "the network header does not fit")?;
        let transport = match self.protocol {
            PROTOCOL_TCP if is_ip && self.fragment < 2 => Some(Transport::Tcp),
            PROTOCOL_UDP if is_ip && self.fragment < 2 => Some(Transport::Udp),
            _ => None,
        };
        let header = transport_end.wrapping_sub(network_end);
        match transport {
            None => must(transport_end == 0 && payload == length, "there is no transport header to have an end"),
            Some(Transport::Udp) => must(header == UDP_LENGTH, "no UDP header has this length"),
            Some(Transport::Tcp) => {
                let longest = TCP_LENGTH + MAX_OPTIONS_LENGTH;
                must(
                    (TCP_LENGTH..=longest).contains(&header) && header.is_multiple_of(4),
                    "no TCP header has this length",
                )
            }
        }?;
        if transport.is_some() {
            must(transport_end <= payload && payload <= length, "the payload starts where none can")?;
            // What the length fields hold, or the packet could never have grown to it.
            must(length <= start + outside + usize::from(u16::MAX), "the packet is longer than its length can say")?;
        }
        must(self.imported.len() == formats.imported().len(), "there are other imported headers")?;
        for (&(from, to), format) in self.imported.iter().zip(formats.imported()) {
            let there = (from, to) != (0, 0);
            let fits = to as usize <= MAX_PACKET && (to as usize).checked_sub(from as usize) == Some(format.length());
            must(!there || fits, "an imported header has another length")?;
        }
        must(self.segmentation.is_none_or(|cut| cut.size > 0), "segments have at least one byte")?;
        Ok(transport)
    }
}

/// Numbers of the kinds of segmentation, from 1; 0 is none.
const KINDS: [SegmentationKind; 5] = [
    SegmentationKind::TcpIpv4 { ecn: false },
    SegmentationKind::TcpIpv4 { ecn: true },
    SegmentationKind::TcpIpv6 { ecn: false },
    SegmentationKind::TcpIpv6 { ecn: true },
    SegmentationKind::Udp,
];

impl SegmentationKind {
    /// The kind's number in written states: 1 and 2 TCP over IPv4 without and with ECN, 3 and 4 over IPv6, 5 UDP.
    pub fn number(self) -> u8 {
        KINDS.iter().position(|kind| *kind == self).map_or(0, |place| place as u8 + 1)
    }

    /// The kind of a number.
    pub fn numbered(number: u8) -> Option<SegmentationKind> {
        KINDS.get(usize::from(number).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_segmentation_have_numbers() {
        assert!((1..=5).all(|number| SegmentationKind::numbered(number).unwrap().number() == number));
        assert_eq!((SegmentationKind::numbered(0), SegmentationKind::numbered(6)), (None, None));
    }

    #[test]
    fn a_packet_that_is_empty_comes_again() {
        let parts = Packet::default().to_parts();
        assert_eq!(Packet::from_parts(parts.clone(), &Formats::default()).unwrap().to_parts(), parts);
    }
}
