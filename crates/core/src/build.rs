//! Packets made from nothing: templates (`docs/semantics.md`, 2.12).

use crate::buffer::Buffer;
use crate::flow::Endpoints;
use crate::format::{FieldPlace, Formats};
use crate::packet::Packet;
use crate::port::LinkType;
use crate::wire::builder::{FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
use crate::wire::ethernet::{ETHERNET_LENGTH, VLAN_LENGTH, VlanTag};
use crate::wire::ipv6::IPV6_LENGTH;
use crate::wire::tcp::{
    MAX_OPTIONS_LENGTH, OPTION_MSS, OPTION_NOP, OPTION_SACK, OPTION_SACK_PERMITTED, OPTION_TIMESTAMPS,
    OPTION_WINDOW_SCALE, SackBlocks, TCP_LENGTH, TcpOption,
};
use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;

/// Maximum segment size in a built MSS option.
const BUILT_MSS: u16 = 1460;
/// Most bytes behind the transport header: what fits behind the longest headers built here.
const MAX_BEHIND: usize = 65_535 - 20 - TCP_LENGTH - MAX_OPTIONS_LENGTH;
/// Most bytes up to the transport header's end.
const MAX_FRONT: usize = ETHERNET_LENGTH + VLAN_LENGTH + IPV6_LENGTH + TCP_LENGTH + MAX_OPTIONS_LENGTH;
/// Most options that find room: the shortest has one byte.
const MOST_OPTIONS: usize = MAX_OPTIONS_LENGTH;
/// As many SACK blocks as find room.
const BLOCKS: [u8; 4 * SACK_BLOCK] = [0; 4 * SACK_BLOCK];
/// Bytes of a SACK block.
const SACK_BLOCK: usize = 8;

/// What a packet to build consists of.
#[derive(Clone, Copy, Debug)]
pub struct TemplateSpec<'a> {
    /// The transport header.
    pub transport: TemplateTransport,
    /// Kind numbers of the TCP options, in order: 1, 2, 3, 4, 5 and 8; others are left out.
    pub tcp_options: &'a [u8],
    /// For each of them whether it is there: not if 0; of SACK how many blocks. Those without a value are, SACK is not.
    pub wanted: &'a [i64],
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

impl TemplateSpec<'_> {
    /// The imported headers and where they lie behind the transport header, as far as they find room.
    fn imported(&self, formats: &Formats) -> impl Iterator<Item = (usize, Range<usize>)> {
        let known = self.headers.iter().filter_map(|index| Some((*index, formats.imported().get(*index)?.length())));
        known.scan(0, |end, (index, length)| {
            *end += length;
            (*end <= MAX_BEHIND).then_some((index, *end - length..*end))
        })
    }

    /// Bytes behind the transport header.
    fn behind(&self, formats: &Formats) -> usize {
        let headers = self.imported(formats).last().map_or(0, |(_, range)| range.end);
        (headers + usize::from(self.payload)).min(MAX_BEHIND)
    }

    /// Bytes that every packet of this template fits in, whatever its ends are.
    pub fn room(&self, formats: &Formats) -> usize {
        MAX_FRONT + self.behind(formats)
    }
}

impl Packet {
    /// Builds a packet from the flow's local to its remote end, with lengths and checksums right.
    pub fn build(template: &TemplateSpec<'_>, ends: &Endpoints, formats: &Formats) -> Packet {
        Packet::build_in(Buffer::with_capacity(template.room(formats)), template, ends, formats)
    }

    /// As [`Packet::build`], in a buffer with [room](TemplateSpec::room).
    pub fn build_in(buffer: Buffer, template: &TemplateSpec<'_>, ends: &Endpoints, formats: &Formats) -> Packet {
        let frame = network_header(FrameBuilder::ethernet_in(buffer, ends.remote_mac, ends.local_mac), ends);
        let frame = transport_header(frame, template, ends).zeros(template.behind(formats));
        let bytes = frame.unsummed().expect("options and payload were cut to what fits");
        let mut packet =
            Packet::from_frame(LinkType::Ethernet, bytes, formats).expect("the builder's headers are well-formed");
        // Each header counts as there while the presets are written: they may be what its `when` waits for.
        let start = packet.transport_end();
        let placed = template.imported(formats);
        packet.place_imported(placed.map(|(index, range)| (index, start + range.start..start + range.end)));
        for (field, value) in template.presets {
            // A preset of a field that is not there is refused by the verifier; here it has no effect.
            let _ = packet.set(*field, *value);
        }
        packet.locate_imported(formats);
        packet.finish();
        packet
    }
}

fn network_header(mut frame: FrameBuilder, ends: &Endpoints) -> FrameBuilder {
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
            let mut options = [TcpOption::SackPermitted; MOST_OPTIONS];
            let count = tcp_options(template).zip(&mut options).map(|(known, place)| *place = known).count();
            frame.tcp(&fields, &options[..count])
        }
    }
}

/// The options that are wanted, with zero values; those that find no room are left out.
fn tcp_options(template: &TemplateSpec<'_>) -> impl Iterator<Item = TcpOption<'static>> {
    let mut room = MAX_OPTIONS_LENGTH;
    let wanted = template.wanted.iter().map(Some).chain(std::iter::repeat(None));
    let listed = template.tcp_options.iter().zip(wanted).filter(|(_, wanted)| *wanted != Some(&0));
    listed.filter_map(move |(kind, wanted)| {
        let option = match *kind {
            OPTION_NOP => TcpOption::NoOperation,
            OPTION_MSS => TcpOption::MaximumSegmentSize(BUILT_MSS),
            OPTION_WINDOW_SCALE => TcpOption::WindowScale(0),
            OPTION_SACK_PERMITTED => TcpOption::SackPermitted,
            OPTION_TIMESTAMPS => TcpOption::Timestamps { value: 0, echo: 0 },
            OPTION_SACK => {
                let blocks = usize::try_from(*wanted?).ok()?.min(room.saturating_sub(2) / SACK_BLOCK);
                TcpOption::Sack(SackBlocks::new(&BLOCKS[..blocks * SACK_BLOCK]).filter(|_| blocks > 0)?)
            }
            _ => return None,
        };
        room = room.checked_sub(option.length())?;
        Some(option)
    })
}
