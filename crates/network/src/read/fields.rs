//! Reading tables into types: each key once, with its place, and an error for every key that nothing asked for.

use super::problems::Problems;
use super::tree::{Entry, Kind, Value};
use std::fmt::Display;
use weftwire_text::{Diagnostic, Span};

/// Something that a value can be.
pub trait FromValue: Sized {
    /// How such a value is written, for errors.
    const EXAMPLE: &'static str;

    /// From a value; `None` with an error among the problems.
    fn from_value(value: &Value, problems: &mut Problems) -> Option<Self>;

    /// When the key is absent; `None`: it must be there.
    fn absent() -> Option<Self> {
        None
    }
}

/// A type whose fields are the keys of a table.
pub trait Table: Sized {
    /// Takes its fields; `None` with errors among the problems.
    fn fields(reader: &mut TableReader) -> Option<Self>;
}

/// Where a table and its keys stand.
#[derive(Clone, Debug)]
pub struct Places {
    /// The table, or the key that names it.
    pub span: Span,
    keys: Vec<(String, Span, Span)>,
}

impl Places {
    /// Where the value of a key stands; of an absent key, the table.
    pub fn value(&self, key: &str) -> Span {
        self.keys.iter().find(|(name, ..)| name == key).map_or(self.span, |(_, _, value)| *value)
    }

    /// Where a key stands, if it is there.
    pub fn key(&self, key: &str) -> Option<Span> {
        self.keys.iter().find(|(name, ..)| name == key).map(|(_, key, _)| *key)
    }

    /// Keys of `all` that are there but not among `allowed`: errors. `what` is `a router`, say.
    pub fn only(&self, what: &str, all: &[&str], allowed: &[&str], problems: &mut Problems) {
        for (name, key, _) in &self.keys {
            if all.contains(&name.as_str()) && !allowed.contains(&name.as_str()) {
                let message = format!("`{name}` has no meaning for {what}");
                problems.error(*key, message);
            }
        }
    }
}

/// A table that is being read.
pub struct TableReader<'a> {
    entries: &'a [Entry],
    span: Span,
    asked: Vec<&'static str>,
    problems: &'a mut Problems,
}

impl TableReader<'_> {
    /// The value of a key.
    pub fn field<T: FromValue>(&mut self, key: &'static str) -> Option<T> {
        let key = key.trim_start_matches("r#");
        self.asked.push(key);
        match self.entries.iter().find(|entry| entry.key == key) {
            Some(entry) => T::from_value(&entry.value, self.problems),
            None => T::absent().or_else(|| {
                let help = format!("add `{key} = {}`", T::EXAMPLE);
                self.problems.error_help(self.span, format!("`{key}` is missing"), help);
                None
            }),
        }
    }

    /// Where everything stands.
    pub fn places(&self) -> Places {
        let keys = self.entries.iter().map(|entry| (entry.key.clone(), entry.span, entry.value.span));
        Places { span: self.span, keys: keys.collect() }
    }
}

/// Reads a table; `span` is where it is named.
pub fn read_table<T: Table>(value: &Value, span: Span, problems: &mut Problems) -> Option<T> {
    let Kind::Table(entries) = &value.kind else {
        wrong_type(value, "{ … }", problems);
        return None;
    };
    let mut reader = TableReader { entries, span, asked: Vec::new(), problems };
    let read = T::fields(&mut reader);
    let asked = reader.asked;
    for entry in entries.iter().filter(|entry| !asked.contains(&entry.key.as_str())) {
        let error = Diagnostic::error(entry.span, format!("there is no key `{}` here", entry.key));
        let otherwise = format!("there are: {}", asked.join(", "));
        problems.misnamed(error, &entry.key, asked.iter().copied(), Some(otherwise));
    }
    read
}

/// The error of a value of a wrong type.
pub fn wrong_type(value: &Value, example: &str, problems: &mut Problems) {
    problems.error_help(value.span, format!("{} does not fit here", value.type_name()), format!("write {example}"));
}

