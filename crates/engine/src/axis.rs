//! The axis of a flow's time: a flow that began in another function goes on in the time that it had there.

use weftwire_core::Time;

/// How many nanoseconds a flow's time is ahead of its engine's; 0 for flows that were made here.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Axis {
    /// The nanoseconds.
    pub ahead: i64,
}

impl Axis {
    /// An instant of the engine's time as the flow sees it. The end of time is the same for all.
    pub fn own(self, at: Time) -> Time {
        if at == Time::MAX { at } else { at.after(self.ahead) }
    }

    /// An instant of the flow's time as the engine sees it.
    pub fn engine(self, at: Time) -> Time {
        if at == Time::MAX { at } else { Time::from_nanoseconds(at.nanoseconds().saturating_sub(self.ahead)) }
    }

    /// Whether an instant of the flow's time comes back when it has gone by the engine's.
    pub fn reaches(self, at: Time) -> bool {
        at == Time::MAX || at.nanoseconds().checked_sub(self.ahead).is_some_and(|there| there != i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_time_is_everywhere_the_same() {
        for ahead in [-5, 0, 5, i64::MIN, i64::MAX] {
            let axis = Axis { ahead };
            assert_eq!((axis.own(Time::MAX), axis.engine(Time::MAX)), (Time::MAX, Time::MAX));
            for at in [0, 7, -7, i64::MIN, i64::MAX - 1].map(Time::from_nanoseconds) {
                assert_eq!(axis.reaches(at), axis.own(axis.engine(at)) == at, "{ahead} {at}");
            }
        }
    }
}
