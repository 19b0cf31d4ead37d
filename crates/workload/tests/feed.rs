//! The examples' captures and long rule files are what the workloads' generators make. `UPDATE=1 cargo test` writes them anew.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests read and write files")]

use std::path::Path;
use std::time::Duration;
use weftwire_capture::{CaptureInterface, CaptureWriter};
use weftwire_core::{LinkType, Time};
use weftwire_workload::market::{Feed, FeedSettings};
use weftwire_workload::{Numbers, content, highway, reports};

/// Frames at their nanoseconds.
fn capture(name: &str, frames: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Vec<u8> {
    let interface = CaptureInterface { name: name.into(), link: LinkType::Ethernet };
    let mut writer = CaptureWriter::pcapng(Vec::new(), &[interface]).expect("a vector takes everything");
    for (at, bytes) in frames {
        writer.write(Time::ZERO.after(at as i64), 0, &bytes, None).expect("a vector takes everything");
    }
    writer.into_inner()
}

fn is_generated(name: &str, generated: &[u8], most: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/subscriptions").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, generated).expect("examples can be written");
    }
    assert!(std::fs::read(&path).expect("the file is there") == generated, "write {name} anew with UPDATE=1");
    assert!(generated.len() < most, "{name} has {} bytes", generated.len());
}

/// The opening of a day at half past nine, 0.3 ms from packet to packet.
#[test]
fn the_feed_of_the_market() {
    let settings = FeedSettings { messages: (4, 24), ..FeedSettings::default() };
    let mut feed = Feed::new(settings, 1);
    let packets: Vec<(u64, Vec<u8>)> =
        (0..150).map(|packet| (packet * 300_000, feed.packet(34_200_000_000_000 + packet * 300_000))).collect();
    is_generated("market-data.pcapng", &capture("exchange", packets), 80_000);
}

/// Every 0.2 ms a packet's report from the three switches on its way.
#[test]
fn the_reports_of_switches() {
    let mut numbers = Numbers::new(1);
    let report = |sequence: u64| {
        let hops: Vec<reports::Hop> = (0..3).map(|_| reports::hop(20, &mut numbers)).collect();
        (sequence * 200_000, reports::report_packet(&hops, sequence as u32))
    };
    is_generated("int.pcapng", &capture("switches", (0..400).map(report)), 80_000);
}

#[test]
fn the_requests_for_content() {
    let settings = content::RequestSettings::default();
    let frames = content::requests(&settings, 1).into_iter();
    let frames = frames.map(|request| (request.at.nanoseconds() as u64, request.frame));
    is_generated("hicn.pcapng", &capture("consumers", frames), 220_000);
    is_generated("hicn.rules", content::split_rules(settings.contents, 10, "100ms").as_bytes(), 8_000);
}

#[test]
fn the_reports_of_cars() {
    let reports = highway::reports(48, Duration::from_secs(3), 1);
    let frames = reports.iter().map(|report| (report.at.nanoseconds() as u64, highway::report_frame(report)));
    is_generated("highway.pcapng", &capture("cars", frames), 200_000);
}
