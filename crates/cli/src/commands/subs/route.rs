//! `weft subs route`: subscriptions of a network's hosts to rules and tables of its switches.

use super::{Compiling, Line, is_error};
use crate::console::{say, tell};
use crate::diagnostics::show;
use crate::folder::OutputFolder;
use crate::load::catalog;
use crate::outputs;
use crate::progress::ProgressLine;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weftwire_catalog::file::{self, Kind};
use weftwire_catalog::{FieldsInOrder, NetworkSource, Rules, capture, summary};
use weftwire_draw::document;
use weftwire_linux::signals::StopSignal;
use weftwire_network::model::NodeKind;
use weftwire_route::{
    Attached, EdgeList, Failures, Forwarding, HostId, LayerTraffic, Layers, MessageFilter, Mode, Node, Out, Packet,
    Plan, Policy, Settings, Spread, Spreader, SwitchId, SwitchProgram, Ties, Topology, Weight, fat_tree, parse_edges,
    tables, walk,
};
use weftwire_study::sheet;
use weftwire_subscribe::compiler::Options;
use weftwire_subscribe::document::Document;
use weftwire_subscribe::formats::FieldId;
use weftwire_subscribe::rules::{Action, Rule};
use weftwire_subscribe::subscriptions::{Subscription, read_subscriptions};
use weftwire_subscribe::{Message, MessageFormats, order, packet, write};
use weftwire_text::Diagnostic;

/// Route subscriptions: the rules and tables of each switch of a network, so that every host gets what it subscribed to, once.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The message formats: a .p4 file with annotations
    #[arg(long, value_name = "FILE")]
    format: PathBuf,
    /// The subscriptions: lines `HOST: filter`
    #[arg(long, value_name = "FILE")]
    subscriptions: PathBuf,
    /// What is saved: memory or traffic up a hierarchy; or how the spanning tree of any graph is chosen
    #[arg(long, value_enum, default_value_t = PolicyName::Tr)]
    policy: PolicyName,
    /// Round constants of filters to multiples of this; by layer from the lowest, the last one for all above
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    alpha: Vec<u64>,
    /// Send these messages through the network, each from the next host in turn, and count what crosses links
    #[arg(long, value_name = "CAPTURE")]
    messages: Option<PathBuf>,
    #[command(flatten)]
    compiling: Compiling,
    /// Write rules, tables and the report into this folder
    #[arg(short, long, value_name = "FOLDER")]
    out: PathBuf,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Place {
    /// The network: its routers, switches and functions forward, all other nodes publish and subscribe
    #[arg(long, value_name = "NETWORK.toml")]
    network: Option<PathBuf>,
    /// The network as a list of edges, `12 7` a line: a switch for each number, a host for each that subscribes
    #[arg(long, value_name = "FILE")]
    edges: Option<PathBuf>,
    /// The network is a fat tree of switches with K ports
    #[arg(long, value_name = "K")]
    fat_tree: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PolicyName {
    /// Memory reduction: everything goes up
    Mr,
    /// Traffic reduction: what somebody not below wants goes up
    Tr,
    /// A spanning tree
    Mst,
    /// A spanning tree that spares switches of high degree
    #[value(name = "mst++")]
    MstPlusPlus,
}

impl PolicyName {
    pub(super) fn is_hierarchical(self) -> bool {
        matches!(self, PolicyName::Mr | PolicyName::Tr)
    }

    /// Its name in arguments.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    pub(super) fn settings(self, alpha: &[u64]) -> Settings {
        Settings {
            policy: if self == PolicyName::Mr { Policy::MemoryReduction } else { Policy::TrafficReduction },
            units: alpha.to_vec(),
            weight: if self == PolicyName::Mst { Weight::Uniform } else { Weight::DegreeProduct },
            ties: Ties::Seeded(1),
            trees: 1,
        }
    }
}

/// What one switch has.
#[derive(Clone, Debug, Serialize)]
struct SwitchRow {
    switch: String,
    layer: u16,
    filters: usize,
    rules: usize,
    entries: usize,
    states: u32,
}

/// All switches of a layer.
#[derive(Clone, Debug, Serialize)]
struct LayerRow {
    layer: u16,
    switches: usize,
    most_filters: usize,
    entries: usize,
    most_entries: usize,
    mean_entries: f64,
}

