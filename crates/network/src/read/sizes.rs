//! Sizes and gaps of traffic.

use super::Reader;
use crate::description::values::{PaceKind, PauseValue, SizeTable, SizeValue};
use crate::description::{self, Arrivals};
use crate::traffic::{Gap, Size};
use std::sync::Arc;
use weftwire_pace::{Setting, Solver, TimeUnit};
use weftwire_text::Span;
use weftwire_text::quantity::{parse_share, parse_size};

/// Points of a distribution; no file has more.
const MOST_POINTS: usize = 100_000;

/// No flow or datagram of a distribution is larger: sums of many stay within 64 bits.
const LARGEST: u64 = 1 << 50;

/// Bytes that a packet of the published distributions stands for.
const SEGMENT: u64 = 1_460;

/// Flow sizes of a cluster that serves web search, in segments (Alizadeh et al., "Data Center TCP", SIGCOMM 2010, as
/// tabulated for pFabric, SIGCOMM 2013).
const WEBSEARCH: [(u64, f64); 12] = [
    (1, 0.0),
    (6, 0.15),
    (13, 0.2),
    (19, 0.3),
    (33, 0.4),
    (53, 0.53),
    (133, 0.6),
    (667, 0.7),
    (1_333, 0.8),
    (3_333, 0.9),
    (6_667, 0.97),
    (20_000, 1.0),
];

/// Flow sizes of a cluster that mines data, in segments (Greenberg et al., "VL2", SIGCOMM 2009, as tabulated for
/// pFabric, SIGCOMM 2013).
const DATAMINING: [(u64, f64); 9] =
    [(1, 0.0), (1, 0.5), (2, 0.6), (3, 0.7), (7, 0.8), (267, 0.9), (2_107, 0.95), (66_667, 0.99), (666_667, 1.0)];

