//! Values, filters and diagrams for people.

use crate::compiler::{Actions, Compiler, Variable};
use crate::formats::{Field, FieldId, Form, MessageFormats};
use crate::message::Message;
use crate::rules::{Filter, Rule, Subject};
use crate::values::Interval;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use weftwire_core::MacAddress;
use weftwire_text::lexer::{Kind, Lexer};
use weftwire_text::{SourceMap, Span};

/// A field's value as rules write it.
pub fn value(field: &Field, value: u128) -> String {
    match field.form {
        Form::Number { decimals: 0 } if field.width > 48 => format!("{value:#x}"),
        Form::Number { decimals: 0 } => value.to_string(),
        Form::Number { decimals } => {
            let scale = 10u128.pow(decimals.into());
            format!("{}.{:0width$}", value / scale, value % scale, width = usize::from(decimals))
        }
        Form::Text { padding } => {
            let bytes = &value.to_be_bytes()[16 - usize::from(field.width / 8)..];
            let end = bytes.iter().rposition(|byte| *byte != padding).map_or(0, |last| last + 1);
            // Quotes cannot stand in a text.
            if bytes[..end].iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'"') {
                format!("\"{}\"", String::from_utf8_lossy(&bytes[..end]))
            } else {
                format!("{value:#x}")
            }
        }
    }
}

/// The fields that rules compare with addresses, by how those are written: shown the same way.
#[derive(Clone, Debug, Default)]
pub struct Addresses(BTreeMap<FieldId, Address>);

#[derive(Clone, Copy, Debug)]
enum Address {
    Mac,
    Ipv4,
    Ipv6,
}

impl Addresses {
    /// Finds them in the text of rules.
    pub fn of(rules: &[Rule], sources: &SourceMap) -> Addresses {
        let mut found = Addresses::default();
        rules.iter().for_each(|rule| found.collect(&rule.filter, sources));
        found
    }

    fn collect(&mut self, filter: &Filter, sources: &SourceMap) {
        match filter {
            Filter::Always | Filter::Never => {}
            Filter::Not(inner) => self.collect(inner, sources),
            Filter::All(parts) | Filter::Any(parts) => parts.iter().for_each(|part| self.collect(part, sources)),
            Filter::Test(test) => {
                let mut diagnostics = Vec::new();
                let mut lexer = Lexer::for_rules(0, sources.text(test.span), &mut diagnostics);
                let kind = std::iter::from_fn(|| Some(lexer.next().kind).filter(|kind| *kind != Kind::End));
                let address = kind.into_iter().find_map(|kind| match kind {
                    Kind::Mac(_) => Some(Address::Mac),
                    Kind::Ipv4(_) => Some(Address::Ipv4),
                    Kind::Ipv6(_) => Some(Address::Ipv6),
                    _ => None,
                });
                if let (Subject::Field(field), Some(address)) = (test.subject, address) {
                    self.0.insert(field, address);
                }
            }
        }
    }

    /// A field's value: as an address, or else as [`value`] shows it.
    fn value(&self, id: FieldId, formats: &MessageFormats, number: u128) -> String {
        match self.0.get(&id) {
            Some(Address::Mac) => MacAddress::from_bits(number as u64).to_string(),
            Some(Address::Ipv4) => Ipv4Addr::from_bits(number as u32).to_string(),
            Some(Address::Ipv6) => Ipv6Addr::from_bits(number).to_string(),
            None => value(formats.field(id), number),
        }
    }
}

/// An interval of a variable's values as a condition.
pub fn interval(compiler: &Compiler, variable: Variable, values: Interval) -> String {
    let all = Interval::of_width(compiler.width(variable));
    let show = |number: u128| match variable {
        Variable::Field(field) => value(compiler.formats().field(field), number),
        _ => number.to_string(),
    };
    if matches!(variable, Variable::Present(_)) {
        return if values.first == 1 { "yes" } else { "no" }.to_owned();
    }
    match values {
        Interval { first, last } if first == last => format!("= {}", show(first)),
        Interval { first: 0, last } if last < all.last => format!("≤ {}", show(last)),
        Interval { first, last } if last == all.last && first > 0 => format!("≥ {}", show(first)),
        Interval { first, last } => format!("{} to {}", show(first), show(last)),
    }
}

