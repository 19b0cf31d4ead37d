//! Quantities as people write them: a decimal number and a unit. Everything is exact, or refused. Programs, networks and
//! the command line have the same words for units.

use std::time::Duration;

/// Why a text is not the quantity it should be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QuantityError {
    /// Not a duration.
    #[error("`{0}` is not a duration; write a number and a unit, such as 10s, 1.5s, 5min, 1h, 200ms, 50us or 7ns")]
    Duration(String),
    /// Not a bit rate.
    #[error("`{0}` is not a rate; write a number and a unit, such as 10Mbit/s (also bit/s, kbit/s, Gbit/s, Tbit/s)")]
    Rate(String),
    /// Not a size.
    #[error("`{0}` is not a size; write a whole number of bytes with a unit, such as 1500B, 64kB, 10MB, 1GB or 64KiB")]
    Size(String),
    /// Neither packets nor bytes.
    #[error("`{0}` is not an amount of packets or bytes; write a number and a unit, such as 100 packets or 64kB")]
    Amount(String),
    /// Not how often something happens.
    #[error("`{0}` is not a frequency; write a number above 0 with a unit, such as 100/s, 5/ms or 30/min")]
    Frequency(String),
    /// Not a share.
    #[error("`{0}` is not a share; write a number from 0 to 1, or percents such as 0.5%")]
    Share(String),
}

/// An amount of packets or bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// Packets.
    Packets(u64),
    /// Bytes.
    Bytes(u64),
}

const DURATIONS: [(&str, u64); 7] = [
    ("", 1_000_000_000),
    ("s", 1_000_000_000),
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

const RATES: [(&str, u64); 10] = [
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", 1_000_000_000_000),
    ("bps", 1),
    ("kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("Tbps", 1_000_000_000_000),
];

const SIZES: [(&str, u64); 8] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// What a unit measures, and in which smallest unit it is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Time, in nanoseconds.
    Nanoseconds,
    /// Rates, in bits per second.
    BitsPerSecond,
    /// Sizes, in bytes.
    Bytes,
}

/// All units by name, for a message.
pub const UNITS: &str = "ns us ms s min h, B kB MB GB TB KiB MiB GiB, bit/s kbit/s Mbit/s Gbit/s Tbit/s";

/// How many of the smallest unit this one is, and what it measures.
pub fn unit(name: &str) -> Option<(u64, Measure)> {
    let tables = [(&DURATIONS[1..], Measure::Nanoseconds), (&RATES, Measure::BitsPerSecond), (&SIZES, Measure::Bytes)];
    tables.into_iter().find_map(|(table, measure)| Some((table.iter().find(|(known, _)| *known == name)?.1, measure)))
}

/// A duration: a decimal number and a unit (`ns`, `us`, `ms`, `s`, `min`, `h`); without a unit, seconds.
///
/// # Errors
/// [`QuantityError::Duration`], also when the value is negative, finer than a nanosecond, or beyond 292 years.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let nanoseconds = with_unit(text, &DURATIONS).filter(|value| i64::try_from(*value).is_ok());
    nanoseconds.map(Duration::from_nanos).ok_or_else(|| QuantityError::Duration(text.to_owned()))
}

/// Bits per second of a rate (`bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, `Tbit/s`, all decimal; `bps` is `bit/s`).
///
/// # Errors
/// [`QuantityError::Rate`], also when the value is finer than a bit per second or beyond 64 bits.
pub fn parse_rate(text: &str) -> Result<u64, QuantityError> {
    with_unit(text, &RATES).ok_or_else(|| QuantityError::Rate(text.to_owned()))
}

/// Bytes of a size: decimal units (`B`, `kB`, `MB`, `GB`, `TB`) or binary ones (`KiB`, `MiB`, `GiB`).
///
/// # Errors
/// [`QuantityError::Size`], also when the value is no whole number of bytes or beyond 64 bits.
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    with_unit(text, &SIZES).ok_or_else(|| QuantityError::Size(text.to_owned()))
}

/// Packets (`100 packets`) or bytes (`64kB`).
///
/// # Errors
/// [`QuantityError::Amount`].
pub fn parse_amount(text: &str) -> Result<Amount, QuantityError> {
    match with_unit(text, &[("packets", 1), ("packet", 1)]) {
        Some(packets) => Ok(Amount::Packets(packets)),
        None => with_unit(text, &SIZES).map(Amount::Bytes).ok_or_else(|| QuantityError::Amount(text.to_owned())),
    }
}

/// Nanoseconds between two events that happen so often (`100/s`, `5/ms`, `30/min`); at least a thousandth of one.
///
/// # Errors
/// [`QuantityError::Frequency`].
pub fn parse_frequency(text: &str) -> Result<f64, QuantityError> {
    let wrong = || QuantityError::Frequency(text.to_owned());
    let (number, unit) = text.split_once('/').ok_or_else(wrong)?;
    let unit = DURATIONS.iter().find(|(name, _)| !name.is_empty() && *name == unit.trim()).ok_or_else(wrong)?.1;
    let gap = unit as f64 / decimal(number.trim()).ok_or_else(wrong)?;
    if (1e-3..=1e17).contains(&gap) { Ok(gap) } else { Err(wrong()) }
}

