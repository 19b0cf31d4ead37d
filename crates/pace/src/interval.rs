//! Interval arithmetic: what values a formula can take over a stretch of time.
//!
//! Bounds are 64-bit numbers rounded to the nearest, not outwards: they are true to the last digits, which every test made
//! of them leaves room for. What has no value somewhere is unbounded.

use crate::expression::{Function, Node, Operator};

/// All numbers from one to another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

pub(crate) const ZERO: Interval = Interval { low: 0.0, high: 0.0 };

impl Interval {
    pub(crate) fn new(low: f64, high: f64) -> Interval {
        if low <= high { Interval { low, high } } else { Interval::unbounded() }
    }

    pub(crate) fn point(value: f64) -> Interval {
        Interval::new(value, value)
    }

    pub(crate) fn unbounded() -> Interval {
        Interval { low: f64::NEG_INFINITY, high: f64::INFINITY }
    }

    /// The greatest absolute value.
    pub(crate) fn greatest(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// A number of it: the only one, if it is a point.
    pub(crate) fn middle(self) -> f64 {
        if self.low == self.high { self.low } else { self.low + (self.high - self.low) / 2.0 }
    }

    pub(crate) fn plus(self, other: Interval) -> Interval {
        Interval::new(self.low + other.low, self.high + other.high)
    }

    pub(crate) fn minus(self, other: Interval) -> Interval {
        Interval::new(self.low - other.high, self.high - other.low)
    }

    pub(crate) fn negative(self) -> Interval {
        Interval { low: -self.high, high: -self.low }
    }

    pub(crate) fn times(self, other: Interval) -> Interval {
        if self.low == self.high && other.low == other.high {
            return Interval::point(self.low * other.low);
        }
        let (a, b) = (self.low * other.low, self.low * other.high);
        let (c, d) = (self.high * other.low, self.high * other.high);
        if a.is_nan() || b.is_nan() || c.is_nan() || d.is_nan() {
            return Interval::unbounded();
        }
        Interval { low: a.min(b).min(c.min(d)), high: a.max(b).max(c.max(d)) }
    }

    pub(crate) fn scaled(self, factor: f64) -> Interval {
        let (a, b) = (self.low * factor, self.high * factor);
        if factor >= 0.0 { Interval::new(a, b) } else { Interval::new(b, a) }
    }

    pub(crate) fn over(self, other: Interval) -> Interval {
        if other.contains_zero() {
            return Interval::unbounded();
        }
        if self.low == self.high && other.low == other.high {
            return Interval::point(self.low / other.low);
        }
        self.times(Interval { low: 1.0 / other.high, high: 1.0 / other.low })
    }

    pub(crate) fn contains_zero(self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }

    /// All of both, and what is between them.
    pub(crate) fn hull(self, other: Interval) -> Interval {
        Interval { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// Of a function that never falls.
    pub(crate) fn rising(self, of: fn(f64) -> f64) -> Interval {
        Interval::new(of(self.low), of(self.high))
    }

    fn magnitude(self) -> Interval {
        match (self.low >= 0.0, self.high <= 0.0) {
            (true, _) => self,
            (_, true) => self.negative(),
            _ => Interval { low: 0.0, high: self.greatest() },
        }
    }

    pub(crate) fn cosine(self) -> Interval {
        const TURN: f64 = std::f64::consts::TAU;
        // Far from 0 the turns can't be told apart.
        if self.high - self.low >= TURN || self.greatest() > 1e15 || !(self.high - self.low).is_finite() {
            return Interval { low: -1.0, high: 1.0 };
        }
        let (a, b) = (libm::cos(self.low), libm::cos(self.high));
        // The places of the greatest values are whole turns, those of the least are half a turn on.
        let reaches = |offset: f64| {
            let first = libm::ceil((self.low - offset) / TURN - 1e-12);
            first * TURN + offset <= self.high + 1e-12 * self.greatest()
        };
        Interval {
            low: if reaches(TURN / 2.0) { -1.0 } else { a.min(b) },
            high: if reaches(0.0) { 1.0 } else { a.max(b) },
        }
    }

    pub(crate) fn sine(self) -> Interval {
        if self.low == self.high {
            return Interval::point(libm::sin(self.low));
        }
        let quarter = Interval::point(std::f64::consts::FRAC_PI_2);
        let Interval { low, high } = self.minus(quarter).cosine();
        // The shift by a quarter turn is rounded.
        let slack = 4.0 * f64::EPSILON * self.greatest().max(1.0);
        Interval { low: (low - slack).max(-1.0), high: (high + slack).min(1.0) }
    }

    /// To a whole power.
    fn whole_power(self, power: i32) -> Interval {
        let raised = |value: f64| libm::pow(value, f64::from(power.abs()));
        let result = if power % 2 == 0 {
            let Interval { low, high } = self.magnitude();
            Interval::new(raised(low), raised(high))
        } else {
            Interval::new(raised(self.low), raised(self.high))
        };
        if power < 0 { Interval::point(1.0).over(result) } else { result }
    }

    /// To any power, where the base is not below 0.
    fn power(self, exponent: Interval) -> Interval {
        if self.low < 0.0 || (self.low == 0.0 && exponent.low < 0.0) {
            return Interval::unbounded();
        }
        let corners = [
            (self.low, exponent.low),
            (self.low, exponent.high),
            (self.high, exponent.low),
            (self.high, exponent.high),
        ]
        .map(|(base, exponent)| Interval::point(libm::pow(base, exponent)));
        corners.into_iter().fold(corners[0], Interval::hull)
    }
}

/// A whole number that an exponent is, small enough to multiply so often.
pub(crate) fn whole_exponent(node: &Node) -> Option<i32> {
    match node {
        Node::Constant(value) if value.abs() <= 32.0 && *value == libm::trunc(*value) => Some(*value as i32),
        _ => None,
    }
}

impl Node {
    /// What values it can take while the variable is in the interval: all that it takes, and maybe more.
    pub(crate) fn range(&self, of: Interval) -> Interval {
        match self {
            Node::Constant(value) => Interval::point(*value),
            Node::Variable => of,
            Node::Binary(Operator::Power, base, exponent) => match whole_exponent(exponent) {
                Some(power) => base.range(of).whole_power(power),
                None => base.range(of).power(exponent.range(of)),
            },
            Node::Binary(operator, left, right) => {
                let (left, right) = (left.range(of), right.range(of));
                match operator {
                    Operator::Add => left.plus(right),
                    Operator::Subtract => left.minus(right),
                    Operator::Multiply => left.times(right),
                    Operator::Divide => left.over(right),
                    Operator::Power => left.power(right),
                    Operator::Minimum => Interval::new(left.low.min(right.low), left.high.min(right.high)),
                    Operator::Maximum => Interval::new(left.low.max(right.low), left.high.max(right.high)),
                    Operator::Remainder => {
                        let turns = left.over(right).rising(libm::floor);
                        if turns.low == turns.high {
                            left.minus(right.times(turns))
                        } else {
                            // From 0 to the divisor, whatever its sign.
                            ZERO.hull(right)
                        }
                    }
                }
            }
            Node::Call(function, inner) => {
                let inner = inner.range(of);
                match function {
                    Function::Log2 if inner.low >= 0.0 => inner.rising(libm::log2),
                    Function::Ln if inner.low >= 0.0 => inner.rising(libm::log),
                    Function::Sqrt if inner.low >= 0.0 => inner.rising(libm::sqrt),
                    Function::Log2 | Function::Ln | Function::Sqrt => Interval::unbounded(),
                    Function::Exp => inner.rising(libm::exp),
                    Function::Cbrt => inner.rising(libm::cbrt),
                    Function::Floor => inner.rising(libm::floor),
                    Function::Ceil => inner.rising(libm::ceil),
                    Function::Abs => inner.magnitude(),
                    Function::Sin => inner.sine(),
                    Function::Cos => inner.cosine(),
                }
            }
            Node::If { left, right, or_equal, then, otherwise } => {
                let (left, right) = (left.range(of), right.range(of));
                match less(left, right, *or_equal) {
                    Some(true) => then.range(of),
                    Some(false) => otherwise.range(of),
                    None => then.range(of).hull(otherwise.range(of)),
                }
            }
        }
    }
}

/// Whether all of the left is less than all of the right, or none of it, or neither.
pub(crate) fn less(left: Interval, right: Interval, or_equal: bool) -> Option<bool> {
    let (surely, never) = if or_equal {
        (left.high <= right.low, left.low > right.high)
    } else {
        (left.high < right.low, left.low >= right.high)
    };
    if surely {
        Some(true)
    } else if never {
        Some(false)
    } else {
        None
    }
}
