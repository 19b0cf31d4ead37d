//! Flow completion times of six flows that begin together at one bottleneck, in virtual time.
//!
//! Figure 8 of Bianchi et al., "XTRA: Towards Portable Transport Layer Functions", section VII.A, with all of its cells: ways to
//! control congestion and to recover from losses run over the same cells with the same seeds, so that times are compared
//! in pairs. [`Options::cells`] says what is run, [`Cell::run`] runs one cell, and [`Study`] puts them together.

pub mod real;
mod report;
mod scenario;
mod study;

pub use scenario::{Run, bound};
pub use study::{At, Figures, Group, Line, Ratio, Study};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Flows of a run.
pub const FLOWS: usize = 6;
/// Payload of a full segment: MTU 1500, with time stamps.
pub const SEGMENT: u64 = 1_448;
/// Bytes of a frame with a full segment.
pub const FRAME: u64 = 1_514;

/// Ways of congestion control, and what the simulator calls them.
const CONTROLS: [(&str, &str); 2] = [("newreno", "reno"), ("cubic", "cubic")];
/// In front of the names of the kernel's.
const KERNEL: &str = "kernel";
/// Ways to recover from losses.
const RECOVERIES: [&str; 3] = ["rack", "rfc6675", "tb_tcp"];

/// A TCP of the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kernel {
    /// Reno.
    Reno,
    /// Reno whose least timeout is a round trip. Linux adds it to the smoothed round trip, so that timeouts are of about two.
    RenoRto,
    /// CUBIC.
    Cubic,
    /// BBR.
    Bbr,
}

impl Kernel {
    const ALL: [(Kernel, &str); 4] =
        [(Kernel::Reno, "reno"), (Kernel::RenoRto, "reno_rto"), (Kernel::Cubic, "cubic"), (Kernel::Bbr, "bbr")];

    /// What Linux calls its congestion control.
    pub fn control(self) -> &'static str {
        match self {
            Kernel::Reno | Kernel::RenoRto => "reno",
            Kernel::Cubic => "cubic",
            Kernel::Bbr => "bbr",
        }
    }

    /// The least timeout that it is given on a path with this round trip, as `ip route` takes it.
    fn least_timeout(self, rtt_ns: u64) -> Option<String> {
        (self == Kernel::RenoRto).then(|| format!("{}ms", rtt_ns.div_ceil(1_000_000)))
    }
}

/// A way to control congestion, and a way to recover from losses; or a kernel's, which has both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pair {
    control: usize,
    recovery: usize,
    kernel: Option<Kernel>,
}

impl Pair {
    /// NewReno with RACK-TLP.
    pub const NEWRENO_RACK: Pair = Pair { control: 0, recovery: 0, kernel: None };
    /// The kernel's Reno.
    pub const KERNEL_RENO: Pair = Pair::of_kernel(Kernel::Reno);

    /// A kernel's.
    pub const fn of_kernel(kernel: Kernel) -> Pair {
        Pair { control: 0, recovery: 0, kernel: Some(kernel) }
    }

    /// Which of the kernel's; `None`: the TCP in XL.
    pub fn kernel(self) -> Option<Kernel> {
        self.kernel
    }

    /// What the machine calls its congestion control.
    fn control_of_machine(self) -> &'static str {
        CONTROLS[self.control].0
    }

    /// What the simulator calls its congestion control.
    fn control(self) -> &'static str {
        CONTROLS[self.control].1
    }

    /// What the simulator calls its recovery from losses.
    fn recovery(self) -> &'static str {
        RECOVERIES[self.recovery]
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_kernel = |it| Kernel::ALL.iter().find(|(kernel, _)| *kernel == it).map_or("", |(_, name)| *name);
        match self.kernel {
            Some(kernel) => f.pad(&format!("{KERNEL}+{}", of_kernel(kernel))),
            None => f.pad(&format!("{}+{}", CONTROLS[self.control].0, RECOVERIES[self.recovery])),
        }
    }
}

/// Not the name of a pair.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "write CONTROL+RECOVERY, e.g. newreno+rack; controls are newreno, cubic; recoveries rack, rfc6675, tb_tcp; kernel+reno, kernel+reno_rto, kernel+cubic and kernel+bbr are the kernel's"
)]
pub struct NoPair;

impl FromStr for Pair {
    type Err = NoPair;

