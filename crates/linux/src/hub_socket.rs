//! All link ends of the hub by one pair of sockets: a receive ring (`TPACKET_V2`) bound to no interface, which
//! takes the frames of all of them in the order of their arrival and says of each whence it came and when; and a
//! socket that sends out of whichever is named. So the relay costs the same with one link as with a thousand.

use crate::error::LinuxError;
use crate::packet_socket::{TAG_LENGTH, kernel_drops, put_tag_back, tag};
use crate::system::{check, poll, poll_input, set_option, socket};
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use weftwire_core::Time;

/// Bytes of one slot: header, address, room for a tag, and a frame of 1,514 bytes with two tags.
const SLOT: usize = 2048;
const BLOCK: usize = 1 << 20;
const BLOCKS: usize = 32;
const SLOTS: usize = BLOCK * BLOCKS / SLOT;
/// Bytes of the ring.
pub const RING: u64 = (BLOCK * BLOCKS) as u64;
/// Frames taken at once, so that what is due does not wait long.
const BATCH: usize = 64;
const ADDRESS: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// The sockets of the hub. To be opened in its namespace.
pub struct HubSocket {
    receiver: OwnedFd,
    sender: OwnedFd,
    memory: NonNull<u8>,
    next: usize,
    /// Frames that were longer than a slot.
    pub unusable: u64,
}

/// A frame as it was received.
pub struct Received<'a> {
    /// Index of the interface.
    pub interface: u32,
    /// When the kernel saw it, since 1970.
    pub at: Time,
    /// The frame.
    pub bytes: &'a [u8],
}

impl HubSocket {
    /// Opens it, in the network namespace of the calling thread.
    pub fn open() -> Result<HubSocket, LinuxError> {
        let failed = |error| LinuxError::privileged("open the relay's packet sockets", "CAP_NET_RAW", error);
        let open = || socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0);
        let (receiver, sender) = (open().map_err(failed)?, open().map_err(failed)?);
        let set = |option, value: c_int| set_option(receiver.as_fd(), libc::SOL_PACKET, option, &value);
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as c_int).map_err(failed)?;
        set(libc::PACKET_RESERVE, TAG_LENGTH as c_int).map_err(failed)?;
        set(libc::PACKET_IGNORE_OUTGOING, 1).map_err(|_| LinuxError::Missing {
            feature: "PACKET_IGNORE_OUTGOING",
            since: "4.20",
            instead: "Without it the relay would receive what it sends",
        })?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set_option(receiver.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request).map_err(failed)?;
        // Frames need not wait in a queueing discipline: there is none on a veth, and the link's own comes before.
        let _ = set_option(sender.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32);
        let _ = set_option(sender.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(8_i32 << 20));
        // SAFETY: a fresh mapping of the ring that was just made, at an address of the kernel's choice.
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), BLOCK * BLOCKS, access, libc::MAP_SHARED, receiver.as_raw_fd(), 0)
        };
        let memory = match NonNull::new(memory.cast::<u8>()) {
            Some(memory) if memory.as_ptr().cast() != libc::MAP_FAILED => memory,
            _ => return Err(failed(io::Error::last_os_error())),
        };
        let hub = HubSocket { receiver, sender, memory, next: 0, unusable: 0 };
        hub.bind().map_err(failed)?;
        Ok(hub)
    }

    /// Starts reception on all interfaces of the namespace.
    fn bind(&self) -> io::Result<()> {
        let mut address = address(0);
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads one sockaddr_ll.
        check(unsafe { libc::bind(self.receiver.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) }).map(drop)
    }

    /// The start of a slot. Blocks lie behind one another without gaps.
    fn slot(&self, index: usize) -> NonNull<u8> {
        // SAFETY: `index` is below SLOTS, so the offset is within the mapping.
        unsafe { self.memory.add(index * SLOT) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: a slot begins with a `tpacket2_hdr`, whose first member is the aligned `u32` status; both sides only
        // touch it atomically.
        unsafe { self.slot(self.next).cast::<AtomicU32>().as_ref() }
    }

    /// Whether a frame waits: one look into memory.
    pub fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Hands up to 64 waiting frames on. Returns how many there were.
    pub fn receive(&mut self, mut take: impl FnMut(Received<'_>)) -> usize {
        let mut count = 0;
        while count < BATCH && self.is_ready() {
            match self.frame() {
                Some(received) => take(received),
                None => self.unusable += 1,
            }
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % SLOTS;
            count += 1;
        }
        count
    }

    /// The frame in the next slot, which is ours.
    fn frame(&self) -> Option<Received<'_>> {
        let slot = self.slot(self.next);
        // SAFETY: the slot is ours and begins with a `tpacket2_hdr`, behind which there is, aligned, a `sockaddr_ll`.
        let (header, from): (libc::tpacket2_hdr, libc::sockaddr_ll) =
            unsafe { (slot.cast().read(), slot.add(ADDRESS).cast().read()) };
        let (mac, length) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        if header.tp_len != header.tp_snaplen || mac < TAG_LENGTH || mac + length > SLOT {
            return None;
        }
        // SAFETY: within the slot, as was just tested; the slot is ours until its status is changed.
        let bytes = unsafe { std::slice::from_raw_parts_mut(slot.add(mac - TAG_LENGTH).as_ptr(), TAG_LENGTH + length) };
        let start = match tag(header.tp_status, header.tp_vlan_tpid, header.tp_vlan_tci) {
            Some(tag) if length >= 12 => put_tag_back(bytes, tag),
            _ => TAG_LENGTH,
        };
        let at = i64::from(header.tp_sec) * 1_000_000_000 + i64::from(header.tp_nsec);
        Some(Received {
            interface: from.sll_ifindex.cast_unsigned(),
            at: Time::from_nanoseconds(at),
            bytes: &bytes[start..],
        })
    }

    /// Sends a frame out of an interface.
    pub fn send(&self, interface: u32, bytes: &[u8]) -> io::Result<()> {
        let address = address(interface);
        // SAFETY: the kernel reads the bytes and one sockaddr_ll, which outlive the call.
        let sent = unsafe {
            libc::sendto(
                self.sender.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                libc::MSG_DONTWAIT,
                std::ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits until a frame waits or the time has passed.
    pub fn wait(&self, time: Duration) {
        // An error would come again; the loop around this goes on with what it has.
        let _ = poll(&mut [poll_input(self.receiver.as_fd())], Some(time));
    }

    /// Frames that the kernel dropped since the last call as the ring was full.
    pub fn kernel_drops(&self) -> u64 {
        kernel_drops(self.receiver.as_fd())
    }
}

impl Drop for HubSocket {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this length, and no frame is borrowed any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), BLOCK * BLOCKS) };
    }
}

fn address(interface: u32) -> libc::sockaddr_ll {
    // SAFETY: sockaddr_ll is plain data for which all zeros is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = interface.cast_signed();
    address
}
