//! What a run of a network gives: the same tables whether it was simulated or real.
//!
//! Times are nanoseconds after the start of the run. A value that a platform cannot know is `None`, an empty cell.

mod metrics;

pub use metrics::{SIZE_CLASSES, SizeClass};
use weftwire_draw::Histogram;

use crate::link::Counts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weftwire_core::inspect::Counters;

/// All results of one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// What ran.
    pub run: RunFacts,
    /// A row for each direction of each link, in the network's order.
    pub links: Vec<LinkResult>,
    /// A row for each flow, by traffic and number.
    pub flows: Vec<FlowResult>,
    /// A row for each direction and sample interval, by link, then time.
    pub samples: Vec<LinkSample>,
    /// The functions' counters, by node name.
    pub functions: Vec<(String, Counters)>,
    /// Packets dropped by nodes: node name, reason, count. In the network's order, then by reason.
    pub node_drops: Vec<(String, String, u64)>,
    /// Points of the bytes-over-time plots of the first flows.
    pub progress: Vec<FlowProgress>,
    /// What the network's probes showed, by flow, then node, then register.
    #[serde(default)]
    pub probes: Vec<Probe>,
}

/// What ran, where and how it ended.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RunFacts {
    /// The network's name.
    pub network: String,
    /// `simulator` or `linux`.
    pub platform: String,
    /// The seed.
    pub seed: u64,
    /// How long it was to last.
    pub duration: i64,
    /// How long it lasted: less if it was interrupted or nothing was left to happen.
    pub lasted: i64,
    /// So much of its beginning is left out of what is measured.
    #[serde(default)]
    pub warm_up: i64,
    /// It was interrupted.
    pub interrupted: bool,
    /// Packets that links delivered: packet-hops.
    pub packet_hops: u64,
    /// Events handled (simulator).
    pub events: u64,
    /// Seconds of processor time that it took.
    pub processor_seconds: f64,
    /// Warnings: what could not be done as described.
    pub warnings: Vec<String>,
    /// How late the relay released packets (Linux).
    pub lateness: Option<Lateness>,
    /// How late the sources of traffic opened flows and sent datagrams (Linux).
    #[serde(default)]
    pub source_lateness: Option<Lateness>,
    /// Links of which one packet in a hundred left later than that link allows (Linux).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_links: Vec<String>,
}

impl RunFacts {
    /// Whether the run is not to be trusted: the relay or the sources were late.
    pub fn is_late(&self) -> bool {
        [self.lateness, self.source_lateness].iter().flatten().any(|lateness| lateness.late)
    }

    /// How long was measured: all but the warm-up.
    pub fn measured(&self) -> i64 {
        self.lasted.saturating_sub(self.warm_up).max(0)
    }
}

/// How late packets left the relay, against the emulated link's own time, or flows and datagrams their source, against the
/// traffic's own times; in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// Packets measured.
    pub packets: u64,
    /// Half are at most so late.
    pub p50: i64,
    /// 99 of 100 are at most so late.
    pub p99: i64,
    /// The latest.
    pub worst: i64,
    /// What was allowed for p99 before the run is flagged.
    pub allowed: i64,
    /// The run was too late to be trusted.
    pub late: bool,
}

impl Lateness {
    /// Of these latenesses in nanoseconds, with what was allowed for their 99th percentile.
    pub fn of(histogram: &Histogram, allowed: i64) -> Lateness {
        let (p50, p99) = (histogram.quantile(0.5), histogram.quantile(0.99));
        Lateness { packets: histogram.count(), p50, p99, worst: histogram.greatest(), allowed, late: p99 > allowed }
    }
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LinkResult {
    /// The link's name.
    pub link: String,
    /// `NODE:PORT` where packets enter.
    pub from: String,
    /// `NODE:PORT` where they leave.
    pub to: String,
    /// Its rate in bits per second at the start, if limited and constant.
    pub rate: Option<u64>,
    /// What it counted.
    pub counts: Counts,
}

/// One flow of the network's traffic.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowResult {
    /// Name of its traffic.
    pub traffic: String,
    /// Number within the traffic, from 0.
    pub number: u64,
    /// Name of the sending node.
    pub from: String,
    /// Name of the receiving node.
    pub to: String,
    /// What kind of traffic it is of: `bulk`, `flows`, `request-response`, `datagrams`.
    #[serde(default)]
    pub kind: String,
    /// `tcp`, `udp`, or the name of the function that carries it.
    pub transport: String,
    /// The congestion control of a kernel's or host's TCP.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// When it was opened.
    pub start: i64,
    /// When its first byte reached the receiving application.
    pub first_byte: Option<i64>,
    /// When it was complete: all bytes at the receiver (of request and response: the last answer at the sender; of datagrams,
    /// once all are sent: the last one that arrived).
    pub end: Option<i64>,
    /// Bytes that the sending application wanted to send (of request and response: all of both); `None` without a limit.
    pub bytes: Option<u64>,
    /// Bytes that reached the receiving application (request and response: both added).
    pub delivered: u64,
    /// Those of them that did so in the warm-up.
    #[serde(default)]
    pub delivered_in_warm_up: u64,
    /// How long it would have taken alone ([`crate::ideal`]), of a stream over TCP between hosts.
    #[serde(default)]
    pub ideal: Option<i64>,
    /// Segments with payload, or datagrams, that the sender put on the wire.
    pub packets: Option<u64>,
    /// Those of them that repeated bytes sent before.
    pub retransmissions: Option<u64>,
    /// Datagrams that did not arrive.
    pub lost: Option<u64>,
    /// Round-trip time from first transmission to acknowledgment (request and response: of the application): samples.
    pub rtt_samples: u64,
    /// Least, in nanoseconds.
    pub rtt_min: Option<i64>,
    /// Mean.
    pub rtt_mean: Option<i64>,
    /// Greatest.
    pub rtt_max: Option<i64>,
    /// How it ended: `complete`, `running` at the end of the run, `refused`, `reset`, `failed: REASON`.
    pub outcome: String,
}

