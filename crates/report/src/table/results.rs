//! Results as tables.

use super::{Cells, Table};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use weftwire_draw::statistics::Summary;
use weftwire_network::link::Counts;
use weftwire_network::results::{FlowResult, LinkResult, Metrics, Probe, Results};

/// Which of many runs something is of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct RunKey {
    /// Number of the run, from 1: its directory is `runs/NNNN`.
    pub run: u64,
    /// Values of the swept parameters, as text: the dotted path into the file and the value, in the order of the sweep.
    pub parameters: Vec<(String, String)>,
    /// Number of the repetition at this point, from 1.
    pub repetition: u64,
    /// The seed.
    pub seed: u64,
}

/// The columns of a key beside the parameters.
const KEY_COLUMNS: [&str; 3] = ["run", "repetition", "seed"];

impl RunKey {
    /// The columns that say which run rows are of: `run`, the parameters, `repetition`, `seed`.
    pub(super) fn columns(&self, name: &str, rows: usize) -> Table {
        let mut table = Table::new(name).unsigned("run", vec![self.run; rows]);
        // A swept seed has its column anyway.
        for (parameter, value) in self.parameters.iter().filter(|(name, _)| !KEY_COLUMNS.contains(&name.as_str())) {
            table = table.text(parameter, vec![value.as_str(); rows]);
        }
        table.unsigned("repetition", vec![self.repetition; rows]).unsigned("seed", vec![self.seed; rows])
    }
}

/// A row for each run: its key, then a column for each metric that any run has, in the order of the alphabet.
pub fn runs(runs: &[(RunKey, Metrics)]) -> Table {
    let mut table = Table::new("runs");
    for (key, _) in runs {
        table.append(key.columns("runs", 1));
    }
    let names: BTreeSet<&String> = runs.iter().flat_map(|(_, metrics)| metrics.keys()).collect();
    for name in names {
        let cells = runs.iter().map(|(_, metrics)| metrics.get(name).copied()).collect();
        table = table.with(metric_column(name), Cells::Float(cells));
    }
    table
}

/// A metric's column: its name with the unit.
fn metric_column(metric: &str) -> String {
    let last = metric.rsplit('.').next().unwrap_or(metric);
    match last {
        "fct_mean" | "fct_p50" | "fct_p99" | "fct_max" | "wait_mean" => format!("{metric}_s"),
        "goodput" => format!("{metric}_bit_per_s"),
        _ => metric.to_owned(),
    }
}

/// A row for each direction of each link: what it counted.
pub fn links(results: &Results) -> Table {
    let rows = || results.links.iter();
    let lasted = results.run.measured();
    let count = |of: fn(&Counts) -> u64| rows().map(move |row| of(&row.counts));
    Table::new("links")
        .text("link", rows().map(|row| row.link.as_str()))
        .text("from", rows().map(|row| row.from.as_str()))
        .text("to", rows().map(|row| row.to.as_str()))
        .unsigned("rate_bit_per_s", rows().map(|row| row.rate))
        .float("utilisation", rows().map(|row| row.utilisation(lasted)))
        .float("throughput_bit_per_s", rows().map(|row| row.throughput(lasted)))
        .unsigned("offered_packets", count(|counts| counts.offered_packets))
        .unsigned("offered_bytes", count(|counts| counts.offered_bytes))
        .unsigned("delivered_packets", count(|counts| counts.delivered_packets))
        .unsigned("delivered_bytes", count(|counts| counts.delivered_bytes))
        .unsigned("drops", rows().map(LinkResult::drops))
        .unsigned("drops_loss", count(|counts| counts.lost))
        .unsigned("drops_queue_full", count(|counts| counts.dropped_full))
        .unsigned("drops_discipline", count(|counts| counts.dropped_early))
        .unsigned("drops_down", count(|counts| counts.dropped_down))
        .unsigned("drops_blackhole", count(|counts| counts.dropped_blackhole))
        .unsigned("marks", count(|counts| counts.marked))
        .unsigned("duplicates", count(|counts| counts.duplicated))
        .unsigned("reordered", count(|counts| counts.reordered))
        .unsigned("corrupted", count(|counts| counts.corrupted))
        .unsigned("served_packets", count(|counts| counts.served))
        .float("wait_mean_ns", rows().map(LinkResult::wait_mean))
        .integer("wait_max_ns", rows().map(|row| row.counts.waited_max))
        .unsigned("busy_ns", rows().map(|row| u64::try_from(row.counts.busy).unwrap_or(u64::MAX)))
        .unsigned("queue_packets_max", count(|counts| counts.queue_packets_max))
        .float("queue_bytes_mean", rows().map(|row| row.queue_bytes_mean(lasted)))
        .unsigned("queue_bytes_max", count(|counts| counts.queue_bytes_max))
        .unsigned("pauses", count(|counts| counts.pauses))
        .unsigned("paused_ns", rows().map(|row| u64::try_from(row.counts.paused).unwrap_or(u64::MAX)))
}

