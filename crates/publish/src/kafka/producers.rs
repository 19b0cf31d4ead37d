//! Producers that number their batches, so that one sent twice is taken once.

use super::batch::Batch;
use super::response::code;
use std::collections::{BTreeMap, VecDeque};

/// As many batches as a producer may have on the way.
const REMEMBERED: usize = 5;

/// The producers of one partition.
#[derive(Debug, Default)]
pub struct Producers {
    known: BTreeMap<i64, Producer>,
    /// Counts batches, to tell who has been quiet longest.
    clock: u64,
}

#[derive(Debug)]
struct Producer {
    epoch: i16,
    /// The number of the record to come.
    next: i32,
    /// The first record's number, and its offset, of the last batches.
    batches: VecDeque<(i32, i64)>,
    used: u64,
}

/// What is to be done with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is new.
    Take,
    /// It was taken before, with this offset.
    Known(i64),
    /// It cannot be taken: the protocol's error.
    Refuse(i16),
}

impl Producers {
    /// Judges a batch by its number.
    pub fn judge(&self, batch: &Batch<'_>) -> Verdict {
        let Some(producer) = self.known.get(&batch.producer) else { return Verdict::Take };
        if batch.epoch < producer.epoch {
            return Verdict::Refuse(code::INVALID_PRODUCER_EPOCH);
        }
        if batch.epoch > producer.epoch || batch.sequence == producer.next {
            return Verdict::Take;
        }
        match producer.batches.iter().find(|(sequence, _)| *sequence == batch.sequence) {
            Some((_, offset)) => Verdict::Known(*offset),
            None => Verdict::Refuse(code::OUT_OF_ORDER_SEQUENCE_NUMBER),
        }
    }

    /// Remembers that a batch was taken with this offset, and forgets whom there is no room for: the one of `limit`
    /// producers that has been quiet longest.
    pub fn taken(&mut self, batch: &Batch<'_>, offset: i64, limit: usize) {
        if batch.producer < 0 || batch.sequence < 0 {
            return;
        }
        self.clock += 1;
        if !self.known.contains_key(&batch.producer) && self.known.len() >= limit {
            let quiet = self.known.iter().min_by_key(|(_, producer)| producer.used).map(|(id, _)| *id);
            quiet.and_then(|quiet| self.known.remove(&quiet));
        }
        let new = || Producer { epoch: batch.epoch, next: 0, batches: VecDeque::new(), used: 0 };
        let producer = self.known.entry(batch.producer).or_insert_with(new);
        if batch.epoch > producer.epoch {
            *producer = new();
        }
        // Numbers start again behind the greatest.
        let after = i64::from(batch.sequence) + batch.records.len() as i64;
        producer.next = (after & i64::from(i32::MAX)) as i32;
        producer.used = self.clock;
        if producer.batches.len() == REMEMBERED {
            producer.batches.pop_front();
        }
        producer.batches.push_back((batch.sequence, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::batch::Record;

    fn batch(producer: i64, epoch: i16, sequence: i32, records: usize) -> Batch<'static> {
        let record = Record::from_body(&[1, 1, 0], 0).unwrap();
        Batch { producer, epoch, sequence, records: vec![record; records] }
    }

    #[test]
    fn what_comes_twice_is_taken_once() {
        let mut producers = Producers::default();
        producers.taken(&batch(7, 0, 0, 3), 100, 2);
        assert_eq!(producers.judge(&batch(7, 0, 0, 3)), Verdict::Known(100));
        assert_eq!(producers.judge(&batch(7, 0, 3, 1)), Verdict::Take);
        assert_eq!(producers.judge(&batch(7, 0, 5, 1)), Verdict::Refuse(code::OUT_OF_ORDER_SEQUENCE_NUMBER));
        producers.taken(&batch(7, 1, 0, 1), 103, 2);
        assert_eq!(producers.judge(&batch(7, 0, 3, 1)), Verdict::Refuse(code::INVALID_PRODUCER_EPOCH));
        assert_eq!(producers.judge(&batch(7, 1, 0, 1)), Verdict::Known(103));
        for sequence in 1..7 {
            producers.taken(&batch(7, 1, sequence, 1), 103 + i64::from(sequence), 2);
        }
        assert_eq!(producers.judge(&batch(7, 1, 1, 1)), Verdict::Refuse(code::OUT_OF_ORDER_SEQUENCE_NUMBER));
        assert_eq!(producers.judge(&batch(7, 1, 2, 1)), Verdict::Known(105));
    }

    #[test]
    fn numbers_start_again() {
        let mut producers = Producers::default();
        producers.taken(&batch(7, 0, i32::MAX, 1), 0, 2);
        assert_eq!(producers.judge(&batch(7, 0, 0, 1)), Verdict::Take);
        producers.taken(&batch(8, 0, i32::MAX, 2), 0, 2);
        assert_eq!(producers.judge(&batch(8, 0, 1, 1)), Verdict::Take);
    }

    #[test]
    fn the_quietest_is_forgotten() {
        let mut producers = Producers::default();
        for producer in [1, 2, 1, 3] {
            producers.taken(&batch(producer, 0, 0, 1), 0, 2);
        }
        assert_eq!(producers.judge(&batch(1, 0, 5, 1)), Verdict::Refuse(code::OUT_OF_ORDER_SEQUENCE_NUMBER));
        assert_eq!(producers.judge(&batch(2, 0, 5, 1)), Verdict::Take);
        // Producers without a number are nobody.
        producers.taken(&batch(-1, -1, -1, 1), 0, 2);
        assert_eq!(producers.known.len(), 2);
    }
}
