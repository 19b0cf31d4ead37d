//! Reports of in-band telemetry: what packets met at the switches on their way.

use crate::Numbers;
use std::net::Ipv4Addr;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};

/// Formats of the reports.
pub const REPORT_FORMATS: &str = include_str!("../../../examples/subscriptions/int.p4");
/// UDP port of reports.
pub const REPORT_PORT: u16 = 32_766;
/// Where hops begin in a report's frame: behind Ethernet, IPv4, UDP and the report's own header.
pub const FIRST_HOP: usize = 14 + 20 + 8 + 8;
/// Bytes of a hop.
pub const HOP_BYTES: usize = 12;

/// What a packet met at one switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The switch.
    pub switch_id: u32,
    /// Nanoseconds from ingress to egress.
    pub latency: u32,
    /// The egress queue.
    pub queue: u8,
    /// Cells of the queue in use, 24 bits.
    pub occupancy: u32,
}

/// A report as a frame to 10.0.0.9.
pub fn report_packet(hops: &[Hop], sequence: u32) -> Vec<u8> {
    let mut data = vec![0x10, hops.len() as u8, 0, 1];
    data.extend_from_slice(&sequence.to_be_bytes());
    for hop in hops {
        data.extend_from_slice(&hop.switch_id.to_be_bytes());
        data.extend_from_slice(&hop.latency.to_be_bytes());
        data.extend_from_slice(&(u32::from(hop.queue) << 24 | hop.occupancy & 0xff_ffff).to_be_bytes());
    }
    let [source, destination] = [1, 9].map(|host| Ipv4Addr::new(10, 0, 0, host));
    let ip = Ipv4Fields { source, destination, ..Ipv4Fields::default() };
    let frame = FrameBuilder::ethernet([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 1]).ipv4(&ip).udp(REPORT_PORT, REPORT_PORT);
    frame.payload(&data).finish().unwrap_or_default()
}

/// A hop at one of `switches`. Latencies have a heavy tail: from 64 ns on, and half as many for each doubling.
pub fn hop(switches: u32, numbers: &mut Numbers) -> Hop {
    let doublings = numbers.bits().trailing_zeros().min(16);
    let latency = (64 + numbers.below(64) as u32) << doublings;
    let queue = numbers.below(8) as u8;
    // What waits is what takes time: 80 bytes of a cell at 100 Gbit/s are 6.4 ns.
    Hop { switch_id: numbers.below(switches.into()) as u32, latency, queue, occupancy: latency * 10 / 64 }
}

/// `count` rules `switch_id == S and hop_latency > L : fwd(P)`, S of 100 switches and L from `above` on, so that few reports
/// match; P of `ports` from 2 on.
pub fn report_rules(count: u32, above: u32, ports: u32) -> String {
    let rule = |number: u32| {
        let port = 2 + number / 100 % ports.max(1);
        format!("int.switch_id == {} and int.hop_latency > {} : fwd({port});\n", number % 100, above + number / 100)
    };
    (0..count).map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_hops_are_slow() {
        let mut numbers = Numbers::new(1);
        let slow = (0..100_000).filter(|_| hop(100, &mut numbers).latency > 10_000).count();
        assert!((400..1_000).contains(&slow), "{slow}");
        let frame = report_packet(&[hop(100, &mut numbers); 3], 7);
        assert_eq!(frame.len(), FIRST_HOP + 3 * HOP_BYTES);
    }
}
