//! Writes captures beside the relay, so that no disk ever holds it up.

use crate::error::LinuxError;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use weftwire_core::capture::{CaptureInterface, CaptureWriter, SENT};
use weftwire_core::{LinkType, Time};
use weftwire_network::Network;

/// Frames that may wait for the disk. More are lost, and counted.
const WAITING: usize = 65_536;

/// A frame that crossed a captured port.
pub(super) struct Captured {
    /// When.
    pub(super) at: Time,
    /// Index into the network's captures.
    pub(super) capture: usize,
    /// The node sent it, else it arrives there.
    pub(super) sent: bool,
    /// The frame.
    pub(super) bytes: Arc<[u8]>,
}

/// The thread that writes.
pub(super) struct Captures {
    sender: SyncSender<Captured>,
    writer: JoinHandle<Result<(), LinuxError>>,
}

impl Captures {
    /// Makes the files `NODE-PORT.pcapng` in `folder`. `epoch` is nanoseconds since 1970 at the start of the run.
    pub(super) fn start(network: &Network, folder: &Path, epoch: i64) -> Result<Captures, LinuxError> {
        let mut files = Vec::new();
        for place in &network.captures {
            let name = &network.node(place.node).name;
            let path = folder.join(format!("{name}-{}.pcapng", place.port));
            let failed = |error| LinuxError::system(format!("write {}", path.display()), error);
            let file = BufWriter::new(File::create(&path).map_err(failed)?);
            let interface = CaptureInterface { name: network.place_name(*place), link: LinkType::Ethernet };
            let writer = CaptureWriter::pcapng(file, &[interface]).map_err(|error| failed(std::io::Error::other(error)))?;
            files.push((path, writer));
        }
        let (sender, receiver) = sync_channel(WAITING);
        let writer = std::thread::spawn(move || write(files, &receiver, epoch));
        Ok(Captures { sender, writer })
    }

    /// Where the relay puts frames.
    pub(super) fn sender(&self) -> SyncSender<Captured> {
        self.sender.clone()
    }

    /// Writes what is left, once the relay has ended.
    pub(super) fn finish(self) -> Result<(), LinuxError> {
        drop(self.sender);
        self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

type Writers = Vec<(std::path::PathBuf, CaptureWriter<BufWriter<File>>)>;

fn write(mut files: Writers, receiver: &Receiver<Captured>, epoch: i64) -> Result<(), LinuxError> {
    for Captured { at, capture, sent, bytes } in receiver {
        let (path, writer) = &mut files[capture];
        writer
            .write(at.after(epoch), 0, &bytes, sent.then_some(SENT))
            .map_err(|error| LinuxError::system(format!("write {}", path.display()), std::io::Error::other(error)))?;
    }
    for (path, writer) in files {
        let flushed = writer.into_inner().flush();
        flushed.map_err(|error| LinuxError::system(format!("write {}", path.display()), error))?;
    }
    Ok(())
}
