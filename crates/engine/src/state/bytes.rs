//! Words in and out, in the order of a layout's fields.

use super::StateError;
use weftwire_image::layout::{LayoutField, WORD};

/// Writes fields in their order.
pub struct Writer<'a> {
    pub bytes: Vec<u8>,
    fields: std::slice::Iter<'a, LayoutField>,
}

impl<'a> Writer<'a> {
    /// Behind `bytes`.
    pub fn new(bytes: Vec<u8>) -> Writer<'a> {
        Writer { bytes, fields: [].iter() }
    }

    /// From now on these fields.
    pub fn fields(&mut self, fields: &'a [LayoutField]) {
        debug_assert_eq!(self.fields.next(), None, "every field is written");
        self.fields = fields.iter();
    }

    /// The next field, of one word.
    pub fn word(&mut self, name: &str, value: u64) {
        self.string(name, &value.to_le_bytes());
    }

    /// The next field, a string of bytes.
    pub fn string(&mut self, name: &str, value: &[u8]) {
        let field = self.fields.next();
        debug_assert!(
            field.is_some_and(|field| field.name == name && field.words == value.len().div_ceil(WORD)),
            "{name} stands where {field:?} should"
        );
        self.filled(value);
    }

    /// The next fields, of one word each, whose names begin so.
    pub fn list(&mut self, names: &str, values: impl IntoIterator<Item = u64>) {
        for value in values {
            let field = self.fields.next();
            debug_assert!(
                field.is_some_and(|field| field.name.starts_with(names)),
                "{names} stand where {field:?} should"
            );
            self.filled(&value.to_le_bytes());
        }
    }

    /// Bytes, filled up to whole words.
    pub fn filled(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        let rest = value.len().next_multiple_of(WORD) - value.len();
        self.bytes.extend_from_slice(&[0; WORD][..rest]);
    }
}

/// Reads fields in their order.
pub struct Reader<'a, 'l> {
    rest: &'a [u8],
    fields: std::slice::Iter<'l, LayoutField>,
    /// In which section, for messages.
    section: String,
}

impl<'a, 'l> Reader<'a, 'l> {
    /// From these bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a, 'l> {
        Reader { rest: bytes, fields: [].iter(), section: String::new() }
    }

    /// From now on these fields, of this section.
    pub fn fields(&mut self, section: impl Into<String>, fields: &'l [LayoutField]) {
        debug_assert_eq!(self.fields.next(), None, "every field is read");
        self.fields = fields.iter();
        self.section = section.into();
    }

    /// A field's name for messages.
    pub fn named(&self, name: &str) -> String {
        if self.section.is_empty() { name.to_owned() } else { format!("{}: {name}", self.section) }
    }

    /// The next field, of one word.
    pub fn word(&mut self, name: &str) -> Result<u64, StateError> {
        let bytes = self.string::<WORD>(name)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The next field, of one word, which is below a bound.
    pub fn below(&mut self, name: &str, bound: u64) -> Result<u64, StateError> {
        match self.word(name)? {
            value if value < bound => Ok(value),
            value => Err(StateError::value(self.named(name), value, format!("less than {bound}"))),
        }
    }

    /// The next field, a string of `N` bytes.
    pub fn string<const N: usize>(&mut self, name: &str) -> Result<[u8; N], StateError> {
        let mut string = [0; N];
        string.copy_from_slice(self.part(name, N)?);
        Ok(string)
    }

    /// The next field, a string of this many bytes.
    pub fn part(&mut self, name: &str, length: usize) -> Result<&'a [u8], StateError> {
        let field = self.fields.next();
        debug_assert!(
            field.is_some_and(|field| field.name == name && field.words == length.div_ceil(WORD)),
            "{name} stands where {field:?} should"
        );
        self.filled(name, length)
    }

    /// The next field, of one word, whose name begins so.
    pub fn next_of(&mut self, names: &str) -> Result<(&'l str, u64), StateError> {
        let name = self.fields.as_slice().first().map_or("", |field| field.name.as_str());
        debug_assert!(name.starts_with(names), "{name} stands where {names} should");
        Ok((name, self.word(name)?))
    }

    /// The next fields, of one word each, as many as there are with names that begin so.
    pub fn list(&mut self, names: &str) -> Result<Vec<(&'l str, u64)>, StateError> {
        let mut list = Vec::new();
        while let Some(field) = self.fields.as_slice().first().filter(|field| field.name.starts_with(names)) {
            list.push((field.name.as_str(), self.word(&field.name)?));
        }
        Ok(list)
    }

    /// Bytes, filled up to whole words.
    pub fn filled(&mut self, name: &str, length: usize) -> Result<&'a [u8], StateError> {
        let whole = length.next_multiple_of(WORD);
        let Some((taken, rest)) = self.rest.split_at_checked(whole) else {
            return Err(StateError::Truncated { field: self.named(name), missing: whole - self.rest.len() });
        };
        self.rest = rest;
        let (value, filling) = taken.split_at(length);
        if filling.iter().any(|byte| *byte != 0) {
            return Err(StateError::value(self.named(name), "not filled up with zeros", "so"));
        }
        Ok(value)
    }

    /// The next field is not there, as an older version has written these bytes.
    pub fn lacks(&mut self, name: &str) {
        let field = self.fields.next();
        debug_assert!(field.is_some_and(|field| field.name == name), "{name} stands where {field:?} should");
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}
