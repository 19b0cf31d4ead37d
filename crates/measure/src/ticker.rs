//! The run loop's own timers: a function that only wants to be called by a schedule, run as `weft run` runs any.

use crate::on_own_thread;
use crate::sweep::Sweep;
use crate::usage::Meter;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use weftwire_core::buffer::Pool;
use weftwire_core::inspect::Inspect;
use weftwire_core::{Arrival, Arrivals, Deadline, Frame, Function, LinkType, Offload, Outbox, Port, Time};
use weftwire_linux::LinuxError;
use weftwire_linux::pacer::{Place, Policy};
use weftwire_linux::port::{FramePort, PortCounters};
use weftwire_linux::recorder::Recorder;
use weftwire_linux::run_loop::{OpenPort, Run, RunOptions};
use weftwire_linux::signals::StopSignal;

/// The first call comes so long after the clock has started, in nanoseconds.
const START: i64 = 1_000_000;
/// How long the run goes on after the last one, for those that are late.
const REST: i64 = 5_000_000;

/// Runs a function whose timers are due at the times of the schedule (nanoseconds, rising), and returns how late each was called. Calls that
/// had not come 5 ms after the last time are missing at the end.
///
/// # Errors
/// The kernel has no descriptor left.
pub fn run(schedule: &[i64], precision: Policy, place: Place) -> Result<Sweep, LinuxError> {
    on_own_thread(|| {
        let failed = |error| LinuxError::system("make a port that is always silent", error);
        let (silent, _open) = io::pipe().map_err(failed)?;
        let last = schedule.last().copied().unwrap_or(0);
        let run = Run {
            succession: None,
            ports: vec![OpenPort {
                port: Port(1),
                name: "none".to_owned(),
                device: Box::new(OneFrame { silent, waiting: 1 }),
            }],
            application: &mut (),
            recorder: Recorder::new(),
            control: None,
            commands: None,
            flows: Vec::new(),
            stop: StopSignal::install()?,
            messages: Box::new(io::sink()),
            options: RunOptions {
                spin: precision == Policy::Spin,
                precision,
                duration: Some(Duration::from_nanos((START + last + REST).unsigned_abs())),
                ..RunOptions::default()
            },
        };
        let mut ticker = Ticker { schedule, late: Vec::with_capacity(schedule.len()) };
        let standing = place.take();
        let meter = Meter::start();
        run.run(&mut ticker)?;
        Ok(Sweep { released_ns: ticker.late, usage: meter.stop(), standing, ..Sweep::default() })
    })
}

/// Wants to be called by the schedule, and notes how late it is.
struct Ticker<'a> {
    schedule: &'a [i64],
    late: Vec<i64>,
}

impl Ticker<'_> {
    fn next(&self) -> Option<Time> {
        self.schedule.get(self.late.len()).map(|time| Time::from_nanoseconds(START + time))
    }
}

impl Function for Ticker<'_> {
    fn frames(&mut self, _: Time, arrivals: &mut Arrivals, _: &mut Outbox) {
        arrivals.clear();
    }

    fn fire(&mut self, now: Time, _: &mut Outbox) {
        while let Some(wanted) = self.next().filter(|wanted| *wanted <= now) {
            self.late.push(now.since(wanted));
        }
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        self.next().map(|at| Deadline { at, reason: "tick" })
    }
}

impl Inspect for Ticker<'_> {}

/// A port on which one frame has come, which starts the function's clock, and no other comes.
struct OneFrame {
    silent: PipeReader,
    waiting: usize,
}

impl FramePort for OneFrame {
    fn link(&self) -> LinkType {
        LinkType::Ethernet
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.silent.as_fd()
    }

    fn receive(&mut self, port: Port, pool: &mut Pool, arrivals: &mut Arrivals) -> io::Result<()> {
        for _ in 0..std::mem::take(&mut self.waiting) {
            let mut buffer = pool.take(60);
            buffer.resize(60);
            arrivals.push_back(Arrival { port, buffer, offload: Offload::default() });
        }
        Ok(())
    }

    fn send(&mut self, _: &[Frame<'_>]) {}

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}
