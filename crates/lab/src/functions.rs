//! Functions on nodes: a process each, in the node's namespace, by a command that [`RunCommand`] knows.

use crate::build::{namespace_name, next_hop, port_name};
use crate::error::LabError;
use crate::process::{answer_at_once, end, start_in};
use crate::traffic::{Ledger, Stage, pattern};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};
use weftwire_core::inspect::Counters;
use weftwire_core::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use weftwire_core::{Endpoints, Port};
use weftwire_linux::control::{Request, Response};
use weftwire_linux::control_client::ControlClient;
use weftwire_linux::privileges::User;
use weftwire_network::Network;
use weftwire_network::model::{FunctionNode, Node, NodeIndex, NodeKind, Traffic, TrafficKind, Transport};

/// How long a function has to get ready, and to end.
const START: Duration = Duration::from_secs(20);
const END: Duration = Duration::from_secs(2);

/// What runs on a node's ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FunctionProgram {
    /// A machine.
    Machine {
        /// Its image or source.
        file: PathBuf,
        /// Name of the engine.
        engine: String,
        /// Initial values of registers, as text.
        parameters: BTreeMap<String, String>,
    },
    /// A subscription switch.
    Rules {
        /// Its rules.
        file: PathBuf,
        /// The message formats.
        format: PathBuf,
    },
}

/// How a function runs on a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionSettings {
    /// What runs.
    pub program: FunctionProgram,
    /// The interface of each port.
    pub ports: Vec<(Port, String)>,
    /// The run's name.
    pub name: String,
    /// Where its control socket is to be.
    pub control: PathBuf,
    /// The seed of its random numbers and of its hash key.
    pub seed: u64,
    /// Where a trace of its events goes.
    pub trace: Option<PathBuf>,
    /// A connection that it opens at its start. What comes from standard input is sent on it.
    pub opens: Option<Endpoints>,
    /// Whether what its flows deliver goes to standard output.
    pub delivers: bool,
}

/// Who knows the command that runs a function.
pub trait RunCommand: fmt::Debug + Send + Sync {
    /// The command. It runs in the node's namespace, and ends at SIGTERM.
    fn command(&self, settings: &FunctionSettings) -> Command;

    /// Whether the command writes this line on standard error just before the function opens its connections.
    fn begins(&self, line: &str) -> bool;
}

/// Where functions find and leave their files.
pub(crate) struct Places {
    /// Who knows how functions run.
    pub(crate) runner: Arc<dyn RunCommand>,
    /// Who runs the commands of nodes; `None`: root.
    pub(crate) user: Option<User>,
    /// Functions connect ahead of their traffic.
    pub(crate) ahead: bool,
    /// The folder to which the network's file names are relative.
    pub(crate) base: PathBuf,
    /// The network's folder, for control sockets.
    pub(crate) state: PathBuf,
    /// Where traces and logs go.
    pub(crate) out: PathBuf,
}

/// A function that runs.
pub(crate) struct RunningFunction {
    pub(crate) node: NodeIndex,
    name: String,
    child: Child,
    control: PathBuf,
    log: PathBuf,
    threads: Vec<JoinHandle<()>>,
}

/// What the application at a function does.
#[derive(Default)]
pub(crate) struct Application {
    /// The flow that it sends.
    pub(crate) sends: Option<usize>,
    /// The flows that it receives: the bytes of the first are looked at.
    pub(crate) receives: Option<usize>,
}

/// The function of a node.
pub(crate) fn function_of(node: &Node) -> Option<&FunctionNode> {
    match &node.kind {
        NodeKind::Function(function) => Some(function),
        _ => None,
    }
}

impl RunningFunction {
    /// Starts the function of a node and waits until it is ready. `stage` is there when traffic runs.
    pub(crate) fn start(
        network: &Network,
        node: NodeIndex,
        places: &Places,
        application: &Application,
        stage: Option<&Arc<Stage>>,
    ) -> Result<RunningFunction, LabError> {
        let here = network.node(node);
        let Some(function) = function_of(here) else {
            return Err(LabError::NoFunction(here.name.clone()));
        };
        let control = places.state.join(format!("{}.sock", here.name));
        let log = places.out.join(format!("{}.function.log", here.name));
        let settings = FunctionSettings {
            program: program(function, &places.base),
            ports: (1..=here.ports.len()).map(|port| Port(port as u16)).map(|port| (port, port_name(port))).collect(),
            name: format!("{}.{}", network.name, here.name),
            control: control.clone(),
            seed: network.node_seed(node),
            trace: function.trace.then(|| places.out.join(format!("{}.trace.jsonl", here.name))),
            opens: application.sends.map(|number| connection(network, &network.traffic[number])).transpose()?,
            delivers: application.receives.is_some(),
        };
        let mut command = places.runner.command(&settings);
        let pipe = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
        command.stdin(pipe(settings.opens.is_some())).stdout(pipe(settings.delivers)).stderr(Stdio::piped());

        // SAFETY: one system call, and nothing is allocated.
        unsafe {
            command.pre_exec(|| {
                answer_at_once();
                Ok(())
            });
        }
        let mut child = start_in(&namespace_name(&network.name, &here.name), command, None)?;
        let mut threads = Vec::new();
        let begun = application.sends.zip(stage).map(|(number, stage)| (stage.clone(), number));
        if let Some(output) = child.stderr.take() {
            let file =
                File::create(&log).map_err(|error| LabError::system(format!("write {}", log.display()), error))?;
            let (runner, begun) = (places.runner.clone(), begun.clone());
            threads.push(std::thread::spawn(move || keep_log(output, file, &*runner, begun)));
        }
        if let (Some(input), Some((stage, number))) = (child.stdin.take(), begun) {
            threads.push(std::thread::spawn(move || feed(input, &stage, number)));
        }
        if let (Some(output), Some(number), Some(stage)) = (child.stdout.take(), application.receives, stage) {
            let stage = stage.clone();
            threads.push(std::thread::spawn(move || take(output, &stage, number)));
        }
        let mut running = RunningFunction { node, name: here.name.clone(), child, control, log, threads };
        running.wait_until_ready()?;
        Ok(running)
    }

