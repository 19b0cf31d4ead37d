//! The invariant CRC at the end of RoCEv2 packets (InfiniBand Architecture Specification, Volume 1, section 7.8.1, and its
//! annex A17 for the fields of IP and UDP): a CRC-32 over the packet without its link header, in which everything that may
//! change on the way counts as ones.

use crate::layout::{Layout, Network};
use crc32fast::Hasher;
use smallvec::SmallVec;
use std::sync::Arc;

/// Its length in bytes.
pub(crate) const CRC_LENGTH: usize = 4;
/// What stands for the local route header, which RoCEv2 has not got.
const LOCAL_ROUTE_HEADER: [u8; 8] = [0xff; 8];

/// Says of a packet that it ends in an invariant CRC.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    /// Where the header behind UDP starts that says so.
    pub(crate) header: usize,
    /// What of that header counts as ones: its bits, and those alone, are 1.
    pub(crate) variant: Arc<[u8]>,
}

/// The CRC of a packet's bytes, which end in front of it, as it is sent. Lengths have to be right.
pub(crate) fn invariant_crc(bytes: &[u8], layout: &Layout, ending: &Ending) -> [u8; CRC_LENGTH] {
    let start = layout.network_start;
    let headers_end = ending.header + ending.variant.len();
    let mut headers: SmallVec<[u8; 128]> = SmallVec::from_slice(&bytes[start..headers_end]);
    match layout.network {
        // Type of service, TTL, checksum.
        Some(Network::Ipv4) => [1, 8, 10, 11].into_iter().for_each(|at| headers[at] = 0xff),
        // Traffic class and flow label, hop limit.
        Some(Network::Ipv6 { .. }) => {
            headers[0] |= 0x0f;
            [1, 2, 3, 7].into_iter().for_each(|at| headers[at] = 0xff);
        }
        Some(Network::Arp) | None => {}
    }
    let udp = layout.network_end - start;
    headers[udp + 6..udp + 8].fill(0xff);
    for (byte, variant) in headers[ending.header - start..].iter_mut().zip(ending.variant.iter()) {
        *byte |= variant;
    }
    let mut hasher = Hasher::new();
    hasher.update(&LOCAL_ROUTE_HEADER);
    hasher.update(&headers);
    hasher.update(&bytes[headers_end..]);
    hasher.finalize().to_le_bytes()
}
