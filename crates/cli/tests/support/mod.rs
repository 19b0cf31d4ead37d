//! What several tests of the command share.

#[allow(dead_code, reason = "of use to some of the tests")]
pub mod book;
#[allow(dead_code, reason = "of use to some of the tests")]
pub mod market;
#[allow(dead_code, reason = "of use to some of the tests")]
pub mod place;
#[allow(dead_code, reason = "of use to some of the tests")]
pub mod route;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use weftwire_capture::{CaptureReader, SENT};

/// The frames of a capture that a function sent, in order: port's place among the interfaces, and bytes.
#[allow(dead_code, reason = "of use to some of the tests")]
pub fn sent(capture: &Path) -> anyhow::Result<Vec<(usize, Vec<u8>)>> {
    let mut reader = CaptureReader::new(BufReader::new(File::open(capture)?))?;
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record()? {
        if record.comment.as_deref() == Some(SENT) {
            frames.push((record.interface, record.bytes));
        }
    }
    Ok(frames)
}

/// A frame that crossed a port of a node that is captured at.
#[allow(dead_code, reason = "of use to some of the tests")]
pub struct Crossing {
    /// Nanoseconds after the start.
    pub at_ns: u64,
    /// The port, from 1, if all ports are captured at.
    pub port: usize,
    /// Whether the node sent it; else it arrived.
    pub sent: bool,
    /// The frame.
    pub bytes: Vec<u8>,
}

/// All frames of a node's capture.
#[allow(dead_code, reason = "of use to some of the tests")]
pub fn crossings(capture: &Path) -> anyhow::Result<Vec<Crossing>> {
    let mut reader = CaptureReader::new(BufReader::new(File::open(capture)?))?;
    let mut crossings = Vec::new();
    while let Some(record) = reader.next_record()? {
        crossings.push(Crossing {
            at_ns: u64::try_from(record.time.nanoseconds())?,
            port: record.interface + 1,
            sent: record.comment.as_deref() == Some(SENT),
            bytes: record.bytes,
        });
    }
    Ok(crossings)
}
