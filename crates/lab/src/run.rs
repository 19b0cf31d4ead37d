//! A run of a network's traffic, commands and changes, with results as those of a simulation.

use crate::build::{constant_rate, namespace_name};
use crate::captures::Captures;
use crate::drops;
use crate::error::LabError;
use crate::functions::{Application, Places, RunningFunction, function_of};
use crate::process::{end, start_in};
use crate::relay::{DirectionStatus, RelayOptions, RelayReport, RelayStart, Snapshot};
use crate::routing::{self, Turn};
use crate::state::{Phase, State, folder, write_json};
use crate::supervisor::{RelayThread, Status, UpOptions, leave, make, places};
use crate::traffic::{self, Stage};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{JoinHandle, sleep};
use std::time::Duration;
use weftwire_core::{Time, nanoseconds};
use weftwire_linux::signals::StopSignal;
use weftwire_linux::socket_address::check_congestion_control;
use weftwire_linux::system::{monotonic_ns, process_seconds};
use weftwire_network::link::Counts;
use weftwire_network::model::{ChangeKind, NodeIndex, NodeKind, TrafficKind};
use weftwire_network::results::{LinkResult, Results, RunFacts};
use weftwire_network::{Network, ideal};

/// From everything being ready to the start, so that all threads are up.
const LEAD: i64 = 30_000_000;
/// How often progress is told.
const TURN: i64 = 200_000_000;
/// How long after the last flow's end a run goes on that has nothing left to do: time for what is on its way.
const GRACE: i64 = 1_000_000_000;
/// How long commands have to end.
const END: Duration = Duration::from_secs(2);

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress<'a> {
    /// The time since the start.
    pub now: Duration,
    /// How long it takes at most.
    pub all: Duration,
    /// The relay's last word.
    pub relay: &'a Snapshot,
}

