//! Rules as a machine: the engine that runs the image sends what the switch sends.

use crate::common::compile;
use proptest::prelude::*;
use weftwire_core::port::Checksum;
use weftwire_core::{
    Frame, Function, LinkType, Offload, Outbox, Output, Packet, Port, Time, builtin_formats, function::Ports,
};
use weftwire_engine::{EngineOptions, make};
use weftwire_switch::SubscriptionSwitch;
use weftwire_target::machine::{Unfit, machine};
use weftwire_workload::ITCH_FORMATS;

const FORMATS: &str = r#"
    @subscribe_counter[name=hits, window="300ns"]
    @subscribe_action[name=note, arguments="number"]
    @subscribe[after=udp, when=udp.destination_port == 7]
    header probe {
        bit<80> session;
        @subscribe[match=exact] bit<4> kind;
        @subscribe[] bit<12> size;
        @subscribe[match=lpm] bit<32> address;
        @subscribe[text=" "] bit<16> name;
        @subscribe[decimals=1] bit<8> price;
        @subscribe[] bit<64> wide;
        @subscribe[] bit<128> widest;
        bit<8> more;
    }
    @subscribe[after=probe, when=probe.more == 1]
    header tail {
        @subscribe[] bit<8> last;
    }
"#;

fn ports() -> Ports {
    Ports::new((1..=4).map(|port| (Port(port), LinkType::Ethernet)))
}

/// The frames sent, by port.
fn sent(out: &Outbox) -> Vec<(u16, Vec<u8>)> {
    let send = |item: &Output| match item {
        Output::Send { port, bytes, .. } => Some((port.0, out.bytes(bytes).to_vec())),
        _ => None,
    };
    out.items().iter().filter_map(send).collect()
}

/// A frame of a few shapes, told by numbers, with right lengths and checksums.
fn frame(shape: u8, numbers: [u8; 6]) -> Vec<u8> {
    let [a, b, c, d, e, f] = numbers;
    let mut bytes = vec![2, 0, 0, 0, 0, a, 2, 0, 0, 0, 0, b];
    if shape & 0x80 != 0 {
        bytes.extend([0x81, 0, c & 0x3f, d]);
    }
    let mut probe = vec![0; 10];
    probe.extend([c, d, 10, a, b & 3, 0, b'a' + (a & 1), [b' ', b'b'][usize::from(b & 1)], e]);
    probe.extend([f, 0, 0, 0, 0, 0, e, d]);
    probe.extend([0; 15]);
    probe.extend([e & 1, f & 1, d]);
    let udp = |payload: &[u8]| {
        let length = (8 + payload.len() as u16).to_be_bytes();
        [&[0, c & 7, 0, 7 ^ (d & 4), length[0], length[1], 0, 1], payload].concat()
    };
    let tcp = [&[0, c & 7, 0, d & 7, e, f, a, b, 0, 0, 0, 0, 0x50, c, 0, 9, 0, 0, 0, 0], &probe[..5]].concat();
    let ipv4 = |protocol: u8, inner: &[u8]| {
        let length = (20 + inner.len() as u16).to_be_bytes();
        let mut header = vec![0x45, d, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, a & 3, b];
        header.extend([10, 0, 1, c]);
        let sum = weftwire_core::checksum::checksum(&header).to_be_bytes();
        header[10..12].copy_from_slice(&sum);
        [&[8, 0], &header[..], inner].concat()
    };
    let ipv6 = |inner: &[u8]| {
        let length = (inner.len() as u16).to_be_bytes();
        let mut header = vec![0x60, 0, 0, d, length[0], length[1], 17, 64];
        header.extend([0xfc; 32]);
        [&[0x86, 0xdd], &header[..], inner].concat()
    };
    bytes.extend(match shape & 7 {
        0..3 => ipv4(17, &udp(&probe[..probe.len() - usize::from(f & 1)])),
        3 => ipv4(17, &udp(&probe[..usize::from(e) % probe.len()])),
        4 => ipv4(6, &tcp),
        5 => ipv6(&udp(&probe)),
        6 => {
            let mut arp = vec![8, 6, 0, 1, 8, 0, 6, 4, 0, a & 3];
            arp.extend([c; 20]);
            arp
        }
        _ => vec![0x12, a & 1, c, d],
    });
    let offload = Offload { checksum: Checksum::Verified, ..Offload::default() };
    let formats = Default::default();
    let mut packet =
        Packet::parse(LinkType::Ethernet, Frame { bytes: &bytes, offload }, &formats).expect("lengths are right");
    packet.finish();
    let mut whole = weftwire_core::Buffer::default();
    packet.emit(LinkType::Ethernet, &mut whole);
    whole.to_vec()
}

