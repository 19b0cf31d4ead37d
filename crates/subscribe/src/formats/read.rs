//! From an annotated `.p4` file to [`MessageFormats`].

mod builtins;
mod pragmas;

use super::annotations::{Entry, entries, nanoseconds, tokens};
use super::*;
use std::collections::BTreeSet;
use weftwire_core::p4::{self, HeaderType};
use weftwire_core::{Format, FormatField, FormatPlace, builtin_formats};
use weftwire_text::lexer::{Kind, NumberValue};
use weftwire_text::{Diagnostic, Severity, SourceMap, Span};

/// Name of the field that every imported format starts with, so that its place can be asked for.
const START: &str = "";

impl Default for MessageFormats {
    /// The built-in headers alone.
    fn default() -> MessageFormats {
        MessageFormats::read("built-in", "", &mut SourceMap::default(), &mut Vec::new())
            .expect("the built-in formats are right")
    }
}

impl MessageFormats {
    /// Reads a `.p4` file: its text under its name. What is wrong with it joins `diagnostics`, with places in `sources`;
    /// `None` if there is an error.
    pub fn read(
        name: &str,
        text: &str,
        sources: &mut SourceMap,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<MessageFormats> {
        MessageFormats::read_all(&[(name, text)], sources, diagnostics)
    }

    /// Reads several files as [`MessageFormats::read`] reads one. What one declares, those behind it may name.
    pub fn read_all(
        files: &[(&str, &str)],
        sources: &mut SourceMap,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<MessageFormats> {
        let numbers: Vec<u16> =
            files.iter().map(|(name, text)| sources.add((*name).to_owned(), (*text).to_owned())).collect();
        let mut reader = Reader { file: 0, sources, found: Vec::new(), headers: Vec::new(), formats: empty() };
        let mut parsed = Vec::with_capacity(files.len());
        for (file, (_, text)) in numbers.into_iter().zip(files) {
            let source = p4::parse_source(text).unwrap_or_else(|errors| {
                reader.found.extend(errors.into_iter().map(|error| {
                    let span = reader.sources.span_at(file, error.line, error.column);
                    Diagnostic::error(span, error.message).help(error.help)
                }));
                p4::Source::default()
            });
            reader.file = file;
            let first = reader.headers.len();
            reader.names(&source);
            parsed.push((file, source, first));
        }
        let declared = reader.headers.len();
        for (file, source, first) in &parsed {
            reader.file = *file;
            for (index, header) in source.headers.iter().enumerate().take(declared - first) {
                reader.header(header, first + index);
            }
        }
        for (file, source, _) in &parsed {
            reader.file = *file;
            reader.pragmas(source);
        }
        reader.builtins(declared);
        reader.finish();
        let failed = reader.found.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        diagnostics.append(&mut reader.found);
        (!failed).then_some(reader.formats)
    }
}

fn empty() -> MessageFormats {
    MessageFormats {
        headers: Vec::new(),
        fields: Vec::new(),
        counters: Vec::new(),
        actions: Vec::new(),
        names: Vec::new(),
        header_names: BTreeMap::new(),
        field_names: BTreeMap::new(),
        bare_names: BTreeMap::new(),
        packet: Formats::default(),
    }
}

struct Reader<'a> {
    file: u16,
    /// The texts of all files.
    sources: &'a SourceMap,
    found: Vec<Diagnostic>,
    /// What is known of each header beside what its format says.
    headers: Vec<Draft>,
    formats: MessageFormats,
}

/// A header whose place is not yet resolved.
struct Draft {
    /// All its fields: name, offset, width.
    fields: Vec<(String, u32, u16)>,
    /// Its name for the packet parser, which knows it if this is set.
    packet_name: Option<String>,
    /// What is imported into the packet parser.
    import: Option<Format>,
}

/// `when=field == value`, resolved.
struct When {
    condition: Condition,
    field: String,
}

impl Reader<'_> {
    fn error(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.found.push(Diagnostic::error(span, message).help(help));
    }

    /// Where a header is declared.
    fn span_of(&self, header: &HeaderType) -> Span {
        self.sources.span_at(self.file, header.line, 1)
    }