impl FlowResult {
    /// Flow completion time: from opening to the last byte.
    pub fn completion_time(&self) -> Option<i64> {
        self.end.map(|end| end.saturating_sub(self.start))
    }

    /// How much longer it took than alone.
    pub fn slowdown(&self) -> Option<f64> {
        let (time, ideal) = (self.completion_time()?, self.ideal.filter(|ideal| *ideal > 0)?);
        Some(time as f64 / ideal as f64)
    }

    /// Whether all of it is measured: it began behind the warm-up.
    pub fn is_measured(&self, run: &RunFacts) -> bool {
        self.start >= run.warm_up
    }

    /// Bits per second of the application behind the warm-up, up to the flow's end or the run's; `None` if it ended before.
    pub fn measured_goodput(&self, run: &RunFacts) -> Option<f64> {
        let (start, end) = (self.start.max(run.warm_up), self.end.unwrap_or(run.lasted));
        if run.warm_up > 0 && end <= start {
            return None;
        }
        let lasted = end.saturating_sub(start);
        let delivered = self.delivered.saturating_sub(self.delivered_in_warm_up);
        Some(if lasted <= 0 { 0.0 } else { delivered as f64 * 8e9 / lasted as f64 })
    }

    /// Whether it is of datagrams: they are sent and forgotten, so how long the flow lasts is up to the sender.
    pub fn is_datagrams(&self) -> bool {
        self.kind == "datagrams"
    }

    /// Whether all of it was done.
    pub fn is_complete(&self) -> bool {
        self.outcome == "complete"
    }

    /// Bits per second of the application, from opening to the end (or to `until` while running).
    pub fn goodput(&self, until: i64) -> f64 {
        let lasted = self.end.unwrap_or(until).saturating_sub(self.start);
        if lasted <= 0 { 0.0 } else { self.delivered as f64 * 8e9 / lasted as f64 }
    }
}

/// What one direction of a link did in one sample interval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LinkSample {
    /// Index into [`Results::links`].
    pub link: usize,
    /// End of the interval.
    pub at: i64,
    /// Bytes delivered within it.
    pub delivered_bytes: u64,
    /// Packets waiting at its end.
    pub queue_packets: u64,
    /// Bytes waiting at its end.
    pub queue_bytes: u64,
    /// Packets dropped within it, for whatever cause.
    pub drops: u64,
    /// Packets marked within it.
    pub marks: u64,
}

/// Bytes over time of a flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowProgress {
    /// Index into [`Results::flows`].
    pub flow: usize,
    /// Segments as sent: time, first byte, length, whether it repeats bytes.
    pub sent: Vec<(i64, u64, u32, bool)>,
    /// Bytes acknowledged to the sender, or delivered at the receiver, over time.
    pub acknowledged: Vec<(i64, u64)>,
}

/// A register's value over time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Probe {
    /// Index into [`Results::flows`].
    pub flow: usize,
    /// Name of the node whose machine has the register.
    pub node: String,
    /// The register's name.
    pub register: String,
    /// Time and value, 64-bit two's complement; times in nanoseconds.
    pub points: Vec<(i64, i64)>,
}

/// Summary of one run for tables of many runs: metric names with values.
pub type Metrics = BTreeMap<String, f64>;

impl LinkResult {
    /// Packets that it dropped, for whatever cause.
    pub fn drops(&self) -> u64 {
        let counts = &self.counts;
        [counts.lost, counts.dropped_full, counts.dropped_early, counts.dropped_down, counts.dropped_blackhole]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Share of the run, which lasted so many nanoseconds, in which it was busy; `None` if its rate is unlimited.
    pub fn utilisation(&self, lasted: i64) -> Option<f64> {
        let limited = self.rate.is_some() || self.counts.busy > 0;
        (limited && lasted > 0).then(|| self.counts.busy as f64 / lasted as f64)
    }

    /// Bits of frames that it delivered per second of a run that lasted so many nanoseconds.
    pub fn throughput(&self, lasted: i64) -> f64 {
        if lasted <= 0 { 0.0 } else { self.counts.delivered_bytes as f64 * 8e9 / lasted as f64 }
    }

    /// Mean of the bytes waiting, over a run that lasted so many nanoseconds.
    pub fn queue_bytes_mean(&self, lasted: i64) -> f64 {
        if lasted <= 0 { 0.0 } else { self.counts.queue_bytes_integral as f64 / lasted as f64 }
    }

    /// Mean wait of a packet in the queue, in nanoseconds; `None` if none was served.
    pub fn wait_mean(&self) -> Option<f64> {
        (self.counts.served > 0).then(|| self.counts.waited_sum as f64 / self.counts.served as f64)
    }
}
