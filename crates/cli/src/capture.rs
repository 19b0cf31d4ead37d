//! Captures, as several subcommands read them.

use crate::input;
use anyhow::{Context, Result};
use std::io::BufReader;
use std::path::Path;
use weftwire_capture::{CaptureInterface, CaptureReader, CaptureRecord, SENT};

/// Whether a captured frame is marked as sent by a function.
pub fn is_sent(record: &CaptureRecord) -> bool {
    record.comment.as_deref() == Some(SENT)
}

/// Reads a whole capture: its interfaces and its frames in the order of the file.
pub fn read(path: &Path) -> Result<(Vec<CaptureInterface>, Vec<CaptureRecord>)> {
    let file = input::open(path)?;
    let in_file = || format!("cannot read {}", path.display());
    let mut reader = CaptureReader::new(BufReader::new(file)).with_context(in_file)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().with_context(in_file)? {
        records.push(record);
    }
    Ok((reader.interfaces().to_vec(), records))
}
