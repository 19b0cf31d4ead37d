//! Recordings of inputs: all that a function was handed, as it came, so that a run can be repeated bit for bit.
//!
//! A capture holds frames; a recording holds also the calls of the application, the changes from outside, the passing of
//! time, how frames were put together in batches, and after each input a digest of what came out.
//!
//! A file begins with [`MAGIC`], the version, and the ports; then comes a record for each input, with its length in front.
//! All numbers are little-endian. The last record says how many inputs came after the last one that was kept: a recording
//! has no holes, it ends early.

use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv6Addr};
use weftwire_core::control::Done;
use weftwire_core::fields::Fields;
use weftwire_core::port::{Checksum, SegmentationKind};
use weftwire_core::{
    Arrival, Buffer, CallError, Change, ControlError, Endpoints, FlowId, LinkType, Listen, MacAddress, Offload, Outbox,
    Output, Port, Ports, Segmentation, Time,
};

/// What a recording begins with.
pub const MAGIC: [u8; 8] = *b"WEFTINPT";
/// The version of the format.
pub const VERSION: u32 = 3;
/// The oldest version that is read. Until then platforms gave inputs of one instant their order; the form is the same.
pub const OLDEST_VERSION: u32 = 2;
/// Longest record in bytes: a batch of frames of the greatest length, and some.
const LONGEST: usize = 64 << 20;

/// One input.
#[derive(Clone, Debug)]
pub enum Input {
    /// Frames that were consumed together.
    Frames(Vec<Arrival>),
    /// Time passed.
    Fire,
    /// A command with its number.
    Control(u64, Change),
    /// The application opened a connection.
    Connect(Endpoints),
    /// It wrote.
    Write(FlowId, Vec<u8>),
    /// It closed a flow for sending.
    Close(FlowId),
    /// It gave a flow up.
    Abort(FlowId),
    /// It listens.
    Listen(Listen),
    /// It took a flow up.
    Accept(FlowId),
    /// It has read so many bytes.
    Consumed(FlowId, usize),
    /// It listens no more.
    Unlisten(Listen),
}

/// What an outbox was like when an input was handed in: where a function stops within the input depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Circumstances {
    /// Bytes until it was full.
    pub room: u64,
    /// Whether it wanted trace records, which take room.
    pub tracing: bool,
}

impl Circumstances {
    /// How this outbox is now.
    pub fn of(out: &Outbox) -> Circumstances {
        Circumstances { room: out.room() as u64, tracing: out.wants_trace() }
    }

    /// Makes an empty outbox like it was.
    pub fn recreate(&self, out: &mut Outbox) {
        out.set_bound(usize::try_from(self.room).unwrap_or(usize::MAX));
        out.set_tracing(self.tracing);
    }
}

/// A record.
#[derive(Clone, Debug)]
pub enum Record {
    /// An input, when it came, and the digest of what came out.
    Input {
        /// The function's time.
        now: Time,
        /// Where what came out was put.
        outbox: Circumstances,
        /// The input.
        input: Input,
        /// See [`Digest`].
        digest: u64,
    },
    /// The end: so many more inputs came and were not kept.
    End(u64),
}

