//! Replays the corpus of the fuzz target `image_load` (`fuzz/corpus/image_load`) on the stable toolchain.
#![allow(clippy::disallowed_methods, reason = "a test that reads corpus files")]

use std::fs;
use std::path::{Path, PathBuf};

#[path = "support/image_load.rs"]
mod body;

#[test]
fn image_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/image_load");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        // Shown if the target panics.
        println!("{}", file.display());
        body::image_load(&fs::read(&file).unwrap());
    }
}
