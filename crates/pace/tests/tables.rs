//! Compiled tables against exact values: errors, and drift over a million packets.

use proptest::prelude::*;
use weftwire_pace::polynomial::{Coefficient, Polynomial};
use weftwire_pace::table::{CompileError, Then};
use weftwire_pace::{
    Envelope, Evolution, EvolutionBlock, Form, Options, Report, Setting, compile, compile_watched, measure,
    measure_watched, parse,
};

/// 100 ms in ticks of 5 ns: the published calendar.
const ROUND_TRIP: u64 = 20_000_000;
const MILLION: u64 = 1_000_000;

fn envelope(text: &str) -> Envelope {
    parse(text, &Setting::default()).unwrap_or_else(|fault| panic!("{}", fault.to_text(text)))
}

fn table(text: &str, options: &Options) -> Evolution {
    let evolution = compile(&envelope(text), text, options).unwrap_or_else(|error| panic!("{text}: {error}"));
    evolution.check().unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(Evolution::from_json(&evolution.to_json()).expect("it reads back"), evolution);
    evolution
}

fn report(text: &str, options: &Options, packets: u64) -> Report {
    let evolution = table(text, options);
    measure(&envelope(text), &evolution, packets, ROUND_TRIP).expect("a report")
}

#[test]
fn the_published_sizes_of_slow_start_err_by_less_than_the_published_error() {
    for (form, entries, packets, goal) in [
        (Form::Direct, 4096, 4095, 1e-5),
        (Form::Direct, 16384, 16383, 1e-5),
        (Form::Carried, 4096, 4095, 1e-5),
        (Form::Carried, 16384, 16383, 1e-5),
        // 2048 entries of a gap and a change are the 16 KB of 4096 gaps.
        (Form::Interpolated, 2048, 16383, 1e-5),
        (Form::Interpolated, 1024, MILLION, 5.1e-6),
    ] {
        let options = Options { form, entries, ..Options::default() };
        let report = report("slow_start", &options, packets);
        assert!(report.gap_error.0 <= goal, "{form:?} {entries}: {report:?}");
        assert!(report.gap_error.0 > 1e-12, "an error of nothing is measured: {report:?}");
    }
}

#[test]
fn who_watches_hears_of_every_packet() {
    let (text, mut solved) = ("cubic(window = 1000, rtt = 100 ms)", 0);
    let options = Options { packets: 1 << 14, ..Options::default() };
    let watched = compile_watched(&envelope(text), text, &options, &mut |packets| solved += packets).expect("a table");
    assert_eq!((solved, &watched), (1 << 14, &table(text, &options)));
    let report = measure_watched(&envelope(text), &watched, 6_400, ROUND_TRIP, &mut |packets| solved += packets);
    assert_eq!((solved, report), ((1 << 14) + 6_400, measure(&envelope(text), &watched, 6_400, ROUND_TRIP)));
}

#[test]
fn carried_errors_never_add_up_to_a_tick() {
    for text in [
        "slow_start",
        "slow_start(10)",
        "linear",
        "linear(start = 10, slope = 2)",
        "constant(7 pkt/RTT)",
        "constant(0.3 pkt/RTT)",
        "constant(1e6 pkt/s)",
        "ramp(10 pkt/RTT, 3 pkt/RTT^2)",
        "cubic(window = 1000, rtt = 100 ms)",
        "bbr(400 pkt/RTT)",
        "bbr(12.5 pkt/RTT)",
        "token_bucket(30 pkt/RTT, burst = 10)",
        "token_bucket(30 pkt/RTT, burst = 2.5)",
        "sawtooth(50 pkt/RTT, 100 pkt/RTT, 50 RTT)",
        "poisson(20 pkt/RTT)",
        "N(t) = (1 + t/RTT)^3",
    ] {
        let word_bits = if text.starts_with("poisson") { 48 } else { 32 };
        let report = report(text, &Options { word_bits, entries: 16384, ..Options::default() }, MILLION);
        assert_eq!(report.packets, MILLION, "{text}");
        assert!(report.tick_error.0 < 1.0, "{text}: {:?} ticks, drift {}", report.tick_error, report.drift);
        assert!(
            report.longest_unit > ROUND_TRIP as f64 || report.tick_error.0 <= 0.76,
            "{text}: {}",
            report.longest_unit
        );
        assert!(report.gap_error.0 < 1e-4, "{text}: {:?}", report.gap_error);
    }
}

