//! A subscription switch as a function, for every platform that runs functions.

use super::packets::Engine;
use crate::compiler::{CallId, Compiler};
use crate::diagram::SetId;
use crate::tables::Delta;
use std::collections::BTreeMap;
use weftwire_core::function::Ports;
use weftwire_core::inspect::{Counters, FlowDetail, FlowSummary, Inspect, InspectError};
use weftwire_core::{
    CallError, Deadline, DropReason, Endpoints, FlowId, Frame, Function, LinkType, Outbox, Port, Time, segments,
};

/// A switch that forwards by rules about messages. A packet never leaves by the port it came in.
///
/// It has no flows and no timers: windows are brought up to date by the messages that come. The application's actions
/// are counted, as [`Counters::rows`].
pub struct SubscriptionSwitch {
    engine: Engine,
    ports: Ports,
    now: Time,
    frames_in: u64,
    frames_out: u64,
    drops: BTreeMap<&'static str, u64>,
    /// The application's actions and how often each was taken.
    calls: Vec<(String, u64)>,
}

impl SubscriptionSwitch {
    /// A switch with these rules and ports, before any packet.
    pub fn new(compiler: &Compiler, ports: Ports) -> SubscriptionSwitch {
        let mut switch = SubscriptionSwitch {
            engine: Engine::new(compiler),
            ports,
            now: Time::ZERO,
            frames_in: 0,
            frames_out: 0,
            drops: BTreeMap::new(),
            calls: Vec::new(),
        };
        switch.name_calls(compiler, compiler.tables().leaves().values().copied());
        switch
    }

    /// Goes over to the rules that a compiler has now, between two packets: see [`Engine::update`].
    pub fn update(&mut self, compiler: &Compiler) {
        self.engine.update(compiler);
        self.name_calls(compiler, compiler.tables().leaves().values().copied());
    }

    /// Follows the latest change of the compiler's rules, between two packets: see [`Engine::apply`].
    pub fn apply(&mut self, compiler: &Compiler, delta: &Delta) {
        self.engine.apply(compiler, delta);
        self.name_calls(compiler, delta.leaves());
    }

    /// A call keeps its number as long as the compiler lives.
    fn name_calls(&mut self, compiler: &Compiler, leaves: impl Iterator<Item = SetId>) {
        for id in leaves.flat_map(|set| compiler.actions(set).calls) {
            let place = id.0 as usize;
            if self.calls.len() <= place {
                self.calls.resize(place + 1, (String::new(), 0));
            }
            if self.calls[place].0.is_empty() {
                self.calls[place].0 = compiler.call(id).to_string();
            }
        }
    }

    fn one(&mut self, port: Port, link: LinkType, frame: Frame<'_>, out: &mut Outbox) {
        let now = self.now;
        let now_ns = u64::try_from(now.nanoseconds()).unwrap_or(0);
        let SubscriptionSwitch { engine, ports, frames_out, drops, calls, .. } = self;
        let mut no_port = 0;
        let copy = |to: Port, copy: Frame<'_>| {
            if to == port {
                return;
            }
            if ports.link(to) == Some(link) {
                *frames_out += 1;
                out.send(now, to, copy.bytes, copy.offload);
            } else {
                no_port += 1;
            }
        };
        let call = |id: CallId| {
            if let Some((_, count)) = calls.get_mut(id.0 as usize) {
                *count += 1;
            }
        };
        let result = engine.frame(now_ns, link, frame, copy, call);
        if no_port > 0 {
            *drops.entry(DropReason::NoPort.name()).or_default() += no_port;
        }
        if let Err(reason) = result {
            *drops.entry(reason.name()).or_default() += 1;
        }
    }
}

impl Function for SubscriptionSwitch {
    fn frame(&mut self, now: Time, port: Port, frame: Frame<'_>, out: &mut Outbox) {
        self.now = self.now.max(now);
        self.frames_in += 1;
        let Some(link) = self.ports.link(port) else { return };
        if frame.offload.segmentation.is_none() {
            return self.one(port, link, frame, out);
        }
        // Messages are found in packets, not in what stands for many.
        match segments(link, frame) {
            Ok(packets) => {
                for packet in packets {
                    self.one(port, link, Frame::new(&packet), out);
                }
            }
            Err(reason) => *self.drops.entry(reason.name()).or_default() += 1,
        }
    }

    fn connect(&mut self, _: Time, _: &Endpoints, _: &mut Outbox) -> Result<FlowId, CallError> {
        Err(CallError::Unfit("a subscription switch opens no connections".into()))
    }

    fn write(&mut self, _: Time, flow: FlowId, _: &[u8], _: &mut Outbox) -> Result<usize, CallError> {
        Err(CallError::NoFlow(flow))
    }

    fn close(&mut self, _: Time, flow: FlowId, _: &mut Outbox) -> Result<(), CallError> {
        Err(CallError::NoFlow(flow))
    }

    fn fire(&mut self, now: Time, _: &mut Outbox) {
        self.now = self.now.max(now);
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        None
    }
}

impl Inspect for SubscriptionSwitch {
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
        let tally = self.engine.tally();
        let mut rows = vec![("messages".to_owned(), tally.messages), ("unmatched".to_owned(), tally.unmatched)];
        rows.extend(self.calls.iter().filter(|(name, _)| !name.is_empty()).cloned());
        Counters {
            frames_in: self.frames_in,
            frames_out: self.frames_out,
            rows,
            drops: self.drops.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect(),
            ..Counters::default()
        }
    }
}
