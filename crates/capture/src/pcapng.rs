//! Reading pcapng (draft-ietf-opsawg-pcapng).
//!
//! Done here because `pcap-file` 2.0 takes every time stamp for nanoseconds whatever `if_tsresol` and `if_tsoffset`
//! say, refuses interfaces with an `if_tzone` option, and option lists that end without `opt_endofopt`.

use crate::{CaptureError, CaptureInterface, CaptureRecord, link_type};
use std::io::Read;
use weftwire_core::time::Time;

/// How a file starts: the type of a section header block, the same in both byte orders.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_NAME: u16 = 2;
const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;

/// Longest block that is read: a guard against damaged lengths.
const MAX_BLOCK: u32 = 16 << 20;

pub(super) struct PcapNgReader<R: Read> {
    reader: R,
    big_endian: bool,
    /// Of all sections; [`PcapNgReader::first`] is where the present section's begin.
    interfaces: Vec<CaptureInterface>,
    clocks: Vec<Clock>,
    first: usize,
    /// Number of the next frame.
    record: u64,
    last_time: Time,
}

/// How an interface counts time.
#[derive(Clone, Copy)]
struct Clock {
    units_per_second: u128,
    offset_seconds: i64,
    snap_length: u32,
}

impl Clock {
    fn time(self, units: u64) -> Option<Time> {
        let nanoseconds = u128::from(units) * 1_000_000_000 / self.units_per_second;
        let offset = i128::from(self.offset_seconds) * 1_000_000_000;
        i64::try_from(i128::try_from(nanoseconds).ok()? + offset).ok().map(Time::from_nanoseconds)
    }
}

impl<R: Read> PcapNgReader<R> {
    /// Reads the first section header.
    pub(super) fn new(reader: R) -> Result<PcapNgReader<R>, CaptureError> {
        let mut reader = PcapNgReader {
            reader,
            big_endian: false,
            interfaces: Vec::new(),
            clocks: Vec::new(),
            first: 0,
            record: 1,
            last_time: Time::ZERO,
        };
        match reader.block() {
            Ok(Some((SECTION_HEADER, _))) => Ok(reader),
            Ok(_) => Err(CaptureError::Header("it has no section header".to_owned())),
            Err(CaptureError::Record { cause, .. }) => Err(CaptureError::Header(cause)),
            Err(error) => Err(error),
        }
    }

    pub(super) fn interfaces(&self) -> &[CaptureInterface] {
        &self.interfaces
    }

    pub(super) fn next_record(&mut self) -> Result<Option<CaptureRecord>, CaptureError> {
        while let Some((kind, body)) = self.block()? {
            let record = match kind {
                SECTION_HEADER => {
                    self.first = self.interfaces.len();
                    continue;
                }
                INTERFACE_DESCRIPTION => {
                    self.interface(&body)?;
                    continue;
                }
                ENHANCED_PACKET | OBSOLETE_PACKET => self.packet(kind, &body)?,
                SIMPLE_PACKET => self.simple_packet(&body)?,
                _ => continue,
            };
            self.record += 1;
            self.last_time = record.time;
            return Ok(Some(record));
        }
        Ok(None)
    }

    /// A block's type and body, or `None` at the end. Of a section header the byte order is taken over.
    fn block(&mut self) -> Result<Option<(u32, Vec<u8>)>, CaptureError> {
        let mut start = Vec::new();
        self.reader.by_ref().take(8).read_to_end(&mut start)?;
        if start.is_empty() {
            return Ok(None);
        }
        start.resize(8, 0);
        let mut body = Vec::new();
        if start[..4] == MAGIC {
            self.reader.by_ref().take(4).read_to_end(&mut body)?;
            self.big_endian = match body[..] {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => return Err(self.damaged("a section header without its byte-order magic")),
            };
        }
        let kind = self.u32(&start, 0);
        let length = self.u32(&start, 4);
        let around = 12 + body.len() as u32;
        if !length.is_multiple_of(4) || length < around || length > MAX_BLOCK {
            return Err(self.damaged(&format!("a block of {length} bytes")));
        }
        // The trailing copy of the length is read with the body and taken off.
        let rest = length - around + 4;
        let read = self.reader.by_ref().take(rest.into()).read_to_end(&mut body)?;
        if read < rest as usize {
            return Err(self.damaged("the file ends inside a block"));
        }
        if self.u32(&body, body.len() - 4) != length {
            return Err(self.damaged("a block's two lengths differ"));
        }
        body.truncate(body.len() - 4);
        Ok(Some((kind, body)))
    }

