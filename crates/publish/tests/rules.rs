//! Messages as rules see them.

use etherparse::PacketBuilder;
use weftwire_core::LinkType;
use weftwire_publish::client::GROUP;
use weftwire_publish::message::{MAX_DATAGRAM, Message, PORT};
use weftwire_publish::topic::Topic;
use weftwire_subscribe::switch::Switch;
use weftwire_subscribe::{Compiler, MessageFormats, packet, read_rules};
use weftwire_text::SourceMap;

const FORMAT: &str = include_str!("../../../examples/subscriptions/publish.p4");

/// The ports that a message is sent to by rules of these filters; the first filter's port is 1.
fn ports(filters: &[String], message: &Message<'_>) -> Vec<u16> {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    let formats = MessageFormats::read("publish.p4", FORMAT, &mut sources, &mut diagnostics).expect("formats");
    let rules: String = (1..).zip(filters).map(|(port, filter)| format!("{filter} : fwd({port});\n")).collect();
    let rules = read_rules("rules", &rules, &formats, &mut sources, &mut diagnostics);
    let found: Vec<String> = diagnostics.iter().map(|it| it.to_text(&sources)).collect();
    assert!(found.is_empty(), "{found:?}");
    let compiler = Compiler::new(formats, &Default::default(), &rules).expect("few clauses");

    let mut datagram = Vec::new();
    message.encode(MAX_DATAGRAM, &mut datagram).unwrap();
    let std::net::IpAddr::V4(group) = GROUP.ip() else { unreachable!("it is of IPv4") };
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [1, 0, 0x5e, 0x40, 101, 102])
        .ipv4([10, 0, 0, 1], group.octets(), 1)
        .udp(40_000, PORT);
    let mut frame = Vec::new();
    builder.write(&mut frame, &datagram).unwrap();
    let messages = packet::messages(compiler.formats(), LinkType::Ethernet, &frame).expect("it is a packet").messages;
    let [message] = &messages[..] else { panic!("{} messages", messages.len()) };
    Switch::default().message(&compiler, message, 0).ports.into_iter().map(|port| port.0).collect()
}

#[test]
fn a_topic_is_told_from_all_others() {
    let names = ["a", "orders", "order", "exactly-16-chars", "exactly-16-charsX", "thirty-two-characters-and-no-mor"];
    let filters: Vec<_> = names.map(|name| Topic::new(name).unwrap().filter()).into();
    for (port, name) in (1..).zip(names) {
        assert_eq!(ports(&filters, &Message::new(Topic::new(name).unwrap(), b"x")), [port], "{name}");
    }
}

#[test]
fn filters_see_what_the_header_has() {
    let message = Message {
        publisher: 0xfedc_ba98_7654_3210,
        sequence: 5,
        partition: 7,
        number: 1_000_000_000_000,
        key: Some(b"eu-customer-0000000017"),
        ..Message::new(Topic::new("orders.eu").unwrap(), b"payload")
    };
    let filters = [
        "publish.partition == 7",
        "publish.partition == 5",
        "publish.number > 999999999999 and publish.topic prefix \"orders.\"",
        "publish.number > 1000000000000",
        "publish.key prefix \"eu-\"",
        "publish.key == \"eu-customer-0000\"",
        "publish.publisher == 0xfedcba9876543210",
    ];
    assert_eq!(ports(&filters.map(Into::into), &message), [1, 3, 5, 6, 7]);
}
