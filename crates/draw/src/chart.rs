//! Charts: lines, steps, dots, bands, strokes and boxes over two axes, as SVG.
//!
//! However many points a series has, no more are drawn than there are pixels to tell them apart.

use crate::axis::{Axis, Scale};
use crate::boxes::BoxPlot;
use crate::escape_markup;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Width of a chart in pixels.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 20.0;
/// Above the plate: the title, and a line of the legend.
const HEAD: f64 = 36.0;
/// Above the plate if there is neither.
const BARE_HEAD: f64 = 12.0;
/// Height of a further line of the legend.
const LEGEND_LINE: f64 = 19.0;
/// Under the plate: numbers and the axis' name.
const FOOT: f64 = 46.0;
/// Marks of one series before they are put on a coarser grid.
const MOST_MARKS: usize = 4_000;
/// Letters of a name in the legend.
const LONGEST_NAME: usize = 36;

/// A chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// What stands above it.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn, the last on top.
    pub series: Vec<Series>,
    /// Height of the plate in pixels.
    pub height: f64,
}

/// One series of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its name in the legend; none without a name.
    pub name: String,
    /// Its class in the style sheet, which gives the colour; `None`: the next of eight colours.
    pub class: Option<&'static str>,
    /// What is drawn.
    pub shape: Shape,
}

/// What a series looks like. Lines and bands want their points in the order of x.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    /// Straight lines from point to point.
    Line(Vec<(f64, f64)>),
    /// The value stays until the next point.
    Step(Vec<(f64, f64)>),
    /// A dot at each point.
    Dots(Vec<(f64, f64)>),
    /// The area between two values at each x.
    Band(Vec<(f64, f64, f64)>),
    /// An upright stroke at x from one value to the other.
    Strokes(Vec<(f64, f64, f64)>),
    /// Distributions.
    Boxes(Vec<BoxPlot>),
}

impl Chart {
    /// A chart without series.
    pub fn new(title: &str, x: Axis, y: Axis) -> Chart {
        Chart { title: title.to_owned(), x, y, series: Vec::new(), height: 250.0 }
    }

    /// Adds a series in the next colour.
    pub fn add(&mut self, name: &str, shape: Shape) {
        self.series.push(Series { name: name.to_owned(), class: None, shape });
    }

    /// Adds a series with a class of the style sheet.
    pub fn add_as(&mut self, class: &'static str, name: &str, shape: Shape) {
        self.series.push(Series { name: name.to_owned(), class: Some(class), shape });
    }

    /// The distribution of values: the share of them that is at most x, as a stair.
    pub fn distribution(values: impl IntoIterator<Item = f64>) -> Shape {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let count = values.len() as f64;
        let start = values.first().map(|first| (*first, 0.0));
        let stair = values.iter().enumerate().map(|(index, value)| (*value, (index + 1) as f64 / count));
        Shape::Step(start.into_iter().chain(stair).collect())
    }

    /// The chart as one SVG picture.
    pub fn svg(&self) -> String {
        stack(std::slice::from_ref(self))
    }

    /// The legend: place in x and line of each named series, from the right; and how many lines there are.
    fn legend(&self) -> (Vec<(usize, f64, usize, String)>, usize) {
        if self.series.len() < 2 {
            // The title and the axes say what one series is.
            return (Vec::new(), 1);
        }
        let room = LEFT + self.title.chars().count() as f64 * 8.0 + 30.0;
        let (mut entries, mut right, mut line) = (Vec::new(), WIDTH - RIGHT, 0);
        for (index, series) in self.series.iter().enumerate().rev().filter(|(_, series)| !series.name.is_empty()) {
            let name = clip(&series.name, LONGEST_NAME);
            let width = name.chars().count() as f64 * 7.5 + 40.0;
            let left_end = if line == 0 { room } else { LEFT };
            if right - width < left_end {
                line += 1;
                right = WIDTH - RIGHT;
            }
            entries.push((index, right, line, name));
            right -= width;
        }
        (entries, line + 1)
    }

