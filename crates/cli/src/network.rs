//! Networks from files, for the commands that simulate them or bring them up.

use crate::capture;
use crate::commands::subs;
use crate::input::{self, Kind};
use crate::load::{self, Includes, Loaded, show};
use crate::output::{PendingFile, Writer};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use weftwire_capture::{CaptureInterface, CaptureWriter, SENT};
use weftwire_core::trace::TraceRecord;
use weftwire_core::{LinkType, Port, Time};
use weftwire_network::model::{FunctionNode, NodeIndex, NodeKind, PortPlace, TrafficKind};
use weftwire_network::{Network, Reading};
use weftwire_sim::spec::parse_duration;

/// Most nodes that can be captured at in one run: each has an open file.
const MOST_CAPTURES: usize = 512;

/// What takes the place of a value in the file: a dotted path and the value.
pub type Change = (String, toml::Value);

/// Paths into the file and the values that each takes.
pub type Sweep = Vec<(String, Vec<toml::Value>)>;

fn seed_change(seed: u64) -> Result<Change> {
    let seed = i64::try_from(seed).context("a seed is at most 9223372036854775807")?;
    Ok(("seed".into(), toml::Value::Integer(seed)))
}

/// Reads `PATH=VALUE`; the value as in the file, or plain text.
pub fn change(text: &str) -> Result<Change, String> {
    let Some((path, value)) = text.split_once('=').filter(|(path, _)| !path.is_empty()) else {
        return Err("write PATH=VALUE, e.g. links.uplink.rate=10Mbit/s or seed=7".into());
    };
    Ok((path.trim().to_owned(), value_of(value.trim())))
}

/// A value as TOML writes it; what is no TOML is a text.
pub fn value_of(text: &str) -> toml::Value {
    let table: Result<toml::Table, _> = format!("value = {text}").parse();
    table.ok().and_then(|mut table| table.remove("value")).unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// Arguments of every command that reads a network.
#[derive(clap::Args, Clone)]
#[group(skip)]
pub struct Arguments {
    /// The network
    #[arg(value_name = "NETWORK.toml")]
    pub file: PathBuf,
    /// Another value in place of the file's, e.g. links.uplink.rate=10Mbit/s
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = change)]
    pub changes: Vec<Change>,
    /// Seed of all random numbers, in place of the file's
    #[arg(long)]
    pub seed: Option<u64>,
    /// How long a run lasts, in place of the file's, e.g. 10s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub duration: Option<i64>,
    #[command(flatten)]
    pub includes: Includes,
}

impl Arguments {
    /// The network of a file as it is.
    pub fn of_file(file: &Path, includes: &Includes) -> Arguments {
        Arguments { file: file.to_owned(), changes: Vec::new(), seed: None, duration: None, includes: includes.clone() }
    }
}

/// Reads a network, every point of its sweep, and all functions and captures that it names.
pub fn check(file: &Path, includes: &Includes) -> Result<()> {
    let file = NetworkFile::open(&Arguments::of_file(file, includes))?;
    let (network, sweep) = file.network(&[])?;
    file.functions(&network)?;
    for traffic in &network.traffic {
        if let TrafficKind::Capture { file: name, .. } = &traffic.kind {
            file.capture(name).with_context(|| format!("traffic {}", traffic.name))?;
        }
    }
    for (path, values) in sweep {
        for value in values {
            file.network(&[(path.clone(), value)])?;
        }
    }
    Ok(())
}

/// A network's file, read.
pub struct NetworkFile {
    arguments: Arguments,
    text: String,
    /// The folder to which the file's names are relative.
    pub folder: PathBuf,
}

impl NetworkFile {
    /// Reads the file's text.
    pub fn open(arguments: &Arguments) -> Result<NetworkFile> {
        let path = &arguments.file;
        let text = input::text(path, Kind::Network)?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(NetworkFile { arguments: arguments.clone(), text, folder })
    }

    /// The file's text, as it is.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The network and its sweep, with `more` changes behind those of the command line. Says what is wrong with it on
    /// standard error.
    pub fn network(&self, more: &[Change]) -> Result<(Network, Sweep)> {
        let reading = self.read(more)?;
        show(&reading.diagnostics, &reading.sources);
        match reading.network {
            Some(network) => Ok((network, reading.sweep)),
            None => bail!("{}: {}", self.arguments.file.display(), load::summary(&reading.diagnostics)),
        }
    }

    /// The network of a point that was checked before, with another seed. Topologies and pairs that are drawn at random
    /// depend on it, so the file is read again.
    pub fn reseeded(&self, more: &[Change], seed: u64) -> Result<Network> {
        let mut changes = more.to_vec();
        changes.push(seed_change(seed)?);
        let network = self.read(&changes)?.network;
        network.with_context(|| format!("{}: not a network with seed {seed}", self.arguments.file.display()))
    }

    fn read(&self, more: &[Change]) -> Result<Reading> {
        let mut changes = self.arguments.changes.clone();
        if let Some(seed) = self.arguments.seed {
            changes.push(seed_change(seed)?);
        }
        if let Some(duration) = self.arguments.duration {
            changes.push(("duration".into(), toml::Value::String(format!("{duration}ns"))));
        }
        changes.extend(more.iter().cloned());
        let load = |name: &str| input::text_or_reason(&self.folder.join(name), Kind::Network);
        Ok(weftwire_network::read(&self.arguments.file.to_string_lossy(), &self.text, &changes, &load))
    }

