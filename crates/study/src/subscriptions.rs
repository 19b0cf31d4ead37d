//! Subscriptions routed through networks: what their tables cost in switches, and the traffic that coarser filters cause.
//!
//! After Figures 13 and 15 of Jepsen et al., "Forwarding and Routing With Packet Subscriptions".

mod graph;
mod report;

pub use graph::as_like;
pub use report::Document;

use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use weftwire_route::{
    EdgeList, Failures, Fibs, HostId, MessageFilter, Out, Packet, Plan, Policy, Programs, Settings, Spread, Spreader,
    SwitchId, SwitchProgram, Table, Ties, Topology, Weight, fat_tree, tables, walk,
};
use weftwire_subscribe::budget::Budget;
use weftwire_subscribe::compiler::Options as CompilerOptions;
use weftwire_subscribe::formats::{FieldId, Form, HeaderId};
use weftwire_subscribe::{Message, MessageFormats, Watch, order, read_rules};
use weftwire_workload::{Numbers, Siena, siena};

/// Switches of a large graph whose rules are compiled: the others have fewer filters on fewer ports.
const CANDIDATES: usize = 6;

/// What is measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Options {
    /// Numbers of filters of the fat tree.
    pub filters: Vec<usize>,
    /// Units that constants are rounded to; 1: not at all.
    pub alphas: Vec<u64>,
    /// Messages sent through the fat tree in each run.
    pub messages: usize,
    /// Numbers of rules of the large graph.
    pub rules: Vec<usize>,
    /// Nodes of the graph that is made.
    pub nodes: usize,
    /// Runs of each point, with seeds that count up.
    pub repeats: u32,
    /// The same seed gives the same numbers.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            filters: vec![100, 200, 400, 600, 800, 1_000],
            alphas: vec![1, 5, 10, 20, 50],
            messages: 1_000,
            rules: vec![100, 200, 400, 700, 1_000],
            nodes: 26_475,
            repeats: 11,
            seed: 1,
        }
    }
}

/// A graph for Figure 15.
#[derive(Clone, PartialEq, Debug)]
pub struct Graph {
    /// Its name in tables.
    pub name: String,
    /// Its links.
    pub edges: EdgeList,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is run.
    pub trial: Trial,
    graph: Option<Arc<Graph>>,
    messages: usize,
    seed: u64,
}

/// What is run, without the seed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(tag = "figure")]
pub enum Trial {
    /// Figure 13: filters of three variables in a fat tree of 20 switches and 16 hosts.
    #[serde(rename = "13")]
    FatTree {
        /// Traffic reduction, or else memory reduction.
        traffic_reduction: bool,
        /// The unit that constants are rounded to.
        alpha: u64,
        /// How many filters all hosts have together.
        filters: usize,
    },
    /// Figure 15: rules of two variables at random nodes of a graph.
    #[serde(rename = "15")]
    Tree {
        /// The graph.
        graph: String,
        /// MST++, or else MST.
        degree_weighted: bool,
        /// Rules of a node that has any.
        rules_per_node: usize,
        /// Rules of all nodes.
        rules: usize,
    },
}

/// What came of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Outcome {
    /// The most entries of a switch, by layer; of a graph there is one layer.
    pub most_entries: Vec<usize>,
    /// The entries of the layer's switches on average.
    pub mean_entries: Vec<f64>,
    /// The most filters of a switch, by layer.
    pub most_filters: Vec<usize>,
    /// Packets on the links of the highest layer.
    pub core_packets: u64,
    /// Of them, those that no host got.
    pub core_extra: u64,
}

/// All runs of a study. They may be made in any order and at once.
pub fn plan(options: &Options, measured: Option<Graph>) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |trial: &Trial, graph: Option<&Arc<Graph>>| {
        for run in 0..options.repeats {
            let seed = options.seed.wrapping_mul(1 << 32).wrapping_add(u64::from(run));
            cases.push(Case { trial: trial.clone(), graph: graph.cloned(), messages: options.messages, seed });
        }
    };
    for traffic_reduction in [false, true] {
        for alpha in &options.alphas {
            for filters in &options.filters {
                add(&Trial::FatTree { traffic_reduction, alpha: *alpha, filters: *filters }, None);
            }
        }
    }
    let made = Graph { name: format!("AS-like, {} nodes", options.nodes), edges: as_like(options.nodes, options.seed) };
    for graph in std::iter::once(made).chain(measured).map(Arc::new) {
        for rules_per_node in [1, 10] {
            for degree_weighted in [false, true] {
                for rules in &options.rules {
                    let name = graph.name.clone();
                    let trial = Trial::Tree { graph: name, degree_weighted, rules_per_node, rules: *rules };
                    add(&trial, Some(&graph));
                }
            }
        }
    }
    cases
}

