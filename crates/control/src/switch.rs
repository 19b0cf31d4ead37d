//! A subscription switch whose rules come from a controller while it forwards.

use crate::table::{Live, Shared};
use std::hash::{DefaultHasher, Hash, Hasher};
use weftwire_core::inspect::{Counters, Inspect};
use weftwire_core::{
    CallError, Deadline, Endpoints, FlowId, Formats, Frame, Function, Outbox, Output, Packet, Port, Ports, Time,
};

/// The switch. Its rules may change between any two packets.
///
/// A packet for the logical up port leaves by one of the ports that it stands for, the same one for all packets of a flow;
/// a packet that came by one of them leaves by none.
pub struct FollowingSwitch {
    shared: Shared,
    spread: Spread,
    /// What the inner switch says when there are several up ports.
    inner: Outbox,
}

/// Spreads flows over ports.
struct Spread {
    ports: Ports,
    formats: Formats,
    packet: Option<Packet>,
}

impl FollowingSwitch {
    /// A switch with a table's rules, now and later, at these ports.
    pub fn new(shared: Shared, ports: Ports) -> FollowingSwitch {
        shared.live().switch.set_ports(ports.clone());
        let formats = shared.formats().packet_formats().clone();
        FollowingSwitch { shared, spread: Spread { ports, formats, packet: None }, inner: Outbox::new() }
    }
}

impl Spread {
    /// Which of the up ports a frame takes.
    fn choose(&mut self, up: &[Port], port: Port, frame: Frame<'_>) -> Port {
        let first = up.first().copied().unwrap_or(port);
        let Some(link) = self.ports.link(port) else { return first };
        let parsed = match &mut self.packet {
            Some(packet) => packet.renew(link, frame, &self.formats),
            None => Packet::parse(link, frame, &self.formats).map(|packet| self.packet = Some(packet)),
        };
        let ends = self.packet.as_ref().filter(|_| parsed.is_ok()).and_then(Packet::endpoints);
        let Some(ends) = ends else { return first };
        let mut hasher = DefaultHasher::new();
        (ends.protocol, ends.local_address, ends.remote_address, ends.local_port, ends.remote_port).hash(&mut hasher);
        let place = (u128::from(hasher.finish()) * up.len() as u128) >> 64;
        up.get(place as usize).copied().unwrap_or(first)
    }
}

impl Function for FollowingSwitch {
    fn frame(&mut self, now: Time, port: Port, frame: Frame<'_>, out: &mut Outbox) {
        let FollowingSwitch { shared, spread, inner } = self;
        let Live { switch, up } = &mut *shared.live();
        let Some(first) = up.first().copied().filter(|_| up.len() > 1) else {
            return switch.frame(now, port, frame, out);
        };
        // All up ports are one.
        let from = if up.contains(&port) { first } else { port };
        inner.clear();
        switch.frame(now, from, frame, inner);
        let mut chosen = None;
        for output in inner.items() {
            match output {
                Output::Send { at, port: to, bytes, offload } => {
                    let to = match *to == first {
                        true => *chosen.get_or_insert_with(|| spread.choose(up, port, frame)),
                        false => *to,
                    };
                    out.send(*at, to, inner.bytes(bytes), *offload);
                }
                other => out.push(other.clone()),
            }
        }
    }

    fn connect(&mut self, now: Time, endpoints: &Endpoints, out: &mut Outbox) -> Result<FlowId, CallError> {
        self.shared.live().switch.connect(now, endpoints, out)
    }

    fn write(&mut self, now: Time, flow: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError> {
        self.shared.live().switch.write(now, flow, bytes, out)
    }

    fn close(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        self.shared.live().switch.close(now, flow, out)
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        self.shared.live().switch.fire(now, out);
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        // The switch has no timers.
        None
    }
}

impl Inspect for FollowingSwitch {
    fn counters(&self) -> Counters {
        self.shared.live().switch.counters()
    }
}
