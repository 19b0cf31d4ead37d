//! A subscription switch as a function, for every platform that runs functions.

use crate::application::{Action, ActionError, Exit, Passing, Registry, Verdict};
use crate::packets::{Engine, Outlet, Tally};
use crate::rules::{Changed, RulesChange};
use crate::state::{RulesName, SwitchState, SwitchStateError};
use crate::whole;
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use weftwire_core::control::{Answer, Done};
use weftwire_core::inspect::{Counters, Inspect};
use weftwire_core::live::Clocks;
use weftwire_core::order::Input;
use weftwire_core::outbox::FrameNumber;
use weftwire_core::port::SegmentationKind;
use weftwire_core::{
    Arrival, Arrivals, Change, Command, ControlError, Deadline, DropReason, Frame, Function, LinkType, Offload, Outbox,
    Port, Ports, Segmentation, Time, segments,
};
use weftwire_subscribe::compiler::{CallId, Compiler};
use weftwire_subscribe::rules::Call;

/// A switch that forwards by rules about messages. A packet never leaves by the port it came in, but for what actions
/// answer.
///
/// It has no flows and no timers: windows are brought up to date by the messages that come. How often each of the
/// application's actions was taken is counted, as [`Counters::rows`].
pub struct SubscriptionSwitch {
    engine: Engine,
    /// Which rules these are, for states.
    rules: RulesName,
    ports: Ports,
    now: Time,
    frames_in: u64,
    frames_out: u64,
    drops: BTreeMap<Cow<'static, str>, u64>,
    /// What can be done; none: actions are counted only.
    registry: Option<Registry>,
    /// The application's actions, by number.
    calls: Vec<RunningCall>,
    /// Counts of actions that the rules before had, by their text.
    past_calls: BTreeMap<String, u64>,
    /// What actions count.
    notes: BTreeMap<Cow<'static, str>, u64>,
    /// TCP super-frames need not be cut.
    whole: bool,
}

/// An action of the application.
#[derive(Default)]
struct RunningCall {
    /// Its text in rules; empty: the number is none.
    text: String,
    count: u64,
    /// None: it is counted only.
    action: Option<Box<dyn Action>>,
}

impl SubscriptionSwitch {
    /// A switch with these rules and ports, before any packet. It counts the application's actions, and does nothing
    /// else for them.
    pub fn new(compiler: &Compiler, ports: Ports) -> SubscriptionSwitch {
        let mut switch = SubscriptionSwitch {
            engine: Engine::new(compiler),
            rules: RulesName::default(),
            ports,
            now: Time::ZERO,
            frames_in: 0,
            frames_out: 0,
            drops: BTreeMap::new(),
            registry: None,
            calls: Vec::new(),
            past_calls: BTreeMap::new(),
            notes: BTreeMap::new(),
            whole: false,
        };
        switch.begin(compiler);
        switch
    }

    /// A switch that carries the application's actions out. Rules that come later may have others of them.
    ///
    /// # Errors
    /// The formats declare an action that is not in the registry, or a rule gives one an argument that makes no sense.
    pub fn with_actions(
        compiler: &Compiler,
        ports: Ports,
        registry: Registry,
    ) -> Result<SubscriptionSwitch, ActionError> {
        registry.check_rules(compiler)?;
        let mut switch = SubscriptionSwitch::new(compiler, ports);
        switch.registry = Some(registry);
        switch.calls.clear();
        switch.begin(compiler);
        Ok(switch)
    }

    /// What its rules are called in [`Inspect::whole`].
    pub fn name_rules(&mut self, rules: RulesName) {
        self.rules = rules;
    }

    /// What its rules are called.
    pub fn rules_name(&self) -> RulesName {
        self.rules
    }

    /// Other ports than before.
    pub fn set_ports(&mut self, ports: Ports) {
        self.ports = ports;
    }

    /// Takes over a change of its rules that was made ready, between two packets, and leaves what it replaces there, to be freed
    /// elsewhere. Counts and windows go on.
    pub fn take(&mut self, change: &mut RulesChange) {
        match &mut change.tables {
            Changed::All(pipeline) => self.engine.swap(pipeline),
            Changed::Pieces(patch) => self.engine.take(patch),
        }
        self.name_calls(change.calls.iter().map(|(id, call)| (*id, call)));
        self.whole = change.whole;
    }

