//! Functions on nodes: `weft run` in the node's namespace, one process each.

use crate::build::{namespace_name, next_hop, port_name};
use crate::process::{answer_at_once, end, start_in};
use crate::traffic::{Ledger, Stage, pattern};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};
use weftwire_core::Port;
use weftwire_core::inspect::Counters;
use weftwire_linux::LinuxError;
use weftwire_linux::control::{Request, Response};
use weftwire_linux::control_client::ControlClient;
use weftwire_linux::privileges::User;
use weftwire_network::Network;
use weftwire_network::model::{FunctionNode, Node, NodeIndex, NodeKind, Traffic, TrafficKind};

/// How long a function has to get ready, and to end.
const START: Duration = Duration::from_secs(20);
const END: Duration = Duration::from_secs(2);

/// Where functions find and leave their files.
pub(crate) struct Places {
    /// The program `weft`.
    pub(crate) program: PathBuf,
    /// Who runs the commands of nodes; `None`: root.
    pub(crate) user: Option<User>,
    /// Further folders that programs may include files of.
    pub(crate) includes: Vec<PathBuf>,
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
    ) -> Result<RunningFunction, LinuxError> {
        let here = network.node(node);
        let Some(function) = function_of(here) else {
            return Err(LinuxError::Network(format!("node `{}` has no function", here.name)));
        };
        let control = places.state.join(format!("{}.sock", here.name));
        let log = places.out.join(format!("{}.function.log", here.name));
        let mut command = Command::new(&places.program);
        let file = places.base.join(&function.image);
        match &function.format {
            Some(format) => {
                command.args(["subs", "run"]).arg("--rules").arg(file).arg("--format").arg(places.base.join(format))
            }
            None => {
                let allowed = |folder: &PathBuf| [OsString::from("--allow-includes"), folder.into()];
                command.arg("run").arg(file).args(["--engine", &function.engine]);
                command.args(places.includes.iter().flat_map(allowed))
            }
        };
        for port in 1..=here.ports.len() {
            command.args(["--port", &format!("{port}={}", port_name(Port(port as u16)))]);
        }
        command.args(["--name", &format!("{}.{}", network.name, here.name)]).arg("--control").arg(&control);
        command.args(["--seed", &network.node_seed(node).to_string()]);
        for (name, value) in &function.parameters {
            command.args(["--parameter", &format!("{name}={value}")]);
        }
        if function.trace {
            command.arg("--trace").arg(places.out.join(format!("{}.trace.jsonl", here.name)));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        if let Some(number) = application.sends {
            connect(network, &network.traffic[number], &mut command)?;
            command.stdin(Stdio::piped());
        }
        if application.receives.is_some() {
            command.args(["--receive", "-"]).stdout(Stdio::piped());
        }

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
                File::create(&log).map_err(|error| LinuxError::system(format!("write {}", log.display()), error))?;
            let begun = begun.clone();
            threads.push(std::thread::spawn(move || keep_log(output, file, begun)));
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

    fn wait_until_ready(&mut self) -> Result<(), LinuxError> {
        let deadline = Instant::now() + START;
        while ControlClient::connect(Some(&self.control)).is_err() {
            let ended = self.has_ended();
            if ended || Instant::now() > deadline {
                // What it said is in the log once the thread that reads it has ended.
                end(&mut self.child, END);
                self.threads.drain(..).for_each(|thread| drop(thread.join()));
                let said = std::fs::read_to_string(&self.log).unwrap_or_default();
                let what = if ended { "ended at once" } else { "was not ready after 20 seconds" };
                return Err(LinuxError::Network(format!(
                    "the function of node `{}` {what}; it said: {}",
                    self.name,
                    said.trim()
                )));
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

/// The arguments that open the flow of a traffic.
fn connect(network: &Network, traffic: &Traffic, command: &mut Command) -> Result<(), LinuxError> {
    let address = |node| match network.address(node, traffic.ipv6) {
        std::net::IpAddr::V4(address) => address.to_string(),
        std::net::IpAddr::V6(address) => format!("[{address}]"),
    };
    let (from, to) = (address(traffic.from), address(traffic.to));
    let suffix = match traffic.transport {
        weftwire_network::model::Transport::Udp => "/udp",
        weftwire_network::model::Transport::Tcp => "",
    };
    let connection = format!("{from}:{}-{to}:{}{suffix}", traffic.source_port, traffic.port);
    let Some((own, next)) = next_hop(network, traffic.from, traffic.to) else {
        return Err(LinuxError::Network(format!("traffic `{}`: there is no way from {from} to {to}", traffic.name)));
    };
    command.args(["--connect", &connection, "--send", "-"]);
    command.args(["--local-mac", &own.to_string(), "--gateway-mac", &next.to_string()]);
    Ok(())
}

/// Copies what a function says into its log. Its first line comes just before it opens its connections.
fn keep_log(output: impl Read, mut file: File, mut begun: Option<(Arc<Stage>, usize)>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if line.contains("runs with seed")
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
    while sent < limit && !stage.is_over() && (limit != u64::MAX || stage.now() < traffic.stop) {
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
