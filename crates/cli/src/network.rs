//! Networks from files, for the commands that simulate them or bring them up.

use crate::load::Includes;
use crate::output::{PendingFile, Writer};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weftwire_capture::{CaptureInterface, CaptureWriter, SENT};
use weftwire_catalog::{Catalog, Change, Compiling, NetworkFile, NetworkSource, parse_change};
use weftwire_core::trace::TraceRecord;
use weftwire_core::{LinkType, Port, Time};
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, NodeKind, PortPlace, TrafficKind};
use weftwire_sim::spec::parse_duration;

/// Most nodes that can be captured at in one run: each has an open file.
const MOST_CAPTURES: usize = 512;

/// Arguments of every command that reads a network.
#[derive(clap::Args, Clone)]
#[group(skip)]
pub struct Arguments {
    /// The network
    #[arg(value_name = "NETWORK.toml")]
    pub file: PathBuf,
    /// Another value in place of the file's, e.g. links.uplink.rate=10Mbit/s
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = parse_change)]
    pub changes: Vec<Change>,
    /// Seed of all random numbers, in place of the file's
    #[arg(long)]
    pub seed: Option<u64>,
    /// How long a run lasts, in place of the file's, e.g. 10s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    #[command(flatten)]
    pub includes: Includes,
}

impl Arguments {
    /// Reads the file.
    pub fn open(&self) -> Result<NetworkFile<'static>> {
        let Arguments { file, changes, seed, duration, includes } = self.clone();
        Ok(includes.catalog()?.network(NetworkSource { file, changes, seed, duration })?)
    }
}

/// Reads a network, every point of its sweep, all functions and captures that it names, and what it says of its hosts' TCP.
pub fn check(file: &Path, catalog: &Catalog<'static>) -> Result<()> {
    let file = catalog.network(NetworkSource::from(file))?;
    let (network, sweep) = file.network(&[])?;
    file.functions(&network, &Compiling::default())?;
    weftwire_sim::network::check(&network)?;
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
