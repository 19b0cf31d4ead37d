//! Waiting until a deadline, and for the next of many.

use super::{Clock, Monotonic, Policy, Precision, Scheduler, Step};
use std::time::Duration;
use weftwire_core::{Time, nanoseconds};

/// Passes the time until a deadline by a [`Policy`]. It allocates nothing.
#[derive(Clone, Debug)]
pub struct Waiter<C = Monotonic> {
    policy: Policy,
    clock: C,
}

impl Waiter {
    /// A waiter by the machine's clock.
    pub fn new(policy: Policy) -> Waiter {
        Waiter::with_clock(policy, Monotonic)
    }
}

impl<C: Clock> Waiter<C> {
    /// A waiter by this clock.
    pub fn with_clock(policy: Policy, clock: C) -> Waiter<C> {
        Waiter { policy, clock }
    }

    /// How it waits.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Now.
    #[inline]
    pub fn now(&mut self) -> i64 {
        self.clock.now()
    }

    /// Waits until the deadline. Returns the time at which it saw that it was there, never less than the deadline; a deadline
    /// that is past costs one reading of the clock.
    #[inline]
    pub fn wait_until(&mut self, deadline: i64) -> i64 {
        loop {
            let now = self.clock.now();
            match self.policy.step(Time::from_nanoseconds(now), Time::from_nanoseconds(deadline)) {
                Step::Due => return now,
                Step::Spin => std::hint::spin_loop(),
                Step::Sleep { until } => self.clock.sleep_until(until.nanoseconds()),
            }
        }
    }
}

impl Precision {
    /// The policy of these words; measures the margin if that is asked for, which takes a tenth of a second. To be called on
    /// the thread that will wait, in its place.
    pub fn policy(self) -> Policy {
        match self {
            Precision::Sleep => Policy::Sleep,
            Precision::Spin => Policy::Spin,
            Precision::Margin(margin) => Policy::SleepSpin { margin },
            Precision::Auto => Policy::SleepSpin { margin: measure_margin(&mut Monotonic) },
        }
    }
}

/// Sleeps by which the margin is found, in nanoseconds: short ones, and ones in which a processor falls asleep deeper.
const TRIALS: [(usize, i64); 2] = [(100, 100_000), (100, 800_000)];
/// The share of sleeps that the margin is to cover.
const COVERED: f64 = 0.99;
/// The margin is within these, whatever was measured: a machine busy with other things can't be helped by spinning.
const MARGINS: (Duration, Duration) = (Duration::from_micros(10), Duration::from_micros(250));

/// How long before a deadline a thread has to wake up here so that it is not late 99 times of 100: the
/// lateness of two hundred sleeps, and a tenth more.
pub fn measure_margin(clock: &mut impl Clock) -> Duration {
    let mut lateness = Vec::new();
    for (count, length) in TRIALS {
        for _ in 0..count {
            let deadline = clock.now() + length;
            clock.sleep_until(deadline);
            lateness.push(clock.now() - deadline);
        }
    }
    lateness.sort_unstable();
    let rank = (lateness.len() as f64 * COVERED) as usize;
    let late = lateness.get(rank).or(lateness.last()).copied().unwrap_or(0);
    Duration::from_nanos((late + late / 10).max(0).unsigned_abs()).clamp(MARGINS.0, MARGINS.1)
}

/// A scheduler and a waiter: what is added comes back when it is due, each entry once, in the scheduler's order.
///
/// - inputs: [`Pacer::add`];
/// - waiting: [`Pacer::next_batch`], which blocks the thread.
#[derive(Debug)]
pub struct Pacer<S, C = Monotonic> {
    scheduler: S,
    waiter: Waiter<C>,
    lead: i64,
}

impl<S: Scheduler, C: Clock> Pacer<S, C> {
    /// A pacer.
    pub fn new(scheduler: S, waiter: Waiter<C>) -> Pacer<S, C> {
        Pacer { scheduler, waiter, lead: 0 }
    }

    /// The same, but entries come back so long before their times: for a kernel that takes departure times and
    /// holds packets itself ([`super::Departures::Honoured`]).
    #[must_use]
    pub fn with_lead(self, lead: Duration) -> Pacer<S, C> {
        Pacer { lead: nanoseconds(lead), ..self }
    }

    /// Adds an entry that is not in it, to come back at this time of the waiter's clock, or at once if that is past.
    #[inline]
    pub fn add(&mut self, at: i64, entry: u32) {
        self.scheduler.add(at, entry);
    }

