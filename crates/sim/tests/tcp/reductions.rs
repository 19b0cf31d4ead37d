//! Which losses shrink the window, which of those reductions are taken back, and what finds a loss: one scenario for each rule that was once
//! broken.

use crate::support::{CLEAN, Connection, Fate, Line, data, machine, one_loss_after};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MILLISECOND;
const SEGMENT: usize = 1_448;
const TRIP: i64 = 2 * CLEAN.delay;
const UNKNOWN: i64 = 0x7fff_ffff;

fn sender_of(registers: &[(&str, i64)], length: usize, line: Line) -> Connection {
    Connection::new([machine(registers), machine(&[])], [data(length, 7), Vec::new()], line, 1)
}

fn all_arrived(connection: &Connection) -> bool {
    connection.ends[1].received.len() == connection.ends[0].to_send.len()
}

fn get(connection: &Connection, name: &str) -> i64 {
    connection.register(0, name).expect("a register")
}

/// What the sender sends, in order: when, from which sequence number on, how many bytes.
type Log = Rc<RefCell<Vec<(i64, u32, usize)>>>;

/// Writes down what the sender sends with data; `fate` says what becomes of it.
fn log(connection: &mut Connection, mut fate: impl FnMut(i64, u32) -> Fate + 'static) -> Log {
    let log = Log::default();
    let kept = log.clone();
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 || sending.payload() == 0 {
            return Fate::Passes;
        }
        kept.borrow_mut().push((sending.at, sending.sequence(), sending.payload()));
        fate(sending.at, sending.sequence())
    });
    log
}

/// RFC 5681, 4.3: of each of five windows in a row a segment is lost, found while the loss of the window before is made good.
#[test]
fn each_round_of_a_recovery_that_loses_something_new_reduces() {
    const LOSSES: usize = 5;
    for control in 0..2 {
        let mut connection = sender_of(&[("control", control)], 4_000_000, CLEAN);
        // Whether what is new belongs to a recovery that has lost nothing yet.
        let armed = Rc::new(Cell::new(true));
        let (due, mut lost, mut highest) = (armed.clone(), Vec::new(), 0);
        log(&mut connection, move |at, sequence| {
            let ahead = sequence > highest;
            highest = highest.max(sequence);
            // What makes it good comes so late that the next loss is known by then.
            if lost.contains(&sequence) {
                return Fate::Late(CLEAN.delay);
            }
            if !ahead || lost.len() == LOSSES || at < 60 * MILLISECOND || !due.replace(false) {
                return Fate::Passes;
            }
            lost.push(sequence);
            Fate::Lost
        });
        connection.open();
        let mut thresholds = vec![UNKNOWN];
        assert!(connection.until(|connection| {
            let now = connection.register(0, "threshold").unwrap_or(UNKNOWN);
            if thresholds.last() != Some(&now) {
                thresholds.push(now);
                armed.set(true);
            }
            all_arrived(connection)
        }));
        let least = [52, 72][control as usize];
        let reductions = thresholds.windows(2).skip(1).filter(|pair| pair[1] * 100 <= pair[0] * least).count();
        assert!(
            thresholds.len() == LOSSES + 1 && reductions == LOSSES - 1,
            "control {control}: thresholds {thresholds:?} for {LOSSES} losses in windows of their own"
        );
    }
}

/// RFC 3522: an acknowledgment of what was sent again for the loss before says nothing about the reduction for this one, although it echoes a
/// timestamp from before that reduction.
#[test]
fn a_reduction_for_a_second_loss_stands() {
    let mut connection = sender_of(&[], 4_000_000, CLEAN);
    let (mut first, mut second, mut highest, mut seen) = (0, 0, 0, false);
    log(&mut connection, move |at, sequence| {
        let ahead = sequence > highest;
        highest = highest.max(sequence);
        if first == 0 && at > 60 * MILLISECOND {
            first = sequence;
            return Fate::Lost;
        }
        if first != 0 && sequence == first {
            seen = true;
            return Fate::Late(CLEAN.delay);
        }
        if second == 0 && seen && ahead {
            second = sequence;
            return Fate::Lost;
        }
        // Sent again while the first recovery lasts, it is acknowledged after that.
        if sequence == second { Fate::Late(2 * CLEAN.delay) } else { Fate::Passes }
    });
    connection.open();
    assert!(connection.until(|connection| connection.register(0, "phase") == Some(1)), "a first recovery");
    let (recover, before) = (get(&connection, "recover"), get(&connection, "threshold"));
    assert!(connection.until(|connection| get(connection, "recover") != recover), "a second one");
    let reduced = get(&connection, "threshold");
    assert!(reduced * 100 <= before * 71, "{reduced} behind {before}");
    assert!(connection.until(|connection| get(connection, "phase") == 0), "it is over");
    assert_eq!(get(&connection, "threshold"), reduced, "the reduction is taken back");
    assert!(get(&connection, "congestion_window") < before, "the window is what it was");
    assert!(connection.until(all_arrived));
}

