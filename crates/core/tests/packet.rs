//! Packets against `docs/semantics.md`, section 2, by example.

use std::net::IpAddr;
use weftwire_core::p4::parse_headers;
use weftwire_core::port::{Checksum, SegmentationKind};
use weftwire_core::{
    DropReason, Endpoints, FieldPlace, Format, FormatPlace, Formats, Frame, LinkType, MacAddress, Offload, Packet,
    Segmentation, TemplateSpec, TemplateTransport,
};

fn ends(protocol: u8) -> Endpoints {
    Endpoints {
        protocol,
        local_address: IpAddr::from([10, 0, 0, 1]),
        local_port: 4000,
        remote_address: IpAddr::from([10, 0, 0, 2]),
        remote_port: 80,
        local_mac: MacAddress([2, 0, 0, 0, 0, 1]),
        remote_mac: MacAddress([2, 0, 0, 0, 0, 2]),
        vlan: None,
    }
}

fn ends6(protocol: u8) -> Endpoints {
    let address = |last| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]);
    Endpoints { local_address: address(1), remote_address: address(2), ..ends(protocol) }
}

const TCP: TemplateSpec<'_> = TemplateSpec {
    transport: TemplateTransport::Tcp,
    tcp_options: &[2, 4, 8, 3],
    wanted: &[],
    headers: &[],
    payload: 5,
    presets: &[],
};
const UDP: TemplateSpec<'_> = TemplateSpec {
    transport: TemplateTransport::Udp,
    tcp_options: &[],
    wanted: &[],
    headers: &[],
    payload: 20,
    presets: &[],
};

fn field(formats: &Formats, name: &str) -> FieldPlace {
    let (format, field) = name.split_once('.').unwrap();
    formats.field(format, field).unwrap_or_else(|| panic!("no field {name}"))
}

fn get(packet: &Packet, name: &str) -> Option<u64> {
    packet.get(field(&Formats::default(), name))
}

fn frame(packet: &Packet, link: LinkType) -> Vec<u8> {
    let mut buffer = weftwire_core::Buffer::default();
    packet.emit(link, &mut buffer);
    buffer.to_vec()
}

fn parse(bytes: &[u8]) -> Result<Packet, DropReason> {
    Packet::parse(LinkType::Ethernet, Frame::new(bytes), &Formats::default())
}

#[test]
fn built_packets_parse_and_tell_their_ends() {
    for (template, ends) in [(TCP, ends(6)), (UDP, ends(17)), (TCP, ends6(6)), (UDP, ends6(17))] {
        for vlan in [None, Some(0x6007)] {
            let ends = Endpoints { vlan, ..ends };
            let packet = Packet::build(&template, &ends, &Formats::default());
            let bytes = frame(&packet, LinkType::Ethernet);
            assert_eq!(bytes.len(), packet.frame_length());
            let mut parsed = parse(&bytes).unwrap();
            assert_eq!(get(&parsed, "vlan.id"), vlan.map(|_| 7));
            assert_eq!(get(&parsed, "vlan.priority"), vlan.map(|_| 3));
            assert_eq!(parsed.payload().len(), usize::from(template.payload));
            parsed.reverse();
            parsed.finish();
            assert_eq!(parsed.endpoints(), Some(ends), "the answer's destination is this end");
            assert!(parse(&frame(&parsed, LinkType::Ethernet)).is_ok());
        }
    }
}

#[test]
fn built_tcp_has_the_listed_options_behind_padding() {
    let packet = Packet::build(&TCP, &ends(6), &Formats::default());
    let value = |name| get(&packet, name);
    assert_eq!(value("tcp.data_offset"), Some(10));
    assert_eq!(value("tcp.mss"), Some(1460));
    assert_eq!(value("tcp.window_scale"), Some(0));
    assert_eq!(value("tcp.sack_permitted"), Some(4));
    assert_eq!(value("tcp.timestamp_echo"), Some(0));
    assert_eq!(value("tcp.sack_left_1"), None);
    assert_eq!(value("tcp.window"), Some(65_535));
    assert_eq!((value("ipv4.ttl"), value("ipv4.dont_fragment")), (Some(64), Some(1)));
    assert_eq!(value("udp.length"), None);
    assert_eq!((value("network.protocol"), value("network.version")), (Some(6), Some(4)));
    assert_eq!(packet.get_wide(field(&Formats::default(), "network.source")), Some(0xffff_0a00_0001));
}

