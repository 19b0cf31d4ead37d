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
    /// What routers and hosts have said of the way, in case that the connection ends by it.
    pub unreachable: Option<Errno>,
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
            unreachable: None,
        }
    }

    /// What Linux makes of the code of an ICMP error of type `unreachable`.
    pub fn unreachable_by(&self, code: i64) -> Errno {
        match (self.remote.is_ipv4(), code) {
            (_, 0) => Errno::NetworkUnreachable,
            (true, 2) => Errno::NoOption,
            (true, 3) | (false, 4) => Errno::Refused,
            (false, 1 | 5 | 6) => Errno::Access,
            _ => Errno::HostUnreachable,
        }
    }

    /// Whether nothing more will arrive.
    pub fn is_at_end(&self) -> bool {
        self.finished || self.phase == Phase::Ended
    }
}
