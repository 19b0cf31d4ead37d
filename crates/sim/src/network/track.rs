//! What a connection's segments tell: which bytes are repeated, and how long round trips take.

use std::collections::VecDeque;

/// Which bytes were sent first when, to know repeats and round-trip times from the segments alone.
///
/// A FIN counts as a byte behind the last, as in sequence numbers.
#[derive(Default)]
pub struct Track {
    /// Sequence number of the stream's first byte.
    base: Option<u32>,
    /// The stream's bytes sent.
    sent: u64,
    /// Where the FIN is, once it was sent.
    fin: Option<u64>,
    /// What is acknowledged, the FIN included.
    edge: u64,
    /// Segments sent and not yet acknowledged: first byte, end, time; `None` of what was sent twice.
    waiting: VecDeque<(u64, u64, Option<i64>)>,
    /// Up to here segments may have been held at the receiver behind one that was missing.
    held: u64,
}

impl Track {
    /// The stream's bytes acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.edge.min(self.fin.unwrap_or(u64::MAX))
    }

    /// Whether the FIN is acknowledged, and so everything.
    pub fn is_closed(&self) -> bool {
        self.fin.is_some_and(|fin| self.edge > fin)
    }

    /// A segment leaves. Gives the stream's offset and whether bytes are repeated, if it has payload.
    pub fn sent(&mut self, now: i64, sequence: u32, [syn, fin]: [bool; 2], length: u32) -> Option<(u64, bool)> {
        if syn {
            self.base = Some(sequence.wrapping_add(1));
        }
        if length == 0 && !fin {
            return None;
        }
        let start = self.offset(sequence, self.sent)?;
        let end = start + u64::from(length);
        if fin {
            self.fin = Some(end);
        }
        let end = end + u64::from(fin);
        let repeated = start < self.sent;
        if repeated {
            // Karn's rule: an acknowledgment of what was sent twice tells no time.
            let again = self.waiting.iter_mut().filter(|(first, last, _)| *last > start && *first < end);
            again.for_each(|(.., at)| *at = None);
        }
        if end > self.sent {
            self.waiting.push_back((start.max(self.sent), end, (!repeated).then_some(now)));
        }
        self.sent = self.sent.max(end);
        (length > 0).then_some((start, repeated))
    }

    /// An acknowledgment arrives. Gives a round-trip time, if it tells one: the time since the segment was sent whose arrival
    /// caused the acknowledgment, as the echoed time stamp of RFC 7323 would. That is the newest that it covers, unless that one
    /// had been waiting at the receiver for one before it: while that may be, only an acknowledgment of a single segment
    /// tells a time.
    pub fn received(&mut self, now: i64, acknowledgment: u32) -> Option<i64> {
        let end = self.offset(acknowledgment, self.edge)?;
        if end > self.sent {
            return None;
        }
        if end <= self.edge {
            if end == self.edge && self.sent > self.edge {
                // The same number again: something came that does not follow.
                self.held = self.sent;
            }
            return None;
        }
        let in_order = self.edge >= self.held;
        self.edge = end;
        let (mut covered, mut once, mut newest) = (0, true, None);
        while let Some((_, last, at)) = self.waiting.front().copied().filter(|(_, last, _)| *last <= end) {
            covered += 1;
            once &= at.is_some();
            newest = at.filter(|_| last == end);
            self.waiting.pop_front();
        }
        // Of a segment that is acknowledged in part, a part is left.
        if let Some((first, ..)) = self.waiting.front_mut() {
            *first = (*first).max(end);
        }
        newest.filter(|_| once && (in_order || covered == 1)).map(|at| now - at)
    }

    /// The stream's offset of a sequence number, near a known one.
    fn offset(&self, sequence: u32, near: u64) -> Option<u64> {
        let distance = sequence.wrapping_sub(self.base?).wrapping_sub(near as u32) as i32;
        near.checked_add_signed(i64::from(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: [bool; 2] = [false, false];

    /// A track after the handshake, whose first byte has the sequence number 1.
    fn open() -> Track {
        let mut track = Track::default();
        assert_eq!(track.sent(0, 0, [true, false], 0), None);
        track
    }

    /// So many segments of 100 bytes, the first at 10, a nanosecond apart.
    fn sending(count: u32) -> Track {
        let mut track = open();
        for number in 0..count {
            let sent = track.sent(10 + i64::from(number), 1 + 100 * number, PLAIN, 100);
            assert_eq!(sent, Some((100 * u64::from(number), false)));
        }
        track
    }

    #[test]
    fn repeats_and_round_trips_are_told_from_segments() {
        let mut track = Track::default();
        assert_eq!(track.sent(0, u32::MAX - 99, [true, false], 0), None);
        assert_eq!(track.sent(10, u32::MAX - 98, PLAIN, 100), Some((0, false)), "then the numbers wrap");
        assert_eq!(track.sent(20, 1, PLAIN, 100), Some((100, false)));
        assert_eq!(track.received(50, 1), Some(40));
        assert_eq!(track.sent(60, 1, PLAIN, 100), Some((100, true)));
        assert_eq!(track.sent(65, 101, PLAIN, 100), Some((200, false)));
        assert_eq!(track.received(70, 101), None, "sent twice");
        assert_eq!(track.received(80, 201), Some(15));
        assert_eq!(track.sent(85, 201, [false, true], 0), None, "the FIN");
        assert_eq!((track.acknowledged(), track.received(90, 202)), (300, Some(5)));
        assert_eq!((track.acknowledged(), track.received(91, 203)), (300, None), "what was never sent");
    }

    #[test]
    fn a_fin_sent_twice_tells_no_time() {
        let mut track = open();
        assert_eq!(track.sent(10, 1, [false, true], 100), Some((0, false)));
        assert_eq!(track.sent(20, 101, [false, true], 0), None);
        assert_eq!(track.received(30, 102), None);
        assert_eq!(track.acknowledged(), 100);
    }

    #[test]
    fn what_was_held_behind_a_lost_segment_tells_no_time() {
        // Of five segments the first is lost: four duplicate acknowledgments, the repeat, and one of all.
        let mut track = sending(5);
        for at in 50..54 {
            assert_eq!(track.received(at, 1), None);
        }
        assert_eq!(track.sent(60, 1, PLAIN, 100), Some((0, true)));
        assert_eq!(track.received(100, 501), None, "the repeat caused it, and the others were there long before");
        assert_eq!(track.sent(110, 501, PLAIN, 100), Some((500, false)));
        assert_eq!(track.received(150, 601), Some(40), "then all is well again");
    }

    #[test]
    fn what_was_held_tells_no_time_even_if_every_duplicate_is_lost() {
        let mut track = sending(5);
        assert_eq!(track.sent(60, 1, PLAIN, 100), Some((0, true)), "by the timer");
        assert_eq!(track.received(100, 501), None);
    }

    #[test]
    fn what_was_overtaken_tells_the_time_of_its_own_way_only() {
        // The first comes behind the other two, and nothing is sent twice.
        let mut track = sending(4);
        assert_eq!(track.received(40, 1), None);
        assert_eq!(track.received(41, 1), None);
        assert_eq!(track.received(60, 301), None, "the first caused it, the third would tell of waiting");
        assert_eq!(track.received(61, 401), Some(48), "a single one");
    }

    #[test]
    fn a_delayed_acknowledgment_is_of_the_newest() {
        let mut track = sending(4);
        assert_eq!(track.received(40, 201), Some(29));
        assert_eq!(track.received(41, 401), Some(28));
    }

    #[test]
    fn a_repeat_that_carries_new_bytes_too_tells_no_time() {
        let mut track = sending(1);
        assert_eq!(track.sent(20, 51, PLAIN, 100), Some((50, true)));
        assert_eq!(track.received(30, 151), None);
        assert_eq!((track.acknowledged(), track.received(31, 151)), (150, None));
    }
}
