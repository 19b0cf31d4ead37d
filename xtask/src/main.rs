//! Chores of the repository: `cargo run -p xtask -- generate [--check]` and `cargo run -p xtask -- layers`.
#![allow(clippy::disallowed_methods, reason = "a build tool reads and writes files and starts cargo")]

mod generate;
mod layers;

use anyhow::{Result, bail};
use std::path::Path;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository");
    match words[..] {
        ["generate"] => generate::write(root),
        ["generate", "--check"] => generate::check(root),
        ["layers"] => layers::check(root),
        _ => bail!(
            "say one of\n  generate          write every generated file\n  generate --check  see that they are up to date\n  \
             layers            see that crates depend downwards only"
        ),
    }
}
