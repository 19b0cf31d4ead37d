//! Axes: where values come to lie, and the round values that are named.

use crate::grouped;
use crate::unit::Unit;

/// Names of at most so many categories are drawn whole; of more, every second, third...
const MOST_LABELS: usize = 12;
/// A logarithmic axis shows at most so many powers of ten.
const MOST_DECADES: f64 = 12.0;

/// One axis of a chart.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Axis {
    /// What is on it, without the unit.
    pub name: String,
    /// The unit of the values.
    pub unit: Unit,
    /// Logarithmic: values of 0 or less lie at its low end.
    pub logarithmic: bool,
    /// Ends of the axis, whatever the values are: `None` where the values decide. A linear axis of values from 0 upwards
    /// begins at 0 in any case.
    pub ends: (Option<f64>, Option<f64>),
    /// Categories instead of numbers: value 0 is the first.
    pub categories: Vec<String>,
}

impl Axis {
    /// A linear axis.
    pub fn new(name: &str, unit: Unit) -> Axis {
        Axis { name: name.to_owned(), unit, ..Axis::default() }
    }

    /// A logarithmic axis.
    pub fn logarithmic(name: &str, unit: Unit) -> Axis {
        Axis { logarithmic: true, ..Axis::new(name, unit) }
    }
}

/// An axis with its ends known, on pixels.
pub(crate) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Pixels of the low and the high end.
    pixels: (f64, f64),
}