fn operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="])
}

fn test() -> impl Strategy<Value = String> {
    prop_oneof![
        (prop::sample::select(vec!["==", "!="]), 0..16u8).prop_map(|(op, n)| format!("kind {op} {n}")),
        (operator(), 0..4096u16).prop_map(|(op, n)| format!("size {op} {n}")),
        (any::<u8>(), any::<u8>()).prop_map(|(a, b)| format!("probe.size in [{}, {}]", a.min(b), a.max(b))),
        (0..33u8).prop_map(|length| format!("address == 10.77.1.0/{length}")),
        prop::sample::select(vec!["name == ab", "name != a", "name prefix \"b\""]).prop_map(str::to_owned),
        (operator(), 0..25u8).prop_map(|(op, n)| format!("price {op} {n}.5")),
        (operator(), prop::sample::select(vec!["0", "0x8000000000000000", "0xffffffffffffffff", "0x7f000000000000ff"]))
            .prop_map(|(op, n)| format!("wide {op} {n}")),
        (operator(), any::<u8>()).prop_map(|(op, n)| format!("last {op} {n}")),
        (operator(), 0..8u8).prop_map(|(op, n)| format!("udp.source_port {op} {n}")),
        (operator(), 0..70u8).prop_map(|(op, n)| format!("udp.length {op} {n}")),
        (operator(), 0..4u8, any::<u8>()).prop_map(|(op, a, b)| format!("ipv4.source {op} 10.0.{a}.{b}")),
        (operator(), any::<u8>()).prop_map(|(op, n)| format!("ethernet.destination {op} 02:00:00:00:00:{n:02x}")),
        (operator(), 0..64u16).prop_map(|(op, n)| format!("vlan.id {op} {}", n << 6)),
        (prop::sample::select(vec!["==", "!="]), 0..2u8).prop_map(|(op, n)| format!("tcp.syn {op} {n}")),
        (operator(), any::<u32>()).prop_map(|(op, n)| format!("tcp.sequence {op} {n}")),
        (operator(), 0..4u8).prop_map(|(op, n)| format!("arp.operation {op} {n}")),
        (operator(), 0..6u8).prop_map(|(op, n)| format!("hits {op} {n}")),
        (operator(), 0..6u8).prop_map(|(op, n)| format!("count() over 700ns {op} {n}")),
        (prop::sample::select(vec!["avg", "min", "max", "sum"]), operator(), 0..25u8)
            .prop_map(|(f, op, n)| format!("{f}(price) over 500ns {op} {n}.5")),
        (prop::sample::select(vec!["min", "max"]), operator())
            .prop_map(|(f, op)| format!("{f}(wide) over 1us {op} 0x8000000000000000")),
    ]
}

fn filter() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![20 => test(), 1 => Just("true".to_owned())];
    leaf.prop_recursive(2, 5, 3, |inner| {
        let parts = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            3 => parts.clone().prop_map(|p| format!("({})", p.join(" and "))),
            1 => parts.prop_map(|p| format!("({})", p.join(" or "))),
            1 => inner.prop_map(|p| format!("not ({p})")),
        ]
    })
}

