//! What a SYN proxy costs: throughput of one download, connections a second, and how much of a flood it answers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use weftwire_testbed::{Lab, Middle, Nginx, Offloads, Payload, fetch, skip_unless_root};

use crate::table::Results;

/// No new round is begun after this, so that the whole stays below three minutes.
const BUDGET: Duration = Duration::from_secs(140);
/// No single measurement takes longer, unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

const DOWNLOAD_BYTES: u64 = 400_000_000;
const FLOOD_PACKETS: u64 = 500_000;

/// Measures all systems in turns, `repeats` times, and prints the table.
pub fn compare(repeats: u32, weft: Option<PathBuf>, image: Option<PathBuf>, json: Option<PathBuf>) -> Result<()> {
    let Some(_turn) = skip_unless_root(&["nginx", "nft", "iptables", "ethtool", "wrk"]) else { return Ok(()) };
    let folder = std::env::temp_dir().join(format!("weft-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let result = measure_all(repeats, &systems(weft, image)?, &folder);
    std::fs::remove_dir_all(&folder)?;
    let results = result?;
    println!("{results}");
    if let Some(path) = json {
        std::fs::write(&path, serde_json::to_string_pretty(&results)?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// The systems to compare, the one that the others are measured against first.
fn systems(weft: Option<PathBuf>, image: Option<PathBuf>) -> Result<Vec<Middle>> {
    let beside = std::env::current_exe()?.with_file_name("weft");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/syn-proxy.xl");
    let (binary, image) = (weft.unwrap_or(beside), image.unwrap_or(example));
    for (path, remedy) in [(&binary, "run `cargo build --release -p weftwire-cli` first"), (&image, "give --image")] {
        if !path.exists() {
            bail!("there is no {}: {remedy}", path.display());
        }
    }
    let weft = |ports| Middle::Weft { binary: binary.clone(), image: image.clone(), ports };
    Ok(vec![Middle::PlainRouting, Middle::KernelSynproxy, weft("socket"), weft("ring"), weft("xdp")])
}

fn measure_all(repeats: u32, systems: &[Middle], folder: &Path) -> Result<Results> {
    let big = Payload::create(&folder.join("big"), DOWNLOAD_BYTES, 1)?;
    let small = Payload::create(&folder.join("small"), 100, 2)?;
    let begun = Instant::now();
    let mut results = Results::new(systems.iter().map(Middle::name));
    for round in 1..=repeats {
        for system in systems {
            eprintln!("round {round} of {repeats}: {}", system.name());
            measure(system, &[&big, &small], &mut results).with_context(|| system.name())?;
        }
        if begun.elapsed() > BUDGET && round < repeats {
            eprintln!("stopping after {round} rounds, to stay within the time for this");
            break;
        }
    }
    Ok(results)
}

fn measure(system: &Middle, payloads: &[&Payload], results: &mut Results) -> Result<()> {
    for (offloads, metric) in [(Offloads::On, "download, offloads on"), (Offloads::Off, "download, offloads off")] {
        let mut lab = Lab::new(system, offloads)?;
        let _nginx = Nginx::start(&lab.server, payloads)?;
        lab.wait_until_reachable()?;
        results.add(metric, "Gbit/s", system.name(), download_rate(&lab)?);
        if offloads == Offloads::On {
            results.add("new connections", "1/s", system.name(), connection_rate(&lab)?);
            results.add("SYN flood answered", "1/s", system.name(), flood_rate(&lab)?);
        }
    }
    Ok(())
}

/// Gigabits of body a second in one download, without hashing it.
fn download_rate(lab: &Lab) -> Result<f64> {
    let start = Instant::now();
    let bytes = fetch(&lab.client, lab.web(), "/big", LIMIT, |_| ())?;
    Ok(bytes as f64 * 8.0 / 1e9 / start.elapsed().as_secs_f64())
}

/// HTTP requests a second, each on a connection of its own, 16 at a time.
fn connection_rate(lab: &Lab) -> Result<f64> {
    let url = format!("http://{}/small", lab.web());
    let words = ["wrk", "-t1", "-c16", "-d2s", "-H", "Connection: close", &url];
    let output = lab.client.exec_within(LIMIT, &words)?;
    ensure!(!output.contains("Non-2xx"), "not all requests succeeded:\n{output}");
    let rate = output.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:")?.trim().parse().ok());
    rate.with_context(|| format!("wrk did not say how fast it was:\n{output}"))
}

/// SYN-ACKs a second that come back while SYNs go out at full speed.
fn flood_rate(lab: &Lab) -> Result<f64> {
    let flood = lab.flood(FLOOD_PACKETS);
    let before = lab.client.counters("eth0")?.received_packets;
    let report = lab.client.enter(|| flood.run())??;
    let answers = lab.client.counters("eth0")?.received_packets - before;
    Ok(answers as f64 / report.elapsed.as_secs_f64())
}
