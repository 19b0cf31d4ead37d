//! Actions of applications on a switch: frames in, frames out.

use crate::common::compile;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use weftwire_core::inspect::Inspect;
use weftwire_core::port::{Checksum, SegmentationKind};
use weftwire_core::wire::arp::Arp;
use weftwire_core::wire::builder::{ArpFields, FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
use weftwire_core::wire::ethernet::Ethernet;
use weftwire_core::wire::ipv4::Ipv4;
use weftwire_core::wire::ipv6::Ipv6;
use weftwire_core::{
    Formats, Frame, Function, LinkType, MacAddress, Offload, Outbox, Output, Packet, Port, Ports, Segmentation, Time,
};
use weftwire_subscribe::formats::{ActionSignature, ArgumentKind};
use weftwire_subscribe::packet;
use weftwire_subscribe::rules::Argument;
use weftwire_switch::SubscriptionSwitch;
use weftwire_switch::application::{Action, Passing, Registry, Verdict};
use weftwire_workload::Numbers;

const IP: &str = include_str!("../../../examples/subscriptions/ip.p4");
const IP_RULES: &str = include_str!("../../../examples/subscriptions/ip.rules");
const DNS: &str = include_str!("../../../examples/subscriptions/dns.p4");
const DNS_RULES: &str = include_str!("../../../examples/subscriptions/dns.rules");
const ITCH: &str = include_str!("../../../examples/subscriptions/itch.p4");

const ROUTER: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xfe]);
const CLIENT: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const SERVER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

fn ports() -> Ports {
    Ports::new((1..=4).map(|port| (Port(port), LinkType::Ethernet)))
}

fn switch(formats: &[&str], rules: &str) -> SubscriptionSwitch {
    SubscriptionSwitch::with_actions(&compile(formats, rules), ports(), Registry::built_in()).expect("built in")
}

type Sent = Vec<(u16, Vec<u8>, Offload)>;

/// What a switch sends for a frame.
fn pass(switch: &mut SubscriptionSwitch, port: u16, frame: Frame<'_>) -> Sent {
    let mut out = Outbox::new();
    switch.frame(Time::ZERO, Port(port), frame, &mut out);
    let send = |item: &Output| match item {
        Output::Send { port, bytes, offload, .. } => Some((port.0, out.bytes(bytes).to_vec(), *offload)),
        _ => None,
    };
    out.items().iter().filter_map(send).collect()
}

/// The one frame that is sent for another.
fn one(switch: &mut SubscriptionSwitch, port: u16, frame: &[u8]) -> (u16, Vec<u8>) {
    let mut sent = pass(switch, port, Frame::new(frame));
    assert_eq!(sent.len(), 1, "{sent:02x?}");
    let (port, bytes, _) = sent.remove(0);
    // Lengths and checksums are right.
    Packet::parse(LinkType::Ethernet, Frame::new(&bytes), &Formats::default()).expect("a right packet");
    (port, bytes)
}

fn ipv4(source: &str, destination: &str, ttl: u8) -> Ipv4Fields {
    let address = |text: &str| text.parse::<Ipv4Addr>().expect("an address");
    Ipv4Fields { source: address(source), destination: address(destination), ttl, ..Ipv4Fields::default() }
}

fn ipv6(source: &str, destination: &str, hop_limit: u8) -> Ipv6Fields {
    let address = |text: &str| text.parse::<Ipv6Addr>().expect("an address");
    Ipv6Fields { source: address(source), destination: address(destination), hop_limit, ..Ipv6Fields::default() }
}

fn row(switch: &SubscriptionSwitch, name: &str) -> u64 {
    switch.counters().rows.iter().find(|(row, _)| row == name).map_or(0, |(_, count)| *count)
}

#[test]
fn a_router_sends_packets_on_with_one_hop_less() {
    let mut router = switch(&[IP], IP_RULES);
    let to_router = || FrameBuilder::ethernet(ROUTER, CLIENT);
    let frame = to_router().ipv4(&ipv4("10.0.1.1", "10.0.2.1", 64)).udp(1, 2).payload(b"hello").finish().unwrap();
    let (port, sent) = one(&mut router, 1, &frame);
    let wanted = FrameBuilder::ethernet(SERVER, ROUTER).ipv4(&ipv4("10.0.1.1", "10.0.2.1", 63)).udp(1, 2);
    assert_eq!((port, sent), (2, wanted.payload(b"hello").finish().unwrap()));

    let frame = to_router().ipv6(&ipv6("fd00:1::1", "fd00:2::1", 2)).udp(1, 2).payload(b"hello").finish().unwrap();
    let (port, sent) = one(&mut router, 1, &frame);
    let wanted = FrameBuilder::ethernet(SERVER, ROUTER).ipv6(&ipv6("fd00:1::1", "fd00:2::1", 1)).udp(1, 2);
    assert_eq!((port, sent), (2, wanted.payload(b"hello").finish().unwrap()));

    let elsewhere = to_router().ipv4(&ipv4("10.0.1.1", "10.9.9.9", 64)).udp(1, 2).finish().unwrap();
    assert!(pass(&mut router, 1, Frame::new(&elsewhere)).is_empty());
}

