//! Expressions of an image as text: brackets where they are needed, comparisons turned round, constants in their unit.

use weftwire_image::*;

/// An expression, kept as a tree so that it can be negated and bracketed.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    /// A name or a number.
    Leaf(String),
    /// A truth value, with the words for both cases.
    Truth { yes: String, no: String },
    /// A constant, written as its neighbour asks for.
    Constant(i64),
    /// An infix operator.
    Infix { operator: &'static str, rank: u8, left: Box<Expression>, right: Box<Expression> },
    /// A comparison.
    Compare { comparison: Comparison, left: Box<Expression>, right: Box<Expression> },
    /// A named function.
    Call { name: &'static str, arguments: Vec<Expression> },
}

/// How a constant is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Duration,
    Ipv4,
    Mac,
    Bits,
}

impl Expression {
    fn rank(&self) -> u8 {
        match self {
            Expression::Infix { rank, .. } => *rank,
            Expression::Compare { .. } => 1,
            Expression::Truth { .. } => 2,
            _ => 10,
        }
    }

    pub(super) fn weight(&self) -> usize {
        match self {
            Expression::Leaf(_) | Expression::Truth { .. } | Expression::Constant(_) => 1,
            Expression::Infix { left, right, .. } | Expression::Compare { left, right, .. } => {
                left.weight() + right.weight()
            }
            Expression::Call { arguments, .. } => arguments.iter().map(Expression::weight).sum::<usize>().max(1),
        }
    }

    /// The expression as text; constants directly in it are written in `style`.
    pub(super) fn text(&self, style: Style) -> String {
        match self {
            Expression::Leaf(name) => name.clone(),
            Expression::Truth { yes, .. } => yes.clone(),
            Expression::Constant(value) => constant(*value, style),
            Expression::Infix { operator, rank, left, right } => {
                let inner = match *operator {
                    "&" | "|" | "^" => Style::Bits,
                    "+" | "-" => style,
                    _ => Style::Plain,
                };
                // Nobody knows the ranks of bit operators by heart: around them all is bracketed.
                let bits = matches!(*operator, "&" | "|" | "^" | "<<" | ">>");
                let (for_left, for_right) = if bits { (10, 10) } else { (*rank, *rank + 1) };
                format!("{} {operator} {}", left.bracketed(for_left, inner), right.bracketed(for_right, inner))
            }
            Expression::Compare { comparison, left, right } => {
                let (left, right) = (left.bracketed(2, style), right.bracketed(2, style));
                match comparison {
                    Comparison::Eq => format!("{left} == {right}"),
                    Comparison::Ne => format!("{left} != {right}"),
                    Comparison::Lt => format!("{left} < {right}"),
                    Comparison::Le => format!("{left} <= {right}"),
                    Comparison::Gt => format!("{left} > {right}"),
                    Comparison::Ge => format!("{left} >= {right}"),
                    Comparison::LtUnsigned => format!("unsigned {left} < {right}"),
                    Comparison::LeUnsigned => format!("unsigned {left} <= {right}"),
                    Comparison::GtUnsigned => format!("unsigned {left} > {right}"),
                    Comparison::GeUnsigned => format!("unsigned {left} >= {right}"),
                    Comparison::SeqLt => format!("{left} before {right}"),
                    Comparison::SeqLe => format!("{left} at or before {right}"),
                    Comparison::SeqGt => format!("{left} after {right}"),
                    Comparison::SeqGe => format!("{left} at or after {right}"),
                }
            }
            Expression::Call { name, arguments } => {
                let inner = if *name == "hash" { Style::Plain } else { style };
                let arguments: Vec<String> = arguments.iter().map(|argument| argument.text(inner)).collect();
                format!("{name}({})", arguments.join(", "))
            }
        }
    }

    pub(super) fn bracketed(&self, at_least: u8, style: Style) -> String {
        let text = self.text(style);
        if self.rank() < at_least { format!("({text})") } else { text }
    }

    /// What is so when the expression's truth value is `value`.
    pub(super) fn holds(&self, value: bool, style: Style) -> String {
        match self {
            Expression::Truth { yes, no } => if value { yes } else { no }.clone(),
            Expression::Compare { comparison, left, right } if !value => match opposite(*comparison) {
                Some(comparison) => {
                    Expression::Compare { comparison, left: left.clone(), right: right.clone() }.text(style)
                }
                None => format!("not ({})", self.text(style)),
            },
            _ if value => self.text(style),
            _ => format!("not ({})", self.text(style)),
        }
    }

    fn is_truth(&self) -> bool {
        matches!(self, Expression::Truth { .. } | Expression::Compare { .. })
    }
}

/// A comparison; a truth value compared with 0 or 1 is said directly.
pub(super) fn comparison(comparison: Comparison, left: Expression, right: Expression) -> Expression {
    let asks = match (&right, comparison) {
        (Expression::Constant(value @ (0 | 1)), Comparison::Eq) if left.is_truth() => Some(*value == 1),
        (Expression::Constant(value @ (0 | 1)), Comparison::Ne) if left.is_truth() => Some(*value == 0),
        _ => None,
    };
    match asks {
        Some(true) => left,
        Some(false) => match left {
            Expression::Truth { yes, no } => Expression::Truth { yes: no, no: yes },
            Expression::Compare { comparison: inner, left: a, right: b } => match opposite(inner) {
                Some(inner) => Expression::Compare { comparison: inner, left: a, right: b },
                None => {
                    let positive = Expression::Compare { comparison: inner, left: a, right: b }.text(Style::Plain);
                    Expression::Truth { yes: format!("not ({positive})"), no: positive }
                }
            },
            other => Expression::Compare {
                comparison: Comparison::Eq,
                left: Box::new(other),
                right: Box::new(Expression::Constant(0)),
            },
        },
        None => Expression::Compare { comparison, left: Box::new(left), right: Box::new(right) },
    }
}

