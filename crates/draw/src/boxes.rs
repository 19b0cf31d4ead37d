//! Box plots: where the middle half of many values lies, and how far the others reach.

use crate::axis::Scale;
use crate::statistics::percentile;
use std::fmt::Write as _;

/// Half the width of a box in pixels.
const HALF: f64 = 5.0;

/// One box: a distribution at a place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BoxPlot {
    /// The place, to the right.
    pub x: f64,
    /// The ends of the whiskers: the least and the greatest value that is no outlier, no further from the box than one and a half
    /// times its height.
    pub whiskers: (f64, f64),
    /// The ends of the box: the first and the third quartile, by nearest rank.
    pub quartiles: (f64, f64),
    /// The line in it.
    pub median: f64,
}

impl BoxPlot {
    /// The box of these values at a place; `None` of none. They become sorted.
    pub fn of(x: f64, values: &mut [f64]) -> Option<BoxPlot> {
        values.sort_by(f64::total_cmp);
        let (first, median, third) = (percentile(values, 25)?, percentile(values, 50)?, percentile(values, 75)?);
        let reach = 1.5 * (third - first);
        let low = values.iter().copied().find(|value| *value >= first - reach)?;
        let high = values.iter().rev().copied().find(|value| *value <= third + reach)?;
        Some(BoxPlot { x, whiskers: (low, high), quartiles: (first, third), median })
    }

    /// All its heights.
    pub(crate) fn heights(&self) -> [f64; 5] {
        [self.whiskers.0, self.quartiles.0, self.median, self.quartiles.1, self.whiskers.1]
    }

    /// Draws it into a path: the box, the median, both whiskers.
    pub(crate) fn draw(&self, path: &mut String, x: &Scale, y: &Scale) {
        let middle = x.pixel(self.x);
        let (left, right) = (middle - HALF, middle + HALF);
        let [low, first, median, third, high] = self.heights().map(|value| y.pixel(value));
        let _ = write!(
            path,
            "M{left:.1} {first:.1}H{right:.1}V{third:.1}H{left:.1}ZM{left:.1} {median:.1}H{right:.1}\
             M{middle:.1} {first:.1}V{low:.1}M{middle:.1} {third:.1}V{high:.1}"
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::chart::{Chart, Shape};
    use crate::unit::Unit;
    use crate::{Axis, BoxPlot};

    #[test]
    fn whiskers_leave_outliers_out() {
        let mut values: Vec<f64> = (1..=99).map(f64::from).chain([1_000.0]).collect();
        let drawn = BoxPlot::of(3.0, &mut values).expect("there are values");
        assert_eq!((drawn.median, drawn.quartiles, drawn.whiskers), (50.0, (25.0, 75.0), (1.0, 99.0)));
        assert_eq!(BoxPlot::of(0.0, &mut []), None);
        assert_eq!(BoxPlot::of(0.0, &mut [7.0]).map(|one| (one.median, one.whiskers)), Some((7.0, (7.0, 7.0))));
    }

    #[test]
    fn a_box_is_a_box_with_a_line_and_whiskers() {
        let mut chart = Chart::new("errors", Axis::logarithmic("gap", Unit::Seconds), Axis::new("late", Unit::Seconds));
        chart.add("boxes", Shape::Boxes(BoxPlot::of(1e-3, &mut [1e-6, 2e-6, 3e-6, 4e-6]).into_iter().collect()));
        let svg = chart.svg();
        let path =
            svg.split("class=\"boxes tone0\" d=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a path");
        assert_eq!((path.matches('M').count(), path.matches('Z').count()), (4, 1), "{path}");
        assert!(!svg.contains("NaN"));
    }
}
