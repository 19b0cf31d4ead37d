//! Packets against the crate `etherparse`: random valid frames, and the same with bytes changed or cut off.
//!
//! Where the two differ by design (`docs/semantics.md`, 2.1 and 2.2, is stricter or knows less), `expectation` says so.

use etherparse::{
    IpAuthHeader, IpFragOffset, IpHeaders, Ipv4Extensions, Ipv4Header, Ipv4Options, Ipv6Extensions, Ipv6FlowLabel,
    Ipv6FragmentHeader, Ipv6Header, Ipv6RawExtHeader, Ipv6RoutingExtensions, LinkExtSlice, NetSlice, PacketBuilder,
    SlicedPacket, TcpHeader, TransportSlice, UdpHeader, VlanId, err,
};
use proptest::prelude::*;
use weftwire_core::port::Checksum;
use weftwire_core::{Formats, Frame, LinkType, Offload, Packet};

const IP_START: [usize; 4] = [0, 14, 18, 22];

/// A frame and where its IP header starts.
#[derive(Clone, Debug)]
struct Sample {
    link: LinkType,
    ip_start: usize,
    bytes: Vec<u8>,
}

fn tcp_options() -> impl Strategy<Value = Vec<u8>> {
    let option = prop_oneof![
        Just(vec![1]),
        any::<u16>().prop_map(|mss| [&[2, 4][..], &mss.to_be_bytes()].concat()),
        any::<u8>().prop_map(|shift| vec![3, 3, shift]),
        Just(vec![4, 2]),
        proptest::collection::vec(any::<u8>(), 16).prop_map(|blocks| [&[5, 18][..], &blocks].concat()),
        proptest::collection::vec(any::<u8>(), 8).prop_map(|stamps| [&[8, 10][..], &stamps].concat()),
        (20u8..=255, proptest::collection::vec(any::<u8>(), 0..6)).prop_map(|(kind, data)| [
            &[kind, data.len() as u8 + 2][..],
            &data
        ]
        .concat()),
    ];
    proptest::collection::vec(option, 0..5).prop_map(|options| {
        let mut bytes = Vec::new();
        for option in options {
            if bytes.len() + option.len() <= 40 {
                bytes.extend(option);
            }
        }
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    })
}

fn ipv4() -> impl Strategy<Value = IpHeaders> {
    let options = (0usize..=10).prop_flat_map(|words| proptest::collection::vec(any::<u8>(), words * 4));
    (any::<([u8; 4], [u8; 4], u8, u16, bool, u8, u8)>(), options).prop_map(|(values, options)| {
        let (source, destination, ttl, identification, dont_fragment, dscp, ecn) = values;
        let header = Ipv4Header {
            source,
            destination,
            time_to_live: ttl,
            identification,
            dont_fragment,
            dscp: (dscp & 63).try_into().unwrap(),
            ecn: (ecn & 3).try_into().unwrap(),
            options: Ipv4Options::try_from(&options[..]).unwrap(),
            ..Ipv4Header::default()
        };
        IpHeaders::Ipv4(header, Ipv4Extensions::default())
    })
}

fn extension() -> impl Strategy<Value = Option<Ipv6RawExtHeader>> {
    let header = (0usize..4).prop_flat_map(|units| proptest::collection::vec(any::<u8>(), 6 + units * 8)).prop_map(
        |mut data| {
            // As a routing header: no stops left.
            data[1] = 0;
            Ipv6RawExtHeader::new_raw(0.into(), &data).unwrap()
        },
    );
    proptest::option::weighted(0.3, header)
}

fn ipv6() -> impl Strategy<Value = IpHeaders> {
    let values = any::<([u8; 16], [u8; 16], u8, u8, u32)>();
    let auth = proptest::option::weighted(0.2, proptest::collection::vec(any::<u8>(), 12));
    let atomic_fragment = proptest::option::weighted(0.2, any::<u32>());
    (values, extension(), extension(), extension(), auth, atomic_fragment).prop_map(
        |(
            (source, destination, hop_limit, traffic_class, label),
            hop,
            destination_options,
            routing,
            auth,
            fragment,
        )| {
            let header = Ipv6Header {
                source,
                destination,
                hop_limit,
                traffic_class,
                flow_label: Ipv6FlowLabel::try_new(label & 0xf_ffff).unwrap(),
                ..Ipv6Header::default()
            };
            let extensions = Ipv6Extensions {
                hop_by_hop_options: hop,
                destination_options,
                routing: routing.map(|routing| Ipv6RoutingExtensions { routing, final_destination_options: None }),
                fragment: fragment.map(|id| Ipv6FragmentHeader::new(0.into(), IpFragOffset::ZERO, false, id)),
                auth: auth.map(|icv| IpAuthHeader::new(0.into(), 1, 2, &icv).unwrap()),
            };
            IpHeaders::Ipv6(header, extensions)
        },
    )
}