/// Why a recording can't be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It is something else.
    #[error("this is no recording of inputs; `weft run --record` makes them")]
    NoRecording,
    /// Another version made it.
    #[error("the recording has version {0}; versions {OLDEST_VERSION} to {VERSION} are read")]
    Version(u32),
    /// It ends within a record.
    #[error("the recording ends within record {0}: its run did not end in order")]
    Cut(u64),
    /// A record makes no sense.
    #[error("record {number} is damaged: {what}")]
    Damaged {
        /// Its number, from 0.
        number: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The file can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Digest of what came out of a function: outputs with their bytes, in order, and the results of calls. Traces are left out, as
/// they depend on whether anybody wants them.
#[derive(Debug)]
pub struct Digest(SipHasher13);

impl Default for Digest {
    fn default() -> Digest {
        Digest(SipHasher13::new_with_keys(0, 0))
    }
}

impl Digest {
    /// Takes in all outputs of an outbox from `start` on.
    pub fn outputs(&mut self, out: &Outbox, start: usize) {
        for output in &out.items()[start..] {
            match output {
                Output::Send { at, port, bytes, offload } => {
                    self.words(&[1, at.nanoseconds() as u64, port.0.into()]);
                    let mut marks = Vec::new();
                    put_offload(&mut marks, *offload);
                    self.bytes(&marks);
                    self.bytes(out.bytes(bytes));
                }
                Output::Deliver { flow, bytes } => {
                    self.words(&[2, flow.0]);
                    self.bytes(out.bytes(bytes));
                }
                Output::Released { flow, length } => self.words(&[3, flow.0, *length as u64]),
                Output::Notify { at, flow, notice, value } => {
                    self.words(&[4, at.nanoseconds() as u64, flow.0, (*notice).into(), *value as u64]);
                }
                Output::Opened { flow, endpoints } => {
                    self.words(&[5, flow.0]);
                    let mut ends = Vec::new();
                    endpoints.iter().for_each(|endpoints| put_endpoints(&mut ends, endpoints));
                    self.bytes(&ends);
                }
                Output::Ended { flow } => self.words(&[6, flow.0]),
                Output::Answered(answer) => {
                    self.words(&[7, answer.number, answer.at.nanoseconds() as u64]);
                    self.answer(&answer.result);
                }
                Output::Trace(_) => {}
            }
        }
    }

    fn answer(&mut self, result: &Result<Done, ControlError>) {
        match result {
            Ok(Done::Done) => self.words(&[0]),
            Ok(Done::Flow(flow)) => self.words(&[1, flow.0]),
            Ok(Done::State(state)) => {
                self.words(&[2]);
                self.bytes(state);
            }
            Err(error) => self.bytes(error.to_string().as_bytes()),
        }
    }

    /// Takes in what a call gave.
    pub fn call(&mut self, result: &Result<u64, CallError>) {
        match result {
            Ok(value) => self.words(&[8, *value]),
            Err(error) => self.bytes(error.to_string().as_bytes()),
        }
    }

    /// The digest.
    pub fn value(&self) -> u64 {
        self.0.finish()
    }

    fn words(&mut self, words: &[u64]) {
        words.iter().for_each(|word| self.0.write(&word.to_le_bytes()));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.words(&[bytes.len() as u64]);
        self.0.write(bytes);
    }
}

/// The file's head for a function with these ports.
pub fn head(ports: &Ports) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((ports.iter().count() as u32).to_le_bytes());
    for (port, link) in ports.iter() {
        bytes.extend(port.0.to_le_bytes());
        bytes.push(u8::from(link == LinkType::Ip));
    }
    bytes
}

/// Begins a record of frames that are about to be handed in; [`keep_consumed`] takes those out that were not consumed.
pub fn put_frames<'a>(bytes: &mut Vec<u8>, frames: impl Iterator<Item = &'a Arrival>, ends: &mut Vec<usize>) {
    ends.clear();
    bytes.extend(0_u32.to_le_bytes());
    for Arrival { port, buffer, offload } in frames {
        bytes.extend(port.0.to_le_bytes());
        put_offload(bytes, *offload);
        put_bytes(bytes, buffer);
        ends.push(bytes.len());
    }
}

/// Keeps the first `consumed` frames of what [`put_frames`] has put at `start`.
pub fn keep_consumed(bytes: &mut Vec<u8>, start: usize, ends: &[usize], consumed: usize) {
    bytes.truncate(consumed.checked_sub(1).map_or(start + 4, |last| ends[last]));
    bytes[start..start + 4].copy_from_slice(&(consumed as u32).to_le_bytes());
}

/// Kinds of records, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// [`Record::End`].
    End = 0,
    /// [`Input::Frames`].
    Frames = 1,
    /// [`Input::Fire`].
    Fire = 2,
    /// [`Input::Control`].
    Control = 3,
    /// [`Input::Connect`].
    Connect = 4,
    /// [`Input::Write`].
    Write = 5,
    /// [`Input::Close`].
    Close = 6,
    /// [`Input::Abort`].
    Abort = 7,
    /// [`Input::Listen`].
    Listen = 8,
    /// [`Input::Accept`].
    Accept = 9,
    /// [`Input::Consumed`].
    Consumed = 10,
    /// [`Input::Unlisten`].
    Unlisten = 11,
}

