//! A process that was kept from running hands in what came meanwhile before it runs timers: frames may put them off.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a thread sleeps in the place of a process that is stopped, and a socket in that of a port"
)]

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};
use weftwire_core::buffer::{Buffer, Pool};
use weftwire_core::inspect::Inspect;
use weftwire_core::{Arrival, Arrivals, Deadline, Frame, Function, LinkType, Offload, Outbox, Port, Time};
use weftwire_linux::FramePort;
use weftwire_linux::application::Application;
use weftwire_linux::port::PortCounters;
use weftwire_linux::recorder::Recorder;
use weftwire_linux::run_loop::{OpenPort, Run, RunOptions};
use weftwire_linux::signals::StopSignal;

const PATIENCE: i64 = 2_000_000;
/// How late the process is for a timer after it did not run, at least.
const LATE: i64 = 10 * PATIENCE;
const FRAMES: usize = 41;

/// A process that does not run for a while.
struct Stall {
    /// Before the function's time 0.
    begun: Instant,
    /// After the function's time 0.
    first: OnceCell<Instant>,
    /// The timer, if one is set.
    due: Cell<Option<Time>>,
}

impl Stall {
    fn new() -> Rc<Stall> {
        Rc::new(Stall { begun: Instant::now(), first: OnceCell::new(), due: Cell::new(None) })
    }

    /// Sets a timer for right now, and lets the process run again long after that: whatever else keeps it from running, the turn
    /// that is under way is not late for the timer, and the next one is.
    fn happens(&self) {
        let time = |elapsed: Duration| Time::ZERO.after(elapsed.as_nanos() as i64);
        let due = time(self.begun.elapsed()).after(1);
        self.due.set(Some(due));
        while self.first.get().is_some_and(|first| time(first.elapsed()) <= due.after(LATE)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The last frame stops the timer; each but the first and the last sets it anew, if they move it.
struct Waiting {
    moves: bool,
    times: Vec<(Time, Port)>,
    fired: usize,
    stall: Rc<Stall>,
}

impl Function for Waiting {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        self.stall.first.get_or_init(Instant::now);
        self.fire(now.after(-1), out);
        self.times.extend(arrivals.drain(..).map(|arrival| (now, arrival.port)));
        let anew = now.after(PATIENCE);
        let due = if self.moves { anew } else { self.stall.due.get().unwrap_or(anew) };
        self.stall.due.set((2..FRAMES).contains(&self.times.len()).then_some(due));
    }

    fn fire(&mut self, now: Time, _: &mut Outbox) {
        if self.stall.due.get().is_some_and(|due| due <= now) {
            self.stall.due.set(None);
            self.fired += 1;
        }
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        self.stall.due.get().map(|at| Deadline { at, reason: "patience" })
    }
}

impl Inspect for Waiting {}

/// It has these frames, a batch each time it is asked; while the second is taken the process is kept from running, if there is a
/// stall.
struct Slow {
    batches: Vec<usize>,
    asked: Rc<Cell<usize>>,
    stall: Option<Rc<Stall>>,
    always_readable: UnixStream,
}

impl FramePort for Slow {
    fn link(&self) -> LinkType {
        LinkType::Ethernet
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.always_readable.as_fd()
    }

    fn receive(&mut self, port: Port, _: &mut Pool, arrivals: &mut Arrivals) -> io::Result<()> {
        let asked = self.asked.replace(self.asked.get() + 1);
        if let Some(stall) = self.stall.as_ref().filter(|_| asked == 1) {
            stall.happens();
        }
        let count = self.batches.get(asked).copied().unwrap_or(0);
        let arrival = || Arrival { port, buffer: Buffer::with_capacity(60), offload: Offload::default() };
        arrivals.extend((0..count).map(|_| arrival()));
        Ok(())
    }

    fn send(&mut self, _: &[Frame<'_>]) {}

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}

/// It is over when the port was asked so often.
struct Until(Rc<Cell<usize>>, usize);

impl Application for Until {
    fn is_over(&self) -> bool {
        self.0.get() >= self.1
    }
}

/// Runs ports with these batches, until the last one was asked for all of its own. What the function has seen.
fn run(ports: &[(u16, &[usize])], moves: bool) -> Waiting {
    let stall = Stall::new();
    let mut waiting = Waiting { moves, times: Vec::new(), fired: 0, stall: stall.clone() };
    let (mut open, mut until, mut others) = (Vec::new(), Until(Rc::default(), 0), Vec::new());
    for (number, batches) in ports {
        let (always_readable, mut other) = UnixStream::pair().expect("a pair of sockets");
        other.write_all(b"!").expect("a byte fits");
        others.push(other);
        let asked = Rc::new(Cell::new(0));
        until = Until(asked.clone(), batches.len());
        let stall = (*number == 1).then(|| stall.clone());
        let device = Slow { batches: batches.to_vec(), asked, stall, always_readable };
        open.push(OpenPort { port: Port(*number), name: "slow".into(), device: Box::new(device) });
    }
    let run = Run {
        ports: open,
        application: &mut until,
        recorder: Recorder::new(),
        control: None,
        commands: None,
        flows: Vec::new(),
        stop: StopSignal::never().expect("a descriptor"),
        messages: Box::new(io::sink()),
        options: RunOptions::default(),
    };
    run.run(&mut waiting).expect("a run");
    waiting
}

#[test]
fn what_came_before_a_late_timer_is_handed_in_before_it() {
    for batches in [&[1, 32, 8][..], &[1, 0, 32, 8], &[1, 1, 1, 1, 1, 32, 4]] {
        let seen = run(&[(1, batches)], true);
        assert_eq!((seen.times.len(), seen.fired), (FRAMES, 0), "{batches:?}");
        assert!(seen.times.is_sorted(), "time does not go back");
    }
}

/// Rule E1: a capture of the run, whose frames stand by time and port, is the run.
#[test]
fn frames_of_one_instant_come_by_port_however_ports_were_given() {
    for moves in [true, false] {
        let seen = run(&[(2, &[0, 16, 2, 2]), (1, &[1, 16, 2, 2])], moves);
        assert_eq!((seen.times.len(), seen.fired), (FRAMES, 0));
        assert!(seen.times.is_sorted(), "{:?}", seen.times);
        // What came together has one time, and so has what waits for a late timer that it does not move.
        let times = |frames: &[(Time, Port)]| frames.iter().map(|(at, _)| *at).collect::<BTreeSet<Time>>().len();
        assert_eq!(times(&seen.times[1..33]), 1, "{:?}", seen.times);
        assert_eq!(times(&seen.times[33..]), if moves { 8 } else { 1 }, "{:?}", seen.times);
    }
}
