//! A flow's state as bytes.

use super::bytes::Writer;
use super::{FlowState, RangesState, SegmentsState, TimerState, TurnState, packet};
use std::net::IpAddr;
use weftwire_core::{Endpoints, Time};
use weftwire_image::layout::{FLOW_MAGIC, SEMANTICS_VERSION, STATE_SCHEMA, StateLayout, WORD};

/// The bits of the field `flags`.
pub(super) mod flags {
    pub const CLOSED: u64 = 1;
    pub const OPEN: u64 = 2;
    pub const ENDS: u64 = 4;
    pub const IPV6: u64 = 8;
    pub const TAGGED: u64 = 16;
    pub const CLOCKS: u64 = 32;
    pub const ALL: u64 = 63;
}

/// Where the length of the whole stands.
const LENGTH: usize = 24;

impl FlowState {
    /// The canonical bytes: equal states have equal ones. The layout is that of the state's image.
    pub fn to_bytes(&self, layout: &StateLayout) -> Vec<u8> {
        let mut writer = Writer::new(Vec::with_capacity(layout.fixed_length() + self.send_buffer.len()));
        writer.fields(&layout.fields);
        self.write_fixed(&mut writer, layout);
        for (reason, count) in &self.drops {
            writer.fields(&layout.drops.entry);
            writer.word("reason", reason.number());
            writer.word("count", *count);
        }
        for TimerState { due, timer, depth, payload } in &self.timers {
            writer.fields(&layout.timers.entry);
            writer.word("due", time(*due));
            writer.word("timer", (*timer).into());
            writer.word("depth", (*depth).into());
            writer.list("value ", payload.iter().map(|value| *value as u64));
        }
        for (packet, section) in self.packets.iter().zip(&layout.packets) {
            if let Some(packet) = packet {
                packet::write(&mut writer, section, packet);
            }
        }
        for (RangesState { entries, .. }, section) in self.ranges.iter().zip(&layout.ranges) {
            for (left, right) in entries {
                writer.fields(&section.entry);
                writer.word("left", (*left).into());
                writer.word("right", (*right).into());
            }
        }
        writer.filled(&self.held);
        for (SegmentsState { records, .. }, section) in self.segments.iter().zip(&layout.segments) {
            for (length, values) in records {
                writer.fields(&section.entry);
                writer.word("length", (*length).into());
                writer.list("", values.iter().map(|value| *value as u64));
            }
        }
        writer.filled(&self.send_buffer);
        let length = writer.bytes.len() as u64;
        writer.bytes[LENGTH..LENGTH + WORD].copy_from_slice(&length.to_le_bytes());
        writer.bytes
    }

    fn write_fixed(&self, writer: &mut Writer<'_>, layout: &StateLayout) {
        let clocks = self.clocks.unwrap_or_default();
        writer.string("magic", &FLOW_MAGIC);
        writer.word("schema", STATE_SCHEMA);
        writer.word("semantics", SEMANTICS_VERSION);
        writer.word("length", 0);
        writer.string("image", &self.image);
        writer.word("time", time(self.time));
        writer.string("boot", &clocks.boot);
        writer.word("monotonic", clocks.monotonic as u64);
        writer.word("tai", clocks.tai as u64);
        writer.string("hash key", &self.keys.hash);
        writer.string("random key", &self.keys.random);
        writer.word("flow", self.flow.0);
        writer.word("flags", self.flags());
        writer.word("state", self.state.into());
        writer.word("created", time(self.created));
        writer.string("key", &self.key);
        writer.word("earlier", self.earlier.into());
        writer.word("last active", time(self.last_active));
        writer.word("activity", self.activity);
        writer.word("rank", time(self.rank));
        writer.word("rank activity", self.rank_activity);
        writer.word("draws", self.draws);
        write_endpoints(writer, self.endpoints.as_ref());
        writer.word("events", self.events);
        writer.word("packets in", self.packets_in);
        writer.word("packets out", self.packets_out);
        writer.list("sample of ", self.samples.iter().map(|at| time(*at)));
        writer.list("register ", self.registers.iter().map(|value| *value as u64));
        writer.word("drops", self.drops.len() as u64);
        writer.word("timers", self.timers.len() as u64);
        let lengths = self.packets.iter().map(|slot| slot.as_ref().map_or(0, |packet| packet.bytes.len() as u64));
        writer.list("packet ", lengths);
        for RangesState { floor, entries } in &self.ranges {
            writer.list("floor ", [u64::from(*floor)]);
            writer.list("ranges ", [entries.len() as u64]);
        }
        if layout.receive_buffer.is_some() {
            writer.word("unread", self.unread.into());
            writer.word("receive buffer", self.held.len() as u64);
        }
        for SegmentsState { start, records } in &self.segments {
            writer.list("start ", [u64::from(*start)]);
            writer.list("segments ", [records.len() as u64]);
        }
        for turn in &self.turns {
            let (cost, rank) = turn.map_or((0, 0), |TurnState { rank, cost }| (cost, rank));
            writer.list("turn ", [cost as u64, rank as u64]);
        }
        writer.word("send buffer", self.send_buffer.len() as u64);
    }

    fn flags(&self) -> u64 {
        let ends = self.endpoints.as_ref();
        [
            (self.closed, flags::CLOSED),
            (self.open, flags::OPEN),
            (ends.is_some(), flags::ENDS),
            (ends.is_some_and(|ends| ends.local_address.is_ipv6()), flags::IPV6),
            (ends.is_some_and(|ends| ends.vlan.is_some()), flags::TAGGED),
            (self.clocks.is_some(), flags::CLOCKS),
        ]
        .into_iter()
        .map(|(on, bit)| if on { bit } else { 0 })
        .sum()
    }
}

pub(super) fn time(at: Time) -> u64 {
    at.nanoseconds() as u64
}

fn write_endpoints(writer: &mut Writer<'_>, endpoints: Option<&Endpoints>) {
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&address.octets());
            bytes
        }
        IpAddr::V6(address) => address.octets(),
    };
    let (local, remote) =
        endpoints.map_or(([0; 16], [0; 16]), |ends| (address(ends.local_address), address(ends.remote_address)));
    let number = |of: fn(&Endpoints) -> u16| endpoints.map_or(0, of).into();
    writer.word("protocol", number(|ends| ends.protocol.into()));
    writer.string("local address", &local);
    writer.string("remote address", &remote);
    writer.word("local port", number(|ends| ends.local_port));
    writer.word("remote port", number(|ends| ends.remote_port));
    writer.string("local mac", &endpoints.map_or([0; 6], |ends| ends.local_mac.octets()));
    writer.string("remote mac", &endpoints.map_or([0; 6], |ends| ends.remote_mac.octets()));
    writer.word("vlan", number(|ends| ends.vlan.unwrap_or(0)));
}
