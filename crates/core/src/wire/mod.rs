//! Checked views over the bytes of headers, without copying.
//!
//! Each `parse` checks everything that reading needs, so the accessors cannot fail; what a view does not cover is
//! handed on as its payload. [`crate::packet::Packet`] is built on these views.

pub mod arp;
pub mod builder;
pub mod ethernet;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod tcp;
pub mod udp;

/// IP protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// IP protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;
