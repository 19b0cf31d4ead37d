//! Virtio-net headers (virtio 1.2, section 5.1.6; `linux/virtio_net.h`) and core's [`Offload`].
//!
//! Linux puts this header in front of each frame of an `AF_PACKET` socket with `PACKET_VNET_HDR` and of a TUN/TAP
//! device with `IFF_VNET_HDR`. It tells of checksums that are still partial and of super-frames (TSO, GRO) that
//! are still uncut, and takes such frames back for sending. So no offload needs to be switched off.

use weftwire_core::checksum::Sum;
use weftwire_core::port::{Checksum, SegmentationKind};
use weftwire_core::wire::ethernet::Ethernet;
use weftwire_core::wire::ipv4::Ipv4;
use weftwire_core::wire::ipv6::Ipv6;
use weftwire_core::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use weftwire_core::{Frame, LinkType, Offload, Segmentation};

/// Length of the header in bytes, without the later fields for merged buffers and hashes.
pub const HEADER_LENGTH: usize = 10;

/// A header's bytes. Multi-byte fields are in the machine's own byte order.
pub type Header = [u8; HEADER_LENGTH];

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;

const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// A received super-frame that core's [`Offload`] can't express (tunnelled, or of an unknown kind).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inexpressible;

/// Reads the header of a received frame.
///
/// A partial checksum that is not that of the outer TCP or UDP header (the kernel left an encapsulated one to
/// hardware) is completed in place here: [`Checksum::Partial`] always means the outer one.
///
/// # Errors
/// [`Inexpressible`]: the frame can't be handed on and has to be dropped.
pub fn decode(header: &Header, frame: &mut [u8], link: LinkType) -> Result<Offload, Inexpressible> {
    let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let (flags, gso_type, gso_size) = (header[0], header[1], word(4));
    let (start, offset) = (usize::from(word(6)), usize::from(word(8)));

    let ecn = gso_type & GSO_ECN != 0;
    let kind = match gso_type & !GSO_ECN {
        GSO_NONE => None,
        GSO_TCP4 => Some(SegmentationKind::TcpIpv4 { ecn }),
        GSO_TCP6 => Some(SegmentationKind::TcpIpv6 { ecn }),
        GSO_UDP_L4 => Some(SegmentationKind::Udp),
        _ => return Err(Inexpressible),
    };
    let segmentation = match kind {
        Some(_) if gso_size == 0 => return Err(Inexpressible),
        Some(kind) => Some(Segmentation { size: gso_size, kind }),
        None => None,
    };

    let checksum = if flags & NEEDS_CHECKSUM != 0 {
        let outer = Transport::find(frame, link);
        if outer.is_some_and(|outer| outer.offset == start && outer.checksum_offset() == offset) {
            Checksum::Partial
        } else if segmentation.is_some() {
            return Err(Inexpressible);
        } else {
            complete(frame, start, offset);
            Checksum::Unverified
        }
    } else if flags & DATA_VALID != 0 {
        Checksum::Verified
    } else {
        Checksum::Unverified
    };
    Ok(Offload { segmentation, checksum })
}

/// Makes the header that sends `frame`.
pub fn encode(frame: &Frame<'_>, link: LinkType) -> Header {
    let mut header = Header::default();
    if frame.offload.segmentation.is_none() && frame.offload.checksum != Checksum::Partial {
        return header;
    }
    let Some(transport) = Transport::find(frame.bytes, link) else { return header };
    let mut put = |at: usize, value: usize| {
        // Offsets in headers and segment sizes fit; a frame that lies about them gets a header the kernel refuses.
        header[at..at + 2].copy_from_slice(&(value as u16).to_ne_bytes());
    };
    if frame.offload.checksum == Checksum::Partial {
        put(6, transport.offset);
        put(8, transport.checksum_offset());
    }
    if let Some(segmentation) = frame.offload.segmentation {
        put(2, transport.offset + transport.header_length(frame.bytes));
        put(4, usize::from(segmentation.size));
        header[1] = match segmentation.kind {
            SegmentationKind::TcpIpv4 { ecn } => GSO_TCP4 | if ecn { GSO_ECN } else { 0 },
            SegmentationKind::TcpIpv6 { ecn } => GSO_TCP6 | if ecn { GSO_ECN } else { 0 },
            SegmentationKind::Udp => GSO_UDP_L4,
        };
    }
    if frame.offload.checksum == Checksum::Partial {
        header[0] = NEEDS_CHECKSUM;
    }
    header
}

