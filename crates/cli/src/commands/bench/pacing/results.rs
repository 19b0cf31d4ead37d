//! What was measured, and its statistics.

use serde::Serialize;
use weftwire_linux::pacer::Standing;
use weftwire_measure::jitter::Jitter;
use weftwire_measure::kernel::Paced;
use weftwire_measure::usage::Usage;

/// Gaps fall into bins, each twice as wide as the one before; the first begins at this gap, in seconds.
pub const SHORTEST: f64 = 1.22e-6;
/// How many there are: the last ends at 1.25 ms.
pub const BINS: usize = 10;

/// The bin of a gap.
pub fn bin(gap: f64) -> usize {
    ((gap / SHORTEST).log2().floor().max(0.0) as usize).min(BINS - 1)
}

/// The middle of a bin.
pub fn middle(bin: usize) -> f64 {
    SHORTEST * (bin as f64 + 0.5).exp2()
}

/// Everything.
#[derive(Serialize, Default)]
pub struct Results {
    /// Where.
    pub machine: HostFacts,
    /// What was not measured, and why.
    pub skipped: Vec<String>,
    /// How often everything had its turn.
    pub rounds: u32,
    /// Pacing by this program.
    pub methods: Vec<Method>,
    /// Pacing by the kernel.
    pub kernel: Vec<Kernel>,
    /// Many flows.
    pub flows: Vec<FlowsResult>,
}

impl Results {
    /// The method of this name; a new one if there is none.
    pub fn method(&mut self, name: &str) -> &mut Method {
        let at = self.methods.iter().position(|method| method.name == name).unwrap_or_else(|| {
            let bins = || (0..BINS).map(|_| Values::default()).collect();
            let (name, release, departure, gap) = (name.to_owned(), bins(), bins(), bins());
            self.methods.push(Method { name, release, departure, gap, ..Method::default() });
            self.methods.len() - 1
        });
        &mut self.methods[at]
    }

    /// The same of the kernel's.
    pub fn kernel(&mut self, name: &str) -> &mut Kernel {
        let at = self.kernel.iter().position(|kernel| kernel.name == name).unwrap_or_else(|| {
            let bins = (0..BINS).map(|_| KernelBin::default()).collect();
            self.kernel.push(Kernel { name: name.to_owned(), bins, ..Kernel::default() });
            self.kernel.len() - 1
        });
        &mut self.kernel[at]
    }
}

/// The machine and the place on it.
#[derive(Serialize, Default)]
pub struct HostFacts {
    /// `Linux` and its release.
    pub kernel: String,
    /// Processors.
    pub processors: usize,
    /// The processor that pacing was kept on.
    pub cpu: Option<usize>,
    /// Real-time priority.
    pub priority: Option<i32>,
    /// Memory was locked.
    pub memory_locked: bool,
    /// What was asked for and refused.
    pub refused: Vec<String>,
    /// How long before a deadline sleep+spin woke up.
    pub margin_ns: i64,
    /// One reading of the clock, counting it included.
    pub clock_reading_ns: f64,
    /// How late a loop that only reads the clock sees deadlines: median, 99th percentile.
    pub own_lateness_ns: [f64; 2],
    /// The longest time between two of its readings.
    pub own_worst_ns: i64,
}

impl HostFacts {
    /// This machine, with what a thread got.
    pub fn here(standing: &Standing) -> HostFacts {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        HostFacts {
            kernel: format!("Linux {}", release.trim()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: standing.cpu,
            priority: standing.priority,
            memory_locked: standing.memory_locked,
            refused: standing.refused.clone(),
            ..HostFacts::default()
        }
    }

    /// Adds what the bare loop saw.
    pub fn jitter(&mut self, jitter: &Jitter) {
        self.clock_reading_ns = jitter.mean();
        self.own_lateness_ns = [jitter.lateness(0.5), jitter.lateness(0.99)];
        self.own_worst_ns = jitter.worst();
    }
}

/// One way of pacing.
#[derive(Serialize, Default)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// Processor time.
    #[serde(flatten)]
    pub processor: Processor,
    /// The call that sends, on average in the last round.
    pub send_cost_ns: f64,
    /// Frames that the kernel refused.
    pub refused: u64,
    /// Frames that were not seen to leave.
    pub unseen: u64,
    /// By bin of gaps: how late packets were released.
    pub release: Vec<Values>,
    /// By bin: how late frames left.
    pub departure: Vec<Values>,
    /// By bin: how far the gaps between frames were from what they should be.
    pub gap: Vec<Values>,
}