    /// Waits until something is due, and appends it to `batch`, at most `most` entries with their times: give `batch` room for
    /// them, and nothing is allocated. Returns the time, or `None` at once if there is nothing to wait for. There may be nothing
    /// to append after a wait if the scheduler had to be looked at.
    #[inline]
    pub fn next_batch(&mut self, most: usize, batch: &mut Vec<(i64, u32)>) -> Option<i64> {
        let next = self.scheduler.next()?;
        let now = self.waiter.wait_until(next.saturating_sub(self.lead));
        self.scheduler.take(now.saturating_add(self.lead), most, batch);
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weftwire_calendar::Calendar;

    /// A clock whose readings cost time, and whose sleeps end late, or early as if by a signal.
    struct Scripted {
        now: i64,
        read_cost: i64,
        overshoots: Vec<i64>,
        slept: usize,
        readings: usize,
    }

    impl Scripted {
        fn new(read_cost: i64, overshoots: Vec<i64>) -> Scripted {
            Scripted { now: 0, read_cost, overshoots, slept: 0, readings: 0 }
        }
    }

    impl Clock for Scripted {
        fn now(&mut self) -> i64 {
            self.readings += 1;
            self.now += self.read_cost;
            self.now
        }

        fn sleep_until(&mut self, at: i64) {
            let overshoot = self.overshoots[self.slept % self.overshoots.len()];
            self.slept += 1;
            self.now = (at + overshoot).max(self.now + 1);
        }
    }

    #[test]
    fn a_margin_hides_lateness_up_to_it_and_costs_few_readings() {
        let waiter = |policy| Waiter::with_clock(policy, Scripted::new(20, vec![30_000]));
        assert_eq!(waiter(Policy::Sleep).wait_until(1_000_000), 1_030_020);
        let mut half = waiter(Policy::SleepSpin { margin: Duration::from_micros(50) });
        let released = half.wait_until(1_000_000);
        assert!((1_000_000..1_000_020).contains(&released), "{released}");
        assert_eq!((half.clock.slept, half.clock.readings), (1, 1_001));
        let mut spin = waiter(Policy::Spin);
        assert!(spin.wait_until(1_000_000) < 1_000_020);
        assert_eq!((spin.clock.slept, spin.clock.readings), (0, 50_000));
    }

    #[test]
    fn the_margin_covers_all_but_the_worst_sleeps() {
        let mut mostly: Vec<i64> = vec![20_000; 99];
        mostly.push(3_000_000);
        let margin = measure_margin(&mut Scripted::new(0, mostly));
        assert!((Duration::from_micros(20)..=MARGINS.1).contains(&margin), "{margin:?}");
        assert_eq!(measure_margin(&mut Scripted::new(0, vec![1])), MARGINS.0);
        assert_eq!(measure_margin(&mut Scripted::new(0, vec![9_000_000])), MARGINS.1);
    }

    fn policies() -> impl Strategy<Value = Policy> {
        let margin = (0_u64..200_000).prop_map(|margin| Policy::SleepSpin { margin: Duration::from_nanos(margin) });
        prop_oneof![Just(Policy::Sleep), margin, Just(Policy::Spin)]
    }

    proptest! {
        #[test]
        fn everything_comes_once_in_order_and_never_early(
            policy in policies(),
            deadlines in prop::collection::vec(0_i64..3_000_000, 1..60),
            overshoots in prop::collection::vec(-40_000_i64..90_000, 1..8),
            most in 1_usize..8,
            lead in prop_oneof![Just(0_i64), 0_i64..100_000],
        ) {
            let waiter = Waiter::with_clock(policy, Scripted::new(400, overshoots));
            let mut pacer = Pacer::new(Calendar::with_limit(deadlines.len()), waiter).with_lead(Duration::from_nanos(lead.unsigned_abs()));
            for (number, deadline) in (0..).zip(&deadlines) {
                pacer.add(*deadline, number);
            }
            let mut expected: Vec<(i64, u32)> = deadlines.iter().copied().zip(0..).collect();
            // Equal deadlines in the order in which they were added.
            expected.sort_unstable();
            let (mut got, mut batch) = (Vec::new(), Vec::new());
            while let Some(now) = pacer.next_batch(most, &mut batch) {
                prop_assert!((1..=most).contains(&batch.len()));
                prop_assert!(batch.iter().all(|(deadline, _)| now + lead >= *deadline));
                got.append(&mut batch);
            }
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn a_waiter_that_spins_is_late_by_at_most_one_reading(
            policy in prop_oneof![Just(Policy::Spin), Just(Policy::SleepSpin { margin: Duration::from_micros(50) })],
            gaps in prop::collection::vec(0_i64..400_000, 1..40),
            overshoots in prop::collection::vec(0_i64..49_000, 1..8),
        ) {
            let mut waiter = Waiter::with_clock(policy, Scripted::new(300, overshoots));
            let mut deadline = 0;
            for gap in gaps {
                // A gap shorter than a reading can't be met.
                deadline += gap.max(300);
                let released = waiter.wait_until(deadline);
                prop_assert!(released >= deadline && released < deadline + 300);
            }
        }
    }
}
