//! Many runs as one HTML page: each metric over the sweep's first parameter, a series for each value of the second.

use super::axis::Axis;
use super::chart::{Chart, Shape};
use super::html::{Cell, facts, section, table};
use super::page::document;
use super::unit::Unit;
use crate::table::RunKey;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use weftwire_image::explain::escape_markup;
use weftwire_network::results::{Metrics, percentile};

/// Metrics that are drawn, in this order: name, title, unit. Of those of single links the ends of their names.
const METRICS: [(&str, &str, Unit); 11] = [
    ("goodput", "Goodput of all flows", Unit::BitsPerSecond),
    ("fct_p50", "Flow completion time, p50", Unit::Seconds),
    ("fct_p99", "Flow completion time, p99", Unit::Seconds),
    ("fct_max", "Flow completion time, greatest", Unit::Seconds),
    ("flows_complete", "Flows that ended", Unit::Plain),
    ("retransmissions", "Retransmissions", Unit::Packets),
    ("drops", "Drops", Unit::Packets),
    ("marks", "Marks", Unit::Packets),
    (".utilisation", "Utilisation", Unit::Share),
    (".queue_bytes_mean", "Mean queue", Unit::Bytes),
    (".wait_mean", "Mean wait", Unit::Seconds),
];
/// Charts of one page.
const MOST_CHARTS: usize = 40;
/// Series of a chart.
const MOST_SERIES: usize = 8;
/// Rows of the table.
const MOST_ROWS: usize = 400;

/// All runs at one point of the sweep.
struct Point<'a> {
    parameters: &'a [(String, String)],
    runs: Vec<&'a Metrics>,
}

impl Point<'_> {
    fn value(&self, parameter: usize) -> &str {
        self.parameters.get(parameter).map_or("", |(_, value)| value)
    }

    /// The metric's 10th, 50th and 90th percentile over the repetitions.
    fn spread(&self, metric: &str) -> Option<[f64; 3]> {
        let mut values: Vec<f64> = self.runs.iter().filter_map(|metrics| metrics.get(metric)).copied().collect();
        values.sort_by(f64::total_cmp);
        Some([percentile(&values, 10)?, percentile(&values, 50)?, percentile(&values, 90)?])
    }
}

/// The whole page about many runs of the network of this name.
pub fn page(name: &str, runs: &[(RunKey, Metrics)]) -> String {
    let mut body = String::new();
    let _ = writeln!(body, "<header><h1>{}</h1>", escape_markup(name));
    let points = points(runs);
    let mut lines = vec![("runs", runs.len().to_string()), ("points", points.len().to_string())];
    let parameters = points.first().map_or(&[][..], |point| point.parameters);
    if !parameters.is_empty() {
        let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
        lines.push(("parameters", names.join(", ")));
    }
    facts(&mut body, &lines);
    body.push_str("</header>\n");
    let metrics = metrics(runs);
    section(
        &mut body,
        "Metrics",
        "The line is the median over the runs at a point, the band reaches from the 10th to the 90th percentile.",
        || metrics.iter().take(MOST_CHARTS).map(|metric| chart(metric, &points).svg()).collect(),
    );
    section(&mut body, "Medians", "Over the runs at each point; <code>runs.csv</code> has every run.", || {
        medians(&metrics, &points)
    });
    document(name, &body)
}

/// The points of the sweep in the order of their first run.
fn points(runs: &[(RunKey, Metrics)]) -> Vec<Point<'_>> {
    let mut points: Vec<Point<'_>> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for (key, metrics) in runs {
        let place = *places.entry(&key.parameters).or_insert_with(|| {
            points.push(Point { parameters: &key.parameters, runs: Vec::new() });
            points.len() - 1
        });
        points[place].runs.push(metrics);
    }
    points
}

/// A series: its name, and at each place the 10th, 50th and 90th percentile.
type Spreads = (String, Vec<(f64, [f64; 3])>);

struct Metric {
    name: String,
    title: String,
    unit: Unit,
}

/// The metrics of interest that any run has and that are not 0 in all of them.
fn metrics(runs: &[(RunKey, Metrics)]) -> Vec<Metric> {
    let all = runs.iter().flat_map(|(_, metrics)| metrics).filter(|(_, value)| **value != 0.0);
    let names: BTreeSet<&String> = all.map(|(name, _)| name).collect();
    let mut found = Vec::new();
    for (wanted, title, unit) in METRICS {
        for name in &names {
            match name.strip_suffix(wanted) {
                Some("") => found.push(Metric { name: (*name).clone(), title: title.to_owned(), unit }),
                Some(place) if wanted.starts_with('.') => {
                    found.push(Metric { name: (*name).clone(), title: format!("{title} of {place}"), unit });
                }
                _ => {}
            }
        }
    }
    found
}