#[test]
fn super_frames_stay_whole_where_all_segments_get_the_same() {
    let frame = FrameBuilder::ethernet(ROUTER, CLIENT)
        .ipv4(&ipv4("10.0.1.1", "10.0.2.1", 64))
        .tcp(&TcpFields { source_port: 1, destination_port: 2, ..TcpFields::default() }, &[])
        .payload(&[7; 5000])
        .finish()
        .unwrap();
    let segmentation = Some(Segmentation { size: 1448, kind: SegmentationKind::TcpIpv4 { ecn: false } });
    let offload = Offload { segmentation, checksum: Checksum::Partial };
    let frame = Frame { bytes: &frame, offload };
    // Formats about UDP do not matter to TCP.
    let mut router = switch(&[ITCH, DNS, IP], &format!("{IP_RULES} add_order.price > 5 : fwd(3); {DNS_RULES}"));
    let sent = pass(&mut router, 1, frame);
    assert_eq!(sent.iter().map(|(port, _, offload)| (*port, *offload)).collect::<Vec<_>>(), [(2, offload)]);
    assert_eq!(sent[0].1.len(), frame.bytes.len());
    let Ok(ethernet) = Ethernet::parse(&sent[0].1) else { panic!("it is Ethernet") };
    let ip = Ipv4::parse(ethernet.payload()).expect("a right header");
    assert!(ip.checksum_is_right() && ip.ttl() == 63);

    for rule in ["tcp.fin == 0 : fwd(2);", "ipv4.total_length > 9 : fwd(2);", "count() over 1s < 9 : fwd(2);"] {
        let sent = pass(&mut switch(&[IP], rule), 1, frame);
        assert_eq!(sent.len(), 4, "{rule}");
    }
}

#[test]
fn a_router_speaks_for_itself() {
    let mut router = switch(&[IP], IP_RULES);
    let ask = ArpFields {
        operation: 1,
        sender_mac: CLIENT,
        sender_address: [10, 0, 1, 1].into(),
        target_mac: MacAddress([0; 6]),
        target_address: [10, 0, 1, 254].into(),
    };
    let frame = FrameBuilder::ethernet([0xff; 6], CLIENT).arp(&ask).finish().unwrap();
    let (port, sent) = one(&mut router, 1, &frame);
    let Ok(Some(answer)) = Arp::parse(&sent[14..]) else { panic!("an answer: {sent:02x?}") };
    assert_eq!((port, &sent[..12]), (1, &[CLIENT.octets(), ROUTER.octets()].concat()[..]));
    assert_eq!((answer.operation(), answer.sender_mac(), answer.target_mac()), (2, ROUTER, CLIENT));
    assert_eq!(answer.sender_address(), Ipv4Addr::new(10, 0, 1, 254));
    assert_eq!(answer.target_address(), Ipv4Addr::new(10, 0, 1, 1));
    let other = ArpFields { target_address: [10, 0, 1, 9].into(), ..ask };
    let frame = FrameBuilder::ethernet([0xff; 6], CLIENT).arp(&other).finish().unwrap();
    assert!(pass(&mut router, 1, Frame::new(&frame)).is_empty());

    // A packet with no hop left: the error quotes it.
    let frame = FrameBuilder::ethernet(ROUTER, CLIENT).ipv4(&ipv4("10.0.1.1", "10.0.2.1", 1)).udp(7, 8);
    let frame = frame.payload(b"data").finish().unwrap();
    let (port, sent) = one(&mut router, 1, &frame);
    let error = Ipv4::parse(&sent[14..]).expect("IPv4");
    assert_eq!((port, error.protocol(), &error.payload()[..2]), (1, 1, &[11, 0][..]));
    assert_eq!((error.source(), error.destination()), ([10, 0, 1, 254].into(), [10, 0, 1, 1].into()));
    assert_eq!(weftwire_core::checksum::checksum(error.payload()), 0);
    assert_eq!(&error.payload()[8..], &frame[14..]);
    // No errors about errors, and not too many at once.
    let about_error = FrameBuilder::ethernet(ROUTER, CLIENT).ipv4(&ipv4("10.0.1.1", "10.0.2.1", 1));
    let about_error = about_error.protocol(1).payload(error.payload()).finish().unwrap();
    assert!(pass(&mut router, 1, Frame::new(&about_error)).is_empty());
    let errors: usize = (0..100).map(|_| pass(&mut router, 1, Frame::new(&frame)).len()).sum();
    assert_eq!((errors, row(&router, "icmp: errors held back")), (49, 51));
    assert_eq!(router.counters().drops["ttl_expired"], 102);

    let frame = FrameBuilder::ethernet(ROUTER, CLIENT).ipv6(&ipv6("fd00:1::1", "fd00:2::1", 1)).udp(7, 8);
    let (port, sent) = one(&mut router, 1, &frame.finish().unwrap());
    let error = Ipv6::parse(&sent[14..]).expect("IPv6");
    assert_eq!((port, error.protocol(), &error.payload()[..2]), (1, 58, &[3, 0][..]));
}