    fn top(&self) -> f64 {
        match (self.title.is_empty(), self.legend()) {
            (true, (entries, _)) if entries.is_empty() => BARE_HEAD,
            (_, (_, lines)) => HEAD + (lines - 1) as f64 * LEGEND_LINE,
        }
    }

    fn full_height(&self) -> f64 {
        self.top() + self.height + FOOT
    }

    fn class(&self, index: usize) -> String {
        match self.series[index].class {
            Some(class) => class.to_owned(),
            None => {
                let number = self.series[..index].iter().filter(|series| series.class.is_none()).count();
                format!("tone{}", number % 8)
            }
        }
    }

    fn draw(&self, out: &mut String) {
        let top = self.top();
        let bottom = top + self.height;
        let values = |of: fn(&Shape, &mut dyn FnMut(f64))| {
            let mut values = Vec::new();
            self.series.iter().for_each(|series| of(&series.shape, &mut |value| values.push(value)));
            values.into_iter()
        };
        let x = Scale::new(&self.x, values(Shape::each_x), (LEFT, WIDTH - RIGHT));
        let y = Scale::new(&self.y, values(Shape::each_y), (bottom, top));
        let _ = writeln!(out, "<text class=\"head\" x=\"{LEFT}\" y=\"20\">{}</text>", escape_markup(&self.title));
        self.axes(out, &x, &y, top, bottom);
        for (index, series) in self.series.iter().enumerate() {
            let (kind, path) = series.shape.path(&x, &y);
            if !path.is_empty() {
                let _ = writeln!(out, "<path class=\"{kind} {}\" d=\"{path}\"/>", self.class(index));
            }
        }
        for (index, right, line, name) in self.legend().0 {
            let y = 20.0 + line as f64 * LEGEND_LINE;
            let kind = self.series[index].shape.kind();
            let left = right - name.chars().count() as f64 * 7.5 - 20.0;
            let _ = writeln!(
                out,
                "<path class=\"key {kind} {}\" d=\"M{left:.1} {:.1}h14\"/>\
                 <text class=\"legend\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
                self.class(index),
                y - 4.0,
                left + 20.0,
                escape_markup(&name)
            );
        }
    }

    fn axes(&self, out: &mut String, x: &Scale, y: &Scale, top: f64, bottom: f64) {
        let right = WIDTH - RIGHT;
        let _ = writeln!(
            out,
            "<rect class=\"plate\" x=\"{LEFT}\" y=\"{top}\" width=\"{}\" height=\"{}\"/>",
            right - LEFT,
            self.height
        );
        for (value, text) in y.ticks(&self.y) {
            let at = y.pixel(value);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                at + 4.0,
                escape_markup(&clip(&text, 12))
            );
        }
        for (value, text) in x.ticks(&self.x) {
            let at = x.pixel(value);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{at:.1} {top}V{bottom}\"/><text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                escape_markup(&clip(&text, 14))
            );
        }
        let _ = writeln!(
            out,
            "<text class=\"legend\" x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text class=\"legend\" transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            bottom + 34.0,
            escape_markup(&x.title(&self.x)),
            (top + bottom) / 2.0,
            escape_markup(&y.title(&self.y))
        );
    }
}

/// Charts one below the other, a picture each, so that a printed page can end between them.
pub fn each(charts: &[Chart]) -> String {
    charts.iter().map(Chart::svg).collect()
}

/// Charts one above the other in one SVG picture; an empty text without charts.
pub fn stack(charts: &[Chart]) -> String {
    let Some(first) = charts.first() else { return String::new() };
    let height: f64 = charts.iter().map(Chart::full_height).sum();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"weft-plot\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<title>{}</title>\n",
        escape_markup(&first.title)
    );
    let mut top = 0.0;
    for chart in charts {
        let _ = writeln!(out, "<g transform=\"translate(0 {top})\">");
        chart.draw(&mut out);
        out.push_str("</g>\n");
        top += chart.full_height();
    }
    out.push_str("</svg>\n");
    out
}