/// Makes a network, runs what its file says, writes captures, traces and the outputs of commands into the folder `out`,
/// and takes it down, always.
///
/// # Errors
/// What could not be made or started. A run that was interrupted has results.
pub fn run(
    network: &Arc<Network>,
    options: &UpOptions,
    out: &Path,
    stop: &StopSignal,
    progress: &mut dyn FnMut(&RunProgress<'_>),
) -> Result<Results, LabError> {
    check_controls(network)?;
    let (folder, mut state) = make(network, options, true)?;
    state.phase = Phase::Ready;
    let written = folder.write(&state);
    drop(folder);
    let results = written.and_then(|()| run_made(network, options, &state, out, stop, progress));
    let left = leave(&state);
    let results = results?;
    left.map(|()| results)
}

/// Sees that the kernel has every congestion control that the traffic asks for, and recovers from losses as it asks.
fn check_controls(network: &Network) -> Result<(), LabError> {
    let mut seen = BTreeSet::new();
    for traffic in &network.traffic {
        if traffic.recovery.as_deref().is_some_and(|recovery| recovery != "rack") {
            return Err(LabError::OtherRecovery(traffic.name.clone()));
        }
        if let Some(name) = traffic.congestion_control.as_ref().filter(|name| seen.insert(name.as_str())) {
            check_congestion_control(name)
                .map_err(|source| LabError::Traffic { traffic: traffic.name.clone(), source })?;
        }
    }
    Ok(())
}

fn run_made(
    network: &Arc<Network>,
    options: &UpOptions,
    state: &State,
    out: &Path,
    stop: &StopSignal,
    progress: &mut dyn FnMut(&RunProgress<'_>),
) -> Result<Results, LabError> {
    let before = process_seconds();
    let relay = RelayThread::open(network, state, RelayOptions { busy: options.busy, run: true })?;
    let places = places(options, state, Some(out.to_owned()));
    let stage = Arc::new(Stage::new(network.clone(), places.base.clone()));
    let mut run = Run {
        network,
        stage,
        places,
        functions: Vec::new(),
        commands: Vec::new(),
        agenda: Vec::new(),
        turns: Vec::new(),
        snapshot: Snapshot::default(),
    };
    let (mut threads, mut captures) = (Threads::default(), None);
    let ran = run
        .begin(&relay, out, &mut threads, &mut captures)
        .and_then(|()| run.go(&relay, state, &threads.senders, stop, progress));
    let lasted = run.stage.now().min(nanoseconds(network.duration)).max(0);
    let counters = run
        .functions
        .iter()
        .filter_map(|function| Some((network.node(function.node).name.clone(), function.counters()?)));
    let counters = counters.collect();
    // The relay's last word is that of the end, not of the clearing up behind it.
    let report = relay.finish();
    run.stage.end();
    let mut warnings = run.clear_up(stop.requested());
    if let Some(captures) = captures {
        captures.finish()?;
    }
    ran?;
    for thread in threads.receivers.into_iter().chain(threads.senders) {
        // A panic has been told on standard error.
        let _ = thread.join();
    }
    let node_drops = drops::named(network, run.stage.drops());
    let (mut flows, progress, more) = run.stage.results();
    ideal::add_to(network, &mut flows);
    let source_lateness = run.stage.lateness();
    warnings.extend(more);
    let facts = RunFacts {
        network: network.name.clone(),
        platform: "linux".to_owned(),
        seed: network.seed,
        duration: nanoseconds(network.duration),
        lasted,
        warm_up: nanoseconds(network.warm_up),
        interrupted: stop.requested() && lasted < nanoseconds(network.duration),
        processor_seconds: process_seconds() - before,
        source_lateness,
        ..RunFacts::default()
    };
    Ok(results(
        network,
        facts,
        report,
        warnings,
        Results { flows, progress, functions: counters, node_drops, ..Results::default() },
    ))
}

/// Puts everything into one.
fn results(
    network: &Network,
    mut facts: RunFacts,
    report: RelayReport,
    warnings: Vec<String>,
    more: Results,
) -> Results {
    let directions = network.links.iter().flat_map(|link| [(link, 0), (link, 1)]);
    let measured = |row: usize, counts: Counts| match report.warm.get(row) {
        Some(before) => counts.since(before),
        // It was broken off in the warm-up.
        None if !network.warm_up.is_zero() => counts.since(&counts),
        None => counts,
    };
    facts.packet_hops = report.snapshot.directions.iter().map(|status| status.counts.delivered_packets).sum();
    let rows = directions.zip(&report.snapshot.directions).enumerate();
    let links = rows.map(|(row, ((link, direction), status))| LinkResult {
        link: link.name.clone(),
        from: network.place_name(link.ends[direction]),
        to: network.place_name(link.ends[1 - direction]),
        rate: constant_rate(&link.directions[direction]),
        counts: measured(row, status.counts),
    });
    let links: Vec<LinkResult> = links.collect();
    facts.warnings = report.warnings;
    facts.warnings.extend(warnings);
    facts.late_links = late_links(network, &report.snapshot);
    let lateness = report.snapshot.lateness;
    if lateness.late {
        facts.warnings.push(format!(
            "the relay was late: of 100 packets one left more than {} us after its time, {} us are allowed; the figures \
             are not those of this network. Use a machine with less other work, or slower links",
            lateness.p99 / 1000,
            lateness.allowed / 1000
        ));
    }
    facts.lateness = Some(lateness);
    if let Some(lateness) = facts.source_lateness.filter(|lateness| lateness.late) {
        facts.warnings.push(format!(
            "the sources of traffic were late: of 100 flows and datagrams one began more than {} us after its time, {} us \
             are allowed; the traffic is not that of this network. Use a machine with less other work, or less traffic",
            lateness.p99 / 1000,
            lateness.allowed / 1000
        ));
    }
    Results { run: facts, links, samples: report.samples, ..more }
}

/// Links of which a direction was late, in the network's order.
fn late_links(network: &Network, snapshot: &Snapshot) -> Vec<String> {
    let of_links = network.links.iter().zip(snapshot.directions.chunks(2));
    let late = of_links.filter(|(_, directions)| directions.iter().any(DirectionStatus::is_late));
    late.map(|(link, _)| link.name.clone()).collect()
}

/// What happens at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start(NodeIndex),
    Restart(NodeIndex),
    Routes,
    Command(NodeIndex, usize),
}

/// The threads of the traffic.
#[derive(Default)]
struct Threads {
    receivers: Vec<JoinHandle<()>>,
    senders: Vec<JoinHandle<()>>,
}

struct Run<'a> {
    network: &'a Arc<Network>,
    stage: Arc<Stage>,
    places: Places,
    functions: Vec<RunningFunction>,
    /// Commands that run: the node, the number, and the process.
    commands: Vec<(NodeIndex, usize, Child)>,
    /// By time, the next one last.
    agenda: Vec<(i64, Event)>,
    /// Changes of routes, the next one last.
    turns: Vec<Turn>,
    snapshot: Snapshot,
}

