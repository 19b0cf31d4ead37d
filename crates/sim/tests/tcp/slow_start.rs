//! The first slow start over a queue that is too short for it: HyStart++ beside its pseudo-code (RFC 9406, 4.2), HyStart beside `hystart_update` of
//! Linux (net/ipv4/tcp_cubic.c), and what leaving late costs.

use crate::support::{CLEAN, Connection, Fate, Line, data, machine};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

const SEGMENT: f64 = 1_448.0;
const MILLISECOND: i64 = 1_000_000;
/// What a segment takes on a link of 20 Mbit/s.
const TAKES: i64 = 1_514 * 400;
const QUEUE: i64 = 100;
const UNKNOWN: i64 = 0x7fff_ffff;
const BYTES: usize = 3_000_000;

/// An acknowledgment of something that was sent once; times in milliseconds.
struct Heard {
    now: f64,
    /// Segments.
    count: f64,
    una: i64,
    /// What was sent up to before it came.
    next: i64,
    sample: f64,
}

trait Model {
    fn heard(&mut self, heard: &Heard);
    /// In segments.
    fn window(&self) -> f64;
    /// Whether round trips, or a train, were found to be too long.
    fn found(&self) -> bool;
}

/// HyStart++; L is not limited.
struct PlusPlus {
    window: f64,
    /// Whether slow start is over.
    over: bool,
    /// The round ends when this is acknowledged.
    window_end: i64,
    last: f64,
    current: f64,
    samples: usize,
    /// Of conservative slow start: the round trip that it began with, and its rounds.
    baseline: Option<f64>,
    rounds: usize,
}

impl PlusPlus {
    fn new(window: f64, window_end: i64) -> PlusPlus {
        PlusPlus {
            window,
            over: false,
            window_end,
            last: f64::INFINITY,
            current: f64::INFINITY,
            samples: 0,
            baseline: None,
            rounds: 0,
        }
    }
}