/// The expression of a `compute`; adding nothing is said as a plain move.
pub(super) fn compute(operator: Operator, left: Expression, right: Expression) -> Expression {
    let zero = |side: &Expression| matches!(side, Expression::Constant(0));
    if matches!(operator, Operator::Add | Operator::Sub | Operator::Or | Operator::Xor) && zero(&right) {
        return left;
    }
    if matches!(operator, Operator::Add | Operator::Or | Operator::Xor) && zero(&left) {
        return right;
    }
    let truth = left.is_truth() && (right.is_truth() || matches!(right, Expression::Constant(0 | 1)));
    let infix = |symbol, rank| (Some((symbol, rank)), None, "");
    let compare = |comparison| (None, Some(comparison), "");
    let call = |name| (None, None, name);
    let (infix, compared, name) = match operator {
        Operator::Add => infix("+", 8),
        Operator::Sub => infix("-", 8),
        Operator::Mul => infix("*", 9),
        Operator::Div => infix("/", 9),
        Operator::Rem => infix("%", 9),
        Operator::And if truth => infix("and", 0),
        Operator::Or if truth => infix("or", 0),
        Operator::And => infix("&", 6),
        Operator::Or => infix("|", 4),
        Operator::Xor => infix("^", 5),
        Operator::Shl => infix("<<", 7),
        Operator::Shr => infix(">>", 7),
        Operator::ShrSigned => call("shift_right_signed"),
        Operator::DivUnsigned => call("divide_unsigned"),
        Operator::RemUnsigned => call("remainder_unsigned"),
        Operator::Min => call("min"),
        Operator::Max => call("max"),
        Operator::MinUnsigned => call("min_unsigned"),
        Operator::MaxUnsigned => call("max_unsigned"),
        Operator::SeqMin => call("seq_min"),
        Operator::SeqMax => call("seq_max"),
        Operator::SeqDistance => call("seq_distance"),
        Operator::Hash => call("hash"),
        Operator::Random => return Expression::Leaf("random()".into()),
        Operator::Eq => compare(Comparison::Eq),
        Operator::Ne => compare(Comparison::Ne),
        Operator::Lt => compare(Comparison::Lt),
        Operator::Le => compare(Comparison::Le),
        Operator::LtUnsigned => compare(Comparison::LtUnsigned),
        Operator::LeUnsigned => compare(Comparison::LeUnsigned),
        Operator::SeqLt => compare(Comparison::SeqLt),
        Operator::SeqLe => compare(Comparison::SeqLe),
    };
    match (infix, compared) {
        (Some((operator, rank)), _) => {
            Expression::Infix { operator, rank, left: Box::new(left), right: Box::new(right) }
        }
        (None, Some(which)) => comparison(which, left, right),
        (None, None) => Expression::Call { name, arguments: vec![left, right] },
    }
}

/// The comparison that holds exactly when this one does not. Sequence numbers have none: at a distance of 2^31 both
/// orders hold.
fn opposite(comparison: Comparison) -> Option<Comparison> {
    Some(match comparison {
        Comparison::Eq => Comparison::Ne,
        Comparison::Ne => Comparison::Eq,
        Comparison::Lt => Comparison::Ge,
        Comparison::Le => Comparison::Gt,
        Comparison::Gt => Comparison::Le,
        Comparison::Ge => Comparison::Lt,
        Comparison::LtUnsigned => Comparison::GeUnsigned,
        Comparison::LeUnsigned => Comparison::GtUnsigned,
        Comparison::GtUnsigned => Comparison::LeUnsigned,
        Comparison::GeUnsigned => Comparison::LtUnsigned,
        Comparison::SeqLt | Comparison::SeqLe | Comparison::SeqGt | Comparison::SeqGe => return None,
    })
}

fn constant(value: i64, style: Style) -> String {
    match style {
        Style::Plain => value.to_string(),
        Style::Duration => duration(value),
        Style::Ipv4 => match u32::try_from(value) {
            Ok(bits) => std::net::Ipv4Addr::from(bits).to_string(),
            Err(_) => value.to_string(),
        },
        Style::Mac => value.to_be_bytes()[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"),
        Style::Bits if value > 9 => format!("{value:#x}"),
        Style::Bits => value.to_string(),
    }
}

/// Nanoseconds in the largest unit that divides them: `200 ms`.
pub(crate) fn duration(nanoseconds: i64) -> String {
    for (unit, length) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if nanoseconds != 0 && nanoseconds % length == 0 {
            return format!("{} {unit}", nanoseconds / length);
        }
    }
    if nanoseconds == 0 { "0 s".into() } else { format!("{nanoseconds} ns") }
}