/// Puts what is behind a record's kind and time, but for its digest. Frames have their own way.
pub fn put_input(bytes: &mut Vec<u8>, input: &Input) -> Kind {
    match input {
        Input::Frames(frames) => {
            let (start, mut ends) = (bytes.len(), Vec::new());
            put_frames(bytes, frames.iter(), &mut ends);
            keep_consumed(bytes, start, &ends, frames.len());
            Kind::Frames
        }
        Input::Fire => Kind::Fire,
        Input::Control(number, change) => {
            bytes.extend(number.to_le_bytes());
            // A change is plain data: it can always be written.
            put_bytes(bytes, &serde_json::to_vec(change).unwrap_or_default());
            Kind::Control
        }
        Input::Connect(endpoints) => {
            put_endpoints(bytes, endpoints);
            Kind::Connect
        }
        Input::Write(flow, data) => {
            bytes.extend(flow.0.to_le_bytes());
            put_bytes(bytes, data);
            Kind::Write
        }
        Input::Close(flow) => {
            bytes.extend(flow.0.to_le_bytes());
            Kind::Close
        }
        Input::Abort(flow) => {
            bytes.extend(flow.0.to_le_bytes());
            Kind::Abort
        }
        Input::Listen(local) => {
            put_listen(bytes, local);
            Kind::Listen
        }
        Input::Unlisten(local) => {
            put_listen(bytes, local);
            Kind::Unlisten
        }
        Input::Accept(flow) => {
            bytes.extend(flow.0.to_le_bytes());
            Kind::Accept
        }
        Input::Consumed(flow, length) => {
            bytes.extend(flow.0.to_le_bytes());
            bytes.extend((*length as u64).to_le_bytes());
            Kind::Consumed
        }
    }
}

fn put_bytes(bytes: &mut Vec<u8>, data: &[u8]) {
    bytes.extend((data.len() as u32).to_le_bytes());
    bytes.extend_from_slice(data);
}

fn put_offload(bytes: &mut Vec<u8>, offload: Offload) {
    let checksum = match offload.checksum {
        Checksum::Unverified => 0,
        Checksum::Verified => 1,
        Checksum::Partial => 2,
    };
    let (kind, size) = offload.segmentation.map_or((0, 0), |Segmentation { size, kind }| {
        let kind = match kind {
            SegmentationKind::TcpIpv4 { ecn } => 1 + u8::from(ecn),
            SegmentationKind::TcpIpv6 { ecn } => 3 + u8::from(ecn),
            SegmentationKind::Udp => 5,
        };
        (kind, size)
    });
    bytes.extend([checksum, kind]);
    bytes.extend(size.to_le_bytes());
}

/// An address as an IPv6 one.
fn wide(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn put_listen(bytes: &mut Vec<u8>, Listen { address, port }: &Listen) {
    bytes.extend([u8::from(address.is_some()), u8::from(port.is_some())]);
    bytes.extend(wide(address.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED))));
    bytes.extend(port.unwrap_or(0).to_le_bytes());
}

fn put_endpoints(bytes: &mut Vec<u8>, ends: &Endpoints) {
    bytes.push(ends.protocol);
    bytes.extend(wide(ends.local_address));
    bytes.extend(ends.local_port.to_le_bytes());
    bytes.extend(wide(ends.remote_address));
    bytes.extend(ends.remote_port.to_le_bytes());
    bytes.extend(ends.local_mac.0);
    bytes.extend(ends.remote_mac.0);
    bytes.push(u8::from(ends.vlan.is_some()));
    bytes.extend(ends.vlan.unwrap_or(0).to_le_bytes());
}

/// Reads a recording.
pub struct RecordingReader<R> {
    reader: R,
    version: u32,
    ports: Ports,
    number: u64,
}

impl<R: Read> RecordingReader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// See [`RecordingError`].
    pub fn new(mut reader: R) -> Result<RecordingReader<R>, RecordingError> {
        let mut head = [0; 16];
        reader.read_exact(&mut head).map_err(|_| RecordingError::NoRecording)?;
        let mut fields = Fields::new(&head);
        if fields.take(8) != Some(&MAGIC) {
            return Err(RecordingError::NoRecording);
        }
        let (version, count) = (fields.u32().unwrap_or(0), fields.u32().unwrap_or(0));
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            return Err(RecordingError::Version(version));
        }
        let mut ports = Ports::default();
        for _ in 0..count.min(65_535) {
            let mut port = [0; 3];
            reader.read_exact(&mut port).map_err(|_| RecordingError::NoRecording)?;
            let link = if port[2] == 1 { LinkType::Ip } else { LinkType::Ethernet };
            ports.insert(Port(u16::from_le_bytes([port[0], port[1]])), link);
        }
        Ok(RecordingReader { reader, version, ports, number: 0 })
    }

    /// The function's ports.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Whether the function of the run left the order of inputs at one instant to its platform.
    pub fn order_left_to_platform(&self) -> bool {
        self.version < 3
    }

    /// The next record.
    ///
    /// # Errors
    /// See [`RecordingError`].
    pub fn next_record(&mut self) -> Result<Record, RecordingError> {
        let number = self.number;
        self.number += 1;
        let cut = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => RecordingError::Cut(number),
            _ => RecordingError::Io(error),
        };
        let mut length = [0; 4];
        self.reader.read_exact(&mut length).map_err(cut)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(RecordingError::Damaged { number, what: "it is longer than any record" });
        }
        let mut bytes = Vec::new();
        self.reader.by_ref().take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(RecordingError::Cut(number));
        }
        let mut fields = Fields::new(&bytes);
        let record = record(&mut fields).filter(|_| fields.is_empty());
        record.ok_or(RecordingError::Damaged { number, what: "its fields do not fit its kind and length" })
    }
}

