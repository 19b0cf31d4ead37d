//! A function under watch.

use super::finding::{Finding, Invariant};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use weftwire_core::inspect::{Counters, FlowDetail, FlowSummary, Inspect};
use weftwire_core::order::Input;
use weftwire_core::{
    Arrivals, CallError, Change, Command, Connections, Deadline, Endpoints, FlowId, Formats, Frame, Function, Listen,
    Outbox, Output, Packet, Port, Ports, Time,
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
    /// What the latest input was told,
    told: Option<Time>,
    /// and its time.
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
    /// It wants to be called at a time that is over. The platform is not told, else it would call without end.
    stuck: bool,
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
            told: None,
            now: None,
            calls: 0,
            look_at: 0,
            flows: BTreeMap::new(),
            ended_up_to: 0,
            ended: BTreeSet::new(),
            opened: None,
            stuck: false,
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

    /// Before an input that is told `now`. Returns the time of the input before.
    fn begin(&mut self, input: Input, now: Time) -> Time {
        if self.told.is_some_and(|told| now < told) {
            self.find(Invariant::Simulator, format!("called with the time {now} s, which is over"));
        }
        self.told = self.told.max(Some(now));
        let before = self.now.unwrap_or(now);
        self.now = Some(self.function.input_time(input, now).max(before));
        self.calls += 1;
        before
    }

    /// After a call: its outputs from `start` on, when the call before was at `before`.
    fn finish(&mut self, before: Time, start: usize, out: &Outbox, wrong_input: bool, fired: bool) {
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
                    self.check_frame(*port, Frame { bytes, offload: *offload }, wrong_input);
                    let mut log = self.log.borrow_mut();
                    log.digest(&at.nanoseconds().to_le_bytes());
                    log.digest(bytes);
                }
                Output::Deliver { flow, bytes } => {
                    self.check_live(*flow, "delivers");
                    self.log.borrow_mut().digest(out.bytes(bytes));
                }
                Output::Released { flow, length } => self.check_released(*flow, *length as u64),
                Output::Notify { at, flow, notice, value } => {
                    self.check_live(*flow, "notifies");
                    let name = self.function.notice_name(*notice).to_owned();
                    let mut log = self.log.borrow_mut();
                    log.digest(&at.nanoseconds().to_le_bytes());
                    log.digest(name.as_bytes());
                    log.digest(&value.to_le_bytes());
                    let endpoints = self.flows.get(flow).and_then(|called| called.endpoints);
                    if let Some(endpoints) = endpoints.filter(|_| matches!(name.as_str(), "finished" | "failed")) {
                        log.claims.push(Claim { node: self.node, endpoints, name });
                    }
                }
                Output::Ended { flow } => {
                    self.end(*flow);
                    self.log.borrow_mut().digest(&flow.0.to_le_bytes());
                }
                Output::Opened { .. } | Output::Answered(_) | Output::Trace(_) => {}
            }
        }
        if out.is_full() {
            // It is called again when there is room, and what was due then is still to come.
            return;
        }
        self.check_deadline(now, fired);
        if self.calls >= self.look_at {
            let looked_at = self.look(now, fired);
            let pause = if self.calls < EAGER_CALLS { 1 } else { 16 };
            self.look_at = self.calls + pause.max(looked_at);
        }
    }

    /// Whether a frame on a port is a packet without fault.
    fn is_right(&self, port: Port, frame: Frame<'_>) -> bool {
        self.ports.link(port).is_some_and(|link| Packet::parse(link, frame, &self.formats).is_ok())
    }

    fn check_frame(&self, port: Port, frame: Frame<'_>, wrong_input: bool) {
        let Some(link) = self.ports.link(port) else {
            return self.find(Invariant::Frames, format!("sends out of port {port}, which it has not got"));
        };
        let Err(reason) = Packet::parse(link, frame, &self.formats) else { return };
        // What comes in wrong may go out wrong.
        if !wrong_input {
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
            return self
                .find(Invariant::Data, format!("releases {length} bytes of flow {flow}, to which none were written"));
        };
        called.released += length;
        if called.released > called.accepted {
            let text = format!("has released {} bytes of flow {flow}, of {} written", called.released, called.accepted);
            self.find(Invariant::Data, text);
        }
    }

    fn check_deadline(&mut self, now: Time, fired: bool) {
        let forgotten = self.function.next_deadline().filter(|next| next.at < now || fired && next.at == now);
        let text = forgotten.map(|next| format!("has forgotten `{}`, which was due at {} s", next.reason, next.at));
        self.stuck = text.is_some();
        if let Some(text) = text {
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
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        let wrong = arrivals.iter().any(|arrival| !self.is_right(arrival.port, arrival.frame()));
        // The simulator hands in frame by frame.
        let input = Input::Frame(arrivals.front().map_or(Port(0), |arrival| arrival.port));
        self.watch(input, now, out, wrong, |watch, out| watch.function.frames(now, arrivals, out));
    }

    fn control(&mut self, now: Time, command: Command, out: &mut Outbox) {
        let deleted = match command.change {
            Change::Delete { flow } | Change::Take { flow, .. } => Some(flow),
            _ => None,
        };
        let answered = self.watch(Input::Change, now, out, false, |watch, out| {
            let start = out.items().len();
            watch.function.control(now, command, out);
            out.items()[start..]
                .iter()
                .any(|output| matches!(output, Output::Answered(answer) if answer.result.is_ok()))
        });
        if let Some(flow) = deleted.filter(|_| answered) {
            self.end(flow);
        }
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        let before = self.begin(Input::Fire, now);
        let start = out.items().len();
        self.function.fire(now, out);
        self.finish(before, start, out, false, true);
    }

    fn input_time(&self, input: Input, now: Time) -> Time {
        self.function.input_time(input, now)
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        if self.stuck { None } else { self.function.next_deadline() }
    }

    fn connections(&mut self) -> Option<&mut dyn Connections> {
        self.function.connections()?;
        Some(self)
    }
}

