//! Solved times against integrals worked out by hand, many packets of each.

use std::f64::consts::PI;
use weftwire_pace::solve::integral;
use weftwire_pace::{Envelope, Setting, Shape, SolveError, Solver, parse};

fn envelope(text: &str) -> Envelope {
    parse(text, &Setting::default()).unwrap_or_else(|fault| panic!("{}", fault.to_text(text)))
}

/// Packets sent until a time, the one at time 0 being 1.
type Sent = fn(f64) -> f64;

/// A rate, its integral, packets asked for (the first and the last are too), and in what steps.
const RATES: &[(&str, Sent, u64, u64)] = &[
    // Found by the property test: 15 points of a rule and 7 among them agreed over seven periods.
    (
        "R(t) = 0.0625 pkt/s * (1.5 + sin(t * 1.8125/s))",
        |t| 1.0 + 0.0625 * (1.5 * t + (1.0 - f64::cos(1.8125 * t)) / 1.8125),
        5_000,
        1,
    ),
    (
        "R(t) = 0.0625 pkt/s * (1.5 + sin(t * 249.9375/s))",
        |t| 1.0 + 0.0625 * (1.5 * t + (1.0 - f64::cos(249.9375 * t)) / 249.9375),
        5_000,
        7,
    ),
    (
        "R(t) = (5 + 2*sin(3*t/s) + 2.5*cos(7*t/s)) * 1/s",
        |t| 1.0 + 5.0 * t + 2.0 * (1.0 - f64::cos(3.0 * t)) / 3.0 + 2.5 * f64::sin(7.0 * t) / 7.0,
        50_000,
        11,
    ),
    ("R(t) = (1 + sin(40*t/s)) * 2/s", |t| 1.0 + 2.0 * (t + (1.0 - f64::cos(40.0 * t)) / 40.0), 2_000, 1),
    ("R(t) = 10/s * sin(t/s)^2", |t| 1.0 + 5.0 * t - 2.5 * f64::sin(2.0 * t), 2_000, 3),
    (
        "R(t) = 4/s * max(0, sin(2*t/s))",
        |t| {
            let half_turns = f64::floor(2.0 * t / PI);
            let within = if half_turns % 2.0 == 0.0 { 2.0 - 2.0 * f64::cos(2.0 * t) } else { 0.0 };
            1.0 + 4.0 * f64::ceil(half_turns / 2.0) + within
        },
        // Every fourth packet ends a wave, where the rate is 0: others are asked for.
        2_002,
        4,
    ),
    ("R(t) = 20/s + exp(sin(5*t/s)) * cos(5*t/s) * 5/s", |t| 20.0 * t + f64::exp(f64::sin(5.0 * t)), 5_000, 1),
    (
        "R(t) = (3 + floor(t/(2 s))) * 1/s",
        |t| {
            let steps = f64::floor(t / 2.0);
            1.0 + 3.0 * t + steps * (steps - 1.0) + steps * (t - 2.0 * steps)
        },
        20_000,
        3,
    ),
    (
        "R(t) = ceil(t/(0.3 s)) * 1/s",
        |t| {
            let steps = f64::floor(t / 0.3);
            1.0 + 0.3 * steps * (steps + 1.0) / 2.0 + (steps + 1.0) * (t - 0.3 * steps)
        },
        5_000,
        3,
    ),
    (
        "R(t) = mod(t/s, 0.75) * 8/s",
        |t| {
            let rounds = f64::floor(t / 0.75);
            1.0 + rounds * 2.25 + 4.0 * (t - 0.75 * rounds) * (t - 0.75 * rounds)
        },
        5_000,
        1,
    ),
    (
        "R(t) = if(mod(t, 8 RTT) < 1 RTT, 20 pkt/RTT, 1 pkt/RTT)",
        |t| {
            let (rounds, within) = (f64::floor(t / 8.0), t % 8.0);
            1.0 + 27.0 * rounds + within + 19.0 * within.min(1.0)
        },
        20_000,
        7,
    ),
    (
        "R(t) = abs(t/s - 5) * 1/s",
        |t| 1.0 + if t < 5.0 { 5.0 * t - t * t / 2.0 } else { 12.5 + (t - 5.0) * (t - 5.0) / 2.0 },
        1_000,
        1,
    ),
    ("R(t) = min(t/s, 4) * 3/s", |t| 1.0 + 3.0 * (t.min(4.0) * t.min(4.0) / 2.0 + 4.0 * (t - 4.0).max(0.0)), 1_000, 1),
    ("R(t) = min(t/s, t/s) * if(t/s <= t/s, 2, 1) * 1/s", |t| 1.0 + t * t, 1_000, 1),
    ("R(t) = sqrt(t/s) * 1/s", |t| 1.0 + 2.0 / 3.0 * t * f64::sqrt(t), 5_000, 1),
    ("R(t) = cbrt(t/s - 8)^2 * 1/s", |t| 1.0 + 0.6 * (f64::cbrt(t - 8.0).powi(5) + 32.0), 5_000, 1),
    ("R(t) = 100/s / (1 + t/s)^2", |t| 101.0 - 100.0 / (1.0 + t), 100, 1),
    ("R(t) = 1/s + 50/s * exp(-t/s)", |t| 51.0 + t - 50.0 * f64::exp(-t), 500, 1),
    ("R(t) = 1000/s / (1 s + t) * 1 s", |t| 1.0 + 1000.0 * f64::ln_1p(t), 5_000, 1),
    ("R(t) = (t/s)^2.5 * 1/s", |t| 1.0 + t.powf(3.5) / 3.5, 5_000, 1),
    ("R(t) = (t/s - 3)^2 * 1/s", |t| 1.0 + ((t - 3.0).powi(3) + 27.0) / 3.0, 5_000, 1),
];

