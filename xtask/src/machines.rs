//! The page of what the example machines take: lines, rows, operations.

use anyhow::{Context, Result, anyhow};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use weftwire_catalog::Catalog;
use weftwire_image::{Event, Image};

const HEAD: &str = "# The machines in numbers

What the example machines take as images: as many rows, operations, conditions and registers as an engine has to keep, and the operations on the longest way through one event: preparations, rows, and the internal events raised from them, each
repeat counted once. Lines are those of XL without comments and empty ones, with what is included. The page is made by `cargo run -p xtask -- generate`.

| machine | lines | states | rows | operations | conditions | registers | of these scratch | longest event |
|---|---|---|---|---|---|---|---|---|
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
        let operations = image.rows.iter().map(|row| row.operations.len()).sum::<usize>()
            + image.preparations.iter().map(|preparation| preparation.operations.len()).sum::<usize>();
        let scratch = image.registers.iter().filter(|register| register.scratch).count();
        let (states, rows, conditions) = (image.states.len(), image.rows.len(), image.conditions.len());
        let (lines, registers, longest) = (lines(&file, &text)?, image.registers.len(), longest(&image));
        writeln!(
            page,
            "| `{name}` | {lines} | {states} | {rows} | {operations} | {conditions} | {registers} | {scratch} | {longest} |"
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

/// Operations on the longest way through an event. An internal event raises greater numbers; behind a round of a repeat comes what
/// follows the repeat, as if there were no other round.
fn longest(image: &Image) -> usize {
    let mut cells: BTreeMap<(u16, Event), usize> = BTreeMap::new();
    let mut rows: Vec<_> = image.rows.iter().collect();
    // Internal events are greater than all others.
    rows.sort_by_key(|row| std::cmp::Reverse(row.event));
    for row in rows {
        let preparation = image.preparations.iter().find(|it| (it.state, it.event) == (row.state, row.event));
        let further = row.raise.map(|raised| match image.repeat_of(row.state, raised) {
            Some(repeat) if Event::Internal(raised) <= row.event => image.repeats[repeat].then,
            _ => raised,
        });
        let further = further.and_then(|raised| cells.get(&(row.state, Event::Internal(raised)))).copied().unwrap_or(0);
        let own = preparation.map_or(0, |preparation| preparation.operations.len()) + row.operations.len() + further;
        let cell = cells.entry((row.state, row.event)).or_default();
        *cell = own.max(*cell);
    }
    cells.values().copied().max().unwrap_or(0)
}
