//! What all engines have in common: inputs and their order, the flow table, timers, samples and calls of the
//! application. An [`Executor`] runs the rows.

use crate::chance::Chance;
use crate::counts::Counts;
use crate::flow_table::FlowTable;
use crate::instance::{Activity, Instance};
use crate::key_sets::KeySets;
use crate::pending::Pending;
use crate::predecessors::Predecessors;
use crate::program::Program;
use crate::run::{Occasion, Run, Setting, Shared};
use crate::samples::Samples;
use crate::succession::Changed;
use crate::{EngineError, EngineOptions, Executor, Ready};
use std::sync::Arc;
use weftwire_core::buffer::Storage;
use weftwire_core::build::TemplateTransport;
use weftwire_core::control::{Answer, Preparation};
use weftwire_core::order::{Input, InputOrder};
use weftwire_core::packet::Packet;
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_core::{
    Arrival, Arrivals, Buffer, CallError, Change, Command, Connections, ControlError, Deadline, DropReason, Endpoints,
    FlowId, Function, Listen, Offload, Outbox, Output, Placed, Port, Ports, Time,
};
use weftwire_image::{Event, OtherPackets, VerifiedImage};

/// At so many ends an application may listen.
pub(crate) const MOST_LISTENING: usize = 65_536;

/// A machine whose rows `E` runs.
#[derive(Debug)]
pub struct Runtime<E> {
    pub(crate) executor: E,
    pub(crate) program: Arc<Program>,
    pub(crate) shared: Shared,
    pub(crate) table: FlowTable,
    pub(crate) samples: Samples,
    /// The time of the latest input or event.
    pub(crate) clock: Time,
    /// Gives inputs their times.
    pub(crate) order: InputOrder,
    /// Flow id of the latest instance.
    pub(crate) last_flow: u64,
    /// How many instances of a key were made at the time of the latest creation, for keys whose last one has ended since.
    pub(crate) made_then: Predecessors,
    /// When the latest instance was made.
    pub(crate) last_made: Time,
    /// The key being looked up.
    key: Vec<u8>,
    /// Instances of flows that have ended, for those to come.
    #[allow(clippy::vec_box, reason = "they go into the table and come from there in their boxes")]
    spare: Vec<Box<Instance>>,
}

/// Most instances that are kept without a flow.
const MOST_SPARE: usize = 1_024;

/// What is due next, in the order in which things at one instant are done (rules E1, T5 and F12).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    Timer,
    Turn(u8),
    Sample,
    Expiry,
}

/// What an event leaves behind.
#[derive(Default, Debug)]
pub(crate) struct After {
    /// It went on with a zero-time loop.
    endless: bool,
    /// The packet that makes the next instance of this key (rule E20).
    successor: Option<Packet>,
}

impl<E: Executor> Runtime<E> {
    /// Loads an image.
    ///
    /// # Errors
    /// [`EngineError::Lacks`], and what the executor says.
    pub fn new(image: VerifiedImage, ports: Ports, options: EngineOptions) -> Result<Runtime<E>, EngineError> {
        Ok(Runtime::of(Ready::new(image)?, ports, options))
    }

    /// A new function of the same image, with the same ports. They share what is made of the image.
    ///
    /// # Errors
    /// As of [`Runtime::new`].
    pub fn another(&self, options: EngineOptions) -> Result<Runtime<E>, EngineError> {
        Ok(Runtime::of(Ready::of_program(Arc::clone(&self.program))?, self.shared.ports.clone(), options))
    }

