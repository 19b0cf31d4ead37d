//! How long a packet takes through the server.

use super::{Rate, RateTrace};
use weftwire_core::nanoseconds;

/// Bytes to the unit that rates are integrated in: bits per second times nanoseconds.
const WORK_OF_A_BYTE: u64 = 8_000_000_000;

impl Rate {
    /// When the last bit of `bytes` is out if the first begins at `start` (nanoseconds), rounded up. `i64::MAX`: never.
    pub(super) fn finish(&self, start: i64, bytes: u64) -> i64 {
        match self {
            Rate::Constant(rate) => {
                // 64 bits do for frames below 2 GiB; wide division is slow.
                let lasts = match bytes.checked_mul(WORK_OF_A_BYTE) {
                    Some(work) => work.div_ceil((*rate).max(1)),
                    None => {
                        let work = u128::from(bytes) * u128::from(WORK_OF_A_BYTE);
                        u64::try_from(work.div_ceil(u128::from((*rate).max(1)))).unwrap_or(u64::MAX)
                    }
                };
                start.saturating_add(i64::try_from(lasts).unwrap_or(i64::MAX))
            }
            Rate::Trace(trace) => trace.finish(start, u128::from(bytes) * u128::from(WORK_OF_A_BYTE)),
        }
    }
}

impl RateTrace {
    /// When so much work is done.
    fn finish(&self, start: i64, mut work: u128) -> i64 {
        let period = nanoseconds(self.period).max(1);
        let capacity = self.capacity(period);
        if work == 0 {
            return start;
        }
        if capacity == 0 {
            return i64::MAX;
        }
        // Whole periods first; at least one unit of work stays, so that the end is found where it is done.
        let periods = (work - 1) / capacity;
        work -= periods * capacity;
        let whole = i64::try_from(periods.saturating_mul(period as u128)).unwrap_or(i64::MAX);
        let mut elapsed = 0;
        let mut place = start.rem_euclid(period);
        let mut step = self.steps.partition_point(|&(from, _)| from <= place).saturating_sub(1);
        loop {
            let rate = self.rate(step, place);
            let end = self.end(step, period);
            let done = u128::from(rate) * (end - place).max(0) as u128;
            if work <= done {
                let lasts = work.div_ceil(u128::from(rate)) as i64;
                return start.saturating_add(whole).saturating_add(elapsed).saturating_add(lasts);
            }
            work -= done;
            elapsed += (end - place).max(0);
            (step, place) = if step + 1 < self.steps.len() { (step + 1, end) } else { (0, 0) };
        }
    }

    /// Work that can be done in one period.
    fn capacity(&self, period: i64) -> u128 {
        let lasts = |step: usize| (self.end(step, period) - self.steps[step].0).max(0) as u128;
        (0..self.steps.len()).map(|step| u128::from(self.steps[step].1) * lasts(step)).sum()
    }

    /// The rate of a step; 0 in front of the first.
    fn rate(&self, step: usize, place: i64) -> u64 {
        self.steps.get(step).filter(|&&(from, _)| from <= place).map_or(0, |&(_, rate)| rate)
    }

    /// Where a step ends.
    fn end(&self, step: usize, period: i64) -> i64 {
        self.steps.get(step + 1).map_or(period, |&(from, _)| from.min(period))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    proptest! {
        #[test]
        fn a_trace_is_integrated_as_nanosecond_by_nanosecond(
            gaps in proptest::collection::vec((1i64..12, prop_oneof![Just(0), 0u64..4_000_000_000, Just(8_000_000_000)]), 1..6),
            start in 0i64..100,
            bytes in 0u64..60,
        ) {
            let mut steps = Vec::new();
            let mut period = 0;
            for (lasts, rate) in gaps {
                steps.push((period, rate));
                period += lasts;
            }
            steps[0].1 += 1_000_000_000;
            let trace = RateTrace { steps: steps.clone(), period: Duration::from_nanos(period as u64) };
            let mut left = i128::from(bytes) * i128::from(WORK_OF_A_BYTE);
            let mut now = start;
            while left > 0 {
                let place = now % period;
                left -= i128::from(steps.iter().rev().find(|step| step.0 <= place).expect("the first is 0").1);
                now += 1;
            }
            prop_assert_eq!(Rate::Trace(trace.into()).finish(start, bytes), now);
        }
    }

    #[test]
    fn rates_round_up_and_never_overflow() {
        assert_eq!(Rate::Constant(3_000_000_000).finish(5, 1), 8);
        assert_eq!(Rate::Constant(1).finish(0, 1), 8_000_000_000);
        assert_eq!(Rate::Constant(1).finish(7, u64::from(u32::MAX) * 2), i64::MAX);
        assert_eq!(Rate::Constant(u64::MAX).finish(7, 0), 7);
        let dead = RateTrace { steps: vec![(0, 0)], period: Duration::from_nanos(10) };
        assert_eq!(Rate::Trace(dead.into()).finish(0, 1), i64::MAX);
        let slow = RateTrace { steps: vec![(0, 0), (9, 1)], period: Duration::from_nanos(10) };
        assert_eq!(Rate::Trace(slow.clone().into()).finish(0, 1), 80_000_000_000);
        assert_eq!(Rate::Trace(slow.into()).finish(3, 8 << 32), i64::MAX);
    }
}
