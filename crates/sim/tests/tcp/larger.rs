//! Segments that had to become smaller, and larger again (RFC 4821, RFC 8899).

use crate::support::{CLEAN, Connection, Fate, data, machine};
use std::cell::Cell;
use std::rc::Rc;
use weftwire_core::control::{PortChange, change};
use weftwire_core::{Change, Port, Time};

const SECOND: i64 = 1_000_000_000;
/// Bytes of the link and of the headers of a segment with timestamps.
const LINK: usize = 14;
const HEADERS: i64 = 52;

/// A connection over a way that loses every packet larger than the cell says.
fn narrow(bytes: usize) -> (Connection, Rc<Cell<usize>>) {
    let mut connection = Connection::new([machine(&[]), machine(&[])], [data(bytes, 7), Vec::new()], CLEAN, 1);
    let widest = Rc::new(Cell::new(1_500));
    let limit = widest.clone();
    let mut free = 0;
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 {
            return Fate::Passes;
        }
        if sending.frame.len() > LINK + limit.get() {
            return Fate::Lost;
        }
        // 1 Gbit/s.
        free = free.max(sending.at) + sending.frame.len() as i64 * 8;
        Fate::Late(free - sending.at)
    });
    connection.ends[0].closes = false;
    (connection, widest)
}

fn all_arrived(connection: &Connection) -> bool {
    connection.ends[1].received.len() == connection.ends[0].to_send.len()
}

/// After a black hole the largest segment that gets through is found, within 32 bytes, and no probe costs any of the window.
#[test]
fn the_widest_of_a_way_is_found() {
    for widest in [700, 1_000, 1_200, 1_400, 1_480] {
        let (mut connection, limit) = narrow(2_000_000);
        limit.set(widest);
        connection.open();
        let is = |connection: &Connection, name: &str| connection.register(0, name).unwrap_or(0);
        assert!(connection.until(|connection| is(connection, "backoff") >= 3));
        assert!(connection.until(|connection| is(connection, "backoff") == 0 && is(connection, "phase") == 0));
        let reduced = connection.register(0, "cubic.before_loss");
        assert!(connection.until(all_arrived));
        let found = is(&connection, "mss");
        let most = widest as i64 - HEADERS;
        assert!((most - 32..=most).contains(&found), "{found} of {most}");
        assert_eq!(
            connection.register(0, "cubic.before_loss"),
            reduced,
            "the window was reduced over a way of {widest}"
        );
        assert!(connection.ends[1].received == connection.ends[0].to_send);
    }
}

/// A probe that is lost together with something else says nothing (RFC 4821, 7.5): what makes it good, in smaller segments, is no larger segment
/// that has arrived.
#[test]
fn a_probe_that_is_lost_beside_other_segments_finds_nothing() {
    let (mut connection, _) = narrow(2_000_000);
    let (widest, too_large, mut beside) = (1_000, Rc::new(Cell::new(0)), 0);
    let (counted, mut free) = (too_large.clone(), 0);
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 {
            return Fate::Passes;
        }
        if sending.frame.len() > LINK + widest {
            counted.set(counted.get() + 1);
            beside = 1;
            return Fate::Lost;
        }
        if beside > 0 && sending.payload() > 0 {
            beside -= 1;
            return Fate::Lost;
        }
        free = free.max(sending.at) + sending.frame.len() as i64 * 8;
        Fate::Late(free - sending.at)
    });
    connection.open();
    let is = |connection: &Connection, name: &str| connection.register(0, name).unwrap_or(0);
    assert!(connection.until(|connection| is(connection, "backoff") >= 3));
    assert!(connection.until(|connection| is(connection, "backoff") == 0 && is(connection, "phase") == 0));
    let before = too_large.get();
    let mut largest = 0;
    assert!(connection.until(|connection| {
        largest = largest.max(is(connection, "mss"));
        all_arrived(connection)
    }));
    assert!(largest <= widest as i64 - HEADERS, "segments of {largest} over a way of {widest}");
    assert!(too_large.get() > before, "there were probes");
}

