//! Rules as text that [`crate::read_rules`] reads again: the same rules, but for places and needless parentheses.

use crate::formats::{Field, Form, MatchKind, MessageFormats};
use crate::rules::{Action, Aggregate, Filter, Function, Rule, Subject, Test};
use crate::show;
use crate::values::{Interval, ValueSet};
use std::fmt::Write as _;

/// Most values that are written one by one for a field that is matched exactly. Rules that were read have no more than
/// were written down.
const MOST_VALUES: u128 = 1 << 20;

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
    match it {
        Filter::Always => "true".to_owned(),
        Filter::Never => "false".to_owned(),
        Filter::Test(it) => test(formats, it),
        Filter::Not(part) => match **part {
            Filter::All(_) | Filter::Any(_) => format!("not ({})", filter(formats, part)),
            _ => format!("not {}", filter(formats, part)),
        },
        Filter::All(parts) => {
            joined(formats, parts, " and ", "true", |part| matches!(part, Filter::All(_) | Filter::Any(_)))
        }
        // Conjunctions need no parentheses here, which keeps deep filters within what can be read.
        Filter::Any(parts) => joined(formats, parts, " or ", "false", |part| matches!(part, Filter::Any(_))),
    }
}

fn joined(
    formats: &MessageFormats,
    parts: &[Filter],
    by: &str,
    none: &str,
    parenthesised: impl Fn(&Filter) -> bool,
) -> String {
    match parts {
        [] => none.to_owned(),
        [one] => filter(formats, one),
        _ => {
            let written = |part| {
                let text = filter(formats, part);
                if parenthesised(part) { format!("({text})") } else { text }
            };
            parts.iter().map(written).collect::<Vec<_>>().join(by)
        }
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
    let exact = field.kind == Some(MatchKind::Exact);
    if values.is_empty() {
        return if exact { format!("not {}", any(name, field)) } else { format!("{name} < {}", value(field, 0)) };
    }
    if rest.is_empty() {
        return any(name, field);
    }
    // What is matched exactly, and texts, are rather told by the fewer values, all else by the fewer ranges.
    let by_values = exact || matches!(field.form, Form::Text { .. });
    let negate = if by_values { size(&rest) < size(values) } else { rest.intervals().len() < values.intervals().len() };
    let (set, not) = if negate { (&rest, "not ") } else { (values, "") };
    match set.intervals() {
        [interval] if !negate && (!exact || interval.is_point()) => one(name, field, *interval, all),
        intervals => {
            let parts: Vec<String> = if exact && size(set) <= MOST_VALUES {
                intervals.iter().flat_map(|it| it.first..=it.last).map(|it| value(field, it)).collect()
            } else {
                intervals.iter().map(|it| member(field, *it)).collect()
            };
            format!("{name} {not}in {{{}}}", parts.join(", "))
        }
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

fn member(field: &Field, Interval { first, last }: Interval) -> String {
    let value = |number| value(field, number);
    if first == last { value(first) } else { format!("[{}, {}]", value(first), value(last)) }
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
        () => format!("{name} in {}", member(field, interval)),
    }
}

/// The text that all values of an interval, and no others, start with.
fn prefix(field: &Field, interval: Interval) -> Option<String> {
    let Form::Text { .. } = field.form else { return None };
    let bytes = &interval.first.to_be_bytes()[16 - usize::from(field.width / 8)..];
    (1..bytes.len()).find_map(|length| {
        let text = &bytes[..length];
        let same = Interval::of_prefix(interval.first, length as u16 * 8, field.width) == interval;
        let plain = text.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'"');
        (same && plain).then(|| String::from_utf8_lossy(text).into_owned())
    })
}
