//! What the interface of congestion control carries beside windows: DCTCP, a rate that segments leave at, BBR and Swift, which
//! are not part of the TCP.

use crate::support::{Connection, Fate, Line, Sending, controlled, data, machine, steady};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::rc::Rc;
use weftwire_core::Function;
use weftwire_image::VerifiedImage;

const MILLISECOND: i64 = 1_000_000;
const ECE: u8 = 0x40;

/// What crossed a bottleneck.
#[derive(Default)]
struct Queue {
    /// When the frames that wait have left.
    leaving: VecDeque<i64>,
    /// Its length as frames came, in frames, since it is looked at.
    lengths: Vec<usize>,
    looked_at: bool,
    marked: usize,
    lost: usize,
    data: usize,
}

/// Brings these bytes over a link of so many Mbit/s and round trips of so many milliseconds. Frames that find `marks` others waiting are marked,
/// and one of `loss` is lost, if that is not 0.
fn bring(
    image: VerifiedImage,
    bytes: usize,
    link: (i64, i64),
    marks: usize,
    loss: usize,
) -> (Connection, Rc<RefCell<Queue>>, f64) {
    let (rate, trip) = link;
    let line = Line { lost: 0, doubled: 0, late: 0, delay: trip * MILLISECOND / 2 };
    let images = [image, machine(&[("control", 2)])];
    let images = if marks == usize::MAX { [images[0].clone(), machine(&[])] } else { images };
    let mut connection = Connection::new(images, [data(bytes, 7), Vec::new()], line, 1);
    let queue = Rc::new(RefCell::new(Queue::default()));
    let (kept, mut free) = (queue.clone(), 0);
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 {
            return Fate::Passes;
        }
        let queue = &mut *kept.borrow_mut();
        queue.data += usize::from(sending.payload() > 0);
        if loss > 0 && queue.data % loss == loss - 1 && sending.payload() > 0 {
            queue.lost += 1;
            return Fate::Lost;
        }
        while queue.leaving.front().is_some_and(|left| *left <= sending.at) {
            queue.leaving.pop_front();
        }
        let waiting = queue.leaving.len();
        if queue.looked_at {
            queue.lengths.push(waiting);
        }
        free = sending.at.max(free) + sending.frame.len() as i64 * 8_000 / rate;
        queue.leaving.push_back(free);
        match waiting >= marks && sending.payload() > 0 {
            true => {
                queue.marked += 1;
                Fate::LateMarked(free - sending.at)
            }
            false => Fate::Late(free - sending.at),
        }
    });
    connection.open();
    assert!(connection.until(|connection| connection.ends[1].received.len() >= bytes / 3), "it stops");
    queue.borrow_mut().looked_at = true;
    let begun = (connection.now, connection.ends[1].received.len());
    assert!(connection.until(|connection| connection.ends[1].received.len() == bytes), "it stops");
    assert!(connection.ends[1].received == connection.ends[0].to_send, "other bytes arrive");
    let share = (bytes - begun.1) as f64 * 8e3 / (connection.now - begun.0) as f64 / rate as f64;
    (connection, queue, share)
}

fn mean(lengths: &[usize]) -> f64 {
    lengths.iter().sum::<usize>() as f64 / lengths.len() as f64
}

/// RFC 8257: the queue stays about as long as where routers mark, and the link is full.
#[test]
fn dctcp_keeps_the_queue_where_routers_mark() {
    let image = machine(&[("control", 2)]);
    // 100 Mbit/s and 2 ms hold 17 packets.
    let (connection, queue, share) = bring(image, 8_000_000, (100, 2), 10, 0);
    let queue = queue.borrow();
    let (mean, most) = (mean(&queue.lengths), queue.lengths.iter().max().copied().unwrap_or(0));
    assert!(share > 0.93, "{share:.3} of the link");
    assert!(
        queue.marked > 50 && (2.0..14.0).contains(&mean) && most < 25,
        "{mean:.1} waiting, {most} at most, {} marked",
        queue.marked
    );
    assert_eq!(connection.ends[0].sent, 8_000_000);
    let marks = connection.register(0, "dctcp.share").expect("a register");
    assert!((1..1 << 19).contains(&marks), "a share of {marks}");
}

