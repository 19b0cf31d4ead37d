//! Message formats: which headers messages have, where they are found, and which of their fields filters may use.
//!
//! They come from a `.p4` file with annotations, see [`MessageFormats::read`] and `docs/subscriptions.md`. The headers
//! that every packet parser knows (`ethernet`, `ipv4`, `udp`, ...) are there without a declaration.

mod annotations;
mod read;

pub(crate) use annotations::nanoseconds;

use crate::values::Interval;
use serde::Serialize;
use std::collections::BTreeMap;
use weftwire_core::{FieldPlace, Formats};

/// Number of a header in [`MessageFormats::headers`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct HeaderId(pub u16);

/// Number of a field in [`MessageFormats::fields`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct FieldId(pub u16);

/// Number of a counter in [`MessageFormats::counters`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct CounterId(pub u16);

/// Most headers and most fields of a format file.
pub const MOST_NAMES: usize = 4096;

/// A header that messages may have.
#[derive(Clone, Debug)]
pub struct MessageHeader {
    /// Its name in rules.
    pub name: String,
    /// Its length in bits, a multiple of 8; of a built-in header, without options.
    pub length: u32,
    /// Where it is found.
    pub place: Place,
    /// The messages that follow it, if it starts a batch.
    pub batch: Option<Batch>,
}

/// Where a header is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the packet, by the project's packet parser: the header starts where this field does.
    Packet(FieldPlace),
    /// At the start of each message of the batch that follows the header `of`, if the condition holds.
    Message {
        /// The header that starts the batch.
        of: HeaderId,
        /// What tells this message from others.
        when: Option<Condition>,
    },
    /// Behind a header of the same message, if the condition holds.
    Behind {
        /// The header in front, itself in a message.
        header: HeaderId,
        /// What tells this header from others.
        when: Option<Condition>,
    },
    /// The file does not say: no packet has it.
    Nowhere,
}

/// A field of the same or an earlier header of the message must have a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// The header.
    pub header: HeaderId,
    /// Bits from its start to the field.
    pub offset: u32,
    /// The field's width in bits.
    pub width: u16,
    /// The value.
    pub value: u128,
}

/// How the messages of a batch follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Offset and width in bits of the field of the batch's header that counts the messages; without one they follow
    /// until the packet ends.
    pub count: Option<(u32, u16)>,
    /// Whether lengths stand in front of messages, or all are of one length.
    pub framing: Framing,
}

/// What tells how long a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// A big-endian number of so many bits (8, 16 or 32) in front of each message: its bytes, itself not counted.
    Prefix(u16),
    /// Each message has so many bytes.
    Fixed(u32),
}

/// A field that filters may use.
#[derive(Clone, Debug)]
pub struct Field {
    /// The header it is in.
    pub header: HeaderId,
    /// Its name within the header.
    pub name: String,
    /// Bits from the header's start.
    pub offset: u32,
    /// Width in bits, 1 to 128.
    pub width: u16,
    /// How its values are written.
    pub form: Form,
    /// The kind of table that the file asks for; `None` leaves it to the compiler.
    pub kind: Option<MatchKind>,
}

/// A name of the domain name system in wire form (RFC 1035, section 3.1), which rules compare as one: cut into fields
/// of 32 bits, each in a header of its own, of which a packet has as many as fit. As four bytes follow every name in a
/// question, its last word is always there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NameField {
    /// The header that it stands behind.
    pub header: HeaderId,
    /// Its name within the header.
    pub name: String,
    /// The fields, first to last.
    pub words: Vec<FieldId>,
}

/// Bits of the fields that a name is cut into.
pub const NAME_WORD: u16 = 32;

/// How a field's values are written in rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A number with this many decimal places: 0, or more for a price in fixed point.
    Number {
        /// Decimal places, at most 18.
        decimals: u8,
    },
    /// A text, padded on the right with this byte to the field's width.
    Text {
        /// The padding.
        padding: u8,
    },
}

/// What a table matches a field by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchKind {
    /// Single values.
    Exact,
    /// Inclusive ranges.
    Range,
    /// Prefixes, of which the longest wins.
    Lpm,
}

/// A counter that rules may compare: messages in the current window for which the rest of a rule that names it held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Length of its window in nanoseconds, at least 1.
    pub window_ns: u64,
}

/// An action beside `fwd` and `drop`, as an application registers it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActionSignature {
    /// Its name.
    pub name: String,
    /// The kinds of its arguments in order.
    pub arguments: Vec<ArgumentKind>,
}

/// What an argument of an action may be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentKind {
    /// A number of up to 64 bits.
    Number,
    /// A quoted text.
    Text,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// An Ethernet address.
    Mac,
}

impl ArgumentKind {
    /// The kind of a name: `number`, `text`, `ipv4`, `ipv6` or `mac`.
    pub fn of_name(name: &str) -> Option<ArgumentKind> {
        Some(match name {
            "number" => ArgumentKind::Number,
            "text" => ArgumentKind::Text,
            "ipv4" => ArgumentKind::Ipv4,
            "ipv6" => ArgumentKind::Ipv6,
            "mac" => ArgumentKind::Mac,
            _ => return None,
        })
    }