/// One metric over the first numeric parameter (over the first of all, as categories, if none is numeric), a series for
/// each value of the next parameter; further ones are named with it.
fn chart(metric: &Metric, points: &[Point<'_>]) -> Chart {
    let count = points.first().map_or(0, |point| point.parameters.len());
    let is_numeric = |parameter: &usize| points.iter().all(|point| number(point.value(*parameter)).is_some());
    let across = (0..count).find(is_numeric);
    let over = across.unwrap_or(0);
    let mut categories: Vec<String> = Vec::new();
    let mut series: Vec<Spreads> = Vec::new();
    for point in points {
        let value = point.value(over).to_owned();
        let at = match across.and_then(|_| number(&value)) {
            Some((number, _)) => number,
            None => {
                let known = categories.iter().position(|category| *category == value);
                known.unwrap_or_else(|| {
                    categories.push(value);
                    categories.len() - 1
                }) as f64
            }
        };
        let rest: Vec<&str> = (0..count).filter(|index| *index != over).map(|index| point.value(index)).collect();
        let name = rest.join(", ");
        let Some(spread) = point.spread(&metric.name) else { continue };
        match series.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push((at, spread)),
            None => series.push((name, vec![(at, spread)])),
        }
    }
    let parameter = points.first().and_then(|point| point.parameters.get(over));
    let name = parameter.map_or("all runs", |(name, _)| name);
    let unit = points.first().and_then(|point| number(point.value(over))).map_or(Unit::Plain, |(_, unit)| unit);
    let mut x = Axis { categories, ..Axis::new(name, unit) };
    if across.is_some() {
        let at: Vec<f64> = series.iter().flat_map(|(_, values)| values).map(|(at, _)| *at).collect();
        let (low, high) = at.iter().fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(*at), high.max(*at)));
        // Values that grow by factors are apart from each other only so.
        x.logarithmic = low > 0.0 && high >= 20.0 * low;
        if !x.logarithmic && high > low {
            x.ends = (Some(if low > 0.0 && low < high / 4.0 { 0.0 } else { low }), Some(high));
        }
    }
    draw(metric, x, series)
}

fn draw(metric: &Metric, x: Axis, series: Vec<Spreads>) -> Chart {
    let mut chart = Chart::new(&metric.title, x, Axis::new("", metric.unit));
    chart.height = 200.0;
    const TONES: [&str; MOST_SERIES] = ["tone0", "tone1", "tone2", "tone3", "tone4", "tone5", "tone6", "tone7"];
    for ((name, mut values), tone) in series.into_iter().zip(TONES) {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart.add_as(tone, "", Shape::Band(values.iter().map(|(at, [low, _, high])| (*at, *low, *high)).collect()));
        let medians: Vec<(f64, f64)> = values.iter().map(|(at, [_, median, _])| (*at, *median)).collect();
        // Categories have no order that a line could follow; the spread at a single place is no area.
        if chart.x.categories.is_empty() {
            chart.add_as(tone, &name, Shape::Line(medians.clone()));
            chart.add_as(tone, "", Shape::Dots(medians));
        } else {
            let strokes = values.iter().map(|(at, [low, _, high])| (*at, *low, *high));
            chart.series.pop();
            chart.add_as(tone, "", Shape::Strokes(strokes.collect()));
            chart.add_as(tone, &name, Shape::Dots(medians));
        }
    }
    chart
}

