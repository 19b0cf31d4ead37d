//! The relay: one thread in the hub that takes frames from one end of each link and puts them out at the other when they
//! are due. What happens to them in between is [`Direction`], the same as in the simulator.
//!
//! A frame enters a link when the kernel saw it (its time stamp), not when this thread got to it; and it is due when the
//! link's own time says so. So lateness, the time from there to the call that sends it, holds every delay that is not
//! the link's: waking up, other frames, stalls of the thread. It does not add up from frame to frame.

use crate::build::hub_interface;
use crate::captures::Captured;
use crate::error::LabError;
use crate::lateness::{allowed, allowed_by};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ffi::CString;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;
use weftwire_core::{LinkType, Time};
use weftwire_draw::Histogram;
use weftwire_linux::hub_socket::HubSocket;
use weftwire_linux::pacer::{Place, Policy, SHORTEST_SLEEP, Step};
use weftwire_linux::system::{monotonic_ns, realtime_ns};
use weftwire_network::Network;
use weftwire_network::link::field::FieldCorruptor;
use weftwire_network::link::frame::{class, invert_bit, is_ecn_capable, mark_ce, pad};
use weftwire_network::link::{Counts, Direction, Offer};
use weftwire_network::model::{ChangeKind, LinkIndex};
use weftwire_network::results::{Lateness, LinkSample};

/// Before a deadline this near the relay does not sleep: the kernel wakes it up late by about as much.
const NO_SLEEP: Duration = Duration::from_micros(60);
/// Longest sleep, so that requests to end are seen.
const LONGEST_SLEEP: i64 = 5_000_000;
/// Out of this time the relay sleeps for so long, at the end if not before. The kernel stops a real-time thread that leaves the others
/// less than 5 % of its processor for 50 ms (the fair server); so it must not come to that.
const BREAK_EVERY: i64 = 700_000;
const BREAK: i64 = 80_000;
/// Links are sampled no more often.
const SHORTEST_SAMPLE: Duration = Duration::from_millis(1);
/// How often the state is published for `weft status`.
const PUBLISH: i64 = 200_000_000;
/// Real-time priority: above everything ordinary, below the kernel's own threads that matter.
const PRIORITY: i32 = 10;

/// How the relay runs.
#[derive(Clone, Copy, Debug)]
pub struct RelayOptions {
    /// Never sleep. Costs a processor; lateness falls to a few microseconds.
    pub busy: bool,
    /// Changes happen and samples are taken.
    pub run: bool,
}

/// When the relay begins.
pub(crate) struct RelayStart {
    /// What `CLOCK_MONOTONIC` shows at time 0.
    pub(crate) origin: Time,
    /// Where frames at captured ports go.
    pub(crate) captured: Option<SyncSender<Captured>>,
}

fn time_since(origin: Time) -> Time {
    Time::from_nanoseconds(Time::from_nanoseconds(monotonic_ns()).since(origin))
}

/// What the relay shows while it runs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Time since the relay's start, in nanoseconds.
    pub at: i64,
    /// Of each link, of each direction.
    pub directions: Vec<DirectionStatus>,
    /// How late packets left so far.
    pub lateness: Lateness,
    /// It runs with real-time priority.
    pub realtime: bool,
    /// It never sleeps.
    pub busy: bool,
    /// Frames that the kernel dropped as the relay did not take them in time.
    pub kernel_drops: u64,
}

/// What one direction of a link did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// All counts.
    pub counts: Counts,
    /// Packets waiting now.
    pub queue_packets: u64,
    /// Bytes waiting now.
    pub queue_bytes: u64,
    /// Packets that left later than this direction allows.
    pub late_packets: u64,
}

impl DirectionStatus {
    /// Whether one packet in a hundred, or more, left later than is allowed.
    pub fn is_late(&self) -> bool {
        self.late_packets * 100 > self.counts.delivered_packets
    }
}

/// What the relay leaves.
pub struct RelayReport {
    /// The last state.
    pub snapshot: Snapshot,
    /// Samples of the links.
    pub samples: Vec<LinkSample>,
    /// What each direction had counted when the warm-up was over; empty without one, and if it was not over.
    pub warm: Vec<Counts>,
    /// What could not be done as described.
    pub warnings: Vec<String>,
}

