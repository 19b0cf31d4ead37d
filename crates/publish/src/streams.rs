//! What is missing: messages of one publisher, topic and partition are numbered.
//!
//! A subscriber whose filter takes only some messages of a topic and partition, by their key say, sees numbers left out that
//! were not meant for it. Its gaps mean nothing.

use crate::message::Message;
use crate::topic::Topic;
use std::collections::BTreeMap;

/// What a message's number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is the first that was seen of its stream, or the next.
    Expected,
    /// So many in front of it have not come.
    Behind(u64),
    /// A later one came before: it is out of order, or came twice.
    Late,
    /// There are too many streams: nobody keeps count of this one.
    Uncounted,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages without heartbeats.
    pub messages: u64,
    /// Messages that should have come before one that came. Late ones are not taken off.
    pub missing: u64,
    /// Messages that came late or twice.
    pub late: u64,
    /// Messages of streams past the limit.
    pub uncounted: u64,
}

/// Keeps count of streams.
#[derive(Debug)]
pub struct Streams {
    next: BTreeMap<(u64, Topic, u16), u64>,
    limit: usize,
    tally: Tally,
}

impl Streams {
    /// No streams yet, and at most `limit`.
    pub fn new(limit: usize) -> Streams {
        Streams { next: BTreeMap::new(), limit, tally: Tally::default() }
    }

    /// Takes note of a message that came.
    pub fn observe(&mut self, message: &Message<'_>) -> Arrival {
        let arrival = self.arrival(message);
        self.tally.messages += u64::from(!message.heartbeat);
        match arrival {
            Arrival::Expected => {}
            Arrival::Behind(missing) => self.tally.missing = self.tally.missing.saturating_add(missing),
            Arrival::Late => self.tally.late += u64::from(!message.heartbeat),
            Arrival::Uncounted => self.tally.uncounted += 1,
        }
        arrival
    }

    fn arrival(&mut self, message: &Message<'_>) -> Arrival {
        let stream = (message.publisher, message.topic, message.partition);
        let after = message.sequence.saturating_add(u64::from(!message.heartbeat));
        let known = self.next.len();
        let next = match self.next.get_mut(&stream) {
            Some(next) => next,
            None if known >= self.limit => return Arrival::Uncounted,
            None => {
                self.next.insert(stream, after);
                return Arrival::Expected;
            }
        };
        match message.sequence.checked_sub(*next) {
            None => Arrival::Late,
            Some(missing) => {
                *next = after;
                if missing == 0 { Arrival::Expected } else { Arrival::Behind(missing) }
            }
        }
    }

    /// What was counted so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(publisher: u64, sequence: u64) -> Message<'static> {
        Message { publisher, sequence, ..Message::new(Topic::new("t").unwrap(), b"") }
    }

    #[test]
    fn gaps_are_counted_for_each_stream() {
        let mut streams = Streams::new(2);
        let seen: Vec<_> = [(1, 5), (1, 6), (2, 0), (1, 9), (1, 7), (1, 10), (2, 1), (3, 0)]
            .map(|(publisher, sequence)| streams.observe(&message(publisher, sequence)))
            .into();
        use Arrival::{Behind, Expected, Late, Uncounted};
        assert_eq!(seen, [Expected, Expected, Expected, Behind(2), Late, Expected, Expected, Uncounted]);
        assert_eq!(streams.tally(), Tally { messages: 8, missing: 2, late: 1, uncounted: 1 });
    }

    #[test]
    fn a_heartbeat_tells_of_the_last_messages() {
        let mut streams = Streams::new(1);
        streams.observe(&message(1, 0));
        let heartbeat = Message { heartbeat: true, ..message(1, 3) };
        assert_eq!(streams.observe(&heartbeat), Arrival::Behind(2));
        assert_eq!(streams.observe(&heartbeat), Arrival::Expected);
        assert_eq!(streams.observe(&message(1, 3)), Arrival::Expected);
        assert_eq!(streams.tally(), Tally { messages: 2, missing: 2, ..Tally::default() });
    }

    #[test]
    fn the_last_number_is_survived() {
        let mut streams = Streams::new(1);
        streams.observe(&message(1, u64::MAX));
        assert_eq!(streams.observe(&message(1, u64::MAX)), Arrival::Expected);
    }
}
