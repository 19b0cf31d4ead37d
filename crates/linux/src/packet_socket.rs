//! A port on an existing interface by an `AF_PACKET` socket (packet(7)), batched by `recvmmsg` and `sendmmsg`.

use crate::error::LinuxError;
use crate::interface::Interface;
use crate::port::{BATCH, FRAME_CAPACITY, FramePort, PortCounters};
use crate::system::{check, set_option, socket};
use crate::transmit::{Route, send_all, send_messages};
use crate::vnet;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use weftwire_core::buffer::Pool;
use weftwire_core::{Arrival, Arrivals, Buffer, Frame, LinkType, Port};

/// Room in front of a frame to put back the VLAN tag that the kernel strips.
pub(crate) const TAG_LENGTH: usize = 4;

/// Socket buffers in bytes: a few hundred super-frames.
const SOCKET_BUFFER: c_int = 32 << 20;

/// Room for one `tpacket_auxdata` control message, aligned.
type Control = [u64; 8];

/// A port that reads and writes by system calls.
pub struct PacketSocket {
    socket: OwnedFd,
    link: LinkType,
    /// What the next frames are received into; each that was used goes with its frame and is replaced.
    buffers: Vec<Buffer>,
    mtu: usize,
    counters: PortCounters,
}

impl PacketSocket {
    /// Opens a port on the interface `name`.
    pub fn open(name: &str) -> Result<PacketSocket, LinuxError> {
        let (socket, interface) = open_socket(name)?;
        bind(&socket, &interface)?;
        Ok(PacketSocket {
            socket,
            link: interface.link,
            buffers: Vec::with_capacity(BATCH),
            mtu: interface.mtu,
            counters: PortCounters::default(),
        })
    }

    /// Goes on with the socket of another process, which has set it up.
    ///
    /// # Errors
    /// The interface is gone.
    pub(crate) fn take_over(socket: OwnedFd, name: &str) -> Result<PacketSocket, LinuxError> {
        let Interface { link, mtu, .. } = Interface::find(name)?;
        Ok(PacketSocket { socket, link, buffers: Vec::with_capacity(BATCH), mtu, counters: PortCounters::default() })
    }
}

