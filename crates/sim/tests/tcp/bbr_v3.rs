//! BBR version 3 beside `bbr_v3_model.rs`, the draft's pseudo-code in floating point, at every acknowledgment; and what it gets of links.

use crate::bbr_v3_model::{Model, State, Transport};
use crate::support::{Connection, Fate, Line, Sending, controlled, data, machine};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use weftwire_core::Function;
use weftwire_core::inspect::Inspect;

const MILLISECOND: i64 = 1_000_000;
const MSS: f64 = 1_448.0;

/// A segment that left: when, from where to where in the stream, and whether the link loses it.
#[derive(Clone, Copy, Debug)]
struct Left {
    at: i64,
    left: i64,
    right: i64,
    dropped: bool,
}

/// What a link does with the segment of this number that leaves at this time, when so many wait: loses it or delays it.
type Link = Box<dyn FnMut(usize, i64) -> bool>;

/// A connection with BBR version 3 over a link of so many kbit/s and 40 ms with room for so many segments, which loses what `loses` says; the
/// rate may become another one at a time.
struct Path {
    connection: Connection,
    left: Rc<RefCell<Vec<Left>>>,
    queued: Rc<RefCell<Vec<usize>>>,
}

fn path(length: usize, rates: Vec<(i64, i64)>, room: usize, mut loses: Link) -> Path {
    let line = Line { lost: 0, doubled: 0, late: 0, delay: 20 * MILLISECOND };
    let mut connection =
        Connection::new([controlled("bbr3", &[]), machine(&[])], [data(length, 7), Vec::new()], line, 1);
    let (left, queued) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(Vec::new())));
    let (kept, lengths) = (left.clone(), queued.clone());
    let (mut free, mut leaving, mut count, mut first) = (0, VecDeque::new(), 0, None);
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 {
            return Fate::Passes;
        }
        let payload = sending.payload();
        if payload == 0 {
            return Fate::Passes;
        }
        let first = *first.get_or_insert(sending.sequence());
        let from = i64::from(sending.sequence().wrapping_sub(first));
        while leaving.front().is_some_and(|at| *at <= sending.at) {
            leaving.pop_front();
        }
        count += 1;
        lengths.borrow_mut().push(leaving.len());
        let dropped = leaving.len() >= room || loses(count, sending.at);
        kept.borrow_mut().push(Left { at: sending.at, left: from, right: from + payload as i64, dropped });
        if dropped {
            return Fate::Lost;
        }
        let (_, rate) = rates.iter().rev().find(|(since, _)| *since <= sending.at).expect("a rate");
        free = sending.at.max(free) + sending.frame.len() as i64 * 8_000_000 / rate;
        leaving.push_back(free);
        Fate::Late(free - sending.at)
    });
    connection.ends[0].closes = false;
    connection.ends[1].closes = false;
    connection.open();
    Path { connection, left, queued }
}

/// The registers of the first end.
struct Registers(BTreeMap<String, i64>);

impl Registers {
    fn of(connection: &Connection) -> Registers {
        let end = &connection.ends[0];
        let detail = end.flow.and_then(|flow| end.engine.flow(flow)).expect("the connection is there");
        Registers(detail.registers.into_iter().map(|it| (it.name, it.value)).collect())
    }

    fn get(&self, name: &str) -> i64 {
        self.0[name]
    }

    fn state(&self) -> State {
        use State::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};
        [Startup, Drain, Down, Cruise, Refill, Up, ProbeRtt][self.get("bbr3.mode") as usize]
    }
}

/// The acknowledgment and SACK blocks of a segment to the first end, as places in the stream.
fn told(frame: &[u8], first: u32) -> (i64, Vec<(i64, i64)>) {
    let segment = Sending { to: 0, at: 0, frame };
    let place = |number: u32| i64::from(number.wrapping_sub(first) as i32);
    let options = &frame[54..34 + 4 * usize::from(frame[46] >> 4)];
    let (mut at, mut blocks) = (0, Vec::new());
    while at < options.len() {
        match options[at] {
            0 => break,
            1 => at += 1,
            kind => {
                let length = usize::from(options[at + 1]);
                if kind == 5 {
                    let word = |at: usize| u32::from_be_bytes(options[at..at + 4].try_into().expect("four bytes"));
                    blocks.extend((at + 2..at + length).step_by(8).map(|at| (place(word(at)), place(word(at + 4)))));
                }
                at += length;
            }
        }
    }
    (place(segment.acknowledgment()), blocks)
}

