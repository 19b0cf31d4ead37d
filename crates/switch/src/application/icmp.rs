//! A router's own voice: "time exceeded" (RFC 792, RFC 4443), and answers to a ping.

use super::frame::{
    HOPS, Network, PROTOCOL_ICMPV6, answer_packet, icmpv6_checksum, is_group, network, put, set_word, swap_macs, word,
};
use super::{Action, OTHER_ARGUMENTS, Passing, Registry, Verdict, signature};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weftwire_core::Time;
use weftwire_core::checksum::checksum;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, Ipv6Fields};
use weftwire_core::wire::ipv4::{IPV4_LENGTH, Ipv4};
use weftwire_core::wire::ipv6::{IPV6_LENGTH, Ipv6};
use weftwire_subscribe::formats::ArgumentKind;
use weftwire_subscribe::rules::Argument;

const PROTOCOL_ICMP: u8 = 1;

/// Longest packets with an error: RFC 1812, section 4.3.2.3, and IPv6's least MTU (RFC 4443, section 2.4).
const LONGEST_V4: usize = 576;
const LONGEST_V6: usize = 1280;

/// One error in so many nanoseconds, and so many at once (RFC 1812, section 4.3.2.8; RFC 4443, section 2.4).
const ERROR_INTERVAL: i64 = 1_000_000;
const ERROR_BURST: i64 = 50;

/// `timeExceeded(address)`, `timeExceededV6(address)`: answers a packet that has no hop left.
struct TimeExceeded {
    address: IpAddr,
    /// From when on the next error may be sent if none was lately.
    free_at: Time,
}

/// `answerEcho()`: answers a ping in the name of whom it was sent to.
struct AnswerEcho;

pub(super) fn register(registry: &mut Registry) {
    registry.register(signature("timeExceeded", &[ArgumentKind::Ipv4]), |arguments| match arguments {
        [Argument::Ipv4(address)] => Ok(Box::new(TimeExceeded { address: (*address).into(), free_at: Time::ZERO })),
        _ => Err(OTHER_ARGUMENTS),
    });
    registry.register(signature("timeExceededV6", &[ArgumentKind::Ipv6]), |arguments| match arguments {
        [Argument::Ipv6(address)] => Ok(Box::new(TimeExceeded { address: (*address).into(), free_at: Time::ZERO })),
        _ => Err(OTHER_ARGUMENTS),
    });
    registry.register(signature("answerEcho", &[]), |_| Ok(Box::new(AnswerEcho)));
}

impl Action for TimeExceeded {
    fn carry_out(&mut self, passing: &mut Passing<'_>) -> Verdict {
        let expired = Verdict::Drop("ttl_expired");
        let Some((start, network)) = network(passing.link, passing.frame) else { return Verdict::Continue };
        let behind = &passing.frame[start..];
        let error = match (network, self.address) {
            (Network::Ipv4, IpAddr::V4(own)) => match Ipv4::parse(behind) {
                Ok(ip) if ip.ttl() <= 1 => time_exceeded_v4(own, &ip, behind),
                _ => return Verdict::Continue,
            },
            (Network::Ipv6, IpAddr::V6(own)) => match Ipv6::parse(behind) {
                Ok(ip) if ip.hop_limit() <= 1 => time_exceeded_v6(own, &ip, behind),
                _ => return Verdict::Continue,
            },
            _ => return Verdict::Continue,
        };
        let Some(error) = error.filter(|_| !is_group(passing.link, passing.frame)) else { return expired };
        // A bucket, told by the time at which it would be full again.
        let next = self.free_at.max(passing.now).after(ERROR_INTERVAL);
        if next.since(passing.now) > ERROR_BURST * ERROR_INTERVAL {
            passing.count("icmp: errors held back");
            return expired;
        }
        self.free_at = next;
        answer_packet(passing, &error);
        expired
    }

    fn memory(&self) -> Option<u64> {
        Some(self.free_at.nanoseconds() as u64)
    }

    fn remember(&mut self, memory: u64) {
        self.free_at = Time::from_nanoseconds(memory as i64);
    }
}

