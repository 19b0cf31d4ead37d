//! Whole captures.

use crate::{CatalogError, file};
use std::io::BufReader;
use std::path::Path;
use weftwire_capture::{CaptureError, CaptureInterface, CaptureReader, CaptureRecord, SENT};

/// Whether a captured frame is marked as sent by a function.
pub fn is_sent(record: &CaptureRecord) -> bool {
    record.comment.as_deref() == Some(SENT)
}

/// Reads a whole capture: its interfaces and its frames in the order of the file.
///
/// # Errors
/// [`CatalogError::File`], [`CatalogError::Capture`].
pub fn read(path: &Path) -> Result<(Vec<CaptureInterface>, Vec<CaptureRecord>), CatalogError> {
    let wrong = |error: CaptureError| CatalogError::Capture { path: path.display().to_string(), error };
    let mut reader = CaptureReader::new(BufReader::new(file::open(path)?)).map_err(wrong)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().map_err(wrong)? {
        records.push(record);
    }
    Ok((reader.interfaces().to_vec(), records))
}
