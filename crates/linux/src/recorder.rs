//! What a run leaves behind: trace records as JSON lines, and a capture of every port.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use weftwire_core::trace::TraceRecord;
use weftwire_core::{Frame, Port, Time};

/// Writes the run's files. An error of writing ends that file, not the run; [`Recorder::finish`] reports it.
#[derive(Default)]
pub struct Recorder {
    trace: Option<BufWriter<File>>,
    failure: Option<io::Error>,
}

impl Recorder {
    /// Nothing is written until a file is set.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// Writes trace records to `file`, one JSON document a line.
    pub fn set_trace(&mut self, file: File) {
        self.trace = Some(BufWriter::new(file));
    }

    /// Whether trace records are asked for.
    pub(crate) fn wants_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// A frame came in.
    pub(crate) fn received(&mut self, _at: Time, _port: Port, _frame: &Frame<'_>) {}

    /// A frame goes out.
    pub(crate) fn sent(&mut self, _at: Time, _port: Port, _frame: &Frame<'_>) {}

    pub(crate) fn trace(&mut self, record: &TraceRecord) {
        let Some(file) = &mut self.trace else { return };
        let written = serde_json::to_writer(&mut *file, record).map_err(io::Error::from);
        if let Err(error) = written.and_then(|()| file.write_all(b"\n")) {
            self.trace = None;
            self.failure = Some(error);
        }
    }

    /// Writes what is still buffered.
    ///
    /// # Errors
    /// The first error of writing during the whole run.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(mut file) = self.trace.take() {
            file.flush()?;
        }
        self.failure.take().map_or(Ok(()), Err)
    }
}
