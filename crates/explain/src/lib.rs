//! A machine image as people read it: registers, flow key, timers and the rule table in words ([`explain`]), and the state
//! diagram ([`states()`]); and the phases that a module keeps in a register ([`phases()`]).

#![forbid(unsafe_code)]

mod document;
mod expression;
mod phrase;
mod states;

pub use states::{phases, states};

use document::{Document, Table};
use expression::duration;
use phrase::Phrases;
use std::collections::BTreeSet;
use weftwire_image::chains::{Chains, event_name, state_name};
use weftwire_image::registers::element_of;
use weftwire_image::*;

/// Written form of [`explain`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// Aligned plain text for a terminal.
    #[default]
    Text,
    /// Markdown with pipe tables.
    Markdown,
    /// An HTML fragment (no `html` element, no styles): headings from `h2` on, tables of class `rules`.
    Html,
}

/// The image in words. Every row of the rule table is there with its number, source line, conditions, operations and
/// next state. Temporaries of the compiler are replaced by what they stand for where they still stand for it.
pub fn explain(image: &Image, form: Form) -> String {
    let mut document = Document::default();
    document.heading(1, format!("Machine {}", image.name));
    let chains = Chains::new(image);
    header(image, &mut document);
    for (state, name) in image.states.iter().enumerate() {
        // The image counts states in 16 bits; one behind that has no rows.
        let Ok(index) = u16::try_from(state) else { break };
        document.heading(2, format!("State {}{}", name.name, if index == 0 { " (initial)" } else { "" }));
        match name.expire {
            None => {}
            Some(0) => document.note("Flows never expire here."),
            Some(idle) => document.note(format!("Flows expire here after {} without a packet.", duration(idle))),
        }
        let events = chains.events(index);
        if events.is_empty() {
            document.note("Nothing happens here.");
        }
        for event in events {
            event_table(image, &chains, index, event, &mut document);
        }
    }
    match form {
        Form::Text => document.text(),
        Form::Markdown => document.markdown(),
        Form::Html => document.html(),
    }
}

fn header(image: &Image, document: &mut Document) {
    if !image.digest.is_empty() {
        document.note(format!("Image {}", image.digest));
    }
    document.note(flow_key(image));
    document.note(limits(image));
    document.note(match &image.other_packets {
        OtherPackets::Drop => "Packets without this key are dropped.".to_owned(),
        OtherPackets::Pass(pairs) => {
            let pairs: Vec<String> = pairs.iter().map(|(from, to)| format!("{from} and {to}")).collect();
            format!("Packets without this key pass untouched between ports {}.", pairs.join(", "))
        }
    });
    if let Some(worst) = image.worst_case_text() {
        document.note(format!("An event takes {worst}."));
    }
    registers(image, document);
    packets_and_timers(image, document);
}

fn flow_key(image: &Image) -> String {
    let names = |fields: &[u16]| -> Vec<String> {
        fields
            .iter()
            .map(|field| match image.fields.get(usize::from(*field)) {
                Some(name) => format!("{}.{}", name.format, name.field),
                None => format!("field {field}"),
            })
            .collect()
    };
    let flow = &image.flow;
    let mut parts = names(&flow.common);
    let (source, destination) = (names(&flow.source).join(", "), names(&flow.destination).join(", "));
    match (source.is_empty(), destination.is_empty()) {
        (false, false) => {
            let arrow = if flow.symmetric { "<->" } else { "->" };
            parts.push(format!("({source}) {arrow} ({destination})"));
        }
        _ => parts.extend([source, destination].into_iter().filter(|side| !side.is_empty())),
    }
    let both = if flow.symmetric { "; both directions are one flow" } else { "" };
    match parts.is_empty() {
        true => "One flow for all packets.".into(),
        false => format!("Flow key: {}{both}.", parts.join(", ")),
    }
}

