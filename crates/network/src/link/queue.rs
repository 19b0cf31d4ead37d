//! The queue before the server, and its disciplines.

use super::pause::Holds;
use super::{Discipline, Offer, Queue, QueueLimit};
use crate::chance::Chance;
use std::collections::VecDeque;
use weftwire_core::nanoseconds;

/// A packet that waits.
pub(super) struct Waiting<P> {
    pub(super) packet: P,
    /// Since when.
    pub(super) since: i64,
    pub(super) bytes: u32,
    pub(super) ecn_capable: bool,
    /// To be marked with CE.
    pub(super) mark: bool,
    /// What it takes room of while it waits.
    pub(super) holds: Option<Holds>,
}

/// What becomes of a packet that comes to the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Pass,
    Mark,
    Drop,
    Full,
}

/// Packets that wait, in order, with the state of their discipline.
pub(super) struct Line<P> {
    packets: VecDeque<Waiting<P>>,
    bytes: u64,
    /// The longest packet ever offered: CoDel leaves that much in peace.
    longest: u32,
    red: Red,
    codel: Codel,
}

impl<P> Line<P> {
    pub(super) fn new() -> Line<P> {
        Line { packets: VecDeque::new(), bytes: 0, longest: 0, red: Red::default(), codel: Codel::default() }
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Forgets the discipline's past.
    pub(super) fn reset_discipline(&mut self) {
        self.red = Red::default();
        self.codel = Codel::default();
    }

    /// All that wait.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting<P>> {
        self.packets.iter()
    }

    /// Decides about a packet that comes now. `idle`: how long the server has been idle, in typical service times; `None`
    /// while it is busy, or paused. What takes room elsewhere is bounded there, not by the limit.
    pub(super) fn judge(
        &mut self,
        queue: &Queue,
        offer: &Offer,
        idle: impl FnOnce() -> Option<f64>,
        chance: &mut Chance,
    ) -> Verdict {
        let Offer { bytes, ecn_capable, holds, .. } = *offer;
        self.longest = self.longest.max(bytes);
        let (length, full) = match queue.limit {
            QueueLimit::Packets(limit) => (self.packets(), self.packets() >= limit),
            QueueLimit::Bytes(limit) => (self.bytes, self.bytes.saturating_add(u64::from(bytes)) > limit),
        };
        let full = full && holds.is_none();
        let Discipline::Red { minimum, maximum, probability, weight } = queue.discipline else {
            // What finds the server idle need not wait.
            return match queue.discipline {
                _ if full && idle().is_none() => Verdict::Full,
                Discipline::Step { threshold } if ecn_capable && length > threshold => Verdict::Mark,
                _ => Verdict::Pass,
            };
        };
        let idle = idle();
        self.red.sample(length, idle, weight);
        if full && idle.is_none() {
            self.red.since_drop = Some(0);
            return Verdict::Full;
        }
        match self.red.chooses(minimum, maximum, probability, chance) {
            false => Verdict::Pass,
            true if queue.ecn && ecn_capable => Verdict::Mark,
            true => Verdict::Drop,
        }
    }

    pub(super) fn push(&mut self, waiting: Waiting<P>) {
        self.bytes += u64::from(waiting.bytes);
        self.packets.push_back(waiting);
    }

    /// Takes the packet that begins service at `start`. What CoDel chooses to drop goes to `drop`.
    pub(super) fn pop(&mut self, queue: &Queue, start: i64, mut drop: impl FnMut(Waiting<P>)) -> Option<Waiting<P>> {
        let Discipline::Codel { target, interval } = queue.discipline else { return self.shift() };
        let (target, interval) = (nanoseconds(target), nanoseconds(interval));
        let mut mark = |head: &mut Option<Waiting<P>>| match head {
            Some(packet) if queue.ecn && packet.ecn_capable => {
                packet.mark = true;
                true
            }
            _ => {
                head.take().map(&mut drop);
                false
            }
        };
        let (mut head, mut above) = self.leave(start, target, interval);
        if self.codel.dropping {
            self.codel.dropping = above;
            while self.codel.dropping && start >= self.codel.drop_next {
                self.codel.count = self.codel.count.saturating_add(1);
                let marked = mark(&mut head);
                if !marked {
                    (head, above) = self.leave(start, target, interval);
                    self.codel.dropping = above;
                }
                if self.codel.dropping {
                    self.codel.drop_next = self.codel.law(self.codel.drop_next, interval);
                }
                if marked {
                    break;
                }
            }
        } else if above {
            if !mark(&mut head) {
                (head, _) = self.leave(start, target, interval);
            }
            self.codel.enter(start, interval);
        }
        head
    }

