//! `weft compare`: do two runs of a network agree?

use crate::console::{self, say};
use crate::output;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use weftwire_catalog::file::{self, Kind};
use weftwire_core::trace::TraceRecord;
use weftwire_report::agreement::{Relation, Run, compare};
use weftwire_report::comparison;

/// Compare two runs of a network, such as a simulation and a real one: events of its functions, goodput, counts.
///
/// Fails if they do not agree.
#[derive(Args)]
pub struct Arguments {
    /// The folder of one run
    left: PathBuf,
    /// The folder of the other run
    right: PathBuf,
    /// Write the page with both side by side to this file; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "comparison.html")]
    out: PathBuf,
    /// Let runs agree that were late, as on a machine with other work
    #[arg(long)]
    allow_late: bool,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let (left, right) = (read(&arguments.left)?, read(&arguments.right)?);
    let agreement = compare(&left, &right);
    let labels = [&arguments.left, &arguments.right].map(|folder| folder.display().to_string());
    let page = comparison::page(&agreement, [&left, &right], [&labels[0], &labels[1]], arguments.allow_late);
    output::text(Some(&arguments.out), &page)?;
    console::say_text(format_args!("{agreement}"));
    match agreement.relation {
        Relation::Unrelated => bail!("the runs are of networks that have nothing in common"),
        _ if !agreement.agrees(arguments.allow_late) => bail!("the runs do not agree"),
        _ => say!("the runs agree"),
    }
    Ok(())
}

fn read(folder: &Path) -> Result<Run> {
    let path = folder.join("results.json");
    let text = file::bytes(&path, Kind::Data)?;
    let results = serde_json::from_slice(&text)
        .with_context(|| format!("{} is not the result of a run by this version of weft", path.display()))?;
    let mut traces = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".trace.jsonl"));
        if let Some(node) = name {
            traces.push((node.to_owned(), trace(&path)?));
        }
    }
    // The order of a folder's entries is nobody's.
    traces.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(Run { results, traces })
}

fn trace(path: &Path) -> Result<Vec<TraceRecord>> {
    let text = file::text(path, Kind::Data)?;
    let records = text.lines().enumerate().map(|(index, line)| {
        serde_json::from_str(line).with_context(|| format!("{}, line {}", path.display(), index + 1))
    });
    records.collect()
}
