//! Replays the corpus of the fuzz target `calendar` (`fuzz/corpus/calendar`) on the stable toolchain.
#![allow(clippy::disallowed_methods, reason = "a test that reads corpus files")]

use std::fs;
use std::path::{Path, PathBuf};

#[allow(dead_code, reason = "shared with other tests, each of which uses a part")]
mod steps;

#[test]
fn calendar() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/calendar");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        // Shown if the target panics.
        println!("{}", file.display());
        steps::calendar(&fs::read(&file).unwrap());
    }
}
