//! Numbers by chance, the same for the same seed.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A source of numbers.
#[derive(Clone, Debug)]
pub struct Dice(Pcg64);

impl Dice {
    /// The source with this seed.
    pub fn new(seed: u64) -> Dice {
        Dice(Pcg64::seed_from_u64(seed))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, which is not 0. The numbers are equally likely up to one part in 2^64 / `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.any()) * u128::from(bound)) >> 64) as u64
    }
}
