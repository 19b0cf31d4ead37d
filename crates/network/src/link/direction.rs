//! The state machine of one direction.

use super::loss::LossState;
use super::pause::Holds;
use super::queue::{Line, Verdict, Waiting};
use super::{CLASSES, LinkSettings};
use crate::chance::Chance;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::mem::discriminant;
use std::time::Duration;
use weftwire_core::{Time, nanoseconds};

/// One direction of a link, carrying packets known by handles of type `P` (the simulator's slots, the relay's buffers).
///
/// Inputs: [`Direction::offer`], [`Direction::change`], [`Direction::pause`], [`Direction::down`], [`Direction::up`]. Times never go back.
/// Outputs: [`Direction::next`] says when the next packet reaches the far end (it is known exactly as soon as a packet
/// is in service: one event per packet and link); [`Direction::arrive`] takes it. Dropped packets come back at
/// once or, when dropped in the queue later, by [`Direction::take_dropped`], so that nobody's buffers leak; and
/// [`Direction::take_freed`] says what no longer waits of that which takes room elsewhere.
///
/// What happens inside between two calls (packets begin service, CoDel drops) is made up for at the next one, with the
/// times at which it happened; so it does not matter how often anybody looks.
pub struct Direction<P> {
    settings: LinkSettings,
    /// By class; classes above the highest that was ever seen have none.
    lines: Vec<Line<P>>,
    /// Classes that may not be served, a bit each.
    paused: u8,
    /// Since when there are such classes.
    paused_at: i64,
    /// Packets that wait and hold room elsewhere.
    holding: usize,
    freed: VecDeque<(Holds, u32)>,
    /// When the server ends the packet in service, or ended the last one. Whoever waits has come before this.
    free_at: i64,
    /// How long the last packet was in service.
    last_service: i64,
    /// Served, ordered by arrival.
    flying: VecDeque<Flying<P>>,
    /// The latest arrival of a packet that was not reordered: the next such one does not arrive before it.
    in_order: i64,
    dropped: VecDeque<(P, DropCause)>,
    is_down: bool,
    blackhole: bool,
    loss: LossState,
    chance: Chance,
    counts: Counts,
    /// Up to when the waiting bytes are in the integral.
    integrated: i64,
}

/// A packet in service or on the wire.
struct Flying<P> {
    at: i64,
    packet: P,
    waited: i64,
    bytes: u32,
    corrupt_bit: Option<u32>,
    mark: bool,
    duplicate: bool,
}

/// A packet offered to a direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Length of the frame in bytes.
    pub bytes: u32,
    /// Its transport is ECN-capable (ECT(0), ECT(1) or CE), so it may be marked.
    pub ecn_capable: bool,
    /// Its class, below [`CLASSES`]; 0 where the queue has no priorities.
    pub class: u8,
    /// What it takes room of while it waits.
    pub holds: Option<Holds>,
}

impl Offer {
    /// A packet of class 0 of so many bytes, without ECN.
    pub fn of(bytes: u32) -> Offer {
        Offer { bytes, ecn_capable: false, class: 0, holds: None }
    }
}

/// A packet at the far end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival<P> {
    /// When it arrives.
    pub at: Time,
    /// The packet. A duplicate is a second arrival with a clone of it.
    pub packet: P,
    /// It is to be marked with ECN's CE.
    pub mark: bool,
    /// A bit to invert: its number, counted from the first bit of the frame; `None`: intact.
    pub corrupt_bit: Option<u32>,
    /// It is a duplicate: its first copy has arrived before.
    pub duplicate: bool,
    /// How long it waited in the queue before service.
    pub waited: Duration,
}

/// Why a link dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropCause {
    /// Random or bursty loss.
    Loss,
    /// The queue was full.
    QueueFull,
    /// The queue's discipline (RED, CoDel) chose it.
    Discipline,
    /// The link was down, or went down with the packet on it.
    Down,
    /// The link is a black hole.
    Blackhole,
}

