//! One run of a network as one HTML page: no network, no scripts, light or dark as the reader has it.

use crate::beside;
use crate::table::counter_rows;
use crate::topology::{self, picture};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use weftwire_draw::Axis;
use weftwire_draw::Unit;
use weftwire_draw::chart::{Chart, Shape, each};
use weftwire_draw::document;
use weftwire_draw::escape_markup;
use weftwire_draw::grouped;
use weftwire_draw::html::{Cell, facts, notice, section, table};
use weftwire_draw::statistics::{Summary, jain, percentile};
use weftwire_network::Network;
use weftwire_network::results::{FlowProgress, FlowResult, LinkResult, LinkSample, Results, RunFacts, SizeClass};

/// Rows of links, flows and counters that are shown; the tables beside the report have all.
const MOST_ROWS: usize = 200;
/// Directions of links whose course is drawn.
const MOST_LINKS: usize = 8;
/// Flows whose bytes over time are drawn.
const MOST_PLOTS: usize = 8;
/// Segments before and behind a repeated one that are drawn close up.
const CLOSE_SEGMENTS: usize = 150;
/// Series in a chart of distributions: traffic.
const MOST_TRAFFIC: usize = 8;

/// The whole page.
pub fn page(network: &Network, results: &Results) -> String {
    let mut body = String::new();
    let _ = writeln!(body, "<header><h1>{}</h1>", escape_markup(&network.name));
    header(&mut body, network, results);
    body.push_str("</header>\n");
    let by_direction = |link: weftwire_network::model::LinkIndex, direction: usize| {
        let row =
            results.links.get(link.0 as usize * 2 + direction).filter(|row| row.link == network.link(link).name)?;
        row.utilisation(results.run.measured())
    };
    let note = match network.nodes.len() <= topology::MOST_BOXES {
        true => {
            "A link is a pair of lines, one a direction: packets keep to the right. The busier, the thicker: amber from \
             half of the time, red from nine tenths. Point at a line for its share."
        }
        false => {
            "A dot is a node; nodes with a single link, mostly hosts, stand around the one that they hang on. A line has the colour \
             of its busier direction: amber from half of the time, red from nine tenths. Point at a dot or a coloured line for its name."
        }
    };
    match picture(network, &by_direction) {
        Some(picture) => section(&mut body, "Network", note, || picture),
        None => section(&mut body, "Network", "", || summary(network)),
    }
    section(&mut body, "Links", links_note(results), || links(results));
    section(
        &mut body,
        "Links over time",
        "The busiest directions: what they delivered, and, if it ever did, what waited at the end of each sample \
         interval; a dot where packets were dropped.",
        || each(&courses(results)),
    );
    section(
        &mut body,
        "Traffic",
        "Jain's index is 1 where all flows of a traffic have the same goodput, and one of their number where one has everything.",
        || traffic(results),
    );
    section(
        &mut body,
        "Slowdown by size",
        "Completion times over the ideal ones: what the transfer would take alone, from the rates and delays on its path.",
        || slowdowns(results),
    );
    section(
        &mut body,
        "Flows",
        if results.flows.len() > MOST_ROWS { "The first flows; <code>flows.csv</code> has all." } else { "" },
        || flows(results),
    );
    section(
        &mut body,
        "Distributions",
        "The share of flows that took at most so long, or got at most so much.",
        || each(&distributions(results)),
    );
    section(
        &mut body,
        "Bytes over time",
        "Each stroke is a segment as its sender sent it, from its first byte to its last; the stair is what was \
         acknowledged or delivered.",
        || each(&progress(results)),
    );
    section(
        &mut body,
        "Beside each other",
        "The first flows in one chart each: registers of their senders that the network probes, what they get through, and the queue \
         where most waited.",
        || each(&beside::charts(results)),
    );
    section(
        &mut body,
        "Registers over time",
        "What the network's probes showed of the first flows; <code>probes.csv</code> has all.",
        || each(&probes(results)),
    );
    section(&mut body, "Functions", "Counters that are not 0.", || functions(results));
    section(&mut body, "Drops at nodes", "", || {
        let rows = results.node_drops.iter().take(MOST_ROWS);
        table(
            &["node", "reason", "packets"],
            rows.map(|(node, reason, count)| vec![Cell::text(node), Cell::text(reason), Cell::count(*count)]),
        )
    });
    document(&network.name, &body)
}

