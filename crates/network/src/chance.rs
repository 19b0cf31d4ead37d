//! Random numbers that are the same on every machine.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A source of random numbers. What is switched off (probability 0, range 0) draws nothing.
pub(crate) struct Chance(Pcg64);

impl Chance {
    /// The same numbers for the same seed.
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(Pcg64::seed_from_u64(seed))
    }

    /// True with this probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.share() < probability
    }

    /// Uniform from 0 up to, not including, 1: the upper 53 bits of a draw.
    pub(crate) fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform from 0 to `greatest`, inclusive; draws nothing for 0. Its bias is below the range over 2^64.
    pub(crate) fn up_to(&mut self, greatest: u64) -> u64 {
        if greatest == 0 {
            return 0;
        }
        ((u128::from(self.0.next_u64()) * (u128::from(greatest) + 1)) >> 64) as u64
    }
}