    fn of(Ready { program, executor }: Ready<E>, ports: Ports, options: EngineOptions) -> Runtime<E> {
        let chance = Chance::new(options.seed, options.hash_key);
        let hasher = chance.key_hasher();
        Runtime {
            executor,
            table: FlowTable::new(&program.image, hasher),
            samples: Samples::new(&program.image.debug.samples),
            shared: Shared {
                ports,
                keys: KeySets::new(chance),
                calendar: Pending::new(program.image.timers.len(), options.limits.timers),
                limits: options.limits,
                stored: 0,
                storage: Storage::default(),
                counts: Counts { rows: vec![0; program.image.rows.len()], ..Counts::default() },
                tables: program.image.tables.clone(),
                moved: Vec::new(),
                rounds: vec![0; program.image.repeats.len()],
                populations: vec![0; program.image.states.len()],
                turns: program.new_turns(),
                listening: Vec::new(),
            },
            made_then: Predecessors::new(program.key_length(), hasher),
            program,
            clock: Time::ZERO,
            order: InputOrder { left_to_platform: options.order_left_to_platform, ..InputOrder::default() },
            last_flow: 0,
            last_made: Time::ZERO,
            key: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// A call or a change that is told `now` (rules E1 and E2): first everything that was due before it. Returns its time.
    fn arrive(&mut self, input: Input, now: Time, out: &mut Outbox) -> Time {
        let at = self.order.time(input, now.max(self.clock));
        self.pass_to(at, out);
        at
    }

    /// It is `at`: everything that was due before runs.
    fn pass_to(&mut self, at: Time, out: &mut Outbox) {
        out.unbounded(|out| self.run_due(at.after(-1), out));
        self.clock = at;
    }

    /// Runs everything that is due at or before `limit`, each at its own time (rules E1 and E4). Returns whether it
    /// got to the end before the outbox was full.
    fn run_due(&mut self, limit: Time, out: &mut Outbox) -> bool {
        while !out.is_full() {
            if !self.run_next(limit, out) {
                return true;
            }
        }
        self.next_due().is_none_or(|(at, _)| at > limit)
    }

    /// Runs what is due first, if it is due at or before `limit`; `false` if nothing is. [`Function::fire`] does so
    /// until nothing is: between any two of them is an event boundary.
    pub fn run_next(&mut self, limit: Time, out: &mut Outbox) -> bool {
        let Some((at, due)) = self.next_due().filter(|(at, _)| *at <= limit) else { return false };
        self.clock = self.clock.max(at);
        match due {
            Due::Timer => self.run_timer(out),
            Due::Turn(turns) => self.run_turn(turns, out),
            Due::Sample => self.samples.show(&self.program, &self.table, out),
            Due::Expiry => {
                if let Some((_, flow)) = self.table.next_expiry() {
                    self.expire(flow, at, out);
                }
            }
        }
        true
    }

    fn next_due(&self) -> Option<(Time, Due)> {
        let timer = self.shared.calendar.next_deadline().map(|at| (at, Due::Timer));
        let sample = self.samples.next().map(|at| (at, Due::Sample));
        let expiry = self.table.next_expiry().map(|(at, _)| (at, Due::Expiry));
        let turns = self.shared.turns.iter().zip(0..);
        let turn = turns.filter_map(|(turns, number)| Some((turns.due()?, Due::Turn(number)))).min();
        [timer, turn, sample, expiry].into_iter().flatten().min()
    }

    /// Rule T5.
    fn run_turn(&mut self, turns: u8, out: &mut Outbox) {
        let Some((at, flow)) = self.shared.turns[usize::from(turns)].grant() else { return };
        let Some(instance) = self.table.get_mut(flow) else { return };
        instance.waiting[usize::from(turns)] = None;
        self.event(flow, at, Event::Turn(turns), Occasion::default(), out);
    }

    fn run_timer(&mut self, out: &mut Outbox) {
        let Some((at, handle, setting)) = self.shared.calendar.pop_due(Time::MAX) else { return };
        let Some(instance) = self.table.get_mut(setting.flow) else { return };
        instance.forget_timer(handle);
        let Setting { flow, timer, depth, payload } = setting;
        let occasion = Occasion { values: payload, depth: depth + 1, ..Occasion::default() };
        let After { endless, .. } = self.event(flow, at, Event::Timer(timer), occasion, out);
        if endless && self.table.get(flow).is_some() {
            self.end_zero_time_loop(flow, at, out);
        }
    }

    /// Rule E15.
    fn end_zero_time_loop(&mut self, flow: FlowId, at: Time, out: &mut Outbox) {
        self.shared.counts.drop(DropReason::ZeroTimeLoop);
        if out.wants_trace()
            && let Some(instance) = self.table.get(flow)
        {
            let state = self.program.state_name(instance.state);
            out.push(Output::Trace(Box::new(TraceRecord {
                time: at,
                flow,
                kind: TraceKind::Error,
                state: state.into(),
                event: DropReason::ZeroTimeLoop.name().into(),
                row: None,
                line: None,
                source: None,
                next: state.into(),
                actions: Vec::new(),
                registers: Vec::new(),
            })));
        }
        self.remove(flow, out);
    }

    /// A call that raises no event counts all the same (rules A1 and A8).
    fn called(&mut self, flow: FlowId, active: Activity) {
        if let Some(instance) = self.table.get_mut(flow) {
            instance.last_active = active;
        }
        self.table.settle(flow, active.at);
    }

    /// One event of an instance in the table.
    pub(crate) fn event(
        &mut self,
        flow: FlowId,
        at: Time,
        event: Event,
        occasion: Occasion,
        out: &mut Outbox,
    ) -> After {
        let arrival = !matches!(event, Event::Timer(_) | Event::Turn(_) | Event::Icmp | Event::Set);
        let active = arrival.then(|| self.table.activity(at));
        let Some(instance) = self.table.get_mut(flow) else { return After::default() };
        instance.last_active = active.unwrap_or(instance.last_active);
        let mut run = Run::new(&self.program, &mut self.shared, instance, out, at);
        run.event(&self.executor, event, occasion);
        let deleted = run.deleted;
        let after = After { endless: run.endless, successor: run.successor.take() };
        let overdue = self.table.settle(flow, at);
        if deleted {
            self.remove(flow, out);
        } else if overdue {
            self.expire(flow, at, out);
        }
        after
    }

    /// Rule F15.
    fn expire(&mut self, flow: FlowId, at: Time, out: &mut Outbox) {
        self.last_event(flow, at, Event::Expire, out);
        self.shared.counts.flows_expired += 1;
    }

    /// An event, if something waits for it, and the end.
    fn last_event(&mut self, flow: FlowId, at: Time, event: Event, out: &mut Outbox) {
        let Some(instance) = self.table.get_mut(flow) else { return };
        if self.program.has_rows(instance.state, event) {
            let mut run = Run::new(&self.program, &mut self.shared, instance, out, at);
            run.event(&self.executor, event, Occasion::default());
        }
        self.remove(flow, out);
    }

    /// Makes an instance, handles `enter` of state 0 and then the event, and gives the instance its place unless it
    /// was deleted (rules F4, F5 and F17). The caller has seen that there is a place.
    fn first_event(
        &mut self,
        mut instance: Box<Instance>,
        at: Time,
        event: Event,
        occasion: Occasion,
        out: &mut Outbox,
    ) {
        let occasion = Occasion { full: self.table.is_full(), ..occasion };
        let mut run = Run::new(&self.program, &mut self.shared, &mut instance, out, at);
        run.first_event(&self.executor, event, occasion);
        if run.deleted {
            return self.end(instance, out);
        }
        if let Some(victim) = self.table.to_evict(at) {
            self.remove(victim, out);
            self.shared.counts.flows_evicted += 1;
        }
        self.samples.begin(instance.flow, instance.created);
        self.table.insert(instance);
        self.shared.counts.flows_peak = self.shared.counts.flows_peak.max(self.table.len() as u64);
    }

    fn new_instance(&mut self, at: Time, endpoints: Option<Endpoints>) -> Box<Instance> {
        self.last_flow += 1;
        self.shared.counts.flows_created += 1;
        if at > self.last_made {
            self.made_then.clear();
            self.last_made = at;
        }
        let last_active = self.table.activity(at);
        let mut instance = self.spare.pop().unwrap_or_default();
        instance.flow = FlowId(self.last_flow);
        instance.key.extend_from_slice(&self.key);
        instance.registers.extend_from_slice(&self.program.initial);
        instance.slots.reserve_exact(self.program.image.slots.len());
        instance.slots.resize_with(self.program.image.slots.len(), || None);
        self.program.fill_stores(&mut instance);
        self.shared.populations[usize::from(instance.state)] += 1;
        instance.waiting.resize(self.program.image.turns.len(), None);
        instance.endpoints = endpoints;
        instance.created = at;
        instance.earlier = self.made_then.of(&self.key);
        instance.last_active = last_active;
        instance.rank = last_active;
        instance
    }

    /// Takes an instance out of the table and ends it (rules F16 and E13).
    fn remove(&mut self, flow: FlowId, out: &mut Outbox) {
        if let Some(instance) = self.table.remove(flow) {
            self.samples.end(flow);
            self.end(instance, out);
        }
    }

    fn end(&mut self, instance: Box<Instance>, out: &mut Outbox) {
        out.push(Output::Ended { flow: instance.flow });
        self.forget(instance);
    }

    /// An instance that is in the table no more: its timers go, it waits for no turn, a later one of its key draws other random numbers, and its
    /// memory is for flows to come.
    pub(crate) fn forget(&mut self, mut instance: Box<Instance>) {
        for &handle in &instance.timers {
            self.shared.calendar.remove(handle);
        }
        self.shared.populations[usize::from(instance.state)] -= 1;
        for (turns, place) in self.shared.turns.iter_mut().zip(&mut instance.waiting) {
            turns.withdraw(place);
        }
        for packet in instance.slots.drain(..).flatten() {
            self.shared.stored -= 1;
            self.shared.storage.give_back(packet.into_buffer());
        }
        self.shared.keys.release(instance.keys);
        if instance.axis.engine(instance.created) == self.last_made {
            self.made_then.set(&instance.key, instance.earlier + 1);
        }
        if self.spare.len() < MOST_SPARE {
            instance.clear();
            self.spare.push(instance);
        }
    }

    fn frame_arrives(&mut self, arrival: Arrival, out: &mut Outbox) {
        let Arrival { port, buffer, offload } = arrival;
        self.shared.counts.frames_in += 1;
        let Some(link) = self.shared.ports.link(port) else {
            self.shared.counts.drop(DropReason::NoPort);
            return out.recycle(buffer);
        };
        let length = buffer.len();
        let limits = self.shared.limits;
        if let Err(reason) = limits.frame(length) {
            self.shared.counts.drop(reason);
            return out.recycle(buffer);
        }
        let packet = Packet::receive(link, buffer, offload, &self.program.formats);
        let packet = packet.and_then(|packet| match limits.headers(&packet) {
            Ok(()) => Ok(packet),
            Err(reason) => Err((reason, packet.into_buffer())),
        });
        let packet = match packet {
            Ok(packet) => packet,
            Err((reason, buffer)) => {
                self.shared.counts.drop(reason);
                return out.recycle(buffer);
            }
        };
        let refused = if self.program.flow_key(&packet, &mut self.key) {
            self.packet(port, length, packet, out)
        } else if self.icmp_error(&packet, out) {
            out.recycle(packet.into_buffer());
            Ok(())
        } else {
            self.pass_on(port, offload, packet, out)
        };
        if let Err((reason, buffer)) = refused {
            self.shared.counts.drop(reason);
            out.recycle(buffer);
        }
    }

    /// A packet with a flow key, which is in `self.key`. The buffer of one that is dropped comes back.
    fn packet(
        &mut self,
        port: Port,
        length: usize,
        packet: Packet,
        out: &mut Outbox,
    ) -> Result<(), (DropReason, Buffer)> {
        let now = self.clock;
        let known = self.table.find(&self.key);
        if known.is_none() && !self.table.has_place(now) {
            return Err((DropReason::TableFull, packet.into_buffer()));
        }
        let values = [i64::from(port.0), length as i64, packet.payload().len() as i64, 0];
        let first = match known {
            Some(flow) => {
                if let Some(instance) = self.table.get_mut(flow) {
                    instance.counts.packets_in += 1;
                }
                let occasion = Occasion { current: Some(packet), values, ..Occasion::default() };
                self.event(flow, now, Event::Packet, occasion, out).successor
            }
            None => Some(packet),
        };
        if let Some(packet) = first {
            let ends = packet.endpoints();
            let mut instance = self.new_instance(now, ends);
            instance.counts.packets_in += 1;
            out.push(Output::Opened { flow: instance.flow, endpoints: ends });
            let occasion = Occasion { current: Some(packet), values, ..Occasion::default() };
            self.first_event(instance, now, Event::Packet, occasion, out);
        }
        Ok(())
    }

    /// Rule E19: an ICMP error about a packet of a flow. Gives whether it was one.
    fn icmp_error(&mut self, packet: &Packet, out: &mut Outbox) -> bool {
        let Some((error, about)) = self.program.icmp_error(packet, &mut self.key) else { return false };
        let Some(flow) = self.table.find(&self.key) else { return false };
        let values = [error.kind.into(), error.code.into(), error.mtu.into(), 0];
        let occasion = Occasion { current: Some(about), values, ..Occasion::default() };
        self.event(flow, self.clock, Event::Icmp, occasion, out);
        true
    }

    /// A frame without flow key (rule F3). The buffer of one that is dropped comes back.
    fn pass_on(
        &mut self,
        port: Port,
        offload: Offload,
        packet: Packet,
        out: &mut Outbox,
    ) -> Result<(), (DropReason, Buffer)> {
        let OtherPackets::Pass(pairs) = &self.program.image.other_packets else {
            return Err((DropReason::NoFlowKey, packet.into_buffer()));
        };
        let partner = pairs.iter().find_map(|&(one, other)| match port.0 {
            number if number == one => Some(Port(other)),
            number if number == other => Some(Port(one)),
            _ => None,
        });
        let Some(partner) = partner else { return Err((DropReason::NoFlowKey, packet.into_buffer())) };
        let link = self.shared.ports.link(partner).filter(|link| self.program.fits(&packet, *link));
        let Some(link) = link else { return Err((DropReason::NoPort, packet.into_buffer())) };
        if self.shared.ports.link(port) == Some(link) {
            out.send_buffer(self.clock, partner, packet.into_frame(), offload);
        } else {
            // Rule P18: another link type takes another link header.
            let (frame, offload) = packet.into_emitted(link);
            out.send_buffer(self.clock, partner, frame, offload);
        }
        self.shared.counts.frames_passed += 1;
        Ok(())
    }

    /// The flow key of a flow from this end to the other into `key`.
    fn key_of(&self, endpoints: &Endpoints, key: &mut Vec<u8>) -> Result<TemplateTransport, CallError> {
        let unfit = |why: &str| Err(CallError::Unfit(why.into()));
        let transport = match endpoints.protocol {
            6 => TemplateTransport::Tcp,
            17 => TemplateTransport::Udp,
            _ => return unfit("the protocol is neither 6 (TCP) nor 17 (UDP)"),
        };
        if endpoints.local_address.is_ipv4() != endpoints.remote_address.is_ipv4() {
            return unfit("one address is IPv4, the other IPv6");
        }
        let image = &self.program.image;
        let key_fields = [&image.flow.common, &image.flow.source, &image.flow.destination].into_iter().flatten();
        if !key_fields.copied().all(|field| image.fields[usize::from(field)].known_to_connect()) {
            return unfit("the key has a field that only a packet tells");
        }
        // The key is that of a packet from this end to the other: ask such a packet.
        let probe = self.program.probe(transport, endpoints);
        if !self.program.flow_key(&probe, key) {
            return unfit("the key has a field that a packet of this flow lacks");
        }
        Ok(transport)
    }
}

impl<E: Executor> Function for Runtime<E> {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        let now = now.max(self.clock);
        if !self.run_due(now.after(-1), out) {
            return;
        }
        self.clock = now;
        while !out.is_full()
            && let Some(arrival) = arrivals.pop_front()
        {
            let at = self.order.time(Input::Frame(arrival.port), self.clock);
            if at > self.clock {
                self.pass_to(at, out);
            }
            self.frame_arrives(arrival, out);
        }
    }

    fn control(&mut self, now: Time, mut command: Command, out: &mut Outbox) {
        let now = self.arrive(Input::Change, now, out);
        let (ready, changed) = (command.take_prepared::<Ready<E>>(), command.take_prepared::<Changed<E>>());
        let (result, leftover) = match &command.change {
            Change::Image { document } => match self.set_image(ready, document) {
                Ok((done, before)) => (Ok(done), Some(before)),
                Err(error) => (Err(error), None),
            },
            Change::SetParameters { parameters } => match self.set_parameters(changed, parameters) {
                Ok((done, before)) => (Ok(done), Some(before)),
                Err(error) => (Err(error), None),
            },
            change => (self.change(now, change, out), None),
        };
        out.answer(Answer { number: command.number, at: now, result }, leftover);
    }

    fn preparation(&self, change: &Change) -> Option<Preparation> {
        match change {
            Change::SetParameters { parameters } => Some(self.parameters_preparation(parameters.clone())),
            _ => None,
        }
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        let now = self.order.time(Input::Fire, now.max(self.clock));
        if self.run_due(now, out) {
            self.clock = now;
        }
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        let (at, due) = self.next_due()?;
        let reason = match due {
            Due::Timer => {
                let (_, setting) = self.shared.calendar.first()?;
                &self.program.image.timers[usize::from(setting.timer)].name
            }
            Due::Turn(turns) => &self.program.image.turns[usize::from(turns)].name,
            Due::Sample => "sample",
            Due::Expiry => "expiry",
        };
        Some(Deadline { at, reason })
    }

    fn input_time(&self, input: Input, now: Time) -> Time {
        let mut order = self.order;
        order.time(input, now.max(self.clock))
    }

    fn place(&self, input: &Placed<'_>) -> Option<u64> {
        let mut key = Vec::new();
        let has_key = match input {
            Placed::Frame(port, frame) => {
                let link = self.shared.ports.link(*port)?;
                let packet = Packet::parse(link, *frame, &self.program.formats).ok()?;
                self.program.flow_key(&packet, &mut key) || self.program.icmp_error(&packet, &mut key).is_some()
            }
            Placed::Connection(endpoints) => self.key_of(endpoints, &mut key).is_ok(),
        };
        // All flows that share turns belong together (rule F19).
        let apart = self.program.image.turns.is_empty();
        has_key.then(|| if apart { self.table.hash(&key) } else { 0 })
    }

    fn connections(&mut self) -> Option<&mut dyn Connections> {
        Some(self)
    }
}

impl<E: Executor> Connections for Runtime<E> {
    /// Rule F17.
    fn connect(&mut self, now: Time, endpoints: &Endpoints, out: &mut Outbox) -> Result<FlowId, CallError> {
        let now = self.arrive(Input::Call, now, out);
        let mut key = std::mem::take(&mut self.key);
        let transport = self.key_of(endpoints, &mut key);
        self.key = key;
        let transport = transport?;
        if let Some(flow) = self.table.find(&self.key) {
            return Err(CallError::Exists(flow));
        }
        if !self.table.has_place(now) {
            return Err(CallError::TableFull);
        }
        let mut instance = self.new_instance(now, Some(*endpoints));
        instance.open = true;
        for creation in &self.program.image.creation {
            if self.program.template_transport(creation.template) == transport {
                if !self.shared.limits.has_buffer(self.shared.stored) {
                    self.shared.counts.drop(DropReason::NoBuffer);
                    continue;
                }
                self.shared.stored += 1;
                let packet = self.program.build(creation.template, &[], endpoints, out);
                let packet = self.shared.store(packet, out);
                instance.slots[usize::from(creation.slot)] = Some(packet);
            }
        }
        let flow = instance.flow;
        self.first_event(instance, now, Event::Connect, Occasion::default(), out);
        Ok(flow)
    }

