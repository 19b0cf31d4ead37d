//! Header formats: what fields a header has, and where the header is found.

use crate::bits;
use crate::p4;
use crate::wire::tcp;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// A field of a format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormatField {
    /// Its name.
    pub name: String,
    /// Bits from the start of the header, or of the option's kind byte, to the field's most significant bit.
    pub offset: u32,
    /// Width in bits: 1 to 64 anywhere, or 128 on a byte boundary.
    pub width: u16,
    /// Kind number of the TCP option the field lives in; `None`: the header's fixed part.
    pub option: Option<u8>,
}

/// A header format: what P4_16 calls a header type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Format {
    /// Its name.
    pub name: String,
    /// Length of the fixed part in bits, a multiple of 8.
    pub length: u32,
    /// Its fields.
    pub fields: Vec<FormatField>,
    /// Where it is found.
    pub place: FormatPlace,
    /// Whether a packet with this header, which directly follows UDP, ends in an invariant CRC (`docs/semantics.md`, rule
    /// P28): the names of those of its fields that may change on the way, and so count as ones.
    pub invariant_crc: Option<Vec<String>>,
}

/// Where a header is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FormatPlace {
    /// By the built-in parser.
    Builtin,
    /// Directly behind another header's last byte: TCP and IPv4 with their options, IPv6 with its extension headers.
    After {
        /// Name of the header in front: a built-in one, or an imported one that stands earlier.
        header: String,
        /// Only if this field (format, field) of the same packet has this value.
        when: Option<(String, String, u64)>,
    },
}

/// Most formats that can be imported at once.
pub const MAX_IMPORTED: usize = 16;

/// Why formats were refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FormatError {
    /// A name is taken, by another import or a built-in format.
    #[error("format `{0}` is there twice; give each import a name of its own")]
    DuplicateFormat(String),
    /// A format has two fields of one name.
    #[error("format `{format}` has two fields named `{field}`")]
    DuplicateField {
        /// The format.
        format: String,
        /// The field.
        field: String,
    },
    /// The header in front is neither built in nor imported before.
    #[error("format `{format}` follows `{header}`, which is neither built in nor imported before it")]
    UnknownHeader {
        /// The format.
        format: String,
        /// The header in front.
        header: String,
    },
    /// The field that `when` tests does not exist.
    #[error("format `{format}` depends on `{header}.{field}`, which does not exist or is declared later")]
    UnknownField {
        /// The format.
        format: String,
        /// Format of the missing field.
        header: String,
        /// The missing field.
        field: String,
    },
    /// A field's width is 0 or too great.
    #[error("`{format}.{field}` is {width} bits wide; a field has 1 to 64 bits, or 128 on a byte boundary")]
    Width {
        /// The format.
        format: String,
        /// The field.
        field: String,
        /// Its width.
        width: u16,
    },
    /// A field reaches beyond the header.
    #[error("`{format}.{field}` ends {end} bits into a header of {length} bits")]
    BeyondLength {
        /// The format.
        format: String,
        /// The field.
        field: String,
        /// Where the field ends.
        end: u64,
        /// The header's length.
        length: u32,
    },
    /// A header is empty, not a whole number of bytes, or longer than any packet.
    #[error("format `{format}` is {length} bits long; lengths are whole bytes, 1 to 65,535")]
    Length {
        /// The format.
        format: String,
        /// Its length in bits.
        length: u32,
    },
    /// An imported field claims to live in a TCP option.
    #[error("`{format}.{field}` is in a TCP option; only the built-in format `tcp` has such fields")]
    Option {
        /// The format.
        format: String,
        /// The field.
        field: String,
    },
    /// Packets cannot end in an invariant CRC because of this format.
    #[error(
        "packets with `{0}` can't end in an invariant CRC; only those with an imported header directly after `udp` can"
    )]
    InvariantCrc(String),
    /// A format says of a field that it has not got that it may change on the way.
    #[error("format `{format}` has no field `{field}` that could be variant")]
    Variant {
        /// The format.
        format: String,
        /// The missing field.
        field: String,
    },
    /// A format claims to be built in and is not.
    #[error("format `{0}` is not the built-in format of that name; say behind which header it is found")]
    NotBuiltin(String),
    /// More formats than a packet's layout has room for.
    #[error("{0} imported formats; at most {MAX_IMPORTED} are possible")]
    TooMany(usize),
}

