//! Builders and views: what is put in is read out.

use proptest::prelude::*;
use std::net::Ipv6Addr;
use weftwire_core::wire::arp::Arp;
use weftwire_core::wire::builder::{ArpFields, FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
use weftwire_core::wire::ethernet::{Ethernet, TYPE_ARP, TYPE_SERVICE_VLAN, TYPE_VLAN, VlanTag};
use weftwire_core::wire::ipv4::Ipv4;
use weftwire_core::wire::ipv6::Ipv6;
use weftwire_core::wire::tcp::{SackBlocks, Tcp, TcpFlags, TcpOption};
use weftwire_core::wire::udp::Udp;
use weftwire_core::{DropReason, Formats, Frame, LinkType, MacAddress, Packet};

proptest! {
    #[test]
    fn tcp_over_ipv4(
        addresses: ([u8; 4], [u8; 4]),
        ip: (u8, u16, bool, u8),
        numbers: (u16, u16, u32, u32),
        tcp: (u8, u16, u16),
        blocks in (0usize..=3).prop_flat_map(|count| proptest::collection::vec(any::<u8>(), count * 8)),
        shift: u8,
        payload in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let ip = Ipv4Fields {
            source: addresses.0.into(),
            destination: addresses.1.into(),
            traffic_class: ip.0,
            identification: ip.1,
            dont_fragment: ip.2,
            ttl: ip.3,
        };
        let tcp = TcpFields {
            source_port: numbers.0,
            destination_port: numbers.1,
            sequence: numbers.2,
            acknowledgment: numbers.3,
            flags: TcpFlags(tcp.0),
            window: tcp.1,
            urgent_pointer: tcp.2,
        };
        let options = [
            TcpOption::WindowScale(shift),
            TcpOption::Sack(SackBlocks::new(&blocks).unwrap()),
            TcpOption::Other { kind: 254, data: &[1, 2, 3] },
        ];
        let frame = FrameBuilder::raw_ip().ipv4(&ip).tcp(&tcp, &options).payload(&payload).finish().unwrap();
        prop_assert!(Packet::parse(LinkType::Ip, Frame::new(&frame), &Formats::default()).is_ok());
        let read = Ipv4::parse(&frame).unwrap();
        prop_assert!(read.checksum_is_right());
        prop_assert_eq!(read.fragment_offset(), 0);
        prop_assert_eq!(ip, Ipv4Fields {
            source: read.source(),
            destination: read.destination(),
            traffic_class: read.dscp() << 2 | read.ecn(),
            identification: read.identification(),
            dont_fragment: read.dont_fragment(),
            ttl: read.ttl(),
        });
        let read = Tcp::parse(read.payload()).unwrap();
        prop_assert_eq!(read.options().collect::<Vec<_>>(), options);
        prop_assert_eq!(read.payload(), payload);
        prop_assert_eq!(tcp, TcpFields {
            source_port: read.source_port(),
            destination_port: read.destination_port(),
            sequence: read.sequence(),
            acknowledgment: read.acknowledgment(),
            flags: read.flags(),
            window: read.window(),
            urgent_pointer: read.urgent_pointer(),
        });
    }

    #[test]
    fn udp_over_ipv6(
        addresses: ([u8; 16], [u8; 16]),
        traffic_class: u8,
        flow_label in 0u32..1 << 20,
        hop_limit: u8,
        ports: (u16, u16),
        payload in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let ip = Ipv6Fields {
            source: addresses.0.into(),
            destination: addresses.1.into(),
            traffic_class,
            flow_label,
            hop_limit,
        };
        let frame = FrameBuilder::raw_ip().ipv6(&ip).udp(ports.0, ports.1).payload(&payload).finish().unwrap();
        prop_assert!(Packet::parse(LinkType::Ip, Frame::new(&frame), &Formats::default()).is_ok());
        let read = Ipv6::parse(&frame).unwrap();
        prop_assert_eq!(ip, Ipv6Fields {
            source: read.source(),
            destination: read.destination(),
            traffic_class: read.dscp() << 2 | read.ecn(),
            flow_label: read.flow_label(),
            hop_limit: read.hop_limit(),
        });
        let read = Udp::parse(read.payload()).unwrap();
        prop_assert_eq!((read.source_port(), read.destination_port()), ports);
        prop_assert_eq!(read.payload(), payload);
    }
}

#[test]
fn tags_and_arp() {
    let arp = ArpFields {
        operation: 2,
        sender_mac: MacAddress([1; 6]),
        sender_address: [10, 0, 0, 1].into(),
        target_mac: MacAddress([2; 6]),
        target_address: [10, 0, 0, 2].into(),
    };
    let tags = [VlanTag(0xb00a), VlanTag(5)];
    let builder = FrameBuilder::ethernet([2; 6], [1; 6]).vlan(tags[0]).vlan(tags[1]);
    let mut frame = builder.arp(&arp).finish().unwrap();
    frame[12..14].copy_from_slice(&TYPE_SERVICE_VLAN.to_be_bytes());
    let ethernet = Ethernet::parse(&frame).unwrap();
    assert_eq!((ethernet.destination(), ethernet.source()), (MacAddress([2; 6]), MacAddress([1; 6])));
    assert_eq!((ethernet.ether_type(), ethernet.payload_type()), (TYPE_SERVICE_VLAN, TYPE_ARP));
    assert_eq!(ethernet.tags().collect::<Vec<_>>(), tags);
    assert_eq!((tags[0].priority(), tags[0].drop_eligible(), tags[0].id()), (5, true, 10));
    let read = Arp::parse(ethernet.payload()).unwrap().unwrap();
    assert_eq!(
        arp,
        ArpFields {
            operation: read.operation(),
            sender_mac: read.sender_mac(),
            sender_address: read.sender_address(),
            target_mac: read.target_mac(),
            target_address: read.target_address(),
        }
    );
    // A third tag is not looked behind.
    let three = FrameBuilder::ethernet([2; 6], [1; 6]).vlan(tags[0]).vlan(tags[0]).vlan(tags[0]).finish().unwrap();
    assert_eq!(Ethernet::parse(&three).unwrap().payload_type(), TYPE_VLAN);
}

#[test]
fn checksums_cover_the_last_stop_of_a_routing_header() {
    let last = Ipv6Addr::from([7; 16]);
    let next = Ipv6Addr::from([8; 16]);
    let source = Ipv6Addr::from([9; 16]);
    let ip = |destination| Ipv6Fields { source, destination, ..Ipv6Fields::default() };
    let plain = FrameBuilder::raw_ip().ipv6(&ip(last)).udp(1, 2).payload(b"data").finish().unwrap();
    // Type, stops left, and the addresses: of type 2 the last stop is the only one, of type 4 the first in the list.
    for (kind, stops) in [(2, vec![last]), (4, vec![last, next])] {
        let mut routing = vec![17, stops.len() as u8 * 2, kind, 1, 0, 0, 0, 0];
        routing.extend(stops.iter().flat_map(|stop| stop.octets()));
        let frame = [&plain[..40], &routing, &plain[40..]].concat();
        let packet = |destination: Ipv6Addr, stops_left: u8| {
            let mut frame = frame.clone();
            let length = frame.len() as u16 - 40;
            frame[4..6].copy_from_slice(&length.to_be_bytes());
            frame[6] = 43;
            frame[24..40].copy_from_slice(&destination.octets());
            frame[43] = stops_left;
            Packet::parse(LinkType::Ip, Frame::new(&frame), &Formats::default()).map(drop)
        };
        assert_eq!(packet(next, 1), Ok(()), "type {kind}");
        assert_eq!(packet(next, 0), Err(DropReason::BadChecksum));
        assert_eq!(packet(last, 0), Ok(()));
    }
}

#[test]
fn builders_refuse_what_does_not_fit() {
    let ip = FrameBuilder::raw_ip().ipv4(&Ipv4Fields::default());
    assert_eq!(ip.clone().udp(1, 2).payload(&vec![0; 65_507]).finish().map(|frame| frame.len()), Ok(65_535));
    assert_eq!(ip.clone().udp(1, 2).payload(&vec![0; 65_508]).finish(), Err(DropReason::TooLong));
    let long = TcpOption::Other { kind: 99, data: &[0; 39] };
    assert_eq!(ip.tcp(&TcpFields::default(), &[long]).finish(), Err(DropReason::BadLength));
}
