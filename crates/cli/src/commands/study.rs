//! `weft study`: designs as models, measured.

mod applications;
mod fct;
mod subscriptions;

use crate::console::say;
use crate::folder::OutputFolder;
use crate::outputs;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use weftwire_linux::signals::StopSignal;
use weftwire_study::study::{Case, Options, Study, plan};

/// Measure designs as models.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The hash calendar of hardware: how many tries an insertion takes, and what would be better in the same memory.
    Calendar(CalendarArguments),
    /// Subscriptions routed through networks: entries of switches, and traffic that coarser filters cause
    Subscriptions(subscriptions::Arguments),
    /// Applications of subscriptions in the simulator: a market's latencies, hot and cold content, a highway's alerts
    Applications(applications::Arguments),
    /// Flow completion times of six flows at one bottleneck, in the simulator: ways of TCP compared in pairs
    Fct(fct::Arguments),
}

#[derive(Args)]
struct CalendarArguments {
    /// Shares of 16,384 timers that are armed [default: 0.5 to 0.97 in 11 steps]
    #[arg(long, value_name = "LOAD,...", value_delimiter = ',', value_parser = parse_load)]
    loads: Vec<f64>,
    /// Runs of each load of the figures; the comparisons have a tenth to a fiftieth
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeats: u32,
    /// Timers replaced in a run
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    substitutions: u64,
    /// The longest interval of a timer
    #[arg(long, value_name = "TICKS", default_value_t = 1_000_000_000,
          value_parser = clap::value_parser!(u64).range(1_024..=1_000_000_000_000))]
    horizon: u64,
    /// The same seed gives the same results, byte for byte
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Make so many runs at once [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Write tables, pictures and the page into this folder
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

fn parse_load(text: &str) -> Result<f64, String> {
    let load: f64 = text.trim().parse().map_err(|_| "a load is a number such as 0.97".to_owned())?;
    match (0.01..=0.99).contains(&load) {
        true => Ok(load),
        false => Err("a load is from 0.01 to 0.99".to_owned()),
    }
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Calendar(arguments) => calendar(arguments),
        Command::Subscriptions(arguments) => subscriptions::execute(arguments),
        Command::Applications(arguments) => applications::execute(arguments),
        Command::Fct(arguments) => fct::execute(arguments),
    }
}

fn calendar(arguments: &CalendarArguments) -> Result<()> {
    let mut loads = arguments.loads.clone();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let options = Options {
        loads: if loads.is_empty() { Options::default().loads } else { loads },
        repeats: arguments.repeats,
        substitutions: arguments.substitutions,
        horizon: arguments.horizon,
        seed: arguments.seed,
    };
    // A folder that cannot be made is known before the work.
    let folder = OutputFolder::begin(&arguments.out)?;
    let measured =
        measure(plan(&options), arguments.jobs, &StopSignal::install()?, Case::run, |case| case.part.name())?;
    let study = Study::new(&options, measured);
    write(folder.path(), &study)?;
    folder.finish()?;
    describe(&study, &arguments.out);
    Ok(())
}

/// Runs all cases, on as many threads as asked for. The results do not depend on how many.
fn measure<C: Sync, T: Send>(
    cases: Vec<C>,
    jobs: Option<u16>,
    stop: &StopSignal,
    run: impl Fn(&C) -> T + Sync,
    name: impl Fn(&C) -> &'static str + Sync,
) -> Result<Vec<(C, T)>> {
    let outcomes = in_parallel(&cases, jobs, stop, |case| Ok(run(case)), |_, case| name(case).to_owned())?;
    if stop.requested() {
        bail!("interrupted; nothing was written");
    }
    Ok(cases.into_iter().zip(outcomes.context("a run has no result")?).collect())
}

/// How many threads there are for so many cases.
fn threads(jobs: Option<u16>, cases: usize) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    jobs.map_or(processors, usize::from).clamp(1, cases.max(1))
}

/// Runs cases on as many threads as asked for until all are done, one fails, or the user stops it. `about` says of the cases that are
/// finished, and the last of them, what the line of progress shows. `None` if some were not run.
fn in_parallel<C: Sync, T: Send>(
    cases: &[C],
    jobs: Option<u16>,
    stop: &StopSignal,
    run: impl Fn(&C) -> Result<T> + Sync,
    about: impl Fn(usize, &C) -> String + Sync,
) -> Result<Option<Vec<T>>> {
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let outcomes: Mutex<Vec<Option<T>>> = Mutex::new(cases.iter().map(|_| None).collect());
    let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let failed = || failure.lock().unwrap_or_else(PoisonError::into_inner);
    let line = Mutex::new(ProgressLine::begin());
    let work = || {
        while !stop.requested() && failed().is_none() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(index) else { return };
            match run(case) {
                Ok(outcome) => outcomes.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(outcome),
                Err(error) => {
                    failed().get_or_insert(error);
                    return;
                }
            }
            let finished = finished.fetch_add(1, Ordering::Relaxed) + 1;
            let share = finished as f64 / cases.len() as f64;
            line.lock().unwrap_or_else(PoisonError::into_inner).tell(share, about(finished, case));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads(jobs, cases.len()) {
            scope.spawn(work);
        }
    });
    drop(line);
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(outcomes.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()),
    }
}

fn write(folder: &Path, study: &Study) -> Result<()> {
    let document = study.document();
    let texts = [
        ("results.csv", document.results_csv()),
        ("designs.csv", document.designs_csv()),
        ("same-tick.csv", document.same_tick_csv()),
        ("figure-3.svg", study.figure_3()),
        ("figure-4.svg", study.figure_4()),
        ("designs.svg", study.designs()),
        ("report.html", study.page()),
    ];
    outputs::write_json(&folder.join("results.json"), &document)?;
    texts.iter().try_for_each(|(name, text)| outputs::write_text(&folder.join(name), text))
}

/// Figures 3 and 4 in numbers, on standard output.
fn describe(study: &Study, folder: &Path) {
    use weftwire_study::Design;
    say!(
        "{:>5}  {:>9}  {:>12}  {:>11}  {:>12}  {:>6}  {:>6}",
        "load",
        "1/(1-l^4)",
        "random free",
        "first free",
        "cuckoo",
        "worst",
        "cuckoo"
    );
    let find = |design: Design, load: f64| {
        let mut lines = study.lines.iter();
        lines.find(|line| line.trial.design == design && line.trial.load == load).map(|line| &line.tally)
    };
    for load in &study.options.loads {
        let found = [Design::RANDOM_FREE, Design::FIRST_FREE, Design::CUCKOO].map(|design| find(design, *load));
        if let [Some(random), Some(first), Some(cuckoo)] = found {
            say!(
                "{load:>5.2}  {:>9.4}  {:>12.4}  {:>11.4}  {:>12.4}  {:>6}  {:>6}",
                Study::theory(*load),
                random.mean_tries(),
                first.mean_tries(),
                cuckoo.mean_tries(),
                first.most_tries,
                cuckoo.most_tries
            );
        }
    }
    say!("report          {}", folder.join("report.html").display());
}
