//! Segments that had to become smaller, and larger again (RFC 4821, RFC 8899).

use crate::support::{CLEAN, Connection, Fate, data, machine};
use std::cell::Cell;
use std::rc::Rc;

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
        // Until all is acknowledged.
        connection.until(|_| false);
        connection.now += minutes * 60 * SECOND;
        connection.ends[0].to_send.extend(data(200_000, 3));
        connection.after(0);
        assert!(connection.until(all_arrived));
        assert_eq!(connection.register(0, "mss") == Some(1_448), found, "after {minutes} minutes");
    }
}
