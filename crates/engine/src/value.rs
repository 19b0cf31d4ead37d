//! Arithmetic and comparisons (semantics, section 1): pure functions of 64-bit values.

use crate::chance::Chance;
use weftwire_image::{Comparison, Operator, Table};

/// A division by 0. Its result is 0, and it is counted (section 1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DivisionByZero;

/// The result of an operator, before the register's type cuts it.
///
/// # Errors
/// [`DivisionByZero`]; the result is then 0.
pub fn compute(operator: Operator, left: i64, right: i64, chance: &mut Chance) -> Result<i64, DivisionByZero> {
    Ok(match operator {
        Operator::Add => left.wrapping_add(right),
        Operator::Sub => left.wrapping_sub(right),
        Operator::Mul => left.wrapping_mul(right),
        Operator::Div | Operator::DivUnsigned | Operator::Rem | Operator::RemUnsigned if right == 0 => {
            return Err(DivisionByZero);
        }
        Operator::Div => left.wrapping_div(right),
        Operator::DivUnsigned => (left as u64 / right as u64) as i64,
        Operator::Rem => left.wrapping_rem(right),
        Operator::RemUnsigned => (left as u64 % right as u64) as i64,
        Operator::Min => left.min(right),
        Operator::Max => left.max(right),
        Operator::MinUnsigned => (left as u64).min(right as u64) as i64,
        Operator::MaxUnsigned => (left as u64).max(right as u64) as i64,
        Operator::SeqMin if seq_le(left, right) => left,
        Operator::SeqMin => right,
        Operator::SeqMax if seq_le(left, right) => right,
        Operator::SeqMax => left,
        Operator::SeqDistance => i64::from(seq_distance(left, right)),
        Operator::And => left & right,
        Operator::Or => left | right,
        Operator::Xor => left ^ right,
        Operator::Shl => shift_distance(right).map_or(0, |distance| left << distance),
        Operator::Shr => shift_distance(right).map_or(0, |distance| (left as u64 >> distance) as i64),
        Operator::ShrSigned => left >> shift_distance(right).unwrap_or(63),
        Operator::Eq => truth(Comparison::Eq, left, right),
        Operator::Ne => truth(Comparison::Ne, left, right),
        Operator::Lt => truth(Comparison::Lt, left, right),
        Operator::Le => truth(Comparison::Le, left, right),
        Operator::LtUnsigned => truth(Comparison::LtUnsigned, left, right),
        Operator::LeUnsigned => truth(Comparison::LeUnsigned, left, right),
        Operator::SeqLt => truth(Comparison::SeqLt, left, right),
        Operator::SeqLe => truth(Comparison::SeqLe, left, right),
        Operator::Hash => chance.hash(left, right),
        Operator::Random => chance.random(),
    })
}

/// Whether a comparison holds.
pub fn compare(comparison: Comparison, left: i64, right: i64) -> bool {
    match comparison {
        Comparison::Eq => left == right,
        Comparison::Ne => left != right,
        Comparison::Lt => left < right,
        Comparison::Le => left <= right,
        Comparison::Gt => left > right,
        Comparison::Ge => left >= right,
        Comparison::LtUnsigned => (left as u64) < right as u64,
        Comparison::LeUnsigned => left as u64 <= right as u64,
        Comparison::GtUnsigned => left as u64 > right as u64,
        Comparison::GeUnsigned => left as u64 >= right as u64,
        Comparison::SeqLt => seq_lt(left, right),
        Comparison::SeqLe => seq_le(left, right),
        Comparison::SeqGt => seq_lt(right, left),
        Comparison::SeqGe => seq_le(right, left),
    }
}

/// The table's entry at `index`; outside of the table its first or last (section 1.8).
pub fn look_up(table: &Table, index: i64) -> i64 {
    let last = table.entries.len() - 1;
    let offset = i128::from(index) - i128::from(table.base);
    table.entries[offset.clamp(0, last as i128) as usize]
}

