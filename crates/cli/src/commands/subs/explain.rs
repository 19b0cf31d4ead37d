//! `weft subs explain`: which rules match a message, and why.

use crate::console::{self, say};
use crate::load::catalog;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::PathBuf;
use weftwire_catalog::{Rules, capture};
use weftwire_subscribe::evaluate::Evaluator;
use weftwire_subscribe::formats::HeaderId;
use weftwire_subscribe::rules::{Filter, Subject, Test};
use weftwire_subscribe::{Message, packet, read_rules, show};
use weftwire_text::{Severity, SourceMap};

/// Tell which rules match a message, and why: one given by its fields, or those of a captured packet.
#[derive(Args)]
pub struct Arguments {
    /// The rules
    rules: PathBuf,
    /// The message formats: .p4 files with annotations
    #[arg(long = "format", value_name = "FILE", required = true)]
    formats: Vec<PathBuf>,
    /// The message: FIELD=VALUE, as in rules; its headers are those of the fields
    #[arg(value_name = "FIELD=VALUE", required_unless_present = "capture", conflicts_with = "capture")]
    fields: Vec<String>,
    /// Take the messages of a packet of this capture
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Number of the packet within the capture, from 1
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    packet: u32,
    /// Also tell why the other rules do not match
    #[arg(long)]
    all: bool,
}

/// Runs the command.
pub fn execute(arguments: &Arguments) -> Result<()> {
    let loaded = catalog().rules(std::slice::from_ref(&arguments.rules), &arguments.formats)?;
    let messages = match &arguments.capture {
        Some(_) => captured(arguments, &loaded)?,
        None => vec![written(&arguments.fields, &loaded)?],
    };
    let addresses = show::Addresses::of(&loaded.rules, &loaded.sources);
    let mut evaluator = Evaluator::new(&loaded.formats, &loaded.rules);
    for (index, message) in messages.iter().enumerate() {
        let outcome = evaluator.message(message, 0);
        let (formats, rules, sources) = (&loaded.formats, &loaded.rules, &loaded.sources);
        say!("message {}: {}", index + 1, show::message(formats, &addresses, message));
        console::say_text(format_args!(
            "{}",
            show::explanation(formats, rules, &outcome.matched, message, sources, arguments.all)
        ));
        let ports: Vec<String> = outcome.ports.iter().map(ToString::to_string).collect();
        let calls: Vec<String> = outcome.calls.iter().map(ToString::to_string).collect();
        match (ports.is_empty(), calls.is_empty()) {
            (true, true) => say!("it is dropped"),
            (true, false) => say!("it gets {}", calls.join(", ")),
            (false, true) => say!("it goes to ports {}", ports.join(", ")),
            (false, false) => say!("it goes to ports {}, and gets {}", ports.join(", "), calls.join(", ")),
        }
    }
    Ok(())
}

fn captured(arguments: &Arguments, loaded: &Rules) -> Result<Vec<Message>> {
    let path = arguments.capture.as_deref().context("no capture is given")?;
    let (interfaces, records) = capture::read(path)?;
    let record = records
        .get(arguments.packet as usize - 1)
        .with_context(|| format!("{} has {} packets", path.display(), records.len()))?;
    let link = interfaces[record.interface].link;
    match packet::messages(&loaded.formats, link, &record.bytes) {
        Ok(found) => Ok(found.messages),
        Err(reason) => bail!("packet {} is to be dropped: {}", arguments.packet, reason.name()),
    }
}

/// A message of `FIELD=VALUE`, which is read as the test of a rule.
fn written(fields: &[String], loaded: &Rules) -> Result<Message> {
    let mut message = Message::new(&loaded.formats);
    for text in fields {
        let (field, value) = text.split_once('=').with_context(|| format!("`{text}` is not FIELD=VALUE"))?;
        let (mut sources, mut diagnostics) = (SourceMap::default(), Vec::new());
        let rule = format!("{field} == {value} : drop;");
        let rules = read_rules(text, &rule, &loaded.formats, &mut sources, &mut diagnostics);
        if let Some(error) = diagnostics.iter().find(|found| found.severity == Severity::Error) {
            bail!(
                "`{text}`: {}{}",
                error.message,
                error.help.as_ref().map_or(String::new(), |help| format!("; {help}"))
            );
        }
        match rules.first().map(|rule| &rule.filter) {
            Some(Filter::Test(test)) => match (test.subject, test.values.as_point()) {
                (Subject::Field(field), Some(value)) => {
                    message.add_header(loaded.formats.field(field).header);
                    message.set(field, value);
                }
                _ => bail!("`{text}` is not a field with one value"),
            },
            // A name: a test of each of its fields. The last of their values is the one in small letters.
            Some(Filter::All(parts)) => {
                for part in parts {
                    if let Filter::Test(Test { subject: Subject::Field(field), values, .. }) = part
                        && let Some(value) = values.intervals().last()
                    {
                        message.add_header(loaded.formats.field(*field).header);
                        message.set(*field, value.first);
                    }
                }
            }
            _ => bail!("`{text}` is not FIELD=VALUE"),
        }
    }
    let headers = (0..loaded.formats.headers().len() as u16).map(HeaderId).filter(|header| message.has(*header));
    for (one, other) in headers.clone().flat_map(|one| headers.clone().map(move |other| (one, other))) {
        if loaded.formats.exclude(one, other) {
            let name = |header| &loaded.formats.header(header).name;
            bail!("no message is both `{}` and `{}`", name(one), name(other));
        }
    }
    Ok(message)
}
