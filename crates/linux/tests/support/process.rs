//! The process under test: this test program started again, as a bridge that runs like `weft run` does.

use super::bridge::Bridge;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;
use weftwire_linux::PortSpec;
use weftwire_linux::control::ControlServer;
use weftwire_linux::privileges::{Account, drop_privileges};
use weftwire_linux::recorder::Recorder;
use weftwire_linux::run_loop::{OpenPort, Run, RunOptions};
use weftwire_linux::signals::StopSignal;
use weftwire_testbed::Namespace;

/// No process of these tests lives longer, whatever happens.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A running bridge.
pub struct BridgeProcess {
    child: Child,
    stderr: BufReader<ChildStderr>,
    pub control: PathBuf,
}

impl BridgeProcess {
    /// Starts a bridge between m1 and m2 in `middle`; `mode` is `socket` or `ring`.
    pub fn start(middle: &Namespace, mode: &str) -> BridgeProcess {
        BridgeProcess::start_with_trace(middle, mode, None)
    }

    pub fn start_with_trace(middle: &Namespace, mode: &str, trace: Option<&Path>) -> BridgeProcess {
        let control = std::env::temp_dir().join(format!("{}.d", middle.name())).join("control.sock");
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", middle.name()])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "bridge_process", "--nocapture", "--test-threads=1"])
            .env("WEFT_BRIDGE", format!("1=m1,{mode} 2=m2,{mode}"))
            .env("WEFT_CONTROL", &control)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(trace) = trace {
            command.env("WEFT_TRACE", trace);
        }
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while line.trim() != "READY" {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "the bridge ended before it was ready");
        }
        BridgeProcess { child, stderr, control }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What the kernel says of the thread that runs the bridge (`/proc/PID/status`). Here that is not the process's
    /// first thread, as the test harness has one of its own; capabilities belong to threads.
    pub fn status(&self) -> String {
        std::fs::read_dir(format!("/proc/{}/task", self.child.id()))
            .unwrap()
            .map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).unwrap())
            .find(|status| status.starts_with("Name:\tbridge_process"))
            .expect("the harness names threads by their test")
    }

    /// Sends a signal and returns the exit status and what was written to standard error.
    pub fn stop(mut self, signal: i32) -> (ExitStatus, String) {
        // SAFETY: only numbers; the child has not been waited for, so its number is its own.
        unsafe { libc::kill(self.child.id() as i32, signal) };
        let mut text = String::new();
        self.stderr.read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap(), text)
    }
}

impl Drop for BridgeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(directory) = self.control.parent() {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// What the started process does; returns at once in the test program proper.
pub fn bridge_main() {
    let Ok(ports) = std::env::var("WEFT_BRIDGE") else { return };
    let control = PathBuf::from(std::env::var_os("WEFT_CONTROL").unwrap());
    let account = Account::choose(None).unwrap();
    let user = account.user();
    let directory = control.parent().unwrap();
    std::fs::create_dir_all(directory).unwrap();
    std::os::unix::fs::chown(directory, Some(user.uid), Some(user.gid)).unwrap();

    let stop = StopSignal::install().unwrap();
    let ports: Vec<OpenPort> = ports
        .split(' ')
        .map(|text| {
            let spec: PortSpec = text.parse().unwrap();
            let device = spec.device.open().unwrap();
            OpenPort { port: spec.port, name: spec.device.interface().to_owned(), device }
        })
        .collect();
    let mut recorder = Recorder::new();
    if let Some(trace) = std::env::var_os("WEFT_TRACE") {
        recorder.set_trace(std::path::Path::new(&trace), File::create(&trace).unwrap());
    }
    let control = Some(ControlServer::open(&control, "bridge", account.operator()).unwrap());
    drop_privileges(Some(user)).unwrap();
    eprintln!("READY");

    let options = RunOptions { duration: Some(TIME_LIMIT), ..RunOptions::default() };
    let (application, messages) = (&mut (), Box::new(std::io::stderr()));
    let run = Run {
        ports,
        application,
        recorder,
        control,
        commands: None,
        flows: Vec::new(),
        succession: None,
        stop,
        messages,
        options,
    };
    let report = run.run(&mut Bridge::new()).unwrap();
    eprint!("{report}");
    std::process::exit(0);
}
