//! The memory of frames: buffers that a function owns while it works on them, and the pool they come from.
//!
//! A platform receives into buffers of a pool, hands them to a function, and gets them back in an
//! [`crate::Outbox`]. Nothing is copied on the way, and nothing allocated once the pool is warm. In front of each frame
//! there is [`HEADROOM`], so that a header can be put there in place.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};

/// Bytes that are free in front of a frame received into a buffer of a pool.
pub const HEADROOM: usize = 256;
/// Bytes behind the headroom of a small buffer: a frame of an Ethernet MTU of 1,500 and all its tags.
pub const SMALL: usize = 2_048;
/// Bytes behind the headroom of a large buffer: an IP packet of 65,535 bytes, an Ethernet header and two VLAN tags, up to
/// the next cache line.
pub const LARGE: usize = (65_535_usize + 14 + 8).next_multiple_of(64);

/// Most free buffers of a size that a pool keeps.
const KEPT: usize = 1_024;
/// Sizes of stored frames are multiples of this, as allocators round them anyway.
const GRAIN: usize = 16;
/// Most bytes of free memory that a storage keeps.
const KEPT_BYTES: usize = 4 << 20;

/// Memory of a platform's own that it lends for one frame: a piece of AF_XDP's UMEM. It goes back when its buffer is dropped
/// or given back, in any order. While it is lent nobody else writes it, the kernel included.
pub trait Lent: Send {
    /// The whole piece.
    fn bytes(&self) -> &[u8];

    /// The whole piece, to be written.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Goes back where it came from. The box goes with it and is lent again, so that lending allocates nothing.
    fn give_back(self: Box<Self>);
}

/// Who lends memory, for the small buffers of a pool.
pub trait Lender: Send + fmt::Debug {
    /// A piece of at least [`HEADROOM`] and [`SMALL`] bytes, if one is free.
    fn lend(&self) -> Option<Box<dyn Lent>>;
}

/// What is lent, until it is given back.
struct Loan(Option<Box<dyn Lent>>);

impl Loan {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |lent| lent.bytes())
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut().map_or(&mut [], |lent| lent.bytes_mut())
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(lent) = self.0.take() {
            lent.give_back();
        }
    }
}

enum Memory {
    Own(Vec<u8>),
    Lent(Loan),
}

impl Memory {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Own(bytes) => bytes,
            Memory::Lent(lent) => lent.bytes(),
        }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Own(bytes) => bytes,
            Memory::Lent(lent) => lent.bytes_mut(),
        }
    }
}

/// A frame's bytes, with free room in front and behind. It grows where the room does not suffice, by a copy.
pub struct Buffer {
    memory: Memory,
    start: usize,
    end: usize,
}

impl Buffer {
    /// An empty buffer with room for `capacity` bytes and, in front of them, for [`HEADROOM`].
    pub fn with_capacity(capacity: usize) -> Buffer {
        Buffer { memory: Memory::Own(vec![0; HEADROOM + capacity]), start: HEADROOM, end: HEADROOM }
    }

    /// A frame in memory that a platform lends, at `frame` within it; `None` if the memory is smaller.
    pub fn lent(memory: Box<dyn Lent>, frame: Range<usize>) -> Option<Buffer> {
        let memory = Loan(Some(memory));
        let fits = frame.start <= frame.end && frame.end <= memory.bytes().len();
        fits.then(|| Buffer { memory: Memory::Lent(memory), start: frame.start, end: frame.end })
    }

    /// Bytes free in front.
    pub fn headroom(&self) -> usize {
        self.start
    }

    /// Bytes that fit behind the headroom without a copy.
    pub fn capacity(&self) -> usize {
        self.memory.bytes().len() - self.start
    }

    /// Forgets the bytes; the frame begins behind [`HEADROOM`] again.
    pub fn clear(&mut self) {
        self.start = HEADROOM.min(self.memory.bytes().len());
        self.end = self.start;
    }