/// A row for each flow.
pub fn flows(results: &Results) -> Table {
    let rows = || results.flows.iter();
    Table::new("flows")
        .text("traffic", rows().map(|flow| flow.traffic.as_str()))
        .unsigned("number", rows().map(|flow| flow.number))
        .text("from", rows().map(|flow| flow.from.as_str()))
        .text("to", rows().map(|flow| flow.to.as_str()))
        .text("kind", rows().map(|flow| flow.kind.as_str()))
        .text("transport", rows().map(|flow| flow.transport.as_str()))
        .text("congestion_control", rows().map(|flow| flow.congestion_control.as_deref()))
        .integer("start_ns", rows().map(|flow| flow.start))
        .integer("first_byte_ns", rows().map(|flow| flow.first_byte))
        .integer("end_ns", rows().map(|flow| flow.end))
        .integer("completion_time_ns", rows().map(FlowResult::completion_time))
        .integer("ideal_time_ns", rows().map(|flow| flow.ideal))
        .float("slowdown", rows().map(FlowResult::slowdown))
        .unsigned("bytes", rows().map(|flow| flow.bytes))
        .unsigned("delivered_bytes", rows().map(|flow| flow.delivered))
        .unsigned("warm_up_bytes", rows().map(|flow| flow.delivered_in_warm_up))
        .float("goodput_bit_per_s", rows().map(|flow| flow.measured_goodput(&results.run)))
        .unsigned("packets", rows().map(|flow| flow.packets))
        .unsigned("retransmissions", rows().map(|flow| flow.retransmissions))
        .unsigned("lost", rows().map(|flow| flow.lost))
        .unsigned("rtt_samples", rows().map(|flow| flow.rtt_samples))
        .integer("rtt_min_ns", rows().map(|flow| flow.rtt_min))
        .integer("rtt_mean_ns", rows().map(|flow| flow.rtt_mean))
        .integer("rtt_max_ns", rows().map(|flow| flow.rtt_max))
        .text("outcome", rows().map(|flow| flow.outcome.as_str()))
}

/// A row for each traffic and class of sizes: how much longer its flows took than alone.
pub fn slowdown(results: &Results) -> Table {
    let classes = results.slowdowns();
    let rows = || classes.iter();
    let value = |of: fn(&Summary) -> f64| rows().map(move |row| of(&row.slowdown));
    Table::new("slowdown")
        .text("traffic", rows().map(|row| row.traffic))
        .unsigned("above_bytes", rows().map(|row| row.above))
        .unsigned("up_to_bytes", rows().map(|row| row.up_to))
        .unsigned("flows", rows().map(|row| row.slowdown.count))
        .float("mean", value(|slowdown| slowdown.mean))
        .float("standard_deviation", rows().map(|row| row.slowdown.standard_deviation))
        .float("p10", value(|slowdown| slowdown.p10))
        .float("p50", value(|slowdown| slowdown.median))
        .float("p90", value(|slowdown| slowdown.p90))
        .float("p99", value(|slowdown| slowdown.p99))
        .float("max", value(|slowdown| slowdown.greatest))
}

/// A row for each point of a sweep and each metric: what its runs say of it.
pub fn summary(runs: &[(RunKey, Metrics)]) -> Table {
    let mut order: Vec<&RunKey> = Vec::new();
    let mut places: BTreeMap<&Vec<(String, String)>, usize> = BTreeMap::new();
    let mut points: Vec<BTreeMap<&str, Vec<f64>>> = Vec::new();
    for (key, metrics) in runs {
        let place = *places.entry(&key.parameters).or_insert_with(|| {
            order.push(key);
            points.push(BTreeMap::new());
            points.len() - 1
        });
        for (name, value) in metrics {
            points[place].entry(name).or_default().push(*value);
        }
    }
    let mut rows: Vec<(&RunKey, String, Summary)> = Vec::new();
    for (key, metrics) in order.into_iter().zip(points) {
        for (name, mut values) in metrics {
            rows.extend(Summary::of(&mut values).map(|summary| (key, metric_column(name), summary)));
        }
    }
    let rows = || rows.iter();
    let value = |of: fn(&Summary) -> f64| rows().map(move |row| of(&row.2));
    let mut table = Table::new("summary");
    let parameters = runs.first().map_or(&[][..], |(key, _)| &key.parameters);
    for (index, (name, _)) in parameters.iter().enumerate().filter(|(_, (name, _))| name != "metric") {
        table = table.text(name, rows().map(|row| row.0.parameters.get(index).map(|(_, value)| value.as_str())));
    }
    table
        .text("metric", rows().map(|row| row.1.as_str()))
        .unsigned("runs", rows().map(|row| row.2.count))
        .float("mean", value(|all| all.mean))
        .float("standard_deviation", rows().map(|row| row.2.standard_deviation))
        .float("confidence_95", rows().map(|row| row.2.confidence))
        .float("min", value(|all| all.least))
        .float("p10", value(|all| all.p10))
        .float("p50", value(|all| all.median))
        .float("p90", value(|all| all.p90))
        .float("max", value(|all| all.greatest))
}

