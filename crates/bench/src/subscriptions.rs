//! Packet subscriptions: what compiling costs in time, entries and memory, for the rule sets of the paper's evaluation,
//! and what one rule more or less costs; and what two applications gain.

mod engine;
mod latency;
mod telemetry;

use crate::table::grouped;
use anyhow::{Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use weftwire_subscribe::budget::Budget;
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::formats::MatchKind;
use weftwire_subscribe::{Compiler, MessageFormats, Rule, RuleId, read_rules};
use weftwire_switch::{Memory, Pipeline};
use weftwire_text::{Severity, SourceMap};
use weftwire_workload::{Numbers, Siena};

const SEED: u64 = 1;

/// Measures everything, or one part. Tables and pictures of applications go into `out`; `weft` is the program to measure.
pub fn measure(only: Option<&str>, weft: Option<PathBuf>, out: Option<&Path>) -> Result<()> {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    if wanted("table1") {
        sets()?;
    }
    if wanted("update") {
        updates()?;
    }
    if wanted("siena") {
        siena()?;
    }
    if wanted("engine") {
        engine::measure()?;
    }
    if wanted("telemetry") {
        telemetry::measure(out)?;
    }
    if wanted("latency") {
        latency::measure(weft, out)?;
    }
    Ok(())
}

fn formats(text: &str) -> Result<MessageFormats> {
    match MessageFormats::read("formats", text, &mut SourceMap::default(), &mut Vec::new()) {
        Some(formats) => Ok(formats),
        None => bail!("the workload's formats are wrong"),
    }
}

fn rules(text: &str, formats: &MessageFormats) -> Result<Vec<Rule>> {
    let mut diagnostics = Vec::new();
    let rules = read_rules("rules", text, formats, &mut SourceMap::default(), &mut diagnostics);
    match diagnostics.iter().find(|found| found.severity == Severity::Error) {
        None => Ok(rules),
        Some(error) => bail!("the workload's rules are wrong: {}", error.message),
    }
}

/// Time that this process has had a processor: other load on the machine does not count.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// A point in processor time.
struct Start(Duration);

impl Start {
    fn now() -> Start {
        Start(processor_time())
    }

    fn elapsed(&self) -> Duration {
        processor_time().saturating_sub(self.0)
    }
}

/// Peak of resident memory since the last reset, in MiB.
fn peak_memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

fn reset_peak_memory() {
    // Without the right to do so the numbers are upper bounds.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Table I, and smaller sets of the same kind.
fn sets() -> Result<()> {
    let mut sets: Vec<(String, &str, String)> = Vec::new();
    for count in [100, 1_000, 10_000, 100_000] {
        sets.push((
            format!("ITCH, {}", grouped(count)),
            weftwire_workload::ITCH_FORMATS,
            weftwire_workload::itch(count, SEED),
        ));
    }
    sets.push((
        "INT, 100 switches x 1,000 latencies, one collector".into(),
        weftwire_workload::TELEMETRY_FORMATS,
        weftwire_workload::telemetry(100, 1000, 1),
    ));
    sets.push((
        "the same, 200 collectors".into(),
        weftwire_workload::TELEMETRY_FORMATS,
        weftwire_workload::telemetry(100, 1000, 200),
    ));
    sets.push((
        "hICN, 1,000,000 identifiers".into(),
        weftwire_workload::IDENTIFIER_FORMATS,
        weftwire_workload::identifiers(1_000_000, SEED),
    ));
    let mut table =
        Lines::new(&["rules", "read ms", "compile ms", "exact", "range", "states", "multicast groups", "peak MiB"]);
    for (name, format_text, text) in sets {
        let formats = formats(format_text)?;
        reset_peak_memory();
        let before = peak_memory();
        let (mut best, mut last) = ((f64::INFINITY, f64::INFINITY), None);
        for _ in 0..5 {
            // Two at once would count twice.
            drop(last.take());
            let start = Start::now();
            let rules = rules(&text, &formats)?;
            let read = start.elapsed().as_secs_f64() * 1e3;
            let start = Start::now();
            let Ok(compiler) = Compiler::new(formats.clone(), &unlimited(), &rules) else {
                bail!("the workload has too many clauses")
            };
            let compile = start.elapsed().as_secs_f64() * 1e3;
            if read + compile < best.0 + best.1 {
                best = (read, compile);
            }
            last = Some(compiler);
        }
        let peak = peak_memory() - before;
        let (Some(compiler), (read, compile)) = (last, best) else { continue };
        let entries = |kind| -> usize {
            compiler
                .tables()
                .stages()
                .filter(|(_, stage)| stage.kind() == kind)
                .map(|(_, stage)| stage.entry_count())
                .sum()
        };
        let groups = compiler.tables().leaves().values().filter(|set| compiler.actions(**set).ports.len() > 1).count();
        table.row(&[
            name,
            format!("{read:.1}"),
            format!("{compile:.1}"),
            grouped(entries(MatchKind::Exact)),
            grouped(entries(MatchKind::Range)),
            grouped(compiler.tables().state_bound() as usize),
            grouped(groups),
            format!("{peak:.0}"),
        ]);
    }
    table.print();
    Ok(())
}

/// One rule more and one less: the compiler, and the engine that follows it.
fn updates() -> Result<()> {
    let heads = [
        "rules",
        "updates",
        "steps, mean",
        "compiler, median us",
        "99 % us",
        "worst us",
        "engine, median us",
        "99 % us",
    ];
    let mut table = Lines::new(&heads);
    let sets = [
        ("ITCH, 100,000", weftwire_workload::ITCH_FORMATS, weftwire_workload::itch(100_000, SEED)),
        ("hICN, 100,000", weftwire_workload::IDENTIFIER_FORMATS, weftwire_workload::identifiers(100_000, SEED)),
        ("hICN, 1,000,000", weftwire_workload::IDENTIFIER_FORMATS, weftwire_workload::identifiers(1_000_000, SEED)),
    ];
    for (name, format_text, text) in sets {
        let formats = formats(format_text)?;
        let all = rules(&text, &formats)?;
        let Ok(mut compiler) = Compiler::new(formats.clone(), &unlimited(), &all) else {
            bail!("the workload has too many clauses")
        };
        let mut numbers = Numbers::new(SEED + 1);
        let fresh = match name {
            "ITCH, 100,000" => {
                (0..1000).map(|_| weftwire_workload::itch_rule(&mut numbers)).collect::<Vec<_>>().join("\n")
            }
            _ => weftwire_workload::identifiers(1000, SEED + 1),
        };
        let fresh = rules(&fresh, &formats)?;
        let (mut pipeline, mut memory) = (Pipeline::new(&compiler), Memory::default());
        let (mut compiling, mut following, mut steps) = (Vec::new(), Vec::new(), 0);
        for (index, rule) in fresh.iter().enumerate() {
            let victim = RuleId((index as u64 * 97 % 100_000) as u32);
            for add in [true, false] {
                let start = Instant::now();
                let delta = if add {
                    compiler.add(rule).ok().map(|(_, delta)| delta)
                } else {
                    compiler.remove(victim).ok().flatten()
                };
                compiling.push(start.elapsed().as_secs_f64() * 1e6);
                let Some(delta) = delta else { bail!("the workload has too many clauses") };
                steps += delta.changes.len();
                let start = Instant::now();
                pipeline.apply(&compiler, &delta, &mut memory);
                following.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        compiling.sort_by(f64::total_cmp);
        following.sort_by(f64::total_cmp);
        let at = |times: &[f64], part: f64| times[((times.len() - 1) as f64 * part) as usize];
        table.row(&[
            name.to_owned(),
            compiling.len().to_string(),
            format!("{:.1}", steps as f64 / compiling.len() as f64),
            format!("{:.0}", at(&compiling, 0.5)),
            format!("{:.0}", at(&compiling, 0.99)),
            format!("{:.0}", at(&compiling, 1.0)),
            format!("{:.1}", at(&following, 0.5)),
            format!("{:.1}", at(&following, 0.99)),
        ]);
    }
    table.print();
    Ok(())
}

/// Whatever it costs: that is what is measured.
fn unlimited() -> Options {
    Options { budget: Budget::UNLIMITED, ..Options::default() }
}

/// The Siena generator's rules: Figure 12's two sweeps.
fn siena() -> Result<()> {
    let mut table = Lines::new(&["attributes", "tests", "rules", "compile ms", "entries", "states"]);
    let base = Siena::default();
    let sweeps = [8, 16, 32, 64, 128].map(|filters| Siena { filters, ..base }).into_iter();
    let selective = (2..=8).map(|conjunctions| Siena { conjunctions, ..base });
    let integers = [(3, 3, 64), (3, 3, 256), (3, 2, 128), (3, 2, 256), (5, 3, 64), (5, 3, 128), (5, 2, 64)].map(
        |(attributes, conjunctions, filters)| Siena { attributes, conjunctions, filters, string_percentage: 0, ..base },
    );
    for parameters in sweeps.chain(selective).chain(integers) {
        let (format_text, text) = weftwire_workload::siena(&parameters, SEED);
        let formats = formats(&format_text)?;
        let rules = rules(&text, &formats)?;
        let start = Start::now();
        let Ok(compiler) = Compiler::new(formats, &unlimited(), &rules) else {
            bail!("the workload has too many clauses")
        };
        let kind = if parameters.string_percentage == 0 { " (integers)" } else { "" };
        table.row(&[
            format!("{}{kind}", parameters.attributes),
            parameters.conjunctions.to_string(),
            parameters.filters.to_string(),
            format!("{:.1}", start.elapsed().as_secs_f64() * 1e3),
            grouped(compiler.tables().entry_count()),
            grouped(compiler.tables().state_bound() as usize),
        ]);
    }
    table.print();
    Ok(())
}

/// Rows of words, printed as the table of a page.
struct Lines(Vec<Vec<String>>);

impl Lines {
    fn new(heads: &[&str]) -> Lines {
        Lines(vec![heads.iter().map(|head| (*head).to_owned()).collect()])
    }

    fn row(&mut self, words: &[String]) {
        self.0.push(words.to_vec());
    }

    fn print(&self) {
        for (index, row) in self.0.iter().enumerate() {
            println!("| {} |", row.join(" | "));
            if index == 0 {
                println!("|{}", "---|".repeat(row.len()));
            }
        }
        println!();
    }
}