/// Nanoseconds as people read them.
pub(super) fn time(nanoseconds: i64) -> String {
    Unit::Seconds.text(nanoseconds as f64 / 1e9)
}

fn header(body: &mut String, network: &Network, results: &Results) {
    let run = &results.run;
    let mut lines = vec![
        ("platform", run.platform.clone()),
        ("seed", run.seed.to_string()),
        ("lasted", format!("{} of {}", time(run.lasted), time(run.duration))),
        ("warm-up left out", time(run.warm_up)),
        ("nodes", network.nodes.len().to_string()),
        ("links", network.links.len().to_string()),
        ("flows", grouped(results.flows.len() as i64)),
        ("packet-hops", grouped(i64::try_from(run.packet_hops).unwrap_or(i64::MAX))),
    ];
    if run.warm_up == 0 {
        lines.retain(|line| line.0 != "warm-up left out");
    }
    if run.events > 0 {
        lines.push(("events", grouped(i64::try_from(run.events).unwrap_or(i64::MAX))));
    }
    if run.processor_seconds > 0.0 {
        let rate = run.packet_hops as f64 / run.processor_seconds;
        lines.push(("processor time", Unit::Seconds.text(run.processor_seconds)));
        lines.push(("packet-hops per second of it", Unit::Plain.text(rate.round())));
    }
    lines.extend(lateness(run));
    let controls: BTreeSet<&str> = results.flows.iter().filter_map(|flow| flow.congestion_control.as_deref()).collect();
    if !controls.is_empty() {
        lines.push(("congestion control", controls.into_iter().collect::<Vec<_>>().join(", ")));
    }
    facts(body, &lines);
    let late = [
        (&run.lateness, "packets left the relay", "the emulated link gave it"),
        (&run.source_lateness, "flows and datagrams left their source", "the traffic gave it"),
    ];
    for (late, what, whose) in late {
        let Some(late) = late.as_ref().filter(|late| late.late) else { continue };
        let text = format!(
            "This run was late and is not to be trusted: 1 of 100 {what} more than {} after the time that {whose} \
             ({} are allowed; the worst was {}).",
            time(late.p99),
            time(late.allowed),
            time(late.worst)
        );
        notice(body, "alert", [text.as_str()]);
    }
    if run.interrupted {
        notice(body, "calm", ["This run was interrupted. What is here is what happened up to then."]);
    }
    notice(body, "calm", run.warnings.iter().take(MOST_ROWS).map(String::as_str));
}

/// How late the relay and the sources of a run were.
pub(super) fn lateness(run: &RunFacts) -> impl Iterator<Item = (&'static str, String)> {
    let names = ["relay late by p50 / p99 / worst", "sources late by p50 / p99 / worst"];
    let known = names.into_iter().zip([run.lateness, run.source_lateness]);
    known.filter_map(|(name, late)| late.map(|late| (name, [late.p50, late.p99, late.worst].map(time).join(" / "))))
}

/// Of a network too large to draw: how many of what.
fn summary(network: &Network) -> String {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for node in &network.nodes {
        *kinds.entry(topology::kind(node)).or_default() += 1;
    }
    let mut rows: Vec<(String, u64)> = kinds.into_iter().collect();
    rows.push(("links".to_owned(), network.links.len() as u64));
    table(
        &["kind", "number"],
        rows.into_iter().take(MOST_ROWS).map(|(name, count)| vec![Cell::text(name), Cell::count(count)]),
    )
}

fn links_note(results: &Results) -> &'static str {
    match results.links.len() > MOST_ROWS {
        true => "The busiest directions; <code>links.csv</code> has all.",
        false => "A row for each direction.",
    }
}

/// The directions that were busiest, the busiest first: by the share of time, then by bytes.
fn busiest(results: &Results, most: usize) -> Vec<usize> {
    let share = |index: usize| results.links[index].utilisation(results.run.measured()).unwrap_or(0.0);
    let bytes = |index: usize| results.links[index].counts.delivered_bytes;
    let mut order: Vec<usize> = (0..results.links.len()).collect();
    order.sort_by(|a, b| share(*b).total_cmp(&share(*a)).then(bytes(*b).cmp(&bytes(*a))));
    order.truncate(most);
    order
}