/// What was looked at beside the model.
#[derive(Default, Debug)]
struct Seen {
    acknowledgments: usize,
    states: Vec<State>,
    recoveries: usize,
    timeouts: usize,
    too_high: usize,
    short_term: usize,
    /// It left Startup as too much was lost.
    by_loss: bool,
}

/// Follows a connection with the model until so much has arrived.
fn follow(path: &mut Path, length: usize, until: usize) -> Seen {
    let mut model = Model::new(MSS);
    let (mut seen, mut taken) = (Seen { states: vec![State::Startup], ..Seen::default() }, 0);
    let connection = &mut path.connection;
    assert!(connection.until(|connection| connection.register(0, "una") > connection.register(0, "iss")));
    let mut before = Registers::of(connection);
    let first = before.get("iss") as u32 + 1;
    let (mut dropped, mut by_timer): (Vec<Left>, bool) = (Vec::new(), false);
    loop {
        // What has left since: one packet at each instant. Virtual time has gone on by a nanosecond behind a timer.
        let new = path.left.borrow()[taken..].to_vec();
        taken += new.len();
        for group in new.chunk_by(|one, other| one.at == other.at && one.right == other.left) {
            let segments: Vec<(i64, i64)> = group.iter().map(|it| (it.left, it.right)).collect();
            model.on_packet_sent(group[0].at - i64::from(by_timer), before.get("smoothed"), &segments);
        }
        dropped.extend(new.iter().filter(|it| it.dropped));
        if connection.ends[1].received.len() >= until {
            return seen;
        }
        let timer = connection.ends.iter().filter_map(|end| Some(end.engine.next_deadline()?.at.nanoseconds())).min();
        let next = connection.flying.peek();
        let arrives = next.filter(|Reverse((at, ..))| timer.is_none_or(|timer| *at <= timer));
        by_timer = arrives.is_none();
        let acknowledges = arrives.and_then(|Reverse((_, _, to, frame))| (*to == 0).then(|| told(frame, first)));
        assert!(connection.step(), "it stops: {:?}", connection.shown());
        let after = Registers::of(connection);
        let at = connection.now - i64::from(by_timer);
        let drawn = (after.get("bbr3.rounds_since_probe_up") as f64, after.get("bbr3.bw_probe_wait"));
        if let Some((delivered, blocks)) = &acknowledges {
            model.on_delivered(at, *delivered, blocks);
        }
        // Recoveries (5.6.4.4), and what is lost: what the link dropped.
        let again = after.get("recover") != before.get("recover");
        let timed_out = after.get("backoff") > before.get("backoff");
        let recovering = [before.get("bbr3.recovering"), after.get("bbr3.recovering")];
        if recovering[0] == 1 && (recovering[1] == 0 || again && !timed_out) {
            model.on_exit_recovery();
        }
        if recovering[1] == 1 && (recovering[0] == 0 || again) {
            model.on_enter_recovery();
            seen.recoveries += 1;
        }
        let high_before = model.prev_probe_too_high;
        mark_lost(&mut model, &dropped, after.get("bbr3.lost_bytes") as f64, (at, drawn));
        if timed_out {
            model.on_timeout();
            seen.timeouts += 1;
        }
        seen.too_high += usize::from(model.prev_probe_too_high && !high_before);
        if acknowledges.is_some() {
            model.on_ack(&Transport {
                now: at,
                min_rtt: after.get("least"),
                is_limited: before.get("limited") == 1,
                no_unsent_data: after.get("next") as u32 == first.wrapping_add(length as u32),
                in_recovery: after.get("phase") == 1,
                drawn,
            });
            compare(&after, &model, at);
            seen.short_term += usize::from(model.bw_shortterm < model.max_bw);
            seen.acknowledgments += 1;
            if seen.states.last() != Some(&model.state) {
                seen.by_loss |= model.state == State::Drain && model.inflight_longterm < f64::INFINITY;
                seen.states.push(model.state);
            }
        }
        before = after;
    }
}

