//! Reading a `network.toml`.
//!
//! The text becomes a tree whose parts know their places (`tree`), changes are made in that, the tree becomes the types
//! of [`crate::description`] (`fields`), and those become a [`Network`]: nodes and links first, then what uses them.
//! Each step goes on after an error where it can, so that many are told at once.

mod changes;
mod checks;
pub(crate) mod fields;
mod links;
mod names;
mod nodes;
pub(crate) mod problems;
mod routes;
mod settings;
mod sizes;
mod traffic;
pub(crate) mod tree;

use crate::description::values::{Duration, Sweep};
use crate::description::{self, File};
use crate::link::RateTrace;
use crate::model::{Network, Node};
use crate::traffic::Size;
use names::Index;
use problems::Problems;
use std::collections::BTreeMap;
use std::sync::Arc;
use tree::Value;
use weftwire_text::{Diagnostic, LoadError, SourceMap, Span};

/// No file makes more nodes.
pub const MOST_NODES: usize = 100_000;
/// No file makes more links.
pub const MOST_LINKS: usize = 1_000_000;
/// No file makes more traffic.
pub const MOST_TRAFFIC: usize = 1_000_000;
/// No file makes more changes and faults, of each direction of each link.
pub const MOST_CHANGES: usize = 200_000;
/// No file makes more static routes, of each node to each destination.
pub const MOST_ROUTES: usize = 1_000_000;
/// No sweep has more combinations.
pub const MOST_POINTS: usize = 100_000;
/// No file is longer, bytes.
pub const LONGEST_TEXT: usize = 64 << 20;

/// What reading a file gave: the network if there is no error.
pub struct Reading {
    /// The network.
    pub network: Option<Network>,
    /// Its sweep: dotted paths into the file and the values each takes, in the order of the file; empty without one.
    pub sweep: Vec<(String, Vec<toml::Value>)>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts that the diagnostics point into.
    pub sources: SourceMap,
}

/// Reads the text of the file `name`. `changes` are dotted paths (`links.uplink.rate`, `seed`) with values that take the
/// place of the file's: a point of a sweep, or `--set`. `load` gives the text of a file that the network names (rate
/// traces, size distributions), relative to the network's file.
pub fn read(
    name: &str,
    text: &str,
    changes: &[(String, toml::Value)],
    load: &dyn Fn(&str) -> Result<String, LoadError>,
) -> Reading {
    let mut problems = Problems::default();
    let mut sources = SourceMap::default();
    let file = sources.add(name.to_owned(), text.to_owned());
    let mut sweep = Vec::new();
    let network = document(name, text, file, changes, &mut sources, &mut problems).and_then(|tree| {
        let top = Span { file, start: 0, end: 0 };
        let read: Option<File> = fields::read_table(&tree, top, &mut problems);
        let read = read?;
        if let Some(given) = &read.sweep {
            sweep = read_sweep(given, &tree, &mut problems);
        }
        let reader = Reader { problems: &mut problems, load, traces: BTreeMap::new(), sizes: BTreeMap::new() };
        reader.network(name, &read)
    });
    let network = network.filter(|_| !problems.failed());
    let mut diagnostics = problems.list;
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    Reading { network, sweep, diagnostics, sources }
}

/// The tree with the changes made.
fn document(
    name: &str,
    text: &str,
    file: u16,
    changes: &[(String, toml::Value)],
    sources: &mut SourceMap,
    problems: &mut Problems,
) -> Option<Value> {
    if text.len() > LONGEST_TEXT {
        problems.error(Span { file, ..Span::default() }, "the file is longer than 64 MiB");
        return None;
    }
    let mut tree = Value::document(text, file, problems)?;
    // The changes as a text of their own, so that errors in them have a place, too.
    let mut said = String::new();
    let mut places = Vec::new();
    for (path, value) in changes {
        said += path;
        said += " = ";
        let value = value.to_string();
        places.push((path, said.len(), value.clone()));
        said += &value;
        said += "\n";
    }
    if places.is_empty() {
        return Some(tree);
    }
    let file = sources.add(format!("{name} (changed)"), said);
    for (path, at, text) in places {
        let Some(value) = Value::single(&text, file, at, problems) else { continue };
        let start = at - path.len() - 3;
        let span = Span { file, start: start as u32, end: (at - 3) as u32 };
        if let Err((message, help)) = tree.put(path, value) {
            let error = Diagnostic::error(span, message);
            problems.add(Diagnostic { help, ..error });
        }
    }
    Some(tree)
}

