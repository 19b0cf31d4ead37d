//! Sequence numbers of 16, 24 and 64 bits: rules V6 and V7 at another width (RFC 1982), by means of plain operators. What stands at
//! the width's top bit is the sign of a difference once it is shifted there.

use super::expression::{Value, compare, fold};
use super::ir::Ir;
use super::types::Type;
use crate::ast::BinaryOperator;
use weftwire_image::Operator;

/// The low `width` bits.
fn low(width: u8, value: Ir) -> Ir {
    match width {
        64 => value,
        _ => fold(Operator::And, value, Ir::constant((1 << width) - 1)),
    }
}

/// A value as a sequence number of that width: one that is none yet is cut.
pub(crate) fn cut(width: u8, value: Value) -> Ir {
    if value.kind == Type::Serial(width) && value.ir.as_constant().is_none() { value.ir } else { low(width, value.ir) }
}

/// The sum or difference of a sequence number and a number.
pub(crate) fn moved(operator: Operator, width: u8, left: Ir, right: Ir) -> Ir {
    low(width, fold(operator, left, right))
}

/// left - right, its sign at the top of 64 bits.
fn shifted(width: u8, left: Ir, right: Ir) -> Ir {
    fold(Operator::Shl, fold(Operator::Sub, left, right), Ir::constant((64 - width).into()))
}

/// The signed distance from right to left.
pub(crate) fn distance(width: u8, left: Ir, right: Ir) -> Ir {
    match width {
        64 => fold(Operator::Sub, left, right),
        _ => fold(Operator::ShrSigned, shifted(width, left, right), Ir::constant((64 - width).into())),
    }
}

/// A comparison of two sequence numbers.
pub(crate) fn comparison(operator: BinaryOperator, width: u8, left: Ir, right: Ir) -> Ir {
    use BinaryOperator::*;
    let zero = Ir::constant(0);
    match operator {
        Greater => comparison(Less, width, right, left),
        GreaterEqual => comparison(LessEqual, width, right, left),
        Less | LessEqual => compare(operator, Type::Integer, shifted(width, left, right), zero),
        _ => compare(operator, Type::Integer, left, right),
    }
}

/// The lesser or the greater of two: the second one, moved by the distance if that leads there.
pub(crate) fn least_or_greatest(least: bool, width: u8, left: Ir, right: Ir) -> Ir {
    let operator = if least { Operator::Min } else { Operator::Max };
    let by = fold(operator, distance(width, left, right.clone()), Ir::constant(0));
    moved(Operator::Add, width, right, by)
}