/// So many bytes are lost in all: those that the link dropped, of what is still under way, as what left first is missed first.
fn mark_lost(model: &mut Model, dropped: &[Left], lost: f64, (at, drawn): (i64, (f64, i64))) {
    let is_dropped = |it: &crate::bbr_v3_model::Packet| {
        !it.is_lost && dropped.iter().any(|left| left.left == it.left && (left.at - it.send_time).abs() <= 1)
    };
    let size = |model: &Model, place: &usize| (model.packets[*place].right - model.packets[*place].left) as f64;
    let mut places: Vec<usize> = Vec::new();
    if model.lost < lost {
        places = (0..model.packets.len()).filter(|place| is_dropped(&model.packets[*place])).collect();
        places.sort_by_key(|place| model.packets[*place].send_time);
    }
    let mut sum = model.lost;
    places.retain(|place| {
        sum += size(model, place);
        sum <= lost
    });
    places.sort_unstable();
    for packet in places
        .chunk_by(|one, other| other - one == 1 && model.packets[*one].send_time == model.packets[*other].send_time)
        .map(<[usize]>::to_vec)
        .collect::<Vec<_>>()
    {
        model.handle_lost_packet(at, drawn, &packet);
    }
    assert!(model.lost == lost, "{} lost in place of {lost} at {at}", model.lost);
}

fn compare(registers: &Registers, model: &Model, at: i64) {
    assert_eq!(registers.state(), model.state, "at {at}");
    // Rates in bits, windows in bytes: each division of integers forgets less than one.
    let bits = |rate: f64| if rate == f64::INFINITY { 9e15 } else { 8.0 * rate };
    let bytes = |volume: f64| volume.min(f64::from(0x3fff_ffff));
    let rates = [
        ("bbr3.max_bw", bits(model.max_bw)),
        ("bbr3.bw", bits(model.bw)),
        ("bbr3.bw_shortterm", bits(model.bw_shortterm)),
        ("pacing", bits(model.pacing_rate)),
    ];
    let volumes = [
        ("bbr3.delivered", model.delivered),
        ("bbr3.flight", model.inflight()),
        ("bbr3.extra_acked", model.extra_acked),
        ("bbr3.inflight_longterm", bytes(model.inflight_longterm)),
        ("bbr3.inflight_shortterm", bytes(model.inflight_shortterm)),
        ("congestion_window", model.cwnd),
    ];
    for (name, expected) in rates {
        let real = registers.get(name) as f64;
        assert!(
            (real - expected).abs() <= 100.0 + 1e-5 * expected,
            "{name} is {real}, not {expected}, at {at}: {:?}",
            model.state
        );
    }
    for (name, expected) in volumes {
        let real = registers.get(name) as f64;
        assert!(
            (real - expected).abs() <= 8.0 + 1e-5 * expected,
            "{name} is {real}, not {expected}, at {at}: {:?}",
            model.state
        );
    }
    let trip = if model.min_rtt == f64::INFINITY { 0.0 } else { model.min_rtt };
    assert_eq!(registers.get("bbr3.min_rtt"), trip as i64);
    assert_eq!(registers.get("bbr3.round_count"), model.round_count);
}

fn never() -> Link {
    Box::new(|_, _| false)
}

/// So many of a thousand are lost.
fn random(share: u64) -> Link {
    let mut seed = 7_u64;
    Box::new(move |_, _| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % 1_000 < share
    })
}

const LENGTH: usize = 3_900_000;

/// States, model, rate and window are those of the draft at every acknowledgment, over a link of 2 or 4 Mbit/s that does this to data.
fn follows(rate: i64, room: usize, loses: Link) -> Seen {
    let mut path = path(LENGTH, vec![(0, rate)], room, loses);
    let seen = follow(&mut path, LENGTH, LENGTH - 300_000);
    println!("{seen:?} in {} ms", path.connection.now / MILLISECOND);
    let states = &seen.states;
    assert!(states.starts_with(&[State::Startup, State::Drain]), "{states:?}");
    assert!(
        [State::Down, State::Cruise, State::Refill, State::Up, State::ProbeRtt].iter().all(|it| states.contains(it)),
        "{states:?}"
    );
    assert!(seen.acknowledgments > 900, "{seen:?}");
    seen
}

#[test]
fn it_follows_the_draft_in_floating_point_where_nothing_is_lost() {
    let seen = follows(2_000, 10_000, never());
    assert_eq!((seen.recoveries, seen.too_high, seen.by_loss), (0, 0, false));
}

#[test]
fn it_follows_the_draft_over_a_queue_that_overflows() {
    let seen = follows(4_000, 8, never());
    assert!(seen.recoveries > 3 && seen.too_high > 0, "{seen:?}");
}

#[test]
fn it_follows_the_draft_where_one_of_fifty_is_lost() {
    let seen = follows(4_000, 10_000, random(20));
    assert!(seen.recoveries > 20 && seen.short_term > 100, "{seen:?}");
}

#[test]
fn it_follows_the_draft_where_bursts_are_lost() {
    let seen = follows(4_000, 10_000, Box::new(|count, _| count % 400 < 12 && count > 400));
    assert!(seen.too_high > 0 && seen.short_term > 100, "{seen:?}");
}

