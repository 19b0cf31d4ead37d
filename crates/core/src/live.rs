//! Live flows as values: what platforms say and hear when a flow is taken out of a function and put into another one.

use serde::{Deserialize, Serialize};

/// How a function's time stands to the clocks of the machine that it runs on. In virtual time there are none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Clocks {
    /// Which boot of which machine it is: `CLOCK_MONOTONIC` has a meaning only there.
    pub boot: [u8; 16],
    /// Nanoseconds to add to a time of the function to get `CLOCK_MONOTONIC`.
    pub monotonic: i64,
    /// Nanoseconds to add to a time of the function to get `CLOCK_TAI`.
    pub tai: i64,
}

impl Clocks {
    /// The clocks of a function whose time is `ahead` nanoseconds more than that of this one.
    #[must_use]
    pub fn of_time_ahead(self, ahead: i64) -> Clocks {
        Clocks { monotonic: self.monotonic.wrapping_sub(ahead), tai: self.tai.wrapping_sub(ahead), ..self }
    }

    /// How many nanoseconds the time of a function with the clocks `other` is ahead of the time of one with these:
    /// by `CLOCK_MONOTONIC` if both are of one boot, else by `CLOCK_TAI`. `None` if 64 bits do not hold it.
    pub fn until(&self, other: &Clocks) -> Option<i64> {
        match self.boot == other.boot {
            true => self.monotonic.checked_sub(other.monotonic),
            false => self.tai.checked_sub(other.tai),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_by_the_clock_that_both_have() {
        let here = Clocks { boot: [1; 16], monotonic: 1_000, tai: 50_000 };
        let there = Clocks { boot: [1; 16], monotonic: 400, tai: 0 };
        assert_eq!(here.until(&there), Some(600));
        assert_eq!(here.until(&Clocks { boot: [2; 16], ..there }), Some(50_000));
        assert_eq!(here.until(&here.of_time_ahead(7)), Some(7));
        assert_eq!(here.until(&Clocks { monotonic: i64::MIN, ..there }), None);
    }
}
