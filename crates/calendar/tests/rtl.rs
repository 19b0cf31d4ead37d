//! The modules of `rtl/` that stand alone, run by Verilator: the calendar against this crate's, the others against what
//! `rtl/test/modules.cpp` expects.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run a simulator and read what it prints"
)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use weftwire_calendar::{Calendar, TimerHandle};
use weftwire_core::Time;
use weftwire_testbed::skip_unless_installed;

const TIMERS: usize = 4096;

/// The simulator of all modules, built once.
fn simulator() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let rtl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rtl");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rtl-modules");
        // What another version of Verilator left does not compile.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the build's folder can be written");
        let mut verilator = Command::new("verilator");
        verilator.args(["--cc", "--exe", "--build", "-Wall", "-O3", "--x-assign", "unique", "--x-initial", "unique"]);
        verilator.args(["-MAKEFLAGS", "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O0", "--top-module", "modules_top"]);
        verilator.args(["--Mdir", "build", "-o", "modules", "-y"]).arg(&rtl);
        verilator.args(["test/modules_top.sv", "test/modules.cpp"].map(|source| rtl.join(source))).current_dir(&folder);
        let output = verilator.output().expect("Verilator starts");
        assert!(output.status.success(), "{verilator:?}:\n{}", String::from_utf8_lossy(&output.stderr));
        folder.join("build/modules")
    })
}

fn run(arguments: &[&str]) {
    let output = Command::new(simulator()).args(arguments).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    eprintln!("{}", String::from_utf8_lossy(&output.stdout).trim());
}

/// What the calendar in RTL did, call by call, on the calendar in software. Gives the number of expiries.
fn compare(mix: &str, start: u64, expiries: u32, seed: u32) -> u64 {
    let name = format!("{mix} from {start}, seed {seed}");
    let mut child = Command::new(simulator())
        .args(["calendar", mix, &start.to_string(), &expiries.to_string(), &seed.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut calendar: Calendar<usize> = Calendar::with_limit(TIMERS);
    let mut running: Vec<Option<TimerHandle>> = vec![None; TIMERS];
    // Deadlines that had passed when they were set are only in this mix.
    let late = mix == "late";
    let mut count = 0;
    let mut last = 0;
    let mut summary = None;
    for line in BufReader::new(child.stdout.take().expect("piped")).lines() {
        let line = line.expect("text");
        if line.starts_with('#') {
            summary = Some(line);
            continue;
        }
        let mut words = line.split(' ');
        let kind = words.next();
        let numbers: Vec<u64> = words.map(|word| word.parse().expect("a number")).collect();
        let id = numbers[0] as usize;
        match kind {
            Some("s") => {
                let before = running[id].take().and_then(|handle| calendar.remove(handle));
                assert_eq!(before.is_some(), numbers[2] == 1, "{name}: {line}");
                let deadline = Time::from_nanoseconds(numbers[1] as i64);
                running[id] = Some(calendar.insert(deadline, id).expect("there is room for each id"));
            }
            Some("c") => {
                let before = running[id].take().and_then(|handle| calendar.remove(handle));
                assert_eq!(before.is_some(), numbers[1] == 1, "{name}: {line}");
            }
            Some("x") => {
                let (deadline, now) = (numbers[1], numbers[2]);
                assert!(last <= deadline && deadline <= now, "{name}: {line} after {last}");
                last = deadline;
                if late {
                    let handle = running[id].take().expect("it runs");
                    assert!(handle.deadline().nanoseconds() as u64 <= deadline, "{name}: {line} is early");
                    assert_eq!(calendar.remove(handle), Some(id), "{name}: {line}");
                } else {
                    let (expected, _, first) =
                        calendar.pop_due(Time::from_nanoseconds(now as i64)).expect("one is due");
                    assert_eq!((first, expected.nanoseconds() as u64), (id, deadline), "{name}: {line}");
                    running[id] = None;
                }
                count += 1;
            }
            _ => panic!("{name}: {line}"),
        }
    }
    assert!(child.wait().expect("it ends").success(), "{name}");
    assert_eq!(calendar.len(), 0, "{name}: timers were lost");
    let summary = summary.expect("the last line");
    eprintln!("{name}: {count} expiries, {summary}");
    // No command takes longer, whatever the deadlines: a set or cancel four clocks, to set one that runs six.
    let worst: Vec<u32> = summary.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(worst[0] <= 4 && worst[1] <= 4 && worst[2] <= 6, "{name}: {summary}");
    count
}

#[test]
fn the_calendar_in_rtl_is_the_one_in_software() {
    let Some(_turn) = skip_unless_installed(&["verilator", "c++"]) else { return };
    let mut count = 0;
    let mixes = ["equal", "near", "uniform", "far", "mixed", "late", "1", "16", "1024", "4096", "65536"];
    for (seed, mix) in (1..).zip(mixes) {
        count += compare(mix, 0, 25_000, seed);
    }
    // Times about to need one more bit.
    for (seed, bits) in (1..).zip([31, 32, 40, 62]) {
        count += compare("mixed", (1 << bits) - 100_000, 15_000, seed);
        count += compare("near", (1 << bits) - 100_000, 15_000, seed);
    }
    assert!(count >= 300_000, "{count}");
}

#[test]
fn the_flow_table_in_rtl_loses_no_flow() {
    let Some(_turn) = skip_unless_installed(&["verilator", "c++"]) else { return };
    run(&["flows"]);
}

#[test]
fn streams_in_rtl_lose_nothing_at_any_pauses() {
    let Some(_turn) = skip_unless_installed(&["verilator", "c++"]) else { return };
    run(&["streams"]);
}
