//! Format files, and the messages that packets have by them.

use crate::common::formats;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
use weftwire_core::{Frame, LinkType, Packet};
use weftwire_subscribe::formats::{Form, MatchKind};
use weftwire_subscribe::packet::{messages, pruned};
use weftwire_subscribe::{MessageFormats, read_rules, show};
use weftwire_text::SourceMap;

const ITCH: &str = include_str!("../../../examples/subscriptions/itch.p4");

/// The paper's Figure 4, and what the published compiler's examples look like.
#[test]
fn the_published_spelling_is_understood() {
    let formats = formats(
        "header itch_order_t { bit<16> stock_locate; bit<32> shares; bit<64> stock; bit<32> price; }
         struct headers { ethernet_t ethernet; itch_order_t add_order; }
         @pragma query_field(add_order.shares)
         @pragma query_field_range(add_order.price, 32)
         @pragma query_field_exact(add_order.stock, 64)
         @pragma query_counter(my_counter, 100, 1024)
         @pragma query_field_counter(other, )
         @pragma query_default_action(drop)
         control Ingress(inout headers h) { apply { } }",
    );
    let field = |name: &str| formats.field(formats.fields_named(name)[0]);
    assert_eq!(field("stock").kind, Some(MatchKind::Exact));
    assert_eq!(field("price").kind, Some(MatchKind::Range));
    assert_eq!((field("shares").kind, field("shares").offset), (None, 16));
    assert!(formats.fields_named("stock_locate").is_empty());
    assert_eq!(formats.counters()[0].window_ns, 100_000);
    assert_eq!(formats.counters()[1].window_ns, 10_000_000);
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    let text = "add_order.stock = \"BFN\" and add_order.price > 5 : fwd(2); stock = \"A\" : fwd(1), fwd(2);";
    let rules = read_rules("r", text, &formats, &mut sources, &mut diagnostics);
    assert_eq!((rules.len(), diagnostics.len()), (2, 0), "{diagnostics:?}");
}

#[test]
fn fields_of_built_in_headers_need_no_declaration() {
    let formats = formats(ITCH);
    let header = formats.header_named("ipv4").unwrap();
    assert!(formats.field_named(header, "destination").is_some());
    assert!(formats.fields_named("dscp").len() == 2, "of IPv4 and IPv6");
    // The file's own price is the only one.
    assert_eq!(formats.fields_named("hop_limit").len(), 1);
    let stock = formats.fields_named("stock");
    assert_eq!(stock.len(), 2, "of both messages");
    assert_eq!(formats.field(stock[0]).form, Form::Text { padding: b' ' });
}

fn message(kind: u8, stock: &[u8; 8], price: u32) -> Vec<u8> {
    let length = if kind == b'P' { 44 } else { 36 };
    let mut bytes = vec![0; length];
    bytes[0] = kind;
    bytes[19] = b'B';
    bytes[24..32].copy_from_slice(stock);
    bytes[32..36].copy_from_slice(&price.to_be_bytes());
    bytes
}

fn frame(messages: &[Vec<u8>], count: u16) -> Vec<u8> {
    let mut payload = b"SESSION001".to_vec();
    payload.extend_from_slice(&7u64.to_be_bytes());
    payload.extend_from_slice(&count.to_be_bytes());
    for message in messages {
        payload.extend_from_slice(&(message.len() as u16).to_be_bytes());
        payload.extend_from_slice(message);
    }
    let ip = Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [239, 0, 0, 1].into(), ..Ipv4Fields::default() };
    FrameBuilder::ethernet([1; 6], [2; 6]).ipv4(&ip).udp(1000, 26_400).payload(&payload).finish().unwrap()
}

fn shown(formats: &MessageFormats, frame: &[u8]) -> Vec<String> {
    let found = messages(formats, LinkType::Ethernet, frame).unwrap();
    let text = found.messages.iter().map(|message| show::message(formats, &show::Addresses::default(), message));
    let own = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // The headers of the file come first, then the built-in ones, of which the first that the file names is UDP.
    text.map(own).map(|text| text[..text.find(" udp(").unwrap_or(text.len())].to_owned()).collect()
}