/// RFC 8257, 3.2: what arrives marked is told so, and nothing else.
#[test]
fn dctcp_tells_of_each_mark() {
    let images = [(); 2].map(|()| machine(&[("control", 2)]));
    let line = Line { lost: 0, doubled: 0, late: 0, delay: 5 * MILLISECOND };
    let mut connection = Connection::new(images, [data(1_000_000, 7), Vec::new()], line, 1);
    let told = Rc::new(RefCell::new((0_usize, 0_usize, None::<u32>)));
    let (kept, mut count) = (told.clone(), 0_usize);
    connection.fates = Box::new(move |sending| {
        let (marked, echoed, last) = &mut *kept.borrow_mut();
        if sending.to == 0 {
            let ahead = last.map_or(0, |last| sending.acknowledgment().wrapping_sub(last));
            *echoed += ahead as usize * usize::from(sending.flags() & (ECE | 2) == ECE);
            *last = Some(sending.acknowledgment());
            return Fate::Passes;
        }
        count += usize::from(sending.payload() > 0);
        // Runs of several lengths, even and odd.
        if sending.payload() == 0 || count % 17 > 4 && count % 23 > 0 {
            return Fate::Passes;
        }
        *marked += sending.payload();
        Fate::Marked
    });
    connection.open();
    assert!(connection.until(|connection| connection.ends[1].received.len() == 1_000_000));
    connection.until(|connection| connection.register(0, "una") == connection.register(0, "next"));
    let (marked, echoed, _) = *told.borrow();
    assert!(marked > 100_000 && marked == echoed, "{marked} bytes marked, {echoed} told of");
}

/// RFC 8257, 3.3 and 3.4, in floating point over the same acknowledgments: alpha, and what the window comes down to.
#[test]
fn dctcp_follows_the_rfc_in_floating_point() {
    // Whole windows marked, some of their segments, and next to none.
    for (run, period) in [(1, 1), (3, 7), (1, 40), (40, 90), (1, 200)] {
        let images = [(); 2].map(|()| machine(&[("control", 2)]));
        let line = Line { lost: 0, doubled: 0, late: 0, delay: 5 * MILLISECOND };
        let mut connection = Connection::new(images, [data(1_500_000, 7), Vec::new()], line, 1);
        let mut count = 0;
        connection.fates = Box::new(move |sending| {
            count += usize::from(sending.to == 1 && sending.payload() > 0);
            let marked = sending.to == 1 && sending.payload() > 0 && count > 50 && count % period < run;
            if marked { Fate::Marked } else { Fate::Passes }
        });
        connection.open();
        assert!(connection.until(|connection| connection.register(0, "una") > connection.register(0, "iss")));
        let (mut alpha, mut acknowledged, mut marked) = (1.0_f64, 0.0, 0.0);
        let mut window_end = connection.register(0, "dctcp.round").expect("a register");
        let (mut rounds, mut reductions) = (0, 0);
        while connection.ends[1].received.len() < 1_500_000 {
            let register = |connection: &Connection, name: &str| connection.register(0, name).expect("a register");
            let before = ["una", "congestion_window", "phase"].map(|name| register(&connection, name));
            let echoes = match connection.flying.peek() {
                Some(Reverse((at, _, 0, frame))) => {
                    let segment = Sending { to: 0, at: *at, frame };
                    Some((segment.flags() & ECE != 0, segment.acknowledgment()))
                }
                _ => None,
            };
            assert!(connection.step(), "it stops");
            let una = register(&connection, "una");
            // A timer may have been due before the frame.
            let Some((echo, _)) = echoes.filter(|(_, number)| i64::from(*number) == una && una > before[0]) else {
                assert_eq!(una, before[0], "only acknowledgments acknowledge");
                continue;
            };
            let bytes = (una - before[0]) as f64;
            acknowledged += bytes;
            marked += if echo { bytes } else { 0.0 };
            if una > window_end {
                alpha = alpha * (15.0 / 16.0) + marked / acknowledged / 16.0;
                (acknowledged, marked, rounds) = (0.0, 0.0, rounds + 1);
                window_end = register(&connection, "dctcp.round");
                assert!(
                    window_end >= una && window_end <= register(&connection, "next"),
                    "a round ends where it should"
                );
            }
            let share = register(&connection, "dctcp.share") as f64 / f64::from(1 << 20);
            // Each round rounds by a unit at most, and sixteen of them are remembered.
            assert!((share - alpha).abs() <= 16.0 / f64::from(1 << 20), "{share} is not {alpha}");
            if register(&connection, "phase") != before[2] && before[2] == 0 {
                reductions += 1;
                let mss = register(&connection, "mss") as f64;
                let expected = (before[1] as f64 * (1.0 - alpha / 2.0)).max(2.0 * mss);
                let threshold = register(&connection, "threshold") as f64;
                let error = 1.0 + before[1] as f64 * 8.0 / f64::from(1 << 20);
                assert!(echo && (threshold - expected).abs() <= error, "{threshold} is not {expected}");
            }
        }
        assert!(rounds > 5 && reductions > 0, "{rounds} rounds, {reductions} reductions of {run} in {period}");
    }
}