impl Watch {
    /// An input, with what is looked at before and after it.
    fn watch<R>(
        &mut self,
        input: Input,
        now: Time,
        out: &mut Outbox,
        wrong_input: bool,
        hand_in: impl FnOnce(&mut Watch, &mut Outbox) -> R,
    ) -> R {
        let (before, start) = (self.begin(input, now), out.items().len());
        let result = hand_in(self, out);
        self.finish(before, start, out, wrong_input, false);
        result
    }

    /// A call of the application.
    fn call<R>(&mut self, now: Time, out: &mut Outbox, call: impl FnOnce(&mut Watch, &mut Outbox) -> R) -> R {
        self.watch(Input::Call, now, out, false, call)
    }

    fn inner(&mut self) -> Result<&mut dyn Connections, CallError> {
        self.function.connections().ok_or(CallError::NoConnections)
    }
}

impl Connections for Watch {
    fn connect(&mut self, now: Time, endpoints: &Endpoints, out: &mut Outbox) -> Result<FlowId, CallError> {
        self.call(now, out, |watch, out| {
            let flow = watch.inner()?.connect(now, endpoints, out)?;
            if watch.has_ended(flow) || watch.opened.is_some_and(|opened| opened >= flow) {
                watch.find(Invariant::FlowIds, format!("gives the id {flow} to a second flow"));
            }
            watch.opened = Some(flow);
            watch.flows.insert(flow, Called { endpoints: Some(*endpoints), accepted: 0, released: 0 });
            Ok(flow)
        })
    }

    fn write(&mut self, now: Time, flow: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError> {
        self.call(now, out, |watch, out| {
            let accepted = watch.inner()?.write(now, flow, bytes, out)?;
            if accepted > bytes.len() {
                watch.find(Invariant::Data, format!("accepts {accepted} bytes of {} on flow {flow}", bytes.len()));
            }
            let called = watch.flows.entry(flow).or_insert(Called { endpoints: None, accepted: 0, released: 0 });
            called.accepted += accepted as u64;
            Ok(accepted)
        })
    }

    fn close(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, out, |watch, out| watch.inner()?.close(now, flow, out))
    }