fn sample() -> impl Strategy<Value = Sample> {
    let payload = proptest::collection::vec(any::<u8>(), 0..60);
    let transport = (any::<(bool, u16, u16, u32, u32, u16, u16, u8)>(), tcp_options());
    (0usize..4, any::<[u8; 12]>(), prop_oneof![ipv4(), ipv6()], transport, payload).prop_map(
        |(headers, macs, ip, (values, options), payload)| {
            let (is_tcp, source_port, destination_port, sequence, ack, window, urgent, flags) = values;
            let (source, destination) = (macs[..6].try_into().unwrap(), macs[6..].try_into().unwrap());
            let id = |n: u8| VlanId::try_new(u16::from(n)).unwrap();
            let ip_step = match headers {
                0 => PacketBuilder::ip(ip),
                1 => PacketBuilder::ethernet2(source, destination).ip(ip),
                2 => PacketBuilder::ethernet2(source, destination).single_vlan(id(7)).ip(ip),
                _ => PacketBuilder::ethernet2(source, destination).double_vlan(id(8), id(9)).ip(ip),
            };
            let mut bytes = Vec::new();
            if is_tcp {
                let mut header = TcpHeader::new(source_port, destination_port, sequence, window);
                header.acknowledgment_number = ack;
                header.urgent_pointer = urgent;
                header.fin = flags & 1 != 0;
                header.syn = flags & 2 != 0;
                header.rst = flags & 4 != 0;
                header.psh = flags & 8 != 0;
                header.ack = flags & 16 != 0;
                header.urg = flags & 32 != 0;
                header.ece = flags & 64 != 0;
                header.cwr = flags & 128 != 0;
                header.set_options_raw(&options).unwrap();
                ip_step.tcp_header(header).write(&mut bytes, &payload).unwrap();
            } else {
                ip_step.udp(source_port, destination_port).write(&mut bytes, &payload).unwrap();
            }
            let link = if headers == 0 { LinkType::Ip } else { LinkType::Ethernet };
            Sample { link, ip_start: IP_START[headers], bytes }
        },
    )
}

fn theirs(link: LinkType, bytes: &[u8]) -> Result<SlicedPacket<'_>, err::packet::SliceError> {
    match link {
        LinkType::Ethernet => SlicedPacket::from_ethernet(bytes),
        LinkType::Ip => SlicedPacket::from_ip(bytes),
    }
}

/// Whether a frame is to be accepted, judged by etherparse; `None` where it has no say.
fn expectation(sample: &Sample) -> Option<bool> {
    let ip = sample.bytes.get(sample.ip_start..).filter(|ip| ip.len() >= 20);
    let Some(ip) = ip else { return Some(false) };
    let is_ipv6 = ip[0] >> 4 == 6;
    // An authentication header over IPv4 is no header here; a payload length of 0 is no jumbogram.
    if (!is_ipv6 && ip[9] == 51) || (is_ipv6 && ip[4..6] == [0, 0]) {
        return None;
    }
    let sliced = match theirs(sample.link, &sample.bytes) {
        Ok(sliced) => sliced,
        // ICMP and IGMP are not parsed here, and the order of extension headers is free.
        Err(err::packet::SliceError::Len(error))
            if matches!(error.layer, err::Layer::Icmpv4 | err::Layer::Icmpv6 | err::Layer::Igmp) =>
        {
            return None;
        }
        Err(err::packet::SliceError::Ipv6Exts(_)) => return None,
        Err(_) => return Some(false),
    };
    if let Some(NetSlice::Ipv4(ip)) = &sliced.net {
        // Theirs leaves the reserved bit out.
        let words = ip.header().slice().chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        if (sum & 0xffff) + (sum >> 16) != 0xffff {
            return Some(false);
        }
    }
    if sliced.is_ip_payload_fragmented() {
        // They look no further; the first fragment's transport header is read here.
        return None;
    }
    match &sliced.transport {
        Some(TransportSlice::Udp(udp)) => Some(udp.length() >= 8),
        Some(TransportSlice::Tcp(tcp)) => Some(options_are_well_formed(tcp.options())),
        _ => Some(true),
    }
}

fn options_are_well_formed(options: &[u8]) -> bool {
    match options {
        [] | [0, ..] => true,
        [1, rest @ ..] => options_are_well_formed(rest),
        [_, length, ..] if (2..=options.len()).contains(&usize::from(*length)) => {
            options_are_well_formed(&options[usize::from(*length)..])
        }
        _ => false,
    }
}

