//! What all calendars of the study can do.

/// A tick since the start.
pub type Tick = u64;

/// A calendar as hardware might have it. Timers have numbers, from 0 on.
///
/// Each armed timer fires exactly once: never before the tick that was asked for, and at most as late as the design says. What
/// cannot be held is refused.
pub trait Model {
    /// Arms a timer for a tick after the present one.
    ///
    /// # Errors
    /// See [`Refusal`]. Nothing has changed then.
    fn insert(&mut self, expiry: Tick, id: u32) -> Result<Placed, Refusal>;

    /// The bookkeeping of one tick, which is the present one from now on: adds the timers that fire to `fired`. Ticks go up; those
    /// that are no timer's [`Model::next_visit`] may be left out, but not that at which a timer is armed or disarmed.
    fn expire(&mut self, tick: Tick, fired: &mut Vec<u32>);

    /// Disarms a timer. Whether it was armed.
    fn cancel(&mut self, id: u32) -> bool;

    /// The next tick at which the bookkeeping meets an armed timer: it fires then, unless this tick is another afterwards. Others than
    /// those in [`Model::moved`] keep theirs until then.
    fn next_visit(&self, id: u32) -> Option<Tick>;

    /// How many timers are armed.
    fn pending(&self) -> usize;

    /// Timers that the last [`Model::expire`] or [`Model::cancel`] moved from the stash to the tables, which changes their next visit.
    fn moved(&self) -> &[u32] {
        &[]
    }

    /// How many timers are in the stash.
    fn stashed(&self) -> usize {
        0
    }
}

/// What an insertion did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Ticks after the one asked for, as the timer is placed now.
    pub shift: u64,
    /// Tries: how often one place of each table was read, all tables at once.
    pub tries: u32,
    /// Other timers that were moved.
    pub moves: u32,
    /// It is in the stash.
    pub stashed: bool,
}

/// Why a timer was not armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No place within reach is free.
    Full {
        /// Tries that it took to find out.
        tries: u32,
    },
    /// The timer is armed already.
    Armed,
    /// There is no timer with this number.
    NoTimer,
    /// The tick is the present one or lies before it.
    Past,
    /// The tick is further away than the calendar can hold.
    TooFar,
}
