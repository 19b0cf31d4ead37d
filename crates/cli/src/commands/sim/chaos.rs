//! Many simulations of one network, each under other random faults.

use crate::commands::subs::Compiling;
use crate::console::say;
use crate::outputs;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, bail};
use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::panic;
use std::path::Path;
use weftwire_catalog::{Functions, NetworkFile};
use weftwire_core::Ports;
use weftwire_linux::signals::StopSignal;
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, NodeKind};
use weftwire_sim::chaos::{Experiment, Fault, Finding, Made, Stage, Verdict, schedule, shrink, to_toml};
use weftwire_sim::network::Progress;

/// Examines the network under `schedules` schedules of faults, drawn from `seed`, `seed + 1` and so on. What breaks an
/// invariant is shrunk, shown as blocks of the file and, with a folder, written as a network's file.
pub fn run(
    file: &NetworkFile<'_>,
    network: &Network,
    seed: u64,
    schedules: u32,
    folder: Option<&Path>,
    stop: &StopSignal,
) -> Result<()> {
    let functions = file.functions(network, &Compiling::default().begin())?;
    if let Some(folder) = folder {
        outputs::make_folder(folder)?;
    }
    let _quiet = QuietPanics::begin();
    let mut stage = Functional { file, network, functions: &functions, stop };
    let mut experiment = Experiment::new(network, &mut stage);
    let mut progress = ProgressLine::begin();
    let (mut done, mut failed) = (0, Vec::new());
    for seed in (0..u64::from(schedules)).map(|number| seed.wrapping_add(number)) {
        let share = f64::from(done) / f64::from(schedules);
        progress.tell(share, format_args!("{done} of {schedules} schedules, {} failed", failed.len()));
        let faults = schedule(network, seed);
        let verdict = experiment.examine(&faults).with_context(|| format!("cannot simulate {}", network.name))?;
        progress.clear();
        if verdict.interrupted {
            break;
        }
        done += 1;
        say!("{}", line(seed, &faults, &verdict));
        for warning in &verdict.warnings {
            say!("  warning: {warning}");
        }
        if let Some(finding) = verdict.violations.first() {
            failed.push(seed);
            explain(&verdict);
            let faults = smallest(&mut experiment, &faults, finding)?;
            report(file, network, seed, &faults, finding, folder)?;
        }
    }
    say!("{done} schedules examined, {} failed", failed.len());
    if !failed.is_empty() {
        let seeds: Vec<String> = failed.iter().map(u64::to_string).collect();
        bail!("invariants broke with the seeds {}", seeds.join(", "));
    }
    if stop.requested() {
        bail!("interrupted after {done} of {schedules} schedules");
    }
    Ok(())
}

fn line(seed: u64, faults: &[Fault], verdict: &Verdict) -> String {
    let count = match faults.len() {
        1 => "1 fault".to_owned(),
        count => format!("{count} faults"),
    };
    let verdict = match verdict.violations.first() {
        Some(finding) => format!("FAILED: {finding}"),
        None if verdict.warnings.is_empty() => "passed".into(),
        None => "passed, with warnings".into(),
    };
    format!("seed {seed}: {count}: {verdict}")
}

/// All but the first finding, which is shown already.
fn explain(verdict: &Verdict) {
    for finding in verdict.violations.iter().skip(1).take(9) {
        say!("  also: {finding}");
    }
    if let Some(place) = QuietPanics::last() {
        say!("  panic: {place}");
    }
}

/// The few faults that still break the same invariant. An interruption ends the search with what it has.
fn smallest(experiment: &mut Experiment<'_>, faults: &[Fault], finding: &Finding) -> Result<Vec<Fault>> {
    let mut problem = None;
    let faults = shrink(faults, &mut |faults| {
        problem.is_none()
            && experiment.breaks(faults, finding.invariant).unwrap_or_else(|error| {
                problem = Some(error);
                false
            })
    });
    match problem {
        Some(error) => Err(error).context("cannot look for fewer faults"),
        None => Ok(faults),
    }
}

fn report(
    file: &NetworkFile<'_>,
    network: &Network,
    seed: u64,
    faults: &[Fault],
    finding: &Finding,
    folder: Option<&Path>,
) -> Result<()> {
    let blocks = to_toml(faults, network);
    let heading = format!("# Chaos seed {seed} breaks `{}`:\n# {}\n", finding.invariant, finding.text);
    if faults.is_empty() {
        say!("\n{heading}# It breaks without faults, too.\n");
    } else {
        say!("\n{heading}{blocks}");
    }
    if let Some(folder) = folder {
        let path = folder.join(format!("chaos-{seed}.toml"));
        let text = format!("{}\n{heading}{blocks}", file.text());
        outputs::write_text(&path, &text)?;
        say!("written to {}; files that it names are relative to {}", path.display(), show(&file.folder));
    }
    Ok(())
}

fn show(folder: &Path) -> String {
    if folder.as_os_str().is_empty() { "this folder".into() } else { folder.display().to_string() }
}

/// The functions of a network, as they are loaded.
struct Functional<'a> {
    file: &'a NetworkFile<'a>,
    network: &'a Network,
    functions: &'a Functions,
    stop: &'a StopSignal,
}

impl Stage for Functional<'_> {
    fn function(&mut self, node: NodeIndex, ports: &Ports, seed: u64) -> io::Result<Made> {
        let NodeKind::Function(wanted) = &self.network.node(node).kind else {
            return Err(io::Error::other("a node without a function asks for one"));
        };
        let loaded = self.functions.get(&node).ok_or_else(|| io::Error::other("a function was not loaded"))?;
        let function = loaded.start(&wanted.engine, ports, seed, None).map_err(io::Error::other)?;
        Ok(Made { function, most_flows: loaded.most_flows() })
    }

    fn capture(&mut self, file: &str) -> io::Result<Vec<(i64, Vec<u8>)>> {
        self.file.capture(file).map_err(io::Error::other)
    }

    fn progress(&mut self, _: &Progress) -> ControlFlow<()> {
        if self.stop.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

thread_local! {
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

type Hook = Box<dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync>;

/// While it lives, panics are kept and not printed: they are findings, and a search for fewer faults has many.
struct QuietPanics(Option<Hook>);

impl QuietPanics {
    fn begin() -> QuietPanics {
        let before = panic::take_hook();
        panic::set_hook(Box::new(|info| LAST_PANIC.set(Some(info.to_string()))));
        QuietPanics(Some(before))
    }

    /// The last panic of this thread with its place, once.
    fn last() -> Option<String> {
        LAST_PANIC.take()
    }
}

impl Drop for QuietPanics {
    fn drop(&mut self) {
        if let (Some(before), false) = (self.0.take(), std::thread::panicking()) {
            panic::set_hook(before);
        }
    }
}