    /// Its name in formats.
    pub fn name(self) -> &'static str {
        match self {
            ArgumentKind::Number => "number",
            ArgumentKind::Text => "text",
            ArgumentKind::Ipv4 => "ipv4",
            ArgumentKind::Ipv6 => "ipv6",
            ArgumentKind::Mac => "mac",
        }
    }
}

/// The headers, fields, counters and actions that rules may name.
#[derive(Clone, Debug)]
pub struct MessageFormats {
    headers: Vec<MessageHeader>,
    fields: Vec<Field>,
    counters: Vec<Counter>,
    actions: Vec<ActionSignature>,
    names: Vec<NameField>,
    header_names: BTreeMap<String, HeaderId>,
    /// By header, then name.
    field_names: BTreeMap<HeaderId, BTreeMap<String, FieldId>>,
    /// Fields by their bare names.
    bare_names: BTreeMap<String, Vec<FieldId>>,
    packet: Formats,
}

impl MessageFormats {
    /// All headers: those of the file, then the built-in ones that it does not declare.
    pub fn headers(&self) -> &[MessageHeader] {
        &self.headers
    }

    /// All fields that filters may use: those that the file names, in its order, then those of the built-in headers
    /// that it does not declare.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// All declared counters.
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// The actions beside `fwd` and `drop`.
    pub fn actions(&self) -> &[ActionSignature] {
        &self.actions
    }

    /// A header by its number.
    pub fn header(&self, id: HeaderId) -> &MessageHeader {
        &self.headers[usize::from(id.0)]
    }

    /// A field by its number.
    pub fn field(&self, id: FieldId) -> &Field {
        &self.fields[usize::from(id.0)]
    }

    /// A field's name in full, like `add_order.price`.
    pub fn full_name(&self, id: FieldId) -> String {
        let field = self.field(id);
        format!("{}.{}", self.header(field.header).name, field.name)
    }

    /// Whether no message has both headers: what tells them from others are different values of the same bits.
    pub fn exclude(&self, left: HeaderId, right: HeaderId) -> bool {
        // Headers that start at the same place share bytes.
        let start = |header| match &self.header(header).place {
            Place::Message { of, .. } => (Some(*of), None),
            Place::Behind { header, .. } => (None, Some(*header)),
            _ => (None, None),
        };
        let place = |condition: &Condition| match start(condition.header) {
            (None, None) => (condition.offset, condition.width, (Some(condition.header), Some(condition.header))),
            start => (condition.offset, condition.width, start),
        };
        self.conditions(left)
            .any(|one| self.conditions(right).any(|other| place(&one) == place(&other) && one.value != other.value))
    }

    /// What holds for messages that have a header.
    fn conditions(&self, header: HeaderId) -> impl Iterator<Item = Condition> + '_ {
        let in_front = |header: &HeaderId| match &self.header(*header).place {
            Place::Behind { header, .. } => Some(*header),
            _ => None,
        };
        std::iter::successors(Some(header), in_front).filter_map(|header| match &self.header(header).place {
            Place::Message { when, .. } | Place::Behind { when, .. } => *when,
            _ => None,
        })
    }

    /// The header of a name; structs of the file may have given it further names.
    pub fn header_named(&self, name: &str) -> Option<HeaderId> {
        self.header_names.get(name).copied()
    }

    /// The field of a name within a header.
    pub fn field_named(&self, header: HeaderId, name: &str) -> Option<FieldId> {
        self.field_names.get(&header)?.get(name).copied()
    }

    /// All fields of a bare name. If the file declares such a field, built-in headers do not count.
    pub fn fields_named(&self, name: &str) -> &[FieldId] {
        self.bare_names.get(name).map_or(&[], Vec::as_slice)
    }

    /// The names of the domain name system.
    pub fn names(&self) -> &[NameField] {
        &self.names
    }

    /// The counter of a name.
    pub fn counter_named(&self, name: &str) -> Option<CounterId> {
        self.counters.iter().position(|counter| counter.name == name).map(|index| CounterId(index as u16))
    }

    /// The header that starts a batch. A file has at most one.
    pub fn batch_header(&self) -> Option<(HeaderId, Batch)> {
        let found = self.headers.iter().enumerate().find_map(|(index, header)| Some((index, header.batch?)));
        found.map(|(index, batch)| (HeaderId(index as u16), batch))
    }

    /// The formats that packets are parsed with before messages are looked for.
    pub fn packet_formats(&self) -> &Formats {
        &self.packet
    }

    /// Lets rules use an action. An action of the same name is replaced.
    pub fn register_action(&mut self, signature: ActionSignature) {
        self.actions.retain(|known| known.name != signature.name);
        self.actions.push(signature);
    }
}
