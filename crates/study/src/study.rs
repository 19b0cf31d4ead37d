//! The whole study: which cases there are, and what came of them.

use crate::design::Design;
use crate::experiment::{Arrivals, OneTick, Tally, Trial, one_tick};
use crate::hash::Hash;
use serde::Serialize;

/// Runs that are made at a time; then somebody may want to stop.
const RUNS_OF_A_CASE: u32 = 25;
/// Timers of the published source are in places for a microsecond of so many ticks.
const PUBLISHED_MILLISECOND: u64 = 157_000;

/// What is measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Options {
    /// Shares of 16,384 timers.
    pub loads: Vec<f64>,
    /// Runs of each design and load of the figures. The comparisons have fewer.
    pub repeats: u32,
    /// Timers replaced in a run.
    pub substitutions: u64,
    /// The longest interval, in ticks.
    pub horizon: u64,
    /// The same seed gives the same numbers.
    pub seed: u64,
}

impl Default for Options {
    /// As the paper has it.
    fn default() -> Options {
        Options {
            loads: vec![0.50, 0.60, 0.70, 0.80, 0.85, 0.90, 0.92, 0.94, 0.95, 0.96, 0.97],
            repeats: 1_000,
            substitutions: 1_000,
            horizon: 1_000_000_000,
            seed: 1,
        }
    }
}

/// The parts of the study.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Figures 3 and 4 of the paper.
    Figures,
    /// Other designs in the same memory.
    Designs,
    /// Stashes in long runs.
    Stashes,
    /// Short horizons, bursts, periods, and hashes, at the greatest load.
    Adversaries,
    /// The published hash.
    PublishedHash,
}

impl Part {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Part::Figures => "figures",
            Part::Designs => "designs",
            Part::Stashes => "stashes",
            Part::Adversaries => "adversaries",
            Part::PublishedHash => "published-hash",
        }
    }
}

/// Runs of one trial, with seeds that count up.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Where it belongs.
    pub part: Part,
    /// The line of the results that it belongs to, from 0.
    pub line: usize,
    /// What is run.
    pub trial: Trial,
    /// How often.
    runs: u32,
    seed: u64,
}

impl Case {
    /// Runs it.
    pub fn run(&self) -> Tally {
        let mut all = Tally::default();
        for run in 0..self.runs {
            // Seeds of different cases are far apart.
            all.add(&self.trial.run(self.seed.wrapping_add(u64::from(run))));
        }
        all
    }
}

