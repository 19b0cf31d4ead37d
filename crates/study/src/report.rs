//! The results as tables, as a document and as pictures.

use crate::design::{Design, FULL};
use crate::experiment::OneTick;
use crate::sheet::{alone, csv, table};
use crate::study::{Line, Options, Part, Study};
use serde::Serialize;
use std::fmt::Write as _;
use weftwire_draw::chart::{Chart, Shape, stack};
use weftwire_draw::{Axis, Unit, document};

/// The worst insertion that the paper reports, in tries, and the load at which it was seen.
const PUBLISHED_WORST: (f64, f64) = (0.97, 71.0);

/// What a chart shows of a line.
type ValueOf = fn(&Line) -> f64;

/// One line of the results in numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The part of the study.
    pub part: Part,
    /// The design.
    pub design: &'static str,
    /// Its hash.
    pub hash: &'static str,
    /// For which ticks timers were armed.
    pub arrivals: String,
    /// The share of the design's timers that were armed.
    pub load: f64,
    /// Runs.
    pub runs: u64,
    /// Insertions that were measured.
    pub insertions: u64,
    /// Tries of an insertion on average.
    pub mean_tries: f64,
    /// Standard error of that.
    pub error_of_mean: f64,
    /// What theory says, if there is one: for tables of single places the paper's formula.
    pub theory: Option<f64>,
    /// 999 of 1,000 insertions take no more tries.
    pub tries_999: u64,
    /// The most tries.
    pub worst_tries: u64,
    /// The most tries of a run, on average over runs.
    pub mean_of_worst: f64,
    /// Ticks by which a timer is moved on average.
    pub mean_shift: f64,
    /// The most ticks by which one was moved.
    pub worst_shift: u64,
    /// Other timers that an insertion moves on average.
    pub mean_moves: f64,
    /// Insertions refused.
    pub refused: u64,
    /// Timers refused while filling.
    pub refused_filling: u64,
    /// Insertions that went to the stash.
    pub to_stash: u64,
    /// Timers in the stash on average.
    pub mean_stashed: f64,
    /// The most timers in the stash.
    pub stash_peak: u64,
}

/// What a design costs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cost {
    /// The design.
    pub design: &'static str,
    /// Places that hold timers, the stash left out.
    pub places: u64,
    /// Bits of a place.
    pub place_bits: u64,
    /// Bits of all memory.
    pub memory_bits: u64,
    /// Of them, for each of 16,384 timers.
    pub bits_per_timer: f64,
    /// The most ticks that a timer fires late, if it is bounded.
    pub most_shift: Option<u64>,
    /// The most cycles of an insertion, if they are bounded; see [`Design::most_cycles`].
    pub most_cycles: Option<u64>,
}

/// Timers of one tick.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SameTickRow {
    /// The design.
    pub design: &'static str,
    /// The share of other timers.
    pub load: f64,
    /// What became of them.
    #[serde(flatten)]
    pub outcome: OneTick,
}

/// Everything, for a document.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Document {
    /// What was measured.
    pub options: Options,
    /// The results.
    pub results: Vec<Row>,
    /// Costs of the designs.
    pub designs: Vec<Cost>,
    /// Timers of one tick.
    pub same_tick: Vec<SameTickRow>,
}

impl Row {
    fn new(line: &Line) -> Row {
        let (trial, tally) = (&line.trial, &line.tally);
        Row {
            part: line.part,
            design: trial.design.name,
            hash: trial.design.hash(),
            arrivals: trial.arrivals.describe(),
            load: trial.load,
            runs: tally.runs,
            insertions: tally.insertions,
            mean_tries: tally.mean_tries(),
            error_of_mean: tally.error_of_mean(),
            theory: trial.design.expected_tries(trial.load),
            tries_999: tally.tries_within(0.999),
            worst_tries: tally.most_tries,
            mean_of_worst: tally.mean_of_worst(),
            mean_shift: tally.mean_shift(),
            worst_shift: tally.most_shift,
            mean_moves: tally.moves as f64 / tally.insertions.max(1) as f64,
            refused: tally.refused,
            refused_filling: tally.refused_filling,
            to_stash: tally.to_stash,
            mean_stashed: tally.mean_stashed(),
            stash_peak: tally.stash_peak,
        }
    }
}

impl Cost {
    fn new(design: &Design) -> Cost {
        Cost {
            design: design.name,
            places: design.places(),
            place_bits: design.place_bits(),
            memory_bits: design.memory_bits(),
            bits_per_timer: design.memory_bits() as f64 / f64::from(FULL),
            most_shift: design.most_shift(),
            most_cycles: design.most_cycles(),
        }
    }
}

