//! A subscription switch whose rules come from a controller while it forwards.

use crate::table::{Current, Published};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weftwire_core::function::Ports;
use weftwire_core::inspect::{Counters, Inspect};
use weftwire_core::{
    CallError, Deadline, Endpoints, FlowId, Formats, Frame, Function, Outbox, Output, Packet, Port, Time,
};
use weftwire_subscribe::engine::SubscriptionSwitch;

/// Going over to other rules takes at most one part in so many of the time.
const SHARE: u32 = 10;

/// The switch. It goes over to what was published before the next packet, if that is not being changed in that moment;
/// and for a while not at all after a change that took long.
///
/// A packet for the logical up port leaves by one of the ports that it stands for, the same one for all packets of a flow;
/// a packet that came by one of them leaves by none.
pub struct FollowingSwitch {
    published: Arc<Published>,
    switch: SubscriptionSwitch,
    ports: Ports,
    formats: Formats,
    up: Vec<Port>,
    version: u64,
    origin: u64,
    /// Not to go over to other rules before this.
    rest: Option<Instant>,
    /// What the inner switch says when there are several up ports.
    inner: Outbox,
    packet: Option<Packet>,
}

impl FollowingSwitch {
    /// A switch with the rules that are published now.
    pub fn new(published: Arc<Published>, ports: Ports) -> FollowingSwitch {
        let version = published.version();
        let current = published.current();
        let switch = SubscriptionSwitch::new(&current.compiler, ports.clone());
        let (up, origin) = (current.up.clone(), current.origin);
        let formats = current.compiler.formats().packet_formats().clone();
        drop(current);
        FollowingSwitch {
            published,
            switch,
            ports,
            formats,
            up,
            version,
            origin,
            rest: None,
            inner: Outbox::new(),
            packet: None,
        }
    }

    fn go_over(&mut self) {
        let version = self.published.version();
        if version == self.version || self.rest.is_some_and(|rest| Instant::now() < rest) {
            return;
        }
        let Some(current) = self.published.try_current() else { return };
        let start = Instant::now();
        let Current { compiler, up, origin } = &*current;
        if self.origin == *origin {
            self.switch.update(compiler);
        } else {
            // Before the first table came there was nothing worth keeping.
            self.switch = SubscriptionSwitch::new(compiler, self.ports.clone());
            self.origin = *origin;
        }
        self.up.clone_from(up);
        // The lock is held, so no later version is among these rules.
        self.version = self.published.version();
        let took = start.elapsed();
        self.rest = (took > Duration::from_micros(10)).then(|| start + took * SHARE);
    }

    /// Which of the up ports a frame takes.
    fn choose(&mut self, port: Port, frame: Frame<'_>) -> Port {
        let first = self.up.first().copied().unwrap_or(port);
        let Some(link) = self.ports.link(port) else { return first };
        let parsed = match &mut self.packet {
            Some(packet) => packet.renew(link, frame, &self.formats),
            None => Packet::parse(link, frame, &self.formats).map(|packet| self.packet = Some(packet)),
        };
        let ends = self.packet.as_ref().filter(|_| parsed.is_ok()).and_then(Packet::endpoints);
        let Some(ends) = ends else { return first };
        let mut hasher = DefaultHasher::new();
        (ends.protocol, ends.local_address, ends.remote_address, ends.local_port, ends.remote_port).hash(&mut hasher);
        let place = (u128::from(hasher.finish()) * self.up.len() as u128) >> 64;
        self.up.get(place as usize).copied().unwrap_or(first)
    }
}

impl Function for FollowingSwitch {
    fn frame(&mut self, now: Time, port: Port, frame: Frame<'_>, out: &mut Outbox) {
        self.go_over();
        let Some(first) = self.up.first().copied().filter(|_| self.up.len() > 1) else {
            return self.switch.frame(now, port, frame, out);
        };
        // All up ports are one.
        let from = if self.up.contains(&port) { first } else { port };
        let mut inner = std::mem::take(&mut self.inner);
        inner.clear();
        self.switch.frame(now, from, frame, &mut inner);
        let mut chosen = None;
        for output in inner.items() {
            match output {
                Output::Send { at, port: to, bytes, offload } => {
                    let to = match *to == first {
                        true => *chosen.get_or_insert_with(|| self.choose(port, frame)),
                        false => *to,
                    };
                    out.send(*at, to, inner.bytes(bytes), *offload);
                }
                other => out.push(other.clone()),
            }
        }
        self.inner = inner;
    }

    fn connect(&mut self, now: Time, endpoints: &Endpoints, out: &mut Outbox) -> Result<FlowId, CallError> {
        self.switch.connect(now, endpoints, out)
    }

    fn write(&mut self, now: Time, flow: FlowId, bytes: &[u8], out: &mut Outbox) -> Result<usize, CallError> {
        self.switch.write(now, flow, bytes, out)
    }

    fn close(&mut self, now: Time, flow: FlowId, out: &mut Outbox) -> Result<(), CallError> {
        self.switch.close(now, flow, out)
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        self.switch.fire(now, out);
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        self.switch.next_deadline()
    }
}

impl Inspect for FollowingSwitch {
    fn counters(&self) -> Counters {
        self.switch.counters()
    }
}
