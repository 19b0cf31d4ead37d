//! Memory that the kernel and this program work on at the same time: the four rings of an AF_XDP socket
//! (`Documentation/networking/af_xdp.rst`) and the pieces that frames lie in. All `unsafe` code on such memory is in this file.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a piece: a page, which the kernel takes on every machine, and a whole frame of an MTU of 3,500.
pub(super) const PIECE: usize = 4_096;

/// Memory mapped into this process, until it is dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: plain memory at an address of the whole process. Who may touch what of it, and when, is up to the types below.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory of a file, or of the kernel's, at `offset` of a descriptor. All who map it have the same pages.
    pub(super) fn of(descriptor: BorrowedFd<'_>, length: usize, offset: libc::off_t) -> io::Result<Mapping> {
        Mapping::new(length, libc::MAP_SHARED | libc::MAP_POPULATE, descriptor.as_raw_fd(), offset)
    }

    fn new(length: usize, flags: i32, descriptor: i32, offset: libc::off_t) -> io::Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping, at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, descriptor, offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { start, length }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; whatever points into it keeps it alive.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// What a ring carries.
///
/// # Safety
/// Every pattern of bits is a value.
pub(super) unsafe trait Entry: Copy {}

// SAFETY: an integer.
unsafe impl Entry for u64 {}
// SAFETY: integers without padding.
unsafe impl Entry for libc::xdp_desc {}

/// A ring of the kernel's: entries, and how many of them each side has passed on so far, modulo 2^32.
#[derive(Debug)]
struct Ring<T> {
    memory: Mapping,
    places: libc::xdp_ring_offset,
    /// Entries, less one; a power of two, less one.
    mask: u32,
    /// What this side has passed on, or is about to.
    next: u32,
    entries: PhantomData<T>,
}

impl<T: Entry> Ring<T> {
    /// A ring of `size` entries at the places that the kernel named.
    fn new(memory: Mapping, places: libc::xdp_ring_offset, size: u32) -> io::Result<Ring<T>> {
        let within = |place: u64, length: usize, align: usize| {
            let place = usize::try_from(place).unwrap_or(usize::MAX);
            place.is_multiple_of(align) && place.checked_add(length).is_some_and(|end| end <= memory.length)
        };
        let word = |place| within(place, size_of::<u32>(), align_of::<u32>());
        let entries = within(places.desc, size as usize * size_of::<T>(), align_of::<T>());
        if !size.is_power_of_two()
            || !entries
            || ![places.producer, places.consumer, places.flags].into_iter().all(word)
        {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Ring { memory, places, mask: size - 1, next: 0, entries: PhantomData })
    }

    fn word(&self, place: u64) -> &AtomicU32 {
        // SAFETY: `new` has seen that an aligned word lies there. Both sides only touch it atomically.
        unsafe { self.memory.start.add(place as usize).cast::<AtomicU32>().as_ref() }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.places.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.places.consumer)
    }

    fn entry(&self, number: u32) -> NonNull<T> {
        let place = self.places.desc as usize + (number & self.mask) as usize * size_of::<T>();
        // SAFETY: `new` has seen that all entries lie within the mapping, aligned.
        unsafe { self.memory.start.add(place).cast() }
    }
}

/// The end of a ring that entries are put into.
#[derive(Debug)]
pub(super) struct Producer<T>(Ring<T>);

impl<T: Entry> Producer<T> {
    pub(super) fn new(memory: Mapping, places: libc::xdp_ring_offset, size: u32) -> io::Result<Producer<T>> {
        Ring::new(memory, places, size).map(Producer)
    }

    /// Entries that were passed on and that the other side has not taken yet, with those about to be passed on.
    pub(super) fn waiting(&self) -> u32 {
        // Acquire: an entry that the other side has passed by, it has read.
        self.0.next.wrapping_sub(self.0.consumer().load(Ordering::Acquire))
    }

    /// Entries that there is room for.
    pub(super) fn room(&self) -> u32 {
        (self.0.mask + 1).saturating_sub(self.waiting())
    }

    /// Puts an entry behind the others, to be passed on by [`Producer::publish`]. Returns whether there was room.
    pub(super) fn put(&mut self, entry: T) -> bool {
        if self.room() == 0 {
            return false;
        }
        // SAFETY: the entry lies in the ring, and the other side does not look at it before it is published.
        unsafe { self.0.entry(self.0.next).write(entry) };
        self.0.next = self.0.next.wrapping_add(1);
        true
    }