/// With a rate of half the link nothing waits but what leaves at once.
#[test]
fn a_rate_builds_no_queue() {
    let (connection, queue, share) = bring(steady(), 1_000_000, (10, 40), usize::MAX, 0);
    let queue = queue.borrow();
    assert!(queue.lengths.iter().all(|length| *length <= 2), "{:?}", queue.lengths.iter().max());
    assert!((0.47..=0.5).contains(&share), "{share:.3} of the link");
    assert_eq!(connection.ends[0].sent, 1_000_000);
}

/// What is sent again is paced, too.
#[test]
fn a_rate_holds_with_losses() {
    let (_, queue, share) = bring(steady(), 1_000_000, (10, 40), usize::MAX, 20);
    let queue = queue.borrow();
    assert!(queue.lost > 30 && queue.lengths.iter().all(|length| *length <= 3), "{:?}", queue.lengths.iter().max());
    assert!((0.40..=0.5).contains(&share), "{share:.3} of the link");
}

/// BBR finds the rate of a link with an endless queue, and fills no more of that than a round trip; losses do not matter to it.
#[test]
fn bbr_finds_the_rate() {
    for loss in [0, 100] {
        let (_, queue, share) = bring(controlled("bbr", &[]), 6_000_000, (10, 40), usize::MAX, loss);
        let queue = queue.borrow();
        // The path holds 33 packets.
        let mean = mean(&queue.lengths);
        assert!(share > 0.85, "{share:.3} of the link, one of {loss} lost");
        assert!(mean < 40.0, "{mean:.1} waiting, one of {loss} lost");
    }
}

/// Swift keeps the round trip near its target, here 5 ms more than without a queue.
#[test]
fn swift_keeps_to_its_target() {
    let image = controlled("swift", &[("swift.base", 25 * MILLISECOND), ("swift.range", 5 * MILLISECOND)]);
    let (connection, queue, share) = bring(image, 3_000_000, (10, 20), usize::MAX, 0);
    let mean = mean(&queue.borrow().lengths);
    assert!(share > 0.9 && mean < 12.0, "{share:.3} of the link, {mean:.1} waiting");
    assert_eq!(connection.ends[0].sent, 3_000_000);
}

/// What Swift's registers were before an event.
struct Swift {
    window: f64,
    decreased: i64,
    timeouts: i64,
    limited: bool,
    phase: i64,
    backoff: i64,
}

const SWIFT_BASE: f64 = 21e6;
const SWIFT_RANGE: f64 = 30e6;

/// The paper's target (SIGCOMM 2020, 3.5), in nanoseconds; one hop is the receiver's TTL of 64, unchanged: none.
fn swift_target(window: f64) -> f64 {
    let alpha = SWIFT_RANGE / (1.0 / 0.1_f64.sqrt() - 1.0 / 100.0_f64.sqrt());
    let beta = -alpha / 100.0_f64.sqrt();
    SWIFT_BASE + (alpha / window.sqrt() + beta).clamp(0.0, SWIFT_RANGE)
}

