//! Header formats, the fields the image names, the flow key, templates and creation.

use super::report::{Path, quote};
use super::{Verifier, builtin};
use crate::limits::*;
use crate::types::{Event, FieldName, Format, FormatField, Place, Template, TemplateTransport};
use std::collections::BTreeSet;

/// Fields that no operation may write: they say what the packet is (semantics, section 2.6).
const FIXED_FIELDS: [(&str, &str); 6] = [
    ("network", "protocol"),
    ("network", "version"),
    ("ipv4", "version"),
    ("ipv4", "header_length"),
    ("ipv6", "version"),
    ("tcp", "data_offset"),
];

/// Formats a flow key may use if the application can open flows (semantics, section 3.5).
const KEY_OF_CONNECT: [&str; 6] = ["network", "ipv4", "ipv6", "transport", "tcp", "udp"];
/// Fields of these formats that it may use.
const KEY_FIELDS_OF_CONNECT: [&str; 5] = ["source", "destination", "source_port", "destination_port", "protocol"];

/// TCP options a template may have: MSS, window scale, SACK permitted, timestamps.
const TEMPLATE_OPTIONS: [u8; 4] = [2, 3, 4, 8];

/// Formats of the headers that every built packet has, or has if the flow is so.
const FRAME_FORMATS: [&str; 6] = ["ethernet", "vlan", "network", "ipv4", "ipv6", "transport"];