impl FramePort for PacketSocket {
    fn link(&self) -> LinkType {
        self.link
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self, port: Port, pool: &mut Pool, arrivals: &mut Arrivals) -> io::Result<()> {
        self.buffers.resize_with(BATCH, || pool.take(FRAME_CAPACITY));
        let mut headers = [vnet::Header::default(); BATCH];
        let mut controls = [Control::default(); BATCH];
        // SAFETY: iovec and mmsghdr are plain data for which all zeros is valid.
        let (mut parts, mut messages): ([[libc::iovec; 2]; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { std::mem::zeroed() };
        for (at, buffer) in self.buffers.iter_mut().enumerate() {
            let frame = buffer.space();
            parts[at] = [
                libc::iovec { iov_base: headers[at].as_mut_ptr().cast(), iov_len: vnet::HEADER_LENGTH },
                libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() },
            ];
            messages[at].msg_hdr.msg_iov = parts[at].as_mut_ptr();
            messages[at].msg_hdr.msg_iovlen = 2;
            messages[at].msg_hdr.msg_control = controls[at].as_mut_ptr().cast();
            messages[at].msg_hdr.msg_controllen = size_of::<Control>();
        }
        // SAFETY: every pointer leads to a buffer of the given length that outlives the call and is not otherwise
        // used during it.
        let result = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let count = match check(result) {
            Ok(count) => count as usize,
            Err(error) => return nothing_received(error, &mut self.counters),
        };
        let received = self.buffers.drain(..count).zip(&messages).zip(&headers);
        for ((mut buffer, message), header) in received {
            let length = (message.msg_len as usize).saturating_sub(vnet::HEADER_LENGTH);
            let truncated = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            buffer.set_frame(0..length);
            let offload = vnet::decode(header, &mut buffer, self.link);
            let (false, Ok(offload)) = (truncated, offload) else {
                self.counters.unusable += 1;
                pool.give_back(buffer);
                continue;
            };
            let tag = stripped_tag(&message.msg_hdr).filter(|_| self.link == LinkType::Ethernet && length >= 12);
            if let Some(tag) = tag {
                buffer.prepend(&[0; TAG_LENGTH]);
                put_tag_back(&mut buffer, tag);
            }
            self.counters.frames_in += 1;
            self.counters.bytes_in += buffer.len() as u64;
            arrivals.push_back(Arrival { port, buffer, offload });
        }
        Ok(())
    }

    fn send(&mut self, frames: &[Frame<'_>]) {
        let (socket, route) = (self.socket.as_fd(), Route { link: self.link, mtu: self.mtu });
        send_all(frames, route, &mut self.counters, &mut |frames| send_messages(socket, frames, route.link));
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.kernel_drops += kernel_drops(self.socket.as_fd());
        self.counters.clone()
    }

    fn take_up(&mut self, interface: &Interface) -> io::Result<()> {
        join(&self.socket, interface)?;
        bind_to(&self.socket, interface)
    }

    fn set_mtu(&mut self, mtu: usize) {
        self.mtu = mtu;
    }

    fn hand_over(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

/// A VLAN tag: protocol identifier (0x8100, 0x88a8) and control information.
pub(crate) type Tag = (u16, u16);

/// Opens a packet socket with all that both kinds of port need. It receives nothing before [`bind`].
pub(crate) fn open_socket(name: &str) -> Result<(OwnedFd, Interface), LinuxError> {
    let interface = Interface::find(name)?;
    if !interface.up {
        return Err(LinuxError::Down(name.to_owned()));
    }
    let socket = socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0)
        .map_err(|error| LinuxError::privileged(format!("open interface `{name}`"), "CAP_NET_RAW", error))?;
    let set = |option, value: c_int| set_option(socket.as_fd(), libc::SOL_PACKET, option, &value);
    let configure = |error| LinuxError::system(format!("configure the packet socket of `{name}`"), error);

    set(libc::PACKET_VNET_HDR, 1).map_err(|_| LinuxError::Missing {
        feature: "virtio-net headers on packet sockets (PACKET_VNET_HDR)",
        since: "2.6.39",
        instead: "Without them frames with unfinished checksums can't be told from wrong ones; use a tun or tap port",
    })?;
    set(libc::PACKET_IGNORE_OUTGOING, 1).map_err(|_| LinuxError::Missing {
        feature: "PACKET_IGNORE_OUTGOING",
        since: "4.20",
        instead: "Without it a port would receive what it sends; use a tun or tap port",
    })?;
    set(libc::PACKET_AUXDATA, 1).map_err(configure)?;
    for (force, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        // The forced size needs CAP_NET_ADMIN; without it the system's limit has to do.
        set_option(socket.as_fd(), libc::SOL_SOCKET, force, &SOCKET_BUFFER)
            .or_else(|_| set_option(socket.as_fd(), libc::SOL_SOCKET, plain, &SOCKET_BUFFER))
            .map_err(configure)?;
    }
    join(&socket, &interface).map_err(configure)?;
    Ok((socket, interface))
}

/// Sets the interface to promiscuous mode as long as the socket lives.
pub(crate) fn join(socket: &OwnedFd, interface: &Interface) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: interface.index as c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// Starts reception of all protocols on the interface.
pub(crate) fn bind(socket: &OwnedFd, interface: &Interface) -> Result<(), LinuxError> {
    bind_to(socket, interface)
        .map_err(|error| LinuxError::system(format!("bind to interface `{}`", interface.name), error))
}

/// As [`bind`]. A socket that is open needs no privileges for it.
pub(crate) fn bind_to(socket: &OwnedFd, interface: &Interface) -> io::Result<()> {
    // SAFETY: sockaddr_ll is plain data for which all zeros is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface.index as c_int;
    // SAFETY: the kernel reads one sockaddr_ll.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    check(result).map(drop)
}

/// What an error of receiving means: nothing there, a frame the kernel can't describe, an interface that went down
/// (and may come back), or the port's end.
fn nothing_received(error: io::Error, counters: &mut PortCounters) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR | libc::ENETDOWN) => Ok(()),
        Some(libc::EINVAL) => {
            counters.unusable += 1;
            Ok(())
        }
        _ => Err(error),
    }
}