#[test]
fn a_batch_is_many_messages() {
    let formats = formats(ITCH);
    let (a, b) = (message(b'A', b"GOOGL   ", 505_000), message(b'P', b"MSFT    ", 10));
    let other = vec![b'S'; 12];
    let all = frame(&[a, other, b], 3);
    let found = shown(&formats, &all);
    assert_eq!(found.len(), 3);
    assert_eq!(found[0], "mold() add_order(side=\"B\" shares=0 stock=\"GOOGL\" price=50.5000)");
    assert!(found[1].starts_with("mold()") && !found[1].contains("order"), "{}", found[1]);
    assert_eq!(found[2], "mold() trade(shares=0 stock=\"MSFT\" price=0.0010)");
    // Heartbeats, and the end of the session: no message, but a packet all the same.
    assert_eq!(shown(&formats, &frame(&[], 0)), ["mold()"]);
    assert_eq!(shown(&formats, &frame(&[], 0xffff)), ["mold()"]);
    // A count that is too great, a message that is too short.
    assert_eq!(shown(&formats, &frame(&[message(b'A', b"A       ", 1)], 9)).len(), 1);
    assert_eq!(shown(&formats, &frame(&[vec![b'A'; 35]], 1)), ["mold()"]);
}

#[test]
fn pruned_packets_are_right_packets() {
    let formats = formats(ITCH);
    let list: Vec<Vec<u8>> = (0..5).map(|n| message(b'A', b"GOOGL   ", n)).collect();
    let all = frame(&list, 5);
    let found = messages(&formats, LinkType::Ethernet, &all).unwrap();
    for choice in 0..32u32 {
        let keep: Vec<bool> = (0..5).map(|bit| choice >> bit & 1 == 1).collect();
        let less = pruned(&formats, LinkType::Ethernet, &all, &found, &keep).unwrap();
        let kept: Vec<Vec<u8>> = list.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(it, _)| it.clone()).collect();
        assert_eq!(less, frame(&kept, kept.len() as u16), "{keep:?}");
        Packet::parse(LinkType::Ethernet, Frame::new(&less), formats.packet_formats()).unwrap();
    }
}

#[test]
fn letters_outside_ascii_have_places_that_stand_between_letters() {
    for text in [
        "header \u{e9} { bit<8> a; }",
        "header h { bit<8> \u{1f980}; }",
        "header h {\n  bit<8> a;\u{e9}\n}",
        "@subscribe[after=\u{e9}] header h { bit<8> a; }",
        "@subscribe[\u{e9}=udp, \u{1f980}] header h { @subscribe[\u{e9}] bit<8> a; }",
        "@pragma query_field(\u{e9}.a)\nheader h { bit<8> a; }",
        "@subscribe_counter[name=\u{e9}] @subscribe_action[\u{e9}] header h { bit<8> a; }",
        "/* \u{e9} */ \u{e9} header h { bit<3> a; }",
    ] {
        let (mut sources, mut found) = (SourceMap::default(), Vec::new());
        MessageFormats::read("letters.p4", text, &mut sources, &mut found);
        for diagnostic in found {
            let (start, end) = (diagnostic.span.start as usize, diagnostic.span.end as usize);
            assert!(text.get(start..end).is_some(), "{text}: {diagnostic:?}");
        }
    }
}

#[test]
fn many_headers_and_fields_take_little_time() {
    let headers: String =
        (0..20_000).map(|n| format!("@subscribe[after=nothing]\nheader h{n} {{ bit<8> a; }}\n")).collect();
    let fields: String = (0..100_000).map(|n| format!("bit<1> f{n};\n")).collect();
    for text in [headers, format!("header h {{ {fields} }}"), format!("@subscribe[after=udp] header h {{ {fields} }}")]
    {
        MessageFormats::read("many.p4", &text, &mut SourceMap::default(), &mut Vec::new());
    }
}
