//! Numbers with units, as people read them: on axes and in tables.

use crate::grouped;

/// What a number counts. Values are in the unit itself: seconds, bits per second, bytes, a share from 0 to 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unit {
    /// A plain number.
    #[default]
    Plain,
    /// Seconds, down to nanoseconds.
    Seconds,
    /// Bits per second.
    BitsPerSecond,
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
    /// A share, shown in per cent.
    Share,
}

const TIMES: &[(f64, &str)] = &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];
const RATES: &[(f64, &str)] = &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
const BYTES: &[(f64, &str)] = &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")];

impl Unit {
    /// The unit with the prefix that suits values up to `greatest`: what to divide by, and its name.
    pub fn suited(self, greatest: f64) -> (f64, &'static str) {
        let steps = match self {
            Unit::Plain => return (1.0, ""),
            Unit::Packets => return (1.0, "packets"),
            Unit::Share => return (0.01, "%"),
            Unit::Seconds => TIMES,
            Unit::BitsPerSecond => RATES,
            Unit::Bytes => BYTES,
        };
        // A value just below a step (rounding) belongs to the step.
        let greatest = greatest.abs() * (1.0 + 1e-9);
        let fallback = if self == Unit::Seconds { steps[0] } else { steps[steps.len() - 1] };
        let smallest = steps[steps.len() - 1];
        steps.iter().copied().find(|(size, _)| greatest >= *size).unwrap_or(if greatest > 0.0 {
            smallest
        } else {
            fallback
        })
    }

    /// A value with three significant digits and its unit: `12.3 Mbit/s`. Whole numbers of things are exact.
    pub fn text(self, value: f64) -> String {
        if !value.is_finite() {
            return "-".to_owned();
        }
        let (size, name) = self.suited(value);
        let scaled = value / size;
        let number = match self {
            Unit::Bytes | Unit::Packets | Unit::Plain
                if size <= 1.0 && scaled.fract() == 0.0 && scaled.abs() < 9e15 =>
            {
                grouped(scaled as i64)
            }
            _ => significant(scaled),
        };
        match name {
            "" => number,
            "%" => format!("{number} %"),
            _ => format!("{number} {name}"),
        }
    }
}

/// Three significant digits, without an exponent up to a million.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // The exponent of the number as rounded: 9.996 is 10.0.
    let rounded = format!("{value:.2e}");
    let exponent: i32 = rounded.rsplit('e').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    match exponent {
        -4..=2 => format!("{value:.*}", (2 - exponent).max(0) as usize),
        3..=15 => grouped(value.round() as i64),
        _ => rounded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_prefix_that_suits_them() {
        let cases = [
            (Unit::BitsPerSecond, 12_345_678.0, "12.3 Mbit/s"),
            (Unit::BitsPerSecond, 999.0, "999 bit/s"),
            (Unit::BitsPerSecond, 0.0, "0 bit/s"),
            (Unit::Seconds, 0.0015, "1.50 ms"),
            (Unit::Seconds, 2e-6, "2.00 µs"),
            (Unit::Seconds, 0.0, "0 s"),
            (Unit::Seconds, 99.96, "100 s"),
            (Unit::Seconds, 12_345.0, "12\u{202f}345 s"),
            (Unit::Bytes, 999.0, "999 bytes"),
            (Unit::Bytes, 1_500_000.0, "1.50 MB"),
            (Unit::Share, 0.5, "50.0 %"),
            (Unit::Packets, 1_234_567.0, "1\u{202f}234\u{202f}567 packets"),
            (Unit::Plain, 0.25, "0.250"),
            (Unit::Plain, f64::NAN, "-"),
            (Unit::Plain, 1e-7, "1.00e-7"),
        ];
        for (unit, value, expected) in cases {
            assert_eq!(unit.text(value), expected);
        }
    }
}