    /// Gives all headers their names, and those of the structs' members.
    fn names(&mut self, source: &p4::Source) {
        for header in source.headers.iter().take(MOST_NAMES - self.headers.len()) {
            let id = HeaderId(self.formats.headers.len() as u16);
            if self.formats.header_named(&header.name).is_some() {
                let message = format!("header `{}` is declared in another file already", header.name);
                self.error(self.span_of(header), message, "declare it once, or give it a name of its own");
            }
            self.formats.header_names.insert(header.name.clone(), id);
            self.formats.headers.push(MessageHeader {
                name: header.name.clone(),
                length: header.length(),
                place: Place::Nowhere,
                batch: None,
            });
            self.headers.push(Draft {
                fields: header.fields.iter().map(|field| (field.name.clone(), field.offset, field.width)).collect(),
                packet_name: None,
                import: None,
            });
        }
        for member in &source.members {
            if let Some(id) = self.formats.header_named(&member.type_name) {
                // The first instance of a type gives the name that messages show.
                let header = &mut self.formats.headers[usize::from(id.0)];
                if header.name == member.type_name {
                    header.name.clone_from(&member.name);
                }
                self.formats.header_names.entry(member.name.clone()).or_insert(id);
            }
        }
    }

    fn header(&mut self, declared: &HeaderType, index: usize) {
        let id = HeaderId(index as u16);
        let span = self.span_of(declared);
        let mut header = declared.clone();
        let name = self.take_name(id, &mut header);
        let header = &header;
        let mut after = None;
        let mut message = None;
        let mut when = None;
        let (mut count, mut framing, mut batch_span) = (None, None, None);
        for annotation in &header.annotations {
            match annotation.name.as_str() {
                "subscribe" => {}
                "subscribe_counter" => {
                    let entries = entries(annotation, self.file, &mut self.found);
                    self.counter(&entries, span);
                    continue;
                }
                "subscribe_action" => {
                    let entries = entries(annotation, self.file, &mut self.found);
                    self.action(&entries, span);
                    continue;
                }
                _ => continue,
            }
            for entry in entries(annotation, self.file, &mut self.found) {
                match (entry.key.as_str(), entry.name(), entry.number()) {
                    ("after", Some(_), _) => after = Some(entry),
                    ("message", Some(_), _) => message = Some(entry),
                    ("when", ..) => when = Some(entry),
                    ("messages", Some(name), _) => {
                        batch_span = Some(entry.span);
                        if name != "rest" {
                            let field = header.fields.iter().find(|field| field.name == name && field.width <= 64);
                            match field {
                                Some(field) => count = Some((field.offset, field.width)),
                                None => self.error(
                                    entry.span,
                                    format!("`{}` has no field `{name}` of up to 64 bits", header.name),
                                    "name the field that counts the messages, or `rest` if they go on to the packet's end",
                                ),
                            }
                        }
                    }
                    ("prefix", _, Some(bits @ (8 | 16 | 32))) => framing = Some(Framing::Prefix(bits as u16)),
                    ("size", _, Some(bytes @ 1..=65_535)) => framing = Some(Framing::Fixed(bytes as u32)),
                    (key, ..) => self.error(
                        entry.span,
                        format!("`{key}` can't be this for a header"),
                        "headers have after=HEADER, message=HEADER, when=FIELD == VALUE, messages=FIELD or rest, \
                         prefix=8, 16 or 32, and size=BYTES",
                    ),
                }
            }
        }
        if let Some(span) = batch_span {
            let Some(framing) = framing else {
                let help = "add prefix=16 for a length in front of each message, or size=BYTES if all are equally long";
                return self.error(span, "nothing says how long each message is", help);
            };
            if self.formats.batch_header().is_some() {
                return self.error(span, "a second header starts a batch", "a file describes one kind of batch");
            }
            self.formats.headers[index].batch = Some(Batch { count, framing });
        }
        let when = match when {
            Some(entry) => match self.condition(&entry, id) {
                Some(when) => Some(when),
                None => return,
            },
            None => None,
        };
        match (after, message) {
            (Some(entry), None) => self.behind(header, id, &entry, when),
            (None, Some(entry)) => match self.earlier(&entry, id) {
                Some(of) if self.formats.header(of).batch.is_some() => {
                    self.formats.headers[index].place = Place::Message { of, when: when.map(|when| when.condition) };
                }
                Some(_) => self.error(
                    entry.span,
                    format!("no messages follow `{}`", entry.name().unwrap_or_default()),
                    "the header that starts the batch says messages=FIELD",
                ),
                None => {}
            },
            (Some(_), Some(entry)) => {
                self.error(entry.span, "a header has one place", "give it either after= or message=");
            }
            (None, None) => self.builtin_of_file(header, id),
        }
        for field in &header.fields {
            self.field(id, field);
        }
        if let Some(name) = name {
            self.add_name(id, header, &name);
        }
    }

