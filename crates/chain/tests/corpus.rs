//! Replays the corpus of the fuzz target `chain_agent` (`fuzz/corpus`) on the stable toolchain, and spoils it.
#![allow(clippy::disallowed_methods, reason = "a test that reads corpus files")]

#[path = "../../../fuzz/src/chain_agent.rs"]
mod body;
mod world;

use std::fs;
use std::path::Path;
use world::Chance;

#[test]
fn the_corpus_does_no_harm() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/chain_agent");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        let bytes = fs::read(&file).unwrap();
        body::chain_agent(&bytes);
        for seed in 1..200 {
            let mut chance = Chance(seed);
            let mut spoilt = bytes.clone();
            for _ in 0..3 {
                let at = chance.below(spoilt.len() as u64) as usize;
                spoilt[at] ^= 1 << chance.below(8);
            }
            println!("{} spoilt by {seed}", file.display());
            body::chain_agent(&spoilt);
        }
    }
}
