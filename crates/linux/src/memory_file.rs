//! Memory that has a descriptor (memfd_create(2)). A process that gets the descriptor, by a message on a socket (SCM_RIGHTS)
//! or from a parent, maps the same pages: so memory that frames lie in outlives the process that made it.

use crate::system::check;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Memory of `length` bytes, all 0, of a fixed size: nobody who has the descriptor can take pages away from under the others. It
/// is closed on exec. `name` is what `/proc/PID/maps` shows.
///
/// # Errors
/// The kernel has no memory, or no descriptor left.
pub(crate) fn memory_file(name: &CStr, length: usize) -> io::Result<OwnedFd> {
    let length = libc::off_t::try_from(length).map_err(io::Error::other)?;
    let create = |flags| {
        // SAFETY: the kernel reads the name up to its end; a new descriptor belongs to nobody else.
        unsafe { Ok(OwnedFd::from_raw_fd(check(libc::memfd_create(name.as_ptr(), flags))?)) }
    };
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Linux before 6.3 does not know files that nobody can execute; later ones may allow no others.
    let file: OwnedFd =
        create(flags | libc::MFD_NOEXEC_SEAL).or_else(|error: io::Error| match error.raw_os_error() {
            Some(libc::EINVAL) => create(flags),
            _ => Err(error),
        })?;
    let seals = libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: no pointers.
    unsafe {
        check(libc::ftruncate(file.as_raw_fd(), length))?;
        check(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    #[test]
    fn it_keeps_its_size_and_is_closed_on_exec() {
        let file = File::from(memory_file(c"weft test", 4_096).unwrap());
        assert_eq!(file.metadata().unwrap().len(), 4_096);
        for length in [0, 4_095, 8_192] {
            assert_eq!(file.set_len(length).unwrap_err().raw_os_error(), Some(libc::EPERM));
        }
        file.write_all_at(b"there", 4_091).unwrap();
        assert!(file.write_all_at(b"beyond", 4_091).is_err());
        // SAFETY: no pointers.
        let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFD) };
        assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
        // SAFETY: no pointers.
        let more = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
        assert_eq!(more, -1, "the seals are final");
    }
}
