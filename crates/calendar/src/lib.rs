//! A calendar: what is due when. It holds any number of entries with a deadline each and gives them back in order; it
//! reads no clock, the caller says what time it is.
//!
//! - inputs: [`Calendar::insert`], [`Calendar::remove`];
//! - when to come back: [`Calendar::next_deadline`];
//! - what is due: [`Calendar::pop_due`], [`Calendar::drain_due`];
//! - all entries of an owner in a range: [`Owned::cancel_range`].
//!
//! [`TickCalendar`] has the interface of a hardware calendar, in ticks; with [`Placement::NextFreeTick`] it behaves
//! as one that fires one timer a tick. `docs/calendar.md` has the structure, the reasons and the costs.
#![forbid(unsafe_code)]

mod calendar;
mod owned;
mod pool;
mod ticks;
mod wheels;

pub use calendar::{Calendar, Full, TimerHandle};
pub use owned::Owned;
pub use ticks::{Expiry, Placement, Refusal, Started, TickCalendar, Ticks};