    fn wait_until_ready(&mut self) -> Result<(), LabError> {
        let deadline = Instant::now() + START;
        while ControlClient::connect(Some(&self.control)).is_err() {
            let ended = self.has_ended();
            if ended || Instant::now() > deadline {
                // What it said is in the log once the thread that reads it has ended.
                end(&mut self.child, END);
                self.threads.drain(..).for_each(|thread| drop(thread.join()));
                let said = std::fs::read_to_string(&self.log).unwrap_or_default();
                let what = if ended { "ended at once" } else { "was not ready after 20 seconds" };
                return Err(LabError::FunctionFailed { node: self.name.clone(), what, said: said.trim().to_owned() });
            }
            sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Whether the process has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The function's counters, if it still answers.
    pub(crate) fn counters(&self) -> Option<Counters> {
        match ControlClient::connect(Some(&self.control)).ok()?.ask(&Request::Counters).ok()? {
            Response::Counters(counters) => Some(counters.function),
            _ => None,
        }
    }

    /// Ends it.
    pub(crate) fn stop(mut self) {
        end(&mut self.child, END);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
        // It has dropped its privileges, so it could not do so itself.
        let _ = std::fs::remove_file(&self.control);
    }
}

/// What a node's function is, with files relative to `base`.
fn program(function: &FunctionNode, base: &Path) -> FunctionProgram {
    let file = base.join(&function.image);
    match &function.format {
        Some(format) => FunctionProgram::Rules { file, format: base.join(format) },
        None => {
            FunctionProgram::Machine { file, engine: function.engine.clone(), parameters: function.parameters.clone() }
        }
    }
}

/// The connection of a traffic's flow, seen from its sender.
fn connection(network: &Network, traffic: &Traffic) -> Result<Endpoints, LabError> {
    let (from, to) = (network.address(traffic.from, traffic.ipv6), network.address(traffic.to, traffic.ipv6));
    let Some((local_mac, remote_mac)) = next_hop(network, traffic.from, traffic.to) else {
        return Err(LabError::NoWay { traffic: traffic.name.clone(), from, to });
    };
    Ok(Endpoints {
        protocol: match traffic.transport {
            Transport::Tcp => PROTOCOL_TCP,
            Transport::Udp => PROTOCOL_UDP,
        },
        local_address: from,
        local_port: traffic.source_port,
        remote_address: to,
        remote_port: traffic.port,
        local_mac,
        remote_mac,
        vlan: None,
    })
}

/// Copies what a function says into its log. The line by which it begins comes just before it opens its connections.
fn keep_log(output: impl Read, mut file: File, runner: &dyn RunCommand, mut begun: Option<(Arc<Stage>, usize)>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if runner.begins(&line)
            && let Some((stage, number)) = begun.take()
        {
            let now = stage.now();
            let traffic = &stage.network.traffic[number];
            stage.ledgers[number].update(0, |flow| {
                flow.start = now;
                flow.bytes = wanted(traffic);
                flow.outcome = "running".to_owned();
            });
        }
        // A full disk ends the log, not the function.
        let _ = writeln!(file, "{line}");
    }
}

/// The bytes that the application wants to send; `None` without a limit.
fn wanted(traffic: &Traffic) -> Option<u64> {
    match traffic.kind {
        TrafficKind::Bulk { bytes } if bytes != u64::MAX => Some(bytes),
        _ => None,
    }
}

/// Writes the application's bytes to a function.
fn feed(mut input: impl Write, stage: &Stage, number: usize) {
    let traffic = &stage.network.traffic[number];
    let (limit, mut sent) = (wanted(traffic).unwrap_or(u64::MAX), 0);
    if !stage.wait_until(traffic.start.nanoseconds()) {
        return;
    }
    while sent < limit && !stage.is_over() && (limit != u64::MAX || stage.now() < traffic.stop.nanoseconds()) {
        let piece = pattern(sent, limit - sent);
        // A function that has ended takes no more.
        if input.write_all(piece).is_err() {
            return;
        }
        sent += piece.len() as u64;
    }
}

/// Reads the bytes that a function delivers, and notes when.
fn take(mut output: impl Read, stage: &Stage, number: usize) {
    let ledger: &Ledger = &stage.ledgers[number];
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count) = output.read(&mut buffer) {
        if count == 0 {
            return;
        }
        ledger.received(0, stage.now(), &buffer[..count], wanted(&stage.network.traffic[number]));
    }
}

/// The folder of a network's files.
pub(crate) fn base_of(file: &Path) -> PathBuf {
    file.parent().map_or_else(PathBuf::new, Path::to_owned)
}
