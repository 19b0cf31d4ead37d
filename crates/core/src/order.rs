//! Which input comes first at one instant (`docs/semantics.md`, rules E1 and E2): an [`InputOrder`] gives each input of a function its
//! time, so that none has the time of one that belongs behind it and was handed in before.

use crate::port::Port;
use crate::time::Time;

/// A kind of input. At one instant the lesser one comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Input {
    /// A change from outside ([`crate::Function::control`]).
    Change,
    /// A call of the application ([`crate::Connections`]).
    Call,
    /// A frame by this port ([`crate::Function::frames`]).
    Frame(Port),
    /// Time passes ([`crate::Function::fire`]).
    Fire,
}

/// The order of the inputs of one function.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct InputOrder {
    /// The latest input, and its time.
    pub latest: Option<(Time, Input)>,
    /// Whether inputs in front of [`Input::Fire`] are all alike, as they were for functions that left their order to platforms:
    /// recordings of their runs are repeated so.
    pub left_to_platform: bool,
}

impl InputOrder {
    /// The time of an input that comes at `now` and is handed in next: `now`, or the time of the input before if that is later, or
    /// a nanosecond after it if the input belongs in front of that one.
    pub fn time(&mut self, input: Input, now: Time) -> Time {
        let input = if self.left_to_platform && input < Input::Fire { Input::Change } else { input };
        let at = match self.latest {
            Some((latest, last)) if now <= latest => latest.after(i64::from(input < last)),
            _ => now,
        };
        self.latest = Some((at, input));
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUTS: [Input; 5] = [Input::Change, Input::Call, Input::Frame(Port(1)), Input::Frame(Port(2)), Input::Fire];

    fn at(nanoseconds: i64) -> Time {
        Time::from_nanoseconds(nanoseconds)
    }

    #[test]
    fn inputs_of_one_instant_come_in_their_order() {
        let mut order = InputOrder::default();
        assert!(INPUTS.iter().all(|input| order.time(*input, at(5)) == at(5)));
        // What comes behind has the next nanosecond, and so have those that belong behind it there.
        let mut order = InputOrder::default();
        let times = [(2, 5), (2, 5), (1, 5), (3, 5), (2, 4), (0, 5), (4, 9), (4, 9), (3, 9), (0, 20)]
            .map(|(input, now)| order.time(INPUTS[input], at(now)).nanoseconds());
        assert_eq!(times, [5, 5, 6, 6, 7, 8, 9, 9, 10, 20]);
    }

    #[test]
    fn what_was_left_to_the_platform_has_the_time_that_it_is_told() {
        let mut order = InputOrder { left_to_platform: true, ..InputOrder::default() };
        let times = [(3, 5), (1, 5), (0, 4), (4, 5), (1, 5), (4, 6)]
            .map(|(input, now)| order.time(INPUTS[input], at(now)).nanoseconds());
        assert_eq!(times, [5, 5, 5, 5, 6, 6]);
    }

    #[test]
    fn no_input_is_out_of_order() {
        // All sequences of four inputs, each at one of two instants.
        for sequence in 0..10_usize.pow(4) {
            let mut order = InputOrder::default();
            let steps = (0..4).map(|place| sequence / 10_usize.pow(place) % 10);
            let given: Vec<(Time, Input)> = steps
                .map(|step| (at(step as i64 / 5), INPUTS[step % 5]))
                .map(|(now, input)| {
                    let time = order.time(input, now);
                    assert!(time >= now && time <= at(4), "{sequence}");
                    (time, input)
                })
                .collect();
            assert!(given.is_sorted(), "{given:?}");
        }
    }
}