/// The built-in formats: those of `p4/builtin.p4`, what P4 header types cannot say of them, and the pseudo-headers.
pub fn builtin_formats() -> &'static [Format] {
    static FORMATS: OnceLock<Vec<Format>> = OnceLock::new();
    FORMATS.get_or_init(|| {
        let headers = p4::parse_headers(include_str!("../p4/builtin.p4")).expect("a test parses this file");
        let mut formats: Vec<Format> =
            headers.iter().map(|header| Format::from_p4(header, FormatPlace::Builtin)).collect();
        for format in &mut formats {
            match format.name.as_str() {
                "tcp" => format.fields.extend(tcp_fields()),
                "udp" => format.fields.extend((0..4).map(|n| field(&format!("word_{}", n + 1), 64 + 32 * n, 32, None))),
                _ => {}
            }
        }
        formats.push(pseudo("network", &[("source", 128), ("destination", 128), ("protocol", 8), ("version", 8)]));
        formats.push(pseudo("transport", &[("source_port", 16), ("destination_port", 16)]));
        formats
    })
}

impl Format {
    /// The format of a P4 header type.
    pub fn from_p4(header: &p4::HeaderType, place: FormatPlace) -> Format {
        let fields = header.fields.iter().map(|f| field(&f.name, f.offset, f.width, None)).collect();
        let invariant_crc = header.invariant_crc();
        Format { name: header.name.clone(), length: header.length(), fields, place, invariant_crc }
    }

    /// What counts as ones in the invariant CRC, as bits of the header.
    fn variant(&self) -> Option<Arc<[u8]>> {
        let names = self.invariant_crc.as_ref()?;
        let mut mask = vec![0; (self.length / 8) as usize];
        for field in self.fields.iter().filter(|field| names.contains(&field.name)) {
            bits::write(&mut mask, field.offset as usize, field.width.into(), u128::MAX);
        }
        Some(mask.into())
    }
}

fn field(name: &str, offset: u32, width: u16, option: Option<u8>) -> FormatField {
    FormatField { name: name.to_owned(), offset, width, option }
}

/// The flags as one number, and the fields of options.
fn tcp_fields() -> Vec<FormatField> {
    let mut fields = vec![
        field("flags", 104, 8, None),
        field("mss", 16, 16, Some(tcp::OPTION_MSS)),
        field("window_scale", 16, 8, Some(tcp::OPTION_WINDOW_SCALE)),
        // The kind byte: this option has no data, so that only its presence tells anything.
        field("sack_permitted", 0, 8, Some(tcp::OPTION_SACK_PERMITTED)),
        field("timestamp", 16, 32, Some(tcp::OPTION_TIMESTAMPS)),
        field("timestamp_echo", 48, 32, Some(tcp::OPTION_TIMESTAMPS)),
    ];
    for block in 0..4 {
        fields.push(field(&format!("sack_left_{}", block + 1), 16 + 64 * block, 32, Some(tcp::OPTION_SACK)));
        fields.push(field(&format!("sack_right_{}", block + 1), 48 + 64 * block, 32, Some(tcp::OPTION_SACK)));
    }
    fields
}

fn pseudo(name: &str, widths: &[(&str, u16)]) -> Format {
    let mut length = 0;
    let mut fields = Vec::new();
    for (name, width) in widths {
        fields.push(field(name, length, *width, None));
        length += u32::from(*width);
    }
    Format { name: name.to_owned(), length, fields, place: FormatPlace::Builtin, invariant_crc: None }
}

/// The formats a packet is parsed with: the built-in ones and the imported ones, resolved.
#[derive(Clone, Debug, Default)]
pub struct Formats {
    imported: Vec<Imported>,
}

