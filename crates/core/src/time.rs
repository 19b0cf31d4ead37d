//! Time as functions see it: nanoseconds since an epoch that the platform chooses.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// An instant, in nanoseconds since the platform's epoch.
///
/// A function's time is 0 at its first input, in a replay as on Linux; captures count from 1970. 64 bits last for 292
/// years, so that arithmetic on instants saturates and never wraps in practice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(i64);

impl Time {
    /// The epoch.
    pub const ZERO: Time = Time(0);
    /// The last representable instant; used for "never".
    pub const MAX: Time = Time(i64::MAX);

    /// The instant `nanoseconds` after the epoch. Negative values are before it.
    pub const fn from_nanoseconds(nanoseconds: i64) -> Time {
        Time(nanoseconds)
    }

    /// Nanoseconds since the epoch.
    pub const fn nanoseconds(self) -> i64 {
        self.0
    }

    /// The instant `nanoseconds` later; stays at the ends of the range.
    #[must_use]
    pub const fn after(self, nanoseconds: i64) -> Time {
        Time(self.0.saturating_add(nanoseconds))
    }

    /// The instant so much later; stays at the end of the range.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Time {
        self.after(nanoseconds(duration))
    }

    /// Nanoseconds from `earlier` to `self`, saturating.
    pub const fn since(self, earlier: Time) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A duration in nanoseconds, as far as instants reach: at most those of [`Time::MAX`].
pub const fn nanoseconds(duration: Duration) -> i64 {
    let nanoseconds = duration.as_nanos();
    if nanoseconds > i64::MAX as u128 { i64::MAX } else { nanoseconds as i64 }
}

/// Seconds with nine decimals, as captures show it.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let magnitude = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:09}", magnitude / 1_000_000_000, magnitude % 1_000_000_000)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_seconds() {
        assert_eq!(Time::from_nanoseconds(1_000_000_007).to_string(), "1.000000007");
        assert_eq!(Time::from_nanoseconds(-5).to_string(), "-0.000000005");
    }

    #[test]
    fn saturates_at_the_ends() {
        assert_eq!(Time::MAX.after(1), Time::MAX);
        assert_eq!(Time::ZERO.plus(Duration::MAX), Time::MAX);
        assert_eq!(nanoseconds(Duration::from_nanos(i64::MAX as u64 + 1)), i64::MAX);
        assert_eq!(Time::from_nanoseconds(-1).plus(Duration::from_micros(1)).nanoseconds(), 999);
        assert_eq!(Time::from_nanoseconds(i64::MIN).since(Time::MAX), i64::MIN);
    }
}