    fn from_str(text: &str) -> Result<Pair, NoPair> {
        let (control, recovery) = text.trim().split_once('+').ok_or(NoPair)?;
        if control == KERNEL {
            return Kernel::ALL
                .iter()
                .find(|(_, name)| *name == recovery)
                .map(|it| Pair::of_kernel(it.0))
                .ok_or(NoPair);
        }
        let control = CONTROLS.iter().position(|(name, _)| *name == control).ok_or(NoPair)?;
        let recovery = RECOVERIES.iter().position(|name| *name == recovery).ok_or(NoPair)?;
        Ok(Pair { control, recovery, kernel: None })
    }
}

impl TryFrom<String> for Pair {
    type Error = NoPair;

    fn try_from(text: String) -> Result<Pair, NoPair> {
        text.parse()
    }
}

impl From<Pair> for String {
    fn from(pair: Pair) -> String {
        pair.to_string()
    }
}

/// What is run: all combinations.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Options {
    /// Capacities of the bottleneck, in bits per second.
    pub rates: Vec<u64>,
    /// Round-trip times without queues, in nanoseconds.
    pub rtts_ns: Vec<u64>,
    /// Packets that the bottleneck's queue holds.
    pub queues: Vec<u32>,
    /// Full segments of each flow.
    pub lengths: Vec<u32>,
    /// Segments of the first flight.
    pub initial_windows: Vec<u32>,
    /// What is compared, the base in front.
    pub pairs: Vec<Pair>,
    /// Runs of each cell and pair.
    pub seeds: u32,
    /// The same seed gives the same results.
    pub seed: u64,
}

impl Default for Options {
    /// The paper's grid.
    fn default() -> Options {
        const MBIT: u64 = 1_000_000;
        const MS: u64 = 1_000_000;
        let pair = |control, recovery| Pair { control, recovery, kernel: None };
        Options {
            rates: [1, 2, 3, 4, 5, 10, 15].map(|rate| rate * MBIT).to_vec(),
            rtts_ns: [10, 20, 40, 80, 100, 150, 200].map(|rtt| rtt * MS).to_vec(),
            queues: vec![5, 10, 50, 100, 200],
            lengths: vec![50, 500],
            initial_windows: vec![4, 10],
            pairs: vec![Pair::NEWRENO_RACK, pair(0, 2), pair(1, 0), pair(0, 1)],
            seeds: 30,
            seed: 1,
        }
    }
}

/// One point of the grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Capacity of the bottleneck, in bits per second.
    pub rate: u64,
    /// Round-trip time without queues, in nanoseconds.
    pub rtt_ns: u64,
    /// Packets that the bottleneck's queue holds.
    pub queue: u32,
    /// Full segments of each flow.
    pub length: u32,
    /// Segments of the first flight.
    pub initial_window: u32,
}

impl fmt::Display for Cell {
    /// A name for files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { rate, rtt_ns, queue, length, initial_window } = self;
        write!(f, "rate{rate}-rtt{rtt_ns}-queue{queue}-length{length}-window{initial_window}")
    }
}

impl Options {
    /// The paper's grid beside the kernel's TCP, in real time.
    pub fn real() -> Options {
        let ours = ["newreno+rack", "newreno+tb_tcp", "cubic+rack"].into_iter().filter_map(|name| name.parse().ok());
        let kernels = Kernel::ALL.into_iter().map(|(kernel, _)| Pair::of_kernel(kernel));
        Options { pairs: kernels.chain(ours).collect(), ..Options::default() }
    }

    /// A part of the paper's grid that takes seconds.
    pub fn quick() -> Options {
        Options {
            rates: vec![2_000_000, 10_000_000],
            rtts_ns: vec![20_000_000, 100_000_000],
            queues: vec![10, 50],
            lengths: vec![50],
            initial_windows: vec![10],
            seeds: 3,
            ..Options::default()
        }
    }

    /// All cells; those of all lengths follow each other, so that any part of them takes about its share of the time.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for rate in &self.rates {
            for rtt_ns in &self.rtts_ns {
                for queue in &self.queues {
                    for initial_window in &self.initial_windows {
                        for length in &self.lengths {
                            let (rate, rtt_ns, queue) = (*rate, *rtt_ns, *queue);
                            cells.push(Cell { rate, rtt_ns, queue, length: *length, initial_window: *initial_window });
                        }
                    }
                }
            }
        }
        cells
    }
}

/// The runs of one cell.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The cell.
    pub cell: Cell,
    /// For each pair of [`Options::pairs`] its runs, one for each seed.
    pub runs: Vec<Vec<Run>>,
}
