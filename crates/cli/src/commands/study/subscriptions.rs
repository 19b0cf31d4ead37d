//! `weft study subscriptions`.

use super::measure;
use crate::console::say;
use crate::folder::OutputFolder;
use crate::outputs;
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use weftwire_catalog::file::{self, Kind};
use weftwire_linux::signals::StopSignal;
use weftwire_route::parse_edges;
use weftwire_study::subscriptions::{Case, Document, Graph, Options, Study, Trial, plan};

#[derive(Args)]
pub struct Arguments {
    /// Numbers of filters in the fat tree [default: 100 to 1,000]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = parse_count)]
    filters: Vec<usize>,
    /// Units that constants are rounded to, beside 1 [default: 5, 10, 20, 50]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    alphas: Vec<u64>,
    /// Messages sent through the fat tree in a run
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    messages: u32,
    /// Numbers of rules in the large graph [default: 100 to 1,000]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = parse_count)]
    rules: Vec<usize>,
    /// Nodes of the graph that is made
    #[arg(long, value_name = "N", default_value_t = 26_475, value_parser = clap::value_parser!(u32).range(3..=200_000))]
    nodes: u32,
    /// A further graph: a file of edges, `12 7` a line
    #[arg(long, value_name = "FILE")]
    edges: Option<PathBuf>,
    /// Runs of each point, of which the median is shown
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeats: u32,
    /// The same seed gives the same results, byte for byte
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Make so many runs at once [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Write tables, pictures and the page into this folder
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

fn parse_count(text: &str) -> Result<usize, String> {
    match text.trim().parse() {
        Ok(count @ 1..=100_000) => Ok(count),
        _ => Err("a number from 1 to 100000".to_owned()),
    }
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let options = options(arguments);
    let graph = arguments.edges.as_deref().map(read_graph).transpose()?;
    let smallest = graph.iter().map(|graph| graph.edges.names.len()).chain([options.nodes]).min().unwrap_or(0);
    if let Some(rules) = options.rules.iter().find(|rules| **rules > smallest) {
        anyhow::bail!("{rules} nodes with a rule each are more than the {smallest} of a graph; lower --rules");
    }
    // A folder that cannot be made is known before the work.
    let folder = OutputFolder::begin(&arguments.out)?;
    let name = |case: &Case| match case.trial {
        Trial::FatTree { .. } => "fat tree",
        Trial::Tree { .. } => "graphs",
    };
    let measured = measure(plan(&options, graph), arguments.jobs, &StopSignal::install()?, Case::run, name)?;
    let study = Study::new(&options, measured);
    let document = study.document();
    write(folder.path(), &study, &document)?;
    folder.finish()?;
    describe(&document, &arguments.out);
    Ok(())
}

fn options(arguments: &Arguments) -> Options {
    let defaults = Options::default();
    let sorted = |given: &[usize], default: Vec<usize>| {
        let mut list = if given.is_empty() { default } else { given.to_vec() };
        list.sort_unstable();
        list.dedup();
        list
    };
    let mut alphas = if arguments.alphas.is_empty() { defaults.alphas } else { arguments.alphas.clone() };
    // What others are compared with.
    alphas.push(1);
    alphas.sort_unstable();
    alphas.dedup();
    alphas.retain(|alpha| *alpha > 0);
    Options {
        filters: sorted(&arguments.filters, defaults.filters),
        alphas,
        messages: arguments.messages as usize,
        rules: sorted(&arguments.rules, defaults.rules),
        nodes: arguments.nodes as usize,
        repeats: arguments.repeats,
        seed: arguments.seed,
    }
}

fn read_graph(file: &Path) -> Result<Graph> {
    let text = file::text(file, Kind::Rules)?;
    let edges = parse_edges(&text).with_context(|| file.display().to_string())?;
    let stem = file.file_stem().map_or("graph".into(), |stem| stem.to_string_lossy());
    let name: String =
        stem.chars().filter(|letter| letter.is_ascii_alphanumeric() || "-_. ".contains(*letter)).collect();
    let topology = edges.topology(&[0]);
    topology.with_context(|| format!("cannot route in {}", file.display()))?;
    ensure!(!edges.edges.is_empty(), "{}: no edges", file.display());
    Ok(Graph { name, edges })
}

fn write(folder: &Path, study: &Study, document: &Document) -> Result<()> {
    let texts = [
        ("results.csv", document.results_csv()),
        ("figure-13.svg", study.figure_13()),
        ("figure-15.svg", study.figure_15()),
        ("report.html", study.page()),
    ];
    outputs::write_json(&folder.join("results.json"), document)?;
    texts.iter().try_for_each(|(name, text)| outputs::write_text(&folder.join(name), text))
}

/// The ends of the figures in numbers, on standard output.
fn describe(document: &Document, folder: &Path) {
    let (filters, rules) = (document.options.filters.last(), document.options.rules.last());
    say!("most entries of a switch; packets of the core beyond those without rounding");
    for row in &document.results {
        match &row.trial {
            Trial::FatTree { traffic_reduction, alpha, filters: count } if Some(count) == filters => {
                let policy = if *traffic_reduction { "tr" } else { "mr" };
                let entries: Vec<String> = row.most_entries.iter().map(|entries| format!("{entries:>9.1}")).collect();
                let extra = 100.0 * row.extra.unwrap_or(0.0);
                say!("{count} filters  {policy}  alpha {alpha:>4}  {}  {extra:>6.2} %", entries.join(" "));
            }
            Trial::Tree { graph, degree_weighted, rules_per_node, rules: count } if Some(count) == rules => {
                let tree = if *degree_weighted { "MST++" } else { "MST" };
                let entries = row.most_entries.first().copied().unwrap_or(0.0);
                say!("{count} rules, {rules_per_node} a node  {tree:<5}  {entries:>9.1}  {graph}");
            }
            _ => {}
        }
    }
    say!("report          {}", folder.join("report.html").display());
}
