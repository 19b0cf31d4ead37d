//! The first slow start over a queue that is too short for it: HyStart++ beside its pseudo-code (RFC 9406, 4.2), and what leaving late costs.

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

/// The pseudo-code, in milliseconds and segments; L is not limited.
struct Model {
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

impl Model {
    fn acknowledged(&mut self, count: f64, una: i64, next: i64, sample: f64) {
        self.current = self.current.min(sample);
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
        if una >= self.window_end {
            (self.window_end, self.last, self.current, self.samples) = (next, self.current, f64::INFINITY, 0);
            self.rounds += usize::from(self.baseline.is_some());
            self.over = self.rounds >= 5;
        }
        if !self.over {
            self.window += if self.baseline.is_some() { count / 4.0 } else { count };
        }
    }
}

/// What slow start has come to.
struct Ended {
    /// Packets that the queue had no room for until round trips were found to be longer, and until the first recovery was over.
    dropped: [i64; 2],
    /// Acknowledgments at which the windows were compared.
    compared: usize,
}

/// One flow over 20 Mbit/s and round trips of so many milliseconds, until what slow start lost is made good.
fn first_slow_start(trip: i64, control: i64) -> Ended {
    let line = Line { delay: trip * MILLISECOND / 2, ..CLEAN };
    let images = [machine(&[("control", control)]), machine(&[])];
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
    let mut model = Model {
        window: get(&connection, "congestion_window") as f64 / SEGMENT,
        over: false,
        window_end: get(&connection, "round_end"),
        last: f64::INFINITY,
        current: f64::INFINITY,
        samples: 0,
        baseline: None,
        rounds: 0,
    };
    let (mut found, mut compared) = (None, 0);
    while get(&connection, "threshold") == UNKNOWN {
        let (una, next) = (get(&connection, "una"), get(&connection, "next"));
        assert!(connection.step(), "it stops");
        let now = get(&connection, "una");
        if now == una || get(&connection, "threshold") != UNKNOWN {
            continue;
        }
        let sample = (connection.now - left.borrow()[&now]) as f64 / 1e6;
        model.acknowledged((now - una) as f64 / SEGMENT, now, next, sample);
        let ours = get(&connection, "congestion_window") as f64 / SEGMENT;
        assert!((ours - model.window).abs() <= 1.0, "{trip} ms: {ours} instead of {} segments", model.window);
        assert_eq!(get(&connection, "cautious") > 0, model.baseline.is_some(), "{trip} ms, at {ours} segments");
        compared += 1;
        if model.baseline.is_some() && found.is_none() {
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
        let Ended { dropped: [before, all], compared } = first_slow_start(trip, control);
        println!(
            "{trip} ms: {before} dropped before round trips are found longer, {all} in all; {compared} windows compared"
        );
        assert!(compared > 60, "{trip} ms: {compared} compared");
        assert!(before <= 12, "{trip} ms: {before} dropped in slow start itself");
        assert!(all <= most, "{trip} ms: {all} dropped");
    }
}
