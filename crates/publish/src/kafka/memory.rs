//! Memory for what is on its way: large requests, and large answers until the client has taken them.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "connections wait for memory, but not for ever"
)]

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Up to so many bytes a request or answer is not counted; connections have them anyway.
pub(super) const SMALL: usize = 64 << 10;

/// Bytes that all connections have together.
#[derive(Debug)]
pub(super) struct Budget {
    left: Mutex<usize>,
    freed: Condvar,
}

/// Bytes that a connection has for a while.
#[derive(Debug)]
pub(super) struct Hold<'a> {
    budget: &'a Budget,
    bytes: usize,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Budget {
        Budget { left: Mutex::new(bytes), freed: Condvar::new() }
    }

    fn left(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many bytes, or as many as are left.
    pub(super) fn take_up_to(&self, bytes: usize) -> Hold<'_> {
        let mut left = self.left();
        let bytes = bytes.min(*left);
        *left -= bytes;
        Hold { budget: self, bytes }
    }

    /// So many bytes, once they are there; `None` if they are not in time.
    pub(super) fn take(&self, bytes: usize, wait: Duration) -> Option<Hold<'_>> {
        let bytes = if bytes <= SMALL { 0 } else { bytes };
        let deadline = Instant::now() + wait;
        let mut left = self.left();
        while *left < bytes {
            let wait = deadline.checked_duration_since(Instant::now())?;
            left = self.freed.wait_timeout(left, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        *left -= bytes;
        Some(Hold { budget: self, bytes })
    }
}

impl Hold<'_> {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back what is more than so many bytes.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let more = self.bytes.saturating_sub(bytes);
        if more > 0 {
            self.bytes -= more;
            *self.budget.left() += more;
            self.budget.freed.notify_all();
        }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_others_have() {
        let budget = Budget::new(300 << 10);
        let mut first = budget.take(200 << 10, Duration::ZERO).unwrap();
        assert!(budget.take(200 << 10, Duration::from_millis(1)).is_none());
        assert_eq!(budget.take(SMALL, Duration::ZERO).unwrap().bytes(), 0);
        assert_eq!(budget.take_up_to(usize::MAX).bytes(), 100 << 10);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| budget.take(200 << 10, Duration::from_secs(60)).map(|hold| hold.bytes()));
            first.shrink(100 << 10);
            assert_eq!(other.join().unwrap(), Some(200 << 10));
        });
        drop(first);
        assert_eq!(budget.take_up_to(usize::MAX).bytes(), 300 << 10);
    }
}