impl Reader<'_> {
    /// A size as the file says it.
    pub fn size(&mut self, value: &SizeValue, span: Span) -> Option<Size> {
        match value {
            SizeValue::Word(word) => match word.as_str() {
                "websearch" => Some(in_segments(&WEBSEARCH)),
                "datamining" => Some(in_segments(&DATAMINING)),
                text => match parse_size(text) {
                    Ok(bytes) => self.bytes(bytes, span).map(Size::Constant),
                    Err(error) => {
                        self.problems.error_help(span, error.to_string(), "or `websearch`, `datamining`, or a table");
                        None
                    }
                },
            },
            SizeValue::Table(table) => self.distribution(table, span),
        }
    }

    fn bytes(&mut self, bytes: u64, span: Span) -> Option<u64> {
        if (1..=LARGEST).contains(&bytes) {
            return Some(bytes);
        }
        self.problems.error(span, "a size must be at least 1B and at most a petabyte");
        None
    }

    fn distribution(&mut self, table: &SizeTable, span: Span) -> Option<Size> {
        let place = |key: &str| table.places.value(key);
        match (&table.exponential, &table.uniform, &table.pareto, &table.file) {
            (Some(mean), None, None, None) => {
                self.bytes(mean.0, place("exponential")).map(|mean| Size::Exponential(mean as f64))
            }
            (None, Some(bounds), None, None) => {
                let [least, most] = bounds.as_slice() else {
                    let help = "write uniform = [\"1kB\", \"9kB\"]";
                    self.problems.error_help(place("uniform"), "two sizes belong here", help);
                    return None;
                };
                let (least, most) = (self.bytes(least.0, place("uniform"))?, self.bytes(most.0, place("uniform"))?);
                if least > most {
                    self.problems.error(place("uniform"), "the first size must be the smaller one");
                }
                Some(Size::Uniform(least, most))
            }
            (None, None, Some(pareto), None) => {
                let span = pareto.places.span;
                let (least, most) = (self.bytes(pareto.minimum.0, span)?, self.bytes(pareto.maximum.0, span)?);
                if least >= most {
                    self.problems.error(span, "`minimum` must be less than `maximum`");
                }
                if !(0.01..=100.0).contains(&pareto.shape) {
                    self.problems.error(pareto.places.value("shape"), "the shape must be from 0.01 to 100");
                }
                Some(Size::Pareto(pareto.shape, least, most))
            }
            (None, None, None, Some(name)) => self.size_file(name, place("file")),
            _ => {
                let help = "write one of exponential, uniform, pareto and file";
                self.problems.error_help(span, "this is not one distribution", help);
                None
            }
        }
    }

    fn size_file(&mut self, name: &str, span: Span) -> Option<Size> {
        if let Some(size) = self.sizes.get(name) {
            return Some(size.clone());
        }
        let points = self.lines(name, span, MOST_POINTS, |size, share| {
            let size = size.parse().ok().or_else(|| parse_size(size).ok());
            let size = size.filter(|size| (1..=LARGEST).contains(size));
            let size = size.ok_or("the first value must be bytes, at least 1 and at most a petabyte")?;
            Ok((size, parse_share(share).map_err(|error| error.to_string())?))
        })?;
        let ascending = points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1);
        let whole =
            points.first().is_some_and(|first| first.1 == 0.0) && points.last().is_some_and(|last| last.1 == 1.0);
        if !ascending || !whole {
            let help = "lines `bytes,cumulative share`, both ascending, the share from 0 to 1";
            self.problems.error_help(span, format!("`{name}` is not a cumulative distribution"), help);
            return None;
        }
        let size = Size::Empirical(Arc::new(points));
        self.sizes.insert(name.to_owned(), size.clone());
        Some(size)
    }

    /// The gap between begins: from `rate`, `gap` or `envelope`.
    pub fn gap(&mut self, traffic: &description::Traffic, size: &Size, default: Arrivals) -> Option<Gap> {
        if let Some(envelope) = &traffic.envelope {
            return self.envelope(traffic, &envelope.text, size);
        }
        let arrivals = traffic.arrivals.unwrap_or(default);
        let (key, mean) = match (traffic.rate, traffic.gap) {
            (Some(_), Some(_)) => {
                let span = traffic.places.value("gap");
                self.problems.error_help(span, "both `rate` and `gap`", "keep one of them");
                return None;
            }
            (None, None) => {
                let help = "add `rate = \"100/s\"`, `rate = \"1Mbit/s\"`, `gap = \"10ms\"` or an `envelope`";
                self.problems.error_help(traffic.places.span, "it is not said how often", help);
                return None;
            }
            (None, Some(gap)) => ("gap", gap.0 as f64),
            (Some(pace), None) => match pace.0 {
                PaceKind::Every(gap) => ("rate", gap),
                PaceKind::Bits(rate) => ("rate", size.mean() * 8e9 / rate as f64),
            },
        };
        if !(1.0..=1e17).contains(&mean) {
            let help = "at least 1ns and at most 24000h from one to the next";
            self.problems.error_help(traffic.places.value(key), "this is too often or too seldom", help);
            return None;
        }
        Some(match arrivals {
            Arrivals::Constant => Gap::Constant(mean.round() as i64),
            Arrivals::Poisson => Gap::Exponential(mean),
        })
    }

    /// A rate envelope, its times in seconds.
    fn envelope(&mut self, traffic: &description::Traffic, text: &str, size: &Size) -> Option<Gap> {
        let places = &traffic.places;
        let others = [traffic.rate.is_some(), traffic.gap.is_some(), traffic.arrivals.is_some()];
        if let Some((key, _)) = ["rate", "gap", "arrivals"].into_iter().zip(others).find(|(_, given)| *given) {
            let message = format!("both `envelope` and `{key}`");
            self.problems.error_help(places.value(key), message, "keep one of them");
        }
        let setting = Setting { round_trip: traffic.rtt.map(|rtt| rtt.0 as f64 / 1e9), packet_size: Some(size.mean()) };
        let span = places.value("envelope");
        let envelope = match weftwire_pace::parse(text, &setting) {
            Ok(envelope) => envelope,
            Err(fault) => {
                self.problems.error_help(span, fault.to_text(text), "`weft pace times` tries envelopes");
                return None;
            }
        };
        if envelope.unit == TimeUnit::RoundTrip {
            let help = "say how long one is: `rtt = \"100ms\"`";
            self.problems.error_help(span, "this envelope counts in round trips", help);
            return None;
        }
        // What ends later just ends.
        if let Err(error) = Solver::new(&envelope).time_of_packet(2) {
            self.problems.error(span, error.to_string());
            return None;
        }
        Some(Gap::Envelope(Arc::new(envelope)))
    }

    /// A pause.
    pub fn pause(&mut self, value: Option<&PauseValue>, span: Span) -> Gap {
        match value {
            None => Gap::Constant(0),
            Some(PauseValue::Constant(duration)) => Gap::Constant(duration.0),
            Some(PauseValue::Table(table)) => {
                if table.exponential.0 == 0 {
                    self.problems.error(span, "the mean must be above 0s");
                }
                Gap::Exponential(table.exponential.0 as f64)
            }
        }
    }
}

fn in_segments(points: &[(u64, f64)]) -> Size {
    Size::Empirical(Arc::new(points.iter().map(|(segments, share)| (segments * SEGMENT, *share)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the mean over many equally likely quantiles.
    #[test]
    fn means() {
        for (shape, least, most) in [(1.2, 1_000, 1_000_000), (1.0, 1_000, 100_000), (2.5, 100, 10_000)] {
            let (l, m) = (f64::from(least), f64::from(most));
            let quantile = |u: f64| l * (1.0 - u * (1.0 - (l / m).powf(shape))).powf(-1.0 / shape);
            let slow = (0..200_000).map(|i| quantile((f64::from(i) + 0.5) / 200_000.0)).sum::<f64>() / 200_000.0;
            let mean = Size::Pareto(shape, least as u64, most as u64).mean();
            assert!((mean / slow - 1.0).abs() < 1e-3, "{shape}: {mean} {slow}");
        }
        assert_eq!(Size::Uniform(1, 3).mean(), 2.0);
        // The published mean of the web search flows is 1.6 MB.
        let web = in_segments(&WEBSEARCH).mean();
        assert!((1.5e6..1.8e6).contains(&web), "{web}");
    }
}
