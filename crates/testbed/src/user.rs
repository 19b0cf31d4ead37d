//! Other users, without a program of theirs.

use std::io;

/// Runs `work` on a thread that belongs to this user and group, without other groups or capabilities. Files and sockets
/// that it makes are that user's.
///
/// # Errors
///
/// If the kernel refuses: only root may do this.
///
/// # Panics
///
/// As `work` does.
pub fn as_user<T: Send>(number: u32, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            // SAFETY: takes numbers and no pointer. Past the C library these calls change the calling thread alone, which
            // ends with this function.
            unsafe {
                let none: *const libc::gid_t = std::ptr::null();
                let failed = libc::syscall(libc::SYS_setgroups, 0, none) < 0
                    || libc::syscall(libc::SYS_setresgid, number, number, number) < 0
                    || libc::syscall(libc::SYS_setresuid, number, number, number) < 0;
                if failed {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(work())
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
