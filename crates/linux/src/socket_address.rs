//! Sockets with all that the standard library leaves out: a local port before connecting, and what TCP knows.

use crate::error::LinuxError;
use crate::system::{check, set_option, socket};
use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// An address as the kernel takes it, and its length.
fn kernel_address(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: sockaddr_storage is plain data for which all zeros is valid, and large enough and aligned for each of
    // the two types that are written into it.
    unsafe {
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        let place = std::ptr::from_mut(&mut storage);
        let length = match address {
            SocketAddr::V4(address) => {
                let to = &mut *place.cast::<libc::sockaddr_in>();
                to.sin_family = libc::AF_INET as u16;
                to.sin_port = address.port().to_be();
                to.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(address) => {
                let to = &mut *place.cast::<libc::sockaddr_in6>();
                to.sin6_family = libc::AF_INET6 as u16;
                to.sin6_port = address.port().to_be();
                to.sin6_addr.s6_addr = address.ip().octets();
                size_of::<libc::sockaddr_in6>()
            }
        };
        (storage, length as libc::socklen_t)
    }
}

/// A socket of this kind, bound to `local`. Sending and receiving give up after `patience`.
fn bound(kind: c_int, local: SocketAddr, patience: Duration) -> io::Result<OwnedFd> {
    let family = if local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let socket = socket(family, kind, 0)?;
    set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, &1_i32)?;
    set_patience(&socket, patience)?;
    let (address, length) = kernel_address(local);
    // SAFETY: the kernel reads `length` bytes of the address.
    check(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) })?;
    Ok(socket)
}

/// Sending, receiving, accepting and connecting give up after `patience`.
fn set_patience(socket: &OwnedFd, patience: Duration) -> io::Result<()> {
    let patience =
        libc::timeval { tv_sec: patience.as_secs().cast_signed(), tv_usec: i64::from(patience.subsec_micros()) };
    for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        set_option(socket.as_fd(), libc::SOL_SOCKET, option, &patience)?;
    }
    Ok(())
}

/// A TCP socket that listens.
pub fn listen(local: SocketAddr, patience: Duration) -> io::Result<OwnedFd> {
    let socket = bound(libc::SOCK_STREAM, local, patience)?;
    // SAFETY: takes numbers.
    check(unsafe { libc::listen(socket.as_raw_fd(), 4096) })?;
    Ok(socket)
}

/// A TCP connection from `local` to `remote`, with this congestion control if one is given. Connecting gives up after `limit`,
/// sending and receiving after `patience`.
pub fn connect(
    local: SocketAddr,
    remote: SocketAddr,
    control: Option<&str>,
    limit: Duration,
    patience: Duration,
) -> io::Result<OwnedFd> {
    let socket = bound(libc::SOCK_STREAM, local, limit)?;
    if let Some(name) = control {
        set_congestion_control(&socket, name)?;
    }
    let (address, length) = kernel_address(remote);
    // SAFETY: the kernel reads `length` bytes of the address.
    check(unsafe { libc::connect(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) })?;
    set_patience(&socket, patience)?;
    Ok(socket)
}

/// A TCP socket that does not block and begins to connect: when it can be written, that has succeeded or failed.
pub(crate) fn begin_connect(remote: SocketAddr) -> io::Result<OwnedFd> {
    let family = if remote.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let socket = socket(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0)?;
    set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, &1_i32)?;
    let (address, length) = kernel_address(remote);
    // SAFETY: the kernel reads `length` bytes of the address.
    let begun = check(unsafe { libc::connect(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) });
    match begun {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

/// A UDP socket.
pub fn udp(local: SocketAddr, patience: Duration) -> io::Result<OwnedFd> {
    let socket = bound(libc::SOCK_DGRAM, local, patience)?;
    // As much as is allowed: a burst may wait for its thread.
    let _ = set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &(8_i32 << 20));
    Ok(socket)
}