fn truth(comparison: Comparison, left: i64, right: i64) -> i64 {
    i64::from(compare(comparison, left, right))
}

fn seq_distance(left: i64, right: i64) -> i32 {
    left.wrapping_sub(right) as i32
}

fn seq_lt(left: i64, right: i64) -> bool {
    seq_distance(left, right) < 0
}

fn seq_le(left: i64, right: i64) -> bool {
    seq_distance(left, right) <= 0
}

/// How far to shift; `None` if that is less than 0 or more than 63 bits (section 1.4).
fn shift_distance(right: i64) -> Option<u32> {
    u32::try_from(right).ok().filter(|distance| *distance < 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: i64 = i64::MIN;
    const MAX: i64 = i64::MAX;
    const HALF: i64 = 1 << 31;

    fn value(operator: Operator, left: i64, right: i64) -> i64 {
        compute(operator, left, right, &mut Chance::new(1, None)).unwrap_or(0)
    }

    fn check(operator: Operator, vectors: &[(i64, i64, i64)]) {
        for &(left, right, expected) in vectors {
            assert_eq!(value(operator, left, right), expected, "{operator:?} {left} {right}");
        }
    }

    #[test]
    fn sums_and_products_wrap() {
        check(Operator::Add, &[(2, 3, 5), (MAX, 1, MIN), (-1, 1, 0), (MIN, MIN, 0)]);
        check(Operator::Sub, &[(2, 3, -1), (MIN, 1, MAX), (0, MIN, MIN)]);
        check(Operator::Mul, &[(-3, 4, -12), (1 << 32, 1 << 32, 0), (MIN, -1, MIN), (MAX, 2, -2)]);
    }

    #[test]
    fn division_goes_towards_zero() {
        check(Operator::Div, &[(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3), (MIN, -1, MIN)]);
        check(Operator::Rem, &[(7, 2, 1), (-7, 2, -1), (7, -2, 1), (-7, -2, -1), (MIN, -1, 0)]);
        check(Operator::DivUnsigned, &[(7, 2, 3), (-1, 2, MAX), (1, -1, 0), (MIN, MIN, 1)]);
        check(Operator::RemUnsigned, &[(7, 2, 1), (-1, 10, 5), (1, -1, 1), (-1, MIN, MAX)]);
        for operator in [Operator::Div, Operator::DivUnsigned, Operator::Rem, Operator::RemUnsigned] {
            for left in [0, 1, -1, MIN] {
                assert_eq!(compute(operator, left, 0, &mut Chance::new(1, None)), Err(DivisionByZero));
            }
        }
    }

    #[test]
    fn smaller_and_greater() {
        check(Operator::Min, &[(1, 2, 1), (-1, 1, -1), (MIN, MAX, MIN)]);
        check(Operator::Max, &[(1, 2, 2), (-1, 1, 1), (MIN, MAX, MAX)]);
        check(Operator::MinUnsigned, &[(-1, 1, 1), (MIN, MAX, MAX), (0, -1, 0)]);
        check(Operator::MaxUnsigned, &[(-1, 1, -1), (MIN, MAX, MIN), (0, 5, 5)]);
    }

    #[test]
    fn bits_and_shifts() {
        check(Operator::And, &[(12, 10, 8), (-1, MIN, MIN)]);
        check(Operator::Or, &[(12, 10, 14), (0, MIN, MIN)]);
        check(Operator::Xor, &[(12, 10, 6), (-1, -1, 0)]);
        check(
            Operator::Shl,
            &[(1, 0, 1), (1, 63, MIN), (1, 64, 0), (1, -1, 0), (3, 63, MIN), (1, MIN, 0), (1, 1 << 32, 0)],
        );
        check(Operator::Shr, &[(-1, 63, 1), (-1, 64, 0), (-1, -1, 0), (MIN, 1, 1 << 62), (5, 0, 5)]);
        check(Operator::ShrSigned, &[(-8, 1, -4), (-1, 64, -1), (MIN, 63, -1), (MAX, 64, 0), (MIN, -1, -1), (5, 0, 5)]);
    }

    #[test]
    fn sequence_numbers_are_modular() {
        let top = 0xffff_ffff;
        check(
            Operator::SeqLt,
            &[(1, 2, 1), (2, 1, 0), (2, 2, 0), (top, 0, 1), (0, top, 0), (0, HALF, 1), (HALF, 0, 1)],
        );
        check(
            Operator::SeqLe,
            &[(1, 2, 1), (2, 1, 0), (2, 2, 1), (top, 0, 1), (1 << 32, 0, 1), (0, HALF, 1), (HALF, 0, 1)],
        );
        check(Operator::SeqMin, &[(top, 0, top), (0, top, top), (5, 6, 5), (0, HALF, 0), (HALF, 0, HALF)]);
        check(Operator::SeqMax, &[(top, 0, 0), (0, top, 0), (5, 6, 6), (0, HALF, HALF), (HALF, 0, 0)]);
        check(
            Operator::SeqDistance,
            &[(5, 3, 2), (3, 5, -2), (0, top, 1), (top, 0, -1), (HALF, 0, -HALF), (0, HALF, -HALF)],
        );
    }

    #[test]
    fn comparisons_as_operators() {
        check(Operator::Eq, &[(1, 1, 1), (1, 1 + (1 << 32), 0)]);
        check(Operator::Ne, &[(1, 1, 0), (1, 1 + (1 << 32), 1)]);
        check(Operator::Lt, &[(-1, 0, 1), (0, 0, 0), (0, -1, 0)]);
        check(Operator::Le, &[(-1, 0, 1), (0, 0, 1), (0, -1, 0)]);
        check(Operator::LtUnsigned, &[(-1, 0, 0), (0, 0, 0), (0, -1, 1)]);
        check(Operator::LeUnsigned, &[(-1, 0, 0), (0, 0, 1), (0, -1, 1)]);
    }

    #[test]
    fn each_comparison() {
        use Comparison::*;
        // The comparisons that hold for left and right.
        let vectors: [(i64, i64, &[Comparison]); 6] = [
            (3, 3, &[Eq, Le, Ge, LeUnsigned, GeUnsigned, SeqLe, SeqGe]),
            (3, 4, &[Ne, Lt, Le, LtUnsigned, LeUnsigned, SeqLt, SeqLe]),
            (-1, 0, &[Ne, Lt, Le, GtUnsigned, GeUnsigned, SeqLt, SeqLe]),
            (MIN, MAX, &[Ne, Lt, Le, GtUnsigned, GeUnsigned, SeqGt, SeqGe]),
            (0, HALF, &[Ne, Lt, Le, LtUnsigned, LeUnsigned, SeqLt, SeqLe, SeqGt, SeqGe]),
            (1 << 32, 0, &[Ne, Gt, Ge, GtUnsigned, GeUnsigned, SeqLe, SeqGe]),
        ];
        let all = [Eq, Ne, Lt, Le, Gt, Ge, LtUnsigned, LeUnsigned, GtUnsigned, GeUnsigned, SeqLt, SeqLe, SeqGt, SeqGe];
        for (left, right, holding) in vectors {
            for comparison in all {
                let expected = holding.contains(&comparison);
                assert_eq!(compare(comparison, left, right), expected, "{comparison:?} {left} {right}");
            }
        }
    }

    #[test]
    fn look_ups_stay_in_the_table() {
        let table = Table { name: "t".into(), base: -1, entries: vec![10, 20, 30] };
        let read: Vec<i64> = [MIN, -2, -1, 0, 1, 2, MAX].map(|index| look_up(&table, index)).to_vec();
        assert_eq!(read, [10, 10, 10, 20, 30, 30, 30]);
        let table = Table { name: "t".into(), base: MIN, entries: vec![1, 2] };
        assert_eq!(look_up(&table, MAX), 2);
    }
}