fn links(results: &Results) -> String {
    let lasted = results.run.measured();
    let heads = [
        "link",
        "from, to",
        "rate",
        "busy",
        "throughput",
        "packets",
        "lost",
        "full",
        "early",
        "down",
        "hole",
        "marks",
        "queue mean",
        "max",
        "wait mean",
        "max",
    ];
    let row = |index: usize| {
        let link = &results.links[index];
        let counts = &link.counts;
        vec![
            Cell::text(&link.link),
            Cell::text(format!("{}\u{a0}→\u{a0}{}", link.from, link.to)),
            Cell::known(link.rate.map(|rate| Unit::BitsPerSecond.text(rate as f64))),
            Cell::known(link.utilisation(lasted).map(|share| Unit::Share.text(share))),
            Cell::Number(Unit::BitsPerSecond.text(link.throughput(lasted))),
            Cell::count(counts.delivered_packets),
            Cell::count(counts.lost),
            Cell::count(counts.dropped_full),
            Cell::count(counts.dropped_early),
            Cell::count(counts.dropped_down),
            Cell::count(counts.dropped_blackhole),
            Cell::count(counts.marked),
            Cell::Number(Unit::Bytes.text(link.queue_bytes_mean(lasted).round())),
            Cell::Number(Unit::Bytes.text(counts.queue_bytes_max as f64)),
            Cell::known(link.wait_mean().map(|wait| time(wait as i64))),
            Cell::Number(time(counts.waited_max)),
        ]
    };
    let mut shown = busiest(results, MOST_ROWS);
    shown.sort_unstable();
    table(&heads, shown.into_iter().map(row))
}

/// Throughput and queue over time, of the busiest directions.
fn courses(results: &Results) -> Vec<Chart> {
    let mut charts = Vec::new();
    for index in busiest(results, MOST_LINKS) {
        let link = &results.links[index];
        let samples: Vec<&LinkSample> = results.samples.iter().filter(|sample| sample.link == index).collect();
        if samples.len() < 2 || link.counts.delivered_bytes == 0 {
            continue;
        }
        charts.extend(course(link, &samples));
    }
    charts
}

fn course(link: &LinkResult, samples: &[&LinkSample]) -> Vec<Chart> {
    let seconds = |sample: &LinkSample| sample.at as f64 / 1e9;
    let mut start = 0;
    let rates = samples.iter().map(|sample| {
        let interval = sample.at.saturating_sub(std::mem::replace(&mut start, sample.at));
        (seconds(sample), if interval > 0 { sample.delivered_bytes as f64 * 8e9 / interval as f64 } else { 0.0 })
    });
    let rates: Vec<(f64, f64)> = rates.collect();
    let name = format!("{}, {} to {}", link.link, link.from, link.to);
    let axis = || Axis::new("time", Unit::Seconds);
    let mut throughput = Chart::new(&name, axis(), Axis::new("throughput", Unit::BitsPerSecond));
    if let (Some(rate), [first, .., last]) = (link.rate, samples) {
        // Only where it does not flatten everything else.
        if rates.iter().any(|(_, value)| *value * 5.0 > rate as f64) {
            let line = [seconds(first), seconds(last)].map(|at| (at, rate as f64));
            throughput.add_as("tone7", "rate", Shape::Line(line.to_vec()));
        }
    }
    throughput.add_as("tone0", "delivered", Shape::Line(rates));
    let mut queue = Chart::new("", axis(), Axis::new("queue", Unit::Bytes));
    let waiting = samples.iter().map(|sample| (seconds(sample), sample.queue_bytes as f64));
    queue.add_as("tone2", "waiting", Shape::Line(waiting.clone().collect()));
    let dropped = samples.iter().zip(waiting).filter(|(sample, _)| sample.drops > 0).map(|(_, point)| point);
    let dropped: Vec<(f64, f64)> = dropped.collect();
    if !dropped.is_empty() {
        queue.add_as("tone4", "drops", Shape::Dots(dropped));
    }
    throughput.height = 110.0;
    queue.height = 90.0;
    match samples.iter().any(|sample| sample.queue_bytes > 0 || sample.drops > 0) {
        true => vec![throughput, queue],
        false => vec![throughput],
    }
}