/// What crosses the links of a layer.
#[derive(Clone, Debug, Serialize)]
struct TrafficRow {
    layer: u16,
    crossings: u64,
    extra: u64,
    extra_share: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    policy: String,
    alpha: Vec<u64>,
    hosts: usize,
    subscriptions: usize,
    switches: Vec<SwitchRow>,
    layers: Vec<LayerRow>,
    messages: usize,
    deliveries: usize,
    traffic: Vec<TrafficRow>,
    notes: Vec<String>,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let mut loaded = catalog().formats(std::slice::from_ref(&arguments.format))?;
    let formats = Arc::new(loaded.formats.clone());
    let text = file::text(&arguments.subscriptions, Kind::Rules)?;
    let name = arguments.subscriptions.to_string_lossy();
    let mut found = Vec::new();
    let subscriptions = read_subscriptions(&name, &text, &formats, &mut loaded.sources, &mut found);
    let topology = topology(&arguments.place, arguments.policy, &subscriptions)?;
    let filters = resolve(&topology, &subscriptions, &formats, &mut found);
    show(&found, &loaded.sources);
    if is_error(&found) {
        bail!("{name}: {}", summary(&found));
    }
    loaded.rules = subscriptions
        .into_iter()
        .map(|it| Rule {
            filter: it.filter,
            actions: vec![Action::Forward(vec![weftwire_core::Port(1)])],
            span: it.host_span,
        })
        .collect();
    let compiling = &arguments.compiling;
    let order = field_order(&loaded, &compiling.order)?;
    let options = Options { order, budget: compiling.budget(), ..Options::default() };
    let plan = Plan::new(&topology, &Failures::default(), arguments.policy.settings(&arguments.alpha))?;
    let notes = notes(&topology, &plan, arguments.policy);
    notes.iter().for_each(|note| tell!("note: {note}"));
    let messages = arguments.messages.as_deref().map(|file| messages(file, &formats)).transpose()?;
    let programs = compile(&topology, &plan, &filters, &formats, &options)?;
    let mut report = report(arguments, &topology, &filters, &programs, notes);
    if let Some(messages) = &messages {
        traffic(&mut report, &topology, &plan, &programs, messages);
    }
    // Up to here nothing is written; from here on an interruption waits until all is.
    let _stop = StopSignal::install()?;
    let folder = OutputFolder::begin(&arguments.out)?;
    let out = folder.path();
    for (switch, program) in topology.switches().zip(&programs) {
        let name = topology.switch_name(switch);
        let rules = rules_text(&topology, &plan, switch, &formats, program);
        outputs::write_text(&out.join(format!("{name}.rules")), &rules)?;
        outputs::write_json(&out.join(format!("{name}.json")), &Document::new(program.compiler()))?;
    }
    write_report(out, &report)?;
    folder.finish()?;
    describe(&report, &arguments.out);
    Ok(())
}

fn topology(place: &Place, policy: PolicyName, subscriptions: &[Subscription]) -> Result<Topology> {
    let layers = if policy.is_hierarchical() { Layers::Found } else { Layers::Flat };
    if let Some(file) = &place.network {
        return of_network(file, layers);
    }
    if let Some(file) = &place.edges {
        let list = parse_edges(&file::text(file, Kind::Rules)?).with_context(|| file.display().to_string())?;
        return of_edges(&list, layers, subscriptions).with_context(|| format!("cannot route in {}", file.display()));
    }
    let mut topology = fat_tree(place.fat_tree.unwrap_or(4))?;
    if layers == Layers::Flat {
        topology.set_layers(layers)?;
    }
    Ok(topology)
}

/// A network file's routers, switches and functions forward; all other nodes are hosts.
pub(super) fn of_network(file: &Path, layers: Layers) -> Result<Topology> {
    let (network, _) = catalog().network(NetworkSource::from(file))?.network(&[])?;
    let node = |node: &weftwire_network::model::Node| match node.kind {
        NodeKind::Router | NodeKind::Switch | NodeKind::Function(_) => Node::switch(&node.name),
        _ => Node::host(&node.name),
    };
    let nodes: Vec<Node> = network.nodes.iter().map(node).collect();
    let links: Vec<[usize; 2]> = network.links.iter().map(|link| link.ends.map(|end| end.node.0 as usize)).collect();
    Topology::new(&nodes, &links, layers).with_context(|| format!("cannot route in {}", file.display()))
}

