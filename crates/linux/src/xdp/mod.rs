//! A port on an existing interface by AF_XDP sockets (`Documentation/networking/af_xdp.rst`), one for each receive queue. A small
//! program takes the frames before the network stack sees them. They are received into memory that is shared with the
//! kernel, stay there while a function works on them, and are sent from there, by whichever port. That memory has a file, by which
//! another process can have it, too.

#[cfg(test)]
mod fake_kernel;
mod program;
mod queue;
mod shared;
mod socket;
mod umem;
mod unfinished;

use self::program::{Mode, Program};
use self::queue::{RING, Received};
use self::shared::PIECE;
use self::socket::{Place, Socket};
use self::umem::{Umem, UmemLender};
use crate::error::LinuxError;
use crate::ethtool;
use crate::interface::Interface;
use crate::packet_socket::join;
use crate::port::{BATCH, FramePort, PortCounters, SendError};
use crate::system::{check, socket};
use crate::transmit::{Route, send_all};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use weftwire_core::buffer::{HEADROOM, Lender, Pool};
use weftwire_core::port::Checksum;
use weftwire_core::{Arrival, Arrivals, Buffer, Frame, LinkType, Offload, Port};

/// Bytes of an Ethernet header and two VLAN tags.
const LINK_BYTES: usize = 14 + 8;
/// Longest packet that fits: the kernel leaves as much room in front of a frame as [`HEADROOM`].
const MOST_MTU: usize = PIECE - HEADROOM - LINK_BYTES;

/// How often the interface may come back once privileges are gone: sockets for that are made while there are some.
const SPARES: usize = 4;

/// Chunks that a queue has to receive into before the run begins: then all ports are open, and each queue gets its share.
const FIRST: usize = 64;

/// A port by AF_XDP.
pub(crate) struct XdpPort {
    program: Program,
    mode: Mode,
    /// One for each queue; the first one sends.
    sockets: Vec<Socket>,
    /// Sockets for when the interface comes back.
    spares: Vec<Vec<Socket>>,
    /// The queue that is looked at first next time.
    first: usize,
    /// Readable when frames wait at any socket, or could be sent that were not.
    ready: OwnedFd,
    /// Whether frames wait to be sent.
    unsent: bool,
    /// Keeps the interface in promiscuous mode.
    promiscuous: OwnedFd,
    umem: &'static Umem,
    mtu: usize,
    counters: PortCounters,
    /// What was received just now; kept for its memory.
    received: Vec<Received>,
}

impl XdpPort {
    /// Opens a port on the interface `name`.
    pub(crate) fn open(name: &str) -> Result<XdpPort, LinuxError> {
        let interface = Interface::find(name)?;
        if !interface.up {
            return Err(LinuxError::Down(name.to_owned()));
        }
        if interface.link != LinkType::Ethernet {
            return Err(LinuxError::NotEthernet(name.to_owned()));
        }
        if interface.mtu > MOST_MTU {
            return Err(LinuxError::MtuTooLong { name: name.to_owned(), mtu: interface.mtu, most: MOST_MTU });
        }
        let failed = |error| LinuxError::system(format!("set up AF_XDP on `{name}`"), error);
        let privileged =
            |error| LinuxError::privileged(format!("open an AF_XDP socket on `{name}`"), "CAP_NET_RAW", error);
        let promiscuous = socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map_err(privileged)?;
        join(&promiscuous, &interface).map_err(failed)?;
        let queues = ethtool::receive_queues(name).unwrap_or(1).max(1);
        let umem = Umem::get().map_err(failed)?;
        let sockets = make_sockets(umem, queues as usize).map_err(|error| match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT) => LinuxError::Missing {
                feature: "AF_XDP sockets",
                since: "4.18, if it was built with them (CONFIG_XDP_SOCKETS)",
                instead: "Use the option `socket` or `ring`",
            },
            Some(libc::ENOBUFS | libc::ENOMEM) => LinuxError::LockedMemory,
            _ => privileged(error),
        })?;
        let (program, mode) = Program::attach(interface.index, name, queues)?;
        // SAFETY: no pointers; the new descriptor belongs to nobody else.
        let ready = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC)).map_err(failed)?) };
        let mut port = XdpPort {
            program,
            mode,
            sockets,
            spares: (0..SPARES).map_while(|_| make_sockets(umem, queues as usize).ok()).collect(),
            first: 0,
            ready,
            unsent: false,
            promiscuous,
            umem,
            mtu: interface.mtu,
            counters: PortCounters::default(),
            received: Vec::with_capacity(BATCH),
        };
        port.bind(interface.index).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => LinuxError::OtherXdpProgram(name.to_owned()),
            _ => LinuxError::system(format!("bind an AF_XDP socket to `{name}`"), error),
        })?;
        Ok(port)
    }

    /// Binds the sockets to the queues of the interface of this number.
    fn bind(&mut self, index: u32) -> io::Result<()> {
        for (queue, socket) in (0..).zip(&mut self.sockets) {
            socket.bind(Place { index, queue, copy: self.mode == Mode::Generic })?;
            socket.queue().refill(&mut self.umem.state(), FIRST);
            self.program.set_socket(queue, socket.as_fd())?;
            watch(&self.ready, libc::EPOLL_CTL_ADD, socket, false)?;
        }
        Ok(())
    }

    /// Wakes the run also when frames can be sent, as long as there are such.
    fn look_for_unsent(&mut self) {
        let Some(sender) = self.sockets.first() else { return };
        let unsent = sender.has_unsent();
        if unsent != self.unsent && watch(&self.ready, libc::EPOLL_CTL_MOD, sender, unsent).is_ok() {
            self.unsent = unsent;
        }
    }

    /// What was counted so far, by this program and at the sockets there are by the kernel.
    fn count(&self) -> PortCounters {
        let mut counters = self.counters.clone();
        for counted in self.sockets.iter().filter_map(|socket| socket.statistics().ok()) {
            // What finds no chunk is counted twice, there and among the dropped ones.
            let no_chunk = counted.rx_fill_ring_empty_descs.min(counted.rx_dropped);
            let reasons = [
                ("no free chunk", no_chunk),
                ("longer than a chunk", counted.rx_dropped - no_chunk),
                ("receive ring full", counted.rx_ring_full),
                ("chunk refused", counted.rx_invalid_descs),
            ];
            for (reason, count) in reasons.into_iter().filter(|(_, count)| *count > 0) {
                counters.kernel_drops += count;
                *counters.kernel_drop_reasons.entry(reason).or_default() += count;
            }
            counters.send_errors.count(SendError::ChunkRefused, counted.tx_invalid_descs);
        }
        counters
    }
}

