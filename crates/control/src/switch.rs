//! A subscription switch whose rules come from a controller while it forwards.

use crate::shared::Shared;
use std::hash::{DefaultHasher, Hash, Hasher};
use weftwire_core::inspect::{Counters, Inspect};
use weftwire_core::order::Input;
use weftwire_core::outbox::sent;
use weftwire_core::{
    Arrivals, Change, Command, Deadline, Formats, Frame, Function, Outbox, Output, Packet, Port, Ports, Time,
};
use weftwire_subscribe::Compiler;
use weftwire_switch::SubscriptionSwitch;

/// The switch. Its rules may change between any two batches of packets: before each it takes over what the thread that follows has
/// made ready, and never waits for that thread.
///
/// A packet for the logical up port leaves by one of the ports that it stands for, the same one for all packets of a flow;
/// a packet that came by one of them leaves by none. A flow whose port is down takes another one, if one is up.
pub struct FollowingSwitch {
    shared: Shared,
    /// Up to which change the rest is.
    taken: u64,
    switch: SubscriptionSwitch,
    /// The ports here that the logical up port stands for; rules name the first one.
    up: Vec<Port>,
    spread: Spread,
    /// The frame on its way into the inner switch.
    one: Arrivals,
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
        let formats = shared.formats().packet_formats().clone();
        let mut switch = SubscriptionSwitch::new(&Compiler::without_rules(shared.formats(), &[]), ports.clone());
        let (taken, up) = shared.begin(&mut switch);
        let spread = Spread { ports, formats, packet: None };
        FollowingSwitch { shared, taken, switch, up, spread, one: Arrivals::new() }
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
        let hash = u128::from(hasher.finish());
        let place = |count: usize| ((hash * count as u128) >> 64) as usize;
        let own = up.get(place(up.len())).copied().unwrap_or(first);
        if self.ports.is_up(own) {
            return own;
        }
        // The flows of other ports stay where they are.
        let mut others = up.iter().copied().filter(|port| self.ports.is_up(*port));
        let count = others.clone().count();
        others.nth(place(count)).unwrap_or(own)
    }
}

impl Function for FollowingSwitch {
    fn frames(&mut self, now: Time, arrivals: &mut Arrivals, out: &mut Outbox) {
        let FollowingSwitch { shared, taken, switch, up, spread, one } = self;
        shared.catch_up(taken, switch, up);
        let Some(first) = up.first().copied().filter(|_| up.len() > 1) else {
            return switch.frames(now, arrivals, out);
        };
        while !out.is_full()
            && let Some(mut arrival) = arrivals.pop_front()
        {
            // All up ports are one.
            if up.contains(&arrival.port) {
                arrival.port = first;
            }
            let start = out.items().len();
            one.push_back(arrival);
            switch.frames(now, one, out);
            let chosen = out.items()[start..].iter().find_map(|output| match sent(out, output) {
                Some((to, frame)) if to == first => Some(spread.choose(up, to, frame)),
                _ => None,
            });
            if let Some(chosen) = chosen {
                out.rewrite(start, |output| {
                    if let Output::Send { port, .. } = output
                        && *port == first
                    {
                        *port = chosen;
                    }
                    true
                });
            }
        }
    }

    fn control(&mut self, now: Time, command: Command, out: &mut Outbox) {
        if let Change::Port { port, change } = command.change {
            self.spread.ports.change(port, change);
        }
        self.switch.control(now, command, out);
    }

    fn fire(&mut self, now: Time, out: &mut Outbox) {
        self.switch.fire(now, out);
    }

    fn input_time(&self, input: Input, now: Time) -> Time {
        self.switch.input_time(input, now)
    }

    fn next_deadline(&self) -> Option<Deadline<'_>> {
        // The switch has no timers.
        None
    }
}

impl Inspect for FollowingSwitch {
    fn counters(&self) -> Counters {
        self.switch.counters()
    }
}
