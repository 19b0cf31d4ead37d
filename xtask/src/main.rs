//! Chores of the repository: `cargo run -p xtask -- generate [--check]`, `layers`, `vectors` and `mutants`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a build tool reads and writes files, starts cargo, and waits for it"
)]

mod borders;
mod gallery;
mod generate;
mod instructions;
mod layers;
mod machines;
mod map;
mod mutants;
mod mutations;
mod portable;
mod unused;
mod vectors;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository");
    match words[..] {
        ["generate"] => generate::write(root),
        ["generate", "--check"] => generate::check(root),
        ["layers"] => {
            let metadata = metadata(root)?;
            layers::check(&metadata, root)?;
            unused::check(&metadata)?;
            borders::check(root)
        }
        ["vectors"] => {
            vectors::compare(root)?;
            vectors::print(root)
        }
        ["mutants"] => mutants::run(root),
        ["instructions"] => instructions::check(root),
        ["instructions", "--write"] => instructions::rewrite(root),
        ["portable"] => portable::check(root),
        _ => bail!(
            "say one of\n  generate          write every generated file\n  generate --check  see that they are up to date\n  \
             layers            see that crates depend downwards only, on nothing that they do not use, and that\n                    \
             their errors have types\n  \
             vectors           print the test vectors of each rule of the semantics page, and see that each has some\n                    \
             and that they are what vectors/write.py writes\n  \
             mutants           see that the vectors notice mistakes in an engine\n  \
             instructions      count those of the engine, and compare with what is written down\n  \
             instructions --write  write them down\n  \
             portable          build the crates below the platforms for a target that is not Linux"
        ),
    }
}

/// What cargo knows of the workspace's packages.
fn metadata(root: &Path) -> Result<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps"])
        .current_dir(root)
        .output()
        .context("can't run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")
}
