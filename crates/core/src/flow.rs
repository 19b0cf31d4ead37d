//! Which flow: its number, and its two ends.

use crate::MacAddress;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// Serial number of a flow's instance within one function, in order of creation, from 1; 0 is no flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowId(pub u64);

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Both ends of a transport flow, seen from this side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Endpoints {
    /// IP protocol number: 6 TCP, 17 UDP.
    pub protocol: u8,
    /// This end's address.
    pub local_address: IpAddr,
    /// This end's port number.
    pub local_port: u16,
    /// The other end's address, of the same family.
    pub remote_address: IpAddr,
    /// The other end's port number.
    pub remote_port: u16,
    /// Ethernet address of this end; zero where the link has none.
    pub local_mac: MacAddress,
    /// Ethernet address of the next hop; zero where the link has none.
    pub remote_mac: MacAddress,
    /// Tag control information of the flow's outer VLAN tag, if its packets are tagged.
    pub vlan: Option<u16>,
}
