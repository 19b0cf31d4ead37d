//! End hosts: whom a packet is for, datagrams, and what TCP's segments tell of flows.

use super::flows::{Key, Next, Outcome};
use super::frames::Slot;
use super::pattern::Phase;
use super::queue::Event;
use super::simulation::{Kind, Simulation};
use super::tcp;
use super::wire::{self, ACK, Ends, FIN, Packet, SYN, Segment};
use std::io;
use weftwire_core::Offload;
use weftwire_core::port::Checksum;
use weftwire_network::link::frame;
use weftwire_network::model::{NodeIndex, PortPlace, TrafficKind, Transport};
use weftwire_network::routing::{Flow, Hop};

/// Bytes in front of a datagram's pattern: its number and the time it was sent.
const NUMBERED: usize = 16;
/// Payload that fits an Ethernet frame, behind IPv4 and UDP headers, and behind IPv6 and UDP headers.
const MOST_PAYLOAD: [usize; 2] = [wire::MTU - 28, wire::MTU - 48];

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
            wire::TCP if self.kinds[node as usize] == Kind::Host => self.segment(node, &packet, slot),
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
        frame::set_dscp(self.frames.get_mut(slot), traffic.dscp);
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

    /// A TCP segment arrives at a host. Its checksum is right.
    fn segment(&mut self, node: u32, packet: &Packet, slot: Slot) -> io::Result<()> {
        self.note_received(node, packet, slot);
        self.make_host(node)?;
        let verified = Offload { checksum: Checksum::Verified, ..Offload::default() };
        self.frame_to_function(PortPlace { node: NodeIndex(node), port: tcp::PORT }, slot, verified)
    }

    /// What the opener of a flow learns from a segment.
    fn note_received(&mut self, node: u32, packet: &Packet, slot: Slot) {
        let (_, acknowledgment, flags) = packet.tcp(self.frames.get(slot));
        let Some((number, 0)) = self.flow_of(node, packet) else { return };
        let flow = self.flows.get_mut(number);
        let Some(track) = flow.track.as_mut().filter(|_| flags & ACK != 0) else { return };
        let before = track.acknowledged();
        let time = track.received(self.now, acknowledgment);
        let acknowledged = track.acknowledged();
        let asks = matches!(self.network.traffic[flow.traffic as usize].kind, TrafficKind::RequestResponse { .. });
        if let Some(time) = time.filter(|_| !asks) {
            flow.rtt.add(time);
        }
        let closed = flow.is_closed();
        if acknowledged > before {
            self.flows.acknowledged(number, self.now, acknowledged);
        }
        if closed {
            self.flows.forget(number);
        }
    }

    /// A host's TCP sends a frame: the network layer finds its way.
    pub fn host_sends(&mut self, node: u32, bytes: &[u8]) -> io::Result<()> {
        let Some(slot) = self.frames.copy(bytes) else { return Ok(()) };
        let flow = wire::flow(self.frames.get(slot));
        let to = self.node_at(flow.destination);
        if let Some(to) = to {
            let [here, there] = flow.ports;
            let key = Key::new(Transport::Tcp, flow.source.is_ipv6(), (node, here), (to, there));
            let opened = self.flows.find(key);
            if let Some(number) = opened {
                self.note_sent(number, slot);
            }
            if let Some(number) = opened.or_else(|| self.flows.find(key.reversed())) {
                let dscp = self.network.traffic[self.flows.get_mut(number).traffic as usize].dscp;
                if dscp > 0 {
                    frame::set_dscp(self.frames.get_mut(slot), dscp);
                }
            }
        }
        self.send_to(node, to, slot)
    }

    fn note_sent(&mut self, number: u32, slot: Slot) {
        let Some(track) = &mut self.flows.get_mut(number).track else { return };
        let Segment { sequence, flags, payload } = wire::segment(self.frames.get(slot));
        let marks = [SYN, FIN].map(|flag| flags & flag != 0);
        if let Some((offset, repeated)) = track.sent(self.now, sequence, marks, payload) {
            self.flows.sent(number, self.now, offset, payload, repeated);
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
}
