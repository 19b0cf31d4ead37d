//! Why a call of a socket fails, as Linux numbers it.

use std::ffi::c_int;
use thiserror::Error;

/// Why a call of a socket fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[repr(i32)]
pub enum Errno {
    /// No such file descriptor.
    #[error("EBADF")]
    BadDescriptor = libc::EBADF,
    /// The call would have to wait and may not, or has waited for as long as it may.
    #[error("EAGAIN")]
    Again = libc::EAGAIN,
    /// Memory of the caller that can't be used.
    #[error("EFAULT")]
    Fault = libc::EFAULT,
    /// An argument that makes no sense here.
    #[error("EINVAL")]
    Invalid = libc::EINVAL,
    /// There is an entry already.
    #[error("EEXIST")]
    Exists = libc::EEXIST,
    /// There is no such entry.
    #[error("ENOENT")]
    NoEntry = libc::ENOENT,
    /// A router or host may not let this through.
    #[error("EACCES")]
    Access = libc::EACCES,
    /// There is no machine.
    #[error("ENODEV")]
    NoDevice = libc::ENODEV,
    /// As many as there is room for are there.
    #[error("ENOBUFS")]
    NoRoom = libc::ENOBUFS,
    /// Nobody reads any more, or this end has closed.
    #[error("EPIPE")]
    Pipe = libc::EPIPE,
    /// The call would wait for ever.
    #[error("EDEADLK")]
    Deadlock = libc::EDEADLK,
    /// The shim has no such call.
    #[error("ENOSYS")]
    NoCall = libc::ENOSYS,
    /// What is to be passed on is longer than the room for it.
    #[error("EMSGSIZE")]
    MessageSize = libc::EMSGSIZE,
    /// The machine has nothing for this option.
    #[error("ENOPROTOOPT")]
    NoOption = libc::ENOPROTOOPT,
    /// No such protocol.
    #[error("EPROTONOSUPPORT")]
    NoProtocol = libc::EPROTONOSUPPORT,
    /// No such kind of socket.
    #[error("ESOCKTNOSUPPORT")]
    NoSocketType = libc::ESOCKTNOSUPPORT,
    /// Sockets like this one have no such call.
    #[error("EOPNOTSUPP")]
    NotSupported = libc::EOPNOTSUPP,
    /// Addresses of another family.
    #[error("EAFNOSUPPORT")]
    AddressFamily = libc::EAFNOSUPPORT,
    /// The address is taken.
    #[error("EADDRINUSE")]
    AddressInUse = libc::EADDRINUSE,
    /// The address is not of this host, or no port is free.
    #[error("EADDRNOTAVAIL")]
    AddressNotAvailable = libc::EADDRNOTAVAIL,
    /// No network is there.
    #[error("ENETUNREACH")]
    NetworkUnreachable = libc::ENETUNREACH,
    /// No host is there.
    #[error("EHOSTUNREACH")]
    HostUnreachable = libc::EHOSTUNREACH,
    /// The connection ended before it was one.
    #[error("ECONNABORTED")]
    Aborted = libc::ECONNABORTED,
    /// The other end has reset the connection.
    #[error("ECONNRESET")]
    Reset = libc::ECONNRESET,
    /// The socket is connected.
    #[error("EISCONN")]
    IsConnected = libc::EISCONN,
    /// The socket is not connected.
    #[error("ENOTCONN")]
    NotConnected = libc::ENOTCONN,
    /// The other end does not answer.
    #[error("ETIMEDOUT")]
    TimedOut = libc::ETIMEDOUT,
    /// Nobody listens there.
    #[error("ECONNREFUSED")]
    Refused = libc::ECONNREFUSED,
    /// The socket is being connected.
    #[error("EALREADY")]
    Already = libc::EALREADY,
    /// The connection is being opened, and will tell how that went.
    #[error("EINPROGRESS")]
    InProgress = libc::EINPROGRESS,
}

impl Errno {
    /// Its number.
    pub fn number(self) -> c_int {
        self as c_int
    }
}
