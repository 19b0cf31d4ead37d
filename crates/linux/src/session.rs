//! Leaving the terminal behind.

use crate::error::LinuxError;
use crate::system::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Makes this process the leader of a session of its own, so that closing a terminal does not end it. It must not lead
/// its process group already, as a process started by a shell does; then it stays where it is.
///
/// # Errors
/// Anything but that.
pub fn lead() -> Result<(), LinuxError> {
    // SAFETY: takes nothing.
    match check(unsafe { libc::setsid() }) {
        Err(error) if error.raw_os_error() != Some(libc::EPERM) => {
            Err(LinuxError::system("leave the terminal's session", error))
        }
        _ => Ok(()),
    }
}

/// Standard output and standard error go to this file from now on.
///
/// # Errors
/// The kernel has no descriptor left.
pub fn speak_to(log: BorrowedFd<'_>) -> io::Result<()> {
    for standard in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: takes numbers; whoever wrote there writes to the log now.
        check(unsafe { libc::dup2(log.as_raw_fd(), standard) })?;
    }
    Ok(())
}
