//! Processor time that a measurement took.

use std::fs;
use weftwire_linux::system::{monotonic_ns, processor_seconds};

/// Processor time over a stretch of time, in seconds; sums up over many.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// How long it took.
    pub elapsed_seconds: f64,
    /// What the thread used.
    pub thread_seconds: f64,
    /// What all processors spent in soft interrupts, where the kernel counts them apart; others' work too.
    pub soft_interrupt_seconds: f64,
}

impl Usage {
    /// The thread's share of a processor.
    pub fn share(&self) -> f64 {
        if self.elapsed_seconds > 0.0 { self.thread_seconds / self.elapsed_seconds } else { 0.0 }
    }

    /// Soft interrupts' share of a processor.
    pub fn soft_share(&self) -> f64 {
        if self.elapsed_seconds > 0.0 { self.soft_interrupt_seconds / self.elapsed_seconds } else { 0.0 }
    }

    /// Adds another stretch.
    pub fn add(&mut self, other: Usage) {
        self.elapsed_seconds += other.elapsed_seconds;
        self.thread_seconds += other.thread_seconds;
        self.soft_interrupt_seconds += other.soft_interrupt_seconds;
    }
}

/// The start of a stretch on the calling thread.
pub(crate) struct Meter {
    start: i64,
    thread: f64,
    soft: f64,
}

impl Meter {
    pub(crate) fn start() -> Meter {
        Meter { soft: soft_interrupt_seconds(), thread: processor_seconds(), start: monotonic_ns() }
    }

    pub(crate) fn stop(self) -> Usage {
        let elapsed = (monotonic_ns() - self.start) as f64 * 1e-9;
        let thread = processor_seconds() - self.thread;
        Usage {
            elapsed_seconds: elapsed,
            thread_seconds: thread,
            soft_interrupt_seconds: soft_interrupt_seconds() - self.soft,
        }
    }
}

fn soft_interrupt_seconds() -> f64 {
    // SAFETY: takes a number.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
    fs::read_to_string("/proc/stat").ok().and_then(|text| soft_interrupts(&text)).unwrap_or(0) as f64 / a_second
}

/// Of the line of all processors in `/proc/stat`, the seventh number (proc_stat(5)).
fn soft_interrupts(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    line.split_whitespace().nth(6)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_interrupts_are_the_seventh_number_of_all_processors() {
        assert_eq!(soft_interrupts("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 9 9 9 9 9 9 9 9\n"), Some(7));
        assert_eq!(soft_interrupts("intr 5\n"), None);
        assert_eq!(soft_interrupts("cpu  1 2\n"), None);
    }
}
