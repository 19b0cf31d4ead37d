//! The market's example between real kernels: `weft up --run` plays the feed, and each subscriber gets its messages.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests: real processes and sockets")]

mod support;

use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::{crossings, market};
use weftwire_testbed::{Running, skip_unless_root};

const LIMIT: Duration = Duration::from_secs(60);
const NETWORK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/networks/market-data.toml");

#[test]
fn a_real_network_carries_the_market() -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("system-applications");
    // It may be there from the last run.
    let _ = fs::remove_dir_all(&folder);
    let out = folder.to_str().context("the build's folder has a plain name")?;
    let name = format!("market-{}", std::process::id());
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    // At the subscribers, too: what their own kernels see.
    let record = r#"record=["switch", "momentum", "basket", "trades"]"#;
    weft.args(["up", NETWORK, "--name", &name, "--set", record, "--run", "--out", out]);
    let ended = Running::start(weft)?.wait(LIMIT)?;
    ensure!(ended.status.success(), "{}", ended.stderr);

    let switch = crossings(&folder.join("switch.pcapng"))?;
    let frames: Vec<&[u8]> = switch.iter().filter(|it| !it.sent && is_feed(&it.bytes)).map(|it| &*it.bytes).collect();
    ensure!(frames.len() == 150, "{} packets of the feed arrived", frames.len());
    for (port, subscriber) in [(2, "momentum"), (3, "basket"), (4, "trades")] {
        let all = crossings(&folder.join(format!("{subscriber}.pcapng")))?;
        let got: Vec<_> =
            all.iter().filter(|it| !it.sent && is_feed(&it.bytes)).map(|it| market::messages(&it.bytes)).collect();
        ensure!(got == market::wanted(&frames, port), "{subscriber} got other messages than it asked for");
    }
    Ok(())
}

/// Whether a frame carries UDP in IPv4: hosts greet each other in IPv6 when their interfaces come up.
fn is_feed(frame: &[u8]) -> bool {
    frame[12..14] == [8, 0] && frame[23] == 17
}
