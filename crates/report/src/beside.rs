//! Flows beside each other: what their senders' registers hold, what they get through, and the queues that they share. A flow has
//! the same colour in each chart.

use std::collections::BTreeMap;
use weftwire_draw::chart::{Chart, Shape};
use weftwire_draw::{Axis, Unit};
use weftwire_network::results::{FlowProgress, FlowResult, LinkResult, LinkSample, Probe, Results};

/// As many flows as there are colours.
const MOST_FLOWS: usize = 8;
/// A rate is the mean of so small a part of the run at least: shorter ones show single acknowledgments.
const MOST_INTERVALS: usize = 100;
/// Directions of links whose queues are drawn.
const MOST_QUEUES: usize = 2;
/// Fewer flows have no distribution to speak of.
const FEWEST_TIMES: usize = 3;
const HEIGHT: f64 = 140.0;
const TONES: [&str; MOST_FLOWS] = ["tone0", "tone1", "tone2", "tone3", "tone4", "tone5", "tone6", "tone7"];

/// All that there is to draw: the registers that the network probes, goodputs, queues. Nothing of a single flow.
pub fn charts(results: &Results) -> Vec<Chart> {
    let mut names: Vec<&str> = Vec::new();
    for probe in &results.probes {
        if !names.contains(&probe.register.as_str()) {
            names.push(&probe.register);
        }
    }
    let charts = names.into_iter().filter_map(|name| register(results, name));
    let charts = charts.chain(goodput(results)).chain(queue(results));
    match results.flows.len() {
        0 | 1 => Vec::new(),
        _ => charts.collect(),
    }
}

/// A probed register of each flow: its sender's, or its receiver's where only that has it. `None` if nobody has.
pub fn register(results: &Results, name: &str) -> Option<Chart> {
    let mut by_flow: BTreeMap<usize, &Probe> = BTreeMap::new();
    for probe in results.probes.iter().filter(|probe| probe.register == name && probe.flow < MOST_FLOWS) {
        let sends = results.flows.get(probe.flow).is_some_and(|flow| flow.from == probe.node);
        if sends || !by_flow.contains_key(&probe.flow) {
            by_flow.insert(probe.flow, probe);
        }
    }
    let lines = by_flow.into_iter().map(|(flow, probe)| {
        let points = probe.points.iter().map(|(at, value)| (*at as f64 / 1e9, *value as f64));
        (flow, Shape::Line(points.collect()), probe.points.iter().all(|(_, value)| *value == 0))
    });
    // Where a register is always 0 it is not used.
    let lines = lines.filter(|(.., unused)| !unused).map(|(flow, line, _)| (flow, line));
    of_flows(results, name, Axis::new("", Unit::Plain), lines)
}

/// What each flow got through over time: acknowledged or delivered in each sample interval, or in longer ones.
pub fn goodput(results: &Results) -> Option<Chart> {
    let first = results.samples.first()?.link;
    let ends: Vec<i64> = results.samples.iter().filter(|sample| sample.link == first).map(|sample| sample.at).collect();
    let ends: Vec<i64> =
        ends.chunks(ends.len().div_ceil(MOST_INTERVALS)).filter_map(|some| some.last().copied()).collect();
    let known = results.progress.iter().filter(|progress| progress.flow < MOST_FLOWS);
    let lines = known.filter_map(|progress| {
        let flow = results.flows.get(progress.flow)?;
        Some((progress.flow, Shape::Line(rates(flow, progress, &ends))))
    });
    of_flows(results, "Goodput", Axis::new("", Unit::BitsPerSecond), lines)
}

/// Bits per second between each two of `ends`, in the middle between them.
fn rates(flow: &FlowResult, progress: &FlowProgress, ends: &[i64]) -> Vec<(f64, f64)> {
    let points = &progress.acknowledged;
    // Of a long flow only the first points are kept.
    let all = points.last().is_some_and(|(_, bytes)| bytes.saturating_mul(20) >= flow.delivered.saturating_mul(19));
    let last = match all {
        true => flow.end.unwrap_or(i64::MAX),
        false => points.last().map_or(flow.start, |(at, _)| *at),
    };
    let at = |time: i64| points[..points.partition_point(|point| point.0 <= time)].last().map_or(0, |point| point.1);
    let starts = std::iter::once(&0).chain(ends);
    let within = starts.zip(ends).filter(|(start, end)| **end > flow.start && **start < last && end > start);
    let rates = within.map(|(start, end)| {
        let bits = at(*end).saturating_sub(at(*start)) as f64 * 8.0;
        ((start + end) as f64 / 2e9, bits * 1e9 / (end - start) as f64)
    });
    rates.collect()
}