/// What a direction has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Packets offered.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that reached the far end, duplicates included.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets dropped as the queue was full.
    pub dropped_full: u64,
    /// Packets dropped by the discipline.
    pub dropped_early: u64,
    /// Packets lost as the link was down.
    pub dropped_down: u64,
    /// Packets swallowed by a black hole.
    pub dropped_blackhole: u64,
    /// Packets marked with CE.
    pub marked: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets delayed so that others may overtake them, and packets that overtook others by jitter.
    pub reordered: u64,
    /// Packets with an inverted bit.
    pub corrupted: u64,
    /// Packets on the link now, copies included: waiting, in service, on the wire.
    pub on_link: u64,
    /// Packets that began service: those that the waiting times below are of.
    pub served: u64,
    /// Sum of the waiting times in the queue, nanoseconds.
    pub waited_sum: u128,
    /// The longest wait, nanoseconds.
    pub waited_max: i64,
    /// Nanoseconds in which the server was busy.
    pub busy: u128,
    /// How often the far end asked for a pause, of any class.
    #[serde(default)]
    pub pauses: u64,
    /// Nanoseconds in which a class at least was paused.
    #[serde(default)]
    pub paused: u128,
    /// Most packets waiting at once.
    pub queue_packets_max: u64,
    /// Most bytes waiting at once.
    pub queue_bytes_max: u64,
    /// Integral of waiting bytes over time, byte-nanoseconds: its mean is this over the time.
    pub queue_bytes_integral: u128,
}

/// Bits of the Ethernet header, which stays intact: else no switch could deliver the frame.
const INTACT_BITS: u64 = 14 * 8;

impl<P: Clone> Direction<P> {
    /// An idle direction at time 0 with its own random numbers.
    pub fn new(settings: LinkSettings, seed: u64) -> Direction<P> {
        Direction {
            settings,
            lines: vec![Line::new()],
            paused: 0,
            paused_at: 0,
            holding: 0,
            freed: VecDeque::new(),
            free_at: i64::MIN,
            last_service: 0,
            flying: VecDeque::new(),
            in_order: i64::MIN,
            dropped: VecDeque::new(),
            is_down: false,
            blackhole: false,
            loss: LossState::default(),
            chance: Chance::new(seed),
            counts: Counts::default(),
            integrated: 0,
        }
    }

    /// Offers a packet. What is dropped comes back at once with the reason.
    ///
    /// # Errors
    /// The packet and why it was dropped.
    pub fn offer(&mut self, now: Time, packet: P, offer: Offer) -> Result<(), (P, DropCause)> {
        let now = now.nanoseconds();
        self.advance(now);
        self.counts.offered_packets += 1;
        self.counts.offered_bytes += u64::from(offer.bytes);
        if self.is_down {
            self.counts.dropped_down += 1;
            return Err((packet, DropCause::Down));
        }
        if self.blackhole {
            self.counts.dropped_blackhole += 1;
            return Err((packet, DropCause::Blackhole));
        }
        if self.loss.loses(&self.settings.loss, &mut self.chance) {
            self.counts.lost += 1;
            return Err((packet, DropCause::Loss));
        }
        let class = usize::from(offer.class).min(CLASSES - 1);
        if class >= self.lines.len() {
            self.lines.resize_with(class + 1, Line::new);
        }
        // Nobody waits at an idle server, unless there is a pause.
        let idle = self.free_at <= now && !self.is_paused(class);
        let Offer { bytes, ecn_capable, holds, .. } = offer;
        let mut waiting = Waiting { packet, since: now, bytes, ecn_capable, mark: false, holds };
        if self.settings.rate.is_some() || !idle {
            let (free_at, service) = (self.free_at, self.last_service.max(1));
            let idle_services = || idle.then(|| now.saturating_sub(free_at) as f64 / service as f64);
            match self.lines[class].judge(&self.settings.queue, &offer, idle_services, &mut self.chance) {
                Verdict::Pass => {}
                Verdict::Mark => waiting.mark = true,
                Verdict::Drop => {
                    self.counts.dropped_early += 1;
                    return Err((waiting.packet, DropCause::Discipline));
                }
                Verdict::Full => {
                    self.counts.dropped_full += 1;
                    return Err((waiting.packet, DropCause::QueueFull));
                }
            }
        }
        self.holding += usize::from(holds.is_some());
        if idle {
            self.serve(now, waiting);
        } else {
            self.integrate(now);
            self.lines[class].push(waiting);
            let (packets, bytes) = self.in_lines();
            self.counts.queue_packets_max = self.counts.queue_packets_max.max(packets);
            self.counts.queue_bytes_max = self.counts.queue_bytes_max.max(bytes);
        }
        Ok(())
    }

