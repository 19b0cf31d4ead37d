//! Record batches: how clients send and get records (format 2, without compression).

use super::response::code;
use super::wire::{Malformed, Reader, Write, variable_length};
use crate::message::{Attributes, Message, push_attribute};

/// A record's header of this name, if it is a decimal number, is what filters know as `publish.number`.
pub const NUMBER_HEADER: &[u8] = b"weft-number";

const FORMAT: i8 = 2;
const COMPRESSION: i16 = 0b111;
/// Of a transaction, or a mark in one.
const TRANSACTIONS: i16 = 0b11_0000;

/// Why a batch is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBatch {
    /// It is damaged.
    #[error("the checksum is wrong")]
    Checksum,
    /// It is no batch, or not one alone.
    #[error("not one record batch")]
    Malformed,
    /// It has a format of the time before Kafka 0.11.
    #[error("a format other than {FORMAT}")]
    Format,
    /// Its records are compressed.
    #[error("compressed records")]
    Compressed,
    /// It is part of a transaction.
    #[error("part of a transaction")]
    Transaction,
}

impl BadBatch {
    /// The protocol's error.
    pub fn code(self) -> i16 {
        match self {
            BadBatch::Checksum => code::CORRUPT_MESSAGE,
            BadBatch::Malformed | BadBatch::Format => code::INVALID_RECORD,
            BadBatch::Compressed => code::UNSUPPORTED_COMPRESSION,
            BadBatch::Transaction => code::INVALID_REQUEST,
        }
    }
}

impl From<Malformed> for BadBatch {
    fn from(_: Malformed) -> BadBatch {
        BadBatch::Malformed
    }
}

/// A batch as a producer sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The producer's number, or -1.
    pub producer: i64,
    /// The producer's epoch.
    pub epoch: i16,
    /// The first record's number in the producer's sequence, or -1.
    pub sequence: i32,
    /// The records; at least one.
    pub records: Vec<Record<'a>>,
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its contents.
    pub value: Option<&'a [u8]>,
    /// Key, value and headers as they stand in the batch: no matter where they stand there.
    pub body: &'a [u8],
    /// Where the headers begin in that.
    headers: usize,
}

impl<'a> Batch<'a> {
    /// The one batch that `bytes` are.
    ///
    /// # Errors
    /// [`BadBatch`].
    pub fn read(bytes: &'a [u8]) -> Result<Batch<'a>, BadBatch> {
        let mut reader = Reader::new(bytes);
        reader.i64()?; // the first record's offset, which the broker gives
        let length = reader.i32()?;
        if usize::try_from(length) != Ok(reader.rest().len()) {
            return Err(BadBatch::Malformed);
        }
        reader.i32()?; // the epoch of the partition's leader
        if reader.i8()? != FORMAT {
            return Err(BadBatch::Format);
        }
        let checksum = reader.i32()? as u32;
        if crc32c::crc32c(reader.rest()) != checksum {
            return Err(BadBatch::Checksum);
        }
        let attributes = reader.i16()?;
        if attributes & COMPRESSION != 0 {
            return Err(BadBatch::Compressed);
        }
        if attributes & TRANSACTIONS != 0 {
            return Err(BadBatch::Transaction);
        }
        reader.i32()?; // the last record's distance
        let first_timestamp = reader.i64()?;
        reader.i64()?; // the greatest time
        let (producer, epoch, sequence) = (reader.i64()?, reader.i16()?, reader.i32()?);
        let count = reader.i32()?;
        let mut records = Vec::new();
        for _ in 0..count {
            let length = usize::try_from(reader.variable()?).map_err(|_| BadBatch::Malformed)?;
            records.push(Record::read(reader.take(length)?, first_timestamp)?);
        }
        if records.is_empty() || !reader.rest().is_empty() {
            return Err(BadBatch::Malformed);
        }
        Ok(Batch { producer, epoch, sequence, records })
    }
}

impl<'a> Record<'a> {
    fn read(bytes: &'a [u8], first_timestamp: i64) -> Result<Record<'a>, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.i8()?; // attributes: none are known
        let timestamp = first_timestamp.wrapping_add(reader.variable()?);
        reader.variable()?; // its distance from the first
        Record::from_body(reader.rest(), timestamp)
    }