/// A row for each direction of each link and each sample interval.
pub fn samples(results: &Results) -> Table {
    let rows = || results.samples.iter();
    let link = |of: fn(&LinkResult) -> &str| rows().map(move |row| results.links.get(row.link).map(of));
    // Samples are sorted by link, then time: an interval begins where the one before it ended.
    let mut last = (usize::MAX, 0);
    let intervals: Vec<i64> = rows()
        .map(|row| {
            let start = if last.0 == row.link { last.1 } else { 0 };
            last = (row.link, row.at);
            row.at.saturating_sub(start)
        })
        .collect();
    let throughput = rows().zip(&intervals).map(|(row, interval)| {
        let rate = row.delivered_bytes as f64 * 8e9 / *interval as f64;
        (*interval > 0).then_some(rate)
    });
    Table::new("samples")
        .text("link", link(|link| &link.link))
        .text("from", link(|link| &link.from))
        .text("to", link(|link| &link.to))
        .integer("at_ns", rows().map(|row| row.at))
        .integer("interval_ns", intervals.iter().copied())
        .unsigned("delivered_bytes", rows().map(|row| row.delivered_bytes))
        .float("throughput_bit_per_s", throughput)
        .unsigned("queue_packets", rows().map(|row| row.queue_packets))
        .unsigned("queue_bytes", rows().map(|row| row.queue_bytes))
        .unsigned("drops", rows().map(|row| row.drops))
        .unsigned("marks", rows().map(|row| row.marks))
}

/// A row for each sample of a register, by flow, node, register, then time.
pub fn probes(results: &Results) -> Table {
    let rows = || results.probes.iter().flat_map(|probe| probe.points.iter().map(move |point| (probe, point)));
    let flow = |probe: &Probe| results.flows.get(probe.flow);
    Table::new("probes")
        .text("traffic", rows().map(|(probe, _)| flow(probe).map(|flow| flow.traffic.as_str())))
        .unsigned("number", rows().map(|(probe, _)| flow(probe).map(|flow| flow.number)))
        .text("node", rows().map(|(probe, _)| probe.node.as_str()))
        .text("register", rows().map(|(probe, _)| probe.register.as_str()))
        .integer("at_ns", rows().map(|(_, point)| point.0))
        .integer("value", rows().map(|(_, point)| point.1))
}

/// A row for each counter of each function: `counter` is its kind (`frames_in`, ..., `row`, `drop`), `name` the row or
/// the reason.
pub fn functions(results: &Results) -> Table {
    let rows: Vec<(&str, &str, Option<&str>, u64)> =
        results.functions.iter().flat_map(|(node, counters)| counter_rows(node, counters)).collect();
    Table::new("functions")
        .text("node", rows.iter().map(|row| row.0))
        .text("counter", rows.iter().map(|row| row.1))
        .text("name", rows.iter().map(|row| row.2))
        .unsigned("count", rows.iter().map(|row| row.3))
}

/// The counters of one function in the table's order: node, kind, name, count.
pub(crate) fn counter_rows<'a>(
    node: &'a str,
    counters: &'a weftwire_core::inspect::Counters,
) -> impl Iterator<Item = (&'a str, &'a str, Option<&'a str>, u64)> {
    let plain = [
        ("frames_in", counters.frames_in),
        ("frames_out", counters.frames_out),
        ("frames_passed", counters.frames_passed),
        ("flows_created", counters.flows_created),
        ("flows_live", counters.flows_live),
        ("flows_peak", counters.flows_peak),
        ("flows_expired", counters.flows_expired),
        ("flows_evicted", counters.flows_evicted),
    ];
    let plain = plain.into_iter().map(move |(kind, count)| (node, kind, None, count));
    let rows = counters.rows.iter().map(move |(name, count)| (node, "row", Some(name.as_str()), *count));
    let drops = counters.drops.iter().map(move |(name, count)| (node, "drop", Some(name.as_str()), *count));
    plain.chain(rows).chain(drops)
}

/// A row for each node and reason: packets that the node dropped.
pub fn node_drops(results: &Results) -> Table {
    let rows = || results.node_drops.iter();
    Table::new("node-drops")
        .text("node", rows().map(|row| row.0.as_str()))
        .text("reason", rows().map(|row| row.1.as_str()))
        .unsigned("packets", rows().map(|row| row.2))
}
