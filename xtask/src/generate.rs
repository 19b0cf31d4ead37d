//! Generated files: written, or compared with what is there.

use anyhow::{Context, Result, bail};
use std::path::Path;

/// A generated file: its path and how it is made.
type Generated = (&'static str, fn(&Path) -> Result<String>);

const FILES: [Generated; 6] = [
    ("docs/image.schema.json", image_schema),
    ("docs/network.schema.json", network_schema),
    ("docs/table.schema.json", table_schema),
    ("crates/control/src/controller.v1.rs", controller_protocol),
    ("docs/images/crates.svg", crate_map),
    ("docs/machines.md", crate::machines::page),
];

/// Every generated file as it is to be, with its path.
fn all(root: &Path) -> Result<Vec<(String, String)>> {
    let mut files = crate::gallery::pictures(root)?;
    for (path, make) in FILES {
        files.push((path.to_owned(), make(root)?));
    }
    Ok(files)
}

/// Writes every generated file.
pub fn write(root: &Path) -> Result<()> {
    for (path, text) in all(root)? {
        std::fs::write(root.join(&path), text).with_context(|| format!("can't write {path}"))?;
        println!("wrote {path}");
    }
    Ok(())
}

/// Sees that every generated file is what it would be if written now.
pub fn check(root: &Path) -> Result<()> {
    let all = all(root)?;
    let is_stale =
        |(path, text): &&(String, String)| std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(text);
    let stale: Vec<&str> = all.iter().filter(is_stale).map(|(path, _)| path.as_str()).collect();
    if !stale.is_empty() {
        bail!("out of date: {}; run `cargo run -p xtask -- generate`", stale.join(", "));
    }
    println!("{} generated files are up to date", all.len());
    Ok(())
}

fn crate_map(root: &Path) -> Result<String> {
    crate::map::draw(&crate::metadata(root)?, root)
}

fn image_schema(_: &Path) -> Result<String> {
    Ok(format!("{:#}\n", weftwire_image::schema()))
}

fn network_schema(_: &Path) -> Result<String> {
    Ok(format!("{:#}\n", weftwire_network::schema()))
}

fn table_schema(_: &Path) -> Result<String> {
    Ok(format!("{:#}\n", weftwire_pace::Evolution::schema()))
}

/// The Rust side of the controller's gRPC service, made without the program `protoc`.
fn controller_protocol(root: &Path) -> Result<String> {
    let folder = root.join("crates/control/proto");
    let files = protox::compile(["controller.proto"], [&folder]).context("crates/control/proto is wrong")?;
    let out = root.join("target/generated");
    std::fs::create_dir_all(&out).context("can't make target/generated")?;
    tonic_prost_build::configure()
        .out_dir(&out)
        .emit_rerun_if_changed(false)
        .compile_fds(files)
        .context("can't generate the controller's protocol")?;
    std::fs::read_to_string(out.join("weftwire.controller.v1.rs")).context("no code was generated")
}