/// 5.3.1.3: as many gaps as end Startup.
#[test]
fn it_follows_the_draft_where_startup_loses() {
    let seen = follows(4_000, 10_000, Box::new(|count, _| (60..200).contains(&count) && count % 5 == 0));
    assert!(seen.by_loss, "{seen:?}");
}

#[test]
fn it_follows_the_draft_through_timeouts() {
    let seen = follows(4_000, 10_000, Box::new(|_, at| (4_000..4_500).contains(&(at / MILLISECOND))));
    assert!(seen.timeouts > 0, "{seen:?}");
}

/// Data that crossed a link from a time on: its share of the rate, with headers, and how many waited as each came.
fn crosses(path: &mut Path, rate: i64, from: i64, until: i64) -> (f64, f64) {
    assert!(path.connection.until(|connection| connection.now >= from), "it stops");
    let (received, looked) = (path.connection.ends[1].received.len(), path.queued.borrow().len());
    let begun = path.connection.now;
    assert!(path.connection.until(|connection| connection.now >= until), "it stops");
    let bytes = (path.connection.ends[1].received.len() - received) as f64 * 1_514.0 / MSS;
    let queued = path.queued.borrow();
    let waiting = queued[looked..].iter().sum::<usize>() as f64 / (queued.len() - looked).max(1) as f64;
    (bytes * 8e6 / (path.connection.now - begun) as f64 / rate as f64, waiting)
}

/// One flow fills a link, with next to nothing in a queue that has no end: 20 Mbit/s and 40 ms hold 66 packets. One of a hundred lost does not matter.
#[test]
fn it_fills_a_link_and_leaves_the_queue_short() {
    for (share, least) in [(0, 0.93), (10, 0.80)] {
        let mut path = path(30_000_000, vec![(0, 20_000)], usize::MAX, random(share));
        let (filled, waiting) = crosses(&mut path, 20_000, 1_500 * MILLISECOND, 6_500 * MILLISECOND);
        println!("{filled:.3} of the link, {waiting:.1} waiting, {share} of 1,000 lost");
        assert!(
            filled > least && waiting < 20.0,
            "{filled:.3} of the link, {waiting:.1} waiting, {share} of 1,000 lost"
        );
    }
}

/// The rate becomes ten times as much, and a tenth again (A.15, A.16).
#[test]
fn it_finds_other_rates() {
    let mut path =
        path(40_000_000, vec![(0, 2_000), (4_000 * MILLISECOND, 20_000), (9_000 * MILLISECOND, 2_000)], 66, never());
    for (rate, from, until) in [(2_000, 1_500, 4_000), (20_000, 8_000, 9_000), (2_000, 16_000, 20_000)] {
        let (filled, _) = crosses(&mut path, rate, from * MILLISECOND, until * MILLISECOND);
        println!("{filled:.3} of {rate} kbit/s");
        assert!(filled > 0.85, "{filled:.3} of {rate} kbit/s");
    }
    let best = path.connection.register(0, "bbr3.max_bw").expect("a register");
    assert!(best < 2_400_000, "{best} bit/s in its memory");
}

/// Behind silence it goes on at the bandwidth that it knew, with the window that it had, and without ProbeRTT (5.4, A.11).
#[test]
fn it_goes_on_behind_silence() {
    let mut path = path(2_000_000, vec![(0, 20_000)], 10_000, never());
    let connection = &mut path.connection;
    assert!(connection.until(|connection| connection.ends[1].received.len() == 2_000_000));
    assert!(connection.until(|connection| connection.register(0, "una") == connection.register(0, "next")));
    let before = Registers::of(connection);
    connection.now += 6_000 * MILLISECOND;
    connection.ends[0].to_send.extend(data(400_000, 7));
    connection.after(0);
    let after = Registers::of(connection);
    assert_eq!(after.get("bbr3.idle_restart"), 1);
    assert_eq!(after.get("congestion_window"), before.get("congestion_window"));
    assert_eq!(after.get("bbr3.bw"), before.get("bbr3.bw"));
    assert_eq!(after.get("pacing"), before.get("bbr3.bw") * 99 / 100);
    let mut steps = 0;
    while connection.ends[1].received.len() < 2_400_000 {
        assert!(connection.step(), "it stops");
        steps += 1;
        assert!(steps < 10_000 && connection.register(0, "bbr3.mode") != Some(6), "ProbeRTT behind silence");
    }
}
