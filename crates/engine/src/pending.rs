//! All pending settings of timers, and how many of each timer there are.

use crate::run::Setting;
use weftwire_calendar::{Calendar, Full, TimerHandle};
use weftwire_core::Time;

/// The settings of all instances.
#[derive(Debug)]
pub struct Pending {
    calendar: Calendar<Setting>,
    /// By timer.
    counts: Vec<u64>,
}

impl Pending {
    /// None, of so many timers; there will be at most so many.
    pub fn new(timers: usize, limit: Option<usize>) -> Pending {
        Pending { calendar: limit.map_or_else(Calendar::new, Calendar::with_limit), counts: vec![0; timers] }
    }

    /// Adds one.
    ///
    /// # Errors
    /// There are as many as there may be.
    pub fn insert(&mut self, due: Time, setting: Setting) -> Result<TimerHandle, Full<Setting>> {
        let handle = self.calendar.insert(due, setting)?;
        self.counts[usize::from(setting.timer)] += 1;
        Ok(handle)
    }

    /// Takes one out.
    pub fn remove(&mut self, handle: TimerHandle) -> Option<Setting> {
        let setting = self.calendar.remove(handle)?;
        self.counts[usize::from(setting.timer)] -= 1;
        Some(setting)
    }

    /// Takes the first one out, if it is due at `limit` or before.
    pub fn pop_due(&mut self, limit: Time) -> Option<(Time, TimerHandle, Setting)> {
        let due = self.calendar.pop_due(limit)?;
        self.counts[usize::from(due.2.timer)] -= 1;
        Some(due)
    }

    /// One of them.
    #[inline]
    pub fn get(&self, handle: TimerHandle) -> Option<&Setting> {
        self.calendar.get(handle)
    }

    /// The first one, and when it is due.
    pub fn first(&self) -> Option<(Time, &Setting)> {
        self.calendar.first()
    }

    /// When the first one is due.
    pub fn next_deadline(&self) -> Option<Time> {
        self.calendar.next_deadline()
    }

    /// How many of a timer there are.
    pub fn count(&self, timer: u8) -> u64 {
        self.counts[usize::from(timer)]
    }

    /// How many more there may be.
    pub fn room(&self) -> usize {
        self.calendar.limit() - self.calendar.len()
    }

    /// All of them, in the order in which they fire. A copy is emptied for it.
    pub fn in_order(&self) -> Vec<Setting> {
        self.calendar.clone().drain_due(Time::MAX).map(|(_, _, setting)| setting).collect()
    }
}
