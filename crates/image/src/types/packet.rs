//! Formats of headers, and packets that are built.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A header format: what P4_16 calls a header type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Format {
    /// Its name in this image.
    pub name: String,
    /// Length of the fixed part in bits, a multiple of 8.
    pub length: u32,
    /// Its fields.
    pub fields: Vec<FormatField>,
    /// Where it is found.
    pub place: Place,
    /// Present: a packet with this header, which directly follows UDP, ends in an invariant CRC. Names of those of its fields
    /// that may change on the way, and so count as ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invariant_crc: Option<Vec<String>>,
}

/// A field of a format.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatField {
    /// Its name.
    pub name: String,
    /// Bits from the start of the header, or of the option, to the field's most significant bit.
    pub offset: u32,
    /// Width in bits: 1 to 64, or 128 for addresses, which only flow keys may use.
    pub width: u16,
    /// Kind number of the TCP option the field lives in; absent: the header's fixed part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<u8>,
}

/// Where a header is found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// By the built-in parser; name, length and fields are those of the built-in format.
    Builtin,
    /// Directly behind another header's last byte.
    After {
        /// Name of the header in front: a built-in one, or an imported one that stands earlier in `formats`.
        header: String,
        /// Only if this field of the same packet has this value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        when: Option<When>,
    },
}

/// A test on a field.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Format and field.
    pub field: FieldName,
    /// The value it must have.
    pub equals: i64,
}

/// A field by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldName {
    /// Format's name.
    pub format: String,
    /// Field's name.
    pub field: String,
}

/// A packet the machine can build: it goes from this end of the flow to the other end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Transport header: follows the flow's protocol if `flow`.
    pub transport: TemplateTransport,
    /// TCP options in order (kind numbers: 1 NOP, 2 MSS, 3 window scale, 4 SACK permitted, 5 SACK, 8 timestamps), padded to 32
    /// bits: with NOPs in front, or if it has NOPs itself, with ends of list behind.
    pub tcp_options: Vec<u8>,
    /// Imported formats behind the transport header, in order.
    pub headers: Vec<String>,
    /// Bytes of zero payload behind the headers.
    pub payload: u16,
    /// Fields that are not zero from the start (indexes into `fields`, values).
    pub presets: Vec<(u16, i64)>,
}

/// Transport of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TemplateTransport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}
