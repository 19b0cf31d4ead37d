//! `weft study fct --real`: the kernel's TCP beside the one in XL, through the relay of `weft up`.
//!
//! A batch is one network, with as many runs as are to be made at once. All pairs of a cell with one seed stand next to each other
//! there, and are repeated together.

use super::{Arguments, Folder, write};
use crate::commands::run::node::Weft;
use crate::console::{say, tell};
use crate::outputs;
use crate::progress::{self, ProgressLine};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weftwire_capture::{CaptureReader, Headers};
use weftwire_catalog::Catalog;
use weftwire_core::LinkType;
use weftwire_lab::supervisor::UpOptions;
use weftwire_linux::signals::StopSignal;
use weftwire_network::Network;
use weftwire_network::results::Results;
use weftwire_sim::network::sources_of_hosts;
use weftwire_study::fct::real::{PORT, Seen, Slot, What, bottleneck, captured, description, measured};
use weftwire_study::fct::{Cell, FLOWS, Options, Outcome, Run, Study, bound};
use weftwire_text::LoadError;

/// Fewer runs of a cell say nothing about their spread.
const FEWEST: usize = 5;
/// Half of an interval that is short enough, as a share of the ratio.
const CLOSE: f64 = 0.05;
/// A cell of which so many batches in a row brought nothing but late runs is left as it is.
const PATIENCE: u32 = 5;
/// Making and removing a network, and the second behind its last flow, as a guess.
const AROUND_NS: u64 = 6_000_000_000;

/// A cell with what there is of it.
struct Work {
    cell: Cell,
    outcome: Outcome,
    /// The next run of each pair, as far as it is made.
    round: Vec<Option<Run>>,
    /// Runs that were thrown away as packets were late.
    late: u32,
    late_in_a_row: u32,
}

impl Work {
    fn rounds(&self) -> usize {
        self.outcome.runs.first().map_or(0, Vec::len)
    }

    /// Nothing is left to do: there are as many runs as asked for, or all ratios are known well enough, or it is no use.
    fn is_done(&self, options: &Options) -> bool {
        let enough = self.rounds() >= options.seeds as usize;
        enough || self.late_in_a_row >= PATIENCE || (self.rounds() >= FEWEST && is_close(options, &self.outcome))
    }
}

/// Whether the median ratio of each pair is known within [`CLOSE`].
fn is_close(options: &Options, outcome: &Outcome) -> bool {
    let study = Study::new(options, vec![outcome.clone()]);
    let medians = study.lines.iter().filter_map(|line| Some(line.ratio?[1]));
    medians.into_iter().all(|ratio| (ratio.high - ratio.low) / 2.0 <= CLOSE * ratio.value)
}

/// Runs the command.
pub fn execute(arguments: &Arguments, options: &Options) -> Result<()> {
    let cells = options.cells();
    let stop = StopSignal::install()?;
    let folder = Folder::open(&arguments.out, options, true)?;
    let mut works = Vec::new();
    for cell in &cells {
        let (outcome, late) = match folder.read(cell)? {
            Some((outcome, late)) => (outcome, late),
            None => (Outcome { cell: *cell, runs: vec![Vec::new(); options.pairs.len()] }, 0),
        };
        works.push(Work { cell: *cell, outcome, round: vec![None; options.pairs.len()], late, late_in_a_row: 0 });
    }
    // Those that take about as long run together.
    works.sort_by_key(|work| bound(&work.cell, &[0; FLOWS]));
    let at_once = usize::from(arguments.at_once);
    let open = works.iter().filter(|work| !work.is_done(options)).count();
    if open < works.len() {
        tell!("{} of {} cells are there already", works.len() - open, works.len());
    }
    if open > 0 {
        let [least, most] = [FEWEST as u32, options.seeds]
            .map(|runs| progress::time(expected(&works, options, at_once, runs.min(options.seeds) as usize)));
        let ways = options.pairs.len();
        tell!("{open} cells of {ways} ways, {at_once} runs at once: {least} to {most}, by how often they are repeated");
    }
    let place = Place::make(&arguments.out)?;
    let mut line = ProgressLine::begin();
    while !stop.requested() {
        let done = works.iter().filter(|work| work.is_done(options)).count();
        line.tell(done as f64 / works.len().max(1) as f64, format_args!("{done} of {} cells", works.len()));
        let jobs = next(&works, options, at_once);
        if jobs.is_empty() {
            break;
        }
        batch(&place, &folder, options, &mut works, &jobs, &stop)?;
    }
    drop(line);
    place.remove();
    if stop.requested() {
        bail!(
            "interrupted; the runs that are complete stay in {}, and the same command goes on",
            arguments.out.display()
        );
    }
    finish(&folder, options, works)
}

