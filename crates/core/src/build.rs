//! Packets made from nothing: templates (`docs/semantics.md`, 2.12).

use crate::flow::Endpoints;
use crate::format::{FieldPlace, Formats};
use crate::packet::Packet;
use crate::port::LinkType;
use crate::wire::builder::{FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
use crate::wire::ethernet::VlanTag;
use crate::wire::tcp::{
    MAX_OPTIONS_LENGTH, OPTION_MSS, OPTION_SACK_PERMITTED, OPTION_TIMESTAMPS, OPTION_WINDOW_SCALE, TCP_LENGTH,
    TcpOption,
};
use std::net::{IpAddr, Ipv6Addr};

/// Maximum segment size in a built MSS option.
const BUILT_MSS: u16 = 1460;
/// Most bytes behind the transport header: what fits behind the longest headers built here.
const MAX_BEHIND: usize = 65_535 - 20 - TCP_LENGTH - MAX_OPTIONS_LENGTH;

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
        let headers: Vec<(usize, usize)> = template
            .headers
            .iter()
            .filter_map(|index| formats.imported().get(*index).map(|format| (*index, format.length())))
            .scan(0, |end, (index, length)| {
                *end += length;
                (*end <= MAX_BEHIND).then_some((index, length))
            })
            .collect();
        let header_bytes: usize = headers.iter().map(|(_, length)| length).sum();
        let behind = (header_bytes + usize::from(template.payload)).min(MAX_BEHIND);
        let frame = transport_header(network_header(ends), template, ends).payload(&vec![0; behind]);
        let bytes = frame.unsummed().expect("options and payload were cut to what fits");
        let mut packet =
            Packet::from_frame(LinkType::Ethernet, bytes, formats).expect("the builder's headers are well-formed");
        // Each header counts as there while the presets are written: they may be what its `when` waits for.
        let mut at = packet.transport_end();
        packet.place_imported(headers.into_iter().map(|(index, length)| {
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

fn network_header(ends: &Endpoints) -> FrameBuilder {
    let mut frame = FrameBuilder::ethernet(ends.remote_mac, ends.local_mac);
    if let Some(tag) = ends.vlan {
        frame = frame.vlan(VlanTag(tag));
    }
    match (ends.local_address, ends.remote_address) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            frame.ipv4(&Ipv4Fields { source, destination, ..Ipv4Fields::default() })
        }
        (source, destination) => {
            let (source, destination) = (mapped(source), mapped(destination));
            frame.ipv6(&Ipv6Fields { source, destination, ..Ipv6Fields::default() })
        }
    }
}

/// The IPv6 address; of an IPv4 address the IPv4-mapped one (the two families mixed is no flow, but no fault here).
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn transport_header(frame: FrameBuilder, template: &TemplateSpec<'_>, ends: &Endpoints) -> FrameBuilder {
    let (source_port, destination_port) = (ends.local_port, ends.remote_port);
    match template.transport {
        TemplateTransport::Udp => frame.udp(source_port, destination_port),
        TemplateTransport::Tcp => {
            let fields = TcpFields { source_port, destination_port, ..TcpFields::default() };
            frame.tcp(&fields, &tcp_options(template.tcp_options))
        }
    }
}

/// The listed options with zero values; those that find no room are left out.
fn tcp_options(kinds: &[u8]) -> Vec<TcpOption<'static>> {
    let mut room = MAX_OPTIONS_LENGTH;
    let known = kinds.iter().filter_map(|kind| match *kind {
        OPTION_MSS => Some((4, TcpOption::MaximumSegmentSize(BUILT_MSS))),
        OPTION_WINDOW_SCALE => Some((3, TcpOption::WindowScale(0))),
        OPTION_SACK_PERMITTED => Some((2, TcpOption::SackPermitted)),
        OPTION_TIMESTAMPS => Some((10, TcpOption::Timestamps { value: 0, echo: 0 })),
        _ => None,
    });
    known
        .filter(|(length, _)| {
            let fits = *length <= room;
            room -= if fits { *length } else { 0 };
            fits
        })
        .map(|(_, option)| option)
        .collect()
}
