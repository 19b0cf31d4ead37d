//! Filters in messages and back. Texts would not do: rounded filters may have values that the language has no word for.

use crate::protocol::{self, part, test};
use thiserror::Error;
use weftwire_subscribe::MessageFormats;
use weftwire_subscribe::formats::FieldId;
use weftwire_subscribe::rules::{Aggregate, Filter, Function, Subject, Test};
use weftwire_subscribe::values::{Interval, ValueSet};
use weftwire_text::Span;

/// Deepest nesting of a filter; more than the language can write.
const MOST_DEPTH: usize = 256;

/// Why a message is no filter.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum WireError {
    /// Parts are missing.
    #[error("a filter ends too early")]
    Cut,
    /// There are more parts than the filter has.
    #[error("parts follow the end of a filter")]
    Surplus,
    /// More levels than any filter needs.
    #[error("a filter is nested deeper than {MOST_DEPTH} levels")]
    Deep,
    /// A part that this version has no meaning for.
    #[error("a filter has a part of a kind that is not known")]
    UnknownPart,
    /// A subject that this version has no meaning for.
    #[error("a test has a subject of a kind that is not known")]
    UnknownSubject,
    /// Not a field, or not one for filters.
    #[error("the formats have no field `{0}` that filters may use")]
    NoField(String),
    /// Not a counter.
    #[error("the formats have no counter `{0}`")]
    NoCounter(String),
    /// Not a function over a window.
    #[error("there is no function `{0}`")]
    NoFunction(String),
    /// A function over a window, or over values of a field, without one.
    #[error("`{0}` has no field, or no window")]
    NoWindow(String),
    /// Values that the subject cannot have, or in the wrong order.
    #[error("{first} to {last} is no range of {width} bits")]
    NoRange {
        /// Least value.
        first: u128,
        /// Greatest value.
        last: u128,
        /// Bits of the subject.
        width: u16,
    },
}

/// A filter as a message.
pub fn encode(filter: &Filter, formats: &MessageFormats) -> protocol::Filter {
    let mut parts = Vec::new();
    push(filter, formats, &mut parts);
    protocol::Filter { parts }
}

fn push(filter: &Filter, formats: &MessageFormats, parts: &mut Vec<protocol::Part>) {
    let (part, below): (part::Part, &[Filter]) = match filter {
        Filter::Always => (part::Part::All(0), &[]),
        Filter::Never => (part::Part::Any(0), &[]),
        Filter::Test(test) => (part::Part::Test(encode_test(test, formats)), &[]),
        Filter::Not(below) => (part::Part::Negation(protocol::Unit {}), std::slice::from_ref(below.as_ref())),
        Filter::All(below) => (part::Part::All(below.len() as u32), below),
        Filter::Any(below) => (part::Part::Any(below.len() as u32), below),
    };
    parts.push(protocol::Part { part: Some(part) });
    below.iter().for_each(|filter| push(filter, formats, parts));
}

fn encode_test(test: &Test, formats: &MessageFormats) -> protocol::Test {
    let subject = match test.subject {
        Subject::Field(field) => test::Subject::Field(formats.full_name(field)),
        Subject::State(Aggregate::Counter(id)) => {
            test::Subject::Counter(formats.counters()[usize::from(id.0)].name.clone())
        }
        Subject::State(Aggregate::Window { function, field, window_ns }) => test::Subject::Window(protocol::Window {
            function: function.name().to_owned(),
            field: field.map_or(String::new(), |field| formats.full_name(field)),
            window_ns,
        }),
    };
    let interval = |it: &Interval| protocol::Interval {
        first: it.first as u64,
        last: it.last as u64,
        first_high: (it.first >> 64) as u64,
        last_high: (it.last >> 64) as u64,
    };
    protocol::Test { subject: Some(subject), values: test.values.intervals().iter().map(interval).collect() }
}

/// The filter of a message.
///
/// # Errors
/// [`WireError`].
pub fn decode(filter: &protocol::Filter, formats: &MessageFormats) -> Result<Filter, WireError> {
    let mut parts = filter.parts.iter();
    let decoded = pull(&mut parts, formats, 0)?;
    match parts.next() {
        None => Ok(decoded),
        Some(_) => Err(WireError::Surplus),
    }
}

fn pull(
    parts: &mut std::slice::Iter<'_, protocol::Part>,
    formats: &MessageFormats,
    depth: usize,
) -> Result<Filter, WireError> {
    if depth > MOST_DEPTH {
        return Err(WireError::Deep);
    }
    let part = parts.next().ok_or(WireError::Cut)?;
    // However many a message announces, each must be there.
    let mut list =
        |count: u32| (0..count).map(|_| pull(parts, formats, depth + 1)).collect::<Result<Vec<Filter>, WireError>>();
    Ok(match part.part.as_ref().ok_or(WireError::UnknownPart)? {
        part::Part::All(0) => Filter::Always,
        part::Part::Any(0) => Filter::Never,
        part::Part::All(count) => Filter::All(list(*count)?),
        part::Part::Any(count) => Filter::Any(list(*count)?),
        part::Part::Negation(_) => Filter::Not(Box::new(pull(parts, formats, depth + 1)?)),
        part::Part::Test(test) => Filter::Test(decode_test(test, formats)?),
    })
}

