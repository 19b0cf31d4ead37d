//! Rules of the semantics page and the test vectors of each.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

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

/// Has the vectors written anew, elsewhere, and sees that they are those of the repository.
///
/// Without Python it says that this is left out; where system tests are required, it fails.
pub fn compare(root: &Path) -> Result<()> {
    let (kept, fresh) = (root.join("vectors"), root.join("target/vectors"));
    if fresh.exists() {
        fs::remove_dir_all(&fresh).context("can't empty target/vectors")?;
    }
    fs::create_dir_all(&fresh).context("can't make target/vectors")?;
    let output = match Command::new("python3").arg("-B").arg(kept.join("write.py")).arg(&fresh).output() {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
            let required = std::env::var("WEFT_REQUIRE_SYSTEM_TESTS").as_deref() == Ok("1");
            ensure!(!required, "WEFT_REQUIRE_SYSTEM_TESTS=1, but writing the vectors needs python3");
            println!("SKIPPED: comparing the vectors with what vectors/write.py writes needs python3");
            return Ok(());
        }
        output => output.context("can't run python3")?,
    };
    ensure!(output.status.success(), "vectors/write.py failed:\n{}", String::from_utf8_lossy(&output.stderr));
    let differences = differences(&kept, &fresh)?;
    ensure!(
        differences.is_empty(),
        "{}\nchange vectors/*.py, not the files, and run `python3 vectors/write.py`",
        differences.join("\n")
    );
    println!("the vectors are what vectors/write.py writes");
    Ok(())
}

/// In what two folders of vectors differ, a line a file. The base of all vectors is no vector.
fn differences(kept: &Path, fresh: &Path) -> Result<Vec<String>> {
    let named = |folder| -> Result<BTreeMap<String, PathBuf>> {
        let name = |path: PathBuf| Some((path.file_name()?.to_str()?.to_owned(), path));
        Ok(files(folder, "json")?.into_iter().filter_map(name).filter(|(name, _)| name != "base.json").collect())
    };
    let (kept, mut fresh) = (named(kept)?, named(fresh)?);
    let mut found = Vec::new();
    for (name, path) in kept {
        match fresh.remove(&name) {
            None => found.push(format!("vectors/{name}: vectors/write.py writes no such file")),
            Some(other) if fs::read(&path)? != fs::read(&other)? => {
                found.push(format!("vectors/{name}: vectors/write.py writes something else"));
            }
            Some(_) => {}
        }
    }
    found.extend(fresh.keys().map(|name| format!("vectors/{name}: vectors/write.py writes it, and it is not there")));
    Ok(found)
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

    #[test]
    fn differences_are_told_file_by_file() {
        let folder = std::env::temp_dir().join(format!("weftwire-vectors-{}", std::process::id()));
        let (kept, fresh) = (folder.join("kept"), folder.join("fresh"));
        for (name, here, there) in [
            ("same", Some("1"), Some("1")),
            ("base", Some("1"), None),
            ("changed", Some("1"), Some("2")),
            ("extra", Some("1"), None),
            ("missing", None, Some("2")),
        ] {
            for (folder, text) in [(&kept, here), (&fresh, there)] {
                fs::create_dir_all(folder).unwrap();
                if let Some(text) = text {
                    fs::write(folder.join(format!("{name}.json")), text).unwrap();
                }
            }
        }
        let found = differences(&kept, &fresh).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let expected = [
            "vectors/changed.json: vectors/write.py writes something else",
            "vectors/extra.json: vectors/write.py writes no such file",
            "vectors/missing.json: vectors/write.py writes it, and it is not there",
        ];
        assert_eq!(found, expected);
    }
}