/// An imported format with its place resolved.
#[derive(Clone, Debug)]
pub(crate) struct Imported {
    format: Format,
    pub(crate) behind: Header,
    pub(crate) when: Option<(FieldPlace, u64)>,
    /// Of a header with which a packet ends in an invariant CRC: what of it counts as ones.
    pub(crate) variant: Option<Arc<[u8]>>,
}

impl Imported {
    /// Length in bytes.
    pub(crate) fn length(&self) -> usize {
        (self.format.length / 8) as usize
    }
}

impl Formats {
    /// Resolves imported formats, in order. Entries with [`FormatPlace::Builtin`] must be the built-in format of their
    /// name and change nothing.
    ///
    /// # Errors
    /// See [`FormatError`].
    pub fn new(imported: &[Format]) -> Result<Formats, FormatError> {
        let mut formats = Formats::default();
        for format in imported {
            formats.import(format)?;
        }
        Ok(formats)
    }

    fn import(&mut self, format: &Format) -> Result<(), FormatError> {
        let name = || format.name.clone();
        let FormatPlace::After { header, when } = &format.place else {
            return if builtin_formats().contains(format) { Ok(()) } else { Err(FormatError::NotBuiltin(name())) };
        };
        if self.header(&format.name).is_some() {
            return Err(FormatError::DuplicateFormat(name()));
        }
        if self.imported.len() == MAX_IMPORTED {
            return Err(FormatError::TooMany(MAX_IMPORTED + 1));
        }
        check(format)?;
        let behind =
            self.header(header).ok_or_else(|| FormatError::UnknownHeader { format: name(), header: header.clone() })?;
        let when = match when {
            None => None,
            Some((header, field, value)) => {
                let place = self.field(header, field).ok_or_else(|| FormatError::UnknownField {
                    format: name(),
                    header: header.clone(),
                    field: field.clone(),
                })?;
                Some((place, *value))
            }
        };
        if format.invariant_crc.is_some() && behind != Header::Udp {
            return Err(FormatError::InvariantCrc(name()));
        }
        self.imported.push(Imported { format: format.clone(), behind, when, variant: format.variant() });
        Ok(())
    }

    /// Where a field is, or `None` if there is no such format or field.
    pub fn field(&self, format: &str, field: &str) -> Option<FieldPlace> {
        let header = self.header(format)?;
        let fields = match header {
            Header::Imported(index) => &self.imported[usize::from(index)].format.fields,
            _ => &builtin_formats().iter().find(|known| known.name == format)?.fields,
        };
        let field = fields.iter().find(|known| known.name == field)?;
        Some(FieldPlace { header, option: field.option, offset: field.offset, width: field.width })
    }

    /// The number of an imported format, as [`crate::build::TemplateSpec`] names it.
    pub fn imported_index(&self, format: &str) -> Option<usize> {
        self.imported.iter().position(|known| known.format.name == format)
    }

    /// The imported formats in order.
    pub fn imports(&self) -> impl Iterator<Item = &Format> {
        self.imported.iter().map(|known| &known.format)
    }

    pub(crate) fn imported(&self) -> &[Imported] {
        &self.imported
    }

    fn header(&self, name: &str) -> Option<Header> {
        let builtin = match name {
            "ethernet" => Some(Header::Ethernet),
            "vlan" => Some(Header::Vlan),
            "arp" => Some(Header::Arp),
            "ipv4" => Some(Header::Ipv4),
            "ipv6" => Some(Header::Ipv6),
            "tcp" => Some(Header::Tcp),
            "udp" => Some(Header::Udp),
            "network" => Some(Header::Network),
            "transport" => Some(Header::Transport),
            _ => None,
        };
        // The index fits: there are at most MAX_IMPORTED.
        builtin.or_else(|| self.imported_index(name).map(|index| Header::Imported(index as u8)))
    }
}

