//! A process that was kept from running hands in what came meanwhile before it runs timers: frames may put them off.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a thread sleeps in the place of a process that is stopped, and a socket in that of a port"
)]

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use weftwire_core::buffer::{Buffer, Pool};
use weftwire_core::inspect::Inspect;
use weftwire_core::{Arrival, Arrivals, Deadline, Frame, Function, LinkType, Offload, Outbox, Port, Time};
use weftwire_linux::FramePort;
use weftwire_linux::port::PortCounters;
use weftwire_linux::recorder::Recorder;
use weftwire_linux::run_loop::{OpenPort, Run, RunOptions};
use weftwire_linux::signals::StopSignal;

const PATIENCE: i64 = 2_000_000;
const STALL: Duration = Duration::from_millis(20);
const FRAMES: usize = 41;

/// Each frame but the last sets a timer anew, or for the first time.
#[derive(Default)]
struct Waiting {
    times: Vec<Time>,
    due: Option<Time>,
    fired: usize,
}

impl Function for Waiting {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        self.fire(now.after(-1), out);
        self.times.extend(arrivals.drain(..).map(|_| now));
        self.due = (self.times.len() < FRAMES).then(|| now.after(PATIENCE));
    }

    fn fire(&mut self, now: Time, _: &mut Outbox) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.fired += 1;
        }
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        self.due.map(|at| Deadline { at, reason: "patience" })
    }
}

impl Inspect for Waiting {}

/// It has these frames, a batch each time it is asked; while the second is taken the process is kept from running.
struct Slow {
    batches: Vec<usize>,
    asked: usize,
    always_readable: UnixStream,
    _other: UnixStream,
}

impl FramePort for Slow {
    fn link(&self) -> LinkType {
        LinkType::Ethernet
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.always_readable.as_fd()
    }

    fn receive(&mut self, port: Port, _: &mut Pool, arrivals: &mut Arrivals) -> io::Result<()> {
        if self.asked == 1 {
            std::thread::sleep(STALL);
        }
        let count = self.batches.get(self.asked).copied().unwrap_or(0);
        self.asked += 1;
        let arrival = || Arrival { port, buffer: Buffer::with_capacity(60), offload: Offload::default() };
        arrivals.extend((0..count).map(|_| arrival()));
        Ok(())
    }

    fn send(&mut self, _: &[Frame<'_>]) {}

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}

#[test]
fn what_came_before_a_late_timer_is_handed_in_before_it() {
    for batches in [vec![1, 32, 8], vec![1, 0, 32, 8], vec![1, 1, 1, 1, 1, 32, 4]] {
        let (always_readable, mut other) = UnixStream::pair().expect("a pair of sockets");
        other.write_all(b"!").expect("a byte fits");
        let device = Box::new(Slow { batches: batches.clone(), asked: 0, always_readable, _other: other });
        let run = Run {
            ports: vec![OpenPort { port: Port(1), name: "slow".into(), device }],
            application: &mut (),
            recorder: Recorder::new(),
            control: None,
            commands: None,
            flows: Vec::new(),
            stop: StopSignal::never().expect("a descriptor"),
            messages: Box::new(io::sink()),
            options: RunOptions { duration: Some(3 * STALL), ..RunOptions::default() },
        };
        let mut function = Waiting::default();
        run.run(&mut function).expect("a run");
        assert_eq!((function.times.len(), function.fired), (FRAMES, 0), "{batches:?}");
        assert!(function.times.is_sorted(), "time does not go back");
    }
}