/// Bytes of each full frame that a super-frame is cut into.
pub(crate) fn segment_length(frame: &Frame<'_>, link: LinkType) -> Option<usize> {
    let size = frame.offload.segmentation?.size;
    let transport = Transport::find(frame.bytes, link)?;
    let headers = transport.offset + transport.header_length(frame.bytes);
    Some(frame.bytes.len().min(headers + usize::from(size)))
}

/// Where the outer TCP or UDP header lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Transport {
    offset: usize,
    protocol: u8,
}

impl Transport {
    fn find(frame: &[u8], link: LinkType) -> Option<Transport> {
        let network = match link {
            LinkType::Ip => 0,
            LinkType::Ethernet => Ethernet::parse(frame).ok()?.header_length(),
        };
        let packet = frame.get(network..)?;
        let (length, protocol) = match packet.first()? >> 4 {
            4 => Ipv4::parse(packet).map(|ip| (ip.header_length(), ip.protocol())).ok()?,
            6 => Ipv6::parse(packet).map(|ip| (ip.header_length(), ip.protocol())).ok()?,
            _ => return None,
        };
        matches!(protocol, PROTOCOL_TCP | PROTOCOL_UDP).then_some(Transport { offset: network + length, protocol })
    }

    /// Bytes from the transport header to its checksum field.
    fn checksum_offset(self) -> usize {
        if self.protocol == PROTOCOL_TCP { 16 } else { 6 }
    }

    fn header_length(self, frame: &[u8]) -> usize {
        match (self.protocol, frame.get(self.offset + 12)) {
            (PROTOCOL_TCP, Some(data_offset)) => usize::from(data_offset >> 4) * 4,
            _ => 8,
        }
    }
}