#[test]
fn messages_with_the_same_actions_leave_their_batch_together() {
    /// Marks a packet by its first byte.
    struct Mark(u8);
    impl Action for Mark {
        fn carry_out(&mut self, passing: &mut Passing<'_>) -> Verdict {
            assert!(passing.messages.iter().all(|place| passing.frame[place.start + 2] == b'P'));
            passing.count("marked");
            passing.frame[0] = self.0;
            match self.0 {
                0xaa => Verdict::Continue,
                0xbb => {
                    passing.send(Port(4), &[1; 60], Offload::default());
                    Verdict::Done
                }
                _ => Verdict::Drop("unwanted"),
            }
        }
    }
    let mut registry = Registry::default();
    let signature = ActionSignature { name: "mark".to_owned(), arguments: vec![ArgumentKind::Number] };
    registry.register(signature, |arguments| match arguments {
        [Argument::Number(byte @ 1..=255)] => Ok(Box::new(Mark(*byte as u8))),
        _ => Err("marks are from 1 to 255"),
    });
    let formats = "@subscribe_action[name=mark, arguments=\"number\"] header unused { bit<8> x; }";
    let start =
        |rules: &str| SubscriptionSwitch::with_actions(&compile(&[ITCH, formats], rules), ports(), registry.clone());
    let error = start("trade.price > 0 : mark(256);").err().expect("too great").to_string();
    assert_eq!(error, "`mark(256)`: marks are from 1 to 255");
    assert!(SubscriptionSwitch::with_actions(&compile(&[ITCH, formats], ""), ports(), Registry::built_in()).is_err());

    let frame = weftwire_workload::itch_packet(40, 500, &mut Numbers::new(3));
    let plain = compile(&[ITCH], "");
    let kinds = |frame: &[u8]| -> Vec<u8> {
        let found = packet::messages(plain.formats(), LinkType::Ethernet, frame).expect("right");
        found.places.iter().map(|place| frame[place.start + 2]).collect()
    };
    let trades = kinds(&frame).iter().filter(|kind| **kind == b'P').count();
    assert!(trades > 1 && trades < 40);

    let rules = "trade.price >= 0 : mark(0xaa), fwd(3); true : fwd(2); trade.shares > 500 : fwd(4);";
    let mut switch = start(rules).expect("right");
    let sent = pass(&mut switch, 1, Frame::new(&frame));
    let sent: Vec<_> = sent.iter().map(|(port, bytes, _)| (*port, bytes[0], kinds(bytes))).collect();
    // The trades in a packet of their own, changed, and of it some to a third port; then the rest.
    let of = |wanted: &dyn Fn(u8) -> bool| kinds(&frame).into_iter().filter(|kind| wanted(*kind)).collect::<Vec<u8>>();
    assert_eq!(sent[0], (2, 0xaa, of(&|kind| kind == b'P')));
    assert_eq!(sent[1], (3, 0xaa, of(&|kind| kind == b'P')));
    assert!(matches!(&sent[2], (4, 0xaa, some) if !some.is_empty() && some.len() < trades), "{sent:?}");
    assert_eq!(sent[3], (2, frame[0], of(&|kind| kind != b'P')));
    assert_eq!(sent.len(), 4);
    assert_eq!((row(&switch, "marked"), row(&switch, "mark(170)")), (1, trades as u64));

    // What is done or dropped goes nowhere, and no later action sees it.
    let mut switch = start("trade.price >= 0 : mark(0xbb), fwd(3), mark(0xaa);").expect("right");
    let sent = pass(&mut switch, 1, Frame::new(&frame));
    assert_eq!(sent.iter().map(|(port, bytes, _)| (*port, bytes.len())).collect::<Vec<_>>(), [(4, 60)]);
    assert_eq!((row(&switch, "mark(187)"), row(&switch, "mark(170)")), (trades as u64, 0));
    let mut switch = start("trade.price >= 0 : mark(1), fwd(3);").expect("right");
    assert!(pass(&mut switch, 1, Frame::new(&frame)).is_empty());
    assert_eq!(switch.counters().drops["unwanted"], 1);

    // Other rules, and formats, from one packet to the next; counts go on.
    let other = compile(&[formats], "udp.destination_port == 26400 : fwd(2); ipv6.dscp == 1 : mark(1);");
    switch.replace(&mut SubscriptionSwitch::with_actions(&other, ports(), registry.clone()).expect("right"));
    assert_eq!(pass(&mut switch, 1, Frame::new(&frame)).len(), 1);
    assert_eq!((row(&switch, "mark(1)"), row(&switch, "messages")), (trades as u64, 41));
}

