//! Cars on a highway that report where they are and how fast, after Linear Road.

use crate::Numbers;
use std::net::Ipv4Addr;
use std::time::Duration;
use weftwire_core::Time;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};

/// UDP port of reports.
pub const CAR_PORT: u16 = 5_100;
/// Feet of a segment: a tenth of a mile.
pub const SEGMENT: u32 = 528;
/// Segments of the highway.
const SEGMENTS: u32 = 10;
/// Lanes, 12 feet wide each.
const LANES: u32 = 3;
/// Nanoseconds from one report of a car to its next.
const EVERY: u64 = 100_000_000;

/// What a car says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// When, after the start.
    pub at: Time,
    /// The car.
    pub car: u32,
    /// Feet along the highway.
    pub x: u32,
    /// Feet from its edge.
    pub y: u32,
    /// Tenths of a mile an hour.
    pub speed: u16,
    /// Lane, from 1.
    pub lane: u8,
    /// Segment, from 0.
    pub segment: u8,
}

/// Reports of `cars` cars for so long, by time. In the second third of it cars crawl in segment 3; from a quarter to
/// three quarters of it two cars stand in lane 2 of segment 6.
pub fn reports(cars: u32, duration: Duration, seed: u64) -> Vec<Report> {
    let mut numbers = Numbers::new(seed);
    let end = duration.as_nanos() as u64;
    let mut reports = Vec::new();
    for car in 0..cars {
        let lane = 1 + numbers.below(LANES.into()) as u32;
        // Tenths of a mile an hour; one car in eight is in a hurry.
        let cruise = if car % 8 == 0 { 700 } else { 480 } + numbers.below(120);
        // A tenth of a mile an hour is 0.1467 feet a second: positions count in millionths of a foot.
        let mut place = numbers.below(u64::from(SEGMENT * SEGMENTS)) * 1_000_000;
        let broken = car < 2;
        let lane = if broken { 2 } else { lane };
        if broken {
            place = u64::from(6 * SEGMENT + 100 + 20 * car) * 1_000_000;
        }
        let mut at = numbers.below(EVERY);
        while at < end {
            let x = (place / 1_000_000) as u32 % (SEGMENT * SEGMENTS);
            let segment = x / SEGMENT;
            let jam = segment == 3 && (end / 3..end * 2 / 3).contains(&at);
            let stands = broken && (end / 4..end * 3 / 4).contains(&at);
            let speed = match (stands, jam) {
                (true, _) => 0,
                (false, true) => 80 + numbers.below(170),
                (false, false) => cruise + numbers.below(20),
            };
            reports.push(Report {
                at: Time::from_nanoseconds(at as i64),
                car,
                x,
                y: lane * 12 - 6,
                speed: speed as u16,
                lane: lane as u8,
                segment: segment as u8,
            });
            if !(broken && at < end / 4) {
                place += speed * 14_667;
            }
            at += EVERY;
        }
    }
    reports.sort_by_key(|report| (report.at, report.car));
    reports
}

/// A report as a frame.
pub fn report_frame(report: &Report) -> Vec<u8> {
    let mut data = Vec::with_capacity(24);
    data.extend_from_slice(&report.car.to_be_bytes());
    data.extend_from_slice(&((report.at.nanoseconds() / 1_000_000) as u32).to_be_bytes());
    data.extend_from_slice(&report.x.to_be_bytes());
    data.extend_from_slice(&report.y.to_be_bytes());
    data.extend_from_slice(&report.speed.to_be_bytes());
    data.extend_from_slice(&[1, report.lane, 0, report.segment]);
    let [source, destination] = [1, 9].map(|host| Ipv4Addr::new(10, 0, 0, host));
    let ip = Ipv4Fields { source, destination, ..Ipv4Fields::default() };
    let frame = FrameBuilder::ethernet([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 1]).ipv4(&ip).udp(CAR_PORT, CAR_PORT);
    frame.payload(&data).finish().unwrap_or_default()
}