impl Model for PlusPlus {
    fn heard(&mut self, heard: &Heard) {
        self.current = self.current.min(heard.sample);
        self.samples += 1;
        if self.samples >= 8 && self.last.is_finite() {
            match self.baseline {
                None if self.current >= self.last + (self.last / 8.0).clamp(4.0, 16.0) => {
                    (self.baseline, self.rounds) = (Some(self.current), 0);
                }
                Some(baseline) if self.current < baseline => self.baseline = None,
                _ => {}
            }
        }
        if heard.una >= self.window_end {
            (self.window_end, self.last, self.current, self.samples) = (heard.next, self.current, f64::INFINITY, 0);
            self.rounds += usize::from(self.baseline.is_some());
            self.over = self.rounds >= 5;
        }
        if !self.over {
            self.window += if self.baseline.is_some() { heard.count / 4.0 } else { heard.count };
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn found(&self) -> bool {
        self.baseline.is_some()
    }
}

/// HyStart without pacing.
struct Linux {
    window: f64,
    delay_min: f64,
    smoothed: f64,
    round_start: f64,
    last_ack: f64,
    end_seq: i64,
    curr_rtt: f64,
    sample_cnt: u32,
    found: bool,
}

impl Linux {
    fn new(window: f64, trip: f64, end_seq: i64) -> Linux {
        let (round_start, curr_rtt) = (0.0, f64::INFINITY);
        let (delay_min, smoothed, last_ack) = (trip, trip, round_start);
        Linux { window, delay_min, smoothed, round_start, last_ack, end_seq, curr_rtt, sample_cnt: 0, found: false }
    }
}

impl Model for Linux {
    fn heard(&mut self, heard: &Heard) {
        self.smoothed += (heard.sample - self.smoothed) / 8.0;
        self.delay_min = self.delay_min.min(heard.sample);
        if heard.una > self.end_seq {
            (self.round_start, self.last_ack, self.end_seq) = (heard.now, heard.now, heard.next);
            (self.curr_rtt, self.sample_cnt) = (f64::INFINITY, 0);
        }
        if self.window >= 16.0 {
            if heard.now - self.last_ack <= 2.0 {
                self.last_ack = heard.now;
                // Four super-frames at the rate of two windows a round trip.
                let delay = 4.0 * 65_536.0 / (2.0 * self.window * SEGMENT / self.smoothed);
                self.found |= heard.now - self.round_start > (self.delay_min + delay.min(1.0)) / 2.0;
            }
            self.curr_rtt = self.curr_rtt.min(heard.sample);
            if self.sample_cnt < 8 {
                self.sample_cnt += 1;
            } else {
                self.found |= self.curr_rtt > self.delay_min + (self.delay_min / 8.0).clamp(4.0, 16.0);
            }
        }
        if !self.found {
            self.window += heard.count;
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn found(&self) -> bool {
        self.found
    }
}

/// What slow start has come to.
struct Ended {
    /// Packets that the queue had no room for until round trips were found to be longer, and until the first recovery was over.
    dropped: [i64; 2],
    /// Acknowledgments at which the windows were compared.
    compared: usize,
}

/// One flow over 20 Mbit/s and round trips of so many milliseconds, until what slow start lost is made good, or until it has ended without loss.
fn first_slow_start(trip: i64, control: i64, classic: bool) -> Ended {
    let line = Line { delay: trip * MILLISECOND / 2, ..CLEAN };
    let images = [machine(&[("control", control), ("slow_start", i64::from(classic))]), machine(&[])];
    let mut connection = Connection::new(images, [data(BYTES, 7), Vec::new()], line, 1);
    let dropped = Rc::new(Cell::new(0));
    // When what ends here left.
    let left: Rc<RefCell<BTreeMap<i64, i64>>> = Rc::default();
    let (counted, noted, mut free) = (dropped.clone(), left.clone(), 0);
    connection.fates = Box::new(move |sending| {
        if sending.to == 0 || sending.payload() == 0 {
            return Fate::Passes;
        }
        noted.borrow_mut().insert(i64::from(sending.sequence()) + sending.payload() as i64, sending.at);
        if free - sending.at > QUEUE * TAKES {
            counted.set(counted.get() + 1);
            return Fate::Lost;
        }
        free = free.max(sending.at) + TAKES;
        Fate::Late(free - sending.at)
    });
    connection.open();
    let get = |connection: &Connection, name: &str| connection.register(0, name).expect("a register");
    assert!(connection.until(|connection| connection.register(0, "smoothed").is_some_and(|it| it > 0)));
    let window = get(&connection, "congestion_window") as f64 / SEGMENT;
    let first = get(&connection, "round_end");
    let mut model: Box<dyn Model> =
        if classic { Box::new(Linux::new(window, trip as f64, first)) } else { Box::new(PlusPlus::new(window, first)) };
    let (mut found, mut compared) = (None, 0);
    while get(&connection, "threshold") == UNKNOWN {
        let (una, next) = (get(&connection, "una"), get(&connection, "next"));
        assert!(connection.step(), "it stops");
        let now = get(&connection, "una");
        let over = get(&connection, "threshold") != UNKNOWN;
        // A recovery has begun.
        if now == una || (over && get(&connection, "phase") != 0) {
            continue;
        }
        let at = connection.now as f64 / 1e6;
        let (count, sample) = ((now - una) as f64 / SEGMENT, at - left.borrow()[&now] as f64 / 1e6);
        model.heard(&Heard { now: at, count, una: now, next, sample });
        let ours = get(&connection, "congestion_window") as f64 / SEGMENT;
        // Behind slow start the window grows by the curve.
        assert!((ours - model.window()).abs() <= 1.0, "{trip} ms: {ours} instead of {} segments", model.window());
        let knows = if classic { over } else { get(&connection, "hystart_plus_plus.cautious") > 0 };
        assert_eq!(knows, model.found(), "{trip} ms, at {ours} segments");
        compared += 1;
        if model.found() && found.is_none() {
            found = Some(dropped.get());
        }
    }
    connection.until(|connection| get(connection, "phase") == 0);
    let all = dropped.get();
    Ended { dropped: [found.unwrap_or(all), all], compared }
}

/// HyStart++ looks at the shortest round trip of a round, so that it sees a queue only when one stands for longer than a round; and behind that the
/// window grows by another quarter each round. Where the queue holds 100 packets, and the path 33 to 66, that costs several dozens. Where the path
/// holds 165, what opens a round is the end of the last one's burst, and when shorter round trips follow slow start is resumed: it costs hundreds.
#[test]
fn slow_start_is_that_of_the_rfc() {
    for (trip, control, most) in [(20, 0, 60), (24, 1, 60), (40, 1, 60), (100, 1, 300)] {
        let Ended { dropped: [before, all], compared } = first_slow_start(trip, control, false);
        println!(
            "{trip} ms: {before} dropped before round trips are found longer, {all} in all; {compared} windows compared"
        );
        assert!(compared > 60, "{trip} ms: {compared} compared");
        assert!(before <= 12, "{trip} ms: {before} dropped in slow start itself");
        assert!(all <= most, "{trip} ms: {all} dropped");
    }
}

/// The train of acknowledgments shows that the path is full before its queue is. Where the path holds 330 segments, the bursts of a round overflow the
/// queue before that.
#[test]
fn hystart_is_that_of_linux() {
    for (trip, control, most) in [(20, 0, 0), (24, 1, 0), (40, 1, 0), (100, 1, 0), (200, 1, 130)] {
        let Ended { dropped: [before, _], compared } = first_slow_start(trip, control, true);
        println!("{trip} ms: {before} dropped before slow start ends; {compared} windows compared");
        assert!(compared > 10, "{trip} ms: {compared} compared");
        assert!(before <= most, "{trip} ms: {before} dropped in slow start");
    }
}
