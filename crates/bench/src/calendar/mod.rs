//! What the calendar costs beside its peers: time of a pair of operations, the longest single ones, memory.

mod cases;
mod dpdk;
mod peers;
mod singles;

use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::allocations::bytes_in_use;
use cases::{CASES, Operations, SPREADS, STRUCTURES, filled, prepare, spread};
use dpdk::Dpdk;
use singles::Singles;

/// Pairs of one measurement: enough for the clock, and so few that most measurements fall between two interruptions.
const PAIRS: u64 = 4_096;
/// Most pairs that are done after the timers are set and before anything is measured.
const AROUND: u64 = 1_000_000;
/// Numbers of timers for which single operations are timed.
const SINGLES: u32 = 1_000_000;
/// The peer that is a program of its own.
const DPDK: &str = "rte_timer";

/// Measures all cases with 10^3 to `most` timers, `repeats` times in each structure's turn.
pub fn measure(repeats: u32, most: u32, json: Option<PathBuf>, plot: Option<PathBuf>) -> Result<()> {
    let mut results = Results::default();
    let dpdk = Dpdk::build();
    for case in &CASES {
        for timers in sizes(most) {
            eprintln!("{} with {timers} timers", case.name);
            results.rows.extend(rows(case.name, timers, repeats, dpdk.as_ref())?);
        }
    }
    for (case, horizon) in ["cancel", "expire"].into_iter().flat_map(|case| SPREADS.map(|it| (case, it))) {
        results.spreads.extend(spreads(case, horizon, repeats)?);
    }
    for timers in sizes(most) {
        eprintln!("memory with {timers} timers");
        // The last of the structures is none.
        let structures = &STRUCTURES[..STRUCTURES.len() - 1];
        let bytes = structures.iter().map(|it| [false, true].map(|dense| bytes(it, timers, dense))).collect();
        results.memory.push(Memory { timers, bytes });
    }
    if let Some(dpdk) = &dpdk {
        results.dpdk_bytes = dpdk.start("arm", 1_000)?.map(|timers| timers.bytes);
    }
    if SINGLES <= most {
        eprintln!("single operations with {SINGLES} timers");
        results.singles = singles::measure(SINGLES);
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

/// Something that does pairs of operations.
enum Subject {
    Here(Operations),
    Program(dpdk::Timers),
}

impl Subject {
    /// Does so many pairs; the nanoseconds they took.
    fn pairs(&mut self, count: u64) -> Result<f64> {
        match self {
            Subject::Here(operations) => {
                let start = Instant::now();
                run_pairs(count, &mut **operations);
                Ok(start.elapsed().as_nanos() as f64)
            }
            Subject::Program(timers) => timers.pairs(count),
        }
    }
}

/// One case with all structures that can do it, in turns. In its turn a structure is alone in memory: others would
/// take the caches from it.
fn rows(case: &'static str, timers: u32, repeats: u32, dpdk: Option<&Dpdk>) -> Result<Vec<Row>> {
    let turns = match timers {
        ..=100_000 => 3,
        100_001..=1_000_000 => 2,
        _ => 1,
    };
    let mut rows: Vec<Row> = Vec::new();
    for turn in 0..turns {
        for structure in STRUCTURES {
            let Some(mut operations) = prepare(structure, case, timers) else { continue };
            // Once around, so that it is as in a long run.
            run_pairs(u64::from(timers).clamp(PAIRS, AROUND), &mut *operations);
            add(&mut rows, case, timers, structure, in_a_turn(&mut Subject::Here(operations), repeats)?);
        }
        // To set a million of its timers takes long.
        let dpdk = dpdk.filter(|_| turn == 0 || timers <= 100_000);
        if let Some(mut started) = dpdk.map(|dpdk| dpdk.start(case, timers)).transpose()?.flatten() {
            started.pairs(PAIRS)?;
            add(&mut rows, case, timers, DPDK, in_a_turn(&mut Subject::Program(started), repeats)?);
        }
    }
    Ok(rows)
}

fn add(rows: &mut Vec<Row>, case: &'static str, timers: u32, structure: &'static str, nanoseconds: Vec<f64>) {
    match rows.iter_mut().find(|row| row.structure == structure) {
        Some(row) => row.nanoseconds.extend(nanoseconds),
        None => rows.push(Row { case, timers, structure, nanoseconds }),
    }
}

/// A thousand timers spread over so much time, with all structures that can do it.
fn spreads(case: &'static str, horizon: u64, repeats: u32) -> Result<Vec<Spread>> {
    let prepared = STRUCTURES.iter().filter_map(|structure| Some((*structure, spread(structure, case, horizon)?)));
    let measured = prepared.map(|(structure, mut operations)| {
        run_pairs(PAIRS, &mut *operations);
        let nanoseconds = in_a_turn(&mut Subject::Here(operations), repeats)?;
        Ok(Spread { case, horizon, structure, best: best(&nanoseconds) })
    });
    measured.collect()
}

/// Nanoseconds a pair, so many times.
fn in_a_turn(subject: &mut Subject, repeats: u32) -> Result<Vec<f64>> {
    (0..repeats).map(|_| Ok(subject.pairs(PAIRS)? / PAIRS as f64)).collect()
}

/// Heap bytes a timer, after each was cancelled or popped and set again twice, on the average.
fn bytes(structure: &str, timers: u32, dense: bool) -> Option<f64> {
    // The peers would take minutes.
    if timers > 1_000_000 && structure != STRUCTURES[0] {
        return None;
    }
    let before = bytes_in_use();
    let mut held = filled(structure, timers, dense)?;
    // What cancels by forgetting never gives memory back here, as no time goes by.
    if structure != "hashed wheel" {
        held(u64::from(timers) * 2);
    }
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
    spreads: Vec<Spread>,
    singles: Vec<Singles>,
    memory: Vec<Memory>,
    dpdk_bytes: Option<u32>,
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
    /// Nanoseconds a pair, one number a measurement.
    nanoseconds: Vec<f64>,
}

impl Row {
    /// The middle measurement's nanoseconds.
    fn median(&self) -> f64 {
        let mut sorted = self.nanoseconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    /// The best measurement's nanoseconds: what the machine's other work has disturbed least.
    pub fn best(&self) -> f64 {
        best(&self.nanoseconds)
    }
}

fn best(nanoseconds: &[f64]) -> f64 {
    nanoseconds.iter().copied().fold(f64::INFINITY, f64::min)
}

/// A thousand timers spread over so much time.
#[derive(Serialize)]
struct Spread {
    case: &'static str,
    /// Nanoseconds.
    horizon: u64,
    structure: &'static str,
    /// Nanoseconds a pair.
    best: f64,
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
        writeln!(f, "\n1,000 timers, spread over so many nanoseconds: nanoseconds a pair, best")?;
        let mut last = ("", 0);
        for Spread { case, horizon, structure, best } in &self.spreads {
            if last != (case, *horizon) {
                last = (case, *horizon);
                write!(f, "\n{case:<8} {horizon:>14} ")?;
            }
            write!(f, "  {structure} {best:.1}")?;
        }
        writeln!(f, "\n\n{}", singles::HEADING)?;
        self.singles.iter().try_for_each(|it| writeln!(f, "{it}"))?;
        writeln!(f, "\nheap bytes a timer: over a second / over 65,536 ns")?;
        write!(f, "{:>9}", "timers")?;
        STRUCTURES[..STRUCTURES.len() - 1].iter().try_for_each(|it| write!(f, " {it:>15}"))?;
        for Memory { timers, bytes } in &self.memory {
            write!(f, "\n{timers:>9}")?;
            for [second, dense] in bytes {
                let text = |value: &Option<f64>| value.map_or("-".into(), |it| format!("{it:.1}"));
                write!(f, " {:>15}", format!("{} / {}", text(second), text(dense)))?;
            }
        }
        if let Some(bytes) = self.dpdk_bytes {
            write!(f, "\n{DPDK}: {bytes}")?;
        }
        Ok(())
    }
}
