//! The image's formats as the packet parser takes them, and what is known of fields by their names.

use crate::types::{FieldName, Format, FormatField, Place};
use weftwire_core::format as core;

impl From<&Format> for core::Format {
    fn from(format: &Format) -> core::Format {
        let field = |field: &FormatField| core::FormatField {
            name: field.name.clone(),
            offset: field.offset,
            width: field.width,
            option: field.option,
        };
        let place = match &format.place {
            Place::Builtin => core::FormatPlace::Builtin,
            Place::After { header, when } => core::FormatPlace::After {
                header: header.clone(),
                // A field's bits are an unsigned number; a 64-bit one may look negative in the document.
                when: when.as_ref().map(|it| (it.field.format.clone(), it.field.field.clone(), it.equals as u64)),
            },
        };
        core::Format {
            name: format.name.clone(),
            length: format.length,
            fields: format.fields.iter().map(field).collect(),
            place,
            invariant_crc: format.invariant_crc.clone(),
        }
    }
}

impl FieldName {
    /// Whether the field is known of a flow's packets before there is one: an address, a port or the protocol. A flow
    /// that the application opens has no other fields in its key (semantics, rule F17).
    pub fn known_to_connect(&self) -> bool {
        let fields: &[&str] = match self.format.as_str() {
            "network" | "ipv4" => &["source", "destination", "protocol"],
            "ipv6" => &["source", "destination", "next_header"],
            "transport" | "tcp" | "udp" => &["source_port", "destination_port"],
            _ => &[],
        };
        fields.contains(&self.field.as_str())
    }
}