#[test]
fn keep_options_keeps_order_and_pads_in_front() {
    let mut packet = Packet::build(&TCP, &ends(6), &Formats::default());
    packet.append_payload(b"tail").unwrap();
    packet.keep_options(&[3, 2]).unwrap();
    packet.finish();
    let bytes = frame(&packet, LinkType::Ethernet);
    assert_eq!(bytes[54..62], [1, 2, 4, 5, 180, 3, 3, 0]);
    let parsed = parse(&bytes).unwrap();
    assert_eq!(parsed.payload(), b"\0\0\0\0\0tail");
    assert_eq!(get(&parsed, "tcp.data_offset"), Some(7));
    packet.keep_options(&[]).unwrap();
    assert_eq!((get(&packet, "tcp.data_offset"), packet.payload().len()), (Some(5), 9));
    let mut udp = Packet::build(&UDP, &ends(17), &Formats::default());
    assert_eq!(udp.keep_options(&[2]), Err(DropReason::NoField));
}

#[test]
fn udp_length_sizes_the_payload() {
    let formats = Formats::default();
    let mut packet = Packet::build(&UDP, &ends(17), &formats);
    assert_eq!((get(&packet, "udp.length"), get(&packet, "udp.word_4")), (Some(28), Some(0)));
    packet.set(field(&formats, "udp.length"), 12).unwrap();
    assert_eq!((packet.payload().len(), get(&packet, "udp.word_1"), get(&packet, "udp.word_2")), (4, Some(0), None));
    packet.set(field(&formats, "udp.length"), 3).unwrap();
    assert_eq!((packet.payload().len(), get(&packet, "udp.length")), (0, Some(8)));
    assert_eq!(packet.set(field(&formats, "udp.length"), 65_535), Err(DropReason::TooLong));
    assert_eq!(packet.resize_payload(65_507), Ok(()));
    assert_eq!(packet.append_payload(&[0]), Err(DropReason::TooLong));
    packet.finish();
    assert!(parse(&frame(&packet, LinkType::Ethernet)).is_ok());
}

#[test]
fn a_udp_checksum_of_zero_is_none_over_ipv4_only() {
    let formats = Formats::default();
    let checksum = field(&formats, "udp.checksum");
    let mut four = Packet::build(&UDP, &ends(17), &formats);
    four.set(checksum, 0).unwrap();
    four.finish();
    assert_eq!(four.get(checksum), Some(0));
    assert!(parse(&frame(&four, LinkType::Ethernet)).is_ok());
    let mut six = Packet::build(&UDP, &ends6(17), &formats);
    six.set(checksum, 0).unwrap();
    assert_eq!(parse(&frame(&six, LinkType::Ethernet)).unwrap_err(), DropReason::BadChecksum);
    six.finish();
    assert_ne!(six.get(checksum), Some(0));
}

#[test]
fn wrong_frames_are_dropped_for_the_right_reason() {
    let good = frame(&Packet::build(&TCP, &ends(6), &Formats::default()), LinkType::Ethernet);
    let broken = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        // Keep IPv4's checksum right, so that what is behind it is looked at.
        bytes[24..26].fill(0);
        let sum = weftwire_core::checksum::checksum(&bytes[14..34]);
        bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        parse(&bytes).unwrap_err()
    };
    assert_eq!(parse(&good[..10]).unwrap_err(), DropReason::Truncated);
    assert_eq!(parse(&good[..good.len() - 1]).unwrap_err(), DropReason::Truncated);
    assert_eq!(broken(14, 0x65), DropReason::BadVersion);
    assert_eq!(broken(14, 0x44), DropReason::BadLength);
    assert_eq!(broken(17, 19), DropReason::BadLength);
    assert_eq!(broken(16, 200), DropReason::Truncated);
    assert_eq!(broken(46, 0x40), DropReason::BadLength);
    assert_eq!(broken(46, 0xf0), DropReason::BadLength);
    assert_eq!(broken(56, 1), DropReason::BadLength);
    assert_eq!(broken(56, 99), DropReason::BadLength);
    assert_eq!(broken(40, 1), DropReason::BadChecksum);
    let mut ip = good.clone();
    ip[22] ^= 1;
    assert_eq!(parse(&ip).unwrap_err(), DropReason::BadChecksum);
    let padded: Vec<u8> = good.iter().copied().chain([7; 9]).collect();
    assert_eq!(parse(&padded).unwrap().frame_length(), good.len());
}

