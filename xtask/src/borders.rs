//! Errors at the borders of crates, checked: callers can match on them, so none is a text or of any type.

use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Its library is the command line: whoever reads an argument says in words what is wrong with it.
const COMMAND: &str = "cli";

/// Checks the sources of all crates.
pub fn check(root: &Path) -> Result<()> {
    let mut faults = Vec::new();
    let mut left: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let entry = entry?;
        if entry.file_name() != COMMAND {
            left.push(entry.path().join("src"));
        }
    }
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path)?;
                let place = path.strip_prefix(root).unwrap_or(&path).display();
                faults.extend(vague(&text).into_iter().map(|line| format!("{place}:{line}")));
            }
        }
    }
    if !faults.is_empty() {
        faults.sort();
        bail!(
            "public functions whose errors nobody can match on; give them an enum with a variant for each reason:\n  {}",
            faults.join("\n  ")
        );
    }
    println!("errors at borders have types");
    Ok(())
}

/// The lines of a source where an error is a text, or a box of any error.
fn vague(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for start in ["pub fn ", "pub async fn ", "pub const fn ", "type Err = ", "type Error = "] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].rsplit('\n').next().unwrap_or_default();
            if !before.trim().is_empty() {
                continue;
            }
            let end = text[at..].find(['{', ';']).map_or(text.len(), |length| at + length);
            let error = match text[at..end].rsplit_once("->") {
                Some((_, result)) if result.contains("Result<") => result.rsplit_once(',').map(|(_, error)| error),
                _ => text[at..end].strip_prefix(start).filter(|_| start.starts_with("type")),
            };
            let error = error.unwrap_or_default().trim().trim_end_matches('>').trim();
            if error == "String" || error.starts_with("Box<dyn ") && error.contains("Error") {
                found.push(text[..at].matches('\n').count() + 1);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_boxes_are_found_where_they_are_public() {
        for text in [
            "    pub fn a() -> Result<(), String> {",
            "pub fn a(b: u8) -> Result<Vec<u8>, String>;",
            "pub async fn a(\n    b: u8,\n) -> Result<(), Box<dyn std::error::Error>> {",
            "type Err = String;",
        ] {
            assert_eq!(vague(&format!("\n{text}")), [2], "{text}");
        }
        for text in [
            "fn a() -> Result<(), String> {",
            "pub(crate) fn a() -> Result<(), String> {",
            "pub fn a() -> Result<String, Wrong> {",
            "pub fn a() -> Result<Box<dyn Function>, Wrong> {",
            "pub fn a(b: u8, c: String) {",
            "pub fn a() -> BTreeMap<u8, String> {",
            "// pub fn a() -> Result<(), String> {",
            "type Err = Wrong;",
        ] {
            assert!(vague(text).is_empty(), "{text}");
        }
    }
}