/// What the relay and the rest of the process share.
#[derive(Default)]
pub(crate) struct Shared {
    stop: AtomicBool,
    snapshot: Mutex<Option<Snapshot>>,
}

impl Shared {
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The last state, if there is a new one.
    pub(crate) fn take_snapshot(&self) -> Option<Snapshot> {
        self.snapshot.lock().ok()?.take()
    }
}

type Buffer = Arc<[u8]>;

/// A direction with all that the relay knows of it.
struct Lane {
    direction: Direction<Buffer>,
    /// The interface in the hub where its packets leave.
    out: u32,
    /// Its own time, which never goes back.
    last: Time,
    /// The time for which it is in the heap.
    scheduled: Option<Time>,
    corruptor: Option<FieldCorruptor>,
    /// How late its packets may leave; `None`: nothing tells.
    allowed: Option<i64>,
    /// Those that left later.
    late_packets: u64,
    /// Captures at its start and at its end.
    captures: [Option<usize>; 2],
    /// Counts at the last sample.
    sampled: Counts,
}

/// The relay of a network.
pub(crate) struct Relay<'a> {
    network: &'a Network,
    options: RelayOptions,
    socket: HubSocket,
    lanes: Vec<Lane>,
    /// The lane of each interface, by the interface's index.
    by_interface: Vec<Option<u32>>,
    due: BinaryHeap<Reverse<(Time, u32)>>,
    /// `CLOCK_MONOTONIC` at time 0.
    origin: Time,
    lateness: Histogram,
    allowed: i64,
    samples: Vec<LinkSample>,
    warm: Vec<Counts>,
    next_sample: Option<Time>,
    next_change: usize,
    captured: Option<SyncSender<Captured>>,
    capture_losses: u64,
    kernel_drops: u64,
    send_errors: BTreeMap<i32, u64>,
    warnings: Vec<String>,
    realtime: bool,
    /// When the next break is due.
    next_break: Time,
    /// How long the relay has slept since the last one.
    rested: i64,
}

