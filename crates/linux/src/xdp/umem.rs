//! The memory of all AF_XDP ports of this process (UMEM), cut into chunks of one frame each: who has which chunk.
//!
//! A chunk is free, or lent to a [`Buffer`](weftwire_core::Buffer), or held by the kernel: to receive into, or to send from,
//! perhaps by several ports. One that is lent may be sent at the same time; when its buffer is gone it is free once the last
//! port's completion is seen, in any order. As all ports have the same memory, a frame is received, changed and sent where it lies.
//!
//! The memory is that of a file ([`crate::memory_file`]), so that it can go to another process with the frames in it.

use super::shared::{Mapping, PIECE, Piece};
use crate::memory_file::memory_file;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weftwire_core::buffer::{Lender, Lent};

/// Chunks of a process: 32 MiB.
const CHUNKS: usize = 8_192;

static OF_THIS_PROCESS: Mutex<Option<&'static Umem>> = Mutex::new(None);

/// The memory, and who has which part of it. Lasts as long as the process.
#[derive(Debug)]
pub(super) struct Umem {
    file: OwnedFd,
    area: Mapping,
    state: Mutex<State>,
}

impl Umem {
    /// The memory of this process, made when it is first asked for.
    pub(super) fn get() -> io::Result<&'static Umem> {
        let mut umem = OF_THIS_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(umem) = *umem {
            return Ok(umem);
        }
        let file = memory_file(c"weft frames", CHUNKS * PIECE)?;
        let area = Mapping::of(file.as_fd(), CHUNKS * PIECE, 0)?;
        Ok(umem.insert(Umem::on(file, area)))
    }

    /// All chunks of this area, which is that file's, are free.
    pub(super) fn on(file: OwnedFd, area: Mapping) -> &'static Umem {
        let count = area.length() / PIECE;
        let state = Mutex::new(State { free: Vec::with_capacity(count), chunks: Vec::with_capacity(count), queues: 0 });
        let umem: &'static Umem = Box::leak(Box::new(Umem { file, area, state }));
        let mut state = umem.state();
        for (number, piece) in (0..).zip(Piece::all_of(&umem.area)) {
            state.chunks.push(Place { home: Some(Box::new(Chunk { umem, number, piece })), held: 0 });
            state.free.push(number);
        }
        drop(state);
        umem
    }

    /// Who has it maps the same memory, and may write what neither this program nor the kernel works on.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(super) fn area(&self) -> &Mapping {
        &self.area
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked has left the lists whole: each change is one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where these bytes lie, if that is in one chunk.
    pub(super) fn address_of(&self, bytes: &[u8]) -> Option<u64> {
        let place = bytes.as_ptr().addr().checked_sub(self.area.start().addr().get())?;
        let fits = place < self.area.length() && place % PIECE + bytes.len() <= PIECE;
        fits.then_some(place as u64)
    }
}

/// The chunk of an address that the kernel names.
pub(super) fn number_of(address: u64) -> u32 {
    u32::try_from(address / PIECE as u64).unwrap_or(u32::MAX)
}

/// Who has what.
#[derive(Debug)]
pub(super) struct State {
    free: Vec<u32>,
    chunks: Vec<Place>,
    /// Queues of all ports that receive into this memory.
    pub(super) queues: usize,
}

/// Where a chunk is.
#[derive(Debug)]
struct Place {
    /// The chunk, unless it is lent.
    home: Option<Box<Chunk>>,
    /// Times that the kernel has it.
    held: u32,
}

impl State {
    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Most chunks that a queue may have to receive into, so that half of the memory is left for sending.
    pub(super) fn share(&self) -> usize {
        self.chunks.len() / 2 / self.queues.max(1)
    }

    /// Lends a free chunk.
    pub(super) fn lend(&mut self) -> Option<Box<Chunk>> {
        let number = self.free.pop()?;
        self.chunks[number as usize].home.take()
    }

    /// The kernel gets a free chunk, to receive into.
    pub(super) fn fill(&mut self) -> Option<u32> {
        let number = self.free.pop()?;
        self.chunks[number as usize].held += 1;
        Some(number)
    }

    /// The kernel gets a chunk to send from.
    pub(super) fn hold(&mut self, number: u32) {
        self.chunks[number as usize].held += 1;
    }

    /// The kernel has given a chunk back.
    pub(super) fn release(&mut self, number: u32) {
        let place = &mut self.chunks[number as usize];
        place.held -= 1;
        if place.held == 0 && place.home.is_some() {
            self.free.push(number);
        }
    }

    /// The kernel has received into a chunk, which is lent now.
    pub(super) fn received(&mut self, number: u32) -> Option<Box<Chunk>> {
        let place = &mut self.chunks[number as usize];
        place.held -= 1;
        place.home.take()
    }

    /// A chunk is not lent any more.
    pub(super) fn give_back(&mut self, chunk: Box<Chunk>) {
        let number = chunk.number;
        let place = &mut self.chunks[number as usize];
        place.home = Some(chunk);
        if place.held == 0 {
            self.free.push(number);
        }
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }
}

/// A chunk, in the box that it is lent in.
#[derive(Debug)]
pub(super) struct Chunk {
    umem: &'static Umem,
    number: u32,
    piece: Piece,
}

impl Lent for Chunk {
    fn bytes(&self) -> &[u8] {
        self.piece.bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.piece.bytes_mut()
    }

    fn give_back(self: Box<Self>) {
        let umem = self.umem;
        umem.state().give_back(self);
    }
}

/// Lends chunks for frames that are made.
#[derive(Debug)]
pub(super) struct UmemLender(pub(super) &'static Umem);

impl Lender for UmemLender {
    fn lend(&self) -> Option<Box<dyn Lent>> {
        self.0.state().lend().map(|chunk| chunk as Box<dyn Lent>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_file_has_the_frames() {
        const LENGTH: usize = 4 * PIECE;
        let file = memory_file(c"weft test", LENGTH).unwrap();
        let area = Mapping::of(file.as_fd(), LENGTH, 0).unwrap();
        let umem = Umem::on(file, area);
        let other = Mapping::of(umem.file(), LENGTH, 0).unwrap();
        assert_ne!(other.start(), umem.area().start());
        let mut chunk = umem.state().lend().unwrap();
        chunk.bytes_mut()[100..107].copy_from_slice(b"a frame");
        let address = umem.address_of(&chunk.bytes()[100..107]).unwrap();
        assert_eq!(other.kernel_reads(address, 7), b"a frame");
        other.kernel_writes(address, b"another");
        assert_eq!(&chunk.bytes()[100..107], b"another");
        chunk.give_back();
    }
}
