//! Where the headers of a packet are.

use crate::bits;
use crate::drop_reason::DropReason;
use crate::format::{FieldPlace, Formats, Header};
use crate::invariant_crc::{CRC_LENGTH, Ending};
use crate::port::LinkType;
use crate::wire::arp::{ARP_LENGTH, Arp};
use crate::wire::ethernet::{ETHERNET_LENGTH, Ethernet, TYPE_ARP, TYPE_IPV4, TYPE_IPV6, VLAN_LENGTH};
use crate::wire::ipv4::Ipv4;
use crate::wire::ipv6::{IPV6_LENGTH, Ipv6};
use crate::wire::tcp::{RawOptions, TCP_LENGTH, Tcp};
use crate::wire::udp::{UDP_LENGTH, Udp};
use crate::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use smallvec::SmallVec;
use std::net::Ipv6Addr;
use std::ops::Range;
use std::sync::Arc;

/// The prefix of IPv4-mapped IPv6 addresses (RFC 4291, section 2.5.5.2).
const IPV4_MAPPED: u128 = 0xffff_0000_0000;

/// Offsets into a packet's bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Whether there is an Ethernet header, at 0.
    pub(crate) ethernet: bool,
    /// Where the network header (or ARP) starts: behind Ethernet header and tags.
    pub(crate) network_start: usize,
    /// Where the network header with its options or extension headers ends.
    pub(crate) network_end: usize,
    pub(crate) network: Option<Network>,
    /// Protocol number of what follows the network header.
    pub(crate) protocol: u8,
    pub(crate) fragment: Fragment,
    pub(crate) transport: Option<Transport>,
    /// Where the transport header with its options ends.
    pub(crate) transport_end: usize,
    /// Starts and ends of the imported headers. No allocation for functions that import up to four.
    pub(crate) imported: SmallVec<[Option<(u32, u32)>; 4]>,
    /// Where the payload starts: behind the innermost header.
    pub(crate) payload: usize,
    /// Whether the packet ends in an invariant CRC, which then is none of its bytes here.
    pub(crate) ending: Option<Ending>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Network {
    Arp,
    Ipv4,
    /// With the address that transport checksums cover if it is not the header's destination (a routing header).
    Ipv6 {
        final_destination: Option<Ipv6Addr>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Fragment {
    /// Not a fragment.
    #[default]
    No,
    /// The first fragment: it has the transport header.
    First,
    /// Any other.
    Later,
}

impl Fragment {
    fn new(offset: u16, more: bool) -> Fragment {
        match (offset, more) {
            (0, false) => Fragment::No,
            (0, true) => Fragment::First,
            _ => Fragment::Later,
        }
    }
}

impl Layout {
    /// Finds the headers of a packet without invariant CRC, be it that one belongs there. Also returns where the packet ends
    /// and padding begins. Of checksums, only IPv4's is verified.
    pub(crate) fn find(link: LinkType, bytes: &[u8], formats: &Formats) -> Result<(Layout, usize), DropReason> {
        let mut layout = Layout::default();
        let end = layout.renew(link, bytes, &Formats::default())?;
        layout.find_imported(&bytes[..end], formats, 0);
        Ok((layout, end))
    }

    /// Finds the headers of a frame that arrived, in place of another packet's. Returns where the packet, with its invariant
    /// CRC, ends and padding begins. Of checksums, only IPv4's is verified. Unless it succeeds, the layout is of no packet.
    pub(crate) fn renew(&mut self, link: LinkType, bytes: &[u8], formats: &Formats) -> Result<usize, DropReason> {
        let imported = std::mem::take(&mut self.imported);
        *self = Layout { ethernet: link == LinkType::Ethernet, imported, ..Layout::default() };
        let ether_type = match link {
            LinkType::Ethernet => {
                let ethernet = Ethernet::parse(bytes)?;
                self.network_start = ethernet.header_length();
                ethernet.payload_type()
            }
            LinkType::Ip => match bytes.first().ok_or(DropReason::Truncated)? >> 4 {
                4 => TYPE_IPV4,
                6 => TYPE_IPV6,
                _ => return Err(DropReason::BadVersion),
            },
        };
        let end = self.find_network(ether_type, bytes)?;
        self.find_imported(&bytes[..end], formats, CRC_LENGTH);
        // The CRC is behind all headers.
        if self.ending.is_some() && self.payload + CRC_LENGTH > end {
            return Err(DropReason::Truncated);
        }
        Ok(end)
    }

    fn find_network(&mut self, ether_type: u16, bytes: &[u8]) -> Result<usize, DropReason> {
        let start = self.network_start;
        let behind = &bytes[start..];
        let (header_length, payload) = match ether_type {
            TYPE_IPV4 => {
                let ip = Ipv4::parse(behind)?;
                if !ip.checksum_is_right() {
                    return Err(DropReason::BadChecksum);
                }
                self.network = Some(Network::Ipv4);
                self.protocol = ip.protocol();
                self.fragment = Fragment::new(ip.fragment_offset(), ip.more_fragments());
                (ip.header_length(), ip.payload())
            }
            TYPE_IPV6 => {
                let ip = Ipv6::parse(behind)?;
                let final_destination = Some(ip.final_destination()).filter(|last| *last != ip.destination());
                self.network = Some(Network::Ipv6 { final_destination });
                self.protocol = ip.protocol();
                self.fragment = ip.fragment().map_or(Fragment::No, |f| Fragment::new(f.offset, f.more));
                (ip.header_length(), ip.payload())
            }
            TYPE_ARP => {
                self.network = Arp::parse(behind)?.map(|_| Network::Arp);
                return Ok(bytes.len());
            }
            _ => return Ok(bytes.len()),
        };
        self.network_end = start + header_length;
        self.find_transport(payload)
    }

    fn find_transport(&mut self, bytes: &[u8]) -> Result<usize, DropReason> {
        let start = self.network_end;
        let end = start + bytes.len();
        if self.fragment == Fragment::Later {
            return Ok(end);
        }
        match self.protocol {
            PROTOCOL_TCP => {
                self.transport = Some(Transport::Tcp);
                self.transport_end = start + Tcp::parse(bytes)?.header_length();
                Ok(end)
            }
            PROTOCOL_UDP => {
                let udp = match self.fragment {
                    Fragment::No => Udp::parse(bytes)?,
                    _ => Udp::parse_first_fragment(bytes)?,
                };
                self.transport = Some(Transport::Udp);
                self.transport_end = start + UDP_LENGTH;
                Ok(self.transport_end + udp.payload().len())
            }
            _ => Ok(end),
        }
    }

    /// Finds the imported headers and, behind the innermost header, the payload. If the packet ends in an invariant CRC, so
    /// many of the bytes are that.
    pub(crate) fn find_imported(&mut self, mut bytes: &[u8], formats: &Formats, crc_bytes: usize) {
        self.payload = if self.transport.is_some() { self.transport_end } else { bytes.len() };
        if formats.imported().is_empty() && self.imported.is_empty() {
            return;
        }
        self.ending = None;
        self.imported.clear();
        self.imported.resize(formats.imported().len(), None);
        for (index, format) in formats.imported().iter().enumerate() {
            let holds = format.when.is_none_or(|(field, value)| self.read(bytes, field) == Some(u128::from(value)));
            let Some(start) = self.end(format.behind).filter(|_| holds) else { continue };
            let end = start + format.length();
            if end <= bytes.len() {
                // Frames are far shorter than 4 GiB.
                self.imported[index] = Some((start as u32, end as u32));
                if self.transport.is_some() {
                    self.payload = self.payload.max(end);
                }
                if format.variant.is_some() && self.ending.is_none() {
                    self.find_ending(formats);
                    let behind = if self.ending.is_some() { crc_bytes } else { 0 };
                    bytes = &bytes[..end.max(bytes.len().saturating_sub(behind))];
                }
            }
        }
    }

    /// Finds whether the packet ends in an invariant CRC, by its imported headers. That of a fragment is no part of it, or of
    /// the whole datagram.
    pub(crate) fn find_ending(&mut self, formats: &Formats) {
        let headers = self.imported.iter().zip(formats.imported());
        let mut endings = headers.filter_map(|(place, format)| {
            Some(Ending { header: (*place)?.0 as usize, variant: Arc::clone(format.variant.as_ref()?) })
        });
        self.ending = endings.next().filter(|_| self.fragment == Fragment::No);
    }

    /// Bytes of the packet's invariant CRC.
    pub(crate) fn crc_length(&self) -> usize {
        if self.ending.is_some() { CRC_LENGTH } else { 0 }
    }

    /// Where a header starts, or `None` if it is not there.
    fn start(&self, header: Header) -> Option<usize> {
        let at = |there: bool, start: usize| there.then_some(start);
        match header {
            Header::Ethernet => at(self.ethernet, 0),
            Header::Vlan => at(self.ethernet && self.network_start > ETHERNET_LENGTH, ETHERNET_LENGTH),
            Header::Arp => at(self.network == Some(Network::Arp), self.network_start),
            Header::Ipv4 => at(self.network == Some(Network::Ipv4), self.network_start),
            Header::Ipv6 => at(matches!(self.network, Some(Network::Ipv6 { .. })), self.network_start),
            Header::Network => at(self.is_ip(), self.network_start),
            Header::Tcp => at(self.transport == Some(Transport::Tcp), self.network_end),
            Header::Udp => at(self.transport == Some(Transport::Udp), self.network_end),
            Header::Transport => at(self.transport.is_some(), self.network_end),
            Header::Imported(index) => self.imported[usize::from(index)].map(|(start, _)| start as usize),
        }
    }

    /// Where what follows a header starts. Behind the network header of a later fragment there is no header.
    fn end(&self, header: Header) -> Option<usize> {
        let start = self.start(header)?;
        match header {
            Header::Ethernet => Some(ETHERNET_LENGTH),
            Header::Vlan => Some(ETHERNET_LENGTH + VLAN_LENGTH),
            Header::Arp => Some(start + ARP_LENGTH),
            Header::Ipv4 | Header::Ipv6 | Header::Network => {
                (self.fragment != Fragment::Later).then_some(self.network_end)
            }
            Header::Tcp | Header::Udp | Header::Transport => Some(self.transport_end),
            Header::Imported(index) => self.imported[usize::from(index)].map(|(_, end)| end as usize),
        }
    }

    /// A field's value, or `None` if it is not there.
    pub(crate) fn read(&self, bytes: &[u8], field: FieldPlace) -> Option<u128> {
        if field.header == Header::Network {
            return self.read_network(bytes, field.offset);
        }
        bits::read(bytes, self.field(bytes, field)?, field.width.into())
    }

    /// A field of the pseudo-header `network`, by its offset.
    fn read_network(&self, bytes: &[u8], offset: u32) -> Option<u128> {
        let (version, address, width) = match self.network? {
            Network::Ipv4 => (4, 12 + offset as usize / 32, 32),
            Network::Ipv6 { .. } => (6, 8 + offset as usize / 8, 128),
            Network::Arp => return None,
        };
        match offset {
            256 => Some(self.protocol.into()),
            264 => Some(version),
            _ => {
                let address = bits::read(bytes, (self.network_start + address) * 8, width)?;
                Some(if version == 4 { IPV4_MAPPED | address } else { address })
            }
        }
    }

    /// Where a field starts, in bits from the packet's start, or `None` if it is not there.
    pub(crate) fn field(&self, bytes: &[u8], field: FieldPlace) -> Option<usize> {
        let start = self.start(field.header)?;
        let range = match field.option {
            None => start..bytes.len(),
            Some(kind) => self.option(bytes, kind)?,
        };
        let offset = field.offset as usize;
        (range.len() * 8 >= offset + usize::from(field.width)).then_some(range.start * 8 + offset)
    }

    /// The bytes of the first TCP option of a kind.
    fn option(&self, bytes: &[u8], kind: u8) -> Option<Range<usize>> {
        let options = self.network_end + TCP_LENGTH;
        let found = RawOptions::new(&bytes[options..self.transport_end]).find(|option| option.bytes[0] == kind)?;
        let start = options + found.at;
        Some(start..start + found.bytes.len())
    }

    pub(crate) fn is_ip(&self) -> bool {
        matches!(self.network, Some(Network::Ipv4 | Network::Ipv6 { .. }))
    }

    /// Bytes behind the start of the network header that its length field does not count: IPv6's fixed header.
    pub(crate) fn bytes_outside_ip_length(&self) -> usize {
        if matches!(self.network, Some(Network::Ipv6 { .. })) { IPV6_LENGTH } else { 0 }
    }

    /// The TCP header has lost `removed` bytes of options: what follows it moved.
    pub(crate) fn shrink_tcp_header(&mut self, removed: usize) {
        for (start, end) in self.imported.iter_mut().flatten() {
            if *start as usize >= self.transport_end {
                *start -= removed as u32;
                *end -= removed as u32;
            }
        }
        self.transport_end -= removed;
        self.payload -= removed;
    }

    /// Takes these places for the imported headers of these numbers.
    pub(crate) fn place_imported(&mut self, placed: impl Iterator<Item = (usize, Range<usize>)>) {
        for (index, range) in placed {
            self.imported[index] = Some((range.start as u32, range.end as u32));
            self.payload = self.payload.max(range.end);
        }
    }
}