/// Filters, and how they are compiled.
struct Filters {
    formats: Arc<MessageFormats>,
    list: Vec<MessageFilter>,
    options: CompilerOptions,
}

/// Filters as the generator of synthetic benchmarks makes them: of `variables` attributes one is a text and the others are
/// numbers, and a filter tests all of them.
fn filters(variables: usize, count: usize, seed: u64) -> Option<Filters> {
    let parameters = Siena { attributes: variables, conjunctions: variables, filters: count, ..Siena::default() };
    // The kinds of attributes are drawn: take the first seed from here on that draws one text.
    let (formats, rules) = (0..1_000)
        .map(|step| siena(&parameters, seed.wrapping_mul(1_009).wrapping_add(step)))
        .find(|(formats, _)| formats.matches("text=").count() == 1)?;
    let (mut sources, mut found) = (weftwire_text::SourceMap::default(), Vec::new());
    let formats = Arc::new(MessageFormats::read("formats", &formats, &mut sources, &mut found)?);
    let rules = read_rules("rules", &rules, &formats, &mut sources, &mut found);
    let list = rules.iter().filter_map(|rule| MessageFilter::new(&rule.filter, &formats).ok()).collect();
    let order = Some(order::choose(&formats, &rules, &Watch::default()));
    let options = CompilerOptions { order, budget: Budget::UNLIMITED, ..CompilerOptions::default() };
    Some(Filters { formats, list, options })
}

/// Messages with all attributes: numbers from 0 to 99, and one of the generator's words.
fn messages(formats: &MessageFormats, count: usize, numbers: &mut Numbers) -> Vec<Message> {
    let header = HeaderId(0);
    let fields: Vec<(FieldId, bool)> = (0..=u16::MAX)
        .map(FieldId)
        .zip(formats.fields())
        .filter(|(_, field)| field.header == header)
        .map(|(id, field)| (id, matches!(field.form, Form::Text { .. })))
        .collect();
    let message = |_| {
        let mut message = Message::new(formats);
        message.add_header(header);
        for (field, is_text) in &fields {
            message.set(*field, if *is_text { word(numbers.below(170)) } else { numbers.below(100).into() });
        }
        message
    };
    (0..count).map(message).collect()
}

/// A word as the generator writes it, `w012`, padded to 8 bytes.
fn word(number: u64) -> u128 {
    format!("w{number:03}    ").bytes().take(8).fold(0, |value, byte| value << 8 | u128::from(byte))
}

impl Case {
    /// Runs it. Nothing comes of a trial that cannot be, such as more nodes with rules than there are.
    pub fn run(&self) -> Outcome {
        let outcome = match (&self.trial, &self.graph) {
            (Trial::FatTree { traffic_reduction, alpha, filters }, _) => {
                self.fat_tree(*traffic_reduction, *alpha, *filters)
            }
            (Trial::Tree { degree_weighted, rules_per_node, rules, .. }, Some(graph)) => {
                self.tree(graph, *degree_weighted, *rules_per_node, *rules)
            }
            (Trial::Tree { .. }, None) => None,
        };
        outcome.unwrap_or_default()
    }

