//! Times from a rate envelope.

use std::sync::Arc;
use weftwire_pace::{Envelope, Solver};

/// So many times are found in one go: what finds them remembers where it was, and lives no longer.
const AT_ONCE: u64 = 4_096;

/// The gaps between the packets of an envelope whose times are in seconds.
#[derive(Clone, Debug)]
pub(super) struct Paced {
    envelope: Arc<Envelope>,
    /// The number of the next packet that has no time here.
    packet: u64,
    /// Times in nanoseconds that were found, the latest first, and the last that was taken.
    times: Vec<i64>,
    last: i64,
}

impl Paced {
    /// The gaps behind packet 1.
    pub(super) fn new(envelope: &Arc<Envelope>) -> Paced {
        let mut paced = Paced { envelope: envelope.clone(), packet: 1, times: Vec::new(), last: 0 };
        paced.last = paced.next_time();
        paced
    }

    /// The next gap in nanoseconds; endless if the envelope sends no more.
    pub(super) fn gap(&mut self) -> i64 {
        let time = self.next_time();
        let gap = time.saturating_sub(self.last);
        self.last = time;
        gap
    }

    fn next_time(&mut self) -> i64 {
        if self.times.is_empty() {
            let mut solver = Solver::new(&self.envelope);
            let packets = self.packet..self.packet + AT_ONCE;
            self.packet = packets.end;
            let mut times: Vec<i64> = packets
                .map_while(|packet| solver.time_of_packet(packet).ok())
                .map(|seconds| libm::round(seconds * 1e9) as i64)
                .collect();
            times.reverse();
            self.times = times;
        }
        self.times.pop().unwrap_or(i64::MAX)
    }
}
