//! The calendar and its peers behind one interface: a timer has a time in nanoseconds and a payload of 32 bits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use radix_heap::RadixHeapMap;
use tokio_util::time::DelayQueue;
use weftwire_calendar::{Calendar, TimerHandle};
use weftwire_core::Time;

/// A structure that holds timers.
pub trait Timers {
    /// What names a timer.
    type Handle: Copy;
    /// Whether it can cancel.
    const CANCELS: bool = true;
    /// Whether it can be asked for the next timer that is due.
    const POPS: bool = true;

    /// An empty one.
    fn new() -> Self;
    /// Sets a timer.
    fn insert(&mut self, at: u64, payload: u32) -> Self::Handle;
    /// Cancels a timer that is there.
    fn cancel(&mut self, handle: Self::Handle);
    /// Takes out the timer that is due next; its time and payload.
    fn pop(&mut self) -> Option<(u64, u32)>;
}

impl Timers for Calendar<u32> {
    type Handle = TimerHandle;

    fn new() -> Self {
        Calendar::new()
    }

    #[inline(always)]
    fn insert(&mut self, at: u64, payload: u32) -> TimerHandle {
        match self.insert(Time::from_nanoseconds(at as i64), payload) {
            Ok(handle) => handle,
            Err(full) => panic!("{full}"),
        }
    }

    #[inline(always)]
    fn cancel(&mut self, handle: TimerHandle) {
        assert!(self.remove(handle).is_some());
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(u64, u32)> {
        let (at, _, payload) = self.pop_due(Time::MAX)?;
        Some((at.nanoseconds() as u64, payload))
    }
}

impl Timers for BinaryHeap<Reverse<(u64, u32)>> {
    type Handle = ();
    const CANCELS: bool = false;

    fn new() -> Self {
        BinaryHeap::new()
    }

    #[inline(always)]
    fn insert(&mut self, at: u64, payload: u32) {
        self.push(Reverse((at, payload)));
    }

    #[inline(always)]
    fn cancel(&mut self, (): ()) {}

    #[inline(always)]
    fn pop(&mut self) -> Option<(u64, u32)> {
        BinaryHeap::pop(self).map(|Reverse(timer)| timer)
    }
}

/// A tree by time and number of setting.
pub struct Tree {
    timers: BTreeMap<(u64, u64), u32>,
    inserted: u64,
}

impl Timers for Tree {
    type Handle = (u64, u64);

    fn new() -> Tree {
        Tree { timers: BTreeMap::new(), inserted: 0 }
    }

    #[inline(always)]
    fn insert(&mut self, at: u64, payload: u32) -> (u64, u64) {
        self.inserted += 1;
        self.timers.insert((at, self.inserted), payload);
        (at, self.inserted)
    }

    #[inline(always)]
    fn cancel(&mut self, handle: (u64, u64)) {
        assert!(self.timers.remove(&handle).is_some());
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(u64, u32)> {
        self.timers.pop_first().map(|((at, _), payload)| (at, payload))
    }
}

impl Timers for RadixHeapMap<Reverse<u64>, u32> {
    type Handle = ();
    const CANCELS: bool = false;

    fn new() -> Self {
        RadixHeapMap::new()
    }

    #[inline(always)]
    fn insert(&mut self, at: u64, payload: u32) {
        self.push(Reverse(at), payload);
    }

    #[inline(always)]
    fn cancel(&mut self, (): ()) {}

    #[inline(always)]
    fn pop(&mut self) -> Option<(u64, u32)> {
        RadixHeapMap::pop(self).map(|(Reverse(at), payload)| (at, payload))
    }
}

/// Nanoseconds that one tick of the hashed wheel stands for; it calls it a millisecond.
const WHEEL_TICK: u64 = 1_000;

/// The wheel of `hierarchical_hash_wheel_timer`. Its timers are named by their owner.
pub struct HashedWheel {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u32>>,
    due: Vec<Rc<IdOnlyTimerEntry<u32>>>,
    tick: u64,
    inserted: u32,
}

impl Timers for HashedWheel {
    type Handle = u32;

    fn new() -> HashedWheel {
        HashedWheel { wheel: QuadWheelWithOverflow::new(), due: Vec::new(), tick: 0, inserted: 0 }
    }

    #[inline(always)]
    fn insert(&mut self, at: u64, _payload: u32) -> u32 {
        self.inserted += 1;
        let ticks = (at / WHEEL_TICK).saturating_sub(self.tick).max(1);
        let entry = IdOnlyTimerEntry::new(self.inserted, Duration::from_millis(ticks));
        assert!(self.wheel.insert_ref(Rc::new(entry)).is_ok());
        self.inserted
    }

    #[inline(always)]
    fn cancel(&mut self, handle: u32) {
        assert!(self.wheel.cancel(&handle).is_ok());
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(u64, u32)> {
        while self.due.is_empty() {
            match self.wheel.can_skip() {
                Skip::Empty => return None,
                Skip::Millis(ticks) => {
                    self.wheel.skip(ticks);
                    self.tick += u64::from(ticks);
                }
                Skip::None => {}
            }
            self.due = self.wheel.tick();
            self.tick += 1;
        }
        self.due.pop().map(|_| (self.tick * WHEEL_TICK, 0))
    }
}

/// The queue of `tokio-util`, whose tick is 1 ms of a runtime's clock. Here that clock stands still.
pub struct Delays {
    queue: DelayQueue<u32>,
    _runtime: tokio::runtime::Runtime,
}

impl Timers for Delays {
    type Handle = DelayKey;
    const POPS: bool = false;

    fn new() -> Delays {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without threads and sockets");
        let queue = runtime.block_on(async { DelayQueue::new() });
        Delays { queue, _runtime: runtime }
    }

    #[inline(always)]
    fn insert(&mut self, at: u64, payload: u32) -> DelayKey {
        let _inside = self._runtime.enter();
        self.queue.insert(payload, Duration::from_millis(1 + at / WHEEL_TICK))
    }

    #[inline(always)]
    fn cancel(&mut self, handle: DelayKey) {
        self.queue.remove(&handle);
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(u64, u32)> {
        None
    }
}

type DelayKey = tokio_util::time::delay_queue::Key;

/// Holds nothing: what a loop over it takes is the loop's own cost.
pub struct Nothing {
    at: u64,
}

impl Timers for Nothing {
    type Handle = (u64, u64);

    fn new() -> Nothing {
        Nothing { at: 0 }
    }

    #[inline(always)]
    fn insert(&mut self, at: u64, payload: u32) -> (u64, u64) {
        self.at = black_box(at);
        (at, payload.into())
    }

    #[inline(always)]
    fn cancel(&mut self, handle: (u64, u64)) {
        black_box(handle);
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(u64, u32)> {
        Some((self.at, 0))
    }
}
