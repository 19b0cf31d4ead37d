//! Loss at random.

use super::Loss;
use crate::chance::Chance;

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
