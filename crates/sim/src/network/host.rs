//! End hosts: whom a packet is for, datagrams, and the life of TCP connections.

use super::connection::{Connection, Control, Opening};
use super::flows::{Carrier, Key, Map, NO_FLOW, Next, Outcome};
use super::frames::Slot;
use super::lane::NEVER;
use super::pattern::Phase;
use super::queue::Event;
use super::simulation::{Kind, Simulation};
use super::wire::{self, ACK, Ends, FIN, Packet, RST, SYN};
use smoltcp::socket::tcp::State;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use weftwire_core::MacAddress;
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, PortPlace, TrafficKind, Transport};
use weftwire_network::routing::{Flow, Hop};

/// How long an end of a connection remembers that it has closed (smoltcp's own value).
const TIME_WAIT: i64 = 10_000_000_000;
/// Most connections that belong to no flow, in the whole network.
const MOST_STRANGERS: usize = 65_536;
/// Buffer of an end that sends or receives nothing.
const IDLE_BUFFER: usize = 1 << 10;
/// Bytes in front of a datagram's pattern: its number and the time it was sent.
const NUMBERED: usize = 16;
/// Payload that fits an Ethernet frame, behind IPv4 and UDP headers, and behind IPv6 and UDP headers.
const MOST_PAYLOAD: [usize; 2] = [wire::MTU - 28, wire::MTU - 48];

/// The connections of all hosts.
pub struct Hosts {
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    open: usize,
    strangers: usize,
    by_key: Map<Key, u32>,
    /// Closed ends that answer a repeated FIN: sequence and acknowledgment number.
    waiting: Map<Key, (u32, u32)>,
    /// When they are forgotten, in order.
    expiries: VecDeque<(i64, Key)>,
    /// Ports that applications listen at: node and port.
    listeners: BTreeMap<(u32, u16), ()>,
    /// Connections made so far, for their seeds.
    made: u64,
    /// Frames that a connection sends; kept for its memory.
    output: Vec<Slot>,
}

/// How large the buffers of one more connection are when so many are open: large windows for few, all of 100,000 flows in memory.
pub fn buffer_size(open: usize) -> usize {
    match open {
        0..128 => 4 << 20,
        128..2_048 => 256 << 10,
        2_048..8_192 => 64 << 10,
        _ => 8 << 10,
    }
}

impl Hosts {
    /// Nobody is connected.
    pub fn new(network: &Network) -> Hosts {
        let towards = network.traffic.iter().filter(|traffic| traffic.transport == Transport::Tcp);
        Hosts {
            connections: Vec::new(),
            free: Vec::new(),
            open: 0,
            strangers: 0,
            by_key: Map::default(),
            waiting: Map::default(),
            expiries: VecDeque::new(),
            listeners: towards
                .flat_map(|traffic| traffic.receivers().iter().map(|to| ((to.0, traffic.port), ())))
                .collect(),
            made: 0,
            output: Vec::new(),
        }
    }

    fn add(&mut self, connection: Connection) -> u32 {
        let key = connection.key;
        self.open += 1;
        self.strangers += usize::from(connection.flow == NO_FLOW);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            (self.connections.len() - 1) as u32
        });
        self.connections[slot as usize] = Some(Box::new(connection));
        self.by_key.insert(key, slot);
        slot
    }

    /// The connection in a slot is gone; it was taken out before.
    fn remove(&mut self, slot: u32, connection: &Connection) {
        self.open -= 1;
        self.strangers -= usize::from(connection.flow == NO_FLOW);
        self.by_key.remove(&connection.key);
        self.free.push(slot);
    }

    /// All of a node's connections are gone.
    pub fn forget_node(&mut self, node: u32) {
        for slot in 0..self.connections.len() {
            let place = &mut self.connections[slot];
            if let Some(connection) = place.take_if(|connection| connection.node == node) {
                self.remove(slot as u32, &connection);
            }
        }
        self.waiting.retain(|key, _| !key.is_at(node));
    }

    /// A closed end's numbers, if it still remembers.
    fn remembered(&mut self, now: i64, key: Key) -> Option<(u32, u32)> {
        while let Some((_, old)) = self.expiries.pop_front_if(|(at, _)| *at <= now) {
            self.waiting.remove(&old);
        }
        self.waiting.get(&key).copied()
    }
}