#[test]
fn without_carrying_they_do() {
    let direct = report("constant(7 pkt/RTT)", &Options { form: Form::Direct, ..Options::default() }, MILLION);
    assert!(direct.drift.abs() > 1e5, "{}", direct.drift);
}

#[test]
fn a_repeated_round_is_exact_for_ever() {
    // 7 gaps of a seventh are one: after any whole number of round trips not one grain is missing.
    let evolution = table("constant(7 pkt/RTT)", &Options::default());
    let mut machine = EvolutionBlock::new(&evolution, 1_000_003);
    let unit = 1_u128 << evolution.fraction_bits;
    let (mut grains, mut ticks) = (0_u128, 0_u128);
    let mut other = machine.clone();
    for trip in 1..=100_000_u128 {
        for _ in 0..7 {
            grains += u128::from(machine.next_grains());
            ticks += u128::from(other.next_ticks());
        }
        assert!(grains == trip * unit, "{trip}");
        assert_eq!(ticks, trip * 1_000_003);
    }
}

#[test]
fn slow_start_doubles_for_ever() {
    // Packet 2^k goes at k round trips, whatever the table: nothing is lost from octave to octave.
    let evolution =
        table("slow_start", &Options { entries: 512, gap_error: 1e-4, time_error: 1e-6, ..Options::default() });
    let mut machine = EvolutionBlock::new(&evolution, ROUND_TRIP);
    let mut grains = 0_u128;
    for octave in 1..=23_u32 {
        while machine.packet() < 1 << octave {
            grains += u128::from(machine.next_grains());
        }
        let exact = u128::from(octave) << evolution.fraction_bits;
        // The rounding of one entry.
        assert!(grains.abs_diff(exact) < 1 << 17, "octave {octave}: {grains} for {exact}");
    }
    assert!(matches!(evolution.then, Then::Double { octaves: 30, .. }));
}

#[test]
fn a_counter_that_has_reached_its_end_stays() {
    let evolution = table("slow_start", &Options { form: Form::Carried, entries: 4096, ..Options::default() });
    let mut machine = EvolutionBlock::new(&evolution, ROUND_TRIP);
    let gaps: Vec<u64> = (0..5000).map(|_| machine.next_grains()).collect();
    assert!(gaps[4096..].iter().all(|gap| *gap == gaps[4095]));
}

#[test]
fn a_poisson_table_keeps_the_mean() {
    for form in [Form::Carried, Form::Interpolated] {
        let evolution = table("poisson(20 pkt/RTT)", &Options { form, ..Options::default() });
        let mean = evolution.gaps.iter().map(|gap| *gap as f64).sum::<f64>() / evolution.gaps.len() as f64;
        let exact = (1_u64 << evolution.fraction_bits) as f64 / 20.0;
        assert!((mean - exact).abs() < 1.0, "{mean} for {exact}");
    }
}

#[test]
fn what_does_not_fit_says_what_to_do() {
    let small = Options { entries: 16, ..Options::default() };
    let error = compile(&envelope("linear"), "linear", &small).expect_err("too few entries");
    assert!(matches!(error, CompileError::TooManyEntries { allowed: 16, .. }), "{error}");
    assert!(error.to_string().contains("allow more entries"));
    for options in [
        Options { entries: 0, ..Options::default() },
        Options { word_bits: 64, ..Options::default() },
        Options { gap_error: f64::NAN, ..Options::default() },
    ] {
        assert!(matches!(compile(&envelope("linear"), "linear", &options), Err(CompileError::Options(_))));
    }
}

