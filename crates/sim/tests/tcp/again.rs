//! Connections between ends that have had one before: a SYN for an end in TIME-WAIT (RFC 6191; RFC 9293, 3.6.1).

use crate::support::{CLEAN, Connection, data, endpoints, machine};
use std::cell::RefCell;
use std::rc::Rc;
use weftwire_core::{Frame, Function, Port};
use weftwire_engine::ReferenceEngine;

const MILLISECOND: i64 = 1_000_000;
const SYN: u8 = 2;

fn state(connection: &Connection, end: usize) -> Option<String> {
    use weftwire_core::inspect::Inspect;
    let engine: &ReferenceEngine = &connection.ends[end].engine;
    Some(engine.flow(connection.ends[end].flow?)?.summary.state)
}

/// A connection that is over, its second end in TIME-WAIT, and the first SYN of it.
fn lingering(registers: &[(&str, i64)]) -> (Connection, Vec<u8>) {
    let images = [machine(registers), machine(registers)];
    let mut connection = Connection::new(images, [data(1_000, 7), data(100, 11)], CLEAN, 1);
    let syn = Rc::new(RefCell::new(Vec::new()));
    let seen = syn.clone();
    connection.fates = Box::new(move |sending| {
        if sending.flags() == SYN && seen.borrow().is_empty() {
            *seen.borrow_mut() = sending.frame.to_vec();
        }
        crate::support::Fate::Passes
    });
    connection.ends[0].closes = false;
    connection.open();
    assert!(connection.until(|connection| state(connection, 1).as_deref() == Some("fin_wait_2")));
    connection.ends[0].closes = true;
    connection.after(0);
    assert!(connection.until(|connection| connection.ends[0].ended));
    assert_eq!(state(&connection, 1).as_deref(), Some("time_wait"));
    connection.now += 200 * MILLISECOND;
    let syn = syn.borrow().clone();
    (connection, syn)
}

#[test]
fn a_new_connection_begins_out_of_time_wait() {
    let plain = ("offer_stamps", 0);
    let wrapping = |first: u32| ("first", i64::from(first));
    for registers in [&[][..], &[plain], &[wrapping(u32::MAX - 300)], &[wrapping((1 << 31) - 300)]] {
        let (mut connection, _) = lingering(registers);
        let (before, began) = (connection.ends[1].flow, connection.now);
        for end in &mut connection.ends {
            end.received.clear();
            end.notices.clear();
            (end.written, end.released, end.closed, end.ended, end.closes) = (0, 0, false, false, false);
        }
        connection.connect(0, &endpoints());
        let arrived = |connection: &Connection| (0..2).all(|end| connection.ends[end].received.len() >= 100);
        assert!(connection.until(arrived), "{registers:?}: {:?}", connection.shown());
        assert!(connection.ends[1].flow > before, "another flow");
        assert!(connection.now - began < 50 * MILLISECOND, "{} ms", (connection.now - began) / MILLISECOND);
        for end in &mut connection.ends {
            assert_eq!(end.notices, ["established"]);
            end.closes = true;
        }
        connection.after(0);
        connection.after(1);
        connection.until(|_| false);
        assert!((0..2).all(|end| connection.ends[end].received == connection.ends[1 - end].to_send));
    }
}

/// What has wandered in the network for long begins nothing.
#[test]
fn an_old_syn_leaves_time_wait_alone() {
    for registers in [&[][..], &[("offer_stamps", 0)]] {
        let (mut connection, syn) = lingering(registers);
        let before = connection.ends[1].flow;
        let (now, end) = (connection.at(), &mut connection.ends[1]);
        end.engine.frame(now, Port(1), Frame::new(&syn), &mut end.out);
        connection.after(1);
        assert_eq!(connection.ends[1].flow, before);
        assert_eq!(state(&connection, 1).as_deref(), Some("time_wait"));
    }
}

/// Where nobody listens any more, nothing begins.
#[test]
fn nothing_begins_where_nobody_listens() {
    use weftwire_core::{Connections, Listen, Outbox};
    let (mut connection, _) = lingering(&[]);
    let before = connection.ends[1].flow;
    let (now, mut out) = (connection.at(), Outbox::new());
    let local = Listen { address: None, port: Some(80) };
    connection.ends[1].engine.unlisten(now, &local, &mut out).expect("it listened");
    connection.ends[0].ended = false;
    connection.connect(0, &endpoints());
    let until = connection.now + 100 * MILLISECOND;
    connection.until(|connection| connection.now > until);
    assert_eq!(connection.ends[1].flow, before);
}