/// At most so many letters, the last an ellipsis if some are missing.
pub fn clip(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

impl Shape {
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        match self {
            Shape::Line(points) | Shape::Step(points) | Shape::Dots(points) => points.is_empty(),
            Shape::Band(points) | Shape::Strokes(points) => points.is_empty(),
            Shape::Boxes(boxes) => boxes.is_empty(),
        }
    }

    /// The class in the style sheet.
    fn kind(&self) -> &'static str {
        match self {
            Shape::Line(_) | Shape::Step(_) => "line",
            Shape::Dots(_) => "dots",
            Shape::Band(_) => "band",
            Shape::Strokes(_) => "strokes",
            Shape::Boxes(_) => "boxes",
        }
    }

    fn each_x(&self, take: &mut dyn FnMut(f64)) {
        match self {
            Shape::Line(points) | Shape::Step(points) | Shape::Dots(points) => points.iter().for_each(|p| take(p.0)),
            Shape::Band(points) | Shape::Strokes(points) => points.iter().for_each(|p| take(p.0)),
            Shape::Boxes(boxes) => boxes.iter().for_each(|one| take(one.x)),
        }
    }

    fn each_y(&self, take: &mut dyn FnMut(f64)) {
        match self {
            Shape::Line(points) | Shape::Step(points) | Shape::Dots(points) => points.iter().for_each(|p| take(p.1)),
            Shape::Band(points) | Shape::Strokes(points) => points.iter().for_each(|p| {
                take(p.1);
                take(p.2);
            }),
            Shape::Boxes(boxes) => boxes.iter().flat_map(BoxPlot::heights).for_each(take),
        }
    }

    fn path(&self, x: &Scale, y: &Scale) -> (&'static str, String) {
        let pixel = |(at, value): &(f64, f64)| (x.pixel(*at), y.pixel(*value));
        let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
        let mut path = String::new();
        match self {
            Shape::Line(points) => {
                for (index, (at, value)) in thinned(points.iter().filter(finite).map(pixel)).into_iter().enumerate() {
                    let _ = write!(path, "{}{at:.1} {value:.1}", if index == 0 { 'M' } else { 'L' });
                }
            }
            Shape::Step(points) => {
                for (index, (at, value)) in thinned(points.iter().filter(finite).map(pixel)).into_iter().enumerate() {
                    let _ = match index {
                        0 => write!(path, "M{at:.1} {value:.1}"),
                        _ => write!(path, "H{at:.1}V{value:.1}"),
                    };
                }
            }
            Shape::Dots(points) => {
                let marks = points.iter().filter(finite).map(pixel).map(|(at, value)| (at, value, value));
                for (at, value, _) in sifted(marks) {
                    let _ = write!(path, "M{at:.1} {value:.1}h0");
                }
            }
            Shape::Strokes(points) => {
                let marks = points.iter().map(|(at, low, high)| (x.pixel(*at), y.pixel(*low), y.pixel(*high)));
                for (at, low, high) in sifted(marks) {
                    // Short strokes are still to be seen.
                    let end = if (high - low).abs() < 2.0 { low - 2.0 } else { high };
                    let _ = write!(path, "M{at:.1} {low:.1}V{end:.1}");
                }
            }
            Shape::Boxes(boxes) => boxes.iter().for_each(|one| one.draw(&mut path, x, y)),
            Shape::Band(points) => {
                let edge = |of: fn(&(f64, f64, f64)) -> f64| {
                    thinned(points.iter().map(move |point| (x.pixel(point.0), y.pixel(of(point)))))
                };
                let (low, mut high) = (edge(|point| point.1), edge(|point| point.2));
                high.reverse();
                for (index, (at, value)) in low.into_iter().chain(high).enumerate() {
                    let _ = write!(path, "{}{at:.1} {value:.1}", if index == 0 { 'M' } else { 'L' });
                }
                if !path.is_empty() {
                    path.push('Z');
                }
            }
        }
        (self.kind(), path)
    }
}

