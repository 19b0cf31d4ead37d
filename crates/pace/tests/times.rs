//! Times of packets: the published values, closed forms against integrals, and what must always hold.

use proptest::prelude::*;
use weftwire_pace::bytes::BytePacer;
use weftwire_pace::{Envelope, Options, Setting, SolveError, Solver, TimeUnit, parse};

fn envelope(text: &str) -> Envelope {
    let setting = Setting { packet_size: Some(1500.0), ..Setting::default() };
    parse(text, &setting).unwrap_or_else(|fault| panic!("{}", fault.to_text(text)))
}

fn times(envelope: &Envelope, count: u64) -> Vec<f64> {
    let mut solver = Solver::new(envelope);
    (1..=count).map(|n| solver.time_of_packet(n).expect("a time")).collect()
}

/// Pontarelli, Bianchi and Welzl, section III, example 2.
const LINEAR: [f64; 11] = [0.0, 1.0, 1.56, 2.0, 2.37, 2.70, 3.0, 3.27, 3.53, 3.77, 4.0];

#[test]
fn the_published_values_of_linear_increase() {
    let texts = [
        "linear",
        "R(t) = t/RTT^2 + 0.5 pkt/RTT",
        "N(t) = 1 + t/RTT * (t/RTT + 1) / 2",
        "T(n) = (sqrt(8*n - 7) - 1)/2 * RTT",
    ];
    for text in texts {
        let found = times(&envelope(text), 11);
        for (n, (time, published)) in found.iter().zip(LINEAR).enumerate() {
            assert!((time - published).abs() < 0.0051, "{text}: T({}) = {time}, published {published}", n + 1);
            let exact = (f64::sqrt(8.0 * (n + 1) as f64 - 7.0) - 1.0) / 2.0;
            assert!((time - exact).abs() < 1e-13, "{text}: T({}) = {time}, exact {exact}", n + 1);
        }
    }
}

#[test]
fn the_published_values_of_slow_start() {
    for text in
        ["slow_start", "exponential", "N(t) = 2^(t/RTT)", "T(n) = log2(n) RTT", "R(t) = ln(2) * 2^(t/RTT) pkt/RTT"]
    {
        let text = if text == "T(n) = log2(n) RTT" { "T(n) = log2(n) * RTT" } else { text };
        let text = if text.starts_with('R') { "R(t) = ln(2) * 2^(t/RTT) * 1 pkt/RTT" } else { text };
        let found = times(&envelope(text), 5000);
        assert_eq!((found[0], envelope(text).unit), (0.0, TimeUnit::RoundTrip));
        assert!((found[6] - 2.807).abs() < 5e-4 && (found[7] - 3.0).abs() < 1e-13, "{text}: {} {}", found[6], found[7]);
        for (n, time) in found.iter().enumerate() {
            assert!((time - libm::log2((n + 1) as f64)).abs() < 2e-12, "{text}: T({}) = {time}", n + 1);
        }
    }
}

#[test]
fn closed_forms_agree_with_integrals_of_the_same_rate() {
    let pairs = [
        ("constant(7 pkt/RTT)", "R(t) = 7 pkt/RTT", 1),
        ("linear(start = 3, slope = 2)", "R(t) = 2 pkt/RTT + 2 pkt/RTT^2 * t", 1),
        ("ramp(10 pkt/s, 5 pkt/s^2)", "R(t) = 10 pkt/s + 5 pkt/s^2 * t", 1),
        ("slow_start(window = 10)", "R(t) = ln(2) * 10 pkt/RTT * 2^(t/RTT)", 10),
        ("token_bucket(20 pkt/s, burst = 5)", "R(t) = 20 pkt/s", 5),
        (
            "bbr(40 pkt/RTT)",
            "R(t) = 40 pkt/RTT * if(mod(t, 8 RTT) < 1 RTT, 1.25, if(mod(t, 8 RTT) < 2 RTT, 0.75, 1))",
            1,
        ),
        (
            "sawtooth(low = 5 pkt/RTT, high = 10 pkt/RTT, period = 4 RTT)",
            "R(t) = 5 pkt/RTT + 5 pkt/RTT * mod(t, 4 RTT)/(4 RTT)",
            1,
        ),
        ("cubic(window = 100, rtt = 100 ms)", "R(t) = (0.4 pkt/s^3 * (t - cbrt(75) * 1 s)^3 + 100 pkt)/(100 ms)", 1),
    ];
    for (named, formula, origin) in pairs {
        let (named_envelope, rate) = (envelope(named), envelope(formula));
        let mut solver = Solver::new(&rate);
        let named_times = times(&named_envelope, 400);
        for (index, time) in named_times.iter().enumerate().skip(origin) {
            let n = index + 2 - origin;
            let other = solver.time_of_packet(n as u64).expect("a time");
            // The rates of CUBIC: 75 = 100 (1 - 0.7) / 0.4.
            assert!(
                (time - other).abs() < 2e-9 * time.max(1.0),
                "{named}: packet {} at {time}, by the integral {other}",
                index + 1
            );
        }
    }
}