    /// All memory behind the headroom, to receive into; [`Buffer::set_frame`] says then what of it is the frame.
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[self.start..]
    }

    /// The frame is what lies at `frame`, counted from its present start; cut to the memory there is.
    pub fn set_frame(&mut self, frame: Range<usize>) {
        let most = self.memory.bytes().len();
        self.end = (self.start + frame.end).min(most);
        self.start = (self.start + frame.start).min(self.end);
    }

    /// Takes these bytes in place of its own.
    pub fn assign(&mut self, bytes: &[u8]) {
        self.clear();
        self.extend_from_slice(bytes);
    }

    /// Puts bytes behind the frame.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.make_room(0, bytes.len());
        let end = self.end;
        self.memory.bytes_mut()[end..end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Makes the frame `length` bytes long; new bytes are 0.
    pub fn resize(&mut self, length: usize) {
        if let Some(more) = length.checked_sub(self.len()) {
            self.make_room(0, more);
            let end = self.end;
            self.memory.bytes_mut()[end..end + more].fill(0);
        }
        self.end = self.start + length;
    }

    /// Makes the frame at most `length` bytes long; what is cut off stays in the memory, see [`Buffer::extend_over`].
    pub fn truncate(&mut self, length: usize) {
        self.end = self.end.min(self.start + length);
    }

    /// Takes up again so many bytes behind the frame that [`Buffer::truncate`] has cut off.
    pub fn extend_over(&mut self, length: usize) {
        self.end = (self.end + length).min(self.memory.bytes().len());
    }

    /// Puts these bytes in front of the frame.
    pub fn prepend(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len(), 0);
        self.start -= bytes.len();
        let start = self.start;
        self.memory.bytes_mut()[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// Takes bytes off the frame's front; all of them if there are fewer.
    pub fn remove_front(&mut self, length: usize) {
        self.start = (self.start + length).min(self.end);
    }

    /// Takes a range out of the frame. What lies in front of it moves, as headers are shorter than payloads.
    ///
    /// # Panics
    /// The range does not lie within the frame.
    pub fn remove(&mut self, range: Range<usize>) {
        self.copy_within(..range.start, range.end - range.start);
        self.start += range.end - range.start;
    }

    /// Makes room in front of and behind the frame.
    fn make_room(&mut self, front: usize, behind: usize) {
        if self.start >= front && self.memory.bytes().len() - self.end >= behind {
            return;
        }
        let start = HEADROOM.max(front);
        let length = self.len();
        let mut bytes = vec![0; start + (length + behind).next_power_of_two()];
        bytes[start..start + length].copy_from_slice(self);
        *self = Buffer { memory: Memory::Own(bytes), start, end: start + length };
    }
}

/// Empty, without memory.
impl Default for Buffer {
    fn default() -> Buffer {
        Buffer { memory: Memory::Own(Vec::new()), start: 0, end: 0 }
    }
}

/// A copy in memory of its own, of just that size.
impl Clone for Buffer {
    fn clone(&self) -> Buffer {
        Buffer::from(self.to_vec())
    }

    fn clone_from(&mut self, source: &Buffer) {
        self.assign(source);
    }
}

/// By the frame's bytes.
impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        **self == **other
    }
}

impl Eq for Buffer {}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Buffer {
        let end = bytes.len();
        Buffer { memory: Memory::Own(bytes), start: 0, end }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory.bytes()[self.start..self.end]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[self.start..self.end]
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

/// Free buffers of two sizes. It makes new ones where it has none, so that nothing is ever refused for want of one.
#[derive(Default, Debug)]
pub struct Pool {
    small: Vec<Buffer>,
    large: Vec<Buffer>,
    lender: Option<Box<dyn Lender>>,
}

impl Pool {
    /// Takes small buffers from this lender from now on, as long as it has any: frames that are made then lie where a port
    /// can send them from.
    pub fn borrow_from(&mut self, lender: Box<dyn Lender>) {
        self.lender = Some(lender);
    }

    /// An empty buffer with room for so many bytes, and for a header in front of them.
    pub fn take(&mut self, capacity: usize) -> Buffer {
        if capacity <= SMALL
            && let Some(lent) = self.lender.as_ref().and_then(|lender| lender.lend())
            && let Some(buffer) = Buffer::lent(lent, HEADROOM..HEADROOM)
            && buffer.capacity() >= capacity
        {
            return buffer;
        }
        let (free, size) = if capacity <= SMALL { (&mut self.small, SMALL) } else { (&mut self.large, LARGE) };
        free.pop()
            .filter(|buffer| buffer.capacity() >= capacity)
            .unwrap_or_else(|| Buffer::with_capacity(size.max(capacity)))
    }