/// The VLAN tag that the kernel stripped from a frame, by its auxiliary data.
fn stripped_tag(message: &libc::msghdr) -> Option<Tag> {
    // SAFETY: the kernel filled `msg_control` with well-formed control messages and set its length; auxiliary data of
    // a packet socket is one `tpacket_auxdata`, which may be unaligned.
    let data: libc::tpacket_auxdata = unsafe {
        let control = libc::CMSG_FIRSTHDR(message);
        if control.is_null()
            || (*control).cmsg_level != libc::SOL_PACKET
            || (*control).cmsg_type != libc::PACKET_AUXDATA
        {
            return None;
        }
        std::ptr::read_unaligned(libc::CMSG_DATA(control).cast())
    };
    tag(data.tp_status, data.tp_vlan_tpid, data.tp_vlan_tci)
}

/// The tag that a `tp_status` announces. Kernels before 3.14 don't tell the protocol identifier.
pub(crate) fn tag(status: u32, identifier: u16, control: u16) -> Option<Tag> {
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    Some((if known { identifier } else { libc::ETH_P_8021Q as u16 }, control))
}

/// Puts a tag behind the Ethernet addresses of the frame that starts at [`TAG_LENGTH`] in `slot`. Returns where
/// the frame starts now.
pub(crate) fn put_tag_back(slot: &mut [u8], (identifier, control): Tag) -> usize {
    slot.copy_within(TAG_LENGTH..TAG_LENGTH + 12, 0);
    slot[12..14].copy_from_slice(&identifier.to_be_bytes());
    slot[14..16].copy_from_slice(&control.to_be_bytes());
    0
}

/// Frames dropped by the kernel since the last call: reading the statistics resets them.
pub(crate) fn kernel_drops(socket: BorrowedFd<'_>) -> u64 {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `statistics`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            std::ptr::from_mut(&mut statistics).cast(),
            &mut length,
        )
    };
    if result == 0 { u64::from(statistics.tp_drops) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripped_tag_goes_behind_the_addresses() {
        let mut slot = [0; TAG_LENGTH + 14];
        slot[TAG_LENGTH..].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0]);
        assert_eq!(put_tag_back(&mut slot, (0x88a8, 0x6005)), 0);
        assert_eq!(slot, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x88, 0xa8, 0x60, 5, 8, 0]);
    }

    #[test]
    fn a_tag_without_identifier_is_802_1q() {
        assert_eq!(tag(0, 0x88a8, 5), None);
        assert_eq!(tag(libc::TP_STATUS_VLAN_VALID, 0, 5), Some((0x8100, 5)));
        let both = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        assert_eq!(tag(both, 0x88a8, 5), Some((0x88a8, 5)));
    }

    #[test]
    fn a_stripped_tag_is_read_from_auxiliary_data() {
        #[repr(C, align(8))]
        struct Control([u8; 64]);
        let mut control = Control([0; 64]);
        const LENGTH: u32 = size_of::<libc::tpacket_auxdata>() as u32;
        // SAFETY: both are plain data for which all zeros is valid; the control message and its data are within `control`.
        let message = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            assert_eq!(stripped_tag(&message), None);
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(LENGTH) as usize;
            let first = libc::CMSG_FIRSTHDR(&message);
            (*first).cmsg_len = libc::CMSG_LEN(LENGTH) as usize;
            (*first).cmsg_level = libc::SOL_PACKET;
            (*first).cmsg_type = libc::PACKET_AUXDATA;
            let mut data: libc::tpacket_auxdata = std::mem::zeroed();
            data.tp_status = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
            (data.tp_vlan_tpid, data.tp_vlan_tci) = (0x88a8, 5);
            libc::CMSG_DATA(first).cast::<libc::tpacket_auxdata>().write_unaligned(data);
            message
        };
        assert_eq!(stripped_tag(&message), Some((0x88a8, 5)));
    }
}