/// Completes a partial checksum: the one's complement sum from `start` to the end (RFC 1071), put at
/// `start + offset`. Does nothing if that lies outside the frame.
fn complete(frame: &mut [u8], start: usize, offset: usize) {
    let Some(covered) = frame.get_mut(start..) else { return };
    if offset + 2 > covered.len() {
        return;
    }
    // 0 would mean "no checksum" in UDP; for the other protocols both zeros are equal.
    let value = match Sum::new().bytes(covered).checksum() {
        0 => 0xffff,
        value => value,
    };
    covered[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, `tags` VLAN tags, IPv4 without options, TCP with a 20-byte header, 100 bytes of payload.
    fn tcp4(tags: usize) -> Vec<u8> {
        let mut frame = vec![0; 12];
        for _ in 0..tags {
            frame.extend([0x81, 0x00, 0x00, 0x05]);
        }
        frame.extend([0x08, 0x00, 0x45, 0, 0, 140, 0, 0, 0, 0, 64, 6]);
        frame.resize(frame.len() + 10 + 12, 0);
        frame.push(0x50);
        frame.resize(frame.len() + 7 + 100, 0);
        frame
    }

    fn udp6_behind_hop_by_hop() -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 24, 0, 64];
        packet.resize(40, 0);
        packet.extend([17, 0, 1, 4, 0, 0, 0, 0]);
        packet.resize(packet.len() + 16, 0);
        packet
    }

    fn partial() -> Offload {
        Offload { segmentation: None, checksum: Checksum::Partial }
    }

    fn super_frame(kind: SegmentationKind, size: u16) -> Offload {
        Offload { segmentation: Some(Segmentation { size, kind }), checksum: Checksum::Partial }
    }

    #[test]
    fn headers_survive_both_ways() {
        let cases = [
            (tcp4(0), LinkType::Ethernet, partial()),
            (tcp4(2), LinkType::Ethernet, super_frame(SegmentationKind::TcpIpv4 { ecn: true }, 40)),
            (tcp4(1), LinkType::Ethernet, super_frame(SegmentationKind::TcpIpv4 { ecn: false }, 1448)),
            (udp6_behind_hop_by_hop(), LinkType::Ip, partial()),
            (udp6_behind_hop_by_hop(), LinkType::Ip, super_frame(SegmentationKind::Udp, 4)),
            (tcp4(0), LinkType::Ethernet, Offload::default()),
        ];
        for (mut bytes, link, offload) in cases {
            let before = bytes.clone();
            let header = encode(&Frame { bytes: &bytes, offload }, link);
            assert_eq!(decode(&header, &mut bytes, link), Ok(offload));
            assert_eq!(bytes, before);
        }
    }

    #[test]
    fn places_are_those_of_the_outer_transport_header() {
        let frame = tcp4(1);
        let offload = super_frame(SegmentationKind::TcpIpv4 { ecn: false }, 1000);
        let header = encode(&Frame { bytes: &frame, offload }, LinkType::Ethernet);
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        assert_eq!((header[0], header[1]), (NEEDS_CHECKSUM, GSO_TCP4));
        assert_eq!((word(2), word(4)), (14 + 4 + 20 + 20, 1000));
        assert_eq!((word(6), word(8)), (14 + 4 + 20, 16));
    }

    #[test]
    fn a_verified_frame_is_known_as_such() {
        let mut header = Header::default();
        header[0] = DATA_VALID;
        let offload = decode(&header, &mut tcp4(0), LinkType::Ethernet).unwrap();
        assert_eq!(offload.checksum, Checksum::Verified);
    }

    #[test]
    fn an_inner_partial_checksum_is_completed() {
        let mut frame = tcp4(0);
        let (start, offset) = (60, 6);
        frame[start..].fill(1);
        // The sum of 0x0101 over the covered words, with whatever the field held, becomes all ones.
        let mut header = Header::default();
        header[0] = NEEDS_CHECKSUM;
        header[6..8].copy_from_slice(&(start as u16).to_ne_bytes());
        header[8..10].copy_from_slice(&(offset as u16).to_ne_bytes());
        let pseudo = u16::from_be_bytes([frame[start + offset], frame[start + offset + 1]]);
        let offload = decode(&header, &mut frame, LinkType::Ethernet).unwrap();
        assert_eq!(offload.checksum, Checksum::Unverified);
        let mut sum = u32::from(pseudo);
        for pair in frame[start..].chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        assert_eq!(sum, 0xffff);
    }

    #[test]
    fn what_cannot_be_expressed_is_refused() {
        let mut unknown = Header::default();
        unknown[1] = 3; // UFO, gone since Linux 4.14
        unknown[4] = 1;
        assert_eq!(decode(&unknown, &mut tcp4(0), LinkType::Ethernet), Err(Inexpressible));
        let mut without_size = Header::default();
        without_size[1] = GSO_TCP4;
        assert_eq!(decode(&without_size, &mut tcp4(0), LinkType::Ethernet), Err(Inexpressible));
    }

    #[test]
    fn short_frames_do_no_harm() {
        let mut header = Header::default();
        header[0] = NEEDS_CHECKSUM;
        for length in 0..60 {
            let mut frame = tcp4(0);
            frame.truncate(length);
            let _ = decode(&header, &mut frame, LinkType::Ethernet);
            encode(&Frame { bytes: &frame, offload: partial() }, LinkType::Ethernet);
        }
    }
}
