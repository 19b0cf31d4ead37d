//! Typed, resolved programs between the syntax tree and the flat image.

use std::collections::BTreeSet;
use weftwire_image::{Asked, Comparison, Operand, Operation, Operator, PacketRef, Query};

/// A value to compute. Pure: computing it twice gives the same, and only divisions by zero leave a trace (a count).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Ir {
    Operand(Operand),
    /// `modular`: the result is cut to 32 bits, as a sequence number.
    Compute {
        operator: Operator,
        left: Box<Ir>,
        right: Box<Ir>,
        modular: bool,
    },
    /// Left × right / divisor.
    MulDiv(Box<[Ir; 3]>),
    Lookup {
        table: u16,
        index: Box<Ir>,
    },
    /// An element of an array: of `count` registers from `first` on.
    Element {
        first: u16,
        count: u16,
        index: Box<Ir>,
    },
    /// A question about ranges, segments, a timer or a port; its operands are filled in from values, in their order.
    Query {
        query: Query,
        values: Vec<Ir>,
    },
    Compare {
        comparison: Comparison,
        left: Box<Ir>,
        right: Box<Ir>,
    },
    And(Box<Ir>, Box<Ir>),
    Or(Box<Ir>, Box<Ir>),
    Not(Box<Ir>),
}

impl Ir {
    pub(crate) fn constant(value: i64) -> Ir {
        Ir::Operand(Operand::Constant(value))
    }

    pub(crate) fn as_constant(&self) -> Option<i64> {
        match self {
            Ir::Operand(Operand::Constant(value)) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn compute(operator: Operator, left: Ir, right: Ir) -> Ir {
        Ir::Compute { operator, left: Box::new(left), right: Box::new(right), modular: false }
    }

    /// All operands it reads.
    pub(crate) fn operands(&self, visit: &mut dyn FnMut(Operand)) {
        match self {
            Ir::Operand(operand) => visit(*operand),
            Ir::Compute { left, right, .. }
            | Ir::Compare { left, right, .. }
            | Ir::And(left, right)
            | Ir::Or(left, right) => {
                left.operands(visit);
                right.operands(visit);
            }
            Ir::MulDiv(values) => values.iter().for_each(|value| value.operands(visit)),
            Ir::Lookup { index, .. } => index.operands(visit),
            // The first stands for all of them: nothing else names one of them.
            Ir::Element { first, index, .. } => {
                visit(Operand::Register(*first));
                index.operands(visit);
            }
            Ir::Query { values, .. } => values.iter().for_each(|value| value.operands(visit)),
            Ir::Not(inner) => inner.operands(visit),
        }
    }

    /// All that it asks.
    pub(crate) fn asked(&self, visit: &mut dyn FnMut(Asked)) {
        match self {
            Ir::Operand(_) => {}
            Ir::Compute { left, right, .. }
            | Ir::Compare { left, right, .. }
            | Ir::And(left, right)
            | Ir::Or(left, right) => {
                left.asked(visit);
                right.asked(visit);
            }
            Ir::MulDiv(values) => values.iter().for_each(|value| value.asked(visit)),
            Ir::Lookup { index, .. } | Ir::Element { index, .. } => index.asked(visit),
            Ir::Query { query, values } => {
                query.asks().into_iter().for_each(&mut *visit);
                values.iter().for_each(|value| value.asked(visit));
            }
            Ir::Not(inner) => inner.asked(visit),
        }
    }

    /// Whether computing it could count a division by zero.
    pub(crate) fn may_divide_by_zero(&self) -> bool {
        use Operator::{Div, DivUnsigned, Rem, RemUnsigned};
        match self {
            Ir::Operand(_) => false,
            Ir::Compute { operator, left, right, .. } => {
                let divides = matches!(operator, Div | DivUnsigned | Rem | RemUnsigned);
                (divides && right.as_constant().is_none_or(|divisor| divisor == 0))
                    || left.may_divide_by_zero()
                    || right.may_divide_by_zero()
            }
            Ir::Compare { left, right, .. } | Ir::And(left, right) | Ir::Or(left, right) => {
                left.may_divide_by_zero() || right.may_divide_by_zero()
            }
            Ir::MulDiv(values) => {
                values[2].as_constant().is_none_or(|divisor| divisor == 0) || values.iter().any(Ir::may_divide_by_zero)
            }
            Ir::Lookup { index, .. } | Ir::Element { index, .. } => index.may_divide_by_zero(),
            Ir::Query { values, .. } => values.iter().any(Ir::may_divide_by_zero),
            Ir::Not(inner) => inner.may_divide_by_zero(),
        }
    }
}

/// Where a row comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SourceLine {
    /// Index of the file in the source map.
    pub(crate) file: u16,
    /// Line in it, from 1.
    pub(crate) line: u32,
}

/// A step of a handler, sequential in meaning.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// `register := value`
    Assign { register: u16, value: Ir },
    /// `local := value`; a local is written once. `tested`: an `if` behind it in its block needs it.
    Local { local: usize, value: Ir, tested: bool },
    /// An operation, with operands to be filled in from values, in the order of [`Operation::operands_mut`].
    Do { operation: Operation, values: Vec<Ir> },
    /// The first branch whose condition holds; else `otherwise`.
    If { branches: Vec<(Ir, Vec<Step>, SourceLine)>, otherwise: Vec<Step>, hoisted: bool },
    /// The body, as long as the condition holds, at most so often.
    Repeat { most: u32, condition: Ir, body: Vec<Step>, line: SourceLine },
    /// The next state; takes effect at the event's end.
    Goto(u16),
    /// End of a scope: locals from this number on are no longer needed.
    Release(usize),
}