/// RFC 3708 over two recoveries: what the second is about was sent again in the first, and comes twice while the second lasts. Nothing was lost.
#[test]
fn what_the_recovery_before_sent_again_for_nothing_undoes_this_one() {
    let mut connection = sender_of(&[], 4_000_000, CLEAN);
    let (mut first, mut second, mut highest, mut seen) = (0, 0, 0, false);
    log(&mut connection, move |at, sequence| {
        let ahead = sequence > highest;
        highest = highest.max(sequence);
        if first == 0 && at > 60 * MILLISECOND {
            first = sequence;
            return Fate::Lost;
        }
        if first != 0 && sequence == first {
            seen = true;
            return Fate::Late(CLEAN.delay);
        }
        if second == 0 && seen && ahead {
            second = sequence;
            return Fate::Late(2 * CLEAN.delay);
        }
        Fate::Passes
    });
    connection.open();
    assert!(connection.until(|connection| connection.register(0, "phase") == Some(1)), "a first recovery");
    let (recover, before) = (get(&connection, "recover"), get(&connection, "threshold"));
    assert!(connection.until(|connection| get(connection, "recover") != recover), "a second one");
    assert!(get(&connection, "threshold") * 100 <= before * 71, "it reduces");
    assert!(get(&connection, "rack.spent") > 0, "what was sent again is not known to have come twice yet");
    assert!(connection.until(|connection| get(connection, "phase") == 0), "it is over");
    assert_eq!(get(&connection, "threshold"), before, "only the first reduction stands");
    assert!(connection.until(all_arrived));
}

/// RFC 5682 where there are timestamps: they cannot tell of a segment that was sent again before the timeout, so what is acknowledged next does.
#[test]
fn a_timeout_for_nothing_in_a_recovery_is_undone() {
    let mut connection = sender_of(&[], 4_000_000, CLEAN);
    let (mut first, mut until) = (0, 0);
    log(&mut connection, move |at, sequence| {
        if first == 0 && at > 60 * MILLISECOND {
            first = sequence;
            return Fate::Lost;
        }
        if until == 0 && first == sequence {
            until = at + 400 * MILLISECOND;
        }
        Fate::Late((until - at).max(0))
    });
    connection.open();
    assert!(connection.until(|connection| connection.register(0, "phase") == Some(1)), "a recovery");
    let before = get(&connection, "threshold");
    assert!(connection.until(|connection| get(connection, "phase") == 2), "a timeout");
    assert!(get(&connection, "threshold") < before, "it reduces");
    assert!(connection.until(|connection| get(connection, "phase") == 0), "it is over");
    assert_eq!(get(&connection, "threshold"), before, "only the first reduction stands");
    assert!(connection.until(all_arrived));
}

/// RFC 8985, 6.2: of what left at one instant, what lies in front left first. Ten segments are one flight; the first is lost, and known to be when
/// the others have arrived: no timer is waited for.
#[test]
fn of_what_left_at_once_the_first_is_the_oldest() {
    for lost in 0..7 {
        let mut connection = sender_of(&[], 10 * SEGMENT, CLEAN);
        let mut count = 0;
        let log = log(&mut connection, move |_, _| {
            count += 1;
            if count == lost + 1 { Fate::Lost } else { Fate::Passes }
        });
        connection.open();
        assert!(connection.until(all_arrived));
        let log = log.borrow();
        assert!(log[..10].iter().all(|(at, ..)| *at == log[0].0), "one flight");
        let again: Vec<_> = log[10..].iter().map(|(at, sequence, _)| (*at, *sequence)).collect();
        assert_eq!(again, [(log[0].0 + TRIP, log[lost].1)], "segment {lost} again, as what arrived says so");
    }
}

/// The same of what is sent again: of two segments that leave again at one instant the first is lost once more.
#[test]
fn of_what_left_again_at_once_the_first_is_the_oldest() {
    let mut connection = sender_of(&[], 10 * SEGMENT, CLEAN);
    let mut count = 0;
    let log = log(&mut connection, move |_, _| {
        count += 1;
        if [1, 2, 11].contains(&count) { Fate::Lost } else { Fate::Passes }
    });
    connection.open();
    assert!(connection.until(all_arrived));
    let log = log.borrow();
    let began = log[0].0;
    let again: Vec<_> = log[10..].iter().map(|(at, sequence, _)| (at - began, *sequence)).collect();
    assert_eq!(again, [(TRIP, log[0].1), (TRIP, log[1].1), (2 * TRIP, log[0].1)]);
}

