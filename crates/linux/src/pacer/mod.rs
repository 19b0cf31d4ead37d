//! Pacing: letting packets go at their times, as exactly as this machine can, for as little processor time as was chosen.
//!
//! A [`Waiter`] passes the time until a deadline by a [`Policy`]: asleep, spinning on the clock, or asleep first and
//! spinning for a margin at the end. A [`Pacer`] is a waiter with a calendar: what was added comes back when it is due. A
//! [`Place`] is what makes either exact: a processor of its own, real-time priority and memory that stays. Where the kernel
//! can hold packets back until a time by itself, [`departure`] hands them over.
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`, as all that is due on this platform. `docs/pacing-linux.md` is the page for users.

mod clock;
pub mod departure;
mod place;
mod policy;
mod qdisc;
mod scheduler;
mod waiter;

pub use clock::{Clock, Monotonic};
pub use place::{Place, Standing};
pub use policy::SHORTEST_SLEEP;
pub use policy::{Policy, Precision, Step};
pub use qdisc::{Departures, TransmitClock, departures};
pub use scheduler::Scheduler;
pub use waiter::{Pacer, Waiter, measure_margin};
