//! What a run leaves behind: trace records as JSON lines, and a capture of every port.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::{SystemTime, UNIX_EPOCH};
use weftwire_core::capture::{CaptureInterface, CaptureWriter};
use weftwire_core::trace::TraceRecord;
use weftwire_core::{Frame, LinkType, Port, Time};

/// Writes the run's files. An error of writing ends that file, not the run; [`Recorder::finish`] reports it.
#[derive(Default)]
pub struct Recorder {
    trace: Option<BufWriter<File>>,
    capture: Option<Capture>,
    failure: Option<io::Error>,
}

struct Capture {
    writer: CaptureWriter<BufWriter<File>>,
    /// The file's interfaces, in its order.
    ports: Vec<Port>,
    /// Nanoseconds since 1970 at the start of the run.
    start: i64,
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

    /// Captures the frames of these ports in pcapng form. Frames that are sent have the comment `sent`.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn set_capture(&mut self, file: File, ports: &[(Port, &str, LinkType)]) -> io::Result<()> {
        let interface = |&(_, name, link): &(Port, &str, LinkType)| CaptureInterface { name: name.to_owned(), link };
        let interfaces: Vec<CaptureInterface> = ports.iter().map(interface).collect();
        let writer = CaptureWriter::pcapng(BufWriter::new(file), &interfaces).map_err(io::Error::other)?;
        self.capture = Some(Capture { writer, ports: ports.iter().map(|port| port.0).collect(), start: 0 });
        Ok(())
    }

    /// The run starts now: captures show the time of day.
    pub(crate) fn start(&mut self) {
        if let Some(capture) = &mut self.capture {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            capture.start = i64::try_from(since.as_nanos()).unwrap_or(0);
        }
    }

    /// Whether trace records are asked for.
    pub(crate) fn wants_trace(&self) -> bool {
        self.trace.is_some()
    }

    pub(crate) fn received(&mut self, at: Time, port: Port, frame: &Frame<'_>) {
        self.frame(at, port, frame, None);
    }

    pub(crate) fn sent(&mut self, at: Time, port: Port, frame: &Frame<'_>) {
        self.frame(at, port, frame, Some("sent"));
    }

    fn frame(&mut self, at: Time, port: Port, frame: &Frame<'_>, comment: Option<&str>) {
        let Some(capture) = &mut self.capture else { return };
        let Some(interface) = capture.ports.iter().position(|known| *known == port) else { return };
        let written = capture.writer.write(at.after(capture.start), interface, frame.bytes, comment);
        if let Err(error) = written {
            self.capture = None;
            self.failure = Some(io::Error::other(error));
        }
    }

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
    /// The last error of writing during the whole run.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(mut file) = self.trace.take() {
            file.flush()?;
        }
        if let Some(capture) = self.capture.take() {
            capture.writer.into_inner().flush()?;
        }
        self.failure.take().map_or(Ok(()), Err)
    }
}