fn check(format: &Format) -> Result<(), FormatError> {
    if format.length == 0 || !format.length.is_multiple_of(8) || format.length > 65_535 * 8 {
        return Err(FormatError::Length { format: format.name.clone(), length: format.length });
    }
    let mut known = BTreeSet::new();
    for field in &format.fields {
        let names = || (format.name.clone(), field.name.clone());
        if !known.insert(field.name.as_str()) {
            let (format, field) = names();
            return Err(FormatError::DuplicateField { format, field });
        }
        if field.option.is_some() {
            let (format, field) = names();
            return Err(FormatError::Option { format, field });
        }
        if !matches!((field.width, field.offset % 8), (1..=64, _) | (128, 0)) {
            let (format, name) = names();
            return Err(FormatError::Width { format, field: name, width: field.width });
        }
        let end = u64::from(field.offset) + u64::from(field.width);
        if end > u64::from(format.length) {
            let length = format.length;
            let (format, field) = names();
            return Err(FormatError::BeyondLength { format, field, end, length });
        }
    }
    let variant = format.invariant_crc.iter().flatten();
    if let Some(field) = variant.into_iter().find(|field| !known.contains(field.as_str())) {
        return Err(FormatError::Variant { format: format.name.clone(), field: field.clone() });
    }
    Ok(())
}

/// A header a packet may have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Header {
    Ethernet,
    Vlan,
    Arp,
    Ipv4,
    Ipv6,
    Tcp,
    Udp,
    /// IPv4 or IPv6.
    Network,
    /// TCP or UDP.
    Transport,
    Imported(u8),
}

/// A field, resolved: what [`crate::packet::Packet`] reads and writes by. Valid for the [`Formats`] that gave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FieldPlace {
    pub(crate) header: Header,
    pub(crate) option: Option<u8>,
    pub(crate) offset: u32,
    pub(crate) width: u16,
}

impl FieldPlace {
    /// Width in bits.
    pub fn width(self) -> u16 {
        self.width
    }

    /// Whether it is `udp.length`, the one field whose writing changes the packet's size.
    pub(crate) fn is_udp_length(self) -> bool {
        self.header == Header::Udp && self.offset == 32 && self.width == 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_formats_are_consistent() {
        for format in builtin_formats() {
            let formats = Formats::default();
            let mut end = 0;
            for field in &format.fields {
                let place = formats.field(&format.name, &field.name).unwrap();
                assert_eq!(place.width(), field.width, "{}.{}", format.name, field.name);
                if field.option.is_none() && field.name != "flags" && !field.name.starts_with("word_") {
                    assert_eq!(field.offset, end, "{}.{}", format.name, field.name);
                    end += u32::from(field.width);
                }
            }
            assert_eq!(end, format.length, "{}", format.name);
        }
        assert_eq!(builtin_formats().len(), 9);
    }

    fn import(text: &str, header: &str, when: Option<(&str, &str, u64)>) -> Vec<Format> {
        let when = when.map(|(format, field, value)| (format.to_owned(), field.to_owned(), value));
        let place = FormatPlace::After { header: header.to_owned(), when };
        p4::parse_headers(text).unwrap().iter().map(|header| Format::from_p4(header, place.clone())).collect()
    }

    #[test]
    fn refusals_say_why() {
        let refuse = |formats: Vec<Format>| Formats::new(&formats).unwrap_err().to_string();
        let fine = "header x { bit<8> a; bit<8> b; }";
        assert!(Formats::new(&import(fine, "udp", Some(("udp", "destination_port", 9)))).is_ok());
        assert!(refuse(import("header tcp { bit<8> a; }", "udp", None)).contains("`tcp` is there twice"));
        assert!(refuse(import(fine, "sctp", None)).contains("follows `sctp`"));
        assert!(refuse(import(fine, "udp", Some(("udp", "nothing", 1)))).contains("`udp.nothing`"));
        assert!(refuse(import("header x { bit<72> a; }", "udp", None)).contains("72 bits wide"));
        let mut short = import(fine, "udp", None);
        short[0].length = 8;
        assert!(refuse(short).contains("ends 16 bits into a header of 8"));
        let mut odd = import(fine, "udp", None);
        odd[0].length = 17;
        assert!(refuse(odd).contains("17 bits long"));
    }
}
