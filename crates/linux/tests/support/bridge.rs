//! A function that copies frames between ports 1 and 2, with one flow to look at.

use std::collections::BTreeMap;
use weftwire_core::control::{Answer, Done};
use weftwire_core::inspect::{Counters, FlowDetail, FlowSummary, Inspect, RegisterValue};
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_core::{Arrivals, Change, Command, ControlError, Deadline, FlowId, Function, Outbox, Output, Port, Time};

/// Bridges ports 1 and 2. Its one flow, number 1, has a register `limit`.
pub struct Bridge {
    counters: Counters,
    limit: Option<i64>,
}

impl Bridge {
    pub fn new() -> Bridge {
        Bridge { counters: Counters::default(), limit: Some(7) }
    }
}

impl Function for Bridge {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        while let Some(arrival) = arrivals.pop_front() {
            let port = arrival.port;
            let frame = arrival.frame();
            self.counters.frames_in += 1;
            self.counters.frames_out += 1;
            out.send(now, Port(3 - port.0), frame.bytes, frame.offload);
            if out.wants_trace() {
                let record = |kind| TraceRecord {
                    time: now,
                    flow: FlowId(1),
                    kind,
                    state: "forward".into(),
                    event: "packet".into(),
                    row: None,
                    line: None,
                    source: None,
                    next: "forward".into(),
                    actions: Vec::new(),
                    registers: Vec::new(),
                };
                out.push(Output::Trace(Box::new(record(TraceKind::Event))));
                out.push(Output::Trace(Box::new(record(TraceKind::Snapshot))));
            }
        }
    }

    fn control(&mut self, now: Time, command: Command, out: &mut Outbox) {
        let result = match (command.change, &mut self.limit) {
            (Change::SetRegister { flow: FlowId(1), register, value }, Some(limit)) if register == "limit" => {
                *limit = value;
                Ok(Done::Done)
            }
            (Change::SetRegister { flow: FlowId(1), register, .. }, Some(_)) => {
                Err(ControlError::NoRegister { name: register, known: "limit".into() })
            }
            (Change::Delete { flow }, limit) => limit.take().map(|_| Done::Done).ok_or(ControlError::NoFlow(flow)),
            (Change::SetRegister { flow, .. }, _) => Err(ControlError::NoFlow(flow)),
            (other, _) => Err(ControlError::Unsupported(other.subject())),
        };
        out.answer(Answer { number: command.number, at: now, result }, None);
    }

    fn fire(&mut self, _: Time, _: &mut Outbox) {}

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        None
    }
}

impl Inspect for Bridge {
    fn flows(&self) -> Vec<FlowSummary> {
        self.flow(FlowId(1)).map(|detail| detail.summary).into_iter().collect()
    }

    fn flow(&self, flow: FlowId) -> Option<FlowDetail> {
        let value = self.limit.filter(|_| flow == FlowId(1))?;
        let summary = FlowSummary {
            flow,
            key: "1 <-> 2".into(),
            state: "forward".into(),
            created: Time::ZERO,
            last_active: Time::ZERO,
            events: self.counters.frames_in,
        };
        let registers = vec![RegisterValue { name: "limit".into(), value, text: value.to_string() }];
        Some(FlowDetail {
            summary,
            registers,
            timers: Vec::new(),
            turns: Vec::new(),
            packets: Vec::new(),
            counters: BTreeMap::new(),
        })
    }

    fn counters(&self) -> Counters {
        self.counters.clone()
    }
}
