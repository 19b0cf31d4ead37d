//! What the calendar costs beside its peers: time of a pair of operations, its distribution, memory.

mod cases;
mod histogram;
mod peers;

use std::fmt;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::allocations::bytes_in_use;
use cases::{CASES, Operations, STRUCTURES, filled, prepare};
use histogram::Histogram;

/// Pairs of one measurement: enough for the clock, and so few that most measurements fall between two interruptions.
const PAIRS: u64 = 4_096;
/// Numbers of timers of the table of distributions, and single operations that are timed for it.
const DISTRIBUTIONS: [u32; 2] = [10_000, 1_000_000];
const SINGLE: u64 = 2_000_000;

/// Measures all cases with 10^3 to `most` timers, `repeats` times in turns.
pub fn measure(repeats: u32, most: u32, json: Option<PathBuf>, plot: Option<PathBuf>) -> Result<()> {
    let mut results = Results::default();
    for case in &CASES {
        for timers in sizes(most) {
            results.rows.extend(rows(case.name, timers, repeats));
        }
    }
    for timers in DISTRIBUTIONS.into_iter().filter(|timers| *timers <= most) {
        for case in &CASES {
            let Some(mut operations) = prepare(STRUCTURES[0], case.name, timers) else { continue };
            operations(u64::from(timers) * 2);
            results.distributions.push(distribution(case.name, timers, &mut *operations));
        }
        results.distributions.push(distribution("nothing", timers, &mut |_| ()));
    }
    for timers in sizes(most.min(1_000_000)) {
        results.memory.push(Memory {
            timers,
            bytes: STRUCTURES.map(|it| [false, true].map(|dense| bytes(it, timers, dense))).into(),
        });
    }
    println!("{results}");
    if let Some(path) = json {
        std::fs::write(&path, serde_json::to_string_pretty(&results)?).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = plot {
        std::fs::write(&path, crate::calendar_plot::picture(&results)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Runs one case with so many timers so many times and measures nothing.
pub fn once(name: &str, timers: u32, pairs: u64) -> Result<()> {
    let names = || CASES.map(|case| case.name).join(", ");
    let operations = prepare(STRUCTURES[0], name, timers);
    let mut operations = operations.with_context(|| format!("there is no case {name}; there are: {}", names()))?;
    operations(u64::from(timers));
    run_pairs(pairs, &mut *operations);
    Ok(())
}

fn sizes(most: u32) -> impl Iterator<Item = u32> {
    [1_000, 10_000, 100_000, 1_000_000, 10_000_000].into_iter().filter(move |timers| *timers <= most)
}

/// A function of its own, by whose name tools find what they are to count.
#[inline(never)]
fn run_pairs(pairs: u64, operations: &mut dyn FnMut(u64)) {
    operations(pairs);
}

/// One case with all structures that can do it, in turns.
fn rows(case: &'static str, timers: u32, repeats: u32) -> Vec<Row> {
    let mut prepared: Vec<(Row, Operations)> = STRUCTURES
        .into_iter()
        .filter_map(|structure| {
            let mut operations = prepare(structure, case, timers)?;
            // Once around, so that it is as in a long run.
            run_pairs(u64::from(timers).max(PAIRS), &mut *operations);
            Some((Row { case, timers, structure, nanoseconds: Vec::new() }, operations))
        })
        .collect();
    for _ in 0..repeats {
        for (row, operations) in &mut prepared {
            row.nanoseconds.push(timed(&mut **operations).as_nanos() as f64 / PAIRS as f64);
        }
    }
    prepared.into_iter().map(|(row, _)| row).collect()
}

fn timed(operations: &mut dyn FnMut(u64)) -> Duration {
    let start = Instant::now();
    run_pairs(PAIRS, operations);
    start.elapsed()
}

/// Every pair timed by itself. The clock's own cost is in it; `nothing` says what it is, and how often the machine
/// itself is away.
fn distribution(case: &'static str, timers: u32, operations: &mut dyn FnMut(u64)) -> Distribution {
    let mut histogram = Histogram::new();
    let mut before = Instant::now();
    for _ in 0..SINGLE {
        black_box(&mut *operations)(1);
        let after = Instant::now();
        histogram.add((after - before).as_nanos() as u64);
        before = after;
    }
    let quantiles = [0.5, 0.99, 0.999, 0.9999, 1.0].map(|share| histogram.quantile(share));
    Distribution { case, timers, quantiles, above: histogram.above(5_000) }
}

/// Heap bytes a timer.
fn bytes(structure: &str, timers: u32, dense: bool) -> Option<f64> {
    let before = bytes_in_use();
    let _held = filled(structure, timers, dense)?;
    // The list of handles that the case itself keeps is not the structure's.
    let own =
        if matches!(structure, "BinaryHeap" | "radix-heap") { 0 } else { handle_bytes(structure) * i64::from(timers) };
    Some((bytes_in_use() - before - own) as f64 / f64::from(timers))
}

fn handle_bytes(structure: &str) -> i64 {
    match structure {
        "calendar" => size_of::<weftwire_calendar::TimerHandle>() as i64,
        "BTreeMap" => 16,
        "hashed wheel" => 4,
        _ => size_of::<tokio_util::time::delay_queue::Key>() as i64,
    }
}

/// All that was measured.
#[derive(Serialize, Default)]
pub struct Results {
    /// Time of pairs of operations.
    pub rows: Vec<Row>,
    distributions: Vec<Distribution>,
    memory: Vec<Memory>,
}

/// One case on one structure with so many timers.
#[derive(Serialize)]
pub struct Row {
    /// The case.
    pub case: &'static str,
    /// How many timers there are all the time.
    pub timers: u32,
    /// The structure.
    pub structure: &'static str,
    /// Nanoseconds a pair, one number a round.
    nanoseconds: Vec<f64>,
}

impl Row {
    /// The middle round's nanoseconds.
    fn median(&self) -> f64 {
        let mut sorted = self.nanoseconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    /// The best round's nanoseconds: what the machine's other work has disturbed least.
    pub fn best(&self) -> f64 {
        self.nanoseconds.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

#[derive(Serialize)]
struct Distribution {
    case: &'static str,
    timers: u32,
    /// Nanoseconds: p50, p99, p99.9, p99.99, the longest.
    quantiles: [u64; 5],
    /// Pairs that took more than 5 us.
    above: u64,
}

#[derive(Serialize)]
struct Memory {
    timers: u32,
    /// For each structure: bytes a timer, over a second and over 65,536 ns.
    bytes: Vec<[Option<f64>; 2]>,
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "nanoseconds a pair of operations: best, median")?;
        let mut last = ("", 0);
        for row in &self.rows {
            if last != (row.case, row.timers) {
                last = (row.case, row.timers);
                let found = CASES.iter().find(|case| case.name == row.case);
                let target = found.filter(|_| [10_000, 1_000_000].contains(&row.timers));
                let target = target.map(|it| it.target[usize::from(row.timers > 10_000)]);
                let what = found.map_or("", |case| case.what);
                write!(f, "\n{:<13} {:>9}  {what}", row.case, row.timers)?;
                match target {
                    Some(target) => writeln!(f, " (target {target})")?,
                    None => writeln!(f)?,
                }
            }
            writeln!(f, "  {:<14} {:>9.1} {:>9.1}", row.structure, row.best(), row.median())?;
        }
        writeln!(f, "\nsingle pairs, in ns, with the clock's own cost")?;
        writeln!(
            f,
            "{:<13} {:>9} {:>7} {:>7} {:>7} {:>7} {:>9} {:>7}",
            "", "timers", "p50", "p99", "p99.9", "p99.99", "max", "> 5 us"
        )?;
        for Distribution { case, timers, quantiles: [p50, p99, p999, p9999, most], above } in &self.distributions {
            writeln!(f, "{case:<13} {timers:>9} {p50:>7} {p99:>7} {p999:>7} {p9999:>7} {most:>9} {above:>7}")?;
        }
        writeln!(f, "\nheap bytes a timer: over a second / over 65,536 ns")?;
        write!(f, "{:>9}", "timers")?;
        STRUCTURES.iter().try_for_each(|it| write!(f, " {it:>15}"))?;
        for Memory { timers, bytes } in &self.memory {
            write!(f, "\n{timers:>9}")?;
            for [second, dense] in bytes {
                let text = |value: &Option<f64>| value.map_or("-".into(), |it| format!("{it:.1}"));
                write!(f, " {:>15}", format!("{} / {}", text(second), text(dense)))?;
            }
        }
        Ok(())
    }
}
