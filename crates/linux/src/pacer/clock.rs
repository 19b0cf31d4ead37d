//! The clock that a waiter reads and sleeps by. A trait, so that tests have time in their hands.

use crate::system::monotonic_ns;

/// A clock that only goes forward.
pub trait Clock {
    /// Now, in nanoseconds.
    fn now(&mut self) -> i64;

    /// Sleeps until this time or a little longer. May wake up early, as on a signal.
    fn sleep_until(&mut self, at: i64);
}

/// `CLOCK_MONOTONIC`, read without entering the kernel (vDSO) where there is that, and `clock_nanosleep` until an
/// absolute time.
#[derive(Clone, Copy, Default, Debug)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now(&mut self) -> i64 {
        monotonic_ns()
    }

    fn sleep_until(&mut self, at: i64) {
        let at = libc::timespec { tv_sec: at.max(0) / 1_000_000_000, tv_nsec: at.max(0) % 1_000_000_000 };
        // SAFETY: the kernel reads one timespec; with an absolute time it writes none back. A signal ends it early.
        unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const at, std::ptr::null_mut())
        };
    }
}
