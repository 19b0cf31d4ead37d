//! What to do until a deadline: a pure function of the time.

use std::str::FromStr;
use weftwire_text::quantity::parse_duration;

/// No sleep is worth less than this: falling asleep and waking up take longer.
pub const SHORTEST_SLEEP: i64 = 10_000;

/// How the time until a deadline passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Asleep. Costs no processor, and is late by as much as the kernel takes to wake a thread up.
    #[default]
    Sleep,
    /// Asleep until `margin` nanoseconds before it, spinning from there.
    SleepSpin {
        /// Should be as long as waking up takes, nearly always.
        margin_ns: i64,
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
        until_ns: i64,
    },
}

impl Policy {
    /// What to do at `now`; both times in nanoseconds of one clock.
    #[inline]
    pub fn step(self, now: i64, deadline: i64) -> Step {
        if now >= deadline {
            return Step::Due;
        }
        match self {
            Policy::Spin => Step::Spin,
            Policy::Sleep => Step::Sleep { until_ns: deadline },
            Policy::SleepSpin { margin_ns: margin } => {
                let until = deadline.saturating_sub(margin.max(0));
                if until.saturating_sub(now) < SHORTEST_SLEEP { Step::Spin } else { Step::Sleep { until_ns: until } }
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
    /// [`Policy::SleepSpin`] with this margin in nanoseconds.
    Margin(i64),
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
                parse_duration(margin).ok().filter(|margin| *margin > 0).map(Precision::Margin).ok_or(NoPrecision)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_says_what_to_do_when() {
        let half = Policy::SleepSpin { margin_ns: 50_000 };
        for policy in [Policy::Sleep, half, Policy::Spin] {
            assert_eq!(policy.step(100, 100), Step::Due);
            assert_eq!(policy.step(101, 100), Step::Due);
        }
        assert_eq!(Policy::Sleep.step(99, 100), Step::Sleep { until_ns: 100 });
        assert_eq!(Policy::Spin.step(0, i64::MAX), Step::Spin);
        assert_eq!(half.step(0, 1_000_000), Step::Sleep { until_ns: 950_000 });
        assert_eq!(half.step(0, 60_000), Step::Sleep { until_ns: 10_000 });
        assert_eq!(half.step(1, 60_000), Step::Spin);
        assert_eq!(Policy::SleepSpin { margin_ns: i64::MAX }.step(i64::MIN, i64::MIN + 1), Step::Spin);
    }

    #[test]
    fn reads_what_users_write() {
        assert_eq!("auto".parse(), Ok(Precision::Auto));
        assert_eq!("sleep".parse(), Ok(Precision::Sleep));
        assert_eq!("spin".parse(), Ok(Precision::Spin));
        assert_eq!("60us".parse(), Ok(Precision::Margin(60_000)));
        for bad in ["", "fast", "0s", "-5us"] {
            assert_eq!(bad.parse::<Precision>(), Err(NoPrecision), "{bad}");
        }
    }
}
