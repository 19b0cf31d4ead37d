//! What the host knows of a connection, also of one that no application holds.

use crate::{Errno, Fd};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Whose it is.
    pub owner: Owner,
    /// How far it has come.
    pub phase: Phase,
    /// What has arrived and was not read.
    pub received: VecDeque<u8>,
    /// The other end will send no more.
    pub finished: bool,
    /// Bytes that were written and not acknowledged.
    pub unacknowledged: usize,
    /// What went wrong, until somebody is told.
    pub error: Option<Errno>,
}

/// Whose a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// An application's, by this socket.
    Socket(Fd),
    /// It is on its way into the queue of this listening socket, or in it.
    Listener(Fd),
    /// Nobody's.
    Nobody,
}

/// How far a connection has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// It is being opened.
    Opening,
    /// Bytes may flow.
    Open,
    /// The machine knows it no more.
    Ended,
}

impl Connection {
    /// A connection that is being opened.
    pub fn new(local: SocketAddr, remote: SocketAddr, owner: Owner) -> Connection {
        Connection {
            local,
            remote,
            owner,
            phase: Phase::Opening,
            received: VecDeque::new(),
            finished: false,
            unacknowledged: 0,
            error: None,
        }
    }

    /// Whether nothing more will arrive.
    pub fn is_at_end(&self) -> bool {
        self.finished || self.phase == Phase::Ended
    }
}
