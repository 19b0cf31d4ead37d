//! Streams in datagrams (`examples/transports/stream`), controlled by LEDBAT and TIMELY: each beside the pseudo-code that it comes from.
#![allow(clippy::disallowed_methods, reason = "tests read the examples' files")]

mod path;
mod utp;

use path::{Answer, Between, Path};
use proptest::prelude::*;

const MSS: f64 = 1_200.0;
const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;
const TIMELY: i64 = 1;

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 % 251) as u8).collect()
}

/// TIMELY's constants are those of a data center; these are for the paths here.
fn slow(control: i64) -> Vec<(&'static str, i64)> {
    vec![
        ("control", control),
        ("timely.line", 20_000_000),
        ("timely.least_rate", 100_000),
        ("timely.low", 15 * MILLISECOND),
        ("timely.high", 60 * MILLISECOND),
        ("timely.base", 10 * MILLISECOND),
        ("timely.step", 200_000),
        ("timely.leap", 1_000_000),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever is lost, doubled or late: the bytes arrive, in order and once, and both ends know that it is over.
    #[test]
    fn all_bytes_arrive(
        control in 0..=1_i64, length in 0..300_000_usize, lost in 0..150_u64, doubled in 0..100_u64, late in 0..200_u64,
        rate in 1_000_000..20_000_000_i64, queue in 3_000..100_000_i64, seed: u64,
    ) {
        let between = Between { lost, doubled, late, ..Between::clean(rate, 5 * MILLISECOND, queue) };
        let mut path = Path::new(&slow(control), between, data(length), seed);
        path.run();
        prop_assert!(path.received == data(length), "{} of {length} bytes", path.received.len());
        prop_assert_eq!(&path.notices[..], ["finished", "finished"]);
    }
}

/// RFC 6817, 2.4.2 and 2.5, in floating point; times in microseconds.
struct Ledbat {
    target: f64,
    window: f64,
    base: Vec<f64>,
    current: Vec<f64>,
    rolled: i64,
}

impl Ledbat {
    fn acknowledged(&mut self, now: i64, delay: f64, bytes: f64, flight: f64) {
        // update_base_delay(): a minute begins with the first delay and lasts sixty seconds.
        if self.base.is_empty() || now - self.rolled >= 60 * SECOND {
            self.rolled = now;
            self.base.push(delay);
            let old = self.base.len().saturating_sub(10);
            self.base.drain(..old);
        } else {
            let last = self.base.last_mut().expect("one is there");
            *last = last.min(delay);
        }
        // update_current_delay()
        self.current.push(delay);
        let old = self.current.len().saturating_sub(4);
        self.current.drain(..old);
        let least = |delays: &[f64]| delays.iter().copied().fold(f64::INFINITY, f64::min);
        let queuing = least(&self.current) - least(&self.base);
        let off_target = (self.target - queuing) / self.target;
        self.window += off_target * bytes * MSS / self.window;
        self.window = self.window.min(flight + MSS).max(2.0 * MSS);
    }
}

/// Goes on to a time, the model beside the machine; how many acknowledgments were compared, and the least and the greatest window.
fn beside_ledbat(path: &mut Path, until: i64) -> (usize, f64, f64) {
    let target = path.register("ledbat.target") as f64 / 1e3;
    let mut model = Ledbat { target, window: 2.0 * MSS, base: Vec::new(), current: Vec::new(), rolled: 0 };
    let (mut compared, mut least, mut most) = (0, f64::INFINITY, 0_f64);
    while path.now < until {
        let Some(Answer { delay, una, next, .. }) = path.step().expect("something is to come") else { continue };
        let bytes = path.register("una") - una;
        assert!(bytes > 0, "nothing is lost here");
        model.acknowledged(path.now, f64::from(delay as i32), bytes as f64, (next - una) as f64);
        let ours = path.register("window") as f64;
        assert!((ours - model.window).abs() < 4.0, "{ours} instead of {} bytes at {} ns", model.window, path.now);
        (compared, least, most) = (compared + 1, least.min(ours), most.max(ours));
    }
    (compared, least, most)
}

#[test]
fn ledbat_is_that_of_the_rfc() {
    for (target, delay) in [(100, 25), (25, 10), (60, 100)] {
        let between = Between {
            rates: vec![(0, 5_000_000), (6 * SECOND, 2_500_000), (10 * SECOND, 5_000_000)],
            ..Between::clean(5_000_000, delay * MILLISECOND, 10_000_000)
        };
        let registers = [("ledbat.target", target * MILLISECOND), ("window", 2_400)];
        let mut path = Path::new(&registers, between, data(20_000_000), 1);
        let (compared, ..) = beside_ledbat(&mut path, 16 * SECOND);
        assert!(compared > 2_000, "{compared} compared");
    }
}

/// The queue comes to the target and stays there, and what is sent falls with the capacity: the XTRA paper's Figure 12.
#[test]
fn ledbat_keeps_the_queue_at_its_target() {
    let target = 25 * MILLISECOND;
    let rates = vec![(0, 5_000_000), (10 * SECOND, 2_500_000), (16 * SECOND, 5_000_000)];
    let between = Between { rates, ..Between::clean(5_000_000, 25 * MILLISECOND, 10_000_000) };
    let mut path = Path::new(&[("ledbat.target", target)], between, data(20_000_000), 1);
    let mut windows = Vec::new();
    // Behind each change some seconds to settle.
    for (settled, until, rate) in [(7, 10, 5_000_000), (13, 16, 2_500_000), (20, 23, 5_000_000)] {
        path.run_until(settled * SECOND);
        let before = path.carried;
        let mut queuing = Vec::new();
        while path.now < until * SECOND {
            path.step().expect("something is to come");
            queuing.push(path.register("ledbat.queuing"));
        }
        let share = (path.carried - before) as f64 * 8.0 / ((until - settled) * rate) as f64;
        assert!((0.98..1.02).contains(&share), "{share} of {rate} bit/s from {settled} s on");
        let mean = queuing.iter().sum::<i64>() / queuing.len() as i64;
        assert!((22_000..28_000).contains(&mean), "{mean} us are queued from {settled} s on");
        windows.push(path.register("window"));
    }
    assert_eq!(path.dropped, 0);
    assert!(windows[1] < windows[0] * 3 / 4 && windows[2] > windows[1] * 5 / 4, "{windows:?}");
}

/// A path that has become longer looks like a queue until the minutes before are forgotten; then it does no more.
#[test]
fn ledbat_forgets_a_shorter_path_after_ten_minutes() {
    let (rate, longer) = (200_000, 60 * SECOND);
    let between = Between {
        delays: vec![(0, 20 * MILLISECOND), (longer, 170 * MILLISECOND)],
        ..Between::clean(rate, 0, 1_000_000)
    };
    let mut path = Path::new(&[], between, data(30_000_000), 1);
    path.run_until(longer - SECOND);
    assert!(path.register("window") > 4_000, "{}", path.register("window"));
    path.run_until(longer + 8 * 60 * SECOND);
    assert_eq!(path.register("window"), 2 * MSS as i64, "the window is not the least");
    path.run_until(longer + 12 * 60 * SECOND);
    assert!(path.register("window") > 6_000, "{}", path.register("window"));
}

/// Whatever is lost in one round trip halves the window once (RFC 6817, 2.4.2).
#[test]
fn ledbat_halves_its_window_once_a_round_trip() {
    let between = Between::clean(5_000_000, 25 * MILLISECOND, 20_000);
    let mut path = Path::new(&[], between, data(20_000_000), 1);
    let mut halved = Vec::new();
    while path.now < 20 * SECOND {
        let before = path.register("window");
        path.step().expect("something is to come");
        let after = path.register("window");
        if after < before * 3 / 4 {
            assert!((after - before / 2).abs() <= 1_300, "{before} to {after}");
            halved.push(path.now);
        }
    }
    assert!(halved.len() >= 2 && path.dropped > 0, "{halved:?}, {} dropped", path.dropped);
    assert!(halved.windows(2).all(|pair| pair[1] - pair[0] >= 50 * MILLISECOND), "{halved:?}");
}

/// The update of `rdma-hw.cc`, in floating point; times in nanoseconds.
struct Timely {
    rate: f64,
    difference: f64,
    previous: f64,
    updated: i64,
    increases: u32,
}

const LINE: f64 = 10e9;

impl Timely {
    fn acknowledged(&mut self, trip: f64, una: i64, next: i64) {
        if self.updated == 0 {
            (self.updated, self.previous) = (next, trip);
            return;
        }
        if una <= self.updated {
            return;
        }
        self.difference = 0.125 * self.difference + 0.875 * (trip - self.previous);
        let gradient = self.difference / 20e3;
        if trip < 50e3 || (trip <= 500e3 && gradient <= 0.0) {
            self.rate = (self.rate + if self.increases < 5 { 5e6 } else { 50e6 }).min(LINE);
            self.increases += 1;
        } else {
            let factor = if trip > 500e3 { 1.0 - 0.8 * (1.0 - 500e3 / trip) } else { (1.0 - 0.8 * gradient).max(0.0) };
            self.rate = (self.rate * factor).max(100e6);
            self.increases = 0;
        }
        (self.previous, self.updated) = (trip, next);
    }
}

#[test]
fn timely_is_that_of_its_source() {
    for (rate, delay) in [(5_000_000_000, 8_000), (2_000_000_000, 30_000)] {
        let registers = [("control", TIMELY), ("edge", 1 << 24)];
        let mut path = Path::new(&registers, Between::clean(rate, delay, 4_000_000), data(30_000_000), 1);
        let mut model = Timely { rate: LINE, difference: 0.0, previous: 0.0, updated: 0, increases: 0 };
        let (mut raised, mut lowered) = (0, 0);
        while path.now < 12 * MILLISECOND {
            let Some(Answer { trip, next, .. }) = path.step().expect("something is to come") else { continue };
            let before = model.rate;
            model.acknowledged(trip as f64, path.register("una"), next);
            let ours = path.register("pacing") as f64;
            let close = (ours - model.rate).abs() < 1e-4 * model.rate;
            assert!(close, "{ours} instead of {} bit/s at {} ns", model.rate, path.now);
            raised += usize::from(model.rate > before);
            lowered += usize::from(model.rate < before);
        }
        println!("{rate} bit/s: {raised} times more, {lowered} times less");
        assert!(raised >= 30 && lowered >= 5, "{rate} bit/s: {raised} times more, {lowered} times less");
        assert_eq!(path.dropped, 0);
    }
}
