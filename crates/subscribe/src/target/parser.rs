//! The parser of a switch program: which headers are needed, where they are, and the messages of a batch.

use super::program::*;
use super::{Targets, Unsupported};
use crate::formats::{Batch, Condition, Framing, HeaderId, MessageFormats, Place as Found};
use crate::tables::cost::prefix_list;
use crate::values::Interval;
use std::collections::{BTreeMap, BTreeSet};
use weftwire_core::{Format, FormatPlace, builtin_formats};

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

/// A name that P4 allows.
pub(super) fn identifier(name: &str) -> String {
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// A header's instance in a slot of a batch; of packets' own headers there is one.
pub(super) fn instance(formats: &MessageFormats, header: HeaderId, slot: usize) -> String {
    let known = formats.header(header);
    match known.place {
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

/// Headers of one message that come together: those in it, what tells them, and their bits.
#[derive(Clone, Default)]
struct Shape {
    headers: Vec<HeaderId>,
    conditions: Vec<(Select, u128)>,
    length: u32,
}

/// What the parser needs and gives.
pub(super) struct Parsing<'a> {
    formats: &'a MessageFormats,
    targets: &'a Targets,
    /// All headers to be parsed.
    needed: BTreeSet<HeaderId>,
    /// Bits of headers that must be fields: of stages, conditions and counts.
    fields: BTreeMap<HeaderId, BTreeSet<(u32, u16)>>,
    batch: Option<(HeaderId, Batch)>,
}

impl<'a> Parsing<'a> {
    /// For stages that look at these headers and fields.
    pub fn new(
        formats: &'a MessageFormats,
        targets: &'a Targets,
        headers: impl IntoIterator<Item = HeaderId>,
        fields: impl IntoIterator<Item = crate::formats::FieldId>,
    ) -> Result<Parsing<'a>, Unsupported> {
        let mut parsing = Parsing { formats, targets, needed: BTreeSet::new(), fields: BTreeMap::new(), batch: None };
        for header in headers {
            parsing.need(header);
        }
        for field in fields {
            let field = formats.field(field);
            parsing.need(field.header);
            parsing.fields.entry(field.header).or_default().insert((field.offset, field.width));
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
            extracts: Vec::new(),
            sets: Vec::new(),
            select: Vec::new(),
            cases: Vec::new(),
            otherwise: packet.first().map_or(ACCEPT.to_owned(), |header| self.state_name(*header)),
        });
        for header in &packet {
            program.states.push(self.packet_state(*header));
        }
        if let Some((_, batch)) = self.batch {
            self.messages(program, batch)?;
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
            sets: Vec::new(),
            select: Vec::new(),
            cases: Vec::new(),
            otherwise: ACCEPT.to_owned(),
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
            let count = Expression::Field(Place::new(&name, &field_name(self.formats, header, offset, width)));
            state.sets.push((Place::new(META, "left"), count));
            state.select.clear();
            state.cases.clear();
            state.otherwise = "batch_0".to_owned();
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
    fn header(&self, header: HeaderId, slot: usize) -> Result<Header, Unsupported> {
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
            kind: format!("{}_t", known.name),
            fields: all,
            variable: 0,
        })
    }

    /// Headers that messages have together, those that ask for more first.
    fn shapes(&self) -> Result<Vec<Shape>, Unsupported> {
        let mut shapes: Vec<Shape> = Vec::new();
        for header in &self.needed {
            let known = self.formats.header(*header);
            let (front, when) = match &known.place {
                Found::Message { when, .. } => (None, when),
                Found::Behind { header, when } => (Some(*header), when),
                _ => continue,
            };
            let fronts: Vec<Shape> = match front {
                None => vec![Shape::default()],
                Some(front) => shapes.iter().filter(|shape| shape.headers.last() == Some(&front)).cloned().collect(),
            };
            for mut shape in fronts {
                shape.headers.push(*header);
                shape.length += known.length;
                if let Some(when) = when {
                    shape.conditions.push((self.condition(when, &shape.headers)?, when.value));
                }
                shapes.push(shape);
            }
        }
        let kinds = shapes.iter().filter(|shape| shape.headers.len() == 1).collect::<Vec<_>>();
        if kinds.len() > 1 && kinds.iter().any(|shape| shape.conditions.is_empty()) {
            let name = kinds.iter().find(|shape| shape.conditions.is_empty()).map(|shape| shape.headers[0]);
            return Err(Unsupported::Ambiguous(name.map_or(String::new(), |id| self.formats.header(id).name.clone())));
        }
        shapes.sort_by_key(|shape| (std::cmp::Reverse(shape.headers.len()), shape.headers.clone()));
        Ok(shapes)
    }

    /// Where a condition's bits are for a parser at the start of a message.
    fn condition(&self, when: &Condition, headers: &[HeaderId]) -> Result<Select, Unsupported> {
        let mut before = 0;
        for header in headers {
            if *header == when.header {
                return Ok(Select::Ahead(before + when.offset, when.width));
            }
            before += self.formats.header(*header).length;
        }
        let name = field_name(self.formats, when.header, when.offset, when.width);
        Ok(Select::Field(Place::new(&instance(self.formats, when.header, 0), &name), when.width))
    }

    fn messages(&self, program: &mut Program, batch: Batch) -> Result<(), Unsupported> {
        let shapes = self.shapes()?;
        let (left_width, slots) = (batch.count.map_or(16, |(_, width)| width), self.targets.messages);
        let left = || Place::new(META, "left");
        program.metadata.push(("left".to_owned(), left_width));
        program.metadata.push(("too_many".to_owned(), 1));
        program.most_messages = Some(slots);
        let order: BTreeSet<HeaderId> = shapes.iter().flat_map(|shape| shape.headers.iter().copied()).collect();
        let state = |name: String, otherwise: &str| State {
            name,
            extracts: Vec::new(),
            sets: Vec::new(),
            select: Vec::new(),
            cases: Vec::new(),
            otherwise: otherwise.to_owned(),
        };
        for slot in 0..slots {
            let (length_header, rest) = (format!("length_{slot}"), format!("rest_{slot}"));
            let length = Place::new(&length_header, "bytes");
            let (width, most) = match batch.framing {
                Framing::Prefix(width) => (width, if width == 8 { 255 } else { MOST_MESSAGE_BYTES }),
                Framing::Fixed(bytes) => (32, bytes),
            };
            if let Framing::Prefix(_) = batch.framing {
                let fields = vec![("bytes".to_owned(), width)];
                program.headers.push(Header {
                    name: length_header.clone(),
                    kind: "length_t".to_owned(),
                    fields,
                    variable: 0,
                });
            }
            for header in &order {
                program.headers.push(self.header(*header, slot)?);
            }
            program.headers.push(Header {
                name: rest.clone(),
                kind: "rest_t".to_owned(),
                fields: Vec::new(),
                variable: most * 8,
            });
            let mut open = state(format!("batch_{slot}"), &format!("message_{slot}"));
            open.select = vec![Select::Field(left(), left_width)];
            open.cases = vec![(vec![(0, u128::MAX)], ACCEPT.to_owned())];
            program.states.push(open);
            let mut message = state(format!("message_{slot}"), &format!("other_{slot}"));
            let one = Expression::Number(1, left_width);
            message.sets.push((left(), Expression::Field(left()).of("-", one).bits(left_width)));
            if let Framing::Prefix(width) = batch.framing {
                message.extracts.push(Extract::Header(length_header.clone()));
                message.select.push(Select::Field(length.clone(), width));
            }
            for (select, _) in shapes.iter().flat_map(|shape| &shape.conditions) {
                if !message.select.contains(select) {
                    message.select.push(select.clone());
                }
            }
            let rest_bits = |bits: u32| match batch.framing {
                Framing::Prefix(_) => Expression::Field(length.clone())
                    .bits(32)
                    .of("-", Expression::Number((bits / 8).into(), 32))
                    .bits(32)
                    .of("<<", Expression::Number(3, 8)),
                Framing::Fixed(bytes) => Expression::Number((bytes * 8 - bits).into(), 32),
            };
            let next = format!("batch_{}", slot + 1);
            for (index, shape) in shapes.iter().enumerate() {
                let name = format!("message_{slot}_{index}");
                let of_conditions = |select: &Select| {
                    let value = shape.conditions.iter().find(|(known, _)| known == select);
                    value.map_or((0, 0), |(_, value)| (*value, u128::MAX))
                };
                let least = u128::from(shape.length / 8);
                match batch.framing {
                    Framing::Prefix(width) => {
                        let all = Interval { first: least, last: Interval::of_width(width).last };
                        let lengths =
                            if all.first <= all.last { prefix_list(all, width).collect() } else { Vec::new() };
                        for lengths in lengths {
                            let mask = Interval::of_width(width).last & !(lengths.last - lengths.first);
                            let mut values = vec![(lengths.first, mask)];
                            values.extend(message.select[1..].iter().map(of_conditions));
                            message.cases.push((values, name.clone()));
                        }
                    }
                    Framing::Fixed(bytes) if least <= bytes.into() => {
                        if shape.conditions.is_empty() {
                            message.otherwise.clone_from(&name);
                        } else {
                            message.cases.push((message.select.iter().map(of_conditions).collect(), name.clone()));
                        }
                    }
                    Framing::Fixed(_) => continue,
                }
                let mut inside = state(name, &next);
                let headers = shape.headers.iter().map(|header| instance(self.formats, *header, slot));
                inside.extracts = headers.map(Extract::Header).collect();
                inside.extracts.push(Extract::Variable(rest.clone(), rest_bits(shape.length)));
                program.states.push(inside);
            }
            let mut other = state(format!("other_{slot}"), &next);
            other.extracts.push(Extract::Variable(rest, rest_bits(0)));
            if message.cases.is_empty() {
                message.select.clear();
            }
            program.states.push(message);
            program.states.push(other);
        }
        let mut end = state(format!("batch_{slots}"), "too_many");
        end.select = vec![Select::Field(left(), left_width)];
        end.cases = vec![(vec![(0, u128::MAX)], ACCEPT.to_owned())];
        program.states.push(end);
        let mut many = state("too_many".to_owned(), ACCEPT);
        many.sets.push((Place::new(META, "too_many"), Expression::Number(1, 1)));
        program.states.push(many);
        Ok(())
    }
}

/// Most bytes of a message behind its known headers.
const MOST_MESSAGE_BYTES: u32 = 1500;