fn limits(image: &Image) -> String {
    let flow = &image.flow;
    let full = match &flow.when_full {
        WhenFull::Reject => "a new one is refused when full".to_owned(),
        WhenFull::EvictOldest => "the one idle for longest makes room".to_owned(),
        WhenFull::EvictOldestIn(states) => {
            let names: Vec<String> = states.iter().map(|state| state_name(image, *state)).collect();
            format!("the one idle for longest in {} makes room", names.join(", "))
        }
        WhenFull::EvictInTurn(groups) => {
            let groups: Vec<String> = groups.iter().map(|group| eviction(image, group)).collect();
            format!("the one idle for longest makes room: {}", groups.join(", else "))
        }
    };
    let expire = match (flow.expire, flow.hold) {
        (0, _) => "they never expire".to_owned(),
        (idle, false) => format!("they expire after {} without a packet", duration(idle)),
        (idle, true) => {
            let idle = duration(idle);
            format!("they expire after {idle} without a packet, unless a timer is pending or the application open")
        }
    };
    let timers = match flow.max_timers {
        0 => "without timers".into(),
        1 => "1 timer each".into(),
        most => format!("{most} timers each"),
    };
    format!("At most {} flows ({full}), {timers}; {expire}.", flow.max)
}

fn eviction(image: &Image, group: &Eviction) -> String {
    let names: Vec<String> = group.states.iter().map(|state| state_name(image, *state)).collect();
    let mut text = format!("in {}", names.join(", "));
    if group.idle > 0 {
        text.push_str(&format!(" idle {}", duration(group.idle)));
    }
    if group.above > 0 {
        text.push_str(&format!(" above {}", group.above));
    }
    text
}

fn registers(image: &Image, document: &mut Document) {
    let mut table = Table::new(&["register", "type", "initial"]);
    for register in image.registers.iter().filter(|register| !register.scratch) {
        let initial = match register.kind {
            RegisterType::Time => duration(register.initial),
            RegisterType::Bool => (register.initial != 0).to_string(),
            RegisterType::U64 | RegisterType::Seq64 => register.initial.cast_unsigned().to_string(),
            _ if !register.values.is_empty() => named_value(register),
            _ => register.initial.to_string(),
        };
        let kind = format!("{:?}", register.kind).to_lowercase();
        // One line for an array: all its elements begin alike.
        let name = match element_of(&register.name) {
            Some((array, 0)) => {
                let of_array = |other: &&Register| element_of(&other.name).is_some_and(|(name, _)| name == array);
                format!("{array}[{}]", image.registers.iter().filter(of_array).count())
            }
            Some(_) => continue,
            None => register.name.clone(),
        };
        table.row(vec![vec![name], vec![kind], vec![initial]]);
    }
    document.table(table);
}

/// The name of a value that has one, and which others there are.
fn named_value(register: &Register) -> String {
    let name = usize::try_from(register.initial).ok().and_then(|value| register.values.get(value));
    let first = name.map_or_else(|| register.initial.to_string(), String::clone);
    format!("{first} (of {})", register.values.join(", "))
}

fn packets_and_timers(image: &Image, document: &mut Document) {
    if !image.timers.is_empty() {
        let timers: Vec<String> = image
            .timers
            .iter()
            .map(|timer| match timer.payload.is_empty() {
                true => timer.name.clone(),
                false => format!("{}({})", timer.name, timer.payload.join(", ")),
            })
            .collect();
        document.note(format!("Timers: {}.", timers.join(", ")));
    }
    if !image.turns.is_empty() {
        let turns: Vec<String> =
            image.turns.iter().map(|turns| format!("{} (at most {} flows wait)", turns.name, turns.most)).collect();
        document.note(format!("Turns, one flow at a time: {}.", turns.join(", ")));
    }
    if !image.tallies.is_empty() {
        let tallies: Vec<String> = image.tallies.iter().map(|tally| counted(image, tally)).collect();
        document.note(format!("Counted over all flows: {}.", tallies.join("; ")));
    }
    if !image.slots.is_empty() {
        document.note(format!("Packets kept in a flow: {}.", image.slots.join(", ")));
    }
    for creation in &image.creation {
        let slot = image.slots.get(usize::from(creation.slot)).map_or("?", String::as_str);
        let template = image.templates.get(usize::from(creation.template)).map_or("?", |found| &found.name);
        document.note(format!("At connect, {slot} := new {template}."));
    }
    for template in &image.templates {
        document.note(template_line(image, template));
    }
    for lookup in &image.tables {
        let last = lookup.base.saturating_add(i64::try_from(lookup.entries.len()).unwrap_or(i64::MAX) - 1);
        document.note(format!("Table {}[{}..={last}].", lookup.name, lookup.base));
    }
}