    /// Takes a header's last field off it, if it is a name of the domain name system.
    fn take_name(&mut self, id: HeaderId, header: &mut HeaderType) -> Option<p4::HeaderField> {
        let is_name = |annotation: &p4::Annotation| {
            let entries = entries(annotation, self.file, &mut Vec::new());
            annotation.name == "subscribe"
                && entries.iter().any(|entry| entry.key == "names" && entry.name() == Some("dns"))
        };
        if !header.fields.last()?.annotations.iter().any(is_name) {
            return None;
        }
        let name = header.fields.pop()?;
        self.headers[usize::from(id.0)].fields.pop();
        self.formats.headers[usize::from(id.0)].length = header.length();
        Some(name)
    }

    /// Adds the fields of a name behind its header, each in a header of its own.
    fn add_name(&mut self, id: HeaderId, header: &HeaderType, name: &p4::HeaderField) {
        let span = self.span_of(header);
        let draft = &self.headers[usize::from(id.0)];
        let front = draft.packet_name.clone().filter(|_| draft.import.is_some() && !header.fields.is_empty());
        let Some(mut front) = front.filter(|_| name.width.is_multiple_of(NAME_WORD)) else {
            let help =
                "a name is the last of several fields of a header with after=HEADER, and has a multiple of 32 bits";
            return self.error(span, format!("`{}` can't be a name here", name.name), help);
        };
        let mut words = Vec::new();
        for index in 0..name.width / NAME_WORD {
            let word = format!("{}_{}_{index}", header.name, name.name);
            if self.formats.header_named(&word).is_some() || self.formats.headers.len() >= MOST_NAMES {
                return self.error(span, format!("a header `{word}` cannot be added"), "give the name another name");
            }
            let length = u32::from(NAME_WORD);
            let field = |name: &str, width| FormatField { name: name.to_owned(), offset: 0, width, option: None };
            let place = FormatPlace::After { header: front, when: None };
            let fields = vec![field(START, 8), field("word", NAME_WORD)];
            let own = HeaderId(self.formats.headers.len() as u16);
            self.formats.header_names.insert(word.clone(), own);
            let header = MessageHeader { name: word.clone(), length, place: Place::Nowhere, batch: None };
            self.formats.headers.push(header);
            self.headers.push(Draft {
                fields: vec![("word".to_owned(), 0, NAME_WORD)],
                packet_name: Some(word.clone()),
                import: Some(Format { name: word.clone(), length, fields, place, invariant_crc: None }),
            });
            self.add_field(own, "word", 0, NAME_WORD, Form::Number { decimals: 0 }, None);
            words.extend(self.formats.field_named(own, "word"));
            front = word;
        }
        self.formats.names.push(NameField { header: id, name: name.name.clone(), words });
    }

    /// A header of the file that stands earlier, or a built-in one, which is then added.
    fn earlier(&mut self, entry: &Entry, before: HeaderId) -> Option<HeaderId> {
        let name = entry.name()?.to_owned();
        if let Some(id) = self.formats.header_named(&name).filter(|id| *id < before) {
            return Some(id);
        }
        let help = "name a built-in header, like udp, or one that stands earlier in the file";
        self.error(entry.span, format!("there is no header `{name}` before this one"), help);
        None
    }

    /// `after=HEADER`
    fn behind(&mut self, header: &HeaderType, id: HeaderId, entry: &Entry, when: Option<When>) {
        let name = entry.name().unwrap_or_default();
        let declared = self.formats.header_named(name).filter(|front| *front < id);
        if let Some(front) = declared
            && matches!(self.formats.header(front).place, Place::Message { .. } | Place::Behind { .. })
        {
            let when = when.map(|when| when.condition);
            self.formats.headers[usize::from(id.0)].place = Place::Behind { header: front, when };
            return;
        }
        let front = match declared {
            Some(front) => self.headers[usize::from(front.0)].packet_name.clone(),
            None => builtin_formats().iter().find(|format| format.name == name).map(|format| format.name.clone()),
        };
        let Some(front) = front else {
            let help = "name a built-in header, like udp, or one that stands earlier in the file and has a place";
            return self.error(entry.span, format!("there is no header `{name}` that this one could follow"), help);
        };
        let when = match when {
            None => None,
            Some(When { condition, field }) => {
                let tested = self.headers.get(usize::from(condition.header.0)).and_then(|it| it.packet_name.clone());
                match (tested, u64::try_from(condition.value)) {
                    (Some(tested), Ok(value)) if condition.header != id => Some((tested, field, value)),
                    _ => {
                        let help = "compare a field of up to 64 bits, like when=udp.destination_port == 26400";
                        return self.error(entry.span, "a header of packets is told by a header in front of it", help);
                    }
                }
            }
        };
        let mut fields = vec![FormatField { name: START.to_owned(), offset: 0, width: 8, option: None }];
        fields.extend(
            header.fields.iter().filter(|field| matches!((field.width, field.offset % 8), (1..=64, _) | (128, 0))).map(
                |field| FormatField {
                    name: field.name.clone(),
                    offset: field.offset,
                    width: field.width,
                    option: None,
                },
            ),
        );
        let draft = &mut self.headers[usize::from(id.0)];
        draft.packet_name = Some(header.name.clone());
        let place = FormatPlace::After { header: front, when };
        let (name, length) = (header.name.clone(), header.length());
        draft.import = Some(Format { name, length, fields, place, invariant_crc: None });
    }

