//! What an AF_XDP socket and the kernel hand to each other: chunks to receive into, chunks received, chunks to send, chunks sent.

use super::shared::{Consumer, PIECE, Producer};
use super::umem::{Chunk, State, Umem, number_of};
use std::ops::Range;

/// Entries of each ring.
pub(super) const RING: u32 = 2_048;

/// The four rings of a socket.
#[derive(Debug)]
pub(super) struct Rings {
    /// Chunks to receive into.
    pub(super) fill: Producer<u64>,
    /// Chunks received.
    pub(super) receive: Consumer<libc::xdp_desc>,
    /// Chunks to send.
    pub(super) send: Producer<libc::xdp_desc>,
    /// Chunks sent.
    pub(super) completion: Consumer<u64>,
}

/// A chunk that was received, and where in it the frame lies.
pub(super) type Received = (Box<Chunk>, Range<usize>);

/// One queue of an interface.
#[derive(Debug)]
pub(super) struct Queue {
    // In this order: what the kernel has comes back once it knows the rings no more.
    pub(super) rings: Rings,
    held: Held,
}

impl Queue {
    pub(super) fn new(umem: &'static Umem, rings: Rings) -> Queue {
        Queue { rings, held: Held::new(umem) }
    }

    /// The queue is to receive from now on: it gets its share of the memory.
    pub(super) fn begin(&mut self) {
        self.held.umem.state().queues += usize::from(!std::mem::replace(&mut self.held.receives, true));
    }

    #[cfg(test)]
    pub(super) fn umem(&self) -> &'static Umem {
        self.held.umem
    }

    /// Takes back what was sent.
    pub(super) fn complete(&mut self, state: &mut State) {
        while let Some(address) = self.rings.completion.take() {
            self.held.was_sent(number_of(address), state);
        }
        self.rings.completion.release();
    }

    /// Gives the kernel chunks to receive into, so that it has as many as this queue's share and at most `most`.
    pub(super) fn refill(&mut self, state: &mut State, most: usize) {
        let share = state.share().min(most);
        while self.held.filled < share {
            let Some(number) = state.fill() else { break };
            if !self.rings.fill.put(u64::from(number) * PIECE as u64) {
                state.release(number);
                break;
            }
            self.held.fill(number);
        }
        self.rings.fill.publish();
    }

    /// Takes up to `most` frames. Returns how many the kernel described in a way that can't be.
    pub(super) fn receive(&mut self, state: &mut State, most: usize, received: &mut Vec<Received>) -> u64 {
        let mut unusable = 0;
        for _ in 0..most {
            let Some(entry) = self.rings.receive.take() else { break };
            let start = entry.addr as usize % PIECE;
            let frame = start..start + entry.len as usize;
            match self.held.was_filled(number_of(entry.addr), state) {
                Some(chunk) if frame.end <= PIECE => received.push((chunk, frame)),
                Some(chunk) => {
                    state.give_back(chunk);
                    unusable += 1;
                }
                None => unusable += 1,
            }
        }
        self.rings.receive.release();
        unusable
    }

    /// Puts a frame at an address of the memory behind the others. Returns whether there was room.
    pub(super) fn send(&mut self, state: &mut State, address: u64, length: usize) -> bool {
        let room = self.rings.send.put(libc::xdp_desc { addr: address, len: length as u32, options: 0 });
        if room {
            self.held.send(number_of(address), state);
        }
        room
    }

    /// Takes back all frames that the kernel has not looked at. Returns how many.
    pub(super) fn withdraw(&mut self, state: &mut State) -> usize {
        let mut count = 0;
        while let Some(entry) = self.rings.send.withdraw() {
            self.held.was_sent(number_of(entry.addr), state);
            count += 1;
        }
        count
    }
}

/// The chunks that the kernel has by one queue. It gets none back that it has not got.
#[derive(Debug)]
struct Held {
    umem: &'static Umem,
    /// Whether the queue has its share of the memory.
    receives: bool,
    /// By chunk: it is to be received into.
    fills: Vec<bool>,
    filled: usize,
    /// By chunk: how often it is to be sent.
    sends: Vec<u32>,
}

impl Held {
    fn new(umem: &'static Umem) -> Held {
        let chunks = umem.state().chunks();
        Held { umem, receives: false, fills: vec![false; chunks], filled: 0, sends: vec![0; chunks] }
    }

    fn fill(&mut self, number: u32) {
        self.fills[number as usize] = true;
        self.filled += 1;
    }

    fn was_filled(&mut self, number: u32, state: &mut State) -> Option<Box<Chunk>> {
        let had = std::mem::take(self.fills.get_mut(number as usize)?);
        self.filled -= usize::from(had);
        if had { state.received(number) } else { None }
    }

    fn send(&mut self, number: u32, state: &mut State) {
        self.sends[number as usize] += 1;
        state.hold(number);
    }

    fn was_sent(&mut self, number: u32, state: &mut State) {
        if let Some(count @ 1..) = self.sends.get_mut(number as usize) {
            *count -= 1;
            state.release(number);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.umem.state();
        state.queues -= usize::from(self.receives);
        for (number, (filled, sends)) in (0..).zip(self.fills.iter().zip(&self.sends)) {
            for _ in 0..u32::from(*filled) + sends {
                state.release(number);
            }
        }
    }
}
