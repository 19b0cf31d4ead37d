//! Templates of packets, and the packets that a dialect program has without declaring them.

use super::ir::Ir;
use super::types::Type;
use super::{Lowerer, Scope, Symbol};
use crate::ast::{Item, Name, Program, Statement, StatementKind, TemplateDeclaration};
use weftwire_image::{Creation, Place, Template, TemplateTransport, limits};
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::source::Span;

/// Bytes of payload in the dialect's preset full packet.
const DIALECT_PAYLOAD: u16 = 1_448;
/// `tcp.flags` of the dialect's preset segments: ACK.
const DIALECT_FLAGS: i64 = 0x10;

/// Kind of the padding among TCP options.
const OPTION_NOP: u8 = 1;
/// Kind of selective acknowledgments.
const OPTION_SACK: u8 = 5;

impl Lowerer<'_> {
    fn template_option_kind(&mut self, name: &Name) -> Option<u8> {
        if name.text == "nop" { Some(OPTION_NOP) } else { self.option_kind(name) }
    }

    /// Whether each option of a template is there: a value each, none if all are. Conditions are read where the template is
    /// declared, and see no locals.
    pub(super) fn wanted_options(&mut self, template: u16, scope: &mut Scope) -> Vec<Ir> {
        let Some(wanted) = self.wanted_options.get(&template).cloned() else { return Vec::new() };
        if wanted.iter().all(Option::is_none) {
            return Vec::new();
        }
        let kinds = self.image.templates[usize::from(template)].tcp_options.clone();
        let locals = std::mem::take(&mut scope.locals);
        let values = self.within(String::new(), |lowerer| {
            let values = wanted.iter().zip(kinds).map(|(wanted, kind)| match wanted {
                None => Ir::constant(1),
                Some(count) if kind == OPTION_SACK => lowerer.typed(count, Type::Integer, scope),
                Some(condition) => lowerer.condition(condition, scope),
            });
            values.collect()
        });
        scope.locals = locals;
        values
    }

    /// Whether packets of the template may go without a field: one of an option that has a condition, or of the version of
    /// IP that the flow does not have.
    pub(super) fn may_lack(&self, template: u16, field: u16) -> bool {
        let name = &self.image.fields[usize::from(field)];
        let kind = match name.field.as_str() {
            _ if matches!(name.format.as_str(), "ipv4" | "ipv6") => return true,
            _ if name.format != "tcp" => return false,
            "mss" => 2,
            "window_scale" => 3,
            "sack_permitted" => 4,
            "timestamp" | "timestamp_echo" => 8,
            other if other.starts_with("sack_") => OPTION_SACK,
            _ => return false,
        };
        let kinds = &self.image.templates[usize::from(template)].tcp_options;
        let wanted = self.wanted_options.get(&template).into_iter().flatten();
        kinds.iter().zip(wanted).any(|(known, wanted)| *known == kind && wanted.is_some())
    }

    pub(super) fn template(&mut self, declaration: &TemplateDeclaration) {
        let Some(transport_name) = declaration.headers.first() else { return };
        let transport = match transport_name.text.as_str() {
            "tcp" => TemplateTransport::Tcp,
            "udp" => TemplateTransport::Udp,
            other => {
                let message = format!("a template starts with `tcp` or `udp`, not `{other}`");
                self.report(Diagnostic::error(transport_name.span, message));
                return;
            }
        };
        if self.image.templates.len() >= limits::MAX_TEMPLATES {
            return self.too_many(declaration.name.span, "templates", limits::MAX_TEMPLATES);
        }
        let mut headers: Vec<String> = Vec::new();
        for header in &declaration.headers[1..] {
            if headers.len() >= limits::MAX_TEMPLATE_PARTS {
                return self.too_many(header.span, "headers in a template", limits::MAX_TEMPLATE_PARTS);
            }
            match self.image.formats.iter().find(|format| format.name == header.text && format.place != Place::Builtin)
            {
                Some(format) => {
                    let front = headers.last().map_or(transport_name.text.as_str(), String::as_str);
                    if let Place::After { header: wanted, .. } = &format.place
                        && wanted != front
                        && !(headers.is_empty() && wanted == "transport")
                    {
                        let message = format!("`{}` stands behind `{front}` here", header.text);
                        let help = format!("its import says that it follows `{wanted}`");
                        self.report(Diagnostic::error(header.span, message).help(help));
                        return;
                    }
                    headers.push(format.name.clone());
                }
                None => {
                    let message = format!("`{}` is no imported header", header.text);
                    self.report(Diagnostic::error(header.span, message).help("import it from a .p4 file first"));
                }
            }
        }
        if let Some(option) = declaration.options.first().filter(|_| transport == TemplateTransport::Udp) {
            self.report(Diagnostic::error(option.name.span, "UDP has no options"));
        }
        let (mut tcp_options, mut wanted) = (Vec::new(), Vec::new());
        for option in &declaration.options {
            if tcp_options.len() >= limits::MAX_TEMPLATE_PARTS {
                return self.too_many(option.name.span, "options in a template", limits::MAX_TEMPLATE_PARTS);
            }
            let Some(kind) = self.template_option_kind(&option.name) else { continue };
            if kind != OPTION_NOP && tcp_options.contains(&kind) {
                let message = format!("the option `{}` stands here twice", option.name.text);
                self.report(Diagnostic::error(option.name.span, message));
                continue;
            }
            if kind == OPTION_SACK && option.wanted.is_none() {
                let error = Diagnostic::error(option.name.span, "how many blocks does it have?");
                self.report(error.help("write `sack COUNT`: with 0 the option is left out"));
            }
            tcp_options.push(kind);
            wanted.push(option.wanted.clone());
        }
        let payload =
            declaration.payload.as_ref().map_or(0, |length| self.bounded(length, Type::Integer, 0, 65_000) as u16);
        let mut presets = Vec::new();
        for (path, value) in &declaration.fields {
            if presets.len() >= limits::MAX_PRESETS {
                return self.too_many(value.span, "fields in a template", limits::MAX_PRESETS);
            }
            let [header, field] = &path[..] else {
                self.report(Diagnostic::error(value.span, "a template's fields are written `header.field`"));
                continue;
            };
            let foreign = |name: &str| match name {
                "ethernet" | "vlan" | "ipv4" | "ipv6" | "network" | "transport" => false,
                _ => name != transport_name.text && !headers.iter().any(|known| known == name),
            };
            let target =
                self.field(header, field).filter(|(index, _)| self.writable(*index, header.span.to(field.span)));
            if target.is_some() && foreign(&header.text) {
                let message = format!("this template has no header `{}`", header.text);
                self.report(Diagnostic::error(header.span, message).help("name it behind the template's `:`"));
                continue;
            }
            if let Some((index, kind)) = target {
                let constant = self.constant_of(value, kind);
                self.check_field_constant(index, &super::ir::Ir::constant(constant), value.span);
                presets.push((index, constant));
            }
        }
        self.declare(&declaration.name, Symbol::Template(self.image.templates.len() as u16));
        self.wanted_options.insert(self.image.templates.len() as u16, wanted);
        let name = declaration.name.text.clone();
        self.image.templates.push(Template { name, transport, tcp_options, headers, payload, presets });
    }

    /// The dialect's numbered slots, as many as the program names, and the packets that `connect` presets.
    pub(super) fn dialect_slots(&mut self, program: &Program) {
        let mut highest = None;
        for_each_slot(program, &mut |slot| highest = highest.max(Some(slot)));
        let Some(highest) = highest else { return };
        for slot in 0..=highest {
            self.add_slot(&Name { text: slot.to_string(), span: Span::default() });
        }
        if highest == 0 {
            return;
        }
        // Every segment of a connection but the first has ACK set (RFC 9293, section 3.1): others are dropped.
        let name = |text: &str| Name { text: text.to_string(), span: Span::default() };
        let flags = self.field_any_width(&name("tcp"), &name("flags")).map(|(index, ..)| (index, DIALECT_FLAGS));
        let template = |name: &str, transport, options: &[u8], payload| Template {
            name: name.to_string(),
            transport,
            tcp_options: options.to_vec(),
            headers: Vec::new(),
            payload,
            presets: flags.filter(|_| transport == TemplateTransport::Tcp).into_iter().collect(),
        };
        let presets = [
            (1, template("empty segment", TemplateTransport::Tcp, &[8], 0)),
            (1, template("datagram", TemplateTransport::Udp, &[], DIALECT_PAYLOAD)),
            (2, template("full segment", TemplateTransport::Tcp, &[8], DIALECT_PAYLOAD)),
            (2, template("full datagram", TemplateTransport::Udp, &[], DIALECT_PAYLOAD)),
        ];
        for (slot, template) in presets {
            if slot <= highest {
                let index = self.image.templates.len() as u16;
                self.image.templates.push(template);
                self.image.creation.push(Creation { slot, template: index });
            }
        }
    }
}

/// Calls `visit` with every numbered slot that a dialect program names.
fn for_each_slot(program: &Program, visit: &mut dyn FnMut(u8)) {
    fn walk(statements: &[Statement], visit: &mut dyn FnMut(u8)) {
        for statement in statements {
            let name = match &statement.kind {
                StatementKind::Send { packet, .. } => Some(&packet.name),
                StatementKind::Store { slot, .. } | StatementKind::Discard { slot } => Some(slot),
                StatementKind::Assign { target, .. } => target.first().filter(|_| target.len() == 3),
                StatementKind::If { branches, .. } => {
                    branches.iter().for_each(|branch| walk(&branch.body, visit));
                    None
                }
                _ => None,
            };
            if let Some(slot) = name.and_then(|name| name.text.parse().ok()) {
                visit(slot);
            }
        }
    }
    for item in &program.items {
        match item {
            Item::Action(action) => walk(&action.body, visit),
            Item::State(state) => {
                walk(&state.enter, visit);
                state.handlers.iter().for_each(|handler| walk(&handler.body, visit));
            }
            _ => {}
        }
    }
}