    /// A header without a place of its own is the built-in one of its name, or nowhere.
    fn builtin_of_file(&mut self, header: &HeaderType, id: HeaderId) {
        let names = [&header.name, &self.formats.header(id).name.clone()];
        let builtin = builtin_formats().iter().find(|format| names.contains(&&format.name));
        match builtin {
            Some(format) if format.length == header.length() => {
                self.headers[usize::from(id.0)].packet_name = Some(format.name.clone());
            }
            Some(format) => {
                let message = format!(
                    "`{}` is {} bits long here, and {} bits in packets",
                    format.name,
                    header.length(),
                    format.length
                );
                let span = self.span_of(header);
                self.error(span, message, "declare it as it is, or give it another name and a place");
            }
            None => {}
        }
    }

    /// `when=FIELD == VALUE` or `when=HEADER.FIELD == VALUE`
    fn condition(&mut self, entry: &Entry, own: HeaderId) -> Option<When> {
        let help = "write when=FIELD == VALUE, with a field of this header, or HEADER.FIELD of one before";
        let (header, field, value) = match &entry.value[..] {
            [Kind::Word(field), Kind::Punctuation("=="), value] => (None, field, value),
            [Kind::Word(header), Kind::Punctuation("."), Kind::Word(field), Kind::Punctuation("=="), value] => {
                (Some(header), field, value)
            }
            _ => {
                self.error(entry.span, "this is no condition", help);
                return None;
            }
        };
        let header = match header {
            None => own,
            Some(name) => match self.formats.header_named(name).filter(|id| *id <= own) {
                Some(id) => id,
                None => match self.add_builtin(name) {
                    Some(id) => id,
                    None => {
                        self.error(entry.span, format!("there is no header `{name}` before this one"), help);
                        return None;
                    }
                },
            },
        };
        let draft = &self.headers[usize::from(header.0)];
        let Some((name, offset, width)) = draft.fields.iter().find(|(name, ..)| name == field).cloned() else {
            self.error(entry.span, format!("there is no field `{field}`"), help);
            return None;
        };
        let wanted = match value {
            Kind::Number { value: NumberValue::Whole(value), unit } if unit.is_empty() => Some(u128::from(*value)),
            Kind::Text(text) if text.len() * 8 == usize::from(width) => {
                Some(text.bytes().fold(0, |value, byte| value << 8 | u128::from(byte)))
            }
            _ => None,
        };
        match wanted.filter(|wanted| width <= 64 && Interval::of_width(width).contains(*wanted)) {
            Some(value) => Some(When { condition: Condition { header, offset, width, value }, field: name }),
            None => {
                let message = format!("`{field}`, of {width} bits, can't have this value");
                self.error(entry.span, message, "give a number, or a quoted text of just its length; up to 64 bits");
                None
            }
        }
    }

    /// `@subscribe[...]` of a field.
    fn field(&mut self, header: HeaderId, field: &p4::HeaderField) {
        let mut filterable = false;
        let mut form = Form::Number { decimals: 0 };
        let mut kind = None;
        for annotation in field.annotations.iter().filter(|annotation| annotation.name == "subscribe") {
            filterable = true;
            for entry in entries(annotation, self.file, &mut self.found) {
                match (entry.key.as_str(), entry.name(), entry.number()) {
                    ("match", Some("exact"), _) => kind = Some(MatchKind::Exact),
                    ("match", Some("range"), _) => kind = Some(MatchKind::Range),
                    ("match", Some("lpm"), _) => kind = Some(MatchKind::Lpm),
                    ("text", Some(text), _) if text.len() == 1 && field.width.is_multiple_of(8) => {
                        form = Form::Text { padding: text.as_bytes()[0] };
                    }
                    ("decimals", _, Some(decimals @ 0..=18)) => form = Form::Number { decimals: decimals as u8 },
                    (key, ..) => self.error(
                        entry.span,
                        format!("`{key}` can't be this for the field `{}`", field.name),
                        "fields have match=exact, range or lpm; text=\"PADDING\", one ASCII character, for whole bytes; \
                         decimals=0 to 18; the last field of a header, names=dns",
                    ),
                }
            }
            if !readable(field.offset, field.width) {
                let span = Span { file: self.file, start: annotation.start as u32, end: annotation.start as u32 };
                let message = format!("filters can't use `{}`, which is {} bits wide", field.name, field.width);
                self.error(span, message, "fields of filters have up to 64 bits, or up to 128 on a byte boundary");
                return;
            }
        }
        if filterable {
            self.add_field(header, &field.name, field.offset, field.width, form, kind);
        }
    }