impl Scale {
    /// The axis around these values; its ends lie at these pixels.
    pub(crate) fn new(axis: &Axis, values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Scale {
        let usable = |value: &f64| value.is_finite() && (!axis.logarithmic || *value > 0.0);
        let (low, high) = values
            .filter(usable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (mut low, mut high) = if low > high { (1.0, 1.0) } else { (low, high) };
        if !axis.categories.is_empty() {
            (low, high) = (-0.5, axis.categories.len() as f64 - 0.5);
        } else if axis.logarithmic {
            low = low.max(high / 10_f64.powf(MOST_DECADES));
            if low * 1.2 > high {
                (low, high) = (low / 2.0, high * 2.0);
            }
        } else if low >= 0.0 && axis.ends.0.is_none() {
            low = 0.0;
        }
        let (low, high) = (axis.ends.0.unwrap_or(low), axis.ends.1.unwrap_or(high));
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        Scale { low, high, logarithmic: axis.logarithmic && low > 0.0, pixels }
    }

    /// The pixel of a value; values outside lie at the ends.
    pub(crate) fn pixel(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// The values to name, with their texts.
    pub(crate) fn ticks(&self, axis: &Axis) -> Vec<(f64, String)> {
        if !axis.categories.is_empty() {
            let step = axis.categories.len().div_ceil(MOST_LABELS);
            let named = axis.categories.iter().enumerate().step_by(step);
            return named.map(|(index, name)| (index as f64, name.clone())).collect();
        }
        if self.logarithmic {
            return powers(self.low, self.high).into_iter().map(|value| (value, short(axis.unit, value))).collect();
        }
        let (size, _) = self.unit(axis);
        let (step, values) = ticks(self.low / size, self.high / size);
        let decimals = if step < 1.0 { (-step.log10()).ceil() as usize } else { 0 };
        let text = |value: f64| match decimals {
            0 => grouped(value.round() as i64),
            _ => format!("{value:.decimals$}"),
        };
        values.into_iter().map(|value| (value * size, text(value))).collect()
    }

    /// What the numbers at the ticks are multiplied by, and its name.
    fn unit(&self, axis: &Axis) -> (f64, &'static str) {
        let greatest = self.low.abs().max(self.high.abs());
        match axis.unit {
            // Exact as long as the numbers are short.
            Unit::Bytes if greatest < 1e7 => (1.0, "bytes"),
            Unit::Plain if greatest >= 1e9 => (1e9, "× 10⁹"),
            Unit::Plain if greatest >= 1e7 => (1e6, "× 10⁶"),
            unit => unit.suited(greatest),
        }
    }

    /// The axis' name with the unit of its numbers: `time, ms`.
    pub(crate) fn title(&self, axis: &Axis) -> String {
        let unit = if self.logarithmic || !axis.categories.is_empty() { "" } else { self.unit(axis).1 };
        match (axis.name.as_str(), unit) {
            (name, "") => name.to_owned(),
            ("", unit) => unit.to_owned(),
            (name, unit) if name == unit => name.to_owned(),
            (name, unit) => format!("{name}, {unit}"),
        }
    }
}

/// Round values from `low` to `high`, at most eight, and the step between them.
pub(crate) fn ticks(low: f64, high: f64) -> (f64, Vec<f64>) {
    let rough = (high - low) / 6.0;
    if !(rough.is_finite() && rough > 0.0) {
        return (1.0, vec![low]);
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= rough * (1.0 - 1e-9)).unwrap_or(rough);
    // Counted in whole steps, so that no error adds up; a hair of room at the ends against rounding.
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (step, (first..=last).map(|number| number as f64 * step).collect())
}

/// Powers of ten between both, also their doubles and fivefolds if there are few; every second, third... if many.
fn powers(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let decades = (high / low).log10();
    let factors: &[f64] = if decades < 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = (decades / 7.0).ceil().max(1.0) as i32;
    let all = (first..=last).filter(|power| power.rem_euclid(every) == 0);
    let all = all.flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
    all.filter(|value| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value)).collect()
}

/// A round value with its unit and no more digits than it needs.
fn short(unit: Unit, value: f64) -> String {
    let (size, name) = unit.suited(value);
    let scaled = value / size;
    let digits = (scaled * 1e6).round() / 1e6;
    let number = match scaled.abs() {
        1e4.. => grouped(digits as i64),
        ..1e-4 if scaled != 0.0 => format!("{scaled:.0e}"),
        _ => digits.to_string(),
    };
    match name {
        "" | "packets" => number,
        name => format!("{number} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(0.0, 10.0).1, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(-3.0, 3.0).1, [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]);
        assert_eq!(ticks(0.0, 0.0).1, [0.0]);
    }

    #[test]
    fn numbers_at_ticks_share_a_prefix() {
        let axis = Axis::new("throughput", Unit::BitsPerSecond);
        let scale = Scale::new(&axis, [9.6e6].into_iter(), (0.0, 100.0));
        let texts: Vec<String> = scale.ticks(&axis).into_iter().map(|tick| tick.1).collect();
        assert_eq!(texts, ["0", "2", "4", "6", "8"]);
        assert_eq!(scale.title(&axis), "throughput, Mbit/s");
        let axis = Axis::new("time", Unit::Seconds);
        let scale = Scale::new(&axis, [0.0, 1.2].into_iter(), (0.0, 100.0));
        let texts: Vec<String> = scale.ticks(&axis).into_iter().map(|tick| tick.1).collect();
        assert_eq!(texts, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "1.2"]);
    }

    #[test]
    fn large_numbers_without_a_unit_have_a_factor() {
        let axis = Axis::new("pacing", Unit::Plain);
        for (greatest, title, last) in
            [(9_999_999.0, "pacing", "8\u{202f}000\u{202f}000"), (1e10, "pacing, × 10⁹", "10")]
        {
            let scale = Scale::new(&axis, [greatest].into_iter(), (0.0, 100.0));
            assert_eq!(scale.title(&axis), title);
            assert_eq!(scale.ticks(&axis).last().map(|tick| tick.1.as_str()), Some(last));
        }
    }

    #[test]
    fn small_numbers_without_a_unit_have_an_exponent() {
        assert_eq!(short(Unit::Plain, 2e-7), "2e-7");
        assert_eq!(short(Unit::Plain, 0.001), "0.001");
        assert_eq!(short(Unit::Plain, 20_000.0), "20\u{202f}000");
    }

    #[test]
    fn a_logarithmic_axis_names_powers_of_ten() {
        let axis = Axis::logarithmic("time", Unit::Seconds);
        let scale = Scale::new(&axis, [0.0, 1e-4, 2.0].into_iter(), (0.0, 100.0));
        let texts: Vec<String> = scale.ticks(&axis).into_iter().map(|tick| tick.1).collect();
        assert_eq!(texts, ["100 µs", "1 ms", "10 ms", "100 ms", "1 s"]);
        assert_eq!(scale.pixel(0.0), 0.0, "what has no logarithm lies at the low end");
        assert!((scale.pixel(2.0) - 100.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn ticks_lie_within_and_are_few(low in -1e12_f64..1e12, width in 1e-9_f64..1e12) {
            let high = low + width;
            prop_assume!(width > low.abs() * 1e-6);
            let (step, values) = ticks(low, high);
            prop_assert!((2..=8).contains(&values.len()), "{:?}", values);
            prop_assert!(values.iter().all(|value| (low - step * 1e-6..=high + step * 1e-6).contains(value)));
        }

        #[test]
        fn pixels_are_finite_and_inside(
            values in prop::collection::vec(any::<f64>(), 0..20), logarithmic: bool, at in any::<f64>(),
        ) {
            let axis = Axis { logarithmic, ..Axis::default() };
            let scale = Scale::new(&axis, values.into_iter(), (10.0, 90.0));
            let pixel = scale.pixel(at);
            prop_assert!((10.0 - 1e-9..=90.0 + 1e-9).contains(&pixel), "{pixel}");
            prop_assert!(scale.ticks(&axis).len() < 60);
        }
    }
}
