//! Invariant CRCs of RoCEv2 packets (rule P28): of packets that others captured, and whatever changes on the way.

use proptest::prelude::*;
use weftwire_core::build::{TemplateSpec, TemplateTransport};
use weftwire_core::p4::parse_headers;
use weftwire_core::{
    DropReason, Endpoints, FieldPlace, Format, FormatPlace, Formats, Frame, LinkType, MacAddress, Packet,
};

const HEADERS: &str = "
    @invariant_crc header bth_t {
        bit<8> opcode; bit<8> flags; bit<16> key;
        @variant bit<1> fecn; @variant bit<1> becn; @variant bit<6> reserved;
        bit<24> pair; bit<8> ack; bit<24> psn;
    }
    header aeth_t { bit<8> syndrome; bit<24> msn; }";

/// A notification of congestion that a ConnectX-4 Lx sent, as the tests of Scapy's `roce.py` show it.
const NOTIFICATION: &str = "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000\
    0118000000000000000000000000000000000000000082fd002a";
/// An RDMA WRITE of 16 bytes with a UDP checksum, captured behind a driver (tests of the project RoomSoC).
const WRITE: &str = "123456789abc7cb27d62c1ef08004500004c000100004011f54cc0a80201c0a8020201f412b70038ffa60a00ffff0000000\
    20000000000000000000012300000000000000010000102030405060708090a0b0c0d0e0fca47470e";

fn formats() -> Formats {
    let headers = parse_headers(HEADERS).unwrap();
    let after = |header: &str, when: Option<(&str, &str, u64)>| FormatPlace::After {
        header: header.to_owned(),
        when: when.map(|(header, field, value)| (header.to_owned(), field.to_owned(), value)),
    };
    Formats::new(&[
        Format::from_p4(&headers[0], after("udp", Some(("udp", "destination_port", 4791)))),
        Format::from_p4(&headers[1], after("bth_t", Some(("bth_t", "opcode", 17)))),
    ])
    .unwrap()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter_map(|digit| char::from(digit).to_digit(16)).map(|it| it as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn parse(frame: &[u8]) -> Result<Packet, DropReason> {
    Packet::parse(LinkType::Ethernet, Frame::new(frame), &formats())
}

fn sent(packet: &mut Packet) -> Vec<u8> {
    packet.finish();
    let mut frame = weftwire_core::Buffer::default();
    packet.emit(LinkType::Ethernet, &mut frame);
    assert_eq!(frame.len(), packet.emitted_length(LinkType::Ethernet));
    frame.to_vec()
}

fn field(name: &str) -> FieldPlace {
    let (format, field) = name.split_once('.').unwrap();
    formats().field(format, field).unwrap()
}

#[test]
fn captured_packets_are_right_and_leave_as_they_came() {
    for (hex, payload) in [(NOTIFICATION, 16), (WRITE, 32)] {
        let frame = bytes_of(hex);
        let mut packet = parse(&frame).unwrap();
        assert_eq!(packet.payload().len(), payload);
        assert_eq!(sent(&mut packet), frame);
    }
}

#[test]
fn every_bit_counts_but_those_that_change_on_the_way() {
    // By bytes of the frame: type of service, TTL, checksums, FECN, BECN and what is reserved beside them.
    let variant = [15, 22, 24, 25, 40, 41, 46];
    let whole = bytes_of(NOTIFICATION);
    for bit in 14 * 8..whole.len() * 8 {
        let mut frame = whole.clone();
        frame[bit / 8] ^= 0x80 >> (bit % 8);
        // The IPv4 header's own sum, or its lengths, speak first.
        sum_ipv4(&mut frame);
        let result = parse(&frame);
        let expected = match bit / 8 {
            at if at < 34 && !variant.contains(&at) => continue,
            36..=39 => continue,
            at if variant.contains(&at) && at != 40 && at != 41 => None,
            40 | 41 => Some(DropReason::BadChecksum),
            _ => Some(DropReason::BadInvariantCrc),
        };
        assert_eq!(result.err(), expected, "bit {} of byte {}", bit % 8, bit / 8);
    }
    // Another source address.
    let mut frame = whole.clone();
    frame[29] ^= 1;
    sum_ipv4(&mut frame);
    assert_eq!(parse(&frame).err(), Some(DropReason::BadInvariantCrc));
}

fn sum_ipv4(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = weftwire_core::checksum::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn a_packet_without_room_for_it_is_cut_off() {
    let whole = bytes_of(NOTIFICATION);
    for behind in 0..4u16 {
        let mut frame = whole[..54 + usize::from(behind)].to_vec();
        frame[16..18].copy_from_slice(&(40 + behind).to_be_bytes());
        frame[38..40].copy_from_slice(&(20 + behind).to_be_bytes());
        sum_ipv4(&mut frame);
        assert_eq!(parse(&frame).err(), Some(DropReason::Truncated), "{behind} bytes behind the header");
    }
}

/// Bit by bit (IEEE 802.3, 3.2.9), of what the specification says is covered.
fn slow(covered: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    for bit in covered.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1)) {
        crc = crc >> 1 ^ if (crc ^ u32::from(bit)) & 1 == 1 { 0xedb8_8320 } else { 0 };
    }
    (!crc).to_le_bytes()
}

fn ends(six: bool) -> Endpoints {
    let address = |last: u8| match six {
        true => std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into()).into(),
        false => std::net::Ipv4Addr::new(10, 0, 0, last).into(),
    };
    Endpoints {
        protocol: 17,
        local_address: address(1),
        local_port: 40_000,
        remote_address: address(2),
        remote_port: 4791,
        local_mac: MacAddress([2; 6]),
        remote_mac: MacAddress([4; 6]),
        vlan: None,
    }
}

