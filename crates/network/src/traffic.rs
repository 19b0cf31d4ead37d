//! Sizes and gaps of traffic, drawn from a seed: the same numbers on every platform.

use crate::model::{Traffic, TrafficKind};
use rand_pcg::Pcg64;
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

/// Draws gaps and sizes of one traffic, in order: the gap before each begin but the first, and the size of each.
pub struct Draws {
    _generator: Pcg64,
}

impl Draws {
    /// From the traffic's seed.
    pub fn new(_traffic: &Traffic) -> Draws {
        todo!()
    }

    /// The next gap.
    pub fn gap(&mut self, _gap: &Gap) -> i64 {
        todo!()
    }

    /// The next size.
    pub fn size(&mut self, _size: &Size) -> u64 {
        todo!()
    }
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
    _kind: TrafficKind,
    _draws: Draws,
}

impl Begins {
    /// From the traffic's seed.
    pub fn new(_traffic: &Traffic) -> Begins {
        todo!()
    }
}

impl Iterator for Begins {
    type Item = Begin;

    fn next(&mut self) -> Option<Begin> {
        todo!()
    }
}
