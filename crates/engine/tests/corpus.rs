//! Replays the corpora of the fuzz targets `image_load` and `flow_state` (`fuzz/corpus`) on the stable toolchain.
#![allow(clippy::disallowed_methods, reason = "a test that reads corpus files")]

use crate::support::{flow_state, image_load};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn image_load() {
    replay("image_load", image_load::image_load);
}

#[test]
fn flow_state() {
    // States of another version of the image or of the semantics would try nothing: `write_the_corpus` writes them anew.
    replay("flow_state", |bytes| assert!(flow_state::flow_state(bytes), "nothing was taken"));
}

fn replay(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        // Shown if the target panics.
        println!("{}", file.display());
        body(&fs::read(&file).unwrap());
    }
}
