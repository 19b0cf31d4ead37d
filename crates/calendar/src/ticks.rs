//! A calendar with the interface of hardware: intervals in ticks, timers named by small numbers, a counter that wraps.

use crate::{Calendar, TimerHandle};
use std::collections::BTreeMap;
use weftwire_core::Time;

/// A number of ticks, or a tick since the start.
pub type Ticks = u64;

/// Where timers go that are to expire at the same tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// All at that tick, in the order of setting.
    Exact,
    /// One timer a tick, as in hardware that looks at one place a tick: a timer whose tick is taken goes to the next
    /// one that is free.
    NextFreeTick {
        /// Most ticks that a timer may be moved on; if there is no free one so far, it is refused.
        reach: u32,
    },
}

/// A timer that has been set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Started {
    /// The tick at which it expires, counted from the start, without wrap.
    pub tick: Ticks,
    /// By how many ticks it was moved on.
    pub moved: u32,
}

/// A timer that has expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expiry {
    /// The timer.
    pub id: u32,
    /// What was set with it.
    pub payload: u64,
    /// The tick at which it expired, counted from the start, without wrap.
    pub tick: Ticks,
}

/// Why a timer was not set. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The timer is running; stop it first.
    #[error("timer {0} is running; stop it first")]
    Running(u32),
    /// There is no such timer.
    #[error("there is no timer {id}; there are {timers}, from 0 on")]
    NoTimer {
        /// The number that was given.
        id: u32,
        /// How many there are.
        timers: u32,
    },
    /// The counter would come round before the timer expires.
    #[error("an interval of {interval} ticks is more than the {most} that the counter can tell apart")]
    TooFar {
        /// The interval that was given.
        interval: Ticks,
        /// The longest one.
        most: Ticks,
    },
    /// Every tick as far as a timer may be moved is taken.
    #[error("no tick is free within {reach} ticks after the one asked for")]
    NoFreeTick {
        /// As far as a timer may be moved.
        reach: u32,
    },
}

/// A calendar that counts ticks: [`TickCalendar::start_timer`], [`TickCalendar::stop_timer`] and, once for every tick
/// or for many at once, the bookkeeping that says what has expired.
///
/// It stands for hardware whose counter has few bits. Here ticks are counted without wrap, and
/// [`TickCalendar::counter`] says what the hardware's counter shows.
#[derive(Clone, Debug)]
pub struct TickCalendar {
    calendar: Calendar<(u32, u64)>,
    placement: Placement,
    counter_bits: u32,
    now: Ticks,
    /// The handle of each timer that is running.
    running: Vec<Option<TimerHandle>>,
    /// For each 64 ticks that have one, the ticks that are taken. Only with `NextFreeTick`.
    taken: BTreeMap<u64, u64>,
}

impl TickCalendar {
    /// A calendar for the timers 0 to `timers - 1`, with a counter of this many bits, from 2 to 62.
    pub fn new(timers: u32, counter_bits: u32, placement: Placement) -> TickCalendar {
        TickCalendar {
            calendar: Calendar::new(),
            placement,
            counter_bits: counter_bits.clamp(2, 62),
            now: 0,
            running: vec![None; timers.min(Calendar::<()>::MOST as u32) as usize],
            taken: BTreeMap::new(),
        }
    }

    /// The present tick, without wrap.
    pub fn now(&self) -> Ticks {
        self.now
    }

    /// What a hardware counter shows at a tick.
    pub fn counter(&self, tick: Ticks) -> Ticks {
        tick & self.longest()
    }

    /// Sets a timer that expires `interval` ticks from now. The present tick's bookkeeping has been done, so that 0 is
    /// taken for 1.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn start_timer(&mut self, interval: Ticks, id: u32, payload: u64) -> Result<Started, Refusal> {
        let timers = self.running.len() as u32;
        match self.running.get(id as usize) {
            None => return Err(Refusal::NoTimer { id, timers }),
            Some(Some(_)) => return Err(Refusal::Running(id)),
            Some(None) => {}
        }
        let most = self.longest();
        if interval > most {
            return Err(Refusal::TooFar { interval, most });
        }
        let wanted = self.now.saturating_add(interval.max(1));
        let tick = match self.placement {
            Placement::Exact => wanted,
            Placement::NextFreeTick { reach } => {
                let last = (wanted + u64::from(reach)).min(self.now + most);
                let free = self.next_free(wanted).filter(|tick| *tick <= last);
                free.ok_or(Refusal::NoFreeTick { reach })?
            }
        };
        let Ok(handle) = self.calendar.insert(time(tick), (id, payload)) else {
            return Err(Refusal::NoTimer { id, timers });
        };
        self.running[id as usize] = Some(handle);
        if self.placement != Placement::Exact {
            *self.taken.entry(tick / 64).or_default() |= 1 << (tick % 64);
        }
        Ok(Started { tick, moved: (tick - wanted) as u32 })
    }

    /// Stops a timer; returns its payload, or `None` if it is not running.
    pub fn stop_timer(&mut self, id: u32) -> Option<u64> {
        let handle = self.running.get_mut(id as usize)?.take()?;
        self.release(tick(handle.deadline()));
        self.calendar.remove(handle).map(|(_, payload)| payload)
    }

    /// Goes to the next tick, and gives `expired` what expires there, in order.
    pub fn per_tick_bookkeeping(&mut self, expired: impl FnMut(Expiry)) {
        self.advance(self.now.saturating_add(1), expired);
    }

    /// Goes to a tick, and gives `expired` what expires until then, in order. Ticks at which nothing expires cost
    /// nothing. A tick in the past changes nothing.
    pub fn advance(&mut self, to: Ticks, mut expired: impl FnMut(Expiry)) {
        self.now = self.now.max(to.min(tick(Time::MAX)));
        while let Some((at, _, (id, payload))) = self.calendar.pop_due(time(self.now)) {
            self.running[id as usize] = None;
            self.release(tick(at));
            expired(Expiry { id, payload, tick: tick(at) });
        }
    }

    /// The tick at which the next timer expires.
    pub fn next_expiry(&self) -> Option<Ticks> {
        self.calendar.next_deadline().map(tick)
    }

    /// How many timers are running.
    pub fn len(&self) -> usize {
        self.calendar.len()
    }

    /// Whether no timer is running.
    pub fn is_empty(&self) -> bool {
        self.calendar.is_empty()
    }

    /// The longest interval: all ones in the counter.
    fn longest(&self) -> Ticks {
        (1 << self.counter_bits) - 1
    }

    /// The first free tick from this one on.
    fn next_free(&self, from: Ticks) -> Option<Ticks> {
        let mut word = from / 64;
        let mut free = u64::MAX << (from % 64);
        loop {
            free &= !self.taken.get(&word).copied().unwrap_or(0);
            if free != 0 {
                return Some(word * 64 + u64::from(free.trailing_zeros()));
            }
            (word, free) = (word.checked_add(1)?, u64::MAX);
        }
    }

    fn release(&mut self, tick: Ticks) {
        if let Some(bits) = self.taken.get_mut(&(tick / 64)) {
            *bits &= !(1 << (tick % 64));
            if *bits == 0 {
                self.taken.remove(&(tick / 64));
            }
        }
    }
}

/// Ticks as the calendar's time: one a nanosecond.
fn time(tick: Ticks) -> Time {
    Time::from_nanoseconds(i64::try_from(tick).unwrap_or(i64::MAX))
}

fn tick(time: Time) -> Ticks {
    time.nanoseconds().max(0).unsigned_abs()
}
