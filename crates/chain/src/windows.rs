//! Which messages of each agent have come already, so that nobody can play them again.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counters behind the highest one that are still told apart.
const WIDTH: u64 = 128;

/// The counters that have come, by agent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Windows(BTreeMap<u16, Window>);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Window {
    highest: u64,
    /// Bit n: the highest less n has come.
    seen: u128,
}

impl Windows {
    /// Whether a counter is new; from then on it is not.
    pub fn admit(&mut self, agent: u16, counter: u64) -> bool {
        let window = self.0.entry(agent).or_default();
        if counter > window.highest {
            let ahead = counter - window.highest;
            window.seen = if ahead < WIDTH { window.seen << ahead | 1 } else { 1 };
            window.highest = counter;
            return true;
        }
        let behind = window.highest - counter;
        if behind >= WIDTH || window.seen >> behind & 1 == 1 {
            return false;
        }
        window.seen |= 1 << behind;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Whatever the order, no counter is taken twice, and one within the window is taken once.
        #[test]
        fn counters_are_taken_once(counters in proptest::collection::vec(1_u64..400, 1..200)) {
            let mut windows = Windows::default();
            let (mut taken, mut highest) = (BTreeSet::new(), 0);
            for counter in counters {
                let fresh = !taken.contains(&counter) && counter + WIDTH > highest;
                prop_assert_eq!(windows.admit(3, counter), fresh);
                highest = highest.max(counter);
                if fresh {
                    taken.insert(counter);
                }
            }
            prop_assert!(windows.admit(4, 1));
        }
    }
}