/// Every acknowledgment, recovery and timeout does to the window what algorithm 1 of the paper does, in floating point.
#[test]
fn swift_follows_the_paper_in_floating_point() {
    let registers =
        [("swift.base", SWIFT_BASE as i64), ("swift.range", SWIFT_RANGE as i64), ("retries", 12), ("eager", 1)];
    let (mut grew, mut shrank, mut recoveries, mut timeouts, mut below_one) = (0, 0, 0, 0, 0);
    for seed in 1..=3_u64 {
        let line = Line { lost: if seed == 1 { 0 } else { 15 }, doubled: 0, late: 0, delay: 10 * MILLISECOND };
        let images = [controlled("swift", &registers), machine(&[])];
        let mut connection = Connection::new(images, [data(500_000, 7), Vec::new()], line, seed);
        // A bottleneck that becomes ten thousand times slower for a while, and silence.
        let mut free = 0;
        connection.fates = Box::new(move |sending| {
            if sending.to == 0 {
                return Fate::Passes;
            }
            let second = sending.at / 1_000_000_000 % 60;
            if seed == 3 && sending.at > 300 * MILLISECOND && sending.at < 9_000 * MILLISECOND {
                return Fate::Lost;
            }
            let takes = if (1..3).contains(&second) { 60 * MILLISECOND } else { MILLISECOND };
            free = sending.at.max(free) + takes * sending.frame.len() as i64 / 1_500;
            Fate::Late(free - sending.at)
        });
        connection.open();
        assert!(connection.until(|connection| connection.register(0, "una") > connection.register(0, "iss")));
        while connection.ends[1].received.len() < 500_000 {
            let register = |connection: &Connection, name: &str| connection.register(0, name).expect("a register");
            let window_of = |connection: &Connection| register(connection, "swift.window") as f64 / 65_536.0;
            let before = Swift {
                window: window_of(&connection),
                decreased: register(&connection, "swift.decreased"),
                timeouts: register(&connection, "swift.timeouts"),
                limited: register(&connection, "limited") == 1,
                phase: register(&connection, "phase"),
                backoff: register(&connection, "backoff"),
            };
            let timer =
                connection.ends.iter().filter_map(|end| Some(end.engine.next_deadline()?.at.nanoseconds())).min();
            let acknowledges = connection
                .flying
                .peek()
                .is_some_and(|Reverse((at, _, to, _))| *to == 0 && timer.is_none_or(|timer| *at <= timer));
            let sent = connection.ends[0].sent;
            assert!(connection.step(), "it stops");
            let now = connection.now;
            let after = |name: &str| register(&connection, name);
            let trip = after("smoothed");
            let (mut window, mut decreased, mut count) = (before.window, before.decreased, before.timeouts);
            let mut can_decrease = now - decreased >= trip;
            let mut once = |window: &mut f64, factor: f64| {
                if std::mem::take(&mut can_decrease) {
                    *window *= factor;
                    decreased = now;
                }
            };
            if after("backoff") > before.backoff {
                // On a retransmission timeout; virtual time has gone on by a nanosecond since.
                count += 1;
                timeouts += 1;
                if count >= 5 {
                    window = 66.0 / 65_536.0;
                } else if now - 1 - before.decreased >= trip {
                    window *= 0.5;
                }
                assert_eq!(after("swift.timeouts"), count);
                assert!(connection.ends[0].sent > sent, "a packet leaves at each timeout, whatever the rate");
            } else if before.phase == 0 && after("phase") == 1 && !acknowledges {
                // By a timer: virtual time has gone on, too.
                recoveries += 1;
                if now - 1 - before.decreased >= trip {
                    window *= 0.5;
                }
            } else if acknowledges {
                if before.phase == 0 && after("phase") == 1 {
                    recoveries += 1;
                    once(&mut window, 0.5);
                }
                let (acknowledged, delay) = (after("fresh") as f64 / after("mss") as f64, after("swift.delay") as f64);
                let target = after("swift.target") as f64;
                let measured = (target - swift_target(window.max(66.0 / 65_536.0))).abs() < 2e-4 * target;
                let moved = after("swift.window") as f64 / 65_536.0 != window;
                assert!(measured || !moved, "{target} is not {}", swift_target(window));
                if measured && moved && delay < target && before.limited {
                    grew += 1;
                    window += if window >= 1.0 { acknowledged / window } else { acknowledged };
                } else if measured && moved && delay >= target {
                    shrank += 1;
                    once(&mut window, (1.0 - 0.8 * (delay - target) / delay).max(0.5));
                }
            }
            let window = window.clamp(66.0 / 65_536.0, 1_024.0);
            let real = window_of(&connection);
            assert!((real - window).abs() < 2e-4 * window + 2.0 / 65_536.0, "{real} is not {window} at {now}");
            let pacing = connection.register(0, "pacing").expect("a register");
            assert_eq!(pacing > 0, real < 1.0, "a window of {real}");
            below_one += i32::from(real < 1.0);
        }
        assert!(connection.ends[1].received == connection.ends[0].to_send, "other bytes arrive");
    }
    let counts = (grew, shrank, recoveries, timeouts, below_one);
    assert!(grew > 100 && shrank > 10 && recoveries > 2 && timeouts > 5 && below_one > 10, "{counts:?}");
}

