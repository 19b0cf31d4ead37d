//! `pace` in XL: the timers of a machine come when the envelope says, to the nanosecond that the model of the hardware says.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test runs the command and looks at the files it writes"
)]

use proptest::prelude::*;
use std::process::Command;
use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields};
use weftwire_core::{Frame, Function, LinkType, Outbox, Output, Port, Ports, Time};
use weftwire_engine::{EngineOptions, ReferenceEngine};
use weftwire_lang::{Dialect, compile};
use weftwire_pace::{EvolutionBlock, Form, Options, Setting, Solver, TimeUnit, parse};

/// The instants at which `tick`, paced by the pacer `p`, fires; the declarations say what `p` is.
fn fired(declarations: &str, unit: &str, count: usize) -> Vec<i64> {
    let source = format!(
        "flow key five_tuple expires after 0s;\n{declarations}\ntimer tick;\nregister rtt: time = 100ms;\ninitial state only {{\n\
         on packet {{ restart p; pace tick with p{unit}; }}\non tick {{ notify at(nanoseconds(now)); pace tick with p{unit}; }} }}"
    );
    let compilation = compile("program.xl", Dialect::Xl, &source.as_str());
    let image = compilation.image.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    let ports = Ports::new([(Port(1), LinkType::Ethernet)]);
    let image = image.verify().expect("the compiler's images verify");
    let mut engine = ReferenceEngine::new(image, ports, EngineOptions::default()).expect("it is verified");
    let ip = Ipv4Fields { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), ..Ipv4Fields::default() };
    let frame = FrameBuilder::ethernet([2; 6], [4; 6]).ipv4(&ip).udp(4000, 80).finish().expect("a small frame");
    let mut out = Outbox::new();
    // Twice, as a new start: the second restarts the pacer and takes the place of the timer that was set.
    engine.frame(Time::ZERO, Port(1), Frame::new(&frame), &mut out);
    engine.frame(Time::ZERO, Port(1), Frame::new(&frame), &mut out);
    let mut instants = Vec::new();
    while instants.len() < count {
        let due = engine.next_deadline().expect("a paced timer is always set").at;
        engine.fire(due, &mut out);
        let values = out.items().iter().filter_map(|item| match item {
            Output::Notify { value, .. } => Some(*value),
            _ => None,
        });
        instants.extend(values);
        out.clear();
    }
    instants
}

/// What the model of the hardware says with the same table.
fn expected(envelope: &str, entries: u32, unit: u64, count: usize) -> Vec<i64> {
    let parsed = parse(envelope, &Setting::default()).expect("it is right");
    let options = Options { form: Form::Carried, entries, ..Options::default() };
    let evolution = weftwire_pace::compile(&parsed, envelope, &options).expect("it compiles");
    let mut machine = EvolutionBlock::new(&evolution, unit);
    let mut now = 0;
    let mut next = || {
        now += machine.next_ticks() as i64;
        now
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn every_shape_fires_as_the_hardware_would() {
    let shapes = [
        "slow_start(window = 3)",
        "linear",
        "constant(7 pkt/RTT)",
        "constant(3 pkt/s)",
        "token_bucket(700 pkt/s, 4)",
        "sawtooth(10 pkt/RTT, 20 pkt/RTT, 3 RTT)",
        "bbr(90 pkt/RTT)",
        "cubic(100, 20ms)",
        "R(t) = 1000 pkt/s + 100 pkt/s^2 * t",
        "T(n) = sqrt(n - 1) * 1 ms",
    ];
    for shape in shapes {
        let seconds = parse(shape, &Setting::default()).expect("it is right").unit == TimeUnit::Second;
        let (unit, nanoseconds) = if seconds { ("", 1_000_000_000) } else { ("(rtt)", 100_000_000) };
        let declaration = format!("pacer p = \"{shape}\" entries 512;");
        let instants = fired(&declaration, unit, 1_500);
        assert_eq!(instants, expected(shape, 512, nanoseconds, 1_500), "{shape}");
        // And that is the envelope itself, as far as the table reaches.
        let parsed = parse(shape, &Setting::default()).expect("it is right");
        let mut solver = Solver::new(&parsed);
        for (index, instant) in instants.iter().enumerate().take(400) {
            let packet = parsed.origin().floor() as u64 + 1 + index as u64;
            let time = solver.time_of_packet(packet).expect("it has a time") * nanoseconds as f64;
            assert!((time - *instant as f64).abs() <= 1.0 + time * 1e-9, "{shape}: packet {packet}: {time}, {instant}");
        }
    }
}

#[test]
fn its_own_name_is_an_envelope_too() {
    let instants = fired("pacer slow_start; pacer p = \"slow_start\";", "(100ms)", 3);
    assert_eq!(instants, [100_000_000, 158_496_250, 200_000_000]);
}

#[test]
fn random_gaps_have_the_mean_and_spread_of_the_process() {
    let instants = fired("pacer p = \"poisson(1000 pkt/s)\" entries 4096;", "", 20_000);
    let mean = instants[instants.len() - 1] as f64 / instants.len() as f64;
    assert!((mean / 1e6 - 1.0).abs() < 0.03, "mean gap {mean} ns");
    let gaps = instants.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / mean);
    let variance = gaps.map(|gap| (gap - 1.0) * (gap - 1.0)).sum::<f64>() / instants.len() as f64;
    assert!((variance - 1.0).abs() < 0.06, "variance {variance} of means squared");
}

#[test]
fn the_example_sends_each_datagram_at_its_time() {
    let network = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/networks/paced.toml");
    let out = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("paced");
    // It may be there from the last run.
    let _ = std::fs::remove_dir_all(&out);
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = weft.arg("sim").arg(network).arg("--out").arg(&out).output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = std::fs::read_to_string(out.join("sender.trace.jsonl")).expect("it is there");
    let events = trace.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let times: Vec<i64> =
        events.filter(|event| event["event"] == "transmit").filter_map(|event| event["time"].as_i64()).collect();
    // 1 MB are 834 datagrams; the last event finds nothing left to send.
    assert_eq!(times.len(), 834);
    for (index, time) in times.iter().enumerate() {
        let envelope = ((index as f64 + 2.0).log2() * 1e8).round() as i64;
        assert!((time - envelope).abs() <= 1, "packet {}: {time}, not {envelope}", index + 2);
    }
}

proptest! {
    /// A round trip of any length, also one that is wrong, gives gaps in order and no overflow.
    #[test]
    fn round_trips_of_any_length(nanoseconds in prop_oneof![0_i64..10_000_000_000, Just(-5), Just(i64::MAX), Just(i64::MIN)]) {
        let unit = format!("(rtt + 1ns * i64({nanoseconds}) - rtt)");
        let declarations = "pacer p = \"linear\" entries 64;";
        let instants = fired(declarations, &unit.replace("--", "- -"), 100);
        let longest = (u64::MAX - u64::from(u32::MAX)) / u64::from(u32::MAX);
        if nanoseconds <= 0 {
            prop_assert!(instants.iter().all(|instant| *instant == 0));
        } else if (nanoseconds as u64) < longest / 2 {
            prop_assert_eq!(instants, expected("linear", 64, nanoseconds as u64, 100));
        } else {
            prop_assert!(instants.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }
}
