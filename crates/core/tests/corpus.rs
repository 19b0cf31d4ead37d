//! Replays the fuzz corpora (`fuzz/corpus`) on the stable toolchain, and makes their seeds.
#![allow(clippy::disallowed_methods, reason = "a test that reads and writes corpus files")]

use std::fs;
use std::path::PathBuf;
use weftwire_core::wire::builder::{ArpFields, FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
use weftwire_core::wire::ethernet::VlanTag;
use weftwire_core::wire::tcp::{SackBlocks, TcpFlags, TcpOption};
use weftwire_core::{LinkType, MacAddress};

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn replay(target: &str, run: fn(&[u8])) {
    let mut files: Vec<PathBuf> = fs::read_dir(folder(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no corpus for {target}");
    for file in files {
        // Shown if the target panics.
        println!("{}", file.display());
        run(&fs::read(&file).unwrap());
    }
}

#[test]
fn packet_parse() {
    replay("packet_parse", targets::packet_parse);
}

#[test]
fn p4_headers() {
    replay("p4_headers", targets::p4_headers);
}

/// Writes the seeds anew: `cargo test -p weftwire-core --test corpus -- --ignored`.
#[test]
#[ignore = "changes files of the repository"]
fn write_seeds() {
    let put = |target: &str, name: &str, bytes: &[u8]| {
        fs::create_dir_all(folder(target)).unwrap();
        fs::write(folder(target).join(name), bytes).unwrap();
    };
    let frames = frames();
    for (index, (name, link, frame)) in frames.iter().enumerate() {
        let choice = u8::from(*link == LinkType::Ip) | if index % 2 == 0 { 0 } else { 2 | 8 };
        put("packet_parse", name, &[&[choice, index as u8][..], frame].concat());
    }
    put("p4_headers", "builtin", include_bytes!("../p4/builtin.p4"));
    put(
        "p4_headers",
        "declarations",
        b"#include <x>\ntypedef bit<48> mac_t;\nconst bit<8> W = 4 * (3 - 1);\n@name(\"h\") header h { mac_t a; bit<W> b; }\n\
          parser P(packet_in p) { state start { transition accept; } }\n",
    );
    put("p4_headers", "wrong", b"header h { bit<3> a; bit<0> b; varbit<8> c; }\nheader { }");
}

fn frames() -> Vec<(&'static str, LinkType, Vec<u8>)> {
    let ethernet = || FrameBuilder::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
    let four = Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), ..Ipv4Fields::default() };
    let six = Ipv6Fields::default();
    let syn = TcpFields { source_port: 4000, destination_port: 80, flags: TcpFlags::SYN, ..TcpFields::default() };
    let options = [
        TcpOption::MaximumSegmentSize(1460),
        TcpOption::SackPermitted,
        TcpOption::Timestamps { value: 1, echo: 0 },
        TcpOption::WindowScale(7),
    ];
    let sack = [TcpOption::Sack(SackBlocks::new(&[1; 16]).expect("two blocks"))];
    let arp = ArpFields {
        operation: 1,
        sender_mac: MacAddress([2, 0, 0, 0, 0, 1]),
        sender_address: four.source,
        target_mac: MacAddress([0; 6]),
        target_address: four.destination,
    };
    let fragment_header = [17, 0, 0, 1, 0, 0, 0, 9];
    let part = [0, 1, 0, 2, 9, 9, 0, 0, 5, 5, 5, 5];
    let fragment = FrameBuilder::raw_ip().ipv6(&six).protocol(44).payload(&fragment_header).payload(&part);
    [
        ("tcp4", LinkType::Ethernet, ethernet().ipv4(&four).tcp(&syn, &options).finish()),
        ("tcp6", LinkType::Ip, FrameBuilder::raw_ip().ipv6(&six).tcp(&syn, &sack).payload(&[5; 30]).finish()),
        ("udp4_vlan", LinkType::Ethernet, ethernet().vlan(VlanTag(7)).ipv4(&four).udp(1, 2).payload(&[0; 24]).finish()),
        ("udp6", LinkType::Ip, FrameBuilder::raw_ip().ipv6(&six).udp(53, 53).payload(b"query").finish()),
        ("arp", LinkType::Ethernet, ethernet().arp(&arp).finish()),
        ("fragment6", LinkType::Ip, fragment.finish()),
    ]
    .into_iter()
    .map(|(name, link, frame)| (name, link, frame.unwrap()))
    .collect()
}
