//! From values to three-address operations with scratch registers.

use super::ir::Ir;
use weftwire_image::{Comparison, Operand, Operation, Operator, RegisterType};

/// The scratch registers of an image: behind the program's own registers, each with a fixed type.
pub(crate) struct Allocator {
    first: u16,
    kinds: Vec<RegisterType>,
}

impl Allocator {
    pub(crate) fn new(first: u16) -> Allocator {
        Allocator { first, kinds: Vec::new() }
    }

    pub(crate) fn first(&self) -> u16 {
        self.first
    }

    pub(crate) fn kinds(&self) -> &[RegisterType] {
        &self.kinds
    }

    /// The lowest scratch register that is free and can hold the value; a new one if there is none.
    pub(crate) fn take(&mut self, value: &Ir, free: impl Fn(u16) -> bool) -> u16 {
        let kind = match value {
            Ir::Compute { modular: true, .. } => RegisterType::Seq32,
            _ => RegisterType::I64,
        };
        for (index, known) in self.kinds.iter().enumerate() {
            let register = self.first + index as u16;
            if *known == kind && free(register) {
                return register;
            }
        }
        self.kinds.push(kind);
        self.first + (self.kinds.len() - 1) as u16
    }
}

/// Appends the operations that compute `value`, into `target` if given, and returns where the result is.
pub(crate) fn emit(
    value: &Ir,
    target: Option<u16>,
    operations: &mut Vec<Operation>,
    take: &mut dyn FnMut(&Ir) -> u16,
) -> Operand {
    let (operator, left, right) = match value {
        Ir::Operand(operand) => match target {
            None => return *operand,
            Some(register) => {
                if *operand != Operand::Register(register) {
                    operations.push(Operation::Compute {
                        operator: Operator::Add,
                        register,
                        left: *operand,
                        right: Operand::Constant(0),
                    });
                }
                return Operand::Register(register);
            }
        },
        Ir::Lookup { table, index } => {
            let index = emit(index, None, operations, take);
            let register = target.unwrap_or_else(|| take(value));
            operations.push(Operation::Lookup { table: *table, register, index });
            return Operand::Register(register);
        }
        Ir::Element { first, count, index } => {
            let index = emit(index, None, operations, take);
            let register = target.unwrap_or_else(|| take(value));
            operations.push(Operation::Element { first: *first, count: *count, register, index });
            return Operand::Register(register);
        }
        Ir::MulDiv(_) => return emit_mul_div(value, target, operations, take),
        Ir::Query { .. } => return emit_query(value, target, operations, take),
        Ir::Compute { operator, left, right, .. } => (*operator, left, right),
        Ir::Compare { comparison, left, right } => {
            let (operator, swapped) = comparing(*comparison);
            if swapped { (operator, right, left) } else { (operator, left, right) }
        }
        Ir::And(left, right) => (Operator::And, left, right),
        Ir::Or(left, right) => (Operator::Or, left, right),
        Ir::Not(inner) => {
            let left = emit(inner, None, operations, take);
            let register = target.unwrap_or_else(|| take(value));
            let operator = Operator::Eq;
            operations.push(Operation::Compute { operator, register, left, right: Operand::Constant(0) });
            return Operand::Register(register);
        }
    };
    let left = emit(left, None, operations, take);
    let right = emit(right, None, operations, take);
    let register = target.unwrap_or_else(|| take(value));
    operations.push(Operation::Compute { operator, register, left, right });
    Operand::Register(register)
}

fn emit_mul_div(
    value: &Ir,
    target: Option<u16>,
    operations: &mut Vec<Operation>,
    take: &mut dyn FnMut(&Ir) -> u16,
) -> Operand {
    let Ir::MulDiv(values) = value else { return Operand::Constant(0) };
    let [left, right, divisor] = values.each_ref().map(|value| emit(value, None, operations, take));
    let register = target.unwrap_or_else(|| take(value));
    operations.push(Operation::MulDiv { register, left, right, divisor });
    Operand::Register(register)
}

fn emit_query(
    value: &Ir,
    target: Option<u16>,
    operations: &mut Vec<Operation>,
    take: &mut dyn FnMut(&Ir) -> u16,
) -> Operand {
    let Ir::Query { query, values } = value else { return Operand::Constant(0) };
    let operands: Vec<Operand> = values.iter().map(|value| emit(value, None, operations, take)).collect();
    let register = target.unwrap_or_else(|| take(value));
    let mut operation = Operation::Query { register, query: query.clone() };
    for (place, operand) in operation.operands_mut().into_iter().zip(operands) {
        *place = operand;
    }
    operations.push(operation);
    Operand::Register(register)
}

/// The operator that gives a comparison's truth value, and whether its sides are swapped.
fn comparing(comparison: Comparison) -> (Operator, bool) {
    match comparison {
        Comparison::Eq => (Operator::Eq, false),
        Comparison::Ne => (Operator::Ne, false),
        Comparison::Lt => (Operator::Lt, false),
        Comparison::Le => (Operator::Le, false),
        Comparison::Gt => (Operator::Lt, true),
        Comparison::Ge => (Operator::Le, true),
        Comparison::LtUnsigned => (Operator::LtUnsigned, false),
        Comparison::LeUnsigned => (Operator::LeUnsigned, false),
        Comparison::GtUnsigned => (Operator::LtUnsigned, true),
        Comparison::GeUnsigned => (Operator::LeUnsigned, true),
        Comparison::SeqLt => (Operator::SeqLt, false),
        Comparison::SeqLe => (Operator::SeqLe, false),
        Comparison::SeqGt => (Operator::SeqLt, true),
        Comparison::SeqGe => (Operator::SeqLe, true),
    }
}
