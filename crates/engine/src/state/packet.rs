//! Stored packets in the bytes of a flow.

use super::StateError;
use super::bytes::{Reader, Writer};
use std::net::Ipv6Addr;
use weftwire_core::Segmentation;
use weftwire_core::packet_parts::{NetworkPart, PacketParts};
use weftwire_core::port::SegmentationKind;
use weftwire_image::layout::LayoutSection;

const ETHERNET: u64 = 1;
const PARTIAL: u64 = 2;
const ROUTED: u64 = 4;
const NETWORK: u32 = 8;
const FRAGMENT: u32 = 16;

const NETWORKS: [NetworkPart; 4] = [NetworkPart::None, NetworkPart::Arp, NetworkPart::Ipv4, NetworkPart::Ipv6];

/// Writes a packet with its entry.
pub fn write<'l>(writer: &mut Writer<'l>, section: &'l LayoutSection, parts: &PacketParts) {
    let flag = |on: bool, bit: u64| if on { bit } else { 0 };
    let network = NETWORKS.iter().position(|part| *part == parts.network).unwrap_or(0) as u64;
    let kind = flag(parts.ethernet, ETHERNET)
        | flag(parts.partial, PARTIAL)
        | flag(parts.final_destination.is_some(), ROUTED)
        | network << NETWORK
        | u64::from(parts.fragment) << FRAGMENT;
    let segments = parts.segmentation.map_or(0, |cut| u64::from(cut.size) | u64::from(cut.kind.number()) << 16);
    writer.fields(&section.entry);
    writer.word("kind", kind);
    writer.word("protocol", parts.protocol.into());
    writer.word("segments", segments);
    writer.word("network", pair((parts.network_start, parts.network_end)));
    writer.word("transport end", parts.transport_end.into());
    writer.word("payload", parts.payload.into());
    writer.string("final destination", &parts.final_destination.unwrap_or(Ipv6Addr::UNSPECIFIED).octets());
    let imported: Vec<u8> = parts.imported.iter().flat_map(|place| pair(*place).to_le_bytes()).collect();
    writer.string("imported", &imported);
    writer.filled(&parts.bytes);
}

fn pair((low, high): (u32, u32)) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn unpair(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// Reads a packet of this length. Whether its parts make a packet is seen when it is put together.
pub fn read<'l>(
    reader: &mut Reader<'_, 'l>,
    section: &'l LayoutSection,
    length: usize,
) -> Result<PacketParts, StateError> {
    reader.fields(section.name.as_str(), &section.entry);
    let kind = reader.word("kind")?;
    let (network, fragment) = ((kind >> NETWORK & 3) as usize, (kind >> FRAGMENT & 3) as u8);
    let known = ETHERNET | PARTIAL | ROUTED | 3 << NETWORK | 3 << FRAGMENT;
    if kind & !known != 0 {
        return Err(StateError::value(
            reader.named("kind"),
            format!("{kind:#x}"),
            "made of the bits that have a meaning",
        ));
    }
    let protocol = reader.below("protocol", 256)? as u8;
    let segments = reader.word("segments")?;
    let segmentation = match (segments, SegmentationKind::numbered((segments >> 16).min(255) as u8)) {
        (0, _) => None,
        (_, Some(kind)) => Some(Segmentation { size: segments as u16, kind }),
        _ => return Err(StateError::value(reader.named("segments"), segments, "a size with a kind from 1 to 5")),
    };
    let (network_start, network_end) = unpair(reader.word("network")?);
    let transport_end = reader.below("transport end", 1 << 32)? as u32;
    let payload = reader.below("payload", 1 << 32)? as u32;
    let destination = Ipv6Addr::from(reader.string::<16>("final destination")?);
    let final_destination = (kind & ROUTED != 0).then_some(destination);
    if final_destination.is_none() && !destination.is_unspecified() {
        return Err(StateError::value(reader.named("final destination"), destination, ":: without its bit"));
    }
    let imported_length = section.entry.last().map_or(0, |field| field.words * 8);
    let imported = reader.part("imported", imported_length)?;
    let imported = imported.chunks_exact(8).map(|word| unpair(u64::from_le_bytes(word.try_into().unwrap_or([0; 8]))));
    Ok(PacketParts {
        imported: imported.collect(),
        bytes: reader.filled("bytes", length)?.to_vec(),
        ethernet: kind & ETHERNET != 0,
        network: NETWORKS[network],
        network_start,
        network_end,
        final_destination,
        protocol,
        fragment,
        transport_end,
        payload,
        segmentation,
        partial: kind & PARTIAL != 0,
    })
}
