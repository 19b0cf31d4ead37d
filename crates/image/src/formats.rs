//! The image's formats as the packet parser takes them.

use crate::types::{Format, FormatField, Place};
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
        }
    }
}