    /// Has at least `count` free buffers of each size, so that not even the first so many that are taken are made then, and
    /// room for all free ones that it keeps.
    pub fn reserve(&mut self, count: usize) {
        for (free, size) in [(&mut self.small, SMALL), (&mut self.large, LARGE)] {
            free.reserve_exact(KEPT.saturating_sub(free.len()));
            while free.len() < count.min(KEPT) {
                free.push(Buffer::with_capacity(size));
            }
        }
    }

    /// Takes a buffer back. Memory that a platform lent goes back to it.
    pub fn give_back(&mut self, mut buffer: Buffer) {
        if matches!(buffer.memory, Memory::Lent(_)) {
            return;
        }
        buffer.clear();
        let free = match buffer.capacity() {
            LARGE.. => &mut self.large,
            SMALL.. => &mut self.small,
            _ => return,
        };
        if free.len() < KEPT {
            free.push(buffer);
        }
    }
}

/// Free memory of frames that are stored for long, in buffers that are no larger than what they hold. Memory that a stored
/// frame leaves is there for the next of its size.
#[derive(Default, Debug)]
pub struct Storage {
    /// By size, in units of [`GRAIN`].
    free: Vec<Vec<Buffer>>,
    bytes: usize,
}

impl Storage {
    /// An empty buffer for just so many bytes, without headroom.
    pub fn take(&mut self, length: usize) -> Buffer {
        let size = length.div_ceil(GRAIN);
        let kept = self.free.get_mut(size).and_then(Vec::pop);
        self.bytes -= kept.as_ref().map_or(0, Buffer::capacity);
        kept.unwrap_or_else(|| Buffer { memory: Memory::Own(vec![0; size * GRAIN]), start: 0, end: 0 })
    }

