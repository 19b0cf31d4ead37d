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
    /// [`FieldError`].
    pub fn new(fault: &FieldFault, seed: u64) -> Result<FieldCorruptor, FieldError> {
        let formats = Formats::default();
        let name = &fault.field;
        let (format, field) = name.split_once('.').unwrap_or((name, ""));
        if format == "network" {
            return Err(FieldError::Ambiguous(name.clone()));
        }
        let field = formats.field(format, field).ok_or_else(|| unknown(name))?;
        let width = u32::from(field.width().min(64));
        if fault.mask.checked_shr(width).unwrap_or(0) != 0 {
            return Err(FieldError::WideMask { mask: fault.mask, width, field: name.clone() });
        }
        if fault.share_millionths > 1_000_000 {
            return Err(FieldError::Share(fault.share_millionths));
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

/// What is wrong with the fault that corrupts a field.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FieldError {
    /// The field is at another place in packets of IPv4 than in those of IPv6.
    #[error("`{0}` stands for fields of IPv4 and of IPv6; name one of `ipv4` or `ipv6`")]
    Ambiguous(String),
    /// There is no such field, but a header of this name.
    #[error("`{header}` is a header, not a field; its fields are {fields}")]
    Header {
        /// The header.
        header: String,
        /// Its fields.
        fields: String,
    },
    /// There is no such field, but one with nearly this name.
    #[error("there is no field `{field}`; did you mean `{near}`?")]
    Misspelt {
        /// What was asked for.
        field: String,
        /// What there is.
        near: String,
    },
    /// There is no such field.
    #[error("there is no field `{0}`; fields are named like `tcp.sequence` or `ipv4.ttl`")]
    Unknown(String),
    /// The mask is wider than the field.
    #[error("the mask {mask:#x} does not fit into the {width} bits of `{field}`")]
    WideMask {
        /// The mask.
        mask: u64,
        /// The field's bits.
        width: u32,
        /// The field.
        field: String,
    },
    /// More packets than there are.
    #[error("a share of {0} millionths; at most 1000000 is possible")]
    Share(u32),
}

/// Why there is no such field, with what might have been meant.
fn unknown(name: &str) -> FieldError {
    let names: Vec<String> = builtin_formats()
        .iter()
        .filter(|format| format.name != "network")
        .flat_map(|format| format.fields.iter().map(|field| format!("{}.{}", format.name, field.name)))
        .collect();
    if let Some(format) = builtin_formats().iter().find(|format| format.name == name) {
        let fields: Vec<_> = format.fields.iter().map(|field| field.name.as_str()).collect();
        return FieldError::Header { header: name.to_owned(), fields: fields.join(", ") };
    }
    match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => FieldError::Misspelt { field: name.to_owned(), near: near.to_owned() },
        None => FieldError::Unknown(name.to_owned()),
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
        let refuse = |field: &str, mask: u64| match FieldCorruptor::new(&fault(field, mask, 1), 1) {
            Ok(_) => panic!("`{field}` with the mask {mask:#x} was not refused"),
            Err(error) => error.to_string(),
        };
        assert!(refuse("tcp.sequense", 1).contains("`tcp.sequence`"));
        assert!(refuse("tcp", 1).contains("source_port"));
        assert!(refuse("zzz", 1).contains("ipv4.ttl"));
        assert!(refuse("network.source", 1).contains("`ipv6`"));
        assert!(refuse("ipv4.ttl", 0x100).contains("8 bits"));
    }
}
