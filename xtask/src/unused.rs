//! Dependencies that no source names.

use anyhow::{Result, bail};
use serde_json::Value;
use std::path::Path;

/// Checks the dependencies of all packages of the workspace: the sources of each name every one of them.
pub fn check(metadata: &Value) -> Result<()> {
    let mut unused = Vec::new();
    let mut count = 0;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let Some(folder) = manifest.parent() else { continue };
        let library = sources(&[folder.join("src")])?;
        let tests = sources(&[folder.join("tests"), folder.join("benches"), folder.join("examples")])?;
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let name = dependency["name"].as_str().unwrap_or_default();
            let places: &[&String] = match dependency["kind"].as_str() {
                None => &[&library],
                Some("dev") => &[&library, &tests],
                // Of build scripts there are none.
                Some(_) => &[],
            };
            count += 1;
            if !places.iter().any(|text| names(text, &name.replace('-', "_"))) {
                unused.push(format!("{} does not use {name}", package["name"].as_str().unwrap_or_default()));
            }
        }
    }
    if !unused.is_empty() {
        bail!("dependencies that no source names:\n  {}", unused.join("\n  "));
    }
    println!("{count} dependencies are used");
    Ok(())
}

/// The text of all Rust files in some folders, which need not be there.
fn sources(folders: &[std::path::PathBuf]) -> Result<String> {
    let mut text = String::new();
    let mut left = folders.to_vec();
    while let Some(folder) = left.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                text.push_str(&std::fs::read_to_string(&path)?);
            }
        }
    }
    Ok(text)
}

/// Whether a text has this name as a word of its own, outside comments.
fn names(text: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
        line.match_indices(name)
            .any(|(at, _)| !line[..at].ends_with(is_part) && !line[at + name.len()..].starts_with(is_part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_where_it_is_a_word_of_code() {
        assert!(names("use serde::Serialize;", "serde"));
        assert!(names("    #[derive(serde::Serialize)]", "serde"));
        assert!(!names("use serde_json::Value;\nlet my_serde = 1;\n// serde is not needed here", "serde"));
    }

    #[test]
    fn a_dependency_that_no_source_names_is_found() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let package = |dependency: &str| {
            let dependencies = [serde_json::json!({ "name": dependency, "kind": null })];
            let package = serde_json::json!({ "name": "p", "manifest_path": manifest, "dependencies": dependencies });
            serde_json::json!({ "packages": [package] })
        };
        assert!(check(&package("serde-json")).is_ok());
        let error = check(&package("left-pad")).unwrap_err().to_string();
        assert!(error.contains("p does not use left-pad"), "{error}");
    }
}
