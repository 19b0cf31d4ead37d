//! Ports of the Linux platform: what the run loop asks of them.

use crate::interface::Interface;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use weftwire_core::buffer::{Lender, Pool};
use weftwire_core::{Arrivals, Frame, LinkType, Port};

/// Most frames one [`FramePort::receive`] takes.
pub const BATCH: usize = 32;

/// Longest frame: an IP packet of 65,535 bytes (also as a super-frame), an Ethernet header and two VLAN tags.
pub const FRAME_CAPACITY: usize = 65_535 + 14 + 8;

/// A port that moves frames in batches, without blocking and without allocating.
pub trait FramePort {
    /// What its frames begin with.
    fn link(&self) -> LinkType;

    /// The descriptor that is readable when frames wait.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Takes up to [`BATCH`] waiting frames, into buffers of the pool, as arrivals on `port`.
    ///
    /// # Errors
    /// The port can't be used any more.
    fn receive(&mut self, port: Port, pool: &mut Pool, arrivals: &mut Arrivals) -> io::Result<()>;

    /// Sends frames in order. What can't be sent is counted by reason.
    fn send(&mut self, frames: &[Frame<'_>]);

    /// What happened on this port so far.
    fn counters(&mut self) -> PortCounters;

    /// Goes on with this interface, as the one before is gone.
    ///
    /// # Errors
    /// The kernel refuses.
    fn take_up(&mut self, _interface: &Interface) -> io::Result<()> {
        Ok(())
    }

    /// The interface takes packets of at most so many bytes, without the Ethernet header. Longer frames are not sent,
    /// and counted.
    fn set_mtu(&mut self, _mtu: usize) {}

    /// Whose memory frames that are made should lie in, so that this port sends them from there.
    fn lender(&self) -> Option<Box<dyn Lender>> {
        None
    }

    /// The file of the memory that its frames lie in, if it shares such memory with the kernel. A process that gets this descriptor maps
    /// the same memory, and frames are where they were: the file has a fixed size, and lasts as long as anybody has or maps it. It must not
    /// write what this process or the kernel works on.
    fn memory(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// What another process needs to go on with this port in the place of this one. `None`: there is more to it than a descriptor.
    fn hand_over(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// How it reaches its interface, for people, where that depends on the machine.
    fn how(&self) -> Option<String> {
        None
    }
}

/// What happened on a port.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortCounters {
    /// Frames received.
    pub frames_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Frames sent.
    pub frames_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Frames that the kernel dropped because this program did not take them in time.
    pub kernel_drops: u64,
    /// Of them, those whose reason the kernel tells.
    pub kernel_drop_reasons: BTreeMap<&'static str, u64>,
    /// Received frames that could not be handed on: too long, or with an offload that has no name here.
    pub unusable: u64,
    /// Super-frames that the kernel refused and that were cut here.
    pub segmented: u64,
    /// Frames that could not be sent, by the kernel's reason.
    pub send_errors: SendErrors,
}

/// Why a frame could not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The kernel refused the memory that it lies in.
    ChunkRefused,
    /// The device dropped it.
    Dropped,
    /// The kernel's queue stayed full.
    QueueFull,
    /// The interface is down.
    Down,
    /// There is no such interface any more.
    Gone,
    /// The device is not up.
    NotUp,
    /// A filter forbids it.
    Forbidden,
    /// It is longer than the MTU.
    TooLong,
    /// The kernel can make nothing of it.
    Malformed,
    /// Anything else.
    Other,
}

impl SendError {
    /// All of them, in their order.
    pub const ALL: [SendError; 10] = [
        SendError::ChunkRefused,
        SendError::Dropped,
        SendError::QueueFull,
        SendError::Down,
        SendError::Gone,
        SendError::NotUp,
        SendError::Forbidden,
        SendError::TooLong,
        SendError::Malformed,
        SendError::Other,
    ];

    /// In words, with the kernel's code by the name that manual pages use.
    pub fn name(self) -> &'static str {
        match self {
            SendError::ChunkRefused => "chunk refused",
            SendError::Dropped => "dropped by the device (EBUSY)",
            SendError::QueueFull => "queue full (ENOBUFS)",
            SendError::Down => "interface down (ENETDOWN)",
            SendError::Gone => "interface gone (ENXIO)",
            SendError::NotUp => "device not up (EIO)",
            SendError::Forbidden => "forbidden by a filter (EPERM)",
            SendError::TooLong => "longer than the MTU (EMSGSIZE)",
            SendError::Malformed => "malformed frame (EINVAL)",
            SendError::Other => "other",
        }
    }
}

/// Counts by [`SendError`]. Each has its place from the start: the first of a kind asks the heap for nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendErrors([u64; SendError::ALL.len()]);

impl SendErrors {
    /// So many more.
    pub fn count(&mut self, error: SendError, frames: u64) {
        self.0[error as usize] += frames;
    }

    /// How many there were.
    pub fn of(&self, error: SendError) -> u64 {
        self.0[error as usize]
    }

    /// Those that there were, in words.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let all = SendError::ALL.into_iter().map(|error| (error.name(), self.of(error)));
        all.filter(|(_, count)| *count > 0)
    }
}
