//! Header fields: built-in and imported formats, and where a field of the image is.

use super::Lowerer;
use super::types::{self, Type};
use crate::ast::{ImportedHeader, Name};
use crate::parser::too_much_text;
use std::rc::Rc;
use weftwire_core::format::{Format as CoreFormat, MAX_IMPORTED, builtin_formats};
use weftwire_core::p4;
use weftwire_image::{FieldName, Format, FormatField, Place, RegisterType, limits};
use weftwire_text::diagnostic::{Diagnostic, list, nearest, nearest_or_begun};
use weftwire_text::source::MAX_TEXT;

/// Where a field is: format, offset, width and TCP option.
pub(crate) type FieldPosition = (String, u32, u16, Option<u8>);

/// Whether writing one field can change the other.
pub(crate) fn overlap(one: &FieldPosition, other: &FieldPosition) -> bool {
    let pseudo = |position: &FieldPosition| matches!(position.0.as_str(), "network" | "transport");
    if pseudo(one) || pseudo(other) {
        return true;
    }
    // Setting UDP's length resizes the payload, so that fields behind it come and go.
    let resizes = |position: &FieldPosition| position.0 == "udp";
    one.0 == other.0 && one.3 == other.3 && one.1 < other.1 + u32::from(other.2) && other.1 < one.1 + u32::from(one.2)
        || resizes(one)
        || resizes(other)
}