    /// Takes a buffer back. Longer ones than [`SMALL`] are not kept.
    pub fn give_back(&mut self, buffer: Buffer) {
        let buffer = Buffer { start: 0, end: 0, ..buffer };
        let length = buffer.capacity();
        let fits = length <= SMALL && length.is_multiple_of(GRAIN) && self.bytes + length <= KEPT_BYTES;
        if fits && matches!(buffer.memory, Memory::Own(_)) {
            self.free.resize_with(SMALL / GRAIN + 1, Vec::new);
            self.free[length / GRAIN].push(buffer);
            self.bytes += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn headers_come_and_go_in_place() {
        let mut buffer = Buffer::with_capacity(64);
        buffer.extend_from_slice(b"payload");
        let place = buffer.as_ptr();
        buffer.prepend(b"header ");
        assert_eq!((&buffer[..], buffer.headroom()), (&b"header payload"[..], HEADROOM - 7));
        buffer.remove(2..5);
        assert_eq!(&buffer[..], b"her payload");
        buffer.remove_front(4);
        assert_eq!((&buffer[..], buffer.as_ptr()), (&b"payload"[..], place));
        buffer.resize(9);
        assert_eq!(&buffer[..], b"payload\0\0");
        buffer.truncate(3);
        buffer.extend_over(4);
        assert_eq!(&buffer[..], b"payload");
    }

    #[test]
    fn a_buffer_grows_where_its_room_does_not_suffice() {
        let mut buffer = Buffer::from(b"x".to_vec());
        buffer.prepend(&[1; 300]);
        buffer.extend_from_slice(&[2; 5_000]);
        assert_eq!((buffer.len(), buffer[299], buffer[300], buffer[301]), (5_301, 1, b'x', 2));
        let copy = buffer.clone();
        assert_eq!((&copy[..], copy.capacity()), (&buffer[..], 5_301));
    }

    #[test]
    fn old_bytes_are_not_seen_again() {
        let mut buffer = Buffer::with_capacity(8);
        buffer.extend_from_slice(&[9; 8]);
        buffer.resize(2);
        buffer.resize(4);
        assert_eq!(buffer[..], [9, 9, 0, 0]);
    }

    #[test]
    fn a_warm_pool_makes_nothing() {
        let mut pool = Pool::default();
        let (small, large) = (pool.take(60), pool.take(9_000));
        let places = [small.as_ptr(), large.as_ptr()];
        assert!(small.capacity() == SMALL && large.capacity() == LARGE);
        pool.give_back(small);
        pool.give_back(large);
        let again = [pool.take(SMALL), pool.take(LARGE)];
        assert_eq!(again.each_ref().map(|buffer| buffer.as_ptr()), places);
        assert!(again.iter().all(|buffer| buffer.is_empty() && buffer.headroom() == HEADROOM));
        // What is no buffer of a pool does not come into one.
        pool.give_back(Buffer::from(vec![0; 10]));
        assert_eq!(pool.take(10).capacity(), SMALL);
    }

    #[test]
    fn a_reserved_pool_has_buffers_and_room_for_more() {
        let mut pool = Pool::default();
        pool.reserve(2);
        assert_eq!([&pool.small, &pool.large].map(Vec::len), [2, 2]);
        let place = pool.small.as_ptr();
        (0..KEPT + 1).for_each(|_| pool.give_back(Buffer::with_capacity(SMALL)));
        assert_eq!((pool.small.as_ptr(), pool.small.len()), (place, KEPT));
    }

    #[test]
    fn stored_frames_use_the_memory_of_those_before() {
        let mut storage = Storage::default();
        let mut buffer = storage.take(74);
        assert_eq!((buffer.capacity(), buffer.headroom()), (80, 0));
        buffer.extend_from_slice(&[7; 74]);
        let place = buffer.as_ptr();
        storage.give_back(buffer);
        let again = storage.take(65);
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
        assert_ne!(storage.take(74).as_ptr(), place);
        storage.give_back(Buffer::from(vec![0; 75]));
        storage.give_back(Buffer::with_capacity(SMALL));
        assert_eq!(storage.bytes, 0);
        for _ in 0..2 * KEPT_BYTES / SMALL {
            storage.give_back(Buffer::from(vec![0; SMALL]));
        }
        assert_eq!(storage.bytes, KEPT_BYTES);
    }

    struct Slot(Vec<u8>, Arc<AtomicUsize>);

    impl Lent for Slot {
        fn bytes(&self) -> &[u8] {
            &self.0
        }

        fn bytes_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }

        fn give_back(self: Box<Self>) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn lent_memory_goes_back() {
        let returned = Arc::new(AtomicUsize::new(0));
        let lend = || Box::new(Slot((0..16).collect(), returned.clone()));
        assert!(Buffer::lent(lend(), 10..17).is_none());
        let mut buffer = Buffer::lent(lend(), 4..12).unwrap();
        assert_eq!((buffer[0], buffer.len(), buffer.headroom()), (4, 8, 4));
        buffer.prepend(&[7; 4]);
        assert_eq!(returned.load(Ordering::Relaxed), 1);
        // One byte more does not fit: the frame moves out of the lent memory.
        buffer.prepend(&[8]);
        assert_eq!((buffer[..6].to_vec(), returned.load(Ordering::Relaxed)), (vec![8, 7, 7, 7, 7, 4], 2));
        let mut pool = Pool::default();
        pool.give_back(Buffer::lent(lend(), 0..16).unwrap());
        assert_eq!(returned.load(Ordering::Relaxed), 3);
    }

    #[derive(Debug)]
    struct Slots(Arc<AtomicUsize>);

    impl Lender for Slots {
        fn lend(&self) -> Option<Box<dyn Lent>> {
            let left = self.0.load(Ordering::Relaxed).checked_sub(1)?;
            self.0.store(left, Ordering::Relaxed);
            Some(Box::new(Slot(vec![0; HEADROOM + SMALL], self.0.clone())))
        }
    }

    #[test]
    fn a_pool_borrows_small_buffers_as_long_as_there_are_any() {
        let free = Arc::new(AtomicUsize::new(1));
        let mut pool = Pool::default();
        pool.borrow_from(Box::new(Slots(free.clone())));
        let (borrowed, own, large) = (pool.take(60), pool.take(60), pool.take(9_000));
        let is_lent = |buffer: &Buffer| matches!(buffer.memory, Memory::Lent(_));
        assert_eq!([&borrowed, &own, &large].map(is_lent), [true, false, false]);
        assert_eq!((borrowed.headroom(), borrowed.len(), borrowed.capacity()), (HEADROOM, 0, SMALL));
        pool.give_back(borrowed);
        assert_eq!(free.load(Ordering::Relaxed), 1);
    }
}
