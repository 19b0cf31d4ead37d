//! What of a socket is ready, for `poll` and `epoll`.

use crate::connection::Phase;
use crate::host::Host;
use crate::socket::Role;
use crate::{Answer, Errno, Fd};
use std::collections::BTreeMap;

/// What of a socket is ready, or wanted: bits with the numbers of `poll`, which are those of `epoll` too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Interest(pub u32);

impl Interest {
    /// Nothing.
    pub const NONE: Interest = Interest(0);
    /// Something can be read or accepted, or the end was reached.
    pub const IN: Interest = Interest(libc::POLLIN as u32);
    /// Something can be written.
    pub const OUT: Interest = Interest(libc::POLLOUT as u32);
    /// Something went wrong.
    pub const ERROR: Interest = Interest(libc::POLLERR as u32);
    /// Both directions are at an end.
    pub const HANG_UP: Interest = Interest(libc::POLLHUP as u32);
    /// The other end sends no more.
    pub const READ_HANG_UP: Interest = Interest(libc::POLLRDHUP as u32);
    /// There is no such socket.
    pub const INVALID: Interest = Interest(libc::POLLNVAL as u32);
    /// What is told whether it is wanted or not.
    const ALWAYS: Interest = Interest(Interest::ERROR.0 | Interest::HANG_UP.0 | Interest::INVALID.0);

    /// These too, if `add`.
    #[must_use]
    pub fn with(self, other: Interest, add: bool) -> Interest {
        if add { Interest(self.0 | other.0) } else { self }
    }

    /// What is in both.
    #[must_use]
    pub fn of(self, other: Interest) -> Interest {
        Interest(self.0 & other.0)
    }
}

/// A socket that another one watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// What of it.
    pub interest: Interest,
    /// What is told with it.
    pub data: u64,
    /// It is told once, until it is set again (`EPOLLONESHOT`).
    pub once: bool,
}

impl Host {
    /// What of a socket is ready.
    pub fn readiness(&self, fd: Fd) -> Interest {
        let Ok(socket) = self.socket_of(fd) else { return Interest::INVALID };
        match &socket.role {
            Role::Fresh => Interest::OUT.with(Interest::HANG_UP, true),
            Role::Listening(listener) => Interest::NONE.with(Interest::IN, !listener.complete.is_empty()),
            Role::Watching(watched) => {
                Interest::NONE.with(Interest::IN, watched.iter().any(|(fd, watch)| self.watched(*fd, *watch).0 != 0))
            }
            Role::Connected(stream) => {
                let Some(connection) = self.connection(stream.flow) else { return Interest::HANG_UP };
                let at_end = connection.is_at_end() || stream.read_shut;
                let no_more_out = stream.write_shut || connection.phase == Phase::Ended;
                let room = connection.unacknowledged < self.send_buffer(socket);
                let opening = connection.phase == Phase::Opening;
                Interest::NONE
                    .with(Interest::IN, !opening && (at_end || !connection.received.is_empty()))
                    .with(Interest::OUT, !opening && (no_more_out || room))
                    .with(Interest::READ_HANG_UP, !opening && at_end)
                    .with(Interest::HANG_UP, !opening && at_end && no_more_out)
                    .with(Interest::ERROR, connection.error.is_some())
            }
        }
    }

    /// What of these sockets is ready, if anything is.
    pub(crate) fn poll(&self, entries: &[(Fd, Interest)]) -> Option<Answer> {
        let told = |(fd, wanted): &(Fd, Interest)| match fd.0 {
            ..0 => Interest::NONE,
            _ => self.readiness(*fd).of(wanted.with(Interest::ALWAYS, true)),
        };
        let ready: Vec<Interest> = entries.iter().map(told).collect();
        ready.iter().any(|ready| *ready != Interest::NONE).then_some(Answer::Ready(ready))
    }

    fn watched(&self, fd: Fd, watch: Watch) -> Interest {
        let wanted = watch.interest.with(Interest::ALWAYS, watch.interest != Interest::NONE);
        self.readiness(fd).of(wanted)
    }

    /// What of the watched sockets is ready, if anything is.
    ///
    /// # Errors
    /// [`Errno::Invalid`]: this one watches none.
    pub(crate) fn wait_for_watched(&mut self, fd: Fd, most: usize) -> Result<Option<Answer>, Errno> {
        let Role::Watching(watches) = &self.socket_of(fd)?.role else { return Err(Errno::Invalid) };
        let told = watches.iter().map(|(other, watch)| (*other, self.watched(*other, *watch), watch.data));
        let told: Vec<(Fd, Interest, u64)> = told.filter(|(_, ready, _)| *ready != Interest::NONE).take(most).collect();
        for (other, ..) in &told {
            if let Some(watch) = self.watches(fd)?.get_mut(other).filter(|watch| watch.once) {
                watch.interest = Interest::NONE;
            }
        }
        let told: Vec<(Interest, u64)> = told.into_iter().map(|(_, ready, data)| (ready, data)).collect();
        Ok((!told.is_empty()).then_some(Answer::Watched(told)))
    }

    fn watches(&mut self, fd: Fd) -> Result<&mut BTreeMap<Fd, Watch>, Errno> {
        match &mut self.socket_of_mut(fd)?.role {
            Role::Watching(watches) => Ok(watches),
            _ => Err(Errno::Invalid),
        }
    }

    /// Watches one more socket (`EPOLL_CTL_ADD`).
    ///
    /// # Errors
    /// [`Errno::Exists`]; [`Errno::BadDescriptor`]; [`Errno::Invalid`].
    pub fn watch(&mut self, fd: Fd, other: Fd, watch: Watch) -> Result<(), Errno> {
        self.socket_of(other)?;
        let watches = self.watches(fd)?;
        if fd == other {
            return Err(Errno::Invalid);
        }
        if watches.contains_key(&other) {
            return Err(Errno::Exists);
        }
        watches.insert(other, watch);
        self.settle();
        Ok(())
    }

    /// Watches a socket for something else (`EPOLL_CTL_MOD`), or no more (`EPOLL_CTL_DEL`).
    ///
    /// # Errors
    /// [`Errno::NoEntry`]; [`Errno::BadDescriptor`]; [`Errno::Invalid`].
    pub fn rewatch(&mut self, fd: Fd, other: Fd, watch: Option<Watch>) -> Result<(), Errno> {
        self.socket_of(other)?;
        let watches = self.watches(fd)?;
        match (watches.get_mut(&other), watch) {
            (None, _) => return Err(Errno::NoEntry),
            (Some(known), Some(watch)) => *known = watch,
            (Some(_), None) => {
                watches.remove(&other);
            }
        }
        self.settle();
        Ok(())
    }
}
