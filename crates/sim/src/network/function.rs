//! Nodes that run functions, hosts' TCP among them: the platform's side of the contract in virtual time (`docs/semantics.md`, 4.1).

use super::clock::Clock;
use super::flows::{Key, Map, Next, Outcome};
use super::frames::Slot;
use super::host::protocol_of;
use super::lane::NEVER;
use super::memory::buffer_size;
use super::queue::Event;
use super::simulation::{Kind, Simulation};
use super::tcp;
use super::wire::{MTU, Packet};
use std::io;
use weftwire_core::inspect::{Counters, FlowDetail};
use weftwire_core::port::Checksum;
use weftwire_core::trace::TraceKind;
use weftwire_core::{
    Arrival, Arrivals, CallError, Change, Connections, Endpoints, FlowId, Frame, Function, LinkType, Listen, ORPHAN,
    Offload, Outbox, Output, Port, Ports, Time, control, segments,
};
use weftwire_network::model::{NodeIndex, NodeKind, PortPlace, Transport};
use weftwire_network::routing::Flow;

/// Bytes of the application offered at once.
const OFFER: u64 = 64 << 10;

/// A function on a node.
pub struct NodeFunction {
    function: Box<dyn Function>,
    outbox: Outbox,
    clock: Clock,
    /// When its deadline event is in the queue.
    scheduled: i64,
    transparent: bool,
    tracing: bool,
    /// The network's flows by the function's, and at which side of them this is.
    flows: Map<FlowId, (u32, usize)>,
    restarts: u64,
}

impl NodeFunction {
    fn new(function: Box<dyn Function>, restarts: u64) -> NodeFunction {
        NodeFunction {
            function,
            outbox: Outbox::new(),
            clock: Clock::new(0),
            scheduled: NEVER,
            transparent: false,
            tracing: false,
            flows: Map::default(),
            restarts,
        }
    }

    /// Whether nothing is pending before connections that are over need no longer be remembered.
    pub fn lingers(&self) -> bool {
        self.function.next_deadline().is_none_or(|deadline| deadline.reason == tcp::LINGER)
    }

    /// Everything about one of its flows.
    pub fn flow(&self, id: FlowId) -> Option<FlowDetail> {
        self.function.flow(id)
    }

    /// The function's own counts.
    pub fn counters(&self) -> Counters {
        self.function.counters()
    }
}

