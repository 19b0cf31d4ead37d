//! What the fuzz target `capture_read` does with its input.

use weftwire_capture::{CaptureReader, CaptureWriter};

/// A capture file: what can be read can be written, and reads the same again.
pub fn capture_read(data: &[u8]) {
    let Ok(mut reader) = CaptureReader::new(data) else { return };
    let mut records = Vec::new();
    while let Ok(Some(record)) = reader.next_record() {
        records.push(record);
    }
    let interfaces = reader.interfaces().to_vec();
    let mut writer = CaptureWriter::pcapng(Vec::new(), &interfaces).expect("writing to memory");
    records.retain(|record| {
        let comment = record.comment.as_deref().filter(|text| text.len() <= 65_000);
        let fits = record.comment.as_deref() == comment && record.original_length as usize == record.bytes.len();
        fits && writer.write(record.time, record.interface, &record.bytes, comment).is_ok()
    });
    let file = writer.into_inner();
    let mut reader = CaptureReader::new(&file[..]).expect("this was written here");
    for record in records {
        assert_eq!(reader.next_record().expect("this was written here"), Some(record));
    }
    assert!(reader.next_record().expect("this was written here").is_none());
}