    fn abort(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, out, |watch, out| watch.inner()?.abort(now, flow, out))
    }

    fn listen(&mut self, now: Time, local: &Listen, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, out, |watch, out| watch.inner()?.listen(now, local, out))
    }

    fn unlisten(&mut self, now: Time, local: &Listen, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, out, |watch, out| watch.inner()?.unlisten(now, local, out))
    }

    fn accept(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, out, |watch, out| watch.inner()?.accept(now, flow, out))
    }

    fn consumed(&mut self, now: Time, flow: FlowId, length: usize, out: &mut Outbox) -> Result<(), CallError> {
        self.call(now, out, |watch, out| watch.inner()?.consumed(now, flow, length, out))
    }
}

impl Inspect for Watch {
    fn flows(&self) -> Vec<FlowSummary> {
        self.function.flows()
    }

    fn flow(&self, flow: FlowId) -> Option<FlowDetail> {
        self.function.flow(flow)
    }

    fn notice_name(&self, notice: u16) -> &str {
        self.function.notice_name(notice)
    }

    fn counters(&self) -> Counters {
        self.function.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_core::inspect::PendingTimer;
    use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
    use weftwire_core::{LinkType, MacAddress, Offload};

    /// What is wrong with the function below.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Defect {
        None,
        LeaksFlows,
        ForgetsTimer,
        HidesTimer,
        FiresWithoutFlows,
        ReusesId,
        DeliversAfterEnd,
        ReleasesTooMuch,
        SendsNowhere,
        SendsBadChecksum,
        SendsEarly,
    }

    /// Has one flow, with a timer due a second after each call.
    struct Planted {
        defect: Defect,
        timer: Option<Time>,
        open: bool,
    }

    const FLOW: FlowId = FlowId(1);

    impl Planted {
        fn work(&mut self, now: Time, out: &mut Outbox) {
            let mut frame =
                FrameBuilder::raw_ip().ipv4(&Ipv4Fields::default()).udp(1, 2).payload(b"data").finish().unwrap();
            let (mut port, mut at) = (Port(1), now);
            match self.defect {
                Defect::SendsNowhere => port = Port(9),
                Defect::SendsBadChecksum => frame[30] ^= 1,
                Defect::SendsEarly => at = now.after(-1),
                Defect::ReleasesTooMuch => out.push(Output::Released { flow: FLOW, length: 1000 }),
                Defect::DeliversAfterEnd => {
                    out.push(Output::Ended { flow: FLOW });
                    out.deliver(FLOW, b"late");
                }
                _ => {}
            }
            out.send(at, port, &frame, Offload::default());
            self.timer = Some(now.after(1_000_000_000));
        }
    }

    impl Function for Planted {
        fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
            while arrivals.pop_front().is_some() {
                self.work(now, out);
            }
        }

        fn fire(&mut self, now: Time, out: &mut Outbox) {
            if self.defect != Defect::ForgetsTimer && self.timer.is_some_and(|due| due <= now) {
                self.work(now, out);
            }
        }

