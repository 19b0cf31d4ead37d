//! The map of the crates: a picture made from what cargo knows.

use crate::layers;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use weftwire_draw::graph::{Edge, Graph};

/// The picture: an arrow from each crate to those that it depends on, without those that others on the way lead to.
pub fn draw(metadata: &Value, root: &Path) -> Result<String> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, to) in layers::dependencies(metadata, root) {
        if let Some(to) = to.strip_prefix(layers::PREFIX) {
            let from = from.strip_prefix(layers::PREFIX).context("a crate of another project")?;
            uses.entry(from.to_owned()).or_default().insert(to.to_owned());
        }
    }
    // Tools that test and measure the others are no part of what they test.
    uses.retain(|name, _| !layers::TOOLS.contains(&name.as_str()));
    let below = |name: &str| -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut left: Vec<&String> = uses.get(name).into_iter().flatten().collect();
        while let Some(next) = left.pop() {
            if found.insert(next.clone()) {
                left.extend(uses.get(next).into_iter().flatten());
            }
        }
        found
    };
    // From the top, as the layout begins with the first.
    let names: Vec<&str> = layers::ROWS
        .iter()
        .rev()
        .flat_map(|row| row.iter().copied())
        .filter(|name| uses.contains_key(*name) || uses.values().any(|others| others.contains(*name)))
        .collect();
    let mut edges = Vec::new();
    for (from, name) in names.iter().enumerate() {
        let direct = uses.get(*name).cloned().unwrap_or_default();
        let further: BTreeSet<String> = direct.iter().flat_map(|other| below(other)).collect();
        for other in direct.difference(&further) {
            let to = names.iter().position(|name| name == other).context("a crate in no row")?;
            edges.push(Edge { from, to, labels: Vec::new() });
        }
    }
    Ok(Graph::new(names.into_iter().map(str::to_owned).collect(), edges).svg("the crates"))
}
