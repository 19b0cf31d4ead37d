//! Many runs as one HTML page: each metric over the sweep's first parameter, a series for each value of the second.

use crate::table::RunKey;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use weftwire_draw::Axis;
use weftwire_draw::BoxPlot;
use weftwire_draw::Unit;
use weftwire_draw::chart::{Chart, Shape};
use weftwire_draw::document;
use weftwire_draw::escape_markup;
use weftwire_draw::html::{Cell, facts, section, table};
use weftwire_draw::statistics::{Summary, percentile};
use weftwire_network::results::Metrics;

/// Metrics that are drawn, in this order: name, title, unit. Of those of single links the ends of their names.
const METRICS: [(&str, &str, Unit); 16] = [
    ("goodput", "Goodput of all flows", Unit::BitsPerSecond),
    ("jain", "Jain's index of fairness", Unit::Plain),
    ("fct_mean", "Flow completion time, mean", Unit::Seconds),
    ("fct_p50", "Flow completion time, p50", Unit::Seconds),
    ("fct_p99", "Flow completion time, p99", Unit::Seconds),
    ("fct_max", "Flow completion time, greatest", Unit::Seconds),
    ("slowdown_mean", "Slowdown, mean", Unit::Plain),
    ("slowdown_p50", "Slowdown, p50", Unit::Plain),
    ("slowdown_p99", "Slowdown, p99", Unit::Plain),
    ("flows_complete", "Flows that are complete", Unit::Plain),
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
/// From so many runs at a point on, their distribution is drawn as a box beside the dots.
const ENOUGH_FOR_A_BOX: usize = 5;
/// Pixels between the boxes of two series, as a share of the way from one category to the next.
const ASIDE: f64 = 0.13;
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

    /// The metric over the repetitions, in ascending order.
    fn values(&self, metric: &str) -> Vec<f64> {
        let mut values: Vec<f64> = self.runs.iter().filter_map(|metrics| metrics.get(metric)).copied().collect();
        values.sort_by(f64::total_cmp);
        values
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
    section(&mut body, "Metrics", note(&points), || {
        metrics.iter().take(MOST_CHARTS).map(|metric| chart(metric, &points).svg()).collect()
    });
    section(
        &mut body,
        "Statistics",
        "Over the runs at each point; <code>summary.csv</code> has all metrics, <code>runs.csv</code> every run. The mean of \
         endlessly many runs lies within ± of this one with 95 % confidence (Student's t).",
        || statistics(&metrics, &points),
    );
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

/// What the pictures show.
fn note(points: &[Point<'_>]) -> &'static str {
    match points {
        [point] if point.parameters.is_empty() => {
            "The share of runs in which a metric was at most so large. The line is the mean, the band its 95 % confidence interval."
        }
        _ => {
            "A dot is a run; a box reaches from the first to the third quartile of the runs at a point, its line is the median, \
             the whiskers end within one and a half of its height. Over numbers the line is the median, the band reaches from \
             the 10th to the 90th percentile."
        }
    }
}

/// A series: its name, and at each place the values of the runs, in ascending order.
type Runs = (String, Vec<(f64, Vec<f64>)>);

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
    if let [point] = points
        && point.parameters.is_empty()
    {
        return distribution(metric, point.values(&metric.name));
    }
    let count = points.first().map_or(0, |point| point.parameters.len());
    let is_numeric = |parameter: &usize| points.iter().all(|point| number(point.value(*parameter)).is_some());
    let across = (0..count).find(is_numeric);
    let over = across.unwrap_or(0);
    let mut categories: Vec<String> = Vec::new();
    let mut series: Vec<Runs> = Vec::new();
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
        let values = point.values(&metric.name);
        if values.is_empty() {
            continue;
        }
        match series.iter_mut().find(|(known, _)| *known == name) {
            Some((_, places)) => places.push((at, values)),
            None => series.push((name, vec![(at, values)])),
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

const TONES: [&str; MOST_SERIES] = ["tone0", "tone1", "tone2", "tone3", "tone4", "tone5", "tone6", "tone7"];

/// Repetitions of one point: how they are distributed, and how well their mean is known.
fn distribution(metric: &Metric, mut values: Vec<f64>) -> Chart {
    let share = Axis { ends: (Some(0.0), Some(1.0)), ..Axis::new("runs", Unit::Share) };
    let mut chart = Chart::new(&metric.title, Axis::new("", metric.unit), share);
    chart.height = 140.0;
    let Some(all) = Summary::of(&mut values) else { return chart };
    let reach = all.confidence.unwrap_or(0.0);
    let (low, high) = (all.least.min(all.mean - reach), all.greatest.max(all.mean + reach));
    // Some room at the sides, so that the first and the last step are seen.
    let room = ((high - low) * 0.05).max(all.mean.abs() * 1e-3);
    chart.x.ends = (Some(low - room), Some(high + room));
    chart.add_as(
        "tone2",
        "95 % confidence",
        Shape::Band(vec![(all.mean - reach, 0.0, 1.0), (all.mean + reach, 0.0, 1.0)]),
    );
    chart.add_as("tone2", "mean", Shape::Line(vec![(all.mean, 0.0), (all.mean, 1.0)]));
    let count = values.len() as f64;
    let dots = values.iter().enumerate().map(|(index, value)| (*value, (index + 1) as f64 / count)).collect();
    chart.add_as("tone0", "", Shape::Dots(dots));
    chart.add_as("tone0", "runs", Chart::distribution(values));
    chart
}

fn draw(metric: &Metric, x: Axis, series: Vec<Runs>) -> Chart {
    let mut chart = Chart::new(&metric.title, x, Axis::new("", metric.unit));
    chart.height = 200.0;
    let (names, categories) = (series.len().min(MOST_SERIES), !chart.x.categories.is_empty());
    for (number, ((name, mut places), tone)) in series.into_iter().zip(TONES).enumerate() {
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        if categories {
            // Those of several series stand beside each other.
            let aside = (number as f64 - (names - 1) as f64 / 2.0) * ASIDE.min(0.8 / names as f64);
            places.iter_mut().for_each(|(at, _)| *at += aside);
        }
        let spread = |(at, values): &(f64, Vec<f64>)| {
            Some((*at, percentile(values, 10)?, percentile(values, 50)?, percentile(values, 90)?))
        };
        let spreads: Vec<(f64, f64, f64, f64)> = places.iter().filter_map(spread).collect();
        let each = places.iter().flat_map(|(at, values)| values.iter().map(|value| (*at, *value))).collect();
        let many = places.iter_mut().filter(|(_, values)| values.len() >= ENOUGH_FOR_A_BOX);
        let boxes: Vec<BoxPlot> = many.filter_map(|(at, values)| BoxPlot::of(*at, values)).collect();
        if categories {
            // They have no order that a line could follow.
            chart.add_as(tone, &name, Shape::Dots(each));
        } else {
            chart.add_as(tone, "", Shape::Band(spreads.iter().map(|(at, low, _, high)| (*at, *low, *high)).collect()));
            chart.add_as(tone, &name, Shape::Line(spreads.iter().map(|(at, _, median, _)| (*at, *median)).collect()));
            chart.add_as(
                tone,
                "",
                Shape::Dots(if names == 1 {
                    each
                } else {
                    spreads.iter().map(|(at, _, median, _)| (*at, *median)).collect()
                }),
            );
        }
        if !boxes.is_empty() && (categories || names == 1) {
            chart.add_as(tone, "", Shape::Boxes(boxes));
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

fn statistics(metrics: &[Metric], points: &[Point<'_>]) -> String {
    let parameters = points.first().map_or(&[][..], |point| point.parameters);
    let mut heads: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    heads.extend(["metric", "runs", "mean", "± 95 %", "deviation", "p10", "median", "p90"]);
    // Those of single links are in the charts and in runs.csv: there may be a hundred.
    let whole: Vec<&Metric> = metrics.iter().filter(|metric| !metric.name.contains('.')).collect();
    let rows = points.iter().flat_map(|point| whole.iter().map(move |metric| (point, metric)));
    let row = |(point, metric): (&Point<'_>, &&Metric)| {
        let all = Summary::of(&mut point.values(&metric.name))?;
        let number = |value: f64| Cell::Number(metric.unit.text(value));
        let known = |value: Option<f64>| Cell::known(value.map(|value| metric.unit.text(value)));
        let mut cells: Vec<Cell> = (0..parameters.len()).map(|index| Cell::text(point.value(index))).collect();
        cells.extend([
            Cell::text(&metric.title),
            Cell::count(all.count),
            number(all.mean),
            known(all.confidence),
            known(all.standard_deviation),
            number(all.p10),
            number(all.median),
            number(all.p90),
        ]);
        Some(cells)
    };
    let mut rows: Vec<Vec<Cell>> = rows.filter_map(row).collect();
    let more = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    let mut out = table(&heads, rows);
    if more > 0 {
        let _ = writeln!(out, "<p class=\"note\">... and {more} more rows.</p>");
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
        assert_eq!(points[0].values("goodput").len(), 10);
        let chart = chart(&found[0], &points);
        assert_eq!(chart.x.name, "delay");
        let named: Vec<&str> = chart.series.iter().map(|s| s.name.as_str()).filter(|name| !name.is_empty()).collect();
        assert_eq!(named, ["red", "codel"]);
    }

    #[test]
    fn repetitions_are_drawn_as_a_distribution_with_their_mean_and_its_confidence() {
        let runs: Vec<_> =
            [10.0, 12.0, 14.0].iter().enumerate().map(|(index, value)| run(&[], index as u64, *value)).collect();
        let chart = chart(&metrics(&runs)[0], &points(&runs));
        let Shape::Band(band) = &chart.series[0].shape else { panic!("a band") };
        // t of 2 degrees is 4.303, the standard error 2 / sqrt(3).
        let reach = 4.303 * 2.0 / 3_f64.sqrt();
        assert!((band[0].0 - (12.0 - reach)).abs() < 1e-9 && (band[1].0 - (12.0 + reach)).abs() < 1e-9);
        assert!(matches!(&chart.series[3].shape, Shape::Step(stair) if stair.len() == 4));
        let html = page("x", &runs);
        for part in ["Statistics", "± 95 %", "12.0 bit/s", "4.97 bit/s", "2.00 bit/s"] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn repetitions_of_categories_are_boxes_beside_each_other() {
        let mut runs = Vec::new();
        for (queue, more) in [("red", 0.0), ("codel", 5.0)] {
            runs.extend((0..6).map(|number| run(&[("queue", queue), ("mode", "x")], number, number as f64 + more)));
        }
        runs.extend((0..2).map(|number| run(&[("queue", "red"), ("mode", "y")], number, 3.0)));
        let chart = chart(&metrics(&runs)[0], &points(&runs));
        let boxes = chart.series.iter().filter_map(|series| match &series.shape {
            Shape::Boxes(boxes) => Some(boxes.len()),
            _ => None,
        });
        assert_eq!(boxes.collect::<Vec<_>>(), [2], "two runs make no box");
        let dots = chart.series.iter().filter_map(|series| match &series.shape {
            Shape::Dots(dots) => Some((dots.len(), dots[0].0)),
            _ => None,
        });
        let dots: Vec<_> = dots.collect();
        assert!(dots[0].0 == 12 && dots[1].0 == 2 && dots[0].1 < 0.0 && dots[1].1 > 0.0, "{dots:?}");
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
