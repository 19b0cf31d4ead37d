//! The simulator beside ns-3: six constant-rate flows overload a dumbbell's bottleneck, in both.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use weftwire_testbed::{Ns3, overload_network, run, skip_unless_installed};

use crate::table::Results;

const SECONDS: u64 = 10;

/// The part of a run's `results.json` that is compared.
#[derive(Deserialize)]
struct Document {
    run: Facts,
}

#[derive(Deserialize)]
struct Facts {
    processor_seconds: f64,
    packet_hops: u64,
}

/// Measures both in turns and prints the table.
pub fn compare(repeats: u32, weft: Option<PathBuf>, json: Option<PathBuf>) -> Result<()> {
    let Some(_turn) = skip_unless_installed(&["c++", "ns3++"]) else { return Ok(()) };
    let weft = match weft {
        Some(weft) => weft,
        None => std::env::current_exe()?.with_file_name("weft"),
    };
    ensure!(weft.exists(), "there is no {}: run `cargo build --release -p weftwire-cli` first", weft.display());
    let folder = std::env::temp_dir().join(format!("weft-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = measure_all(repeats, &weft, &folder);
    std::fs::remove_dir_all(&folder)?;
    let results = measured?;
    println!("{results}");
    if let Some(path) = json {
        std::fs::write(&path, serde_json::to_string_pretty(&results)?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn measure_all(repeats: u32, weft: &Path, folder: &Path) -> Result<Results> {
    let ns3 = Ns3::build(folder)?;
    let mut results = Results::new(["ns-3", "weft"].into_iter());
    for round in 1..=repeats {
        for (rate, metric) in [(10_000_000, "processor, 10 Mbit/s"), (1_000_000_000, "processor, 1 Gbit/s")] {
            eprintln!("round {round} of {repeats}: {metric}");
            results.add(metric, "s", "ns-3", ns3.overload(rate, SECONDS, false)?.processor_seconds);
            let facts = simulate(weft, folder, rate)?;
            results.add(metric, "s", "weft", facts.processor_seconds);
            eprintln!("  weft: {:.2} million packet-hops/s", facts.packet_hops as f64 / facts.processor_seconds / 1e6);
        }
    }
    Ok(results)
}

fn simulate(weft: &Path, folder: &Path, rate: u64) -> Result<Facts> {
    let (file, out) = (folder.join("overload.toml"), folder.join("out"));
    std::fs::write(&file, overload_network(rate, SECONDS))?;
    let mut command = Command::new(weft);
    command.arg("sim").arg(&file).arg("--out").arg(&out);
    run(command, Duration::from_secs(600))?;
    let document: Document = serde_json::from_slice(&std::fs::read(out.join("results.json"))?)?;
    Ok(document.run)
}
