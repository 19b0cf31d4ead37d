//! Messages as filters see them: which headers, and the values of fields.

use crate::formats::{FieldId, HeaderId, MessageFormats};

/// A message: the values of the fields of the headers it has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Message {
    present: Vec<bool>,
    values: Vec<u128>,
}

impl Message {
    /// A message without headers.
    pub fn new(formats: &MessageFormats) -> Message {
        Message { present: vec![false; formats.headers().len()], values: vec![0; formats.fields().len()] }
    }

    /// Forgets all headers.
    pub fn clear(&mut self) {
        self.present.fill(false);
        self.values.fill(0);
    }

    /// Gives the message a header; fields that are not set are 0.
    pub fn add_header(&mut self, header: HeaderId) {
        self.present[usize::from(header.0)] = true;
    }

    /// Takes a header away; what its fields hold does not matter then.
    pub fn remove_header(&mut self, header: HeaderId) {
        self.present[usize::from(header.0)] = false;
    }

    /// Sets a field; its header is to be added apart.
    pub fn set(&mut self, field: FieldId, value: u128) {
        self.values[usize::from(field.0)] = value;
    }

    /// Whether it has a header.
    pub fn has(&self, header: HeaderId) -> bool {
        self.present[usize::from(header.0)]
    }

    /// A field's value, whether the message has its header or not.
    pub fn value(&self, field: FieldId) -> u128 {
        self.values[usize::from(field.0)]
    }

    /// A field's value if the message has its header.
    pub fn get(&self, field: FieldId, formats: &MessageFormats) -> Option<u128> {
        self.has(formats.field(field).header).then(|| self.value(field))
    }
}
