//! The parser of a switch program: which headers are needed, where they are, and the messages of a batch.

use crate::program::*;
use crate::{Targets, Unsupported};
use std::collections::{BTreeMap, BTreeSet};
use weftwire_core::{Format, FormatPlace, builtin_formats};
use weftwire_subscribe::formats::{Batch, Condition, HeaderId, MessageFormats, Place as Found};

/// Names that P4 keeps for itself, and those that architectures use.
const RESERVED: &[&str] = &[
    "abstract",
    "action",
    "actions",
    "apply",
    "bit",
    "bool",
    "const",
    "control",
    "default",
    "else",
    "entries",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "key",
    "list",
    "match_kind",
    "meta",
    "out",
    "package",
    "packet",
    "parser",
    "return",
    "select",
    "standard_metadata",
    "state",
    "string",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "type",
    "typedef",
    "valueset",
    "varbit",
    "void",
];

/// Headers whose types would have the name of a type that the program or an architecture's include declares.
const TAKEN: &[&str] = &[
    "bridge",
    "bridged",
    "egress_intrinsic_metadata",
    "empty",
    "headers",
    "ingress_intrinsic_metadata",
    "length",
    "meta",
    "ptp_metadata",
    "rest",
    "standard_metadata",
    "window",
];

fn is_taken(name: &str) -> bool {
    let starts = ["rest_", "pktgen_", "ingress_intrinsic_", "egress_intrinsic_"];
    let is_camel = name.contains(|c: char| c.is_ascii_uppercase());
    TAKEN.contains(&name) || is_camel || starts.iter().any(|start| name.starts_with(start))
}

/// The name of a header's type.
fn kind_name(name: &str) -> String {
    if is_taken(name) { format!("{name}_header_t") } else { format!("{name}_t") }
}

/// A name that P4 allows.
pub(super) fn identifier(name: &str) -> String {
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// A header's instance in a slot of a batch; of packets' own headers there is one.
pub(super) fn instance(formats: &MessageFormats, header: HeaderId, slot: usize) -> String {
    let known = formats.header(header);
    match known.place {
        // The parser has headers `length_0`, `rest_0` and so on of its own.
        Found::Message { .. } | Found::Behind { .. } if is_taken(&known.name) => {
            format!("{}_header_{slot}", known.name)
        }
        Found::Message { .. } | Found::Behind { .. } => format!("{}_{slot}", known.name),
        _ => identifier(&known.name),
    }
}

/// The name of the field that holds these bits of a header.
pub(super) fn field_name(formats: &MessageFormats, header: HeaderId, offset: u32, width: u16) -> String {
    let field = formats.fields().iter().find(|it| (it.header, it.offset, it.width) == (header, offset, width));
    match field {
        Some(field) => identifier(&field.name),
        None => builtin(formats, header)
            .and_then(|format| format.fields.into_iter().find(|it| (it.offset, it.width) == (offset, width)))
            .filter(|field| !field.name.is_empty())
            .map_or_else(|| format!("bits_{offset}_{width}"), |field| identifier(&field.name)),
    }
}

/// The packet format of a header, if the packet parser finds it.
fn builtin(formats: &MessageFormats, header: HeaderId) -> Option<Format> {
    let Found::Packet(place) = &formats.header(header).place else { return None };
    let of = |format: &&Format| {
        let first = format.fields.first().map_or("", |field| &field.name);
        formats.packet_formats().field(&format.name, first).as_ref() == Some(place)
    };
    let all = builtin_formats().iter().chain(formats.packet_formats().imports());
    all.filter(|format| !matches!(format.name.as_str(), "network" | "transport")).find(of).cloned()
}

/// What the parser needs and gives.
pub(super) struct Parsing<'a> {
    pub(super) formats: &'a MessageFormats,
    pub(super) targets: &'a Targets,
    pub(super) architecture: Architecture,
    /// All headers to be parsed.
    pub(super) needed: BTreeSet<HeaderId>,
    /// Bits of headers that must be fields: of stages, conditions and counts.
    fields: BTreeMap<HeaderId, BTreeSet<(u32, u16)>>,
    pub(super) batch: Option<(HeaderId, Batch)>,
}

