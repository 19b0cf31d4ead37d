//! A host that takes one packet after another.

use std::collections::VecDeque;

/// Packets that wait for a host at most: what the ring of a network card holds.
const RING: usize = 4_096;

/// A host that takes some time for each packet, in the order of arrival; beyond a full ring packets are lost.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// When each packet in the ring will be done with.
    waiting: VecDeque<u64>,
    free_at: u64,
    /// Packets that found the ring full.
    pub lost: u64,
}

impl Host {
    /// A packet arrives, no earlier than the one before. When the host is done with it; `None`: it is lost.
    pub fn take(&mut self, at_ns: u64, cost_ns: u64) -> Option<u64> {
        while self.waiting.front().is_some_and(|done| *done <= at_ns) {
            self.waiting.pop_front();
        }
        if self.waiting.len() >= RING {
            self.lost += 1;
            return None;
        }
        self.free_at = self.free_at.max(at_ns) + cost_ns;
        self.waiting.push_back(self.free_at);
        Some(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_wait_and_are_lost() {
        let mut host = Host::default();
        assert_eq!([host.take(0, 10), host.take(5, 10), host.take(100, 10)], [Some(10), Some(20), Some(110)]);
        let mut host = Host::default();
        let done = (0..5_000).filter(|_| host.take(0, 10).is_some()).count();
        assert_eq!((done, host.lost), (4_096, 904));
    }
}
