//! Values and what operators make of them.

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Val {
    Bits(u128, u32),
    /// More than 128 bits, or a field of variable length.
    Wide(Vec<bool>),
    Bool(bool),
    /// Whether there is one.
    Error(bool),
    List(Vec<Val>),
    /// Whether a table had an entry.
    Applied(bool),
}

/// The bits of what was never set.
pub(super) const ANYTHING: u128 = 0x5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a;

pub(super) fn mask(width: u32) -> u128 {
    if width == 0 { 0 } else { u128::MAX >> (128 - width.min(128)) }
}

pub(super) fn to_bits(value: u128, width: u32) -> impl Iterator<Item = bool> {
    (0..width).rev().map(move |bit| value >> bit & 1 == 1)
}

pub(super) fn of_bits(bits: &[bool]) -> Val {
    if bits.len() > 128 {
        return Val::Wide(bits.to_vec());
    }
    Val::Bits(bits.iter().fold(0, |value, bit| value << 1 | u128::from(*bit)), bits.len() as u32)
}

impl Val {
    pub(super) fn number(&self) -> u128 {
        match self {
            Val::Bits(value, _) => *value,
            Val::Bool(value) => (*value).into(),
            other => panic!("{other:?} is no number"),
        }
    }

    pub(super) fn holds(&self) -> bool {
        matches!(self, Val::Bool(true))
    }
}

pub(super) fn binary(operator: &str, left: &Val, right: &Val) -> Val {
    if let (Val::Error(left), Val::Error(right)) = (left, right) {
        return Val::Bool((left == right) == (operator == "=="));
    }
    let (a, b) = (left.number(), right.number());
    let width = match (left, right) {
        (Val::Bits(_, 0), Val::Bits(_, width)) => *width,
        (Val::Bits(_, width), _) => *width,
        _ => 1,
    };
    let bits = |value: u128| Val::Bits(value & mask(width), width);
    match operator {
        "&&" | "||" => right.clone(),
        "==" => Val::Bool(a == b),
        "!=" => Val::Bool(a != b),
        "<" => Val::Bool(a < b),
        ">" => Val::Bool(a > b),
        "<=" => Val::Bool(a <= b),
        ">=" => Val::Bool(a >= b),
        "+" => bits(a.wrapping_add(b)),
        "-" => bits(a.wrapping_sub(b)),
        "|+|" => Val::Bits(a.saturating_add(b).min(mask(width)), width),
        "*" => bits(a.wrapping_mul(b)),
        "&" => bits(a & b),
        "|" => bits(a | b),
        "^" => bits(a ^ b),
        "<<" => bits(a.checked_shl(b as u32).unwrap_or(0)),
        ">>" => bits(a.checked_shr(b as u32).unwrap_or(0)),
        _ => panic!("operator {operator}"),
    }
}

/// The ones' complement sum of 16 bits.
pub(super) fn checksum(data: Val) -> Val {
    let Val::List(values) = data else { panic!("{data:?}") };
    let mut bits = Vec::new();
    for value in values {
        let Val::Bits(value, width) = value else { panic!("{value:?}") };
        bits.extend(to_bits(value, width));
    }
    assert_eq!(bits.len() % 16, 0);
    let word = |bits: &[bool]| bits.iter().fold(0u32, |word, bit| word << 1 | u32::from(*bit));
    let mut sum: u32 = bits.chunks(16).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    Val::Bits(u128::from(!sum & 0xffff), 16)
}
