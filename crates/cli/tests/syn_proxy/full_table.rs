//! A table without room.

use crate::proxy::{
    CLIENT, CLIENT_NEXT, Proxy, RST, SERVER, SERVER_ISN, SERVER_NEXT, SYN_ACK, Segment, ack, syn, syn_ack, with_flags,
};
use weftwire_core::wire::builder::TcpFields;
use weftwire_core::wire::tcp::TcpFlags;
use weftwire_image::WhenFull;

/// A table of this size, with room for this many half-open flows.
fn small_table(flows: u32, half_open: u32) -> Proxy {
    Proxy::changed(1, |image| {
        image.flow.max = flows;
        let WhenFull::EvictInTurn(groups) = &mut image.flow.when_full else { panic!("the example evicts in turn") };
        groups[1].above = half_open;
    })
}

fn from_port(proxy: &mut Proxy, at_ms: i64, port: u16, tcp: TcpFields) -> Vec<Segment> {
    proxy.arrive(at_ms, 1, (CLIENT.0, port), SERVER, tcp, &[], b"")
}

fn to_port(proxy: &mut Proxy, at_ms: i64, port: u16, tcp: TcpFields) -> Vec<Segment> {
    proxy.arrive(at_ms, 2, SERVER, (CLIENT.0, port), tcp, &[], b"")
}

/// The client's view of the server's next number.
fn establish_from(proxy: &mut Proxy, at_ms: i64, port: u16) -> u32 {
    let next = from_port(proxy, at_ms, port, syn())[0].sequence.wrapping_add(1);
    from_port(proxy, at_ms, port, ack(next, CLIENT_NEXT));
    assert_eq!(to_port(proxy, at_ms, port, syn_ack()).len(), 2);
    next
}

/// Idle connections make room for new clients, those idle longest first; those in use never do.
#[test]
fn a_table_full_of_idle_connections_takes_new_clients() {
    let mut proxy = small_table(4, 1);
    let next: Vec<u32> = (0..4).map(|number| establish_from(&mut proxy, i64::from(number), 5_000 + number)).collect();
    // Nobody is idle for a minute: the new client has to come again.
    assert_eq!(from_port(&mut proxy, 59_000, 6_000, syn()), []);
    assert_eq!(proxy.function.counters().drops.get("table_full"), Some(&1));
    from_port(&mut proxy, 59_500, 5_000, ack(next[0], CLIENT_NEXT));
    to_port(&mut proxy, 59_500, 5_001, ack(CLIENT_NEXT, SERVER_NEXT));
    let answer = from_port(&mut proxy, 60_002, 6_000, syn());
    assert_eq!(answer[0].flags, SYN_ACK, "connection 5002 has been idle for a minute");
    assert_eq!(proxy.function.counters().flows_evicted, 1);
    // The next client takes the half-open one's place, for one is its share; a connection idle for a minute goes otherwise.
    establish_from(&mut proxy, 60_010, 6_000);
    establish_from(&mut proxy, 60_020, 6_001);
    assert_eq!(from_port(&mut proxy, 60_030, 6_002, syn()), [], "5000, 5001, 6000 and 6001 are in use");
    // The evicted one is told when it speaks, once there is room for it to be answered.
    proxy.fire(119_501);
    let told = from_port(&mut proxy, 119_501, 5_002, ack(next[2], CLIENT_NEXT)).remove(0);
    assert_eq!((told.port, told.flags, told.sequence), (1, RST, next[2]));
}

/// A flood gets the places that nobody else needs and its share; it does not end a connection in use.
#[test]
fn a_flood_through_a_full_table_pushes_itself_out() {
    let mut proxy = small_table(8, 2);
    for number in 0..4 {
        establish_from(&mut proxy, 0, 5_000 + number);
    }
    let mut port = 10_000;
    let mut flood = |proxy: &mut Proxy, at_ms: i64| {
        for _ in 0..100 {
            port += 1;
            assert_eq!(from_port(proxy, at_ms, port, syn())[0].flags, SYN_ACK);
        }
    };
    let count = |proxy: &Proxy, state: &str| proxy.states().iter().filter(|known| *known == state).count();
    flood(&mut proxy, 1_000);
    assert_eq!((count(&proxy, "established"), count(&proxy, "syn_received")), (4, 4));
    // More connections: the flood keeps no more than its share, and a client that answers is never in its way.
    for number in 4..6 {
        establish_from(&mut proxy, 1_001, 5_000 + number);
        flood(&mut proxy, 1_002);
    }
    assert_eq!((count(&proxy, "established"), count(&proxy, "syn_received")), (6, 2));
    // With all connections in use the table is the flood's share and theirs. Idle ones do not shrink that share.
    establish_from(&mut proxy, 1_003, 5_006);
    flood(&mut proxy, 2_000);
    assert_eq!((count(&proxy, "established"), count(&proxy, "syn_received")), (7, 1), "nobody is idle for a minute");
    flood(&mut proxy, 62_000);
    assert_eq!((count(&proxy, "established"), count(&proxy, "syn_received")), (5, 3));
}

/// What is refused, closed or never answered goes before anybody else.
#[test]
fn what_is_over_makes_room_first() {
    let mut proxy = small_table(2, 1);
    establish_from(&mut proxy, 0, 5_000);
    from_port(&mut proxy, 1, 7_000, ack(9, 9));
    assert_eq!(proxy.states(), ["established", "refused"]);
    establish_from(&mut proxy, 2, 5_001);
    assert_eq!(proxy.states(), ["established", "established"]);
    from_port(&mut proxy, 3, 5_001, with_flags(RST, 0, CLIENT_NEXT));
    assert_eq!(proxy.states(), ["established", "closing"]);
    let request = TcpFields { sequence: SERVER_ISN, flags: TcpFlags::SYN, ..TcpFields::default() };
    to_port(&mut proxy, 4, 5_002, request);
    assert_eq!(proxy.states(), ["established", "opening"]);
    from_port(&mut proxy, 5, 5_003, syn());
    assert_eq!(proxy.states(), ["established", "syn_received"]);
}
