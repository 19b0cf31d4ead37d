//! Packets as functions work on them: parsed once, read and changed field by field, made right and sent.
//!
//! What each operation means is fixed in `docs/semantics.md`, rules P1 to P28.

use crate::MacAddress;
use crate::bits;
use crate::buffer::Buffer;
use crate::checksum::{self, Sum};
use crate::drop_reason::DropReason;
use crate::flow::Endpoints;
use crate::format::{FieldPlace, Formats, Header};
use crate::invariant_crc::{CRC_LENGTH, invariant_crc};
use crate::layout::{Fragment, Layout, Network, Transport};
use crate::port::{Checksum, Frame, LinkType, Offload, Segmentation, SegmentationKind};
use crate::wire::ethernet::{ETHERNET_LENGTH, TYPE_IPV4, TYPE_IPV6};
use crate::wire::icmp::{IcmpError, PROTOCOL_ICMP, PROTOCOL_ICMPV6};
use crate::wire::tcp::{MAX_OPTIONS_LENGTH, OPTION_NOP, RawOptions, TCP_LENGTH, TcpFlags};
use crate::wire::udp::UDP_LENGTH;
use crate::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use std::net::IpAddr;
use std::ops::Range;

/// Greatest value of IPv4's total length and IPv6's payload length.
const MAX_IP_LENGTH: usize = 65_535;

/// A packet: its bytes and where its headers are. The default one is empty.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    bytes: Buffer,
    layout: Layout,
    /// Bytes behind the packet that were part of the frame: padding.
    padding: usize,
    segmentation: Option<Segmentation>,
    /// The transport checksum is left to whoever sends the packet.
    partial: bool,
    /// The invariant CRC, if the packet ends in one: as it came, or as [`Packet::finish`] made it.
    crc: [u8; CRC_LENGTH],
}

impl Packet {
    /// Parses a frame that arrived on a port of type `link`.
    ///
    /// # Errors
    /// `Truncated`, `BadLength`, `BadVersion`, `BadChecksum` or `BadInvariantCrc`: the frame is to be dropped.
    pub fn parse(link: LinkType, frame: Frame<'_>, formats: &Formats) -> Result<Packet, DropReason> {
        let mut packet = Packet::default();
        packet.renew(link, frame, formats)?;
        Ok(packet)
    }

    /// As [`Packet::parse`], in place of another packet, whose memory it takes over.
    ///
    /// # Errors
    /// As [`Packet::parse`]; what the packet holds then is of no use.
    pub fn renew(&mut self, link: LinkType, frame: Frame<'_>, formats: &Formats) -> Result<(), DropReason> {
        let end = self.read(link, frame, formats)?;
        self.bytes.assign(&frame.bytes[..end]);
        self.padding = 0;
        Ok(())
    }

    /// Parses a frame where it lies: its buffer becomes the packet's.
    ///
    /// # Errors
    /// As [`Packet::parse`]; the buffer comes back.
    pub fn receive(
        link: LinkType,
        buffer: Buffer,
        offload: Offload,
        formats: &Formats,
    ) -> Result<Packet, (DropReason, Buffer)> {
        let mut packet = Packet::default();
        match packet.read(link, Frame { bytes: &buffer, offload }, formats) {
            Ok(end) => {
                packet.padding = buffer.len() - end;
                packet.bytes = buffer;
                packet.bytes.truncate(end);
                Ok(packet)
            }
            Err(reason) => Err((reason, buffer)),
        }
    }

    /// Finds a frame's headers and checks them. Returns where the packet without its invariant CRC ends in the frame.
    fn read(&mut self, link: LinkType, frame: Frame<'_>, formats: &Formats) -> Result<usize, DropReason> {
        let end = self.layout.renew(link, frame.bytes, formats)?;
        if frame.offload.checksum == Checksum::Unverified
            && !transport_checksum_is_right(&frame.bytes[..end], &self.layout)
        {
            return Err(DropReason::BadChecksum);
        }
        let end = end - self.layout.crc_length();
        if let Some(ending) = &self.layout.ending {
            self.crc = invariant_crc(&frame.bytes[..end], &self.layout, ending);
            if frame.bytes[end..end + CRC_LENGTH] != self.crc {
                return Err(DropReason::BadInvariantCrc);
            }
        }
        self.segmentation = frame.offload.segmentation;
        self.partial = frame.offload.checksum == Checksum::Partial;
        Ok(end)
    }

