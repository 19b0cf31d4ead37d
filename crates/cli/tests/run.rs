//! What `weft run`, `weft flows` and `weft debug` say when something is wrong. Needs no privileges.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests of the command run it")]

use std::path::PathBuf;
use std::process::Command;

/// Runs the command, which must fail, and returns what it says.
fn refused(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?} succeeded");
    String::from_utf8(output.stderr).unwrap()
}

fn example() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/arq-sender.xl");
    path.to_str().unwrap().to_owned()
}

#[test]
fn errors_say_what_would_be_right() {
    let example = example();
    let run = |more: &[&str]| refused(&[&["run", example.as_str()], more].concat());
    for (said, expected) in [
        (run(&["--port", "1=nosuch0"]), "there is no interface `nosuch0`; there are: "),
        (run(&["--port", "eth0"]), "--port 1=eth0"),
        (run(&["--port", "1=tun:x", "--for", "5d"]), "10s, 1.5s, 5min, 1h"),
        (run(&["--port", "1=tun:x", "--connect", "10.0.0.1:4000"]), "such as 10.0.0.1:4000-10.0.0.2:80"),
        (refused(&["run", "nosuch.json", "--port", "1=lo"]), "cannot read nosuch.json"),
        (refused(&["flows", "--control", "/nonexistent/x.sock"]), "is `weft run` active?"),
        (refused(&["flows", "set", "1", "window"]), "REGISTER=VALUE"),
        (refused(&["flows", "snapshot"]), "<FLOW|--all>"),
        (refused(&["flows", "adopt", "--control", "/nonexistent/x.sock", "x"]), "is `weft run` active?"),
        (refused(&["replay", &example, "--port", "1=none", "--from", &example]), "a file of flows begins otherwise"),
        (refused(&["debug", "--control", "/nonexistent/x.sock"]), "/nonexistent/x.sock"),
    ] {
        assert!(said.contains(expected), "expected `{expected}` in: {said}");
    }
}

#[test]
fn the_layout_of_states_is_a_table() {
    let output = Command::new(env!("CARGO_BIN_EXE_weft")).args(["explain", "--layout", &example()]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.starts_with("State of a flow: schema "), "{text}");
    assert!(
        text.contains("SHA-256 of the image\n") && text.contains("\ntimers: an entry for each of `timers`"),
        "{text}"
    );
}