    fn interface(&mut self, body: &[u8]) -> Result<(), CaptureError> {
        if body.len() < 8 {
            return Err(self.damaged("an interface description of less than 8 bytes"));
        }
        let link = link_type(self.u16(body, 0).into())?;
        let mut name = String::new();
        let mut clock = Clock { units_per_second: 1_000_000, offset_seconds: 0, snap_length: self.u32(body, 4) };
        for (code, value) in self.options(&body[8..]) {
            match (code, value) {
                (OPTION_NAME, value) => name = String::from_utf8_lossy(value).into_owned(),
                (OPTION_TIME_RESOLUTION, [resolution]) => {
                    let (base, exponent): (u128, u8) =
                        if resolution & 0x80 == 0 { (10, *resolution) } else { (2, resolution & 0x7f) };
                    clock.units_per_second = base
                        .checked_pow(exponent.into())
                        .ok_or_else(|| self.damaged(&format!("a time stamp resolution of {base}^-{exponent}")))?;
                }
                (OPTION_TIME_OFFSET, value) if value.len() == 8 => {
                    let (low, high) = (self.u32(value, 0), self.u32(value, 4));
                    let (high, low) = if self.big_endian { (low, high) } else { (high, low) };
                    clock.offset_seconds = (u64::from(high) << 32 | u64::from(low)) as i64;
                }
                _ => {}
            }
        }
        self.interfaces.push(CaptureInterface { name, link });
        self.clocks.push(clock);
        Ok(())
    }

    /// An enhanced packet block, or the obsolete one, which has a 16-bit interface number and a drop count in place of
    /// the interface number.
    fn packet(&self, kind: u32, body: &[u8]) -> Result<CaptureRecord, CaptureError> {
        if body.len() < 20 {
            return Err(self.damaged("a packet block of less than 20 bytes"));
        }
        let number = if kind == OBSOLETE_PACKET { self.u16(body, 0).into() } else { self.u32(body, 0) };
        let (interface, clock) = self.clock(number)?;
        let units = u64::from(self.u32(body, 4)) << 32 | u64::from(self.u32(body, 8));
        let time = clock.time(units).ok_or_else(|| self.damaged("a time stamp beyond the year 2262"))?;
        let captured = self.u32(body, 12) as usize;
        let bytes = body.get(20..).and_then(|behind| behind.get(..captured));
        let bytes = bytes.ok_or_else(|| self.damaged(&format!("{captured} bytes do not fit into its block")))?;
        let options = body.get(20 + captured.next_multiple_of(4)..).unwrap_or_default();
        let comment = self.options(options).find(|(code, _)| *code == OPTION_COMMENT);
        Ok(CaptureRecord {
            time,
            interface,
            bytes: bytes.to_vec(),
            original_length: self.u32(body, 16),
            comment: comment.map(|(_, text)| String::from_utf8_lossy(text).into_owned()),
        })
    }

    /// A simple packet block. It has no time stamp: it counts as seen with the frame before it.
    fn simple_packet(&self, body: &[u8]) -> Result<CaptureRecord, CaptureError> {
        let (length, padded) = body.split_at_checked(4).ok_or_else(|| self.damaged("an empty packet block"))?;
        let original_length = self.u32(length, 0);
        let (interface, clock) = self.clock(0)?;
        let snap_length = if clock.snap_length == 0 { u32::MAX } else { clock.snap_length };
        let bytes = padded.get(..original_length.min(snap_length) as usize);
        let bytes = bytes.ok_or_else(|| self.damaged("it is longer than its block"))?.to_vec();
        Ok(CaptureRecord { time: self.last_time, interface, bytes, original_length, comment: None })
    }

    /// Index and clock of an interface of the present section.
    fn clock(&self, number: u32) -> Result<(usize, Clock), CaptureError> {
        let index = self.first.saturating_add(number as usize);
        let clock =
            self.clocks.get(index).ok_or_else(|| self.damaged(&format!("interface {number} is not described")))?;
        Ok((index, *clock))
    }

    /// The options at the end of a block: code and value. Stops at the end mark or at what does not fit.
    fn options<'a>(&self, mut bytes: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a, R> {
        let big_endian = self.big_endian;
        std::iter::from_fn(move || {
            let (head, behind) = bytes.split_at_checked(4)?;
            let code = read_u16(big_endian, head, 0);
            let length = usize::from(read_u16(big_endian, head, 2));
            let value = behind.get(..length).filter(|_| code != OPTION_END)?;
            bytes = behind.get(length.next_multiple_of(4)..).unwrap_or_default();
            Some((code, value))
        })
    }

    fn damaged(&self, cause: &str) -> CaptureError {
        CaptureError::Record { record: self.record, cause: cause.to_owned() }
    }

    fn u16(&self, bytes: &[u8], at: usize) -> u16 {
        read_u16(self.big_endian, bytes, at)
    }

    fn u32(&self, bytes: &[u8], at: usize) -> u32 {
        let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }
}

fn read_u16(big_endian: bool, bytes: &[u8], at: usize) -> u16 {
    let word = [bytes[at], bytes[at + 1]];
    if big_endian { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) }
}