/// Which of a method's values.
#[derive(Clone, Copy)]
pub enum Series {
    /// [`Method::release`].
    Release,
    /// [`Method::departure`].
    Departure,
    /// [`Method::gap`].
    Gap,
}

impl Method {
    /// The values of a bin.
    pub fn series(&mut self, series: Series, bin: usize) -> &mut Values {
        match series {
            Series::Release => &mut self.release[bin],
            Series::Departure => &mut self.departure[bin],
            Series::Gap => &mut self.gap[bin],
        }
    }

    /// Adds processor time.
    pub fn add_usage(&mut self, usage: Usage) {
        self.processor.add(usage);
    }
}

/// Shares of a processor.
#[derive(Serialize, Default, Clone, Copy)]
pub struct Processor {
    #[serde(skip)]
    usage: Usage,
    /// The thread's.
    pub thread_share: f64,
    /// That of soft interrupts on all processors, others' work included.
    pub soft_interrupt_share: f64,
}

impl Processor {
    /// Adds a stretch.
    pub fn add(&mut self, usage: Usage) {
        self.usage.add(usage);
        (self.thread_share, self.soft_interrupt_share) = (self.usage.share(), self.usage.soft_share());
    }
}

/// Many values in nanoseconds.
#[derive(Default)]
pub struct Values(Vec<i64>);

impl Values {
    /// Adds one.
    pub fn push(&mut self, value: i64) {
        self.0.push(value);
    }

    /// The values in seconds, for pictures.
    pub fn seconds(&self) -> Vec<f64> {
        self.0.iter().map(|value| *value as f64 * 1e-9).collect()
    }

    /// Their statistics; `None` without values.
    pub fn statistics(&self) -> Option<Statistics> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |share: f64| {
            sorted.get(((sorted.len() as f64 * share) as usize).min(sorted.len().wrapping_sub(1))).copied()
        };
        Some(Statistics {
            count: sorted.len(),
            p25: at(0.25)?,
            median: at(0.5)?,
            p75: at(0.75)?,
            p99: at(0.99)?,
            p999: at(0.999)?,
            worst: *sorted.last()?,
        })
    }
}

impl Serialize for Values {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.statistics().serialize(serializer)
    }
}

/// Statistics of values in nanoseconds.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Statistics {
    /// How many.
    pub count: usize,
    /// First quartile.
    pub p25: i64,
    /// Median.
    pub median: i64,
    /// Third quartile.
    pub p75: i64,
    /// 99 of 100 are no greater.
    pub p99: i64,
    /// 999 of 1,000 are no greater.
    pub p999: i64,
    /// The greatest.
    pub worst: i64,
}

/// The kernel's pacing of TCP.
#[derive(Serialize, Default)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Processor time; pacing happens in soft interrupts.
    #[serde(flatten)]
    pub processor: Processor,
    /// By bin of gaps, at its middle.
    pub bins: Vec<KernelBin>,
}

/// What the kernel made of one gap.
#[derive(Serialize, Default)]
pub struct KernelBin {
    /// How far gaps between segments were from what they should be.
    pub gap: Values,
    /// Segments a frame, on average of rounds.
    pub burst: f64,
    /// The rate as a share of what was asked for, on average of rounds.
    pub rate: f64,
    rounds: u32,
}

impl Kernel {
    /// Adds one round of one bin.
    pub fn add(&mut self, bin: usize, paced: &Paced) {
        let wanted = (middle(bin) * 1e9) as i64;
        let place = &mut self.bins[bin];
        paced.gaps_ns.iter().for_each(|gap| place.gap.push((gap - wanted).abs()));
        place.rounds += 1;
        place.burst += (paced.burst - place.burst) / f64::from(place.rounds);
        place.rate += (paced.rate - place.rate) / f64::from(place.rounds);
        self.processor.add(paced.usage);
    }
}

/// Many flows by one design.
#[derive(Serialize, Default)]
pub struct FlowsResult {
    /// What schedules, how it waits, and whether it sends.
    pub name: String,
    /// Flows.
    pub flows: usize,
    /// Packets a second asked for; `None` for as many as go.
    pub wanted: Option<f64>,
    /// Packets a second.
    pub reached: f64,
    /// Processor time of a packet.
    pub cost_ns: f64,
    /// Processor time.
    #[serde(flatten)]
    pub processor: Processor,
    /// The share of flows whose rate is right to 0.1 %, of those that sent enough to tell.
    pub right: Option<f64>,
    /// How far rates were off: median, 99th percentile, worst flow.
    pub rate_error: Option<[f64; 3]>,
    /// How late packets were sent: median, 99th percentile, worst.
    pub late_ns: Option<[i64; 3]>,
}