/// What waited for the direction of a link where most did, and for the next one if that is of the same order.
pub fn queue(results: &Results) -> Option<Chart> {
    let waited = |link: &LinkResult| link.counts.queue_bytes_integral;
    let mut order: Vec<usize> = (0..results.links.len()).filter(|index| waited(&results.links[*index]) > 0).collect();
    order.sort_by_key(|index| std::cmp::Reverse(waited(&results.links[*index])));
    let most = waited(&results.links[*order.first()?]);
    order.retain(|index| waited(&results.links[*index]) >= most / 10);
    order.truncate(MOST_QUEUES);
    let mut chart = Chart::new("Queue", Axis::new("time", Unit::Seconds), Axis::new("", Unit::Bytes));
    chart.height = HEIGHT;
    let mut dropped = Vec::new();
    for (place, index) in order.into_iter().enumerate() {
        let link = &results.links[index];
        let samples: Vec<&LinkSample> = results.samples.iter().filter(|sample| sample.link == index).collect();
        let point = |sample: &&LinkSample| (sample.at as f64 / 1e9, sample.queue_bytes as f64);
        let name = format!("{} to {}", node(&link.from), node(&link.to));
        chart.add_as(["tone7", "tone3"][place % 2], &name, Shape::Line(samples.iter().map(point).collect()));
        dropped.extend(samples.iter().filter(|sample| sample.drops > 0).map(point));
    }
    if !dropped.is_empty() {
        chart.add_as("tone4", "drops", Shape::Dots(dropped));
    }
    Some(chart)
}

/// The distribution of completion times of each traffic with some flows; what is numbered (`NAME-1`, `NAME-2`, ...) is one.
pub fn times(results: &Results) -> Option<Chart> {
    let mut by_name: Vec<(&str, Vec<f64>)> = Vec::new();
    for flow in &results.flows {
        let Some(time) = flow.completion_time() else { continue };
        let numbered = flow.traffic.rsplit_once('-').filter(|(_, end)| end.bytes().all(|byte| byte.is_ascii_digit()));
        let name = numbered.map_or(flow.traffic.as_str(), |(name, _)| name);
        match by_name.iter_mut().find(|(known, _)| *known == name) {
            Some((_, times)) => times.push(time as f64 / 1e9),
            None => by_name.push((name, vec![time as f64 / 1e9])),
        }
    }
    by_name.retain(|(_, times)| times.len() >= FEWEST_TIMES);
    by_name.truncate(MOST_FLOWS);
    let share = Axis { ends: (Some(0.0), Some(1.0)), ..Axis::new("flows", Unit::Share) };
    let mut chart = Chart::new("Completion time", Axis::logarithmic("time", Unit::Seconds), share);
    for (name, times) in by_name {
        chart.add(name, Chart::distribution(times));
    }
    (!chart.series.is_empty()).then_some(chart)
}

/// The node of `NODE:PORT`.
fn node(end: &str) -> &str {
    end.rsplit_once(':').map_or(end, |(node, _)| node)
}

/// A chart with a line for each of these flows, in its colour.
fn of_flows(results: &Results, title: &str, y: Axis, lines: impl Iterator<Item = (usize, Shape)>) -> Option<Chart> {
    let end = results.run.lasted as f64 / 1e9;
    let mut chart = Chart::new(title, Axis { ends: (Some(0.0), Some(end)), ..Axis::new("time", Unit::Seconds) }, y);
    chart.height = HEIGHT;
    for (flow, shape) in lines.filter(|(_, shape)| !shape.is_empty()) {
        let name = results.flows.get(flow).map_or_else(String::new, |it| name(results, it));
        chart.add_as(TONES[flow % MOST_FLOWS], &name, shape);
    }
    (!chart.series.is_empty()).then_some(chart)
}

/// A flow's traffic, with its number if there are several.
fn name(results: &Results, flow: &FlowResult) -> String {
    let alone = results.flows.iter().filter(|other| other.traffic == flow.traffic).count() == 1;
    if alone { flow.traffic.clone() } else { format!("{} {}", flow.traffic, flow.number) }
}
