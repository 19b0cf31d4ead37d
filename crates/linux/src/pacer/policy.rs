//! What to do until a deadline: a pure function of the time.

use std::str::FromStr;
use std::time::Duration;
use weftwire_core::{Time, nanoseconds};
use weftwire_text::quantity::parse_duration;

/// No sleep is worth less than this: falling asleep and waking up take longer.
pub const SHORTEST_SLEEP: i64 = 10_000;

/// How the time until a deadline passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Asleep. Costs no processor, and is late by as much as the kernel takes to wake a thread up.
    #[default]
    Sleep,
    /// Asleep until `margin` before it, spinning from there.
    SleepSpin {
        /// Should be as long as waking up takes, nearly always.
        margin: Duration,
    },
    /// Spinning on the clock. Costs a whole processor.
    Spin,
}

/// What is to be done now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The deadline is here, or past.
    Due,
    /// Read the clock again.
    Spin,
    /// Sleep until this time.
    Sleep {
        /// At most the deadline, in its clock.
        until: Time,
    },
}

impl Policy {
    /// What to do at `now`; both times are of one clock.
    #[inline]
    pub fn step(self, now: Time, deadline: Time) -> Step {
        if now >= deadline {
            return Step::Due;
        }
        match self {
            Policy::Spin => Step::Spin,
            Policy::Sleep => Step::Sleep { until: deadline },
            Policy::SleepSpin { margin } => {
                let until = deadline.after(-nanoseconds(margin));
                if until.since(now) < SHORTEST_SLEEP { Step::Spin } else { Step::Sleep { until } }
            }
        }
    }
}

/// A policy as the user asks for it: a margin may be left to measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Precision {
    /// [`Policy::Sleep`].
    #[default]
    Sleep,
    /// [`Policy::Spin`].
    Spin,
    /// [`Policy::SleepSpin`] with the margin that this machine turns out to need ([`super::measure_margin`]).
    Auto,
    /// [`Policy::SleepSpin`] with this margin.
    Margin(Duration),
}

/// A text is no [`Precision`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("write sleep, spin, auto or the time to spin before a deadline, e.g. 60us")]
pub struct NoPrecision;

impl FromStr for Precision {
    type Err = NoPrecision;

    fn from_str(text: &str) -> Result<Precision, NoPrecision> {
        match text {
            "sleep" => Ok(Precision::Sleep),
            "spin" => Ok(Precision::Spin),
            "auto" => Ok(Precision::Auto),
            margin => {
                parse_duration(margin).ok().filter(|margin| !margin.is_zero()).map(Precision::Margin).ok_or(NoPrecision)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanoseconds: i64) -> Time {
        Time::from_nanoseconds(nanoseconds)
    }

    #[test]
    fn each_policy_says_what_to_do_when() {
        let half = Policy::SleepSpin { margin: Duration::from_micros(50) };
        for policy in [Policy::Sleep, half, Policy::Spin] {
            assert_eq!(policy.step(at(100), at(100)), Step::Due);
            assert_eq!(policy.step(at(101), at(100)), Step::Due);
        }
        assert_eq!(Policy::Sleep.step(at(99), at(100)), Step::Sleep { until: at(100) });
        assert_eq!(Policy::Spin.step(Time::ZERO, Time::MAX), Step::Spin);
        assert_eq!(half.step(at(0), at(1_000_000)), Step::Sleep { until: at(950_000) });
        assert_eq!(half.step(at(0), at(60_000)), Step::Sleep { until: at(10_000) });
        assert_eq!(half.step(at(1), at(60_000)), Step::Spin);
        assert_eq!(Policy::SleepSpin { margin: Duration::MAX }.step(at(i64::MIN), at(i64::MIN + 1)), Step::Spin);
    }

    #[test]
    fn reads_what_users_write() {
        assert_eq!("auto".parse(), Ok(Precision::Auto));
        assert_eq!("sleep".parse(), Ok(Precision::Sleep));
        assert_eq!("spin".parse(), Ok(Precision::Spin));
        assert_eq!("60us".parse(), Ok(Precision::Margin(Duration::from_micros(60))));
        for bad in ["", "fast", "0s", "-5us"] {
            assert_eq!(bad.parse::<Precision>(), Err(NoPrecision), "{bad}");
        }
    }
}