/// The flows of each traffic, in the order of their first.
pub(super) fn by_traffic(results: &Results) -> Vec<(&str, Vec<&FlowResult>)> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all: Vec<(&str, Vec<&FlowResult>)> = Vec::new();
    for flow in &results.flows {
        let place = *places.entry(&flow.traffic).or_insert_with(|| {
            all.push((&flow.traffic, Vec::new()));
            all.len() - 1
        });
        all[place].1.push(flow);
    }
    all
}

fn traffic(results: &Results) -> String {
    let heads = [
        "traffic",
        "flows",
        "complete",
        "time mean",
        "deviation",
        "p50",
        "p99",
        "max",
        "delivered",
        "goodput p50",
        "Jain",
        "repeated",
        "lost",
    ];
    let run = &results.run;
    let row = |(name, flows): (&str, Vec<&FlowResult>)| {
        let measured = flows.iter().filter(|flow| flow.is_measured(run));
        let mut times = measured.filter_map(|flow| Some(flow.completion_time()? as f64 / 1e9)).collect();
        let times = Summary::of(&mut times);
        let mut goodputs: Vec<f64> = flows.iter().filter_map(|flow| flow.measured_goodput(run)).collect();
        let fairness = jain(goodputs.iter().copied()).filter(|_| goodputs.len() > 1);
        goodputs.sort_by(f64::total_cmp);
        let of = |value: fn(&Summary) -> f64| Cell::known(times.as_ref().map(|times| Unit::Seconds.text(value(times))));
        let sum = |of: fn(&FlowResult) -> Option<u64>| {
            let known = flows.iter().filter_map(|flow| of(flow)).reduce(u64::saturating_add);
            known.map_or(Cell::known(None), Cell::count)
        };
        vec![
            Cell::text(name),
            Cell::count(flows.len() as u64),
            Cell::count(flows.iter().filter(|flow| flow.is_complete()).count() as u64),
            of(|times| times.mean),
            Cell::known(times.and_then(|times| Some(Unit::Seconds.text(times.standard_deviation?)))),
            of(|times| times.median),
            of(|times| times.p99),
            of(|times| times.greatest),
            Cell::Number(Unit::Bytes.text(flows.iter().map(|flow| flow.delivered as f64).sum())),
            Cell::known(percentile(&goodputs, 50).map(|goodput| Unit::BitsPerSecond.text(goodput))),
            Cell::known(fairness.map(|index| format!("{index:.3}"))),
            sum(|flow| flow.retransmissions),
            sum(|flow| flow.lost),
        ]
    };
    table(&heads, by_traffic(results).into_iter().take(MOST_ROWS).map(row))
}

fn slowdowns(results: &Results) -> String {
    let heads = ["traffic", "size", "flows", "mean", "deviation", "p50", "p90", "p99", "max"];
    let size = |bytes: u64| Unit::Bytes.text(bytes as f64).replace(".00", "").replace(".0", "");
    let row = |class: SizeClass<'_>| {
        let sizes = match (class.above, class.up_to) {
            (0, Some(most)) => format!("up to {}", size(most)),
            (above, Some(most)) => format!("{} to {}", size(above), size(most)),
            (above, None) => format!("above {}", size(above)),
        };
        let slowdown = class.slowdown;
        let number = |value: f64| Cell::Number(Unit::Plain.text(value));
        vec![
            Cell::text(class.traffic),
            Cell::text(sizes),
            Cell::count(slowdown.count),
            number(slowdown.mean),
            Cell::known(slowdown.standard_deviation.map(|deviation| Unit::Plain.text(deviation))),
            number(slowdown.median),
            number(slowdown.p90),
            number(slowdown.p99),
            number(slowdown.greatest),
        ]
    };
    table(&heads, results.slowdowns().into_iter().take(MOST_ROWS).map(row))
}

