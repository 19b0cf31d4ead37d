//! Checksums that a sender has left to hardware. AF_XDP does not say which: a frame from another namespace or a virtual
//! machine comes with nothing but the sum of its pseudo-header in the checksum field, as the network card was to find it.
//!
//! A field that holds just that sum is taken for unfinished. A frame whose checksum is complete and right may hold that value too,
//! by chance; completing it gives the same value again, as it sums the same bytes. So nothing right is ever changed.

use std::ops::Range;
use weftwire_core::checksum::Sum;
use weftwire_core::wire::ethernet::Ethernet;
use weftwire_core::wire::ipv4::Ipv4;
use weftwire_core::wire::ipv6::Ipv6;
use weftwire_core::wire::{PROTOCOL_TCP, PROTOCOL_UDP};

/// Completes the checksum of a received frame if it is unfinished. Returns whether it was.
pub(super) fn complete_received(frame: &mut [u8]) -> bool {
    match Unfinished::find(frame) {
        Some(found) if found.pseudo_header == frame[found.field.clone()] => {
            found.complete(frame);
            true
        }
        _ => false,
    }
}

/// Completes the checksum of a frame that is to be sent, which is known to be unfinished.
pub(super) fn complete_sent(frame: &mut [u8]) {
    if let Some(found) = Unfinished::find(frame) {
        found.complete(frame);
    }
}

/// A TCP or UDP checksum.
struct Unfinished {
    /// What it covers, beside the pseudo-header.
    covered: Range<usize>,
    /// Where it lies.
    field: Range<usize>,
    /// The pseudo-header's sum.
    pseudo_header: [u8; 2],
}

impl Unfinished {
    /// The checksum of a frame, unless it is a fragment or of another protocol.
    fn find(frame: &[u8]) -> Option<Unfinished> {
        let network = Ethernet::parse(frame).ok()?.header_length();
        let packet = &frame[network..];
        let (header, protocol, payload, addresses) = match packet.first()? >> 4 {
            4 => {
                let ip = Ipv4::parse(packet).ok()?;
                let whole = !ip.more_fragments() && ip.fragment_offset() == 0;
                whole.then(|| (ip.header_length(), ip.protocol(), ip.payload().len(), 12..20))?
            }
            6 => {
                let ip = Ipv6::parse(packet).ok()?;
                let whole = ip.fragment().is_none();
                whole.then(|| (ip.header_length(), ip.protocol(), ip.payload().len(), 8..40))?
            }
            _ => return None,
        };
        let checksum = match protocol {
            PROTOCOL_TCP => 16,
            PROTOCOL_UDP => 6,
            _ => return None,
        };
        let start = network + header;
        // At most 65,535, as the IP header says it.
        let sum = Sum::new().bytes(&packet[addresses]).word(u16::from(protocol)).word(payload as u16);
        (checksum + 2 <= payload).then(|| Unfinished {
            covered: start..start + payload,
            field: start + checksum..start + checksum + 2,
            pseudo_header: sum.folded().to_be_bytes(),
        })
    }

    fn complete(self, frame: &mut [u8]) {
        frame[self.field.clone()].copy_from_slice(&self.pseudo_header);
        // 0 would mean "no checksum" in UDP; for TCP both zeros are equal.
        let value = match Sum::new().bytes(&frame[self.covered]).checksum() {
            0 => 0xffff,
            value => value,
        };
        frame[self.field].copy_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weftwire_core::buffer::Buffer;
    use weftwire_core::format::Formats;
    use weftwire_core::packet::Packet;
    use weftwire_core::{LinkType, Offload};

    /// An Ethernet frame of IPv4 or IPv6 with TCP or UDP, without checksums of those; `padding` bytes behind the packet.
    fn frame(v6: bool, protocol: u8, payload: &[u8], padding: usize) -> Vec<u8> {
        let mut transport = vec![0x12, 0x34, 0, 80];
        match protocol {
            PROTOCOL_TCP => transport.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]),
            _ => transport.extend([(8 + payload.len() as u16).to_be_bytes(), [0, 0]].concat()),
        }
        transport.extend(payload);
        let length = transport.len() as u16;
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        if v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend([0xfd; 16]);
            frame.extend([0xfe; 16]);
        } else {
            let mut header = vec![0x45, 0];
            header.extend((20 + length).to_be_bytes());
            header.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            let sum = weftwire_core::checksum::checksum(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend([8, 0]);
            frame.extend(header);
        }
        frame.extend(transport);
        frame.resize(frame.len() + padding, 0xaa);
        frame
    }

    /// Whether the engine takes the frame.
    fn is_right(frame: &[u8]) -> bool {
        let offload = Offload::default();
        Packet::receive(LinkType::Ethernet, Buffer::from(frame.to_vec()), offload, &Formats::default()).is_ok()
    }

    proptest! {
        #[test]
        fn unfinished_checksums_are_completed_and_others_stay(
            v6: bool,
            tcp: bool,
            payload in prop::collection::vec(any::<u8>(), 1..100),
            padding in 0..20_usize,
            wrong in 1..=0xffff_u16,
        ) {
            let protocol = if tcp { PROTOCOL_TCP } else { PROTOCOL_UDP };
            let mut sent = frame(v6, protocol, &payload, padding);
            let found = Unfinished::find(&sent).unwrap();
            sent[found.field.clone()].copy_from_slice(&found.pseudo_header);
            let mut received = sent.clone();
            prop_assert!(complete_received(&mut received) && is_right(&received));
            complete_sent(&mut sent);
            prop_assert_eq!(&sent, &received);
            // A complete one stays, or is completed to the same value.
            complete_received(&mut sent);
            prop_assert_eq!(&sent, &received);
            // So does a wrong one, unless it looks unfinished.
            let value = u16::from_be_bytes([sent[found.field.start], sent[found.field.start + 1]]);
            sent[found.field.clone()].copy_from_slice(&value.wrapping_add(wrong).to_be_bytes());
            let before = sent.clone();
            if !complete_received(&mut sent) {
                prop_assert_eq!(sent, before);
            }
        }

        #[test]
        fn no_frame_does_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..100), v6: bool, tcp: bool, length in 0..100_usize) {
            complete_received(&mut bytes);
            let mut cut = frame(v6, if tcp { PROTOCOL_TCP } else { PROTOCOL_UDP }, &[1; 20], 0);
            cut.truncate(length);
            complete_received(&mut cut);
            complete_sent(&mut cut);
        }
    }

    #[test]
    fn fragments_and_other_protocols_stay() {
        let mut fragment = frame(false, PROTOCOL_UDP, &[1; 20], 0);
        let found = Unfinished::find(&fragment).unwrap();
        fragment[found.field].copy_from_slice(&found.pseudo_header);
        fragment[14 + 6] |= 0x20;
        assert!(!complete_received(&mut fragment));
        assert!(!complete_received(&mut frame(true, 1, &[1; 20], 0)));
    }
}
