//! `weft study fct`.
//!
//! Every cell is a file in the folder, written when all of the cell's runs are done: so a cell is there or not, whatever
//! happened, and the same command goes on where it stopped.

mod real;

use super::{in_parallel, threads};
use crate::console::{say, tell};
use crate::folder::refuse_whole;
use crate::outputs;
use crate::progress;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use weftwire_catalog::file::{self, Kind};
use weftwire_linux::signals::StopSignal;
use weftwire_sim::network::sources_of_hosts;
use weftwire_study::applications::StudyError;
use weftwire_study::fct::{Cell, Options, Outcome, Pair, Study};
use weftwire_text::quantity::{parse_duration, parse_rate};

/// Most cells of one command: a guard against a grid that nobody meant.
const MOST_CELLS: usize = 100_000;

#[derive(Args)]
pub struct Arguments {
    /// A grid of a few seconds: --rates 2Mbit/s,10Mbit/s --rtts 20ms,100ms --queues 10,50 --lengths 50 --initial-windows 10 --seeds 3, where they are not given
    #[arg(long)]
    quick: bool,
    /// Capacities of the bottleneck [default: 1 to 5, 10 and 15 Mbit/s]
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', value_parser = rate)]
    rates: Vec<u64>,
    /// Round-trip times without queues [default: 10, 20, 40, 80, 100, 150 and 200 ms]
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', value_parser = round_trip)]
    rtts: Vec<u64>,
    /// Packets that the bottleneck's queue holds [default: 5, 10, 50, 100, 200]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100_000))]
    queues: Vec<u32>,
    /// Full segments of each flow [default: 50, 500]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=5_000))]
    lengths: Vec<u32>,
    /// Segments of the first flight [default: 4, 10]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100))]
    initial_windows: Vec<u32>,
    /// What is compared [default: newreno+rack,newreno+tb_tcp,cubic+rack,newreno+rfc6675; with --real the first three, and kernel+reno,kernel+reno_rto,kernel+cubic,kernel+bbr]
    #[arg(long, value_name = "CONTROL+RECOVERY,...", value_delimiter = ',')]
    pairs: Vec<Pair>,
    /// What the others are compared with [default: newreno+rack; with --real kernel+reno]
    #[arg(long, value_name = "CONTROL+RECOVERY")]
    base: Option<Pair>,
    /// Runs of each cell and pair, with seeds that count up: all flows at once with the first, else within a round trip [default: 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seeds: Option<u32>,
    /// In real time, through the relay of `weft up`: the kernel's TCP beside the one in XL. Each cell is repeated until ratios are known within 5 %, or for all --seeds. Needs root
    #[arg(long, conflicts_with = "jobs")]
    real: bool,
    /// With --real: make so many runs at once
    #[arg(long, value_name = "N", default_value_t = 16, requires = "real", value_parser = clap::value_parser!(u16).range(1..=250))]
    at_once: u16,
    /// The first seed. The same seed gives the same results, byte for byte
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run so many cells at once [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Write cells, tables, pictures and the page into this folder; cells that are there are not run again
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

fn rate(text: &str) -> Result<u64, String> {
    match parse_rate(text.trim()).map_err(|error| error.to_string())? {
        rate @ 100_000..=1_000_000_000 => Ok(rate),
        _ => Err("a capacity is from 100kbit/s to 1Gbit/s".to_owned()),
    }
}

fn round_trip(text: &str) -> Result<u64, String> {
    let time = parse_duration(text.trim()).map_err(|error| error.to_string())?;
    match (Duration::from_millis(1)..=Duration::from_secs(2)).contains(&time) {
        true => Ok(time.as_nanos() as u64),
        false => Err("a round-trip time is from 1ms to 2s".to_owned()),
    }
}

/// Of what a file holds the runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Origin {
    /// Version of this program.
    version: String,
    /// Of the hosts' TCP.
    digest: String,
    cell: Cell,
    pairs: Vec<Pair>,
    seeds: u32,
    seed: u64,
    /// Runs in real time.
    #[serde(default)]
    real: bool,
}

/// A file of a cell.
#[derive(Serialize, Deserialize)]
struct Record {
    origin: Origin,
    outcome: Outcome,
    /// Runs in real time that do not count, as packets were late.
    #[serde(default)]
    late: u32,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let options = options(arguments);
    let cells = options.cells();
    ensure!(cells.len() <= MOST_CELLS, "the grid has {} cells, more than {MOST_CELLS}; give fewer values", cells.len());
    if arguments.real {
        return real::execute(arguments, &options);
    }
    if let Some(pair) = options.pairs.iter().find(|pair| pair.kernel().is_some()) {
        bail!("{pair} is the kernel's TCP, which runs in real time only: give --real");
    }
    let stop = StopSignal::install()?;
    let folder = Folder::open(&arguments.out, &options, false)?;
    let mut todo = Vec::new();
    for cell in &cells {
        if folder.read(cell)?.is_none() {
            todo.push(*cell);
        }
    }
    if todo.len() < cells.len() {
        tell!("{} of {} cells are there already", cells.len() - todo.len(), cells.len());
    }
    run(&folder, &options, &todo, arguments.jobs, &stop)?;
    if stop.requested() {
        bail!(
            "interrupted; the cells that are complete stay in {}, and the same command goes on",
            folder.path.display()
        );
    }
    let read = |cell| {
        folder
            .read(cell)?
            .map(|(outcome, _)| outcome)
            .with_context(|| format!("{} has vanished", folder.file(cell).display()))
    };
    let study = Study::new(&options, cells.iter().map(read).collect::<Result<Vec<Outcome>>>()?);
    write(&folder.path, &study)?;
    study.lines_of_text().iter().for_each(|line| say!("{line}"));
    say!("report          {}", folder.path.join("report.html").display());
    Ok(())
}

/// Values in ascending order, each once; `otherwise` if none are given.
fn or<T: Ord + Clone>(given: &[T], otherwise: Vec<T>) -> Vec<T> {
    let mut list = if given.is_empty() { otherwise } else { given.to_vec() };
    list.sort();
    list.dedup();
    list
}

fn options(arguments: &Arguments) -> Options {
    let defaults = match arguments.quick {
        true => Options::quick(),
        false => Options::default(),
    };
    let (otherwise, base) = match arguments.real {
        true => (Options::real().pairs, Pair::KERNEL_RENO),
        false => (defaults.pairs, Pair::NEWRENO_RACK),
    };
    let given = if arguments.pairs.is_empty() { &otherwise } else { &arguments.pairs };
    let mut pairs = vec![arguments.base.unwrap_or(base)];
    given.iter().for_each(|pair| {
        if !pairs.contains(pair) {
            pairs.push(*pair);
        }
    });
    Options {
        rates: or(&arguments.rates, defaults.rates),
        rtts_ns: or(&arguments.rtts, defaults.rtts_ns),
        queues: or(&arguments.queues, defaults.queues),
        lengths: or(&arguments.lengths, defaults.lengths),
        initial_windows: or(&arguments.initial_windows, defaults.initial_windows),
        pairs,
        seeds: arguments.seeds.unwrap_or(defaults.seeds),
        seed: arguments.seed,
    }
}

/// Where cells are.
struct Folder<'a> {
    path: PathBuf,
    options: &'a Options,
    digest: String,
    real: bool,
}

