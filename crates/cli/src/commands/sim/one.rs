//! One simulation, with everything that it can write.

use crate::commands::subs::Compiling;
use crate::folder::OutputFolder;
use crate::network::RunFiles;
use crate::outputs;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, bail};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use weftwire_catalog::{Functions, NetworkFile};
use weftwire_core::trace::TraceRecord;
use weftwire_core::{Function, Ports, Time};
use weftwire_linux::processor_seconds;
use weftwire_linux::signals::StopSignal;
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, NodeKind, PortPlace};
use weftwire_network::results::Results;
use weftwire_sim::network::{Progress, Surroundings, simulate};

/// Simulates the network once and writes everything into `folder`. An interrupted run writes what it has, unless there are
/// older results.
pub fn run(file: &NetworkFile<'_>, network: &Network, folder: &Path, stop: &StopSignal) -> Result<()> {
    let functions = file.functions(network, &Compiling::default().begin())?;
    let out = OutputFolder::begin(folder)?;
    let mut line = ProgressLine::begin();
    let mut progress = |progress: &Progress| {
        let share = progress.now.nanoseconds() as f64 / progress.end.nanoseconds().max(1) as f64;
        line.tell(share, format_args!("{} s, {} events", progress.now, progress.events));
        if stop.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let results = simulate_into(file, network, &functions, out.path(), &mut progress)?;
    drop(line);
    let (interrupted, end) = (results.run.interrupted, Time::from_nanoseconds(results.run.lasted));
    if interrupted && out.replaces_results() {
        bail!("interrupted at {end} s of virtual time; {} stays as it was", folder.display());
    }
    outputs::write_run(out.path(), file.text(), network, &results)?;
    out.finish()?;
    outputs::describe(&results, folder);
    if interrupted {
        bail!("interrupted at {end} s of virtual time; the results up to there are in {}", folder.display());
    }
    Ok(())
}

/// Simulates the network with its captures and traces in `folder`.
pub fn simulate_into(
    file: &NetworkFile<'_>,
    network: &Network,
    functions: &Functions,
    folder: &Path,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Results> {
    let files = RunFiles::create(network, folder)?;
    let mut world = World { file, network, functions, files, progress };
    let results = simulate(network, &mut world).with_context(|| format!("cannot simulate {}", network.name))?;
    world.files.finish()?;
    Ok(results)
}

struct World<'a> {
    file: &'a NetworkFile<'a>,
    network: &'a Network,
    functions: &'a Functions,
    files: RunFiles,
    progress: &'a mut dyn FnMut(&Progress) -> ControlFlow<()>,
}

impl Surroundings for World<'_> {
    fn function(&mut self, node: NodeIndex, ports: &Ports, seed: u64) -> io::Result<Box<dyn Function>> {
        let NodeKind::Function(wanted) = &self.network.node(node).kind else {
            return Err(io::Error::other("a node without a function asks for one"));
        };
        let loaded = self.functions.get(&node).ok_or_else(|| io::Error::other("a function was not loaded"))?;
        loaded.start(&wanted.engine, ports, seed, None).map_err(io::Error::other)
    }

    fn capture(&mut self, file: &str) -> io::Result<Vec<(i64, Vec<u8>)>> {
        self.file.capture(file).map_err(io::Error::other)
    }

    fn frame(&mut self, at: Time, place: PortPlace, bytes: &[u8], sent: bool) -> io::Result<()> {
        self.files.frame(at, place, bytes, sent)
    }

    fn trace(&mut self, node: NodeIndex, record: &TraceRecord) -> io::Result<()> {
        self.files.trace(node, record)
    }

    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        (self.progress)(progress)
    }

    fn processor_seconds(&mut self) -> f64 {
        processor_seconds()
    }
}
