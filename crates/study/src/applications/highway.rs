//! When cars' reports become alerts.

use super::StudyError;
use super::stage::{Frames, Stage};
use super::work::Work;
use serde::Serialize;
use std::time::Duration;
use weftwire_workload::highway::{report_frame, reports};

const NETWORK: &str = include_str!("../../../../examples/networks/highway.toml");
const FORMATS: &str = include_str!("../../../../examples/subscriptions/highway.p4");
const RULES: &str = include_str!("../../../../examples/subscriptions/highway.rules");
/// Who gets alerts.
pub const SUBSCRIBERS: [&str; 4] = ["police", "toll", "rescue", "signs"];
/// Where a report's car, speed and segment lie in a frame.
const REPORT: usize = 42;

/// A report that a subscriber got.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Alert {
    /// Nanoseconds after the start when it arrived.
    pub at_ns: u64,
    /// Who got it.
    pub subscriber: &'static str,
    /// The car.
    pub car: u32,
    /// Tenths of a mile an hour.
    pub speed: u16,
    /// The segment.
    pub segment: u8,
}

/// The example's cars and rules.
pub(super) fn run(work: &mut Work<'_>) -> Result<Vec<Alert>, StudyError> {
    let reports = reports(48, Duration::from_secs(3), 1);
    let frames: Frames = reports.iter().map(|report| (report.at.nanoseconds(), report_frame(report))).collect();
    let mut alerts = Vec::new();
    let mut arrive = |node: usize, at_ns: u64, frame: &[u8]| {
        let Some([a, b, c, d, report @ ..]) = frame.get(REPORT..) else { return };
        let car = u32::from_be_bytes([*a, *b, *c, *d]);
        if let [_, _, _, _, _, _, _, _, _, _, _, _, high, low, _, _, _, segment, ..] = report {
            let speed = u16::from_be_bytes([*high, *low]);
            alerts.push(Alert { at_ns, subscriber: SUBSCRIBERS[node], car, speed, segment: *segment });
        }
    };
    Stage::new(NETWORK, FORMATS, RULES)?.run(frames, &SUBSCRIBERS, work, &mut arrive)?;
    Ok(alerts)
}
