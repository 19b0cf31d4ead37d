//! Pacing on a real kernel: timers of a function in the run loop, and frames over a line. Nothing here judges how late anything is.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real clocks and sockets")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use weftwire_core::inspect::{Counters, FlowDetail, FlowSummary, Inspect, InspectError};
use weftwire_core::{CallError, Deadline, Endpoints, FlowId, Frame, Function, LinkType, Outbox, Port, Time};
use weftwire_linux::FramePort;
use weftwire_linux::application::Application;
use weftwire_linux::measure::line::{Line, NEAR};
use weftwire_linux::measure::{kernel, sweep};
use weftwire_linux::pacer::{Departures, Place, Policy, departures};
use weftwire_linux::port::PortCounters;
use weftwire_linux::recorder::Recorder;
use weftwire_linux::run_loop::{OpenPort, Run, RunOptions};
use weftwire_linux::signals::StopSignal;
use weftwire_testbed::skip_unless_root;

const POLICIES: [Policy; 3] = [Policy::Sleep, Policy::SleepSpin { margin: 100_000 }, Policy::Spin];

/// A function that wants to be called at these times, in rising order, and notes when it was.
struct Ticker {
    wanted: Vec<Time>,
    called: Vec<(Time, Time)>,
}

impl Function for Ticker {
    fn frame(&mut self, _: Time, _: Port, _: Frame<'_>, _: &mut Outbox) {}

    fn connect(&mut self, _: Time, _: &Endpoints, _: &mut Outbox) -> Result<FlowId, CallError> {
        Err(CallError::TableFull)
    }

    fn write(&mut self, _: Time, flow: FlowId, _: &[u8], _: &mut Outbox) -> Result<usize, CallError> {
        Err(CallError::NoFlow(flow))
    }

    fn close(&mut self, _: Time, flow: FlowId, _: &mut Outbox) -> Result<(), CallError> {
        Err(CallError::NoFlow(flow))
    }

    fn fire(&mut self, now: Time, _: &mut Outbox) {
        while let Some(wanted) = self.wanted.get(self.called.len()).filter(|wanted| **wanted <= now) {
            self.called.push((*wanted, now));
        }
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        let at = *self.wanted.get(self.called.len())?;
        Some(Deadline { at, reason: "tick" })
    }
}

impl Inspect for Ticker {
    fn flows(&self) -> Vec<FlowSummary> {
        Vec::new()
    }

    fn flow(&self, _: FlowId) -> Option<FlowDetail> {
        None
    }

    fn set_register(&mut self, flow: FlowId, _: &str, _: i64) -> Result<(), InspectError> {
        Err(InspectError::NoFlow(flow))
    }

    fn delete(&mut self, flow: FlowId) -> Result<(), InspectError> {
        Err(InspectError::NoFlow(flow))
    }

    fn counters(&self) -> Counters {
        Counters { drops: BTreeMap::new(), ..Counters::default() }
    }
}

/// A port on which one frame has come, which starts the function's clock.
struct OneFrame {
    file: File,
    waiting: usize,
}

impl FramePort for OneFrame {
    fn link(&self) -> LinkType {
        LinkType::Ethernet
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn receive(&mut self) -> io::Result<usize> {
        Ok(std::mem::take(&mut self.waiting))
    }

    fn frame(&self, _: usize) -> Frame<'_> {
        Frame::new(&[0; 60])
    }

    fn send(&mut self, _: &[Frame<'_>]) {}

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}

/// A descriptor that is never readable.
fn silent() -> File {
    let (reader, writer) = io::pipe().unwrap();
    // The writing end must outlive the run.
    std::mem::forget(writer);
    File::from(std::os::fd::OwnedFd::from(reader))
}

#[test]
fn timers_of_a_function_fire_once_in_order_and_never_early() {
    for precision in POLICIES {
        // 200 of them within 20 ms, some close together.
        let wanted: Vec<Time> =
            (1..=200).map(|tick| Time::from_nanoseconds(tick * 100_000 - tick % 3 * 90_000)).collect();
        let mut ticker = Ticker { wanted: wanted.clone(), called: Vec::new() };
        ticker.wanted.sort_unstable();
        let device = Box::new(OneFrame { file: silent(), waiting: 1 });
        let run = Run {
            ports: vec![OpenPort { port: Port(1), name: "fake".to_owned(), device }],
            application: Application::default(),
            recorder: Recorder::new(),
            control: None,
            stop: StopSignal::install().unwrap(),
            messages: Box::new(io::sink()),
            options: RunOptions {
                precision,
                spin: precision == Policy::Spin,
                duration: Some(Duration::from_millis(30)),
                ..RunOptions::default()
            },
        };
        run.run(&mut ticker).unwrap();
        let called: Vec<Time> = ticker.called.iter().map(|(wanted, _)| *wanted).collect();
        // A machine that others hold up may come to the end of the run before the last ones.
        assert!(!called.is_empty() && ticker.wanted.starts_with(&called), "{precision:?}");
        assert!(ticker.called.iter().all(|(wanted, at)| at >= wanted), "{precision:?}");
        assert!(ticker.called.is_sorted_by_key(|(_, at)| *at), "{precision:?}");
    }
}

#[test]
fn frames_leave_once_in_order_and_never_early() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::make().unwrap();
    let schedule: Vec<i64> = (0..500).map(|number| number * 20_000).collect();
    for policy in POLICIES {
        let place = Place { cpu: Some(0), priority: Some(5) };
        let sent = sweep::send(&line, &schedule, policy, place).unwrap();
        assert_eq!((sent.released.len(), sent.refused), (schedule.len(), 0), "{policy:?}");
        assert!(sent.released.iter().all(|late| *late >= 0), "{policy:?}");
        let times: Vec<i64> =
            sent.departed.iter().zip(&schedule).filter_map(|(late, at)| Some((*late)? + at)).collect();
        assert_eq!(times.len(), schedule.len(), "{policy:?}: every frame is seen to leave");
        assert!(times.is_sorted(), "{policy:?}");
        // The kernel's time stamps are of another clock, which may be told a little wrong from ours.
        assert!(times.iter().zip(&schedule).all(|(time, at)| *time > at - 20_000), "{policy:?}");
        assert_eq!((sent.standing.cpu, sent.standing.priority), (place.cpu, place.priority));
    }
}

#[test]
fn the_line_ignores_departure_times_until_it_has_a_fair_queue() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::make().unwrap();
    let found = || line.near.run(|| departures(NEAR)).unwrap().unwrap();
    assert_eq!(found(), Departures::Ignored { qdiscs: "noqueue".to_owned() });
    match line.set_fair_queue(true) {
        Ok(()) => assert!(matches!(found(), Departures::Honoured { .. }), "{:?}", found()),
        // Not every kernel has one.
        Err(reason) => assert!(!reason.is_empty()),
    }
}

#[test]
fn the_kernel_paces_a_connection() {
    let Some(_turn) = skip_unless_root(&[]) else { return };
    let line = Line::make().unwrap();
    line.set_single_segments(true).unwrap();
    let paced = kernel::paced(&line, 200_000, Duration::from_millis(100)).unwrap();
    assert!(!paced.gaps.is_empty() && paced.gaps.iter().all(|gap| *gap >= 0));
    assert!((1.0..1.01).contains(&paced.burst), "{}", paced.burst);
}
