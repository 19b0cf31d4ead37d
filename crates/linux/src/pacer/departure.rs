//! Frames with a departure time: `SO_TXTIME` (socket(7), linux/net_tstamp.h). The time goes along with each frame in a control message;
//! a queueing discipline that honours it ([`super::departures`]) holds the frame back until then, all others send it at once.

use super::{Departures, TransmitClock, departures};
use crate::error::LinuxError;
use crate::interface::Interface;
use crate::system::{check, clock_ns, monotonic_ns, set_option, socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// `struct sock_txtime`.
#[repr(C)]
#[derive(Clone, Copy)]
struct TransmitTime {
    clock: i32,
    flags: u32,
}

/// `SO_TXTIME` and `SCM_TXTIME` have one number.
const TXTIME: libc::c_int = 61;

/// Has a socket take departure times by this clock.
///
/// # Errors
/// The kernel is older than 4.19, or no permission (`CAP_NET_ADMIN`, for other clocks than `CLOCK_MONOTONIC`).
pub fn accept_times(socket: BorrowedFd<'_>, clock: TransmitClock) -> io::Result<()> {
    let clock = match clock {
        TransmitClock::Monotonic => libc::CLOCK_MONOTONIC,
        TransmitClock::Tai => libc::CLOCK_TAI,
    };
    set_option(socket, libc::SOL_SOCKET, TXTIME, &TransmitTime { clock, flags: 0 })
}

/// Sends bytes on a connected or bound socket, with a departure time if there is one, without waiting.
///
/// # Errors
/// Those of sendmsg(2). `EINVAL` also if the socket does not [`accept_times`].
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], at: Option<u64>) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // Room for one control message with 8 bytes, aligned as `cmsghdr` must be.
    let mut control = [0_u64; 3];
    // SAFETY: msghdr is plain data for which all zeros is valid. All that it points to outlives the call, and the kernel only
    // reads it. The control message lies within `control`, which is as long as `msg_controllen` says.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if let Some(at) = at {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size_of::<u64>() as u32) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = TXTIME;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<u64>() as u32) as _;
            libc::CMSG_DATA(header).cast::<u64>().write_unaligned(at);
        }
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A sender of Ethernet frames out of one interface, each at its time: by the kernel where that honours departure times, else
/// at once, so that whoever sends must wait.
#[derive(Debug)]
pub struct DepartureSocket {
    socket: OwnedFd,
    departures: Departures,
}

impl DepartureSocket {
    /// Opens the sender on the interface `name` of this network namespace.
    ///
    /// # Errors
    /// There is no such interface, or no permission (`CAP_NET_RAW`; with `etf` also `CAP_NET_ADMIN`).
    pub fn open(name: &str) -> Result<DepartureSocket, LinuxError> {
        let (interface, departures) = (Interface::find(name)?, departures(name)?);
        let failed = |error| LinuxError::privileged(format!("open interface `{name}` to send"), "CAP_NET_RAW", error);
        // Of no protocol: it receives nothing.
        let socket = socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0).map_err(failed)?;
        let _ = set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(8_i32 << 20));
        // The way past queueing disciplines (PACKET_QDISC_BYPASS) would be a little shorter, but nobody could watch frames leave.
        if let Departures::Honoured { clock, .. } = &departures {
            accept_times(socket.as_fd(), *clock).map_err(failed)?;
        }
        // SAFETY: sockaddr_ll is plain data for which all zeros is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = interface.index.cast_signed();
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads one sockaddr_ll.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
        check(bound).map_err(failed)?;
        Ok(DepartureSocket { socket, departures })
    }

    /// What becomes of departure times here.
    pub fn departures(&self) -> &Departures {
        &self.departures
    }

    /// Sends a frame to depart at `deadline` (`CLOCK_MONOTONIC`, nanoseconds); at once where that is ignored.
    ///
    /// # Errors
    /// Those of sendmsg(2).
    pub fn send(&self, frame: &[u8], deadline: i64) -> io::Result<()> {
        let at = match &self.departures {
            Departures::Ignored { .. } => None,
            Departures::Honoured { clock: TransmitClock::Monotonic, .. } => Some(deadline),
            Departures::Honoured { clock: TransmitClock::Tai, .. } => {
                Some(deadline.saturating_add(clock_ns(libc::CLOCK_TAI) - monotonic_ns()))
            }
        };
        send(self.socket.as_fd(), frame, at.map(i64::cast_unsigned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    /// The option and the control message are well formed: the kernel takes them, and refuses a time without the option.
    #[test]
    fn the_kernel_takes_departure_times() {
        let (sender, receiver) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let at = Some((monotonic_ns() + 1_000_000).cast_unsigned());
        assert_eq!(send(sender.as_fd(), b"early", at).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        accept_times(sender.as_fd(), TransmitClock::Monotonic).unwrap();
        send(sender.as_fd(), b"timed", at).unwrap();
        send(sender.as_fd(), b"plain", None).unwrap();
        let mut bytes = [0; 16];
        for expected in [b"timed", b"plain"] {
            let length = receiver.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], expected);
        }
    }
}
