//! A function under test with its clock, ports 1 and 2, and frames to feed it.
#![allow(dead_code, unused_macros, reason = "no test file needs all of it")]

#[path = "../../../image/tests/support/mod.rs"]
mod images;

pub mod circumstances;
pub mod flow_state;
pub mod image_load;
pub mod law;
pub mod plain;
pub mod random;

pub use images::*;

use std::net::{IpAddr, Ipv4Addr};
use weftwire_core::build::{TemplateSpec, TemplateTransport};
use weftwire_core::control::{self, Done};
use weftwire_core::format::Formats;
use weftwire_core::inspect::{Counters, Inspect};
use weftwire_core::packet::Packet;
use weftwire_core::trace::{TraceKind, TraceRecord};
use weftwire_core::{
    Change, ControlError, Endpoints, FlowId, Frame, Function, LinkType, MacAddress, Outbox, Output, Port, Ports, Time,
};
use weftwire_engine::{EngineOptions, Executor, Reference, Runtime};
use weftwire_image::Image;

/// Makes a test of each function on each engine: `fn name<E: Executor>()` becomes the tests `reference::name`, `plain::name`, and
/// so on.
macro_rules! on_every_engine {
    ($($test:ident),* $(,)?) => {
        on_every_engine! { reference: weftwire_engine::Reference; $($test)* }
        on_every_engine! { plain: crate::support::plain::Plain; $($test)* }
    };
    ($engine:ident: $executor:ty; $($test:ident)*) => {
        mod $engine {
            $(
                #[test]
                fn $test() {
                    super::$test::<$executor>();
                }
            )*
        }
    };
}

/// An engine and everything it has put out.
pub struct Bench<E = Reference> {
    pub engine: Runtime<E>,
    pub out: Outbox,
}

/// An instant in nanoseconds.
pub fn at(nanoseconds: i64) -> Time {
    Time::from_nanoseconds(nanoseconds)
}

impl<E: Executor> Bench<E> {
    pub fn new(image: Image) -> Bench<E> {
        Bench::with_second_port(image, LinkType::Ethernet)
    }

    pub fn with_second_port(image: Image, link: LinkType) -> Bench<E> {
        let ports = Ports::new([(Port(1), LinkType::Ethernet), (Port(2), link)]);
        let engine = Runtime::new(verified(image), ports, EngineOptions::default()).expect("a verified image");
        Bench { engine, out: Outbox::tracing().bounded(usize::MAX) }
    }

    /// A UDP datagram from client `client` to the server.
    pub fn packet(&mut self, now: i64, client: u16) {
        self.frame(now, &datagram(client, &[0, 0, 0, 7]));
    }

    pub fn frame(&mut self, now: i64, bytes: &[u8]) {
        self.engine.frame(at(now), Port(1), Frame::new(bytes), &mut self.out);
    }

    /// A change from outside, at the time of the latest input.
    pub fn change(&mut self, change: Change) -> Result<Done, ControlError> {
        control::change(&mut self.engine, Time::ZERO, change, &mut self.out)
    }

    pub fn fire(&mut self, now: i64) {
        self.engine.fire(at(now), &mut self.out);
    }

    pub fn register(&self, flow: u64, name: &str) -> i64 {
        let detail = self.engine.flow(FlowId(flow)).expect("the flow is there");
        detail.registers.iter().find(|register| register.name == name).expect("the register is there").value
    }

    pub fn state(&self, flow: u64) -> String {
        self.engine.flow(FlowId(flow)).expect("the flow is there").summary.state
    }

    /// Flow ids in the table.
    pub fn flows(&self) -> Vec<u64> {
        self.engine.flows().iter().map(|flow| flow.flow.0).collect()
    }

    /// Values of the notices so far.
    pub fn notices(&self) -> Vec<i64> {
        self.out
            .items()
            .iter()
            .filter_map(|item| match item {
                Output::Notify { value, .. } => Some(*value),
                _ => None,
            })
            .collect()
    }

    /// Notices with their times.
    pub fn timed_notices(&self) -> Vec<(i64, i64)> {
        self.out
            .items()
            .iter()
            .filter_map(|item| match item {
                Output::Notify { at, value, .. } => Some((at.nanoseconds(), *value)),
                _ => None,
            })
            .collect()
    }

    /// Flows that ended so far.
    pub fn ended(&self) -> Vec<u64> {
        self.out
            .items()
            .iter()
            .filter_map(|item| match item {
                Output::Ended { flow } => Some(flow.0),
                _ => None,
            })
            .collect()
    }

    /// Frames sent so far.
    pub fn sent(&self) -> Vec<(Port, Vec<u8>)> {
        self.out
            .items()
            .iter()
            .filter_map(|item| match item {
                Output::Send { port, bytes, .. } => Some((*port, self.out.bytes(bytes).to_vec())),
                _ => None,
            })
            .collect()
    }

    /// Bytes delivered to the application so far.
    pub fn delivered(&self) -> Vec<u8> {
        let ranges = self.out.items().iter().filter_map(|item| match item {
            Output::Deliver { bytes, .. } => Some(bytes),
            _ => None,
        });
        ranges.flat_map(|bytes| self.out.bytes(bytes).to_vec()).collect()
    }

    /// Trace records of a kind so far.
    pub fn records(&self, kind: TraceKind) -> Vec<TraceRecord> {
        self.out
            .items()
            .iter()
            .filter_map(|item| match item {
                Output::Trace(record) if record.kind == kind => Some((**record).clone()),
                _ => None,
            })
            .collect()
    }

    /// How often a drop or refusal was counted.
    pub fn drops(&self, reason: &str) -> u64 {
        self.counters().drops.get(reason).copied().unwrap_or(0)
    }

    pub fn counters(&self) -> Counters {
        self.engine.counters()
    }
}

/// The ends of client `client`'s flow as the client sees them.
pub fn client(client: u16) -> Endpoints {
    Endpoints {
        protocol: 17,
        local_address: IpAddr::V4(Ipv4Addr::new(10, 0, (client >> 8) as u8, client as u8)),
        local_port: 4_000,
        remote_address: IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9)),
        remote_port: 80,
        local_mac: MacAddress([2, 0, 0, 0, 0, 1]),
        remote_mac: MacAddress([2, 0, 0, 0, 0, 2]),
        vlan: None,
    }
}

/// A UDP datagram from a client to the server.
pub fn datagram(from: u16, payload: &[u8]) -> Vec<u8> {
    frame_of(&client(from), TemplateTransport::Udp, &[], payload)
}

/// A TCP segment from a client to the server.
pub fn segment(from: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let ends = Endpoints { protocol: 6, ..client(from) };
    frame_of(&ends, TemplateTransport::Tcp, options, payload)
}

fn frame_of(ends: &Endpoints, transport: TemplateTransport, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let bare = TemplateSpec { transport, tcp_options: options, wanted: &[], headers: &[], payload: 0, presets: &[] };
    let mut packet = Packet::build(&bare, ends, &Formats::default());
    packet.append_payload(payload).expect("a small payload");
    packet.finish();
    let mut frame = weftwire_core::Buffer::default();
    packet.emit(LinkType::Ethernet, &mut frame);
    frame.to_vec()
}