/// What is still to run, in seconds, if each cell is run so many times.
fn expected(works: &[Work], options: &Options, at_once: usize, runs: usize) -> f64 {
    let left = works.iter().filter(|work| !work.is_done(options));
    let each = left.map(|work| {
        let whole = 3 * bound(&work.cell, &[0; FLOWS]) / 2 + AROUND_NS + 3_000_000_000;
        whole as f64 / 1e9 * (runs.saturating_sub(work.rounds()) * options.pairs.len()) as f64
    });
    each.sum::<f64>() / at_once as f64
}

/// The runs of the next batch: cell and pair.
fn next(works: &[Work], options: &Options, at_once: usize) -> Vec<(usize, usize)> {
    let open = works.iter().enumerate().filter(|(_, work)| !work.is_done(options));
    let missing = open.flat_map(|(at, work)| {
        work.round.iter().enumerate().filter(|(_, run)| run.is_none()).map(move |(pair, _)| (at, pair))
    });
    missing.take(at_once).collect()
}

/// Where a batch's files are.
struct Place {
    folder: PathBuf,
    image: PathBuf,
    name: String,
}

impl Place {
    /// The machine is compiled once, not by each of its processes.
    fn make(out: &Path) -> Result<Place> {
        let out = out.canonicalize().with_context(|| format!("cannot find {}", out.display()))?;
        let folder = out.join("batch");
        let sources = folder.join("sources");
        outputs::make_folder(&sources)?;
        for (name, text) in sources_of_hosts() {
            outputs::write_text(&sources.join(name), text)?;
        }
        let catalog = Catalog { includes: Vec::new(), timers: None, report: &|_, _| () };
        let image = folder.join("tcp.json");
        fs::write(&image, catalog.compile(&sources.join("tcp.xl"))?.to_json())
            .with_context(|| format!("cannot write {}", image.display()))?;
        Ok(Place { folder, image, name: format!("fct-{}", std::process::id()) })
    }

    fn options(&self) -> Result<UpOptions> {
        let program = std::env::current_exe().context("cannot find the program's own file")?;
        Ok(UpOptions {
            file: self.folder.join("network.toml"),
            runner: Arc::new(Weft { program, includes: Vec::new() }),
            busy: false,
            user: None,
            ahead: true,
        })
    }