    fn fat_tree(&self, traffic_reduction: bool, alpha: u64, count: usize) -> Option<Outcome> {
        let topology = fat_tree(4).ok()?;
        let hosts: Vec<HostId> = topology.hosts().collect();
        let Filters { formats, list, options } = filters(3, count, self.seed)?;
        let mut numbers = Numbers::new(self.seed ^ 0x6d65_7373);
        let any_host = |numbers: &mut Numbers| hosts[numbers.below(hosts.len() as u64) as usize];
        let subscriptions: Vec<_> = list.into_iter().map(|filter| (any_host(&mut numbers), filter)).collect();
        let policy = if traffic_reduction { Policy::TrafficReduction } else { Policy::MemoryReduction };
        let settings = Settings { policy, units: vec![alpha], ..Settings::default() };
        let plan = Plan::new(&topology, &Failures::default(), settings).ok()?;
        let tables = tables(&topology, &plan, &subscriptions);
        let programs = Programs::new(&topology, &plan, &tables, &formats, &options).ok()?;
        let layers = topology.switches().map(|switch| topology.layer(switch)).max()? + 1;
        let mut outcome = Outcome::default();
        for layer in 0..layers {
            let of_layer = || topology.switches().filter(|switch| topology.layer(*switch) == layer);
            let entries: Vec<usize> = of_layer().map(|switch| programs.of(switch).entries()).collect();
            outcome.most_entries.push(entries.iter().copied().max().unwrap_or(0));
            outcome.mean_entries.push(entries.iter().sum::<usize>() as f64 / entries.len().max(1) as f64);
            outcome.most_filters.push(of_layer().map(|switch| tables.size(switch)).max().unwrap_or(0));
        }
        let mut spreader = Spreader::new(Spread::FlowHash, self.seed);
        for (flow, message) in messages(&formats, self.messages, &mut numbers).iter().enumerate() {
            let packet = Packet { publisher: any_host(&mut numbers), message, flow: flow as u64 };
            let traffic = walk(&topology, &plan, &programs, packet, &mut spreader).traffic(&topology);
            let core = traffic.get(&(layers - 1)).copied().unwrap_or_default();
            outcome.core_packets += core.crossings;
            outcome.core_extra += core.extra;
        }
        Some(outcome)
    }

    fn tree(&self, graph: &Graph, degree_weighted: bool, rules_per_node: usize, rules: usize) -> Option<Outcome> {
        let mut numbers = Numbers::new(self.seed ^ 0x7472_6565);
        let nodes = rules.div_ceil(rules_per_node.max(1));
        if nodes > graph.edges.names.len() {
            return None;
        }
        let mut chosen = std::collections::BTreeSet::new();
        while chosen.len() < nodes {
            chosen.insert(numbers.below(graph.edges.names.len() as u64) as usize);
        }
        let topology = graph.edges.topology(&chosen.into_iter().collect::<Vec<_>>()).ok()?;
        let Filters { formats, list, options } = filters(2, rules, self.seed)?;
        let hosts = topology.hosts().flat_map(|host| std::iter::repeat_n(host, rules_per_node));
        let subscriptions: Vec<(HostId, MessageFilter)> = hosts.zip(list).collect();
        let weight = if degree_weighted { Weight::DegreeProduct } else { Weight::Uniform };
        let settings = Settings { weight, ties: Ties::Seeded(self.seed), ..Settings::default() };
        let plan = Plan::new(&topology, &Failures::default(), settings).ok()?;
        let tree = plan.trees().first()?;
        let fibs = Fibs::new(&topology, tree, &subscriptions);
        let mut most = (0, 0);
        for switch in candidates(&topology, &fibs) {
            let table = table(&topology, &fibs, switch);
            let program = SwitchProgram::new(&topology, &plan, switch, &table, &formats, &options).ok()?;
            most = (most.0.max(program.entries()), most.1.max(program.filters()));
        }
        Some(Outcome { most_entries: vec![most.0], most_filters: vec![most.1], ..Outcome::default() })
    }
}

/// The switches that are likely to need most entries: those whose filters are spread most over their ports, by entropy. Where
/// all filters point one way the tables are small, however many they are.
fn candidates(topology: &Topology, fibs: &Fibs<'_, MessageFilter>) -> Vec<SwitchId> {
    let all = fibs.subscriptions().len().max(1) as f64;
    let mut ranked: Vec<(f64, SwitchId)> = topology
        .switches()
        .map(|switch| {
            let ports = fibs.ports(switch).into_iter().map(|port| port.ranges.iter().map(ExactSizeIterator::len).sum());
            let counts = ports.chain(std::iter::once(fibs.local(switch).len())).filter(|count: &usize| *count > 0);
            let shares = counts.map(|count| count as f64 / all);
            (shares.map(|share| -share * share.ln()).sum(), switch)
        })
        .collect();
    ranked.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
    ranked.into_iter().take(CANDIDATES).map(|(_, switch)| switch).collect()
}