#[test]
fn times_of_rates_are_those_of_their_integrals() {
    for (text, sent, packets, step) in RATES {
        let envelope = envelope(text);
        let Shape::Rate(rate) = &envelope.shape else { panic!("{text} is a rate") };
        let mut solver = Solver::new(&envelope);
        for n in (2..=*packets).step_by(*step as usize) {
            let time = solver.time_of_packet(n).unwrap_or_else(|error| panic!("{text}: packet {n}: {error}"));
            let wanted = n as f64;
            // The clock's last digits, at the rate there.
            let clock = 4.0 * f64::EPSILON * time * rate.value(time).max(rate.value(time * (1.0 + 1e-15)));
            assert!(
                (sent(time) - wanted).abs() <= 1e-12 * wanted + clock,
                "{text}: N(T({n})) = {} at {time}",
                sent(time)
            );
            if n % 499 == 0 {
                let alone = Solver::new(&envelope).time_of_packet(n).expect("a time");
                assert!(
                    (alone - time).abs() <= 1e-12 * time + 1e-12 * wanted / rate.value(time).max(1e-3),
                    "{text}: {n}"
                );
                let all = integral(rate, 0.0, time).expect("an integral");
                assert!((all + 1.0 - wanted).abs() <= 1e-12 * wanted + clock, "{text}: {all} for {n}");
            }
        }
    }
}

#[test]
fn a_packet_goes_the_first_time_its_number_is_reached() {
    let texts = [
        "N(t) = 1 + 2*t/s + 3*sin(4*t/s)",
        "N(t) = 1 + t/s + abs(5*sin(t/s))",
        // A spike of a fiftieth of a second.
        "N(t) = 1 + t/s + 6*exp(0 - ((t/s - 2.3)*50)^2)",
        "N(t) = 1 + t/s + 4*if(mod(t, 3 s) < 0.01 s, 1, 0)",
        "N(t) = 1 + 3*floor(t/s) - t/s",
        "N(t) = max(1 + t/s * t/s - 2*t/s, 10*sin(t/s))",
    ];
    for text in texts {
        let envelope = envelope(text);
        let Shape::Sent(sent) = &envelope.shape else { panic!("{text} is a count") };
        let mut solver = Solver::new(&envelope);
        let mut grid = 0_u32;
        for n in 2..12 {
            let time = solver.time_of_packet(n).unwrap_or_else(|error| panic!("{text}: packet {n}: {error}"));
            let wanted = n as f64;
            assert!(sent.value(time * (1.0 + 1e-14)) >= wanted - 1e-9, "{text}: N = {} at {time}", sent.value(time));
            // Nowhere before.
            while f64::from(grid) * 1e-4 < time - 1e-9 {
                let before = f64::from(grid) * 1e-4;
                assert!(sent.value(before) < wanted, "{text}: {n} is reached at {before}, not first at {time}");
                grid += 1;
            }
            let alone = Solver::new(&envelope).time_of_packet(n).expect("a time");
            assert!((alone - time).abs() <= 1e-12 * time, "{text}: packet {n} at {alone} alone, {time} in order");
        }
    }
}

#[test]
fn a_rate_that_is_negative_for_a_moment_is_found() {
    for text in [
        "R(t) = (1 + 1.0001*sin(40*t/s)) * 1/s",
        "R(t) = (1 + 1.0001*sin(t/s * t/s)) * 1/s",
        "R(t) = 1/s - 2/s * if(mod(t, 7 s) < 0.001 s, 1, 0)",
        "R(t) = (t/s - 3)^2 * 1/s - 0.0001/s",
    ] {
        let envelope = envelope(text);
        let mut solver = Solver::new(&envelope);
        let error = (2..100).find_map(|n| solver.time_of_packet(n).err());
        assert!(matches!(error, Some(SolveError::NegativeRate { .. })), "{text}: {error:?}");
    }
    // Before that moment it is no matter.
    let envelope = envelope("R(t) = 10/s - t/s * 1/s");
    let mut solver = Solver::new(&envelope);
    assert!((2..50).all(|n| solver.time_of_packet(n).is_ok()));
}

#[test]
fn what_can_not_be_followed_is_given_up() {
    for text in [
        "R(t) = (1 + max(0, sin(1e9*t/s))) * 1/s",
        "R(t) = (1 + mod(t/s, 1e-9)) * 1/s",
        "R(t) = 1/s + 1/s * sin(1e9 * t/s * t/s)",
        "N(t) = 1 + 0.9*(sin(1e9*t/s)^2 + cos(1e9*t/s)^2)",
    ] {
        let envelope = envelope(text);
        let error = (2..1000).find_map(|n| Solver::new(&envelope).time_of_packet(n).err());
        let error = error.map_or(Ok(()), Err);
        assert!(matches!(error, Err(SolveError::TooFast { .. })), "{text}: {error:?}");
        assert!(error.is_err_and(|error| error.to_string().contains("changes too fast")));
    }
}
