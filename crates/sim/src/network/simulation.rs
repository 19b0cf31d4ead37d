//! The running simulation: events in order, links, changes, samples, results.

use super::LEAK;
use super::flows::{Flows, Key, Map, NO_FLOW, Outcome, Source, carrier_name};
use super::frames::{Frames, Slot};
use super::function::NodeFunction;
use super::lane::{Lanes, NEVER};
use super::pattern::Pattern;
use super::pause::Pauses;
use super::probes::Probes;
use super::queue::{Event, Queue};
use super::switch::Switch;
use super::tcp::{Tcp, chosen_control, chosen_recovery};
use super::wire;
use super::{Progress, Surroundings};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::ops::ControlFlow;
use weftwire_core::{LinkType, MacAddress, Time, nanoseconds};
use weftwire_network::link::field::FieldCorruptor;
use weftwire_network::link::{Counts, Offer, Rate, frame};
use weftwire_network::model::{ChangeKind, LinkIndex, NodeIndex, NodeKind, PortPlace, TrafficKind, Transport};
use weftwire_network::results::{LinkResult, LinkSample, Results, RunFacts};
use weftwire_network::routing::{Hop, Reroute, Routes, reroutes};
use weftwire_network::traffic::{Begins, Draws};
use weftwire_network::{Network, ideal};

/// How many events pass between two calls of the progress callback.
const PROGRESS_STEP: u64 = 8192;
/// Only the first links are sampled,
const SAMPLED_LINKS: usize = 256;
/// and at most so often.
const MOST_SAMPLES: i64 = 2_000;
/// Most warnings.
const MOST_WARNINGS: usize = 100;

/// What a node does with packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An end with TCP.
    Host,
    /// An end that answers datagrams.
    Echo,
    /// An end that answers nothing.
    Sink,
    /// Forwards by IP address.
    Router,
    /// Forwards by Ethernet address.
    Switch,
    /// Runs a function.
    Function,
}

/// A running simulation.
pub struct Simulation<'a> {
    pub network: &'a Network,
    pub surroundings: &'a mut dyn Surroundings,
    pub now: i64,
    /// When something last happened that keeps a run going.
    lasted: i64,
    pub queue: Queue,
    pub frames: Frames,
    pub lanes: Lanes,
    pub routes: Routes,
    reroutes: Vec<Reroute>,
    pub kinds: Vec<Kind>,
    pub switches: Map<u32, Switch>,
    /// By node; hosts have one from the first connection on.
    pub machines: Vec<Option<Box<NodeFunction>>>,
    pub tcp: Tcp,
    /// Ports that applications listen at, by host.
    pub listeners: BTreeMap<u32, BTreeSet<u16>>,
    /// What applications offer to functions; kept for its memory.
    pub offer: Vec<u8>,
    pub flows: Flows,
    pub sources: Vec<Source>,
    pub pattern: Pattern,
    nodes_by_ipv4: Map<u32, u32>,
    nodes_by_ipv6: Map<u128, u32>,
    pub pauses: Pauses,
    drops: BTreeMap<(u32, &'static str), u64>,
    warnings: Vec<String>,
    packet_hops: u64,
    events: u64,
    samples: Vec<LinkSample>,
    pub probes: Probes,
    /// By sampled row: the counts at the last sample.
    sampled: Vec<Counts>,
    sample_interval: i64,
    /// What each row of links had counted when the warm-up was over; empty before, and without one.
    warm: Vec<Counts>,
}