    /// When the next packet reaches the far end, if any is on the link; ask anew after each input. It may become earlier by
    /// an offer (reordering), and may be gone by then (CoDel never drops what is in service; only [`Direction::down`]
    /// empties a link). While a reordered packet is on its way and others wait behind it, or those that wait hold room, it may
    /// be an instant at which [`Direction::arrive`] has nothing yet: then ask again.
    pub fn next(&self) -> Option<Time> {
        let first = self.flying.front()?.at;
        if self.servable().is_none() {
            return Some(Time::from_nanoseconds(first));
        }
        // Who waits may overtake a reordered packet, at the soonest so; and frees the room that it holds.
        let overtaking = self.free_at.saturating_add(nanoseconds(self.settings.delay)).max(self.in_order);
        let freeing = if self.holding > 0 { self.free_at } else { i64::MAX };
        Some(Time::from_nanoseconds(first.min(overtaking).min(freeing)))
    }

    /// The highest class that is served next.
    fn servable(&self) -> Option<usize> {
        (0..self.lines.len()).rev().find(|class| !self.lines[*class].is_empty() && !self.is_paused(*class))
    }

    fn is_paused(&self, class: usize) -> bool {
        self.paused & 1 << class != 0
    }

    /// Packets and bytes that wait.
    fn in_lines(&self) -> (u64, u64) {
        self.lines.iter().fold((0, 0), |(packets, bytes), line| (packets + line.packets(), bytes + line.bytes()))
    }

    /// The far end asks for no more packets of a class, or takes them again. The packet in service is not held back.
    pub fn pause(&mut self, now: Time, class: u8, on: bool) {
        let now = now.nanoseconds();
        self.advance(now);
        self.count_pause(now);
        let bit = 1_u8.checked_shl(class.into()).unwrap_or(0);
        self.counts.pauses += u64::from(on && self.paused & bit == 0);
        self.paused = if on { self.paused | bit } else { self.paused & !bit };
        // What waited for the end of the pause begins service now, not when the server became free.
        self.free_at = self.free_at.max(now);
        self.advance(now);
    }

    /// Classes that are paused, a bit each.
    pub fn paused(&self) -> u8 {
        self.paused
    }

