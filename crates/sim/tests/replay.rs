//! The replay's order, ends and repeatability, seen by a function that only writes down what happens to it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use weftwire_core::inspect::{Counters, Inspect};
use weftwire_core::trace::TraceRecord;
use weftwire_core::{
    Arrivals, CallError, Connections, Deadline, Endpoints, FlowId, Frame, Function, LinkType, Offload, Outbox, Output,
    Port, Time,
};
use weftwire_sim::replay::{Captured, GRACE, Input, Plan, Sink, Stop, Summary, replay};

/// Writes down every call. A frame whose first byte is `t` sets a timer so many nanoseconds ahead as its second says,
/// `e` does so again each time it fires; every frame is sent on out of port 9.
#[derive(Default)]
struct Script {
    log: Vec<String>,
    timers: BTreeMap<Time, u64>,
    every: Option<i64>,
    /// Bytes of the application that are accepted and not yet released.
    held: usize,
    loops: u64,
}

const ROOM: usize = 4;

impl Function for Script {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        while let Some(arrival) = arrivals.pop_front() {
            let port = arrival.port;
            let frame = arrival.frame();
            self.log.push(format!("{} port {port} {}", now.nanoseconds(), String::from_utf8_lossy(frame.bytes)));
            let delay = i64::from(frame.bytes.get(1).copied().unwrap_or(b'0') - b'0');
            match frame.bytes.first() {
                Some(b't') => *self.timers.entry(now.after(delay)).or_default() += 1,
                Some(b'e') => {
                    self.every = Some(delay * 1_000_000_000);
                    *self.timers.entry(now.after(delay * 1_000_000_000)).or_default() += 1;
                }
                Some(b'r') => {
                    out.push(Output::Released { flow: FlowId(1), length: self.held });
                    self.held = 0;
                }
                Some(b'x') => out.push(Output::Ended { flow: FlowId(1) }),
                _ => {}
            }
            out.send(now, Port(9), frame.bytes, Offload::default());
        }
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        while let Some(entry) = self.timers.first_entry().filter(|entry| *entry.key() <= now) {
            let (at, count) = entry.remove_entry();
            self.log.push(format!("{} fire {count}", at.nanoseconds()));
            out.push(Output::Notify { at, flow: FlowId(1), notice: 0, value: 1 });
            if let Some(every) = self.every {
                *self.timers.entry(at.after(every)).or_default() += 1;
            }
        }
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        self.timers.first_key_value().map(|(at, _)| Deadline { at: *at, reason: "script" })
    }

    fn connections(&mut self) -> Option<&mut dyn Connections> {
        Some(self)
    }
}

impl Connections for Script {
    fn connect(&mut self, now: Time, endpoints: &Endpoints, _: &mut Outbox) -> Result<FlowId, CallError> {
        self.log.push(format!("{} connect {}", now.nanoseconds(), endpoints.local_port));
        if endpoints.local_port == 13 { Err(CallError::TableFull) } else { Ok(FlowId(1)) }
    }

    fn write(&mut self, now: Time, _: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError> {
        let accepted = bytes.len().min(ROOM - self.held);
        self.held += accepted;
        let text = String::from_utf8_lossy(&bytes[..accepted]).into_owned();
        self.log.push(format!("{} write {text}", now.nanoseconds()));
        out.deliver(FlowId(1), &bytes[..accepted]);
        Ok(accepted)
    }

    fn close(&mut self, now: Time, _: FlowId, _: &mut Outbox) -> Result<(), CallError> {
        self.log.push(format!("{} close", now.nanoseconds()));
        Ok(())
    }

    fn abort(&mut self, _: Time, flow: FlowId, _: &mut Outbox) -> Result<(), CallError> {
        Err(CallError::NoFlow(flow))
    }
}

impl Inspect for Script {
    fn counters(&self) -> Counters {
        Counters { drops: BTreeMap::from([("zero_time_loop".into(), self.loops)]), ..Counters::default() }
    }
}

/// Writes down what comes out.
#[derive(Default, PartialEq, Eq, Debug)]
struct Paper(Vec<String>);

impl Sink for Paper {
    fn arrival(&mut self, at: Time, port: Port, _: &Frame<'_>) -> std::io::Result<()> {
        self.0.push(format!("{} in {port}", at.nanoseconds()));
        Ok(())
    }

    fn departure(&mut self, at: Time, port: Port, bytes: &[u8], _: Offload) -> std::io::Result<()> {
        self.0.push(format!("{} out {port} {}", at.nanoseconds(), bytes.len()));
        Ok(())
    }

    fn deliver(&mut self, _: FlowId, bytes: &[u8]) -> std::io::Result<()> {
        self.0.push(format!("deliver {}", bytes.len()));
        Ok(())
    }

    fn notice(&mut self, at: Time, _: FlowId, name: &str, _: i64) -> std::io::Result<()> {
        self.0.push(format!("{} {name}", at.nanoseconds()));
        Ok(())
    }