impl<'a> Simulation<'a> {
    /// A network at its start.
    pub fn new(network: &'a Network, surroundings: &'a mut dyn Surroundings) -> io::Result<Simulation<'a>> {
        let kinds = network.nodes.iter().map(|node| match &node.kind {
            NodeKind::Host { .. } => Kind::Host,
            NodeKind::Echo => Kind::Echo,
            NodeKind::Sink => Kind::Sink,
            NodeKind::Router => Kind::Router,
            NodeKind::Switch => Kind::Switch,
            NodeKind::Function(_) => Kind::Function,
        });
        let mut simulation = Simulation {
            network,
            surroundings,
            now: 0,
            lasted: 0,
            queue: Queue::default(),
            frames: Frames::default(),
            lanes: Lanes::new(network),
            routes: Routes::new(network),
            reroutes: reroutes(network),
            kinds: kinds.collect(),
            switches: Map::default(),
            machines: Vec::new(),
            tcp: Tcp::new(network),
            listeners: BTreeMap::new(),
            offer: Vec::new(),
            flows: Flows::new(),
            sources: Vec::with_capacity(network.traffic.len()),
            pattern: Pattern::new(),
            nodes_by_ipv4: Map::default(),
            nodes_by_ipv6: Map::default(),
            pauses: Pauses::default(),
            drops: BTreeMap::new(),
            warnings: Vec::new(),
            packet_hops: 0,
            events: 0,
            samples: Vec::new(),
            probes: Probes::default(),
            sampled: vec![Counts::default(); network.links.len().min(SAMPLED_LINKS) * 2],
            sample_interval: nanoseconds(network.sample_interval).max(nanoseconds(network.duration) / MOST_SAMPLES + 1),
            warm: Vec::new(),
        };
        simulation.start()?;
        Ok(simulation)
    }

    fn start(&mut self) -> io::Result<()> {
        Probes::check(self.network)?;
        for traffic in &self.network.traffic {
            chosen_control(traffic).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            chosen_recovery(traffic).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            if traffic.transport == Transport::Tcp {
                for to in traffic.receivers() {
                    self.listeners.entry(to.0).or_default().insert(traffic.port);
                }
            }
        }
        for (index, node) in self.network.nodes().filter(|(_, node)| node.is_addressed()) {
            self.nodes_by_ipv4.insert(node.ipv4.to_bits(), index.0);
            self.nodes_by_ipv6.insert(node.ipv6.to_bits(), index.0);
        }
        for index in 0..self.kinds.len() as u32 {
            let machine = match self.kinds[index as usize] {
                Kind::Function => Some(self.make_machine(index, 0)?),
                // Others have one when they need one; here an error must be told.
                Kind::Host if self.has_parameters(index) => Some(self.host_machine(index, 0)?),
                _ => None,
            };
            self.machines.push(machine);
        }
        for (index, traffic) in self.network.traffic.iter().enumerate() {
            let frames = match &traffic.kind {
                TrafficKind::Capture { file, .. } => self.surroundings.capture(file)?,
                _ => Vec::new(),
            };
            let mut begins = Begins::new(traffic).peekable();
            let first = match frames.first() {
                Some((at, _)) => Some(traffic.start.after(*at)).filter(|at| *at < traffic.stop),
                None => begins.peek().map(|begin| begin.at),
            };
            self.sources.push(Source { begins, draws: Draws::new(traffic), flow: NO_FLOW, frames, next: 0 });
            if let Some(at) = first {
                self.queue.push(at.nanoseconds(), Event::Begin(index as u32));
            }
        }
        for (index, change) in self.network.changes.iter().enumerate() {
            self.queue.push(change.at.nanoseconds(), Event::Change(index as u32));
        }
        for (index, reroute) in self.reroutes.iter().enumerate() {
            self.queue.push(reroute.at.nanoseconds(), Event::Reroute(index as u32));
        }
        if (!self.sampled.is_empty() || !self.network.probes.is_empty()) && !self.network.sample_interval.is_zero() {
            self.queue.push(self.sample_interval, Event::Sample);
        }
        Ok(())
    }

    /// Runs to the end.
    pub fn run(mut self) -> io::Result<Results> {
        let before = self.surroundings.processor_seconds();
        let end = nanoseconds(self.network.duration);
        let mut interrupted = false;
        while let Some((at, event)) = self.queue.pop() {
            let lingers = self.lingers(event);
            if at > end {
                if lingers {
                    continue;
                }
                self.now = end;
                self.lasted = end;
                break;
            }
            if !lingers {
                self.lasted = at;
            }
            if self.is_warming() && at >= nanoseconds(self.network.warm_up) {
                self.now = nanoseconds(self.network.warm_up);
                self.end_warm_up();
            }
            self.now = at;
            self.events += 1;
            self.handle(event)?;
            if self.events.is_multiple_of(PROGRESS_STEP) {
                let progress = Progress { now: self.time(), end: Time::from_nanoseconds(end), events: self.events };
                if let ControlFlow::Break(()) = self.surroundings.progress(&progress) {
                    interrupted = true;
                    break;
                }
            }
        }
        let seconds = self.surroundings.processor_seconds() - before;
        Ok(self.results(interrupted, seconds))
    }

    /// Whether an event keeps no run going: samples, and closed connections that are remembered for a while.
    fn lingers(&self, event: Event) -> bool {
        match event {
            Event::Sample => true,
            Event::Function(node) if self.kinds[node as usize] == Kind::Host => {
                self.machines[node as usize].as_ref().is_none_or(|machine| machine.lingers())
            }
            _ => false,
        }
    }

    fn is_warming(&self) -> bool {
        !self.network.warm_up.is_zero() && self.warm.is_empty()
    }

    /// From here on counts are measured.
    fn end_warm_up(&mut self) {
        let now = self.time();
        for (index, _) in self.network.links() {
            for direction in 0..2 {
                let lane = self.lanes.of(index, direction);
                self.warm.push(self.lanes.get_mut(lane).direction.end_warm_up(now));
            }
        }
        for flow in &mut self.flows.all {
            flow.received_in_warm_up = flow.received.iter().sum();
        }
    }

    fn handle(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Pause(number) => {
                self.pause(number);
                Ok(())
            }
            Event::Arrival(lane) => self.arrival(lane),
            Event::Begin(traffic) => self.begin(traffic),
            Event::Application(flow) => self.application_continues(flow),
            Event::Function(node) => self.function_deadline(node),
            Event::Change(index) => self.change(index),
            Event::Reroute(index) => {
                self.routes.reroute(&self.reroutes[index as usize].links);
                Ok(())
            }
            Event::Sample => {
                self.sample();
                Ok(())
            }
        }
    }

    /// The present.
    pub fn time(&self) -> Time {
        Time::from_nanoseconds(self.now)
    }

    /// A node drops a packet.
    pub fn drop_packet(&mut self, node: u32, reason: &'static str, slot: Slot) {
        *self.drops.entry((node, reason)).or_default() += 1;
        self.frames.release(slot);
    }

    /// Something to be told at the end.
    pub fn warn(&mut self, text: impl FnOnce() -> String) {
        if self.warnings.len() < MOST_WARNINGS {
            let text = text();
            if !self.warnings.contains(&text) {
                self.warnings.push(text);
            }
        }
    }

    /// The node with an address.
    pub fn node_at(&self, address: IpAddr) -> Option<u32> {
        match address {
            IpAddr::V4(address) => self.nodes_by_ipv4.get(&address.to_bits()).copied(),
            IpAddr::V6(address) => self.nodes_by_ipv6.get(&address.to_bits()).copied(),
        }
    }

    /// The next hop of a packet from a node towards another.
    fn hop(&mut self, from: u32, to: u32, slot: Slot) -> Option<Hop> {
        let frames = &self.frames;
        self.routes.next(NodeIndex(from), NodeIndex(to), || wire::flow(frames.get(slot)))
    }

    /// A frame leaves a node.
    pub fn transmit(&mut self, lane_number: u32, slot: Slot) -> io::Result<()> {
        let now = self.time();
        let lane = self.lanes.get_mut(lane_number);
        frame::pad(LinkType::Ethernet, self.frames.get_mut(slot));
        let bytes = self.frames.get(slot);
        if lane.capture_from {
            self.surroundings.frame(now, lane.from, bytes, true)?;
        }
        let ecn_capable = lane.ecn && frame::is_ecn_capable(LinkType::Ethernet, bytes);
        let (length, class) = (bytes.len() as u32, lane.class(bytes));
        let from = lane.from.node.0;
        let Ok(holds) = self.pauses.room(&mut self.lanes, length) else {
            self.drop_packet(from, "no_headroom", slot);
            return Ok(());
        };
        let offer = Offer { bytes: length, ecn_capable, class, holds };
        let lane = self.lanes.get_mut(lane_number);
        match lane.direction.offer(now, slot, offer) {
            Ok(()) => self.pauses.enters(holds, length),
            Err((slot, _)) => self.frames.release(slot),
        }
        self.free(lane_number, holds);
        self.settle(lane_number);
        Ok(())
    }

    /// After anything that was done to a lane: what it dropped is free, its next arrival is in the queue.
    pub fn settle(&mut self, lane_number: u32) {
        self.free(lane_number, None);
        let lane = self.lanes.get_mut(lane_number);
        let mut last = None;
        while let Some((slot, _)) = lane.direction.take_dropped() {
            // A copy follows its original, with which it shares the buffer.
            if last != Some(slot) {
                self.frames.release(slot);
            }
            last = Some(slot);
        }
        if let Some(next) = lane.direction.next() {
            let next = next.nanoseconds().max(self.now);
            if next < lane.scheduled {
                lane.scheduled = next;
                self.queue.push(next, Event::Arrival(lane_number));
            }
        }
    }

    fn arrival(&mut self, lane_number: u32) -> io::Result<()> {
        let now = self.time();
        let lane = self.lanes.get_mut(lane_number);
        if lane.scheduled != self.now {
            return Ok(());
        }
        lane.scheduled = NEVER;
        let mut next = lane.direction.arrive(now);
        while let Some(arrival) = next.take() {
            let lane = self.lanes.get_mut(lane_number);
            if lane.duplicates {
                // A copy arrives right behind its original, whose buffer is not free for changes before.
                next = lane.direction.arrive(now);
                if let Some(copy) = next.as_mut().filter(|copy| copy.duplicate && copy.packet == arrival.packet) {
                    match self.frames.duplicate(copy.packet) {
                        Some(slot) => copy.packet = slot,
                        None => next = None,
                    }
                }
            }
            self.packet_hops += 1;
            let slot = arrival.packet;
            if arrival.mark {
                frame::mark_ce(self.frames.get_mut(slot));
            }
            if let Some(bit) = arrival.corrupt_bit {
                frame::invert_bit(self.frames.get_mut(slot), bit);
            }
            if let Some(corruptor) = &mut lane.corruptor {
                corruptor.apply(LinkType::Ethernet, self.frames.get_mut(slot));
            }
            let to = lane.to;
            if lane.capture_to {
                self.surroundings.frame(now, to, self.frames.get(slot), false)?;
            }
            self.receive(lane_number, to, slot)?;
        }
        self.settle(lane_number);
        Ok(())
    }

    fn receive(&mut self, lane: u32, place: PortPlace, slot: Slot) -> io::Result<()> {
        match self.kinds[place.node.0 as usize] {
            Kind::Router => self.forwarding(lane, slot, |simulation, slot| simulation.forward(place, slot)),
            Kind::Switch => self.forwarding(lane, slot, |simulation, slot| simulation.switch(place, slot)),
            Kind::Function => self.function_frame(place, slot),
            Kind::Host | Kind::Echo | Kind::Sink => self.host_frame(place, slot),
        }
    }

    /// Whether a frame is addressed to a port, or to all.
    pub fn is_for(&self, place: PortPlace, slot: Slot) -> bool {
        let to = self.frames.get(slot).first_chunk().map(|to| MacAddress(*to));
        to.is_some_and(|to| to.is_group() || to == self.network.mac(place))
    }

    fn forward(&mut self, place: PortPlace, slot: Slot) -> io::Result<()> {
        let node = place.node.0;
        let reason = 'why: {
            if !self.is_for(place, slot) {
                break 'why "other_address";
            }
            let to = match wire::destination(self.frames.get(slot)) {
                Ok(address) => self.node_at(address),
                Err(reason) => break 'why reason,
            };
            if to == Some(node) {
                return self.answer(place, slot);
            }
            let Some(hop) = to.and_then(|to| self.hop(node, to, slot)) else { break 'why "no_route" };
            let frame = self.frames.get_mut(slot);
            if !wire::decrement_ttl(frame) {
                break 'why "ttl";
            }
            let own = PortPlace { node: place.node, port: hop.port };
            wire::set_macs(frame, self.network.mac(hop.to), self.network.mac(own));
            let Some(lane) = self.lanes.out(place.node, hop.port) else { break 'why "no_route" };
            return self.transmit(lane, slot);
        };
        self.drop_packet(node, reason, slot);
        Ok(())
    }

    /// Sends a finished IP packet on its way from a node to another.
    pub fn send_to(&mut self, from: u32, to: Option<u32>, slot: Slot) -> io::Result<()> {
        let hop = to.and_then(|to| self.hop(from, to, slot));
        let Some((hop, lane)) = hop.and_then(|hop| Some((hop, self.lanes.out(NodeIndex(from), hop.port)?))) else {
            self.drop_packet(from, "no_route", slot);
            return Ok(());
        };
        let own = PortPlace { node: NodeIndex(from), port: hop.port };
        wire::set_macs(self.frames.get_mut(slot), self.network.mac(hop.to), self.network.mac(own));
        self.transmit(lane, slot)
    }

    fn change(&mut self, index: u32) -> io::Result<()> {
        let now = self.time();
        let network = self.network;
        match &network.changes[index as usize].what {
            ChangeKind::Settings { link, direction, settings } => {
                let lane = self.lanes.of(*link, *direction);
                self.lanes.get_mut(lane).note(settings);
                self.lanes.get_mut(lane).direction.change(now, (**settings).clone());
                self.settle(lane);
            }
            ChangeKind::Down { link, direction } => {
                let lane = self.lanes.of(*link, *direction);
                self.lanes.get_mut(lane).direction.down(now);
                self.settle(lane);
            }
            ChangeKind::Up { link, direction } => {
                let lane = self.lanes.of(*link, *direction);
                self.lanes.get_mut(lane).direction.up(now);
                self.settle(lane);
            }
            ChangeKind::Blackhole { link, direction, on } => {
                let lane = self.lanes.of(*link, *direction);
                self.lanes.get_mut(lane).direction.set_blackhole(now, *on);
                self.settle(lane);
            }
            ChangeKind::CorruptField { link, direction, field } => {
                let seed = network.link_seed(*link, *direction) ^ u64::from(index);
                let corruptor = field.as_ref().map(|fault| FieldCorruptor::new(fault, seed)).transpose();
                let lane = self.lanes.of(*link, *direction);
                match corruptor {
                    Ok(corruptor) => self.lanes.get_mut(lane).corruptor = corruptor.map(Box::new),
                    Err(error) => self.warn(|| error.to_string()),
                }
            }
            ChangeKind::Restart { node } => self.restart(node.0)?,
            ChangeKind::Clock { node, drift_ppm, leap } => self.change_clock(node.0, *drift_ppm, nanoseconds(*leap)),
        }
        Ok(())
    }

    fn restart(&mut self, node: u32) -> io::Result<()> {
        self.switches.remove(&node);
        let stays = |kind: &TrafficKind, side: usize| matches!(kind, TrafficKind::Datagrams { .. }) && side == 1;
        for flow in 0..self.flows.all.len() as u32 {
            let state = self.flows.get_mut(flow);
            let traffic = &self.network.traffic[state.traffic as usize];
            let sides = [traffic.from.0, state.to.0];
            let hit = (0..2).any(|side| sides[side] == node && !stays(&traffic.kind, side));
            if hit && self.flows.get_mut(flow).is_running() {
                self.flows.get_mut(flow).end(self.now, Outcome::Reset);
                self.flows.forget(flow);
            }
        }
        self.restart_machine(node)
    }

    fn sample(&mut self) {
        self.probe();
        let now = self.time();
        for row in 0..self.sampled.len() {
            let lane = self.lanes.of(LinkIndex((row / 2) as u32), row % 2);
            let lane = self.lanes.get_mut(lane);
            let (queue_packets, queue_bytes) = lane.direction.waiting(now);
            let counts = lane.direction.counts(now);
            let before = std::mem::replace(&mut self.sampled[row], counts);
            self.samples.push(LinkSample {
                link: row,
                at: self.now,
                delivered_bytes: counts.delivered_bytes - before.delivered_bytes,
                queue_packets,
                queue_bytes,
                drops: drops(&counts) - drops(&before),
                marks: counts.marked - before.marked,
            });
        }
        if !self.queue.is_empty() {
            self.queue.push(self.now.saturating_add(self.sample_interval), Event::Sample);
        }
    }

    fn results(mut self, interrupted: bool, processor_seconds: f64) -> Results {
        let now = self.time();
        if self.is_warming() {
            // It was broken off before.
            self.end_warm_up();
        }
        for index in 0..self.flows.all.len() {
            self.judge(index);
        }
        self.tell_deadlocks();
        let network = self.network;
        let mut links = Vec::with_capacity(network.links.len() * 2);
        for (index, link) in network.links() {
            for direction in 0..2 {
                let lane = self.lanes.of(index, direction);
                let lane = self.lanes.get_mut(lane);
                let counts = lane.direction.counts(now);
                links.push(LinkResult {
                    link: link.name.clone(),
                    from: network.place_name(lane.from),
                    to: network.place_name(lane.to),
                    rate: match link.directions[direction].rate {
                        Some(Rate::Constant(rate)) => Some(rate),
                        _ => None,
                    },
                    counts: self.warm.get(links.len()).map_or(counts, |before| counts.since(before)),
                });
            }
        }
        for lane in 0..links.len() as u32 {
            // The last look at a queue may have dropped from it.
            self.settle(lane);
        }
        let (held, on_links) = (self.frames.in_use() as u64, links.iter().map(|link| link.counts.on_link).sum::<u64>());
        if held > on_links {
            self.warn(|| format!("{LEAK}: {held} buffers are in use, {on_links} frames are on links"));
        }
        let (mut flows, progress, rows) = self.flows.results(network);
        let probes = self.probed(&rows);
        ideal::add_to(network, &mut flows);
        self.samples.retain(|sample| sample.at - self.sample_interval < self.lasted);
        self.samples.sort_by_key(|sample| (sample.link, sample.at));
        let functions = network.nodes.iter().zip(&self.machines);
        Results {
            run: RunFacts {
                network: network.name.clone(),
                platform: "simulator".into(),
                seed: network.seed,
                duration: nanoseconds(network.duration),
                lasted: self.lasted,
                warm_up: nanoseconds(network.warm_up),
                interrupted,
                packet_hops: self.packet_hops,
                events: self.events,
                processor_seconds,
                warnings: self.warnings,
                ..RunFacts::default()
            },
            links,
            flows,
            samples: self.samples,
            functions: functions
                .filter(|(node, _)| matches!(node.kind, NodeKind::Function(_)))
                .filter_map(|(node, machine)| Some((node.name.clone(), machine.as_ref()?.counters())))
                .collect(),
            node_drops: self
                .drops
                .iter()
                .map(|((node, reason), count)| (network.nodes[*node as usize].name.clone(), (*reason).into(), *count))
                .collect(),
            progress,
            probes,
        }
    }

    /// What became of a flow that has not ended.
    fn judge(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows.all[index];
        let traffic = &self.network.traffic[flow.traffic as usize];
        if !flow.is_running() {
            return;
        }
        let datagrams = matches!(traffic.kind, TrafficKind::Datagrams { .. });
        let function = carrier_name(self.network, traffic).is_some();
        let over = self.sources[flow.traffic as usize].begins.peek().is_none();
        if datagrams && over && (!function || flow.received[1] >= flow.goal[0]) {
            // Datagrams are sent and forgotten: the flow is complete when the last one is out, and its end is when the last one
            // that arrived did so.
            flow.outcome = Outcome::Complete;
            flow.end = flow.last_byte;
        } else if let (Some(notice), true) = (&flow.notice, flow.carriers[0].is_none() || flow.closed[0]) {
            flow.outcome = Outcome::Failed(format!("the function gave up ({notice})").into());
        }
        debug_assert!(now >= flow.start);
    }

    /// The flow that a packet at `node` belongs to, and at which side of it the node is.
    pub fn flow_of(&self, node: u32, packet: &wire::Packet) -> Option<(u32, usize)> {
        let transport = match packet.protocol {
            wire::TCP => Transport::Tcp,
            wire::UDP => Transport::Udp,
            _ => return None,
        };
        let there = (self.node_at(packet.source)?, packet.source_port);
        let key = Key::new(transport, packet.ipv6, (node, packet.destination_port), there);
        let opened = |key| self.flows.find(key);
        opened(key.reversed()).map(|flow| (flow, 1)).or_else(|| opened(key).map(|flow| (flow, 0)))
    }
}

fn drops(counts: &Counts) -> u64 {
    counts.lost + counts.dropped_full + counts.dropped_early + counts.dropped_down + counts.dropped_blackhole
}
