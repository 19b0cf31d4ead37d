//! Stopping cleanly: the first SIGINT or SIGTERM asks the run to end, a second one ends the process at once. And SIGHUP,
//! by which runs are told to read their files again.

use crate::error::LinuxError;
use crate::system::{Waker, check, poll, poll_input};
use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);
/// The event descriptor that the handler writes to; -1 before [`StopSignal::install`].
static WAKER: AtomicI32 = AtomicI32::new(-1);

/// Tells that the process was asked to stop.
#[derive(Debug)]
pub struct StopSignal {
    waker: Waker,
    installed: bool,
}

impl StopSignal {
    /// One that never comes: signals stay as they are.
    ///
    /// # Errors
    /// [`LinuxError::System`] if the kernel has no descriptor left.
    pub fn never() -> Result<StopSignal, LinuxError> {
        let waker = Waker::new().map_err(|error| LinuxError::system("install the signal handlers", error))?;
        Ok(StopSignal { waker, installed: false })
    }

    /// Takes over SIGINT and SIGTERM for the rest of the process.
    ///
    /// # Errors
    /// [`LinuxError::System`] if the kernel has no descriptor left.
    pub fn install() -> Result<StopSignal, LinuxError> {
        let failed = |error| LinuxError::system("install the signal handlers", error);
        let mut stop = StopSignal::never()?;
        stop.installed = true;
        WAKER.store(stop.descriptor().as_raw_fd(), Ordering::SeqCst);
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: sigaction is plain data for which all zeros is valid; `handle` only does what is allowed in a
            // signal handler (atomics, write, _exit).
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_RESTART;
                check(libc::sigaction(signal, &action, std::ptr::null_mut())).map_err(failed)?;
            }
        }
        Ok(stop)
    }

    /// Whether a signal has come.
    pub fn requested(&self) -> bool {
        self.installed && REQUESTED.load(Ordering::Relaxed)
    }

    /// Waits for a signal.
    pub fn wait(&self) {
        while !self.requested() {
            // An error is as good as an interruption: the question is asked again.
            let _ = poll(&mut [poll_input(self.descriptor())], None);
        }
    }

    /// Readable once a signal has come.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.waker.descriptor()
    }
}

impl Drop for StopSignal {
    fn drop(&mut self) {
        if self.installed {
            WAKER.store(-1, Ordering::SeqCst);
        }
    }
}

/// SIGHUP, held back until somebody waits for it.
pub struct HangUp(libc::sigset_t);

impl HangUp {
    /// Holds SIGHUP back for the rest of the process. To be called before there are other threads: they take over that it
    /// is held back.
    ///
    /// # Errors
    /// [`LinuxError::System`] if the kernel refuses.
    pub fn hold() -> Result<HangUp, LinuxError> {
        // SAFETY: sigset_t is plain data that sigemptyset makes valid; the calls read and write it where told.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGHUP);
            match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) {
                0 => Ok(HangUp(set)),
                code => Err(LinuxError::system("hold SIGHUP back", std::io::Error::from_raw_os_error(code))),
            }
        }
    }

    /// Calls `work` on a thread of its own whenever the signal comes, or came since it is held back. The thread has the
    /// privileges that the caller has now.
    ///
    /// # Errors
    /// [`LinuxError::System`] if there can be no thread.
    pub fn on_each(self, mut work: impl FnMut() + Send + 'static) -> Result<(), LinuxError> {
        let HangUp(set) = self;
        let wait = move || {
            let mut signal = 0;
            // SAFETY: both outlive the call.
            while unsafe { libc::sigwait(&raw const set, &raw mut signal) } == 0 {
                work();
            }
        };
        let spawned = std::thread::Builder::new().name("hangup".into()).spawn(wait);
        spawned.map(drop).map_err(|error| LinuxError::system("wait for SIGHUP", error))
    }
}

extern "C" fn handle(signal: c_int) {
    if REQUESTED.swap(true, Ordering::SeqCst) {
        // SAFETY: _exit is allowed in signal handlers and does not return.
        unsafe { libc::_exit(128 + signal) };
    }
    let one = 1_u64;
    // SAFETY: writes 8 valid bytes; a closed or unset descriptor only gives an error, which does no harm.
    unsafe { libc::write(WAKER.load(Ordering::SeqCst), std::ptr::from_ref(&one).cast(), size_of::<u64>()) };
}