    fn add_field(
        &mut self,
        header: HeaderId,
        name: &str,
        offset: u32,
        width: u16,
        form: Form,
        kind: Option<MatchKind>,
    ) {
        if self.formats.fields.len() >= MOST_NAMES || self.formats.field_named(header, name).is_some() {
            return;
        }
        let id = FieldId(self.formats.fields.len() as u16);
        self.formats.field_names.entry(header).or_default().insert(name.to_owned(), id);
        self.formats.bare_names.entry(name.to_owned()).or_default().push(id);
        self.formats.fields.push(Field { header, name: name.to_owned(), offset, width, form, kind });
    }

    /// `@subscribe_counter[name=NAME, window="100us"]`
    fn counter(&mut self, entries: &[Entry], span: Span) {
        let name = entries.iter().find(|entry| entry.key == "name").and_then(Entry::name);
        let window = entries.iter().find(|entry| entry.key == "window").and_then(|entry| match &entry.value[..] {
            [Kind::Text(text)] => duration(text),
            [Kind::Number { value, unit }] => nanoseconds(*value, unit),
            _ => None,
        });
        match (name, window) {
            (Some(name), Some(window_ns)) if self.formats.counter_named(name).is_none() => {
                self.formats.counters.push(Counter { name: name.to_owned(), window_ns });
            }
            (Some(name), Some(_)) => {
                self.error(span, format!("counter `{name}` is there twice"), "give each its own name")
            }
            _ => self.error(
                span,
                "this counter lacks its name or its window",
                "write @subscribe_counter[name=NAME, window=\"100us\"], with ns, us, ms or s",
            ),
        }
    }

    /// `@subscribe_action[name=NAME, arguments="ipv4 number"]`
    fn action(&mut self, entries: &[Entry], span: Span) {
        let name = entries.iter().find(|entry| entry.key == "name").and_then(Entry::name);
        let arguments = entries.iter().find(|entry| entry.key == "arguments").map_or(Some(""), Entry::name);
        let kinds = arguments.and_then(|text| {
            text.split(|c: char| !c.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .map(ArgumentKind::of_name)
                .collect()
        });
        match (name, kinds) {
            (Some(name), Some(arguments)) if !matches!(name, "fwd" | "drop") => {
                self.formats.register_action(ActionSignature { name: name.to_owned(), arguments });
            }
            _ => self.error(
                span,
                "this is no action",
                "write @subscribe_action[name=NAME, arguments=\"number text ipv4 ipv6 mac\"]; fwd and drop are there already",
            ),
        }
    }

    /// Resolves the headers that the packet parser finds.
    fn finish(&mut self) {
        let imports: Vec<Format> = self.headers.iter().filter_map(|draft| draft.import.clone()).collect();
        match Formats::new(&imports) {
            Ok(formats) => self.formats.packet = formats,
            Err(error) => {
                let span = Span { file: self.file, start: 0, end: 0 };
                return self.error(span, error.to_string(), "packets are parsed with at most 16 headers of a file");
            }
        }
        for (draft, header) in self.headers.iter().zip(&mut self.formats.headers) {
            let Some(name) = &draft.packet_name else { continue };
            let first = if draft.import.is_some() {
                START
            } else {
                let format = builtin_formats().iter().find(|format| format.name == *name);
                format.and_then(|format| format.fields.first()).map_or(START, |field| field.name.as_str())
            };
            if let Some(place) = self.formats.packet.field(name, first) {
                header.place = Place::Packet(place);
            }
        }
    }
}

/// Whether the project's bit reader reads such a field.
fn readable(offset: u32, width: u16) -> bool {
    matches!((width, offset % 8), (1..=64, _) | (65..=128, 0))
}

/// Nanoseconds of a text like `100us`.
fn duration(text: &str) -> Option<u64> {
    let unit = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    nanoseconds(NumberValue::Fraction(text[..unit].parse().ok()?), &text[unit..])
}
