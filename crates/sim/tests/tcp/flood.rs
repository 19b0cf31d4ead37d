//! A flood of SYNs from addresses that nobody answers for, and somebody who means it (RFC 4987).

use crate::support::{Connection, Fate, Line, data, machine};
use std::cmp::Reverse;
use weftwire_core::inspect::Inspect;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, TcpFields};
use weftwire_core::wire::tcp::{TcpFlags, TcpOption};
use weftwire_core::{Connections, Frame, Function, LinkType, Listen, MacAddress, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, ReferenceEngine};

const MILLISECOND: i64 = 1_000_000;
/// Between two spoofed SYNs, in nanoseconds: 400,000 a second.
const BETWEEN: i64 = 2_500;
const ROOM: u32 = 8_192;
/// From so many half-open connections on there are cookies.
const HALF_OPEN: usize = 4_096;

/// A SYN from one of a hundred thousand addresses.
fn spoofed(number: u32) -> Vec<u8> {
    segment(number, number, TcpFlags::SYN)
}

/// A segment from one of these addresses.
fn segment(number: u32, sequence: u32, flags: TcpFlags) -> Vec<u8> {
    let source = std::net::Ipv4Addr::from(u32::from(std::net::Ipv4Addr::new(172, 16, 0, 0)) + number);
    let addresses = Ipv4Fields { source, destination: [10, 0, 0, 2].into(), ..Ipv4Fields::default() };
    let source_port = 1_024 + (number % 60_000) as u16;
    let tcp = TcpFields { source_port, destination_port: 80, sequence, flags, ..TcpFields::default() };
    let frame = FrameBuilder::ethernet(MacAddress([4; 6]), MacAddress([6; 6])).ipv4(&addresses);
    frame.tcp(&tcp, &[TcpOption::MaximumSegmentSize(1_460)]).finish().expect("a SYN")
}

/// When something happens next at one of the ends or between them.
fn next(connection: &Connection) -> i64 {
    let frame = connection.flying.peek().map(|Reverse((at, ..))| *at);
    let timers = connection.ends.iter().filter_map(|end| Some(end.engine.next_deadline()?.at.nanoseconds()));
    frame.into_iter().chain(timers).min().unwrap_or(i64::MAX)
}

/// A client connects in the middle of a flood over a line of 200 ms one way, and data goes both ways. The server has room for 8,192
/// connections. What the flood is answered leads nowhere.
fn flooded(server: &[(&str, i64)], client: &[(&str, i64)]) -> Connection {
    let line = Line { lost: 0, doubled: 0, late: 0, delay: 200 * MILLISECOND };
    let data = [data(400_000, 7), data(100_000, 11)];
    let mut narrow = (*machine(server)).clone();
    narrow.flow.max = ROOM;
    narrow.seal();
    let narrow = narrow.verify().expect("a good image");
    let mut connection = Connection::new([machine(client), narrow], data, line, 1);
    connection.fates = Box::new(|sending| match sending.to == 0 && sending.frame[30..34] != [10, 0, 0, 1] {
        true => Fate::Lost,
        false => Fate::Passes,
    });
    connection.open();
    let mut out = Outbox::new();
    for number in 0..100_000 {
        let at = i64::from(number) * BETWEEN;
        while next(&connection) <= at {
            connection.step();
        }
        connection.now = at;
        let time = connection.at();
        connection.ends[1].engine.frame(time, Port(1), Frame::new(&spoofed(number)), &mut out);
        out.clear();
    }
    connection
}

#[test]
fn a_client_gets_through_a_flood() {
    let plain = [("offer_stamps", 0)];
    let few = [("half_open_most", 64)];
    for (server, client, most) in
        [(&[][..], &[][..], HALF_OPEN), (&[], &plain, HALF_OPEN), (&few, &[], 64), (&[("syn_cookies", 2)], &[], 0)]
    {
        let mut connection = flooded(server, client);
        // And the client.
        assert!(connection.ends[1].engine.flows().len() <= most + 1);
        let established = |connection: &Connection| connection.ends.iter().all(|end| end.notices == ["established"]);
        assert!(connection.until(established), "{server:?} {client:?}");
        for name in ["stamped", "selective", "scaling"] {
            assert_eq!(connection.register(1, name), Some(i64::from(client.is_empty())), "{name}");
        }
        assert_eq!(connection.register(1, "backoff"), Some(0));
        connection.until(|connection| connection.ends.iter().all(|end| end.notices.len() == 2));
        assert!((0..2).all(|end| connection.ends[end].received == connection.ends[1 - end].to_send));
        assert!(connection.now < 6_000 * MILLISECOND, "{} ms", connection.now / MILLISECOND);
    }
}

/// So it would be without: the flood pushes the client's half of a connection out before it can answer.
#[test]
fn without_cookies_it_does_not() {
    let mut connection = flooded(&[("syn_cookies", 0)], &[]);
    connection.until(|connection| connection.ends[0].ended);
    assert!(connection.ends[0].notices.contains(&"reset".to_owned()), "{:?}", connection.ends[0].notices);
}

/// Forty half-open connections get segments that lie far outside of their windows, all at once, and again behind a second and more.
#[test]
fn challenges_of_all_connections_have_a_limit() {
    let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
    let options = EngineOptions::default();
    let image = machine(&[("challenges_most", 8)]);
    let mut server = ReferenceEngine::new(image, ports, options).expect("a good image");
    let mut out = Outbox::new();
    server.listen(Time::ZERO, &Listen { address: None, port: Some(80) }, &mut out).expect("it listens");
    for number in 0..40 {
        server.frame(Time::ZERO, Port(1), Frame::new(&spoofed(number)), &mut out);
    }
    for (round, milliseconds) in [200, 700, 1_900, 9_000].into_iter().enumerate() {
        let now = Time::from_nanoseconds(milliseconds * MILLISECOND);
        server.fire(now, &mut out);
        out.clear();
        for number in 0..40 {
            let outside = segment(number, number.wrapping_add(1 << 30), TcpFlags::FIN);
            server.frame(now.after(1), Port(1), Frame::new(&outside), &mut out);
        }
        let answers = out.items().iter().filter(|item| matches!(item, Output::Send { .. })).count();
        // From half to one and a half times as many within a second.
        let expected = if round == 1 { 0..=7 } else { 4..=11 };
        assert!(expected.contains(&answers), "{answers} answers in round {round}");
    }
}