    /// Of those that wait in paused classes, what they hold.
    pub fn stuck(&self) -> impl Iterator<Item = (u8, Holds)> + '_ {
        let paused = (0..self.lines.len()).filter(|class| self.is_paused(*class));
        paused.flat_map(|class| self.lines[class].iter().filter_map(move |waiting| Some((class as u8, waiting.holds?))))
    }

    /// What no longer waits, or never did, of that which was offered with something to hold; and its bytes.
    pub fn take_freed(&mut self) -> Option<(Holds, u32)> {
        self.freed.pop_front()
    }

    /// Adds the time of a pause up to `now`.
    fn count_pause(&mut self, now: i64) {
        if self.paused != 0 {
            self.counts.paused += now.saturating_sub(self.paused_at).max(0) as u128;
        }
        self.paused_at = now;
    }

    /// Takes the next packet if it has reached the far end by `now`.
    pub fn arrive(&mut self, now: Time) -> Option<Arrival<P>> {
        let now = now.nanoseconds();
        self.advance(now);
        if self.flying.front()?.at > now {
            return None;
        }
        let flying = self.flying.pop_front()?;
        self.counts.delivered_packets += 1;
        self.counts.delivered_bytes += u64::from(flying.bytes);
        Some(Arrival {
            at: Time::from_nanoseconds(flying.at),
            packet: flying.packet,
            mark: flying.mark,
            corrupt_bit: flying.corrupt_bit,
            duplicate: flying.duplicate,
            waited: Duration::from_nanos(flying.waited.unsigned_abs()),
        })
    }

    /// A packet that the discipline dropped in the queue, or that was lost when the link went down.
    pub fn take_dropped(&mut self) -> Option<(P, DropCause)> {
        self.dropped.pop_front()
    }

    /// New settings. The packet in service and those behind it on the wire keep their times.
    pub fn change(&mut self, now: Time, settings: LinkSettings) {
        self.advance(now.nanoseconds());
        if discriminant(&settings.queue.discipline) != discriminant(&self.settings.queue.discipline) {
            self.lines.iter_mut().for_each(Line::reset_discipline);
        }
        self.settings = settings;
    }

    /// The settings in force.
    pub fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    /// The link goes down: all that is on it is lost, and what is offered until [`Direction::up`]. What has reached the far
    /// end by now still arrives.
    pub fn down(&mut self, now: Time) {
        let now = now.nanoseconds();
        self.advance(now);
        self.integrate(now);
        self.is_down = true;
        if self.free_at > now {
            self.counts.busy -= self.free_at.abs_diff(now) as u128;
            self.free_at = now;
        }
        self.in_order = self.in_order.min(now);
        let arrived = self.flying.partition_point(|flying| flying.at <= now);
        let lost = self.flying.drain(arrived..).map(|flying| flying.packet);
        let before = self.dropped.len();
        self.dropped.extend(lost.map(|packet| (packet, DropCause::Down)));
        for line in self.lines.iter_mut().rev() {
            while let Some(waiting) = line.shift() {
                free(&waiting, &mut self.holding, &mut self.freed);
                self.dropped.push_back((waiting.packet, DropCause::Down));
            }
        }
        self.counts.dropped_down += (self.dropped.len() - before) as u64;
    }

    /// The link is up again.
    pub fn up(&mut self, now: Time) {
        self.advance(now.nanoseconds());
        self.is_down = false;
    }

    /// It swallows what is offered, or no longer.
    pub fn set_blackhole(&mut self, now: Time, on: bool) {
        self.advance(now.nanoseconds());
        self.blackhole = on;
    }

    /// Packets and bytes that wait at `now`, the one in service not counted.
    pub fn waiting(&mut self, now: Time) -> (u64, u64) {
        self.advance(now.nanoseconds());
        self.in_lines()
    }

    /// What it has counted up to `now`.
    pub fn counts(&mut self, now: Time) -> Counts {
        let now = now.nanoseconds();
        self.advance(now);
        self.integrate(now);
        self.count_pause(now);
        let mut counts = self.counts;
        counts.on_link = self.in_lines().0 + self.flying.len() as u64;
        counts.busy -= self.free_at.saturating_sub(now).max(0) as u128;
        counts
    }

    /// What it has counted up to `now`, when the warm-up is over; the greatest values begin anew.
    pub fn end_warm_up(&mut self, now: Time) -> Counts {
        let counts = self.counts(now);
        self.counts.waited_max = 0;
        (self.counts.queue_packets_max, self.counts.queue_bytes_max) = self.in_lines();
        counts
    }

    /// Lets begin service whoever has by `now`.
    fn advance(&mut self, now: i64) {
        while self.free_at <= now
            && let Some(class) = self.servable()
        {
            let start = self.free_at;
            self.integrate(start);
            let Direction { lines, settings, dropped, counts, holding, freed, .. } = self;
            let waiting = lines[class].pop(&settings.queue, start, |waiting| {
                free(&waiting, holding, freed);
                dropped.push_back((waiting.packet, DropCause::Discipline));
                counts.dropped_early += 1;
            });
            // Of this class all may have been dropped.
            if let Some(waiting) = waiting {
                self.serve(start, waiting);
            }
        }
    }

    /// A packet begins service: from here on its time of arrival is known.
    fn serve(&mut self, start: i64, waiting: Waiting<P>) {
        free(&waiting, &mut self.holding, &mut self.freed);
        let Waiting { packet, since, bytes, mark, .. } = waiting;
        let waited = start - since;
        if let Some(rate) = &self.settings.rate {
            self.free_at = rate.finish(start, u64::from(bytes) + u64::from(self.settings.overhead));
            self.last_service = self.free_at.saturating_sub(start);
            self.counts.busy += self.last_service as u128;
        } else {
            self.free_at = start;
        }
        self.counts.served += 1;
        self.counts.waited_sum += waited as u128;
        self.counts.waited_max = self.counts.waited_max.max(waited);
        self.counts.marked += u64::from(mark);

        let duplicate = self.chance.happens(self.settings.duplicate).then(|| packet.clone());
        let corrupt_bit = self.corrupt(bytes);
        let jitter = self.chance.up_to(nanoseconds(self.settings.jitter) as u64) as i64;
        let soonest = self.free_at.saturating_add(nanoseconds(self.settings.delay));
        // Jitter that reorders comes on top of what is in order, so that nobody behind has to wait for it.
        let (mut at, late) = match self.settings.jitter_reorders {
            true => (soonest.max(self.in_order), jitter),
            false => (soonest.saturating_add(jitter).max(self.in_order), 0),
        };
        if self.chance.happens(self.settings.reorder) {
            at = at.saturating_add(nanoseconds(self.settings.reorder_delay));
            self.counts.reordered += 1;
        } else {
            self.in_order = at;
        }
        at = at.saturating_add(late);
        if self.settings.jitter_reorders && self.flying.back().is_some_and(|last| last.at > at) {
            self.counts.reordered += 1;
        }
        self.fly(Flying { at, packet, waited, bytes, corrupt_bit, mark, duplicate: false });
        if let Some(packet) = duplicate {
            let corrupt_bit = self.corrupt(bytes);
            self.counts.duplicated += 1;
            self.fly(Flying { at, packet, waited, bytes, corrupt_bit, mark, duplicate: true });
        }
    }

    /// Puts a packet on the wire behind all that arrive no later.
    fn fly(&mut self, flying: Flying<P>) {
        if self.flying.back().is_none_or(|last| last.at <= flying.at) {
            self.flying.push_back(flying);
        } else {
            let place = self.flying.partition_point(|other| other.at <= flying.at);
            self.flying.insert(place, flying);
        }
    }

    /// The bit to invert in a packet, if it is to be corrupted.
    fn corrupt(&mut self, bytes: u32) -> Option<u32> {
        let bits = u64::from(bytes) * 8;
        if bits <= INTACT_BITS || !self.chance.happens(self.settings.corrupt) {
            return None;
        }
        self.counts.corrupted += 1;
        u32::try_from(INTACT_BITS + self.chance.up_to(bits - INTACT_BITS - 1)).ok()
    }

    /// Adds the bytes that waited since the last time to the integral.
    fn integrate(&mut self, now: i64) {
        let waited = now.saturating_sub(self.integrated);
        if waited > 0 {
            self.counts.queue_bytes_integral += u128::from(self.in_lines().1) * waited as u128;
            self.integrated = now;
        }
    }
}