fn record(fields: &mut Fields<'_>) -> Option<Record> {
    let kind = fields.u8()?;
    if kind == Kind::End as u8 {
        return Some(Record::End(fields.u64()?));
    }
    let now = Time::from_nanoseconds(fields.u64()? as i64);
    let outbox = Circumstances { room: fields.u64()?, tracing: fields.u8()? == 1 };
    let input = match kind {
        1 => {
            let count = fields.u32()?;
            let mut frames = Vec::new();
            for _ in 0..count {
                let port = Port(fields.u16()?);
                let offload = offload(fields)?;
                frames.push(Arrival { port, offload, buffer: Buffer::from(fields.bytes()?.to_vec()) });
            }
            Input::Frames(frames)
        }
        2 => Input::Fire,
        3 => Input::Control(fields.u64()?, serde_json::from_slice(fields.bytes()?).ok()?),
        4 => Input::Connect(endpoints(fields)?),
        5 => Input::Write(FlowId(fields.u64()?), fields.bytes()?.to_vec()),
        6 => Input::Close(FlowId(fields.u64()?)),
        7 => Input::Abort(FlowId(fields.u64()?)),
        8 => Input::Listen(listen(fields)?),
        9 => Input::Accept(FlowId(fields.u64()?)),
        10 => Input::Consumed(FlowId(fields.u64()?), usize::try_from(fields.u64()?).ok()?),
        11 => Input::Unlisten(listen(fields)?),
        _ => return None,
    };
    Some(Record::Input { now, outbox, input, digest: fields.u64()? })
}

fn listen(fields: &mut Fields<'_>) -> Option<Listen> {
    let known = fields.array::<2>()?.map(|known| known == 1);
    let (address, port) = (address(fields)?, fields.u16()?);
    Some(Listen { address: known[0].then_some(address), port: known[1].then_some(port) })
}

fn offload(fields: &mut Fields<'_>) -> Option<Offload> {
    let checksum = match fields.u8()? {
        0 => Checksum::Unverified,
        1 => Checksum::Verified,
        2 => Checksum::Partial,
        _ => return None,
    };
    let (kind, size) = (fields.u8()?, fields.u16()?);
    let kind = match kind {
        0 => None,
        1 | 2 => Some(SegmentationKind::TcpIpv4 { ecn: kind == 2 }),
        3 | 4 => Some(SegmentationKind::TcpIpv6 { ecn: kind == 4 }),
        5 => Some(SegmentationKind::Udp),
        _ => return None,
    };
    let segmentation = kind.map(|kind| Segmentation { size, kind });
    Some(Offload { segmentation, checksum }).filter(|_| segmentation.is_none_or(|cut| cut.size > 0))
}

fn address(fields: &mut Fields<'_>) -> Option<IpAddr> {
    let address = Ipv6Addr::from(fields.array::<16>()?);
    Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
}

fn endpoints(fields: &mut Fields<'_>) -> Option<Endpoints> {
    let protocol = fields.u8()?;
    let mut end = || Some((address(fields)?, fields.u16()?));
    let ((local_address, local_port), (remote_address, remote_port)) = (end()?, end()?);
    let (local_mac, remote_mac) = (MacAddress(fields.array()?), MacAddress(fields.array()?));
    let (tagged, tag) = (fields.u8()? == 1, fields.u16()?);
    let vlan = tagged.then_some(tag);
    Some(Endpoints { protocol, local_address, local_port, remote_address, remote_port, local_mac, remote_mac, vlan })
}
