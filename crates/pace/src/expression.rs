//! Formulas as trees, and their values and slopes in 64-bit floating point.

/// A formula of one variable, units resolved.
#[derive(Clone, PartialEq, Debug)]
pub struct Expression(pub(crate) Node);

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Node {
    Constant(f64),
    Variable,
    Binary(Operator, Box<Node>, Box<Node>),
    Call(Function, Box<Node>),
    /// `if(left < right, then, otherwise)`; the flag says whether equal counts as less.
    If {
        left: Box<Node>,
        right: Box<Node>,
        or_equal: bool,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Minimum,
    Maximum,
    Remainder,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Function {
    Log2,
    Ln,
    Exp,
    Sqrt,
    Cbrt,
    Abs,
    Floor,
    Ceil,
    Sin,
    Cos,
}

/// A value and its derivative.
#[derive(Clone, Copy)]
struct Dual(f64, f64);

impl Expression {
    /// Its value.
    pub fn value(&self, at: f64) -> f64 {
        self.0.value(at)
    }

    /// Its value and its slope. At a kink the slope is one of both sides'; at a jump it is that beside the jump.
    pub fn value_and_slope(&self, at: f64) -> (f64, f64) {
        self.0.value_and_slope(at)
    }
}

impl Node {
    pub(crate) fn value(&self, at: f64) -> f64 {
        self.dual(at).0
    }

    pub(crate) fn value_and_slope(&self, at: f64) -> (f64, f64) {
        let Dual(value, slope) = self.dual(at);
        (value, slope)
    }

    /// How many nodes the tree has.
    pub(crate) fn size(&self) -> usize {
        1 + match self {
            Node::Constant(_) | Node::Variable => 0,
            Node::Binary(_, left, right) => left.size() + right.size(),
            Node::Call(_, inner) => inner.size(),
            Node::If { left, right, then, otherwise, .. } => {
                left.size() + right.size() + then.size() + otherwise.size()
            }
        }
    }

    /// The tree, or its value if it has no variable.
    pub(crate) fn folded(self) -> Node {
        let constant = |node: &Node| matches!(node, Node::Constant(_));
        let all_constant = match &self {
            Node::Constant(_) | Node::Variable => false,
            Node::Binary(_, left, right) => constant(left) && constant(right),
            Node::Call(_, inner) => constant(inner),
            Node::If { left, right, then, otherwise, .. } => {
                [left, right, then, otherwise].into_iter().all(|node| constant(node))
            }
        };
        if all_constant { Node::Constant(self.dual(0.0).0) } else { self }
    }

    fn dual(&self, at: f64) -> Dual {
        match self {
            Node::Constant(value) => Dual(*value, 0.0),
            Node::Variable => Dual(at, 1.0),
            Node::Binary(operator, left, right) => operator.apply(left.dual(at), right.dual(at)),
            Node::Call(function, inner) => function.apply(inner.dual(at)),
            Node::If { left, right, or_equal, then, otherwise } => {
                let (left, right) = (left.dual(at).0, right.dual(at).0);
                if left < right || (*or_equal && left == right) { then.dual(at) } else { otherwise.dual(at) }
            }
        }
    }
}

impl Operator {
    fn apply(self, left: Dual, right: Dual) -> Dual {
        let (Dual(x, dx), Dual(y, dy)) = (left, right);
        match self {
            Operator::Add => Dual(x + y, dx + dy),
            Operator::Subtract => Dual(x - y, dx - dy),
            Operator::Multiply => Dual(x * y, dx * y + x * dy),
            Operator::Divide => Dual(x / y, (dx - x / y * dy) / y),
            Operator::Power => {
                let value = libm::pow(x, y);
                // Each part only if it counts, so that 0^2 has a slope.
                let of_base = if dx == 0.0 { 0.0 } else { y * libm::pow(x, y - 1.0) * dx };
                let of_exponent = if dy == 0.0 { 0.0 } else { value * libm::log(x) * dy };
                Dual(value, of_base + of_exponent)
            }
            Operator::Minimum => {
                if x <= y {
                    left
                } else {
                    right
                }
            }
            Operator::Maximum => {
                if x >= y {
                    left
                } else {
                    right
                }
            }
            Operator::Remainder => {
                let turns = libm::floor(x / y);
                Dual(x - turns * y, dx - turns * dy)
            }
        }
    }
}

impl Function {
    fn apply(self, Dual(x, dx): Dual) -> Dual {
        const LN_2: f64 = std::f64::consts::LN_2;
        match self {
            Function::Log2 => Dual(libm::log2(x), dx / (x * LN_2)),
            Function::Ln => Dual(libm::log(x), dx / x),
            Function::Exp => Dual(libm::exp(x), libm::exp(x) * dx),
            Function::Sqrt => Dual(libm::sqrt(x), dx / (2.0 * libm::sqrt(x))),
            Function::Cbrt => Dual(libm::cbrt(x), dx / (3.0 * libm::cbrt(x) * libm::cbrt(x))),
            Function::Abs => Dual(libm::fabs(x), if x < 0.0 { -dx } else { dx }),
            Function::Floor => Dual(libm::floor(x), 0.0),
            Function::Ceil => Dual(libm::ceil(x), 0.0),
            Function::Sin => Dual(libm::sin(x), libm::cos(x) * dx),
            Function::Cos => Dual(libm::cos(x), -libm::sin(x) * dx),
        }
    }
}