impl Lowerer<'_> {
    pub(super) fn import(&mut self, file: &Name, headers: &[ImportedHeader]) {
        let Some(types) = self.p4_file(file) else { return };
        for header in headers {
            if self.full() {
                return;
            }
            self.import_header(file, header, &types);
        }
    }

    /// The headers of a `.p4` file; each file is read once.
    fn p4_file(&mut self, file: &Name) -> Option<Rc<Vec<p4::HeaderType>>> {
        let from = self.sources.file(file.span).map(|file| file.name.clone());
        let resolved = self.loader.resolve(&file.text, from.as_deref());
        if let Some(types) = self.p4_files.get(&resolved) {
            return Some(Rc::clone(types));
        }
        let text = match self.loader.load(&file.text, from.as_deref()) {
            Ok(text) => text,
            Err(why) => {
                self.report(Diagnostic::error(file.span, format!("can't read `{}`: {why}", file.text)));
                return None;
            }
        };
        if self.sources.length() + self.p4_bytes + text.len() > MAX_TEXT {
            self.report(too_much_text(file.span, &file.text, text.len()));
            return None;
        }
        self.p4_bytes += text.len();
        let types = match p4::parse_headers(&text) {
            Ok(types) => Rc::new(types),
            Err(errors) => {
                for error in errors {
                    let message = format!("{}:{}:{}: {}", file.text, error.line, error.column, error.message);
                    self.report(Diagnostic::error(file.span, message).help(error.help));
                }
                return None;
            }
        };
        self.p4_files.insert(resolved, Rc::clone(&types));
        Some(types)
    }

    fn import_header(&mut self, file: &Name, header: &ImportedHeader, types: &[p4::HeaderType]) {
        if self.image.formats.iter().filter(|format| format.place != Place::Builtin).count() == MAX_IMPORTED {
            return self.too_many(header.header.span, "imported headers", MAX_IMPORTED);
        }
        let Some(found) = types.iter().find(|known| known.name == header.header.text) else {
            let names = list(types.iter().map(|known| known.name.as_str()));
            let message = format!("`{}` declares no header `{}`", file.text, header.header.text);
            self.report(Diagnostic::error(header.header.span, message).help(format!("it declares {names}")));
            return;
        };
        if found.fields.len() > limits::MAX_FORMAT_FIELDS {
            let message = format!("`{}` has {} fields", header.header.text, found.fields.len());
            let help = format!("an imported header has at most {}", limits::MAX_FORMAT_FIELDS);
            self.report(Diagnostic::error(header.header.span, message).help(help));
            return;
        }
        if let Some(field) = found.fields.iter().find(|field| field.name.len() > limits::MAX_NAME) {
            let message = format!("a field of `{}` has a name of {} letters", header.header.text, field.name.len());
            let help = format!("names of fields have at most {}", limits::MAX_NAME);
            self.report(Diagnostic::error(header.header.span, message).help(help));
            return;
        }
        let known = |name: &str| builtin_formats().iter().any(|format| format.name == name);
        if known(&header.alias.text) || self.image.formats.iter().any(|format| format.name == header.alias.text) {
            let message = format!("there is a header `{}` already", header.alias.text);
            self.report(
                Diagnostic::error(header.alias.span, message).help("name it otherwise: `HEADER as NAME after ...`"),
            );
            return;
        }
        let imported = self.image.formats.iter().any(|f| f.name == header.after.text && f.place != Place::Builtin);
        if !known(&header.after.text) && !imported {
            let message = format!("there is no header `{}` for this one to follow", header.after.text);
            self.report(
                Diagnostic::error(header.after.span, message).help("name a built-in header, or one imported above"),
            );
            return;
        }
        if let Some(variant) = found.invariant_crc() {
            if header.after.text != "udp" {
                let message =
                    format!("`{}` is annotated `@invariant_crc`, and follows `{}`", found.name, header.after.text);
                let help = "only packets with such a header directly `after udp` end in an invariant CRC";
                self.report(Diagnostic::error(header.after.span, message).help(help));
                return;
            }
            let wide = found.fields.iter().find(|field| field.width > 64 && variant.contains(&field.name));
            if let Some(field) = wide {
                let message =
                    format!("`{}.{}` is annotated `@variant` and {} bits wide", found.name, field.name, field.width);
                let help = "a variant field has at most 64 bits; declare several";
                self.report(Diagnostic::error(header.header.span, message).help(help));
                return;
            }
        }
        let when = match &header.when {
            None => None,
            Some((path, expression)) => {
                let [format, field] = &path[..] else {
                    self.report(Diagnostic::error(expression.span, "the test is written `header.field == value`"));
                    return;
                };
                let Some((index, kind)) = self.field(format, field) else { return };
                let equals = self.constant_of(expression, kind);
                Some(weftwire_image::When { field: self.image.fields[usize::from(index)].clone(), equals })
            }
        };
        for (field, kind) in &header.types {
            self.field_type(&header.alias, found, field, kind);
        }
        let fields = found.fields.iter().filter(|field| field.width <= 64).map(|field| FormatField {
            name: field.name.clone(),
            offset: field.offset,
            width: field.width,
            option: None,
        });
        self.image.formats.push(Format {
            name: header.alias.text.clone(),
            length: found.length(),
            fields: fields.collect(),
            place: Place::After { header: header.after.text.clone(), when },
            invariant_crc: found.invariant_crc(),
        });
    }

    /// `with FIELD: type` of an import.
    fn field_type(&mut self, header: &Name, found: &p4::HeaderType, field: &Name, kind: &Name) {
        let Some((type_, register)) = types::named(&kind.text) else { return self.unknown_type(kind) };
        let Some(known) = found.fields.iter().find(|known| known.name == field.text) else {
            let message = format!("`{}` has no field `{}`", found.name, field.text);
            let names = found.fields.iter().map(|known| known.name.as_str());
            self.report(Diagnostic::error(field.span, message).help(format!("its fields are {}", list(names))));
            return;
        };
        // A field of a type has all its bits, or is a number that the type holds.
        let bits = match register {
            RegisterType::Bool => 1,
            other => (other.cut(-1) as u64).count_ones() as u16,
        };
        if !(known.width == bits || type_.is_number() && known.width < bits) {
            let message = format!("`{}` is {} bits wide, a {} has {bits}", field.text, known.width, kind.text);
            self.report(Diagnostic::error(kind.span, message));
            return;
        }
        let name = FieldName { format: header.text.clone(), field: field.text.clone() };
        if self.field_types.insert(name, type_).is_some() {
            self.report(Diagnostic::error(field.span, format!("`{}` has two types", field.text)));
        }
    }

    /// Index and type of a header field that fits a register.
    pub(crate) fn field(&mut self, header: &Name, field: &Name) -> Option<(u16, Type)> {
        let (index, kind, width) = self.field_any_width(header, field)?;
        if width > 64 {
            let message = format!("`{}.{}` is {width} bits wide; values have 64", header.text, field.text);
            self.report(
                Diagnostic::error(header.span.to(field.span), message)
                    .help("such fields can stand only in the flow key"),
            );
            return None;
        }
        Some((index, kind))
    }

    pub(super) fn field_any_width(&mut self, header: &Name, field: &Name) -> Option<(u16, Type, u16)> {
        if !self.image.formats.iter().any(|format| format.name == header.text) {
            match builtin_formats().iter().find(|format| format.name == header.text) {
                Some(format) => self.image.formats.push(builtin(format)),
                None => {
                    let mut error = Diagnostic::error(header.span, format!("`{}` is no header", header.text));
                    let builtin = builtin_formats().iter().map(|format| format.name.as_str());
                    let imported = self.image.formats.iter().filter(|format| format.place != Place::Builtin);
                    let names: Vec<&str> = builtin.chain(imported.map(|format| format.name.as_str())).collect();
                    error = match nearest(&header.text, names.iter().copied()) {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error.help(format!("headers are {}", list(names))),
                    };
                    self.report(error);
                    return None;
                }
            }
        }
        let format = self.image.formats.iter().find(|format| format.name == header.text)?;
        let Some(found) = format.fields.iter().find(|known| known.name == field.text) else {
            let names = format.fields.iter().map(|known| known.name.as_str());
            let mut error = Diagnostic::error(field.span, format!("`{}` has no field `{}`", header.text, field.text));
            error = match nearest_or_begun(&field.text, names.clone()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("its fields are {}", list(names))),
            };
            self.report(error);
            return None;
        };
        let width = found.width;
        let name = FieldName { format: header.text.clone(), field: field.text.clone() };
        let kind = match self.field_types.get(&name) {
            _ if self.untyped => Type::Integer,
            Some(declared) => *declared,
            None => types::of_field(&header.text, &field.text, width),
        };
        let fields = &mut self.image.fields;
        let index = *self.field_numbers.entry(name).or_insert_with_key(|name| {
            fields.push(name.clone());
            (fields.len() - 1) as u16
        });
        Some((index, kind, width))
    }

    /// The first field of a header, if there is such a header.
    pub(crate) fn first_field(&self, header: &str) -> Option<String> {
        let imported = self.image.formats.iter().find(|format| format.name == header);
        let field = imported.and_then(|format| format.fields.first()).map(|field| field.name.clone());
        field.or_else(|| {
            let format = builtin_formats().iter().find(|format| format.name == header)?;
            format.fields.iter().find(|field| field.width <= 64).map(|field| field.name.clone())
        })
    }

    /// Where a field of the image is.
    pub(crate) fn place(&self, name: &FieldName) -> FieldPosition {
        let format = self.image.formats.iter().find(|format| format.name == name.format);
        let field = format.and_then(|format| format.fields.iter().find(|field| field.name == name.field));
        let (offset, width, option) = field.map_or((0, 0, None), |field| (field.offset, field.width, field.option));
        (name.format.clone(), offset, width, option)
    }
}

/// A built-in format as the image writes it.
fn builtin(format: &CoreFormat) -> Format {
    let fields = format.fields.iter().map(|field| FormatField {
        name: field.name.clone(),
        offset: field.offset,
        width: field.width,
        option: field.option,
    });
    let (name, length, place) = (format.name.clone(), format.length, Place::Builtin);
    Format { name, length, fields: fields.collect(), place, invariant_crc: None }
}