/// Reads a string by a parser whose errors say what would be right.
pub fn parsed<T, E: Display>(
    value: &Value,
    example: &str,
    parse: impl Fn(&str) -> Result<T, E>,
    problems: &mut Problems,
) -> Option<T> {
    let Some(text) = value.text() else {
        wrong_type(value, example, problems);
        return None;
    };
    match parse(text) {
        Ok(read) => Some(read),
        Err(error) => {
            problems.error(value.span, error.to_string());
            None
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn from_value(value: &Value, problems: &mut Problems) -> Option<Option<T>> {
        Some(T::from_value(value, problems))
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    const EXAMPLE: &'static str = "[ … ]";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<Vec<T>> {
        match &value.kind {
            Kind::Array(values) => Some(values.iter().filter_map(|value| T::from_value(value, problems)).collect()),
            _ => {
                wrong_type(value, Self::EXAMPLE, problems);
                None
            }
        }
    }
}

impl FromValue for String {
    const EXAMPLE: &'static str = "\"…\"";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<String> {
        parsed(value, Self::EXAMPLE, |text| Ok::<_, String>(text.to_owned()), problems)
    }
}

impl FromValue for bool {
    const EXAMPLE: &'static str = "true";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<bool> {
        match value.kind {
            Kind::Boolean(boolean) => Some(boolean),
            _ => {
                wrong_type(value, "true or false", problems);
                None
            }
        }
    }
}

/// Reads an integer within the type's range.
fn integer<T: TryFrom<i128>>(value: &Value, least: i128, most: i128, problems: &mut Problems) -> Option<T> {
    match value.kind {
        Kind::Integer(integer) => {
            let read = T::try_from(integer).ok();
            if read.is_none() {
                problems.error(value.span, format!("{integer} is not between {least} and {most}"));
            }
            read
        }
        _ => {
            wrong_type(value, "an integer without quotes", problems);
            None
        }
    }
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl FromValue for $type {
            const EXAMPLE: &'static str = "1";

            fn from_value(value: &Value, problems: &mut Problems) -> Option<$type> {
                integer(value, <$type>::MIN.into(), <$type>::MAX.into(), problems)
            }
        }
    )*};
}

integers!(u16 u32 u64 i64);

impl FromValue for f64 {
    const EXAMPLE: &'static str = "1.5";

    fn from_value(value: &Value, problems: &mut Problems) -> Option<f64> {
        match value.kind {
            Kind::Float(float) if float.is_finite() => Some(float),
            Kind::Integer(integer) => Some(integer as f64),
            Kind::Float(_) => {
                problems.error(value.span, "the number must be finite");
                None
            }
            _ => {
                wrong_type(value, "a number without quotes", problems);
                None
            }
        }
    }
}

/// Declares a type that is a table: its JSON Schema and how it is read, from the same fields. `with` names parts whose
/// keys stand in the same table.
macro_rules! table {
    (
        $(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }
        $(with { $($(#[$part_meta:meta])* $part:ident: $part_type:ty,)* })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
            $($($(#[$part_meta])* #[schemars(flatten)] pub $part: $part_type,)*)?
            /// Where it stands.
            #[schemars(skip)]
            #[allow(dead_code, reason = "of some tables nobody asks")]
            pub(crate) places: $crate::read::fields::Places,
        }

        impl $crate::read::fields::Table for $name {
            fn fields(reader: &mut $crate::read::fields::TableReader) -> Option<$name> {
                $(let $field = reader.field(stringify!($field));)*
                $($(let $part = <$part_type>::fields(reader);)*)?
                Some($name { $($field: $field?,)* $($($part: $part?,)*)? places: reader.places() })
            }
        }

        impl $crate::read::fields::FromValue for $name {
            const EXAMPLE: &'static str = "{ … }";

            fn from_value(
                value: &$crate::read::tree::Value,
                problems: &mut $crate::read::problems::Problems,
            ) -> Option<$name> {
                $crate::read::fields::read_table(value, value.span, problems)
            }
        }
    };
}

/// Declares a type that is one of some words.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$word_meta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$word_meta])* #[schemars(rename = $word)] $variant,)*
        }

        impl $name {
            /// As it is written.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl $crate::read::fields::FromValue for $name {
            const EXAMPLE: &'static str = {
                let all = concat!($("\"", $word, "\" | "),*);
                all.split_at(all.len() - 3).0
            };

            fn from_value(
                value: &$crate::read::tree::Value,
                problems: &mut $crate::read::problems::Problems,
            ) -> Option<$name> {
                const WORDS: &[&str] = &[$($word),*];
                let parse = |text: &str| match text {
                    $($word => Ok($name::$variant),)*
                    _ => Err(match $crate::read::problems::near(text, WORDS.iter().copied()) {
                        Some(near) => format!("`{text}` is not known here; did you mean `{near}`?"),
                        None => format!("`{text}` is not known here; write one of {}", WORDS.join(", ")),
                    }),
                };
                $crate::read::fields::parsed(value, Self::EXAMPLE, parse, problems)
            }
        }
    };
}

pub(crate) use {table, words};
