//! Arithmetic and comparison of values: rules V1 to V8 of `docs/semantics.md`, as pure functions.
//!
//! The compiler folds constants with them and the reference engine runs on them.

use crate::types::{Comparison, Operator, RegisterType};

/// The result of an operator, or `None` for [`Operator::Hash`] and [`Operator::Random`], which need the function's secrets.
/// Division by zero gives 0; [`divides_by_zero`] tells.
#[inline]
pub fn compute(operator: Operator, left: i64, right: i64) -> Option<i64> {
    let truth = |comparison| i64::from(compare(comparison, left, right));
    Some(match operator {
        Operator::Add => left.wrapping_add(right),
        Operator::Sub => left.wrapping_sub(right),
        Operator::Mul => left.wrapping_mul(right),
        _ if divides_by_zero(operator, right) => 0,
        Operator::Div => left.wrapping_div(right),
        Operator::DivUnsigned => ((left as u64) / (right as u64)) as i64,
        Operator::Rem => left.wrapping_rem(right),
        Operator::RemUnsigned => ((left as u64) % (right as u64)) as i64,
        Operator::Min => left.min(right),
        Operator::Max => left.max(right),
        Operator::MinUnsigned => (left as u64).min(right as u64) as i64,
        Operator::MaxUnsigned => (left as u64).max(right as u64) as i64,
        Operator::SeqMin => {
            if compare(Comparison::SeqLe, left, right) {
                left
            } else {
                right
            }
        }
        Operator::SeqMax => {
            if compare(Comparison::SeqLe, left, right) {
                right
            } else {
                left
            }
        }
        Operator::SeqDistance => i64::from(sequence_distance(left, right)),
        Operator::And => left & right,
        Operator::Or => left | right,
        Operator::Xor => left ^ right,
        Operator::Shl => shift(right).map_or(0, |by| left << by),
        Operator::Shr => shift(right).map_or(0, |by| ((left as u64) >> by) as i64),
        Operator::ShrSigned => left >> shift(right).unwrap_or(63),
        Operator::Eq => truth(Comparison::Eq),
        Operator::Ne => truth(Comparison::Ne),
        Operator::Lt => truth(Comparison::Lt),
        Operator::Le => truth(Comparison::Le),
        Operator::LtUnsigned => truth(Comparison::LtUnsigned),
        Operator::LeUnsigned => truth(Comparison::LeUnsigned),
        Operator::SeqLt => truth(Comparison::SeqLt),
        Operator::SeqLe => truth(Comparison::SeqLe),
        Operator::Hash | Operator::Random => return None,
    })
}

/// `left` × `right` / `divisor` towards zero, by way of 128 bits; the low 64 bits of the result. By 0 it is 0.
pub fn mul_div(left: i64, right: i64, divisor: i64) -> i64 {
    let product = i128::from(left) * i128::from(right);
    product.checked_div(divisor.into()).map_or(0, |quotient| quotient as i64)
}

/// Whether this is a division or remainder by zero.
pub fn divides_by_zero(operator: Operator, right: i64) -> bool {
    use Operator::{Div, DivUnsigned, Rem, RemUnsigned};
    right == 0 && matches!(operator, Div | DivUnsigned | Rem | RemUnsigned)
}

/// The result of a comparison.
pub fn compare(comparison: Comparison, left: i64, right: i64) -> bool {
    let (unsigned_left, unsigned_right) = (left as u64, right as u64);
    match comparison {
        Comparison::Eq => left == right,
        Comparison::Ne => left != right,
        Comparison::Lt => left < right,
        Comparison::Le => left <= right,
        Comparison::Gt => left > right,
        Comparison::Ge => left >= right,
        Comparison::LtUnsigned => unsigned_left < unsigned_right,
        Comparison::LeUnsigned => unsigned_left <= unsigned_right,
        Comparison::GtUnsigned => unsigned_left > unsigned_right,
        Comparison::GeUnsigned => unsigned_left >= unsigned_right,
        Comparison::SeqLt => sequence_distance(left, right) < 0,
        Comparison::SeqLe => sequence_distance(left, right) <= 0,
        Comparison::SeqGt => sequence_distance(right, left) < 0,
        Comparison::SeqGe => sequence_distance(right, left) <= 0,
    }
}

