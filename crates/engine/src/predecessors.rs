//! How many instances a key has had at one instant (semantics, rule V11): what keeps the random numbers of an instance
//! apart from those of the ones before it.

use crate::chance::KeyHasher;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Counts by key. It is emptied at each new instant, and keeps its memory.
#[derive(Debug)]
pub struct Predecessors {
    key_length: usize,
    /// One behind the other.
    keys: Vec<u8>,
    counts: Vec<u32>,
    /// The numbers of the keys. Nothing depends on their order.
    by_key: HashTable<usize>,
    hasher: KeyHasher,
}

impl Predecessors {
    /// None, of keys of this length.
    pub fn new(key_length: usize, hasher: KeyHasher) -> Predecessors {
        Predecessors { key_length, keys: Vec::new(), counts: Vec::new(), by_key: HashTable::new(), hasher }
    }

    /// How many instances a key has had.
    pub fn of(&self, key: &[u8]) -> u32 {
        self.find(key).map_or(0, |number| self.counts[number])
    }

    /// A key has had so many instances.
    pub fn set(&mut self, key: &[u8], count: u32) {
        if let Some(number) = self.find(key) {
            self.counts[number] = count;
            return;
        }
        let number = self.counts.len();
        self.keys.extend_from_slice(key);
        self.counts.push(count);
        let (keys, length, hasher) = (&self.keys, self.key_length, self.hasher);
        let hash_of = |number: &usize| hasher.hash_one(key_of(keys, length, *number));
        self.by_key.insert_unique(hash_of(&number), number, hash_of);
    }

    /// Forgets all of them: one by one, as there may once have been many.
    pub fn clear(&mut self) {
        while self.counts.pop().is_some() {
            let number = self.counts.len();
            let hash = self.hasher.hash_one(key_of(&self.keys, self.key_length, number));
            if let Ok(entry) = self.by_key.find_entry(hash, |other| *other == number) {
                entry.remove();
            }
            self.keys.truncate(number * self.key_length);
        }
    }

    /// All keys in order, with their counts.
    pub fn sorted(&self) -> Vec<(Vec<u8>, u32)> {
        let entry = |(number, count): (usize, &u32)| (key_of(&self.keys, self.key_length, number).to_vec(), *count);
        let mut all: Vec<(Vec<u8>, u32)> = self.counts.iter().enumerate().map(entry).collect();
        all.sort_unstable();
        all
    }

    fn find(&self, key: &[u8]) -> Option<usize> {
        let is_it = |number: &usize| key_of(&self.keys, self.key_length, *number) == key;
        self.by_key.find(self.hasher.hash_one(key), is_it).copied()
    }
}

fn key_of(keys: &[u8], length: usize, number: usize) -> &[u8] {
    &keys[number * length..][..length]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;

    #[test]
    fn keys_are_counted_until_all_are_forgotten() {
        let mut predecessors = Predecessors::new(2, Chance::new(1, None).key_hasher());
        let key = |number: u32| [(number >> 8) as u8, number as u8];
        for round in 1..4 {
            for number in (0..1_000).rev() {
                assert_eq!(predecessors.of(&key(number)), 0);
                predecessors.set(&key(number), 7);
                predecessors.set(&key(number), number + round);
            }
            let all: Vec<(Vec<u8>, u32)> = (0..1_000).map(|number| (key(number).to_vec(), number + round)).collect();
            assert_eq!(predecessors.sorted(), all);
            predecessors.clear();
        }
        assert_eq!(predecessors.sorted(), []);
    }
}
