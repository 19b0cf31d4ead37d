//! The fault that corrupts one header field.

use crate::chance::Chance;
use crate::model::FieldFault;
use weftwire_core::port::{Checksum, Offload};
use weftwire_core::{FieldPlace, Formats, Frame, LinkType, Packet, builtin_formats};
use weftwire_text::diagnostic::nearest;

/// Corrupts a header field of some packets. Checksums are left as they are, so the receiver can find out.
pub struct FieldCorruptor {
    field: FieldPlace,
    mask: u64,
    share: f64,
    formats: Formats,
    chance: Chance,
}

impl FieldCorruptor {
    /// From the fault, with its own random numbers.
    ///
    /// # Errors
    /// What is wrong with the fault: no such field, a field that is in no one place, a mask wider than the field, a share above 1.
    pub fn new(fault: &FieldFault, seed: u64) -> Result<FieldCorruptor, String> {
        let formats = Formats::default();
        let name = &fault.field;
        let (format, field) = name.split_once('.').unwrap_or((name, ""));
        if format == "network" {
            return Err(format!("`{name}` stands for fields of IPv4 and of IPv6; name one of `ipv4` or `ipv6`"));
        }
        let field = formats.field(format, field).ok_or_else(|| unknown(name))?;
        let width = u32::from(field.width().min(64));
        if fault.mask.checked_shr(width).unwrap_or(0) != 0 {
            return Err(format!("the mask {:#x} does not fit into the {width} bits of `{name}`", fault.mask));
        }
        if fault.share_millionths > 1_000_000 {
            return Err(format!("a share of {} millionths; at most 1000000 is possible", fault.share_millionths));
        }
        let share = f64::from(fault.share_millionths) / 1e6;
        Ok(FieldCorruptor { field, mask: fault.mask, share, formats, chance: Chance::new(seed) })
    }

    /// Corrupts the frame if it is this one's turn and it has the field. Whether it did.
    pub fn apply(&mut self, link: LinkType, frame: &mut [u8]) -> bool {
        if self.mask == 0 || !self.chance.happens(self.share) {
            return false;
        }
        // The transport checksum may be wrong already.
        let offload = Offload { checksum: Checksum::Verified, ..Offload::default() };
        let Ok(packet) = Packet::parse(link, Frame { bytes: frame, offload }, &self.formats) else { return false };
        let Some(start) = packet.bit_of(self.field) else { return false };
        let width = usize::from(self.field.width());
        for bit in 0..width.min(64) {
            if self.mask >> bit & 1 == 1 {
                let place = start + width - 1 - bit;
                frame[place / 8] ^= 0x80 >> (place % 8);
            }
        }
        true
    }
}

/// Why there is no such field, with what might have been meant.
fn unknown(name: &str) -> String {
    let names: Vec<String> = builtin_formats()
        .iter()
        .filter(|format| format.name != "network")
        .flat_map(|format| format.fields.iter().map(|field| format!("{}.{}", format.name, field.name)))
        .collect();
    if let Some(format) = builtin_formats().iter().find(|format| format.name == name) {
        let fields: Vec<_> = format.fields.iter().map(|field| field.name.as_str()).collect();
        return format!("`{name}` is a header, not a field; its fields are {}", fields.join(", "));
    }
    match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("there is no field `{name}`; did you mean `{near}`?"),
        None => format!("there is no field `{name}`; fields are named like `tcp.sequence` or `ipv4.ttl`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};

    fn fault(field: &str, mask: u64, share_millionths: u32) -> FieldFault {
        FieldFault { field: field.to_owned(), mask, share_millionths }
    }

    fn udp() -> Vec<u8> {
        let ip =
            Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), ..Ipv4Fields::default() };
        FrameBuilder::ethernet([2; 6], [4; 6]).ipv4(&ip).udp(1_000, 2_000).payload(b"hello").finish().expect("a frame")
    }

    #[test]
    fn changes_the_field_and_nothing_else() {
        let frame = udp();
        let mut corrupted = frame.clone();
        let mut corruptor = FieldCorruptor::new(&fault("udp.destination_port", 0x8001, 1_000_000), 1).expect("a field");
        assert!(corruptor.apply(LinkType::Ethernet, &mut corrupted));
        let changed: Vec<_> = (0..frame.len()).filter(|&at| frame[at] != corrupted[at]).collect();
        assert_eq!(changed, [36, 37]);
        assert_eq!(u16::from_be_bytes([corrupted[36], corrupted[37]]), 2_000 ^ 0x8001);
        // Again, though the checksum is wrong now: back to where it was.
        assert!(corruptor.apply(LinkType::Ethernet, &mut corrupted));
        assert_eq!(corrupted, frame);
    }

    #[test]
    fn leaves_packets_without_the_field_and_takes_its_share() {
        let mut tcp = FieldCorruptor::new(&fault("tcp.sequence", 1, 1_000_000), 1).expect("a field");
        assert!(!tcp.apply(LinkType::Ethernet, &mut udp()));
        assert!(!tcp.apply(LinkType::Ethernet, &mut [0; 7]));
        let mut some = FieldCorruptor::new(&fault("ipv4.ttl", 0xff, 250_000), 1).expect("a field");
        let hits = (0..4_000).filter(|_| some.apply(LinkType::Ethernet, &mut udp())).count();
        assert!((880..1_120).contains(&hits), "{hits} of 4,000 at a share of 1/4");
    }

    #[test]
    fn refusals_say_what_would_be_right() {
        let refuse = |field: &str, mask: u64| FieldCorruptor::new(&fault(field, mask, 1), 1).err().expect("refused");
        assert!(refuse("tcp.sequense", 1).contains("`tcp.sequence`"));
        assert!(refuse("tcp", 1).contains("source_port"));
        assert!(refuse("zzz", 1).contains("ipv4.ttl"));
        assert!(refuse("network.source", 1).contains("`ipv6`"));
        assert!(refuse("ipv4.ttl", 0x100).contains("8 bits"));
    }
}