/// Of the points in each column of one pixel the first, the lowest, the highest and the last, in their order.
fn thinned(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut column: Vec<(f64, f64)> = Vec::new();
    for point in points {
        if column.first().is_some_and(|first| first.0.floor() != point.0.floor()) {
            kept.append(&mut column);
        }
        column.push(point);
        if column.len() > 4 {
            // The first and the last stay; of those between, the extremes.
            let by_value = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
            let (low, high) = ((0..5).min_by(by_value), (0..5).max_by(by_value));
            let drop = (1..4).find(|index| Some(*index) != low && Some(*index) != high);
            column.remove(drop.unwrap_or(3));
        }
    }
    kept.append(&mut column);
    kept
}

/// Marks that fall on the same place are drawn once; on a coarser grid if there are still too many.
fn sifted(marks: impl Iterator<Item = (f64, f64, f64)> + Clone) -> Vec<(f64, f64, f64)> {
    let mut grid = 0.5;
    loop {
        let mut drawn = BTreeSet::new();
        let place = |value: f64| (value / grid) as i64;
        let kept: Vec<_> =
            marks.clone().filter(|mark| drawn.insert((place(mark.0), place(mark.1), place(mark.2)))).collect();
        if kept.len() <= MOST_MARKS || grid > 1e4 {
            return kept;
        }
        grid *= 2.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Unit;
    use proptest::prelude::*;

    fn chart(shape: Shape) -> Chart {
        let mut chart = Chart::new("a <title>", Axis::new("time", Unit::Seconds), Axis::new("queue", Unit::Bytes));
        chart.add("one & two", shape);
        chart.add("three", Shape::Line(Vec::new()));
        chart
    }

    #[test]
    fn names_are_escaped() {
        let svg = chart(Shape::Line(vec![(0.0, 1.0), (1.0, 2.0)])).svg();
        assert!(svg.contains("a &lt;title&gt;") && svg.contains("one &amp; two"));
        assert!(!svg.contains("<title>a <"));
    }

    #[test]
    fn however_many_points_make_a_small_picture() {
        let noise = |index: u64| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64;
        let points: Vec<(f64, f64)> = (0..200_000).map(|index| (index as f64 * 1e-3, noise(index))).collect();
        let strokes: Vec<_> = points.iter().map(|(x, y)| (*x, *y, *y + 5.0)).collect();
        let shapes = [
            Shape::Line(points.clone()),
            Shape::Step(points.clone()),
            Shape::Dots(points),
            Shape::Strokes(strokes.clone()),
            Shape::Band(strokes),
        ];
        for shape in shapes {
            let size = chart(shape).svg().len();
            assert!((1_000..150_000).contains(&size), "{size}");
        }
    }

    #[test]
    fn a_distribution_is_a_stair_from_0_to_1() {
        let Shape::Step(points) = Chart::distribution([3.0, 1.0, f64::NAN, 2.0, 2.0]) else { panic!("a stair") };
        assert_eq!(points, [(1.0, 0.0), (1.0, 0.25), (2.0, 0.5), (2.0, 0.75), (3.0, 1.0)]);
        assert_eq!(Chart::distribution([]), Shape::Step(Vec::new()));
    }

    #[test]
    fn a_chart_of_nothing_is_still_well_formed() {
        for shape in [Shape::Line(vec![]), Shape::Band(vec![]), Shape::Dots(vec![(f64::NAN, 1.0)])] {
            let svg = chart(shape).svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    proptest! {
        #[test]
        fn thinning_keeps_the_extremes_and_the_ends_of_each_column(
            mut points in prop::collection::vec((0.0_f64..6.0, -9.0_f64..9.0), 0..80),
        ) {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let kept = thinned(points.iter().copied());
            for column in 0..6 {
                let within = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
                    points.iter().copied().filter(|point| point.0.floor() as i32 == column).collect()
                };
                let (all, kept) = (within(&points), within(&kept));
                prop_assert!(kept.len() <= 4 && kept.len() == all.len().min(4));
                let extremes = |points: &[(f64, f64)]| {
                    let values = || points.iter().map(|point| point.1);
                    (points.first().copied(), points.last().copied(), values().reduce(f64::min), values().reduce(f64::max))
                };
                prop_assert_eq!(extremes(&all), extremes(&kept));
            }
        }
    }
}
