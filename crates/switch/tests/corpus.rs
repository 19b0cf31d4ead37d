//! Replays the corpora of the fuzz targets `subscription_rules` and `subscription_packets` (`fuzz/corpus`) on the stable toolchain.
#![allow(clippy::disallowed_methods, reason = "a test that reads corpus files")]

use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/src/subscription_packets.rs"]
mod packets;
#[path = "../../../fuzz/src/subscription_rules.rs"]
mod rules;

fn files(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn replay(target: &str, body: fn(&[u8])) {
    for file in files(target) {
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

/// A file of a corpus, spoiled in a few places.
fn spoiled(target: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let inputs: Vec<Vec<u8>> = files(target).iter().map(|file| fs::read(file).unwrap()).collect();
    let bytes = prop_oneof![any::<u8>(), prop::sample::select(b"<>=!&|(){}[],;:.\"0x1\0\xff".to_vec())];
    let change = (any::<Index>(), bytes, 0..4u8);
    (prop::sample::select(inputs), prop::collection::vec(change, 1..8)).prop_map(|(mut input, changes)| {
        for (at, byte, how) in changes {
            if input.is_empty() {
                break;
            }
            let at = at.index(input.len());
            match how {
                0 => input[at] = byte,
                1 => input[at] ^= 1 << (byte & 7),
                2 => input.insert(at, byte),
                _ => drop(input.remove(at)),
            }
        }
        input
    })
}

proptest! {
    #[test]
    fn spoiled_rules(input in spoiled("subscription_rules")) {
        rules::subscription_rules(&input);
    }

    #[test]
    fn spoiled_packets(input in spoiled("subscription_packets")) {
        packets::subscription_packets(&input);
    }
}
