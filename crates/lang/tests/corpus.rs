//! Replays the corpus of the fuzz target `xl_compile` (`fuzz/corpus/xl_compile`) on the stable toolchain.
#![allow(clippy::disallowed_methods, reason = "a test that reads corpus files")]

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/src/xl_compile.rs"]
mod body;

#[test]
fn xl_compile() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/xl_compile");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        // Shown if the target panics.
        println!("{}", file.display());
        body::xl_compile(&fs::read(&file).unwrap());
    }
}
