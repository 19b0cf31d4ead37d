//! Writes captures beside the relay, so that no disk ever holds it up.

use crate::error::LabError;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use weftwire_capture::{CaptureInterface, CaptureWriter, SENT};
use weftwire_core::{LinkType, Port, Time};
use weftwire_network::Network;
use weftwire_network::model::{NodeIndex, PortPlace};

/// Frames that may wait for the disk. More are lost, and counted.
pub(super) const WAITING: usize = 65_536;

/// A frame that crossed a captured port.
pub(crate) struct Captured {
    /// When.
    pub(crate) at: Time,
    /// Index into the network's captures.
    pub(crate) capture: usize,
    /// The node sent it, else it arrives there.
    pub(crate) sent: bool,
    /// The frame.
    pub(crate) bytes: Arc<[u8]>,
}

/// The thread that writes.
pub(crate) struct Captures {
    sender: SyncSender<Captured>,
    writer: JoinHandle<Result<(), LabError>>,
}

impl Captures {
    /// Makes the files `NODE.pcapng` in `folder`, each with an interface for each captured port of the node. Time stamps
    /// are those of the run.
    pub(crate) fn start(network: &Network, folder: &Path) -> Result<Captures, LabError> {
        let mut nodes: BTreeMap<NodeIndex, BTreeSet<Port>> = BTreeMap::new();
        for place in &network.captures {
            nodes.entry(place.node).or_default().insert(place.port);
        }
        let mut files = Vec::new();
        for (node, ports) in &nodes {
            let path = folder.join(format!("{}.pcapng", network.node(*node).name));
            let failed = |error| LabError::system(format!("write {}", path.display()), error);
            let file = BufWriter::new(File::create(&path).map_err(failed)?);
            let interface = |port| CaptureInterface { name: format!("port {port}"), link: LinkType::Ethernet };
            let interfaces: Vec<CaptureInterface> = ports.iter().map(interface).collect();
            let writer = CaptureWriter::pcapng(file, &interfaces).map_err(|error| failed(io::Error::other(error)))?;
            files.push((path, writer));
        }
        let place = |place: &PortPlace| {
            let before = nodes.range(..place.node).count();
            (before, nodes[&place.node].range(..place.port).count())
        };
        let places: Vec<(usize, usize)> = network.captures.iter().map(place).collect();
        let (sender, receiver) = sync_channel(WAITING);
        let writer = std::thread::spawn(move || write(files, &places, &receiver));
        Ok(Captures { sender, writer })
    }

    /// Where the relay puts frames.
    pub(crate) fn sender(&self) -> SyncSender<Captured> {
        self.sender.clone()
    }

    /// Writes what is left, once the relay has ended.
    pub(crate) fn finish(self) -> Result<(), LabError> {
        drop(self.sender);
        self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

type Writers = Vec<(PathBuf, CaptureWriter<BufWriter<File>>)>;

/// `places`: of each capture, its file and the interface in it.
fn write(mut files: Writers, places: &[(usize, usize)], receiver: &Receiver<Captured>) -> Result<(), LabError> {
    for Captured { at, capture, sent, bytes } in receiver {
        let (file, interface) = places[capture];
        let (path, writer) = &mut files[file];
        writer
            .write(at, interface, &bytes, sent.then_some(SENT))
            .map_err(|error| LabError::system(format!("write {}", path.display()), io::Error::other(error)))?;
    }
    for (path, writer) in files {
        let flushed = writer.into_inner().flush();
        flushed.map_err(|error| LabError::system(format!("write {}", path.display()), error))?;
    }
    Ok(())
}
