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
    pub send_errors: BTreeMap<&'static str, u64>,
}
