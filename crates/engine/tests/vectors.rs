//! Every test vector in every engine (`docs/vectors.md`).
#![allow(clippy::disallowed_methods, reason = "a test that reads its vectors")]

use std::fs;
use std::path::{Path, PathBuf};
use weftwire_engine::{ENGINES, EngineOptions, Limits, make};
use weftwire_vectors::{Setup, Vector};

/// All vectors by name.
fn vectors() -> Vec<(String, Vector)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let base = fs::read(folder.join("base.json")).expect("vectors have a base");
    let files = fs::read_dir(folder).expect("the folder is part of the repository");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "json") && !file.ends_with("base.json"));
    files.sort();
    let read = |file: &PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let vector = Vector::read(&base, &fs::read(file).expect("readable"));
        let vector = vector.unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, vector)
    };
    files.iter().map(read).collect()
}

#[test]
fn every_engine_does_what_the_vectors_say() {
    let vectors = vectors();
    assert!(vectors.len() > 100);
    let mut wrong = Vec::new();
    for engine in ENGINES {
        for (name, vector) in &vectors {
            let found = vector.run(|Setup { image, ports, seed, hash_key, limits }| {
                let weftwire_vectors::Limits { frame, headers, packets, timers } = limits;
                let limits = Limits { frame, headers, packets, timers };
                make(engine, image, ports, EngineOptions { seed, hash_key, limits })
            });
            if !found.is_empty() {
                wrong.push(format!("{engine}, {name}: {}\n  {}", vector.about, found.join("\n  ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} vectors:\n{}", wrong.len(), wrong.join("\n"));
}