/// The IP protocol number of a transport.
pub fn protocol_of(transport: Transport) -> u8 {
    match transport {
        Transport::Tcp => wire::TCP,
        Transport::Udp => wire::UDP,
    }
}

impl Simulation<'_> {
    /// A frame arrives at an end.
    pub fn host_frame(&mut self, place: PortPlace, slot: Slot) -> io::Result<()> {
        let node = place.node.0;
        if !self.is_for(place, slot) {
            self.drop_packet(node, "other_address", slot);
            return Ok(());
        }
        let packet = match Packet::read(self.frames.get(slot)) {
            Ok(packet) if self.node_at(packet.destination) == Some(node) => packet,
            Ok(_) => {
                self.drop_packet(node, "other_address", slot);
                return Ok(());
            }
            Err(reason) => {
                self.drop_packet(node, reason, slot);
                return Ok(());
            }
        };
        match packet.protocol {
            wire::UDP => self.datagram(place, &packet, slot),
            wire::TCP if self.kinds[node as usize] == Kind::Host => self.segment(place, &packet, slot),
            _ if self.kinds[node as usize] == Kind::Sink => {
                self.frames.release(slot);
                Ok(())
            }
            _ => self.answer(place, slot),
        }
    }

    /// A datagram arrives at an end.
    fn datagram(&mut self, place: PortPlace, packet: &Packet, slot: Slot) -> io::Result<()> {
        let node = place.node.0;
        let flow = self.flow_of(node, packet);
        if let Some((flow, side)) = flow {
            self.datagram_of(flow, side, packet, slot);
        }
        match (self.kinds[node as usize], flow) {
            (Kind::Echo, _) => self.answer(place, slot),
            (Kind::Host, None) => {
                self.drop_packet(node, "no_listener", slot);
                Ok(())
            }
            _ => {
                self.frames.release(slot);
                Ok(())
            }
        }
    }

    fn datagram_of(&mut self, number: u32, side: usize, packet: &Packet, slot: Slot) {
        let now = self.now;
        let flow = self.flows.get_mut(number);
        let Some(seen) = &mut flow.seen else { return };
        let payload = packet.payload(self.frames.get(slot));
        let (head, data) = payload.split_at(payload.len().min(NUMBERED));
        let Ok(head) = <[u8; NUMBERED]>::try_from(head) else {
            // Too short to tell which one it is.
            if side == 1 {
                seen.distinct += 1;
                flow.received[1] += payload.len() as u64;
                flow.arrived(now);
            }
            return;
        };
        let [index, sent] =
            [&head[..8], &head[8..]].map(|part| part.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte)));
        if side == 0 {
            flow.rtt.add(now.saturating_sub(sent as i64).max(0));
            return;
        }
        if !seen.first(index) {
            return;
        }
        flow.received[1] += payload.len() as u64;
        flow.arrived(now);
        let phase = Phase::of(index ^ u64::from(flow.traffic) << 40);
        if let Some(offset) = self.pattern.mismatch(phase, 0, data) {
            let offset = offset + NUMBERED as u64;
            flow.end(now, Outcome::Failed(format!("data differs at byte {offset} of datagram {index}").into()));
            let traffic = &self.network.traffic[flow.traffic as usize].name;
            let text = format!("{traffic}: data differs at byte {offset} of datagram {index}");
            self.warn(|| text);
        }
    }

    /// Sends a datagram of a flow, with this many bytes of payload.
    pub fn send_datagram(&mut self, number: u32, index: u64, bytes: u64) -> io::Result<()> {
        let traffic = &self.network.traffic[self.flows.get_mut(number).traffic as usize];
        let most = MOST_PAYLOAD[usize::from(traffic.ipv6)];
        if bytes > most as u64 {
            self.warn(|| format!("{}: datagrams above {most} bytes were cut to that", traffic.name));
        }
        let length = bytes.min(most as u64) as usize;
        let flow = self.flows.get_mut(number);
        let source_port = flow.source_port;
        flow.goal[0] += length as u64;
        let phase = Phase::of(index ^ u64::from(flow.traffic) << 40);
        let ports = (source_port, traffic.port);
        let Some((lane, ends)) = self.way(traffic.from, traffic.to, traffic.ipv6, Transport::Udp, ports) else {
            self.flows.get_mut(number).end(self.now, Outcome::Failed("there is no way".into()));
            return Ok(());
        };
        let Some(slot) = self.frames.take() else { return Ok(()) };
        let (pattern, now) = (&self.pattern, self.now);
        wire::udp(self.frames.get_mut(slot), &ends, length, |payload| {
            let mut head = [0; NUMBERED];
            head[..8].copy_from_slice(&index.to_be_bytes());
            head[8..].copy_from_slice(&now.to_be_bytes());
            let (front, data) = payload.split_at_mut(length.min(NUMBERED));
            front.copy_from_slice(&head[..front.len()]);
            pattern.fill(phase, 0, data);
        });
        self.flows.get_mut(number).packets += 1;
        self.transmit(lane, slot)
    }

    /// The lane and the addresses of packets between two nodes.
    fn way(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        ipv6: bool,
        transport: Transport,
        ports: (u16, u16),
    ) -> Option<(u32, Ends)> {
        let (source, destination) = (self.network.address(from, ipv6), self.network.address(to, ipv6));
        let protocol = protocol_of(transport);
        let flow = || Flow { source, destination, protocol, ports: [ports.0, ports.1] };
        let Hop { port, to: next } = self.routes.next(from, to, flow)?;
        let lane = self.lanes.out(from, port)?;
        let own = PortPlace { node: from, port };
        let macs = [self.network.mac(next), self.network.mac(own)];
        let ends = Ends { macs, source, destination, source_port: ports.0, destination_port: ports.1 };
        Some((lane, ends))
    }

    /// Sends a datagram or echo request back.
    pub fn answer(&mut self, place: PortPlace, slot: Slot) -> io::Result<()> {
        let node = place.node.0;
        let packet = Packet::read(self.frames.get(slot));
        let echoes = |packet: &Packet| packet.protocol == wire::ICMP || self.kinds[node as usize] == Kind::Echo;
        let Some(packet) = packet.ok().filter(echoes) else {
            self.drop_packet(node, "no_listener", slot);
            return Ok(());
        };
        let to = self.node_at(packet.source);
        if !wire::turn_round(self.frames.get_mut(slot), &packet) {
            self.drop_packet(node, "no_listener", slot);
            return Ok(());
        }
        self.send_to(node, to, slot)
    }

    /// A TCP segment arrives at a host.
    fn segment(&mut self, place: PortPlace, packet: &Packet, slot: Slot) -> io::Result<()> {
        let node = place.node.0;
        let Some(source) = self.node_at(packet.source) else {
            self.drop_packet(node, "no_route", slot);
            return Ok(());
        };
        let ends = ((node, packet.destination_port), (source, packet.source_port));
        let key = Key::new(Transport::Tcp, packet.ipv6, ends.0, ends.1);
        if let Some(connection) = self.hosts.by_key.get(&key).copied() {
            return self.drive(connection, Some((packet, slot)));
        }
        let (sequence, acknowledgment, flags) = packet.tcp(self.frames.get(slot));
        let length = packet.payload(self.frames.get(slot)).len() as u32;
        if flags & RST != 0 {
            self.frames.release(slot);
            return Ok(());
        }
        let starts = flags & (SYN | ACK) == SYN;
        if let Some((sequence, acknowledgment)) = self.hosts.remembered(self.now, key).filter(|_| !starts) {
            return self.bare_segment(packet, slot, sequence, acknowledgment, ACK);
        }
        if starts && self.hosts.listeners.contains_key(&ends.0) {
            if let Some(connection) = self.accept(key, packet, source) {
                return self.drive(connection, Some((packet, slot)));
            }
            self.drop_packet(node, "no_room", slot);
            return Ok(());
        }
        // RFC 9293, section 3.10.7.1.
        if flags & ACK != 0 {
            return self.bare_segment(packet, slot, acknowledgment, 0, RST);
        }
        let end = sequence.wrapping_add(length + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0));
        self.bare_segment(packet, slot, 0, end, RST | ACK)
    }

    /// Answers a segment by one without data, in its buffer.
    fn bare_segment(
        &mut self,
        to: &Packet,
        slot: Slot,
        sequence: u32,
        acknowledgment: u32,
        flags: u8,
    ) -> io::Result<()> {
        let ends = Ends {
            macs: [MacAddress::UNSPECIFIED; 2],
            source: to.destination,
            destination: to.source,
            source_port: to.destination_port,
            destination_port: to.source_port,
        };
        let (from, to) = (self.node_at(to.destination), self.node_at(to.source));
        wire::tcp(self.frames.get_mut(slot), &ends, sequence, acknowledgment, flags, 0);
        match from {
            Some(from) => self.send_to(from, to, slot),
            None => {
                self.frames.release(slot);
                Ok(())
            }
        }
    }

    /// Opens a TCP flow at its sender.
    pub fn open_tcp(&mut self, number: u32) -> io::Result<()> {
        let flow = self.flows.get_mut(number);
        let (source_port, key, to) = (flow.source_port, flow.key, flow.to);
        let traffic = &self.network.traffic[flow.traffic as usize];
        let way = self.way(traffic.from, to, traffic.ipv6, Transport::Tcp, (source_port, traffic.port));
        let connection = way.ok_or("there is no way".to_owned()).and_then(|(lane, ends)| {
            let mut connection = self.connection(traffic.from.0, number, 0, key, lane, ends);
            connection.connect().map(|()| connection).map_err(|error| error.to_string())
        });
        match connection {
            Ok(connection) => {
                self.hosts.waiting.remove(&key);
                let slot = self.hosts.add(connection);
                self.flows.get_mut(number).carriers[0] = Carrier::Connection(slot);
                self.drive(slot, None)
            }
            Err(reason) => {
                self.flows.get_mut(number).end(self.now, Outcome::Failed(reason.into()));
                self.flows.forget(number);
                Ok(())
            }
        }
    }

    /// Makes the other end of a connection, for a SYN.
    fn accept(&mut self, key: Key, packet: &Packet, source: u32) -> Option<u32> {
        let flow = self.flows.find(key.reversed());
        if flow.is_none() && self.hosts.strangers >= MOST_STRANGERS {
            return None;
        }
        let node = self.node_at(packet.destination)?;
        let ports = (packet.destination_port, packet.source_port);
        let (lane, ends) = self.way(NodeIndex(node), NodeIndex(source), packet.ipv6, Transport::Tcp, ports)?;
        let mut connection = self.connection(node, flow.unwrap_or(NO_FLOW), 1, key, lane, ends);
        connection.listen().ok()?;
        self.hosts.waiting.remove(&key);
        let slot = self.hosts.add(connection);
        if let Some(flow) = flow {
            self.flows.get_mut(flow).carriers[1] = Carrier::Connection(slot);
        }
        Some(slot)
    }

    fn connection(&mut self, node: u32, flow: u32, side: usize, key: Key, lane: u32, ends: Ends) -> Connection {
        let full = buffer_size(self.hosts.open);
        let traffic = self.flows.all.get(flow as usize).map(|flow| &self.network.traffic[flow.traffic as usize]);
        let both = traffic.is_none_or(|traffic| matches!(traffic.kind, TrafficKind::RequestResponse { .. }));
        // Data flows one way but for requests and responses. No buffer is larger than all data.
        let most = match self.flows.all.get(flow as usize) {
            Some(flow) if !both => full.min(flow.goal[0].min(1 << 40).next_power_of_two() as usize).max(IDLE_BUFFER),
            _ => full,
        };
        let [receive, send] = match (both, side) {
            (true, _) => [full, full],
            (false, 0) => [IDLE_BUFFER, most],
            (false, _) => [most, IDLE_BUFFER],
        };
        self.hosts.made += 1;
        let seed = self.network.node_seed(NodeIndex(node)) ^ self.hosts.made.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // That there is this one was seen at the start.
        let control = traffic.and_then(|traffic| Control::of(traffic).ok()).unwrap_or_default();
        let epoch = self.routes.epoch();
        let opening = Opening { node, flow, side, key, lane, ends, epoch, seed, buffers: (receive, send), control };
        Connection::new(opening, self.now)
    }

    /// A connection's timer.
    pub fn connection_deadline(&mut self, slot: u32) -> io::Result<()> {
        let now = self.now;
        let Some(connection) = &mut self.hosts.connections[slot as usize] else { return Ok(()) };
        if connection.scheduled != now {
            return Ok(());
        }
        connection.scheduled = NEVER;
        self.drive(slot, None)
    }

    /// Lets a connection go on: a segment arrived, its timer is due, or its application has something new.
    pub fn drive(&mut self, slot: u32, input: Option<(&Packet, Slot)>) -> io::Result<()> {
        let now = self.now;
        let Some(mut connection) = self.hosts.connections[slot as usize].take() else {
            if let Some((_, frame)) = input {
                self.frames.release(frame);
            }
            return Ok(());
        };
        let mut output = std::mem::take(&mut self.hosts.output);
        if let Some((packet, frame)) = input {
            let bytes = std::mem::take(self.frames.get_mut(frame));
            self.note_received(&mut connection, packet, &bytes);
            connection.ingress(now, &bytes[packet.ip..packet.end], &mut self.frames, &mut output);
            *self.frames.get_mut(frame) = bytes;
            self.frames.release(frame);
        }
        self.application(&mut connection);
        connection.egress(now, &mut self.frames, &mut output);
        for frame in output.drain(..) {
            self.send_segment(&mut connection, frame)?;
        }
        self.hosts.output = output;
        self.settle_connection(slot, connection);
        Ok(())
    }

    fn note_received(&mut self, connection: &mut Connection, packet: &Packet, bytes: &[u8]) {
        let (sequence, acknowledgment, flags) = packet.tcp(bytes);
        if flags & FIN != 0 {
            let length = packet.payload(bytes).len() as u32;
            connection.fin = Some(sequence.wrapping_add(length).wrapping_add(1));
        }
        if flags & ACK != 0 && connection.side == 0 && connection.flow != NO_FLOW {
            let before = connection.track.acknowledged();
            let time = connection.track.received(self.now, acknowledgment);
            let flow = self.flows.get_mut(connection.flow);
            let asks = matches!(self.network.traffic[flow.traffic as usize].kind, TrafficKind::RequestResponse { .. });
            if let Some(time) = time.filter(|_| !asks) {
                flow.rtt.add(time);
            }
            let acknowledged = connection.track.acknowledged();
            if acknowledged > before {
                self.flows.acknowledged(connection.flow, self.now, acknowledged);
            }
        }
    }

    /// Looks where a connection's next segment leaves, if that may have changed.
    fn find_way(&mut self, connection: &mut Connection) {
        let epoch = self.routes.epoch();
        if connection.epoch == epoch && !self.routes.sprays() {
            return;
        }
        connection.epoch = epoch;
        let ends = connection.ends;
        let Some(to) = self.node_at(ends.destination) else { return };
        let (from, to, ports) = (NodeIndex(connection.node), NodeIndex(to), (ends.source_port, ends.destination_port));
        if let Some((lane, ends)) = self.way(from, to, ends.source.is_ipv6(), Transport::Tcp, ports) {
            (connection.lane, connection.ends) = (lane, ends);
        }
    }

    fn send_segment(&mut self, connection: &mut Connection, slot: Slot) -> io::Result<()> {
        self.find_way(connection);
        let frame = self.frames.get_mut(slot);
        connection.complete(frame);
        let transport = wire::ETHERNET + if connection.ends.source.is_ipv6() { 40 } else { 20 };
        let word = |at: usize| u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let (sequence, acknowledgment) = (word(transport + 4), word(transport + 8));
        let flags = frame[transport + 13];
        let length = (frame.len() - transport - usize::from(frame[transport + 12] >> 4) * 4) as u32;
        let taken = length + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        connection.last = (sequence.wrapping_add(taken), acknowledgment);
        if connection.side == 0
            && connection.flow != NO_FLOW
            && let Some((offset, repeated)) =
                connection.track.sent(self.now, sequence, [SYN, FIN].map(|flag| flags & flag != 0), length)
        {
            self.flows.sent(connection.flow, self.now, offset, length, repeated);
        }
        self.transmit(connection.lane, slot)
    }

    /// What the application does with a connection: takes what came, sends what there is, closes.
    fn application(&mut self, connection: &mut Connection) {
        let (side, number) = (connection.side, connection.flow);
        while connection.socket().can_recv() {
            let flow = self.flows.all.get(number as usize);
            let position = flow.map(|flow| (flow.phase(1 - side), flow.received[side]));
            let pattern = &self.pattern;
            let taken = connection.socket().recv(|data| {
                let wrong = position.and_then(|(phase, offset)| pattern.mismatch(phase, offset, data));
                (data.len(), (data.len(), wrong))
            });
            let Ok((length, wrong)) = taken else { break };
            if position.is_some() {
                self.received(number, side, length as u64, wrong);
            }
        }
        if number == NO_FLOW {
            if connection.socket().state() == State::CloseWait {
                connection.socket().close();
            }
            return;
        }
        let flow = &mut self.flows.all[number as usize];
        while connection.socket().can_send() && flow.written[side] < flow.goal[side] {
            let (phase, offset, left) = (flow.phase(side), flow.written[side], flow.goal[side] - flow.written[side]);
            let pattern = &self.pattern;
            let accepted = connection.socket().send(|room| {
                let length = (room.len() as u64).min(left) as usize;
                pattern.fill(phase, offset, &mut room[..length]);
                (length, length)
            });
            let Ok(accepted) = accepted else { break };
            flow.written[side] += accepted as u64;
        }
        let all_written = flow.written[side] >= flow.goal[side];
        let state = connection.socket().state();
        let closes = match side {
            0 => flow.closing && all_written,
            _ => state == State::CloseWait && all_written,
        };
        if closes && matches!(state, State::Established | State::CloseWait) {
            connection.socket().close();
        }
    }

    /// Bytes of a stream reached an application, and the offset of the first wrong one.
    pub fn received(&mut self, number: u32, side: usize, length: u64, wrong: Option<u64>) -> Next {
        let now = self.now;
        let flow = self.flows.get_mut(number);
        let index = flow.traffic as usize;
        let traffic = &self.network.traffic[index];
        flow.received[side] += length;
        if let Some(offset) = wrong {
            flow.end(now, Outcome::Failed(format!("data differs at byte {offset}").into()));
            let flow = flow.number;
            self.warn(|| format!("{} flow {flow}: data differs at byte {offset}", traffic.name));
        }
        let next = self.flows.get_mut(number).advance(traffic, side, now);
        if next == Next::Think
            && let TrafficKind::RequestResponse { think, .. } = &traffic.kind
        {
            let think = self.sources[index].draws.gap(think);
            self.queue.push(now.saturating_add(think), Event::Application(number));
        }
        next
    }

    /// After a connection went on: it is put back with its timer, or it has ended.
    fn settle_connection(&mut self, slot: u32, mut connection: Box<Connection>) {
        let now = self.now;
        let state = connection.socket().state();
        connection.established |= matches!(state, State::Established | State::CloseWait | State::FinWait1);
        let gone = match state {
            State::Closed => true,
            // A reset while half open.
            State::Listen => true,
            State::TimeWait => connection.fin == Some(connection.last.1),
            _ => false,
        };
        if !gone {
            let deadline = connection.deadline(now);
            if deadline < connection.scheduled {
                connection.scheduled = deadline;
                self.queue.push(deadline, Event::Connection(slot));
            }
            self.hosts.connections[slot as usize] = Some(connection);
            return;
        }
        if state == State::TimeWait {
            self.hosts.waiting.insert(connection.key, connection.last);
            self.hosts.expiries.push_back((now.saturating_add(TIME_WAIT), connection.key));
        }
        self.hosts.remove(slot, &connection);
        if let Some(flow) = self.flows.all.get_mut(connection.flow as usize) {
            flow.carriers[connection.side] = Carrier::None;
            if connection.side == 0 {
                // Its bytes may all be on their way; broken off is what was not closed in turn.
                let all_acknowledged = flow.closing && connection.track.acknowledged() >= flow.goal[0];
                if !all_acknowledged {
                    flow.end(now, if connection.established { Outcome::Reset } else { Outcome::Refused });
                }
                self.flows.forget(connection.flow);
            }
        }
    }
}
