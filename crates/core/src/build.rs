//! Packets made from nothing: templates (`docs/semantics.md`, 2.12).

use crate::format::{FieldPlace, Formats};
use crate::function::Endpoints;
use crate::packet::Packet;
use crate::wire::ethernet::{TYPE_IPV4, TYPE_IPV6, TYPE_VLAN};
use crate::wire::tcp::{
    MAX_OPTIONS_LENGTH, OPTION_MSS, OPTION_NOP, OPTION_SACK_PERMITTED, OPTION_TIMESTAMPS, OPTION_WINDOW_SCALE,
    TCP_LENGTH,
};
use crate::wire::udp::UDP_LENGTH;
use crate::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use std::net::IpAddr;

/// Maximum segment size in a built MSS option.
const BUILT_MSS: u16 = 1460;
/// TTL and hop limit of built packets.
const BUILT_HOPS: u8 = 64;

/// What a packet to build consists of.
#[derive(Clone, Copy, Debug)]
pub struct TemplateSpec<'a> {
    /// The transport header.
    pub transport: TemplateTransport,
    /// Kind numbers of the TCP options, in order: 2, 3, 4 and 8; others are left out.
    pub tcp_options: &'a [u8],
    /// Imported headers behind the transport header, by [`Formats::imported_index`]; unknown ones are left out.
    pub headers: &'a [usize],
    /// Bytes of zero payload. Cut if the packet would grow beyond 65,535 bytes of IP length.
    pub payload: u16,
    /// Fields that are not zero from the start. Those that the packet does not have are left out.
    pub presets: &'a [(FieldPlace, u64)],
}

/// Transport of a packet to build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TemplateTransport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Packet {
    /// Builds a packet from the flow's local to its remote end, with lengths and checksums right.
    pub fn build(template: &TemplateSpec<'_>, ends: &Endpoints, formats: &Formats) -> Packet {
        let mut transport = transport_header(template, ends);
        let headers: Vec<(usize, usize)> = template
            .headers
            .iter()
            .filter_map(|index| formats.imported().get(*index).map(|format| (*index, format.length())))
            .collect();
        let header_bytes: usize = headers.iter().map(|(_, length)| length).sum();
        let room = usize::from(u16::MAX) - IPV4_HEADER - transport.len();
        let behind = (header_bytes + usize::from(template.payload)).min(room);
        if template.transport == TemplateTransport::Udp {
            transport[4..6].copy_from_slice(&((UDP_LENGTH + behind) as u16).to_be_bytes());
        }
        let mut bytes = link_and_network(ends, template.transport, transport.len() + behind);
        let transport_end = bytes.len() + transport.len();
        bytes.extend_from_slice(&transport);
        bytes.resize(transport_end + behind, 0);

        let mut packet = Packet::from_parts(bytes, formats).expect("the headers above are well-formed and fit");
        // Each header counts as there while the presets are written: they may be what its `when` waits for.
        let mut at = packet.transport_end();
        packet.place_imported(headers.into_iter().filter(|_| header_bytes <= behind).map(|(index, length)| {
            at += length;
            (index, at - length..at)
        }));
        for (field, value) in template.presets {
            // A preset of a field that is not there is refused by the verifier; here it has no effect.
            let _ = packet.set(*field, *value);
        }
        packet.locate_imported(formats);
        packet.finish();
        packet
    }
}

const IPV4_HEADER: usize = crate::wire::ipv4::IPV4_LENGTH;

/// Ethernet, VLAN and IP headers in front of `length` bytes. IPv4's checksum is right, as parsing wants it.
fn link_and_network(ends: &Endpoints, transport: TemplateTransport, length: usize) -> Vec<u8> {
    let protocol = match transport {
        TemplateTransport::Tcp => PROTOCOL_TCP,
        TemplateTransport::Udp => PROTOCOL_UDP,
    };
    let mut bytes = Vec::with_capacity(64 + length);
    bytes.extend_from_slice(&ends.remote_mac);
    bytes.extend_from_slice(&ends.local_mac);
    if let Some(tag) = ends.vlan {
        bytes.extend_from_slice(&TYPE_VLAN.to_be_bytes());
        bytes.extend_from_slice(&tag.to_be_bytes());
    }
    match (ends.local_address, ends.remote_address) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            bytes.extend_from_slice(&TYPE_IPV4.to_be_bytes());
            let start = bytes.len();
            let total = (IPV4_HEADER + length) as u16;
            bytes.extend_from_slice(&[0x45, 0]);
            bytes.extend_from_slice(&total.to_be_bytes());
            // Identification 0, don't-fragment.
            bytes.extend_from_slice(&[0, 0, 0x40, 0, BUILT_HOPS, protocol, 0, 0]);
            bytes.extend_from_slice(&source.octets());
            bytes.extend_from_slice(&destination.octets());
            let checksum = crate::checksum::checksum(&bytes[start..]);
            bytes[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
        }
        (source, destination) => {
            bytes.extend_from_slice(&TYPE_IPV6.to_be_bytes());
            bytes.extend_from_slice(&[0x60, 0, 0, 0]);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
            bytes.extend_from_slice(&[protocol, BUILT_HOPS]);
            bytes.extend_from_slice(&mapped(source));
            bytes.extend_from_slice(&mapped(destination));
        }
    }
    bytes
}

/// The IPv6 address; of an IPv4 address the IPv4-mapped one (the two families mixed is no flow, but no fault here).
fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn transport_header(template: &TemplateSpec<'_>, ends: &Endpoints) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(TCP_LENGTH + MAX_OPTIONS_LENGTH);
    bytes.extend_from_slice(&ends.local_port.to_be_bytes());
    bytes.extend_from_slice(&ends.remote_port.to_be_bytes());
    match template.transport {
        TemplateTransport::Udp => {
            // The length comes later; the checksum is not 0, which would mean none.
            bytes.extend_from_slice(&[0, 0, 0xff, 0xff]);
        }
        TemplateTransport::Tcp => {
            let options = tcp_options(template.tcp_options);
            bytes.extend_from_slice(&[0; 8]);
            bytes.extend_from_slice(&[((TCP_LENGTH + options.len()) as u8) << 2, 0, 0xff, 0xff, 0, 0, 0, 0]);
            bytes.extend_from_slice(&options);
        }
    }
    bytes
}

/// The listed options with zero values and NOPs in front; those that find no room are left out.
fn tcp_options(kinds: &[u8]) -> Vec<u8> {
    let mut options: Vec<u8> = Vec::new();
    for kind in kinds {
        let [high, low] = BUILT_MSS.to_be_bytes();
        let option: &[u8] = match *kind {
            OPTION_MSS => &[OPTION_MSS, 4, high, low],
            OPTION_WINDOW_SCALE => &[OPTION_WINDOW_SCALE, 3, 0],
            OPTION_SACK_PERMITTED => &[OPTION_SACK_PERMITTED, 2],
            OPTION_TIMESTAMPS => &[OPTION_TIMESTAMPS, 10, 0, 0, 0, 0, 0, 0, 0, 0],
            _ => &[],
        };
        if options.len() + option.len() <= MAX_OPTIONS_LENGTH {
            options.extend_from_slice(option);
        }
    }
    let padding = options.len().next_multiple_of(4) - options.len();
    options.splice(0..0, std::iter::repeat_n(OPTION_NOP, padding));
    options
}
