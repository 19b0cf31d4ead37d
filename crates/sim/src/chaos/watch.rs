//! A function under watch.

use super::judge::{Finding, Invariant};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use weftwire_core::function::Ports;
use weftwire_core::inspect::{Counters, FlowDetail, FlowSummary, Inspect, InspectError};
use weftwire_core::{
    CallError, Deadline, Endpoints, FlowId, Formats, Frame, Function, Outbox, Output, Packet, Port, Time,
};
use weftwire_network::model::NodeIndex;

/// Most findings that are kept of one run; the first ones tell the cause.
const MOST_FINDINGS: usize = 20;

/// So many calls are followed by a look at all flows; later ones only now and then, as that takes long.
const EAGER_CALLS: u64 = 256;

/// What the functions of one run did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Log {
    /// What they did wrong, the first of it.
    pub findings: Vec<Finding>,
    /// What they told their applications.
    pub claims: Vec<Claim>,
    /// Digest of everything that they put out.
    pub digest: u64,
}

impl Log {
    /// Keeps a finding, unless there are many already.
    pub fn find(&mut self, invariant: Invariant, text: String) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(Finding { invariant, text });
        }
    }

    /// Takes bytes into the digest (FNV-1a, eight bytes at a time).
    fn digest(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.digest = (self.digest ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.digest = self.digest.rotate_left(29) ^ bytes.len() as u64;
    }
}

/// A notice `finished` or `failed` to the application that opened a flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// Where the application is.
    pub node: NodeIndex,
    /// Its flow.
    pub endpoints: Endpoints,
    /// The notice.
    pub name: String,
}

/// Passes every call to a function and checks what it does: time, deadlines, frames, flow ids, the size of its table. What is wrong
/// goes to the [`Log`].
pub struct Watch {
    function: Box<dyn Function>,
    node: NodeIndex,
    name: String,
    ports: Ports,
    most_flows: u64,
    formats: Formats,
    log: Rc<RefCell<Log>>,
    now: Option<Time>,
    calls: u64,
    /// At which call all flows are looked at next.
    look_at: u64,
    /// Flows that the application has called for.
    flows: BTreeMap<FlowId, Called>,
    /// Ids up to this one have all ended,
    ended_up_to: u64,
    /// and these above it.
    ended: BTreeSet<u64>,
    opened: Option<FlowId>,
}

/// What the application did on a flow.
struct Called {
    endpoints: Option<Endpoints>,
    accepted: u64,
    released: u64,
}

impl Watch {
    /// Watches the function of a node. `name` is the node's; the table may hold `most_flows` flows.
    pub fn new(
        function: Box<dyn Function>,
        node: NodeIndex,
        name: &str,
        ports: &Ports,
        most_flows: u64,
        log: Rc<RefCell<Log>>,
    ) -> Watch {
        Watch {
            function,
            node,
            name: name.to_owned(),
            ports: ports.clone(),
            most_flows,
            formats: Formats::default(),
            log,
            now: None,
            calls: 0,
            look_at: 0,
            flows: BTreeMap::new(),
            ended_up_to: 0,
            ended: BTreeSet::new(),
            opened: None,
        }
    }

    fn find(&self, invariant: Invariant, text: impl AsRef<str>) {
        let when = self.now.map(|now| format!(" at {now} s")).unwrap_or_default();
        self.log.borrow_mut().find(invariant, format!("{}{when}: {}", self.name, text.as_ref()));
    }

    fn has_ended(&self, flow: FlowId) -> bool {
        flow.0 <= self.ended_up_to || self.ended.contains(&flow.0)
    }

    fn end(&mut self, flow: FlowId) {
        if self.has_ended(flow) {
            self.find(Invariant::FlowIds, format!("flow {flow} ended twice"));
        }
        self.flows.remove(&flow);
        self.ended.insert(flow.0);
        while self.ended.remove(&(self.ended_up_to + 1)) {
            self.ended_up_to += 1;
        }
    }

    /// Before a call at `now`. Returns the time of the call before.
    fn begin(&mut self, now: Time) -> Time {
        let before = self.now.unwrap_or(now);
        if now < before {
            self.find(Invariant::Simulator, format!("called with the time {now} s, which is over"));
        }
        self.now = Some(now.max(before));
        self.calls += 1;
        before.min(now)
    }

