//! A function's time in the time of the simulation: it begins at its first input, may run fast or slow, and leap.

use super::lane::NEVER;
use weftwire_core::Time;

const MILLION: i128 = 1_000_000;

/// A function's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// An instant of the simulation; `None` before the first input.
    base: Option<i64>,
    /// What the clock showed then.
    shown: i64,
    drift_ppm: i64,
}

impl Clock {
    /// A clock that has not begun.
    pub fn new(drift_ppm: i64) -> Clock {
        Clock { base: None, shown: 0, drift_ppm }
    }

    /// How much faster than right it runs.
    pub fn drift(&self) -> i64 {
        self.drift_ppm
    }

    /// Begins at 0, unless it has begun.
    pub fn begin(&mut self, now: i64) {
        self.base.get_or_insert(now);
    }

    /// What it shows at an instant of the simulation.
    pub fn at(&self, now: i64) -> Time {
        let Some(base) = self.base else { return Time::ZERO };
        let passed = i128::from(now - base) * (MILLION + i128::from(self.drift_ppm)) / MILLION;
        Time::from_nanoseconds((i128::from(self.shown) + passed).clamp(0, i128::from(i64::MAX)) as i64)
    }

    /// The first instant of the simulation at which it shows this or more; [`NEVER`] before it has begun.
    pub fn until(&self, shown: Time) -> i64 {
        let (Some(base), rate) = (self.base, MILLION + i128::from(self.drift_ppm)) else { return NEVER };
        let wait = i128::from(shown.nanoseconds()) - i128::from(self.shown);
        if wait <= 0 {
            return base;
        }
        let passed = (wait * MILLION + rate - 1) / rate.max(1);
        (i128::from(base) + passed).min(i128::from(NEVER)) as i64
    }

    /// Runs with another drift from now on, after a leap forward.
    pub fn change(&mut self, now: i64, drift_ppm: i64, leap: i64) {
        if self.base.is_some() {
            self.shown = self.at(now).after(leap.max(0)).nanoseconds();
            self.base = Some(now);
        }
        self.drift_ppm = drift_ppm.max(1 - MILLION as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn deadlines_are_met_at_the_first_instant(
            drift in -999_999i64..5_000_000,
            leap in 0i64..1_000_000,
            deadline in 0i64..10_000_000_000,
        ) {
            let mut clock = Clock::new(0);
            clock.begin(500);
            clock.change(1_500, drift, leap);
            prop_assert_eq!(clock.at(1_500).nanoseconds(), 1_000 + leap);
            let at = clock.until(Time::from_nanoseconds(deadline));
            prop_assert!(clock.at(at).nanoseconds() >= deadline);
            prop_assert!(at == 1_500 || clock.at(at - 1).nanoseconds() < deadline);
        }
    }
}
