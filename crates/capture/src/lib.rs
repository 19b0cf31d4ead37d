//! Capture files: pcap and pcapng, in and out, with time stamps exact to the nanosecond.
//!
//! Formats: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng. The crate `pcap-file` reads pcap and writes both; pcapng
//! is read here (see `pcapng`). Nothing here opens a file: readers and writers come in.
#![forbid(unsafe_code)]

mod headers;
pub mod inputs;
mod mark;
mod pcapng;
mod recorded;

pub use headers::{Headers, Tcp, Transport};
pub use mark::{marked, recorded, restored};
pub use recorded::{Recorded, Tape};

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError, TsResolution};
use pcapng::PcapNgReader;
use std::borrow::Cow;
use std::io::{self, Cursor, Read, Write};
use std::time::Duration;
use weftwire_core::port::LinkType;
use weftwire_core::time::Time;

/// The comment on frames that a function sent, in captures of runs and replays.
pub const SENT: &str = "sent";

/// Snap length of written files, in bytes: more than any frame, super-frames of segmentation offload included.
pub const SNAP_LENGTH: u32 = 262_144;

/// Where frames of a capture were seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureInterface {
    /// Its name; empty if the file does not tell.
    pub name: String,
    /// What its frames begin with.
    pub link: LinkType,
}

/// One frame of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureRecord {
    /// When it was seen; nanoseconds since 1970 in files of other tools.
    pub time: Time,
    /// Index into [`CaptureReader::interfaces`].
    pub interface: usize,
    /// The bytes that were kept.
    pub bytes: Vec<u8>,
    /// How many bytes the frame had; more than were kept if it was cut.
    pub original_length: u32,
    /// The comment on it (pcapng only): [`SENT`] if a function sent it, or what was left undone on it (see [`marked`]).
    pub comment: Option<String>,
}

/// What is wrong with a capture file, and where.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It is neither pcap nor pcapng, or its header is damaged.
    #[error("this is no capture file: {0}; pcap and pcapng are read")]
    Header(String),
    /// A record or block is damaged.
    #[error("record {record}: {cause}")]
    Record {
        /// Number of the frame, from 1; of a block between frames that of the next frame.
        record: u64,
        /// What is wrong.
        cause: String,
    },
    /// Frames begin with something that functions do not understand.
    #[error("link type {0} is not supported; Ethernet (1) and raw IP (101, 12, 228, 229) are")]
    LinkType(u32),
    /// A frame can't be written.
    #[error("frame {record} can't be written: {cause}")]
    Write {
        /// Number of the frame, from 1.
        record: u64,
        /// Why.
        cause: String,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The link type of a number of the tcpdump.org registry.
fn link_type(number: u32) -> Result<LinkType, CaptureError> {
    match number {
        1 => Ok(LinkType::Ethernet),
        // 12 is what BSD systems call raw IP; 228 and 229 are raw IPv4 and IPv6.
        12 | 101 | 228 | 229 => Ok(LinkType::Ip),
        _ => Err(CaptureError::LinkType(number)),
    }
}

fn data_link(link: LinkType) -> DataLink {
    match link {
        LinkType::Ethernet => DataLink::ETHERNET,
        LinkType::Ip => DataLink::RAW,
    }
}

/// Reads a capture of either format, frame by frame.
pub struct CaptureReader<R: Read>(Source<R>);

/// A reader whose first bytes were read already to tell the format.
type Rewound<R> = io::Chain<Cursor<Vec<u8>>, R>;

enum Source<R: Read> {
    Pcap { reader: Box<PcapReader<Rewound<R>>>, interface: [CaptureInterface; 1], record: u64 },
    PcapNg(PcapNgReader<Rewound<R>>),
}

impl<R: Read> CaptureReader<R> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// `Header`, `LinkType` or `Io`.
    pub fn new(mut reader: R) -> Result<CaptureReader<R>, CaptureError> {
        let mut magic = Vec::new();
        reader.by_ref().take(4).read_to_end(&mut magic)?;
        let rewound = Cursor::new(magic.clone()).chain(reader);
        if magic == pcapng::MAGIC {
            return Ok(CaptureReader(Source::PcapNg(PcapNgReader::new(rewound)?)));
        }
        let reader = PcapReader::new(rewound).map_err(|error| CaptureError::Header(cause(error)))?;
        // The upper 16 bits tell of a frame check sequence.
        let link = link_type(u32::from(reader.header().datalink) & 0xffff)?;
        let interface = [CaptureInterface { name: String::new(), link }];
        Ok(CaptureReader(Source::Pcap { reader: Box::new(reader), interface, record: 0 }))
    }

    /// The interfaces known so far. A pcap file has one; a pcapng file may describe more between frames.
    pub fn interfaces(&self) -> &[CaptureInterface] {
        match &self.0 {
            Source::Pcap { interface, .. } => interface,
            Source::PcapNg(reader) => reader.interfaces(),
        }
    }

    /// The next frame, or `None` at the end.
    ///
    /// # Errors
    /// `Record`, `LinkType` or `Io`; nothing more can be read after one.
    pub fn next_record(&mut self) -> Result<Option<CaptureRecord>, CaptureError> {
        match &mut self.0 {
            Source::Pcap { reader, record, .. } => {
                *record += 1;
                pcap_record(reader, *record)
            }
            Source::PcapNg(reader) => reader.next_record(),
        }
    }
}

