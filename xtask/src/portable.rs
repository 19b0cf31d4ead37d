//! The crates below the platforms, built for a target that is not Linux: so that they run where there is no operating system of
//! that kind, or none at all.

use crate::layers;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// No files, sockets, clocks or threads, and 32-bit addresses.
const TARGET: &str = "wasm32-unknown-unknown";

/// Builds them, if the target's standard library is installed.
pub fn check(root: &Path) -> Result<()> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).current_dir(root).output();
    let output = output.context("can't run rustc")?;
    let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !Path::new(&sysroot).join("lib/rustlib").join(TARGET).is_dir() {
        println!("SKIPPED: building for {TARGET} needs its library (rustup target add {TARGET})");
        return Ok(());
    }
    let crates: Vec<&str> = layers::pure().filter(|name| root.join("crates").join(name).is_dir()).collect();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--lib", "--profile", "portable", "--target", TARGET]).current_dir(root);
    for name in &crates {
        build.arg("--package").arg(format!("{}{name}", layers::PREFIX));
    }
    ensure!(
        build.status().context("can't run cargo")?.success(),
        "the crates below the platforms do not build for {TARGET}"
    );
    println!("{} crates build for {TARGET}", crates.len());
    Ok(())
}