    /// After a call: its outputs from `start` on, when the call before was at `before`.
    fn finish(&mut self, before: Time, start: usize, out: &Outbox, inputs: &[(Port, Frame<'_>)], fired: bool) {
        let now = self.now.unwrap_or(before);
        let mut latest = before;
        for output in &out.items()[start..] {
            match output {
                Output::Send { at, port, bytes, offload } => {
                    if *at < latest || *at > now {
                        let range = format!("{latest} s to {now} s");
                        self.find(Invariant::Timers, format!("sends with the time {at} s; possible is {range}"));
                    }
                    latest = latest.max(*at);
                    let bytes = out.bytes(bytes);
                    self.check_frame(*port, Frame { bytes, offload: *offload }, inputs);
                    let mut log = self.log.borrow_mut();
                    log.digest(&at.nanoseconds().to_le_bytes());
                    log.digest(bytes);
                }
                Output::Deliver { flow, bytes } => {
                    self.check_live(*flow, "delivers");
                    self.log.borrow_mut().digest(out.bytes(bytes));
                }
                Output::Released { flow, length } => self.check_released(*flow, *length as u64),
                Output::Notify { at, flow, name, value } => {
                    self.check_live(*flow, "notifies");
                    let mut log = self.log.borrow_mut();
                    log.digest(&at.nanoseconds().to_le_bytes());
                    log.digest(name.as_bytes());
                    log.digest(&value.to_le_bytes());
                    let endpoints = self.flows.get(flow).and_then(|called| called.endpoints);
                    if let Some(endpoints) = endpoints.filter(|_| matches!(name.as_str(), "finished" | "failed")) {
                        log.claims.push(Claim { node: self.node, endpoints, name: name.clone() });
                    }
                }
                Output::Ended { flow } => {
                    self.end(*flow);
                    self.log.borrow_mut().digest(&flow.0.to_le_bytes());
                }
                Output::Trace(_) => {}
            }
        }
        self.check_deadline(now, fired);
        if self.calls >= self.look_at {
            let looked_at = self.look(now, fired);
            let pause = if self.calls < EAGER_CALLS { 1 } else { 16 };
            self.look_at = self.calls + pause.max(looked_at);
        }
    }

    fn check_frame(&self, port: Port, frame: Frame<'_>, inputs: &[(Port, Frame<'_>)]) {
        let Some(link) = self.ports.link(port) else {
            return self.find(Invariant::Frames, format!("sends out of port {port}, which it has not got"));
        };
        let Err(reason) = Packet::parse(link, frame, &self.formats) else { return };
        // What comes in wrong may go out wrong.
        let excused = inputs.iter().any(|(port, input)| match self.ports.link(*port) {
            Some(link) => Packet::parse(link, *input, &self.formats).is_err(),
            None => true,
        });
        if !excused {
            let text = format!("sends a frame of {} bytes that is wrong: {}", frame.bytes.len(), reason.name());
            self.find(Invariant::Frames, text);
        }
    }

    fn check_live(&self, flow: FlowId, verb: &str) {
        if self.has_ended(flow) {
            self.find(Invariant::FlowIds, format!("{verb} on flow {flow}, which has ended"));
        }
    }

    fn check_released(&mut self, flow: FlowId, length: u64) {
        self.check_live(flow, "releases");
        let Some(called) = self.flows.get_mut(&flow) else {
            return self.find(Invariant::Data, format!("releases {length} bytes of flow {flow}, to which none were written"));
        };
        called.released += length;
        if called.released > called.accepted {
            let text = format!("has released {} bytes of flow {flow}, of {} written", called.released, called.accepted);
            self.find(Invariant::Data, text);
        }
    }

    fn check_deadline(&self, now: Time, fired: bool) {
        let Some(deadline) = self.function.next_deadline() else { return };
        if deadline.at < now || fired && deadline.at == now {
            let text = format!("has forgotten `{}`, which was due at {} s", deadline.reason, deadline.at);
            self.find(Invariant::Timers, text);
        }
    }

