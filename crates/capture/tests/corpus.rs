//! Replays the corpus of the fuzz target `capture_read` (`fuzz/corpus/capture_read`) on the stable toolchain, and makes
//! its seeds.
#![allow(clippy::disallowed_methods, reason = "a test that reads and writes corpus files")]

use std::fs;
use std::path::{Path, PathBuf};
use weftwire_capture::{CaptureInterface, CaptureWriter};
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, Ipv6Fields};
use weftwire_core::{LinkType, Time};

#[path = "../../../fuzz/src/capture_read.rs"]
mod body;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture_read")
}

#[test]
fn capture_read() {
    let mut files: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        // Shown if the target panics.
        println!("{}", file.display());
        body::capture_read(&fs::read(&file).unwrap());
    }
}

/// Writes the seeds anew: `cargo test -p weftwire-capture --test corpus -- --ignored`.
#[test]
#[ignore = "writes files"]
fn seeds() {
    let ethernet = FrameBuilder::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]).ipv4(&Ipv4Fields::default());
    let frames = [
        ("udp4", 0, ethernet.udp(53, 53).payload(b"query").finish().unwrap()),
        ("udp6", 1, FrameBuilder::raw_ip().ipv6(&Ipv6Fields::default()).udp(1, 2).finish().unwrap()),
    ];
    let interfaces = [
        CaptureInterface { name: "port1".to_owned(), link: LinkType::Ethernet },
        CaptureInterface { name: "port2".to_owned(), link: LinkType::Ip },
    ];
    let mut pcapng = CaptureWriter::pcapng(Vec::new(), &interfaces).unwrap();
    let mut pcap = CaptureWriter::pcap(Vec::new(), LinkType::Ethernet).unwrap();
    for (time, (name, interface, frame)) in (0..).zip(&frames) {
        let time = Time::from_nanoseconds(1_000_000_007 * time);
        pcapng.write(time, *interface, frame, Some(name)).unwrap();
        pcap.write(time, 0, frame, None).unwrap();
    }
    fs::write(folder().join("pcapng"), pcapng.into_inner()).unwrap();
    fs::write(folder().join("pcap"), pcap.into_inner()).unwrap();
}
