//! What all runs together say: quantiles, paired ratios, what they cost.

use super::{Cell, Options, Outcome, Pair, Run, bound};
use crate::Dice;
use serde::Serialize;
use std::fmt;
use weftwire_draw::statistics::{bootstrap, interval_95, jain, mean, percentile};

/// The percentiles that are told; the last is the worst.
pub const PERCENTS: [u32; 4] = [10, 50, 90, 100];
/// Samples of a bootstrap.
const REPLICATES: usize = 1_000;
/// Round-trip times from here on are judged apart, in nanoseconds.
const LONG_RTT: u64 = 80_000_000;

/// A ratio to the base with its 95 % interval by bootstrap over the seeds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Ratio {
    /// What was measured.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What is told beside ratios.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// Time of the slowest flow beyond the lower bound, in seconds: the median.
    pub excess_s: f64,
    /// The same as a share of the bound.
    pub excess_share: f64,
    /// Mean wait of a packet in the bottleneck's queue, in seconds.
    pub wait_mean_s: f64,
    /// The longest wait.
    pub wait_max_s: f64,
    /// Segments sent again, as a share of those sent first.
    pub overhead: f64,
    /// Jain's index of the flows' rates, the mean of all runs.
    pub fairness: f64,
    /// Flows that did not end while they were watched.
    pub unfinished: usize,
}

/// A cell with one pair.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// The pair.
    pub pair: Pair,
    /// Completion time of the slowest flow in seconds, at 0.1, 0.5, 0.9 and 1 of the seeds.
    pub time_s: [f64; 4],
    /// Its ratio to that of the base with the same seed, at the same shares; `None` of the base.
    pub ratio: Option<[Ratio; 4]>,
    /// What is told beside it.
    #[serde(flatten)]
    pub figures: Figures,
    /// Medians of the ratio in each sample of the bootstrap.
    #[serde(skip)]
    medians: Vec<f64>,
}

/// Which cells are put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum At {
    /// All round-trip times.
    All,
    /// Those below 80 ms.
    Short,
    /// Those from 80 ms on.
    Long,
    /// One of them, in nanoseconds.
    Rtt(u64),
}

impl At {
    fn has(self, cell: &Cell) -> bool {
        match self {
            At::All => true,
            At::Short => cell.rtt_ns < LONG_RTT,
            At::Long => cell.rtt_ns >= LONG_RTT,
            At::Rtt(rtt_ns) => cell.rtt_ns == rtt_ns,
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::All => f.pad("all"),
            At::Short => f.pad("below 80 ms"),
            At::Long => f.pad("from 80 ms"),
            At::Rtt(rtt_ns) => f.pad(&format!("{} ms", *rtt_ns as f64 / 1e6)),
        }
    }
}

/// Cells of one length with one pair.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Group {
    /// Segments of each flow.
    pub length: u32,
    /// Round-trip times.
    pub at: At,
    /// The pair.
    pub pair: Pair,
    /// Cells.
    pub cells: usize,
    /// The cells' median ratios at 0.1, 0.5, 0.9 and 1 of the cells; `None` of the base.
    pub ratio: Option<[Ratio; 4]>,
    /// Cells whose median ratio is above 2.
    pub above_2: usize,
    /// Medians of the cells' excess, means of the cells' other figures (of the longest wait the greatest, of unfinished flows the sum).
    #[serde(flatten)]
    pub figures: Figures,
}

/// Everything.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Study {
    /// What was run.
    pub options: Options,
    /// By length, round-trip times and pair.
    pub groups: Vec<Group>,
    /// By cell and pair.
    pub lines: Vec<Line>,
    /// All runs.
    #[serde(skip)]
    pub outcomes: Vec<Outcome>,
}