    /// A copy in this buffer, which is empty.
    pub fn copy_into(&self, mut buffer: Buffer) -> Packet {
        buffer.extend_from_slice(&self.bytes);
        Packet { bytes: buffer, layout: self.layout.clone(), padding: 0, ..*self }
    }

    /// The buffer of a packet that is no longer wanted.
    pub fn into_buffer(self) -> Buffer {
        self.bytes
    }

    /// The frame as it came, if the packet was not changed since [`Packet::receive`]: with its padding.
    pub fn into_frame(mut self) -> Buffer {
        self.bytes.extend_over(self.padding);
        self.bytes
    }

    /// Parses a frame made here, in which all but the transport checksum is right.
    pub(crate) fn from_frame(link: LinkType, bytes: Buffer, formats: &Formats) -> Result<Packet, DropReason> {
        let (layout, _) = Layout::find(link, &bytes, formats)?;
        Ok(Packet { bytes, layout, ..Packet::default() })
    }

    /// A field's value; the low 64 bits of a wider one. `None` if the packet has no such field.
    pub fn get(&self, field: FieldPlace) -> Option<u64> {
        self.get_wide(field).map(|value| value as u64)
    }

    /// A field's value with up to 128 bits. `None` if the packet has no such field.
    pub fn get_wide(&self, field: FieldPlace) -> Option<u128> {
        self.layout.read(&self.bytes, field)
    }

    /// Bits from the start of the frame to a field's first; `None` if the packet has no such field or it is one of
    /// `network`, which is in no one place.
    pub fn bit_of(&self, field: FieldPlace) -> Option<usize> {
        if field.header == Header::Network {
            return None;
        }
        self.layout.field(&self.bytes, field)
    }

    /// Writes a field's low bits. Writing `udp.length` resizes the payload.
    ///
    /// # Errors
    /// `NoField` if the packet has no such field or it is one of `network`; `TooLong` for a UDP length that the
    /// packet cannot have. The packet is then unchanged.
    pub fn set(&mut self, field: FieldPlace, value: u64) -> Result<(), DropReason> {
        if field.header == Header::Network {
            return Err(DropReason::NoField);
        }
        let place = self.layout.field(&self.bytes, field).ok_or(DropReason::NoField)?;
        let mut value = value;
        if field.is_udp_length() {
            let headers = self.layout.payload - self.layout.network_end + self.layout.crc_length();
            let length = usize::from(value as u16).max(headers);
            self.resize_payload(length - headers)?;
            value = length as u64;
        }
        bits::write(&mut self.bytes, place, field.width.into(), value.into());
        Ok(())
    }

    /// The error that the packet is about another packet of TCP or UDP, if it is one and its checksum is right.
    pub fn icmp_error(&self) -> Option<IcmpError> {
        let message = self.bytes.get(self.layout.network_end..)?;
        match (self.layout.network?, self.layout.protocol) {
            _ if self.layout.fragment != Fragment::No => None,
            (Network::Ipv4, PROTOCOL_ICMP) => {
                (checksum::checksum(message) == 0).then(|| IcmpError::of_ipv4(message))?
            }
            (Network::Ipv6 { .. }, PROTOCOL_ICMPV6) => {
                let addresses = self.layout.network_start + 8;
                let sum = Sum::new().bytes(&self.bytes[addresses..addresses + 32]).word(PROTOCOL_ICMPV6.into());
                let sum = sum.word(u16::try_from(message.len()).ok()?).bytes(message);
                (sum.checksum() == 0).then(|| IcmpError::of_ipv6(message))?
            }
            _ => None,
        }
    }

