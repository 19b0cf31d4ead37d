//! Replays the corpus of the fuzz target `kafka_bridge` (`fuzz/corpus`) on the stable toolchain, as it is and spoiled.
#![allow(clippy::disallowed_methods, reason = "a test that reads corpus files")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::path::Path;

#[path = "../../../fuzz/src/kafka_bridge.rs"]
mod body;

/// The files, each with its name.
fn inputs() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/kafka_bridge");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files.iter().map(|file| (file.display().to_string(), std::fs::read(file).unwrap())).collect()
}

#[test]
fn kafka_bridge() {
    for (name, input) in inputs() {
        // Shown if the target panics.
        println!("{name}");
        body::kafka_bridge(&input);
    }
}

proptest! {
    #[test]
    fn spoiled(
        (_, mut input) in select(inputs()), changes in vec((any::<Index>(), any::<u8>(), any::<bool>()), 1..8),
    ) {
        for (at, byte, flip) in changes {
            let at = at.index(input.len());
            input[at] = if flip { input[at] ^ 1 << (byte & 7) } else { byte };
        }
        body::kafka_bridge(&input);
    }
}