impl Study {
    /// All of `outcomes`, which are those of [`Options::cells`].
    pub fn new(options: &Options, outcomes: Vec<Outcome>) -> Study {
        let mut dice = Dice::new(options.seed);
        let mut lines = Vec::new();
        for outcome in &outcomes {
            for (pair, runs) in options.pairs.iter().zip(&outcome.runs) {
                let base = (*pair != options.pairs[0]).then(|| &outcome.runs[0][..]);
                lines.push(line(&outcome.cell, *pair, runs, base, &mut dice));
            }
        }
        let all = [At::All, At::Short, At::Long].into_iter();
        let ats: Vec<At> = all.chain(options.rtts_ns.iter().map(|rtt_ns| At::Rtt(*rtt_ns))).collect();
        let mut groups = Vec::new();
        for length in &options.lengths {
            for at in &ats {
                for pair in &options.pairs {
                    let of = |line: &&Line| line.pair == *pair && line.cell.length == *length && at.has(&line.cell);
                    groups.extend(group(*length, *at, *pair, &lines.iter().filter(of).collect::<Vec<_>>()));
                }
            }
        }
        Study { options: options.clone(), groups, lines, outcomes }
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// At [`PERCENTS`]; 0 of no values.
fn quantiles(ascending: &[f64]) -> [f64; 4] {
    PERCENTS.map(|percent| percentile(ascending, percent).unwrap_or(0.0))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantiles(&sorted(values))[1]
}

fn mean_of(values: impl Iterator<Item = f64>) -> f64 {
    mean(&values.collect::<Vec<f64>>()).unwrap_or(0.0)
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// The values with the intervals of what the bootstrap made of them.
fn with_intervals(values: [f64; 4], replicates: &[[f64; 4]]) -> [Ratio; 4] {
    let mut index = 0;
    values.map(|value| {
        let of = replicates.iter().map(|replicate| replicate[index]).collect();
        index += 1;
        let (low, high) = interval_95(of).unwrap_or((value, value));
        Ratio { value, low, high }
    })
}

fn line(cell: &Cell, pair: Pair, runs: &[Run], base: Option<&[Run]>, dice: &mut Dice) -> Line {
    let excess = |run: &Run| (run.slowest_ns() as f64 - bound(cell, &run.begun_ns) as f64) / 1e9;
    let share = |run: &Run| excess(run) * 1e9 / bound(cell, &run.begun_ns) as f64;
    let sum = |of: fn(&Run) -> u64| runs.iter().map(of).sum::<u64>() as f64;
    let rates = |run: &Run| jain(run.times_ns.iter().map(|time| 1.0 / time.unwrap_or(run.limit_ns) as f64));
    let again = sum(|run| run.retransmissions);
    let figures = Figures {
        excess_s: median(runs.iter().map(excess)),
        excess_share: median(runs.iter().map(share)),
        wait_mean_s: mean_of(runs.iter().map(|run| seconds(run.wait_mean_ns))),
        wait_max_s: seconds(runs.iter().map(|run| run.wait_max_ns).max().unwrap_or(0)),
        overhead: again / (sum(|run| run.packets) - again).max(1.0),
        fairness: mean_of(runs.iter().filter_map(rates)),
        unfinished: runs.iter().map(Run::unfinished).sum(),
    };
    let (mut ratio, mut medians) = (None, Vec::new());
    if let Some(base) = base {
        let each = runs.iter().zip(base).map(|(run, base)| run.slowest_ns() as f64 / base.slowest_ns().max(1) as f64);
        let ratios = sorted(each);
        let mut below = |bound: usize| dice.below(bound as u64) as usize;
        let replicates = bootstrap(&ratios, REPLICATES, &mut below, quantiles);
        medians = replicates.iter().map(|replicate| replicate[1]).collect();
        ratio = Some(with_intervals(quantiles(&ratios), &replicates));
    }
    let time_s = quantiles(&sorted(runs.iter().map(|run| seconds(run.slowest_ns()))));
    Line { cell: *cell, pair, time_s, ratio, figures, medians }
}

/// `None` if there is no cell.
fn group(length: u32, at: At, pair: Pair, lines: &[&Line]) -> Option<Group> {
    if lines.is_empty() {
        return None;
    }
    let each = |of: fn(&Figures) -> f64| lines.iter().map(move |line| of(&line.figures));
    let figures = Figures {
        excess_s: median(each(|it| it.excess_s)),
        excess_share: median(each(|it| it.excess_share)),
        wait_mean_s: mean_of(each(|it| it.wait_mean_s)),
        wait_max_s: each(|it| it.wait_max_s).fold(0.0, f64::max),
        overhead: mean_of(each(|it| it.overhead)),
        fairness: mean_of(each(|it| it.fairness)),
        unfinished: lines.iter().map(|line| line.figures.unfinished).sum(),
    };
    let ratios = sorted(lines.iter().filter_map(|line| Some(line.ratio?[1].value)));
    // The cells are all that there are; only what the seeds brought might have been otherwise.
    let replicate = |index| quantiles(&sorted(lines.iter().filter_map(|line| line.medians.get(index).copied())));
    let replicates: Vec<[f64; 4]> = (0..REPLICATES).map(replicate).collect();
    let above_2 = ratios.iter().filter(|ratio| **ratio > 2.0).count();
    let ratio = (!ratios.is_empty()).then(|| with_intervals(quantiles(&ratios), &replicates));
    Some(Group { length, at, pair, cells: lines.len(), ratio, above_2, figures })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fct::{FLOWS, FRAME};

    const MS: u64 = 1_000_000;

    /// All six flows take so long, but the slowest.
    fn run(slowest_ms: u64) -> Run {
        let mut times_ns = [Some(100 * MS); FLOWS];
        times_ns[2] = Some(slowest_ms * MS);
        Run {
            begun_ns: [0; FLOWS],
            times_ns,
            limit_ns: 60_000 * MS,
            wait_mean_ns: slowest_ms * 1_000,
            wait_max_ns: 7 * MS,
            drops: 1,
            packets: 22,
            retransmissions: 2,
        }
    }

    /// A bound of 80 ms: six frames that take 10 ms each, and the round trip.
    fn cell(rtt_ns: u64) -> Cell {
        Cell { rate: FRAME * 8 * 100, rtt_ns, queue: 5, length: 1, initial_window: 10 }
    }

    fn options(rtts_ns: Vec<u64>) -> Options {
        let pairs = vec![Pair::NEWRENO_RACK, "newreno+tb_tcp".parse().unwrap()];
        Options {
            rates: vec![FRAME * 8 * 100],
            rtts_ns,
            queues: vec![5],
            lengths: vec![1],
            initial_windows: vec![10],
            pairs,
            seeds: 3,
            seed: 1,
        }
    }

    fn close(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 1e-9
    }

    #[test]
    fn ratios_are_of_the_same_seed() {
        // Ratios 1.5, 0.5, 1.2: not those of sorted times.
        let runs = vec![[200, 400, 500].map(run).to_vec(), [300, 200, 600].map(run).to_vec()];
        let study = Study::new(&options(vec![20 * MS]), vec![Outcome { cell: cell(20 * MS), runs }]);
        let [base, other] = &study.lines[..] else { panic!("two pairs") };
        assert!(base.ratio.is_none());
        assert_eq!((base.time_s, other.time_s), ([0.2, 0.4, 0.5, 0.5], [0.2, 0.3, 0.6, 0.6]));
        let ratio = other.ratio.unwrap();
        assert_eq!(ratio.map(|ratio| ratio.value), [0.5, 1.2, 1.5, 1.5]);
        // Of three drawn from three the median is the least in 7 of 27, the greatest as often: both ends are within 95 %.
        assert_eq!((ratio[1].low, ratio[1].high), (0.5, 1.5));
        // The greatest is the least of the three in one of 27 only: 3.7 %, more than a fortieth.
        assert_eq!((ratio[3].low, ratio[3].high), (0.5, 1.5));
        let figures = &base.figures;
        assert!(close(figures.excess_s, 0.32) && close(figures.excess_share, 4.0), "{figures:?}");
        assert!(close(figures.overhead, 0.1) && close(figures.wait_mean_s, 1.1e-3 / 3.0), "{figures:?}");
        assert!(close(figures.wait_max_s, 7e-3) && figures.unfinished == 0);
        // Rates 10 five times, and 5, 2.5, 2.
        let fairness = [5.0, 2.5, 2.0].map(|rate: f64| (50.0 + rate) * (50.0 + rate) / (6.0 * (500.0 + rate * rate)));
        assert!(close(figures.fairness, fairness.iter().sum::<f64>() / 3.0), "{figures:?}");
    }

    #[test]
    fn groups_are_of_the_cells_medians() {
        let outcome = |rtt_ns, times: [u64; 3]| Outcome {
            cell: cell(rtt_ns),
            runs: vec![[100; 3].map(run).to_vec(), times.map(run).to_vec()],
        };
        let outcomes = vec![
            outcome(20 * MS, [110, 110, 110]),
            outcome(40 * MS, [130, 130, 130]),
            outcome(80 * MS, [190, 210, 400]),
        ];
        let study = Study::new(&options(vec![20 * MS, 40 * MS, 80 * MS]), outcomes);
        let find = |at| study.groups.iter().find(|group| group.at == at && group.ratio.is_some()).unwrap();
        let of = |at| find(at).ratio.unwrap().map(|ratio| ratio.value);
        assert_eq!(of(At::All), [1.1, 1.3, 2.1, 2.1]);
        assert_eq!((of(At::Short), of(At::Long)), ([1.1, 1.1, 1.3, 1.3], [2.1; 4]));
        assert_eq!((of(At::Rtt(40 * MS)), find(At::All).cells), ([1.3; 4], 3));
        assert_eq!((find(At::All).above_2, find(At::Short).above_2, find(At::Long).above_2), (1, 0, 1));
        // The cells stay: only the seeds of the third differ, and its median is the least or the greatest of them in 7 of 27 draws.
        let all = find(At::All).ratio.unwrap();
        assert_eq!(all.map(|ratio| (ratio.low, ratio.high)), [(1.1, 1.1), (1.3, 1.3), (1.9, 4.0), (1.9, 4.0)]);
        assert_eq!(study, Study::new(&study.options, study.outcomes.clone()));
    }

    #[test]
    fn what_does_not_end_counts_with_the_time_it_was_watched() {
        let mut endless = run(100);
        endless.times_ns[5] = None;
        let runs = vec![vec![run(100)], vec![endless]];
        let study = Study::new(&options(vec![20 * MS]), vec![Outcome { cell: cell(20 * MS), runs }]);
        let line = &study.lines[1];
        assert_eq!((line.time_s[3], line.ratio.unwrap()[0].value, line.figures.unfinished), (60.0, 600.0, 1));
        let all = study.groups.iter().find(|group| group.at == At::All && group.ratio.is_some()).unwrap();
        assert_eq!((all.above_2, all.figures.unfinished), (1, 1));
    }
}