    /// What follows the innermost header; empty without a transport header.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.layout.payload..]
    }

    /// Bytes of all headers: up to the payload, or to the end of the network header if there is no transport header.
    pub fn header_length(&self) -> usize {
        match self.layout.transport {
            Some(_) => self.layout.payload,
            None => self.layout.network_end.max(self.layout.network_start),
        }
    }

    /// Makes the payload `length` bytes long; new bytes are 0.
    ///
    /// # Errors
    /// `TooLong`, or `NoField` without a transport header. The packet is then unchanged.
    pub fn resize_payload(&mut self, length: usize) -> Result<(), DropReason> {
        self.check_payload_length(length)?;
        self.bytes.resize(self.layout.payload + length);
        Ok(())
    }

    /// Appends bytes to the payload.
    ///
    /// # Errors
    /// `TooLong`, or `NoField` without a transport header. The packet is then unchanged.
    pub fn append_payload(&mut self, bytes: &[u8]) -> Result<(), DropReason> {
        self.check_payload_length(self.payload().len().saturating_add(bytes.len()))?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Bytes of a buffer in which the payload may become so long; `None` if it may not, or has room for that as it is.
    pub fn wants_room(&self, payload: usize) -> Option<usize> {
        self.check_payload_length(payload).ok()?;
        let length = self.layout.payload + payload;
        (self.bytes.capacity() < length).then_some(length)
    }

    fn check_payload_length(&self, length: usize) -> Result<(), DropReason> {
        if self.layout.transport.is_none() {
            return Err(DropReason::NoField);
        }
        let headers = self.layout.payload - self.layout.network_start - self.layout.bytes_outside_ip_length();
        let headers = headers + self.layout.crc_length();
        if length > MAX_IP_LENGTH - headers { Err(DropReason::TooLong) } else { Ok(()) }
    }

    /// Swaps source and destination of Ethernet, IP and transport.
    pub fn reverse(&mut self) {
        if self.layout.ethernet {
            self.swap(0, 6);
        }
        match self.layout.network {
            Some(Network::Ipv4) => self.swap(self.layout.network_start + 12, 4),
            Some(Network::Ipv6 { .. }) => self.swap(self.layout.network_start + 8, 16),
            Some(Network::Arp) | None => {}
        }
        if self.layout.transport.is_some() {
            self.swap(self.layout.network_end, 2);
        }
    }

    /// Swaps two neighbouring fields of `length` bytes each.
    fn swap(&mut self, at: usize, length: usize) {
        let (first, second) = self.bytes[at..at + 2 * length].split_at_mut(length);
        first.swap_with_slice(second);
    }

    /// Removes all TCP options but those of the given kinds and pads with NOPs in front; the header shrinks.
    ///
    /// # Errors
    /// `NoField` without a TCP header.
    pub fn keep_options(&mut self, kinds: &[u8]) -> Result<(), DropReason> {
        if self.layout.transport != Some(Transport::Tcp) {
            return Err(DropReason::NoField);
        }
        let start = self.layout.network_end + TCP_LENGTH;
        let old = start..self.layout.transport_end;
        // Filled from the end of a header's worth of NOPs, so that the padding comes to stand in front.
        let mut kept = [OPTION_NOP; MAX_OPTIONS_LENGTH];
        let wanted = || RawOptions::new(&self.bytes[old.clone()]).filter(|option| kinds.contains(&option.bytes[0]));
        let length = wanted().map(|option| option.bytes.len()).sum::<usize>().next_multiple_of(4);
        let mut at = length - wanted().map(|option| option.bytes.len()).sum::<usize>();
        for option in wanted() {
            kept[at..at + option.bytes.len()].copy_from_slice(option.bytes);
            at += option.bytes.len();
        }
        let removed = old.len() - length;
        self.bytes[old.start..old.start + length].copy_from_slice(&kept[..length]);
        self.bytes.remove(old.start + length..old.end);
        self.layout.shrink_tcp_header(removed);
        let data_offset = &mut self.bytes[start - TCP_LENGTH + 12];
        *data_offset = ((TCP_LENGTH + length) as u8) << 2 | *data_offset & 0x0f;
        Ok(())
    }

    /// Lets a TCP packet stand for many segments of so many bytes of payload each, or with any but 1 to 65,535 for itself.
    ///
    /// # Errors
    /// [`DropReason::NoField`] without a TCP header.
    pub fn set_segment_size(&mut self, size: i64) -> Result<(), DropReason> {
        let kind = |ecn| match self.layout.network {
            Some(Network::Ipv6 { .. }) => SegmentationKind::TcpIpv6 { ecn },
            _ => SegmentationKind::TcpIpv4 { ecn },
        };
        if self.layout.transport != Some(Transport::Tcp) {
            return Err(DropReason::NoField);
        }
        let congestion_reduced = self.bytes[self.layout.network_end + 13] & TcpFlags::CWR.0 != 0;
        let size = u16::try_from(size).ok().filter(|size| *size > 0);
        self.segmentation = size.map(|size| Segmentation { size, kind: kind(congestion_reduced) });
        Ok(())
    }

    /// Bytes of the packet with its link header.
    pub fn frame_length(&self) -> usize {
        self.bytes.len()
    }

    /// Makes the lengths right, then the invariant CRC and the checksums.
    ///
    /// A fragment's transport header speaks of the whole datagram and stays as it is. The transport checksum is only
    /// begun (`Checksum::Partial`) if the packet arrived so or stands for many segments, whose checksums are made when
    /// it is cut.
    pub fn finish(&mut self) {
        let start = self.layout.network_start;
        // Below 65,536 by `check_payload_length`, or as it arrived.
        let ip_length = (self.length() - start).saturating_sub(self.layout.bytes_outside_ip_length()) as u16;
        match self.layout.network {
            Some(Network::Ipv4) => self.put(start + 2, ip_length),
            Some(Network::Ipv6 { .. }) => self.put(start + 4, ip_length),
            Some(Network::Arp) | None => return,
        }
        if self.layout.fragment == Fragment::No {
            self.finish_transport();
        }
        if self.layout.network == Some(Network::Ipv4) {
            self.put(start + 10, 0);
            let header = &self.bytes[start..self.layout.network_end];
            self.put(start + 10, Sum::new().bytes(header).checksum());
        }
    }

    fn finish_transport(&mut self) {
        let Some(transport) = self.layout.transport else { return };
        let start = self.layout.network_end;
        let field = start
            + match transport {
                Transport::Tcp => 16,
                Transport::Udp => 6,
            };
        self.partial |= self.stands_for_many().is_some();
        if transport == Transport::Udp {
            self.put(start + 4, (self.length() - start) as u16);
            if let Some(ending) = &self.layout.ending {
                self.crc = invariant_crc(&self.bytes, &self.layout, ending);
            }
            let none = self.bytes[field..field + 2] == [0, 0] && self.layout.network == Some(Network::Ipv4);
            if none && !self.partial {
                return;
            }
        }
        self.put(field, 0);
        let sum = pseudo_header(&self.bytes, self.length(), &self.layout);
        let value = if self.partial {
            sum.folded()
        } else {
            match (transport, self.sum_of_crc(sum.bytes(&self.bytes[start..])).checksum()) {
                // 0 means no checksum (RFC 768).
                (Transport::Udp, 0) => 0xffff,
                (_, checksum) => checksum,
            }
        };
        self.put(field, value);
    }

    /// A sum over all that is in front of the invariant CRC, with that one.
    fn sum_of_crc(&self, sum: Sum) -> Sum {
        let [a, b, c, d] = self.crc;
        match (&self.layout.ending, self.bytes.len() - self.layout.network_end) {
            (None, _) => sum,
            (Some(_), before) if before % 2 == 1 => sum.bytes(&[0, a, b, c, d, 0]),
            (Some(_), _) => sum.bytes(&self.crc),
        }
    }

    /// Bytes of the packet with its link header and its invariant CRC.
    fn length(&self) -> usize {
        self.bytes.len() + self.layout.crc_length()
    }

    fn put(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    /// The frame as a port of type `link` sends it, and what is left to do on it. `buffer` is cleared first.
    pub fn emit(&self, link: LinkType, buffer: &mut Buffer) -> Offload {
        buffer.assign(&self.bytes);
        self.end(buffer);
        self.dress(link, buffer);
        self.offload()
    }

    /// As [`Packet::emit`], in the packet's own buffer.
    pub fn into_emitted(mut self, link: LinkType) -> (Buffer, Offload) {
        let offload = self.offload();
        let mut bytes = std::mem::take(&mut self.bytes);
        self.end(&mut bytes);
        self.dress(link, &mut bytes);
        (bytes, offload)
    }

    /// Bytes of the frame that [`Packet::emit`] makes.
    pub fn emitted_length(&self, link: LinkType) -> usize {
        match (link, self.layout.ethernet) {
            (LinkType::Ip, true) => self.length() - self.layout.network_start,
            (LinkType::Ethernet, false) => self.length() + ETHERNET_LENGTH,
            _ => self.length(),
        }
    }

    /// Appends the invariant CRC to a copy of the packet.
    fn end(&self, frame: &mut Buffer) {
        if self.layout.ending.is_some() {
            frame.extend_from_slice(&self.crc);
        }
    }

    /// Takes the link header off a copy of the packet, or puts one in front.
    fn dress(&self, link: LinkType, frame: &mut Buffer) {
        match (link, self.layout.ethernet) {
            (LinkType::Ip, true) => frame.remove_front(self.layout.network_start),
            (LinkType::Ethernet, false) => {
                let ether_type = if self.layout.network == Some(Network::Ipv4) { TYPE_IPV4 } else { TYPE_IPV6 };
                let mut header = [0; ETHERNET_LENGTH];
                header[ETHERNET_LENGTH - 2..].copy_from_slice(&ether_type.to_be_bytes());
                frame.prepend(&header);
            }
            _ => {}
        }
    }

    /// How it is to be cut, if its payload is longer than a segment.
    fn stands_for_many(&self) -> Option<Segmentation> {
        self.segmentation.filter(|cut| self.behind_transport().len() > usize::from(cut.size))
    }

    /// What is left to do on the packet when it is sent.
    pub fn offload(&self) -> Offload {
        Offload {
            segmentation: self.stands_for_many(),
            checksum: if self.partial { Checksum::Partial } else { Checksum::Unverified },
        }
    }

    /// The ends of the packet's flow, seen from the packet's destination. `None` without a transport header.
    pub fn endpoints(&self) -> Option<Endpoints> {
        let protocol = match self.layout.transport? {
            Transport::Tcp => PROTOCOL_TCP,
            Transport::Udp => PROTOCOL_UDP,
        };
        let start = self.layout.network_start;
        let (remote_address, local_address) = match self.layout.network? {
            Network::Arp => return None,
            Network::Ipv4 => (IpAddr::from(self.array::<4>(start + 12)), IpAddr::from(self.array::<4>(start + 16))),
            Network::Ipv6 { .. } => {
                (IpAddr::from(self.array::<16>(start + 8)), IpAddr::from(self.array::<16>(start + 24)))
            }
        };
        let ethernet = self.layout.ethernet;
        let tagged = ethernet && start > ETHERNET_LENGTH;
        Some(Endpoints {
            protocol,
            local_address,
            local_port: u16::from_be_bytes(self.array(self.layout.network_end + 2)),
            remote_address,
            remote_port: u16::from_be_bytes(self.array(self.layout.network_end)),
            local_mac: MacAddress(if ethernet { self.array(0) } else { [0; 6] }),
            remote_mac: MacAddress(if ethernet { self.array(6) } else { [0; 6] }),
            vlan: tagged.then(|| u16::from_be_bytes(self.array(ETHERNET_LENGTH))),
        })
    }

    /// A packet whose headers are known to be where this layout says.
    pub(crate) fn of_layout(
        bytes: Vec<u8>,
        layout: Layout,
        segmentation: Option<Segmentation>,
        partial: bool,
    ) -> Packet {
        Packet { bytes: bytes.into(), layout, segmentation, partial, ..Packet::default() }
    }

    /// Its bytes with the link header, as they are now.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where its headers are.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether the transport checksum is left to whoever sends the packet.
    pub(crate) fn is_partial(&self) -> bool {
        self.partial
    }

    /// The segmentation asked for.
    pub(crate) fn segmentation(&self) -> Option<Segmentation> {
        self.segmentation
    }

    /// What follows the transport header; empty without one.
    pub(crate) fn behind_transport(&self) -> &[u8] {
        let start = if self.layout.transport.is_some() { self.layout.transport_end } else { self.bytes.len() };
        &self.bytes[start..]
    }

    /// The packet with only this part of what follows its transport header, to be sent as an ordinary one.
    pub(crate) fn cut(&self, part: Range<usize>) -> Packet {
        let behind = self.behind_transport();
        let headers = &self.bytes[..self.bytes.len() - behind.len()];
        let bytes = [headers, &behind[part]].concat();
        Packet { bytes: bytes.into(), layout: self.layout.clone(), ..Packet::default() }
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes[at..at + N]);
        array
    }

    /// Finds the imported headers again after presets.
    pub(crate) fn locate_imported(&mut self, formats: &Formats) {
        self.layout.find_imported(&self.bytes, formats, 0);
    }

    /// Takes these bytes behind the transport header for the imported headers of these numbers.
    pub(crate) fn place_imported(&mut self, placed: impl Iterator<Item = (usize, Range<usize>)>) {
        self.layout.place_imported(placed);
    }

    /// Where the transport header ends.
    pub(crate) fn transport_end(&self) -> usize {
        self.layout.transport_end
    }
}