fn rule() -> impl Strategy<Value = String> {
    (filter(), prop::collection::btree_set(1..6u8, 1..4)).prop_map(|(filter, ports)| {
        let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
        format!("{filter} : fwd({});", ports.join(", "))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn the_image_forwards_as_the_switch_does(
        rules in prop::collection::vec(rule(), 1..6),
        packets in prop::collection::vec((any::<u8>(), any::<[u8; 6]>(), 1u16..6, 0i64..300), 60),
    ) {
        let text = rules.join("\n");
        let compiler = compile(&[FORMATS], &text);
        let program = match machine(&compiler, "random") {
            Ok(program) => program,
            // Rules that multiply are not refused by mistake alone.
            Err(Unfit::Rows(rows)) => {
                prop_assert!(rows > 65_535);
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        // Great programs take long and show nothing more.
        if program.rows > 200 {
            return Ok(());
        }
        let image = match program.image() {
            Ok(image) => image,
            Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}\n{}", program.xl))),
        };
        let mut engine = make("reference", image, ports(), EngineOptions::default()).expect("an engine");
        let mut switch = SubscriptionSwitch::new(&compiler, ports());
        let mut now = Time::ZERO;
        for (shape, numbers, port, later) in packets {
            now = now.after(later);
            let frame = frame(shape, numbers);
            let (mut of_engine, mut of_switch) = (Outbox::new(), Outbox::new());
            engine.frame(now, Port(port), Frame::new(&frame), &mut of_engine);
            switch.frame(now, Port(port), Frame::new(&frame), &mut of_switch);
            prop_assert_eq!(sent(&of_engine), sent(&of_switch), "{}\n{}\n{:02x?}", text, program.xl, frame);
        }
    }
}

#[test]
fn a_program_is_easy_to_read() {
    let compiler = compile(
        &[FORMATS],
        "probe.price > 5.5 and kind == 3 : fwd(2);
         kind == 3 and count() over 1ms > 100 : fwd(3);",
    );
    let program = machine(&compiler, "two rules").expect("nothing is in the way");
    let expected = r#"// 2 rules, compiled.
machine two_rules;

import "headers.p4" {
    probe after udp when udp.destination_port == 7;
}

flow key none expires after 0s at most 1 flows;

register window_0_number: u64;
register window_0_count: u64;

initial state switching {
    on packet {
        if present(probe) {
            if u64(probe.kind) == 3 {
                if u64(probe.price) >= 56 {
                    // count() over 1000000ns #0
                    let now_0 = u64(now / 1000000ns);
                    let same_0 = u64(window_0_number == now_0 and window_0_count != 0);
                    window_0_number = now_0;
                    window_0_count = window_0_count * same_0 + 1;
                    if window_0_count >= 101 {
                        if packet.port == 2 {
                            send packet to 3;
                        } else if packet.port == 3 {
                            send packet to 2;
                        } else {
                            send packet to 2;
                            send packet to 3;
                        }
                    } else {
                        if packet.port != 2 {
                            send packet to 2;
                        }
                    }
                } else {
"#;
    assert!(program.xl.starts_with(expected), "{}", program.xl);
    let headers = "header probe {\n    bit<64> unnamed_0;\n    bit<16> unnamed_1;\n    bit<4> kind;\n";
    assert!(program.headers.starts_with(headers), "{}", program.headers);
    assert!(program.image().is_ok());
}

/// As many entries as fit are as many rows.
#[test]
fn long_tables_become_machines() {
    let rules: String = (0..3000).map(|n| format!("udp.destination_port == {n} : fwd({});", 1 + n % 3)).collect();
    let program = machine(&compile(&[""], &rules), "long").expect("it fits");
    let rows = program.image().expect("it fits").rows.len();
    // Two rows a value; one port in three needs none: it is what is done otherwise.
    assert!((4000..=program.rows as usize).contains(&rows), "{rows} rows of {}", program.rows);
}

#[test]
fn what_no_machine_can_do_is_refused() {
    let refused = |formats: &str, rules: &str| machine(&compile(&[formats], rules), "it").expect_err("refused");
    let many: String = (0..40)
        .map(|n| format!("udp.source_port > {n} and udp.destination_port > {} and udp.length > {n}: fwd({n});", 40 - n))
        .skip(1)
        .collect();
    assert!(matches!(refused(FORMATS, &many), Unfit::Rows(rows) if rows > 65_535));
    for (formats, rules, says) in [
        (ITCH_FORMATS, "add_order.price > 5 : fwd(1);", "`add_order` is in a message of a batch"),
        (ITCH_FORMATS, "udp.length > 5 and orders > 3 : fwd(1);", "`orders` counts messages"),
        (FORMATS, "widest == 5 : fwd(1);", "`probe.widest` has 128 bits; machines compare up to 64"),
        (FORMATS, "sum(wide) over 1ms > 5 : fwd(1);", "may pass 64 bits"),
        (FORMATS, "kind == 5 : note(7);", "`note(7)` is an action of an application"),
        ("header lost { @subscribe[] bit<8> x; }", "x == 5 : fwd(1);", "`lost` has no place in packets"),
    ] {
        let error = refused(formats, rules).to_string();
        assert!(error.contains(says), "{error}");
    }
    // Names that programs keep for themselves.
    let formats = "@subscribe[after=udp] header packet { @subscribe[] bit<8> port; }";
    assert_eq!(refused(formats, "packet.port == 5 : fwd(1);"), Unfit::Name("packet".into()));
}

#[test]
fn all_builtin_headers_have_their_names() {
    for format in builtin_formats().iter().filter(|format| !matches!(format.name.as_str(), "network" | "transport")) {
        let fields = format.fields.iter().filter(|field| field.option.is_none() && field.width <= 64);
        for field in fields.filter(|field| field.offset + u32::from(field.width) <= format.length) {
            let rules = format!("{}.{} == 1 : fwd(1);", format.name, field.name);
            let program = machine(&compile(&[""], &rules), "it").expect("nothing is in the way");
            let image = program.image().expect("it is right");
            assert!(image.fields.iter().any(|it| it.format == format.name), "{rules}");
        }
    }
}
