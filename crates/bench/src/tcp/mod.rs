//! The TCP of `examples/transports/tcp` beside the kernel's: what it gets from lossy paths, what it leaves to others, what simulated hosts
//! do, and what it costs.

mod local;
mod networks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use weftwire_testbed::{run, skip_unless_root};

use crate::table::Results;

/// The repository's example machine.
const IMAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/transports/tcp/tcp.xl");
/// No single run takes longer, unless it hangs.
const LIMIT: Duration = Duration::from_secs(180);

const OURS: &str = "weft";
const CUBIC: &str = "kernel cubic";
const RENO: &str = "kernel reno";
const SIMULATOR: &str = "simulator";
const NS3: &str = "ns-3";

/// A part of the comparison: adds what one round measures.
type Part = (&'static str, fn(&Bench, u32, &mut Results) -> Result<()>, &'static [&'static str]);

const PARTS: [Part; 6] = [
    ("goodput", networks::goodput, &[CUBIC, RENO, OURS]),
    ("fairness", networks::fairness, &[CUBIC, OURS]),
    ("hosts", networks::hosts, &[local::KERNEL, SIMULATOR, NS3]),
    ("bulk", local::bulk, &[local::KERNEL, OURS]),
    ("requests", local::requests, &[local::KERNEL, OURS]),
    ("connections", local::connections, &[OURS]),
];

/// Where things are.
struct Bench {
    weft: PathBuf,
    folder: PathBuf,
    /// The machine, compiled: so a process begins sooner.
    image: PathBuf,
}

impl Bench {
    /// Runs `weft` and gives what it prints.
    fn weft(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.weft);
        command.args(words);
        run(command, LIMIT)
    }
}

/// Measures all systems in turns, `repeats` times, and prints a table for each part.
pub fn compare(only: Option<&str>, repeats: u32, weft: Option<PathBuf>, json: Option<PathBuf>) -> Result<()> {
    let Some(_turn) = skip_unless_root(&["ethtool"]) else { return Ok(()) };
    let parts: Vec<&Part> = PARTS.iter().filter(|(name, ..)| only.is_none_or(|only| only == *name)).collect();
    if parts.is_empty() {
        bail!("there is no part {}; there are {}", only.unwrap_or_default(), PARTS.map(|(name, ..)| name).join(", "));
    }
    let beside = std::env::current_exe()?.with_file_name("weft");
    let weft = weft.unwrap_or(beside);
    if !weft.exists() {
        bail!("there is no {}: run `cargo build --release -p weftwire-cli` first", weft.display());
    }
    let folder = std::env::temp_dir().join(format!("weft-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let bench = Bench { weft, image: folder.join("tcp.json"), folder };
    let compiled = bench.weft(&["compile", IMAGE, "--output", text(&bench.image)?]);
    let measured = compiled.and_then(|_| measure(&bench, &parts, repeats));
    std::fs::remove_dir_all(&bench.folder)?;
    let measured = measured?;
    if let Some(path) = json {
        std::fs::write(&path, serde_json::to_string_pretty(&measured)?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn measure(bench: &Bench, parts: &[&Part], repeats: u32) -> Result<BTreeMap<&'static str, Results>> {
    let mut all = BTreeMap::new();
    for (name, part, systems) in parts {
        let mut results = Results::new(systems.iter().copied());
        if *name == "hosts" {
            results.show_means();
        }
        for round in 1..=repeats {
            eprintln!("{name}: round {round} of {repeats}, load {}", load());
            part(bench, round, &mut results).with_context(|| format!("{name}, round {round}"))?;
        }
        println!("{name}, load {} at the end\n{results}", load());
        all.insert(*name, results);
    }
    Ok(all)
}

/// How many processes wanted a processor in the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}