/// Subscribers of an edge list are `hostN` for the node N.
fn of_edges(list: &EdgeList, layers: Layers, subscriptions: &[Subscription]) -> Result<Topology> {
    let place = |host: &str| {
        let number: u64 = host.strip_prefix("host")?.parse().ok()?;
        list.names.binary_search(&number).ok()
    };
    let hosts: BTreeSet<usize> = subscriptions.iter().filter_map(|it| place(&it.host)).collect();
    let mut topology = list.topology(&hosts.into_iter().collect::<Vec<_>>())?;
    if layers != Layers::Flat {
        topology.set_layers(layers)?;
    }
    Ok(topology)
}

fn resolve(
    topology: &Topology,
    subscriptions: &[Subscription],
    formats: &Arc<MessageFormats>,
    found: &mut Vec<Diagnostic>,
) -> Vec<(HostId, MessageFilter)> {
    let hosts: BTreeMap<&str, HostId> = topology.hosts().map(|host| (topology.host_name(host), host)).collect();
    let mut filters = Vec::with_capacity(subscriptions.len());
    for subscription in subscriptions {
        let Some(host) = hosts.get(subscription.host.as_str()) else {
            let error = Diagnostic::error(subscription.host_span, format!("there is no host `{}`", subscription.host));
            found.push(match weftwire_text::diagnostic::nearest(&subscription.host, hosts.keys().copied()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("hosts are named like `{}`", hosts.keys().next().unwrap_or(&"host1"))),
            });
            continue;
        };
        match MessageFilter::new(&subscription.filter, formats) {
            Ok(filter) => filters.push((*host, filter)),
            Err(error) => found.push(Diagnostic::error(subscription.host_span, error.to_string())),
        }
    }
    filters
}

fn field_order(loaded: &Rules, order: &str) -> Result<Option<Vec<FieldId>>> {
    Ok(match FieldsInOrder::parse(order) {
        FieldsInOrder::Auto => {
            let watch =
                Line::begin().watch([0.0, 1.0], format!("the order of fields of {} filters", loaded.rules.len()));
            Some(order::choose(&loaded.formats, &loaded.rules, &watch))
        }
        FieldsInOrder::File => None,
        FieldsInOrder::Named(names) => Some(names.iter().map(|name| loaded.field(name)).collect::<Result<_, _>>()?),
    })
}

/// What the user may not expect of the plan.
pub(super) fn notes(topology: &Topology, plan: &Plan, policy: PolicyName) -> Vec<String> {
    let mut notes = Vec::new();
    for component in plan.components() {
        if let Some(fallback) = component.fallback.filter(|_| policy.is_hierarchical()) {
            notes.push(format!("routed along a spanning tree: {}", fallback.reason(topology)));
        }
    }
    let off = topology.switches().filter(|switch| plan.mode(*switch) == Mode::Off).count();
    if off > 0 {
        notes.push(format!("{off} switches carry nothing"));
    }
    notes
}

fn compile(
    topology: &Topology,
    plan: &Plan,
    filters: &[(HostId, MessageFilter)],
    formats: &MessageFormats,
    options: &Options,
) -> Result<Vec<SwitchProgram>> {
    let tables = tables(topology, plan, filters);
    let mut programs = Vec::with_capacity(topology.switch_count());
    let (line, all) = (Line::begin(), topology.switch_count());
    for (done, switch) in topology.switches().enumerate() {
        let shares = [done, done + 1].map(|done| done as f64 / all as f64);
        let watch = line.watch(shares, format!("{done} of {all} switches"));
        let options = Options { watch, ..options.clone() };
        programs.push(SwitchProgram::new(topology, plan, switch, tables.table(switch), formats, &options)?);
    }
    Ok(programs)
}

