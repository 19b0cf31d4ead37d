//! What links read and change in frames: the ECN field (RFC 3168), and single bits.

use weftwire_core::LinkType;
use weftwire_core::checksum::update;
use weftwire_core::wire::ethernet::{ETHERNET_LENGTH, TYPE_IPV4, TYPE_IPV6, TYPE_SERVICE_VLAN, TYPE_VLAN, VLAN_LENGTH};

/// Congestion experienced.
const CE: u8 = 0b11;

/// Where the IP header of an Ethernet frame with up to two tags starts, and its version.
fn ip_of_ethernet(frame: &[u8]) -> Option<(usize, u8)> {
    let mut start = ETHERNET_LENGTH;
    for _ in 0..3 {
        let ether_type = frame.get(start - 2..start)?;
        match u16::from_be_bytes([ether_type[0], ether_type[1]]) {
            TYPE_VLAN | TYPE_SERVICE_VLAN => start += VLAN_LENGTH,
            TYPE_IPV4 => return Some((start, 4)),
            TYPE_IPV6 => return Some((start, 6)),
            _ => return None,
        }
    }
    None
}

/// The ECN field of an IP header.
fn ecn(version: u8, header: &[u8]) -> Option<u8> {
    match version {
        4 => header.get(1).map(|byte| byte & CE),
        6 => header.get(1).map(|byte| byte >> 4 & CE),
        _ => None,
    }
}

/// Shortest Ethernet frame, without its check sequence.
const SHORTEST: usize = 60;

/// Pads a frame with zeros as a wire asks for: on Ethernet to 60 bytes (64 with the check sequence, IEEE 802.3, 3.2.8). IP
/// packets say themselves how long they are.
pub fn pad(link: LinkType, frame: &mut Vec<u8>) {
    if link == LinkType::Ethernet && frame.len() < SHORTEST {
        frame.resize(SHORTEST, 0);
    }
}

/// Whether a frame's transport is ECN-capable: its IP header says ECT(0), ECT(1) or CE.
pub fn is_ecn_capable(link: LinkType, frame: &[u8]) -> bool {
    let place = match link {
        LinkType::Ethernet => ip_of_ethernet(frame),
        LinkType::Ip => frame.first().map(|byte| (0, byte >> 4)),
    };
    place.and_then(|(start, version)| ecn(version, &frame[start..])).is_some_and(|ecn| ecn != 0)
}

/// The class of a frame: the upper three bits of DSCP (RFC 2474, 4.2.2); 0 if it is not IP.
pub fn class(link: LinkType, frame: &[u8]) -> u8 {
    let place = match link {
        LinkType::Ethernet => ip_of_ethernet(frame),
        LinkType::Ip => frame.first().map(|byte| (0, byte >> 4)),
    };
    let class = place.and_then(|(start, version)| match version {
        4 => frame.get(start + 1).map(|byte| byte >> 5),
        6 => frame.get(start).map(|byte| byte >> 1 & 7),
        _ => None,
    });
    class.unwrap_or(0)
}

/// Writes the DSCP of an Ethernet frame, if it is IP; an IPv4 header's checksum is updated.
pub fn set_dscp(frame: &mut [u8], dscp: u8) {
    let Some((start, version)) = ip_of_ethernet(frame) else { return };
    let Some(header) = frame.get_mut(start..).filter(|header| header.len() > 1) else { return };
    let old = u16::from_be_bytes([header[0], header[1]]);
    let new = match version {
        6 => old & 0xf03f | u16::from(dscp & 63) << 6,
        _ => old & 0xff03 | u16::from(dscp & 63) << 2,
    };
    header[..2].copy_from_slice(&new.to_be_bytes());
    if let Some([high, low]) = header.get_mut(10..12).filter(|_| version == 4) {
        [*high, *low] = update(u16::from_be_bytes([*high, *low]), old, new).to_be_bytes();
    }
}

/// Marks an Ethernet frame with CE. Of IPv4 the header's checksum is updated (RFC 1624): a wrong one stays wrong. A frame
/// that is not ECN-capable stays as it is.
pub fn mark_ce(frame: &mut [u8]) {
    if !is_ecn_capable(LinkType::Ethernet, frame) {
        return;
    }
    let Some((start, version)) = ip_of_ethernet(frame) else { return };
    let header = &mut frame[start..];
    if version == 6 {
        header[1] |= CE << 4;
        return;
    }
    let old = u16::from_be_bytes([header[0], header[1]]);
    header[1] |= CE;
    let new = u16::from_be_bytes([header[0], header[1]]);
    if let Some([high, low]) = header.get_mut(10..12) {
        [*high, *low] = update(u16::from_be_bytes([*high, *low]), old, new).to_be_bytes();
    }
}

