//! Nodes that run functions: the platform's side of the contract in virtual time (`docs/semantics.md`, 4.1).

use super::clock::Clock;
use super::flows::{Carrier, Map, Next, Outcome};
use super::frames::Slot;
use super::host::protocol_of;
use super::lane::NEVER;
use super::queue::Event;
use super::simulation::Simulation;
use super::wire::Packet;
use std::io;
use weftwire_core::inspect::Counters;
use weftwire_core::port::Checksum;
use weftwire_core::trace::TraceKind;
use weftwire_core::{
    Arrival, Arrivals, CallError, Connections, Endpoints, FlowId, Frame, Function, LinkType, Listen, Offload, Outbox,
    Output, Port, Ports, Time, segments,
};
use weftwire_network::model::{NodeIndex, NodeKind, PortPlace};
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
        let ports = Ports::new((1..=description.ports.len() as u16).map(|port| (Port(port), LinkType::Ethernet)));
        let mut function = self.surroundings.function(index, &ports, self.network.node_seed(index) ^ restarts)?;
        let mut outbox = if settings.trace { Outbox::tracing() } else { Outbox::new() };
        if let Some(connections) = function.connections() {
            // Applications take all connections that others open.
            connections.listen(Time::ZERO, &Listen::default(), &mut outbox).map_err(io::Error::other)?;
        }
        Ok(Box::new(NodeFunction {
            function,
            outbox,
            clock: Clock::new(0),
            scheduled: NEVER,
            transparent: settings.transparent,
            tracing: settings.trace,
            flows: Map::default(),
            restarts,
        }))
    }

    /// A node's function, if it has one, is made anew.
    pub fn restart_machine(&mut self, node: u32) -> io::Result<()> {
        let Some(old) = self.machines[node as usize].take() else { return Ok(()) };
        let mut machine = self.make_machine(node, old.restarts + 1)?;
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
        let bytes = std::mem::take(self.frames.get_mut(slot));
        let called = self.arrive(place, &bytes);
        *self.frames.get_mut(slot) = bytes;
        self.frames.release(slot);
        called?;
        self.schedule_machine(node);
        Ok(())
    }

    fn arrive(&mut self, place: PortPlace, bytes: &[u8]) -> io::Result<()> {
        let node = place.node.0;
        let Some(machine) = &mut self.machines[node as usize] else { return Ok(()) };
        let mut arrivals = Arrivals::from([Arrival::copied(place.port, Frame::new(bytes), &mut machine.outbox)]);
        while !arrivals.is_empty() {
            self.call(node, Some(bytes), |function, time, outbox| function.frames(time, &mut arrivals, outbox))?;
        }
        Ok(())
    }

    /// Opens a flow that a function carries.
    pub fn open_function(&mut self, number: u32) -> io::Result<()> {
        let flow = self.flows.get_mut(number);
        let source_port = flow.source_port;
        let traffic = &self.network.traffic[flow.traffic as usize];
        let (protocol, ports) = (protocol_of(traffic.transport), [source_port, traffic.port]);
        let [source, destination] = [traffic.from, traffic.to].map(|node| self.network.address(node, traffic.ipv6));
        let flow = || Flow { source, destination, protocol, ports };
        let Some(hop) = self.routes.next(traffic.from, traffic.to, flow) else {
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
        let opened = self.connections(node, |function, time, outbox| function.connect(time, &endpoints, outbox));
        match opened {
            Some(Ok(id)) => {
                if let Some(machine) = &mut self.machines[node as usize] {
                    machine.flows.insert(id, (number, 0));
                }
                self.flows.get_mut(number).carriers[0] = Carrier::Function(id);
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

    /// Hands a flow's bytes to its function, as many as it takes; closes behind the last.
    pub fn feed_function(&mut self, number: u32, side: usize) -> io::Result<()> {
        let traffic = &self.network.traffic[self.flows.get_mut(number).traffic as usize];
        let node = [traffic.from, traffic.to][side].0;
        let mut data = Vec::new();
        loop {
            let flow = self.flows.get_mut(number);
            let Carrier::Function(id) = flow.carriers[side] else { break };
            let length = (flow.goal[side] - flow.written[side]).min(OFFER) as usize;
            if length == 0 {
                break;
            }
            data.resize(length, 0);
            self.pattern.fill(flow.phase(side), flow.written[side], &mut data);
            let wrote = self.connections(node, |function, time, outbox| function.write(time, id, &data, outbox));
            let accepted = self.accepted(number, side, wrote);
            self.outputs(node, None)?;
            if accepted < length {
                break;
            }
        }
        let flow = self.flows.get_mut(number);
        if let Carrier::Function(id) = flow.carriers[side]
            && side == 0
            && flow.closing
            && flow.written[side] >= flow.goal[side]
        {
            // Closed: nothing more is offered.
            flow.carriers[side] = Carrier::None;
            let closed = self.connections(node, |function, time, outbox| function.close(time, id, outbox));
            if let Some(Err(error)) = closed {
                self.function_refuses(number, &error);
            }
            self.outputs(node, None)?;
        }
        self.schedule_machine(node);
        Ok(())
    }

    fn accepted(&mut self, number: u32, side: usize, wrote: Option<Result<usize, CallError>>) -> usize {
        match wrote {
            Some(Ok(accepted)) => {
                self.flows.get_mut(number).written[side] += accepted as u64;
                accepted
            }
            Some(Err(error)) => {
                self.flows.get_mut(number).carriers[side] = Carrier::None;
                self.function_refuses(number, &error);
                0
            }
            None => 0,
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
        let (mut ready, mut read) = (Vec::new(), Vec::new());
        for item in outbox.items() {
            match item {
                Output::Send { port, bytes, offload, .. } => self.depart(node, *port, outbox.bytes(bytes), *offload)?,
                Output::Deliver { flow, bytes } => {
                    read.push((*flow, outbox.bytes(bytes).len()));
                    if let Some(resume) = self.deliver(node, *flow, outbox.bytes(bytes), frame) {
                        ready.push(resume);
                    }
                }
                Output::Released { flow, .. } => ready.extend(self.flow_at(node, *flow)),
                Output::Ended { flow } => {
                    if let Some(machine) = &mut self.machines[node as usize]
                        && let Some((number, side)) = machine.flows.remove(flow)
                    {
                        self.flows.get_mut(number).carriers[side] = Carrier::None;
                    }
                }
                Output::Notify { flow, notice, .. } => {
                    if let Some((number, 0)) = self.flow_at(node, *flow)
                        && let Some(machine) = &self.machines[node as usize]
                    {
                        self.flows.get_mut(number).notice = Some(machine.function.notice_name(*notice).into());
                    }
                }
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
        Ok(())
    }

    fn flow_at(&self, node: u32, flow: FlowId) -> Option<(u32, usize)> {
        self.machines[node as usize].as_ref()?.flows.get(&flow).copied()
    }

    /// A function sends a frame.
    fn depart(&mut self, node: u32, port: Port, bytes: &[u8], offload: Offload) -> io::Result<()> {
        let Some(lane) = self.lanes.out(NodeIndex(node), port) else { return Ok(()) };
        if offload.segmentation.is_none() && offload.checksum != Checksum::Partial {
            return match self.frames.copy(bytes) {
                Some(slot) => self.transmit(lane, slot),
                None => Ok(()),
            };
        }
        let Ok(segments) = segments(LinkType::Ethernet, Frame { bytes, offload }) else {
            let name = &self.network.node(NodeIndex(node)).name;
            self.warn(|| format!("{name}: a frame for many segments could not be cut"));
            return Ok(());
        };
        for segment in segments {
            if let Some(slot) = self.frames.copy(&segment) {
                self.transmit(lane, slot)?;
            }
        }
        Ok(())
    }

    /// A function hands bytes to its application. Gives the flow's end if that has something to send then.
    fn deliver(&mut self, node: u32, id: FlowId, bytes: &[u8], frame: Option<&[u8]>) -> Option<(u32, usize)> {
        let (number, side) = match self.flow_at(node, id) {
            Some(known) => known,
            None => {
                // A flow made by a packet: the one it is about.
                let found = self.flow_of(node, &Packet::read(frame?).ok()?)?;
                self.machines[node as usize].as_mut()?.flows.insert(id, found);
                self.flows.get_mut(found.0).carriers[found.1] = Carrier::Function(id);
                found
            }
        };
        let flow = self.flows.get_mut(number);
        // Of a host's datagrams, a function makes what it likes; of streams it must deliver each byte once, in order.
        let stream = flow.seen.is_none() || self.kinds_at(number) == super::simulation::Kind::Function;
        let flow = self.flows.get_mut(number);
        let (phase, offset) = (flow.phase(1 - side), flow.received[side]);
        let wrong = if stream { self.pattern.mismatch(phase, offset, bytes) } else { None };
        let next = self.received(number, side, bytes.len() as u64, wrong);
        if side == 1 {
            let total = self.flows.get_mut(number).received[1];
            self.flows.acknowledged(number, self.now, total);
        }
        matches!(next, Next::Send(_)).then_some((number, side))
    }

    /// What opens a flow.
    fn kinds_at(&mut self, number: u32) -> super::simulation::Kind {
        let traffic = self.flows.get_mut(number).traffic as usize;
        self.kinds[self.network.traffic[traffic].from.0 as usize]
    }
}