    /// The head of the queue, whatever the discipline.
    pub(super) fn shift(&mut self) -> Option<Waiting<P>> {
        let head = self.packets.pop_front()?;
        self.bytes -= u64::from(head.bytes);
        Some(head)
    }

    /// The head of the queue, and whether the queue has been standing for an interval as it leaves (`dodequeue`).
    fn leave(&mut self, start: i64, target: i64, interval: i64) -> (Option<Waiting<P>>, bool) {
        let head = self.shift();
        let above = |head: &Waiting<P>| start - head.since >= target && self.bytes > u64::from(self.longest);
        let standing = head.as_ref().is_some_and(above);
        (head, self.codel.stands(standing, start, interval))
    }
}

/// Random early detection (Floyd and Jacobson 1993, figure 17; "gentle" as Floyd 2000).
#[derive(Default)]
struct Red {
    /// The average queue.
    average: f64,
    /// Packets since the last drop or mark; `None` while the average is below the minimum.
    since_drop: Option<u64>,
}

impl Red {
    /// Takes the queue's length into the average. While the server was idle, as many packets might have found it empty.
    fn sample(&mut self, length: u64, idle: Option<f64>, weight: f64) {
        match idle {
            Some(missed) => self.average *= libm::pow(1.0 - weight, missed.max(1.0)),
            None => self.average += weight * (length as f64 - self.average),
        }
    }

    /// Whether this packet is to be dropped or marked. The count spaces the drops evenly.
    fn chooses(&mut self, minimum: u64, maximum: u64, greatest: f64, chance: &mut Chance) -> bool {
        let (minimum, maximum) = (minimum as f64, maximum as f64);
        if self.average < minimum {
            self.since_drop = None;
            return false;
        }
        let base = if self.average < maximum {
            greatest * (self.average - minimum) / (maximum - minimum)
        } else if self.average < 2.0 * maximum {
            greatest + (1.0 - greatest) * (self.average - maximum) / maximum
        } else {
            1.0
        };
        let count = self.since_drop.map_or(0, |count| count + 1);
        let left = 1.0 - count as f64 * base;
        let chosen = chance.happens(if left > base { base / left } else { 1.0 });
        self.since_drop = Some(if chosen { 0 } else { count });
        chosen
    }
}

/// State of CoDel (RFC 8289, section 5), with times of service beginning.
#[derive(Default)]
struct Codel {
    /// When the delay will have been above the target for an interval.
    first_above: Option<i64>,
    /// It is dropping.
    dropping: bool,
    /// When it drops next.
    drop_next: i64,
    /// Drops since it began.
    count: u64,
    /// The count with which it began.
    last_count: u64,
}

impl Codel {
    /// Whether the delay has been above the target for an interval.
    fn stands(&mut self, above: bool, now: i64, interval: i64) -> bool {
        if !above {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now.saturating_add(interval.max(1)))
    }

    /// The control law: drops come closer by the square root of their number.
    fn law(&self, from: i64, interval: i64) -> i64 {
        from.saturating_add((interval as f64 / (self.count.max(1) as f64).sqrt()) as i64)
    }

    /// Begins to drop. If it dropped not long ago, it goes on about as fast as it then did.
    fn enter(&mut self, now: i64, interval: i64) {
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.drop_next) < interval.saturating_mul(16);
        self.dropping = true;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.law(now, interval);
        self.last_count = self.count;
    }
}