/// Inverts a bit, counted from the first (most significant) bit of the frame; nothing beyond its end.
pub fn invert_bit(frame: &mut [u8], bit: u32) {
    if let Some(byte) = frame.get_mut(bit as usize / 8) {
        *byte ^= 0x80 >> (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_core::checksum::checksum;

    /// An Ethernet header with `tags` tags, then an IP header with this ECN field.
    fn frame(tags: usize, version: u8, ecn: u8) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for _ in 0..tags {
            frame.extend([0x81, 0x00, 0x00, 0x07]);
        }
        if version == 4 {
            frame.extend([0x08, 0x00]);
            let mut header =
                vec![0x45, 0xb8 | ecn, 0, 20, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 255, 255, 254];
            let sum = checksum(&header).to_be_bytes();
            header[10..12].copy_from_slice(&sum);
            frame.extend(header);
        } else {
            frame.extend([0x86, 0xdd, 0x6b, 0x8a & 0xcf | ecn << 4]);
            frame.extend([0; 38]);
        }
        frame
    }

    #[test]
    fn marks_capable_packets_and_keeps_the_checksum_right() {
        for tags in 0..=2 {
            for version in [4, 6] {
                for ecn in 0..4 {
                    let mut marked = frame(tags, version, ecn);
                    assert_eq!(is_ecn_capable(LinkType::Ethernet, &marked), ecn != 0);
                    assert_eq!(is_ecn_capable(LinkType::Ip, &marked[14 + 4 * tags..]), ecn != 0);
                    mark_ce(&mut marked);
                    let right = frame(tags, version, if ecn == 0 { 0 } else { 3 });
                    assert_eq!(marked, right, "{tags} tags, IPv{version}, ECN {ecn}");
                }
            }
        }
    }

    #[test]
    fn classes_are_those_of_the_dscp_whatever_else_is_in_its_byte() {
        for (tags, version) in [(0, 4), (2, 4), (0, 6), (1, 6)] {
            for dscp in 0..64 {
                let mut written = frame(tags, version, 2);
                set_dscp(&mut written, dscp);
                assert_eq!(class(LinkType::Ethernet, &written), dscp >> 3);
                assert_eq!(class(LinkType::Ip, &written[14 + 4 * tags..]), dscp >> 3);
                let sum = checksum(&written[14 + 4 * tags..]);
                assert!(version == 6 || sum == 0, "a checksum that is wrong by {sum}");
                set_dscp(&mut written, 0x2e);
                // The byte of the frames here is 0xb8 (expedited forwarding, 46) beside ECN.
                assert_eq!(written, frame(tags, version, 2), "{tags} tags, IPv{version}, DSCP {dscp}");
            }
        }
    }

    #[test]
    fn leaves_what_it_does_not_know() {
        let whole = frame(3, 4, 1);
        assert_eq!(class(LinkType::Ethernet, &whole), 0);
        assert!(!is_ecn_capable(LinkType::Ethernet, &whole), "three tags");
        for version in [4, 6] {
            let whole = frame(2, version, 1);
            for length in 0..whole.len() {
                mark_ce(&mut whole[..length].to_vec());
                is_ecn_capable(LinkType::Ip, &whole[..length]);
                class(LinkType::Ip, &whole[..length]);
                set_dscp(&mut whole[..length].to_vec(), 7);
            }
        }
    }

    #[test]
    fn short_frames_are_padded_on_ethernet_only() {
        for (link, length, padded) in [
            (LinkType::Ethernet, 42, 60),
            (LinkType::Ethernet, 60, 60),
            (LinkType::Ethernet, 61, 61),
            (LinkType::Ip, 28, 28),
        ] {
            let mut frame = vec![1; length];
            pad(link, &mut frame);
            assert_eq!(frame.len(), padded);
            assert!(frame[..length].iter().all(|byte| *byte == 1) && frame[length..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn inverts_one_bit() {
        let mut frame = [0, 0, 0];
        invert_bit(&mut frame, 8);
        invert_bit(&mut frame, 23);
        invert_bit(&mut frame, 24);
        assert_eq!(frame, [0, 0x80, 1]);
    }
}
