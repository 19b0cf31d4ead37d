//! What is measured: pairs of operations that leave as many timers as there were.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::mem;

use radix_heap::RadixHeapMap;
use weftwire_calendar::Calendar;

use super::peers::{Delays, HashedWheel, Nothing, Timers, Tree};

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

/// A case apart, of the calendar alone: only sets timers, within a second.
pub const FILL: &str = "fill";

/// The structures; the first is the one that is measured, then its peers; the last is none, for what the loop costs.
pub const STRUCTURES: [&str; 7] =
    ["calendar", "BinaryHeap", "BTreeMap", "radix-heap", "hashed wheel", "DelayQueue", "loop alone"];

/// Nanoseconds over which a thousand timers are spread, to see what empty time costs.
pub const SPREADS: [u64; 5] = [1_000, DENSE, 1_000_000, SECOND, 3_600 * SECOND];

/// Does pairs of operations.
pub type Operations = Box<dyn FnMut(u64)>;

/// A structure with so many timers and a pattern; `None` if the structure can't do it.
pub fn prepare(structure: &str, case: &str, timers: u32) -> Option<Operations> {
    match structure {
        "calendar" => operations::<Calendar<u32>>(case, timers),
        "BinaryHeap" => operations::<BinaryHeap<Reverse<(u64, u32)>>>(case, timers),
        // It takes minutes to fill, and the dense cases are much like the others.
        "BTreeMap" if timers > 1_000_000 && case.ends_with("dense") => None,
        "BTreeMap" => operations::<Tree>(case, timers),
        "radix-heap" => operations::<RadixHeapMap<Reverse<u64>, u32>>(case, timers),
        // A million ticks a second; its cost of a dense case is that of a few ticks.
        "hashed wheel" if timers <= 1_000_000 => operations::<HashedWheel>(case, timers),
        "DelayQueue" if timers <= 1_000_000 => operations::<Delays>(case, timers),
        "loop alone" => operations::<Nothing>(case, timers),
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
        FILL => Some(fill::<T>()),
        _ => None,
    }
}

/// A thousand timers, spread over so much time; `None` if the structure can't do the case.
pub fn spread(structure: &str, case: &str, horizon: u64) -> Option<Operations> {
    match (case, structure) {
        ("cancel", "calendar") => Some(cancel::<Calendar<u32>>(1_000, horizon)),
        ("expire", "calendar") => Some(expire::<Calendar<u32>>(1_000, horizon)),
        ("cancel", "BTreeMap") => Some(cancel::<Tree>(1_000, horizon)),
        ("expire", "BTreeMap") => Some(expire::<Tree>(1_000, horizon)),
        ("expire", "BinaryHeap") => Some(expire::<BinaryHeap<Reverse<(u64, u32)>>>(1_000, horizon)),
        ("expire", "radix-heap") => Some(expire::<RadixHeapMap<Reverse<u64>, u32>>(1_000, horizon)),
        // What it does for a tick that is empty, it does for each of an hour.
        ("cancel", "hashed wheel") => Some(cancel::<HashedWheel>(1_000, horizon)),
        ("expire", "hashed wheel") if horizon <= SECOND => Some(expire::<HashedWheel>(1_000, horizon)),
        _ => None,
    }
}

/// Each segment arms a timer; the acknowledgment cancels the oldest.
fn arm<T: Timers + 'static>(count: u32) -> Operations {
    let mut timers = T::new();
    let timeout = SEGMENT_GAP * u64::from(count) + SECOND / 5;
    let mut now = 0;
    let mut pending = Vec::with_capacity(count as usize);
    for payload in 0..count {
        now += SEGMENT_GAP;
        pending.push(timers.insert(now + timeout, payload));
    }
    let mut oldest = 0;
    Box::new(move |pairs| {
        for _ in 0..pairs {
            now += SEGMENT_GAP;
            let new = timers.insert(now + timeout, 0);
            timers.cancel(mem::replace(&mut pending[oldest], new));
            oldest += 1;
            if oldest == pending.len() {
                oldest = 0;
            }
        }
    })
}

/// Sets timers at any time within a second.
fn fill<T: Timers + 'static>() -> Operations {
    let (mut timers, mut random) = (T::new(), Random(1));
    Box::new(move |count| {
        for _ in 0..count {
            black_box(timers.insert(random.below(SECOND), 0));
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