fn flows(results: &Results) -> String {
    let heads = [
        "traffic",
        "number",
        "from, to",
        "transport",
        "start",
        "took",
        "delivered",
        "goodput",
        "packets",
        "repeated",
        "lost",
        "RTT mean",
        "outcome",
    ];
    let row = |flow: &FlowResult| {
        let count = |count: Option<u64>| count.map_or(Cell::known(None), Cell::count);
        vec![
            Cell::text(&flow.traffic),
            Cell::count(flow.number),
            Cell::text(format!("{}\u{a0}→\u{a0}{}", flow.from, flow.to)),
            Cell::text(&flow.transport),
            Cell::Number(time(flow.start)),
            Cell::known(flow.completion_time().map(time)),
            Cell::Number(Unit::Bytes.text(flow.delivered as f64)),
            Cell::known(flow.measured_goodput(&results.run).map(|goodput| Unit::BitsPerSecond.text(goodput))),
            count(flow.packets),
            count(flow.retransmissions),
            count(flow.lost),
            Cell::known(flow.rtt_mean.map(time)),
            match flow.outcome.as_str() {
                "complete" => Cell::Verdict("good", flow.outcome.clone()),
                "running" => Cell::text("running"),
                _ => Cell::Verdict("bad", flow.outcome.clone()),
            },
        ]
    };
    let mut out = table(&heads, results.flows.iter().take(MOST_ROWS).map(row));
    let more = results.flows.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        let _ = writeln!(out, "<p class=\"note\">... and {} more.</p>", grouped(more as i64));
    }
    out
}

/// Distributions of completion times and goodputs, a stair for each traffic of some flows.
fn distributions(results: &Results) -> Vec<Chart> {
    let share = || Axis { ends: (Some(0.0), Some(1.0)), ..Axis::new("flows", Unit::Share) };
    let axis = |name: &str, unit, values: &[(&str, Vec<f64>)]| {
        let all = || values.iter().flat_map(|(_, values)| values).copied().filter(|value| *value > 0.0);
        let wide = all().fold(0.0, f64::max) > 50.0 * all().fold(f64::INFINITY, f64::min);
        if wide { Axis::logarithmic(name, unit) } else { Axis::new(name, unit) }
    };
    let of = |value: &dyn Fn(&FlowResult) -> Option<f64>| -> Vec<(&str, Vec<f64>)> {
        let values = by_traffic(results).into_iter().map(|(name, flows)| {
            let values: Vec<f64> = flows.into_iter().filter_map(value).collect();
            (name, values)
        });
        values.filter(|(_, values)| values.len() >= 3).take(MOST_TRAFFIC).collect()
    };
    let run = &results.run;
    let times = of(&|flow| Some(flow.completion_time().filter(|_| flow.is_measured(run))? as f64 / 1e9));
    let goodputs = of(&|flow| flow.measured_goodput(run));
    let kinds =
        [("Completion time", "time", Unit::Seconds, times), ("Goodput", "goodput", Unit::BitsPerSecond, goodputs)];
    let mut charts = Vec::new();
    for (title, name, unit, values) in kinds.into_iter().filter(|kind| !kind.3.is_empty()) {
        let mut chart = Chart::new(title, axis(name, unit, &values), share());
        for (traffic, values) in values {
            chart.add(traffic, Chart::distribution(values));
        }
        charts.push(chart);
    }
    charts
}

fn progress(results: &Results) -> Vec<Chart> {
    let shown = results.progress.iter().filter(|progress| !progress.sent.is_empty()).take(MOST_PLOTS);
    shown.flat_map(|progress| sequence(results, progress)).collect()
}

/// Segments of the first flows over time: of a long flow those around the first that was sent again.
pub fn segments(results: &Results) -> Vec<Chart> {
    let shown = results.progress.iter().filter(|progress| !progress.sent.is_empty()).take(MOST_PLOTS);
    let last = shown.filter_map(|progress| {
        let mut charts = sequence(results, progress);
        let chart = charts.pop()?;
        Some(match charts.pop() {
            Some(whole) => Chart { title: format!("{}, around its first repeated segment", whole.title), ..chart },
            None => chart,
        })
    });
    last.collect()
}

