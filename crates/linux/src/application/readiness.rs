//! Which of many descriptors can be read or written: epoll(7). Each is asked for once and told once, so that no descriptor of which
//! nothing is wanted wakes anybody, and descriptors that others block on need no change.

use crate::system::check;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::rc::Rc;

/// Most that is told at once.
const BATCH: usize = 64;

/// The descriptors that are watched.
#[derive(Debug)]
pub(crate) struct Readiness(OwnedFd);

impl Readiness {
    pub(crate) fn new() -> io::Result<Rc<Readiness>> {
        // SAFETY: no pointers; the new descriptor belongs to nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Rc::new(Readiness(epoll)))
    }

    /// Readable when [`Readiness::told`] has something to tell.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Watches a descriptor that is told of whenever it is readable.
    pub(crate) fn add(&self, descriptor: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, libc::EPOLLIN, token)
    }

    /// Which tokens' descriptors are ready, some of them, and whether they have hung up: without waiting.
    pub(crate) fn told(&self, tokens: &mut Vec<(u64, bool)>) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        // SAFETY: the kernel writes at most as many entries as there are.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), BATCH as i32, 0) };
        let count = match check(count) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            count => count?,
        };
        let hung_up = (libc::EPOLLHUP | libc::EPOLLERR) as u32;
        tokens.extend(events.iter().take(count as usize).map(|event| (event.u64, event.events & hung_up != 0)));
        Ok(())
    }

    fn control(&self, operation: i32, descriptor: BorrowedFd<'_>, events: i32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        // SAFETY: the kernel reads one entry behind a valid reference.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, descriptor.as_raw_fd(), &raw mut event) })
            .map(drop)
    }
}

/// What is wanted of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    /// Something to read.
    Input,
    /// Room to write.
    Output,
    /// Nothing; only whether it has failed.
    News,
}

/// A descriptor that is watched while it lives.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) file: File,
    readiness: Rc<Readiness>,
    token: u64,
    /// It can't be watched: a regular file, whose reader and writer never wait.
    always: bool,
    ready: bool,
    /// Whoever is at its other end has gone.
    hung_up: bool,
    asked: Option<Want>,
}

impl Watched {
    pub(crate) fn new(file: File, readiness: &Rc<Readiness>, token: u64) -> io::Result<Watched> {
        let always = match readiness.control(libc::EPOLL_CTL_ADD, file.as_fd(), libc::EPOLLONESHOT, token) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => true,
            added => added.map(|()| false)?,
        };
        // As it was added without anything to look for, nothing was asked yet.
        let asked = Some(Want::News);
        Ok(Watched { file, readiness: readiness.clone(), token, always, ready: always, hung_up: false, asked })
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready
    }

    pub(crate) fn is_regular(&self) -> bool {
        self.always
    }

    /// The descriptor was told of.
    pub(crate) fn set_ready(&mut self, hung_up: bool) {
        (self.ready, self.asked) = (true, None);
        self.hung_up |= hung_up;
    }

    /// Whether whoever is at its other end has gone. If not, it is told of when that happens.
    pub(crate) fn has_hung_up(&mut self) -> bool {
        if !self.hung_up && !self.always {
            self.watch(Want::News);
        }
        self.hung_up
    }

    /// It has nothing more, for now.
    pub(crate) fn set_used_up(&mut self) {
        self.ready = self.always;
    }

    /// Has it told of when it is ready, if it is not.
    pub(crate) fn ask(&mut self, want: Want) {
        if !self.ready {
            self.watch(want);
        }
    }

    fn watch(&mut self, want: Want) {
        if self.asked == Some(want) {
            return;
        }
        let events = match want {
            Want::Input => libc::EPOLLIN,
            Want::Output => libc::EPOLLOUT,
            Want::News => 0,
        };
        let asked =
            self.readiness.control(libc::EPOLL_CTL_MOD, self.file.as_fd(), events | libc::EPOLLONESHOT, self.token);
        match asked {
            Ok(()) => self.asked = Some(want),
            // Whoever uses it will see why.
            Err(_) => self.ready = true,
        }
    }
}

/// The kernel goes on watching as long as another descriptor of the same file is open: it must be told.
impl Drop for Watched {
    fn drop(&mut self) {
        if !self.always {
            let _ = self.readiness.control(libc::EPOLL_CTL_DEL, self.file.as_fd(), 0, self.token);
        }
    }
}