fn same_fields(packet: &Packet, sliced: &SlicedPacket<'_>) -> Result<(), TestCaseError> {
    let formats = Formats::default();
    let value = |name: &str| {
        let (format, field) = name.split_once('.').unwrap();
        packet.get_wide(formats.field(format, field).unwrap())
    };
    macro_rules! same {
        ($($name:literal: $theirs:expr),* $(,)?) => {{
            $(prop_assert_eq!(value($name), Some($theirs.into()), $name);)*
        }};
    }
    let tags: Vec<_> = sliced.link_exts.iter().collect();
    match tags.first() {
        Some(LinkExtSlice::Vlan(tag)) => same! {
            "vlan.id": tag.vlan_identifier().value(),
            "vlan.priority": tag.priority_code_point().value(),
            "vlan.drop_eligible": tag.drop_eligible_indicator(),
            "vlan.type": tag.ether_type().0,
        },
        _ => prop_assert_eq!(value("vlan.id"), None),
    }
    match &sliced.net {
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header();
            same! {
                "network.version": 4u8, "network.protocol": ip.payload_ip_number().0,
                "ipv4.version": 4u8, "ipv4.header_length": header.ihl(), "ipv4.dscp": header.dcp().value(),
                "ipv4.ecn": header.ecn().value(), "ipv4.total_length": header.total_len(),
                "ipv4.identification": header.identification(), "ipv4.dont_fragment": header.dont_fragment(),
                "ipv4.more_fragments": header.more_fragments(),
                "ipv4.fragment_offset": header.fragments_offset().value(), "ipv4.ttl": header.ttl(),
                "ipv4.protocol": header.protocol().0, "ipv4.checksum": header.header_checksum(),
                "ipv4.source": u32::from(header.source_addr()),
                "ipv4.destination": u32::from(header.destination_addr()),
            }
        }
        Some(NetSlice::Ipv6(ip)) => {
            let header = ip.header();
            same! {
                "network.version": 6u8, "network.protocol": ip.payload().ip_number.0,
                "ipv6.dscp": header.traffic_class() >> 2, "ipv6.ecn": header.traffic_class() & 3,
                "ipv6.flow_label": header.flow_label().value(), "ipv6.payload_length": header.payload_length(),
                "ipv6.next_header": header.next_header().0, "ipv6.hop_limit": header.hop_limit(),
                "ipv6.source": u128::from(header.source_addr()),
                "ipv6.destination": u128::from(header.destination_addr()),
                "network.source": u128::from(header.source_addr()),
                "network.destination": u128::from(header.destination_addr()),
            }
        }
        _ => prop_assert_eq!(value("network.version"), None),
    }
    if sliced.is_ip_payload_fragmented() {
        return Ok(());
    }
    match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            same! {
                "transport.source_port": tcp.source_port(), "tcp.source_port": tcp.source_port(),
                "tcp.destination_port": tcp.destination_port(), "tcp.sequence": tcp.sequence_number(),
                "tcp.acknowledgment": tcp.acknowledgment_number(), "tcp.data_offset": tcp.data_offset(),
                "tcp.cwr": tcp.cwr(), "tcp.ece": tcp.ece(), "tcp.urg": tcp.urg(), "tcp.ack": tcp.ack(),
                "tcp.psh": tcp.psh(), "tcp.rst": tcp.rst(), "tcp.syn": tcp.syn(), "tcp.fin": tcp.fin(),
                "tcp.window": tcp.window_size(), "tcp.checksum": tcp.checksum(),
                "tcp.urgent_pointer": tcp.urgent_pointer(),
            }
            prop_assert_eq!(packet.payload(), tcp.payload());
            same_options(value, tcp.options())?;
        }
        Some(TransportSlice::Udp(udp)) => {
            same! {
                "udp.source_port": udp.source_port(), "udp.destination_port": udp.destination_port(),
                "udp.length": udp.length(), "udp.checksum": udp.checksum(),
                "transport.destination_port": udp.destination_port(),
            }
            prop_assert_eq!(packet.payload(), udp.payload());
        }
        _ => prop_assert_eq!(value("transport.source_port"), None),
    }
    Ok(())
}

