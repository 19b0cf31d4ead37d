//! The results as tables and pictures.

use super::study::PERCENTS;
use super::{At, Cell, FLOWS, Figures, Line, Ratio, Study, bound};
use crate::sheet::{alone, csv, table};
use weftwire_draw::chart::{Chart, Shape, stack};
use weftwire_draw::html::section;
use weftwire_draw::{Axis, Unit, document};

const CELL: [&str; 5] = ["rate_bit_per_s", "rtt_ms", "queue_packets", "length_segments", "initial_window"];
const FIGURES: [&str; 7] =
    ["excess_s", "excess_share", "wait_mean_s", "wait_max_s", "overhead", "fairness", "unfinished"];

fn of_cell(cell: &Cell) -> Vec<String> {
    let rtt = cell.rtt_ns as f64 / 1e6;
    let counts = [cell.queue, cell.length, cell.initial_window].map(|count| count.to_string());
    [cell.rate.to_string(), rtt.to_string()].into_iter().chain(counts).collect()
}

fn of_figures(figures: &Figures) -> Vec<String> {
    let Figures { excess_s, excess_share, wait_mean_s, wait_max_s, overhead, fairness, unfinished } = figures;
    let numbers = [excess_s, excess_share, wait_mean_s, wait_max_s, overhead, fairness];
    numbers.iter().map(|number| format!("{number:.6}")).chain([unfinished.to_string()]).collect()
}

/// Empty cells of the base.
fn of_ratio(ratio: Option<[Ratio; 4]>) -> Vec<String> {
    match ratio {
        Some(ratios) => {
            ratios.iter().flat_map(|it| [it.value, it.low, it.high]).map(|number| format!("{number:.4}")).collect()
        }
        None => vec![String::new(); 3 * PERCENTS.len()],
    }
}

/// `p10` and so on to `worst`.
fn names(of: &str, endings: &[&str]) -> Vec<String> {
    let name = |percent| if percent == 100 { "worst".to_owned() } else { format!("p{percent}") };
    let named = PERCENTS.map(|percent| endings.iter().map(move |end| format!("{of}_{}{end}", name(percent))));
    named.into_iter().flatten().collect()
}

fn heads(of: &[&[&str]], ratios: &[String]) -> Vec<String> {
    of.concat().into_iter().map(str::to_owned).chain(ratios.iter().cloned()).collect()
}

fn words(heads: &[String]) -> Vec<&str> {
    heads.iter().map(String::as_str).collect()
}

impl Study {
    /// Every run: a line for each cell, pair and seed.
    pub fn runs_csv(&self) -> String {
        let flows: Vec<String> =
            (1..=FLOWS).flat_map(|flow| [format!("begun_{flow}_ns"), format!("time_{flow}_ns")]).collect();
        let mut heads = heads(&[&CELL, &["pair", "seed", "slowest_ns", "bound_ns"]], &flows);
        heads.extend(["wait_mean_ns", "wait_max_ns", "drops", "packets", "retransmissions"].map(str::to_owned));
        let mut rows = Vec::new();
        for outcome in &self.outcomes {
            for (pair, runs) in self.options.pairs.iter().zip(&outcome.runs) {
                for (number, run) in (0_u64..).zip(runs) {
                    let mut row = of_cell(&outcome.cell);
                    row.extend([pair.to_string(), self.options.seed.wrapping_add(number).to_string()]);
                    row.extend([run.slowest_ns(), bound(&outcome.cell, &run.begun_ns)].map(|it| it.to_string()));
                    for (begun, time) in run.begun_ns.iter().zip(&run.times_ns) {
                        row.extend([begun.to_string(), time.map_or(String::new(), |time| time.to_string())]);
                    }
                    let counts = [run.wait_mean_ns, run.wait_max_ns, run.drops, run.packets, run.retransmissions];
                    row.extend(counts.map(|count| count.to_string()));
                    rows.push(row);
                }
            }
        }
        csv(&words(&heads), rows.into_iter())
    }

    /// A line for each cell and pair.
    pub fn cells_csv(&self) -> String {
        let mut heads = heads(&[&CELL, &["pair"]], &names("time", &["_s"]));
        heads.extend(names("ratio", &["", "_low", "_high"]));
        heads.extend(FIGURES.map(str::to_owned));
        let row = |line: &Line| {
            let mut row = of_cell(&line.cell);
            row.push(line.pair.to_string());
            row.extend(line.time_s.map(|time| format!("{time:.6}")));
            row.extend(of_ratio(line.ratio));
            row.extend(of_figures(&line.figures));
            row
        };
        csv(&words(&heads), self.lines.iter().map(row))
    }

    /// A line for each length, round-trip times and pair.
    pub fn groups_csv(&self) -> String {
        let heads = self.group_heads();
        csv(&words(&heads), self.group_rows())
    }

    fn group_heads(&self) -> Vec<String> {
        let ratios = names("ratio", &["", "_low", "_high"]);
        let mut heads = heads(&[&["length_segments", "rtt", "pair", "cells"]], &ratios);
        heads.push("above_2".to_owned());
        heads.extend(FIGURES.map(str::to_owned));
        heads
    }

