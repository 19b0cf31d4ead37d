//! From the first frame on a run asks the heap for nothing, whenever the largest batch comes.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a socket in the place of a port")]

#[path = "support/ports.rs"]
mod ports;

use ports::Traffic;
use std::cell::Cell;
use std::rc::Rc;
use weftwire_core::buffer::{LARGE, Pool, SMALL};
use weftwire_core::inspect::Inspect;
use weftwire_core::{Arrival, Arrivals, Deadline, FlowId, Frame, Function, Offload, Outbox, Port, Time};
use weftwire_linux::application::Application;
use weftwire_linux::port::{BATCH, SendError, SendErrors};
use weftwire_testbed::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Frames of each batch, and room for each.
const BATCHES: [(usize, usize); 6] = [(1, SMALL), (2, LARGE), (9, SMALL), (BATCH, SMALL), (17, LARGE), (BATCH, LARGE)];

/// It sends each frame twice, and delivers some bytes.
struct Doubling;

impl Function for Doubling {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        for arrival in arrivals.drain(..) {
            let length = arrival.buffer.len();
            let frame = out.send_buffer(now, Port(1), arrival.buffer, arrival.offload);
            out.send_again(now, Port(1), frame, length, arrival.offload);
            out.deliver(FlowId(1), &[7; 1_000]);
        }
    }

    fn fire(&mut self, _: Time, _: &mut Outbox) {}

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        None
    }
}

impl Inspect for Doubling {}

/// What the port tells the test.
#[derive(Default)]
struct Seen {
    /// Batches that were taken.
    batches: Cell<usize>,
    /// Frames that were sent.
    sent: Cell<usize>,
    /// Allocations from the taking of each batch to the sending of what came of it.
    made: Cell<u64>,
}

/// The run is over once all batches were taken.
struct User(Rc<Seen>);

impl Application for User {
    fn is_over(&self) -> bool {
        self.0.batches.get() == BATCHES.len()
    }
}

struct Bursts {
    seen: Rc<Seen>,
    /// Allocations up to the last look.
    before: u64,
    /// Why frames could not be sent.
    errors: SendErrors,
}

impl Traffic for Bursts {
    fn receive(&mut self, port: Port, pool: &mut Pool, arrivals: &mut Arrivals) {
        self.before = allocations();
        let batch = self.seen.batches.get();
        if let Some((count, room)) = BATCHES.get(batch) {
            let arrival = || Arrival { port, buffer: pool.take(*room), offload: Offload::default() };
            arrivals.extend(std::iter::repeat_with(arrival).take(*count));
            self.seen.batches.set(batch + 1);
        }
    }

    /// Something else keeps a frame of each batch from leaving.
    fn send(&mut self, frames: &[Frame<'_>]) {
        let sent = self.seen.sent.get();
        self.errors.count(SendError::ALL[sent % SendError::ALL.len()], 1);
        self.seen.sent.set(sent + frames.len());
        self.seen.made.update(|made| made + allocations() - self.before);
        self.before = allocations();
    }
}

#[test]
fn a_run_has_all_that_the_largest_batch_needs_before_it_comes() {
    let seen = Rc::new(Seen::default());
    let bursts = Bursts { seen: seen.clone(), before: 0, errors: SendErrors::default() };
    ports::run([(1, bursts)], &mut User(seen.clone()), &mut Doubling);
    let frames: usize = BATCHES.iter().map(|(count, _)| count).sum();
    assert_eq!((seen.sent.get(), seen.made.get()), (2 * frames, 0));
}
