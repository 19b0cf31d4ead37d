//! Operators, comparisons and look-ups (semantics, rules V1 to V14). The arithmetic itself stands beside the image's types;
//! here the function's secrets and tables come in.

use weftwire_image::{Operator, Table, value};

pub use weftwire_image::value::{compare, is_before, mul_div};

/// A division by 0. Its result is 0, and it is counted (rule V4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DivisionByZero;

/// The result of an operator, before the register's type cuts it; `secret` gives that of `hash` and `random`.
///
/// # Errors
/// [`DivisionByZero`]; the result is then 0.
#[inline]
pub fn compute(operator: Operator, left: i64, right: i64, secret: impl FnOnce() -> i64) -> Result<i64, DivisionByZero> {
    match value::divides_by_zero(operator, right) {
        true => Err(DivisionByZero),
        false => Ok(value::compute(operator, left, right).unwrap_or_else(secret)),
    }
}

/// The table's entry at `index`; outside of the table its first or last (rule V13).
pub fn look_up(table: &Table, index: i64) -> i64 {
    let last = table.entries.len() - 1;
    let offset = i128::from(index) - i128::from(table.base);
    table.entries[offset.clamp(0, last as i128) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftwire_image::Comparison;

    const MIN: i64 = i64::MIN;
    const MAX: i64 = i64::MAX;
    const HALF: i64 = 1 << 31;

    fn value(operator: Operator, left: i64, right: i64) -> i64 {
        compute(operator, left, right, || 0).unwrap_or(0)
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
                assert_eq!(compute(operator, left, 0, || 0), Err(DivisionByZero));
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