impl Verifier<'_> {
    pub(super) fn packets(&mut self) {
        self.formats();
        self.fields();
        self.key();
        self.templates();
        self.creation();
    }

    fn formats(&mut self) {
        let formats = Path::Root.member("formats");
        for (index, format) in self.image.formats.iter().enumerate() {
            let item = formats.item(index);
            self.format(item, index, format);
        }
    }

    fn format(&mut self, path: Path<'_>, index: usize, format: &Format) {
        let fields = path.member("fields");
        self.report.at_most(fields, format.fields.len(), MAX_FORMAT_FIELDS);
        let mut seen = BTreeSet::new();
        for (index, field) in format.fields.iter().enumerate() {
            let item = fields.item(index);
            self.name(item.member("name"), &field.name);
            if !seen.insert(&field.name) {
                let problem = format_args!("the name {} again", quote(&field.name));
                self.report.add(item.member("name"), problem, "names are unique in a format");
            }
        }
        match &format.place {
            Place::Builtin => self.builtin_format(path, format),
            Place::After { header, when } => {
                self.imported_format(path, format);
                let place = path.member("place");
                let place = place.member("after");
                if !self.may_be_followed(index, header) {
                    let problem = format_args!("no header {} in front", quote(header));
                    let remedy = "name a built-in header, or an imported one that stands earlier in `formats`";
                    self.report.add(place.member("header"), problem, remedy);
                }
                if let Some(when) = when {
                    let when_path = place.member("when");
                    self.tested_field(when_path.member("field"), index, &when.field);
                }
            }
        }
    }

    fn imported_format(&mut self, path: Path<'_>, format: &Format) {
        if builtin::format(&format.name).is_some() {
            let problem = format_args!("{} is a built-in format", quote(&format.name));
            self.report.add(path.member("name"), problem, "give the imported format another name");
        }
        if format.length == 0 || format.length % 8 != 0 || format.length > MAX_FORMAT_LENGTH {
            let problem = format_args!("{} bits", format.length);
            let remedy = format_args!("use a multiple of 8 from 8 to {MAX_FORMAT_LENGTH}");
            self.report.add(path.member("length"), problem, remedy);
        }
        let fields = path.member("fields");
        for (index, field) in format.fields.iter().enumerate() {
            let item = fields.item(index);
            if !(1..=64).contains(&field.width) && field.width != 128 {
                let problem = format_args!("{} bits", field.width);
                self.report.add(item.member("width"), problem, "use 1 to 64, or 128 for an address");
            }
            let end = u64::from(field.offset) + u64::from(field.width);
            if end > u64::from(format.length) {
                let problem = format_args!("the field ends at bit {end}");
                self.report.add(item, problem, format_args!("the header has {} bits", format.length));
            }
            if field.option.is_some() {
                let remedy = "only the built-in `tcp` has fields of options";
                self.report.add(item.member("option"), "an imported format has no options", remedy);
            }
        }
    }

    /// A built-in format must be the built-in definition, word for word.
    fn builtin_format(&mut self, path: Path<'_>, format: &Format) {
        match builtin::format(&format.name) {
            None => {
                let problem = format_args!("there is no built-in format {}", quote(&format.name));
                let remedy = format_args!("there are: {}", builtin::names().join(", "));
                self.report.add(path.member("name"), problem, remedy);
            }
            Some(definition) if definition != *format => {
                let problem = format_args!("this is not the built-in definition of {}", quote(&format.name));
                self.report.add(path, problem, "copy length and fields from the built-in format");
            }
            Some(_) => {}
        }
    }

    /// Whether a format that stands at `index` may follow the header of this name.
    fn may_be_followed(&self, index: usize, header: &str) -> bool {
        let earlier = self.image.formats[..index].iter().any(|format| format.name == header);
        builtin::is_header(header) || (earlier && builtin::format(header).is_none())
    }

    /// The field a format's `when` tests.
    fn tested_field(&mut self, path: Path<'_>, index: usize, name: &FieldName) {
        let builtin = builtin::format(&name.format);
        let format = builtin.as_ref().or_else(|| self.image.formats[..index].iter().find(|it| it.name == name.format));
        let Some(format) = format else {
            let problem = format_args!("no format {} in front", quote(&name.format));
            let remedy = "name a built-in format, or an imported one that stands earlier in `formats`";
            self.report.add(path.member("format"), problem, remedy);
            return;
        };
        match format.fields.iter().find(|field| field.name == name.field) {
            None => {
                let problem = format_args!("{} has no field {}", quote(&name.format), quote(&name.field));
                self.report.add(path.member("field"), problem, "name a field of the format");
            }
            Some(field) if field.width > 64 => {
                self.report.add(path.member("field"), "the field is 128 bits wide", "test a field of at most 64 bits");
            }
            Some(_) => {}
        }
    }

    fn fields(&mut self) {
        let fields = Path::Root.member("fields");
        self.report.at_most(fields, self.image.fields.len(), MAX_FIELDS);
        let mut seen = BTreeSet::new();
        for (index, name) in self.image.fields.iter().enumerate() {
            let path = fields.item(index);
            if !seen.insert(name) {
                self.report.add(path, "the same field again", "name each field once");
            }
            match self.image.formats.iter().find(|format| format.name == name.format) {
                None => {
                    let problem = format_args!("there is no format {}", quote(&name.format));
                    self.report.add(path.member("format"), problem, "list it in `formats`");
                }
                Some(format) if !format.fields.iter().any(|field| field.name == name.field) => {
                    let problem = format_args!("{} has no field {}", quote(&name.format), quote(&name.field));
                    self.report.add(path.member("field"), problem, "name a field of the format");
                }
                Some(_) => {}
            }
        }
    }

    /// The definition of a field by its index; `None` if there is none (which is reported elsewhere).
    fn field(&self, field: u16) -> Option<&FormatField> {
        let name = self.image.fields.get(usize::from(field))?;
        let format = self.image.formats.iter().find(|format| format.name == name.format)?;
        format.fields.iter().find(|field| field.name == name.field)
    }

    /// A field that is read or written as a value: at most 64 bits.
    pub(super) fn value_field(&mut self, path: Path<'_>, field: u16) {
        let good = self.report.index(path, "field", usize::from(field), self.image.fields.len());
        if good && self.field(field).is_some_and(|field| field.width > 64) {
            self.report.add(path, "the field is 128 bits wide", "only flow keys use fields of more than 64 bits");
        }
    }

    /// A field that is written.
    pub(super) fn written_field(&mut self, path: Path<'_>, field: u16) {
        self.value_field(path, field);
        let Some(name) = self.image.fields.get(usize::from(field)) else { return };
        if FIXED_FIELDS.contains(&(name.format.as_str(), name.field.as_str())) {
            let problem = format_args!("{}.{} says what the packet is", name.format, name.field);
            self.report.add(path, problem, "it can't be written");
        }
    }

    fn key(&mut self) {
        let flow = &self.image.flow;
        let path = Path::Root.member("flow");
        let source = path.member("source");
        let destination = path.member("destination");
        let connects = self.image.rows.iter().any(|row| row.event == Event::Connect);
        for (path, fields) in
            [(source, &flow.source), (destination, &flow.destination), (path.member("common"), &flow.common)]
        {
            self.report.at_most(path, fields.len(), MAX_KEY_FIELDS);
            for (index, field) in fields.iter().enumerate() {
                let item = path.item(index);
                self.report.index(item, "field", usize::from(*field), self.image.fields.len());
                let Some(name) = self.image.fields.get(usize::from(*field)) else { continue };
                let known = KEY_OF_CONNECT.contains(&name.format.as_str())
                    && KEY_FIELDS_OF_CONNECT.contains(&name.field.as_str());
                if connects && !known {
                    let problem = format_args!("`connect` can't know {}.{}", quote(&name.format), quote(&name.field));
                    self.report.add(item, problem, "key such a machine by addresses, ports and protocol");
                }
            }
        }
        if flow.source.len() != flow.destination.len() {
            let problem = format_args!("{} fields, but `source` has {}", flow.destination.len(), flow.source.len());
            self.report.add(destination, problem, "both sides have the same number of fields");
        }
        for (index, (one, other)) in flow.source.iter().zip(&flow.destination).enumerate() {
            if let (Some(one), Some(other)) = (self.field(*one), self.field(*other))
                && one.width != other.width
            {
                let (problem, remedy) = (format!("{} bits", other.width), format!("{} bits as in `source`", one.width));
                self.report.add(destination.item(index), problem, remedy);
            }
        }
        if flow.symmetric && flow.source.is_empty() {
            let remedy = "name the sides in `source` and `destination`";
            self.report.add(path.member("symmetric"), "a symmetric key without sides", remedy);
        }
    }

    fn templates(&mut self) {
        let templates = Path::Root.member("templates");
        for (index, template) in self.image.templates.iter().enumerate() {
            self.template(templates.item(index), template);
        }
    }

    fn template(&mut self, path: Path<'_>, template: &Template) {
        let transport = transport_name(template.transport);
        let options = path.member("tcp_options");
        self.report.at_most(options, template.tcp_options.len(), MAX_TEMPLATE_PARTS);
        if template.transport == TemplateTransport::Udp && !template.tcp_options.is_empty() {
            self.report.add(options, "TCP options in a UDP packet", "leave the list empty");
        }
        let mut seen = BTreeSet::new();
        for (index, kind) in template.tcp_options.iter().enumerate() {
            if !TEMPLATE_OPTIONS.contains(kind) {
                let remedy = "use 2 (MSS), 3 (window scale), 4 (SACK permitted) or 8 (timestamps)";
                self.report.add(options.item(index), format_args!("option kind {kind}"), remedy);
            } else if !seen.insert(kind) {
                self.report.add(options.item(index), format_args!("option kind {kind} again"), "list it once");
            }
        }
        let headers = path.member("headers");
        self.report.at_most(headers, template.headers.len(), MAX_TEMPLATE_PARTS);
        let mut front = transport;
        for (index, name) in template.headers.iter().enumerate() {
            let format = self.image.formats.iter().find(|format| format.name == *name);
            match format.map(|format| &format.place) {
                Some(Place::After { header, .. }) if header == front || (index == 0 && header == "transport") => {}
                Some(Place::After { header, .. }) => {
                    let problem = format_args!("{} stands behind {}", quote(name), quote(front));
                    self.report.add(headers.item(index), problem, format_args!("it follows {}", quote(header)));
                }
                Some(Place::Builtin) | None => {
                    let problem = format_args!("there is no imported format {}", quote(name));
                    self.report.add(headers.item(index), problem, "name one of `formats`");
                }
            }
            front = name;
        }
        let presets = path.member("presets");
        self.report.at_most(presets, template.presets.len(), MAX_PRESETS);
        for (index, (field, _)) in template.presets.iter().enumerate() {
            let item = presets.item(index);
            self.written_field(item, *field);
            let Some(name) = self.image.fields.get(usize::from(*field)) else { continue };
            let format = name.format.as_str();
            if !FRAME_FORMATS.contains(&format)
                && format != transport
                && !template.headers.iter().any(|it| it == format)
            {
                let problem = format_args!("the packet has no header {}", quote(format));
                self.report.add(item, problem, "preset fields of the template's headers");
            }
        }
    }

    fn creation(&mut self) {
        let creations = Path::Root.member("creation");
        self.report.at_most(creations, self.image.creation.len(), MAX_CREATIONS);
        let mut seen = BTreeSet::new();
        for (index, creation) in self.image.creation.iter().enumerate() {
            let path = creations.item(index);
            self.slot(path.member("slot"), creation.slot);
            let template = usize::from(creation.template);
            if self.report.index(path.member("template"), "template", template, self.image.templates.len()) {
                let transport = self.image.templates[template].transport;
                if !seen.insert((creation.slot, transport_name(transport))) {
                    let problem = format_args!("slot {} has a packet of this transport already", creation.slot);
                    self.report.add(path.member("slot"), problem, "use one template a slot and transport");
                }
            }
        }
    }
}

fn transport_name(transport: TemplateTransport) -> &'static str {
    match transport {
        TemplateTransport::Tcp => "tcp",
        TemplateTransport::Udp => "udp",
    }
}
