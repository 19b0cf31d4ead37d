//! The named shapes.

use crate::envelope::{Cubic, Shape, TimeUnit};
use crate::fault::Fault;
use crate::formula::{Parser, Wanted};
use crate::lexer::TokenKind;
use crate::pieces::{Piece, Pieces};
use std::ops::Range;

/// An argument of a shape: its name, what it is, and its value if it is left away.
type Parameter = (&'static str, Wanted, Option<f64>);

const SHAPES: [(&str, &[Parameter]); 10] = [
    ("constant", &[("rate", Wanted::Rate, None)]),
    ("slow_start", &[("window", Wanted::Packets, Some(1.0))]),
    ("exponential", &[("window", Wanted::Packets, Some(1.0))]),
    ("linear", &[("start", Wanted::Packets, Some(1.0)), ("slope", Wanted::Packets, Some(1.0))]),
    ("ramp", &[("rate", Wanted::Rate, None), ("slope", Wanted::Slope, None)]),
    (
        "cubic",
        &[
            ("window", Wanted::Packets, None),
            ("rtt", Wanted::Time, None),
            ("growth", Wanted::Plain, Some(0.4)),
            ("decrease", Wanted::Plain, Some(0.7)),
        ],
    ),
    (
        "bbr",
        &[
            ("bandwidth", Wanted::Rate, None),
            ("phase", Wanted::Time, Some(1.0)),
            ("up", Wanted::Plain, Some(1.25)),
            ("down", Wanted::Plain, Some(0.75)),
            ("cruise", Wanted::Plain, Some(6.0)),
        ],
    ),
    ("token_bucket", &[("rate", Wanted::Rate, None), ("burst", Wanted::Packets, None)]),
    ("sawtooth", &[("low", Wanted::Rate, None), ("high", Wanted::Rate, None), ("period", Wanted::Time, None)]),
    ("poisson", &[("rate", Wanted::Rate, None), ("seed", Wanted::Plain, Some(1.0))]),
];

/// Reads `NAME` or `NAME(argument, name = argument)`.
pub(crate) fn parse(parser: &mut Parser<'_>) -> Result<Shape, Fault> {
    let name = parser.advance();
    let TokenKind::Name(text) = name.kind else { return Err(Fault::new(name.span, "expected a shape's name")) };
    let Some((known, parameters)) = SHAPES.iter().find(|(known, _)| *known == text) else {
        let names: Vec<&str> = SHAPES.iter().map(|(name, _)| *name).collect();
        return Err(Fault::new(name.span, format!("`{text}` is no shape"))
            .help(format!("shapes are {}; formulas begin with `R(t) =`, `N(t) =` or `T(n) =`", names.join(", "))));
    };
    let given = arguments(parser, known, parameters)?;
    let mut values = Vec::new();
    for ((parameter, wanted, default), given) in parameters.iter().zip(given) {
        let (value, span) = match (given, default) {
            (Some(given), _) => given,
            (None, Some(default)) => {
                // A default time is a round trip.
                let is_time = *wanted == Wanted::Time;
                let scale = if is_time { parser.setting().round_trip.unwrap_or(1.0) } else { 1.0 };
                if is_time && parser.setting().round_trip.is_none() && parser.unit() == TimeUnit::Second {
                    return Err(Fault::new(
                        name.span,
                        format!("`{known}` in seconds needs the argument `{parameter}`"),
                    )
                    .help("without it, it is the round trip, which `--rtt 100ms` gives"));
                }
                (default * scale, name.span.clone())
            }
            (None, None) => {
                let all: Vec<&str> = parameters.iter().map(|(name, ..)| *name).collect();
                return Err(Fault::new(name.span, format!("`{known}` needs the argument `{parameter}`"))
                    .help(format!("its arguments are {}", all.join(", "))));
            }
        };
        values.push((*parameter, value, span));
    }
    build(known, &Values(values), parser)
}

type Given = Vec<Option<(f64, Range<usize>)>>;

fn arguments(parser: &mut Parser<'_>, shape: &str, parameters: &[Parameter]) -> Result<Given, Fault> {
    let mut given: Given = vec![None; parameters.len()];
    if !parser.take("(") {
        return Ok(given);
    }
    let mut position = 0;
    while !parser.at_sign(")") {
        let start = parser.peek().span.clone();
        let index = match parser.named_argument() {
            Some(name) => parameters.iter().position(|(known, ..)| *known == name).ok_or_else(|| {
                let all: Vec<&str> = parameters.iter().map(|(name, ..)| *name).collect();
                Fault::new(start.clone(), format!("`{shape}` has no argument `{name}`"))
                    .help(format!("its arguments are {}", all.join(", ")))
            })?,
            None => position,
        };
        let Some((name, wanted, _)) = parameters.get(index) else {
            return Err(Fault::new(start, format!("`{shape}` has at most {} argument(s)", parameters.len())));
        };
        if given[index].is_some() {
            return Err(Fault::new(start, format!("the argument `{name}` is given twice")));
        }
        given[index] = Some(parser.argument(*wanted)?);
        position = index + 1;
        if !parser.take(",") {
            break;
        }
    }
    parser.expect(")", "to close the arguments")?;
    Ok(given)
}

/// The arguments by name.
struct Values(Vec<(&'static str, f64, Range<usize>)>);

impl Values {
    fn get(&self, name: &str) -> f64 {
        self.0.iter().find(|(known, ..)| *known == name).map_or(f64::NAN, |(_, value, _)| *value)
    }

    /// The argument if it is in the range.
    fn within(&self, name: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, Fault> {
        let value = self.get(name);
        if range.contains(&value) {
            return Ok(value);
        }
        let span = self.0.iter().find(|(known, ..)| *known == name).map_or(0..0, |(_, _, span)| span.clone());
        let ends = (range.start(), range.end());
        let wanted = match ends {
            (low, high) if *high >= 1e15 => format!("more than {}", if *low < 1e-9 { 0.0 } else { *low }),
            (low, high) => format!("from {low} to {high}"),
        };
        Err(Fault::new(span, format!("`{name}` is {value}; it must be {wanted}")))
    }

    fn positive(&self, name: &str) -> Result<f64, Fault> {
        self.within(name, 1e-12..=1e15)
    }
}

fn build(name: &str, values: &Values, parser: &Parser<'_>) -> Result<Shape, Fault> {
    let pieces = |origin: f64, pieces: Pieces| Shape::Pieces { origin, pieces };
    let endless = |rate: f64, slope: f64| Pieces::once(vec![Piece { duration: f64::INFINITY, rate, slope }]);
    Ok(match name {
        "constant" => pieces(1.0, endless(values.positive("rate")?, 0.0)),
        "linear" => {
            // N = start t + slope t (t - 1) / 2, so that slope more packets go in each round trip than in the one before.
            let (start, slope) = (values.positive("start")?, values.positive("slope")?);
            values.within("slope", 1e-12..=2.0 * start)?;
            let trip = parser.setting().round_trip.unwrap_or(1.0);
            pieces(1.0, endless((start - slope / 2.0) / trip, slope / (trip * trip)))
        }
        "ramp" => pieces(1.0, endless(values.within("rate", 0.0..=1e15)?, values.positive("slope")?)),
        "cubic" if parser.unit() == TimeUnit::RoundTrip => {
            let span = values.0.iter().find(|(name, ..)| *name == "rtt").map_or(0..0, |(_, _, span)| span.clone());
            return Err(Fault::new(span, "CUBIC grows with the seconds that pass, so its round trip is in seconds")
                .help("as in `cubic(window = 100 pkt, rtt = 100 ms)`"));
        }
        "cubic" => Shape::Cubic(Cubic {
            window: values.positive("window")?,
            round_trip: values.positive("rtt")?,
            growth: values.positive("growth")?,
            decrease: values.within("decrease", 0.0..=1.0)?,
        }),
        "bbr" => {
            let (bandwidth, phase) = (values.positive("bandwidth")?, values.positive("phase")?);
            let piece = |gain: f64, phases: f64| Piece { duration: phases * phase, rate: gain * bandwidth, slope: 0.0 };
            let mut cycle = vec![piece(values.positive("up")?, 1.0), piece(values.positive("down")?, 1.0)];
            let cruise = values.within("cruise", 0.0..=1e6)?;
            if cruise > 0.0 {
                cycle.push(piece(1.0, cruise));
            }
            pieces(1.0, Pieces::repeated(cycle))
        }
        "token_bucket" => pieces(values.within("burst", 1.0..=1e9)?, endless(values.positive("rate")?, 0.0)),
        "sawtooth" => {
            let (low, period) = (values.within("low", 0.0..=1e15)?, values.positive("period")?);
            let high = values.within("high", low.max(1e-12)..=1e15)?;
            let slope = (high - low) / period;
            pieces(1.0, Pieces::repeated(vec![Piece { duration: period, rate: low, slope }]))
        }
        "poisson" => {
            let seed = values.within("seed", 1.0..=4_294_967_295.0)? as u32;
            Shape::Poisson { rate: values.positive("rate")?, seed }
        }
        _ => Shape::Exponential {
            window: values.within("window", 1.0..=1e9)?,
            doubling: parser.setting().round_trip.unwrap_or(1.0),
        },
    })
}
