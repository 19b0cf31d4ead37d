//! The results as a page with box plots.

use super::results::{BINS, Results, SHORTEST, Values, middle};
use super::summary;
use weftwire_draw::chart::{Chart, Shape, stack};
use weftwire_draw::{Axis, BoxPlot, Unit, document};

/// Values drawn beyond the whiskers, of each box at most: the greatest.
const MOST_OUTLIERS: usize = 200;

/// One HTML page.
pub fn page(results: &Results) -> String {
    type Rows<'a> = Vec<(&'a str, Vec<&'a Values>)>;
    let releases = |wanted: fn(&str) -> bool| -> Rows<'_> {
        let methods = results.methods.iter().filter(|method| wanted(&method.name));
        methods.map(|method| (method.name.as_str(), method.release.iter().collect())).collect()
    };
    let released = releases(|name| !name.contains(','));
    let driven = releases(|name| name.ends_with(", weft run"));
    let sending = releases(|name| name.ends_with(", sending"));
    let departed: Rows<'_> =
        results.methods.iter().map(|method| (method.name.as_str(), method.departure.iter().collect())).collect();
    let kernel =
        results.kernel.iter().map(|kernel| (kernel.name.as_str(), kernel.bins.iter().map(|bin| &bin.gap).collect()));
    let gaps: Vec<_> = results
        .methods
        .iter()
        .map(|method| (method.name.as_str(), method.gap.iter().collect::<Vec<_>>()))
        .chain(kernel)
        .collect();
    let charts = [
        chart("Released late, as a share of the gap", &released, true),
        chart("Released late", &released, false),
        chart("Released late, where each packet is a frame that is sent", &sending, false),
        chart("Timers of a function in the loop of weft run, late", &driven, false),
        chart("Left late, by the kernel's time stamp", &departed, false),
        chart("Gaps between frames, off by", &gaps, false),
    ];
    let charts: Vec<Chart> = charts.into_iter().flatten().collect();
    let text = summary::text(results).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let body = format!(
        "<header><h1>Exponential pacing</h1></header>\n<section>\n<p class=\"note\">Boxes hold the middle half of all packets, the \
         line in them is the median; whiskers reach to the last value within one and a half times the box's height; of those \
         beyond, the greatest {MOST_OUTLIERS} of each box are dots. Times of 0 and below are drawn at 1 ns.</p>\n<div \
         class=\"scroll\">\n{}</div>\n</section>\n<section>\n<h2>In numbers</h2>\n<div \
         class=\"scroll\"><pre>{text}</pre></div>\n</section>\n",
        stack(&charts)
    );
    document("Exponential pacing", &body)
}

/// A chart with a box for each method at each gap; `None` without values.
fn chart(title: &str, methods: &[(&str, Vec<&Values>)], relative: bool) -> Option<Chart> {
    let methods: Vec<_> =
        methods.iter().filter(|(_, bins)| bins.iter().any(|values| values.statistics().is_some())).collect();
    if methods.is_empty() {
        return None;
    }
    let unit = if relative { Unit::Share } else { Unit::Seconds };
    let mut chart = Chart::new(title, Axis::logarithmic("gap", Unit::Seconds), Axis::logarithmic("", unit));
    chart.height = 320.0;
    // Room for half a box at both ends.
    chart.x.ends = (Some(SHORTEST * 0.85), Some(SHORTEST * (BINS as f64).exp2() * 1.15));
    for (number, (name, bins)) in methods.iter().enumerate() {
        let (mut boxes, mut outliers) = (Vec::new(), Vec::new());
        for (bin, values) in bins.iter().enumerate() {
            // Beside each other within the bin.
            let place = (number as f64 + 0.5) / methods.len() as f64 - 0.5;
            let gap = middle(bin) * (place * 0.8).exp2();
            let scale = if relative { middle(bin) } else { 1.0 };
            let mut values: Vec<f64> = values.seconds().into_iter().map(|value| value.max(1e-9) / scale).collect();
            let Some(drawn) = BoxPlot::of(gap, &mut values) else { continue };
            boxes.push(drawn);
            let beyond = values.iter().rev().take_while(|value| **value > drawn.whiskers.1).take(MOST_OUTLIERS);
            outliers.extend(beyond.map(|value| (gap, *value)));
        }
        chart.add(name, Shape::Boxes(boxes));
        let class = chart_class(number);
        chart.add_as(class, "", Shape::Dots(outliers));
    }
    Some(chart)
}

/// The colour of a series, for its outliers.
fn chart_class(number: usize) -> &'static str {
    ["tone0", "tone1", "tone2", "tone3", "tone4", "tone5", "tone6", "tone7"][number % 8]
}