#[test]
fn a_table_of_rates_is_its_steps() {
    let pieces = weftwire_pace::pieces::Pieces::from_csv("time,rate\n0,10\n1,0\n2,20\n", 1.0).expect("a table");
    let envelope = Envelope { shape: weftwire_pace::Shape::Pieces { origin: 1.0, pieces }, unit: TimeUnit::Second };
    let found = times(&envelope, 14);
    assert!((found[10] - 1.0).abs() < 1e-12 && (found[11] - 2.05).abs() < 1e-12 && (found[13] - 2.15).abs() < 1e-12);
    let bad = [
        ("", "no lines"),
        ("1,2\n", "begin at 0"),
        ("0,1\n0,2\n", "and rise"),
        ("0,1\n1,-2\n", "0 or more"),
        ("0,1,2\n", "3 fields"),
        ("0,1\nx,2\n", "two numbers"),
    ];
    for (text, message) in bad {
        let fault = weftwire_pace::pieces::Pieces::from_csv(text, 1.0).expect_err("a fault");
        assert!(fault.to_text(text).contains(message), "{text:?}: {}", fault.to_text(text));
    }
}

#[test]
fn bits_become_packets_and_round_trips_seconds() {
    let in_bits = envelope("constant(12 Mbit/s)");
    assert!((times(&in_bits, 2)[1] - 1e-3).abs() < 1e-18 && in_bits.unit == TimeUnit::Second);
    let setting = Setting { round_trip: Some(0.1), packet_size: None };
    let scaled = parse("slow_start", &setting).expect("a shape");
    assert!((times(&scaled, 2)[1] - 0.1).abs() < 1e-15 && scaled.unit == TimeUnit::Second);
    let linear = parse("linear", &setting).expect("a shape");
    assert!((times(&linear, 4)[3] - 0.2).abs() < 1e-15);
    let mixed = parse("R(t) = 1 pkt/RTT + 10 pkt/s", &setting).expect("a formula");
    assert!((times(&mixed, 2)[1] - 0.05).abs() < 1e-15);
}

#[test]
fn what_can_not_be_solved_is_an_error() {
    for (text, message) in [
        ("R(t) = 1 pkt/RTT - t/RTT^2", "the rate is -"),
        ("N(t) = min(5, 1 + t/RTT)", "packet 6 is never sent"),
        ("R(t) = 1 pkt/RTT / (t/RTT - t/RTT)", "no finite number"),
        ("T(n) = log2(n - 3) * RTT", "no finite number at 1"),
        ("R(t) = 0", "packet 2 is never sent"),
    ] {
        let envelope = envelope(text);
        let mut solver = Solver::new(&envelope);
        let error = (1..20).find_map(|n| solver.time_of_packet(n).err()).unwrap_or_else(|| panic!("{text} was solved"));
        assert!(error.to_string().contains(message), "{text}: {error}");
    }
}

#[test]
fn a_poisson_process_has_its_mean_and_spread() {
    let envelope = envelope("poisson(100 pkt/s, seed = 7)");
    let found = times(&envelope, 100_001);
    let gaps: Vec<f64> = found.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
    assert!((mean * 100.0 - 1.0).abs() < 0.01, "{mean}");
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{variance}");
    assert!(gaps.iter().all(|gap| *gap > 0.0));
}