    /// Passes on what was put in.
    pub(super) fn publish(&self) {
        // Release: the entries are written before.
        self.0.producer().store(self.0.next, Ordering::Release);
    }

    /// Takes back the last entry that the other side has not taken yet. Only while that side is known to take none.
    pub(super) fn withdraw(&mut self) -> Option<T> {
        if self.waiting() == 0 {
            return None;
        }
        self.0.next = self.0.next.wrapping_sub(1);
        self.publish();
        // SAFETY: the entry lies in the ring and was written by `put`.
        Some(unsafe { self.0.entry(self.0.next).read() })
    }

    /// Whether the kernel sleeps and has to be called.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.0.word(self.0.places.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The end of a ring that entries are taken from.
#[derive(Debug)]
pub(super) struct Consumer<T>(Ring<T>);

impl<T: Entry> Consumer<T> {
    pub(super) fn new(memory: Mapping, places: libc::xdp_ring_offset, size: u32) -> io::Result<Consumer<T>> {
        Ring::new(memory, places, size).map(Consumer)
    }

    /// Takes an entry, whose place goes back with [`Consumer::release`].
    pub(super) fn take(&mut self) -> Option<T> {
        // Acquire: an entry that was passed on is written.
        if self.0.producer().load(Ordering::Acquire) == self.0.next {
            return None;
        }
        // SAFETY: the entry lies in the ring, every pattern of bits is one, and the other side leaves it alone until it is released.
        let entry = unsafe { self.0.entry(self.0.next).read() };
        self.0.next = self.0.next.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of what was taken back.
    pub(super) fn release(&self) {
        // Release: the entries are read before.
        self.0.consumer().store(self.0.next, Ordering::Release);
    }
}

/// One piece of an area. There is one of each, so whoever has it may read and write the memory.
#[derive(Debug)]
pub(super) struct Piece(NonNull<u8>);

// SAFETY: it is the only way to its memory, which every thread may reach.
unsafe impl Send for Piece {}

impl Piece {
    /// The pieces of an area, each once. The area lasts as long as the process, and so may they.
    pub(super) fn all_of(area: &'static Mapping) -> impl Iterator<Item = Piece> {
        // SAFETY: within the mapping.
        (0..area.length / PIECE).map(|number| Piece(unsafe { area.start.add(number * PIECE) }))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for ever, initialised (zero at first), and nobody writes while `self` is borrowed: the kernel does so
        // only while it has the piece, and then it is not lent.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), PIECE) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is the only way to these bytes for this program.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr(), PIECE) }
    }
}

/// What the kernel does with memory.
#[cfg(test)]
impl Mapping {
    /// Memory of a test's own: Miri knows no other kind.
    pub(super) fn anonymous(length: usize) -> io::Result<Mapping> {
        Mapping::new(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    pub(super) fn kernel_writes(&self, at: u64, bytes: &[u8]) {
        assert!(at as usize + bytes.len() <= self.length);
        // SAFETY: within the mapping, and no reference covers what the kernel has.
        unsafe { self.start.add(at as usize).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    }

    pub(super) fn kernel_reads(&self, at: u64, length: usize) -> Vec<u8> {
        assert!(at as usize + length <= self.length);
        // SAFETY: within the mapping, and nobody writes what the kernel sends.
        unsafe { std::slice::from_raw_parts(self.start.add(at as usize).as_ptr(), length).to_vec() }
    }

    /// The same memory, seen from the other side. It stays mapped as long as this side has it.
    pub(super) fn other_side(&self) -> std::mem::ManuallyDrop<Mapping> {
        std::mem::ManuallyDrop::new(Mapping { start: self.start, length: self.length })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::mem::ManuallyDrop;

    /// Where the kernel might put things: counters on lines of their own, entries behind.
    const PLACES: libc::xdp_ring_offset = libc::xdp_ring_offset { producer: 0, consumer: 64, flags: 128, desc: 192 };

    /// A ring with both its ends. The other end must not outlive the first.
    pub(in super::super) fn ring<T: Entry>(size: u32) -> (Mapping, ManuallyDrop<Mapping>, libc::xdp_ring_offset) {
        let memory = Mapping::anonymous(192 + size as usize * size_of::<T>()).unwrap();
        let other = memory.other_side();
        (memory, other, PLACES)
    }

    /// A producer here and a consumer in the kernel.
    pub(in super::super) fn to_kernel<T: Entry>(size: u32) -> (Producer<T>, ManuallyDrop<Consumer<T>>) {
        let (memory, other, places) = ring::<T>(size);
        let other = Consumer::new(ManuallyDrop::into_inner(other), places, size).unwrap();
        (Producer::new(memory, places, size).unwrap(), ManuallyDrop::new(other))
    }

    /// A consumer here and a producer in the kernel.
    pub(in super::super) fn from_kernel<T: Entry>(size: u32) -> (Consumer<T>, ManuallyDrop<Producer<T>>) {
        let (memory, other, places) = ring::<T>(size);
        let other = Producer::new(ManuallyDrop::into_inner(other), places, size).unwrap();
        (Consumer::new(memory, places, size).unwrap(), ManuallyDrop::new(other))
    }

    #[test]
    fn entries_arrive_in_order_and_places_come_back() {
        let (mut ours, mut kernel) = to_kernel::<u64>(4);
        // Both sides count on beyond 2^32.
        for end in [&mut ours.0, &mut kernel.0] {
            end.next = u32::MAX - 5;
        }
        ours.publish();
        kernel.release();
        let mut expected = 0;
        for number in 0..20_u64 {
            assert!(ours.put(number));
            if number % 3 != 0 {
                continue;
            }
            assert_eq!(kernel.take(), None, "not yet published");
            ours.publish();
            while let Some(entry) = kernel.take() {
                expected = entry + 1;
                assert!(entry <= number);
            }
            assert_eq!(expected, number + 1);
            kernel.release();
            assert_eq!((ours.waiting(), ours.room()), (0, 4));
        }
    }

    #[test]
    fn a_full_ring_takes_no_more_and_gives_back_what_nobody_took() {
        let (mut ours, mut kernel) = to_kernel::<u64>(4);
        assert!((0..4).all(|number| ours.put(number)) && !ours.put(4));
        ours.publish();
        assert_eq!(kernel.take(), Some(0));
        assert!(!ours.put(4), "the place is not free before it is released");
        kernel.release();
        assert!(ours.put(4));
        ours.publish();
        assert_eq!([ours.withdraw(), ours.withdraw()], [Some(4), Some(3)]);
        assert_eq!([kernel.take(), kernel.take(), kernel.take()], [Some(1), Some(2), None]);
        kernel.release();
        assert_eq!(ours.withdraw(), None);
    }

    #[test]
    fn the_kernel_may_take_while_this_side_puts() {
        let (mut ours, mut kernel) = to_kernel::<u64>(8);
        let count = if cfg!(miri) { 100 } else { 100_000 };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for expected in 0..count {
                    let entry = loop {
                        match kernel.take() {
                            Some(entry) => break entry,
                            None => std::thread::yield_now(),
                        }
                    };
                    assert_eq!(entry, expected);
                    kernel.release();
                }
            });
            for number in 0..count {
                while !ours.put(number) {
                    std::thread::yield_now();
                }
                ours.publish();
            }
        });
    }

    #[test]
    fn the_kernel_says_whether_it_sleeps() {
        let (ours, kernel) = to_kernel::<u64>(4);
        assert!(!ours.needs_wakeup());
        kernel.0.word(PLACES.flags).store(libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
        assert!(ours.needs_wakeup());
    }

    #[test]
    fn a_ring_that_does_not_fit_is_refused() {
        let bad = [
            libc::xdp_ring_offset { desc: 200, ..PLACES },
            libc::xdp_ring_offset { desc: 195, ..PLACES },
            libc::xdp_ring_offset { consumer: 224, ..PLACES },
            libc::xdp_ring_offset { producer: 2, ..PLACES },
            libc::xdp_ring_offset { flags: u64::MAX, ..PLACES },
        ];
        for places in bad {
            let memory = Mapping::anonymous(192 + 4 * size_of::<u64>()).unwrap();
            assert!(Producer::<u64>::new(memory, places, 4).is_err(), "{places:?}");
        }
        assert!(Consumer::<u64>::new(Mapping::anonymous(4_096).unwrap(), PLACES, 3).is_err());
    }
}