/// Marks the locals that an `if` tests, in a block and the blocks in it. Returns what the block's `if`s test.
pub(crate) fn mark_tested(steps: &mut [Step]) -> BTreeSet<u16> {
    fn locals(value: &Ir, found: &mut BTreeSet<u16>) {
        value.operands(&mut |operand| {
            if let Operand::Register(register) = operand
                && register >= FIRST_LOCAL
            {
                found.insert(register);
            }
        });
    }
    let mut needed = BTreeSet::new();
    for step in steps.iter_mut().rev() {
        match step {
            Step::If { branches, otherwise, .. } => {
                for (condition, body, _) in branches {
                    locals(condition, &mut needed);
                    join(&mut needed, mark_tested(body));
                }
                join(&mut needed, mark_tested(otherwise));
            }
            Step::Repeat { condition, body, .. } => {
                locals(condition, &mut needed);
                join(&mut needed, mark_tested(body));
            }
            Step::Local { local, value, tested } => {
                *tested = needed.contains(&(FIRST_LOCAL + *local as u16));
                if *tested {
                    locals(value, &mut needed);
                }
            }
            _ => {}
        }
    }
    needed
}

/// Adds the smaller set to the larger.
fn join(one: &mut BTreeSet<u16>, mut other: BTreeSet<u16>) {
    if one.len() < other.len() {
        std::mem::swap(one, &mut other);
    }
    one.extend(other);
}

/// What steps before a place have changed, as far as conditions and locals could see it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Writes {
    pub(crate) registers: BTreeSet<u16>,
    pub(crate) fields: BTreeSet<(PacketRef, u16)>,
    pub(crate) packets: BTreeSet<PacketRef>,
    pub(crate) sent: BTreeSet<PacketRef>,
    pub(crate) application: bool,
    pub(crate) asked: BTreeSet<Asked>,
    pub(crate) turns: bool,
}

/// Register numbers from here on stand for locals until they get their scratch registers.
pub(crate) const FIRST_LOCAL: u16 = 0x8000;
/// A handler has at most so many locals.
pub(crate) const MAX_LOCALS: usize = (u16::MAX - FIRST_LOCAL) as usize;

/// The operand that stands for a local.
pub(crate) fn local_operand(local: usize) -> Operand {
    Operand::Register(FIRST_LOCAL + local as u16)
}
