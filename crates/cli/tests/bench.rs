//! `weft bench` from the outside: what it writes can be read, and a run that is interrupted leaves nothing. Nothing here judges times.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the command and look at the files it writes"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{name}"));
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn bench(folder: &Path, seconds: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(["bench", "pacing", "--seconds", seconds, "--flows", "50", "--margin", "60us", "--out"]).arg(folder);
    command
}

#[test]
fn its_files_can_be_read() {
    let folder = folder("files");
    let output = bench(&folder, "1").output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("text");
    for part in ["machine's own", "released late by", "50 flows", "median <= 100 ns at every gap"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let text = fs::read_to_string(folder.join("pacing.json")).expect("it is there");
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let methods = json["methods"].as_array().expect("methods");
    for name in ["sleep", "sleep+spin", "spin"] {
        let method = methods.iter().find(|method| method["name"] == name).expect("each policy is there");
        let bins = method["release"].as_array().expect("bins");
        assert!(bins.len() == 10 && bins.iter().all(|bin| bin["count"].as_u64() > Some(0)), "{bins:?}");
        assert!(bins.iter().all(|bin| bin["p25"].as_i64() >= Some(0)), "no packet is early: {bins:?}");
    }
    let gaps = fs::read_to_string(folder.join("gaps.csv")).expect("it is there");
    assert!(gaps.starts_with("method,series,gap_from_s,") && gaps.contains("sleep+spin,release,"), "{gaps}");
    let flows = fs::read_to_string(folder.join("flows.csv")).expect("it is there");
    assert!(flows.lines().count() > 8 && flows.lines().skip(1).all(|line| line.contains(",50,")), "{flows}");
    let page = fs::read_to_string(folder.join("pacing.html")).expect("it is there");
    assert!(page.contains("<svg") && page.contains("class=\"boxes ") && page.trim_end().ends_with("</html>"));
}

/// Whether a process has a handler for SIGINT (signal 2): `SigCgt` of proc(5).
fn catches_interrupts(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & (1 << 1) != 0)
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let folder = folder("interrupted");
    let mut child = bench(&folder, "600").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    while !catches_interrupts(child.id()) {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended before it was interrupted");
        std::thread::sleep(Duration::from_millis(10));
    }
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(interrupted.success());
    let output = child.wait_with_output().expect("it ends");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted: nothing was written"));
    assert!(!folder.exists());
}
