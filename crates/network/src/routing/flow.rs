//! What tells flows apart, and the hash by which they are spread.

use crate::model::{NodeIndex, route_seed};
use siphasher::sip::SipHasher24;
use std::hash::Hasher as _;
use std::net::IpAddr;

/// The 5-tuple of a packet. Ports are 0 where there are none to be read in every packet of a flow: of other protocols than
/// TCP and UDP, and in fragments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// From whom.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// IP protocol number.
    pub protocol: u8,
    /// Source and destination port.
    pub ports: [u16; 2],
}

impl Flow {
    /// SipHash-2-4 under the key of a node, made from the run's seed. The two directions of a connection hash differently.
    pub(super) fn hash(&self, seed: u64, node: NodeIndex) -> u64 {
        let mut hasher = hasher(seed, node);
        for address in [self.source, self.destination] {
            match address {
                IpAddr::V4(address) => hasher.write(&address.octets()),
                IpAddr::V6(address) => hasher.write(&address.octets()),
            }
        }
        hasher.write(&[self.protocol]);
        hasher.write(&self.ports[0].to_be_bytes());
        hasher.write(&self.ports[1].to_be_bytes());
        hasher.finish()
    }
}

/// The same of a number, for packets that are sprayed.
pub(super) fn hash_of_number(seed: u64, node: NodeIndex, number: u64) -> u64 {
    let mut hasher = hasher(seed, node);
    hasher.write(&number.to_be_bytes());
    hasher.finish()
}

fn hasher(seed: u64, node: NodeIndex) -> SipHasher24 {
    let [first, second] = [0, 1].map(|half| route_seed(seed, node, half));
    SipHasher24::new_with_keys(first, second)
}
