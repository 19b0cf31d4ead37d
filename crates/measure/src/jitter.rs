//! The machine's own jitter: how far apart two readings of the clock are in a loop that only reads it.

use crate::on_own_thread;
use std::time::Duration;
use weftwire_draw::Histogram;
use weftwire_linux::pacer::{Place, Standing};
use weftwire_linux::system::monotonic_ns;

/// How far apart readings of the clock were.
#[derive(Default)]
pub struct Jitter {
    gaps: Histogram,
    readings: u64,
    nanoseconds: i64,
}

impl Jitter {
    /// Reads the clock for this time on a thread in this place.
    pub fn measure(&mut self, place: Place, time: Duration) -> Standing {
        on_own_thread(|| {
            let standing = place.take();
            let start = monotonic_ns();
            let end = start + i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
            let mut last = start;
            while last < end {
                let now = monotonic_ns();
                self.gaps.add(now - last);
                last = now;
                self.readings += 1;
            }
            self.nanoseconds += last - start;
            standing
        })
    }

    /// Nanoseconds from one reading to the next, on average, with counting them.
    pub fn mean(&self) -> f64 {
        self.nanoseconds as f64 / self.readings.max(1) as f64
    }

    /// The longest time between two readings.
    pub fn worst(&self) -> i64 {
        self.gaps.greatest()
    }

    /// How late a loop that only reads the clock sees a deadline of any time, in nanoseconds: this share of all deadlines it sees
    /// no later. What spinning can't beat.
    pub fn lateness(&self, share: f64) -> f64 {
        // A deadline falls into a gap as likely as the gap is long, and anywhere in it.
        let later = |late: f64| -> f64 {
            self.gaps.buckets().map(|(gap, count)| (gap as f64 - late).max(0.0) * count as f64).sum()
        };
        let wanted = (1.0 - share) * later(0.0);
        let (mut low, mut high) = (0.0, self.worst().max(1) as f64);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if later(middle) > wanted { low = middle } else { high = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_weighs_gaps_by_their_length() {
        let mut jitter = Jitter::default();
        (0..1_000).for_each(|_| jitter.gaps.add(10));
        // Half of all deadlines fall into one gap.
        jitter.gaps.add(10_000);
        assert!((jitter.lateness(0.25) - 5.0).abs() < 0.6, "{}", jitter.lateness(0.25));
        assert!((jitter.lateness(0.75) - 5_000.0).abs() < 400.0, "{}", jitter.lateness(0.75));
        assert!(jitter.lateness(1.0) <= 10_000.0);
    }
}