    /// Goes over to the rules, formats and actions of another switch, between two packets, and leaves the old ones there: to
    /// make the one and to free the other takes longer than packets may wait. Counts go on; windows and what actions
    /// remember start anew.
    pub fn replace(&mut self, other: &mut SubscriptionSwitch) {
        other.engine.count_from(self.engine.tally());
        std::mem::swap(&mut self.engine, &mut other.engine);
        std::mem::swap(&mut self.rules, &mut other.rules);
        std::mem::swap(&mut self.registry, &mut other.registry);
        std::mem::swap(&mut self.calls, &mut other.calls);
        std::mem::swap(&mut self.whole, &mut other.whole);
        for call in other.calls.iter().filter(|call| !call.text.is_empty()) {
            *self.past_calls.entry(call.text.clone()).or_default() += call.count;
        }
        for call in &mut self.calls {
            call.count = self.past_calls.remove(&call.text).unwrap_or(0);
        }
    }

    /// All that it knows besides its rules, which are these, and the ports that its up port stands for.
    pub fn snapshot(&self, rules: RulesName, up: &[Port]) -> SwitchState {
        let texts = |numbers: &BTreeMap<Cow<'static, str>, u64>| {
            numbers.iter().map(|(text, number)| (text.to_string(), *number)).collect::<BTreeMap<_, _>>()
        };
        let running = || self.calls.iter().filter(|call| !call.text.is_empty());
        let memory = |call: &RunningCall| Some((call.text.clone(), call.action.as_ref()?.memory()?));
        let mut calls = self.past_calls.clone();
        calls.extend(running().map(|call| (call.text.clone(), call.count)));
        let tally = self.engine.tally();
        SwitchState {
            rules,
            up: up.to_vec(),
            time: self.now,
            clocks: None,
            counts: [self.frames_in, self.frames_out, tally.messages, tally.unmatched],
            drops: texts(&self.drops),
            notes: texts(&self.notes),
            calls,
            memories: running().filter_map(memory).collect(),
            windows: self.engine.windows(),
        }
    }

    /// Goes on as a switch with these same rules would have that had this state.
    ///
    /// # Errors
    /// See [`SwitchStateError`]; nothing has changed then.
    pub fn restore(&mut self, state: &SwitchState, rules: RulesName) -> Result<(), SwitchStateError> {
        if state.rules != rules {
            return Err(SwitchStateError::OtherRules { state: state.rules.revision, here: rules.revision });
        }
        let known = |text: &String| {
            self.calls
                .iter()
                .any(|call| call.text == *text && call.action.as_ref().is_some_and(|it| it.memory().is_some()))
        };
        if let Some(unknown) = state.memories.keys().find(|text| !known(text)) {
            return Err(SwitchStateError::Unknown(format!("action `{unknown}` that remembers anything")));
        }
        let windows = self.engine.set_windows(state.windows.clone());
        windows.map_err(|unknown| SwitchStateError::Unknown(format!("window {unknown}")))?;
        let texts = |numbers: &BTreeMap<String, u64>| {
            numbers.iter().map(|(text, number)| (Cow::Owned(text.clone()), *number)).collect()
        };
        let [frames_in, frames_out, messages, unmatched] = state.counts;
        self.engine.count_from(Tally { messages, unmatched });
        (self.frames_in, self.frames_out, self.now) = (frames_in, frames_out, state.time);
        (self.drops, self.notes) = (texts(&state.drops), texts(&state.notes));
        self.past_calls = state.calls.clone();
        for call in self.calls.iter_mut().filter(|call| !call.text.is_empty()) {
            call.count = self.past_calls.remove(&call.text).unwrap_or(0);
            if let (Some(action), Some(memory)) = (&mut call.action, state.memories.get(&call.text)) {
                action.remember(*memory);
            }
        }
        Ok(())
    }

    /// Gets ready for the compiler's rules.
    fn begin(&mut self, compiler: &Compiler) {
        self.name_calls(compiler.calls().map(|id| (id, compiler.call(id))));
        self.whole = whole::alike(compiler, self.engine.pipeline().columns());
    }

    /// Gets ready for these actions. A call keeps its number as long as the compiler lives.
    fn name_calls<'a>(&mut self, calls: impl Iterator<Item = (CallId, &'a Call)>) {
        for (id, call) in calls {
            let place = id.0 as usize;
            if self.calls.len() <= place {
                self.calls.resize_with(place + 1, RunningCall::default);
            }
            let running = &mut self.calls[place];
            if running.text.is_empty() {
                running.text = call.to_string();
                running.count = self.past_calls.remove(&running.text).unwrap_or(0);
                // What cannot be done was refused before, or came with rules added since: then it is counted only.
                running.action = self.registry.as_ref().and_then(|registry| registry.action(call).ok());
            }
        }
    }

    fn one(&mut self, arrival: Arrival, link: LinkType, out: &mut Outbox) {
        let now = self.now;
        let now_ns = u64::try_from(now.nanoseconds()).unwrap_or(0);
        let SubscriptionSwitch { engine, ports, frames_out, drops, notes, calls, .. } = self;
        let sending = Sending { now, ports, out, frames_out, drops, notes };
        let frame = arrival.frame();
        let mut outlet =
            SwitchOutlet { port: arrival.port, link, whole: frame.bytes, whole_sent: None, sending, calls };
        let result = engine.frame_with_actions(now_ns, link, frame, &mut outlet);
        if let Err(reason) = result {
            outlet.sending.drop(reason.name());
        }
        match outlet.whole_sent {
            Some(number) => out.keep_promise(number, arrival.buffer),
            None => out.recycle(arrival.buffer),
        }
    }
}

