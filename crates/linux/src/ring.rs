//! A port on an existing interface whose frames arrive in memory shared with the kernel: a `TPACKET_V2` receive ring
//! (`Documentation/networking/packet_mmap.rst`) with virtio-net headers. Made for busy polling: looking for a frame
//! costs one memory read instead of a system call. Sending is that of a packet socket.

use crate::error::LinuxError;
use crate::interface::Interface;
use crate::packet_socket::{TAG_LENGTH, Tag, bind, bind_to, join, kernel_drops, open_socket, put_tag_back, tag};
use crate::port::{BATCH, FRAME_CAPACITY, FramePort, PortCounters};
use crate::system::set_option;
use crate::transmit::{Route, send_all, send_messages};
use crate::vnet;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use weftwire_core::{Frame, LinkType, Offload};

/// Bytes of one slot: header, virtio-net header, room for a tag, and the longest frame.
const SLOT: usize = (FRAME_CAPACITY + 256).next_multiple_of(libc::TPACKET_ALIGNMENT);
/// Bytes of one block of slots, a multiple of the page size.
const BLOCK: usize = 1 << 20;
const SLOTS_A_BLOCK: usize = BLOCK / SLOT;
const BLOCKS: usize = 32;
const SLOTS: usize = SLOTS_A_BLOCK * BLOCKS;

/// A frame in the ring.
#[derive(Clone, Copy)]
struct Received {
    slot: usize,
    start: usize,
    length: usize,
    offload: Offload,
}

/// A port with a receive ring.
pub(crate) struct Ring {
    socket: OwnedFd,
    link: LinkType,
    memory: NonNull<u8>,
    /// Next slot to look at.
    next: usize,
    /// First slot not yet given back; those from here to `next` are ours.
    held: usize,
    received: Vec<Received>,
    mtu: usize,
    counters: PortCounters,
}

impl Ring {
    /// Opens a port on the interface `name`.
    pub(crate) fn open(name: &str) -> Result<Ring, LinuxError> {
        let (socket, interface) = open_socket(name)?;
        let set = |option, value: c_int| set_option(socket.as_fd(), libc::SOL_PACKET, option, &value);
        let failed = |error| LinuxError::system(format!("set up the receive ring of `{name}`"), error);
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as c_int).map_err(failed)?;
        set(libc::PACKET_RESERVE, TAG_LENGTH as c_int).map_err(failed)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::EINVAL) => LinuxError::Missing {
                    feature: "receive ring with virtio-net headers",
                    since: "4.6",
                    instead: "Use the option `socket`",
                },
                _ => failed(error),
            }
        })?;
        // SAFETY: a fresh mapping of the ring that was just made, at an address of the kernel's choice.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BLOCK * BLOCKS,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        let memory = match NonNull::new(memory.cast::<u8>()) {
            Some(memory) if memory.as_ptr().cast() != libc::MAP_FAILED => memory,
            _ => return Err(failed(io::Error::last_os_error())),
        };
        let ring = Ring {
            socket,
            link: interface.link,
            memory,
            next: 0,
            held: 0,
            received: Vec::with_capacity(BATCH),
            mtu: interface.mtu,
            counters: PortCounters::default(),
        };
        bind(&ring.socket, &interface)?;
        Ok(ring)
    }

    /// The start of a slot. Slots don't cross blocks.
    fn slot(&self, index: usize) -> NonNull<u8> {
        let offset = index / SLOTS_A_BLOCK * BLOCK + index % SLOTS_A_BLOCK * SLOT;
        // SAFETY: `index` is below SLOTS, so the offset is within the mapping.
        unsafe { self.memory.add(offset) }
    }

    /// The word by which the kernel and this program hand a slot over to each other.
    fn status(&self, index: usize) -> &AtomicU32 {
        // SAFETY: a slot begins with a `tpacket2_hdr`, whose first member is the aligned `u32` status; both sides only
        // touch it atomically.
        unsafe { self.slot(index).cast::<AtomicU32>().as_ref() }
    }

    /// Gives the slots of the previous batch back to the kernel.
    fn release(&mut self) {
        self.received.clear();
        while self.held != self.next {
            self.status(self.held).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.held = (self.held + 1) % SLOTS;
        }
    }

    /// Reads the frame in a slot that is ours. `None`: unusable.
    fn take(&mut self, index: usize) -> Option<Received> {
        let slot = self.slot(index);
        // SAFETY: the slot is ours, begins with a `tpacket2_hdr`, and nothing else refers to it.
        let header: libc::tpacket2_hdr = unsafe { slot.cast().read() };
        let (mac, length) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        let in_front = vnet::HEADER_LENGTH.max(TAG_LENGTH);
        if header.tp_len != header.tp_snaplen || mac < in_front || mac + length > SLOT {
            return None;
        }
        // SAFETY: within the slot, as was just tested; the slot is ours until `release`, and no other reference into
        // it is alive as this function has the port for itself.
        let bytes = unsafe { std::slice::from_raw_parts_mut(slot.add(mac - in_front).as_ptr(), in_front + length) };
        let (front, frame) = bytes.split_at_mut(in_front);
        let mut vnet_header = vnet::Header::default();
        vnet_header.copy_from_slice(&front[in_front - vnet::HEADER_LENGTH..]);
        let offload = vnet::decode(&vnet_header, frame, self.link).ok()?;
        let tag: Option<Tag> = tag(header.tp_status, header.tp_vlan_tpid, header.tp_vlan_tci);
        let (start, length) = match tag.filter(|_| self.link == LinkType::Ethernet && length >= 12) {
            // The virtio-net header has been read; the tag may overwrite it.
            Some(tag) => {
                (mac - TAG_LENGTH + put_tag_back(&mut bytes[in_front - TAG_LENGTH..], tag), length + TAG_LENGTH)
            }
            None => (mac, length),
        };
        Some(Received { slot: index, start, length, offload })
    }
}

impl FramePort for Ring {
    fn link(&self) -> LinkType {
        self.link
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self) -> io::Result<usize> {
        self.release();
        while self.received.len() < BATCH && self.status(self.next).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
        {
            match self.take(self.next) {
                Some(received) => {
                    self.received.push(received);
                    self.counters.frames_in += 1;
                    self.counters.bytes_in += received.length as u64;
                }
                None => self.counters.unusable += 1,
            }
            self.next = (self.next + 1) % SLOTS;
            if (self.next + 1) % SLOTS == self.held {
                break;
            }
        }
        Ok(self.received.len())
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        let Received { slot, start, length, offload } = self.received[index];
        // SAFETY: `take` tested the range; the slot stays ours, and unchanged, until `release`, which needs `&mut self`.
        let bytes = unsafe { std::slice::from_raw_parts(self.slot(slot).add(start).as_ptr(), length) };
        Frame { bytes, offload }
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
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this length, and no frame is borrowed any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), BLOCK * BLOCKS) };
    }
}