/// The sweep as it is handed out, all its paths tried together, as a point of it has them.
fn read_sweep(given: &Sweep, tree: &Value, problems: &mut Problems) -> Vec<(String, Vec<toml::Value>)> {
    let mut points = 1usize;
    let mut sweep = Vec::new();
    let mut tree = tree.clone();
    for (path, values) in &given.0 {
        if let Err((message, help)) = tree.put(&path.text, values[0].clone()) {
            problems.add(Diagnostic { help, ..Diagnostic::error(path.span, message) });
        }
        if path.text == "sweep" || path.text.starts_with("sweep.") {
            problems.error(path.span, "a sweep can't change itself");
        }
        points = points.saturating_mul(values.len());
        if points > MOST_POINTS {
            problems.error(path.span, format!("the sweep has more than {MOST_POINTS} combinations"));
            break;
        }
        let converted: Vec<toml::Value> = values.iter().filter_map(Value::to_toml).collect();
        if converted.len() < values.len() {
            problems.error(path.span, "a value of the sweep is a date or too large");
        }
        sweep.push((path.text.clone(), converted));
    }
    sweep
}

/// Makes the network of a description.
struct Reader<'a> {
    problems: &'a mut Problems,
    load: &'a dyn Fn(&str) -> Result<String, LoadError>,
    /// Rate traces by file and given period.
    traces: BTreeMap<(String, Option<i64>), Arc<RateTrace>>,
    /// Size distributions by file.
    sizes: BTreeMap<String, Size>,
}

/// Nodes and links, with what else the steps need to know of them.
struct Graph {
    nodes: Vec<Node>,
    node_names: Index,
    /// Hosts that only send.
    sources: std::collections::BTreeSet<usize>,
    links: Vec<crate::model::Link>,
    link_names: Index,
    seed: u64,
    /// How long a run lasts, in nanoseconds.
    duration: i64,
}

impl Reader<'_> {
    fn network(mut self, file_name: &str, file: &File) -> Option<Network> {
        let name = self.name(file_name, file);
        let seed = file.seed.unwrap_or(1);
        let duration = file.duration.0;
        if duration == 0 {
            self.problems.error(file.places.value("duration"), "the duration must be above 0s");
        }
        let warm_up = file.warm_up.map_or(0, |warm_up| warm_up.0);
        if warm_up >= duration && duration > 0 && warm_up > 0 {
            let help = "the run goes on behind it, and is measured then";
            self.problems.error_help(file.places.value("warm_up"), "`warm_up` must be shorter than the duration", help);
        }
        let repetitions = file.repetitions.unwrap_or(1);
        if repetitions == 0 {
            self.problems.error(file.places.value("repetitions"), "at least one repetition is needed");
        }
        let sample_interval = file.sample_interval.map_or((duration / 1_000).max(1_000), |Duration(given)| given);
        if sample_interval < 1_000 || duration / sample_interval.max(1) > 10_000_000 {
            let help = "at least 1us, and at most 10 million samples";
            self.problems.error_help(file.places.value("sample_interval"), "links would be sampled too often", help);
        }
        let graph = self.graph(file, seed, duration)?;
        let traffic = self.traffic(file.traffic.as_deref().unwrap_or_default(), &graph);
        let changes = self.changes(file, &graph);
        let captures = file.record.as_ref().map_or_else(Vec::new, |record| self.captures(record, &graph));
        let routing = self.routing(file);
        let Graph { nodes, links, node_names, .. } = graph;
        let mut network = Network {
            name,
            seed,
            duration: file.duration.get(),
            sample_interval: std::time::Duration::from_nanos(sample_interval.unsigned_abs()),
            probes: file.probes.iter().flat_map(|names| &names.0).map(|word| word.text.clone()).collect(),
            warm_up: file.warm_up.map_or(std::time::Duration::ZERO, |warm_up| warm_up.get()),
            repetitions,
            nodes,
            links,
            traffic,
            changes,
            captures,
            routing,
        };
        network.routing.routes = self.static_routes(file, &network, &node_names);
        network.reseed(seed);
        Some(network)
    }

    /// The given name, or one made of the file's.
    fn name(&mut self, file_name: &str, file: &File) -> String {
        if let Some(name) = &file.name {
            names::check_name(name, "network", 24, self.problems);
            return name.text.clone();
        }
        let stem = file_name.rsplit(['/', '\\']).next().unwrap_or_default();
        let stem = stem.strip_suffix(".toml").unwrap_or(stem);
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
        let name: String = stem.chars().take(24).map(plain).collect();
        if name.is_empty() { "network".into() } else { name }
    }

    /// Nodes and links; `None` if they are too wrong to go on.
    fn graph(&mut self, file: &File, seed: u64, duration: i64) -> Option<Graph> {
        let made = self.topology(file.topology.as_ref(), seed)?;
        let (drafts, node_names) = self.node_drafts(&made, file)?;
        let (links, link_names, ports) = self.links(&made, file, &node_names)?;
        let sources = (0..drafts.len()).filter(|node| drafts[*node].kind == description::NodeKind::Source).collect();
        let nodes = self.finish_nodes(drafts, &node_names, ports);
        let graph = Graph { nodes, node_names, sources, links, link_names, seed, duration };
        self.check_loops(&graph, file);
        Some(graph)
    }
}