impl Folder<'_> {
    fn open<'a>(path: &Path, options: &'a Options, real: bool) -> Result<Folder<'a>> {
        refuse_whole(path)?;
        outputs::make_folder(&path.join("cells"))?;
        Ok(Folder { path: path.to_owned(), options, digest: outputs::digest_of_files(sources_of_hosts()), real })
    }

    fn file(&self, cell: &Cell) -> PathBuf {
        self.path.join("cells").join(format!("{cell}.json"))
    }

    fn origin(&self, cell: &Cell) -> Origin {
        Origin {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            digest: self.digest.clone(),
            cell: *cell,
            pairs: self.options.pairs.clone(),
            seeds: self.options.seeds,
            seed: self.options.seed,
            real: self.real,
        }
    }

    /// The cell, if it is there, and how many of its runs were late. One of other pairs, seeds or programs is an error: nothing is thrown away here.
    fn read(&self, cell: &Cell) -> Result<Option<(Outcome, u32)>> {
        let path = self.file(cell);
        if !fs::exists(&path).with_context(|| format!("cannot look for {}", path.display()))? {
            return Ok(None);
        }
        let text = file::bytes(&path, Kind::Data)?;
        let found: Record = serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(
            found.origin == self.origin(cell),
            "{} holds the runs of other pairs or seeds, or of another weft; give another --out, or remove that file",
            path.display()
        );
        Ok(Some((found.outcome, found.late)))
    }

    fn write(&self, outcome: Outcome, late: u32) -> Result<()> {
        let record = Record { origin: self.origin(&outcome.cell), outcome, late };
        outputs::write_json(&self.file(&record.outcome.cell), &record)
    }
}

/// Runs cells, and writes each when it is complete.
fn run(folder: &Folder<'_>, options: &Options, todo: &[Cell], jobs: Option<u16>, stop: &StopSignal) -> Result<()> {
    let Some(first) = todo.first() else { return Ok(()) };
    let watch = || if stop.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    tell!(
        "{} cells of {} runs: {}",
        todo.len(),
        options.seeds as usize * options.pairs.len(),
        match expected(options, todo, first, threads(jobs, todo.len()), &watch)? {
            Some(time) => format!("about {}", progress::time(time)),
            None => "interrupted".to_owned(),
        }
    );
    let one = |cell: &Cell| match cell.run(options, &watch) {
        Err(StudyError::Interrupted) => Ok(()),
        outcome => folder.write(outcome?, 0),
    };
    in_parallel(todo, jobs, stop, one, |finished, _| format!("{finished} of {} cells", todo.len())).map(drop)
}

/// How many seconds it is going to take, by one run of each pair of the first cell: what a run takes grows with its packets. `None` if
/// interrupted.
fn expected(
    options: &Options,
    todo: &[Cell],
    first: &Cell,
    threads: usize,
    watch: &dyn Fn() -> ControlFlow<()>,
) -> Result<Option<f64>> {
    let once = Options { seeds: 1, ..options.clone() };
    // What is made ready once does not count.
    let mut begun = Instant::now();
    for _ in 0..2 {
        begun = Instant::now();
        match first.run(&once, watch) {
            Err(StudyError::Interrupted) => return Ok(None),
            outcome => outcome?,
        };
    }
    let taken = begun.elapsed().as_secs_f64();
    let all: u64 = todo.iter().map(|cell| u64::from(cell.length)).sum();
    let runs = all as f64 / f64::from(first.length) * f64::from(options.seeds);
    Ok(Some(taken * runs / threads as f64))
}

fn write(folder: &Path, study: &Study) -> Result<()> {
    let texts = [
        ("runs.csv", study.runs_csv()),
        ("cells.csv", study.cells_csv()),
        ("groups.csv", study.groups_csv()),
        ("ratios.svg", study.ratios()),
        ("by-rtt.svg", study.by_rtt()),
        ("excess.svg", study.excesses()),
        ("report.html", study.page()),
    ];
    outputs::write_json(&folder.join("results.json"), study)?;
    texts.iter().try_for_each(|(name, text)| outputs::write_text(&folder.join(name), text))
}
