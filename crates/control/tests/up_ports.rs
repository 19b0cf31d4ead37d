//! The logical up port stands for several: a flow has one of them, and another one while that is down.

use std::collections::BTreeMap;
use std::sync::Arc;
use weftwire_control::protocol::{Entry, SwitchPort, TableStart, TableUpdate};
use weftwire_control::switch::FollowingSwitch;
use weftwire_control::table::{FieldOrder, FollowedTable};
use weftwire_control::wire;
use weftwire_core::control::{Done, PortChange, change};
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
use weftwire_core::{Change, Frame, Function, LinkType, MacAddress, Outbox, Output, Port, Ports, Time};
use weftwire_subscribe::MessageFormats;
use weftwire_subscribe::subscriptions::read_subscriptions;
use weftwire_text::SourceMap;

/// Where packets come from.
const OUTSIDE: Port = Port(9);
/// What rules call the up port.
const UP: u32 = 7;

/// A switch that sends everything up, by ports 1 to 3.
fn switch() -> FollowingSwitch {
    let formats = "header message { @subscribe[] bit<8> kind; }";
    let formats =
        Arc::new(MessageFormats::read("formats", formats, &mut SourceMap::default(), &mut Vec::new()).unwrap());
    let mut table = FollowedTable::new(formats.clone(), FieldOrder::Chosen, (1..=3).map(Port));
    let all = read_subscriptions("all", "host: true", &formats, &mut SourceMap::default(), &mut Vec::new());
    let entry = Entry { port: UP, filter: Some(wire::encode(&all[0].filter, &formats)) };
    let port = |number| SwitchPort { number, up: true, ..SwitchPort::default() };
    let start = TableStart { configuration: vec![1], ports: (1..=3).map(port).collect(), up_port: UP };
    let update =
        TableUpdate { start: Some(start), added: vec![entry], revision: 1, complete: true, ..TableUpdate::default() };
    assert_eq!(table.take(update), Ok(true));
    let ports = Ports::new((1..=3).map(Port).chain([OUTSIDE]).map(|port| (port, LinkType::Ethernet)));
    FollowingSwitch::new(table.shared().clone(), ports)
}

/// The port that each of many flows leaves by.
fn taken(switch: &mut FollowingSwitch) -> BTreeMap<u16, Port> {
    let taken = |source| {
        let fields = Ipv4Fields::default();
        let frame = FrameBuilder::ethernet(MacAddress([2; 6]), MacAddress([4; 6])).ipv4(&fields).udp(source, 5);
        let (mut out, frame) = (Outbox::new(), frame.payload(&[1]).finish().unwrap());
        switch.frame(Time::ZERO, OUTSIDE, Frame::new(&frame), &mut out);
        let sent: Vec<Port> = out
            .items()
            .iter()
            .filter_map(|output| match output {
                Output::Send { port, .. } => Some(*port),
                _ => None,
            })
            .collect();
        assert_eq!(sent.len(), 1, "{sent:?}");
        (source, sent[0])
    };
    (1..=60).map(taken).collect()
}

fn tell(switch: &mut FollowingSwitch, port: u16, what: PortChange) {
    let told = change(switch, Time::ZERO, Change::Port { port: Port(port), change: what }, &mut Outbox::new());
    assert_eq!(told, Ok(Done::Done));
}

#[test]
fn flows_of_a_port_that_is_down_take_another_one() {
    let mut switch = switch();
    let before = taken(&mut switch);
    for port in 1..=3 {
        assert!(before.values().any(|taken| *taken == Port(port)), "{before:?}");
    }
    tell(&mut switch, 2, PortChange::Down);
    let meanwhile = taken(&mut switch);
    for (flow, port) in &before {
        match *port {
            Port(2) => assert_ne!(meanwhile[flow], Port(2)),
            port => assert_eq!(meanwhile[flow], port),
        }
    }
    let moved = |to| before.iter().any(|(flow, port)| *port == Port(2) && meanwhile[flow] == Port(to));
    assert!(moved(1) && moved(3), "they are spread, too: {meanwhile:?}");
    tell(&mut switch, 2, PortChange::Up);
    assert_eq!(taken(&mut switch), before);
    // None is better than another: packets go where they went, and are counted there.
    (1..=3).for_each(|port| tell(&mut switch, port, PortChange::Down));
    assert_eq!(taken(&mut switch), before);
}