    /// Rule A1.
    fn write(&mut self, now: Time, flow: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError> {
        let now = self.arrive(Input::Call, now, out);
        let active = self.table.activity(now);
        let instance = self.table.get_mut(flow).ok_or(CallError::NoFlow(flow))?;
        if instance.closed {
            return Err(CallError::Closed(flow));
        }
        instance.open = true;
        let room = self.program.image.send_buffer_bytes().saturating_sub(instance.send_buffer.len());
        let accepted = bytes.len().min(room);
        if accepted > 0 {
            instance.send_buffer.extend(&bytes[..accepted]);
            let occasion = Occasion { values: [accepted as i64, 0, 0, 0], ..Occasion::default() };
            self.event(flow, now, Event::Data, occasion, out);
        } else {
            self.called(flow, active);
        }
        Ok(accepted)
    }

    /// Rule A2.
    fn close(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        let now = self.arrive(Input::Call, now, out);
        let instance = self.table.get_mut(flow).ok_or(CallError::NoFlow(flow))?;
        if instance.closed {
            return Err(CallError::Closed(flow));
        }
        instance.closed = true;
        instance.open = false;
        self.event(flow, now, Event::Close, Occasion::default(), out);
        Ok(())
    }

    /// Rule A7.
    fn abort(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        let now = self.arrive(Input::Call, now, out);
        self.table.get(flow).ok_or(CallError::NoFlow(flow))?;
        self.last_event(flow, now, Event::Abort, out);
        Ok(())
    }

    /// Rule A8.
    fn listen(&mut self, now: Time, local: &Listen, out: &mut Outbox) -> Result<(), CallError> {
        self.arrive(Input::Call, now, out);
        let listening = &mut self.shared.listening;
        if let Err(place) = listening.binary_search(local) {
            if listening.len() >= MOST_LISTENING {
                return Err(CallError::TooManyListening(MOST_LISTENING));
            }
            listening.insert(place, *local);
        }
        Ok(())
    }

    /// Rule A8.
    fn unlisten(&mut self, now: Time, local: &Listen, out: &mut Outbox) -> Result<(), CallError> {
        self.arrive(Input::Call, now, out);
        let listening = &mut self.shared.listening;
        if let Ok(place) = listening.binary_search(local) {
            listening.remove(place);
        }
        Ok(())
    }

    /// Rule A8.
    fn accept(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        let now = self.arrive(Input::Call, now, out);
        let active = self.table.activity(now);
        let instance = self.table.get_mut(flow).ok_or(CallError::NoFlow(flow))?;
        instance.open = !instance.closed;
        self.called(flow, active);
        Ok(())
    }

    /// Rule A9.
    fn consumed(&mut self, now: Time, flow: FlowId, length: usize, out: &mut Outbox) -> Result<(), CallError> {
        let now = self.arrive(Input::Call, now, out);
        let instance = self.table.get_mut(flow).ok_or(CallError::NoFlow(flow))?;
        let Some((index, _)) = self.program.image.receive_buffer() else { return Ok(()) };
        let read = instance.ranges[index].read(length);
        if read > 0 {
            let occasion = Occasion { values: [i64::from(read), 0, 0, 0], ..Occasion::default() };
            self.event(flow, now, Event::Read, occasion, out);
        }
        Ok(())
    }

    /// Rule A10.
    fn set(&mut self, now: Time, flow: FlowId, parameter: &str, value: i64, out: &mut Outbox) -> Result<(), CallError> {
        let now = self.arrive(Input::Call, now, out);
        self.set_register(now, flow, parameter, value, out).map_err(|error| match error {
            ControlError::NoFlow(flow) => CallError::NoFlow(flow),
            _ => CallError::NoParameter(parameter.into()),
        })
    }
}