fn template_line(image: &Image, template: &Template) -> String {
    let transport = match template.transport {
        TemplateTransport::Tcp => "TCP",
        TemplateTransport::Udp => "UDP",
    };
    let mut parts = vec![transport.to_owned()];
    if !template.tcp_options.is_empty() {
        let options: Vec<String> = template.tcp_options.iter().map(|kind| phrase::option_name(*kind)).collect();
        parts.push(format!("options {}", options.join(", ")));
    }
    if !template.headers.is_empty() {
        parts.push(format!("headers {}", template.headers.join(", ")));
    }
    if template.payload > 0 {
        parts.push(format!("{} payload bytes", template.payload));
    }
    let presets: Vec<String> = template
        .presets
        .iter()
        .map(|(field, value)| match image.fields.get(usize::from(*field)) {
            Some(name) => format!("{}.{} = {value}", name.format, name.field),
            None => format!("field {field} = {value}"),
        })
        .collect();
    if !presets.is_empty() {
        parts.push(presets.join(", "));
    }
    format!("Template {}: {}.", template.name, parts.join("; "))
}

fn event_table(image: &Image, chains: &Chains<'_>, state: u16, event: Event, document: &mut Document) {
    document.heading(3, format!("{}: {}", state_name(image, state), event_name(image, chains, state, event)));
    let mut phrases = Phrases::new(image, state, event, chains.value_names(state, event));
    let mut table = Table::new(&["row", "line", "when", "do", "next"]);
    let rows = image.rows.iter().enumerate().filter(|(_, row)| row.state == state && row.event == event);
    for (position, (number, row)) in rows.enumerate() {
        let mut when: Vec<String> = row.when.iter().map(|(index, value)| phrases.condition(*index, *value)).collect();
        if when.is_empty() {
            when.push(if position == 0 { "always" } else { "otherwise" }.into());
        }
        let live = row.raise.map_or_else(BTreeSet::new, |raised| chains.live(state, raised));
        let mut actions = phrases.statements(row, &live);
        if actions.is_empty() {
            actions.push("-".into());
        }
        let mut next = Vec::new();
        next.extend(row.raise.map(|raised| format!("continue at #{raised}")));
        next.extend(row.next.map(|state| format!("-> {}", state_name(image, state))));
        let line = match (row.line, image.debug.source(row.source)) {
            (0, _) => String::new(),
            (line, None) => line.to_string(),
            (line, Some(source)) => format!("{source}:{line}"),
        };
        table.row(vec![vec![number.to_string()], vec![line], when, actions, next]);
    }
    for line in phrases.where_lines() {
        document.note(format!("where {line}"));
    }
    document.table(table);
}

/// What a tally counts.
fn counted(image: &Image, tally: &Tally) -> String {
    let states = tally.states.iter().map(|state| state_name(image, *state));
    let timer = |timer: &u8| image.timers.get(usize::from(*timer)).map_or_else(String::new, |timer| timer.name.clone());
    let (states, timers): (Vec<_>, Vec<_>) = (states.collect(), tally.timers.iter().map(timer).collect());
    let flows = (!states.is_empty()).then(|| format!("flows in {}", states.join(", ")));
    let settings = (!timers.is_empty()).then(|| format!("settings of {}", timers.join(", ")));
    format!("{} ({})", tally.name, flows.into_iter().chain(settings).collect::<Vec<_>>().join(", "))
}