/// Where packets go, and what is counted of them.
struct Sending<'a> {
    now: Time,
    ports: &'a Ports,
    out: &'a mut Outbox,
    frames_out: &'a mut u64,
    drops: &'a mut BTreeMap<Cow<'static, str>, u64>,
    notes: &'a mut BTreeMap<Cow<'static, str>, u64>,
}

impl Sending<'_> {
    fn drop(&mut self, reason: &'static str) {
        *self.drops.entry(reason.into()).or_default() += 1;
    }
}

impl Sending<'_> {
    /// Whether frames of this link type can leave by a port; counts them as sent, or dropped.
    fn may_send(&mut self, port: Port, link: LinkType) -> bool {
        let may = self.ports.link(port) == Some(link);
        if may {
            *self.frames_out += 1;
        } else {
            self.drop(DropReason::NoPort.name());
        }
        may
    }
}

impl Exit for Sending<'_> {
    fn send(&mut self, port: Port, link: LinkType, bytes: &[u8], offload: Offload) {
        if self.may_send(port, link) {
            self.out.send(self.now, port, bytes, offload);
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.notes.entry(what.into()).or_default() += 1;
    }
}

/// The way out of the switch for one packet.
struct SwitchOutlet<'a> {
    port: Port,
    link: LinkType,
    /// The frame as it came. Ports that get all of it share it.
    whole: &'a [u8],
    whole_sent: Option<FrameNumber>,
    sending: Sending<'a>,
    calls: &'a mut [RunningCall],
}

