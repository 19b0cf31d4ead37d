//! Replays the corpus of the fuzz target `pace_formula` (`fuzz/corpus/pace_formula`) on the stable toolchain.
#![allow(clippy::disallowed_methods, reason = "a test that reads corpus files")]

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/src/pace_formula.rs"]
mod body;

#[test]
fn pace_formula() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/pace_formula");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        // Shown if the target panics.
        println!("{}", file.display());
        body::pace_formula(&fs::read(&file).unwrap());
    }
}
