//! What the reference engine costs on frames in memory: time, allocations, memory. Beside it, what any packet
//! processor pays at least: copying the frame, and having another library (etherparse) find its headers.

mod cases;
mod tcp;
mod traffic;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::allocations::{allocations, bytes_in_use};
use cases::{CASES, Case, TABLE};

/// Each measurement takes at least this long.
const SHORTEST: Duration = Duration::from_millis(2);

/// Measures all cases in turns, `repeats` times, and prints the table.
pub fn measure(repeats: u32, json: Option<PathBuf>) -> Result<()> {
    let mut results = Results { rows: CASES.iter().map(Row::new).collect(), memory: memory() };
    let mut handlers: Vec<Box<dyn FnMut()>> = CASES.iter().map(|case| (case.prepare)()).collect();
    for (row, handler) in results.rows.iter_mut().zip(&mut handlers) {
        row.prepare(handler);
    }
    for _ in 0..repeats {
        for (row, handler) in results.rows.iter_mut().zip(&mut handlers) {
            let time = timed(row.packets, handler);
            row.nanoseconds.push(time.as_nanos() as f64 / row.packets as f64);
        }
    }
    println!("{results}");
    if let Some(path) = json {
        std::fs::write(&path, serde_json::to_string_pretty(&results)?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Runs one case `packets` times and measures nothing.
pub fn once(name: &str, packets: u64) -> Result<()> {
    let names = || CASES.map(|case| case.name).join(", ");
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.with_context(|| format!("there is no case {name}; there are: {}", names()))?;
    handle_packets(packets, &mut (case.prepare)());
    Ok(())
}

/// A function of its own, by whose name tools find what they are to count.
#[inline(never)]
fn handle_packets(packets: u64, handler: &mut Box<dyn FnMut()>) {
    for _ in 0..packets {
        handler();
    }
}

fn timed(packets: u64, handler: &mut Box<dyn FnMut()>) -> Duration {
    let start = Instant::now();
    handle_packets(packets, handler);
    start.elapsed()
}

/// Heap bytes of a flow: half-open, established.
fn memory() -> [f64; 2] {
    fn bytes<T>(make: impl FnOnce() -> T) -> f64 {
        let before = bytes_in_use();
        let _made = make();
        (bytes_in_use() - before) as f64 / f64::from(TABLE)
    }
    [bytes(|| cases::half_open(TABLE)), bytes(|| cases::established(TABLE).0)]
}

#[derive(Serialize)]
struct Results {
    rows: Vec<Row>,
    /// Heap bytes of a half-open and of an established flow.
    memory: [f64; 2],
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    what: &'static str,
    /// Packets of one measurement.
    packets: u64,
    allocations: f64,
    /// Nanoseconds a packet, one number a round.
    nanoseconds: Vec<f64>,
}

impl Row {
    fn new(case: &Case) -> Row {
        Row { name: case.name, what: case.what, packets: 64, allocations: 0.0, nanoseconds: Vec::new() }
    }

    /// Finds how many packets make a measurement, and counts allocations once all is warm.
    fn prepare(&mut self, handler: &mut Box<dyn FnMut()>) {
        while timed(self.packets, handler) < SHORTEST {
            self.packets *= 2;
        }
        let before = allocations();
        handle_packets(self.packets, handler);
        self.allocations = (allocations() - before) as f64 / self.packets as f64;
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<16} {:>9} {:>9} {:>11} {:>7}", "", "best ns", "median ns", "packets/s", "allocs")?;
        for row in &self.rows {
            let mut sorted = row.nanoseconds.clone();
            sorted.sort_by(f64::total_cmp);
            let (best, median) = (sorted[0], sorted[sorted.len() / 2]);
            write!(f, "\n{:<16} {best:>9.1} {median:>9.1}", row.name)?;
            write!(f, " {:>11.0} {:>7.2}  {}", 1e9 / best, row.allocations, row.what)?;
        }
        let [half_open, established] = self.memory;
        write!(f, "\n\nheap bytes a flow: {half_open:.0} half-open, {established:.0} established")
    }
}
