//! The word of [`super::agreement`], in memory that both processes map.

use super::agreement::{Ownership, Word};
use crate::memory_file::memory_file;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of the mapping; pages are at least so long.
const LENGTH: usize = 4_096;

/// A word in shared memory, [`Ownership::Offered`] at first.
#[derive(Debug)]
pub(crate) struct SharedWord {
    file: OwnedFd,
    memory: NonNull<AtomicU32>,
}

impl SharedWord {
    /// A new one.
    pub(crate) fn new() -> io::Result<SharedWord> {
        SharedWord::of(memory_file(c"weft replacement", LENGTH)?)
    }

    /// That of another process.
    pub(crate) fn of(file: OwnedFd) -> io::Result<SharedWord> {
        // SAFETY: a fresh mapping at an address of the kernel's choice. The file keeps its length.
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), LENGTH, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        match NonNull::new(memory.cast::<AtomicU32>()) {
            Some(pointer) if memory != libc::MAP_FAILED => Ok(SharedWord { file, memory: pointer }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The descriptor by which another process maps it.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the mapping is as long as this value, aligned to a page, and both processes touch the word atomically only.
        unsafe { self.memory.as_ref() }
    }
}

impl Word for SharedWord {
    fn exchange(&self, from: Ownership, to: Ownership) -> bool {
        self.word().compare_exchange(from as u32, to as u32, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn is(&self, what: Ownership) -> bool {
        self.word().load(Ordering::Acquire) == what as u32
    }
}

impl Drop for SharedWord {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `of` with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), LENGTH) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_see_one_word() {
        let ours = SharedWord::new().unwrap();
        let theirs = SharedWord::of(ours.descriptor().try_clone_to_owned().unwrap()).unwrap();
        assert!(theirs.is(Ownership::Offered));
        assert!(ours.exchange(Ownership::Offered, Ownership::Go));
        assert!(theirs.exchange(Ownership::Go, Ownership::Taken));
        assert!(!ours.exchange(Ownership::Go, Ownership::Void) && ours.is(Ownership::Taken));
    }
}
