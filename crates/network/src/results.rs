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
    /// How late the sources of traffic opened flows and sent datagrams (Linux).
    #[serde(default)]
    pub source_lateness: Option<Lateness>,
}

impl RunFacts {
    /// Whether the run is not to be trusted: the relay or the sources were late.
    pub fn is_late(&self) -> bool {
        [self.lateness, self.source_lateness].iter().flatten().any(|lateness| lateness.late)
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

/// Summary of one run for tables of many runs: metric names with values.
pub type Metrics = BTreeMap<String, f64>;

/// Links of networks with at most so many have metrics of their own.
const MOST_LINKS_WITH_METRICS: usize = 16;

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

/// The percentile of values in ascending order by nearest rank: the least of them such that at least `percent` of 100
/// are not above it. `None` of no values.
pub fn percentile<T: Copy>(ascending: &[T], percent: u32) -> Option<T> {
    let rank = (ascending.len() as u128 * u128::from(percent.min(100))).div_ceil(100);
    ascending.get((rank as usize).saturating_sub(1)).copied()
}

impl Results {
    /// The run in a few numbers, by name: `flows`, `flows_complete`, `fct_p50`, `fct_p99`, `fct_max` (flow completion
    /// times in seconds, of flows that ended, but for those of datagrams; percentiles by nearest rank), `goodput` (bits/s of all flows together, from
    /// the first opening to the last end), `retransmissions`, `drops` and `marks` (of all links), `packet_hops`; of each
    /// link direction `LINK.FROM.utilisation`, `.queue_bytes_mean`, `.wait_mean` (seconds), `.drops`, if there are at
    /// most 16 links. What is unknown (the times without a flow that ended) is left out.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::new();
        let mut set = |name: String, value: Option<f64>| {
            if let Some(value) = value {
                metrics.insert(name, value);
            }
        };
        let streams = self.flows.iter().filter(|flow| !flow.is_datagrams());
        let mut times: Vec<i64> = streams.filter_map(FlowResult::completion_time).collect();
        times.sort_unstable();
        let seconds = |time: Option<i64>| time.map(|time| time as f64 / 1e9);
        set("flows".into(), Some(self.flows.len() as f64));
        set("flows_complete".into(), Some(self.flows.iter().filter(|flow| flow.is_complete()).count() as f64));
        set("fct_p50".into(), seconds(percentile(&times, 50)));
        set("fct_p99".into(), seconds(percentile(&times, 99)));
        set("fct_max".into(), seconds(times.last().copied()));
        set("goodput".into(), Some(self.goodput()));
        let sum = |values: &mut dyn Iterator<Item = u64>| Some(values.fold(0, u64::saturating_add) as f64);
        set("retransmissions".into(), sum(&mut self.flows.iter().filter_map(|flow| flow.retransmissions)));
        set("drops".into(), sum(&mut self.links.iter().map(LinkResult::drops)));
        set("marks".into(), sum(&mut self.links.iter().map(|link| link.counts.marked)));
        set("packet_hops".into(), Some(self.run.packet_hops as f64));
        if self.links.len() <= 2 * MOST_LINKS_WITH_METRICS {
            let lasted = self.run.lasted;
            for row in &self.links {
                let name = |metric: &str| format!("{}.{}.{metric}", row.link, row.from);
                set(name("utilisation"), row.utilisation(lasted));
                set(name("queue_bytes_mean"), Some(row.queue_bytes_mean(lasted)));
                set(name("wait_mean"), row.wait_mean().map(|wait| wait / 1e9));
                set(name("drops"), Some(row.drops() as f64));
            }
        }
        metrics
    }

    /// Bits per second that all flows together delivered, from the first opening to the last end; flows without an end
    /// last as long as the run. 0 without flows.
    pub fn goodput(&self) -> f64 {
        let delivered: f64 = self.flows.iter().map(|flow| flow.delivered as f64).sum();
        let first = self.flows.iter().map(|flow| flow.start).min().unwrap_or(0);
        let last = self.flows.iter().map(|flow| flow.end.unwrap_or(self.run.lasted)).max().unwrap_or(0);
        if last <= first { 0.0 } else { delivered * 8e9 / last.saturating_sub(first) as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(number: u64, start: i64, end: Option<i64>, delivered: u64) -> FlowResult {
        FlowResult {
            traffic: "web".into(),
            number,
            from: "a".into(),
            to: "b".into(),
            transport: "tcp".into(),
            start,
            end,
            bytes: Some(delivered),
            delivered,
            retransmissions: (number != 1).then_some(3),
            outcome: if end.is_some() { "complete" } else { "running" }.into(),
            ..FlowResult::default()
        }
    }

    fn link(name: &str) -> LinkResult {
        let counts = Counts {
            lost: 1,
            dropped_full: 2,
            dropped_early: 3,
            dropped_down: 4,
            dropped_blackhole: 5,
            marked: 6,
            served: 4,
            waited_sum: 8_000_000_000,
            busy: 1_000_000_000,
            queue_bytes_integral: 6_000_000_000_000,
            ..Counts::default()
        };
        LinkResult { link: name.into(), from: "a:1".into(), to: "b:1".into(), rate: Some(1_000_000), counts }
    }

    #[test]
    fn metrics_are_the_run_in_a_few_numbers() {
        let results = Results {
            run: RunFacts { lasted: 4_000_000_000, packet_hops: 9, ..RunFacts::default() },
            flows: vec![
                flow(0, 1_000_000_000, Some(2_000_000_000), 1000),
                flow(1, 0, Some(3_000_000_000), 500),
                flow(2, 500, None, 500),
            ],
            links: vec![link("up")],
            ..Results::default()
        };
        let expected = [
            ("drops", 15.0),
            ("fct_max", 3.0),
            ("fct_p50", 1.0),
            ("fct_p99", 3.0),
            ("flows", 3.0),
            ("flows_complete", 2.0),
            ("goodput", 4000.0),
            ("marks", 6.0),
            ("packet_hops", 9.0),
            ("retransmissions", 6.0),
            ("up.a:1.drops", 15.0),
            ("up.a:1.queue_bytes_mean", 1500.0),
            ("up.a:1.utilisation", 0.25),
            ("up.a:1.wait_mean", 2.0),
        ];
        let expected: Metrics = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(results.metrics(), expected);
    }

    #[test]
    fn how_long_datagrams_were_sent_is_no_completion_time_of_a_flow() {
        let mut results =
            Results { flows: vec![flow(0, 0, Some(9_000), 5), flow(1, 0, Some(7), 5)], ..Results::default() };
        results.flows[0].kind = "datagrams".into();
        assert_eq!((results.metrics()["fct_max"], results.metrics()["flows_complete"]), (7e-9, 2.0));
        assert_eq!(results.flows[0].completion_time(), Some(9_000));
    }

    #[test]
    fn what_is_unknown_is_left_out_and_many_links_have_no_metrics_of_their_own() {
        let empty = Results::default().metrics();
        assert_eq!(empty["flows"], 0.0);
        assert_eq!(empty["goodput"], 0.0);
        assert!(!empty.contains_key("fct_p50"));
        let many = Results { links: (0..33).map(|n| link(&n.to_string())).collect(), ..Results::default() };
        assert_eq!(many.metrics().len(), empty.len());
        assert_eq!(many.metrics()["drops"], 33.0 * 15.0);
    }

    #[test]
    fn percentiles_go_by_nearest_rank() {
        // The worked example of the definition: five ordered values.
        let values = [15, 20, 35, 40, 50];
        let found: Vec<_> = [0, 5, 30, 40, 50, 100].map(|percent| percentile(&values, percent)).to_vec();
        assert_eq!(found, [Some(15), Some(15), Some(20), Some(20), Some(35), Some(50)]);
        assert_eq!(percentile::<i64>(&[], 50), None);
    }

    proptest! {
        #[test]
        fn a_percentile_is_the_least_value_with_enough_at_or_below(
            mut values in prop::collection::vec(0_u32..50, 1..60),
            percent in 1_u32..=100,
        ) {
            values.sort_unstable();
            let enough = |value: u32| {
                let below = values.iter().filter(|other| **other <= value).count();
                below * 100 >= values.len() * percent as usize
            };
            let least = values.iter().copied().find(|value| enough(*value));
            prop_assert_eq!(percentile(&values, percent), least);
        }
    }
}