fn report(
    arguments: &Arguments,
    topology: &Topology,
    filters: &[(HostId, MessageFilter)],
    programs: &[SwitchProgram],
    notes: Vec<String>,
) -> Report {
    let row = |(switch, program): (SwitchId, &SwitchProgram)| SwitchRow {
        switch: topology.switch_name(switch).to_owned(),
        layer: topology.layer(switch),
        filters: program.filters(),
        rules: program.rules().len(),
        entries: program.entries(),
        states: program.compiler().tables().state_bound(),
    };
    let switches: Vec<SwitchRow> = topology.switches().zip(programs).map(row).collect();
    let mut by_layer: BTreeMap<u16, Vec<&SwitchRow>> = BTreeMap::new();
    switches.iter().for_each(|row| by_layer.entry(row.layer).or_default().push(row));
    let layer = |(layer, rows): (u16, Vec<&SwitchRow>)| {
        let entries = rows.iter().map(|row| row.entries).sum::<usize>();
        LayerRow {
            layer,
            switches: rows.len(),
            most_filters: rows.iter().map(|row| row.filters).max().unwrap_or(0),
            entries,
            most_entries: rows.iter().map(|row| row.entries).max().unwrap_or(0),
            mean_entries: entries as f64 / rows.len() as f64,
        }
    };
    Report {
        policy: arguments.policy.name(),
        alpha: arguments.alpha.clone(),
        hosts: topology.host_count(),
        subscriptions: filters.len(),
        layers: by_layer.into_iter().map(layer).collect(),
        switches,
        messages: 0,
        deliveries: 0,
        traffic: Vec::new(),
        notes,
    }
}

fn messages(file: &Path, formats: &MessageFormats) -> Result<Vec<Message>> {
    let (interfaces, records) = capture::read(file)?;
    let mut messages = Vec::new();
    for record in &records {
        if let Ok(found) = packet::messages(formats, interfaces[record.interface].link, &record.bytes) {
            messages.extend(found.messages);
        }
    }
    Ok(messages)
}

/// Tables of all switches as the walk asks them.
struct Network<'a>(&'a [SwitchProgram]);

impl Forwarding<Message> for Network<'_> {
    fn outs(&self, switch: SwitchId, message: &Message, outs: &mut Vec<Out>) {
        self.0[switch.0 as usize].outs(message, outs);
    }
}

fn traffic(report: &mut Report, topology: &Topology, plan: &Plan, programs: &[SwitchProgram], messages: &[Message]) {
    let mut spreader = Spreader::new(Spread::FlowHash, 1);
    let mut layers: BTreeMap<u16, LayerTraffic> = BTreeMap::new();
    let hosts: Vec<HostId> = topology.hosts().collect();
    let mut line = ProgressLine::begin();
    for (flow, (message, publisher)) in messages.iter().zip(hosts.iter().cycle()).enumerate() {
        line.tell(flow as f64 / messages.len() as f64, format_args!("{flow} of {} messages", messages.len()));
        let packet = Packet { publisher: *publisher, message, flow: flow as u64 };
        let walk = walk(topology, plan, &Network(programs), packet, &mut spreader);
        report.messages += 1;
        report.deliveries += walk.deliveries.len();
        for (layer, traffic) in walk.traffic(topology) {
            *layers.entry(layer).or_default() += traffic;
        }
    }
    let row = |(layer, traffic): (u16, LayerTraffic)| TrafficRow {
        layer,
        crossings: traffic.crossings,
        extra: traffic.extra,
        extra_share: traffic.extra_share(),
    };
    report.traffic = layers.into_iter().map(row).collect();
}

/// A switch's rules with what its port numbers mean in front.
fn rules_text(
    topology: &Topology,
    plan: &Plan,
    switch: SwitchId,
    formats: &MessageFormats,
    program: &SwitchProgram,
) -> String {
    let mut text = format!("// {}, layer {}\n", topology.switch_name(switch), topology.layer(switch));
    for (port, out) in program.ways() {
        let to = match out {
            Out::Port(at) | Out::Tree { port: at, .. } => match topology.ports(switch).get(usize::from(at.0)) {
                Some(Attached::Host(host)) => topology.host_name(*host).to_owned(),
                Some(Attached::Switch { switch, .. }) => topology.switch_name(*switch).to_owned(),
                None => "nothing".to_owned(),
            },
            Out::Up => {
                let ports: Vec<String> = plan.up_ports(switch).iter().map(|port| (port.0 + 1).to_string()).collect();
                format!("up, by one of the ports {}", ports.join(", "))
            }
        };
        let _ = writeln!(text, "// port {port}: {to}");
    }
    for rule in program.rules() {
        text += &write::rule(formats, rule);
        text.push('\n');
    }
    text
}

