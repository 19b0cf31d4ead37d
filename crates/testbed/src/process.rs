//! Processes with captured output and a hard time limit.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// How often a condition is looked at again.
const POLL: Duration = Duration::from_millis(2);

/// What a finished process said.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output, as text.
    pub stdout: String,
    /// Its standard error, as text.
    pub stderr: String,
}

/// A process that was started and is killed, with all processes of its group, when this is dropped.
pub struct Running {
    name: String,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    /// Starts `command` in a process group of its own, without standard input.
    ///
    /// # Errors
    ///
    /// If the program cannot be started.
    pub fn start(command: Command) -> Result<Running> {
        Running::start_with(command, Stdio::piped())
    }

    /// The same, with a terminal as its standard error: see [`Terminal::open`](crate::Terminal::open).
    ///
    /// # Errors
    ///
    /// If the program cannot be started.
    pub fn start_on(command: Command, terminal: OwnedFd) -> Result<Running> {
        Running::start_with(command, terminal.into())
    }

    fn start_with(mut command: Command, errors: Stdio) -> Result<Running> {
        let name = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).process_group(0);
        // Shells make what they start in the background ignore Ctrl-C, which is inherited.
        // SAFETY: `signal` may be called between fork and exec; it touches no memory.
        unsafe {
            command.pre_exec(|| match libc::signal(libc::SIGINT, libc::SIG_DFL) {
                libc::SIG_ERR => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Ok(Running { name, child, stdout, stderr })
    }

    /// Waits until this `weft` has the control socket of a run of this name, which it opens behind everything else, or has ended. Gives the
    /// socket's path.
    ///
    /// # Errors
    ///
    /// If it does neither within a minute.
    pub fn wait_for_control(&mut self, name: &str) -> Result<PathBuf> {
        let socket = Path::new("/run/weft/runs").join(name).join("control.sock");
        wait_for("weft to begin", Duration::from_secs(60), || !self.is_running() || socket.exists())?;
        Ok(socket)
    }

    /// The process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the process to end by itself.
    ///
    /// # Errors
    ///
    /// If it has not ended after `limit`; it is killed then, and the error says what it had printed.
    pub fn wait(mut self, limit: Duration) -> Result<Output> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(self.output(status));
            }
            if Instant::now() > deadline {
                self.signal(libc::SIGKILL);
                let status = self.child.wait()?;
                let Output { stdout, stderr, .. } = self.output(status);
                bail!("{} has not ended within {limit:?}\n{stdout}{stderr}", self.name);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Asks the process to end (SIGTERM) and waits for it, at most 10 seconds.
    ///
    /// # Errors
    ///
    /// If it does not end.
    pub fn stop(mut self) -> Result<Output> {
        self.signal(libc::SIGTERM);
        self.wait(Duration::from_secs(10))
    }

    /// Interrupts the process as Ctrl-C does (SIGINT) and waits for it, at most 10 seconds.
    ///
    /// # Errors
    ///
    /// If it does not end.
    pub fn interrupt(mut self) -> Result<Output> {
        self.signal(libc::SIGINT);
        self.wait(Duration::from_secs(10))
    }

    /// Makes two requests to end (SIGINT, SIGTERM) reach the process at once: it does nothing between them.
    ///
    /// # Errors
    ///
    /// If it does not end within 10 seconds.
    pub fn interrupt_twice(mut self) -> Result<Output> {
        for signal in [libc::SIGSTOP, libc::SIGINT, libc::SIGTERM, libc::SIGCONT] {
            self.signal(signal);
        }
        self.wait(Duration::from_secs(10))
    }

    /// Keeps the process from running for so long (SIGSTOP, SIGCONT).
    pub fn pause(&mut self, time: Duration) {
        self.signal(libc::SIGSTOP);
        std::thread::sleep(time);
        self.signal(libc::SIGCONT);
    }

    /// Kills the process and its group without any chance to say goodbye (SIGKILL).
    pub fn kill(self) {}

    /// Signals the process and its group, unless it has ended already.
    fn signal(&mut self, signal: i32) {
        if self.is_running()
            && let Ok(group) = i32::try_from(self.child.id())
        {
            // SAFETY: killpg only takes numbers. The child has not been waited for, so that its number is still its
            // own; it leads the group of that number.
            unsafe { libc::killpg(group, signal) };
        }
    }

    fn output(&mut self, status: ExitStatus) -> Output {
        let text = |reader: Option<JoinHandle<String>>| reader.and_then(|it| it.join().ok()).unwrap_or_default();
        Output { status, stdout: text(self.stdout.take()), stderr: text(self.stderr.take()) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        // The process is killed; that it cannot be waited for would only mean that somebody else did.
        let _ = self.child.wait();
    }
}

/// Reads a stream to its end beside the process, so that a full pipe never stops it.
fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A stream that breaks off is as long as it is.
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Runs `command` to its end and gives its standard output.
///
/// # Errors
///
/// If it cannot be started, fails, or has not ended after `limit`. The error holds what it printed.
pub fn run(command: Command, limit: Duration) -> Result<String> {
    let name = format!("{command:?}");
    let output = Running::start(command)?.wait(limit)?;
    if !output.status.success() {
        bail!("{name}: {}\n{}{}", output.status, output.stdout, output.stderr);
    }
    Ok(output.stdout)
}

/// Waits until `condition` holds.
///
/// # Errors
///
/// If it does not hold after `limit`; `what` names what was waited for.
pub fn wait_for(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) -> Result<()> {
    let deadline = Instant::now() + limit;
    while !condition() {
        if Instant::now() > deadline {
            bail!("waited {limit:?} in vain for {what}");
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// The bytes of memory that process `pid` holds now (`VmRSS`).
///
/// # Errors
///
/// If there is no such process.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmRSS:")
}

/// The most bytes of memory that process `pid` ever held at once (`VmHWM`).
///
/// # Errors
///
/// If there is no such process.
pub fn peak_resident_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmHWM:")
}

/// Seconds of processors that this process and its children that have ended have used, with the kernel's work for them.
pub fn processor_seconds() -> f64 {
    let used = [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].map(|who| {
        // SAFETY: plain data for which all zeros is valid; the kernel writes one `rusage`.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    });
    used.iter().sum()
}

fn status_bytes(pid: u32, field: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix(field)?.split_whitespace().next()?.parse().ok());
    kibibytes.map(|kibibytes: u64| kibibytes * 1024).with_context(|| format!("{path} has no {field}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_is_captured_also_when_it_fills_the_pipe() {
        let output = run(shell("head -c 1000000 /dev/zero | tr '\\0' x"), Duration::from_secs(10)).unwrap();
        assert_eq!(output.len(), 1_000_000);
    }

    #[test]
    fn a_failure_says_what_was_printed() {
        let error = run(shell("echo broken >&2; exit 3"), Duration::from_secs(10)).unwrap_err().to_string();
        assert!(error.contains("broken") && error.contains('3'), "{error}");
    }

    #[test]
    fn the_time_limit_kills_the_whole_group() {
        let started = Instant::now();
        let error = run(shell("sleep 60 & sleep 60"), Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.contains("has not ended"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let process = Running::start(shell("sleep 60")).unwrap();
        let path = format!("/proc/{}", process.pid());
        assert!(std::path::Path::new(&path).exists());
        drop(process);
        assert!(!std::path::Path::new(&path).exists());
    }

    #[test]
    fn own_memory_is_known() {
        let now = resident_bytes(std::process::id()).unwrap();
        assert!(now > 100_000 && now <= peak_resident_bytes(std::process::id()).unwrap());
    }
}