/// What makes a loss good leaves at the same instant as new data, and comes a little later than that: it is not lost, although it lies in front.
#[test]
fn what_left_again_at_the_instant_of_new_data_is_not_lost_by_that() {
    let mut connection = sender_of(&[], 4_000_000, CLEAN);
    let mut lost = None;
    let log = log(&mut connection, move |at, sequence| match lost {
        None if at > 60 * MILLISECOND => {
            lost = Some(sequence);
            Fate::Lost
        }
        Some(lost) if lost == sequence => Fate::Late(MILLISECOND),
        _ => Fate::Passes,
    });
    connection.open();
    assert!(connection.until(all_arrived));
    let log = log.borrow();
    let (_, lost, _) = log.iter().find(|(at, ..)| *at > 60 * MILLISECOND).expect("one is lost");
    let again: Vec<i64> = log.iter().filter(|(_, sequence, _)| sequence == lost).map(|(at, ..)| *at).collect();
    assert!(again.len() >= 2, "it is sent again");
    let beside = log.iter().filter(|(at, sequence, _)| *at == again[1] && sequence > lost).count();
    assert!(beside > 0, "something new leaves at the same instant");
    assert_eq!(again.len(), 2, "sent at {again:?}");
}

/// RFC 8985, 7.2: the timer of the probe begins anew with what is sent and what is acknowledged, so that it stays quiet while something comes
/// back; and after a probe was answered there may be another one.
#[test]
fn the_timer_of_the_probe_begins_anew() {
    let mut connection = sender_of(&[], 20 * SEGMENT, CLEAN);
    connection.ends[0].closes = false;
    connection.ends[1].closes = false;
    let mut last = 0;
    let ends: Rc<Cell<u32>> = Rc::default();
    let wanted = ends.clone();
    let log = log(&mut connection, move |_, sequence| {
        // The last of each burst is lost, once.
        let first_time = sequence > last;
        last = last.max(sequence);
        if first_time && sequence == wanted.get() { Fate::Lost } else { Fate::Passes }
    });
    connection.open();
    assert!(connection.until(|connection| connection.register(0, "smoothed").is_some_and(|it| it > 0)));
    let first = connection.register(0, "una").expect("a register") as u32;
    for burst in 1..=3_usize {
        ends.set(first.wrapping_add(((20 * burst - 1) * SEGMENT) as u32));
        let began = connection.now;
        if burst > 1 {
            let more = data(20 * SEGMENT, 7 + burst);
            connection.ends[0].to_send.extend(more);
            connection.after(0);
        }
        assert!(connection.until(all_arrived));
        let took = connection.now - began;
        assert!(took < 100 * MILLISECOND, "burst {burst}: {} ms, as a timeout takes", took / MILLISECOND);
        // What the probe tells is heard before the next burst begins.
        assert!(connection.until(|connection| get(connection, "una") == get(connection, "next")));
        assert_eq!(get(&connection, "backoff"), 0);
    }
    let sent = log.borrow().iter().map(|(.., length)| length).sum::<usize>();
    assert_eq!(sent, 63 * SEGMENT, "each burst's last segment is sent twice, and nothing else");
}

/// While acknowledgments come, a probe has no business: those of one flight trickle in for five round trips.
#[test]
fn acknowledgments_keep_the_probe_away() {
    let mut connection = sender_of(&[], 10 * SEGMENT, CLEAN);
    let mut free = 0;
    let log = Log::default();
    let kept = log.clone();
    connection.fates = Box::new(move |sending| {
        if sending.to == 1 && sending.payload() > 0 {
            kept.borrow_mut().push((sending.at, sending.sequence(), sending.payload()));
            free = free.max(sending.at) + 4 * MILLISECOND;
            return Fate::Late(free - sending.at);
        }
        Fate::Passes
    });
    connection.open();
    assert!(connection.until(all_arrived));
    let log = log.borrow();
    let sent = log.iter().map(|(.., length)| length).sum::<usize>();
    assert_eq!(sent, 10 * SEGMENT, "{:?}", log.iter().map(|(at, ..)| at / MILLISECOND).collect::<Vec<_>>());
}

