//! LEDBAT beside a kernel's TCP over a real queue (Figure 12 of the XTRA paper): it gives way, and comes back.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes")]

mod support;

use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::crossings;
use weftwire_testbed::{Running, skip_unless_root};

const LIMIT: Duration = Duration::from_secs(60);
const NETWORK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/networks/ledbat-tcp.toml");
/// What the line of 20 Mbit/s carries in a second.
const FULL: usize = 2_500_000;
/// When TCP begins, in seconds.
const BEGINS: usize = 6;

#[test]
fn ledbat_gives_way_to_a_kernel_and_comes_back() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("system-ledbat");
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    let out = folder.to_str().context("the build's folder has a plain name")?;
    let name = format!("ledbat-{}", std::process::id());
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(["up", NETWORK, "--name", &name, "--run", "--out", out, "--set", r#"record=["receiver", "server"]"#]);
    weft.args(["--set", "traffic.1.congestion_control=cubic", "--set", "traffic.1.bytes=5MB"]);
    let ended = Running::start(weft)?.wait(LIMIT)?;
    ensure!(ended.status.success(), "{}", ended.stderr);

    let background = rates(&folder.join("receiver.pcapng"), 17)?;
    let foreground = rates(&folder.join("server.pcapng"), 6)?;
    println!("LEDBAT: {background:?}\nTCP: {foreground:?}");
    let ended = foreground.iter().rposition(|&bytes| bytes > 10_000).context("TCP has sent nothing")?;
    ensure!((BEGINS..12).contains(&ended), "TCP has ended in second {ended}");
    ensure!(foreground.iter().sum::<usize>() >= 5_000_000, "TCP has sent less than it had");
    ensure!(background[BEGINS - 1] >= FULL * 9 / 10, "LEDBAT does not fill the line");
    let least = background[BEGINS..=ended].iter().min().context("no second")?;
    ensure!(*least < FULL / 2, "LEDBAT does not give way");
    ensure!(background[ended + 3] >= FULL * 9 / 10, "LEDBAT does not come back in three seconds");
    Ok(())
}

/// Bytes of frames with this protocol that have come to a node, by seconds of the run.
fn rates(capture: &Path, protocol: u8) -> Result<Vec<usize>> {
    let mut rates = vec![0; 21];
    for it in crossings(capture)?.iter().filter(|it| !it.sent && it.bytes[12..14] == [8, 0] && it.bytes[23] == protocol)
    {
        let second = usize::try_from(it.at_ns / 1_000_000_000)?;
        *rates.get_mut(second).context("a frame behind the end")? += it.bytes.len();
    }
    Ok(rates)
}
