//! What an engine has room for, whatever the image (semantics, rules L1 to L4). Software has room for all that memory holds; told
//! to keep another engine's limits, it refuses what that one refuses.

use weftwire_core::DropReason;
use weftwire_core::packet::Packet;

/// Limits of an engine that all its flows share. `None`: as much as memory holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// Longest frame in bytes, link header included.
    pub frame: Option<usize>,
    /// Most bytes of headers in front of a frame's payload.
    pub headers: Option<usize>,
    /// Most packets that all instances together store in their slots.
    pub packets: Option<usize>,
    /// Most settings of timers that are pending in all instances together.
    pub timers: Option<usize>,
}

impl Limits {
    /// Whether a frame of so many bytes may come or go.
    pub(crate) fn frame(&self, bytes: usize) -> Result<(), DropReason> {
        within(bytes, self.frame).then_some(()).ok_or(DropReason::TooLong)
    }

    /// Whether a frame may come that is this packet.
    pub(crate) fn headers(&self, packet: &Packet) -> Result<(), DropReason> {
        within(packet.header_length(), self.headers).then_some(()).ok_or(DropReason::HeaderUnsupported)
    }

    /// Whether one more packet may be stored besides these.
    pub(crate) fn has_buffer(&self, stored: usize) -> bool {
        self.has_buffers(stored, 1)
    }

    /// Whether so many more packets may be stored besides these.
    pub(crate) fn has_buffers(&self, stored: usize, more: usize) -> bool {
        within(stored + more, self.packets)
    }
}

fn within(count: usize, most: Option<usize>) -> bool {
    most.is_none_or(|most| count <= most)
}
