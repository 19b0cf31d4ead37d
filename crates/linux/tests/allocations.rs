//! From the first frame on a run asks the heap for nothing, whenever the largest batch comes.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a socket in the place of a port")]

use std::cell::Cell;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use weftwire_core::buffer::{LARGE, Pool, SMALL};
use weftwire_core::inspect::Inspect;
use weftwire_core::{Arrival, Arrivals, Deadline, FlowId, Frame, Function, LinkType, Offload, Outbox, Port, Time};
use weftwire_linux::FramePort;
use weftwire_linux::application::Application;
use weftwire_linux::port::{BATCH, PortCounters};
use weftwire_linux::recorder::Recorder;
use weftwire_linux::run_loop::{OpenPort, Run, RunOptions};
use weftwire_linux::signals::StopSignal;
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
    always_readable: UnixStream,
}

impl FramePort for Bursts {
    fn link(&self) -> LinkType {
        LinkType::Ethernet
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.always_readable.as_fd()
    }

    fn receive(&mut self, port: Port, pool: &mut Pool, arrivals: &mut Arrivals) -> io::Result<()> {
        self.before = allocations();
        let batch = self.seen.batches.get();
        if let Some((count, room)) = BATCHES.get(batch) {
            let arrival = || Arrival { port, buffer: pool.take(*room), offload: Offload::default() };
            arrivals.extend(std::iter::repeat_with(arrival).take(*count));
            self.seen.batches.set(batch + 1);
        }
        Ok(())
    }

    fn send(&mut self, frames: &[Frame<'_>]) {
        self.seen.sent.update(|sent| sent + frames.len());
        self.seen.made.update(|made| made + allocations() - self.before);
        self.before = allocations();
    }

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}

#[test]
fn a_run_has_all_that_the_largest_batch_needs_before_it_comes() {
    let (always_readable, mut other) = UnixStream::pair().expect("a pair of sockets");
    other.write_all(b"!").expect("a byte fits");
    let seen = Rc::new(Seen::default());
    let device = Box::new(Bursts { seen: seen.clone(), before: 0, always_readable });
    let run = Run {
        ports: vec![OpenPort { port: Port(1), name: "bursts".into(), device }],
        application: &mut User(seen.clone()),
        recorder: Recorder::new(),
        control: None,
        commands: None,
        flows: Vec::new(),
        stop: StopSignal::never().expect("a descriptor"),
        messages: Box::new(io::sink()),
        options: RunOptions::default(),
    };
    run.run(&mut Doubling).expect("a run");
    let frames: usize = BATCHES.iter().map(|(count, _)| count).sum();
    assert_eq!((seen.sent.get(), seen.made.get()), (2 * frames, 0));
}