#[test]
fn link_headers_come_and_go() {
    let packet = Packet::build(&UDP, &Endpoints { vlan: Some(5), ..ends6(17) }, &Formats::default());
    let raw = frame(&packet, LinkType::Ip);
    let inner = Packet::parse(LinkType::Ip, Frame::new(&raw), &Formats::default()).unwrap();
    assert_eq!(get(&inner, "ethernet.type"), None);
    let again = frame(&inner, LinkType::Ethernet);
    assert_eq!(again[..14], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x86, 0xdd]);
    assert_eq!(again[14..], raw);
    assert_eq!(frame(&inner, LinkType::Ip), raw);
}

#[test]
fn partial_checksums_and_segmentation_stay() {
    let formats = Formats::default();
    let mut packet = Packet::build(&TCP, &ends(6), &formats);
    packet.resize_payload(3000).unwrap();
    packet.finish();
    let bytes = frame(&packet, LinkType::Ethernet);
    let segmentation = Some(Segmentation { size: 1000, kind: SegmentationKind::TcpIpv4 { ecn: false } });
    let offload = Offload { segmentation, checksum: Checksum::Partial };
    let mut packet = Packet::parse(LinkType::Ethernet, Frame { bytes: &bytes, offload }, &formats).unwrap();
    packet.finish();
    let mut out = weftwire_core::Buffer::default();
    assert_eq!(packet.emit(LinkType::Ethernet, &mut out), offload);
    // 10.0.0.1 + 10.0.0.2 + protocol 6 + the segment's length.
    let sum = 0x0a00 + 1 + 0x0a00 + 2 + 6 + (40 + 3000);
    assert_eq!(get(&packet, "tcp.checksum"), Some(sum));
    packet.resize_payload(10).unwrap();
    assert_eq!(packet.emit(LinkType::Ethernet, &mut out).segmentation, None);
}

#[test]
fn fragments_keep_their_transport_header_as_it_is() {
    let formats = Formats::default();
    let mut packet = Packet::build(&UDP, &ends(17), &formats);
    packet.set(field(&formats, "ipv4.more_fragments"), 1).unwrap();
    packet.set(field(&formats, "udp.length"), 9).unwrap();
    packet.finish();
    let mut bytes = frame(&packet, LinkType::Ethernet);
    bytes[38..42].copy_from_slice(&[9, 9, 8, 8]);
    let mut first = parse(&bytes).unwrap();
    first.finish();
    assert_eq!((get(&first, "udp.length"), get(&first, "udp.checksum")), (Some(0x0909), Some(0x0808)));
    first.set(field(&formats, "ipv4.fragment_offset"), 1).unwrap();
    first.finish();
    let later = parse(&frame(&first, LinkType::Ethernet)).unwrap();
    assert_eq!((get(&later, "udp.length"), later.payload(), later.endpoints()), (None, &[][..], None));
    assert_eq!(get(&later, "network.protocol"), Some(17));
}

#[test]
fn imported_headers_follow_each_other() {
    let headers = parse_headers("header outer { bit<4> kind; bit<12> rest; } header inner { bit<32> value; }").unwrap();
    let after = |header: &str, when: (&str, &str, u64)| FormatPlace::After {
        header: header.to_owned(),
        when: Some((when.0.to_owned(), when.1.to_owned(), when.2)),
    };
    let formats = Formats::new(&[
        Format::from_p4(&headers[0], after("udp", ("network", "protocol", 17))),
        Format::from_p4(&headers[1], after("outer", ("outer", "kind", 5))),
    ])
    .unwrap();
    let presets = [(field(&formats, "outer.kind"), 5), (field(&formats, "inner.value"), 77)];
    let template = TemplateSpec { headers: &[0, 1], payload: 3, presets: &presets, ..UDP };
    let mut packet = Packet::build(&template, &ends(17), &formats);
    assert_eq!((packet.get(presets[1].0), packet.payload().len()), (Some(77), 3));
    // Layout is decided once, when the packet arrives.
    packet.set(presets[0].0, 4).unwrap();
    assert_eq!(packet.get(presets[1].0), Some(77));
    packet.finish();
    let bytes = frame(&packet, LinkType::Ethernet);
    let parsed = Packet::parse(LinkType::Ethernet, Frame::new(&bytes), &formats).unwrap();
    assert_eq!((parsed.get(presets[1].0), parsed.payload().len()), (None, 7));
}
