//! What is measured: pairs of operations that leave as many timers as there were.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::black_box;

use radix_heap::RadixHeapMap;
use weftwire_calendar::Calendar;

use super::peers::{Delays, HashedWheel, Timers, Tree};

/// A second.
const SECOND: u64 = 1_000_000_000;
/// All timers within this time, in nanoseconds: many at the same instant.
const DENSE: u64 = 65_536;
/// From one segment to the next.
const SEGMENT_GAP: u64 = 100;

/// A pattern of operations.
pub struct Case {
    /// A word to choose it by.
    pub name: &'static str,
    /// What a pair of operations does.
    pub what: &'static str,
    /// Most nanoseconds a pair may cost at 10^4 and at 10^6 timers.
    pub target: [f64; 2],
}

/// All cases.
pub const CASES: [Case; 5] = [
    Case { name: "arm", what: "arm a timer for a segment, cancel the oldest", target: [15.0, 15.0] },
    Case { name: "cancel", what: "cancel any timer, set one within a second", target: [60.0, 150.0] },
    Case { name: "expire", what: "pop the next timer, set one within a second", target: [60.0, 120.0] },
    Case { name: "cancel-dense", what: "the same as cancel, all within 65,536 ns", target: [60.0, 150.0] },
    Case { name: "expire-dense", what: "the same as expire, all within 65,536 ns", target: [60.0, 120.0] },
];

/// The structures; the first is the one that is measured, the others are its peers.
pub const STRUCTURES: [&str; 6] = ["calendar", "BinaryHeap", "BTreeMap", "radix-heap", "hashed wheel", "DelayQueue"];

/// Does pairs of operations.
pub type Operations = Box<dyn FnMut(u64)>;

/// A structure with so many timers and a pattern; `None` if the structure can't do it.
pub fn prepare(structure: &str, case: &str, timers: u32) -> Option<Operations> {
    match structure {
        "calendar" => operations::<Calendar<u32>>(case, timers),
        "BinaryHeap" => operations::<BinaryHeap<Reverse<(u64, u32)>>>(case, timers),
        "BTreeMap" => operations::<Tree>(case, timers),
        "radix-heap" => operations::<RadixHeapMap<Reverse<u64>, u32>>(case, timers),
        // A million ticks a second; its cost of a dense case is that of a few ticks.
        "hashed wheel" if timers <= 1_000_000 => operations::<HashedWheel>(case, timers),
        "DelayQueue" if timers <= 1_000_000 => operations::<Delays>(case, timers),
        _ => None,
    }
}

fn operations<T: Timers + 'static>(case: &str, timers: u32) -> Option<Operations> {
    match case {
        "arm" if T::CANCELS => Some(arm::<T>(timers)),
        "cancel" if T::CANCELS => Some(cancel::<T>(timers, SECOND)),
        "cancel-dense" if T::CANCELS => Some(cancel::<T>(timers, DENSE)),
        "expire" if T::POPS => Some(expire::<T>(timers, SECOND)),
        "expire-dense" if T::POPS => Some(expire::<T>(timers, DENSE)),
        _ => None,
    }
}

/// Each segment arms a timer; the acknowledgment cancels the oldest.
fn arm<T: Timers + 'static>(count: u32) -> Operations {
    let mut timers = T::new();
    let timeout = SEGMENT_GAP * u64::from(count) + SECOND / 5;
    let mut now = 0;
    let mut pending = VecDeque::with_capacity(count as usize + 1);
    for payload in 0..count {
        now += SEGMENT_GAP;
        pending.push_back(timers.insert(now + timeout, payload));
    }
    Box::new(move |pairs| {
        for _ in 0..pairs {
            now += SEGMENT_GAP;
            pending.push_back(timers.insert(now + timeout, 0));
            if let Some(oldest) = pending.pop_front() {
                timers.cancel(oldest);
            }
        }
    })
}

/// Cancels any timer and sets another at any time before the horizon.
fn cancel<T: Timers + 'static>(count: u32, horizon: u64) -> Operations {
    let mut timers = T::new();
    let mut random = Random(1);
    let mut pending: Vec<T::Handle> = (0..count).map(|it| timers.insert(random.below(horizon), it)).collect();
    Box::new(move |pairs| {
        for _ in 0..pairs {
            let victim = random.below(u64::from(count)) as usize;
            timers.cancel(pending[victim]);
            pending[victim] = timers.insert(random.below(horizon), 0);
        }
    })
}

/// The next timer expires; another is set at any time before the horizon from then on.
fn expire<T: Timers + 'static>(count: u32, horizon: u64) -> Operations {
    let mut timers = T::new();
    let mut random = Random(1);
    for payload in 0..count {
        timers.insert(random.below(horizon), payload);
    }
    Box::new(move |pairs| {
        for _ in 0..pairs {
            let Some((now, payload)) = timers.pop() else { return };
            timers.insert(now + 1 + random.below(horizon), black_box(payload));
        }
    })
}

/// Timers over a second, or over 65,536 ns, to be weighed.
pub fn filled(structure: &str, timers: u32, dense: bool) -> Option<Operations> {
    prepare(structure, if dense { "cancel-dense" } else { "cancel" }, timers)
        .or_else(|| prepare(structure, if dense { "expire-dense" } else { "expire" }, timers))
}

/// A small generator: it must cost little beside what is measured.
pub struct Random(pub u64);

impl Random {
    /// A number from 0 to `end - 1`.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(end)) >> 64) as u64
    }
}
