//! Sets of hosts.

use crate::HostId;

/// A set of hosts, one bit each.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct HostSet {
    words: Vec<u64>,
}

impl HostSet {
    /// The empty set, with room for the hosts 0 to `hosts - 1`.
    pub fn new(hosts: usize) -> Self {
        HostSet { words: vec![0; hosts.div_ceil(64)] }
    }

    /// Puts a host in.
    pub fn insert(&mut self, host: HostId) {
        let word = host.index() / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (host.index() % 64);
    }

    /// Whether a host is in it.
    pub fn contains(&self, host: HostId) -> bool {
        self.words.get(host.index() / 64).is_some_and(|word| word >> (host.index() % 64) & 1 == 1)
    }

    /// Whether no host is in it.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// How many hosts are in it.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no host is in both.
    pub fn is_disjoint(&self, other: &HostSet) -> bool {
        self.words.iter().zip(&other.words).all(|(mine, theirs)| mine & theirs == 0)
    }

    /// Adds another set of the same room.
    pub fn unite(&mut self, other: &HostSet) {
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }

    /// Those of this set that are not in the other, of the same room.
    pub fn without(&self, other: &HostSet) -> HostSet {
        HostSet { words: self.words.iter().zip(&other.words).map(|(mine, theirs)| mine & !theirs).collect() }
    }

    /// The hosts in it, ascending.
    pub fn iter(&self) -> impl Iterator<Item = HostId> {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| HostId(index as u32 * 64 + bit))
        })
    }
}
