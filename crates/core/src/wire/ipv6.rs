//! IPv6 with its extension headers (RFC 8200).

use crate::drop_reason::DropReason;
use std::net::Ipv6Addr;

/// Bytes of the fixed header.
pub const IPV6_LENGTH: usize = 40;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

/// An IPv6 packet.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6<'a> {
    fixed: &'a [u8; IPV6_LENGTH],
    extensions: Extensions,
    payload: &'a [u8],
}

/// What the extension headers say.
#[derive(Clone, Copy, Debug)]
struct Extensions {
    /// Bytes of all of them.
    length: usize,
    /// What follows them.
    protocol: u8,
    fragment: Option<FragmentHeader>,
    final_destination: Option<Ipv6Addr>,
}

/// A fragment header (RFC 8200, section 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FragmentHeader {
    /// Where this fragment's payload belongs, in bytes.
    pub offset: u16,
    /// More fragments follow this one.
    pub more: bool,
    /// Names the packet it belongs to.
    pub identification: u32,
}

impl<'a> Ipv6<'a> {
    /// Reads a packet and walks its extension headers. Bytes behind its payload length are left out.
    ///
    /// # Errors
    /// `BadVersion`, or `Truncated` if the payload length or an extension header does not fit.
    pub fn parse(bytes: &'a [u8]) -> Result<Ipv6<'a>, DropReason> {
        let (fixed, behind) = bytes.split_first_chunk::<IPV6_LENGTH>().ok_or(DropReason::Truncated)?;
        if fixed[0] >> 4 != 6 {
            return Err(DropReason::BadVersion);
        }
        let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let behind = behind.get(..length).ok_or(DropReason::Truncated)?;
        let extensions = Extensions::walk(fixed[6], behind)?;
        Ok(Ipv6 { fixed, extensions, payload: &behind[extensions.length..] })
    }

    /// Differentiated services code point, 6 bits (RFC 2474).
    pub fn dscp(&self) -> u8 {
        (self.traffic_class()) >> 2
    }

    /// Explicit congestion notification, 2 bits (RFC 3168).
    pub fn ecn(&self) -> u8 {
        self.traffic_class() & 3
    }

    fn traffic_class(&self) -> u8 {
        self.fixed[0] << 4 | self.fixed[1] >> 4
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.fixed[1] & 0x0f, self.fixed[2], self.fixed[3]])
    }

    /// Bytes behind the fixed header, extension headers included.
    pub fn payload_length(&self) -> u16 {
        u16::from_be_bytes([self.fixed[4], self.fixed[5]])
    }

    /// The fixed header's next-header field: of a packet with extension headers the first one's number.
    pub fn next_header(&self) -> u8 {
        self.fixed[6]
    }

    /// What follows the extension headers: 6 TCP, 17 UDP. Of a fragment other than the first: what the fragment
    /// header names.
    pub fn protocol(&self) -> u8 {
        self.extensions.protocol
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.fixed[7]
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        address(self.fixed, 8)
    }

    /// Destination address of the header; with a routing header the next stop.
    pub fn destination(&self) -> Ipv6Addr {
        address(self.fixed, 24)
    }

    /// The address that transport checksums cover: of a packet with a routing header that is not used up the last
    /// stop (RFC 8200, section 8.1), else the destination.
    pub fn final_destination(&self) -> Ipv6Addr {
        self.extensions.final_destination.unwrap_or_else(|| self.destination())
    }

    /// The fragment header, if there is one.
    pub fn fragment(&self) -> Option<FragmentHeader> {
        self.extensions.fragment
    }

    /// Bytes of the fixed header and all extension headers.
    pub fn header_length(&self) -> usize {
        IPV6_LENGTH + self.extensions.length
    }

    /// What follows the extension headers, up to the payload length.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

impl Extensions {
    fn walk(first: u8, bytes: &[u8]) -> Result<Extensions, DropReason> {
        let mut found = Extensions { length: 0, protocol: first, fragment: None, final_destination: None };
        loop {
            let behind = &bytes[found.length..];
            let unit = |count: usize, more: usize| behind.get(1).map(|length| (usize::from(*length) + more) * count);
            let length = match found.protocol {
                HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => unit(8, 1),
                AUTHENTICATION => unit(4, 2),
                FRAGMENT => Some(8),
                _ => return Ok(found),
            };
            let header = length.and_then(|length| behind.get(..length)).ok_or(DropReason::Truncated)?;
            match found.protocol {
                ROUTING => found.final_destination = last_stop(header),
                FRAGMENT => {
                    let offset = u16::from_be_bytes([header[2], header[3]]);
                    found.fragment = Some(FragmentHeader {
                        offset: offset & 0xfff8,
                        more: offset & 1 != 0,
                        identification: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
                    });
                }
                _ => {}
            }
            found.protocol = header[0];
            found.length += header.len();
            if found.fragment.is_some_and(|fragment| fragment.offset > 0) {
                return Ok(found);
            }
        }
    }
}

/// The last stop of a routing header with stops left: of type 0 (RFC 2460) and 2 (RFC 6275) the last address, of type
/// 4 (RFC 8754) the first one in the list.
fn last_stop(header: &[u8]) -> Option<Ipv6Addr> {
    let mut addresses = header[8..].chunks_exact(16);
    let stop = match (header[2], header[3]) {
        (_, 0) => None,
        (0 | 2, _) => addresses.next_back(),
        (4, _) => addresses.next(),
        _ => None,
    };
    stop.map(|stop| address(stop, 0))
}

fn address(bytes: &[u8], at: usize) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[at..at + 16]);
    Ipv6Addr::from(octets)
}
