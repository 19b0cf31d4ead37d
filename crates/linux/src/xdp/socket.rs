//! An AF_XDP socket: the calls that make it, and those that wake the kernel.

use super::queue::{Queue, RING, Rings};
use super::shared::{Consumer, Entry, Mapping, PIECE, Producer};
use super::umem::Umem;
use super::unfinished;
use crate::system::{check, get_option, set_option, socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use weftwire_core::Frame;
use weftwire_core::buffer::{HEADROOM, Lent};
use weftwire_core::port::Checksum;
use weftwire_core::wire::ethernet::ETHERNET_LENGTH;

/// How often, and after which pause, a queue is asked for that another socket had until just now: the kernel takes a while to
/// notice that it is free.
const BUSY: (u32, Duration) = (100, Duration::from_millis(10));

/// Bytes of memory for frames that a device has and that are not sent yet: a few thousand of them.
const SEND_BUFFER: libc::c_int = 32 << 20;

/// What binds a socket to a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The interface's number.
    pub(super) index: u32,
    pub(super) queue: u32,
    /// Without zero copy, even if the driver can do it.
    pub(super) copy: bool,
}

/// A socket for one queue of an interface.
#[derive(Debug)]
pub(super) struct Socket {
    // In this order: see `Queue`.
    descriptor: OwnedFd,
    queue: Queue,
    umem: &'static Umem,
    zero_copy: bool,
    /// Frames that were passed on and that the device did not take.
    lost: u64,
}

