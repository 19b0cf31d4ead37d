//! Generated files: written, or compared with what is there.

use anyhow::{Context, Result, bail};
use std::path::Path;

/// A generated file: its path and how it is made.
type Generated = (&'static str, fn() -> String);

const FILES: [Generated; 3] = [
    ("docs/image.schema.json", image_schema),
    ("docs/network.schema.json", network_schema),
    ("docs/table.schema.json", table_schema),
];

/// Writes every generated file.
pub fn write(root: &Path) -> Result<()> {
    for (path, make) in FILES {
        std::fs::write(root.join(path), make()).with_context(|| format!("can't write {path}"))?;
        println!("wrote {path}");
    }
    Ok(())
}

/// Sees that every generated file is what it would be if written now.
pub fn check(root: &Path) -> Result<()> {
    let stale = |(path, make): &Generated| std::fs::read_to_string(root.join(path)).ok() != Some(make());
    let stale: Vec<&str> = FILES.iter().filter(|file| stale(file)).map(|(path, _)| *path).collect();
    if !stale.is_empty() {
        bail!("out of date: {}; run `cargo run -p xtask -- generate`", stale.join(", "));
    }
    println!("{} generated files are up to date", FILES.len());
    Ok(())
}

fn image_schema() -> String {
    format!("{:#}\n", weftwire_image::schema())
}

fn network_schema() -> String {
    format!("{:#}\n", weftwire_network::schema())
}

fn table_schema() -> String {
    format!("{:#}\n", weftwire_pace::Evolution::schema())
}
