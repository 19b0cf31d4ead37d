//! Every test vector in every engine (`docs/vectors.md`).
#![allow(clippy::disallowed_methods, reason = "a test that reads its vectors")]

#[macro_use]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use weftwire_engine::{EngineError, EngineOptions, Executor, Limits, Runtime};
use weftwire_vectors::{Engine, Setup, Vector};

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

fn the_vectors_are_kept<E: Executor>() {
    let vectors = vectors();
    assert!(vectors.len() > 100);
    let mut wrong = Vec::new();
    for (name, vector) in &vectors {
        let found = vector.run(|Setup { image, ports, seed, hash_key, limits }| {
            let weftwire_vectors::Limits { frame, headers, packets, timers } = limits;
            let limits = Limits { frame, headers, packets, timers };
            let engine =
                Runtime::<E>::new(image, ports, EngineOptions { seed, hash_key, limits, ..EngineOptions::default() })?;
            Ok::<Engine, EngineError>(Box::new(engine))
        });
        if !found.is_empty() {
            wrong.push(format!("{name}: {}\n  {}", vector.about, found.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{} vectors:\n{}", wrong.len(), wrong.join("\n"));
}

on_every_engine! { the_vectors_are_kept }