    /// The record of this time whose key, value and headers stand in `body`.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_body(body: &'a [u8], timestamp: i64) -> Result<Record<'a>, Malformed> {
        let mut reader = Reader::new(body);
        let (key, value) = (reader.variable_bytes()?, reader.variable_bytes()?);
        let headers = body.len() - reader.rest().len();
        for _ in 0..reader.variable()? {
            reader.variable_bytes()?.ok_or(Malformed::NegativeLength)?;
            reader.variable_bytes()?;
        }
        if !reader.rest().is_empty() {
            return Err(Malformed::Long);
        }
        Ok(Record { timestamp_ms: timestamp, key, value, body, headers })
    }

    /// Name and value of each header.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let mut reader = Reader::new(&self.body[self.headers..]);
        let mut left = reader.variable().unwrap_or(0);
        std::iter::from_fn(move || {
            left = left.checked_sub(1).filter(|left| *left >= 0)?;
            Some((reader.variable_bytes().ok()??, reader.variable_bytes().ok()?))
        })
    }

    /// The record's headers as a message's attributes, appended to `attributes`, and the number in them. `None` if one
    /// is too long for any message.
    pub fn attributes(&self, attributes: &mut Vec<u8>) -> Option<u64> {
        let mut number = 0;
        for (name, value) in self.headers() {
            if !push_attribute(attributes, name, value) {
                return None;
            }
            if let (NUMBER_HEADER, Some(value)) = (name, value) {
                number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            }
        }
        Some(number)
    }
}

/// Appends a message's key, payload and attributes as the body of a record.
pub fn write_body(message: &Message<'_>, body: &mut Vec<u8>) {
    body.variable_bytes(message.key);
    body.variable_bytes(message.payload);
    write_headers(message.attributes, body);
}

fn write_headers(attributes: Attributes<'_>, body: &mut Vec<u8>) {
    body.variable(attributes.iter().count() as i64);
    for (name, value) in attributes.iter() {
        body.variable_bytes(Some(name));
        body.variable_bytes(value);
    }
}

/// Appends a batch of records, each its time and its body, of which the first has this offset. Of no records, nothing.
pub fn write_batch<'a>(
    offset: i64,
    records: impl ExactSizeIterator<Item = (i64, &'a [u8])> + Clone,
    out: &mut Vec<u8>,
) {
    let Some((first_timestamp, _)) = records.clone().next() else { return };
    let (start, count) = (out.len(), records.len() as i32);
    let greatest = records.clone().map(|(timestamp, _)| timestamp).max().unwrap_or(first_timestamp);
    out.i64(offset);
    out.i32(0); // the length, see below
    out.i32(0); // the epoch of the partition's leader
    out.i8(FORMAT);
    out.i32(0); // the checksum, see below
    let checked = out.len();
    out.i16(0); // attributes: no compression, the producer's times, no transaction
    out.i32(count - 1);
    out.i64(first_timestamp);
    out.i64(greatest);
    out.i64(-1); // producer, its epoch, its sequence
    out.i16(-1);
    out.i32(-1);
    out.i32(count);
    for (distance, (timestamp, body)) in (0_i64..).zip(records) {
        let later = timestamp.wrapping_sub(first_timestamp);
        let length = 1 + variable_length(later) + variable_length(distance) + body.len();
        out.variable(length as i64);
        out.i8(0);
        out.variable(later);
        out.variable(distance);
        out.extend_from_slice(body);
    }
    let checksum = crc32c::crc32c(&out[checked..]);
    out[checked - 4..checked].copy_from_slice(&checksum.to_be_bytes());
    let length = (out.len() - start - 12) as u32;
    out[start + 8..start + 12].copy_from_slice(&length.to_be_bytes());
}
