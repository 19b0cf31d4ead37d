//! ns-3 as a peer: of the simulator, with the same overloaded dumbbell in both; of the TCP in XL, as a host in real time.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::process::run;

/// Number of flows; each sends a quarter of the bottleneck's rate.
const FLOWS: u64 = 6;
/// Length of every frame in bytes.
const FRAME: u64 = 1000;
/// Libraries of ns-3 that the programs use. Debian's pkg-config files name others than are there.
const LIBRARIES: [&str; 7] = [
    "-lns3-applications",
    "-lns3-fd-net-device",
    "-lns3-point-to-point",
    "-lns3-internet",
    "-lns3-traffic-control",
    "-lns3-network",
    "-lns3-core",
];

/// The compiled program `benches/ns3/overload.cc`.
pub struct Ns3 {
    program: PathBuf,
}

/// What it measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Overload {
    /// Datagrams that each flow's receiver got.
    pub received: Vec<u64>,
    /// Datagrams dropped in front of the bottleneck.
    pub drops: u64,
    /// Mean number of packets waiting, over time; 0 if it was not measured.
    pub queue_mean: f64,
    /// Most packets waiting.
    pub queue_max: u64,
    /// Processor time of the simulation alone, without its construction.
    pub processor_seconds: f64,
}

impl Ns3 {
    /// Compiles the program into `folder`.
    ///
    /// # Errors
    ///
    /// If the compiler refuses it, for example because ns-3's headers are not there.
    pub fn build(folder: &Path) -> Result<Ns3> {
        Ok(Ns3 { program: ns3_program("overload", folder)? })
    }

    /// Simulates `seconds` with a bottleneck of `rate` bits per second; `measure` follows its queue, which costs time.
    ///
    /// # Errors
    ///
    /// If it fails or has not ended after 10 minutes.
    pub fn overload(&self, rate: u64, seconds: u64, measure: bool) -> Result<Overload> {
        let mut command = Command::new(&self.program);
        command.args([rate.to_string(), seconds.to_string(), u8::from(measure).to_string()]);
        let text = run(command, Duration::from_secs(600))?;
        serde_json::from_str(&text).with_context(|| format!("not what was expected of ns-3: {text}"))
    }
}

/// Compiles a program of `benches/ns3` into `folder`, unless it is there. Its source says how it is called.
///
/// # Errors
///
/// As [`Ns3::build`].
pub fn ns3_program(name: &str, folder: &Path) -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../benches/ns3/{name}.cc"));
    let program = folder.join(name);
    if program.exists() {
        return Ok(program);
    }
    let mut command = Command::new("c++");
    command.args(["-O2", "-std=c++17", "-o"]).arg(&program).arg(&source).args(LIBRARIES);
    run(command, Duration::from_secs(300))
        .with_context(|| format!("cannot compile {} against ns-3", source.display()))?;
    Ok(program)
}

/// The network of `benches/ns3/overload.cc` as a `network.toml`.
pub fn overload_network(rate: u64, seconds: u64) -> String {
    let mut text = format!(
        "name = \"overload\"\nduration = \"{seconds}s\"\nsample_interval = \"{seconds}s\"\n\n[topology]\nkind = \"dumbbell\"\npairs = {FLOWS}\n\
         access = {{ rate = \"{}bit/s\", delay = \"1ms\", queue = \"100 packets\" }}\n\
         bottleneck = {{ rate = \"{rate}bit/s\", delay = \"10ms\", queue = \"100 packets\" }}\n",
        10 * rate
    );
    // Ethernet, IPv4 and UDP headers are 42 bytes.
    let (gap, size) = (FRAME * 8 * 4_000_000_000 / rate, FRAME - 42);
    for flow in 1..=FLOWS {
        let start = (flow - 1) * FRAME * 8 * 610_000_000 / rate;
        let _ = write!(
            text,
            "\n[[traffic]]\nkind = \"datagrams\"\nfrom = \"left{flow}\"\nto = \"right{flow}\"\nstart = \"{start}ns\"\n\
             gap = \"{gap}ns\"\nsize = \"{size}B\"\n"
        );
    }
    text
}
