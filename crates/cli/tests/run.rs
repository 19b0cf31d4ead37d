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

fn example_named(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    path.to_str().unwrap().to_owned()
}

fn example() -> String {
    example_named("arq-sender.xl")
}

#[test]
fn errors_say_what_would_be_right() {
    let example = example();
    let proxy = example_named("syn-proxy.xl");
    let cat = |image: &str, connection| refused(&["cat", image, "--port", "1=nosuch0", connection]);
    let run = |more: &[&str]| refused(&[&["run", example.as_str()], more].concat());
    for (said, expected) in [
        (run(&["--port", "1=nosuch0"]), "there is no interface `nosuch0`; there are: "),
        (run(&["--port", "eth0"]), "--port 1=eth0"),
        (run(&["--port", "1=tun:x", "--for", "5d"]), "10s, 1.5s, 5min, 1h"),
        (run(&["--port", "1=tun:x", "--connect", "10.0.0.1:4000"]), "such as 10.0.0.1:4000-10.0.0.2:80"),
        (run(&["--port", "1=tun:x", "--listen", "80"]), "10.0.0.1:80; 10.0.0.1 is all of its ports"),
        (refused(&["run", "nosuch.json", "--port", "1=lo"]), "cannot read nosuch.json"),
        (cat(&example, "10.0.0.1"), "`10.0.0.1` is not a connection; write SRC:PORT-DST:PORT"),
        (
            cat(&proxy, "10.0.0.1-10.0.0.2:80"),
            "syn-proxy.xl opens no connections: it has no handler `on connect` or `on data`",
        ),
        (refused(&["listen", &example, "--port", "1=nosuch0", "10.0.0.1:x"]), "write ADDRESS:PORT, e.g. 10.0.0.1:80"),
        (refused(&["listen", &example, "--port", "1=nosuch0", ":80"]), "there is no interface `nosuch0`; there are: "),
        (refused(&["proxy", &example, "--port", "1=tun:x"]), "--kernel-listen <ADDRESS:PORT>"),
        (refused(&["proxy", &example, "--port", "1=tun:x", "--listen", ":80"]), "--kernel-connect <ADDRESS:PORT>"),
        (
            refused(&["proxy", &example, "--port", "1=tun:x", "--listen", ":80", "--kernel-connect", "localhost:80"]),
            "e.g. 127.0.0.1:8080",
        ),
        (refused(&["flows", "--control", "/nonexistent/x.sock"]), "is `weft run` active?"),
        (refused(&["flows", "set", "1", "window"]), "REGISTER=VALUE"),
        (refused(&["flows", "parameters"]), "<NAME=VALUE>..."),
        (refused(&["flows", "parameters", "timeout"]), "write NAME=VALUE, e.g. timeout=200ms"),
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