/// BBR's registers in thousandths of what they are of, at a mode and leg.
fn bbr_gain(mode: i64, leg: i64) -> i64 {
    match (mode, leg) {
        (0, _) => 2_887,
        (1, _) => 344,
        (2, 0) => 1_250,
        (2, 1) => 750,
        _ => 1_000,
    }
}

/// BBR sends so many bytes over a link of 2 Mbit/s and 40 ms with an endless queue, which loses a segment by its number.
fn bbr_over_a_link(length: usize, lost: usize) -> Connection {
    let line = Line { lost: 0, doubled: 0, late: 0, delay: 20 * MILLISECOND };
    let mut connection =
        Connection::new([controlled("bbr", &[]), machine(&[])], [data(length, 7), Vec::new()], line, 1);
    let (mut free, mut count) = (0, 0);
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 {
            return Fate::Passes;
        }
        count += usize::from(sending.payload() > 0);
        if count == lost && sending.payload() > 0 {
            return Fate::Lost;
        }
        free = sending.at.max(free) + sending.frame.len() as i64 * 4_000;
        Fate::Late(free - sending.at)
    });
    connection.ends[0].closes = false;
    connection.ends[1].closes = false;
    connection.open();
    connection
}

/// BBR's states over a link of 2 Mbit/s and 40 ms, as tcp_bbr.c goes through them: what ends each, how fast it sends, and its window after every
/// acknowledgment.
#[test]
fn bbr_goes_through_its_states() {
    const LENGTH: usize = 3_500_000;
    let mut connection = bbr_over_a_link(LENGTH, usize::MAX);
    assert!(connection.until(|connection| connection.register(0, "una") > connection.register(0, "iss")));
    const NAMES: [&str; 13] = [
        "bbr.mode",
        "bbr.leg",
        "bbr.leg_at",
        "bbr.stuck",
        "bbr.trip",
        "bbr.trip_at",
        "bbr.best",
        "bbr.delivered",
        "congestion_window",
        "pacing",
        "una",
        "next",
        "quantum",
    ];
    let look = |connection: &Connection| NAMES.map(|name| connection.register(0, name).expect("a register"));
    let (mut modes, mut legs, mut windows) = (vec![(0_i64, 0_i64)], Vec::new(), 0);
    // Before the end the application has nothing more to send.
    while connection.ends[1].received.len() < LENGTH - 500_000 {
        let before = look(&connection);
        assert!(connection.step(), "it stops");
        let now = connection.now;
        let [mode, leg, leg_at, stuck, trip, trip_at, best, delivered, window, pacing, una, next, quantum] =
            look(&connection);
        let (seconds, mss) = (now as f64 / 1e9, connection.register(0, "mss").expect("a register"));
        if mode != before[0] {
            modes.push((mode, now));
            match (before[0], mode) {
                (0, 1) => assert_eq!(stuck, 3, "three round trips without a quarter more"),
                (1, 2) => {}
                (2, 3) => {
                    assert!(now - before[5] > 10_000_000_000, "it asks for a shorter trip too soon, at {seconds} s")
                }
                (3, 2) => {
                    let begun = modes[modes.len() - 2].1;
                    assert!((200..600).contains(&((now - begun) / MILLISECOND)), "{begun} to {now}");
                    assert_eq!(trip_at, now);
                }
                other => panic!("{other:?} at {seconds} s"),
            }
            assert!(mode != 2 || leg != 1, "a cycle does not begin with less");
        } else if mode == 2 && leg != before[1] {
            assert_eq!(leg, (before[1] + 1) % 8);
            legs.push((before[1], leg_at - before[2], trip));
        }
        if una == before[10] || mode == 3 || before[0] == 3 {
            assert!(mode != 3 || window <= 4 * mss || una == before[10], "a window of {window} at {seconds} s");
            continue;
        }
        // In step with an acknowledgment.
        let expected = best as f64 * bbr_gain(mode, leg) as f64 * 0.99e-3;
        let error = (pacing as f64 - expected).abs() / expected;
        assert!(error < 1e-3 || stuck < 3 && pacing as f64 > expected, "{pacing} is not {expected} at {seconds} s");
        let fresh = connection.register(0, "fresh").expect("a register");
        let product = best as f64 / 8.0 * trip as f64 / 1e9;
        let aim = product * if mode < 2 { 2.887 } else { 2.0 } + 3.0 * quantum as f64;
        let grown = (before[8] + fresh) as f64;
        let expected = match stuck >= 3 {
            true => grown.min(aim),
            false if (before[8] as f64) < aim || delivered < 10 * mss => grown,
            false => before[8] as f64,
        };
        assert!((window as f64 - expected).abs() < 2.0 + 1e-3 * expected, "{window} is not {expected} at {seconds} s");
        assert!(next - una <= window + quantum, "{} under way in {window}", next - una);
        windows += 1;
    }
    let states: Vec<i64> = modes.iter().map(|mode| mode.0).collect();
    assert_eq!(states, [0, 1, 2, 3, 2], "{modes:?}");
    let best = look(&connection)[6];
    // 1,448 bytes of 1,514.
    let share = best as f64 / 2e6 / (1_448.0 / 1_514.0);
    assert!((0.98..1.02).contains(&share), "{share} of the link");
    assert!(windows > 1_000 && legs.len() > 100, "{windows} windows, {} legs", legs.len());
    for (leg, lasted, trip) in legs {
        assert!(leg == 1 || lasted > trip, "leg {leg} lasts {lasted}, less than a trip");
        // The first goes on until there is as much more under way; a small window comes in steps of two segments.
        assert!(lasted < if leg == 0 { 6 } else { 2 } * trip, "leg {leg} lasts {lasted}");
    }
}

