//! The numbers in which tables and pages of many runs tell a run.

use super::{FlowResult, LinkResult, Metrics, Results};
use std::collections::BTreeMap;
use weftwire_draw::statistics::percentile;
use weftwire_draw::statistics::{Summary, jain};

/// Links of networks with at most so many have metrics of their own.
const MOST_LINKS_WITH_METRICS: usize = 16;

impl Results {
    /// The run in a few numbers, by name. Of flows: `flows`, `flows_complete`; `fct_mean`, `fct_p50`, `fct_p99`, `fct_max`, the
    /// completion times in seconds of those that ended, but for those of datagrams; `slowdown_mean`, `slowdown_p50`,
    /// `slowdown_p99`, these times over the ideal ones; `goodput`, the bits per second of all flows together, from the first
    /// opening to the last end; `jain`, the fairness of the streams' goodputs; `retransmissions`. Of links: `drops`, `marks`,
    /// `packet_hops`; of each direction `LINK.FROM.utilisation`, `.queue_bytes_mean`, `.wait_mean` (seconds), `.drops`, if
    /// there are at most 16 links. What is unknown (the times without a flow that ended) is left out, and so is what
    /// happened in the warm-up, but in the counts of flows, retransmissions and packet-hops. Percentiles are by nearest rank.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::new();
        let mut set = |name: String, value: Option<f64>| {
            if let Some(value) = value {
                metrics.insert(name, value);
            }
        };
        let streams = || self.flows.iter().filter(|flow| !flow.is_datagrams());
        let measured = || streams().filter(|flow| flow.is_measured(&self.run));
        let mut times: Vec<i64> = measured().filter_map(FlowResult::completion_time).collect();
        times.sort_unstable();
        let seconds = |time: Option<i64>| time.map(|time| time as f64 / 1e9);
        let mean = |values: &[i64]| {
            (!values.is_empty()).then(|| values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64)
        };
        set("flows".into(), Some(self.flows.len() as f64));
        set("flows_complete".into(), Some(self.flows.iter().filter(|flow| flow.is_complete()).count() as f64));
        set("fct_mean".into(), mean(&times).map(|mean| mean / 1e9));
        set("fct_p50".into(), seconds(percentile(&times, 50)));
        set("fct_p99".into(), seconds(percentile(&times, 99)));
        set("fct_max".into(), seconds(times.last().copied()));
        let slowdowns = Summary::of(&mut measured().filter_map(FlowResult::slowdown).collect());
        set("slowdown_mean".into(), slowdowns.map(|all| all.mean));
        set("slowdown_p50".into(), slowdowns.map(|all| all.median));
        set("slowdown_p99".into(), slowdowns.map(|all| all.p99));
        set("goodput".into(), Some(self.goodput()));
        set("jain".into(), jain(streams().filter_map(|flow| flow.measured_goodput(&self.run))));
        let sum = |values: &mut dyn Iterator<Item = u64>| Some(values.fold(0, u64::saturating_add) as f64);
        set("retransmissions".into(), sum(&mut self.flows.iter().filter_map(|flow| flow.retransmissions)));
        set("drops".into(), sum(&mut self.links.iter().map(LinkResult::drops)));
        set("marks".into(), sum(&mut self.links.iter().map(|link| link.counts.marked)));
        set("packet_hops".into(), Some(self.run.packet_hops as f64));
        if self.links.len() <= 2 * MOST_LINKS_WITH_METRICS {
            let lasted = self.run.measured();
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

    /// Bits per second that all flows together delivered behind the warm-up, from the first opening to the last end; flows
    /// without an end last as long as the run. 0 without flows.
    pub fn goodput(&self) -> f64 {
        let delivered = self.flows.iter().map(|flow| flow.delivered.saturating_sub(flow.delivered_in_warm_up) as f64);
        let first = self.flows.iter().map(|flow| flow.start).min().unwrap_or(0).max(self.run.warm_up);
        let last = self.flows.iter().map(|flow| flow.end.unwrap_or(self.run.lasted)).max().unwrap_or(0);
        if last <= first { 0.0 } else { delivered.sum::<f64>() * 8e9 / last.saturating_sub(first) as f64 }
    }

    /// The slowdowns of each traffic by the size of its flows, in the order of the traffic, then by size; only those that there
    /// are. Flows of the warm-up are left out.
    pub fn slowdowns(&self) -> Vec<SizeClass<'_>> {
        let mut places: BTreeMap<(&str, usize), usize> = BTreeMap::new();
        let mut order: BTreeMap<&str, usize> = BTreeMap::new();
        let mut all: Vec<((usize, usize), &str, Vec<f64>)> = Vec::new();
        for flow in self.flows.iter().filter(|flow| flow.is_measured(&self.run)) {
            let (Some(bytes), Some(slowdown)) = (flow.bytes, flow.slowdown()) else { continue };
            let class = SIZE_CLASSES.iter().filter(|most| bytes > **most).count();
            let traffic = order.len();
            let traffic = *order.entry(&flow.traffic).or_insert(traffic);
            let place = *places.entry((&flow.traffic, class)).or_insert_with(|| {
                all.push(((traffic, class), &flow.traffic, Vec::new()));
                all.len() - 1
            });
            all[place].2.push(slowdown);
        }
        all.sort_by_key(|(key, ..)| *key);
        let classes = all.into_iter().filter_map(|((_, class), traffic, mut values)| {
            Some(SizeClass {
                traffic,
                above: class.checked_sub(1).map_or(0, |before| SIZE_CLASSES[before]),
                up_to: SIZE_CLASSES.get(class).copied(),
                slowdown: Summary::of(&mut values)?,
            })
        });
        classes.collect()
    }
}

