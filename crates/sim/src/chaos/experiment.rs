//! Runs of one network under many schedules.

use super::finding::{Finding, Invariant};
use super::judge;
use super::watch::{Log, Watch};
use super::{Fault, expand};
use crate::network::{Progress, Surroundings, most_flows_of_host, simulate};
use std::any::Any;
use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use weftwire_core::trace::TraceRecord;
use weftwire_core::{Function, Ports, Time};
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, NodeKind, PortPlace};
use weftwire_network::results::Results;

/// What runs under faults need from outside.
pub trait Stage {
    /// Makes the function of a node, as [`Surroundings::function`] does.
    ///
    /// # Errors
    /// Why there is none; it ends the experiment.
    fn function(&mut self, node: NodeIndex, ports: &Ports, seed: u64) -> io::Result<Made>;

    /// What runs in place of the TCP of a host.
    fn host(&mut self, _node: NodeIndex, tcp: Box<dyn Function>) -> Box<dyn Function> {
        tcp
    }

    /// The frames of a capture that traffic replays.
    ///
    /// # Errors
    /// Why they cannot be had; it ends the experiment.
    fn capture(&mut self, file: &str) -> io::Result<Vec<(i64, Vec<u8>)>>;

    /// Called now and then; may break the run off.
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()>;
}

/// A function, and what it promises.
pub struct Made {
    /// The function.
    pub function: Box<dyn Function>,
    /// How many flows its table may hold.
    pub most_flows: u64,
}

/// What came of a schedule.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Verdict {
    /// Invariants that did not hold; the first finding first.
    pub violations: Vec<Finding>,
    /// Flows that stand still after the faults.
    pub warnings: Vec<String>,
    /// It was broken off; nothing is known.
    pub interrupted: bool,
}

/// Runs a network under schedules of faults.
pub struct Experiment<'a> {
    /// Without captures and traces.
    network: Network,
    stage: &'a mut dyn Stage,
    /// The run without faults, once it was made.
    baseline: Option<Results>,
}

/// What one run gave.
#[derive(PartialEq)]
struct Run {
    /// The results, or the message of a panic.
    results: Result<Results, String>,
    log: Log,
}

impl<'a> Experiment<'a> {
    /// For a network and what it needs.
    pub fn new(network: &Network, stage: &'a mut dyn Stage) -> Experiment<'a> {
        let mut network = network.clone();
        network.captures.clear();
        for node in &mut network.nodes {
            if let NodeKind::Function(function) = &mut node.kind {
                function.trace = false;
            }
        }
        Experiment { network, stage, baseline: None }
    }

    /// Runs the network under these faults, twice, and checks all invariants.
    ///
    /// # Errors
    /// Those of the stage, and of the simulator when the network cannot be run.
    pub fn examine(&mut self, faults: &[Fault]) -> io::Result<Verdict> {
        if self.baseline.is_none() {
            self.baseline = self.run(&[])?.results.ok().filter(|results| !results.run.interrupted);
        }
        let first = self.run(faults)?;
        let mut verdict = self.judge(faults, &first);
        if verdict.interrupted {
            return Ok(verdict);
        }
        let second = self.run(faults)?;
        if second.results.as_ref().is_ok_and(|results| results.run.interrupted) {
            return Ok(Verdict { interrupted: true, ..Verdict::default() });
        }
        if first != second {
            let text = format!("two runs differ: {}", difference(&first, &second));
            verdict.violations.push(Finding { invariant: Invariant::Repeatable, text });
        }
        if let (Some(baseline), Ok(results)) = (&self.baseline, &first.results) {
            verdict.warnings = judge::stalled(&self.network, faults, results, baseline, &first.log);
        }
        Ok(verdict)
    }

    /// Whether this invariant breaks under these faults. An interrupted run breaks nothing.
    ///
    /// # Errors
    /// As for [`Experiment::examine`].
    pub fn breaks(&mut self, faults: &[Fault], invariant: Invariant) -> io::Result<bool> {
        let verdict = if invariant == Invariant::Repeatable {
            self.examine(faults)?
        } else {
            let run = self.run(faults)?;
            self.judge(faults, &run)
        };
        Ok(!verdict.interrupted && verdict.violations.iter().any(|finding| finding.invariant == invariant))
    }

    fn judge(&self, faults: &[Fault], run: &Run) -> Verdict {
        match &run.results {
            Err(message) => {
                let panic = Finding { invariant: Invariant::NoPanic, text: message.clone() };
                let violations = run.log.findings.iter().cloned().chain([panic]).collect();
                Verdict { violations, ..Verdict::default() }
            }
            Ok(results) if results.run.interrupted => Verdict { interrupted: true, ..Verdict::default() },
            Ok(results) => {
                let violations = judge::violations(&self.network, faults, results, &run.log);
                Verdict { violations, ..Verdict::default() }
            }
        }
    }

    fn run(&mut self, faults: &[Fault]) -> io::Result<Run> {
        let network = Network { changes: expand(&self.network, faults), ..self.network.clone() };
        let log = Rc::new(RefCell::new(Log::default()));
        let mut watched = Watched { network: &network, stage: &mut *self.stage, log: log.clone() };
        // A panicking run leaves nothing behind that is used again: the network and functions are its own.
        let results = match catch_unwind(AssertUnwindSafe(|| simulate(&network, &mut watched))) {
            Ok(results) => Ok(results?),
            Err(panic) => Err(message(&*panic)),
        };
        let log = log.take();
        Ok(Run { results, log })
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("panic without a message").to_owned()
}

/// The first part in which two runs differ.
fn difference(first: &Run, second: &Run) -> String {
    let (left, right) = match (&first.results, &second.results) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(message), _) | (_, Err(message)) => return format!("only one panics: {message}"),
    };
    if let Some((flow, _)) = left.flows.iter().zip(&right.flows).find(|(left, right)| left != right) {
        return format!("flow {} of `{}`", flow.number, flow.traffic);
    }
    if let Some((link, _)) = left.links.iter().zip(&right.links).find(|(left, right)| left != right) {
        return format!("link {} from {}", link.link, link.from);
    }
    match left == right {
        true => "what functions put out".into(),
        false => "tables other than those of flows and links".into(),
    }
}

/// The simulator's surroundings, with a watch around each function.
struct Watched<'a> {
    network: &'a Network,
    stage: &'a mut dyn Stage,
    log: Rc<RefCell<Log>>,
}

impl Surroundings for Watched<'_> {
    fn function(&mut self, node: NodeIndex, ports: &Ports, seed: u64) -> io::Result<Box<dyn Function>> {
        let Made { function, most_flows } = self.stage.function(node, ports, seed)?;
        let name = &self.network.node(node).name;
        Ok(Box::new(Watch::new(function, node, name, ports, most_flows, self.log.clone())))
    }

    fn host(&mut self, node: NodeIndex, ports: &Ports, tcp: Box<dyn Function>) -> Box<dyn Function> {
        let (name, tcp) = (&self.network.node(node).name, self.stage.host(node, tcp));
        Box::new(Watch::new(tcp, node, name, ports, most_flows_of_host(), self.log.clone()))
    }

    fn capture(&mut self, file: &str) -> io::Result<Vec<(i64, Vec<u8>)>> {
        self.stage.capture(file)
    }

    fn frame(&mut self, _: Time, _: PortPlace, _: &[u8], _: bool) -> io::Result<()> {
        Ok(())
    }

    fn trace(&mut self, _: NodeIndex, _: &TraceRecord) -> io::Result<()> {
        Ok(())
    }

    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.stage.progress(progress)
    }
}
