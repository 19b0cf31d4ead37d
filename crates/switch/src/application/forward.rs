//! Plain IP forwarding: one hop less, and the Ethernet addresses of the next link.

use super::frame::{Network, network, set_macs, set_word, word};
use super::{Action, OTHER_ARGUMENTS, Passing, Registry, Verdict, signature};
use std::net::{Ipv4Addr, Ipv6Addr};
use weftwire_core::wire::ipv4::Ipv4;
use weftwire_core::wire::ipv6::Ipv6;
use weftwire_core::{LinkType, MacAddress};
use weftwire_subscribe::formats::ArgumentKind;
use weftwire_subscribe::rules::Argument;

/// `route(source, destination)`, `nextHop(destination)`: what a router does to a packet before it goes on.
struct Route {
    /// `None`: the address that the packet was sent to, which is the router's own.
    source: Option<MacAddress>,
    destination: MacAddress,
}

pub(super) fn register(registry: &mut Registry) {
    registry.register(signature("nextHop", &[ArgumentKind::Mac]), |arguments| match arguments {
        [Argument::Mac(destination)] => {
            Ok(Box::new(Route { source: None, destination: MacAddress::from_bits(*destination) }))
        }
        _ => Err(OTHER_ARGUMENTS),
    });
    registry.register(signature("route", &[ArgumentKind::Mac; 2]), |arguments| match arguments {
        [Argument::Mac(source), Argument::Mac(destination)] => Ok(Box::new(Route {
            source: Some(MacAddress::from_bits(*source)),
            destination: MacAddress::from_bits(*destination),
        })),
        _ => Err(OTHER_ARGUMENTS),
    });
}

impl Action for Route {
    fn carry_out(&mut self, passing: &mut Passing<'_>) -> Verdict {
        let (link, frame) = (passing.link, &mut *passing.frame);
        let Some((start, network)) = network(link, frame) else { return Verdict::Drop("not_ip") };
        match network {
            Network::Ipv4 => {
                let Ok(ip) = Ipv4::parse(&frame[start..]) else { return Verdict::Drop("not_ip") };
                if !(leaves_its_link_v4(ip.source()) && leaves_its_link_v4(ip.destination())) {
                    return Verdict::Drop("not_routable");
                }
                if ip.ttl() <= 1 {
                    return Verdict::Drop("ttl_expired");
                }
                // The TTL is the upper half of its word.
                let less = word(frame, start + 8) - 0x100;
                set_word(frame, start + 8, less, start + 10);
            }
            Network::Ipv6 => {
                let Ok(ip) = Ipv6::parse(&frame[start..]) else { return Verdict::Drop("not_ip") };
                if !(leaves_its_link_v6(ip.source()) && leaves_its_link_v6(ip.destination())) {
                    return Verdict::Drop("not_routable");
                }
                if ip.hop_limit() <= 1 {
                    return Verdict::Drop("ttl_expired");
                }
                frame[start + 7] -= 1;
            }
            Network::Other => return Verdict::Drop("not_ip"),
        }
        if link == LinkType::Ethernet {
            let own = MacAddress([frame[0], frame[1], frame[2], frame[3], frame[4], frame[5]]);
            set_macs(link, frame, self.destination, self.source.unwrap_or(own));
        }
        Verdict::Continue
    }
}

/// Routers keep packets of these addresses on their link (RFC 1812, section 5.3.7; RFC 3927, section 2.7).
fn leaves_its_link_v4(address: Ipv4Addr) -> bool {
    !(address.is_multicast()
        || address.is_broadcast()
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_link_local())
}

/// As for IPv4 (RFC 4291, section 2.5).
fn leaves_its_link_v6(address: Ipv6Addr) -> bool {
    !(address.is_multicast() || address.is_unspecified() || address.is_loopback() || address.is_unicast_link_local())
}
