//! Which super-frames need not be cut: those whose segments all get the same.

use crate::pipeline::Column;
use weftwire_core::wire::PROTOCOL_TCP;
use weftwire_core::{Format, FormatPlace};
use weftwire_subscribe::compiler::Compiler;
use weftwire_subscribe::formats::{HeaderId, MessageFormats, Place};

/// Fields that differ between the segments of a TCP super-frame, see [`weftwire_core::segments`].
const DIFFERENT: [(&str, &[&str]); 3] = [
    ("ipv4", &["total_length", "identification", "checksum"]),
    ("ipv6", &["payload_length"]),
    ("tcp", &["sequence", "checksum", "flags", "cwr", "psh", "fin"]),
];

/// Whether every TCP super-frame gets from these columns what each of its segments would get, and no state counts its
/// segments.
pub fn alike(compiler: &Compiler, columns: &[Column]) -> bool {
    let formats = compiler.formats();
    let no_batch = formats.batch_header().is_none_or(|(id, _)| absent(formats, id));
    no_batch && compiler.states().is_empty() && columns.iter().all(|column| same(formats, *column))
}

fn same(formats: &MessageFormats, column: Column) -> bool {
    let (header, field) = match column {
        Column::Present(header) => (header, None),
        Column::Low(id) | Column::High(id) => (formats.field(id).header, Some(formats.field(id).name.as_str())),
    };
    if absent(formats, header) {
        return true;
    }
    let name = formats.header(header).name.as_str();
    match (name, field) {
        _ if import(formats, header).is_some() => false,
        ("ethernet" | "vlan", _) | ("ipv4" | "ipv6" | "tcp", None) => true,
        (_, Some(field)) => DIFFERENT.iter().any(|(known, fields)| *known == name && !fields.contains(&field)),
        _ => false,
    }
}

/// Whether no TCP packet has the header.
fn absent(formats: &MessageFormats, header: HeaderId) -> bool {
    let of_name = |name: &str| match name {
        "udp" | "arp" => true,
        _ => formats.header_named(name).is_some_and(|front| front < header && absent(formats, front)),
    };
    match &formats.header(header).place {
        Place::Nowhere => true,
        Place::Message { of, .. } => absent(formats, *of),
        Place::Behind { header: front, .. } => front < &header && absent(formats, *front),
        Place::Packet(_) => match import(formats, header).map(|format| &format.place) {
            Some(FormatPlace::After { header: front, when }) => {
                let other = when.as_ref().is_some_and(|(header, field, value)| {
                    let tells =
                        matches!((header.as_str(), field.as_str()), ("ipv4", "protocol") | ("ipv6", "next_header"));
                    (tells && *value != u64::from(PROTOCOL_TCP)) || of_name(header)
                });
                other || of_name(front)
            }
            _ => matches!(formats.header(header).name.as_str(), "udp" | "arp"),
        },
    }
}

/// What the packet parser knows of a header that is not built in.
fn import(formats: &MessageFormats, header: HeaderId) -> Option<&Format> {
    formats.packet_formats().imports().find(|format| formats.header_named(&format.name) == Some(header))
}
