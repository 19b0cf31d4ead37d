//! What makes a thread exact: a processor of its own, real-time priority, memory that stays.

use crate::system::check;
use std::io;

/// What a thread that waits exactly asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The processor to stay on, from 0.
    pub cpu: Option<usize>,
    /// Priority of `SCHED_FIFO`, 1 to 99. Such a thread starves all others of its processor while it spins; the kernel then stops
    /// it for 50 ms in a second (the fair server).
    pub priority: Option<i32>,
}

/// What a thread got of its [`Place`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// The processor it stays on.
    pub cpu: Option<usize>,
    /// Its real-time priority.
    pub priority: Option<i32>,
    /// Its memory stays, so that no page has to be fetched.
    pub memory_locked: bool,
    /// What was asked for and refused, in words.
    pub refused: Vec<String>,
}

impl Place {
    /// Puts the calling thread into its place as far as it is allowed. Nothing that is refused is an error. Timers that it waits
    /// by are no longer gathered with others (`PR_SET_TIMERSLACK`), whatever was asked for.
    pub fn take(self) -> Standing {
        let mut standing = Standing::default();
        let refuse = |standing: &mut Standing, what: String, error: io::Error| {
            standing.refused.push(format!("{what}: {error}"));
        };
        match lock_memory() {
            Ok(()) => standing.memory_locked = true,
            Err(error) => refuse(&mut standing, "memory is not locked".to_owned(), error),
        }
        // SAFETY: takes numbers, and can't fail for the calling thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
        if let Some(cpu) = self.cpu {
            match pin(cpu) {
                Ok(()) => standing.cpu = Some(cpu),
                Err(error) => refuse(&mut standing, format!("not pinned to processor {cpu}"), error),
            }
        }
        if let Some(priority) = self.priority {
            let parameters = libc::sched_param { sched_priority: priority };
            // SAFETY: reads one sched_param; 0 is the calling thread.
            match check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) }) {
                Ok(_) => standing.priority = Some(priority),
                Err(error) => refuse(&mut standing, format!("no real-time priority {priority}"), error),
            }
        }
        standing
    }
}

/// Keeps the memory of this process, from when it is first used. Memory of later too, unless there is a limit: beyond that, more
/// memory would be refused.
fn lock_memory() -> io::Result<()> {
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: reads one rlimit.
    let free = unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const unlimited) } == 0;
    let later = if free { libc::MCL_FUTURE } else { 0 };
    // SAFETY: takes numbers.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | later | libc::MCL_ONFAULT) }).map(drop)
}

/// Keeps the calling thread on one processor.
fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: cpu_set_t is plain data for which all zeros is valid; the number was just compared with its size; the
    // kernel reads one set; 0 is the calling thread.
    check(unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_said_and_no_error() {
        let place = Place { cpu: Some(100_000), priority: Some(1_000) };
        let standing = std::thread::spawn(move || place.take()).join().expect("the thread does not panic");
        assert_eq!((standing.cpu, standing.priority), (None, None));
        let text = standing.refused.join("; ");
        assert!(text.contains("processor 100000") && text.contains("priority 1000"), "{text}");
    }
}
