//! Measuring the pacer on this machine, beside the machine itself and the kernel's own pacing.
//!
//! [`jitter`] is what the processor does to a loop that does nothing. [`sweep`] releases packets by a schedule, and sends them
//! over a [`mod@line`]; [`ticker`] does it with the run loop's timers; [`kernel`] has the kernel pace a TCP connection over the same line; [`flows`] paces many
//! flows at once. Everything here takes a fraction of a second per call, so that calls can be taken in turns and interrupted in
//! between.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a platform: this is where clocks, files and sockets live"
)]

pub mod flows;
pub mod jitter;
pub mod kernel;
pub mod line;
mod observer;
pub mod sweep;
pub mod ticker;
pub mod usage;
pub mod wheel;

pub use observer::{Departed, Observer};

/// Runs `work` on a thread of its own, so that the place it takes ends with it.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}