/// Reads a raw record: the library's checked one refuses frames longer than the snap length, which every capture with
/// cut frames has.
fn pcap_record<R: Read>(reader: &mut PcapReader<R>, record: u64) -> Result<Option<CaptureRecord>, CaptureError> {
    let damaged = |cause: String| CaptureError::Record { record, cause };
    let unit = match reader.header().ts_resolution {
        TsResolution::MicroSecond => 1_000,
        TsResolution::NanoSecond => 1,
    };
    let Some(raw) = reader.next_raw_packet() else { return Ok(None) };
    let raw = raw.map_err(|error| damaged(cause(error)))?;
    let fraction = i64::from(raw.ts_frac) * unit;
    if fraction >= 1_000_000_000 {
        return Err(damaged(format!("its time stamp has {fraction} nanoseconds in one second")));
    }
    Ok(Some(CaptureRecord {
        time: Time::from_nanoseconds(i64::from(raw.ts_sec) * 1_000_000_000 + fraction),
        interface: 0,
        bytes: raw.data.into_owned(),
        original_length: raw.orig_len,
        comment: None,
    }))
}

/// What the library says, as a cause.
fn cause(error: PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "it ends early".to_owned(),
        PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => "it ends early".to_owned(),
        PcapError::IoError(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Writes a capture frame by frame.
pub struct CaptureWriter<W: Write> {
    sink: Sink<W>,
    record: u64,
}

enum Sink<W: Write> {
    Pcap(PcapWriter<W>),
    PcapNg { writer: PcapNgWriter<W>, interfaces: usize },
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a pcap file, which has one link type, with nanosecond time stamps.
    ///
    /// # Errors
    /// `Io`.
    pub fn pcap(writer: W, link: LinkType) -> Result<CaptureWriter<W>, CaptureError> {
        let header = PcapHeader {
            snaplen: SNAP_LENGTH,
            datalink: data_link(link),
            ts_resolution: TsResolution::NanoSecond,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(writer, header).map_err(|error| unwritten(0, error))?;
        Ok(CaptureWriter { sink: Sink::Pcap(writer), record: 0 })
    }

    /// Begins a pcapng file with these interfaces, with nanosecond time stamps.
    ///
    /// # Errors
    /// `Io`.
    pub fn pcapng(writer: W, interfaces: &[CaptureInterface]) -> Result<CaptureWriter<W>, CaptureError> {
        let mut writer = PcapNgWriter::new(writer).map_err(|error| unwritten(0, error))?;
        for interface in interfaces {
            let block = InterfaceDescriptionBlock {
                linktype: data_link(interface.link),
                snaplen: SNAP_LENGTH,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(&interface.name)),
                    // The library writes time stamps as nanoseconds, whatever this option says.
                    InterfaceDescriptionOption::IfTsResol(9),
                ],
            };
            writer.write_pcapng_block(block).map_err(|error| unwritten(0, error))?;
        }
        Ok(CaptureWriter { sink: Sink::PcapNg { writer, interfaces: interfaces.len() }, record: 0 })
    }

    /// Writes a frame seen at `time`, in nanoseconds since 1970 for other tools to show it right, on the interface of
    /// this index (pcap: 0). A comment is kept in pcapng only.
    ///
    /// # Errors
    /// `Write` for a time before 0 or (pcap) after the year 2106, a frame longer than [`SNAP_LENGTH`] or an interface
    /// that the file has not got; `Io`.
    pub fn write(
        &mut self,
        time: Time,
        interface: usize,
        bytes: &[u8],
        comment: Option<&str>,
    ) -> Result<(), CaptureError> {
        self.record += 1;
        let record = self.record;
        let refuse = |cause: &str| CaptureError::Write { record, cause: cause.to_owned() };
        let nanoseconds = u64::try_from(time.nanoseconds()).map_err(|_| refuse("its time is negative"))?;
        let timestamp = Duration::from_nanos(nanoseconds);
        let original_len = u32::try_from(bytes.len()).ok().filter(|length| *length <= SNAP_LENGTH);
        let original_len = original_len.ok_or_else(|| refuse("it is longer than 262,144 bytes"))?;
        match &mut self.sink {
            Sink::Pcap(writer) if interface == 0 => {
                writer.write_packet(&PcapPacket::new(timestamp, original_len, bytes)).map(drop)
            }
            Sink::PcapNg { writer, interfaces } if interface < *interfaces => {
                let comment = comment.map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text)));
                let block = EnhancedPacketBlock {
                    interface_id: interface as u32,
                    timestamp,
                    original_len,
                    data: Cow::Borrowed(bytes),
                    options: comment.into_iter().collect(),
                };
                writer.write_pcapng_block(block).map(drop)
            }
            _ => return Err(refuse(&format!("the file has no interface {interface}"))),
        }
        .map_err(|error| unwritten(record, error))
    }

    /// The writer underneath, to flush or close it.
    pub fn into_inner(self) -> W {
        match self.sink {
            Sink::Pcap(writer) => writer.into_writer(),
            Sink::PcapNg { writer, .. } => writer.into_inner(),
        }
    }
}

fn unwritten(record: u64, error: PcapError) -> CaptureError {
    match error {
        PcapError::IoError(error) => CaptureError::Io(error),
        other => CaptureError::Write { record, cause: other.to_string() },
    }
}
