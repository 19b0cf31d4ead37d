//! Replays the corpora of the fuzz targets `subscription_rules` and `subscription_packets` (`fuzz/corpus`) on the stable toolchain.
#![allow(clippy::disallowed_methods, reason = "a test that reads corpus files")]

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/src/subscription_packets.rs"]
mod packets;
#[path = "../../../fuzz/src/subscription_rules.rs"]
mod rules;

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

#[test]
fn subscription_rules() {
    replay("subscription_rules", rules::subscription_rules);
}

#[test]
fn subscription_packets() {
    replay("subscription_packets", packets::subscription_packets);
}
