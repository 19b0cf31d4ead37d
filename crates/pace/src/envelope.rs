//! Rate envelopes: how fast packets may go.

use crate::expression::Expression;
use crate::pieces::Pieces;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rate envelope. Packets are numbered; the one that has the number [`Envelope::origin`] goes at time 0, with all before it.
#[derive(Clone, PartialEq, Debug)]
pub struct Envelope {
    /// How fast.
    pub shape: Shape,
    /// What its times are counted in.
    pub unit: TimeUnit,
}

/// How fast packets go. Times are in the envelope's unit, rates in packets per unit.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    /// Slow start: N(t) = window · 2^(t / doubling), T(n) = doubling · log2(n / window).
    Exponential {
        /// Packets sent at time 0.
        window: f64,
        /// In what time the packets sent double: a round trip.
        doubling: f64,
    },
    /// Straight lines: constant, linear increase, token bucket, BBR's gains, sawtooth, rates from a table.
    Pieces {
        /// The number of the packet at time 0: a token bucket's burst, else 1.
        origin: f64,
        /// The rates.
        pieces: Pieces,
    },
    /// CUBIC's growth after a loss (RFC 9438, section 4.2).
    Cubic(Cubic),
    /// Gaps at random, exponentially distributed: a Poisson process, for probing.
    Poisson {
        /// The mean rate.
        rate: f64,
        /// Chooses the gaps; not 0.
        seed: u32,
    },
    /// R(t), packets per unit.
    Rate(Expression),
    /// N(t), packets sent until then.
    Sent(Expression),
    /// T(n), the time of packet n.
    Time(Expression),
}

/// CUBIC's window over time, W(t) = C (t - K)³ + W_max with K = cbrt(W_max (1 - β) / C), sent once in each round trip.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cubic {
    /// The window at the last loss, W_max, in packets.
    pub window: f64,
    /// The round trip in seconds.
    pub round_trip: f64,
    /// C, in packets per second cubed; 0.4 in RFC 9438.
    pub growth: f64,
    /// β, what is left of the window after a loss; 0.7 in RFC 9438.
    pub decrease: f64,
}

impl Cubic {
    /// K: when the window is W_max again, in seconds.
    pub fn plateau(&self) -> f64 {
        libm::cbrt(self.window * (1.0 - self.decrease) / self.growth)
    }

    /// W(t) / RTT.
    pub fn rate(&self, time: f64) -> f64 {
        let from_plateau = time - self.plateau();
        (self.growth * from_plateau * from_plateau * from_plateau + self.window) / self.round_trip
    }

    /// The integral of the rate from one time to another.
    pub fn sent_between(&self, from: f64, to: f64) -> f64 {
        // (v⁴ - u⁴) / (v - u) = (v² + u²)(v + u): no digits are lost for times close together.
        let (u, v) = (from - self.plateau(), to - self.plateau());
        (to - from) * (self.growth / 4.0 * (v * v + u * u) * (v + u) + self.window) / self.round_trip
    }
}

/// What times are counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// Round-trip times: the machine scales by the one it measures.
    #[default]
    RoundTrip,
    /// Seconds.
    Second,
}

impl TimeUnit {
    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::RoundTrip => "RTT",
            TimeUnit::Second => "s",
        }
    }
}

/// What a text leaves open.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Setting {
    /// The round trip in seconds: with it, times are in seconds and formulas may mix both.
    pub round_trip: Option<f64>,
    /// Bytes of a packet: with it, rates may be in bits and bytes.
    pub packet_size: Option<f64>,
}

impl Envelope {
    /// The number of the packet that goes at time 0: n0. Those in front of it go with it.
    pub fn origin(&self) -> f64 {
        match &self.shape {
            Shape::Exponential { window, .. } => *window,
            Shape::Pieces { origin, .. } => *origin,
            Shape::Sent(sent) => sent.value(0.0),
            _ => 1.0,
        }
    }

    /// The rate at a time, in packets per unit, if it is a function of time. For N(t) it is the slope.
    pub fn rate(&self, time: f64) -> Option<f64> {
        match &self.shape {
            Shape::Exponential { window, doubling } => {
                Some(std::f64::consts::LN_2 / doubling * window * libm::exp2(time / doubling))
            }
            Shape::Pieces { pieces, .. } => Some(pieces.rate(time)),
            Shape::Cubic(cubic) => Some(cubic.rate(time)),
            Shape::Poisson { rate, .. } => Some(*rate),
            Shape::Rate(rate) => Some(rate.value(time)),
            Shape::Sent(sent) => Some(sent.value_and_slope(time).1),
            Shape::Time(_) => None,
        }
    }
}
