//! The page on dependencies gives a reason for each of them, and for nothing else.

#![allow(clippy::disallowed_methods, reason = "reads the workspace's own files")]

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_dependency_has_a_reason() {
    let read = |path: &str| {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path))
            .expect("it is committed")
    };
    let manifest = read("Cargo.toml");
    let section = manifest.split("[workspace.dependencies]\n").nth(1).expect("the workspace has dependencies");
    let declared: BTreeSet<_> = section
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = ").map(|(name, _)| name))
        .filter(|name| !name.starts_with("weftwire-"))
        .collect();
    let page = read("docs/dependencies.md");
    let explained: BTreeSet<_> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |").map(|(name, _)| name)).collect();
    assert_eq!(declared, explained);
}