/// Has `ready` be readable when frames wait at the socket, and when it can send if `unsent` frames wait there.
fn watch(ready: &OwnedFd, operation: i32, socket: &Socket, unsent: bool) -> io::Result<()> {
    let events = libc::EPOLLIN | if unsent { libc::EPOLLOUT } else { 0 };
    let mut event = libc::epoll_event { events: events as u32, u64: 0 };
    // SAFETY: the kernel reads one event.
    check(unsafe { libc::epoll_ctl(ready.as_raw_fd(), operation, socket.as_fd().as_raw_fd(), &raw mut event) })
        .map(drop)
}

/// Sockets that have no place yet.
fn make_sockets(umem: &'static Umem, count: usize) -> io::Result<Vec<Socket>> {
    (0..count).map(|_| Socket::new(umem)).collect()
}

impl FramePort for XdpPort {
    fn link(&self) -> LinkType {
        LinkType::Ethernet
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    fn receive(&mut self, port: Port, _: &mut Pool, arrivals: &mut Arrivals) -> io::Result<()> {
        let mut state = self.umem.state();
        let count = self.sockets.len();
        for at in 0..count {
            let queue = self.sockets[(self.first + at) % count].queue();
            queue.complete(&mut state);
            let room = BATCH - self.received.len();
            self.counters.unusable += queue.receive(&mut state, room, &mut self.received);
            queue.refill(&mut state, RING as usize);
        }
        drop(state);
        self.first = (self.first + 1) % count;
        for socket in &mut self.sockets {
            socket.wake_receiver();
            // That the interface is down or gone is told elsewhere.
            let _ = socket.wake_sender();
        }
        self.look_for_unsent();
        for (chunk, frame) in self.received.drain(..) {
            let fits = frame.len() <= self.mtu + LINK_BYTES;
            let Some(mut buffer) = Buffer::lent(chunk, frame).filter(|_| fits) else {
                self.counters.unusable += 1;
                continue;
            };
            let checksum = match unfinished::complete_received(&mut buffer) {
                true => Checksum::Verified,
                false => Checksum::Unverified,
            };
            self.counters.frames_in += 1;
            self.counters.bytes_in += buffer.len() as u64;
            arrivals.push_back(Arrival { port, buffer, offload: Offload { segmentation: None, checksum } });
        }
        Ok(())
    }

    fn send(&mut self, frames: &[Frame<'_>]) {
        let Some(socket) = self.sockets.first_mut() else { return };
        let route = Route { link: LinkType::Ethernet, mtu: self.mtu.min(MOST_MTU) };
        send_all(frames, route, &mut self.counters, &mut |frames| socket.send(frames));
        let lost = socket.take_lost();
        if lost > 0 {
            self.counters.frames_out = self.counters.frames_out.saturating_sub(lost);
            self.counters.send_errors.count(SendError::Dropped, lost);
        }
        self.look_for_unsent();
    }

    fn counters(&mut self) -> PortCounters {
        self.count()
    }

    fn take_up(&mut self, interface: &Interface) -> io::Result<()> {
        join(&self.promiscuous, interface)?;
        self.mode = self.program.move_to(interface.index)?;
        let made = make_sockets(self.umem, self.sockets.len());
        let sockets = made.or_else(|error| self.spares.pop().ok_or(error))?;
        self.counters = self.count();
        (self.sockets, self.unsent) = (sockets, false);
        self.bind(interface.index)
    }

    fn set_mtu(&mut self, mtu: usize) {
        self.mtu = mtu;
    }

    fn lender(&self) -> Option<Box<dyn Lender>> {
        Some(Box::new(UmemLender(self.umem)))
    }

    fn memory(&self) -> Option<BorrowedFd<'_>> {
        Some(self.umem.file())
    }

    fn how(&self) -> Option<String> {
        let mode = match self.mode {
            Mode::Native => "native",
            Mode::Generic => "generic",
        };
        let copy = match self.sockets.iter().all(Socket::is_zero_copy) {
            true => "zero copy",
            false => "copy",
        };
        let queues = match self.sockets.len() {
            1 => "1 queue".to_owned(),
            count => format!("{count} queues"),
        };
        Some(format!("AF_XDP, {mode}, {copy}, {queues}"))
    }
}
