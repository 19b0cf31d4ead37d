//! The example's capture is what the workload's generator makes. `UPDATE=1 cargo test` writes it anew.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests read and write files")]

use std::path::Path;
use weftwire_core::capture::{CaptureInterface, CaptureWriter};
use weftwire_core::{LinkType, Time};
use weftwire_subscribe::workload::{self, Numbers};

/// 30 packets of 24 messages, 1 ms apart.
fn feed() -> Vec<u8> {
    let interface = CaptureInterface { name: "exchange".into(), link: LinkType::Ethernet };
    let mut writer = CaptureWriter::pcapng(Vec::new(), &[interface]).expect("a vector takes everything");
    let mut numbers = Numbers::new(1);
    for packet in 0..30 {
        let bytes = workload::itch_packet(24, 1 + 24 * packet, &mut numbers);
        writer.write(Time::ZERO.after(packet as i64 * 1_000_000), 0, &bytes, None).expect("a vector takes everything");
    }
    writer.into_inner()
}

#[test]
fn the_capture_of_the_example_is_generated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/subscriptions/market-data.pcapng");
    let feed = feed();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &feed).expect("examples can be written");
    }
    assert!(std::fs::read(&path).expect("the capture is there") == feed, "write it anew with UPDATE=1");
    assert!(feed.len() < 50_000);
}