/// All cases of a study, those of a line after each other. They may be run in any order and at once.
pub fn plan(options: &Options) -> Vec<Case> {
    let mut lines: Vec<(Part, Trial, u32)> = Vec::new();
    let Options { loads, repeats, substitutions, .. } = options;
    let (substitutions, uniform) = (*substitutions, Arrivals::Uniform { horizon: options.horizon });
    let some = |share: u32| (repeats / share).max(1);
    let mut add = |part, design, load, arrivals, substitutions, runs| {
        lines.push((part, Trial { design, load, arrivals, substitutions }, runs));
    };

    for design in [Design::FIRST_FREE, Design::RANDOM_FREE, Design::CUCKOO] {
        for load in loads {
            add(Part::Figures, design, *load, uniform, substitutions, *repeats);
        }
    }
    for design in Design::COMPARED {
        let arrivals = match design.structure {
            // It knows no timers beyond its ticks.
            crate::design::Structure::TickMap { span_bits } => {
                Arrivals::Uniform { horizon: options.horizon.min((1 << span_bits) - 1) }
            }
            _ => uniform,
        };
        for load in loads {
            add(Part::Designs, design, *load, arrivals, substitutions, some(10));
        }
    }
    let greatest = loads.iter().copied().fold(0.0, f64::max);
    for design in Design::STASHED {
        for load in loads.iter().filter(|load| **load >= 0.9 || **load == greatest) {
            add(Part::Stashes, design, *load, uniform, substitutions * 40, some(50));
        }
    }
    let adversaries = [
        uniform,
        Arrivals::Uniform { horizon: 65_536 },
        Arrivals::Uniform { horizon: 20_000 },
        Arrivals::Bursts { horizon: options.horizon, size: 16 },
        Arrivals::Bursts { horizon: options.horizon, size: 64 },
        Arrivals::Periodic { period: 1 << 20, stride: 64 },
        Arrivals::Periodic { period: 1 << 26, stride: 4_096 },
        Arrivals::Periodic { period: 1_000_000, stride: 1_000 },
    ];
    for arrivals in adversaries {
        for design in [Design::FIRST_FREE, Design::BUCKETS_OF_FOUR, Design::PROPOSAL, Design::NEVER_LATE] {
            for hash in [Hash::Strong, Hash::MultiplyShift, Hash::H3] {
                add(Part::Adversaries, design.with_hash(hash), greatest, arrivals, substitutions, some(50));
            }
        }
    }
    for milliseconds in [1, 10, 100, 1_000] {
        for load in [0.5, 0.9] {
            for hash in [Hash::Strong, Hash::Published] {
                let horizon = milliseconds * PUBLISHED_MILLISECOND;
                let design = Design::SMALL.with_hash(hash);
                add(Part::PublishedHash, design, load, Arrivals::Uniform { horizon }, substitutions, some(50));
            }
        }
    }

    let mut cases = Vec::new();
    for (line, (part, trial, runs)) in lines.into_iter().enumerate() {
        // The same seeds for all designs: they meet the same timers.
        let mut done = 0;
        while done < runs {
            let now = RUNS_OF_A_CASE.min(runs - done);
            let seed = options.seed.wrapping_mul(1 << 32).wrapping_add(u64::from(done));
            cases.push(Case { part, line, trial, runs: now, seed });
            done += now;
        }
    }
    cases
}

/// One line of the results.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Where it belongs.
    pub part: Part,
    /// What was run.
    pub trial: Trial,
    /// What was measured.
    pub tally: Tally,
}

/// Timers that were all armed for one tick, in one design.
#[derive(Clone, PartialEq, Debug)]
pub struct SameTick {
    /// The design.
    pub design: Design,
    /// The share of other timers.
    pub load: f64,
    /// What became of them.
    pub outcome: OneTick,
}

/// All results.
#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    /// What was measured.
    pub options: Options,
    /// The lines in the order of the plan.
    pub lines: Vec<Line>,
    /// Timers of one tick.
    pub same_tick: Vec<SameTick>,
}

impl Study {
    /// Puts the tallies of all cases of the plan together, in its order.
    pub fn new(options: &Options, tallies: Vec<(Case, Tally)>) -> Study {
        let mut lines: Vec<Line> = Vec::new();
        let mut last = None;
        for (case, tally) in tallies {
            match lines.last_mut().filter(|_| last == Some(case.line)) {
                Some(line) => line.tally.add(&tally),
                None => lines.push(Line { part: case.part, trial: case.trial, tally }),
            }
            last = Some(case.line);
        }
        let designs = [
            Design::AS_PUBLISHED,
            Design::CUCKOO,
            Design::FIRST_FREE,
            Design::BUCKETS_OF_FOUR,
            Design::PROPOSAL,
            Design::NEVER_LATE,
            Design::TICK_MAP,
        ];
        let mut same_tick = Vec::new();
        for design in designs {
            for (load, timers) in [(0.0, 16), (0.0, 64), (0.9, 16), (0.9, 64)] {
                let outcome = one_tick(&design, load, timers, options.seed);
                same_tick.push(SameTick { design, load, outcome });
            }
        }
        Study { options: options.clone(), lines, same_tick }
    }

    /// Tries of an insertion on average, by the paper's equation 5.
    pub fn theory(load: f64) -> f64 {
        1.0 / (1.0 - load.powi(4))
    }
}
