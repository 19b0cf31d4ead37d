//! Samples: registers shown at regular times (semantics, rule D2).

use crate::flow_table::FlowTable;
use crate::program::Program;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_core::{FlowId, Outbox, Output, Time};
use weftwire_image::Sample;

/// When which sample of which flow is due.
#[derive(Debug)]
pub struct Samples {
    samples: Vec<Sample>,
    /// By time, at one instant by flow id, of one flow in the image's order.
    due: BTreeSet<(Time, FlowId, usize)>,
    /// The same by flow, to find them when it ends.
    by_flow: BTreeSet<(FlowId, usize, Time)>,
}

impl Samples {
    /// Of these registers.
    pub fn new(samples: &[Sample]) -> Samples {
        Samples { samples: samples.to_vec(), due: BTreeSet::new(), by_flow: BTreeSet::new() }
    }

    /// The same samples, of registers that are elsewhere now.
    pub fn rename(&mut self, samples: &[Sample]) {
        self.samples = samples.to_vec();
    }

    /// A flow begins.
    pub fn begin(&mut self, flow: FlowId, created: Time) {
        for number in 0..self.samples.len() {
            self.schedule(flow, number, created);
        }
    }

    /// A flow ends.
    pub fn end(&mut self, flow: FlowId) {
        let ended: Vec<(FlowId, usize, Time)> = self.by_flow.range(all_of(flow)).copied().collect();
        for entry in ended {
            self.by_flow.remove(&entry);
            self.due.remove(&(entry.2, entry.0, entry.1));
        }
    }

    /// When each sample of a flow is due next; at the end of time if it is not shown again.
    pub fn of(&self, flow: FlowId) -> Vec<Time> {
        let mut next = vec![Time::MAX; self.samples.len()];
        for &(_, number, at) in self.by_flow.range(all_of(flow)) {
            next[number] = at;
        }
        next
    }

    /// A flow that has begun elsewhere: when each of its samples is due next, which is not before `now`.
    pub fn go_on(&mut self, flow: FlowId, next: impl Iterator<Item = Time>, now: Time) {
        for (number, at) in next.enumerate() {
            let interval = self.samples[number].interval;
            let missed = match now.since(at) {
                0.. => now.since(at).saturating_add(interval - 1) / interval,
                _ => 0,
            };
            let at = at.after(missed.saturating_mul(interval));
            self.due.insert((at, flow, number));
            self.by_flow.insert((flow, number, at));
        }
    }

    /// When the next sample is due.
    pub fn next(&self) -> Option<Time> {
        self.due.first().map(|(at, _, _)| *at)
    }

    /// Shows the next sample.
    pub fn show(&mut self, program: &Program, table: &FlowTable, out: &mut Outbox) {
        let Some((at, flow, number)) = self.due.pop_first() else { return };
        self.by_flow.remove(&(flow, number, at));
        self.schedule(flow, number, at);
        let Some(instance) = table.get(flow).filter(|_| out.wants_trace()) else { return };
        let register = usize::from(self.samples[number].register);
        let name = &program.image.registers[register].name;
        let state = program.state_name(instance.state);
        out.push(Output::Trace(Box::new(TraceRecord {
            time: at,
            flow,
            kind: TraceKind::Sample,
            state: state.into(),
            event: name.clone(),
            row: None,
            line: None,
            source: None,
            next: state.into(),
            actions: Vec::new(),
            registers: vec![(name.clone(), instance.registers[register])],
        })));
    }

    /// Schedules the next sample; there is none at the end of time.
    fn schedule(&mut self, flow: FlowId, number: usize, last: Time) {
        let at = last.after(self.samples[number].interval);
        if at > last {
            self.due.insert((at, flow, number));
            self.by_flow.insert((flow, number, at));
        }
    }
}

/// All entries of a flow.
fn all_of(flow: FlowId) -> RangeInclusive<(FlowId, usize, Time)> {
    (flow, 0, Time::from_nanoseconds(i64::MIN))..=(flow, usize::MAX, Time::MAX)
}