        fn next_deadline(&self) -> Option<Deadline<'_>> {
            let shown = self.timer.filter(|_| self.defect != Defect::HidesTimer);
            shown.map(|at| Deadline { at, reason: "again" })
        }

        fn connections(&mut self) -> Option<&mut dyn Connections> {
            Some(self)
        }
    }

    impl Connections for Planted {
        fn connect(&mut self, _: Time, _: &Endpoints, _: &mut Outbox) -> Result<FlowId, CallError> {
            self.open = true;
            Ok(FLOW)
        }

        fn write(&mut self, now: Time, _: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError> {
            self.work(now, out);
            Ok(bytes.len())
        }

        fn close(&mut self, _: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
            self.open = false;
            if self.defect != Defect::FiresWithoutFlows {
                self.timer = None;
            }
            out.push(Output::Ended { flow });
            Ok(())
        }

        fn abort(&mut self, _: Time, flow: FlowId, _: &mut Outbox) -> Result<(), CallError> {
            Err(CallError::NoFlow(flow))
        }
    }

    impl Inspect for Planted {
        fn flows(&self) -> Vec<FlowSummary> {
            let (key, state) = (String::new(), String::new());
            let summary =
                FlowSummary { flow: FLOW, key, state, created: Time::ZERO, last_active: Time::ZERO, events: 0 };
            if self.open { vec![summary] } else { Vec::new() }
        }

        fn flow(&self, _: FlowId) -> Option<FlowDetail> {
            let timers = self.timer.map(|due| PendingTimer { name: "again".into(), due, payload: Vec::new() });
            let timers: Vec<_> = timers.into_iter().collect();
            let summary = self.flows().pop()?;
            let (registers, turns, packets) = (Vec::new(), Vec::new(), Vec::new());
            Some(FlowDetail { summary, registers, timers, turns, packets, counters: BTreeMap::new() })
        }

        fn counters(&self) -> Counters {
            let flows_peak = if self.defect == Defect::LeaksFlows { 5 } else { 1 };
            Counters { flows_live: self.open.into(), flows_peak, ..Counters::default() }
        }
    }

    /// Opens, writes, lets a timer fire twice and closes; what the watch found.
    fn found(defect: Defect) -> Vec<Invariant> {
        let log = Rc::new(RefCell::new(Log::default()));
        let ports = Ports::new([(Port(1), LinkType::Ip)]);
        let planted = Planted { defect, timer: None, open: false };
        let mut watch = Watch::new(Box::new(planted), NodeIndex(0), "node", &ports, 1, log.clone());
        let mut out = Outbox::new();
        let address = "10.0.0.1".parse().unwrap();
        let endpoints = Endpoints {
            protocol: 17,
            local_address: address,
            local_port: 1,
            remote_address: address,
            remote_port: 2,
            local_mac: MacAddress::UNSPECIFIED,
            remote_mac: MacAddress::UNSPECIFIED,
            vlan: None,
        };
        let at = |seconds: i64| Time::from_nanoseconds(seconds * 1_000_000_000);
        let flow = watch.connect(at(1), &endpoints, &mut out).unwrap();
        watch.write(at(1), flow, b"data", &mut out).unwrap();
        out.clear();
        for second in 2..4 {
            // As a platform does: only when asked to.
            if watch.next_deadline().is_some_and(|deadline| deadline.at <= at(second)) {
                watch.fire(at(second), &mut out);
            }
        }
        watch.close(at(3), flow, &mut out).unwrap();
        if defect == Defect::ReusesId {
            watch.connect(at(3), &endpoints, &mut out).unwrap();
        }
        drop(watch);
        let findings = log.take().findings;
        findings.iter().map(|finding| finding.invariant).collect::<BTreeSet<_>>().into_iter().collect()
    }

    #[test]
    fn each_defect_is_found_and_nothing_else() {
        let cases = [
            (Defect::None, vec![]),
            (Defect::LeaksFlows, vec![Invariant::Flows]),
            (Defect::ForgetsTimer, vec![Invariant::Timers]),
            (Defect::HidesTimer, vec![Invariant::Timers]),
            (Defect::FiresWithoutFlows, vec![Invariant::Timers]),
            (Defect::ReusesId, vec![Invariant::FlowIds]),
            (Defect::DeliversAfterEnd, vec![Invariant::FlowIds]),
            (Defect::ReleasesTooMuch, vec![Invariant::Data]),
            (Defect::SendsNowhere, vec![Invariant::Frames]),
            (Defect::SendsBadChecksum, vec![Invariant::Frames]),
            (Defect::SendsEarly, vec![Invariant::Timers]),
        ];
        for (defect, wanted) in cases {
            assert_eq!(found(defect), wanted, "{defect:?}");
        }
    }

    #[test]
    fn a_wrong_input_excuses_a_wrong_output() {
        let log = Rc::new(RefCell::new(Log::default()));
        let ports = Ports::new([(Port(1), LinkType::Ip)]);
        let planted = Planted { defect: Defect::SendsBadChecksum, timer: None, open: true };
        let mut watch = Watch::new(Box::new(planted), NodeIndex(0), "node", &ports, 1, log.clone());
        watch.frame(Time::ZERO, Port(1), Frame::new(b"wrong"), &mut Outbox::new());
        assert_eq!(log.borrow().findings, []);
    }
}