/// `None`: no error is sent about this packet (RFC 1122, section 3.2.2).
fn time_exceeded_v4(own: Ipv4Addr, ip: &Ipv4<'_>, packet: &[u8]) -> Option<Vec<u8>> {
    let (to, length) = (ip.source(), usize::from(ip.total_length()));
    let is_query = ip.protocol() != PROTOCOL_ICMP || matches!(ip.payload().first(), Some(0 | 8 | 13..=18));
    if !is_query || ip.fragment_offset() > 0 || to.is_multicast() || to.is_broadcast() || to.is_unspecified() {
        return None;
    }
    if ip.destination().is_multicast() || ip.destination().is_broadcast() {
        return None;
    }
    let quoted = packet.len().min(length).min(LONGEST_V4 - IPV4_LENGTH - 8);
    let mut message = [&[11, 0, 0, 0, 0, 0, 0, 0], &packet[..quoted]].concat();
    let sum = checksum(&message);
    put(&mut message, 2, sum);
    // Precedence as routers send errors (RFC 1812, section 4.3.2.5).
    let fields = Ipv4Fields {
        source: own,
        destination: to,
        traffic_class: 0xc0,
        dont_fragment: false,
        ttl: HOPS,
        ..Ipv4Fields::default()
    };
    FrameBuilder::raw_ip().ipv4(&fields).protocol(PROTOCOL_ICMP).payload(&message).finish().ok()
}

/// `None`: no error is sent about this packet (RFC 4443, section 2.4).
fn time_exceeded_v6(own: Ipv6Addr, ip: &Ipv6<'_>, packet: &[u8]) -> Option<Vec<u8>> {
    let to = ip.source();
    let is_query = ip.protocol() != PROTOCOL_ICMPV6 || ip.payload().first().is_some_and(|kind| *kind >= 128);
    if !is_query || to.is_multicast() || to.is_unspecified() || ip.destination().is_multicast() {
        return None;
    }
    let length = IPV6_LENGTH + usize::from(ip.payload_length());
    let quoted = packet.len().min(length).min(LONGEST_V6 - IPV6_LENGTH - 8);
    let mut message = [&[3, 0, 0, 0, 0, 0, 0, 0], &packet[..quoted]].concat();
    let sum = icmpv6_checksum(&[own.octets(), to.octets()].concat(), &message);
    put(&mut message, 2, sum);
    let fields = Ipv6Fields { source: own, destination: to, hop_limit: HOPS, ..Ipv6Fields::default() };
    FrameBuilder::raw_ip().ipv6(&fields).protocol(PROTOCOL_ICMPV6).payload(&message).finish().ok()
}

impl Action for AnswerEcho {
    fn carry_out(&mut self, passing: &mut Passing<'_>) -> Verdict {
        let link = passing.link;
        if is_group(link, passing.frame) {
            return Verdict::Continue;
        }
        let Some((start, network)) = network(link, passing.frame) else { return Verdict::Continue };
        let mut answer = passing.frame.clone();
        let behind = &passing.frame[start..];
        let (icmp, reply, addresses, length) = match network {
            Network::Ipv4 => match Ipv4::parse(behind) {
                Ok(ip) if ip.protocol() == PROTOCOL_ICMP && ip.payload().starts_with(&[8, 0]) && is_whole(&ip) => {
                    (start + ip.header_length(), 0, start + 12, 4)
                }
                _ => return Verdict::Continue,
            },
            Network::Ipv6 => match Ipv6::parse(behind) {
                Ok(ip) if ip.protocol() == PROTOCOL_ICMPV6 && ip.payload().starts_with(&[128, 0]) => {
                    if ip.fragment().is_some() {
                        return Verdict::Continue;
                    }
                    (start + ip.header_length(), 129_u16 << 8, start + 8, 16)
                }
                _ => return Verdict::Continue,
            },
            Network::Other => return Verdict::Continue,
        };
        if answer.len() < icmp + 8 {
            return Verdict::Continue;
        }
        swap_macs(link, &mut answer);
        // Swapped addresses have the same sum.
        let (source, destination) = answer[addresses..addresses + 2 * length].split_at_mut(length);
        source.swap_with_slice(destination);
        set_word(&mut answer, icmp, reply, icmp + 2);
        match network {
            Network::Ipv4 => {
                let hops = u16::from(HOPS) << 8 | word(&answer, start + 8) & 0xff;
                set_word(&mut answer, start + 8, hops, start + 10);
            }
            _ => answer[start + 7] = HOPS,
        }
        passing.answer(&answer, passing.offload);
        Verdict::Done
    }
}

/// Whether a packet is no fragment.
fn is_whole(ip: &Ipv4<'_>) -> bool {
    ip.fragment_offset() == 0 && !ip.more_fragments()
}
