//! Header formats, the fields the image names, the flow key, templates and creation.

use super::Verifier;
use super::report::{Path, quote};
use crate::limits::*;
use crate::types::{Event, Place, Template, TemplateTransport};
use std::collections::BTreeSet;
use weftwire_core::format::{self as core, FieldPlace, Formats};

/// Fields that no operation may write: they say what the packet is (semantics, rule P15).
const FIXED_FIELDS: [(&str, &str); 6] = [
    ("network", "protocol"),
    ("network", "version"),
    ("ipv4", "version"),
    ("ipv4", "header_length"),
    ("ipv6", "version"),
    ("tcp", "data_offset"),
];

/// TCP options a template may have: MSS, window scale, SACK permitted, timestamps.
const TEMPLATE_OPTIONS: [u8; 6] = [OPTION_NOP, 2, 3, 4, 5, 8];
/// Kind of the TCP option that is only padding: a template may have it more than once.
const OPTION_NOP: u8 = 1;

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

    /// Formats are taken in one by one, as the packet parser will, so that each error has its place.
    fn formats(&mut self) {
        let path = Path::Root.member("formats");
        let mut taken: Vec<core::Format> = Vec::new();
        for (index, format) in self.image.formats.iter().take(MAX_FORMATS).enumerate() {
            let item = path.item(index);
            if format.fields.len() > MAX_FORMAT_FIELDS {
                self.report.at_most(item.member("fields"), format.fields.len(), MAX_FORMAT_FIELDS);
                continue;
            }
            for (index, field) in format.fields.iter().enumerate() {
                let fields = item.member("fields");
                self.name(fields.item(index), &field.name);
            }
            taken.push(format.into());
            match Formats::new(&taken) {
                Ok(formats) => self.formats = formats,
                Err(error) => {
                    taken.pop();
                    self.report.add(item, error, "correct the format, or copy the built-in definition");
                }
            }
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

    /// The width of a field by its index; `None` if there is no such field (which is reported elsewhere).
    fn width(&self, field: u16) -> Option<u16> {
        let name = self.image.fields.get(usize::from(field))?;
        self.formats.field(&name.format, &name.field).map(FieldPlace::width)
    }

    /// A field that is read or written as a value: at most 64 bits.
    pub(super) fn value_field(&mut self, path: Path<'_>, field: u16) {
        let good = self.report.index(path, "field", usize::from(field), self.image.fields.len());
        if good && self.width(field).is_some_and(|width| width > 64) {
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
                if connects && !name.known_to_connect() {
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
            if let (Some(one), Some(other)) = (self.width(*one), self.width(*other))
                && one != other
            {
                let (problem, remedy) = (format!("{other} bits"), format!("{one} bits as in `source`"));
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
                let remedy = "use 1 (NOP), 2 (MSS), 3 (window scale), 4 (SACK permitted), 5 (SACK) or 8 (timestamps)";
                self.report.add(options.item(index), format_args!("option kind {kind}"), remedy);
            } else if *kind != OPTION_NOP && !seen.insert(kind) {
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