/// Ten minutes later the way may be another one.
#[test]
fn a_way_that_becomes_wider_is_tried_again() {
    let (mut connection, limit) = narrow(1_000_000);
    limit.set(1_000);
    connection.open();
    assert!(connection.until(all_arrived));
    assert!(connection.register(0, "mss") < Some(1_000));
    limit.set(1_500);
    for (minutes, found) in [(1, false), (10, true)] {
        assert!(connection.until(|connection| connection.register(0, "una") == connection.register(0, "next")));
        connection.now += minutes * 60 * SECOND;
        connection.ends[0].to_send.extend(data(200_000, 3));
        connection.after(0);
        assert!(connection.until(all_arrived));
        assert_eq!(connection.register(0, "mss") == Some(1_448), found, "after {minutes} minutes");
    }
}

/// Segments fill what leaves by the port, unless the user says otherwise; a smaller end is heeded (RFC 9293, 3.7.1).
#[test]
fn the_port_says_how_large_segments_are() {
    for (ports, given, expected) in [
        ([1_400, 1_400], 0, 1_400 - HEADERS),
        ([9_000, 9_000], 0, 9_000 - HEADERS),
        ([65_536, 65_536], 0, 65_535 - HEADERS),
        ([9_000, 1_280], 0, 1_280 - HEADERS),
        ([9_000, 9_000], 1_492, 1_492 - HEADERS),
        ([0, 0], 0, 1_500 - HEADERS),
    ] {
        let machines = [machine(&[("mtu", given)]), machine(&[("mtu", given)])];
        let mut connection = Connection::new(machines, [data(400_000, 7), Vec::new()], CLEAN, 1);
        connection.ends[0].closes = false;
        for (end, bytes) in connection.ends.iter_mut().zip(ports) {
            let told = Change::Port { port: Port(1), change: PortChange::Mtu { bytes } };
            change(&mut end.engine, Time::ZERO, told, &mut end.out).expect("a port");
            end.out.clear();
        }
        connection.open();
        assert!(connection.until(all_arrived), "{ports:?}, {given}");
        assert_eq!(connection.register(0, "mss"), Some(expected), "{ports:?}, {given}");
        assert!(connection.ends[1].received == connection.ends[0].to_send);
    }
}

/// The platform says that an end's port has another MTU now.
fn port_changes(connection: &mut Connection, end: usize, bytes: u32) {
    let (now, end) = (connection.at(), &mut connection.ends[end]);
    let told = Change::Port { port: Port(1), change: PortChange::Mtu { bytes } };
    change(&mut end.engine, now, told, &mut end.out).expect("a port");
    end.out.clear();
}

/// What is sent behind a change of the port's MTU fits it, and fills it, as far as the other end takes that and unless the user has said otherwise.
#[test]
fn segments_follow_the_port() {
    // The sender's MTU at first, then, that of the receiver, the user's, and what packets have at most then.
    for (first, then, other, given, expected) in [
        (1_500, 1_280, 1_500, 0, 1_280),
        (1_280, 1_500, 1_500, 0, 1_500),
        (1_500, 9_000, 9_000, 0, 9_000),
        (1_500, 9_000, 4_000, 0, 4_000),
        (9_000, 1_500, 9_000, 0, 1_500),
        (1_400, 9_000, 9_000, 1_400, 1_400),
        (1_500, 1_300, 9_000, 1_400, 1_300),
    ] {
        let cell = format!("{first}, then {then}, {other} at the other end, {given} given");
        let machines = [machine(&[("mtu", given)]), machine(&[])];
        let mut connection = Connection::new(machines, [data(1_500_000, 7), Vec::new()], CLEAN, 1);
        connection.ends[0].closes = false;
        port_changes(&mut connection, 0, first);
        port_changes(&mut connection, 1, other);
        let (limit, largest) = (Rc::new(Cell::new(first as usize)), Rc::new(Cell::new(0)));
        let (port, seen) = (limit.clone(), largest.clone());
        let mut count = 0;
        connection.fates = Box::new(move |sending| {
            let bytes = sending.frame.len() - LINK;
            assert!(sending.to == 0 || bytes <= port.get(), "{bytes} bytes leave by a port of {}", port.get());
            seen.set(seen.get().max(bytes));
            count += 1;
            // Some of what left in the old size is sent again in the new one.
            if sending.to == 1 && count % 50 == 0 { Fate::Lost } else { Fate::Passes }
        });
        connection.open();
        assert!(connection.until(|connection| connection.ends[1].received.len() > 300_000), "{cell}");
        port_changes(&mut connection, 0, then);
        limit.set(then as usize);
        largest.set(0);
        assert!(connection.until(all_arrived), "{cell}");
        assert_eq!(largest.get(), expected, "{cell}");
        assert!(connection.ends[1].received == connection.ends[0].to_send, "{cell}");
    }
}

