//! A function that copies frames between ports 1 and 2, with one flow to look at.

use std::collections::BTreeMap;
use weftwire_core::inspect::{Counters, FlowDetail, FlowSummary, Inspect, InspectError, RegisterValue};
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_core::{CallError, Deadline, Endpoints, FlowId, Frame, Function, Outbox, Output, Port, Time};

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
                    next: "forward".into(),
                    actions: Vec::new(),
                    registers: Vec::new(),
                };
                out.push(Output::Trace(Box::new(record(TraceKind::Event))));
                out.push(Output::Trace(Box::new(record(TraceKind::Snapshot))));
            }
        }
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
        Some(FlowDetail { summary, registers, timers: Vec::new(), packets: Vec::new(), counters: BTreeMap::new() })
    }

    fn set_register(&mut self, flow: FlowId, register: &str, value: i64) -> Result<(), InspectError> {
        match (&mut self.limit, flow, register) {
            (Some(limit), FlowId(1), "limit") => {
                *limit = value;
                Ok(())
            }
            (Some(_), FlowId(1), name) => Err(InspectError::NoRegister { name: name.into(), known: "limit".into() }),
            _ => Err(InspectError::NoFlow(flow)),
        }
    }

    fn delete(&mut self, flow: FlowId) -> Result<(), InspectError> {
        self.limit.take().map(drop).ok_or(InspectError::NoFlow(flow))
    }

    fn counters(&self) -> Counters {
        self.counters.clone()
    }
}