    /// The functions of a network's nodes, loaded.
    pub fn functions(&self, network: &Network) -> Result<Functions> {
        let mut functions = BTreeMap::new();
        // Many nodes may run the same function.
        let mut known: Vec<(&FunctionNode, Loaded)> = Vec::new();
        for (index, node) in network.nodes() {
            let NodeKind::Function(wanted) = &node.kind else { continue };
            let same = |other: &FunctionNode| {
                (&other.image, &other.format, &other.parameters) == (&wanted.image, &wanted.format, &wanted.parameters)
            };
            let loaded = match known.iter().find(|(other, _)| same(other)) {
                Some((_, loaded)) => loaded.clone(),
                None => {
                    let loaded = self.function(wanted).with_context(|| format!("node {}", node.name))?;
                    known.push((wanted, loaded.clone()));
                    loaded
                }
            };
            functions.insert(index, loaded);
        }
        Ok(functions)
    }

    fn function(&self, wanted: &FunctionNode) -> Result<Loaded> {
        let file = self.folder.join(&wanted.image);
        if let Some(format) = &wanted.format {
            return subs::switch(&[file], &[self.folder.join(format)], &subs::Compiling::default());
        }
        let parameters: Vec<_> = wanted.parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        load::function(&file, &parameters, &self.arguments.includes)
    }

    /// The frames of a capture that traffic replays: nanoseconds after the first, and bytes.
    pub fn capture(&self, name: &str) -> Result<Vec<(i64, Vec<u8>)>> {
        let (interfaces, records) = capture::read(&self.folder.join(name))?;
        let ethernet = |interface: usize| interfaces.get(interface).is_some_and(|it| it.link == LinkType::Ethernet);
        let mut frames: Vec<_> = records
            .into_iter()
            .filter(|record| ethernet(record.interface) && !capture::is_sent(record))
            .map(|record| (record.time, record.bytes))
            .collect();
        frames.sort_by_key(|(time, _)| *time);
        let first = frames.first().map_or(Time::ZERO, |(time, _)| *time);
        Ok(frames.into_iter().map(|(time, bytes)| (time.since(first), bytes)).collect())
    }
}

/// The functions of a network's nodes.
pub type Functions = BTreeMap<NodeIndex, Loaded>;

/// The captures and traces of a run: a file for each node, with an interface for each of its captured ports.
pub struct RunFiles {
    captures: BTreeMap<NodeIndex, (PendingFile, CaptureWriter<Writer>)>,
    /// The interface of each captured port in its node's file.
    interfaces: BTreeMap<PortPlace, usize>,
    traces: BTreeMap<NodeIndex, (PendingFile, Writer)>,
}

impl RunFiles {
    /// Creates what the network asks for in `folder`.
    pub fn create(network: &Network, folder: &Path) -> Result<RunFiles> {
        let mut ports: BTreeMap<NodeIndex, Vec<Port>> = BTreeMap::new();
        for place in &network.captures {
            ports.entry(place.node).or_default().push(place.port);
        }
        if ports.len() > MOST_CAPTURES {
            bail!("`record` names ports of {} nodes; record at most {MOST_CAPTURES} nodes", ports.len());
        }
        let (mut captures, mut interfaces) = (BTreeMap::new(), BTreeMap::new());
        for (node, mut ports) in ports {
            ports.sort_unstable();
            ports.dedup();
            interfaces.extend(ports.iter().enumerate().map(|(at, port)| (PortPlace { node, port: *port }, at)));
            let (file, writer) = create(&folder.join(format!("{}.pcapng", network.node(node).name)))?;
            let list: Vec<_> = ports
                .iter()
                .map(|port| CaptureInterface { name: format!("port {port}"), link: LinkType::Ethernet })
                .collect();
            captures.insert(node, (file, CaptureWriter::pcapng(writer, &list)?));
        }
        let mut traces = BTreeMap::new();
        for (index, node) in network.nodes() {
            if matches!(&node.kind, NodeKind::Function(function) if function.trace) {
                traces.insert(index, create(&folder.join(format!("{}.trace.jsonl", node.name)))?);
            }
        }
        Ok(RunFiles { captures, interfaces, traces })
    }

    /// A frame crosses a port; `sent` by its node.
    pub fn frame(&mut self, at: Time, place: PortPlace, bytes: &[u8], sent: bool) -> io::Result<()> {
        let writer = self.captures.get_mut(&place.node).map(|(_, writer)| writer);
        let (Some(writer), Some(interface)) = (writer, self.interfaces.get(&place)) else { return Ok(()) };
        writer.write(at, *interface, bytes, sent.then_some(SENT)).map_err(io::Error::other)
    }

    /// An event of a node's function.
    pub fn trace(&mut self, node: NodeIndex, record: &TraceRecord) -> io::Result<()> {
        let Some((_, writer)) = self.traces.get_mut(&node) else { return Ok(()) };
        serde_json::to_writer(&mut *writer, record)?;
        writer.write_all(b"\n")
    }

    /// Gives all files their names.
    pub fn finish(self) -> Result<()> {
        for (file, writer) in self.captures.into_values() {
            file.finish(writer.into_inner())?;
        }
        for (file, writer) in self.traces.into_values() {
            file.finish(writer)?;
        }
        Ok(())
    }
}

fn create(path: &Path) -> Result<(PendingFile, Writer)> {
    let mut file = PendingFile::create(path)?;
    let writer = file.take_writer();
    Ok((file, writer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_toml_or_text() {
        assert_eq!(change("seed=7"), Ok(("seed".into(), toml::Value::Integer(7))));
        assert_eq!(change("links.a.rate = 10Mbit/s"), Ok(("links.a.rate".into(), "10Mbit/s".into())));
        assert_eq!(change("links.a.loss=\"1%\""), Ok(("links.a.loss".into(), "1%".into())));
        assert!(change("seed").is_err());
        assert!(change("=7").is_err());
    }
}