/// What a port takes away of a number that was given it gives back, and no more.
#[test]
fn what_is_given_comes_back_with_the_port() {
    let machines = [machine(&[("mtu", 1_400)]), machine(&[])];
    let mut connection = Connection::new(machines, [data(1_500_000, 7), Vec::new()], CLEAN, 1);
    connection.ends[0].closes = false;
    let largest = Rc::new(Cell::new(0));
    let seen = largest.clone();
    connection.fates = Box::new(move |sending| {
        seen.set(seen.get().max(sending.frame.len() - LINK));
        Fate::Passes
    });
    port_changes(&mut connection, 1, 9_000);
    for (mtu, expected, until) in [(1_500, 1_400, 300_000), (1_300, 1_300, 700_000), (9_000, 1_400, 1_500_000)] {
        port_changes(&mut connection, 0, mtu);
        largest.set(0);
        if mtu == 1_500 {
            connection.open();
        }
        assert!(connection.until(|connection| connection.ends[1].received.len() >= until), "port of {mtu}");
        assert_eq!(largest.get(), expected, "port of {mtu}");
    }
}

/// A way that is known to be narrower than the port stays so, whatever becomes of the port.
#[test]
fn a_wider_port_makes_no_way_wider() {
    let mut connection = Connection::new([machine(&[]), machine(&[])], [data(1_500_000, 7), Vec::new()], CLEAN, 1);
    connection.ends[0].closes = false;
    port_changes(&mut connection, 0, 1_500);
    port_changes(&mut connection, 1, 9_000);
    connection.fates = Box::new(|sending| match sending.to == 1 && sending.frame.len() > LINK + 1_280 {
        true => Fate::TooBig(1_280),
        false => Fate::Passes,
    });
    connection.open();
    assert!(connection.until(|connection| connection.ends[1].received.len() > 300_000));
    port_changes(&mut connection, 0, 9_000);
    let sent = connection.ends[0].sent;
    assert!(connection.until(all_arrived));
    assert_eq!(connection.register(0, "mtu"), Some(1_280));
    assert!(connection.ends[0].sent - sent < 1_210_000, "{} sent again", connection.ends[0].sent - sent);
}

/// So does what a timer sends: the probe of a lost end is the first to leave.
#[test]
fn the_probe_of_the_tail_follows_the_port() {
    let mut connection = Connection::new([machine(&[]), machine(&[])], [data(14_480, 7), Vec::new()], CLEAN, 1);
    connection.ends[0].closes = false;
    port_changes(&mut connection, 0, 1_500);
    let cut = Rc::new(Cell::new(true));
    let (port, sizes) = (cut.clone(), Rc::new(Cell::new(0)));
    let seen = sizes.clone();
    connection.fates = Box::new(move |sending| {
        if sending.to == 1 && sending.payload() > 0 {
            if port.get() {
                return Fate::Lost;
            }
            seen.set(seen.get().max(sending.frame.len() - LINK));
        }
        Fate::Passes
    });
    connection.open();
    assert!(
        connection.until(|connection| connection.ends[0].sent == 14_480 && connection.flying.is_empty()),
        "all is lost"
    );
    port_changes(&mut connection, 0, 1_280);
    cut.set(false);
    assert!(connection.until(all_arrived));
    assert_eq!(sizes.get(), 1_280);
}
