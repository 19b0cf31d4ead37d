//! Long commands say on a terminal how long they still take, and leave nothing behind when they are interrupted.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command and look at the files it writes"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use weftwire_testbed::{Running, Terminal};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("progress-{name}"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build's folder can be written");
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Starts a command that takes much longer than a test has, waits until it says how long, and interrupts it.
fn tells_and_stops(folder: &Path, arguments: &[&str], about: &str) {
    let before = names(folder);
    let (terminal, end) = Terminal::open().expect("a terminal");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(arguments).current_dir(folder);
    let running = Running::start_on(command, end).expect("it starts");
    let shown = terminal.wait_for(" left: ", Duration::from_secs(60)).map(|()| terminal.shown());
    let shown = shown.expect("it tells the time left");
    let line = shown.split('\r').find(|line| line.contains(" left: ")).expect("the line");
    assert!(line.contains(" %, ") && line.contains(about), "{line}");
    let ended = running.interrupt().expect("it ends");
    assert!(!ended.status.success(), "{arguments:?}");
    assert_eq!(names(folder), before, "{arguments:?}");
}

#[test]
fn a_study_of_applications_tells_the_time_left() {
    let arguments = ["study", "applications", "--packets", "10000000", "--out", "out"];
    tells_and_stops(&folder("study"), &arguments, "market, content and highway");
}

#[test]
fn times_of_packets_tell_the_time_left() {
    let arguments = ["pace", "times", "slow_start", "--count", "100000000"];
    tells_and_stops(&folder("times"), &arguments, "of 100000000 packets");
}

#[test]
fn an_envelope_s_table_tells_the_time_left() {
    let formula = "N(t) = 1000 pkt/s * t + 0.9 pkt * sin(1000 * t / 1 s) + 0.9 pkt * cos(400 * t / 1 s)";
    let arguments = ["pace", "compile", formula, "--check", "4000000", "--memory", "out", "-o", "table.json"];
    tells_and_stops(&folder("compile"), &arguments, " packets");
}
