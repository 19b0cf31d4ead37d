//! Conditions of which it is known before the machine runs that they never hold.

use super::ir::Ir;
use super::{Lowerer, Scope};
use std::collections::BTreeMap;
use weftwire_image::{Comparison, Operand, Operator, RegisterType};
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::source::Span;

/// The least and the greatest value that something may have.
type Range = (i64, i64);

impl Lowerer<'_> {
    /// Warns of a comparison with a number that the other side never reaches. In an action, the number may be an argument,
    /// and the comparison right for others.
    pub(super) fn warn_of_comparison(&mut self, test: &Ir, span: Span, scope: &Scope) {
        let Ir::Compare { comparison, left, right } = test else { return };
        if !scope.calls.is_empty() || left.as_constant().is_some() == right.as_constant().is_some() {
            return;
        }
        let (Some(one), Some(other)) = (self.range(left), self.range(right)) else { return };
        if never(*comparison, one, other) {
            let known = if left.as_constant().is_some() { other } else { one };
            let message = format!("this never holds: the value is from {} to {}", known.0, known.1);
            self.report(Diagnostic::warning(span, message));
        }
    }

    /// Warns of tests joined by `and` that exclude each other.
    pub(super) fn warn_of_exclusion(&mut self, condition: &Ir, span: Span, scope: &Scope) {
        if !scope.calls.is_empty() || scope.depth > 0 || !matches!(condition, Ir::And(..)) {
            return;
        }
        let mut tests = Vec::new();
        joined(condition, &mut tests);
        let mut ranges: BTreeMap<&Ir, Range> = BTreeMap::new();
        for test in tests {
            let Some((value, range)) = tested(test) else { continue };
            let possible = self.range(value).unwrap_or((i64::MIN, i64::MAX));
            let Some(alone) = common(possible, range) else { return };
            let known = ranges.entry(value).or_insert(possible);
            match common(*known, alone) {
                Some(both) => *known = both,
                None => {
                    let message = "this never holds: its tests exclude each other";
                    self.report(Diagnostic::warning(span, message));
                    return;
                }
            }
        }
    }

    /// What is known of a value, if it is less than 64 bits wide.
    fn range(&self, value: &Ir) -> Option<Range> {
        let bits = |greatest: i64| (greatest >= 0).then_some((0, greatest));
        match value {
            Ir::Operand(Operand::Constant(constant)) => Some((*constant, *constant)),
            Ir::Operand(Operand::Register(register)) => {
                let known = self.image.registers.get(usize::from(*register))?;
                bits(if known.kind == RegisterType::Bool { 1 } else { known.kind.cut(-1) })
            }
            Ir::Operand(Operand::Field { field, .. }) => {
                let (_, _, width, _) = self.place(&self.image.fields[usize::from(*field)]);
                if width < 64 { bits((1 << width) - 1) } else { None }
            }
            Ir::Compute { operator: Operator::And, right, .. } => bits(right.as_constant()?),
            _ => None,
        }
    }
}

/// The tests that `and` joins.
fn joined<'a>(condition: &'a Ir, tests: &mut Vec<&'a Ir>) {
    match condition {
        Ir::And(left, right) => {
            joined(left, tests);
            joined(right, tests);
        }
        test => tests.push(test),
    }
}

/// What a test says of one value: where it must lie.
fn tested(test: &Ir) -> Option<(&Ir, Range)> {
    use Comparison::{Eq, Ge, Gt, Le, Lt};
    let Ir::Compare { comparison, left, right } = test else { return None };
    let (value, comparison, constant) = match (left.as_constant(), right.as_constant()) {
        (None, Some(constant)) => (left, *comparison, constant),
        (Some(constant), None) => {
            let flipped = match comparison {
                Lt => Gt,
                Le => Ge,
                Gt => Lt,
                Ge => Le,
                other => *other,
            };
            (right, flipped, constant)
        }
        _ => return None,
    };
    let range = match comparison {
        Eq => (constant, constant),
        Lt => (i64::MIN, constant.checked_sub(1)?),
        Le => (i64::MIN, constant),
        Gt => (constant.checked_add(1)?, i64::MAX),
        Ge => (constant, i64::MAX),
        _ => return None,
    };
    Some((value, range))
}

/// What lies in both ranges.
fn common(one: Range, other: Range) -> Option<Range> {
    let both = (one.0.max(other.0), one.1.min(other.1));
    (both.0 <= both.1).then_some(both)
}

/// Whether no value of `one` compares so with any of `other`.
fn never(comparison: Comparison, one: Range, other: Range) -> bool {
    use Comparison::*;
    let signless = one.0 >= 0 && other.0 >= 0;
    match comparison {
        Eq => common(one, other).is_none(),
        Lt => one.0 >= other.1,
        Le => one.0 > other.1,
        Gt => one.1 <= other.0,
        Ge => one.1 < other.0,
        LtUnsigned => signless && one.0 >= other.1,
        LeUnsigned => signless && one.0 > other.1,
        GtUnsigned => signless && one.1 <= other.0,
        GeUnsigned => signless && one.1 < other.0,
        Ne | SeqLt | SeqLe | SeqGt | SeqGe => false,
    }
}