impl Simulation<'_> {
    /// Makes the function of a node.
    pub fn make_machine(&mut self, node: u32, restarts: u64) -> io::Result<Box<NodeFunction>> {
        let index = NodeIndex(node);
        let description = self.network.node(index);
        let NodeKind::Function(settings) = &description.kind else {
            return Err(io::Error::other(format!("`{}` has no function", description.name)));
        };
        let ports = (1..=description.ports.len() as u16).map(|port| (Port(port), LinkType::Ethernet));
        let ports = Ports::new(ports).with_mtu(MTU as u32);
        let mut function = self.surroundings.function(index, &ports, self.network.node_seed(index) ^ restarts)?;
        let mut outbox = if settings.trace { Outbox::tracing() } else { Outbox::new() };
        if let Some(connections) = function.connections() {
            // Applications take all connections that others open.
            connections.listen(Time::ZERO, &Listen::default(), &mut outbox).map_err(io::Error::other)?;
        }
        let (transparent, tracing) = (settings.transparent, settings.trace);
        Ok(Box::new(NodeFunction { outbox, transparent, tracing, ..NodeFunction::new(function, restarts) }))
    }

    /// Makes the TCP of a host, if it has none yet.
    pub fn make_host(&mut self, node: u32) -> io::Result<()> {
        if self.machines[node as usize].is_none() {
            self.machines[node as usize] = Some(self.host_machine(node, 0)?);
        }
        Ok(())
    }

    /// Whether the TCP of a host has initial values of its own.
    pub fn has_parameters(&self, node: u32) -> bool {
        let kind = &self.network.node(NodeIndex(node)).kind;
        matches!(kind, NodeKind::Host { parameters, .. } if !parameters.is_empty())
    }

    /// Makes the TCP of a host.
    pub fn host_machine(&mut self, node: u32, restarts: u64) -> io::Result<Box<NodeFunction>> {
        let description = self.network.node(NodeIndex(node));
        let NodeKind::Host { parameters, .. } = &description.kind else {
            return Err(io::Error::other(format!("`{}` is no host", description.name)));
        };
        let made = self.tcp.machine(parameters, self.network.node_seed(NodeIndex(node)) ^ restarts);
        let machine = made.map_err(|error| tcp::of_node(&description.name, &error))?;
        let mut machine = self.surroundings.host(NodeIndex(node), &tcp::ports(), Box::new(machine));
        let mut outbox = Outbox::new();
        for port in self.listeners.get(&node).into_iter().flatten() {
            let local = Listen { address: None, port: Some(*port) };
            let connections = machine.connections().ok_or(CallError::NoConnections).map_err(io::Error::other)?;
            connections.listen(Time::ZERO, &local, &mut outbox).map_err(io::Error::other)?;
        }
        Ok(Box::new(NodeFunction { outbox, ..NodeFunction::new(machine, restarts) }))
    }

    /// A node's function, if it has one, is made anew.
    pub fn restart_machine(&mut self, node: u32) -> io::Result<()> {
        let Some(old) = self.machines[node as usize].take() else { return Ok(()) };
        let mut machine = match self.kinds[node as usize] {
            Kind::Host => self.host_machine(node, old.restarts + 1)?,
            _ => self.make_machine(node, old.restarts + 1)?,
        };
        machine.clock = Clock::new(old.clock.drift());
        self.machines[node as usize] = Some(machine);
        Ok(())
    }

    /// A node's clock drifts or leaps.
    pub fn change_clock(&mut self, node: u32, drift_ppm: i64, leap: i64) {
        let now = self.now;
        match &mut self.machines[node as usize] {
            Some(machine) => {
                machine.clock.change(now, drift_ppm, leap);
                machine.scheduled = NEVER;
                self.schedule_machine(node);
            }
            None => self.warn(|| "a node without function has no clock".into()),
        }
    }

    /// Puts a function's next deadline into the queue.
    fn schedule_machine(&mut self, node: u32) {
        let now = self.now;
        let Some(machine) = &mut self.machines[node as usize] else { return };
        let Some(deadline) = machine.function.next_deadline() else { return };
        let at = machine.clock.until(deadline.at).max(now);
        if at < machine.scheduled {
            machine.scheduled = at;
            self.queue.push(at, Event::Function(node));
        }
    }

    /// A function's deadline may have come.
    pub fn function_deadline(&mut self, node: u32) -> io::Result<()> {
        let now = self.now;
        let Some(machine) = &mut self.machines[node as usize] else { return Ok(()) };
        if machine.scheduled != now {
            return Ok(());
        }
        machine.scheduled = NEVER;
        let due = machine.function.next_deadline().is_some_and(|deadline| machine.clock.until(deadline.at) <= now);
        if due {
            self.call(node, None, |function, time, outbox| function.fire(time, outbox))?;
        }
        self.schedule_machine(node);
        Ok(())
    }

    /// A frame arrives at a function.
    pub fn function_frame(&mut self, place: PortPlace, slot: Slot) -> io::Result<()> {
        let node = place.node.0;
        let transparent = self.machines[node as usize].as_ref().is_some_and(|machine| machine.transparent);
        if !transparent && !self.is_for(place, slot) {
            self.drop_packet(node, "other_address", slot);
            return Ok(());
        }
        self.frame_to_function(place, slot, Offload::default())
    }

    /// Hands a frame to the function of a node.
    pub fn frame_to_function(&mut self, place: PortPlace, slot: Slot, offload: Offload) -> io::Result<()> {
        let node = place.node.0;
        let bytes = std::mem::take(self.frames.get_mut(slot));
        let called = self.arrive(place, Frame { bytes: &bytes, offload });
        *self.frames.get_mut(slot) = bytes;
        self.frames.release(slot);
        called?;
        self.schedule_machine(node);
        Ok(())
    }

    fn arrive(&mut self, place: PortPlace, frame: Frame<'_>) -> io::Result<()> {
        let node = place.node.0;
        let Some(machine) = &mut self.machines[node as usize] else { return Ok(()) };
        let mut arrivals = Arrivals::from([Arrival::copied(place.port, frame, &mut machine.outbox)]);
        while !arrivals.is_empty() {
            self.call(node, Some(frame.bytes), |function, time, outbox| function.frames(time, &mut arrivals, outbox))?;
        }
        Ok(())
    }

    /// Opens a flow that a function carries, which may be the TCP of a host.
    pub fn open_function(&mut self, number: u32) -> io::Result<()> {
        let flow = self.flows.get_mut(number);
        let (source_port, to) = (flow.source_port, flow.to);
        let traffic = &self.network.traffic[flow.traffic as usize];
        let (protocol, ports) = (protocol_of(traffic.transport), [source_port, traffic.port]);
        let [source, destination] = [traffic.from, to].map(|node| self.network.address(node, traffic.ipv6));
        let route = || Flow { source, destination, protocol, ports };
        let Some(hop) = self.routes.next(traffic.from, to, route) else {
            self.flows.get_mut(number).end(self.now, Outcome::Failed("there is no way".into()));
            return Ok(());
        };
        let endpoints = Endpoints {
            protocol,
            local_address: source,
            local_port: source_port,
            remote_address: destination,
            remote_port: traffic.port,
            local_mac: self.network.mac(PortPlace { node: traffic.from, port: hop.port }),
            remote_mac: self.network.mac(hop.to),
            vlan: None,
        };
        let node = traffic.from.0;
        if self.kinds[node as usize] == Kind::Host {
            self.make_host(node)?;
            let room = buffer_size(self.flows.open_count());
            let flow = self.flows.get_mut(number);
            (flow.track, flow.room) = (Some(Box::default()), [Some(room); 2]);
        }
        match self.connect(node, &endpoints) {
            Some(Ok(id)) => {
                if let Some(machine) = &mut self.machines[node as usize] {
                    machine.flows.insert(id, (number, 0));
                }
                self.flows.get_mut(number).carriers[0] = Some(id);
                self.choose(node, id, number);
            }
            Some(Err(error)) => {
                self.flows.get_mut(number).end(self.now, Outcome::Failed(error.to_string().into()));
                self.flows.forget(number);
            }
            None => {}
        }
        self.outputs(node, None)?;
        self.feed_function(number, 0)?;
        self.schedule_machine(node);
        Ok(())
    }

    fn connect(&mut self, node: u32, endpoints: &Endpoints) -> Option<Result<FlowId, CallError>> {
        let opened = self.connections(node, |function, time, outbox| function.connect(time, endpoints, outbox));
        let Some(Err(CallError::Exists(old))) = opened else { return opened };
        if self.kinds[node as usize] != Kind::Host {
            return opened;
        }
        // Only one that is over, and still remembered, can have the ports of a flow that opens.
        let deleted = self.call_unfinished(node, |function, time, outbox| {
            control::change(function, time, Change::Delete { flow: old }, outbox)
        });
        if let (Some(Ok(_)), Some(machine)) = (deleted, &mut self.machines[node as usize]) {
            machine.flows.remove(&old);
        }
        self.connections(node, |function, time, outbox| function.connect(time, endpoints, outbox))
    }

    /// One end of a flow has something new to send, or closes: hands its bytes to what carries it, as many as it takes, and closes
    /// behind the last.
    pub fn feed_function(&mut self, number: u32, side: usize) -> io::Result<()> {
        let flow = self.flows.get_mut(number);
        if flow.carriers[side].is_none() || flow.closed[side] {
            return Ok(());
        }
        let node = [self.network.traffic[flow.traffic as usize].from, flow.to][side].0;
        let mut data = std::mem::take(&mut self.offer);
        loop {
            let flow = self.flows.get_mut(number);
            let Some(id) = flow.carriers[side] else { break };
            let length =
                (flow.goal[side] - flow.written[side]).min(flow.room[side].unwrap_or(OFFER)).min(OFFER) as usize;
            if length == 0 {
                break;
            }
            data.resize(length, 0);
            self.pattern.fill(flow.phase(side), flow.written[side], &mut data);
            let wrote = self.connections(node, |function, time, outbox| function.write(time, id, &data, outbox));
            self.accepted(number, side, length, wrote);
            self.outputs(node, None)?;
        }
        self.offer = data;
        let flow = self.flows.get_mut(number);
        let over = if side == 0 { flow.closing } else { flow.finished[1] };
        if let Some(id) = flow.carriers[side]
            && over
            && !flow.closed[side]
            && flow.written[side] >= flow.goal[side]
        {
            flow.closed[side] = true;
            // Who closes has read all that it asked for.
            if self.kinds[node as usize] == Kind::Host {
                self.set_register(node, id, ORPHAN, 1);
            }
            let closed = self.connections(node, |function, time, outbox| function.close(time, id, outbox));
            if let Some(Err(error)) = closed {
                self.function_refuses(number, &error);
            }
            self.outputs(node, None)?;
        }
        self.schedule_machine(node);
        Ok(())
    }

    fn accepted(&mut self, number: u32, side: usize, offered: usize, wrote: Option<Result<usize, CallError>>) {
        let flow = self.flows.get_mut(number);
        match wrote {
            Some(Ok(accepted)) => {
                flow.written[side] += accepted as u64;
                flow.room[side] = match flow.room[side] {
                    // It is full: there is as much room as it says from now on.
                    _ if accepted < offered => Some(0),
                    room => room.map(|room| room - accepted as u64),
                };
            }
            Some(Err(error)) => {
                flow.carriers[side] = None;
                self.function_refuses(number, &error);
            }
            None => flow.carriers[side] = None,
        }
    }

    fn function_refuses(&mut self, number: u32, error: &CallError) {
        self.flows.get_mut(number).notice.get_or_insert_with(|| error.to_string().into());
    }

    /// Calls a function and does what it asks for.
    fn call(
        &mut self,
        node: u32,
        frame: Option<&[u8]>,
        input: impl FnOnce(&mut dyn Function, Time, &mut Outbox),
    ) -> io::Result<()> {
        self.call_unfinished(node, input);
        self.outputs(node, frame)
    }

    /// Calls a function; what it asks for stays in its outbox.
    fn call_unfinished<R>(
        &mut self,
        node: u32,
        input: impl FnOnce(&mut dyn Function, Time, &mut Outbox) -> R,
    ) -> Option<R> {
        let now = self.now;
        let machine = self.machines[node as usize].as_mut()?;
        machine.clock.begin(now);
        let time = machine.clock.at(now);
        Some(input(machine.function.as_mut(), time, &mut machine.outbox))
    }

    /// A call of an application; what the function asks for stays in its outbox.
    fn connections<R>(
        &mut self,
        node: u32,
        input: impl FnOnce(&mut dyn Connections, Time, &mut Outbox) -> Result<R, CallError>,
    ) -> Option<Result<R, CallError>> {
        self.call_unfinished(node, |function, time, outbox| {
            input(function.connections().ok_or(CallError::NoConnections)?, time, outbox)
        })
    }

    /// Does what a function asked for. `frame` is the one it was about, from which the flow of its bytes is known.
    fn outputs(&mut self, node: u32, frame: Option<&[u8]>) -> io::Result<()> {
        let Some(machine) = &mut self.machines[node as usize] else { return Ok(()) };
        if machine.outbox.items().is_empty() {
            return Ok(());
        }
        let outbox = std::mem::take(&mut machine.outbox);
        let (mut ready, mut read, mut over) = (Vec::new(), Vec::new(), Vec::new());
        let host = self.kinds[node as usize] == Kind::Host;
        for item in outbox.items() {
            match item {
                Output::Send { port, bytes, offload, .. } => self.depart(node, *port, outbox.bytes(bytes), *offload)?,
                Output::Deliver { flow, bytes } => {
                    read.push((*flow, outbox.bytes(bytes).len()));
                    if let Some(resume) = self.deliver(node, *flow, outbox.bytes(bytes), frame) {
                        ready.push(resume);
                    }
                }
                Output::Released { flow, length } => {
                    if let Some((number, side)) = self.flow_at(node, *flow) {
                        let room = &mut self.flows.get_mut(number).room[side];
                        *room = room.map(|room| room + *length as u64);
                        ready.push((number, side));
                    }
                }
                Output::Ended { flow } => self.carrier_ended(node, *flow),
                Output::Notify { flow, notice, .. } if host => {
                    let known = self.flow_at(node, *flow);
                    if self.connection_told(node, *notice, known) {
                        match known {
                            Some(end) => ready.push(end),
                            None => over.push(*flow),
                        }
                    }
                }
                Output::Notify { flow, notice, .. } => {
                    if let Some((number, 0)) = self.flow_at(node, *flow)
                        && let Some(machine) = &self.machines[node as usize]
                    {
                        self.flows.get_mut(number).notice = Some(machine.function.notice_name(*notice).into());
                    }
                }
                Output::Opened { flow, endpoints: Some(ends) } if host => self.connection_opened(node, *flow, ends),
                Output::Opened { .. } | Output::Answered(_) => {}
                Output::Trace(record) => {
                    if record.kind == TraceKind::Error {
                        let name = &self.network.node(NodeIndex(node)).name;
                        self.warn(|| format!("{name}: flow {}: {}", record.flow, record.event));
                    }
                    if self.machines[node as usize].as_ref().is_some_and(|machine| machine.tracing) {
                        self.surroundings.trace(NodeIndex(node), record)?;
                    }
                }
            }
        }
        if let Some(machine) = &mut self.machines[node as usize] {
            // The outbox goes back with its memory.
            machine.outbox = outbox;
            machine.outbox.clear();
        }
        for (flow, length) in read {
            // Applications read at once. The flow may have ended in this very instant.
            let _ = self.connections(node, |function, time, outbox| function.consumed(time, flow, length, outbox));
            self.outputs(node, None)?;
        }
        for (number, side) in ready {
            self.feed_function(number, side)?;
        }
        for flow in over {
            // A connection of no flow of the network: nobody has anything to say.
            let _ = self.connections(node, |function, time, outbox| function.close(time, flow, outbox));
            self.outputs(node, None)?;
        }
        Ok(())
    }

    /// Gives a host's end of a flow the congestion control and the recovery that the traffic asks for. That there are such was seen at the start.
    fn choose(&mut self, node: u32, id: FlowId, number: u32) {
        if self.kinds[node as usize] != Kind::Host {
            return;
        }
        let traffic = &self.network.traffic[self.flows.get_mut(number).traffic as usize];
        let chosen = [
            (tcp::CONTROL, tcp::chosen_control(traffic).ok().flatten()),
            (tcp::RECOVERY, tcp::chosen_recovery(traffic).ok().flatten()),
        ];
        for (register, value) in chosen {
            if let Some(value) = value {
                self.set_register(node, id, register, value as i64);
            }
        }
    }

    /// Gives a register of a flow of a host a value.
    fn set_register(&mut self, node: u32, flow: FlowId, register: &str, value: i64) {
        let change = Change::SetRegister { flow, register: register.to_owned(), value };
        self.call_unfinished(node, |function, time, outbox| control::change(function, time, change, outbox));
    }

    /// What carries an end of a flow is gone.
    fn carrier_ended(&mut self, node: u32, id: FlowId) {
        let now = self.now;
        let host = self.kinds[node as usize] == Kind::Host;
        let known = self.machines[node as usize].as_mut().and_then(|machine| machine.flows.remove(&id));
        let Some((number, side)) = known else { return };
        let flow = self.flows.get_mut(number);
        flow.carriers[side] = None;
        if host && side == 0 {
            flow.gone(now, if flow.established { Outcome::Reset } else { Outcome::Refused });
            self.flows.forget(number);
        }
    }

    /// A host's TCP tells its application something. Gives whether the other end has closed.
    fn connection_told(&mut self, node: u32, notice: u16, known: Option<(u32, usize)>) -> bool {
        let now = self.now;
        let Some(machine) = &self.machines[node as usize] else { return false };
        let name = machine.function.notice_name(notice);
        let finished = name == tcp::FINISHED;
        if let Some((number, side)) = known {
            let flow = self.flows.get_mut(number);
            flow.established |= side == 0 && name == tcp::ESTABLISHED;
            flow.finished[side] |= finished;
            if side == 0 && name == tcp::TIMED_OUT {
                flow.gone(now, Outcome::Failed("timed out".into()));
            }
            if flow.is_closed() {
                self.flows.forget(number);
            }
        }
        finished
    }

    /// Somebody has opened a connection to a host: the one of a flow, or of none.
    fn connection_opened(&mut self, node: u32, id: FlowId, ends: &Endpoints) {
        let Some(there) = self.node_at(ends.remote_address) else { return };
        let ipv6 = ends.local_address.is_ipv6();
        let key = Key::new(Transport::Tcp, ipv6, (there, ends.remote_port), (node, ends.local_port));
        if let (Some(number), Some(machine)) = (self.flows.find(key), &mut self.machines[node as usize]) {
            machine.flows.insert(id, (number, 1));
            self.flows.get_mut(number).carriers[1] = Some(id);
            self.choose(node, id, number);
        }
    }

    fn flow_at(&self, node: u32, flow: FlowId) -> Option<(u32, usize)> {
        self.machines[node as usize].as_ref()?.flows.get(&flow).copied()
    }

    /// A function sends a frame.
    fn depart(&mut self, node: u32, port: Port, bytes: &[u8], offload: Offload) -> io::Result<()> {
        if offload.segmentation.is_none() && offload.checksum != Checksum::Partial {
            return self.send_frame(node, port, bytes);
        }
        let Ok(segments) = segments(LinkType::Ethernet, Frame { bytes, offload }) else {
            let name = &self.network.node(NodeIndex(node)).name;
            self.warn(|| format!("{name}: a frame for many segments could not be cut"));
            return Ok(());
        };
        for segment in segments {
            self.send_frame(node, port, &segment)?;
        }
        Ok(())
    }

    fn send_frame(&mut self, node: u32, port: Port, bytes: &[u8]) -> io::Result<()> {
        if self.kinds[node as usize] == Kind::Host {
            return self.host_sends(node, bytes);
        }
        match (self.lanes.out(NodeIndex(node), port), self.frames.copy(bytes)) {
            (Some(lane), Some(slot)) => self.transmit(lane, slot),
            _ => Ok(()),
        }
    }

    /// A function hands bytes to its application. Gives the flow's end if that has something to send then.
    fn deliver(&mut self, node: u32, id: FlowId, bytes: &[u8], frame: Option<&[u8]>) -> Option<(u32, usize)> {
        let (number, side) = match self.flow_at(node, id) {
            Some(known) => known,
            None => {
                // A flow made by a packet: the one it is about.
                let found = self.flow_of(node, &Packet::read(frame?).ok()?)?;
                self.machines[node as usize].as_mut()?.flows.insert(id, found);
                self.flows.get_mut(found.0).carriers[found.1] = Some(id);
                found
            }
        };
        let flow = self.flows.get_mut(number);
        // Of a host's datagrams, a function makes what it likes; of streams it must deliver each byte once, in order.
        let stream = flow.seen.is_none() || self.kinds_at(number) == Kind::Function;
        let flow = self.flows.get_mut(number);
        let (phase, offset) = (flow.phase(1 - side), flow.received[side]);
        let wrong = if stream { self.pattern.mismatch(phase, offset, bytes) } else { None };
        let next = self.received(number, side, bytes.len() as u64, wrong);
        if side == 1 && self.flows.get_mut(number).track.is_none() {
            let total = self.flows.get_mut(number).received[1];
            self.flows.acknowledged(number, self.now, total);
        }
        matches!(next, Next::Send(_)).then_some((number, side))
    }

    /// What opens a flow.
    fn kinds_at(&mut self, number: u32) -> Kind {
        let traffic = self.flows.get_mut(number).traffic as usize;
        self.kinds[self.network.traffic[traffic].from.0 as usize]
    }
}
