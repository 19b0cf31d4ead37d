//! The keys of all flows of an engine: its own for those that were made here, those that they brought with them for others.

use crate::chance::Chance;
use crate::state::Keys;

/// Most sets of keys besides the engine's own.
pub const MOST_KEY_SETS: usize = 64;

/// A small table of key sets. Number 0 is the engine's own.
#[derive(Debug)]
pub struct KeySets {
    sets: Vec<(Chance, usize)>,
}

impl KeySets {
    /// Only the engine's own.
    pub fn new(own: Chance) -> KeySets {
        KeySets { sets: vec![(own, 0)] }
    }

    /// The engine's own.
    pub fn own(&self) -> &Chance {
        &self.sets[0].0
    }

    /// Other keys for all flows that the engine makes from now on. There is no flow yet.
    pub fn set_own(&mut self, own: Chance) {
        *self = KeySets::new(own);
    }

    /// A flow's.
    pub fn of(&self, number: usize) -> &Chance {
        &self.sets[number].0
    }

    /// One more flow with these keys: the number of the set. `None`: there is no room.
    pub fn hold(&mut self, keys: &Keys) -> Option<usize> {
        let place = match self.sets.iter().position(|(chance, _)| chance.keys() == *keys) {
            Some(place) => place,
            None => {
                let made = (Chance::of_keys(keys), 0);
                let free = (1..self.sets.len()).find(|place| self.sets[*place].1 == 0);
                match free {
                    Some(place) => {
                        self.sets[place] = made;
                        place
                    }
                    None if self.sets.len() > MOST_KEY_SETS => return None,
                    None => {
                        self.sets.push(made);
                        self.sets.len() - 1
                    }
                }
            }
        };
        self.sets[place].1 += 1;
        Some(place)
    }

    /// A flow that holds a set is gone. Flows that were made here hold none.
    pub fn release(&mut self, number: usize) {
        self.sets[number].1 = self.sets[number].1.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(number: u8) -> Keys {
        Keys { hash: [number; 16], random: [number; 16] }
    }

    #[test]
    fn sets_are_shared_and_their_places_used_again() {
        let mut sets = KeySets::new(Chance::of_keys(&keys(0)));
        let most = MOST_KEY_SETS as u8;
        assert_eq!(sets.hold(&keys(0)), Some(0));
        assert!((1..=most).all(|number| sets.hold(&keys(number)) == Some(usize::from(number))));
        assert_eq!((sets.hold(&keys(7)), sets.hold(&keys(most + 1))), (Some(7), None));
        sets.release(7);
        assert_eq!(sets.hold(&keys(most + 1)), None);
        sets.release(7);
        assert_eq!(sets.hold(&keys(most + 1)), Some(7));
        assert_eq!(sets.of(7).keys(), keys(most + 1));
    }
}
