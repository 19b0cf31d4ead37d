//! A process that was kept from running hands in what came meanwhile before it runs timers: frames may put them off.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a thread sleeps in the place of a process that is stopped, and a socket in that of a port"
)]

#[path = "support/ports.rs"]
mod ports;

use ports::Traffic;
use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};
use weftwire_core::buffer::{Buffer, Pool};
use weftwire_core::inspect::Inspect;
use weftwire_core::order::{Input, InputOrder};
use weftwire_core::{Arrival, Arrivals, Deadline, Function, Offload, Outbox, Port, Time};
use weftwire_linux::application::Application;

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

/// Frames have the times that a function gives them. The last frame stops the timer; each but the first and the last sets it anew, if they move it.
struct Waiting {
    moves: bool,
    order: InputOrder,
    times: Vec<(Time, Port)>,
    fired: usize,
    stall: Rc<Stall>,
}

impl Function for Waiting {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        self.stall.first.get_or_init(Instant::now);
        self.fire(now.after(-1), out);
        for arrival in arrivals.drain(..) {
            self.times.push((self.order.time(Input::Frame(arrival.port), now), arrival.port));
        }
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
}

impl Traffic for Slow {
    fn receive(&mut self, port: Port, _: &mut Pool, arrivals: &mut Arrivals) {
        let asked = self.asked.replace(self.asked.get() + 1);
        if let Some(stall) = self.stall.as_ref().filter(|_| asked == 1) {
            stall.happens();
        }
        let count = self.batches.get(asked).copied().unwrap_or(0);
        let arrival = || Arrival { port, buffer: Buffer::with_capacity(60), offload: Offload::default() };
        arrivals.extend((0..count).map(|_| arrival()));
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
    let (order, times) = (InputOrder::default(), Vec::new());
    let mut waiting = Waiting { moves, order, times, fired: 0, stall: stall.clone() };
    let mut until = Until(Rc::default(), 0);
    let mut traffic = Vec::new();
    for (number, batches) in ports {
        let asked = Rc::new(Cell::new(0));
        until = Until(asked.clone(), batches.len());
        let stall = (*number == 1).then(|| stall.clone());
        traffic.push((*number, Slow { batches: batches.to_vec(), asked, stall }));
    }
    ports::run(traffic, &mut until, &mut waiting);
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

/// It counts how often it was told to let go of what it has: once whenever the run waits, and once whenever the run looks at what is
/// neither a port nor the application.
struct Flushed {
    until: Until,
    flushes: usize,
}

impl Application for Flushed {
    fn is_over(&self) -> bool {
        self.until.is_over()
    }

    fn flush(&mut self) {
        self.flushes += 1;
    }
}

/// A frame does not wait until the control socket and the interfaces were looked at: those are told of by themselves, and looked at
/// once a millisecond at most if they are not.
#[test]
fn frames_that_wake_a_run_have_it_look_at_nothing_else() {
    const WAKES: usize = 5_000;
    let asked = Rc::new(Cell::new(0));
    // Each frame is alone, so that the run waits behind it.
    let batches = [1, 0].repeat(WAKES);
    let stall = Stall::new();
    let mut waiting = Waiting { moves: false, order: InputOrder::default(), times: Vec::new(), fired: 0, stall };
    let mut application = Flushed { until: Until(asked.clone(), batches.len()), flushes: 0 };
    let begun = Instant::now();
    ports::run([(1, Slow { batches, asked, stall: None })], &mut application, &mut waiting);
    let milliseconds = begun.elapsed().as_millis() as usize;
    let looks = application.flushes.saturating_sub(WAKES);
    assert!(looks <= milliseconds + 2, "{looks} looks within {milliseconds} ms");
}