#[test]
fn a_table_that_was_changed_is_refused_or_runs() {
    let good = table("linear", &Options { packets: 5000, ..Options::default() });
    let mut bad = vec![good.clone(); 7];
    bad[0].bands[0].blocks += 1;
    bad[1].gaps[0] = u64::MAX;
    bad[2].changes.pop();
    bad[3].then = Then::Repeat { band: 1000, grains: 0, numerator: 0, denominator: 1 };
    bad[4].then = Then::Repeat { band: 0, grains: 0, numerator: 1, denominator: 1 };
    bad[5].evolution_version = 9;
    bad[6].then = Then::Draw { seed: 0 };
    for table in bad {
        assert!(Evolution::from_json(&table.to_json()).is_err(), "{:?}", table.then);
    }
    assert!(Evolution::from_json("{}").is_err());
    let good = table("linear", &Options { form: Form::Polynomial, ..Options::default() });
    let mut bad = vec![good.clone(); 6];
    bad[0].form = Form::Carried;
    bad[1].polynomial = None;
    bad[2].gaps.push(1);
    for (index, change) in [
        |registers: &mut Polynomial| registers.coefficients.truncate(1),
        |registers: &mut Polynomial| registers.state_bits = 300,
        |registers: &mut Polynomial| registers.coefficients[1].value = i64::MIN,
    ]
    .into_iter()
    .enumerate()
    {
        bad[3 + index].polynomial.as_mut().map(change);
    }
    for table in bad {
        assert!(Evolution::from_json(&table.to_json()).is_err(), "{:?}", table.polynomial);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Any registers run, also those of no envelope.
    #[test]
    fn registers_that_were_checked_run(
        parts in prop::collection::vec((-(1_i64 << 53)..1 << 53, 0_u8..190), 2..6),
        packet_bits in 1_u8..240,
        gap_bits in 0_u8..63,
    ) {
        let mut evolution = table("linear", &Options { form: Form::Polynomial, ..Options::default() });
        let coefficients = parts.into_iter().map(|(value, shift)| Coefficient { value, shift }).collect();
        evolution.polynomial = Some(Polynomial { packet_bits, state_bits: 256, gap_bits, coefficients });
        if evolution.check().is_ok() {
            let mut machine = EvolutionBlock::new(&evolution, ROUND_TRIP);
            (0..200).for_each(|_| { machine.next_ticks(); });
        }
    }

    /// The machine's ticks are the rounded sum of its grains, whatever the unit's length.
    #[test]
    fn ticks_are_the_sum_rounded_once(
        text in prop_oneof![
            Just("slow_start"), Just("linear"), Just("bbr(40 pkt/RTT)"), Just("constant(3 pkt/RTT)"), Just("poisson(5 pkt/RTT)"),
        ],
        form in prop_oneof![Just(Form::Carried), Just(Form::Interpolated)],
        unit in 1_u64..1 << 40,
    ) {
        let evolution = table(text, &Options { form, packets: 3000, ..Options::default() });
        let (mut grains, mut ticks) = (EvolutionBlock::new(&evolution, unit), EvolutionBlock::new(&evolution, unit));
        let (mut grain_sum, mut tick_sum) = (0_u128, 0_u128);
        let half = 1_u128 << (evolution.fraction_bits - 1);
        for _ in 0..4000 {
            grain_sum += u128::from(grains.next_grains());
            tick_sum += u128::from(ticks.next_ticks());
            prop_assert_eq!(tick_sum, (grain_sum * u128::from(unit) + half) >> evolution.fraction_bits);
        }
    }
}

#[test]
fn a_polynomial_is_exact_for_ever() {
    // N(t) = 1 + t (t + 1) / 2 at x grains of 2^-40: x (x + 2^40) ≥ n 2^81 first when packet n + 1 goes.
    let options = Options { form: Form::Polynomial, ..Options::default() };
    let linear = table("linear", &options);
    assert_eq!((linear.fraction_bits, linear.gaps.len()), (40, 0));
    let mut machine = EvolutionBlock::new(&linear, ROUND_TRIP);
    let mut grains = 0_i128;
    for packet in 1..10_000_000 {
        grains += i128::from(machine.next_grains());
        let (due, sent) = (packet << 81, |at: i128| at * (at + (1 << 40)));
        assert!(sent(grains) >= due && sent(grains - 1) < due, "packet {}", packet + 1);
    }
    assert!(!machine.saturated());
    assert_eq!(machine.packet(), 10_000_000);
}

#[test]
fn polynomials_stay_within_a_tick_of_their_envelopes() {
    for text in [
        "linear",
        "linear(start = 10, slope = 0.1)",
        "ramp(10 pkt/RTT, 3 pkt/RTT^2)",
        "cubic(window = 1000, rtt = 100 ms)",
        "token_bucket(30 pkt/RTT, burst = 2.5)",
        "N(t) = (1 + t/RTT)^3",
        "R(t) = 10 pkt/s + 3 pkt/s^3 * (t - 2 s)^2",
    ] {
        let report = report(text, &Options { form: Form::Polynomial, ..Options::default() }, MILLION);
        // Each time is rounded up to a grain, 2^-40; the exact times have their last digits too.
        assert!(report.time_error.0 < 5e-12, "{text}: {:?}", report.time_error);
        assert!(report.tick_error.0 < 0.51, "{text}: {:?}", report.tick_error);
    }
    let refused =
        compile(&envelope("slow_start"), "slow_start", &Options { form: Form::Polynomial, ..Options::default() });
    assert_eq!(refused, Err(CompileError::NoPolynomial));
}
