//! The examples of applications, simulated: what each subscriber got is what reading the capture message by message says.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of the command run it and read its files"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Crossing, crossings, market};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
const MS: u64 = 1_000_000;
/// Where the payload of UDP over IPv4 begins.
const PAYLOAD: usize = 42;

/// Simulates an example; gives its folder and what crossed the switch's ports.
fn simulate(name: &str) -> (PathBuf, Vec<Crossing>) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("application-{name}"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    let network = format!("{EXAMPLES}/networks/{name}.toml");
    let words = ["sim", &network, "--out", folder.to_str().expect("the build's folder has a plain name")];
    let out = Command::new(env!("CARGO_BIN_EXE_weft")).args(words).output().expect("weft starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let crossings = crossings(&folder.join("switch.pcapng")).expect("a capture");
    (folder, crossings)
}

/// What the switch sent by a port, in order.
fn sent_by(crossings: &[Crossing], port: usize) -> Vec<&[u8]> {
    let sent = crossings.iter().filter(|crossing| crossing.sent && crossing.port == port);
    sent.map(|crossing| &*crossing.bytes).collect()
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// What arrived at the switch: when, and the frame.
fn arrivals(crossings: &[Crossing]) -> impl Iterator<Item = (u64, &[u8])> {
    crossings.iter().filter(|crossing| !crossing.sent).map(|crossing| (crossing.at_ns, &*crossing.bytes))
}

/// A meter of a rule: the values of the tumbling window that a time is in, this one included.
#[derive(Default)]
struct Meter {
    window: u64,
    values: Vec<u64>,
}

impl Meter {
    fn take(&mut self, at_ns: u64, window_ns: u64, value: u64) -> &[u64] {
        if at_ns / window_ns != self.window {
            *self = Meter { window: at_ns / window_ns, values: Vec::new() };
        }
        self.values.push(value);
        &self.values
    }
}

#[test]
fn the_market_goes_where_it_is_wanted() {
    let (_, crossings) = simulate("market-data");
    let frames: Vec<&[u8]> = arrivals(&crossings).map(|(_, frame)| frame).collect();
    assert_eq!(frames.len(), 150);
    for port in 2..=4 {
        let sent: Vec<Vec<Vec<u8>>> = sent_by(&crossings, port).into_iter().map(market::messages).collect();
        let wanted = market::wanted(&frames, port);
        assert!(wanted.len() >= 20, "port {port}: {} packets", wanted.len());
        assert_eq!(sent, wanted, "port {port}");
    }
}

#[test]
fn slow_hops_come_to_the_collector() {
    let (_, crossings) = simulate("int");
    let mut slow = Meter::default();
    let mut wanted: [Vec<Vec<Vec<u8>>>; 2] = Default::default();
    for (at, frame) in arrivals(&crossings) {
        let mut hops: [Vec<Vec<u8>>; 2] = Default::default();
        for hop in frame[PAYLOAD + 8..].chunks(12) {
            let (switch, latency, occupancy) = (number(&hop[..4]), number(&hop[4..8]), number(&hop[9..12]));
            if switch == 2 && latency > 500 || (10..=12).contains(&switch) && latency > 1_000 {
                hops[0].push(hop.to_vec());
            }
            let many = latency > 2_000 && slow.take(at, 10 * MS, 0).len() >= 3;
            if occupancy > 2_000 || many {
                hops[1].push(hop.to_vec());
            }
        }
        for (wanted, hops) in wanted.iter_mut().zip(hops) {
            if !hops.is_empty() {
                wanted.push(hops);
            }
        }
    }
    for (port, wanted) in [2, 3].into_iter().zip(wanted) {
        let sent: Vec<Vec<Vec<u8>>> = sent_by(&crossings, port)
            .into_iter()
            .map(|frame| {
                let hops: Vec<Vec<u8>> = frame[PAYLOAD + 8..].chunks(12).map(<[u8]>::to_vec).collect();
                assert_eq!(usize::from(frame[PAYLOAD + 1]), hops.len(), "the report's number of hops is made right");
                hops
            })
            .collect();
        assert!((10..200).contains(&wanted.len()), "port {port}: {} reports", wanted.len());
        assert_eq!(sent, wanted, "port {port}");
    }
}

/// The first ten requests for a content in each tenth of a second go to the producer, those behind them to the cache.
#[test]
fn requests_for_hot_content_go_to_the_cache() {
    const HOT: u64 = 7;
    const MOST: usize = 10;
    const WINDOW: u64 = 100 * MS;
    let (folder, crossings) = simulate("hicn");
    let mut meters: BTreeMap<u64, Meter> = BTreeMap::new();
    let mut wanted: [Vec<&[u8]>; 2] = Default::default();
    // Of the hot content: when a request went to the cache, by window.
    let mut cached: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (at, frame) in arrivals(&crossings) {
        let content = number(&frame[52..54]);
        let hot = meters.entry(content).or_default().take(at, WINDOW, 0).len() > MOST;
        assert!(!hot || content == HOT);
        wanted[usize::from(!hot)].push(frame);
        if hot {
            cached.entry(at / WINDOW).or_default().push(at);
        }
    }
    assert_eq!(sent_by(&crossings, 2), wanted[0]);
    assert_eq!(sent_by(&crossings, 3), wanted[1]);
    // It is asked for once a millisecond from 330 to 1,230 ms. Its requests move in the window in which that begins, stay, and
    // are back in the window behind the one in which it ends.
    assert_eq!(cached.keys().copied().collect::<Vec<u64>>(), (3..=12).collect::<Vec<u64>>());
    let first = |window: u64| cached[&window][0] - window * WINDOW;
    assert!((30 * MS..=42 * MS).contains(&first(3)), "{}", first(3));
    assert!((4..=12).all(|window| first(window) <= 11 * MS), "at the start of each window it is cold");
    assert!((4..=11).all(|window| cached[&window].len() >= 90));
    let report = fs::read_to_string(folder.join("report.html")).expect("a report");
    assert!(report.contains("switch-cache") || report.contains("cache:1"), "the picture shows the way to the cache");
}

#[test]
fn alerts_go_out_when_the_oracle_says() {
    let (_, crossings) = simulate("highway");
    let mut wanted: BTreeMap<usize, Vec<&[u8]>> = BTreeMap::new();
    let mut standing: BTreeMap<u8, Meter> = BTreeMap::new();
    let mut segments: BTreeMap<u8, Meter> = BTreeMap::new();
    let mut crawl = Meter::default();
    let (mut accident, mut jams) = (Vec::new(), Vec::new());
    for (at, frame) in arrivals(&crossings) {
        let report = &frame[PAYLOAD..];
        let (x, y, speed) = (number(&report[8..12]), number(&report[12..16]), number(&report[16..18]));
        let segment = report[21];
        let mut alert = |port: usize| wanted.entry(port).or_default().push(frame);
        if x > 1_000 && x < 2_000 && y > 0 && y < 36 && speed > 550 {
            alert(2);
        }
        let all = segments.entry(segment).or_default().take(at, 500 * MS, speed);
        // Averages are rounded down to tenths of a mile an hour.
        if all.iter().sum::<u64>() / (all.len() as u64) < 400 && all.len() > 12 {
            alert(3);
            jams.push((at / MS, segment));
        }
        if speed == 0 && standing.entry(segment).or_default().take(at, 1_000 * MS, 0).len() >= 10 {
            alert(4);
            accident.push((at / MS, segment));
        }
        if segment == 3 && crawl.take(at, 100 * MS, speed).iter().min() < Some(&125) {
            alert(5);
        }
    }
    for port in 2..=5 {
        let wanted = wanted.remove(&port).unwrap_or_default();
        assert!(wanted.len() >= 5, "port {port}: {} alerts", wanted.len());
        assert_eq!(sent_by(&crossings, port), wanted, "port {port}");
    }
    // Two cars stand in segment 6 from 750 to 2,250 ms, and segment 3 is jammed from 1,000 to 2,000 ms; a window remembers them
    // to its end.
    assert!(accident.iter().all(|(at, segment)| *segment == 6 && (750..=2_260).contains(at)), "{accident:?}");
    assert!(jams.iter().all(|(at, segment)| *segment == 3 || *segment == 6 && (750..2_500).contains(at)), "{jams:?}");
}

#[test]
fn the_study_writes_tables_and_pictures() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("application-study");
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    let words = ["study", "applications", "--packets", "2000", "-o", folder.to_str().expect("a plain name")];
    let out = Command::new(env!("CARGO_BIN_EXE_weft")).args(words).output().expect("weft starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    for name in ["figure-8.csv", "figure-11.csv", "hot-content.csv", "highway.csv", "results.json", "report.html"] {
        assert!(fs::metadata(folder.join(name)).expect("it is written").len() > 100, "{name}");
    }
    for name in ["figure-8.svg", "figure-11.svg", "highway.svg"] {
        assert!(fs::read_to_string(folder.join(name)).expect("it is written").starts_with("<svg"), "{name}");
    }
}