fn table(topology: &Topology, fibs: &Fibs<'_, MessageFilter>, switch: SwitchId) -> Table<MessageFilter> {
    let mut table: Table<MessageFilter> = BTreeMap::new();
    for (host, filter) in &fibs.subscriptions()[fibs.local(switch)] {
        table.entry(Out::Port(topology.access(*host).1)).or_default().insert(filter.clone());
    }
    for port in fibs.ports(switch) {
        for (_, filter) in fibs.behind(&port) {
            table.entry(Out::Tree { tree: 0, port: port.port }).or_default().insert(filter.clone());
        }
    }
    table
}

/// All runs of a trial.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// What was run.
    pub trial: Trial,
    /// What came of each run.
    pub outcomes: Vec<Outcome>,
}

/// All results.
#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    /// What was measured.
    pub options: Options,
    /// The trials in the order of the plan.
    pub lines: Vec<Line>,
}

impl Study {
    /// Puts the outcomes of all cases of the plan together, in its order.
    pub fn new(options: &Options, outcomes: Vec<(Case, Outcome)>) -> Study {
        let mut lines: Vec<Line> = Vec::new();
        for (case, outcome) in outcomes {
            match lines.last_mut().filter(|line| line.trial == case.trial) {
                Some(line) => line.outcomes.push(outcome),
                None => lines.push(Line { trial: case.trial, outcomes: vec![outcome] }),
            }
        }
        Study { options: options.clone(), lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Options {
        Options {
            filters: vec![60],
            alphas: vec![1, 20],
            messages: 200,
            rules: vec![40],
            nodes: 120,
            repeats: 2,
            seed: 3,
        }
    }

    fn run(options: &Options) -> Study {
        let cases = plan(options, None);
        Study::new(options, cases.into_iter().map(|case| (case.clone(), case.run())).collect())
    }

    #[test]
    fn figures_have_the_shape_of_the_papers() {
        let study = run(&small());
        assert_eq!(study, run(&small()));
        let of = |reduction: bool, unit: u64| {
            let wanted = |line: &&Line| {
                matches!(line.trial, Trial::FatTree { traffic_reduction, alpha, .. }
                    if traffic_reduction == reduction && alpha == unit)
            };
            study.lines.iter().find(wanted).unwrap().outcomes[0].clone()
        };
        let (mr, tr, coarse) = (of(false, 1), of(true, 1), of(true, 20));
        // The lower layers need less with memory reduction, the core as much; traffic reduction wastes nothing.
        assert!(mr.most_filters[0] < tr.most_filters[0] && mr.most_filters[1] < tr.most_filters[1]);
        assert_eq!(mr.most_entries[2], tr.most_entries[2]);
        assert_eq!((tr.core_extra, coarse.core_extra > 0), (0, true));
        assert!(mr.core_packets > tr.core_packets && coarse.core_packets > tr.core_packets);
        assert!(coarse.most_entries[2] < tr.most_entries[2]);
        let trees = study.lines.iter().filter(|line| matches!(line.trial, Trial::Tree { .. }));
        assert!(trees.flat_map(|line| &line.outcomes).all(|outcome| outcome.most_entries[0] > 0));
    }

    /// On a small graph, where all switches can be compiled, the candidates have the one with most entries, or one close to it.
    #[test]
    fn candidates_have_the_greatest_tables() {
        let graph = as_like(150, 5);
        let topology = graph.topology(&(0..150).step_by(3).collect::<Vec<_>>()).unwrap();
        let Filters { formats, list, options } = filters(2, 50, 1).unwrap();
        let subscriptions: Vec<_> = topology.hosts().zip(list).collect();
        let plan = Plan::new(&topology, &Failures::default(), Settings::default()).unwrap();
        let fibs = Fibs::new(&topology, &plan.trees()[0], &subscriptions);
        let whole = tables(&topology, &plan, &subscriptions);
        let entries = |switch: SwitchId| {
            let table = table(&topology, &fibs, switch);
            assert_eq!(&table, whole.table(switch));
            SwitchProgram::new(&topology, &plan, switch, &table, &formats, &options).unwrap().entries()
        };
        let all = topology.switches().map(entries).max().unwrap();
        let found = candidates(&topology, &fibs).into_iter().map(entries).max().unwrap();
        assert!(found * 100 >= all * 95, "{found} of {all}");
    }
}