/// Chooses the congestion control of a TCP socket, which takes effect at once. The kernel loads a module for it if it may.
pub fn set_congestion_control(socket: &impl AsFd, name: &str) -> io::Result<()> {
    let (descriptor, name) = (socket.as_fd().as_raw_fd(), name.as_bytes());
    // SAFETY: the kernel reads so many bytes of the name.
    let done = unsafe {
        libc::setsockopt(
            descriptor,
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    };
    check(done).map(drop)
}

/// The congestion control of a TCP socket.
pub fn congestion_control(socket: &impl AsFd) -> io::Result<String> {
    let mut name = [0_u8; 16];
    let mut length = name.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes.
    check(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &mut length,
        )
    })?;
    let text = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Sees that the kernel has a congestion control.
///
/// # Errors
/// [`LinuxError::NoCongestionControl`] says which it has; or it cannot be set.
pub fn check_congestion_control(name: &str) -> Result<(), LinuxError> {
    let socket =
        socket(libc::AF_INET, libc::SOCK_STREAM, 0).map_err(|error| LinuxError::system("open a socket", error))?;
    set_congestion_control(&socket, name).map_err(|error| {
        let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let known: Vec<&str> = known.as_deref().unwrap_or_default().split_whitespace().collect();
        match error.raw_os_error() {
            Some(libc::ENOENT) => LinuxError::NoCongestionControl { name: name.to_owned(), known: known.join(", ") },
            _ => LinuxError::system(format!("set the congestion control `{name}`"), error),
        }
    })
}

/// What the kernel knows of a TCP connection (`TCP_INFO`).
#[derive(Clone, Copy, Default)]
pub struct TcpInfo {
    /// Smoothed round-trip time; zero without any.
    pub rtt: Duration,
    /// Least round-trip time, if there was any.
    pub rtt_min: Option<Duration>,
    /// Segments sent again.
    pub retransmissions: u32,
    /// Segments with payload sent.
    pub data_segments: u32,
    /// The retransmission timeout that is in force, with back-off.
    pub timeout: Duration,
    /// Segments that are not acknowledged.
    pub unacknowledged: u32,
    /// Bytes that the peer has acknowledged.
    pub acknowledged_bytes: u64,
    /// Bytes that came in order.
    pub received_bytes: u64,
}

/// Asks for the state of a connection. Kernels before 4.6 know less: zeros.
pub fn tcp_info(socket: &impl AsRawFd) -> io::Result<TcpInfo> {
    // `struct tcp_info` of linux/tcp.h, which only ever grows: 8 bytes of flags, then words of 32 bits up to
    // tcpi_total_retrans, then wider ones.
    let mut words = [0_u32; 64];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, words.as_mut_ptr().cast(), &mut length)
    })?;
    let wide = |at: usize| {
        let [low, high] = [words[at], words[at + 1]].map(u32::to_ne_bytes);
        u64::from_ne_bytes([low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]])
    };
    let microseconds = |count: u32| Duration::from_micros(count.into());
    Ok(TcpInfo {
        rtt: microseconds(words[17]),
        rtt_min: Some(words[37]).filter(|least| *least != u32::MAX).map(microseconds),
        retransmissions: words[25],
        data_segments: words[39],
        timeout: microseconds(words[2]),
        unacknowledged: words[6],
        acknowledged_bytes: wide(30),
        received_bytes: wide(32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_layout_of_the_kernel() {
        let bytes = |address: &str| {
            let (storage, length) = kernel_address(address.parse().expect("an address"));
            // SAFETY: plain data without padding in the first `length` bytes.
            unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&storage).cast::<u8>(), length as usize) }.to_vec()
        };
        let family = |number: c_int| (number as u16).to_ne_bytes().to_vec();
        let four = [family(libc::AF_INET), vec![0x1f, 0x90, 192, 0, 2, 1], vec![0; 8]].concat();
        assert_eq!(bytes("192.0.2.1:8080"), four);
        let address = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let six = [family(libc::AF_INET6), vec![0x1f, 0x90, 0, 0, 0, 0], address.to_vec(), vec![0; 4]].concat();
        assert_eq!(bytes("[2001:db8::1]:8080"), six);
    }
}
