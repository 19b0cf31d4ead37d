//! UDP (RFC 768).

use crate::drop_reason::DropReason;

/// Bytes of the header.
pub const UDP_LENGTH: usize = 8;

/// A UDP datagram.
#[derive(Clone, Copy, Debug)]
pub struct Udp<'a> {
    fixed: &'a [u8; UDP_LENGTH],
    payload: &'a [u8],
}

impl<'a> Udp<'a> {
    /// Reads a datagram out of an IP payload. Bytes behind its length are left out.
    ///
    /// # Errors
    /// `Truncated`, or `BadLength` for a length below 8 or beyond the IP payload.
    pub fn parse(bytes: &'a [u8]) -> Result<Udp<'a>, DropReason> {
        let udp = Udp::parse_first_fragment(bytes)?;
        let datagram = bytes.get(..usize::from(udp.length())).ok_or(DropReason::BadLength)?;
        Ok(Udp { payload: &datagram[UDP_LENGTH..], ..udp })
    }

    /// Reads the first fragment of a datagram, whose length counts bytes that are in later fragments.
    ///
    /// # Errors
    /// `Truncated`, or `BadLength` for a length below 8.
    pub fn parse_first_fragment(bytes: &'a [u8]) -> Result<Udp<'a>, DropReason> {
        let (fixed, payload) = bytes.split_first_chunk::<UDP_LENGTH>().ok_or(DropReason::Truncated)?;
        let udp = Udp { fixed, payload };
        if usize::from(udp.length()) < UDP_LENGTH {
            return Err(DropReason::BadLength);
        }
        Ok(udp)
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[0], self.fixed[1]])
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Bytes of header and payload.
    pub fn length(&self) -> u16 {
        u16::from_be_bytes([self.fixed[4], self.fixed[5]])
    }

    /// The checksum field; 0 over IPv4: none.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.fixed[6], self.fixed[7]])
    }

    /// What follows the header.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}