    /// Looks at the table and all flows. Returns how many there are.
    fn look(&self, now: Time, fired: bool) -> u64 {
        let counters = self.function.counters();
        let (live, peak, most) = (counters.flows_live, counters.flows_peak, self.most_flows);
        if live > most || peak > most {
            self.find(Invariant::Flows, format!("has {live} flows and had {peak}; its limit is {most}"));
        }
        let flows = self.function.flows();
        if flows.len() as u64 != live {
            self.find(Invariant::Flows, format!("counts {live} flows and shows {}", flows.len()));
        }
        let deadline = self.function.next_deadline().map(|deadline| deadline.at);
        if let (Some(at), true) = (deadline, flows.is_empty()) {
            self.find(Invariant::Timers, format!("has no flows and wants to be called at {at} s"));
        }
        for summary in &flows {
            self.check_live(summary.flow, "has a state");
            let Some(detail) = self.function.flow(summary.flow) else {
                self.find(Invariant::Flows, format!("shows flow {} and does not know it", summary.flow));
                continue;
            };
            for timer in &detail.timers {
                let forgotten = timer.due < now || fired && timer.due == now;
                if forgotten || deadline.is_none_or(|deadline| deadline > timer.due) {
                    let wanted = deadline.map_or("no call".into(), |at| format!("to be called at {at} s"));
                    let (name, due, flow) = (&timer.name, timer.due, summary.flow);
                    let text = format!("timer `{name}` of flow {flow} is due at {due} s, and it wants {wanted}");
                    self.find(Invariant::Timers, text);
                }
            }
        }
        flows.len() as u64
    }
}

/// The last look, when the run ends or the node is restarted.
impl Drop for Watch {
    fn drop(&mut self) {
        if let (Some(now), false) = (self.now, std::thread::panicking()) {
            self.look(now, false);
        }
    }
}

impl Function for Watch {
    fn frame(&mut self, now: Time, port: Port, frame: Frame<'_>, out: &mut Outbox) {
        let (before, start) = (self.begin(now), out.items().len());
        self.function.frame(now, port, frame, out);
        self.finish(before, start, out, &[(port, frame)], false);
    }

    fn frames(&mut self, now: Time, batch: &[(Port, Frame<'_>)], out: &mut Outbox) {
        let (before, start) = (self.begin(now), out.items().len());
        self.function.frames(now, batch, out);
        self.finish(before, start, out, batch, false);
    }

    fn connect(&mut self, now: Time, endpoints: &Endpoints, out: &mut Outbox) -> Result<FlowId, CallError> {
        let (before, start) = (self.begin(now), out.items().len());
        let result = self.function.connect(now, endpoints, out);
        if let Ok(flow) = result {
            if self.has_ended(flow) || self.opened.is_some_and(|opened| opened >= flow) {
                self.find(Invariant::FlowIds, format!("gives the id {flow} to a second flow"));
            }
            self.opened = Some(flow);
            self.flows.insert(flow, Called { endpoints: Some(*endpoints), accepted: 0, released: 0 });
        }
        self.finish(before, start, out, &[], false);
        result
    }

    fn write(&mut self, now: Time, flow: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError> {
        let (before, start) = (self.begin(now), out.items().len());
        let result = self.function.write(now, flow, bytes, out);
        if let Ok(accepted) = result {
            if accepted > bytes.len() {
                self.find(Invariant::Data, format!("accepts {accepted} bytes of {} on flow {flow}", bytes.len()));
            }
            let called = self.flows.entry(flow).or_insert(Called { endpoints: None, accepted: 0, released: 0 });
            called.accepted += accepted as u64;
        }
        self.finish(before, start, out, &[], false);
        result
    }

    fn close(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        let (before, start) = (self.begin(now), out.items().len());
        let result = self.function.close(now, flow, out);
        self.finish(before, start, out, &[], false);
        result
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        let (before, start) = (self.begin(now), out.items().len());
        self.function.fire(now, out);
        self.finish(before, start, out, &[], true);
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        self.function.next_deadline()
    }
}

impl Inspect for Watch {
    fn flows(&self) -> Vec<FlowSummary> {
        self.function.flows()
    }

    fn flow(&self, flow: FlowId) -> Option<FlowDetail> {
        self.function.flow(flow)
    }

    fn set_register(&mut self, flow: FlowId, register: &str, value: i64) -> Result<(), InspectError> {
        self.function.set_register(flow, register, value)
    }

    fn delete(&mut self, flow: FlowId) -> Result<(), InspectError> {
        self.function.delete(flow)?;
        self.end(flow);
        Ok(())
    }

    fn counters(&self) -> Counters {
        self.function.counters()
    }
}
