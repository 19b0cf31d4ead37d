//! Where recordings of inputs go: through a bounded queue to a thread that writes, so that the disk never holds up frames.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use weftwire_capture::Tape;

/// Bytes that go to the writer together.
const CHUNK: usize = 256 << 10;
/// Chunks that may wait for the writer: 64 MiB.
const WAITING: usize = 256;

/// A tape on a file.
pub struct FileTape {
    chunk: Vec<u8>,
    full: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
}

/// What went wrong with writing, if anything did.
pub type Failure = Arc<OnceLock<io::Error>>;

impl FileTape {
    /// A recording that begins with `head`. Its writer has the rights of the calling thread: begin it when privileges are
    /// given up.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn begin(file: File, head: &[u8]) -> io::Result<(FileTape, Failure)> {
        let (full, chunks) = sync_channel(WAITING);
        let failure = Failure::default();
        let failed = failure.clone();
        let work = move || {
            if let Err(error) = write(file, &chunks) {
                // The first error is the only one: the writer ends with it.
                let _ = failed.set(error);
            }
        };
        let writer = std::thread::Builder::new().name("recording".into()).spawn(work)?;
        let mut chunk = Vec::with_capacity(CHUNK);
        chunk.extend_from_slice(head);
        Ok((FileTape { chunk, full: Some(full), writer: Some(writer) }, failure))
    }
}

fn write(mut file: File, chunks: &Receiver<Vec<u8>>) -> io::Result<()> {
    chunks.iter().try_for_each(|chunk| file.write_all(&chunk))
}

impl Tape for FileTape {
    fn put(&mut self, record: &[u8]) -> bool {
        if self.chunk.len() + record.len() > CHUNK && !self.chunk.is_empty() {
            let Some(full) = &self.full else { return false };
            match full.try_send(std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK))) {
                Ok(()) => {}
                // The chunk stays to be written at the end, the record does not.
                Err(TrySendError::Full(chunk) | TrySendError::Disconnected(chunk)) => {
                    self.chunk = chunk;
                    return false;
                }
            }
        }
        self.chunk.extend_from_slice(record);
        true
    }

    fn end(&mut self, record: &[u8]) {
        self.chunk.extend_from_slice(record);
        if let Some(full) = self.full.take() {
            // A writer that failed is gone, and has said why.
            let _ = full.send(std::mem::take(&mut self.chunk));
        }
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
