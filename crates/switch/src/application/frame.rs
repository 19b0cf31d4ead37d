//! Changing a packet in place, whatever is left to do on it.

use super::Passing;
use weftwire_core::checksum::{Sum, update};
use weftwire_core::port::Checksum;
use weftwire_core::wire::ethernet::{ETHERNET_LENGTH, Ethernet, TYPE_IPV4, TYPE_IPV6};
use weftwire_core::wire::ipv6::Ipv6;
use weftwire_core::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use weftwire_core::{LinkType, MacAddress, Offload};

/// IP protocol number of ICMPv6.
pub const PROTOCOL_ICMPV6: u8 = 58;

/// Hops that packets made here may take.
pub const HOPS: u8 = 64;

/// What a packet's link header carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    Ipv4,
    Ipv6,
    Other,
}

/// Where a packet's network header starts, and what it is. `None` if the link header is cut short.
pub fn network(link: LinkType, frame: &[u8]) -> Option<(usize, Network)> {
    let (start, ether_type) = match link {
        LinkType::Ethernet => {
            let ethernet = Ethernet::parse(frame).ok()?;
            (ethernet.header_length(), ethernet.payload_type())
        }
        LinkType::Ip => (0, if frame.first()? >> 4 == 4 { TYPE_IPV4 } else { TYPE_IPV6 }),
    };
    // The switch has parsed the packet: an IP header that is announced is there, and of its version.
    let network = match ether_type {
        TYPE_IPV4 => Network::Ipv4,
        TYPE_IPV6 => Network::Ipv6,
        _ => Network::Other,
    };
    Some((start, network))
}

/// Whether a packet went to many: by its Ethernet address.
pub fn is_group(link: LinkType, frame: &[u8]) -> bool {
    link == LinkType::Ethernet && frame.first_chunk().is_some_and(|to| MacAddress(*to).is_group())
}

/// Sets the Ethernet addresses, if the link has any.
pub fn set_macs(link: LinkType, frame: &mut [u8], destination: MacAddress, source: MacAddress) {
    if link == LinkType::Ethernet && frame.len() >= ETHERNET_LENGTH {
        frame[..6].copy_from_slice(&destination.octets());
        frame[6..12].copy_from_slice(&source.octets());
    }
}

/// Swaps the Ethernet addresses, if the link has any.
pub fn swap_macs(link: LinkType, frame: &mut [u8]) {
    if let (LinkType::Ethernet, Some((addresses, _))) = (link, frame.split_first_chunk_mut::<12>()) {
        let (destination, source) = addresses.split_at_mut(6);
        destination.swap_with_slice(source);
    }
}

/// Writes a 16-bit word that the checksum at `checksum` covers, and makes that right. Both lie within the frame.
pub fn set_word(frame: &mut [u8], at: usize, value: u16, checksum: usize) {
    let old = word(frame, at);
    let sum = update(word(frame, checksum), old, value);
    put(frame, at, value);
    put(frame, checksum, sum);
}

/// A 16-bit word of a frame, 0 beyond its end.
pub fn word(frame: &[u8], at: usize) -> u16 {
    frame.get(at..at + 2).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Writes a 16-bit word, if it is within the frame.
pub fn put(frame: &mut [u8], at: usize, value: u16) {
    if let Some(bytes) = frame.get_mut(at..at + 2) {
        bytes.copy_from_slice(&value.to_be_bytes());
    }
}

/// Sends a packet made here back to where the message came from: `packet` begins with its IP header, and goes behind
/// the message's link header with its Ethernet addresses swapped.
pub fn answer_packet(passing: &mut Passing<'_>, packet: &[u8]) {
    let Some((start, _)) = network(passing.link, passing.frame) else { return };
    let mut bytes = Vec::with_capacity(start + packet.len());
    bytes.extend_from_slice(&passing.frame[..start]);
    swap_macs(passing.link, &mut bytes);
    bytes.extend_from_slice(packet);
    passing.answer(&bytes, Offload::default());
}

/// The ICMPv6 checksum of a message between these addresses, its own field being 0.
pub fn icmpv6_checksum(addresses: &[u8], message: &[u8]) -> u16 {
    let length = message.len() as u32;
    let sum = Sum::new().bytes(addresses).word((length >> 16) as u16).word(length as u16);
    sum.word(PROTOCOL_ICMPV6.into()).bytes(message).checksum()
}

/// Which address of an IPv6 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    Source,
    Destination,
}

/// Writes the upper 64 bits of an address of the IPv6 header at `start`, and makes the checksum of TCP, UDP or ICMPv6
/// right for it. Returns whether there was such a header.
pub fn set_locator(frame: &mut [u8], start: usize, offload: Offload, which: Address, locator: u64) -> bool {
    let Ok(ip) = Ipv6::parse(&frame[start..]) else { return false };
    // Behind a routing header the checksum covers the last stop's address; later fragments have no checksum.
    let covered = which == Address::Source || ip.final_destination() == ip.destination();
    let first = ip.fragment().is_none_or(|fragment| fragment.offset == 0);
    let offset = match ip.protocol() {
        PROTOCOL_TCP => Some(16),
        PROTOCOL_UDP => Some(6),
        PROTOCOL_ICMPV6 => Some(2),
        _ => None,
    };
    let (protocol, transport) = (ip.protocol(), start + ip.header_length());
    let end = transport + ip.payload().len();
    let at = start + if which == Address::Source { 8 } else { 24 };
    let old: Vec<u16> = (0..4).map(|index| word(frame, at + 2 * index)).collect();
    frame[at..at + 8].copy_from_slice(&locator.to_be_bytes());
    let field = offset.map(|offset| transport + offset).filter(|field| covered && first && field + 2 <= end);
    let Some(field) = field else { return true };
    let before = word(frame, field);
    if protocol == PROTOCOL_UDP && before == 0 && offload.checksum != Checksum::Partial {
        return true;
    }
    // A partial field holds the pseudo-header's sum itself, others its complement.
    let partial = offload.checksum == Checksum::Partial;
    let mut sum = if partial { !before } else { before };
    for (index, old) in old.into_iter().enumerate() {
        sum = update(sum, old, word(frame, at + 2 * index));
    }
    let after = match (partial, protocol) {
        (true, _) => !sum,
        (false, PROTOCOL_UDP) if sum == 0 => 0xffff,
        (false, _) => sum,
    };
    put(frame, field, after);
    true
}