/// Actions in a few words.
pub fn actions(compiler: &Compiler, actions: &Actions) -> String {
    let ports: Vec<String> = actions.ports.iter().map(ToString::to_string).collect();
    let mut words = Vec::new();
    if !ports.is_empty() {
        words.push(format!("fwd({})", ports.join(", ")));
    }
    words.extend(actions.calls.iter().map(|call| compiler.call(*call).to_string()));
    words.extend(actions.updates.iter().map(|state| format!("update #{}", state.0)));
    if words.is_empty() { "drop".to_owned() } else { words.join(", ") }
}

/// One test of a filter, and whether a message passes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Where the test is written.
    pub span: Span,
    /// How deeply it is nested in other parts of the filter.
    pub depth: usize,
    /// Whether it holds, negations around it counted in. `None`: that depends on earlier messages.
    pub holds: Option<bool>,
    /// Why, in words.
    pub why: String,
}

/// What each test of a rule says about a message.
pub fn verdicts(formats: &MessageFormats, addresses: &Addresses, rule: &Rule, message: &Message) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    judge((formats, addresses), &rule.filter, false, 0, message, &mut verdicts);
    verdicts
}

fn judge(
    known: (&MessageFormats, &Addresses),
    filter: &Filter,
    negated: bool,
    depth: usize,
    message: &Message,
    verdicts: &mut Vec<Verdict>,
) {
    match filter {
        Filter::Always | Filter::Never => {}
        Filter::Not(inner) => judge(known, inner, !negated, depth, message, verdicts),
        Filter::All(parts) | Filter::Any(parts) => {
            for part in parts {
                judge(known, part, negated, depth + 1, message, verdicts);
            }
        }
        Filter::Test(test) => {
            let (formats, addresses) = known;
            let (holds, why) = match test.subject {
                Subject::State(_) => (None, "it depends on earlier messages".to_owned()),
                Subject::Field(id) => {
                    let field = formats.field(id);
                    match message.get(id, formats) {
                        None => (Some(false), format!("the message has no {}", formats.header(field.header).name)),
                        Some(found) => {
                            let shown = addresses.value(id, formats, found);
                            (Some(test.values.contains(found) != negated), format!("it is {shown}"))
                        }
                    }
                }
            };
            verdicts.push(Verdict { span: test.span, depth, holds, why });
        }
    }
}

/// The fields of a message that rules may use, in words.
pub fn message(formats: &MessageFormats, addresses: &Addresses, message: &Message) -> String {
    let mut words = Vec::new();
    for (index, header) in formats.headers().iter().enumerate() {
        let id = crate::formats::HeaderId(index as u16);
        if !message.has(id) {
            continue;
        }
        let fields = formats.fields().iter().enumerate().filter(|(_, field)| field.header == id);
        let fields: Vec<String> = fields
            .map(|(index, field)| {
                let id = FieldId(index as u16);
                format!("{}={}", field.name, addresses.value(id, formats, message.value(id)))
            })
            .collect();
        words.push(format!("{}({})", header.name, fields.join(" ")));
    }
    words.join(" ")
}

/// Which rules match a message and why; with `all`, also why the others do not.
pub fn explanation(
    formats: &MessageFormats,
    rules: &[Rule],
    matched: &[usize],
    message: &Message,
    sources: &SourceMap,
    all: bool,
) -> String {
    let addresses = Addresses::of(rules, sources);
    let mut text = String::new();
    for (index, rule) in rules.iter().enumerate() {
        let matches = matched.contains(&index);
        if !matches && !all {
            continue;
        }
        let (line, _) = sources.line_column(rule.span);
        let verb = if matches { "matches" } else { "does not match" };
        let source = sources.text(rule.span).split_whitespace().collect::<Vec<_>>().join(" ");
        text += &format!("line {line} {verb}: {source}\n");
        for verdict in verdicts(formats, &addresses, rule, message) {
            let mark = match verdict.holds {
                Some(true) => "holds",
                Some(false) => "does not hold",
                None => "state",
            };
            let test = sources.text(verdict.span);
            text += &format!("{}{test}: {mark}, {}\n", "  ".repeat(verdict.depth + 1), verdict.why);
        }
    }
    text
}