/// Every action there is.
const ALL: &str = "
    @subscribe_action[name=answerDNS, arguments=\"ipv4\"]
    @subscribe_action[name=answerARP, arguments=\"mac\"]
    @subscribe_action[name=answerND, arguments=\"mac\"]
    @subscribe_action[name=answerEcho]
    @subscribe_action[name=timeExceeded, arguments=\"ipv4\"]
    @subscribe_action[name=timeExceededV6, arguments=\"ipv6\"]
    @subscribe_action[name=setLocator, arguments=\"ipv6\"]
    @subscribe_action[name=setSourceLocator, arguments=\"ipv6\"]
    @subscribe_action[name=route, arguments=\"mac mac\"]
    @subscribe_action[name=nextHop, arguments=\"mac\"]
    header unused { bit<8> x; }";
const ALL_RULES: &str = "true : answerDNS(10.0.0.105), answerARP(02:00:00:00:00:fe), answerND(02:00:00:00:00:fe),
    answerEcho(), timeExceeded(10.0.1.254), timeExceededV6(fd00:1::fe), setLocator(fd00:a::), setSourceLocator(fd00:b::),
    route(02:00:00:00:00:fe, 02:00:00:00:00:01), nextHop(02:00:00:00:00:02), fwd(2);";

/// Frames that some action is about.
fn known_frames() -> Vec<Vec<u8>> {
    let ask = ArpFields {
        operation: 1,
        sender_mac: CLIENT,
        sender_address: [10, 0, 1, 1].into(),
        target_mac: MacAddress([0; 6]),
        target_address: [10, 0, 1, 254].into(),
    };
    let solicitation = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &[0xfd; 16], &[1, 1, 2, 0, 0, 0, 0, 1]].concat();
    let ethernet = || FrameBuilder::ethernet(ROUTER, CLIENT);
    let frames = [
        ethernet().arp(&ask),
        ethernet().ipv6(&ipv6("fd00:1::1", "ff02::1:ff00:fe", 255)).protocol(58).payload(&solicitation),
        ethernet().ipv4(&ipv4("10.0.1.1", "10.0.2.1", 9)).protocol(1).payload(&[8, 0, 0, 0, 1, 2, 3, 4, 5]),
        ethernet().ipv6(&ipv6("fd00:1::1", "fd00:2::1", 9)).protocol(58).payload(&[128, 0, 0, 0, 1, 2, 3, 4, 5]),
        ethernet().ipv4(&ipv4("10.0.1.1", "10.0.2.1", 1)).udp(1, 2).payload(b"expired"),
        ethernet().ipv6(&ipv6("fd00:1::1", "fd00:2::1", 1)).udp(1, 2).payload(b"expired"),
        ethernet().ipv6(&ipv6("fd00:1::1", "fd00:2::1", 9)).tcp(&TcpFields::default(), &[]).payload(b"goes on"),
    ];
    let frames = frames.into_iter().map(|frame| frame.finish().expect("short"));
    frames.chain([query("www.example.com", false), query("a.b", true)]).collect()
}

proptest! {
    /// Whatever comes in: what goes out has right lengths and checksums, and nothing panics.
    #[test]
    fn damaged_frames_come_out_right_or_not_at_all(
        changes in prop::collection::vec((0usize..120, any::<u8>()), 0..4), cut in 0usize..60, vouched: bool,
    ) {
        let mut switch = switch(&[ALL], ALL_RULES);
        for mut frame in known_frames() {
            frame.truncate(frame.len() - cut.min(frame.len()) * usize::from(cut % 4 == 0));
            for (at, byte) in &changes {
                if let Some(place) = frame.get_mut(*at) {
                    *place = *byte;
                }
            }
            let checksum = if vouched { Checksum::Verified } else { Checksum::Unverified };
            let sent = pass(&mut switch, 1, Frame { bytes: &frame, offload: Offload { checksum, ..Offload::default() } });
            for (_, bytes, offload) in sent {
                let right = Packet::parse(LinkType::Ethernet, Frame { bytes: &bytes, offload }, &Formats::default());
                prop_assert!(right.is_ok(), "{:02x?} of {:02x?}", bytes, frame);
            }
        }
    }
}

/// A query's frame.
fn query(name: &str, edns: bool) -> Vec<u8> {
    let mut data = vec![9, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, edns.into()];
    for label in name.split('.') {
        data.push(label.len() as u8);
        data.extend_from_slice(label.as_bytes());
    }
    data.extend_from_slice(&[0, 0, 1, 0, 1]);
    if edns {
        data.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    }
    let frame = FrameBuilder::ethernet(SERVER, CLIENT).ipv4(&ipv4("10.0.0.1", "10.0.0.53", 64));
    frame.udp(4000, 53).payload(&data).finish().expect("short")
}

#[test]
fn names_are_answered_by_the_switch_or_go_on() {
    let mut switch = switch(&[DNS], DNS_RULES);
    for (name, address) in [("www.example.com", 105), ("WwW.eXample.COM", 105), ("imap.example.com", 106)] {
        for edns in [false, true] {
            let frame = query(name, edns);
            let (port, sent) = one(&mut switch, 1, &frame);
            assert_eq!(port, 1, "{name}");
            assert_eq!(sent[..12], [CLIENT.octets(), SERVER.octets()].concat());
            let ip = Ipv4::parse(&sent[14..]).expect("IPv4");
            assert_eq!((ip.source(), ip.destination()), ([10, 0, 0, 53].into(), [10, 0, 0, 1].into()));
            let address = [10, 0, 0, address];
            assert!(sent.windows(6).any(|bytes| bytes == [&[0, 4], &address[..]].concat()), "{sent:02x?}");
        }
    }
    for name in ["www.example.org", "ww.example.com", "example.com", "wwww.example.com", "www.example.com.x"] {
        let frame = query(name, false);
        assert_eq!(one(&mut switch, 1, &frame), (2, frame), "{name}");
    }
    // Answers of the server pass, and are not answered.
    let frame = query("www.example.com", false);
    assert_eq!(pass(&mut switch, 2, Frame::new(&frame)).len(), 1);
    let mut cut = query("www.example.com", true);
    let length = cut.len();
    cut[length - 1] = 1;
    cut[40..42].fill(0);
    assert_eq!(one(&mut switch, 1, &cut), (2, cut));
    assert_eq!(row(&switch, "dns: malformed"), 1);
}

proptest! {
    /// Filters on names hold for just the names that are equal, letters of either case.
    #[test]
    fn filters_compare_names(
        wanted in "[a-c]{1,5}(\\.[a-c]{1,2}){0,3}", other in "[a-cA-C]{1,5}(\\.[a-cA-C]{1,2}){0,3}", edns: bool,
        same: bool,
    ) {
        let other = if same { wanted.to_uppercase() } else { other };
        let equal = wanted.eq_ignore_ascii_case(&other);
        let rules = format!("name == \"{wanted}\" : fwd(2); dns.name != \"{wanted}\" : fwd(3); \
                             dns.name not in {{\"{wanted}\", \"x.y\"}} : fwd(3); name in {{\"x.y\", \"{wanted}.\"}} : fwd(2);");
        let mut switch = switch(&[DNS], &rules);
        let sent = pass(&mut switch, 1, Frame::new(&query(&other, edns)));
        let ports: Vec<u16> = sent.iter().map(|(port, ..)| *port).collect();
        prop_assert_eq!(ports, vec![if equal { 2 } else { 3 }]);
    }
}