impl Study {
    /// All numbers.
    pub fn document(&self) -> Document {
        let same_tick =
            |it: &crate::study::SameTick| SameTickRow { design: it.design.name, load: it.load, outcome: it.outcome };
        Document {
            options: self.options.clone(),
            results: self.lines.iter().map(Row::new).collect(),
            designs: [Design::CUCKOO].iter().chain(&Design::COMPARED).map(Cost::new).collect(),
            same_tick: self.same_tick.iter().map(same_tick).collect(),
        }
    }

    /// Figure 3 of the paper as one SVG picture: the mean number of tries, measured and by the formula.
    pub fn figure_3(&self) -> String {
        alone(&[self.mean_against_theory()])
    }

    /// Figure 4 of the paper as one SVG picture: the calendar beside the cuckoo table, mean and worst.
    pub fn figure_4(&self) -> String {
        alone(&self.against_cuckoo())
    }

    /// The designs beside each other as one SVG picture.
    pub fn designs(&self) -> String {
        alone(&self.compared())
    }

    fn of(&self, part: Part, design: &Design, value: ValueOf) -> Vec<(f64, f64)> {
        let lines = self.lines.iter().filter(|line| line.part == part && line.trial.design == *design);
        lines.map(|line| (line.trial.load, value(line))).collect()
    }

    fn mean_against_theory(&self) -> Chart {
        let mut chart = Chart::new(
            "Figure 3: tries of an insertion",
            load_axis(&self.options.loads),
            Axis::new("mean tries", Unit::Plain),
        );
        let (low, high) = self.ends();
        let formula = (0..=200).map(|step| low + (high - low) * f64::from(step) / 200.0);
        chart.add("1/(1 - load^4)", Shape::Line(formula.map(|load| (load, Study::theory(load))).collect()));
        let mean = |line: &Line| line.tally.mean_tries();
        chart.add("random free table", Shape::Dots(self.of(Part::Figures, &Design::RANDOM_FREE, mean)));
        chart.add("first free table", Shape::Dots(self.of(Part::Figures, &Design::FIRST_FREE, mean)));
        chart
    }

    fn against_cuckoo(&self) -> Vec<Chart> {
        let values: [(&str, ValueOf); 2] = [
            ("Figure 4a: mean tries", |line| line.tally.mean_tries()),
            ("Figure 4b: worst tries", |line| line.tally.most_tries as f64),
        ];
        let mut charts: Vec<Chart> = values
            .into_iter()
            .map(|(title, value)| {
                let mut chart =
                    Chart::new(title, load_axis(&self.options.loads), Axis::logarithmic("tries", Unit::Plain));
                chart.add("cuckoo", Shape::Line(self.of(Part::Figures, &Design::CUCKOO, value)));
                chart.add("calendar", Shape::Line(self.of(Part::Figures, &Design::FIRST_FREE, value)));
                chart
            })
            .collect();
        if let Some(worst) = charts.last_mut() {
            let of_run = |line: &Line| line.tally.mean_of_worst();
            worst.add("calendar, worst of a run", Shape::Line(self.of(Part::Figures, &Design::FIRST_FREE, of_run)));
            worst.add("the paper's 71", Shape::Dots(vec![PUBLISHED_WORST]));
        }
        charts
    }

    fn compared(&self) -> Vec<Chart> {
        let values: [(&str, ValueOf); 2] =
            [("Mean tries", |line| line.tally.mean_tries()), ("Worst tries", |line| line.tally.most_tries as f64)];
        let shown = [
            "4 x 4096 x 1, first free",
            "2 x 2048 x 4, least loaded",
            "4 x 2048 x 2, least loaded",
            "4 x 1024 x 4, first free",
            "4 x 1024 x 4, least loaded",
            "2 x 1024 x 8, least loaded",
            Design::PROPOSAL.name,
        ];
        let chart = |(title, value): (&str, ValueOf)| {
            let mut chart = Chart::new(title, load_axis(&self.options.loads), Axis::logarithmic("tries", Unit::Plain));
            for design in Design::COMPARED.iter().filter(|design| shown.contains(&design.name)) {
                chart.add(design.name, Shape::Line(self.of(Part::Designs, design, value)));
            }
            chart
        };
        values.into_iter().map(chart).collect()
    }

    /// The least and the greatest load.
    fn ends(&self) -> (f64, f64) {
        let loads = || self.options.loads.iter().copied();
        (loads().fold(1.0, f64::min), loads().fold(0.0, f64::max))
    }

