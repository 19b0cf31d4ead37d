//! The process that makes a network, holds its relay and everything else that runs, and takes it down.

use crate::build::{self, namespace_name, plan, refuse_taken, remove};
use crate::error::LabError;
use crate::functions::{Application, Places, RunCommand, RunningFunction, base_of, function_of};
use crate::relay::{Relay, RelayOptions, RelayReport, RelayStart, Shared, Snapshot};
use crate::state::{Folder, Phase, State, folder, read, write_json};
use crate::traffic;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;
use weftwire_core::Time;
use weftwire_linux::namespace::NetworkNamespace;
use weftwire_linux::privileges::{User, is_root};
use weftwire_linux::signals::StopSignal;
use weftwire_linux::system::monotonic_ns;
use weftwire_network::Network;

/// How often the status is written and the end looked for.
const TURN: Duration = Duration::from_millis(200);

/// How a network is made.
#[derive(Clone, Debug)]
pub struct UpOptions {
    /// The network's file, with its whole path.
    pub file: PathBuf,
    /// Who knows how functions run.
    pub runner: Arc<dyn RunCommand>,
    /// The relay never sleeps.
    pub busy: bool,
    /// Who runs the commands of nodes; `None`: who makes the network, and that is root.
    pub user: Option<User>,
    /// Functions that send start with the run and connect at once; what they send they send from their traffic's start on. Otherwise
    /// their processes start then.
    pub ahead: bool,
}

/// What `weft status` reads.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// The relay.
    pub relay: Snapshot,
    /// Nodes whose function has ended by itself.
    pub ended: Vec<String>,
}

/// Makes a network, tells that it is `ready`, and holds it until it is asked to stop; then takes it down, unless a
/// `weft down` is about to. To be the last thing that a process does.
///
/// # Errors
/// What could not be made; nothing is left of it then. Or what `ready` says: then, too, nothing is left.
pub fn hold(
    network: &Arc<Network>,
    options: &UpOptions,
    stop: &StopSignal,
    ready: impl FnOnce(&State) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let (folder, mut state) = make(network, options, false)?;
    let mut held = match Held::start(network, options, &state) {
        Ok(held) => held,
        Err(error) => {
            undo(folder, &state);
            return Err(error);
        }
    };
    state.phase = Phase::Ready;
    held.write_status();
    let told = folder.write(&state).and_then(|()| ready(&state));
    if let Err(error) = told {
        held.stop();
        undo(folder, &state);
        return Err(error);
    }
    drop(folder);
    while !stop.requested() {
        sleep(TURN);
        held.write_status();
    }
    held.stop();
    leave(&state)
}

/// Makes all that the kernel holds. Nothing is left of it after an error.
pub(crate) fn make(network: &Network, options: &UpOptions, foreground: bool) -> Result<(Folder, State), LabError> {
    if !is_root() {
        return Err(LabError::NoRoot);
    }
    let name = &network.name;
    let folder = Folder::lock(name)?;
    if let Some(there) = read(name) {
        return Err(match there.supervisor.is_alive() {
            true => LabError::AlreadyUp { name: name.clone(), file: there.file },
            false => LabError::LeftBehind(name.clone()),
        });
    }
    let state = plan(network, &options.file, foreground)?;
    if let Err(error) = refuse_taken(&state) {
        folder.remove()?;
        return Err(error);
    }
    // From here on a crash leaves something that `weft down` finds in the state.
    match folder.write(&state).and_then(|()| build::build(network, &state)) {
        Ok(()) => Ok((folder, state)),
        Err(error) => {
            undo(folder, &state);
            Err(error)
        }
    }
}

/// Removes what was made so far. What can't be removed now stays in the state, for `weft down`.
fn undo(folder: Folder, state: &State) {
    if remove(state).is_ok() {
        let _ = folder.remove();
    }
}

/// Takes the network down at the end of its supervisor, unless somebody else is at it.
pub(crate) fn leave(state: &State) -> Result<(), LabError> {
    match Folder::try_lock(&folder(&state.name)) {
        Ok(Some(folder)) => {
            remove(state)?;
            folder.remove()
        }
        _ => Ok(()),
    }
}

/// Takes the network `name` down, whoever holds it and in whatever state it is. `false`: there is none.
///
/// # Errors
/// No permission, or something can't be removed.
pub fn down(name: &str) -> Result<bool, LabError> {
    if !folder(name).exists() {
        return Ok(false);
    }
    if !is_root() {
        return Err(LabError::NoRootToRemove);
    }
    let folder = Folder::lock(name)?;
    if let Some(state) = read(name) {
        // One in the foreground has results to write first.
        state.supervisor.end(Duration::from_secs(if state.foreground { 30 } else { 5 }));
        remove(&state)?;
    }
    folder.remove()?;
    Ok(true)
}

