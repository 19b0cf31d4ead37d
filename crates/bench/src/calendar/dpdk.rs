//! DPDK's `rte_timer` as a peer: a program in C that is built where DPDK is installed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};

/// The compiled program `benches/dpdk/timers.c`, in a folder that goes with it.
pub struct Dpdk {
    folder: PathBuf,
}

impl Dpdk {
    /// Compiles the program; says why if it can't be.
    pub fn build() -> Option<Dpdk> {
        let built = Dpdk::compile();
        if let Err(error) = &built {
            eprintln!("SKIPPED: rte_timer needs cc, pkg-config and libdpdk-dev: {error:#}");
        }
        built.ok()
    }

    fn compile() -> Result<Dpdk> {
        Ok(Dpdk { folder: crate::dpdk::compile("timers")? })
    }

    fn program(&self) -> PathBuf {
        self.folder.join("timers")
    }

    /// Starts the program on a case that it knows; `None` for others.
    pub fn start(&self, case: &str, timers: u32) -> Result<Option<Timers>> {
        if !["arm", "cancel", "expire"].contains(&case) || timers > 1_000_000 {
            return Ok(None);
        }
        let mut command = Command::new(self.program());
        command.args([case, &timers.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start benches/dpdk/timers.c")?;
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        let mut timers = Timers { child, input, output, bytes: 0 };
        timers.bytes = timers.line()?.trim_start_matches("ready").trim().parse()?;
        Ok(Some(timers))
    }
}

impl Drop for Dpdk {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The program, with timers set.
pub struct Timers {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    /// Bytes of a timer.
    pub bytes: u32,
}

impl Timers {
    /// Does so many pairs of operations; the nanoseconds they took.
    pub fn pairs(&mut self, count: u64) -> Result<f64> {
        let input = self.input.as_mut().context("no standard input")?;
        writeln!(input, "{count}").context("benches/dpdk/timers.c has ended")?;
        Ok(self.line()?.trim().parse()?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.as_mut().context("no standard output")?.read_line(&mut line)?;
        Ok(line)
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        // It ends at the end of its input.
        self.input = None;
        _ = self.child.wait();
    }
}