/// Whether a frame's TCP or UDP checksum holds only the sum over the pseudo-header: whoever sent the frame left the rest
/// to hardware. So frames look in captures that were taken on the host that sent them.
pub fn checksum_is_partial(link: LinkType, bytes: &[u8]) -> bool {
    let Ok((layout, end)) = Layout::find(link, bytes, &Formats::default()) else { return false };
    let bytes = &bytes[..end];
    let field = match layout.transport {
        Some(Transport::Tcp) => layout.network_end + 16,
        Some(Transport::Udp) => layout.network_end + 6,
        None => return false,
    };
    layout.fragment == Fragment::No
        && bytes[field..field + 2] == pseudo_header(bytes, bytes.len(), &layout).folded().to_be_bytes()
        && !transport_checksum_is_right(bytes, &layout)
}

/// Whether the TCP or UDP checksum is right, or cannot or need not be verified.
fn transport_checksum_is_right(bytes: &[u8], layout: &Layout) -> bool {
    let Some(transport) = layout.transport.filter(|_| layout.fragment == Fragment::No) else { return true };
    let segment = &bytes[layout.network_end..];
    if transport == Transport::Udp && segment[6..UDP_LENGTH] == [0, 0] {
        return layout.network == Some(Network::Ipv4);
    }
    pseudo_header(bytes, bytes.len(), layout).bytes(segment).folded() == 0xffff
}

/// Sum over the pseudo-header (RFC 9293, section 3.1; RFC 8200, section 8.1) of a packet that ends at `end`.
fn pseudo_header(bytes: &[u8], end: usize, layout: &Layout) -> Sum {
    let start = layout.network_start;
    let length = end - layout.network_end;
    let sum = Sum::new().word(layout.protocol.into()).word(length as u16).word((length >> 16) as u16);
    match layout.network {
        Some(Network::Ipv6 { final_destination: Some(last) }) => {
            sum.bytes(&bytes[start + 8..start + 24]).bytes(&last.octets())
        }
        Some(Network::Ipv6 { final_destination: None }) => sum.bytes(&bytes[start + 8..start + 40]),
        Some(Network::Ipv4 | Network::Arp) | None => sum.bytes(&bytes[start + 12..start + 20]),
    }
}
