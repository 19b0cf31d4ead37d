//! Many simulations: each point of a sweep with each seed, in parallel, resumable.
//!
//! Every run has a number, the same wherever it is run. Its folder `runs/NNNN` takes its name when the run is complete,
//! and holds `run.json`, which says of what it is the result. So a run is done or not, whoever made it and whatever happened.

use super::{Arguments, one};
use crate::commands::subs::Compiling;
use crate::console::{say, tell};
use crate::folder::refuse_whole;
use crate::memory;
use crate::outputs;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use weftwire_catalog::file::{self, Kind};
use weftwire_catalog::{Change, Functions, NetworkFile, Sweep};
use weftwire_linux::signals::StopSignal;
use weftwire_network::Network;
use weftwire_network::results::Results;
use weftwire_report::table::RunKey;
use weftwire_sim::network::Progress;
use weftwire_sim::network::memory::Memory;

/// Most runs of one command: a guard against a sweep that nobody meant.
const MOST_RUNS: u64 = 1_000_000;

/// A point of the sweep: a value for each of its paths.
struct Point {
    changes: Vec<Change>,
    network: Network,
    functions: Functions,
}

/// As `run.json`, what a folder is the result of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct RunOrigin {
    key: RunKey,
    /// Version of this program.
    version: String,
    /// Of the network's file, the changes to it and the functions' images.
    digest: String,
}

struct Run<'a> {
    origin: RunOrigin,
    point: &'a Point,
}

impl Run<'_> {
    fn number(&self) -> u64 {
        self.origin.key.run
    }
}

/// Makes all runs, or this machine's share of them, and the tables of all when all are there.
pub fn run(
    file: &NetworkFile<'_>,
    sweep: &Sweep,
    repetitions: u32,
    arguments: &Arguments,
    stop: &StopSignal,
) -> Result<()> {
    let folder = arguments.folder();
    let count = sweep.iter().try_fold(u64::from(repetitions), |all, (_, values)| all.checked_mul(values.len() as u64));
    let count = count.filter(|count| *count <= MOST_RUNS);
    let count = count.with_context(|| format!("the sweep has more than {MOST_RUNS} runs; sweep fewer values"))?;
    let points = points(file, sweep)?;
    let runs: Vec<Run<'_>> = runs(file, &points, repetitions);
    debug_assert_eq!(runs.len() as u64, count);

    refuse_whole(folder)?;
    outputs::make_folder(&folder.join("runs"))?;
    refuse_more(folder, count)?;
    outputs::write_text(&folder.join("network.toml"), file.text())?;
    let mine = runs.iter().filter(|run| arguments.shard.is_none_or(|shard| shard.has(run.number())));
    let (mut todo, mut done) = (Vec::new(), 0_usize);
    for run in mine {
        match is_done(folder, run)? {
            true => done += 1,
            false => todo.push(run),
        }
    }
    if done > 0 {
        tell!("{done} runs are there already");
    }
    execute(file, &todo, arguments, stop)?;
    if stop.requested() {
        bail!("interrupted; the runs that are complete stay in {}, and the same command goes on", folder.display());
    }
    collect(folder, &points, &runs)
}

/// All combinations of the sweep's values, the last path's changing fastest. Each is checked before anything runs.
fn points(file: &NetworkFile<'_>, sweep: &Sweep) -> Result<Vec<Point>> {
    let mut combinations: Vec<Vec<Change>> = vec![Vec::new()];
    for (path, values) in sweep {
        combinations = combinations
            .iter()
            .flat_map(|front| {
                values.iter().map(|value| {
                    let mut changes = front.clone();
                    changes.push((path.clone(), value.clone()));
                    changes
                })
            })
            .collect();
    }
    let points = combinations.into_iter().map(|changes| {
        let words: Vec<String> = changes.iter().map(|(path, value)| format!("{path} = {value}")).collect();
        let at = || format!("at the sweep's point {}", words.join(", "));
        let (network, _) = file.network(&changes).with_context(at)?;
        let functions = file.functions(&network, &Compiling::default().begin()).with_context(at)?;
        Ok(Point { changes, network, functions })
    });
    points.collect()
}

fn runs<'a>(file: &NetworkFile<'_>, points: &'a [Point], repetitions: u32) -> Vec<Run<'a>> {
    let mut runs = Vec::new();
    for point in points {
        let digest = outputs::digest(file.text(), &point.changes, &point.network, &point.functions);
        let texts: Vec<_> = point.changes.iter().map(|(path, value)| (path.clone(), text_of(value))).collect();
        for repetition in 1..=repetitions {
            let key = RunKey {
                run: runs.len() as u64 + 1,
                parameters: texts.clone(),
                repetition: u64::from(repetition),
                seed: point.network.seed.wrapping_add(u64::from(repetition) - 1),
            };
            let origin = RunOrigin { key, version: env!("CARGO_PKG_VERSION").to_owned(), digest: digest.clone() };
            runs.push(Run { origin, point });
        }
    }
    runs
}

/// A value as a table's cell.
fn text_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn run_folder(folder: &Path, number: u64) -> PathBuf {
    folder.join("runs").join(format!("{number:04}"))
}