    fn trace(&mut self, _: &TraceRecord) -> std::io::Result<()> {
        Ok(())
    }
}

fn input(port: u16, frames: &[(i64, &str)]) -> Input {
    let frames = frames.iter().map(|(time, text)| Captured {
        time: Time::from_nanoseconds(*time),
        bytes: text.as_bytes().to_vec(),
        offload: Offload::default(),
    });
    Input { port: Port(port), link: LinkType::Ethernet, frames: frames.collect() }
}

fn run(plan: &Plan) -> (Vec<String>, Vec<String>, Summary) {
    let mut script = Script::default();
    let mut paper = Paper::default();
    let summary = replay(&mut script, plan, &mut paper, false, &mut |_| ControlFlow::Continue(())).expect("no I/O");
    (script.log, paper.0, summary)
}

#[test]
fn inputs_come_by_time_port_and_place_and_before_timers() {
    let plan = Plan {
        // Ports and frames are given out of order; captures start at 1,000.
        inputs: vec![input(2, &[(1005, "c"), (1005, "d")]), input(1, &[(1005, "b"), (1000, "t5")])],
        connects: vec!["10.0.0.1:7-10.0.0.2:8@5ns".parse().unwrap(), "10.0.0.1:9-10.0.0.2:8".parse().unwrap()],
        ..Plan::default()
    };
    let (log, paper, summary) = run(&plan);
    let wanted = ["0 connect 9", "0 port 1 t5", "5 connect 7", "5 port 1 b", "5 port 2 c", "5 port 2 d", "5 fire 1"];
    assert_eq!(log, wanted);
    assert_eq!(paper[..2], ["1000 in 1", "1000 out 9 2"], "captures keep their own time");
    assert_eq!(
        (summary.stop, summary.base, summary.end.nanoseconds()),
        (Stop::Finished, Time::from_nanoseconds(1000), 5)
    );
}

#[test]
fn the_same_plan_gives_the_same_outputs() {
    let plan = Plan {
        inputs: vec![input(1, &[(3, "t9"), (4, "e1"), (9, "a")]), input(2, &[(4, "t0"), (3, "b")])],
        until: Some(Time::from_nanoseconds(4_000_000_000)),
        ..Plan::default()
    };
    assert_eq!(run(&plan), run(&plan));
}

#[test]
fn the_end_is_inclusive_and_said() {
    let mut plan = Plan {
        inputs: vec![input(1, &[(0, "t5"), (9, "late")])],
        until: Some(Time::from_nanoseconds(5)),
        ..Plan::default()
    };
    let (log, _, summary) = run(&plan);
    assert_eq!(log, ["0 port 1 t5", "5 fire 1"]);
    assert_eq!((summary.stop, summary.left_out, summary.end.nanoseconds()), (Stop::Until, 1, 5));
    // Time passes also where nothing happens.
    plan.until = Some(Time::from_nanoseconds(8));
    assert_eq!((run(&plan).2.stop, run(&plan).2.end.nanoseconds()), (Stop::Until, 8));
    plan.until = Some(Time::from_nanoseconds(4));
    assert_eq!(run(&plan).0, ["0 port 1 t5"]);
    plan.until = Some(Time::from_nanoseconds(9));
    assert_eq!(run(&plan).2.stop, Stop::Finished);
}

#[test]
fn timers_without_end_stop_after_the_grace() {
    let (log, _, summary) = run(&Plan { inputs: vec![input(1, &[(0, "e3")])], ..Plan::default() });
    assert_eq!(summary.stop, Stop::Grace);
    assert_eq!((summary.end.nanoseconds(), log.len()), (GRACE, 4), "{log:?}");
}

#[test]
fn data_is_offered_as_room_appears_and_then_closed() {
    let plan = Plan {
        inputs: vec![input(1, &[(0, "a"), (3, "r"), (6, "r")])],
        connects: vec!["10.0.0.1:7-10.0.0.2:8@1ns".parse().unwrap()],
        send: Some(b"abcdefghij".to_vec()),
        ..Plan::default()
    };
    let (log, _, summary) = run(&plan);
    let calls: Vec<&String> = log.iter().filter(|line| !line.contains("port")).collect();
    assert_eq!(calls, ["1 connect 7", "1 write abcd", "3 write efgh", "6 write ij", "6 close"]);
    assert_eq!((summary.sent, summary.errors.len()), (10, 0));
}

#[test]
fn unsent_data_and_refused_connects_are_errors() {
    let plan = Plan {
        inputs: vec![input(1, &[(0, "a"), (3, "x"), (6, "r")])],
        connects: vec!["10.0.0.1:7-10.0.0.2:8@1ns".parse().unwrap(), "10.0.0.1:13-10.0.0.2:8@2ns".parse().unwrap()],
        send: Some(b"abcdef".to_vec()),
        ..Plan::default()
    };
    let errors = run(&plan).2.errors;
    let wanted = [
        "connect 10.0.0.1:13-10.0.0.2:8 at 0.000000002: the flow table is full",
        "2 bytes of the application were not sent",
    ];
    assert_eq!(errors, wanted);
}

#[test]
fn zero_time_loops_are_errors() {
    let mut script = Script { loops: 2, ..Script::default() };
    let summary = replay(&mut script, &Plan::default(), &mut Paper::default(), true, &mut |_| ControlFlow::Break(()));
    assert_eq!(summary.expect("no I/O").errors, ["2 flows were deleted because of a zero-time loop"]);
}

#[test]
fn a_replay_can_be_interrupted() {
    let frames: Vec<(i64, &str)> = (0..10_000).map(|time| (time, "a")).collect();
    let plan = Plan { inputs: vec![input(1, &frames)], ..Plan::default() };
    let mut script = Script::default();
    let summary = replay(&mut script, &plan, &mut Paper::default(), false, &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!(summary.stop, Stop::Interrupted);
    assert_eq!(summary.left_out + script.log.len(), 10_000);
    assert!(script.log.len() < 5_000);
}
