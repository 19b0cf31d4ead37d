//! ARP for IPv4 over Ethernet (RFC 826).

use crate::MacAddress;
use crate::drop_reason::DropReason;
use std::net::Ipv4Addr;

/// Bytes of the packet.
pub const ARP_LENGTH: usize = 28;

/// An ARP packet.
#[derive(Clone, Copy, Debug)]
pub struct Arp<'a>(&'a [u8; ARP_LENGTH]);

impl<'a> Arp<'a> {
    /// Reads an ARP packet; `None` if it is not for Ethernet and IPv4 addresses.
    ///
    /// # Errors
    /// `Truncated` if it does not fit.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Arp<'a>>, DropReason> {
        let start = bytes.first_chunk::<8>().ok_or(DropReason::Truncated)?;
        if start[..6] != [0, 1, 8, 0, 6, 4] {
            return Ok(None);
        }
        bytes.first_chunk().map(|bytes| Some(Arp(bytes))).ok_or(DropReason::Truncated)
    }

    /// 1 request, 2 reply.
    pub fn operation(&self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }

    /// The sender's Ethernet address.
    pub fn sender_mac(&self) -> MacAddress {
        MacAddress([self.0[8], self.0[9], self.0[10], self.0[11], self.0[12], self.0[13]])
    }

    /// The sender's IPv4 address.
    pub fn sender_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[14], self.0[15], self.0[16], self.0[17])
    }

    /// The target's Ethernet address; zero in requests.
    pub fn target_mac(&self) -> MacAddress {
        MacAddress([self.0[18], self.0[19], self.0[20], self.0[21], self.0[22], self.0[23]])
    }

    /// The target's IPv4 address.
    pub fn target_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[24], self.0[25], self.0[26], self.0[27])
    }
}
