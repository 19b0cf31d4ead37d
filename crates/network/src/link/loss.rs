//! Random numbers of a link, and loss by them.

use super::Loss;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// The random numbers of one direction. What is switched off (probability 0) draws nothing.
pub(super) struct Chance(Pcg64);

impl Chance {
    pub(super) fn new(seed: u64) -> Chance {
        Chance(Pcg64::seed_from_u64(seed))
    }

    /// True with this probability.
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.share() < probability
    }

    /// Uniform from 0 up to, not including, 1: the upper 53 bits of a draw.
    fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform from 0 to `greatest`, inclusive; draws nothing for 0. (Its bias is below 2^-64 times the range.)
    pub(super) fn up_to(&mut self, greatest: u64) -> u64 {
        if greatest == 0 {
            return 0;
        }
        ((u128::from(self.0.next_u64()) * (u128::from(greatest) + 1)) >> 64) as u64
    }
}

/// Whether the chain of a bursty loss is in its bad state. It starts in the good one.
#[derive(Default)]
pub(super) struct LossState {
    bad: bool,
}

impl LossState {
    /// Whether the next packet is lost.
    pub(super) fn loses(&mut self, loss: &Loss, chance: &mut Chance) -> bool {
        match *loss {
            Loss::Random(probability) => chance.happens(probability),
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let leaves = if self.bad { bad_to_good } else { good_to_bad };
                self.bad ^= chance.happens(leaves);
                chance.happens(if self.bad { loss_bad } else { loss_good })
            }
        }
    }
}