/// Sizes in bytes at which the classes of flows end; those above the last are a class, too.
pub const SIZE_CLASSES: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// The slowdowns of a traffic's flows of about one size.
#[derive(Clone, PartialEq, Debug)]
pub struct SizeClass<'a> {
    /// The traffic.
    pub traffic: &'a str,
    /// The flows have more bytes than this,
    pub above: u64,
    /// and at most so many, if there is a limit.
    pub up_to: Option<u64>,
    /// Their completion times over the ideal ones.
    pub slowdown: Summary,
}

#[cfg(test)]
mod tests {
    use super::super::*;

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
            ("fct_mean", 2.0),
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
        let mut metrics = results.metrics();
        // Of 8, 4/3 and 1 kbit/s (to the end of the run).
        assert!(metrics.remove("jain").is_some_and(|index| (index - 0.533).abs() < 1e-4));
        assert_eq!(metrics, expected);
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
    fn the_warm_up_is_left_out() {
        let mut early = flow(0, 0, Some(1_000), 500);
        early.delivered_in_warm_up = 500;
        let mut long = flow(1, 500, None, 3_000);
        long.delivered_in_warm_up = 1_000;
        let late = flow(2, 2_000, Some(4_000), 1_000);
        let mut link = link("up");
        link.counts.busy = 2_000;
        link.counts.queue_bytes_integral = 8_000_000;
        let results = Results {
            run: RunFacts { lasted: 6_000, warm_up: 2_000, ..RunFacts::default() },
            flows: vec![early, long, late],
            links: vec![link],
            ..Results::default()
        };
        let metrics = results.metrics();
        assert_eq!((metrics["fct_max"], metrics["flows"], metrics["flows_complete"]), (2e-6, 3.0, 2.0));
        assert_eq!(metrics["goodput"], 3_000.0 * 8e9 / 4_000.0);
        assert_eq!((metrics["up.a:1.utilisation"], metrics["up.a:1.queue_bytes_mean"]), (0.5, 2_000.0));
        let goodputs: Vec<_> = results.flows.iter().map(|flow| flow.measured_goodput(&results.run)).collect();
        assert_eq!(goodputs, [None, Some(4e9), Some(4e9)]);
        assert_eq!(metrics["jain"], 1.0);
        // Cut short before it was over.
        let short = Results { run: RunFacts { lasted: 1_500, warm_up: 2_000, ..RunFacts::default() }, ..results };
        assert_eq!((short.run.measured(), short.metrics().get("up.a:1.utilisation")), (0, None));
    }

    #[test]
    fn slowdowns_are_told_by_traffic_and_size() {
        let sized = |number, traffic: &str, bytes, ideal, took: i64| FlowResult {
            traffic: traffic.into(),
            bytes: Some(bytes),
            ideal,
            ..flow(number, 10, Some(10 + took), bytes)
        };
        let results = Results {
            flows: vec![
                sized(0, "web", 10_001, Some(100), 300),
                sized(1, "web", 10_000, Some(100), 150),
                sized(2, "web", 1, Some(100), 250),
                sized(3, "web", 20_000_000, Some(100), 100),
                sized(0, "bulk", 5, Some(10), 10),
                sized(1, "bulk", 5, None, 10),
                sized(2, "bulk", 5, Some(0), 10),
            ],
            ..Results::default()
        };
        let found: Vec<_> = results.slowdowns();
        let found: Vec<_> = found
            .iter()
            .map(|class| (class.traffic, class.above, class.up_to, class.slowdown.count, class.slowdown.mean))
            .collect();
        let expected = [
            ("web", 0, Some(10_000), 2, 2.0),
            ("web", 10_000, Some(100_000), 1, 3.0),
            ("web", 10_000_000, None, 1, 1.0),
            ("bulk", 0, Some(10_000), 1, 1.0),
        ];
        assert_eq!(found, expected);
        let metrics = results.metrics();
        assert_eq!((metrics["slowdown_mean"], metrics["slowdown_p50"], metrics["slowdown_p99"]), (1.8, 1.5, 3.0));
    }
}