impl<'a> Relay<'a> {
    /// Opens the relay. To be called on its own thread, in the hub.
    pub(crate) fn open(network: &'a Network, options: RelayOptions) -> Result<Relay<'a>, LabError> {
        let (mut lanes, mut by_interface) = (Vec::new(), Vec::new());
        for (index, link) in network.links() {
            let at = index.0 as usize;
            for direction in 0..2 {
                let place = by_index(&hub_interface(at, direction))? as usize;
                by_interface.resize(by_interface.len().max(place + 1), None);
                by_interface[place] = Some(lanes.len() as u32);
                let captures = [link.ends[direction], link.ends[1 - direction]]
                    .map(|end| network.captures.iter().position(|place| *place == end));
                lanes.push(Lane {
                    direction: Direction::new(link.directions[direction].clone(), network.link_seed(index, direction)),
                    out: by_index(&hub_interface(at, 1 - direction))?,
                    last: Time::ZERO,
                    scheduled: None,
                    corruptor: None,
                    allowed: allowed_by(&link.directions[direction]),
                    late_packets: 0,
                    captures,
                    sampled: Counts::default(),
                });
            }
        }
        let mut warnings = Vec::new();
        let realtime = become_realtime(&mut warnings);
        Ok(Relay {
            network,
            options,
            socket: HubSocket::open()?,
            lanes,
            by_interface,
            due: BinaryHeap::new(),
            origin: Time::ZERO,
            lateness: Histogram::default(),
            allowed: allowed(network),
            samples: Vec::new(),
            warm: Vec::new(),
            next_sample: options.run.then(|| Time::ZERO.plus(network.sample_interval.max(SHORTEST_SAMPLE))),
            next_change: 0,
            captured: None,
            capture_losses: 0,
            kernel_drops: 0,
            send_errors: BTreeMap::new(),
            warnings,
            realtime,
            next_break: Time::ZERO,
            rested: 0,
        })
    }

    /// Relays until it is told to stop. Nothing passes before time 0.
    pub(crate) fn run(mut self, start: RelayStart, shared: &Shared) -> RelayReport {
        self.origin = start.origin;
        self.captured = start.captured;
        let mut publish = Time::ZERO;
        while !shared.stop.load(Ordering::Relaxed) {
            let received = self.receive();
            let now = self.now();
            self.send_due(now);
            self.change(now);
            self.sample(now);
            if self.options.run && self.warm.is_empty() && now >= Time::ZERO.plus(self.network.warm_up) {
                self.end_warm_up();
            }
            if now >= publish {
                publish = now.after(PUBLISH);
                let snapshot = self.snapshot(now);
                if let Ok(mut place) = shared.snapshot.try_lock() {
                    *place = Some(snapshot);
                }
            }
            if received == 0 || now >= self.next_break {
                self.wait(publish);
            }
        }
        self.finish()
    }

    fn now(&self) -> Time {
        time_since(self.origin)
    }

    /// Takes what has come, each frame with its own time.
    fn receive(&mut self) -> usize {
        if !self.socket.is_ready() {
            return 0;
        }
        let now = self.now();
        // Time stamps are wall-clock time, which somebody may set: so only ages are taken from it.
        let wall = realtime_ns();
        let Relay { socket, lanes, by_interface, due, captured, capture_losses, .. } = self;
        socket.receive(|frame| {
            let age = (wall - frame.at.nanoseconds()).clamp(0, 1_000_000_000);
            let at = now.after(-age);
            let Some(Some(number)) = by_interface.get(frame.interface as usize) else { return };
            if at < Time::ZERO {
                return;
            }
            let lane = &mut lanes[*number as usize];
            let mut bytes = frame.bytes.to_vec();
            pad(LinkType::Ethernet, &mut bytes);
            let buffer: Buffer = bytes.into();
            if let (Some(capture), Some(captured)) = (lane.captures[0], captured.as_ref()) {
                let frame = Captured { at, capture, sent: true, bytes: buffer.clone() };
                *capture_losses += u64::from(captured.try_send(frame).is_err());
            }
            let ecn_capable = lane.direction.settings().queue.marks() && is_ecn_capable(LinkType::Ethernet, &buffer);
            lane.last = lane.last.max(at);
            let class = if lane.direction.settings().queue.priority { class(LinkType::Ethernet, &buffer) } else { 0 };
            let offer = Offer { bytes: buffer.len() as u32, ecn_capable, class, holds: None };
            // What is dropped is counted by the direction.
            let _ = lane.direction.offer(lane.last, buffer, offer);
            lane.settle(*number, due);
        })
    }

    /// Puts out what is due.
    fn send_due(&mut self, now: Time) {
        while let Some(Reverse((at, number))) = self.due.peek().copied() {
            if at > now {
                return;
            }
            self.due.pop();
            let lane = &mut self.lanes[number as usize];
            if lane.scheduled != Some(at) {
                continue;
            }
            lane.scheduled = None;
            lane.last = lane.last.max(at);
            while let Some(arrival) = lane.direction.arrive(lane.last) {
                let mut bytes = arrival.packet;
                if arrival.mark || arrival.corrupt_bit.is_some() || lane.corruptor.is_some() {
                    let bytes = Arc::make_mut(&mut bytes);
                    if arrival.mark {
                        mark_ce(bytes);
                    }
                    if let Some(bit) = arrival.corrupt_bit {
                        invert_bit(bytes, bit);
                    }
                    if let Some(corruptor) = &mut lane.corruptor {
                        corruptor.apply(LinkType::Ethernet, bytes);
                    }
                }
                let sent_at = time_since(self.origin);
                let late = sent_at.since(arrival.at);
                self.lateness.add(late);
                lane.late_packets += u64::from(lane.allowed.is_some_and(|allowed| late > allowed));
                if let Err(error) = self.socket.send(lane.out, &bytes) {
                    *self.send_errors.entry(error.raw_os_error().unwrap_or(0)).or_default() += 1;
                }
                if let (Some(capture), Some(captured)) = (lane.captures[1], self.captured.as_ref()) {
                    let frame = Captured { at: sent_at, capture, sent: false, bytes };
                    self.capture_losses += u64::from(captured.try_send(frame).is_err());
                }
            }
            lane.settle(number, &mut self.due);
        }
    }

    /// Applies the changes that are due.
    fn change(&mut self, now: Time) {
        while let Some(change) = self.next_change() {
            if change.at > now {
                return;
            }
            self.next_change += 1;
            let Some((link, direction)) = place_of(&change.what) else { continue };
            let number = link.0 * 2 + direction as u32;
            let lane = &mut self.lanes[number as usize];
            lane.last = lane.last.max(change.at);
            match &change.what {
                ChangeKind::Settings { settings, .. } => lane.direction.change(lane.last, (**settings).clone()),
                ChangeKind::Down { .. } => lane.direction.down(lane.last),
                ChangeKind::Up { .. } => lane.direction.up(lane.last),
                ChangeKind::Blackhole { on, .. } => lane.direction.set_blackhole(lane.last, *on),
                ChangeKind::CorruptField { field, .. } => {
                    let seed = self.network.link_seed(link, direction);
                    let corruptor = field.as_ref().map(|field| FieldCorruptor::new(field, seed)).transpose();
                    lane.corruptor = corruptor.unwrap_or_else(|error| {
                        self.warnings.push(error.to_string());
                        None
                    });
                }
                ChangeKind::Restart { .. } | ChangeKind::Clock { .. } => {}
            }
            lane.settle(number, &mut self.due);
        }
    }

    fn next_change(&self) -> Option<&'a weftwire_network::model::Change> {
        self.network.changes.get(self.next_change).filter(|_| self.options.run)
    }