fn decode_test(test: &protocol::Test, formats: &MessageFormats) -> Result<Test, WireError> {
    let field_named = |name: &str| -> Result<FieldId, WireError> {
        let found = name.split_once('.').and_then(|(header, field)| {
            formats.header_named(header).and_then(|header| formats.field_named(header, field))
        });
        found.ok_or_else(|| WireError::NoField(name.to_owned()))
    };
    let (subject, width) = match test.subject.as_ref().ok_or(WireError::UnknownSubject)? {
        test::Subject::Field(name) => {
            let field = field_named(name)?;
            (Subject::Field(field), formats.field(field).width)
        }
        test::Subject::Counter(name) => {
            let counter = formats.counter_named(name).ok_or_else(|| WireError::NoCounter(name.clone()))?;
            (Subject::State(Aggregate::Counter(counter)), 64)
        }
        test::Subject::Window(window) => {
            let function =
                Function::of_name(&window.function).ok_or_else(|| WireError::NoFunction(window.function.clone()))?;
            let field = if window.field.is_empty() { None } else { Some(field_named(&window.field)?) };
            if field.is_some() == (function == Function::Count) || window.window_ns == 0 {
                return Err(WireError::NoWindow(window.function.clone()));
            }
            let width = field.filter(|_| function != Function::Sum).map_or(64, |field| formats.field(field).width);
            (Subject::State(Aggregate::Window { function, field, window_ns: window.window_ns }), width)
        }
    };
    let all = Interval::of_width(width);
    let mut values = Vec::with_capacity(test.values.len());
    for it in &test.values {
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let interval = Interval { first: wide(it.first_high, it.first), last: wide(it.last_high, it.last) };
        if interval.first > interval.last || interval.last > all.last {
            return Err(WireError::NoRange { first: interval.first, last: interval.last, width });
        }
        values.push(interval);
    }
    Ok(Test { subject, values: ValueSet::union_of(values), span: Span::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_subscribe::read_rules;
    use weftwire_text::SourceMap;
    use weftwire_workload::ITCH_FORMATS;

    fn formats() -> MessageFormats {
        MessageFormats::read("f", ITCH_FORMATS, &mut SourceMap::default(), &mut Vec::new()).unwrap()
    }

    fn filter(text: &str, formats: &MessageFormats) -> Filter {
        let mut found = Vec::new();
        let rules = read_rules("r", &format!("{text} : drop;"), formats, &mut SourceMap::default(), &mut found);
        assert!(rules.len() == 1 && found.is_empty(), "{text}: {found:?}");
        rules.into_iter().next().unwrap().filter
    }

    /// Without places.
    fn plain(filter: &Filter) -> Filter {
        let list = |parts: &[Filter]| parts.iter().map(plain).collect();
        match filter {
            Filter::Test(test) => Filter::Test(Test { span: Span::default(), ..test.clone() }),
            Filter::Not(part) => Filter::Not(Box::new(plain(part))),
            Filter::All(parts) => Filter::All(list(parts)),
            Filter::Any(parts) => Filter::Any(list(parts)),
            other => other.clone(),
        }
    }

    #[test]
    fn filters_come_back() {
        let formats = formats();
        let deep = format!("{}add_order.price > 1{}", "not (".repeat(30), ")".repeat(30));
        for text in [
            "true",
            "false",
            "add_order.stock == AAPL and add_order.price > 7.0015",
            "not (add_order.stock in {AAPL, BFN} or add_order.price in [3, 5]) and trade.shares != 7",
            "orders > 3 and avg(add_order.price) over 100us > 60 and count() over 1ms < 9",
            "sum(add_order.shares) over 1s > 10000000000",
            &deep,
        ] {
            let filter = filter(text, &formats);
            assert_eq!(decode(&encode(&filter, &formats), &formats), Ok(plain(&filter)), "{text}");
        }
    }

    #[test]
    fn wide_values_come_back() {
        let text = "header h { @subscribe[] bit<128> a; }";
        let formats = MessageFormats::read("f", text, &mut SourceMap::default(), &mut Vec::new()).unwrap();
        let filter = filter("h.a > 0x1_0000_0000_0000_0000_0000".replace('_', "").as_str(), &formats);
        assert_eq!(decode(&encode(&filter, &formats), &formats), Ok(plain(&filter)));
    }

    #[test]
    fn wrong_messages_are_refused() {
        let formats = formats();
        let part = |part| protocol::Part { part: Some(part) };
        let test = |subject, first, last| {
            let values = vec![protocol::Interval { first, last, ..protocol::Interval::default() }];
            part(part::Part::Test(protocol::Test { subject: Some(subject), values }))
        };
        let field = |name: &str| test::Subject::Field(name.to_owned());
        let window = |function: &str, field: &str, window_ns| {
            test::Subject::Window(protocol::Window { function: function.into(), field: field.into(), window_ns })
        };
        let negation = part(part::Part::Negation(protocol::Unit {}));
        for (parts, expected) in [
            (vec![], "ends too early"),
            (vec![part(part::Part::All(4_000_000_000)), part(part::Part::All(0))], "ends too early"),
            (vec![part(part::Part::All(0)), part(part::Part::All(0))], "follow the end"),
            (vec![protocol::Part { part: None }], "not known"),
            (vec![part(part::Part::Test(protocol::Test::default()))], "not known"),
            (vec![negation; 300], "nested deeper"),
            (vec![test(field("price"), 1, 2)], "no field `price`"),
            (vec![test(field("add_order.nothing"), 1, 2)], "no field"),
            (vec![test(field("add_order.price"), 2, 1)], "no range"),
            (vec![test(field("add_order.price"), 2, 1 << 32)], "no range of 32 bits"),
            (vec![test(test::Subject::Counter("c".into()), 1, 2)], "no counter"),
            (vec![test(window("median", "add_order.price", 5), 1, 2)], "no function"),
            (vec![test(window("count", "add_order.price", 5), 1, 2)], "has no field"),
            (vec![test(window("avg", "", 5), 1, 2)], "has no field"),
            (vec![test(window("avg", "add_order.price", 0), 1, 2)], "no window"),
        ] {
            let error = decode(&protocol::Filter { parts }, &formats).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
