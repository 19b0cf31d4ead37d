//! Rules as text that [`crate::read_rules`] reads again.
//!
//! Values that the language has no word for, as texts of bytes that are no letters, are written as numbers; reading tells.

use crate::formats::{Field, Form, MatchKind, MessageFormats};
use crate::rules::{Action, Aggregate, Filter, Function, Rule, Subject, Test};
use crate::show;
use crate::values::{Interval, ValueSet};
use std::fmt::Write as _;

/// Most values that are written one by one for a field that is matched exactly.
const MOST_VALUES: u128 = 4096;

/// A rule in one line, without its end.
pub fn rule(formats: &MessageFormats, rule: &Rule) -> String {
    let mut text = filter(formats, &rule.filter);
    for (index, action) in rule.actions.iter().enumerate() {
        text += if index == 0 { " : " } else { ", " };
        let _ = match action {
            Action::Forward(ports) => {
                let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                write!(text, "fwd({})", ports.join(", "))
            }
            Action::Drop => write!(text, "drop"),
            Action::Call(call) => write!(text, "{call}"),
        };
    }
    text + ";"
}

/// A filter.
pub fn filter(formats: &MessageFormats, it: &Filter) -> String {
    let joined = |parts: &[Filter], by: &str, none: &str| match parts {
        [] => none.to_owned(),
        [one] => filter(formats, one),
        _ => parts.iter().map(|part| inner(formats, part)).collect::<Vec<_>>().join(by),
    };
    match it {
        Filter::Always => "true".to_owned(),
        Filter::Never => "false".to_owned(),
        Filter::Test(it) => test(formats, it),
        Filter::Not(it) => format!("not {}", inner(formats, it)),
        Filter::All(parts) => joined(parts, " and ", "true"),
        Filter::Any(parts) => joined(parts, " or ", "false"),
    }
}

fn inner(formats: &MessageFormats, it: &Filter) -> String {
    match it {
        Filter::All(_) | Filter::Any(_) | Filter::Not(_) => format!("({})", filter(formats, it)),
        _ => filter(formats, it),
    }
}

/// A value; small numbers in decimals however wide their field is.
fn value(field: &Field, number: u128) -> String {
    match field.form {
        Form::Number { decimals: 0 } if number < 1 << 32 => number.to_string(),
        _ => show::value(field, number),
    }
}

/// A number of state, like a field.
fn number(width: u16, form: Form) -> Field {
    Field { header: crate::formats::HeaderId(0), name: String::new(), offset: 0, width, form, kind: None }
}

fn test(formats: &MessageFormats, test: &Test) -> String {
    match test.subject {
        Subject::Field(id) => comparison(&formats.full_name(id), formats.field(id), &test.values),
        Subject::State(Aggregate::Counter(id)) => {
            let name = &formats.counters()[usize::from(id.0)].name;
            comparison(name, &number(64, Form::Number { decimals: 0 }), &test.values)
        }
        Subject::State(Aggregate::Window { function, field, window_ns }) => {
            let name = field.map_or(String::new(), |field| formats.full_name(field));
            let of = field.map(|field| formats.field(field));
            let form = of.map_or(Form::Number { decimals: 0 }, |field| field.form);
            let width = of.filter(|_| function != Function::Sum).map_or(64, |field| field.width);
            comparison(&format!("{}({name}) over {window_ns}ns", function.name()), &number(width, form), &test.values)
        }
    }
}

fn comparison(name: &str, field: &Field, values: &ValueSet) -> String {
    let all = Interval::of_width(field.width);
    let rest = values.complement(all);
    if values.is_empty() {
        return format!("not {}", any(name, field));
    }
    if rest.is_empty() {
        return any(name, field);
    }
    let exact = field.kind == Some(MatchKind::Exact) || matches!(field.form, Form::Text { .. });
    let negate = if exact { size(&rest) < size(values) } else { rest.intervals().len() < values.intervals().len() };
    let (set, not) = if negate { (&rest, "not ") } else { (values, "") };
    if field.kind == Some(MatchKind::Exact) && (negate || set.as_point().is_none()) && size(set) <= MOST_VALUES {
        let each = set.intervals().iter().flat_map(|interval| interval.first..=interval.last);
        let each: Vec<String> = each.map(|it| value(field, it)).collect();
        return format!("{name} {not}in {{{}}}", each.join(", "));
    }
    let parts: Vec<String> = set.intervals().iter().map(|interval| one(name, field, *interval, all)).collect();
    match &parts[..] {
        [part] if not.is_empty() => part.clone(),
        _ => format!("{not}({})", parts.join(" or ")),
    }
}

/// What every message with the field passes.
fn any(name: &str, field: &Field) -> String {
    let least = value(field, 0);
    match (field.kind, field.form) {
        (Some(MatchKind::Exact), _) => format!("({name} == {least} or {name} != {least})"),
        (_, Form::Text { .. }) => format!("{name} prefix \"\""),
        _ => format!("{name} >= {least}"),
    }
}

fn size(set: &ValueSet) -> u128 {
    set.intervals().iter().fold(0, |sum, interval| sum.saturating_add(interval.size()))
}

fn one(name: &str, field: &Field, interval: Interval, all: Interval) -> String {
    let Interval { first, last } = interval;
    if first == last {
        return format!("{name} == {}", value(field, first));
    }
    if let Some(text) = prefix(field, interval) {
        return format!("{name} prefix \"{text}\"");
    }
    match () {
        () if first == 0 => format!("{name} < {}", value(field, last + 1)),
        () if last == all.last => format!("{name} > {}", value(field, first - 1)),
        () => format!("{name} in [{}, {}]", value(field, first), value(field, last)),
    }
}

/// The text that all values of an interval, and no others, start with.
fn prefix(field: &Field, interval: Interval) -> Option<String> {
    let Form::Text { .. } = field.form else { return None };
    let bytes = &interval.first.to_be_bytes()[16 - usize::from(field.width / 8)..];
    (1..bytes.len()).find_map(|length| {
        let text = &bytes[..length];
        let same = Interval::of_prefix(interval.first, length as u16 * 8, field.width) == interval;
        let plain = text.iter().all(|byte| (byte.is_ascii_graphic() || *byte == b' ') && !b"\"\\".contains(byte));
        (same && plain).then(|| String::from_utf8_lossy(text).into_owned())
    })
}
