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
use weftwire_core::buffer::Pool;
use weftwire_core::{Arrival, Arrivals, Frame, LinkType, Port};

/// Bytes of one slot: header, virtio-net header, room for a tag, and the longest frame.
const SLOT: usize = (FRAME_CAPACITY + 256).next_multiple_of(libc::TPACKET_ALIGNMENT);
/// Bytes of one block of slots, a multiple of the page size.
const BLOCK: usize = 1 << 20;
const SLOTS_A_BLOCK: usize = BLOCK / SLOT;
const BLOCKS: usize = 32;
const SLOTS: usize = SLOTS_A_BLOCK * BLOCKS;

/// A port with a receive ring.
pub(crate) struct Ring {
    socket: OwnedFd,
    link: LinkType,
    memory: NonNull<u8>,
    /// Next slot to look at.
    next: usize,
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

    /// Copies the frame in a slot that is ours, out of the ring, so that the slot can go back at once. `None`: unusable.
    fn take(&self, index: usize, port: Port, pool: &mut Pool) -> Option<Arrival> {
        let slot = self.slot(index);
        // SAFETY: the slot is ours, begins with a `tpacket2_hdr`, and nothing else refers to it.
        let header: libc::tpacket2_hdr = unsafe { slot.cast().read() };
        let (mac, length) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        if header.tp_len != header.tp_snaplen || mac < vnet::HEADER_LENGTH || mac + length > SLOT {
            return None;
        }
        let front = mac - vnet::HEADER_LENGTH;
        // SAFETY: within the slot, as was just tested; the slot is ours until its status says otherwise, which happens
        // after this function.
        let bytes =
            unsafe { std::slice::from_raw_parts(slot.add(front).as_ptr().cast_const(), vnet::HEADER_LENGTH + length) };
        let (vnet_header, frame) = bytes.split_first_chunk()?;
        let mut buffer = pool.take(frame.len());
        buffer.extend_from_slice(frame);
        let Ok(offload) = vnet::decode(vnet_header, &mut buffer, self.link) else {
            pool.give_back(buffer);
            return None;
        };
        let tag: Option<Tag> = tag(header.tp_status, header.tp_vlan_tpid, header.tp_vlan_tci);
        if let Some(tag) = tag.filter(|_| self.link == LinkType::Ethernet && length >= 12) {
            buffer.prepend(&[0; TAG_LENGTH]);
            put_tag_back(&mut buffer, tag);
        }
        Some(Arrival { port, buffer, offload })
    }
}

impl FramePort for Ring {
    fn link(&self) -> LinkType {
        self.link
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self, port: Port, pool: &mut Pool, arrivals: &mut Arrivals) -> io::Result<()> {
        for _ in 0..BATCH {
            if self.status(self.next).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                break;
            }
            match self.take(self.next, port, pool) {
                Some(arrival) => {
                    self.counters.frames_in += 1;
                    self.counters.bytes_in += arrival.buffer.len() as u64;
                    arrivals.push_back(arrival);
                }
                None => self.counters.unusable += 1,
            }
            self.status(self.next).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % SLOTS;
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
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this length, and no frame is borrowed any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), BLOCK * BLOCKS) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    /// Where frames start in the slots of these tests.
    const MAC: usize = 96;

    /// A ring whose kernel is the test: memory of the same size, and no socket.
    fn ring() -> Ring {
        // SAFETY: fresh memory, at an address of the kernel's choice.
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), BLOCK * BLOCKS, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(memory, libc::MAP_FAILED);
        Ring {
            socket: File::open("/dev/null").expect("it is there").into(),
            link: LinkType::Ethernet,
            memory: NonNull::new(memory.cast()).expect("memory"),
            next: 0,
            mtu: 1500,
            counters: PortCounters::default(),
        }
    }

    /// What the kernel does when a frame comes: `tag` is the VLAN tag that it took out, `missing` the bytes that it left out.
    fn fill(ring: &Ring, index: usize, frame: &[u8], tag: Option<Tag>, missing: u32) {
        let slot = ring.slot(index);
        let valid = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        // SAFETY: header and frame are within the slot, which nothing else refers to.
        unsafe {
            let mut header: libc::tpacket2_hdr = std::mem::zeroed();
            header.tp_snaplen = frame.len() as u32;
            header.tp_len = header.tp_snaplen + missing;
            header.tp_mac = MAC as u16;
            (header.tp_vlan_tpid, header.tp_vlan_tci) = tag.unwrap_or_default();
            header.tp_status = if tag.is_some() { valid } else { 0 };
            slot.cast().write(header);
            slot.add(MAC).copy_from_nonoverlapping(NonNull::from(frame).cast(), frame.len());
        }
        ring.status(index).fetch_or(libc::TP_STATUS_USER, Ordering::Release);
    }

    /// The bytes of the frames that are received now.
    fn receive(ring: &mut Ring) -> Vec<Vec<u8>> {
        let mut arrivals = Arrivals::new();
        ring.receive(Port(1), &mut Pool::default(), &mut arrivals).expect("it reads memory");
        arrivals.iter().map(|arrival| arrival.buffer.to_vec()).collect()
    }

    #[test]
    fn frames_come_in_order_with_their_tags_and_slots_are_given_back() {
        let mut ring = ring();
        assert!(receive(&mut ring).is_empty());
        let frame: Vec<u8> = (0..60).collect();
        fill(&ring, 0, &frame, None, 0);
        fill(&ring, 1, &frame, None, 4);
        fill(&ring, 2, &frame, Some((0x88a8, 0x6005)), 0);
        let tagged: Vec<u8> = [&frame[..12], &[0x88, 0xa8, 0x60, 5], &frame[12..]].concat();
        assert_eq!(receive(&mut ring), [frame, tagged]);
        assert_eq!((ring.counters.frames_in, ring.counters.bytes_in, ring.counters.unusable), (2, 124, 1));
        assert!((0..3).all(|index| ring.status(index).load(Ordering::Acquire) == libc::TP_STATUS_KERNEL));
        assert!(receive(&mut ring).is_empty());
    }

    #[test]
    fn the_ring_goes_round() {
        let mut ring = ring();
        ring.next = SLOTS - 1;
        fill(&ring, SLOTS - 1, &[1; 60], None, 0);
        fill(&ring, 0, &[2; 60], None, 0);
        assert_eq!(receive(&mut ring), [[1; 60], [2; 60]]);
        assert_eq!(ring.next, 1);
    }
}