    /// One HTML page of everything.
    pub fn page(&self) -> String {
        let Document { options, results, designs, same_tick } = self.document();
        let mut body = String::from("<header><h1>The hash calendar, measured</h1>\n");
        let _ = writeln!(
            body,
            "<p>{} runs of {} substitutions for each load of the figures, intervals up to {} ticks, seed {}. A try reads one row of \
             each table at once. Loads are shares of 16,384 timers.</p></header>",
            options.repeats, options.substitutions, options.horizon, options.seed
        );
        let mut section = |title: &str, note: &str, content: String| {
            let _ = writeln!(
                body,
                "<section>\n<h2>{title}</h2>\n<p class=\"note\">{note}</p>\n<div class=\"scroll\">\n{content}</div>\n</section>"
            );
        };
        section(
            "Figure 3",
            "Tries of an insertion on average. The formula holds for a free table by chance; the first free one fills the tables \
             unevenly, which helps a little.",
            stack(&[self.mean_against_theory()]),
        );
        section(
            "Figure 4",
            "The worst of all runs is the greatest of a sample, and grows with the sample: no bound.",
            stack(&self.against_cuckoo()),
        );
        section("Other designs in the same memory", "", stack(&self.compared()));
        let parts = [
            (Part::Figures, "Figures 3 and 4 in numbers"),
            (Part::Designs, "Designs"),
            (Part::Stashes, "Stashes in long runs"),
            (Part::Adversaries, "Short horizons, bursts, periods, hashes"),
            (Part::PublishedHash, "The published hash"),
        ];
        section("What they cost", "", table(COST_HEADS, designs.iter().map(cost_cells)));
        section("Timers of one tick", "", table(SAME_TICK_HEADS, same_tick.iter().map(same_tick_cells)));
        for (part, title) in parts {
            let rows = results.iter().filter(|row| row.part == part).map(|row| row_cells(row).split_off(1));
            section(title, "", table(&ROW_HEADS[1..], rows));
        }
        document("The hash calendar, measured", &body)
    }
}

impl Document {
    /// The results as CSV.
    pub fn results_csv(&self) -> String {
        csv(ROW_HEADS, self.results.iter().map(row_cells))
    }

    /// The costs as CSV.
    pub fn designs_csv(&self) -> String {
        csv(COST_HEADS, self.designs.iter().map(cost_cells))
    }

    /// Timers of one tick as CSV.
    pub fn same_tick_csv(&self) -> String {
        csv(SAME_TICK_HEADS, self.same_tick.iter().map(same_tick_cells))
    }
}

const ROW_HEADS: &[&str] = &[
    "part",
    "design",
    "hash",
    "arrivals",
    "load",
    "runs",
    "insertions",
    "mean_tries",
    "error_of_mean",
    "theory",
    "tries_999",
    "worst_tries",
    "mean_of_worst",
    "mean_shift",
    "worst_shift",
    "mean_moves",
    "refused",
    "refused_filling",
    "to_stash",
    "mean_stashed",
    "stash_peak",
];

fn row_cells(row: &Row) -> Vec<String> {
    vec![
        row.part.name().to_owned(),
        row.design.to_owned(),
        row.hash.to_owned(),
        row.arrivals.clone(),
        format!("{:.2}", row.load),
        row.runs.to_string(),
        row.insertions.to_string(),
        format!("{:.4}", row.mean_tries),
        format!("{:.4}", row.error_of_mean),
        row.theory.map_or(String::new(), |theory| format!("{theory:.4}")),
        row.tries_999.to_string(),
        row.worst_tries.to_string(),
        format!("{:.2}", row.mean_of_worst),
        format!("{:.4}", row.mean_shift),
        row.worst_shift.to_string(),
        format!("{:.4}", row.mean_moves),
        row.refused.to_string(),
        row.refused_filling.to_string(),
        row.to_stash.to_string(),
        format!("{:.3}", row.mean_stashed),
        row.stash_peak.to_string(),
    ]
}

const COST_HEADS: &[&str] =
    &["design", "places", "place_bits", "memory_bits", "bits_per_timer", "most_shift", "most_cycles"];

fn cost_cells(cost: &Cost) -> Vec<String> {
    let bound = |bound: Option<u64>| bound.map_or("none".to_owned(), |bound| bound.to_string());
    vec![
        cost.design.to_owned(),
        cost.places.to_string(),
        cost.place_bits.to_string(),
        cost.memory_bits.to_string(),
        format!("{:.2}", cost.bits_per_timer),
        bound(cost.most_shift),
        bound(cost.most_cycles),
    ]
}

const SAME_TICK_HEADS: &[&str] = &["design", "load", "timers", "refused", "fired", "lost", "latest"];

fn same_tick_cells(row: &SameTickRow) -> Vec<String> {
    let OneTick { timers, refused, fired, lost, latest } = row.outcome;
    let numbers = [u64::from(timers), u64::from(refused), u64::from(fired), u64::from(lost), latest];
    let mut cells = vec![row.design.to_owned(), format!("{:.2}", row.load)];
    cells.extend(numbers.map(|number| number.to_string()));
    cells
}

/// From the tenth below the least load to 1.
fn load_axis(loads: &[f64]) -> Axis {
    let least = loads.iter().copied().fold(1.0, f64::min);
    Axis { ends: (Some((least * 10.0).floor() / 10.0), Some(1.0)), ..Axis::new("load", Unit::Share) }
}