/// A share from 0 to 1, written so or in percents (`1%`).
///
/// # Errors
/// [`QuantityError::Share`].
pub fn parse_share(text: &str) -> Result<f64, QuantityError> {
    let share = match text.strip_suffix('%') {
        Some(percents) => decimal(percents.trim()).map(|percents| percents / 100.0),
        None => decimal(text),
    };
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| QuantityError::Share(text.to_owned()))
}

/// A plain decimal number: digits, perhaps a point and more digits.
fn decimal(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if digits(whole) && digits(fraction) { text.parse().ok() } else { None }
}

/// The number times its unit, exactly.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let unit_at = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let scaled = format!("{whole}{fraction}").parse::<u128>().ok()?.checked_mul(u128::from(unit))?;
    if scaled % scale == 0 { u64::try_from(scaled / scale).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_one_meaning() {
        assert_eq!(unit("us"), Some((1_000, Measure::Nanoseconds)));
        assert_eq!(unit("GB"), Some((1_000_000_000, Measure::Bytes)));
        for name in UNITS.split([' ', ',']).filter(|name| !name.is_empty()) {
            assert!(unit(name).is_some(), "{name}");
        }
        for name in ["", "S", "mb", "Mbit", "/s", "packets"] {
            assert_eq!(unit(name), None, "{name}");
        }
        for prefix in ["", "k", "M", "G", "T"] {
            assert_eq!(unit(&format!("{prefix}bit/s")), unit(&format!("{prefix}bps")));
        }
    }

    #[test]
    fn durations() {
        for (text, nanoseconds) in [
            ("10s", 10_000_000_000),
            ("1.5s", 1_500_000_000),
            ("0.25", 250_000_000),
            ("200ms", 200_000_000),
            ("1.5us", 1_500),
            ("7ns", 7),
            ("2min", 120_000_000_000),
            ("1.5h", 5_400_000_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
        for text in ["", "s", ".5s", "1.s", "1.2.3s", "-1s", "1d", "0.5ns", "99999999999999s", "1 0s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_and_sizes() {
        assert_eq!(parse_rate("10Mbit/s"), Ok(10_000_000));
        assert_eq!(parse_rate("10Mbps"), Ok(10_000_000));
        assert_eq!(parse_rate("2.5 Gbit/s"), Ok(2_500_000_000));
        for text in ["10", "10mbps", "10MBps", "0.5bit/s", "-1bit/s", "99999999999Tbit/s", "1e3bit/s", "Mbit/s"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert_eq!(parse_size("1500B"), Ok(1_500));
        assert_eq!(parse_size("64kB"), Ok(64_000));
        assert_eq!(parse_size("64KiB"), Ok(65_536));
        assert_eq!(parse_size("0.125KiB"), Ok(128));
        assert!(parse_size("0.1KiB").is_err() && parse_size("10").is_err() && parse_size("1KB").is_err());
        assert_eq!(parse_amount("100 packets"), Ok(Amount::Packets(100)));
        assert_eq!(parse_amount("1 packet"), Ok(Amount::Packets(1)));
        assert_eq!(parse_amount("64kB"), Ok(Amount::Bytes(64_000)));
        assert!(parse_amount("100").is_err() && parse_amount("1.5 packets").is_err());
    }

    #[test]
    fn frequencies_and_shares() {
        assert_eq!(parse_frequency("100/s"), Ok(10_000_000.0));
        assert_eq!(parse_frequency("0.5/ms"), Ok(2_000_000.0));
        for text in ["100", "0/s", "-1/s", "inf/s", "1/", "1/d"] {
            assert!(parse_frequency(text).is_err(), "{text}");
        }
        assert_eq!(parse_share("1%"), Ok(0.01));
        assert_eq!(parse_share("0.25"), Ok(0.25));
        for text in ["101%", "-1%", "nan", "1.5", "%", "1e-3"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        /// Whole numbers of any unit are that many times the unit.
        #[test]
        fn whole_numbers_are_multiples(number in 0u64..1_000_000, unit in 0usize..SIZES.len()) {
            let (name, factor) = SIZES[unit];
            proptest::prop_assert_eq!(parse_size(&format!("{number}{name}")), Ok(number * factor));
        }

        /// No text makes a parser panic.
        #[test]
        fn any_text_is_taken_or_refused(text in ".{0,20}|[0-9.]{0,40}[a-zA-Z/%]{0,6}") {
            let _ = (parse_duration(&text), parse_rate(&text), parse_size(&text), parse_amount(&text));
            let _ = (parse_frequency(&text), parse_share(&text));
        }
    }
}
