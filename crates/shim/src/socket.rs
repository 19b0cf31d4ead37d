//! What an application holds: a file descriptor, and what is known behind it.

use crate::Errno;
use crate::readiness::Watch;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use weftwire_core::FlowId;

/// The number of a socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fd(pub i32);

/// The addresses of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// `AF_INET`.
    V4,
    /// `AF_INET6`; also those of IPv4 inside, unless `IPV6_V6ONLY` is set.
    V6,
}

impl Family {
    /// The address that names none.
    pub fn any(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// An address as sockets of this family show it.
    pub fn shown(self, address: SocketAddr) -> SocketAddr {
        match (self, address.ip()) {
            (Family::V6, IpAddr::V4(inside)) => SocketAddr::new(inside.to_ipv6_mapped().into(), address.port()),
            _ => address,
        }
    }
}

/// Which direction of a connection is shut down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Nothing will be read.
    Read,
    /// Nothing will be written.
    Write,
    /// Neither.
    Both,
}

/// A socket, or a set of them to be waited for.
#[derive(Clone, Debug)]
pub struct Socket {
    /// Its addresses.
    pub family: Family,
    /// Where it is bound.
    pub local: Option<SocketAddr>,
    /// What it is for.
    pub role: Role,
    /// Calls do not wait.
    pub nonblocking: bool,
    /// What applications have set.
    pub settings: Settings,
}

/// What a socket is for.
#[derive(Clone, Debug)]
pub enum Role {
    /// Not said yet.
    Fresh,
    /// It waits for connections.
    Listening(Listener),
    /// It is one end of a connection, or was.
    Connected(Stream),
    /// It watches others.
    Watching(BTreeMap<Fd, Watch>),
}

/// A socket that waits for connections.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    /// So many may wait, and one more.
    pub backlog: usize,
    /// Those that are complete, oldest first.
    pub complete: VecDeque<FlowId>,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The connection.
    pub flow: FlowId,
    /// `connect` has not told yet how it went.
    pub connecting: bool,
    /// Nothing will be read.
    pub read_shut: bool,
    /// Nothing will be written.
    pub write_shut: bool,
}

/// What applications set on a socket.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `SO_REUSEADDR`.
    pub reuse_address: bool,
    /// `IPV6_V6ONLY`.
    pub v6_only: bool,
    /// `SO_LINGER` with no time: closing resets.
    pub reset_on_close: bool,
    /// `SO_SNDBUF`: bytes that were written and not acknowledged; `None`: as many as the machine takes.
    pub send_buffer: Option<usize>,
    /// `SO_RCVTIMEO` in nanoseconds.
    pub receive_timeout: Option<i64>,
    /// `SO_SNDTIMEO` in nanoseconds.
    pub send_timeout: Option<i64>,
    /// `SO_KEEPALIVE`.
    pub keep_alive: bool,
    /// `TCP_KEEPIDLE` in seconds.
    pub keep_idle: i64,
    /// Registers that get values as soon as there is a connection.
    pub registers: BTreeMap<&'static str, i64>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            reuse_address: false,
            v6_only: false,
            reset_on_close: false,
            send_buffer: None,
            receive_timeout: None,
            send_timeout: None,
            keep_alive: false,
            // Two hours (RFC 9293, 3.8.4).
            keep_idle: 7_200,
            registers: BTreeMap::new(),
        }
    }
}

impl Socket {
    /// A new one.
    pub fn new(family: Family, role: Role) -> Socket {
        Socket { family, local: None, role, nonblocking: false, settings: Settings::default() }
    }

    /// Its connection.
    ///
    /// # Errors
    /// [`Errno::NotConnected`].
    pub fn stream(&self) -> Result<&Stream, Errno> {
        match &self.role {
            Role::Connected(stream) => Ok(stream),
            _ => Err(Errno::NotConnected),
        }
    }

    /// Its connection, to be changed.
    ///
    /// # Errors
    /// [`Errno::NotConnected`].
    pub fn stream_mut(&mut self) -> Result<&mut Stream, Errno> {
        match &mut self.role {
            Role::Connected(stream) => Ok(stream),
            _ => Err(Errno::NotConnected),
        }
    }

    /// Whether connections to this address come to it: it must be bound there or to any.
    pub fn is_bound_to(&self, address: SocketAddr) -> bool {
        self.local.is_some_and(|local| {
            let fits = match local.ip() {
                any if any.is_unspecified() => match self.family {
                    Family::V4 => address.is_ipv4(),
                    Family::V6 => address.is_ipv6() || !self.settings.v6_only,
                },
                one => one == address.ip(),
            };
            fits && local.port() == address.port()
        })
    }
}
