//! The ways to recover from losses, all by NewReno: RACK-TLP with proportional rate reduction, RFC 6675, TB-TCP.

use crate::support::{CLEAN, Connection, Fate, Line, data, machine};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weftwire_image::VerifiedImage;

const BYTES: usize = 2_000_000;
const SEGMENT: usize = 1_448;
const MILLISECOND: i64 = 1_000_000;
/// By number, as the parameter `recovery` has them.
const WAYS: [(&str, i64); 3] = [("rack", 0), ("rfc6675", 1), ("tb_tcp", 2)];

/// What a line loses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Losses {
    /// So many of a thousand, in either direction.
    Single(u64),
    /// Every so many-th segment with data, and those behind it: eight in all.
    Bursts(usize),
}

/// What one of the ways got.
#[derive(Debug)]
struct Got {
    /// Megabits a second.
    goodput: f64,
    dropped: usize,
    again: usize,
    /// The longest time in which nothing new arrived, in milliseconds.
    longest: i64,
}

/// Two megabytes over a link of 20 Mbit/s and a round trip of 20 ms, with 100 packets of queue.
fn transfer(image: &VerifiedImage, losses: Losses, cell: &str) -> Got {
    let lost = if let Losses::Single(lost) = losses { lost } else { 0 };
    let line = Line { lost, delay: 10 * MILLISECOND, ..CLEAN };
    let mut connection = Connection::new([image.clone(), image.clone()], [data(BYTES, 7), Vec::new()], line, 5);
    let dropped = Rc::new(Cell::new(0));
    let (counted, mut count, mut free) = (dropped.clone(), 0, 0);
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 || sending.payload() == 0 {
            return Fate::Passes;
        }
        count += 1;
        let waits = free - sending.at > 100 * 1_514 * 400;
        if waits || matches!(losses, Losses::Bursts(period) if count % period >= period - 8) {
            counted.set(counted.get() + 1);
            return Fate::Lost;
        }
        free = free.max(sending.at) + sending.frame.len() as i64 * 400;
        Fate::Late(free - sending.at)
    });
    connection.open();
    let (mut had, mut since, mut longest) = (0, 0, 0);
    assert!(
        connection.until(|connection| {
            let received = connection.ends[1].received.len();
            if received > had {
                longest = longest.max(connection.now - since);
                (had, since) = (received, connection.now);
            }
            received == BYTES
        }),
        "{cell}: it stops: {:?}",
        connection.shown()
    );
    let goodput = BYTES as f64 * 8e3 / connection.now as f64;
    assert!(connection.ends[1].received == connection.ends[0].to_send, "{cell}: other bytes arrive");
    connection.until(|_| false);
    for end in &connection.ends {
        assert!(end.ended && end.notices == ["established", "finished"], "{cell}: {:?}", end.notices);
    }
    // What the line lost by itself, of data and of acknowledgments.
    let dropped = connection.lost.max(dropped.get());
    let again = (connection.ends[0].sent - BYTES).div_ceil(SEGMENT);
    Got { goodput, dropped, again, longest: longest / MILLISECOND }
}

#[test]
fn each_way_brings_every_byte() {
    let ways = WAYS.map(|(way, number)| (way, machine(&[("control", 0), ("recovery", number)])));
    println!("| losses | way | Mbit/s | dropped | sent again | longest silence, ms |");
    for losses in [Losses::Single(0), Losses::Single(10), Losses::Single(50), Losses::Bursts(200)] {
        for (way, image) in &ways {
            let Got { goodput, dropped, again, longest } = transfer(image, losses, &format!("{way} with {losses:?}"));
            println!("| {losses:?} | {way} | {goodput:.2} | {dropped} | {again} | {longest} |");
            // Nothing is at rest for as long as two timeouts in a row take, or three where what is sent again and lost waits for one.
            assert!(
                longest < if *way == "rfc6675" { 1_400 } else { 600 },
                "{way} with {losses:?}: {longest} ms without progress"
            );
            // Timers take what waits in a growing queue, or for an acknowledgment that is delayed, for lost.
            let most = if *way == "tb_tcp" { 2 * dropped + 40 } else { dropped };
            assert!(again <= most, "{way} with {losses:?}: {again} segments sent again, {dropped} dropped");
            assert!(goodput > 0.5, "{way} with {losses:?}: {goodput:.2} Mbit/s");
        }
    }
}

/// What left with data: when, from which sequence number on.
type Log = Rc<RefCell<Vec<(i64, u32)>>>;

