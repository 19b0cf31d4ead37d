//! XL's types: few, and about units and comparison rather than about size.

use weftwire_image::RegisterType;

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    /// True or false; one-bit header fields.
    Bool,
    /// An integer, exact to 64 bits signed: `u8` to `u32` and `i64`, and all that is computed from them.
    Integer,
    /// `u64`: compared and divided as unsigned.
    Unsigned,
    /// A sequence number: compared modulo 2^32.
    Sequence,
    /// A sequence number of another width, 16, 24 or 64 bits: compared modulo 2 to that power.
    Serial(u8),
    /// A time in nanoseconds.
    Time,
    /// An Ethernet address.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// A rate in bits per second.
    Rate,
    /// Of an expression that has an error already; fits everywhere.
    Error,
}

impl Type {
    /// The name for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Type::Bool => "a truth value",
            Type::Integer => "an integer",
            Type::Unsigned => "a u64",
            Type::Sequence => "a sequence number",
            Type::Serial(16) => "a sequence number of 16 bits",
            Type::Serial(24) => "a sequence number of 24 bits",
            Type::Serial(_) => "a sequence number of 64 bits",
            Type::Time => "a time",
            Type::Mac => "an Ethernet address",
            Type::Ipv4 => "an IPv4 address",
            Type::Rate => "a rate",
            Type::Error => "an error",
        }
    }

    /// Whether it is a plain number.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Type::Integer | Type::Unsigned)
    }

    /// Whether a value of type `self` may be stored where `target` is wanted.
    pub(crate) fn fits(self, target: Type) -> bool {
        self == target
            || self == Type::Error
            || target == Type::Error
            || (self.is_number() && target.is_number())
            || (self.is_number() && target.is_sequence())
            || (self.is_sequence() && target.is_number())
    }

    /// Whether it is a sequence number, of any width.
    pub(crate) fn is_sequence(self) -> bool {
        matches!(self, Type::Sequence | Type::Serial(_))
    }
}

/// The type and the register type that a type's name stands for.
pub(crate) fn named(name: &str) -> Option<(Type, RegisterType)> {
    Some(match name {
        "bool" => (Type::Bool, RegisterType::Bool),
        "u8" => (Type::Integer, RegisterType::U8),
        "u16" => (Type::Integer, RegisterType::U16),
        "u32" => (Type::Integer, RegisterType::U32),
        "u64" => (Type::Unsigned, RegisterType::U64),
        "i64" => (Type::Integer, RegisterType::I64),
        "seq16" => (Type::Serial(16), RegisterType::Seq16),
        "seq24" => (Type::Serial(24), RegisterType::Seq24),
        "seq32" => (Type::Sequence, RegisterType::Seq32),
        "seq64" => (Type::Serial(64), RegisterType::Seq64),
        "time" => (Type::Time, RegisterType::Time),
        "rate" => (Type::Rate, RegisterType::U64),
        "mac" => (Type::Mac, RegisterType::Mac),
        "ipv4" => (Type::Ipv4, RegisterType::Ipv4),
        _ => return None,
    })
}

/// All names of types, for messages.
pub(crate) const NAMES: &[&str] =
    &["bool", "u8", "u16", "u32", "u64", "i64", "seq16", "seq24", "seq32", "seq64", "time", "rate", "mac", "ipv4"];

/// The type of a header field.
pub(crate) fn of_field(format: &str, field: &str, width: u16) -> Type {
    match (format, field) {
        ("tcp", "sequence" | "acknowledgment" | "timestamp" | "timestamp_echo") => Type::Sequence,
        ("tcp", _) if field.starts_with("sack_left_") || field.starts_with("sack_right_") => Type::Sequence,
        ("ipv4", "source" | "destination") | ("arp", "sender_address" | "target_address") => Type::Ipv4,
        ("ethernet", "source" | "destination") | ("arp", "sender_mac" | "target_mac") => Type::Mac,
        _ => match width {
            1 => Type::Bool,
            64 => Type::Unsigned,
            _ => Type::Integer,
        },
    }
}