impl Run<'_> {
    /// Gets everything ready, and sets the time of the start: in a moment, when all threads wait for it.
    fn begin(
        &mut self,
        relay: &RelayThread,
        out: &Path,
        threads: &mut Threads,
        captures: &mut Option<Captures>,
    ) -> Result<(), LabError> {
        threads.receivers = traffic::start_receivers(&self.stage)?;
        self.prepare()?;
        let origin = monotonic_ns() + LEAD;
        if !self.network.captures.is_empty() {
            *captures = Some(Captures::start(self.network, out)?);
        }
        self.stage.begin(origin);
        relay.begin(RelayStart {
            origin: Time::from_nanoseconds(origin),
            captured: captures.as_ref().map(Captures::sender),
        });
        threads.senders = traffic::start_senders(&self.stage);
        Ok(())
    }

    /// From the start to the end.
    fn go(
        &mut self,
        relay: &RelayThread,
        state: &State,
        senders: &[JoinHandle<()>],
        stop: &StopSignal,
        progress: &mut dyn FnMut(&RunProgress<'_>),
    ) -> Result<(), LabError> {
        let end = nanoseconds(self.network.duration);
        let (mut told, mut idle_since) = (0, None);
        let mut warming = !self.network.warm_up.is_zero();
        loop {
            let now = self.stage.now();
            if warming && now >= nanoseconds(self.network.warm_up) {
                warming = false;
                self.stage.end_warm_up();
            }
            if now >= end || stop.requested() {
                break;
            }
            while self.agenda.last().is_some_and(|(at, _)| *at <= self.stage.now()) {
                if let Some((_, event)) = self.agenda.pop() {
                    self.perform(event)?;
                }
            }
            if now >= told {
                told = now + TURN;
                if let Some(snapshot) = relay.shared.take_snapshot() {
                    self.snapshot = snapshot;
                }
                let status = Status { relay: self.snapshot.clone(), ended: Vec::new() };
                let _ = write_json(&folder(&state.name).join("status.json"), &status);
                let passed = Duration::from_nanos(now.max(0).unsigned_abs());
                progress(&RunProgress { now: passed, all: self.network.duration, relay: &self.snapshot });
                if !self.is_idle(senders, now) {
                    idle_since = None;
                } else if now - *idle_since.get_or_insert(now) >= GRACE {
                    break;
                }
            }
            let next = self.agenda.last().map_or(i64::MAX, |(at, _)| *at).min(told).min(end);
            let left = (next - self.stage.now()).clamp(100_000, 20_000_000);
            sleep(Duration::from_nanos(left.unsigned_abs()));
        }
        Ok(())
    }

    /// Whether nothing is left to happen, as far as can be known: traffic there was, and all of it is complete.
    fn is_idle(&mut self, senders: &[JoinHandle<()>], now: i64) -> bool {
        let changes_left = self.network.changes.last().is_some_and(|change| change.at.nanoseconds() > now);
        !self.network.traffic.is_empty()
            && !changes_left
            && self.agenda.is_empty()
            && self.commands.iter_mut().all(|(_, _, child)| !matches!(child.try_wait(), Ok(None)))
            && senders.iter().all(JoinHandle::is_finished)
            && self.stage.all_complete()
    }

    /// Starts the functions that send nothing, and writes down what is to happen when.
    fn prepare(&mut self) -> Result<(), LabError> {
        let network = self.network.clone();
        for (index, node) in network.nodes() {
            if function_of(node).is_some() {
                let application = self.application(index);
                match application.sends {
                    None => self.start(index)?,
                    Some(_) if application.receives.is_some() || self.places.ahead => {
                        self.agenda.push((0, Event::Start(index)));
                    }
                    Some(number) => {
                        self.agenda.push((network.traffic[number].start.nanoseconds(), Event::Start(index)))
                    }
                }
            }
            if let NodeKind::Host { commands, .. } = &node.kind {
                let events = commands.iter().enumerate();
                self.agenda
                    .extend(events.map(|(number, command)| (command.at.nanoseconds(), Event::Command(index, number))));
            }
        }
        for (number, traffic) in network.traffic.iter().enumerate() {
            if function_of(network.node(traffic.from)).is_some()
                && self.application(traffic.from).sends != Some(number)
                && !matches!(traffic.kind, TrafficKind::Capture { .. })
            {
                self.stage.warn(format!(
                    "traffic `{}` is not sent: on Linux a function sends one flow of kind `bulk`",
                    traffic.name
                ));
            }
        }
        for change in &network.changes {
            match change.what {
                ChangeKind::Restart { node } if function_of(network.node(node)).is_some() => {
                    self.agenda.push((change.at.nanoseconds(), Event::Restart(node)));
                }
                ChangeKind::Restart { node } => self
                    .stage
                    .warn(format!("node `{}` is not restarted: on Linux only functions are", network.node(node).name)),
                ChangeKind::Clock { node, .. } => self.stage.warn(format!(
                    "the clock of node `{}` goes right: on Linux nodes have no clocks of their own",
                    network.node(node).name
                )),
                _ => {}
            }
        }
        self.turns = routing::turns(&network);
        self.agenda.extend(self.turns.iter().map(|turn| (turn.at.nanoseconds(), Event::Routes)));
        self.turns.reverse();
        routing::warning(&network).into_iter().for_each(|warning| self.stage.warn(warning));
        self.agenda.sort_by_key(|(at, event)| std::cmp::Reverse((*at, *event)));
        Ok(())
    }

    /// What the application at a function does.
    fn application(&self, node: NodeIndex) -> Application {
        let traffic = &self.network.traffic;
        let sends = |traffic: &weftwire_network::model::Traffic| {
            traffic.from == node && matches!(traffic.kind, TrafficKind::Bulk { .. })
        };
        Application {
            sends: traffic.iter().position(sends),
            receives: traffic.iter().position(|traffic| traffic.to == node && traffic.from != node),
        }
    }

    fn start(&mut self, node: NodeIndex) -> Result<(), LabError> {
        let application = self.application(node);
        let function = RunningFunction::start(self.network, node, &self.places, &application, Some(&self.stage))?;
        self.functions.push(function);
        Ok(())
    }

    fn perform(&mut self, event: Event) -> Result<(), LabError> {
        match event {
            Event::Start(node) => self.start(node),
            Event::Restart(node) => {
                if let Some(at) = self.functions.iter().position(|function| function.node == node) {
                    self.functions.swap_remove(at).stop();
                }
                self.start(node)
            }
            Event::Routes => self.turns.pop().map_or(Ok(()), Turn::perform),
            Event::Command(node, number) => {
                let child = self.command(node, number)?;
                self.commands.push((node, number, child));
                Ok(())
            }
        }
    }

    /// Starts a command of a host, with its output in `NODE.NUMBER.log`, counted from 1.
    fn command(&self, node: NodeIndex, number: usize) -> Result<Child, LabError> {
        let host = self.network.node(node);
        let words = match &host.kind {
            NodeKind::Host { commands, .. } => &commands[number].words,
            _ => return Err(LabError::NoHost(host.name.clone())),
        };
        let [program, arguments @ ..] = words.as_slice() else {
            return Err(LabError::EmptyCommand { node: host.name.clone(), number: number + 1 });
        };
        let path = self.places.out.join(format!("{}.{}.log", host.name, number + 1));
        let failed = |error| LabError::system(format!("write {}", path.display()), error);
        let log = File::create(&path).map_err(failed)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone().map_err(failed)?).stderr(log);
        start_in(&namespace_name(&self.network.name, &host.name), command, self.places.user)
    }

    /// Ends all processes. Commands that were still running are no failures.
    fn clear_up(&mut self, interrupted: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        for (node, number, mut child) in self.commands.drain(..) {
            let name = format!("command {} of node `{}`", number + 1, self.network.node(node).name);
            match child.try_wait() {
                Ok(Some(status)) if status.success() || interrupted => {}
                Ok(Some(status)) => warnings.push(format!("{name} failed: {status}")),
                _ => drop(end(&mut child, END)),
            }
        }
        self.functions.drain(..).for_each(RunningFunction::stop);
        warnings
    }
}