/// Refuses a folder with more runs than there are: they would stay beside tables that know nothing of them.
fn refuse_more(folder: &Path, count: u64) -> Result<()> {
    let runs = folder.join("runs");
    let cannot = || format!("cannot look into {}", runs.display());
    for entry in fs::read_dir(&runs).with_context(cannot)? {
        let name = entry.with_context(cannot)?.file_name();
        let number = name.to_str().and_then(|name| name.parse::<u64>().ok());
        if let Some(number) = number.filter(|number| *number > count) {
            bail!(
                "{} holds run {number}, and this command makes {count}; remove the runs behind them, or give another --out",
                runs.display()
            );
        }
    }
    Ok(())
}

/// Whether the run's folder is there. One that holds another run's results is an error: nothing is thrown away here.
fn is_done(folder: &Path, run: &Run<'_>) -> Result<bool> {
    let path = run_folder(folder, run.number());
    if !fs::exists(&path).with_context(|| format!("cannot look into {}", path.display()))? {
        return Ok(false);
    }
    let text = file::bytes(&path.join("run.json"), Kind::Data)?;
    let found: RunOrigin = serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(
        found == run.origin,
        "{} holds the results of another network, program or sweep; give another --out, or remove that folder",
        path.display()
    );
    Ok(true)
}

/// Runs everything in `todo` on as many threads as asked for.
fn execute(file: &NetworkFile<'_>, todo: &[&Run<'_>], arguments: &Arguments, stop: &StopSignal) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.map_or(processors, usize::from).clamp(1, todo.len().max(1));
    let largest = todo.iter().map(|run| &run.point.network).max_by_key(|network| Memory::of(network).least());
    largest.map_or(Ok(()), |network| memory::check_simulation(network, jobs))?;
    let (next, finished, failed) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let line = Mutex::new(ProgressLine::begin());
    let show = |finished: usize, share: f64| {
        let all = todo.len();
        // Of several at once, one is enough.
        if let Ok(mut line) = line.try_lock() {
            line.tell((finished as f64 + share) / all as f64, format_args!("{finished} of {all} runs"));
        }
    };
    let work = || {
        while !stop.requested() && !failed.load(Ordering::Relaxed) {
            let Some(run) = todo.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            // What the others of those at once have done counts when they are finished.
            let mut part = |share| show(finished.load(Ordering::Relaxed), share);
            if let Err(error) = execute_one(file, run, arguments, stop, &mut part) {
                failed.store(true, Ordering::Relaxed);
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                return;
            }
            let finished = finished.fetch_add(1, Ordering::Relaxed) + 1;
            show(finished, 0.0);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    drop(line);
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// One run, into a folder that takes its name when all of it is written.
fn execute_one(
    file: &NetworkFile<'_>,
    run: &Run<'_>,
    arguments: &Arguments,
    stop: &StopSignal,
    tell: &mut dyn FnMut(f64),
) -> Result<()> {
    let target = run_folder(arguments.folder(), run.number());
    let temporary = target.with_extension(format!("{}.partial", std::process::id()));
    let made = fill(file, run, arguments, (stop, tell), &temporary).and_then(|complete| {
        if complete {
            fs::rename(&temporary, &target).with_context(|| format!("cannot make {}", target.display()))?;
        }
        Ok(complete)
    });
    if !matches!(made, Ok(true)) {
        // Nobody wants half a run; what cannot be removed is no result either.
        let _ = fs::remove_dir_all(&temporary);
    }
    made.map(drop).with_context(|| format!("run {}", run.number()))
}

/// Simulates and writes into `folder`. Whether the run is complete.
fn fill(
    file: &NetworkFile<'_>,
    run: &Run<'_>,
    arguments: &Arguments,
    (stop, tell): (&StopSignal, &mut dyn FnMut(f64)),
    folder: &Path,
) -> Result<bool> {
    let network = file.reseeded(&run.point.changes, run.origin.key.seed)?;
    outputs::make_folder(folder)?;
    let mut progress = |progress: &Progress| {
        tell(progress.now.nanoseconds() as f64 / progress.end.nanoseconds().max(1) as f64);
        if stop.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut results = one::simulate_into(file, &network, &run.point.functions, folder, &mut progress)?;
    if results.run.interrupted {
        return Ok(false);
    }
    if arguments.details {
        outputs::write_run(folder, file.text(), &network, &results)?;
    } else {
        (results.samples, results.progress, results.probes) = (Vec::new(), Vec::new(), Vec::new());
        outputs::write_json(&folder.join("results.json"), &results)?;
    }
    outputs::write_json(&folder.join("run.json"), &run.origin)?;
    Ok(true)
}

/// The tables of all runs, if all are there.
fn collect(folder: &Path, points: &[Point], runs: &[Run<'_>]) -> Result<()> {
    let mut all: Vec<(RunKey, Results)> = Vec::new();
    let mut missing = 0_usize;
    for run in runs {
        if !is_done(folder, run)? {
            missing += 1;
            continue;
        }
        let path = run_folder(folder, run.number()).join("results.json");
        let text = file::bytes(&path, Kind::Data)?;
        let results = serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))?;
        all.push((run.origin.key.clone(), results));
    }
    if missing > 0 {
        say!("{} of {} runs are in {}; when the other shards are there too,", all.len(), runs.len(), folder.display());
        say!("the same command without --shard makes the tables of all");
        return Ok(());
    }
    outputs::write_many(folder, &points[0].network.name, &all)?;
    say!("{} runs; tables and report are in {}", all.len(), folder.display());
    Ok(())
}
