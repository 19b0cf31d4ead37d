//! The page of what the example machines take: lines, rows, operations.

use anyhow::{Context, Result, anyhow};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use weftwire_catalog::Catalog;

const HEAD: &str = "# The machines in numbers

What the example machines take as images: as many rows, operations, conditions and registers as an engine has to keep, and the operations that one event may take at worst: preparations, rows, the internal events raised from them
with all rounds of repeats, and what is left and entered behind it. Operations that several rows have stand once, in a block. kB is the length of the document. Lines are those of XL without comments and empty ones, with what is included. The page is made by `cargo run -p xtask -- generate`.

| machine | lines | states | rows | operations | with blocks written out | conditions | registers | of these scratch | worst event | kB |
|---|---|---|---|---|---|---|---|---|---|---|
";

/// The page.
pub fn page(root: &Path) -> Result<String> {
    let mut page = HEAD.to_owned();
    let mut files = Vec::new();
    programs(&root.join("examples"), &mut files)?;
    files.sort();
    let catalog = Catalog { includes: Vec::new(), timers: None, report: &|_, _| {} };
    for file in files {
        let text = fs::read_to_string(&file)?;
        if !text.lines().any(|line| line.starts_with("machine ")) {
            continue;
        }
        let name = file.strip_prefix(root)?.display().to_string();
        let image = catalog.image(&file).map_err(|error| anyhow!("{name}: {error}"))?;
        let operations = image.operation_count();
        let written_out: usize = image.operation_lists().map(|list| image.written_out_length(list)).sum();
        let kilobytes = image.to_json().len().div_ceil(1_000);
        let scratch = image.registers.iter().filter(|register| register.scratch).count();
        let (states, rows, conditions) = (image.states.len(), image.rows.len(), image.conditions.len());
        let (lines, registers) = (lines(&file, &text)?, image.registers.len());
        let worst = image.worst_case().map_or(0, |worst| worst.operations);
        writeln!(
            page,
            "| `{name}` | {lines} | {states} | {rows} | {operations} | {written_out} | {conditions} | {registers} | {scratch} | {worst} | {kilobytes} |"
        )?;
    }
    Ok(page)
}

/// All programs in a folder and those in it.
fn programs(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            programs(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "xl") {
            found.push(path);
        }
    }
    Ok(())
}

/// Lines of a program and of what it includes.
fn lines(file: &Path, text: &str) -> Result<usize> {
    let mut count = 0;
    for line in text.lines().map(str::trim) {
        count += usize::from(!line.is_empty() && !line.starts_with("//"));
        if let Some(included) = line.strip_prefix("include \"").and_then(|rest| rest.strip_suffix("\";")) {
            let included = file.with_file_name(included);
            count += lines(&included, &fs::read_to_string(&included)?)?;
        }
    }
    Ok(count)
}