/// The fields of options against a search for the first option of each kind.
fn same_options(value: impl Fn(&str) -> Option<u128>, options: &[u8]) -> Result<(), TestCaseError> {
    let find = |kind: u8| -> Option<&[u8]> {
        let mut rest = options;
        loop {
            match rest {
                [] | [0, ..] => return None,
                [1, behind @ ..] => rest = behind,
                [found, length, ..] if *found == kind => return Some(&rest[..usize::from(*length)]),
                [_, length, ..] => rest = &rest[usize::from(*length)..],
                _ => return None,
            }
        }
    };
    let number = |kind: u8, at: usize, bytes: usize| {
        let part = find(kind)?.get(at..at + bytes)?;
        Some(part.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte)))
    };
    prop_assert_eq!(value("tcp.mss"), number(2, 2, 2));
    prop_assert_eq!(value("tcp.window_scale"), number(3, 2, 1));
    prop_assert_eq!(value("tcp.sack_permitted"), number(4, 0, 1));
    prop_assert_eq!(value("tcp.timestamp"), number(8, 2, 4));
    prop_assert_eq!(value("tcp.timestamp_echo"), number(8, 6, 4));
    for block in 0..4 {
        prop_assert_eq!(value(&format!("tcp.sack_left_{}", block + 1)), number(5, 2 + 8 * block, 4));
        prop_assert_eq!(value(&format!("tcp.sack_right_{}", block + 1)), number(5, 6 + 8 * block, 4));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn valid_frames_are_accepted_and_read_alike(sample in sample(), padding in 0usize..20) {
        let padded = [&sample.bytes[..], &vec![0; padding]].concat();
        let packet = Packet::parse(sample.link, Frame::new(&padded), &Formats::default());
        prop_assert!(packet.is_ok(), "{:?}", packet);
        same_fields(&packet.unwrap(), &theirs(sample.link, &sample.bytes).unwrap())?;
    }

    #[test]
    fn changed_frames_are_judged_alike(
        mut sample in sample(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::weighted(0.3, any::<proptest::sample::Index>()),
        mend in any::<bool>(),
    ) {
        for (at, value) in &changes {
            // Headers are changed more often than payload.
            let end = sample.bytes.len().min(sample.ip_start + 70);
            let at = sample.ip_start + at.index(end - sample.ip_start);
            sample.bytes[at] = *value;
        }
        if let Some(cut) = cut {
            sample.bytes.truncate(cut.index(sample.bytes.len()));
        }
        if mend && sample.bytes.len() >= sample.ip_start + 20 {
            mend_ipv4_checksum(&mut sample.bytes[sample.ip_start..]);
        }
        let expected = expectation(&sample);
        // The transport checksum is another test's matter.
        let offload = Offload { segmentation: None, checksum: Checksum::Verified };
        let packet = Packet::parse(sample.link, Frame { bytes: &sample.bytes, offload }, &Formats::default());
        if let Some(expected) = expected {
            prop_assert_eq!(packet.is_ok(), expected, "{:?}", packet);
        }
        if let (Ok(packet), Ok(sliced), Some(_)) = (packet, theirs(sample.link, &sample.bytes), expected) {
            same_fields(&packet, &sliced)?;
        }
    }

    #[test]
    fn a_single_wrong_bit_never_passes(sample in sample(), bit in any::<proptest::sample::Index>()) {
        let formats = Formats::default();
        let packet = Packet::parse(sample.link, Frame::new(&sample.bytes), &formats).unwrap();
        let transport = sample.bytes.len() - packet.payload().len() - UdpHeader::LEN;
        let mut bytes = sample.bytes.clone();
        let bit = transport * 8 + bit.index((bytes.len() - transport) * 8);
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        let changed = Packet::parse(sample.link, Frame::new(&bytes), &formats);
        let unsummed = changed.as_ref().is_ok_and(|packet| {
            packet.get(formats.field("udp", "checksum").unwrap()) == Some(0)
        });
        prop_assert!(changed.is_err() || unsummed);
    }

    #[test]
    fn finishing_restores_lengths_and_checksums(sample in sample(), garbage: u16) {
        let formats = Formats::default();
        let mut packet = Packet::parse(sample.link, Frame::new(&sample.bytes), &formats).unwrap();
        let fields = ["ipv4.total_length", "ipv4.checksum", "ipv6.payload_length", "tcp.checksum", "udp.checksum"];
        for name in fields {
            let (format, field) = name.split_once('.').unwrap();
            // Over IPv4, 0 would stay.
            let _ = packet.set(formats.field(format, field).unwrap(), u64::from(garbage.max(1)));
        }
        packet.finish();
        let mut bytes = weftwire_core::Buffer::default();
        packet.emit(sample.link, &mut bytes);
        prop_assert_eq!(bytes.to_vec(), sample.bytes);
    }
}

fn mend_ipv4_checksum(ip: &mut [u8]) {
    let length = usize::from(ip[0] & 15) * 4;
    if ip[0] >> 4 == 4 && (20..=ip.len()).contains(&length) {
        ip[10..12].fill(0);
        let checksum = weftwire_core::checksum::checksum(&ip[..length]);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}