proptest! {
    /// Built packets, of either version and any length, have what the slow sum says, and are read again.
    #[test]
    fn built_packets_end_in_it(
        six: bool, payload in proptest::collection::vec(any::<u8>(), 0..70), psn in 0u64..1 << 24, becn: bool, hops: u8,
        ack: bool,
    ) {
        let formats = formats();
        let presets = [(field("bth_t.psn"), psn), (field("bth_t.opcode"), if ack { 17 } else { 4 })];
        let headers: &[usize] = if ack { &[0, 1] } else { &[0] };
        let template = TemplateSpec {
            transport: TemplateTransport::Udp, tcp_options: &[], wanted: &[], headers, payload: 0, presets: &presets,
        };
        let mut packet = Packet::build(&template, &ends(six), &formats);
        packet.append_payload(&payload).unwrap();
        packet.set(field("bth_t.becn"), becn.into()).unwrap();
        packet.set(field(if six { "ipv6.hop_limit" } else { "ipv4.ttl" }), hops.into()).unwrap();
        let frame = sent(&mut packet);
        let mut covered = vec![0xff; 8];
        covered.extend_from_slice(&frame[14..frame.len() - 4]);
        let ones: &[usize] = if six { &[9, 10, 11, 15, 54, 55, 60] } else { &[9, 16, 18, 19, 34, 35, 40] };
        ones.iter().for_each(|at| covered[*at] = 0xff);
        if six {
            covered[8] |= 0x0f;
        }
        prop_assert_eq!(&frame[frame.len() - 4..], slow(&covered));
        let mut again = parse(&frame).unwrap();
        prop_assert_eq!((again.payload(), again.get(field("bth_t.psn"))), (&payload[..], Some(psn)));
        prop_assert_eq!(again.get(field("aeth_t.syndrome")).is_some(), ack);
        // Taken apart and put together it leaves as it would have.
        let mut copy = Packet::from_parts(again.to_parts(), &formats).unwrap();
        prop_assert_eq!(sent(&mut copy), sent(&mut again));
        prop_assert_eq!(sent(&mut copy), frame);
    }
}

#[test]
fn only_a_header_behind_udp_says_so() {
    let headers = parse_headers(HEADERS).unwrap();
    let after = |header: &str| FormatPlace::After { header: header.to_owned(), when: None };
    let refused = Formats::new(&[Format::from_p4(&headers[0], after("tcp"))]).unwrap_err().to_string();
    assert!(refused.contains("directly after `udp`"), "{refused}");
    let mut format = Format::from_p4(&headers[0], after("udp"));
    format.invariant_crc = Some(vec!["ttl".into()]);
    let refused = Formats::new(&[format]).unwrap_err().to_string();
    assert!(refused.contains("no field `ttl`"), "{refused}");
}
