//! The simulator against ns-3: the same overloaded dumbbell gives the same deliveries, drops and queue.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests write files")]

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use weftwire_testbed::{Ns3, overload_network, run, skip_unless_installed};

const RATE: u64 = 10_000_000;
const SECONDS: u64 = 10;

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn the_overloaded_dumbbell_is_that_of_ns3() -> Result<()> {
    let Some(_turn) = skip_unless_installed(&["c++", "ns3++"]) else { return Ok(()) };
    let folder = std::env::temp_dir().join(format!("weft-ns3-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let compared = compare(&folder);
    std::fs::remove_dir_all(&folder)?;
    compared
}

fn compare(folder: &std::path::Path) -> Result<()> {
    let peer = Ns3::build(folder)?.overload(RATE, SECONDS, true)?;

    let (file, out) = (folder.join("overload.toml"), folder.join("out"));
    std::fs::write(&file, overload_network(RATE, SECONDS))?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.arg("sim").arg(&file).arg("--out").arg(&out);
    run(command, Duration::from_secs(60))?;
    let results: Value = serde_json::from_slice(&std::fs::read(out.join("results.json"))?)?;

    let delivered: Vec<u64> = results["flows"]
        .as_array()
        .context("no flows")?
        .iter()
        .map(|flow| flow["delivered"].as_u64().unwrap_or(0) / 958)
        .collect();
    let links = results["links"].as_array().context("no links")?;
    let bottleneck = links.iter().find(|link| link["rate"].as_u64() == Some(RATE)).context("no bottleneck")?;
    let count = |name: &str| bottleneck["counts"][name].as_f64().unwrap_or(f64::NAN);
    let frames = count("queue_bytes_integral") / 1000.0 / (SECONDS as f64 * 1e9);
    println!("ns-3 {peer:?}\nweft received {delivered:?}, drops {}, queue mean {frames}", count("dropped_full"));

    // Which flow's packets meet a full queue is decided by which of two events at one instant comes first.
    let total: u64 = delivered.iter().sum();
    let expected: u64 = peer.received.iter().sum();
    ensure!(total.abs_diff(expected) <= 5, "{total} datagrams delivered, {expected} by ns-3");
    ensure!((count("dropped_full") - peer.drops as f64).abs() <= 5.0, "drops");
    ensure!((frames - peer.queue_mean).abs() < 0.5, "the mean queue is {frames}, ns-3's {}", peer.queue_mean);
    ensure!(count("queue_packets_max") == peer.queue_max as f64, "the longest queue");
    Ok(())
}
