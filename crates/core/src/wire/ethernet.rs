//! Ethernet II with up to two VLAN tags (IEEE 802.3, 802.1Q, 802.1ad).

use crate::MacAddress;
use crate::drop_reason::DropReason;

/// EtherType of IPv4.
pub const TYPE_IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const TYPE_ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const TYPE_IPV6: u16 = 0x86dd;
/// Tag protocol identifier of 802.1Q (customer tags).
pub const TYPE_VLAN: u16 = 0x8100;
/// Tag protocol identifier of 802.1ad (service tags).
pub const TYPE_SERVICE_VLAN: u16 = 0x88a8;

/// Bytes of an Ethernet header without tags.
pub const ETHERNET_LENGTH: usize = 14;
/// Bytes of one VLAN tag.
pub const VLAN_LENGTH: usize = 4;

/// An Ethernet II frame.
#[derive(Clone, Copy, Debug)]
pub struct Ethernet<'a> {
    fixed: &'a [u8; ETHERNET_LENGTH],
    tags: &'a [u8],
    payload_type: u16,
    payload: &'a [u8],
}

impl<'a> Ethernet<'a> {
    /// Reads a frame without its frame check sequence.
    ///
    /// # Errors
    /// `Truncated` if the header or an announced tag does not fit.
    pub fn parse(bytes: &'a [u8]) -> Result<Ethernet<'a>, DropReason> {
        let (fixed, behind) = bytes.split_first_chunk::<ETHERNET_LENGTH>().ok_or(DropReason::Truncated)?;
        let mut payload_type = u16::from_be_bytes([fixed[12], fixed[13]]);
        let mut payload = behind;
        for _ in 0..2 {
            if !matches!(payload_type, TYPE_VLAN | TYPE_SERVICE_VLAN) {
                break;
            }
            let (tag, rest) = payload.split_first_chunk::<VLAN_LENGTH>().ok_or(DropReason::Truncated)?;
            payload_type = u16::from_be_bytes([tag[2], tag[3]]);
            payload = rest;
        }
        let tags = &behind[..behind.len() - payload.len()];
        Ok(Ethernet { fixed, tags, payload_type, payload })
    }

    /// Destination address.
    pub fn destination(&self) -> MacAddress {
        MacAddress([self.fixed[0], self.fixed[1], self.fixed[2], self.fixed[3], self.fixed[4], self.fixed[5]])
    }

    /// Source address.
    pub fn source(&self) -> MacAddress {
        MacAddress([self.fixed[6], self.fixed[7], self.fixed[8], self.fixed[9], self.fixed[10], self.fixed[11]])
    }

    /// The header's own type field: of a tagged frame the tag protocol identifier.
    pub fn ether_type(&self) -> u16 {
        u16::from_be_bytes([self.fixed[12], self.fixed[13]])
    }

    /// The VLAN tags, outer one first; at most two.
    pub fn tags(&self) -> impl Iterator<Item = VlanTag> + 'a {
        self.tags.chunks_exact(VLAN_LENGTH).map(|tag| VlanTag(u16::from_be_bytes([tag[0], tag[1]])))
    }

    /// Type of the payload, behind all tags.
    pub fn payload_type(&self) -> u16 {
        self.payload_type
    }

    /// What follows the header and its tags, with the padding of short frames.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Bytes of the header with its tags.
    pub fn header_length(&self) -> usize {
        ETHERNET_LENGTH + self.tags.len()
    }
}

/// The tag control information of a VLAN tag (802.1Q, clause 9.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VlanTag(pub u16);

impl VlanTag {
    /// Priority code point, 0 to 7.
    pub fn priority(self) -> u8 {
        (self.0 >> 13) as u8
    }

    /// Drop eligible indicator.
    pub fn drop_eligible(self) -> bool {
        self.0 & 0x1000 != 0
    }

    /// VLAN identifier, 0 to 4,095.
    pub fn id(self) -> u16 {
        self.0 & 0x0fff
    }
}