    /// Takes a sample of every direction if it is time.
    fn sample(&mut self, now: Time) {
        while let Some(at) = self.next_sample.filter(|at| *at <= now) {
            for (link, lane) in self.lanes.iter_mut().enumerate() {
                lane.last = lane.last.max(at);
                let status = lane.status();
                let (counts, before) = (status.counts, std::mem::replace(&mut lane.sampled, status.counts));
                self.samples.push(LinkSample {
                    link,
                    at: at.nanoseconds(),
                    delivered_bytes: counts.delivered_bytes - before.delivered_bytes,
                    queue_packets: status.queue_packets,
                    queue_bytes: status.queue_bytes,
                    drops: drops(&counts) - drops(&before),
                    marks: counts.marked - before.marked,
                });
                lane.settle(link as u32, &mut self.due);
            }
            self.next_sample = Some(at.plus(self.network.sample_interval.max(SHORTEST_SAMPLE)));
        }
    }

    /// The warm-up is over: what is counted from here on is measured.
    fn end_warm_up(&mut self) {
        let end = Time::ZERO.plus(self.network.warm_up);
        self.warm = self
            .lanes
            .iter_mut()
            .map(|lane| {
                lane.last = lane.last.max(end);
                lane.direction.end_warm_up(lane.last)
            })
            .collect();
    }

    /// Lets time pass until something is to be done.
    fn wait(&mut self, publish: Time) {
        let next = self.due.peek().map(|Reverse((at, _))| *at);
        let change = self.next_change().map(|change| change.at);
        let next = [next, change, self.next_sample].into_iter().flatten().fold(publish, Time::min);
        let now = self.now();
        if now >= self.next_break {
            if self.rested < BREAK {
                sleep(Duration::from_nanos((BREAK - self.rested).unsigned_abs()));
            }
            self.rested = 0;
            self.next_break = self.now().after(BREAK_EVERY);
            return;
        }
        // What can be rested while nothing is due need not be when something is.
        let waiting = Policy::SleepSpin { margin: NO_SLEEP };
        let spare = match waiting.step(now, next) {
            Step::Sleep { until } => until.since(now),
            Step::Spin | Step::Due => 0,
        };
        let rest = if self.options.busy { spare.min(BREAK - self.rested) } else { spare.min(LONGEST_SLEEP) };
        if rest < SHORTEST_SLEEP {
            std::hint::spin_loop();
        } else {
            self.socket.wait(Duration::from_nanos(rest.unsigned_abs()));
            self.rested += self.now().since(now);
        }
    }