    fn group_rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.groups.iter().map(|group| {
            let mut row = vec![group.length.to_string(), group.at.to_string(), group.pair.to_string()];
            row.push(group.cells.to_string());
            row.extend(of_ratio(group.ratio));
            row.push(group.above_2.to_string());
            row.extend(of_figures(&group.figures));
            row
        })
    }

    /// How the cells' median ratios are distributed, as a picture.
    pub fn ratios(&self) -> String {
        alone(&self.ratio_charts())
    }

    /// The cells' median ratios over the round-trip time, as a picture.
    pub fn by_rtt(&self) -> String {
        alone(&self.rtt_charts())
    }

    /// How the cells' excess is distributed, as a picture.
    pub fn excesses(&self) -> String {
        alone(&self.excess_charts())
    }

    /// The lines of a pair and length.
    fn of(&self, pair: usize, length: u32) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.pair == self.options.pairs[pair] && line.cell.length == length)
    }

    /// A chart for each length, with what `shape` makes of each pair from the `first` on.
    fn charts(&self, first: usize, chart: impl Fn(u32) -> Chart, shape: impl Fn(usize, u32) -> Shape) -> Vec<Chart> {
        let each = |length: &u32| {
            let mut chart = chart(*length);
            for (index, pair) in self.options.pairs.iter().enumerate().skip(first) {
                chart.add(&pair.to_string(), shape(index, *length));
            }
            chart
        };
        self.options.lengths.iter().map(each).collect()
    }

    fn ratio_axis(&self) -> Axis {
        Axis::logarithmic(&format!("time over that of {}", self.options.pairs[0]), Unit::Plain)
    }

    fn ratio_charts(&self) -> Vec<Chart> {
        let chart = |length| {
            let title = format!("Completion time of the slowest of six, {length} segments");
            Chart::new(&title, self.ratio_axis(), Axis::new("cells", Unit::Share))
        };
        let median = |line: &Line| Some(line.ratio?[1].value);
        self.charts(1, chart, |pair, length| Chart::distribution(self.of(pair, length).filter_map(median)))
    }

    fn rtt_charts(&self) -> Vec<Chart> {
        let chart = |length| {
            let rtt = Axis::logarithmic("round-trip time", Unit::Seconds);
            Chart::new(&format!("Each cell, {length} segments"), rtt, self.ratio_axis())
        };
        let pairs = self.options.pairs.len() as f64;
        self.charts(1, chart, |pair, length| {
            // Pairs stand beside each other.
            let aside = 1.0 + 0.06 * (pair as f64 - pairs / 2.0);
            let dot = |line: &Line| Some((line.cell.rtt_ns as f64 / 1e9 * aside, line.ratio?[1].value));
            Shape::Dots(self.of(pair, length).filter_map(dot).collect())
        })
    }

    fn excess_charts(&self) -> Vec<Chart> {
        let chart = |length| {
            let excess = Axis::logarithmic("time over the lower bound", Unit::Plain);
            let title = format!("Serialisation and a round trip are 1: {length} segments");
            Chart::new(&title, excess, Axis::new("cells", Unit::Share))
        };
        let times = |line: &Line| 1.0 + line.figures.excess_share;
        self.charts(0, chart, |pair, length| Chart::distribution(self.of(pair, length).map(times)))
    }

    /// One HTML page of everything but single runs and cells.
    pub fn page(&self) -> String {
        let title = "Flow completion times of six flows at one bottleneck";
        let options = &self.options;
        let mut body = format!(
            "<header><h1>{title}</h1>\n<p>In the simulator: {} cells, {} pairs, {} seeds from {} on; ratios are to {} with the same \
             seed. Intervals are of 95 %, by bootstrap over the seeds.</p></header>\n",
            self.outcomes.len(),
            options.pairs.len(),
            options.seeds,
            options.seed,
            options.pairs[0]
        );
        let median = "The median ratio of each cell: to the left of 1 the base is slower.";
        section(&mut body, "Ratios", median, || stack(&self.ratio_charts()));
        section(&mut body, "By round-trip time", "Each dot is a cell.", || stack(&self.rtt_charts()));
        let bound = "What all data takes on the bottleneck, and a round trip, is what no TCP is below.";
        section(&mut body, "Beyond the bound", bound, || stack(&self.excess_charts()));
        let note =
            "Ratios are at percentiles of the cells' medians. The lower and the upper end of the interval follow each.";
        section(&mut body, "In numbers", note, || table(&words(&self.group_heads()), self.group_rows()));
        document(title, &body)
    }

    /// The groups of all round-trip times, below and from 80 ms on, each in a line of text.
    pub fn lines_of_text(&self) -> Vec<String> {
        let groups = self.groups.iter().filter(|group| !matches!(group.at, At::Rtt(_)));
        let line = |group: &super::Group| {
            let ratios = group.ratio.map_or_else(
                || format!("{:>31}", "base"),
                |ratios| ratios.iter().map(|ratio| format!("{:>7.3}", ratio.value)).collect::<Vec<_>>().join(" "),
            );
            format!(
                "{:>4}  {:<11}  {:<16}  {ratios:>31}  {:>7}  {:>7.1} %  {:>8.2} %  {:>8.3}",
                group.length,
                group.at,
                group.pair,
                group.above_2,
                100.0 * group.figures.excess_share,
                100.0 * group.figures.overhead,
                group.figures.fairness
            )
        };
        let head = format!(
            "{:>4}  {:<11}  {:<16}  {:>7} {:>7} {:>7} {:>7}  {:>7}  {:>9}  {:>10}  {:>8}",
            "size", "RTT", "pair", "p10", "p50", "p90", "worst", "above 2", "excess", "overhead", "fairness"
        );
        std::iter::once(head).chain(groups.map(line)).collect()
    }
}
