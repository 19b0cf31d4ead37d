//! What a run leaves behind: trace records as JSON lines, and a capture of every port.

use crate::error::LinuxError;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use weftwire_capture::{CaptureInterface, CaptureWriter, SENT, recorded};
use weftwire_core::trace::TraceRecord;
use weftwire_core::{Frame, LinkType, Port, Time};

/// Writes the run's files. An error of writing ends that file, not the run; [`Recorder::finish`] reports it.
#[derive(Default)]
pub struct Recorder {
    trace: Option<(PathBuf, BufWriter<File>)>,
    capture: Option<Capture>,
    failure: Option<LinuxError>,
}

struct Capture {
    path: PathBuf,
    writer: CaptureWriter<BufWriter<File>>,
    /// The file's interfaces, in its order.
    ports: Vec<(Port, LinkType)>,
    /// Nanoseconds since 1970 at the function's time 0.
    start: i64,
}

impl Recorder {
    /// Nothing is written until a file is set.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// Writes trace records to `file`, one JSON document a line. Errors name it by `path`.
    pub fn set_trace(&mut self, path: &Path, file: File) {
        self.trace = Some((path.to_owned(), BufWriter::new(file)));
    }

    /// Captures the frames of these ports in pcapng form. Frames that are sent have the comment [`SENT`]. What is left to
    /// hardware is done in the captured copy, for other tools: checksums are complete, and a super-frame is one long
    /// packet. The comment on a frame that arrived so says what was left undone, for a replay. Errors name the file by
    /// `path`.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn set_capture(&mut self, path: &Path, file: File, ports: &[(Port, &str, LinkType)]) -> Result<(), LinuxError> {
        let interface = |&(_, name, link): &(Port, &str, LinkType)| CaptureInterface { name: name.to_owned(), link };
        let interfaces: Vec<CaptureInterface> = ports.iter().map(interface).collect();
        let writer = CaptureWriter::pcapng(BufWriter::new(file), &interfaces);
        let writer = writer.map_err(|error| failed(path, io::Error::other(error)))?;
        self.capture = Some(Capture {
            path: path.to_owned(),
            writer,
            ports: ports.iter().map(|port| (port.0, port.2)).collect(),
            start: 0,
        });
        Ok(())
    }

    /// The function's time 0 is now: captures show the time of day.
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
        self.frame(at, port, frame, Some(SENT));
    }

    fn frame(&mut self, at: Time, port: Port, frame: &Frame<'_>, comment: Option<&str>) {
        let Some(capture) = &mut self.capture else { return };
        let Some(interface) = capture.ports.iter().position(|(known, _)| *known == port) else { return };
        let (bytes, mark) = recorded(capture.ports[interface].1, frame);
        let comment = comment.or(mark.as_deref());
        let written = capture.writer.write(at.after(capture.start), interface, &bytes, comment);
        if let Err(error) = written {
            self.failure = Some(failed(&capture.path, io::Error::other(error)));
            self.capture = None;
        }
    }

    pub(crate) fn trace(&mut self, record: &TraceRecord) {
        let Some((path, file)) = &mut self.trace else { return };
        let written = serde_json::to_writer(&mut *file, record).map_err(io::Error::from);
        if let Err(error) = written.and_then(|()| file.write_all(b"\n")) {
            self.failure = Some(failed(path, error));
            self.trace = None;
        }
    }

    /// Writes what is still buffered.
    ///
    /// # Errors
    /// The last error of writing during the whole run.
    pub fn finish(&mut self) -> Result<(), LinuxError> {
        if let Some((path, mut file)) = self.trace.take() {
            file.flush().map_err(|error| failed(&path, error))?;
        }
        if let Some(Capture { path, writer, .. }) = self.capture.take() {
            writer.into_inner().flush().map_err(|error| failed(&path, error))?;
        }
        self.failure.take().map_or(Ok(()), Err)
    }
}

fn failed(path: &Path, error: io::Error) -> LinuxError {
    LinuxError::system(format!("write {}", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;
    use weftwire_capture::CaptureReader;
    use weftwire_capture::marked;
    use weftwire_core::port::{Checksum, SegmentationKind};
    use weftwire_core::wire::builder::{FrameBuilder, Ipv4Fields, Ipv6Fields, TcpFields};
    use weftwire_core::{Formats, Offload, Packet, Segmentation};

    #[test]
    fn captured_frames_have_their_checksums_and_are_whole() {
        let (mac, tcp) = (([2; 6], [4; 6]), TcpFields { sequence: 7, ..TcpFields::default() });
        let build = |front: FrameBuilder, bytes: usize| front.tcp(&tcp, &[]).payload(&vec![9; bytes]).finish().unwrap();
        let ethernet = || FrameBuilder::ethernet(mac.0, mac.1);
        let right = [
            build(ethernet().ipv4(&Ipv4Fields::default()), 100),
            build(ethernet().ipv6(&Ipv6Fields::default()), 40_001),
            build(ethernet().ipv4(&Ipv4Fields::default()), 5),
        ];
        let kind = SegmentationKind::TcpIpv6 { ecn: false };
        let offloads = [
            Offload { segmentation: None, checksum: Checksum::Partial },
            Offload { segmentation: Some(Segmentation { size: 1440, kind }), checksum: Checksum::Partial },
            Offload::default(),
        ];
        let path = std::env::temp_dir().join(format!("weft-recorder-{}", std::process::id()));
        let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut recorder = Recorder::new();
        recorder.set_capture(&path, file.try_clone().unwrap(), &[(Port(3), "eth0", LinkType::Ethernet)]).unwrap();
        for ((at, bytes), offload) in (0..).zip(&right).zip(offloads) {
            let mut undone = bytes.clone();
            if offload.checksum == Checksum::Partial {
                let checksum = if offload.segmentation.is_some() { 14 + 40 + 16 } else { 14 + 20 + 16 };
                undone[checksum] ^= 0x55;
            }
            recorder.received(Time::from_nanoseconds(at), Port(3), &Frame { bytes: &undone, offload });
        }
        // What is no packet is kept all the same.
        let offload = Offload { segmentation: None, checksum: Checksum::Partial };
        recorder.sent(Time::from_nanoseconds(9), Port(3), &Frame { bytes: &[1, 2, 3], offload });
        recorder.finish().unwrap();

        file.rewind().unwrap();
        let mut reader = CaptureReader::new(file).unwrap();
        for (bytes, offload) in right.iter().zip(offloads) {
            let record = reader.next_record().unwrap().unwrap();
            assert!(record.bytes == *bytes);
            let mark = record.comment.as_deref().map_or(Some(Offload::default()), marked);
            assert_eq!(mark, Some(offload));
            Packet::parse(LinkType::Ethernet, Frame::new(&record.bytes), &Formats::default()).unwrap();
        }
        assert_eq!(reader.next_record().unwrap().unwrap().bytes, [1, 2, 3]);
        assert!(reader.next_record().unwrap().is_none());
    }
}
