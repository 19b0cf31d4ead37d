//! Rules of the semantics page and the test vectors of each.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose comments cite rules.
const CITING: [&str; 4] = ["crates/engine/src", "crates/engine/tests", "crates/image/src", "crates/core/src"];

/// Prints which vectors each rule has. Fails on a rule without one, on a vector of a rule that is not there, and on a comment
/// that cites one.
pub fn print(root: &Path) -> Result<()> {
    let page = fs::read_to_string(root.join("docs/semantics.md")).context("there is no semantics page")?;
    let rules: Vec<&str> = page.lines().filter_map(rule_of).collect();
    let mut vectors: BTreeMap<&str, Vec<String>> = rules.iter().map(|rule| (*rule, Vec::new())).collect();
    if vectors.len() != rules.len() || rules.is_empty() {
        bail!("docs/semantics.md names a rule twice, or none");
    }
    let mut faults = Vec::new();
    for file in files(&root.join("vectors"), "json")?.iter().filter(|file| !file.ends_with("base.json")) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let document: Value = serde_json::from_str(&fs::read_to_string(file)?).with_context(|| name.clone())?;
        for rule in document["rules"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            match vectors.get_mut(rule) {
                Some(list) => list.push(name.clone()),
                None => faults.push(format!("{name} tests the rule {rule}, which is not there")),
            }
        }
    }
    for rule in &rules {
        println!("{rule:4} {}", vectors[rule].join(", "));
        if vectors[rule].is_empty() {
            faults.push(format!("the rule {rule} has no vector"));
        }
    }
    for folder in CITING {
        for file in files(&root.join(folder), "rs")? {
            let text = fs::read_to_string(&file)?;
            for cited in text.lines().flat_map(cited).filter(|cited| !vectors.contains_key(cited.as_str())) {
                faults.push(format!("{} cites the rule {cited}, which is not there", file.display()));
            }
        }
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}

/// The rule that a line of the page states: `- **V1.** Every value ...`.
fn rule_of(line: &str) -> Option<&str> {
    line.strip_prefix("- **")?.split_once(".**").map(|(rule, _)| rule)
}

/// The rules that a comment cites, behind the word `rule`.
fn cited(line: &str) -> BTreeSet<String> {
    let Some((_, comment)) = line.split_once("//") else { return BTreeSet::new() };
    let Some((_, behind)) = comment.to_lowercase().find("rule").map(|at| comment.split_at(at)) else {
        return BTreeSet::new();
    };
    let words = behind.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_rule = |word: &&str| {
        let mut letters = word.chars();
        letters.next().is_some_and(|letter| letter.is_ascii_uppercase())
            && !letters.as_str().is_empty()
            && letters.as_str().chars().all(|letter| letter.is_ascii_digit())
    };
    words.filter(is_rule).map(str::to_owned).collect()
}

/// All files below a folder that end so, by name.
fn files(folder: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, end)?);
        } else if path.extension().is_some_and(|known| known == end) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_where_they_are_stated_and_cited() {
        assert_eq!(rule_of("- **V12.** The random key"), Some("V12"));
        assert_eq!(rule_of("  a line of a rule"), None);
        let found: Vec<String> = cited("    /// Its end (rules E14 and L4); as CRC32 does.").into_iter().collect();
        assert_eq!(found, ["E14", "L4"]);
        assert!(cited("let rule = E14;").is_empty());
    }
}
