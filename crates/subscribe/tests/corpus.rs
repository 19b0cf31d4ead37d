//! Replays the corpus of the fuzz target `subscription_rules` (`fuzz/corpus/subscription_rules`) on the stable toolchain.
#![allow(clippy::disallowed_methods, reason = "a test that reads corpus files")]

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/src/subscription_rules.rs"]
mod body;

#[test]
fn subscription_rules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/subscription_rules");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        // Shown if the target panics.
        println!("{}", file.display());
        body::subscription_rules(&fs::read(&file).unwrap());
    }
}
