//! What register types keep (semantics, rule V2).

use crate::types::RegisterType;

impl RegisterType {
    /// Every type, in the order of declaration.
    pub const ALL: [RegisterType; 13] = [
        RegisterType::Bool,
        RegisterType::U8,
        RegisterType::U16,
        RegisterType::U32,
        RegisterType::U64,
        RegisterType::I64,
        RegisterType::Seq32,
        RegisterType::Seq16,
        RegisterType::Seq24,
        RegisterType::Seq64,
        RegisterType::Time,
        RegisterType::Mac,
        RegisterType::Ipv4,
    ];

    /// What a register of this type holds after `value` was written to it.
    #[must_use]
    #[inline]
    pub fn cut(self, value: i64) -> i64 {
        match self {
            RegisterType::Bool => i64::from(value != 0),
            RegisterType::U8 => value & 0xff,
            RegisterType::U16 | RegisterType::Seq16 => value & 0xffff,
            RegisterType::Seq24 => value & 0xff_ffff,
            RegisterType::U32 | RegisterType::Seq32 | RegisterType::Ipv4 => value & 0xffff_ffff,
            RegisterType::Mac => value & 0xffff_ffff_ffff,
            RegisterType::U64 | RegisterType::Seq64 | RegisterType::I64 | RegisterType::Time => value,
        }
    }
}

/// The array and the index of an element, of the name of its register: `history[3]`.
pub fn element_of(register: &str) -> Option<(&str, usize)> {
    let (array, index) = register.strip_suffix(']')?.rsplit_once('[')?;
    Some((array, index.parse().ok()?))
}

/// The place of an element in a row of `count` registers (semantics, rule V16).
#[inline]
pub fn element(first: u16, count: u16, index: i64) -> usize {
    usize::from(first) + index.rem_euclid(count.max(1).into()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_low_bits() {
        let cut = |kind: RegisterType| kind.cut(-1);
        assert_eq!(cut(RegisterType::Bool), 1);
        assert_eq!(cut(RegisterType::U8), 255);
        assert_eq!(cut(RegisterType::U16), 65_535);
        assert_eq!(cut(RegisterType::U32), (1 << 32) - 1);
        assert_eq!(cut(RegisterType::Seq16), 65_535);
        assert_eq!(cut(RegisterType::Seq24), (1 << 24) - 1);
        assert_eq!(cut(RegisterType::Seq32), (1 << 32) - 1);
        assert_eq!(cut(RegisterType::Seq64), -1);
        assert_eq!(cut(RegisterType::Ipv4), (1 << 32) - 1);
        assert_eq!(cut(RegisterType::Mac), (1 << 48) - 1);
        assert_eq!(cut(RegisterType::U64), -1);
        assert_eq!(cut(RegisterType::I64), -1);
        assert_eq!(cut(RegisterType::Time), -1);
        assert_eq!(RegisterType::U8.cut(256), 0);
        assert_eq!(RegisterType::Bool.cut(256), 1);
    }

    #[test]
    fn elements_are_counted_round_and_round() {
        let places = [0, 2, 3, 4, -1, -3, i64::MIN, i64::MAX].map(|index| element(7, 3, index));
        assert_eq!(places, [7, 9, 7, 8, 9, 7, 8, 8]);
        assert_eq!(element_of("of.history[12]"), Some(("of.history", 12)));
        assert_eq!((element_of("history"), element_of("[x]"), element_of("a[]")), (None, None, None));
    }

    #[test]
    fn cutting_twice_changes_nothing() {
        for kind in RegisterType::ALL {
            for value in [0, 1, -1, i64::MIN, i64::MAX, 1 << 31, 1 << 47] {
                assert_eq!(kind.cut(kind.cut(value)), kind.cut(value), "{kind:?} {value}");
            }
        }
    }
}
