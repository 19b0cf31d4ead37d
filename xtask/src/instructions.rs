//! Instructions that the engine takes per packet, counted by Valgrind and compared with those that are written down.
//! Unlike times, they are the same on a busy machine.

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Where the counts are written down.
const FILE: &str = "crates/bench/instructions.json";
/// Cases of `weftwire-bench engine`, and how many packets are counted. Their traffic and their seeds are fixed.
const CASES: [(&str, u64); 6] =
    [("packet-ack", 20_000), ("ack-1k", 5_000), ("data-1k", 5_000), ("sack-1k", 5_000), ("arq", 5_000), ("tcp", 2_000)];
/// More than this times the written count is an error.
const LIMIT: f64 = 1.03;
/// Set where nothing may be skipped, as in continuous integration.
const REQUIRED: &str = "WEFT_REQUIRE_SYSTEM_TESTS";
/// The processor that is compiled for, whatever this machine has.
const TARGET_CPU: &str = "x86-64";
/// The C library chooses its copying loops by the processor's features: without these it chooses the same everywhere.
const C_LIBRARY: (&str, &str) = ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2,-AVX512F,-ERMS,-FSRM");

/// What the file holds.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Counts {
    /// What was counted with: with other versions counts differ.
    versions: BTreeMap<String, String>,
    /// For each case, instructions per packet.
    instructions: BTreeMap<String, f64>,
}

/// Counts, and compares with what is written down. Fewer are written down instead.
pub fn check(root: &Path) -> Result<()> {
    let required = std::env::var(REQUIRED).is_ok_and(|value| value == "1");
    let versions = match versions() {
        Ok(versions) => versions,
        Err(error) if required => return Err(error),
        Err(error) => {
            println!("SKIPPED: counting instructions: {error:#}");
            return Ok(());
        }
    };
    let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("can't read {FILE}"))?;
    let known: Counts = serde_json::from_str(&text).with_context(|| format!("{FILE} is no list of counts"))?;
    if known.versions != versions {
        let difference = format!("counts are written down for {:?}; here is {versions:?}", known.versions);
        if !required {
            println!("SKIPPED: counting instructions: {difference}");
            return Ok(());
        }
        println!("{difference}");
    }
    let found = count(root)?;
    let worse = worse(&known.instructions, &found);
    ensure!(
        worse.is_empty(),
        "more instructions per packet than {FILE} says; if that is meant, `make instructions-write`:\n  {}",
        worse.join("\n  ")
    );
    let best = best(&known.instructions, &found);
    if best != known.instructions {
        write(root, &Counts { versions, instructions: best })?;
        println!("fewer instructions per packet than before: {FILE} was rewritten, commit it");
    }
    println!("{} counts of instructions are within {:.0} %", found.len(), (LIMIT - 1.0) * 100.0);
    Ok(())
}

/// Counts, and writes down the result.
pub fn rewrite(root: &Path) -> Result<()> {
    let counts = Counts { versions: versions()?, instructions: count(root)? };
    for (case, count) in &counts.instructions {
        println!("{case}: {count:.1} instructions per packet");
    }
    write(root, &counts)
}

fn write(root: &Path, counts: &Counts) -> Result<()> {
    let text = serde_json::to_string_pretty(counts)? + "\n";
    std::fs::write(root.join(FILE), text).with_context(|| format!("can't write {FILE}"))
}

/// The cases that take more than they may.
fn worse(known: &BTreeMap<String, f64>, found: &BTreeMap<String, f64>) -> Vec<String> {
    let worse = found.iter().filter_map(|(case, count)| {
        let before = known.get(case)?;
        let ratio = count / before;
        (ratio > LIMIT).then(|| format!("{case}: {count:.1}, before {before:.1} (+{:.1} %)", (ratio - 1.0) * 100.0))
    });
    worse.collect()
}

/// For each case the fewest instructions that were ever counted, so that small increases do not add up.
fn best(known: &BTreeMap<String, f64>, found: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let least = |(case, count): (&String, &f64)| {
        let before = known.get(case).unwrap_or(count);
        (case.clone(), count.min(*before))
    };
    found.iter().map(least).collect()
}

fn versions() -> Result<BTreeMap<String, String>> {
    ensure!(cfg!(target_arch = "x86_64"), "the counts are those of x86-64");
    let version = |program: &str| -> Result<(String, String)> {
        let output =
            Command::new(program).arg("--version").output().with_context(|| format!("{program} can't be run"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok((program.to_owned(), text.lines().next().unwrap_or_default().to_owned()))
    };
    let mut versions = ["valgrind", "rustc"].into_iter().map(version).collect::<Result<BTreeMap<_, _>>>()?;
    versions.insert("target-cpu".to_owned(), TARGET_CPU.to_owned());
    Ok(versions)
}

/// Builds the engine's cases, in the profile of `make demo`, and counts them all.
fn count(root: &Path) -> Result<BTreeMap<String, f64>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--profile", "demo", "--package", "weftwire-bench"])
        .args(["--no-default-features", "--bin", "engine-once"])
        // Flags for this machine's own processor would change the counts; without any, rustc compiles for x86-64.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .current_dir(root)
        .status()
        .context("can't run cargo")?;
    ensure!(built.success(), "engine-once does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
    let program = target.join("demo/engine-once");
    let one = |(case, packets): (&str, u64)| {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*handle_packets*"])
            .arg(&program)
            .args([case, &packets.to_string()])
            .env(C_LIBRARY.0, C_LIBRARY.1)
            .output()
            .context("can't run valgrind")?;
        let messages = String::from_utf8_lossy(&output.stderr);
        let Some(collected) = collected(&messages).filter(|count| output.status.success() && *count > 0) else {
            bail!("valgrind counted nothing for {case}:\n{messages}");
        };
        Ok((case.to_owned(), (collected as f64 / packets as f64 * 10.0).round() / 10.0))
    };
    CASES.into_iter().map(one).collect()
}

/// The number after `Collected :`.
fn collected(messages: &str) -> Option<u64> {
    let (_, number) = messages.lines().find_map(|line| line.split_once("Collected :"))?;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(count: f64) -> BTreeMap<String, f64> {
        BTreeMap::from([("ack".to_owned(), count)])
    }

    #[test]
    fn more_than_three_percent_is_an_error() {
        assert!(worse(&counts(100.0), &counts(103.0)).is_empty());
        assert!(worse(&counts(100.0), &counts(50.0)).is_empty());
        assert_eq!(worse(&counts(100.0), &counts(104.0)), ["ack: 104.0, before 100.0 (+4.0 %)"]);
    }

    #[test]
    fn the_fewest_instructions_are_kept() {
        assert_eq!(best(&counts(100.0), &counts(90.0)), counts(90.0));
        assert_eq!(best(&counts(100.0), &counts(102.0)), counts(100.0));
        assert_eq!(best(&BTreeMap::new(), &counts(102.0)), counts(102.0));
    }

    #[test]
    fn the_count_is_found_in_the_output_of_valgrind() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 1234567\n"), Some(1_234_567));
        assert_eq!(collected("==7== Collected : \n"), None);
        assert_eq!(collected("nothing"), None);
    }
}