/// A value of a parameter as a number, if it is one: plain, or with a unit as networks are written (`10ms`, `5Mbit/s`,
/// `64kB`, `1.5%`).
fn number(text: &str) -> Option<(f64, Unit)> {
    let text = text.trim();
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || "+-._".contains(letter)));
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let value: f64 = digits.replace('_', "").parse().ok()?;
    let (factor, unit) = match unit.trim() {
        "" => (1.0, Unit::Plain),
        "ns" => (1e-9, Unit::Seconds),
        "us" | "µs" => (1e-6, Unit::Seconds),
        "ms" => (1e-3, Unit::Seconds),
        "s" => (1.0, Unit::Seconds),
        "min" => (60.0, Unit::Seconds),
        "bit/s" => (1.0, Unit::BitsPerSecond),
        "kbit/s" => (1e3, Unit::BitsPerSecond),
        "Mbit/s" => (1e6, Unit::BitsPerSecond),
        "Gbit/s" => (1e9, Unit::BitsPerSecond),
        "B" | "bytes" => (1.0, Unit::Bytes),
        "kB" => (1e3, Unit::Bytes),
        "MB" => (1e6, Unit::Bytes),
        "GB" => (1e9, Unit::Bytes),
        "KiB" => (1024.0, Unit::Bytes),
        "MiB" => (1_048_576.0, Unit::Bytes),
        "packets" => (1.0, Unit::Packets),
        "%" => (0.01, Unit::Share),
        _ => return None,
    };
    Some((value * factor, unit))
}

fn medians(metrics: &[Metric], points: &[Point<'_>]) -> String {
    let count = points.first().map_or(0, |point| point.parameters.len());
    let mut heads: Vec<&str> =
        points.first().map_or(&[][..], |point| point.parameters).iter().map(|(name, _)| name.as_str()).collect();
    heads.push("runs");
    // Those of single links are in the charts and in runs.csv: there may be a hundred.
    let whole: Vec<&Metric> = metrics.iter().filter(|metric| !metric.name.contains('.')).collect();
    heads.extend(whole.iter().map(|metric| metric.title.as_str()));
    let row = |point: &Point<'_>| {
        let mut cells: Vec<Cell> = (0..count).map(|index| Cell::text(point.value(index))).collect();
        cells.push(Cell::count(point.runs.len() as u64));
        cells.extend(
            whole
                .iter()
                .map(|metric| Cell::known(point.spread(&metric.name).map(|[_, median, _]| metric.unit.text(median)))),
        );
        cells
    };
    let mut out = table(&heads, points.iter().take(MOST_ROWS).map(row));
    let more = points.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        let _ = writeln!(out, "<p class=\"note\">... and {more} more points.</p>");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(parameters: &[(&str, &str)], repetition: u64, goodput: f64) -> (RunKey, Metrics) {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let metrics = [("goodput".to_owned(), goodput), ("up.a:1.drops".to_owned(), 2.0), ("drops".to_owned(), 0.0)];
        (RunKey { run: 0, parameters, repetition, seed: repetition }, metrics.into_iter().collect())
    }

    #[test]
    fn values_with_units_are_numbers() {
        assert_eq!(number("10ms"), Some((0.01, Unit::Seconds)));
        assert_eq!(number("5 Mbit/s"), Some((5e6, Unit::BitsPerSecond)));
        assert_eq!(number("-3"), Some((-3.0, Unit::Plain)));
        assert_eq!(number("red"), None);
        assert_eq!(number("3 apples"), None);
    }

    #[test]
    fn the_first_numeric_parameter_goes_to_the_right_and_the_others_name_series() {
        let mut runs = Vec::new();
        for queue in ["red", "codel"] {
            for delay in ["10ms", "20ms", "30ms"] {
                for repetition in 0..10 {
                    runs.push(run(&[("queue", queue), ("delay", delay)], repetition, 1e6 + repetition as f64));
                }
            }
        }
        let found = metrics(&runs);
        let names: Vec<&str> = found.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["goodput"], "0 in all runs, or not of interest");
        let points = points(&runs);
        assert_eq!(points.len(), 6);
        assert_eq!(points[0].spread("goodput"), Some([1e6, 1e6 + 4.0, 1e6 + 8.0]));
        let chart = chart(&found[0], &points);
        assert_eq!(chart.x.name, "delay");
        let named: Vec<&str> = chart.series.iter().map(|s| s.name.as_str()).filter(|name| !name.is_empty()).collect();
        assert_eq!(named, ["red", "codel"]);
    }

    #[test]
    fn words_are_categories() {
        let runs = [run(&[("queue", "red")], 0, 1.0), run(&[("queue", "codel <b>")], 0, 2.0)];
        let html = page("a & b", &runs);
        assert!(html.contains("codel &lt;b&gt;") && !html.contains("<b>") && html.contains("<h1>a &amp; b</h1>"));
        let chart = chart(&metrics(&runs)[0], &points(&runs));
        assert_eq!(chart.x.categories, ["red", "codel <b>"]);
        assert!(page("none", &[]).contains("</html>"));
    }
}