impl<'a> Parsing<'a> {
    /// For stages that look at these headers and fields.
    pub fn new(
        formats: &'a MessageFormats,
        targets: &'a Targets,
        architecture: Architecture,
        headers: impl IntoIterator<Item = HeaderId>,
        fields: impl IntoIterator<Item = weftwire_subscribe::formats::FieldId>,
    ) -> Result<Parsing<'a>, Unsupported> {
        let mut parsing =
            Parsing { formats, targets, architecture, needed: BTreeSet::new(), fields: BTreeMap::new(), batch: None };
        for header in headers {
            parsing.need(header);
        }
        for field in fields {
            let field = formats.field(field);
            parsing.need(field.header);
            parsing.fields.entry(field.header).or_default().insert((field.offset, field.width));
        }
        let nowhere = |header: &&HeaderId| matches!(formats.header(**header).place, Found::Nowhere);
        if let Some(header) = parsing.needed.iter().find(nowhere) {
            return Err(Unsupported::Nowhere(formats.header(*header).name.clone()));
        }
        parsing.batch = formats.batch_header().filter(|(header, _)| parsing.needed.contains(header));
        if let Some((header, batch)) = parsing.batch {
            let Some(count) = batch.count else {
                return Err(Unsupported::BatchWithoutCount(formats.header(header).name.clone()));
            };
            parsing.fields.entry(header).or_default().insert(count);
        }
        Ok(parsing)
    }

    /// The batch that messages are in, if stages look into messages.
    pub fn batch(&self) -> Option<(HeaderId, Batch)> {
        self.batch
    }

    fn named(&self, name: &str) -> Option<HeaderId> {
        let all = 0..self.formats.headers().len();
        all.map(|index| HeaderId(index as u16))
            .find(|id| builtin(self.formats, *id).is_some_and(|format| format.name == name))
    }

    /// Needs a header and those in front of it.
    fn need(&mut self, header: HeaderId) {
        if !self.needed.insert(header) {
            return;
        }
        match self.formats.header(header).place.clone() {
            Found::Message { of, when } => {
                self.need(of);
                self.need_condition(when);
            }
            Found::Behind { header, when } => {
                self.need(header);
                self.need_condition(when);
            }
            Found::Nowhere => {}
            Found::Packet(_) => {
                let Some(format) = builtin(self.formats, header) else { return };
                let front: Vec<String> = match (format.place, format.name.as_str()) {
                    (FormatPlace::After { header, when }, _) => {
                        if let Some((of, field, _)) = when
                            && let Some(of) = self.named(&of)
                            && let Some(known) = builtin(self.formats, of)
                            && let Some(field) = known.fields.iter().find(|known| known.name == field)
                        {
                            self.need(of);
                            self.fields.entry(of).or_default().insert((field.offset, field.width));
                        }
                        vec![header]
                    }
                    (_, "ethernet") => Vec::new(),
                    (_, "tcp" | "udp") => vec!["ipv4".to_owned(), "ipv6".to_owned(), "vlan".to_owned()],
                    (_, "vlan") => vec!["ethernet".to_owned()],
                    _ => vec!["ethernet".to_owned(), "vlan".to_owned()],
                };
                for name in front {
                    if let Some(id) = self.named(&name) {
                        self.need(id);
                    }
                }
            }
        }
    }

    fn need_condition(&mut self, when: Option<Condition>) {
        let Some(when) = when else { return };
        if matches!(self.formats.header(when.header).place, Found::Packet(_)) {
            self.need(when.header);
            self.fields.entry(when.header).or_default().insert((when.offset, when.width));
        }
    }

    /// Writes headers and the parser's states.
    pub fn write(&self, program: &mut Program) -> Result<(), Unsupported> {
        let packet: Vec<HeaderId> = self.in_order();
        for header in &packet {
            program.headers.push(self.header(*header, 0)?);
        }
        program.states.push(State {
            name: "start".to_owned(),
            otherwise: packet.first().map_or(ACCEPT.to_owned(), |header| self.state_name(*header)),
            ..State::default()
        });
        for header in &packet {
            program.states.push(self.packet_state(*header));
        }
        if let Some((header, batch)) = self.batch {
            self.messages(program, header, batch)?;
        }
        Ok(())
    }

    /// The needed headers of packets, those in front first.
    fn in_order(&self) -> Vec<HeaderId> {
        let names = ["ethernet", "vlan", "arp", "ipv4", "ipv6", "tcp", "udp"].map(str::to_owned);
        let imports = self.formats.packet_formats().imports().map(|format| format.name.clone());
        let all = names.into_iter().chain(imports);
        all.filter_map(|name| self.named(&name)).filter(|header| self.needed.contains(header)).collect()
    }

    fn state_name(&self, header: HeaderId) -> String {
        format!("parse_{}", self.formats.header(header).name)
    }

    fn packet_state(&self, header: HeaderId) -> State {
        let name = instance(self.formats, header, 0);
        let format = builtin(self.formats, header);
        let kind = format.as_ref().map_or("", |format| &format.name);
        let field = |field: &str, width| Select::Field(Place::new(&name, &identifier(field)), width);
        let mut state = State {
            name: self.state_name(header),
            extracts: vec![Extract::Header(name.clone())],
            otherwise: ACCEPT.to_owned(),
            ..State::default()
        };
        let next = |name: &str| {
            self.named(name).filter(|header| self.needed.contains(header)).map(|header| self.state_name(header))
        };
        let mut case = |values: &[u128], next: Option<String>| {
            if let Some(next) = next {
                state.cases.push((values.iter().map(|value| (*value, u128::MAX)).collect(), next));
            }
        };
        match kind {
            "ethernet" | "vlan" => {
                if kind == "ethernet" {
                    case(&[0x8100], next("vlan"));
                }
                case(&[0x0806], next("arp"));
                case(&[0x0800], next("ipv4"));
                case(&[0x86dd], next("ipv6"));
                state.select = vec![field("type", 16)];
            }
            "ipv4" => {
                // Without options, and not behind the first fragment.
                case(&[5, 0, 6], next("tcp"));
                case(&[5, 0, 17], next("udp"));
                state.select = vec![field("header_length", 4), field("fragment_offset", 13), field("protocol", 8)];
            }
            "ipv6" => {
                case(&[6], next("tcp"));
                case(&[17], next("udp"));
                state.select = vec![field("next_header", 8)];
            }
            _ => {}
        }
        self.followers(kind, &mut state);
        if let Some((batch, Batch { count: Some((offset, width)), .. })) = self.batch
            && batch == header
        {
            let count = Place::new(&name, &field_name(self.formats, header, offset, width));
            self.begin_batch(&mut state, count, width);
        }
        if state.cases.is_empty() {
            state.select.clear();
        }
        state
    }

    /// Imported headers behind one. Those told by fields of it or of headers in front come before one that always follows.
    fn followers(&self, kind: &str, state: &mut State) {
        let mut told = Vec::new();
        for format in self.formats.packet_formats().imports() {
            let FormatPlace::After { header: front, when } = &format.place else { continue };
            let Some(id) = self.named(&format.name).filter(|id| self.needed.contains(id) && front == kind) else {
                continue;
            };
            match when {
                None => state.otherwise = self.state_name(id),
                Some((of, field, value)) => {
                    let known = self.named(of).and_then(|of| Some((of, builtin(self.formats, of)?)));
                    let Some((of, known)) = known else { continue };
                    let Some(field) = known.fields.iter().find(|known| known.name == *field) else { continue };
                    let name = field_name(self.formats, of, field.offset, field.width);
                    let select = Select::Field(Place::new(&instance(self.formats, of, 0), &name), field.width);
                    told.push((select, u128::from(*value), self.state_name(id)));
                }
            }
        }
        for (select, ..) in &told {
            if !state.select.contains(select) {
                state.select.push(select.clone());
                state.cases.iter_mut().for_each(|(values, _)| values.push((0, 0)));
            }
        }
        for (select, value, next) in told {
            let values =
                state.select.iter().map(|it| if *it == select { (value, u128::MAX) } else { (0, 0) }).collect();
            state.cases.push((values, next));
        }
    }

    /// A header's instance with all its bits as fields.
    pub(super) fn header(&self, header: HeaderId, slot: usize) -> Result<Header, Unsupported> {
        let known = self.formats.header(header);
        let mut fields: Vec<(u32, u16, String)> = Vec::new();
        let free = |fields: &[(u32, u16, String)], offset: u32, width: u16| {
            let apart = |(known, its, _): &(u32, u16, String)| {
                offset + u32::from(width) <= *known || *known + u32::from(*its) <= offset
            };
            offset + u32::from(width) <= known.length && fields.iter().all(apart)
        };
        for (offset, width) in self.fields.get(&header).into_iter().flatten() {
            let name = field_name(self.formats, header, *offset, *width);
            if !free(&fields, *offset, *width) {
                return Err(Unsupported::Overlap(format!("{}.{name}", known.name)));
            }
            fields.push((*offset, *width, name));
        }
        let own = self.formats.fields().iter().filter(|field| field.header == header);
        let format = builtin(self.formats, header);
        let its = format.iter().flat_map(|format| &format.fields).filter(|field| field.option.is_none());
        let rest = own
            .map(|field| (field.offset, field.width, &field.name))
            .chain(its.map(|field| (field.offset, field.width, &field.name)));
        for (offset, width, name) in rest.filter(|(.., name)| !name.is_empty()) {
            if free(&fields, offset, width) {
                fields.push((offset, width, identifier(name)));
            }
        }
        fields.sort_unstable();
        let mut all: Vec<(String, u16)> = Vec::new();
        let mut at = 0;
        for (offset, width, name) in fields.into_iter().chain([(known.length, 0, String::new())]) {
            while at < offset {
                let gap = (offset - at).min(1024) as u16;
                all.push((format!("unused_{at}"), gap));
                at += u32::from(gap);
            }
            if width > 0 {
                all.push((name, width));
                at += u32::from(width);
            }
        }
        Ok(Header {
            name: instance(self.formats, header, slot),
            kind: kind_name(&known.name),
            fields: all,
            variable: 0,
        })
    }
}