/// The same where sequence numbers have so many bits, 16 to 64.
#[inline]
pub fn compare_at(comparison: Comparison, bits: u8, left: i64, right: i64) -> bool {
    // The top bit of a difference is its sign once it stands at the top of 64.
    let distance = |left: i64, right: i64| left.wrapping_sub(right).wrapping_shl(64_u32.saturating_sub(bits.into()));
    match comparison {
        Comparison::SeqLt => distance(left, right) < 0,
        Comparison::SeqLe => distance(left, right) <= 0,
        Comparison::SeqGt => distance(right, left) < 0,
        Comparison::SeqGe => distance(right, left) <= 0,
        other => compare(other, left, right),
    }
}

/// Whether a value of this type comes before another one.
pub fn is_before(kind: RegisterType, value: i64, other: i64) -> bool {
    match kind {
        RegisterType::Seq16 => compare_at(Comparison::SeqLt, 16, value, other),
        RegisterType::Seq24 => compare_at(Comparison::SeqLt, 24, value, other),
        RegisterType::Seq32 => compare_at(Comparison::SeqLt, 32, value, other),
        RegisterType::Seq64 => compare_at(Comparison::SeqLt, 64, value, other),
        RegisterType::U64 => (value as u64) < other as u64,
        _ => value < other,
    }
}

fn sequence_distance(left: i64, right: i64) -> i32 {
    left.wrapping_sub(right) as i32
}

fn shift(by: i64) -> Option<u32> {
    u32::try_from(by).ok().filter(|by| *by < 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_goes_towards_zero_and_never_traps() {
        assert_eq!(compute(Operator::Div, -7, 2), Some(-3));
        assert_eq!(compute(Operator::Rem, -7, 2), Some(-1));
        assert_eq!(compute(Operator::Div, i64::MIN, -1), Some(i64::MIN));
        assert_eq!(compute(Operator::Rem, i64::MIN, -1), Some(0));
        assert_eq!(compute(Operator::Div, 5, 0), Some(0));
        assert_eq!(compute(Operator::DivUnsigned, -1, 2), Some(i64::MAX));
    }

    #[test]
    fn shifts_out_of_range() {
        for by in [-1, 64, i64::MAX] {
            assert_eq!(compute(Operator::Shl, -1, by), Some(0));
            assert_eq!(compute(Operator::Shr, -1, by), Some(0));
            assert_eq!(compute(Operator::ShrSigned, -5, by), Some(-1));
            assert_eq!(compute(Operator::ShrSigned, 5, by), Some(0));
        }
        assert_eq!(compute(Operator::Shr, -1, 63), Some(1));
    }

    #[test]
    fn sequence_numbers_wrap() {
        assert!(compare(Comparison::SeqLt, 0xffff_fff0, 0x10));
        assert!(compare(Comparison::SeqGt, 0x10, 0xffff_fff0));
        assert_eq!(compute(Operator::SeqDistance, 0x10, 0xffff_fff0), Some(0x20));
        assert_eq!(compute(Operator::SeqMax, 0xffff_fff0, 0x10), Some(0x10));
        assert_eq!(compute(Operator::SeqMin, 0xffff_fff0, 0x10), Some(0xffff_fff0));
        // At a distance of exactly 2^31 each is before the other.
        assert!(compare(Comparison::SeqLt, 0, 0x8000_0000) && compare(Comparison::SeqLt, 0x8000_0000, 0));
    }

    #[test]
    fn sequence_numbers_of_other_widths_wrap_at_theirs() {
        for (bits, kind) in [(16, RegisterType::Seq16), (24, RegisterType::Seq24), (64, RegisterType::Seq64)] {
            let last = if bits == 64 { -1 } else { (1_i64 << bits) - 1 };
            assert!(compare_at(Comparison::SeqLt, bits, last, 3) && compare_at(Comparison::SeqGe, bits, 3, last));
            assert!(is_before(kind, last, 3) && !is_before(kind, 3, last) && !is_before(kind, 3, 3));
            let half = 1_i64 << (bits - 1);
            assert!(compare_at(Comparison::SeqLt, bits, 0, half) && compare_at(Comparison::SeqLt, bits, half, 0));
        }
        assert!(compare_at(Comparison::Lt, 16, 3, 0x1_0000), "other comparisons know no width");
    }
}
