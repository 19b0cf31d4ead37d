//! The last changes, as many as memory is given for: who is behind by more starts again.

use std::collections::VecDeque;

/// Changes by the number of the revision that made them, the oldest ones forgotten.
#[derive(Clone, Debug)]
pub(crate) struct Log<T> {
    /// With revision and weight.
    entries: VecDeque<(u64, usize, T)>,
    weight: usize,
    most: usize,
    /// Everything after this revision is there.
    floor: u64,
}

impl<T: Clone> Log<T> {
    /// An empty log that begins after a revision and keeps entries up to this weight.
    pub(crate) fn new(revision: u64, most: usize) -> Log<T> {
        Log { entries: VecDeque::new(), weight: 0, most, floor: revision }
    }

    /// Appends; revisions never go down.
    pub(crate) fn push(&mut self, revision: u64, weight: usize, entry: T) {
        self.entries.push_back((revision, weight, entry));
        self.weight += weight;
        while self.weight > self.most
            && let Some((revision, weight, _)) = self.entries.pop_front()
        {
            self.weight -= weight;
            self.floor = revision;
        }
    }

    /// What came after a revision, the oldest first, about `most` entries but each revision in full; with the last revision
    /// among them, or `None` if they are all. `Err`: some of it was forgotten.
    pub(crate) fn since(&self, revision: u64, most: usize) -> Result<(Vec<T>, Option<u64>), Forgotten> {
        if revision < self.floor {
            return Err(Forgotten);
        }
        let start = self.entries.partition_point(|(at, _, _)| *at <= revision);
        let mut last = revision;
        let mut found = Vec::new();
        for (at, _, entry) in self.entries.range(start..) {
            if found.len() >= most && *at != last {
                return Ok((found, Some(last)));
            }
            last = *at;
            found.push(entry.clone());
        }
        Ok((found, None))
    }
}

/// Changes are no longer there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Forgotten;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_come_whole_and_old_ones_are_forgotten() {
        let mut log = Log::new(5, 4);
        assert_eq!(log.since(5, 9), Ok((vec![], None)));
        assert_eq!(log.since(4, 9), Err(Forgotten));
        for (revision, entry) in [(6, 'a'), (8, 'b'), (8, 'c'), (9, 'd')] {
            log.push(revision, 1, entry);
        }
        assert_eq!(log.since(5, 9), Ok((vec!['a', 'b', 'c', 'd'], None)));
        assert_eq!(log.since(5, 2), Ok((vec!['a', 'b', 'c'], Some(8))));
        assert_eq!(log.since(7, 1), Ok((vec!['b', 'c'], Some(8))));
        assert_eq!(log.since(9, 1), Ok((vec![], None)));
        log.push(10, 3, 'e');
        assert_eq!(log.since(7, 9), Err(Forgotten));
        assert_eq!(log.since(8, 9), Ok((vec!['d', 'e'], None)));
        // Heavier than everything.
        log.push(11, 9, 'f');
        assert_eq!(log.since(10, 9), Err(Forgotten));
        assert_eq!(log.since(11, 9), Ok((vec![], None)));
    }
}
