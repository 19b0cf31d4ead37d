//! The document as a tree whose every part knows where it stands, and changes of its values.

use super::problems::{Problems, near};
use toml::de::{DeTable, DeValue};
use weftwire_text::Span;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Value {
    /// Where.
    pub span: Span,
    /// What.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A string.
    Text(String),
    /// An integer; 128 bits, so that 64 bits of either sign fit.
    Integer(i128),
    /// A float.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// A date or time, which no key takes.
    Date,
    /// An array.
    Array(Vec<Value>),
    /// A table, in the order of the file.
    Table(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub span: Span,
    /// Its value.
    pub value: Value,
}

impl Value {
    /// Parses a whole document, the text `file` of the sources. `None` if its syntax is wrong.
    pub fn document(text: &str, file: u16, problems: &mut Problems) -> Option<Value> {
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            problems.error(place(error.span().unwrap_or(0..0), file, 0), error.message().to_string());
        }
        let kind = Kind::Table(entries(table.get_ref(), file, 0, problems));
        errors.is_empty().then_some(Value { span: place(0..0, file, 0), kind })
    }

    /// The value that stands at byte `offset` of the text `file` and is `text`.
    pub fn single(text: &str, file: u16, offset: usize, problems: &mut Problems) -> Option<Value> {
        match DeValue::parse(text) {
            Ok(value) => Some(Value {
                span: place(value.span(), file, offset),
                kind: kind(value.get_ref(), place(value.span(), file, offset), offset, problems),
            }),
            Err(error) => {
                problems.error(place(0..text.len(), file, offset), error.message().to_string());
                None
            }
        }
    }

    /// What it is, for errors.
    pub fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Text(_) => "a string",
            Kind::Integer(_) => "an integer",
            Kind::Float(_) => "a float",
            Kind::Boolean(_) => "a boolean",
            Kind::Date => "a date or time",
            Kind::Array(_) => "an array",
            Kind::Table(_) => "a table",
        }
    }

    /// The value of a key, if this is a table with it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match &self.kind {
            Kind::Table(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The same without places; `None` for what [`toml::Value`] can't hold.
    pub fn to_toml(&self) -> Option<toml::Value> {
        Some(match &self.kind {
            Kind::Text(text) => toml::Value::String(text.clone()),
            Kind::Integer(integer) => toml::Value::Integer(i64::try_from(*integer).ok()?),
            Kind::Float(float) => toml::Value::Float(*float),
            Kind::Boolean(boolean) => toml::Value::Boolean(*boolean),
            Kind::Date => return None,
            Kind::Array(values) => toml::Value::Array(values.iter().map(Value::to_toml).collect::<Option<_>>()?),
            Kind::Table(entries) => {
                let pairs = entries.iter().map(|entry| Some((entry.key.clone(), entry.value.to_toml()?)));
                toml::Value::Table(pairs.collect::<Option<_>>()?)
            }
        })
    }

    /// Puts a value at a dotted path: tables by key, arrays of tables by their `name` (of links, `A-B` too) or index.
    ///
    /// # Errors
    /// What is wrong with the path, and what would be right.
    pub fn put(&mut self, path: &str, value: Value) -> Result<(), (String, Option<String>)> {
        let mut at = self;
        let mut parts = path.split('.').peekable();
        while let Some(part) = parts.next() {
            if part.is_empty() {
                return Err((format!("`{path}` is no path"), Some("write keys with points between".into())));
            }
            let found = at.type_name();
            match &mut at.kind {
                Kind::Table(entries) => {
                    let index = entries.iter().position(|entry| entry.key == part).unwrap_or_else(|| {
                        let kind = Kind::Table(Vec::new());
                        let made = Entry { key: part.into(), span: value.span, value: Value { kind, ..value.clone() } };
                        entries.push(made);
                        entries.len() - 1
                    });
                    at = &mut entries[index].value;
                }
                Kind::Array(values) => {
                    let names: Vec<String> = values.iter().map(element_name).collect();
                    let by_index = || part.parse::<usize>().ok().filter(|index| *index < names.len());
                    let Some(index) = names.iter().position(|name| name == part).or_else(by_index) else {
                        let near = near(part, names.iter().map(String::as_str));
                        let help = near.map(|near| format!("did you mean `{near}`?"));
                        return Err((format!("nothing is named `{part}` in the path `{path}`"), help));
                    };
                    at = &mut values[index];
                }
                _ => {
                    let message = format!("the path `{path}` goes on with `{part}`, but before it is {found}");
                    return Err((message, Some("a path leads through tables and arrays of tables".into())));
                }
            }
            if parts.peek().is_none() {
                *at = value;
                return Ok(());
            }
        }
        Err(("the path is empty".into(), None))
    }
}

/// How a path calls an element of an array.
fn element_name(value: &Value) -> String {
    let name = |text: &str| text.to_owned();
    let between = || match &value.get("between")?.kind {
        Kind::Array(ends) => {
            let ends: Option<Vec<&str>> = ends.iter().map(|end| end.text()?.split(':').next()).collect();
            Some(ends?.join("-"))
        }
        _ => None,
    };
    value.get("name").and_then(Value::text).map(name).or_else(between).unwrap_or_default()
}

fn place(range: std::ops::Range<usize>, file: u16, offset: usize) -> Span {
    let at = |byte: usize| u32::try_from(byte + offset).unwrap_or(u32::MAX);
    Span { file, start: at(range.start), end: at(range.end) }
}

fn entries(table: &DeTable, file: u16, offset: usize, problems: &mut Problems) -> Vec<Entry> {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| {
            let (key_span, value_span) = (place(key.span(), file, offset), place(value.span(), file, offset));
            let kind = kind(value.get_ref(), value_span, offset, problems);
            Entry { key: key.get_ref().to_string(), span: key_span, value: Value { span: value_span, kind } }
        })
        .collect();
    entries.sort_by_key(|entry| entry.span);
    entries
}

fn kind(value: &DeValue, span: Span, offset: usize, problems: &mut Problems) -> Kind {
    match value {
        DeValue::String(text) => Kind::Text(text.to_string()),
        DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => Kind::Integer(integer),
            Err(_) => {
                problems.error(span, format!("the number {integer} is too large"));
                Kind::Integer(0)
            }
        },
        DeValue::Float(float) => Kind::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(boolean) => Kind::Boolean(*boolean),
        DeValue::Datetime(_) => Kind::Date,
        DeValue::Array(values) => Kind::Array(
            values
                .iter()
                .map(|value| {
                    let span = place(value.span(), span.file, offset);
                    Value { span, kind: kind(value.get_ref(), span, offset, problems) }
                })
                .collect(),
        ),
        DeValue::Table(table) => Kind::Table(entries(table, span.file, offset, problems)),
    }
}
