//! Seeing frames leave: a packet socket beside the sender, which the kernel gives each frame that goes out, with the time at
//! which it did.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use weftwire_linux::LinuxError;
use weftwire_linux::interface::Interface;
use weftwire_linux::system::{check, monotonic_ns, realtime_ns, set_option, socket};

/// Bytes of each frame that are looked at.
const HEAD: usize = 128;
/// Frames taken at once.
const BATCH: usize = 64;
/// Frames wait here until the measurement is over.
const BUFFER: libc::c_int = 512 << 20;

/// Takes the times at which frames leave an interface.
#[derive(Debug)]
pub struct Observer {
    socket: OwnedFd,
}

/// A frame that left.
#[derive(Clone, Copy, Debug)]
pub struct Departed<'a> {
    /// When it came to the interface, `CLOCK_MONOTONIC` in nanoseconds.
    pub at_ns: i64,
    /// Its whole length.
    pub length: usize,
    /// Its first bytes.
    pub head: &'a [u8],
}

impl Observer {
    /// An observer of the interface `name` of this network namespace, from now on.
    ///
    /// # Errors
    /// There is no such interface, or no permission.
    pub fn open(name: &str) -> Result<Observer, LinuxError> {
        let interface = Interface::find(name)?;
        let failed = |error| LinuxError::privileged(format!("watch interface `{name}`"), "CAP_NET_RAW", error);
        let socket = socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0).map_err(failed)?;
        set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32).map_err(failed)?;
        // As much as is allowed; what did not fit is missing from what is seen, and counted as such.
        let _ = set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &BUFFER);
        // SAFETY: sockaddr_ll is plain data for which all zeros is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface.index.cast_signed();
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads one sockaddr_ll.
        check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) }).map_err(failed)?;
        Ok(Observer { socket })
    }

    /// Hands on all that has left so far.
    ///
    /// # Errors
    /// Those of recvmmsg(2).
    pub fn drain(&self, mut take: impl FnMut(Departed<'_>)) -> io::Result<()> {
        let offset = wall_clock_offset();
        let mut heads = [[0_u8; HEAD]; BATCH];
        loop {
            let mut controls = [[0_u64; 8]; BATCH];
            // SAFETY: iovec, mmsghdr and sockaddr_ll are plain data for which all zeros is valid.
            let (mut parts, mut messages, mut addresses): (
                [libc::iovec; BATCH],
                [libc::mmsghdr; BATCH],
                [libc::sockaddr_ll; BATCH],
            ) = unsafe { std::mem::zeroed() };
            for at in 0..BATCH {
                parts[at] = libc::iovec { iov_base: heads[at].as_mut_ptr().cast(), iov_len: HEAD };
                let message = &mut messages[at].msg_hdr;
                message.msg_iov = &raw mut parts[at];
                message.msg_iovlen = 1;
                message.msg_control = controls[at].as_mut_ptr().cast();
                message.msg_controllen = size_of::<[u64; 8]>();
                message.msg_name = (&raw mut addresses[at]).cast();
                message.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            }
            let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
            // SAFETY: every pointer leads to a buffer of the given length that outlives the call and is not otherwise used.
            let count = unsafe {
                let none = std::ptr::null_mut();
                libc::recvmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), BATCH as libc::c_uint, flags, none)
            };
            let count = match check(count) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                count => count? as usize,
            };
            for at in 0..count {
                let (message, length) = (&messages[at].msg_hdr, messages[at].msg_len as usize);
                let outgoing = addresses[at].sll_pkttype == libc::PACKET_OUTGOING;
                if let Some(wall) = time_stamp(message).filter(|_| outgoing) {
                    take(Departed { at_ns: wall - offset, length, head: &heads[at][..length.min(HEAD)] });
                }
            }
        }
    }
}

/// The kernel's time stamp of a frame, nanoseconds since 1970.
fn time_stamp(message: &libc::msghdr) -> Option<i64> {
    // SAFETY: the kernel filled `msg_control` with well-formed control messages and set its length; that of a time stamp
    // is a timespec, which may be unaligned.
    let time: libc::timespec = unsafe {
        let control = libc::CMSG_FIRSTHDR(message);
        if control.is_null()
            || (*control).cmsg_level != libc::SOL_SOCKET
            || (*control).cmsg_type != libc::SCM_TIMESTAMPNS
        {
            return None;
        }
        std::ptr::read_unaligned(libc::CMSG_DATA(control).cast())
    };
    Some(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

/// By how much the wall clock is ahead of `CLOCK_MONOTONIC`: the closest of a few readings.
fn wall_clock_offset() -> i64 {
    let reading = |_| {
        let before = monotonic_ns();
        let wall = realtime_ns();
        let after = monotonic_ns();
        (after - before, wall - before - (after - before) / 2)
    };
    (0..50).map(reading).min().map_or(0, |(_, offset)| offset)
}
