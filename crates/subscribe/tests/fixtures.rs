//! Rules and formats with mistakes: what is said about them is the expected output, which is reviewed like code.
//! `UPDATE=1 cargo test -p weftwire-subscribe` writes it anew.
#![allow(clippy::disallowed_methods, reason = "tests read their fixtures")]

use std::fs;
use std::path::{Path, PathBuf};
use weftwire_subscribe::{MessageFormats, check, read_rules};
use weftwire_text::{Diagnostic, SourceMap};

const EXAMPLES: &str = "../../examples/subscriptions";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is part of the repository");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    assert!(!files.is_empty());
    files
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Everything that is said about a file of rules, with the formats of the example.
fn of_rules(file: &Path, formats: &Path) -> String {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    let text = fs::read_to_string(formats).expect("the example is there");
    let formats = MessageFormats::read(&name(formats), &text, &mut sources, &mut diagnostics).expect("it is right");
    let text = fs::read_to_string(file).expect("readable");
    let rules = read_rules(&name(file), &text, &formats, &mut sources, &mut diagnostics);
    diagnostics.extend(check::check(&formats, &rules));
    written(&diagnostics, &sources)
}

fn of_formats(file: &Path) -> String {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
    let text = fs::read_to_string(file).expect("readable");
    MessageFormats::read(&name(file), &text, &mut sources, &mut diagnostics);
    written(&diagnostics, &sources)
}

fn written(diagnostics: &[Diagnostic], sources: &SourceMap) -> String {
    diagnostics.iter().map(|found| found.to_text(sources) + "\n").collect()
}

#[test]
fn mistakes_are_explained() {
    let invalid = folder("tests/invalid");
    let itch = folder(EXAMPLES).join("itch.p4");
    let rules = files(&invalid, "rules").into_iter().map(|file| (of_rules(&file, &itch), file));
    let formats = files(&invalid, "p4").into_iter().map(|file| (of_formats(&file), file));
    for (found, file) in rules.chain(formats) {
        let expected_file = file.with_extension("expected");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&expected_file, &found).expect("writable");
        }
        let expected = fs::read_to_string(&expected_file).unwrap_or_default();
        assert_eq!(found, expected, "{}; run with UPDATE=1 if this is what it should say", file.display());
        assert!(!found.is_empty(), "{} has no mistake", file.display());
    }
}

/// The formats of rules among the examples: those that their first line names, else those of the same name.
fn formats_of(rules: &Path) -> PathBuf {
    let text = fs::read_to_string(rules).expect("readable");
    let first = text.lines().next().unwrap_or_default();
    let word = first.split_whitespace().map(|word| word.trim_end_matches(['.', ',', ':']));
    match word.into_iter().find(|word| word.ends_with(".p4")) {
        Some(named) => rules.with_file_name(named),
        None => rules.with_extension("p4"),
    }
}

#[test]
fn examples_have_no_mistakes() {
    for file in files(&folder(EXAMPLES), "rules") {
        assert_eq!(of_rules(&file, &formats_of(&file)), "", "{}", file.display());
    }
}
