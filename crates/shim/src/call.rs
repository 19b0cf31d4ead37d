//! Calls that may have to wait, as values.

use crate::readiness::Interest;
use crate::{Errno, Fd};
use std::net::SocketAddr;
use weftwire_core::Time;

/// A call that may have to wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// The next connection of a listening socket's queue.
    Accept {
        /// The listening socket.
        fd: Fd,
    },
    /// Opens a connection.
    Connect {
        /// The socket.
        fd: Fd,
        /// The other end.
        remote: SocketAddr,
    },
    /// Waits until a connection that is being opened is open, or is not going to be.
    Connected {
        /// The socket.
        fd: Fd,
    },
    /// Reads.
    Receive {
        /// The socket.
        fd: Fd,
        /// At most so many bytes.
        most: usize,
        /// They stay (`MSG_PEEK`).
        peek: bool,
        /// As many as were asked for, unless there will be fewer (`MSG_WAITALL`).
        all: bool,
    },
    /// Writes.
    Send {
        /// The socket.
        fd: Fd,
        /// What.
        bytes: Vec<u8>,
        /// So many of them were taken already.
        taken: usize,
    },
    /// Waits until one of these sockets is ready.
    Poll {
        /// The sockets, and what of them.
        entries: Vec<(Fd, Interest)>,
    },
    /// Waits until one of the sockets that another one watches is ready.
    WaitForWatched {
        /// The one that watches.
        fd: Fd,
        /// At most so many are told.
        most: usize,
    },
}

/// What a call answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// A new socket, and who is at the other end.
    Accepted(Fd, SocketAddr),
    /// What was read; nothing at the end.
    Bytes(Vec<u8>),
    /// So many bytes were written.
    Count(usize),
    /// What is ready, for each entry of [`Call::Poll`]. Nothing is if the time is up.
    Ready(Vec<Interest>),
    /// What is ready, with the values that were registered for it.
    Watched(Vec<(Interest, u64)>),
}

/// How long a call may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// As the socket says: `O_NONBLOCK`, `SO_RCVTIMEO`, `SO_SNDTIMEO`.
    OfSocket,
    /// Not at all.
    None,
    /// For so many nanoseconds.
    For(i64),
    /// For ever.
    Endless,
}

/// What became of a call so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It is over.
    Over(Result<Answer, Errno>),
    /// It waits; ask for it by this.
    Waits(Ticket),
}

/// A call that waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ticket(pub(crate) u64);

/// A call that has waited and is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Since when.
    pub at: Time,
    /// What it answers.
    pub result: Result<Answer, Errno>,
}

/// A call that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub ticket: Ticket,
    pub call: Call,
    /// When its patience ends.
    pub until: Option<Time>,
}

impl Call {
    /// The socket whose patience it has.
    pub(crate) fn fd(&self) -> Option<Fd> {
        match self {
            Call::Accept { fd }
            | Call::Connect { fd, .. }
            | Call::Connected { fd }
            | Call::Receive { fd, .. }
            | Call::Send { fd, .. }
            | Call::WaitForWatched { fd, .. } => Some(*fd),
            Call::Poll { .. } => None,
        }
    }

    /// What it answers when its patience has ended.
    pub(crate) fn without_patience(&self) -> Result<Answer, Errno> {
        match self {
            Call::Accept { .. } | Call::Receive { .. } => Err(Errno::Again),
            Call::Send { taken: 0, .. } => Err(Errno::Again),
            Call::Send { taken, .. } => Ok(Answer::Count(*taken)),
            Call::Connect { .. } | Call::Connected { .. } => Err(Errno::InProgress),
            Call::Poll { entries } => Ok(Answer::Ready(vec![Interest::NONE; entries.len()])),
            Call::WaitForWatched { .. } => Ok(Answer::Watched(Vec::new())),
        }
    }
}