const SWITCHES: [&str; 6] = ["switch", "layer", "filters", "rules", "entries", "states"];
const LAYERS: [&str; 6] = ["layer", "switches", "most_filters", "entries", "most_entries", "mean_entries"];
const TRAFFIC: [&str; 4] = ["layer", "crossings", "extra", "extra_share"];

impl Report {
    fn switch_cells(&self) -> Vec<Vec<String>> {
        let cells = |row: &SwitchRow| {
            let numbers = [usize::from(row.layer), row.filters, row.rules, row.entries, row.states as usize];
            std::iter::once(row.switch.clone()).chain(numbers.map(|number| number.to_string())).collect()
        };
        self.switches.iter().map(cells).collect()
    }

    fn layer_cells(&self) -> Vec<Vec<String>> {
        let cells = |row: &LayerRow| {
            let numbers = [usize::from(row.layer), row.switches, row.most_filters, row.entries, row.most_entries];
            let mut cells: Vec<String> = numbers.map(|number| number.to_string()).into();
            cells.push(format!("{:.1}", row.mean_entries));
            cells
        };
        self.layers.iter().map(cells).collect()
    }

    fn traffic_cells(&self) -> Vec<Vec<String>> {
        let cells = |row: &TrafficRow| {
            let numbers = [row.layer.to_string(), row.crossings.to_string(), row.extra.to_string()];
            let mut cells: Vec<String> = numbers.into();
            cells.push(format!("{:.6}", row.extra_share));
            cells
        };
        self.traffic.iter().map(cells).collect()
    }

    fn page(&self) -> String {
        let title = "Routing of subscriptions";
        let alpha: Vec<String> = self.alpha.iter().map(u64::to_string).collect();
        let alpha = if alpha.is_empty() { "1".to_owned() } else { alpha.join(", ") };
        let mut body = format!(
            "<header><h1>{title}</h1>\n<p>{} subscriptions of {} hosts over {} switches; policy {}, alpha {alpha}.</p></header>\n",
            self.subscriptions,
            self.hosts,
            self.switches.len(),
            self.policy
        );
        for note in &self.notes {
            let _ = writeln!(body, "<p class=\"note\">{}</p>", weftwire_draw::escape_markup(note));
        }
        let mut section = |title: &str, content: String| {
            let _ = writeln!(body, "<section>\n<h2>{title}</h2>\n<div class=\"scroll\">\n{content}</div>\n</section>");
        };
        section("Entries by layer", sheet::table(&LAYERS, self.layer_cells().into_iter()));
        if self.messages > 0 {
            let title = format!("{} messages, {} deliveries", self.messages, self.deliveries);
            section(&title, sheet::table(&TRAFFIC, self.traffic_cells().into_iter()));
        }
        section("Switches", sheet::table(&SWITCHES, self.switch_cells().into_iter()));
        document(title, &body)
    }
}

fn write_report(folder: &Path, report: &Report) -> Result<()> {
    outputs::write_json(&folder.join("results.json"), report)?;
    let mut texts = vec![
        ("switches.csv", sheet::csv(&SWITCHES, report.switch_cells().into_iter())),
        ("layers.csv", sheet::csv(&LAYERS, report.layer_cells().into_iter())),
        ("report.html", report.page()),
    ];
    if report.messages > 0 {
        texts.push(("traffic.csv", sheet::csv(&TRAFFIC, report.traffic_cells().into_iter())));
    }
    texts.iter().try_for_each(|(name, text)| outputs::write_text(&folder.join(name), text))
}

fn describe(report: &Report, folder: &Path) {
    say!("{} subscriptions, {} switches", report.subscriptions, report.switches.len());
    say!("{:>5} {:>9} {:>12} {:>12} {:>12}", "layer", "switches", "most filters", "most entries", "mean entries");
    for row in &report.layers {
        say!(
            "{:>5} {:>9} {:>12} {:>12} {:>12.1}",
            row.layer,
            row.switches,
            row.most_filters,
            row.most_entries,
            row.mean_entries
        );
    }
    for row in &report.traffic {
        let share = 100.0 * row.extra_share;
        say!("links of layer {}: {} crossings, {} of them in vain ({share:.2} %)", row.layer, row.crossings, row.extra);
    }
    say!("report          {}", folder.join("report.html").display());
}
