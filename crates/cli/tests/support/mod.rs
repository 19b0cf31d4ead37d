//! What several tests of the command share.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use weftwire_core::capture::{CaptureReader, SENT};

/// The frames of a capture that a function sent, in order: port's place among the interfaces, and bytes.
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