    fn snapshot(&mut self, now: Time) -> Snapshot {
        self.kernel_drops += self.socket.kernel_drops();
        let directions = self.lanes.iter_mut().map(|lane| {
            lane.last = lane.last.max(now);
            lane.status()
        });
        Snapshot {
            at: now.nanoseconds(),
            directions: directions.collect(),
            lateness: Lateness::of(&self.lateness, self.allowed),
            realtime: self.realtime,
            busy: self.options.busy,
            kernel_drops: self.kernel_drops,
        }
    }

    fn finish(mut self) -> RelayReport {
        let snapshot = self.snapshot(self.now());
        let mut warnings = std::mem::take(&mut self.warnings);
        let mut warn = |count: u64, what: &str| {
            if count > 0 {
                warnings.push(format!("{count} {what}"));
            }
        };
        warn(self.kernel_drops, "frames were lost in front of the relay: it did not take them in time");
        warn(self.socket.unusable, "frames were too long for a link (offloads switched on again?) and were lost");
        warn(self.capture_losses, "frames are missing in captures: the disk was too slow");
        for (code, count) in &self.send_errors {
            warn(*count, &format!("frames could not be sent: {}", io::Error::from_raw_os_error(*code)));
        }
        // By link, then time.
        self.samples.sort_by_key(|sample| (sample.link, sample.at));
        RelayReport { snapshot, samples: self.samples, warm: self.warm, warnings }
    }
}

impl Lane {
    /// Lets go of what was dropped and enters the next arrival into the heap.
    fn settle(&mut self, number: u32, due: &mut BinaryHeap<Reverse<(Time, u32)>>) {
        while self.direction.take_dropped().is_some() {}
        let next = self.direction.next();
        if next != self.scheduled {
            self.scheduled = next;
            due.extend(next.map(|at| Reverse((at, number))));
        }
    }

    fn status(&mut self) -> DirectionStatus {
        let (queue_packets, queue_bytes) = self.direction.waiting(self.last);
        let (counts, late_packets) = (self.direction.counts(self.last), self.late_packets);
        DirectionStatus { counts, queue_packets, queue_bytes, late_packets }
    }
}

/// All packets that a direction dropped.
pub fn drops(counts: &Counts) -> u64 {
    counts.lost + counts.dropped_full + counts.dropped_early + counts.dropped_down + counts.dropped_blackhole
}

/// The direction that a change is of; `None` for those of nodes, which are not the relay's.
fn place_of(change: &ChangeKind) -> Option<(LinkIndex, usize)> {
    match change {
        ChangeKind::Settings { link, direction, .. }
        | ChangeKind::Down { link, direction }
        | ChangeKind::Up { link, direction }
        | ChangeKind::Blackhole { link, direction, .. }
        | ChangeKind::CorruptField { link, direction, .. } => Some((*link, *direction)),
        ChangeKind::Restart { .. } | ChangeKind::Clock { .. } => None,
    }
}

fn by_index(name: &str) -> Result<u32, LabError> {
    let c_name = CString::new(name).unwrap_or_default();
    // SAFETY: a valid C string that outlives the call.
    match unsafe { libc::if_nametoindex(c_name.as_ptr()) } {
        0 => Err(LabError::system(format!("find interface {name}"), io::Error::last_os_error())),
        index => Ok(index),
    }
}

/// Real-time priority for this thread and memory that stays, as far as allowed.
fn become_realtime(warnings: &mut Vec<String>) -> bool {
    let standing = Place { cpu: None, priority: Some(PRIORITY) }.take();
    if !standing.memory_locked {
        warnings.push("the relay's memory could not be locked; it may be late when memory is short".to_owned());
    }
    if standing.priority.is_none() {
        warnings.push("the relay got no real-time priority; it may be late when others work".to_owned());
    }
    standing.priority.is_some()
}
