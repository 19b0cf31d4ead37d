//! Who has this address? Answers of ARP (RFC 826) and of IPv6's neighbour discovery (RFC 4861) in the switch's name.

use super::frame::{Network, PROTOCOL_ICMPV6, icmpv6_checksum, network, put, set_macs};
use super::{Action, OTHER_ARGUMENTS, Passing, Registry, Verdict, signature};
use std::net::Ipv6Addr;
use weftwire_core::wire::arp::{ARP_LENGTH, Arp};
use weftwire_core::wire::builder::{FrameBuilder, Ipv6Fields};
use weftwire_core::wire::ipv6::Ipv6;
use weftwire_core::{LinkType, MacAddress, Offload};
use weftwire_subscribe::formats::ArgumentKind;
use weftwire_subscribe::rules::Argument;

const REQUEST: u16 = 1;
const REPLY: u16 = 2;

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Neighbour discovery never comes from beyond a router.
const ALL_HOPS: u8 = 255;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// `answerARP(address)`: the address asked for is at this Ethernet address.
struct AnswerArp(MacAddress);

/// `answerND(address)`: the same for IPv6.
struct AnswerNeighbour(MacAddress);

pub(super) fn register(registry: &mut Registry) {
    registry.register(signature("answerARP", &[ArgumentKind::Mac]), |arguments| match arguments {
        [Argument::Mac(address)] => Ok(Box::new(AnswerArp(MacAddress::from_bits(*address)))),
        _ => Err(OTHER_ARGUMENTS),
    });
    registry.register(signature("answerND", &[ArgumentKind::Mac]), |arguments| match arguments {
        [Argument::Mac(address)] => Ok(Box::new(AnswerNeighbour(MacAddress::from_bits(*address)))),
        _ => Err(OTHER_ARGUMENTS),
    });
}

impl Action for AnswerArp {
    fn carry_out(&mut self, passing: &mut Passing<'_>) -> Verdict {
        let Some((start, Network::Other)) = network(passing.link, passing.frame) else { return Verdict::Continue };
        let Ok(Some(arp)) = Arp::parse(&passing.frame[start..]) else { return Verdict::Continue };
        // Who announces its own address asks nobody.
        if arp.operation() != REQUEST || arp.sender_address() == arp.target_address() {
            return Verdict::Continue;
        }
        let asker = arp.sender_mac();
        let (own_address, asker_address) = (arp.target_address().octets(), arp.sender_address().octets());
        let mut answer = passing.frame[..start + ARP_LENGTH].to_vec();
        set_macs(passing.link, &mut answer, asker, self.0);
        put(&mut answer, start + 6, REPLY);
        let ends = [&self.0.octets()[..], &own_address, &asker.octets(), &asker_address].concat();
        answer[start + 8..].copy_from_slice(&ends);
        passing.answer(&answer, Offload::default());
        Verdict::Done
    }
}

impl Action for AnswerNeighbour {
    fn carry_out(&mut self, passing: &mut Passing<'_>) -> Verdict {
        let frame = &*passing.frame;
        let Some((start, Network::Ipv6)) = network(passing.link, frame) else { return Verdict::Continue };
        let Ok(ip) = Ipv6::parse(&frame[start..]) else { return Verdict::Continue };
        let Some(target) = solicited(&ip) else { return Verdict::Continue };
        // Who asks without an address wants to take this one: everybody is told that it is taken.
        let nobody = ip.source().is_unspecified();
        let to = if nobody { ALL_NODES } else { ip.source() };
        let (router, solicited, to_override) = (0x80, if nobody { 0 } else { 0x40 }, 0x20);
        let mut message = vec![ADVERTISEMENT, 0, 0, 0, router | solicited | to_override, 0, 0, 0];
        message.extend_from_slice(&target.octets());
        // Target link-layer address, one unit of eight bytes.
        message.extend_from_slice(&[2, 1]);
        message.extend_from_slice(&self.0.octets());
        let sum = icmpv6_checksum(&[target.octets(), to.octets()].concat(), &message);
        put(&mut message, 2, sum);
        let fields = Ipv6Fields { source: target, destination: to, hop_limit: ALL_HOPS, ..Ipv6Fields::default() };
        let packet = FrameBuilder::raw_ip().ipv6(&fields).protocol(PROTOCOL_ICMPV6).payload(&message).finish();
        let Ok(packet) = packet else { return Verdict::Continue };
        let mut answer = frame[..start].to_vec();
        if passing.link == LinkType::Ethernet {
            let asker = [frame[6], frame[7], frame[8], frame[9], frame[10], frame[11]];
            let [.., a, b, c, d] = ALL_NODES.octets();
            let to = MacAddress(if nobody { [0x33, 0x33, a, b, c, d] } else { asker });
            set_macs(passing.link, &mut answer, to, self.0);
        }
        answer.extend_from_slice(&packet);
        passing.answer(&answer, Offload::default());
        Verdict::Done
    }
}

/// The address that a solicitation asks for, if it is a valid one (RFC 4861, section 7.1.1).
fn solicited(ip: &Ipv6<'_>) -> Option<Ipv6Addr> {
    let message = ip.payload();
    if ip.protocol() != PROTOCOL_ICMPV6 || ip.hop_limit() != ALL_HOPS || ip.fragment().is_some() {
        return None;
    }
    let addresses = [ip.source().octets(), ip.destination().octets()].concat();
    if !message.starts_with(&[SOLICITATION, 0]) || icmpv6_checksum(&addresses, message) != 0 {
        return None;
    }
    let target = Ipv6Addr::from(*message.get(8..)?.first_chunk::<16>()?);
    (!target.is_multicast()).then_some(target)
}
