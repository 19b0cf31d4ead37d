//! What a run of a network leaves behind: a folder with its results as tables, pictures and one JSON document. The same for a
//! simulation and for a real run.

use crate::console::{say, tell};
use crate::output;
use anyhow::{Context, Result};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use weftwire_catalog::{Change, Functions};
use weftwire_core::{Time, nanoseconds};
use weftwire_network::Network;
use weftwire_network::results::Results;
use weftwire_report as report;
use weftwire_report::table::{self, RunKey, Table};

type TableOf = fn(&Results) -> Table;

/// The tables of one run that stay small, so that many runs' fit in one.
const TABLES: [TableOf; 5] = [table::links, table::flows, table::slowdown, table::functions, table::node_drops];

/// Makes a folder with all above it, if it is not there.
pub fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))
}

/// Writes a text file, whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    output::bytes(Some(path), text.as_bytes())
}

/// Writes a value as JSON.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    output::bytes(Some(path), &serde_json::to_vec(value)?)
}

/// Writes everything of one run except captures and traces: `text` is the network's file.
pub fn write_run(folder: &Path, text: &str, network: &Network, results: &Results) -> Result<()> {
    write_text(&folder.join("network.toml"), text)?;
    write_json(&folder.join("results.json"), results)?;
    for of_run in TABLES.into_iter().chain([table::samples as TableOf]) {
        write_table(folder, &of_run(results))?;
    }
    if !network.probes.is_empty() {
        write_table(folder, &table::probes(results))?;
    }
    write_text(&folder.join("report.html"), &report::network::page(network, results))
}

/// Writes the tables and the page of many runs.
pub fn write_many(folder: &Path, name: &str, runs: &[(RunKey, Results)]) -> Result<()> {
    let metrics: Vec<_> = runs.iter().map(|(key, results)| (key.clone(), results.metrics())).collect();
    write_table(folder, &table::runs(&metrics))?;
    write_table(folder, &table::summary(&metrics))?;
    for of_run in TABLES {
        let mut all = Table::new(of_run(&Results::default()).name());
        for (key, results) in runs {
            all.append_run(key, of_run(results));
        }
        write_table(folder, &all)?;
    }
    write_text(&folder.join("report.html"), &report::sweep::page(name, &metrics))
}

fn write_table(folder: &Path, table: &Table) -> Result<()> {
    write_text(&folder.join(format!("{}.csv", table.name())), &table.to_csv())?;
    output::bytes(Some(&folder.join(format!("{}.parquet", table.name()))), &table.to_parquet()?)
}

/// What the results of a run depend on beside its seed and the version, as one number: the file, the changes to it and
/// the functions' images.
pub fn digest(text: &str, changes: &[Change], network: &Network, functions: &Functions) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(text.as_bytes());
    for (path, value) in changes {
        part(path.as_bytes());
        part(value.to_string().as_bytes());
    }
    part(&nanoseconds(network.duration).to_le_bytes());
    for function in functions.values() {
        part(function.digest().as_bytes());
    }
    in_letters(hash)
}

/// Files by name and text as one number.
pub fn digest_of_files(files: &[(&str, &str)]) -> String {
    let mut hash = Sha256::new();
    for part in files.iter().flat_map(|(name, text)| [name, text]) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    in_letters(hash)
}

fn in_letters(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |mut digest, byte| {
        let _ = write!(digest, "{byte:02x}");
        digest
    })
}

/// Says on standard output what came of a run.
pub fn describe(results: &Results, folder: &Path) {
    let run = &results.run;
    let complete = results.flows.iter().filter(|flow| flow.is_complete()).count();
    for warning in &run.warnings {
        tell!("warning: {warning}");
    }
    say!("{}: {} s on the {}", run.network, Time::from_nanoseconds(run.lasted), run.platform);
    say!("flows           {:>14}  of them complete {complete}", results.flows.len());
    let rate = match run.processor_seconds > 0.0 {
        true => format!("  {:.2} million/s of processor time", run.packet_hops as f64 / run.processor_seconds / 1e6),
        false => String::new(),
    };
    say!("packet-hops     {:>14}{rate}", run.packet_hops);
    say!("report          {}", folder.join("report.html").display());
}
