//! IPv4 (RFC 791).

use crate::checksum::checksum;
use crate::drop_reason::DropReason;
use std::net::Ipv4Addr;

/// Bytes of the header without options.
pub const IPV4_LENGTH: usize = 20;

/// An IPv4 packet.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a> {
    header: &'a [u8],
    fixed: &'a [u8; IPV4_LENGTH],
    payload: &'a [u8],
}

impl<'a> Ipv4<'a> {
    /// Reads a packet. Bytes behind its total length are left out. The checksum is not looked at:
    /// [`Ipv4::checksum_is_right`].
    ///
    /// # Errors
    /// `Truncated`, `BadVersion`, or `BadLength` for a header length below 20 or beyond the total length.
    pub fn parse(bytes: &'a [u8]) -> Result<Ipv4<'a>, DropReason> {
        let fixed = bytes.first_chunk::<IPV4_LENGTH>().ok_or(DropReason::Truncated)?;
        if fixed[0] >> 4 != 4 {
            return Err(DropReason::BadVersion);
        }
        let header_length = usize::from(fixed[0] & 0x0f) * 4;
        let total_length = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if header_length < IPV4_LENGTH || total_length < header_length {
            return Err(DropReason::BadLength);
        }
        let packet = bytes.get(..total_length).ok_or(DropReason::Truncated)?;
        let (header, payload) = packet.split_at(header_length);
        Ok(Ipv4 { header, fixed, payload })
    }

    /// Whether the header's checksum is right.
    pub fn checksum_is_right(&self) -> bool {
        checksum(self.header) == 0
    }

    /// Differentiated services code point, 6 bits (RFC 2474).
    pub fn dscp(&self) -> u8 {
        self.fixed[1] >> 2
    }

    /// Explicit congestion notification, 2 bits (RFC 3168).
    pub fn ecn(&self) -> u8 {
        self.fixed[1] & 3
    }

    /// Bytes of header and payload.
    pub fn total_length(&self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Names the datagram that a fragment belongs to.
    pub fn identification(&self) -> u16 {
        u16::from_be_bytes([self.fixed[4], self.fixed[5]])
    }

    /// Routers must not fragment it.
    pub fn dont_fragment(&self) -> bool {
        self.fixed[6] & 0x40 != 0
    }

    /// More fragments follow this one.
    pub fn more_fragments(&self) -> bool {
        self.fixed[6] & 0x20 != 0
    }

    /// Where this fragment's payload belongs, in bytes.
    pub fn fragment_offset(&self) -> u16 {
        (u16::from_be_bytes([self.fixed[6], self.fixed[7]]) & 0x1fff) << 3
    }

    /// Time to live, in hops.
    pub fn ttl(&self) -> u8 {
        self.fixed[8]
    }

    /// What the payload is: 6 TCP, 17 UDP.
    pub fn protocol(&self) -> u8 {
        self.fixed[9]
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[12], self.fixed[13], self.fixed[14], self.fixed[15])
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[16], self.fixed[17], self.fixed[18], self.fixed[19])
    }

    /// The options' bytes.
    pub fn options(&self) -> &'a [u8] {
        &self.header[IPV4_LENGTH..]
    }

    /// Bytes of the header with its options.
    pub fn header_length(&self) -> usize {
        self.header.len()
    }

    /// What follows the header, up to the total length.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}