/// TB-TCP over round trips of 100 ms; of what leaves from 450 ms on the first is lost so many times.
fn timer_based_losing(times: usize) -> (Connection, Log) {
    let image = machine(&[("control", 0), ("recovery", 2)]);
    let line = Line { delay: 50 * MILLISECOND, ..CLEAN };
    let mut connection = Connection::new([image.clone(), image], [data(BYTES, 7), Vec::new()], line, 1);
    connection.ends[0].closes = false;
    let log = Log::default();
    let (kept, mut lost, mut missing) = (log.clone(), 0, None);
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 || sending.payload() == 0 {
            return Fate::Passes;
        }
        kept.borrow_mut().push((sending.at, sending.sequence()));
        let first = *missing.get_or_insert(sending.sequence());
        if sending.at < 450 * MILLISECOND {
            missing = None;
        } else if sending.sequence() == first && lost < times {
            lost += 1;
            return Fate::Lost;
        }
        Fate::Passes
    });
    connection.open();
    (connection, log)
}

fn get(connection: &Connection, name: &str) -> i64 {
    connection.register(0, name).expect("a register")
}

/// Acknowledgments cancel timers.
#[test]
fn timers_of_what_has_arrived_do_not_fire() {
    let (mut connection, _) = timer_based_losing(0);
    assert!(connection.until(|connection| connection.ends[1].received.len() == BYTES));
    assert_eq!(connection.ends[0].sent, BYTES);
    assert!(connection.until(|connection| get(connection, "una") == get(connection, "next")));
    assert!(connection.shown()[0].find("overdue").is_none(), "{:?}", connection.shown());
}

/// The text's steps, for one loss: two round trips, one reduction, nothing new until the full acknowledgment, then as many segments a round trip as
/// before, and Congestion Avoidance.
#[test]
fn a_timer_of_two_round_trips_finds_a_loss() {
    let trip = 100 * MILLISECOND;
    let (mut connection, log) = timer_based_losing(1);
    assert!(connection.until(|connection| connection.register(0, "phase") == Some(1)), "a recovery");
    let (began, before) = (connection.now, get(&connection, "tb_tcp.window_before"));
    let left = log.borrow().iter().find(|(at, _)| *at >= 450 * MILLISECOND).copied().expect("one is lost");
    assert!((0..trip / 50).contains(&(began - left.0 - 2 * trip)), "after {} ms", (began - left.0) / MILLISECOND);
    let halved = get(&connection, "threshold");
    assert!((halved - before / 2).abs() <= SEGMENT as i64, "{halved} of {before}");
    assert_eq!(log.borrow().last(), Some(&(began, left.1)), "it is sent again at once");
    assert!(connection.until(|connection| get(connection, "phase") == 0), "a full acknowledgment");
    assert_eq!(get(&connection, "threshold"), halved, "one reduction");
    assert!(connection.now - began < trip + trip / 50, "{} ms later", (connection.now - began) / MILLISECOND);
    let during = log.borrow().iter().filter(|(at, _)| (began..connection.now).contains(at)).count();
    assert_eq!(during, 1, "nothing else leaves in the recovery");
    let ended = connection.now;
    assert!(connection.until(|connection| get(connection, "tb_tcp.to_pace") == 0), "the window is full");
    let paced: Vec<i64> =
        log.borrow().iter().map(|(at, _)| *at).filter(|at| (ended..connection.now).contains(at)).collect();
    assert!(paced.len() as i64 > halved / SEGMENT as i64 / 2, "{} segments", paced.len());
    let gap = trip * SEGMENT as i64 / before;
    for pair in paced.windows(2) {
        assert!((pair[1] - pair[0] - gap).abs() <= gap / 5, "{} ns between two, not {gap}", pair[1] - pair[0]);
    }
    let window = get(&connection, "congestion_window");
    assert!((halved..halved + SEGMENT as i64).contains(&window), "{window}, {halved} at first");
    assert!(connection.until(|connection| connection.ends[1].received.len() == BYTES));
    assert_eq!(connection.ends[0].sent, BYTES + SEGMENT);
}

/// Each time that the same segment is lost is a round of its own, and halves the window; so does a loss behind that recovery.
#[test]
fn a_lost_retransmission_is_a_round_of_its_own() {
    let (mut connection, log) = timer_based_losing(3);
    let mut thresholds = Vec::new();
    assert!(connection.until(|connection| {
        let now = connection.register(0, "threshold").unwrap_or(i64::MAX);
        if thresholds.last() != Some(&now) {
            thresholds.push(now);
        }
        connection.ends[1].received.len() == BYTES
    }));
    let [_, first, second, third] = thresholds[..] else { panic!("{thresholds:?}") };
    assert!(second <= first && third <= second && third < first, "{thresholds:?}");
    let lost = log.borrow().iter().find(|(at, _)| *at >= 450 * MILLISECOND).copied().expect("one is lost");
    let times = log
        .borrow()
        .iter()
        .filter(|(_, sequence)| *sequence == lost.1)
        .map(|(at, _)| (at - lost.0) / MILLISECOND)
        .collect::<Vec<_>>();
    // Behind a timeout timers take twice as long.
    assert_eq!(times, [0, 200, 400, 800]);
    assert_eq!(get(&connection, "tb_tcp.global_round"), 0, "rounds begin anew");
}