/// What an application sends too slowly says nothing of the link, nor does silence.
#[test]
fn bbr_remembers_the_rate_of_a_link_that_is_not_filled() {
    let mut connection = bbr_over_a_link(400_000, usize::MAX);
    assert!(connection.until(|connection| connection.ends[1].received.len() == 400_000));
    let best = connection.register(0, "bbr.best").expect("a register");
    let rounds = connection.register(0, "bbr.rounds").expect("a register");
    for piece in 0..60 {
        // A third of the link, and a second of silence in between.
        connection.now += if piece == 30 { 1_000 } else { 50 } * MILLISECOND;
        connection.ends[0].to_send.extend(data(5_000, 7));
        connection.after(0);
        assert!(connection.until(|connection| connection.register(0, "una") == connection.register(0, "next")));
        let now = connection.register(0, "bbr.best").expect("a register");
        assert!(now * 50 >= best * 49, "{now} bit/s in place of {best}, by piece {piece}");
        let pacing = connection.register(0, "pacing").expect("a register");
        assert!(connection.register(0, "bbr.mode") != Some(2) || pacing * 10 > best * 7, "{pacing} by piece {piece}");
    }
    let turned = connection.register(0, "bbr.rounds").expect("a register") - rounds;
    assert!(turned > 30, "{turned} round trips: it would have forgotten after ten");
}

/// In the first round trip of a recovery as much leaves as arrives; then the window is what it was.
#[test]
fn bbr_conserves_packets_in_recovery() {
    let mut connection = bbr_over_a_link(900_000, 300);
    assert!(connection.until(|connection| connection.register(0, "una") > connection.register(0, "iss")));
    let of = |connection: &Connection, name: &str| connection.register(0, name).expect("a register");
    let (mut begun, mut checked, mut recovered) = (None, 0, false);
    while connection.ends[1].received.len() < 900_000 {
        let sent = connection.ends[0].sent as i64;
        let before = ["phase", "bbr.conserves", "bbr.delivered", "congestion_window"].map(|name| of(&connection, name));
        assert!(connection.step(), "it stops");
        let now = ["phase", "bbr.conserves", "bbr.delivered", "congestion_window"].map(|name| of(&connection, name));
        if before[1] == 0 && now[1] == 1 {
            assert!(begun.is_none(), "one loss, one recovery");
            begun = Some((sent, before[2], before[3]));
        }
        let Some((sent_before, delivered, window)) = begun else { continue };
        if now[1] == 1 {
            let (left, arrived) = (connection.ends[0].sent as i64 - sent_before, now[2] - delivered);
            assert!(left <= arrived + 2 * 1_448, "{left} bytes leave, {arrived} arrive");
            checked += 1;
        }
        if before[0] == 1 && now[0] == 0 {
            recovered = true;
            assert!(now[3] >= window - 2 * 1_448, "{} behind a recovery, {window} before", now[3]);
        }
    }
    assert!(checked > 3 && recovered, "{checked} acknowledgments in its first round trip");
}
