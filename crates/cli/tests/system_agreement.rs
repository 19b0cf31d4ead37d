//! The same network simulated and brought up for real: the functions do the same, and goodput is the same within 5 %.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "system tests write files")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use weftwire_testbed::{run, skip_unless_root};

/// Runs `weft` with these words, which must succeed.
fn weft(words: &[&str]) -> Result<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(words);
    run(command, Duration::from_secs(120))
}

fn agree(name: &str) -> Result<()> {
    let Some(_turn) = skip_unless_root(&[]) else { return Ok(()) };
    let folder: PathBuf = std::env::temp_dir().join(format!("weft-agreement-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let compared = compare(name, &folder);
    // A failure's folder stays, to be looked at.
    if compared.is_ok() {
        std::fs::remove_dir_all(&folder)?;
    }
    compared
}

/// The machine may have other work: a real run that was late is repeated, and in the end compared as it is.
const ATTEMPTS: u32 = 3;

fn compare(name: &str, folder: &Path) -> Result<()> {
    let file = format!("{}/../../examples/networks/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let path = |part: &str| folder.join(part).to_string_lossy().into_owned();
    let (simulated, page) = (path("simulated"), path("comparison.html"));
    weft(&["sim", &file, "--out", &simulated])?;
    for attempt in 1..=ATTEMPTS {
        let (real, network) = (path(&format!("real{attempt}")), format!("agree{}", std::process::id()));
        weft(&["up", &file, "--run", "--out", &real, "--name", &network])?;
        let mut words = vec!["compare", &simulated, &real, "--out", &page];
        words.extend((attempt == ATTEMPTS).then_some("--allow-late"));
        match weft(&words) {
            Ok(text) => {
                println!("attempt {attempt}: {text}");
                return Ok(());
            }
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(error) => println!("attempt {attempt}: {error:#}"),
        }
    }
    Ok(())
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn the_arq_transport_does_the_same_on_both_platforms() -> Result<()> {
    agree("arq")
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn the_syn_proxy_does_the_same_on_both_platforms() -> Result<()> {
    agree("syn-proxy")
}

#[test]
#[cfg_attr(debug_assertions, ignore = "needs the release profile: make system")]
fn the_paced_sender_does_the_same_on_both_platforms() -> Result<()> {
    agree("paced")
}
