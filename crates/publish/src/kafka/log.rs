//! The records of a partition, in memory, the last of them.

use super::batch::write_batch;
use std::collections::VecDeque;

/// What a record takes in memory beside its bytes.
const OVERHEAD: usize = 48;
/// The most bytes that stand in a batch in front of a record's body.
const FRONT: usize = 24;
/// The bytes in front of a batch's records.
const HEAD: usize = 61;

/// The last records of a partition.
#[derive(Debug)]
pub struct Log {
    /// The first record's offset.
    start: i64,
    /// Time and body of each.
    records: VecDeque<(i64, Box<[u8]>)>,
    bytes: usize,
    limit: usize,
}

/// There is no record of this offset, and it is not the next either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

impl Log {
    /// An empty log that keeps records of up to `limit` bytes in all, and the last in any case.
    pub fn new(limit: usize) -> Log {
        Log { start: 0, records: VecDeque::new(), bytes: 0, limit }
    }

    /// The first record's offset.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// The offset of the record to come.
    pub fn end(&self) -> i64 {
        self.start + self.records.len() as i64
    }

    /// Bytes of memory that the records take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets the oldest records until so many bytes are free, but never the last one. Gives how many were forgotten.
    pub fn forget(&mut self, bytes: usize) -> u64 {
        let (target, before) = (self.bytes.saturating_sub(bytes), self.records.len());
        self.keep(target);
        (before - self.records.len()) as u64
    }

    /// Appends a record and forgets the oldest that there is no more room for.
    pub fn append(&mut self, timestamp: i64, body: &[u8]) {
        self.bytes += body.len() + OVERHEAD;
        self.records.push_back((timestamp, body.into()));
        self.keep(self.limit);
    }

    fn keep(&mut self, limit: usize) {
        while self.bytes > limit && self.records.len() > 1 {
            if let Some((_, body)) = self.records.pop_front() {
                self.bytes -= body.len() + OVERHEAD;
                self.start += 1;
            }
        }
    }

    /// About how many bytes of records there are from this offset on, counted until they are `enough`.
    ///
    /// # Errors
    /// [`OutOfRange`].
    pub fn available(&self, offset: i64, enough: usize) -> Result<usize, OutOfRange> {
        let mut bytes = 0;
        for (_, body) in self.records.range(self.index(offset)?..) {
            if bytes >= enough {
                break;
            }
            bytes += body.len() + FRONT;
        }
        Ok(bytes)
    }

    /// Appends a batch of the records from this offset on: as many as fit into `most` bytes, and one in any case, so that
    /// there is no record that nobody can get.
    ///
    /// # Errors
    /// [`OutOfRange`].
    pub fn read(&self, offset: i64, most: usize, out: &mut Vec<u8>) -> Result<(), OutOfRange> {
        let index = self.index(offset)?;
        let (mut count, mut bytes) = (0, HEAD);
        for (_, body) in self.records.range(index..) {
            bytes += body.len() + FRONT;
            if count > 0 && bytes > most {
                break;
            }
            count += 1;
        }
        let records = self.records.range(index..index + count);
        write_batch(offset, records.map(|(timestamp, body)| (*timestamp, &**body)), out);
        Ok(())
    }

    /// Offset and time of the first record that is not older.
    pub fn since(&self, timestamp: i64) -> Option<(i64, i64)> {
        let index = self.records.iter().position(|(time, _)| *time >= timestamp)?;
        Some((self.start + index as i64, self.records[index].0))
    }

    fn index(&self, offset: i64) -> Result<usize, OutOfRange> {
        let index = offset.checked_sub(self.start).and_then(|index| usize::try_from(index).ok());
        index.filter(|index| *index <= self.records.len()).ok_or(OutOfRange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::batch::Batch;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const EMPTY_BODY: [u8; 3] = [1, 1, 0];

    proptest! {
        #[test]
        fn all_that_is_kept_can_be_read(
            values in vec(vec(any::<u8>(), 0..60), 1..60), limit in 0..4_000_usize, most in 0..3_000_usize,
        ) {
            let mut log = Log::new(limit);
            for (time, value) in values.iter().enumerate() {
                let mut body = Vec::new();
                crate::kafka::wire::Write::variable_bytes(&mut body, None);
                crate::kafka::wire::Write::variable_bytes(&mut body, Some(value));
                body.push(0);
                log.append(time as i64, &body);
            }
            prop_assert_eq!(log.end(), values.len() as i64);
            prop_assert!(log.bytes <= limit || log.end() - log.start() == 1);
            let mut offset = log.start();
            while offset < log.end() {
                let mut out = Vec::new();
                log.read(offset, most, &mut out).unwrap();
                let batch = Batch::read(&out).unwrap();
                prop_assert!(out.len() <= most || batch.records.len() == 1);
                for record in batch.records {
                    prop_assert_eq!(record.value, Some(&*values[offset as usize]));
                    prop_assert_eq!(record.timestamp_ms, offset);
                    offset += 1;
                }
            }
        }
    }

    #[test]
    fn offsets_outside_are_told() {
        let mut log = Log::new(2 * (EMPTY_BODY.len() + OVERHEAD));
        for time in [10, 20, 30] {
            log.append(time, &EMPTY_BODY);
        }
        assert_eq!((log.start(), log.end()), (1, 3));
        assert_eq!([0, 4, -1, i64::MIN].map(|offset| log.available(offset, 1)), [Err(OutOfRange); 4]);
        assert_eq!(log.available(3, 1), Ok(0));
        assert!(log.available(1, 1000).unwrap() > log.available(2, 1000).unwrap());
        assert_eq!([5, 20, 21, 31].map(|time| log.since(time)), [Some((1, 20)), Some((1, 20)), Some((2, 30)), None]);
    }
}