impl Socket {
    /// Makes a socket. It has its place by [`Socket::bind`].
    pub(super) fn new(umem: &'static Umem) -> io::Result<Socket> {
        let descriptor = socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        let fd = descriptor.as_fd();
        // The forced size needs CAP_NET_ADMIN; without it the system's limit has to do.
        set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER)
            .or_else(|_| set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER))?;
        let registration = libc::xdp_umem_reg {
            addr: umem.area().start().as_ptr() as u64,
            len: umem.area().length() as u64,
            chunk_size: PIECE as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)?;
        for ring in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING] {
            set_option(fd, libc::SOL_XDP, ring, &RING)?;
        }
        // SAFETY: the structure is plain integers.
        let places: libc::xdp_mmap_offsets = unsafe { get_option(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)? };
        let rings = Rings {
            fill: Producer::new(mapping::<u64>(fd, places.fr, libc::XDP_UMEM_PGOFF_FILL_RING as _)?, places.fr, RING)?,
            receive: Consumer::new(
                mapping::<libc::xdp_desc>(fd, places.rx, libc::XDP_PGOFF_RX_RING)?,
                places.rx,
                RING,
            )?,
            send: Producer::new(mapping::<libc::xdp_desc>(fd, places.tx, libc::XDP_PGOFF_TX_RING)?, places.tx, RING)?,
            completion: Consumer::new(
                mapping::<u64>(fd, places.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as _)?,
                places.cr,
                RING,
            )?,
        };
        Ok(Socket { descriptor, queue: Queue::new(umem, rings), umem, zero_copy: false, lost: 0 })
    }

    /// Begins to receive and send.
    pub(super) fn bind(&mut self, place: Place) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP | if place.copy { libc::XDP_COPY } else { 0 },
            sxdp_ifindex: place.index,
            sxdp_queue_id: place.queue,
            sxdp_shared_umem_fd: 0,
        };
        let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        let bind = || {
            // SAFETY: the kernel reads `length` bytes of the address.
            check(unsafe { libc::bind(self.descriptor.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) })
        };
        let mut attempts = 0;
        while let Err(error) = bind() {
            if error.raw_os_error() != Some(libc::EBUSY) || attempts == BUSY.0 {
                return Err(error);
            }
            attempts += 1;
            std::thread::sleep(BUSY.1);
        }
        self.queue.begin();
        // SAFETY: the structure is plain integers.
        let options: libc::xdp_options = unsafe { get_option(self.as_fd(), libc::SOL_XDP, libc::XDP_OPTIONS)? };
        self.zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
        Ok(())
    }

    /// Whether the device reads and writes the memory itself.
    pub(super) fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    pub(super) fn queue(&mut self) -> &mut Queue {
        &mut self.queue
    }

    /// What the kernel has counted since the socket was made.
    pub(super) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        // SAFETY: the structure is plain integers.
        unsafe { get_option(self.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS) }
    }

    /// Frames that were passed on and that the device did not take, since the last call.
    pub(super) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Lets a device that sleeps look at the chunks that it may receive into.
    pub(super) fn wake_receiver(&self) {
        if self.queue.rings.fill.needs_wakeup() {
            // SAFETY: no pointers but null ones: nothing is read this way. It says only that the interface is down or gone.
            unsafe {
                libc::recvfrom(
                    self.descriptor.as_raw_fd(),
                    std::ptr::null_mut(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                )
            };
        }
    }

    /// Passes on frames from the front; says how many, or why the first can't go. Those that lie in the memory of the ports
    /// are sent from there.
    pub(super) fn send(&mut self, frames: &[Frame<'_>]) -> io::Result<usize> {
        let umem = self.umem;
        let mut state = umem.state();
        self.queue.complete(&mut state);
        let was_idle = self.queue.rings.send.waiting() == 0;
        let mut count = 0;
        for frame in frames {
            if frame.offload.segmentation.is_some() || frame.bytes.len() < ETHERNET_LENGTH {
                if count == 0 {
                    return Err(io::Error::from_raw_os_error(libc::EINVAL));
                }
                break;
            }
            let address = umem.address_of(frame.bytes).filter(|_| frame.offload.checksum != Checksum::Partial);
            let sent = match address {
                Some(address) => self.queue.send(&mut state, address, frame.bytes.len()),
                None => {
                    let Some(mut copy) = state.lend() else { break };
                    let place = &mut copy.bytes_mut()[HEADROOM..HEADROOM + frame.bytes.len()];
                    place.copy_from_slice(frame.bytes);
                    if frame.offload.checksum == Checksum::Partial {
                        unfinished::complete_sent(place);
                    }
                    let address = umem.address_of(&copy.bytes()[HEADROOM..]).unwrap_or_default();
                    let sent = self.queue.send(&mut state, address, frame.bytes.len());
                    state.give_back(copy);
                    sent
                }
            };
            if !sent {
                break;
            }
            count += 1;
        }
        self.queue.rings.send.publish();
        drop(state);
        match self.wake_sender() {
            // The kernel refuses before it looks at the ring. What it had seen of the ring before must stay there.
            Err(error) if was_idle && !self.zero_copy => {
                self.queue.withdraw(&mut umem.state());
                Err(error)
            }
            _ if count == 0 => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
            _ => Ok(count),
        }
    }

    /// Whether frames wait that the kernel has not taken, as the device has enough for now.
    pub(super) fn has_unsent(&self) -> bool {
        self.queue.rings.send.waiting() > 0
    }

    /// Lets the kernel send what waits, as long as it makes way.
    ///
    /// # Errors
    /// It refuses to send anything: the interface is down or gone.
    pub(super) fn wake_sender(&mut self) -> io::Result<()> {
        loop {
            let waiting = self.queue.rings.send.waiting();
            if waiting == 0 || !self.queue.rings.send.needs_wakeup() {
                return Ok(());
            }
            // SAFETY: no pointers but null ones: what is sent is in the ring.
            let result = unsafe {
                libc::sendto(self.descriptor.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
            };
            match check(result as i32).map_err(|error| (error.raw_os_error(), error)) {
                Ok(_) => {}
                // The device has dropped one.
                Err((Some(libc::EBUSY), _)) => self.lost += 1,
                Err((Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR), _)) => {}
                Err((_, error)) => return Err(error),
            }
            if self.queue.rings.send.waiting() == waiting {
                return Ok(());
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The memory of one ring.
fn mapping<T: Entry>(
    socket: BorrowedFd<'_>,
    places: libc::xdp_ring_offset,
    offset: libc::off_t,
) -> io::Result<Mapping> {
    Mapping::of(socket, places.desc as usize + RING as usize * size_of::<T>(), offset)
}
