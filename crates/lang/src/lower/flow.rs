//! The flow key, its table, and how long flows live.

use super::Lowerer;
use super::types::Type;
use crate::ast::{EvictedStates, FlowDeclaration, FullPolicy, Name, StateDeclaration};
use std::collections::BTreeSet;
use weftwire_image::{Eviction, WhenFull, limits};
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::source::Span;

/// A time as it is read, in seconds.
fn seconds(nanoseconds: i64) -> String {
    let (whole, part) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let text = format!("{whole}.{part:09}");
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

impl Lowerer<'_> {
    pub(super) fn flow(&mut self, declaration: &FlowDeclaration) {
        self.image.flow.symmetric = declaration.symmetric;
        self.image.flow.source = self.key_fields(&declaration.source);
        self.image.flow.destination = self.key_fields(&declaration.destination);
        let common: Vec<&str> =
            declaration.common.iter().flat_map(|path| path.iter().map(|name| name.text.as_str())).collect();
        match common[..] {
            ["five_tuple"] => self.five_tuple(),
            // One instance for all packets.
            ["none"] if declaration.source.is_empty() => {}
            _ => self.image.flow.common = self.key_fields(&declaration.common),
        }
        if self.image.flow.source.len() != self.image.flow.destination.len() {
            let error = Diagnostic::error(declaration.span, "both sides of the key must have as many fields");
            self.report(error.help(
                "for instance `(network.source, tcp.source_port) <-> (network.destination, tcp.destination_port)`",
            ));
        }
        let width = |lowerer: &Self, field: u16| lowerer.place(&lowerer.image.fields[usize::from(field)]).2;
        let sides = self.image.flow.source.iter().zip(&self.image.flow.destination);
        let unequal = sides.filter(|(one, other)| width(self, **one) != width(self, **other)).map(|(_, other)| *other);
        for field in unequal.collect::<Vec<u16>>() {
            let span = self.key_spans.iter().find(|(known, _)| *known == field).map_or(declaration.span, |(_, it)| *it);
            let error = Diagnostic::error(span, "this field is not as wide as the one it stands against");
            self.report(error.help("the sides of a key have fields of the same widths, pair by pair"));
        }
        if let Some(expire) = &declaration.expire {
            self.image.flow.expire = self.bounded(expire, Type::Time, 0, i64::MAX);
            self.image.flow.hold = false;
        }
        if let Some(max) = &declaration.max {
            self.image.flow.max = self.bounded(max, Type::Integer, 1, i64::from(limits::MAX_FLOWS)) as u32;
        }
        if let Some(max) = &declaration.max_timers {
            let most = i64::from(limits::MAX_PENDING_TIMERS);
            self.image.flow.max_timers = self.bounded(max, Type::Integer, 1, most) as u32;
            self.timers_said = true;
        }
        self.image.flow.when_full = match &declaration.when_full {
            FullPolicy::Reject => WhenFull::Reject,
            FullPolicy::EvictOldest => WhenFull::EvictOldest,
            FullPolicy::EvictOldestIn(groups) => self.evictions(groups),
        };
    }

    fn evictions(&mut self, groups: &[EvictedStates]) -> WhenFull {
        if let Some(extra) = groups.get(limits::MAX_EVICTIONS).and_then(|group| group.states.first()) {
            let message = format!("a full table evicts from {} groups of states at most", limits::MAX_EVICTIONS);
            self.report(Diagnostic::error(extra.span, message));
        }
        let mut made = Vec::new();
        for group in groups {
            let mut seen = BTreeSet::new();
            let states = group.states.iter().filter_map(|state| self.state(state)).filter(|state| seen.insert(*state));
            let states = states.collect();
            let idle = group.idle.as_ref().map_or(0, |idle| self.bounded(idle, Type::Time, 0, i64::MAX));
            let most = i64::from(limits::MAX_FLOWS);
            let above = group.above.as_ref().map_or(0, |above| self.bounded(above, Type::Integer, 0, most)) as u32;
            made.push(Eviction { states, idle, above });
        }
        match &mut made[..] {
            [Eviction { states, idle: 0, above: 0 }] => WhenFull::EvictOldestIn(std::mem::take(states)),
            _ => WhenFull::EvictInTurn(made),
        }
    }

    /// The states' own idle times.
    pub(super) fn state_expiries(&mut self, states: &[StateDeclaration]) {
        for state in states {
            let Some(expire) = &state.expire else { continue };
            let idle = self.bounded(expire, Type::Time, 0, i64::MAX);
            if let Some((index, _)) = self.states.get(&state.name.text) {
                self.image.states[usize::from(*index)].expire = Some(idle);
            }
        }
    }

    /// Warns of timers that no flow waits for: it expires before.
    pub(super) fn warn_of_long_timers(&mut self) {
        let flow = &self.image.flow;
        let own = self.image.states.iter().map(|state| match state.expire {
            Some(idle) => (idle, false),
            None => (flow.expire, flow.hold),
        });
        // The longest of all states; one in which flows don't expire is longer than any time.
        let longest = own.map(|(idle, hold)| if hold || idle == 0 { i64::MAX } else { idle }).max().unwrap_or(i64::MAX);
        for (span, delay) in std::mem::take(&mut self.long_timers) {
            if delay > longest {
                let (delay, longest) = (seconds(delay), seconds(longest));
                let message =
                    format!("the flow expires after {longest} without a packet, before this timer of {delay}");
                self.report(
                    Diagnostic::warning(span, message).help("let it expire later, or never (`expires after 0s`)"),
                );
            }
        }
    }

    fn key_fields(&mut self, paths: &[Vec<Name>]) -> Vec<u16> {
        let mut fields = Vec::new();
        for path in paths {
            match &path[..] {
                [header, _] if fields.len() == limits::MAX_KEY_FIELDS => {
                    self.too_many(header.span, "fields in a part of its flow key", limits::MAX_KEY_FIELDS);
                    return fields;
                }
                [header, field] => {
                    let span = header.span.to(field.span);
                    fields.extend(self.field_any_width(header, field).map(|(index, ..)| index));
                    self.key_spans.extend(fields.last().map(|index| (*index, span)));
                }
                _ => {
                    let span = path.first().map_or(Span::default(), |name| name.span);
                    self.report(
                        Diagnostic::error(span, "a key is made of header fields")
                            .help("write `header.field`, or `flow key five_tuple`, or `flow key none`"),
                    );
                }
            }
        }
        fields
    }

    /// The application opens a flow by its addresses, ports and protocol: it can't fill in other fields of the key.
    pub(super) fn check_connect(&mut self) {
        for (field, span) in self.key_spans.clone() {
            let name = self.image.fields[usize::from(field)].clone();
            if !name.known_to_connect() {
                let message = format!("`on connect` can't know `{}.{}`", name.format, name.field);
                let help =
                    "the application opens a flow by its addresses, ports and protocol; key such a machine by these";
                self.report(Diagnostic::error(span, message).help(help));
            }
        }
    }

    /// The symmetric key of addresses, ports and protocol.
    pub(super) fn five_tuple(&mut self) {
        let mut field = |format: &str, field: &str| {
            let name = |text: &str| Name { text: text.to_string(), span: Span::default() };
            self.field_any_width(&name(format), &name(field)).map(|(index, ..)| index)
        };
        let source = [field("network", "source"), field("transport", "source_port")];
        let destination = [field("network", "destination"), field("transport", "destination_port")];
        let common = field("network", "protocol");
        let flow = &mut self.image.flow;
        flow.symmetric = true;
        flow.source = source.into_iter().flatten().collect();
        flow.destination = destination.into_iter().flatten().collect();
        flow.common = common.into_iter().collect();
    }
}
