//! Subscription switches as the command runs them: in a simulated network, and refused.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of the command run it and read its files"
)]

mod support;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use weftwire_capture::CaptureReader;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

fn weft(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).args(words).output().expect("weft starts")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build's folder can be written");
    folder
}

fn frames(path: &Path) -> Vec<Vec<u8>> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = CaptureReader::new(BufReader::new(file)).expect("a capture");
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record().expect("a whole capture") {
        frames.push(record.bytes);
    }
    frames
}

/// What a switch sends in the simulator is what `weft subs match` makes of the same capture.
#[test]
fn a_simulated_switch_sends_what_match_writes() {
    let folder = folder("subs-sim");
    let (simulated, matched) = (folder.join("simulated"), folder.join("matched"));
    let file = |name: &str| format!("{EXAMPLES}/{name}");
    let out = weft(&["sim", &file("networks/market-data.toml"), "--out", simulated.to_str().unwrap()]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let (rules, format) = (file("subscriptions/market-data.rules"), file("subscriptions/itch.p4"));
    let capture = file("subscriptions/market-data.pcapng");
    let words = ["subs", "match", "--rules", &rules, "--format", &format, &capture, "--out", matched.to_str().unwrap()];
    let out = weft(&words);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));

    let sent = support::sent(&simulated.join("switch.pcapng")).expect("a capture");
    for (interface, port, least) in [(1, 2, 20), (2, 3, 20), (3, 4, 20)] {
        let live: Vec<&Vec<u8>> = sent.iter().filter(|(from, _)| *from == interface).map(|(_, frame)| frame).collect();
        let offline = frames(&matched.join(format!("port-{port}.pcapng")));
        assert!(live.len() >= least, "port {port}: {} frames", live.len());
        assert_eq!(live, offline.iter().collect::<Vec<_>>(), "port {port}");
    }
    assert!(sent.iter().all(|(interface, _)| *interface != 0));
}

#[test]
fn a_run_is_refused_with_the_reason() {
    let folder = folder("subs-run");
    let (rules, format) = (folder.join("some.rules"), format!("{EXAMPLES}/subscriptions/itch.p4"));
    fs::write(&rules, "add_order.stock == S01 : fwd(1);").unwrap();
    let wrong = folder.join("wrong.rules");
    fs::write(&wrong, "add_order.stack == S01 : fwd(1);").unwrap();
    let (rules, wrong) = (rules.to_str().unwrap(), wrong.to_str().unwrap());
    let cases: [(&[&str], &str); 7] = [
        (&["--format", &format, "--port", "1=lo"], "--rules <FILE>"),
        (&["--rules", rules, "--port", "1=lo"], "--format <FILE>"),
        (&["--rules", rules, "--format", &format], "--port <NUMBER=DEVICE>"),
        (&["--rules", wrong, "--format", &format, "--port", "1=lo"], "stack"),
        (&["--rules", "none.rules", "--format", &format, "--port", "1=lo"], "cannot read none.rules"),
        (&["--rules", rules, "--format", &format, "--order", "depth", "--port", "1=lo"], "no one field `depth`"),
        (&["--rules", rules, "--format", &format, "--port", "1=none0"], "none0"),
    ];
    for (words, says) in cases {
        let out = weft(&[&["subs", "run"], words].concat());
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && error.contains(says), "{words:?}: {error}");
    }
}

/// What an action is to do must be known before anything runs.
#[test]
fn an_action_that_nobody_has_is_refused() {
    let folder = folder("subs-actions");
    let (rules, format) = (folder.join("some.rules"), folder.join("some.p4"));
    let refused = |declared: &str, rule: &str| {
        fs::write(&format, format!("@subscribe_action[{declared}] header unused {{ bit<8> x; }}")).expect("writable");
        fs::write(&rules, rule).expect("writable");
        let (rules, format) = (rules.to_str().unwrap(), format.to_str().unwrap());
        let out = weft(&["subs", "run", "--rules", rules, "--format", format, "--port", "1=no-such-port"]);
        assert!(!out.status.success());
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let text = refused("name=answerDSN, arguments=\"ipv4\"", "true : answerDSN(10.0.0.1);");
    assert!(text.contains("nothing here carries out the action `answerDSN`"), "{text}");
    assert!(text.contains("answerDNS(ipv4)"), "{text}");
    let text = refused("name=setLocator, arguments=\"ipv6\"", "true : setLocator(fd00::1);");
    assert!(text.contains("a locator is the upper 64 bits"), "{text}");
}
