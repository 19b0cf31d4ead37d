//! The results as tables, as a document and as pictures.

use super::{Line, Options, Outcome, Study, Trial};
use crate::sheet::{alone, csv, table};
use serde::Serialize;
use std::fmt::Write as _;
use weftwire_draw::chart::{Chart, Shape, stack};
use weftwire_draw::escape_markup;
use weftwire_draw::{Axis, Unit, document};

/// The layers of the fat tree.
const LAYERS: [&str; 3] = ["top of rack", "aggregation", "core"];

/// One line of the results in numbers: medians over the runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// What was run.
    #[serde(flatten)]
    pub trial: Trial,
    /// Runs.
    pub runs: usize,
    /// The most entries of a switch, by layer.
    pub most_entries: Vec<f64>,
    /// Entries of a layer's switches on average, by layer.
    pub mean_entries: Vec<f64>,
    /// The most filters of a switch, by layer.
    pub most_filters: Vec<f64>,
    /// Packets on the core's links beyond those without rounding, as a share of these; of a fat tree.
    pub extra: Option<f64>,
}

/// Everything, for a document.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Document {
    /// What was measured.
    pub options: Options,
    /// The results.
    pub results: Vec<Row>,
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count.is_multiple_of(2) => (values[count / 2 - 1] + values[count / 2]) / 2.0,
        count => values[count / 2],
    }
}

/// The median by layer.
fn by_layer(outcomes: &[Outcome], values: impl Fn(&Outcome) -> Vec<f64>) -> Vec<f64> {
    let all: Vec<Vec<f64>> = outcomes.iter().map(values).collect();
    let layers = all.iter().map(Vec::len).max().unwrap_or(0);
    (0..layers).map(|layer| median(all.iter().filter_map(|values| values.get(layer).copied()))).collect()
}

fn floats(values: &[usize]) -> Vec<f64> {
    values.iter().map(|value| *value as f64).collect()
}

impl Study {
    /// All numbers.
    pub fn document(&self) -> Document {
        Document { options: self.options.clone(), results: self.lines.iter().map(|line| self.row(line)).collect() }
    }

    fn row(&self, line: &Line) -> Row {
        Row {
            trial: line.trial.clone(),
            runs: line.outcomes.len(),
            most_entries: by_layer(&line.outcomes, |it| floats(&it.most_entries)),
            mean_entries: by_layer(&line.outcomes, |it| it.mean_entries.clone()),
            most_filters: by_layer(&line.outcomes, |it| floats(&it.most_filters)),
            extra: self.extra(line),
        }
    }

    /// Core packets beyond those of the same run without rounding: the median over runs.
    fn extra(&self, line: &Line) -> Option<f64> {
        let Trial::FatTree { traffic_reduction, filters, .. } = line.trial else { return None };
        let exact = self.lines.iter().find(|it| it.trial == Trial::FatTree { traffic_reduction, alpha: 1, filters })?;
        let shares = line.outcomes.iter().zip(&exact.outcomes).filter(|(_, exact)| exact.core_packets > 0);
        Some(median(shares.map(|(it, exact)| it.core_packets as f64 / exact.core_packets as f64 - 1.0)))
    }

    /// Figure 13 of the paper as one SVG picture.
    pub fn figure_13(&self) -> String {
        alone(&self.fat_tree_charts())
    }

    /// Figure 15 of the paper as one SVG picture.
    pub fn figure_15(&self) -> String {
        alone(&self.tree_charts())
    }

    /// Points of the fat tree's trials that `wanted` gives a place to.
    fn points(&self, wanted: impl Fn(bool, u64, usize) -> Option<f64>, value: impl Fn(&Row) -> Option<f64>) -> Shape {
        let point = |line: &Line| {
            let Trial::FatTree { traffic_reduction, alpha, filters } = line.trial else { return None };
            Some((wanted(traffic_reduction, alpha, filters)?, value(&self.row(line))?))
        };
        let mut points: Vec<(f64, f64)> = self.lines.iter().filter_map(point).collect();
        points.sort_by(|one, two| one.0.total_cmp(&two.0));
        Shape::Line(points)
    }

    fn fat_tree_charts(&self) -> Vec<Chart> {
        let entries = || Axis::logarithmic("entries", Unit::Plain);
        let most = self.options.filters.iter().copied().max().unwrap_or(0);
        let coarse = self.options.alphas.iter().copied().find(|alpha| *alpha >= 10);
        let coarse = coarse.or(self.options.alphas.last().copied()).unwrap_or(1);
        let figures = [
            ("Figure 13a: memory reduction".to_owned(), false, 1),
            ("Figure 13b: traffic reduction".to_owned(), true, 1),
            (format!("Figure 13c: memory reduction, alpha {coarse}"), false, coarse),
        ];
        let chart = |(title, reduction, unit): (String, bool, u64)| {
            let mut chart = Chart::new(&title, Axis::new("filters", Unit::Plain), entries());
            for (layer, name) in LAYERS.iter().enumerate() {
                let at = |traffic_reduction, alpha, filters: usize| {
                    (traffic_reduction == reduction && alpha == unit).then_some(filters as f64)
                };
                chart.add(name, self.points(at, |row| row.most_entries.get(layer).copied()));
            }
            chart
        };
        let mut charts: Vec<Chart> = figures.into_iter().map(chart).collect();
        let unit = || Axis::new("alpha", Unit::Plain);
        let at = |reduction: bool| {
            move |traffic_reduction, alpha: u64, filters| {
                (traffic_reduction == reduction && filters == most).then_some(alpha as f64)
            }
        };
        let mut extra =
            Chart::new("Figure 13d: extra packets on links of the core", unit(), Axis::new("extra", Unit::Share));
        let mut sizes = Chart::new(&format!("Entries of {most} filters"), unit(), entries());
        for (name, reduction) in [("memory reduction", false), ("traffic reduction", true)] {
            extra.add(name, self.points(at(reduction), |row| row.extra));
            for (layer, of) in LAYERS.iter().enumerate() {
                sizes.add(
                    &format!("{name}, {of}"),
                    self.points(at(reduction), |row| row.most_entries.get(layer).copied()),
                );
            }
        }
        charts.extend([extra, sizes]);
        charts
    }