/// The relay on its thread.
pub(crate) struct RelayThread {
    pub(crate) shared: Arc<Shared>,
    start: Sender<RelayStart>,
    thread: JoinHandle<RelayReport>,
}

impl RelayThread {
    /// Opens the relay in the hub; it waits for its start.
    pub(crate) fn open(network: &Arc<Network>, state: &State, options: RelayOptions) -> Result<RelayThread, LabError> {
        let shared = Arc::new(Shared::default());
        let (network, hub, theirs) = (network.clone(), state.hub.clone(), shared.clone());
        let (opened, is_open): (Sender<Result<(), LabError>>, Receiver<_>) = channel();
        let (start, started) = channel();
        let thread = std::thread::spawn(move || {
            let entered = NetworkNamespace::open(&hub).and_then(|entry| entry.enter());
            let entered = entered.map_err(|error| LabError::system(format!("enter the namespace {hub}"), error));
            let nothing = || RelayReport {
                snapshot: Snapshot::default(),
                samples: Vec::new(),
                warm: Vec::new(),
                warnings: Vec::new(),
            };
            match entered.and_then(|()| Relay::open(&network, options)) {
                Ok(relay) => {
                    // Whoever opened it may have given up since.
                    let _ = opened.send(Ok(()));
                    started.recv().map_or_else(|_| nothing(), |start| relay.run(start, &theirs))
                }
                Err(error) => {
                    let _ = opened.send(Err(error));
                    nothing()
                }
            }
        });
        is_open.recv().map_err(|_| LabError::RelayEnded).flatten()?;
        Ok(RelayThread { shared, start, thread })
    }

    /// Lets it begin.
    pub(crate) fn begin(&self, start: RelayStart) {
        // It waits for nothing else.
        let _ = self.start.send(start);
    }

    /// Ends it and gives what it leaves.
    pub(crate) fn finish(self) -> RelayReport {
        self.shared.stop();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// What runs in a network that is held.
struct Held {
    network: Arc<Network>,
    state: State,
    relay: RelayThread,
    functions: Vec<RunningFunction>,
    over: Arc<AtomicBool>,
    status: Status,
}

impl Held {
    fn start(network: &Arc<Network>, options: &UpOptions, state: &State) -> Result<Held, LabError> {
        let relay = RelayThread::open(network, state, RelayOptions { busy: options.busy, run: false })?;
        relay.begin(RelayStart { origin: Time::from_nanoseconds(monotonic_ns()), captured: None });
        let (network, state) = (network.clone(), state.clone());
        let (functions, over, status) = (Vec::new(), Arc::default(), Status::default());
        let mut held = Held { network, state, relay, functions, over, status };
        match held.start_nodes(options) {
            Ok(()) => Ok(held),
            Err(error) => {
                held.stop();
                Err(error)
            }
        }
    }

    fn start_nodes(&mut self, options: &UpOptions) -> Result<(), LabError> {
        let network = self.network.clone();
        for (index, node) in network.nodes() {
            if let Some(mut machine) = traffic::open_machine(&network, index, node)? {
                let (over, namespace) = (self.over.clone(), namespace_name(&network.name, &node.name));
                std::thread::spawn(move || {
                    // Its sockets are in the namespace already; its own is entered so that it shows there.
                    let _ = NetworkNamespace::open(&namespace).and_then(|entry| entry.enter());
                    while !over.load(Ordering::Relaxed) {
                        machine.turn(|_, _, _| {}, |_| {});
                    }
                });
            }
        }
        let places = places(options, &self.state, None);
        for (index, node) in network.nodes() {
            if function_of(node).is_some() {
                let function = RunningFunction::start(&network, index, &places, &Application::default(), None)?;
                self.functions.push(function);
            }
        }
        Ok(())
    }

    fn write_status(&mut self) {
        if let Some(snapshot) = self.relay.shared.take_snapshot() {
            self.status.relay = snapshot;
        }
        let network = &self.network;
        let ended = self.functions.iter_mut().filter_map(|function| {
            let ended = function.has_ended();
            ended.then(|| network.node(function.node).name.clone())
        });
        self.status.ended = ended.collect();
        // The folder may be on its way out.
        let _ = write_json(&folder(&self.state.name).join("status.json"), &self.status);
    }

    fn stop(self) {
        self.over.store(true, Ordering::Relaxed);
        self.functions.into_iter().for_each(RunningFunction::stop);
        self.relay.finish();
    }
}

/// Where functions find and leave their files.
pub(crate) fn places(options: &UpOptions, state: &State, out: Option<PathBuf>) -> Places {
    let state = folder(&state.name);
    Places {
        runner: options.runner.clone(),
        user: options.user,
        ahead: options.ahead,
        base: base_of(&options.file),
        out: out.unwrap_or_else(|| state.clone()),
        state,
    }
}