/// A packet waits no longer.
fn free<P>(waiting: &Waiting<P>, holding: &mut usize, freed: &mut VecDeque<(Holds, u32)>) {
    if let Some(holds) = waiting.holds {
        *holding -= 1;
        freed.push_back((holds, waiting.bytes));
    }
}

impl Counts {
    /// What was counted since `before`. What was on the link then counts as offered, so that all that was offered still is what
    /// was delivered, dropped, or is on the link.
    #[must_use]
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            offered_packets: self.offered_packets - before.offered_packets + before.on_link,
            offered_bytes: self.offered_bytes - before.offered_bytes,
            delivered_packets: self.delivered_packets - before.delivered_packets,
            delivered_bytes: self.delivered_bytes - before.delivered_bytes,
            lost: self.lost - before.lost,
            dropped_full: self.dropped_full - before.dropped_full,
            dropped_early: self.dropped_early - before.dropped_early,
            dropped_down: self.dropped_down - before.dropped_down,
            dropped_blackhole: self.dropped_blackhole - before.dropped_blackhole,
            marked: self.marked - before.marked,
            duplicated: self.duplicated - before.duplicated,
            reordered: self.reordered - before.reordered,
            corrupted: self.corrupted - before.corrupted,
            served: self.served - before.served,
            waited_sum: self.waited_sum - before.waited_sum,
            busy: self.busy.saturating_sub(before.busy),
            pauses: self.pauses - before.pauses,
            paused: self.paused - before.paused,
            queue_bytes_integral: self.queue_bytes_integral - before.queue_bytes_integral,
            // What is there now, and the greatest values, which began anew.
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Discipline, Loss, Queue, QueueLimit, Rate};
    use super::*;

    fn at(nanoseconds: i64) -> Time {
        Time::from_nanoseconds(nanoseconds)
    }

    fn bytes(bytes: u32) -> Offer {
        Offer::of(bytes)
    }

    /// 1 byte a nanosecond, 1,000 ns of delay, two packets may wait.
    fn wire() -> LinkSettings {
        LinkSettings {
            rate: Some(Rate::Constant(8_000_000_000)),
            delay: Duration::from_micros(1),
            queue: Queue {
                limit: QueueLimit::Packets(2),
                discipline: Discipline::DropTail,
                ecn: false,
                priority: false,
            },
            ..LinkSettings::default()
        }
    }

    #[test]
    fn packets_are_serialised_one_after_another_and_the_queue_is_bounded() {
        let mut link = Direction::new(wire(), 1);
        for number in 0..3 {
            assert_eq!(link.offer(at(0), number, bytes(100)), Ok(()));
        }
        assert_eq!(link.offer(at(99), 3, bytes(100)), Err((3, DropCause::QueueFull)));
        assert_eq!(link.waiting(at(99)), (2, 200));
        assert_eq!(link.offer(at(100), 4, bytes(100)), Ok(()), "one has begun service");
        let mut arrivals = Vec::new();
        while let Some(next) = link.next() {
            let arrival = link.arrive(next).expect("an arrival when it was said");
            assert_eq!(arrival.at, next);
            arrivals.push((arrival.packet, next.nanoseconds(), nanoseconds(arrival.waited)));
        }
        assert_eq!(arrivals, [(0, 1_100, 0), (1, 1_200, 100), (2, 1_300, 200), (4, 1_400, 200)]);
        let counts = link.counts(at(1_400));
        assert_eq!((counts.offered_packets, counts.delivered_packets, counts.dropped_full), (5, 4, 1));
        assert_eq!((counts.busy, counts.waited_sum, counts.waited_max), (400, 500, 200));
        assert_eq!((counts.queue_packets_max, counts.queue_bytes_max), (2, 200));
        assert_eq!(counts.queue_bytes_integral, 100 * 500);
    }

    #[test]
    fn down_loses_what_is_on_the_link() {
        let mut link = Direction::new(wire(), 1);
        for number in 0..3 {
            link.offer(at(0), number, bytes(100)).expect("room");
        }
        link.down(at(1_100));
        assert_eq!(link.offer(at(1_150), 3, bytes(100)), Err((3, DropCause::Down)));
        assert_eq!(link.arrive(at(1_150)).map(|arrival| arrival.packet), Some(0), "had arrived");
        assert_eq!(link.next(), None);
        assert_eq!(link.take_dropped(), Some((1, DropCause::Down)));
        assert_eq!(link.take_dropped(), Some((2, DropCause::Down)));
        assert_eq!(link.take_dropped(), None);
        link.up(at(2_000));
        link.offer(at(2_000), 4, bytes(10)).expect("up again");
        assert_eq!(link.next(), Some(at(3_010)));
        assert_eq!(link.counts(at(2_000)).dropped_down, 3);
    }

    #[test]
    fn whoever_waits_overtakes_a_reordered_packet() {
        let mut link =
            Direction::new(LinkSettings { reorder: 1.0, reorder_delay: Duration::from_micros(50), ..wire() }, 1);
        link.offer(at(0), 0, bytes(100)).expect("room");
        link.offer(at(0), 1, bytes(100)).expect("room");
        link.change(at(50), wire());
        let mut arrivals = Vec::new();
        while let Some(next) = link.next() {
            arrivals.extend(
                link.arrive(next).map(|arrival| (arrival.packet, arrival.at.nanoseconds(), next == arrival.at)),
            );
        }
        assert_eq!(arrivals, [(1, 1_200, true), (0, 51_100, true)]);
    }

    #[test]
    fn a_link_without_rate_has_no_queue() {
        let mut link = Direction::new(LinkSettings { delay: Duration::from_nanos(7), ..LinkSettings::default() }, 1);
        for number in 0..1_000 {
            link.offer(at(0), number, bytes(1_500)).expect("no queue");
        }
        assert_eq!(link.waiting(at(0)), (0, 0));
        assert!((0..1_000).all(|number| link.arrive(at(7)).is_some_and(|arrival| arrival.packet == number)));
    }

    #[test]
    fn a_black_hole_swallows_what_comes_and_not_what_is_on_its_way() {
        let mut link = Direction::new(wire(), 1);
        link.offer(at(0), 0, bytes(100)).expect("room");
        link.set_blackhole(at(10), true);
        assert_eq!(link.offer(at(20), 1, bytes(100)), Err((1, DropCause::Blackhole)));
        link.set_blackhole(at(30), false);
        link.change(at(40), LinkSettings { loss: Loss::Random(1.0), ..wire() });
        assert_eq!(link.offer(at(50), 2, bytes(100)), Err((2, DropCause::Loss)));
        assert_eq!(link.arrive(at(1_100)).map(|arrival| arrival.packet), Some(0));
        let counts = link.counts(at(1_100));
        assert_eq!((counts.dropped_blackhole, counts.lost), (1, 1));
    }

    #[test]
    fn a_warm_up_is_taken_off_and_nothing_gets_lost() {
        let mut link = Direction::new(wire(), 1);
        for packet in 0..4 {
            let _ = link.offer(at(0), packet, bytes(100));
        }
        // One is in service until 100, two wait, and one found no room.
        let before = link.end_warm_up(at(50));
        assert_eq!((before.dropped_full, before.on_link, before.busy), (1, 3, 50));
        let _ = link.offer(at(150), 4, bytes(100));
        while link.arrive(at(5_000)).is_some() {}
        let counts = link.counts(at(5_000)).since(&before);
        assert_eq!((counts.offered_packets, counts.delivered_packets, counts.dropped_full), (4, 4, 0));
        assert_eq!((counts.busy, counts.served, counts.waited_max), (350, 3, 200));
        assert_eq!((counts.queue_packets_max, counts.queue_bytes_max), (2, 200));
        assert_eq!(counts.queue_bytes_integral, 200 * 50 + 100 * 50 + 200 * 50 + 100 * 100);
    }
}