    fn tree_charts(&self) -> Vec<Chart> {
        let mut keys: Vec<(&str, usize)> = Vec::new();
        for line in &self.lines {
            if let Trial::Tree { graph, rules_per_node, .. } = &line.trial
                && !keys.contains(&(graph, *rules_per_node))
            {
                keys.push((graph, *rules_per_node));
            }
        }
        let chart = |(of, per_node): (&str, usize)| {
            let rules = if per_node == 1 { "one rule a node".to_owned() } else { format!("{per_node} rules a node") };
            let mut chart = Chart::new(
                &format!("Figure 15: {of}, {rules}"),
                Axis::new("rules", Unit::Plain),
                Axis::new("most entries of a switch", Unit::Plain),
            );
            for (name, weighted) in [("MST", false), ("MST++", true)] {
                let point = |line: &Line| match &line.trial {
                    Trial::Tree { graph, degree_weighted, rules_per_node, rules }
                        if graph == of && *degree_weighted == weighted && *rules_per_node == per_node =>
                    {
                        Some((*rules as f64, *self.row(line).most_entries.first()?))
                    }
                    _ => None,
                };
                chart.add(name, Shape::Line(self.lines.iter().filter_map(point).collect()));
            }
            chart
        };
        keys.into_iter().map(chart).collect()
    }

    /// One HTML page of everything.
    pub fn page(&self) -> String {
        let Document { options, results } = self.document();
        let title = "Routing of subscriptions, measured";
        let mut body = format!(
            "<header><h1>{title}</h1>\n<p>Medians of {} runs, seed {}. Figure 13: a fat tree of 20 switches and 16 hosts, filters of \
             one text and two numbers, {} messages a run. Figure 15: rules of one text and one number.</p></header>\n",
            options.repeats, options.seed, options.messages
        );
        let mut section = |title: &str, note: &str, content: String| {
            let _ = writeln!(
                body,
                "<section>\n<h2>{title}</h2>\n<p class=\"note\">{note}</p>\n<div class=\"scroll\">\n{content}</div>\n</section>"
            );
        };
        section(
            "Figure 13",
            "The most entries of a switch of each layer. Extra packets are those beyond what the same policy sends without rounding.",
            stack(&self.fat_tree_charts()),
        );
        section(
            "Figure 15",
            "The most entries of any switch. Compiled are the switches whose rules are spread most over their ports.",
            stack(&self.tree_charts()),
        );
        let rows = |cells: Vec<String>| cells.iter().map(|cell| escape_markup(cell)).collect();
        section("In numbers", "", table(HEADS, results.iter().flat_map(cells).map(rows)));
        document(title, &body)
    }
}

impl Document {
    /// The results as CSV.
    pub fn results_csv(&self) -> String {
        csv(HEADS, self.results.iter().flat_map(cells))
    }
}

const HEADS: &[&str] = &[
    "figure",
    "network",
    "policy",
    "alpha",
    "filters",
    "rules_per_node",
    "layer",
    "runs",
    "most_entries",
    "mean_entries",
    "most_filters",
    "extra_core_packets",
];

/// A line for each layer.
fn cells(row: &Row) -> Vec<Vec<String>> {
    let (head, names): ([String; 6], &[&str]) = match &row.trial {
        Trial::FatTree { traffic_reduction, alpha, filters } => {
            let policy = if *traffic_reduction { "tr" } else { "mr" };
            let texts = ["13", "fat tree", policy].map(str::to_owned);
            let [figure, network, policy] = texts;
            ([figure, network, policy, alpha.to_string(), filters.to_string(), String::new()], &LAYERS)
        }
        Trial::Tree { graph, degree_weighted, rules_per_node, rules } => {
            let policy = if *degree_weighted { "mst++" } else { "mst" };
            let (alpha, rules, each) = ("1".to_owned(), rules.to_string(), rules_per_node.to_string());
            (["15".to_owned(), graph.clone(), policy.to_owned(), alpha, rules, each], &["all"])
        }
    };
    let number = |values: &[f64], layer: usize| values.get(layer).map_or(String::new(), |value| format!("{value:.1}"));
    let line = |(layer, name): (usize, &&str)| {
        let mut cells = head.to_vec();
        cells.extend([(*name).to_owned(), row.runs.to_string()]);
        cells.extend([&row.most_entries, &row.mean_entries, &row.most_filters].map(|values| number(values, layer)));
        let extra = row.extra.filter(|_| *name == "core");
        cells.push(extra.map_or(String::new(), |extra| format!("{extra:.4}")));
        cells
    };
    names.iter().enumerate().map(line).collect()
}