/// Any envelope whose rate never falls to 0.
fn any_envelope() -> impl Strategy<Value = String> {
    let number = || (1_u32..4000).prop_map(|n| f64::from(n) / 16.0);
    prop_oneof![
        number().prop_map(|r| format!("constant({r} pkt/s)")),
        (1_u32..50).prop_map(|w| format!("slow_start({w})")),
        (number(), 0.01_f64..2.0).prop_map(|(s, a)| format!("linear({s}, {})", s * a)),
        (number(), 0.01_f64..1.0).prop_map(|(w, r)| format!("cubic(window = {w}, rtt = {r} s)")),
        (number(), 1_u32..9).prop_map(|(b, c)| format!("bbr({b} pkt/RTT, cruise = {c})")),
        (number(), 1_u32..40).prop_map(|(r, b)| format!("token_bucket({r} pkt/s, {b})")),
        (number(), number(), number()).prop_map(|(l, h, p)| format!("sawtooth({l} pkt/s, {} pkt/s, {p} s)", l + h)),
        (number(), number()).prop_map(|(a, b)| format!("R(t) = {a} pkt/s * (1.5 + sin(t * {b}/s))")),
        (number(), 0.01_f64..1.0).prop_map(|(a, b)| format!("R(t) = {a} pkt/s * max(0.25, sin(t * {b}/s))")),
        (number(), 0.01_f64..1.0).prop_map(|(a, b)| format!("R(t) = {a} pkt/s * (1 + mod(floor(t * {b}/s), 3))")),
        (number(), number()).prop_map(|(a, b)| format!("N(t) = {a} * sqrt(1 + t/RTT) + {b} * t/RTT")),
        (number(), number()).prop_map(|(a, b)| format!("N(t) = 1 + {a} * t/s + sin(t * {b}/s)")),
    ]
}

proptest! {
    #[test]
    fn times_rise_and_invert_the_integral(text in any_envelope(), skip in 1_u64..40) {
        let envelope = envelope(&text);
        let mut solver = Solver::new(&envelope);
        let mut last = 0.0;
        for n in (1..400).step_by(skip as usize) {
            let time = solver.time_of_packet(n).expect("a time");
            prop_assert!(time >= last, "{text}: packet {n} at {time} after {last}");
            let before = Solver::new(&envelope).time_of_packet(n).expect("a time");
            prop_assert!((before - time).abs() <= 1e-9 * time.max(1e-3), "{text}: {before} alone, {time} in order");
            if n as f64 > envelope.origin() {
                // N(T(n)) = n, by the rate's closed form or by counting with a fine sum.
                let wanted = n as f64;
                let sent = match &envelope.shape {
                    weftwire_pace::Shape::Exponential { window, doubling } => window * libm::exp2(time / doubling),
                    weftwire_pace::Shape::Pieces { origin, pieces } => origin + pieces.sent(time),
                    weftwire_pace::Shape::Cubic(cubic) => 1.0 + cubic.sent_between(0.0, time),
                    weftwire_pace::Shape::Sent(sent) => sent.value(time),
                    weftwire_pace::Shape::Rate(rate) => 1.0 + weftwire_pace::solve::integral(rate, 0.0, time).expect("finite"),
                    _ => wanted,
                };
                prop_assert!((sent - wanted).abs() < 1e-9 * wanted, "{text}: N(T({n})) = {sent}");
            }
            last = time;
        }
    }

    #[test]
    fn bytes_and_packets_agree_for_one_size(text in any_envelope(), size in 1_u32..9000) {
        let envelope = envelope(&text);
        let mut pacer = BytePacer::new(&envelope, size);
        for (index, time) in times(&envelope, 100).into_iter().enumerate() {
            let by_bytes = pacer.next(size).expect("a time");
            prop_assert!((by_bytes - time).abs() <= 1e-9 * time.max(1e-3), "{text}: packet {}: {by_bytes}, {time}", index + 1);
        }
    }

    #[test]
    fn half_the_size_takes_half_the_time_at_a_constant_rate(sizes in prop::collection::vec(1_u32..3000, 1..50)) {
        let envelope = envelope("constant(10 pkt/s)");
        let mut pacer = BytePacer::new(&envelope, 1500);
        let mut bytes = 0;
        for size in sizes {
            let time = pacer.next(size).expect("a time");
            prop_assert!((time - f64::from(bytes) / 15_000.0).abs() < 1e-9);
            bytes += size;
        }
    }
}

#[test]
fn times_that_fall_are_an_error_wherever_they_are_asked_for() {
    for (text, packet) in [("T(n) = 10 s - 1 s * n", 2), ("T(n) = 1 s * (n - 5) * (n - 5)", 2)] {
        let envelope = parse(text, &Setting::default()).expect("it is a formula");
        let mut solver = Solver::new(&envelope);
        let first = (1..=10).find_map(|n| solver.time_of_packet(n).err()).expect("its times fall");
        assert_eq!(first, SolveError::Backwards { packet: f64::from(packet) }, "{text}");
        assert!(weftwire_pace::compile(&envelope, text, &Options::default()).is_err(), "{text}");
    }
    // Asked again, or from the front, a time is what it was.
    let envelope = parse("T(n) = 1 s * n * n", &Setting::default()).expect("it is a formula");
    let mut solver = Solver::new(&envelope);
    for n in [5, 9, 9, 2, 10] {
        assert_eq!(solver.time_of_packet(n), Ok((n * n) as f64));
    }
}
