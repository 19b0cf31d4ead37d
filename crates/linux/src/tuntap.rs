//! A port that is a TUN (raw IP) or TAP (Ethernet) device of the kernel (`Documentation/networking/tuntap.rst`).
//! What the kernel sends into the device is received here. The device goes away when the port is closed, unless it
//! was made persistent beforehand (`ip tuntap add`).

use crate::error::LinuxError;
use crate::interface::{Interface, bring_up};
use crate::port::{BATCH, FRAME_CAPACITY, FramePort, PortCounters};
use crate::system::{check, interface_ioctl, interface_request};
use crate::transmit::{Route, message_parts, send_all};
use crate::vnet;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use weftwire_core::buffer::Pool;
use weftwire_core::{Arrival, Arrivals, Frame, LinkType, Port};

/// What the kernel may leave to us: checksums, TCP segmentation, and UDP segmentation (Linux 6.2).
const TCP_OFFLOADS: libc::c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
const UDP_OFFLOADS: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// A TUN or TAP device.
pub(crate) struct TunTap {
    device: OwnedFd,
    link: LinkType,
    mtu: usize,
    counters: PortCounters,
}

impl TunTap {
    /// Opens the device `name`, makes it if it is not there, and sets it up.
    pub(crate) fn open(name: &str, link: LinkType) -> Result<TunTap, LinuxError> {
        let kind = kind(link);
        let action = || format!("open {kind} device `{name}`");
        let device: OwnedFd = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => LinuxError::Missing {
                    feature: "TUN/TAP driver (/dev/net/tun)",
                    since: "2.4",
                    instead: "Load it with: modprobe tun",
                },
                _ => LinuxError::privileged(action(), "access to /dev/net/tun", error),
            })?
            .into();
        attach(&device, name, link).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => LinuxError::Busy(name.to_owned()),
            Some(libc::EINVAL) => LinuxError::NotThatKind { name: name.to_owned(), kind },
            _ => LinuxError::privileged(action(), "CAP_NET_ADMIN", error),
        })?;
        bring_up(name).map_err(|error| LinuxError::privileged(format!("bring up `{name}`"), "CAP_NET_ADMIN", error))?;
        Ok(TunTap { device, link, mtu: Interface::find(name)?.mtu, counters: PortCounters::default() })
    }

    /// Goes on with the device of another process, which has set it up.
    ///
    /// # Errors
    /// The device is gone.
    pub(crate) fn take_over(device: OwnedFd, name: &str, link: LinkType) -> Result<TunTap, LinuxError> {
        Ok(TunTap { device, link, mtu: Interface::find(name)?.mtu, counters: PortCounters::default() })
    }
}

impl FramePort for TunTap {
    fn link(&self) -> LinkType {
        self.link
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn receive(&mut self, port: Port, pool: &mut Pool, arrivals: &mut Arrivals) -> io::Result<()> {
        for _ in 0..BATCH {
            let mut header = vnet::Header::default();
            let mut buffer = pool.take(FRAME_CAPACITY);
            let space = buffer.space();
            let parts = [
                libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: header.len() },
                libc::iovec { iov_base: space.as_mut_ptr().cast(), iov_len: space.len() },
            ];
            // SAFETY: both parts lead to buffers of the given lengths that outlive the call.
            let result = unsafe { libc::readv(self.device.as_raw_fd(), parts.as_ptr(), parts.len() as i32) };
            let Ok(length) = usize::try_from(result) else {
                pool.give_back(buffer);
                match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::WouldBlock => break,
                    error if error.kind() == io::ErrorKind::Interrupted => continue,
                    // Down, or gone: it may come back.
                    error if matches!(error.raw_os_error(), Some(libc::EIO | libc::EBADFD)) => break,
                    error => return Err(error),
                }
            };
            let length = length.saturating_sub(vnet::HEADER_LENGTH);
            buffer.set_frame(0..length);
            match vnet::decode(&header, &mut buffer, self.link) {
                Ok(offload) => {
                    self.counters.frames_in += 1;
                    self.counters.bytes_in += length as u64;
                    arrivals.push_back(Arrival { port, buffer, offload });
                }
                Err(_) => {
                    self.counters.unusable += 1;
                    pool.give_back(buffer);
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, frames: &[Frame<'_>]) {
        let (device, route) = (self.device.as_fd(), Route { link: self.link, mtu: self.mtu });
        send_all(frames, route, &mut self.counters, &mut |frames| write_frame(device, &frames[0], route.link));
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.clone()
    }

    /// Without privileges this takes a device up that belongs to nobody, or to this user.
    fn take_up(&mut self, interface: &Interface) -> io::Result<()> {
        attach(&self.device, &interface.name, self.link)
    }

    fn set_mtu(&mut self, mtu: usize) {
        self.mtu = mtu;
    }

    fn hand_over(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}

/// Makes an open `/dev/net/tun` the other end of the device `name`.
fn attach(device: &OwnedFd, name: &str, link: LinkType) -> io::Result<()> {
    let flag = match link {
        LinkType::Ip => libc::IFF_TUN,
        LinkType::Ethernet => libc::IFF_TAP,
    };
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_flags = (flag | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    interface_ioctl(device.as_fd(), libc::TUNSETIFF, &mut request)?;
    // Where the kernel knows none of these, it finishes frames itself before they come here.
    if set_offloads(device, TCP_OFFLOADS | UDP_OFFLOADS).is_err() {
        let _ = set_offloads(device, TCP_OFFLOADS);
    }
    Ok(())
}

fn kind(link: LinkType) -> &'static str {
    match link {
        LinkType::Ip => "tun",
        LinkType::Ethernet => "tap",
    }
}

fn write_frame(device: BorrowedFd<'_>, frame: &Frame<'_>, link: LinkType) -> io::Result<usize> {
    let header = vnet::encode(frame, link);
    let parts = message_parts(&header, frame);
    // SAFETY: the parts lead to `header` and the frame's bytes, which outlive the call and are only read.
    let result = unsafe { libc::writev(device.as_raw_fd(), parts.as_ptr(), parts.len() as i32) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(1) }
}

fn set_offloads(device: &OwnedFd, offloads: libc::c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) }).map(drop)
}
