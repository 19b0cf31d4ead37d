//! Tables computed at compile time: formulas in 64-bit floating point, by a pure-Rust mathematics library, so that the
//! same source gives the same bytes on every machine.

use crate::ast::{BinaryOperator, Expression, ExpressionKind, UnaryOperator};
use weftwire_text::diagnostic::Diagnostic;
use weftwire_text::lexer::NumberValue;

/// Evaluates a formula in which `index` has the value `at`; `constant` knows the program's constants.
pub(crate) fn evaluate(
    formula: &Expression,
    index: &str,
    at: f64,
    constant: &dyn Fn(&str) -> Option<f64>,
) -> Result<f64, Diagnostic> {
    let recurse = |inner: &Expression| evaluate(inner, index, at, constant);
    let wrong = |message: String| Diagnostic::error(formula.span, message);
    match &formula.kind {
        ExpressionKind::Number { value, unit } => {
            let value = match value {
                NumberValue::Whole(value) => *value as f64,
                NumberValue::Fraction(value) => *value,
            };
            match crate::lower::unit_scale(unit) {
                Some((scale, _)) => Ok(value * scale as f64),
                None => Err(wrong(format!("unknown unit `{unit}`"))),
            }
        }
        ExpressionKind::Path(path) if path.len() == 1 => {
            let name = &path[0].text;
            if name == index {
                return Ok(at);
            }
            constant(name).ok_or_else(|| {
                wrong(format!("`{name}` is not known in a formula"))
                    .help(format!("a formula is made of its index `{index}`, constants, numbers and functions"))
            })
        }
        ExpressionKind::Unary(UnaryOperator::Negate, inner) => Ok(-recurse(inner)?),
        ExpressionKind::Binary(operator, left, right) => {
            let (left, right) = (recurse(left)?, recurse(right)?);
            Ok(match operator {
                BinaryOperator::Add => left + right,
                BinaryOperator::Subtract => left - right,
                BinaryOperator::Multiply => left * right,
                BinaryOperator::Divide => left / right,
                BinaryOperator::Remainder => libm::fmod(left, right),
                BinaryOperator::BitXor => {
                    return Err(wrong("`^` is exclusive or, which formulas have not got".into())
                        .help("write `pow(x, y)` for a power"));
                }
                other => return Err(wrong(format!("`{}` can't be used in a formula", other.symbol()))),
            })
        }
        ExpressionKind::Call(name, arguments) => {
            let values = arguments.iter().map(recurse).collect::<Result<Vec<f64>, _>>()?;
            function(&name.text, &values).ok_or_else(|| {
                Diagnostic::error(
                    name.span,
                    format!("`{}` with {} argument(s) is no function of formulas", name.text, values.len()),
                )
                .help("functions are round, floor, ceil, abs, sqrt, exp, ln, log2, pow(x, y), min(x, y), max(x, y)")
            })
        }
        ExpressionKind::Error => Err(wrong("this formula did not parse".into())),
        _ => Err(wrong("this can't be used in a formula".into())),
    }
}

/// How many values and operators a formula has.
pub(crate) fn size(formula: &Expression) -> usize {
    1 + match &formula.kind {
        ExpressionKind::Unary(_, inner) => size(inner),
        ExpressionKind::Binary(_, left, right) => size(left) + size(right),
        ExpressionKind::Call(_, arguments) => arguments.iter().map(size).sum(),
        _ => 0,
    }
}

fn function(name: &str, values: &[f64]) -> Option<f64> {
    Some(match (name, values) {
        ("round", [x]) => libm::round(*x),
        ("floor", [x]) => libm::floor(*x),
        ("ceil", [x]) => libm::ceil(*x),
        ("abs", [x]) => libm::fabs(*x),
        ("sqrt", [x]) => libm::sqrt(*x),
        ("exp", [x]) => libm::exp(*x),
        ("ln", [x]) => libm::log(*x),
        ("log2", [x]) => libm::log2(*x),
        ("pow", [x, y]) => libm::pow(*x, *y),
        ("min", [x, y]) => x.min(*y),
        ("max", [x, y]) => x.max(*y),
        _ => return None,
    })
}
