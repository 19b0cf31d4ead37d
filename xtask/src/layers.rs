//! The architecture's layers, checked: crates depend on rows below their own, never on one above or beside.

use anyhow::{Result, bail};
use serde_json::Value;
use std::path::Path;

/// What the names of all packages begin with.
pub const PREFIX: &str = "weftwire-";

/// The rows of the architecture page, bottom first.
pub const ROWS: [&[&str]; 12] = [
    &["core"],
    &["draw", "text", "capture"],
    &["image", "calendar", "pace"],
    &["lang", "subscribe"],
    &["engine", "explain", "route", "target", "vectors", "workload"],
    &["stack", "chain", "switch", "network"],
    &["report"],
    &["sim", "linux", "rtl"],
    &["lab", "measure"],
    &["control", "publish", "study"],
    &["catalog"],
    &["cli", "shim"],
];

/// Crates that test and measure the others: above all rows, used by none.
pub const TOOLS: [&str; 2] = ["bench", "testbed"];

/// Downward dependencies that the page forbids all the same: the engine runs images, it does not make them.
const FORBIDDEN: [(&str, &str); 1] = [("engine", "lang")];

/// What functions, which do no input or output, have no use for. Platforms may have it, runtimes only from `control` up.
const IMPURE: [&str; 8] = ["libc", "rustix", "nix", "socket2", "mio", "tokio", "async-std", "smol"];

/// The lowest row that may touch the world.
const PLATFORMS: usize = 7;

/// The crates below the platforms.
pub fn pure() -> impl Iterator<Item = &'static str> {
    ROWS[..PLATFORMS].iter().flat_map(|row| row.iter().copied())
}

/// Checks the normal dependencies of all crates of the workspace.
pub fn check(metadata: &Value, root: &Path) -> Result<()> {
    let dependencies = dependencies(metadata, root);
    let faults: Vec<String> = dependencies.iter().filter_map(|(from, to)| fault(from, to)).collect();
    if !faults.is_empty() {
        bail!("the layers are broken:\n  {}", faults.join("\n  "));
    }
    println!("{} dependencies point down", dependencies.len());
    Ok(())
}

/// All pairs (package of the folder `crates`, what it depends on), tests' and build scripts' dependencies left out.
/// The repository's own tools are no layer.
pub fn dependencies(metadata: &Value, root: &Path) -> Vec<(String, String)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let is_layer = |package: &Value| {
        package["manifest_path"].as_str().is_some_and(|path| Path::new(path).starts_with(root.join("crates")))
    };
    let mut pairs = Vec::new();
    for package in list(&metadata["packages"]).into_iter().filter(is_layer) {
        let from = package["name"].as_str().unwrap_or_default().to_owned();
        for dependency in list(&package["dependencies"]).iter().filter(|it| it["kind"].is_null()) {
            pairs.push((from.clone(), dependency["name"].as_str().unwrap_or_default().to_owned()));
        }
    }
    pairs
}

/// What is wrong with one dependency.
fn fault(from: &str, to: &str) -> Option<String> {
    let from_crate = from.strip_prefix(PREFIX).unwrap_or(from);
    if TOOLS.contains(&from_crate) {
        return None;
    }
    let Some(from_row) = row(from_crate) else {
        return Some(format!("{from} is in no row; add it to the architecture page and to xtask"));
    };
    let Some(to_crate) = to.strip_prefix(PREFIX) else {
        let impure = from_row < PLATFORMS && IMPURE.contains(&to);
        return impure.then(|| format!("{from} depends on {to}, which only platforms may"));
    };
    let down = row(to_crate).is_some_and(|to_row| to_row < from_row);
    if !down || FORBIDDEN.contains(&(from_crate, to_crate)) {
        return Some(format!("{from} depends on {to}, which the layers do not allow"));
    }
    None
}

fn row(name: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn down_is_allowed_and_nothing_else() {
        assert_eq!(fault("weftwire-engine", "weftwire-image"), None);
        assert_eq!(fault("weftwire-subscribe", "weftwire-text"), None);
        assert_eq!(fault("weftwire-linux", "libc"), None);
        assert_eq!(fault("weftwire-engine", "serde"), None);
        assert_eq!(fault("weftwire-bench", "weftwire-cli"), None);
        for (from, to) in [
            ("weftwire-core", "weftwire-image"),
            ("weftwire-image", "weftwire-calendar"),
            ("weftwire-engine", "weftwire-lang"),
            ("weftwire-lang", "weftwire-engine"),
            ("weftwire-sim", "weftwire-linux"),
            ("weftwire-core", "libc"),
            ("weftwire-cli", "weftwire-bench"),
            ("weftwire-chain", "tokio"),
            ("weftwire-surprise", "weftwire-core"),
        ] {
            assert!(fault(from, to).is_some(), "{from} -> {to}");
        }
    }
}