    fn remove(self) {
        // What is left is no part of the results.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Makes the runs of one batch.
fn batch(
    place: &Place,
    folder: &Folder<'_>,
    options: &Options,
    works: &mut [Work],
    jobs: &[(usize, usize)],
    stop: &StopSignal,
) -> Result<()> {
    let slots: Vec<Slot> = jobs
        .iter()
        .map(|(at, pair)| {
            let work = &works[*at];
            Slot { cell: work.cell, pair: options.pairs[*pair], repetition: work.rounds() as u32 }
        })
        .collect();
    let image = place.image.to_str().context("the folder's name is not UTF-8")?;
    let network = Arc::new(network(&description(&place.name, &slots, options.seed, image))?);
    let out = place.folder.join("run");
    outputs::make_folder(&out)?;
    let results = weftwire_lab::run::run(&network, &place.options()?, &out, stop, &mut |_| ())?;
    if stop.requested() {
        return Ok(());
    }
    let sources_late_ns = results.run.source_lateness.map_or(0, |lateness| lateness.p99);
    // Of each cell, whether a run of it was in time.
    let mut touched: BTreeMap<usize, bool> = BTreeMap::new();
    for (number, ((at, pair), slot)) in jobs.iter().zip(&slots).enumerate() {
        let work = &mut works[*at];
        let in_time = touched.entry(*at).or_default();
        if sources_late_ns > slot.sources_allowed_ns() || results.run.late_links.contains(&bottleneck(number)) {
            work.late += 1;
            continue;
        }
        *in_time = true;
        work.round[*pair] = Some(run_of(&out, number, slot, &results)?);
    }
    for (at, in_time) in touched {
        let work = &mut works[at];
        work.late_in_a_row = if in_time { 0 } else { work.late_in_a_row + 1 };
        if work.round.iter().all(Option::is_some) {
            for (runs, run) in work.outcome.runs.iter_mut().zip(&mut work.round) {
                runs.extend(run.take());
            }
        }
        folder.write(work.outcome.clone(), work.late)?;
    }
    Ok(())
}

fn network(text: &str) -> Result<Network> {
    let reading = weftwire_network::read("network", text, &[], &|name| Err(LoadError::Unknown(name.to_owned())));
    let said = || reading.diagnostics.iter().map(|it| it.message.clone()).collect::<Vec<_>>().join("; ");
    reading.network.with_context(said)
}

/// What came of a slot, by its capture.
fn run_of(out: &Path, number: usize, slot: &Slot, results: &Results) -> Result<Run> {
    let name = bottleneck(number);
    let from = format!("{}:", captured(number));
    let link = results.links.iter().find(|link| link.link == name && link.from.starts_with(&from));
    let counts = &link.with_context(|| format!("the results have no link {name}"))?.counts;
    let path = out.join(format!("{}.pcapng", captured(number)));
    Ok(measured(slot, &seen(&path).with_context(|| format!("cannot read {}", path.display()))?, counts))
}

/// The segments of a capture.
fn seen(path: &Path) -> Result<Vec<Seen>> {
    let mut reader = CaptureReader::new(BufReader::new(File::open(path)?))?;
    let mut seen = BTreeMap::new();
    let flow_of = |port: u16| port.checked_sub(PORT).map(usize::from).filter(|flow| *flow < FLOWS);
    let mut count = 0_u64;
    while let Some(record) = reader.next_record()? {
        let Some(transport) = Headers::parse(LinkType::Ethernet, &record.bytes).and_then(|it| it.transport) else {
            continue;
        };
        let Some(tcp) = &transport.tcp else { continue };
        let said = match (flow_of(transport.destination_port), flow_of(transport.source_port)) {
            (Some(flow), _) if transport.payload > 0 => {
                Some((flow, What::Data { sequence: tcp.sequence, length: transport.payload }))
            }
            (None, Some(flow)) if tcp.flags.ack => Some((flow, What::Acknowledged(tcp.acknowledgment))),
            _ => None,
        };
        if let Some((flow, what)) = said {
            count += 1;
            let at_ns = record.time.nanoseconds();
            // The two directions are each in order, and only each by itself.
            seen.insert((at_ns, count), Seen { at_ns, flow, what });
        }
    }
    Ok(seen.into_values().collect())
}

/// Tables, pictures, and what was late.
fn finish(folder: &Folder<'_>, options: &Options, works: Vec<Work>) -> Result<()> {
    let mut late = "rate_bit_per_s,rtt_ms,queue_packets,length_segments,initial_window,runs,late_runs\r\n".to_owned();
    let (mut outcomes, mut left_out, mut thrown) = (Vec::new(), 0, 0);
    for work in works {
        let Cell { rate, rtt_ns, queue, length, initial_window } = work.cell;
        let rtt = rtt_ns as f64 / 1e6;
        late += &format!("{rate},{rtt},{queue},{length},{initial_window},{},{}\r\n", work.rounds(), work.late);
        thrown += work.late;
        match work.rounds() {
            0 => left_out += 1,
            _ => outcomes.push(work.outcome),
        }
    }
    outputs::write_text(&folder.path.join("late.csv"), &late)?;
    ensure!(
        !outcomes.is_empty(),
        "all runs were late: the relay could not keep the links' times. Use a machine with less other work, or a smaller --at-once"
    );
    let study = Study::new(options, outcomes);
    write(&folder.path, &study)?;
    study.lines_of_text().iter().for_each(|line| say!("{line}"));
    say!("late runs       {thrown}, not counted; {left_out} cells have no other");
    say!("report          {}", folder.path.join("report.html").display());
    Ok(())
}
