//! Sizes and gaps of traffic, drawn from a seed: the same numbers on every platform.

mod distributions;

pub use distributions::{NAMES, named};

use crate::chance::Chance;
use crate::model::{Traffic, TrafficKind};
use std::sync::Arc;

/// Time from one beginning to the next, in nanoseconds.
#[derive(Clone, PartialEq, Debug)]
pub enum Gap {
    /// Always the same.
    Constant(i64),
    /// Exponentially distributed with this mean: Poisson arrivals.
    Exponential(f64),
}

/// Sizes in bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum Size {
    /// Always the same.
    Constant(u64),
    /// Exponentially distributed with this mean, rounded, at least 1.
    Exponential(f64),
    /// Uniform between both, inclusive.
    Uniform(u64, u64),
    /// Bounded Pareto: shape, smallest, greatest.
    Pareto(f64, u64, u64),
    /// An empirical distribution: sizes with their cumulative shares, ascending, from share 0 to 1; linear between.
    Empirical(Arc<Vec<(u64, f64)>>),
}

impl Gap {
    /// The mean in nanoseconds.
    pub fn mean(&self) -> f64 {
        match *self {
            Gap::Constant(gap) => gap as f64,
            Gap::Exponential(mean) => mean,
        }
    }
}

impl Size {
    /// The mean in bytes (before rounding).
    pub fn mean(&self) -> f64 {
        match self {
            Size::Constant(size) => *size as f64,
            Size::Exponential(mean) => *mean,
            Size::Uniform(least, greatest) => (*least as f64 + *greatest as f64) / 2.0,
            Size::Pareto(_, least, greatest) if least >= greatest => *least as f64,
            Size::Pareto(shape, least, greatest) => {
                let (least, greatest) = (*least as f64, *greatest as f64);
                let ratio = least / greatest;
                if (shape - 1.0).abs() < 1e-9 {
                    return -least * libm::log(ratio) / (1.0 - ratio);
                }
                let tails = 1.0 - libm::pow(ratio, shape - 1.0);
                least * shape / (shape - 1.0) * tails / (1.0 - libm::pow(ratio, *shape))
            }
            Size::Empirical(table) => {
                let first = table.first().map_or(0.0, |&(size, share)| size as f64 * share);
                let between =
                    |pair: &[(u64, f64)]| (pair[1].1 - pair[0].1) * (pair[0].0 as f64 + pair[1].0 as f64) / 2.0;
                first + table.windows(2).map(between).sum::<f64>()
            }
        }
    }
}

/// Draws gaps and sizes of one traffic, in order: the gap before each begin but the first, and the size of each. Gaps
/// and sizes have random numbers of their own, so that neither shifts the other.
pub struct Draws {
    gaps: Chance,
    sizes: Chance,
}

/// Tells the sizes' random numbers from the gaps'.
const SIZES_STREAM: u64 = 0x73_697a_6573;

impl Draws {
    /// From the traffic's seed.
    pub fn new(traffic: &Traffic) -> Draws {
        Draws { gaps: Chance::new(traffic.seed), sizes: Chance::new(traffic.seed ^ SIZES_STREAM) }
    }

    /// The next gap.
    pub fn gap(&mut self, gap: &Gap) -> i64 {
        match *gap {
            Gap::Constant(gap) => gap.max(0),
            Gap::Exponential(mean) => libm::round(exponential(&mut self.gaps, mean)) as i64,
        }
    }

    /// The next size.
    pub fn size(&mut self, size: &Size) -> u64 {
        let chance = &mut self.sizes;
        match size {
            Size::Constant(size) => *size,
            Size::Exponential(mean) => (libm::round(exponential(chance, *mean)) as u64).max(1),
            Size::Uniform(least, greatest) => least + chance.up_to(greatest.saturating_sub(*least)),
            Size::Pareto(shape, least, greatest) => {
                let below = 1.0 - libm::pow(*least as f64 / (*greatest).max(1) as f64, *shape);
                let size = *least as f64 * libm::pow(1.0 - chance.share() * below, -1.0 / shape);
                (libm::round(size) as u64).min(*greatest).max((*least).max(1))
            }
            Size::Empirical(table) => interpolate(table, chance.share()),
        }
    }
}

/// Exponentially distributed, by inversion.
fn exponential(chance: &mut Chance, mean: f64) -> f64 {
    -mean * libm::log(1.0 - chance.share())
}

/// The size at a cumulative share, at least 1.
fn interpolate(table: &[(u64, f64)], share: f64) -> u64 {
    let above = table.partition_point(|&(_, cumulative)| cumulative <= share);
    let size = match (above.checked_sub(1).and_then(|below| table.get(below)), table.get(above)) {
        (Some(&(low, from)), Some(&(high, to))) => {
            libm::round(low as f64 + (high as f64 - low as f64) * (share - from) / (to - from)) as u64
        }
        (Some(&(size, _)), None) | (None, Some(&(size, _))) => size,
        (None, None) => 1,
    };
    size.max(1)
}

/// One thing that begins: a flow, or a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begin {
    /// Nanoseconds after the start of the run.
    pub at: i64,
    /// Its number within the traffic, from 0.
    pub number: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// All begins of a traffic in order: one of `Bulk` and `RequestResponse` (bytes: all requests together), many of `Flows`
/// and `Datagrams`, none of `Capture`. Ends by itself at [`Traffic::stop`] or the count.
pub struct Begins {
    kind: TrafficKind,
    draws: Draws,
    at: i64,
    stop: i64,
    number: u64,
}

impl Begins {
    /// From the traffic's seed.
    pub fn new(traffic: &Traffic) -> Begins {
        let draws = Draws::new(traffic);
        Begins { kind: traffic.kind.clone(), draws, at: traffic.start, stop: traffic.stop, number: 0 }
    }
}

impl Iterator for Begins {
    type Item = Begin;

    fn next(&mut self) -> Option<Begin> {
        let number = self.number;
        let bytes = match &self.kind {
            TrafficKind::Bulk { bytes } if number == 0 => *bytes,
            TrafficKind::RequestResponse { request, count, .. } if number == 0 => request.saturating_mul(*count),
            TrafficKind::Flows { gap, size, count } | TrafficKind::Datagrams { gap, size, count }
                if number < *count =>
            {
                if number > 0 {
                    self.at = self.at.saturating_add(self.draws.gap(gap));
                }
                self.draws.size(size)
            }
            _ => return None,
        };
        self.number += 1;
        if self.at > self.stop {
            self.number = u64::MAX;
            return None;
        }
        Some(Begin { at: self.at, number, bytes })
    }
}
