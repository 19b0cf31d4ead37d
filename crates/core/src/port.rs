//! Ports and the frames that cross them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A port of a function. Ports count from 1 (the published dialect does); 0 is no port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Port(pub u16);

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a frame on a port begins with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkType {
    /// An Ethernet II header (capture link type 1). TAP devices and network interfaces.
    Ethernet,
    /// An IPv4 or IPv6 header (capture link type 101, "raw IP"). TUN devices.
    Ip,
}

/// What a receiver left undone on a frame, as virtio-net headers tell it (virtio 1.2, section 5.1.6).
///
/// The default is an ordinary frame: no segmentation pending, checksums complete and not yet verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// The frame is one header in front of many segments' payload (GRO, TSO): how to cut it. `None`: one packet.
    pub segmentation: Option<Segmentation>,
    /// What is known of the TCP or UDP checksum.
    pub checksum: Checksum,
}

/// How a super-frame is to be cut into packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segmentation {
    /// Payload bytes of each segment, at least 1; the last may be shorter.
    pub size: u16,
    /// What the segments are.
    pub kind: SegmentationKind,
}

/// Protocol of a super-frame (the virtio-net GSO types).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentationKind {
    /// TCP over IPv4; `ecn` if the segments carry CWR as in virtio's ECN flag.
    TcpIpv4 {
        /// The virtio-net ECN flag.
        ecn: bool,
    },
    /// TCP over IPv6.
    TcpIpv6 {
        /// The virtio-net ECN flag.
        ecn: bool,
    },
    /// UDP segmentation (USO, virtio-net GSO type 5).
    Udp,
}

/// State of a frame's TCP or UDP checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checksum {
    /// The field holds a complete checksum that nobody has verified.
    #[default]
    Unverified,
    /// The receiver vouches for the data; the field may hold anything.
    Verified,
    /// The field holds only the pseudo-header's sum; the sender's hardware was to complete it.
    Partial,
}

/// A frame as it arrives at or leaves a port.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The bytes, from the link header (or the IP header on an [`LinkType::Ip`] port), without the frame check sequence.
    pub bytes: &'a [u8],
    /// What is left undone on it.
    pub offload: Offload,
}

impl<'a> Frame<'a> {
    /// An ordinary frame without offloads.
    pub fn new(bytes: &'a [u8]) -> Frame<'a> {
        Frame { bytes, offload: Offload::default() }
    }
}