/// RFC 8985, 7.4.2: a loss that nothing but a probe has made good shrinks the window like any other; a probe for nothing does not.
#[test]
fn a_loss_that_a_probe_makes_good_reduces() {
    for lost in [true, false] {
        let mut connection = sender_of(&[], 20 * SEGMENT, CLEAN);
        connection.ends[0].closes = false;
        connection.ends[1].closes = false;
        let mut count = 0;
        log(&mut connection, move |_, _| {
            count += 1;
            match (count, lost) {
                (20, true) => Fate::Lost,
                // It arrives behind the probe, or its acknowledgment does.
                (20, false) => Fate::Late(6 * CLEAN.delay),
                _ => Fate::Passes,
            }
        });
        connection.open();
        assert!(connection.until(all_arrived));
        assert!(get(&connection, "rack.tail_out") == 1, "a probe has left");
        // All copies arrive, and all acknowledgments of them.
        connection
            .until(|connection| connection.flying.is_empty() && get(connection, "una") == get(connection, "next"));
        let more = data(20 * SEGMENT, 9);
        connection.ends[0].to_send.extend(more);
        connection.after(0);
        let mut reduced = false;
        assert!(connection.until(|connection| {
            reduced |= connection.register(0, "threshold").is_some_and(|it| it < UNKNOWN);
            all_arrived(connection) && get(connection, "una") == get(connection, "next")
        }));
        assert_eq!(reduced, lost, "lost: {lost}");
    }
}

/// A line that is cut, or holds everything up, for a while: the sender has a timeout.
fn cut(connection: &mut Connection, from: i64, to: i64, held: bool) {
    connection.fates = Box::new(move |sending| match sending.to == 1 && (from..to).contains(&sending.at) {
        true if held => Fate::Late(to - sending.at),
        true => Fate::Lost,
        false => Fate::Passes,
    });
}

/// RFC 9438, 4.8: behind a timeout the curve begins flat where slow start ends, and knows nothing of the window before.
#[test]
fn cubic_begins_anew_after_a_timeout() {
    let line = Line { delay: 25 * MILLISECOND, ..CLEAN };
    let mut connection = sender_of(&[], 40_000_000, line);
    cut(&mut connection, 300 * MILLISECOND, 700 * MILLISECOND, false);
    connection.open();
    assert!(connection.until(|connection| connection.register(0, "backoff") > Some(0)), "a timeout");
    let prior = get(&connection, "cubic.before_loss");
    assert!(get(&connection, "cubic.highest") == 0 && get(&connection, "cubic.epoch") == 0 && prior > 0);
    assert!(connection.until(|connection| get(connection, "cubic.epoch") > 0), "congestion avoidance");
    let (epoch, window) = (get(&connection, "cubic.epoch"), get(&connection, "congestion_window") as f64);
    assert!((get(&connection, "cubic.origin") as f64) <= window && get(&connection, "cubic.knee") == 0);
    assert!(window < 0.8 * prior as f64, "{window} behind {prior}");
    // W(t) = C t^3 + the window that slow start ended with, or what Reno would have, which is more here: 0.53 segments a round trip.
    assert!(connection.until(|connection| connection.now > epoch + 2 * SECOND || all_arrived(connection)));
    let seconds = (connection.now - epoch) as f64 / 1e9;
    let grown = (get(&connection, "congestion_window") as f64 - window) / SEGMENT as f64;
    let most = (0.4 * (seconds + 0.05).powi(3)).max(0.53 * seconds / 0.05) + 2.0;
    assert!(seconds > 0.5 && (0.0..=most).contains(&grown), "{grown} segments more after {seconds} s, {most} at most");
}

/// RFC 9438, 4.9: what was for nothing leaves the curve as it was, too.
#[test]
fn cubic_goes_on_after_a_timeout_for_nothing() {
    let line = Line { delay: 25 * MILLISECOND, ..CLEAN };
    let mut connection = sender_of(&[], 40_000_000, line);
    connection.fates = one_loss_after(320 * MILLISECOND);
    connection.open();
    assert!(connection.until(|connection| connection.register(0, "cubic.epoch") > Some(0)), "congestion avoidance");
    let now = connection.now;
    cut(&mut connection, now + 500 * MILLISECOND, now + 1_000 * MILLISECOND, true);
    assert!(connection.until(|connection| connection.now >= now + 490 * MILLISECOND));
    let names = ["cubic.highest", "cubic.before_loss", "cubic.epoch", "cubic.origin", "cubic.knee"];
    let before = names.map(|name| get(&connection, name));
    let window = get(&connection, "congestion_window");
    assert!(before[2] > 0);
    assert!(connection.until(|connection| get(connection, "backoff") > 0), "a timeout");
    assert!(get(&connection, "cubic.epoch") == 0 && get(&connection, "congestion_window") == SEGMENT as i64);
    assert!(connection.until(|connection| get(connection, "phase") == 0), "it is undone");
    assert!(get(&connection, "congestion_window") >= window);
    assert_eq!(names.map(|name| get(&connection, name)), before, "{names:?}");
    // And the next loss shrinks it as if nothing had been.
    assert!(connection.until(|connection| connection.now >= now + 1_500 * MILLISECOND));
    assert_eq!(get(&connection, "cubic.epoch"), before[2], "the same curve");
}