/// A flow from its beginning to its end and, if that is long, what is around its first repeated segment.
fn sequence(results: &Results, progress: &FlowProgress) -> Vec<Chart> {
    let name = match results.flows.get(progress.flow) {
        Some(flow) => format!("{} {}, {} to {}", flow.traffic, flow.number, flow.from, flow.to),
        None => format!("flow {}", progress.flow),
    };
    let axes = || (Axis::new("time", Unit::Seconds), Axis::new("", Unit::Bytes));
    let mut charts = vec![sequence_part(&name, progress, axes())];
    let repeated = progress.sent.iter().position(|segment| segment.3);
    if let Some(at) = repeated.filter(|_| progress.sent.len() > 4 * CLOSE_SEGMENTS) {
        let sent = &progress.sent[at.saturating_sub(CLOSE_SEGMENTS)..progress.sent.len().min(at + CLOSE_SEGMENTS)];
        let span = |ends: (i64, i64), at: i64| (ends.0.min(at), ends.1.max(at));
        let (first, last) = sent.iter().fold((i64::MAX, i64::MIN), |ends, segment| span(ends, segment.0));
        let ends = (Some(first as f64 / 1e9), Some(last as f64 / 1e9));
        let low = sent.iter().map(|segment| segment.1).min().unwrap_or(0);
        let high = sent.iter().map(|segment| segment.1.saturating_add(u64::from(segment.2))).max().unwrap_or(0);
        // Acknowledgments of what is shown only; others would lie at the edges.
        let within = |(at, bytes): &&(i64, u64)| (first..=last).contains(at) && (low..=high).contains(bytes);
        let acknowledged = progress.acknowledged.iter().filter(within).copied().collect();
        let part = FlowProgress { flow: progress.flow, sent: sent.to_vec(), acknowledged };
        let (x, y) = axes();
        let y = Axis { ends: (Some(low as f64), Some(high as f64)), ..y };
        charts.push(sequence_part("Around its first repeated segment", &part, (Axis { ends, ..x }, y)));
    }
    charts
}

/// The probed registers of the first flows, each with one line for each of its ends.
fn probes(results: &Results) -> Vec<Chart> {
    let mut charts: Vec<(usize, &str, Chart)> = Vec::new();
    for probe in &results.probes {
        let at = charts.iter().position(|(flow, register, _)| (*flow, *register) == (probe.flow, &probe.register));
        let at = at.unwrap_or_else(|| {
            let name = results.flows.get(probe.flow).map_or_else(String::new, |flow| {
                format!(" of {} {}, {} to {}", flow.traffic, flow.number, flow.from, flow.to)
            });
            let title = format!("{}{name}", probe.register);
            let chart = Chart::new(&title, Axis::new("time", Unit::Seconds), Axis::new("", Unit::Plain));
            charts.push((probe.flow, &probe.register, chart));
            charts.len() - 1
        });
        let points = probe.points.iter().map(|(at, value)| (*at as f64 / 1e9, *value as f64));
        charts[at].2.add(&probe.node, Shape::Line(points.collect()));
    }
    charts.into_iter().take(MOST_PLOTS).map(|(.., chart)| chart).collect()
}

fn sequence_part(name: &str, progress: &FlowProgress, (x, y): (Axis, Axis)) -> Chart {
    let mut chart = Chart::new(name, x, y);
    let acknowledged = progress.acknowledged.iter().map(|(at, bytes)| (*at as f64 / 1e9, *bytes as f64));
    chart.add_as("stair", "acknowledged", Shape::Step(acknowledged.collect()));
    for (class, wanted) in [("data", false), ("repeated", true)] {
        let strokes = progress.sent.iter().filter(|segment| segment.3 == wanted).map(|(at, first, length, _)| {
            (*at as f64 / 1e9, *first as f64, first.saturating_add(u64::from(*length)) as f64)
        });
        let strokes: Vec<_> = strokes.collect();
        if !strokes.is_empty() {
            chart.add_as(class, class, Shape::Strokes(strokes));
        }
    }
    chart
}

fn functions(results: &Results) -> String {
    let all = results.functions.iter().flat_map(|(node, counters)| counter_rows(node, counters));
    let rows = all.filter(|row| row.3 > 0).take(2 * MOST_ROWS).map(|(node, kind, name, count)| {
        vec![Cell::text(node), Cell::text(kind), Cell::text(name.unwrap_or_default()), Cell::count(count)]
    });
    table(&["node", "counter", "row or reason", "count"], rows)
}