impl Outlet for SwitchOutlet<'_> {
    fn copy(&mut self, port: Port, frame: Frame<'_>) {
        if port == self.port {
            return;
        }
        if !std::ptr::eq(frame.bytes, self.whole) {
            return self.sending.send(port, self.link, frame.bytes, frame.offload);
        }
        if self.sending.may_send(port, self.link) {
            let (now, length, offload) = (self.sending.now, frame.bytes.len(), frame.offload);
            match self.whole_sent {
                Some(number) => self.sending.out.send_again(now, port, number, length, offload),
                None => self.whole_sent = Some(self.sending.out.promise(now, port, length, offload)),
            }
        }
    }

    fn act(
        &mut self,
        calls: &[CallId],
        messages: &[Range<usize>],
        frame: &mut Vec<u8>,
        offload: Offload,
    ) -> Option<Offload> {
        let SwitchOutlet { port, link, sending, calls: known, .. } = self;
        let now = sending.now;
        let mut passing = Passing { now, port: *port, link: *link, frame, offload, messages, exit: sending };
        for id in calls {
            let Some(call) = known.get_mut(id.0 as usize) else { continue };
            call.count += messages.len().max(1) as u64;
            let Some(action) = &mut call.action else { continue };
            match action.carry_out(&mut passing) {
                Verdict::Continue => {}
                Verdict::Done => return None,
                Verdict::Drop(reason) => {
                    sending.drop(reason);
                    return None;
                }
            }
        }
        Some(passing.offload)
    }
}

impl Function for SubscriptionSwitch {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        self.now = self.now.max(now);
        while !out.is_full()
            && let Some(arrival) = arrivals.pop_front()
        {
            self.arrive(arrival, out);
        }
    }

    /// Rules come as a prepared [`SubscriptionSwitch`]; see [`SubscriptionSwitch::replace`].
    fn control(&mut self, now: Time, mut command: Command, out: &mut Outbox) {
        self.now = self.now.max(now);
        let mut leftover: Option<Box<dyn Any + Send>> = None;
        let result = match &command.change {
            Change::Rules { .. } => match command.take_prepared::<SubscriptionSwitch>() {
                Some(mut prepared) => {
                    self.replace(&mut prepared);
                    leftover = Some(prepared);
                    Ok(Done::Done)
                }
                None => Err(ControlError::Unprepared),
            },
            Change::Port { port, change } => {
                self.ports.change(*port, *change);
                Ok(Done::Done)
            }
            other => Err(ControlError::Unsupported(other.subject())),
        };
        out.answer(Answer { number: command.number, at: self.now, result }, leftover);
    }

    fn fire(&mut self, now: Time, _: &mut Outbox) {
        self.now = self.now.max(now);
    }

    fn input_time(&self, _: Input, now: Time) -> Time {
        now.max(self.now)
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        None
    }
}

impl SubscriptionSwitch {
    fn arrive(&mut self, arrival: Arrival, out: &mut Outbox) {
        self.frames_in += 1;
        let Some(link) = self.ports.link(arrival.port) else { return out.recycle(arrival.buffer) };
        let is_tcp = |cut: Segmentation| !matches!(cut.kind, SegmentationKind::Udp);
        if arrival.offload.segmentation.is_none_or(|cut| self.whole && is_tcp(cut)) {
            return self.one(arrival, link, out);
        }
        // Messages are found in packets, not in what stands for many.
        match segments(link, arrival.frame()) {
            Ok(packets) => {
                for buffer in packets {
                    self.one(Arrival { port: arrival.port, buffer, offload: Offload::default() }, link, out);
                }
            }
            Err(reason) => *self.drops.entry(reason.name().into()).or_default() += 1,
        }
        out.recycle(arrival.buffer);
    }
}

impl Inspect for SubscriptionSwitch {
    fn whole(&self, clocks: Option<&Clocks>) -> Result<Vec<u8>, ControlError> {
        Ok(SwitchState { clocks: clocks.copied(), ..self.snapshot(self.rules, &[]) }.to_bytes())
    }

    fn counters(&self) -> Counters {
        let tally = self.engine.tally();
        let mut rows = vec![("messages".to_owned(), tally.messages), ("unmatched".to_owned(), tally.unmatched)];
        let named = self.calls.iter().filter(|call| !call.text.is_empty());
        rows.extend(named.map(|call| (call.text.clone(), call.count)));
        rows.extend(self.past_calls.iter().map(|(text, count)| (text.clone(), *count)));
        rows.extend(self.notes.iter().map(|(what, count)| (what.to_string(), *count)));
        Counters {
            frames_in: self.frames_in,
            frames_out: self.frames_out,
            rows,
            drops: self.drops.iter().map(|(reason, count)| (reason.to_string(), *count)).collect(),
            ..Counters::default()
        }
    }
}
