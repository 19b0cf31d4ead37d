//! Power series of a formula, with intervals as coefficients: what its rules of differentiation give over a stretch of time.
//!
//! If the coefficients are taken over `[a, b]`, then `f(a + v) = c0 + c1 v + ... + C v^ORDER`, where the first are the coefficients
//! at `a` and `C` lies in the last coefficient over all of `[a, b]` (Taylor's theorem; Moore, "Interval Analysis", 1966). So the
//! formula itself says how well a polynomial stands for it.

use crate::expression::{Function, Node, Operator};
use crate::interval::{Interval, ZERO, less, whole_exponent};

/// The power of the last coefficient.
pub(crate) const ORDER: usize = 16;

/// Why there is no series over a stretch: it jumps, bends or has no value somewhere in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotSmooth {
    /// Where that may be, by Newton's method from the beginning; exact if a straight line switches.
    pub(crate) at: Option<f64>,
}

/// Coefficients up to a power; those after the last are 0.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    coefficients: [Interval; ORDER + 1],
    /// How many are not surely 0.
    length: usize,
    /// The power up to which they are wanted.
    order: usize,
}

type Result = std::result::Result<Series, NotSmooth>;

const ANYWHERE: NotSmooth = NotSmooth { at: None };

impl Series {
    fn constant(value: Interval, order: usize) -> Series {
        let mut coefficients = [ZERO; ORDER + 1];
        coefficients[0] = value;
        Series { coefficients, length: 1, order }
    }

    /// The coefficient of a power.
    pub(crate) fn at(&self, power: usize) -> Interval {
        self.coefficients[power]
    }

    fn each(mut self, of: impl Fn(Interval) -> Interval) -> Series {
        for coefficient in &mut self.coefficients[..self.length] {
            *coefficient = of(*coefficient);
        }
        self
    }

    fn combined(&self, other: &Series, of: impl Fn(Interval, Interval) -> Interval) -> Series {
        let mut sum = self.clone();
        sum.length = self.length.max(other.length);
        for power in 0..sum.length {
            sum.coefficients[power] = of(self.coefficients[power], other.coefficients[power]);
        }
        sum
    }

    /// Coefficients that follow from those before them: `of` makes one of the finished ones and its power.
    fn recursive(&self, first: Interval, of: impl Fn(&[Interval], usize) -> Interval) -> Series {
        let mut result = Series::constant(first, self.order);
        if self.length > 1 {
            result.length = self.order + 1;
        }
        for power in 1..result.length {
            result.coefficients[power] = of(&result.coefficients, power);
        }
        result
    }

    /// The sum of `weight(j) · self[j] · other[power - j]` for j from 1 on.
    fn folded(&self, other: &[Interval], power: usize, weight: impl Fn(usize) -> f64) -> Interval {
        (1..=power.min(self.length - 1))
            .fold(ZERO, |sum, j| sum.plus(self.coefficients[j].times(other[power - j]).scaled(weight(j))))
    }

    fn times(&self, other: &Series) -> Series {
        let mut product = Series::constant(ZERO, self.order);
        product.length = (self.length + other.length - 1).min(self.order + 1);
        for power in 0..product.length {
            let first = power.saturating_sub(other.length - 1);
            product.coefficients[power] = (first..=power.min(self.length - 1))
                .fold(ZERO, |sum, j| sum.plus(self.coefficients[j].times(other.coefficients[power - j])));
        }
        product
    }

    fn over(&self, other: &Series) -> Result {
        let divisor = other.coefficients[0];
        if divisor.contains_zero() {
            return Err(ANYWHERE);
        }
        if other.length == 1 {
            return Ok(self.clone().each(|coefficient| coefficient.over(divisor)));
        }
        let quotient = |known: &[Interval], power: usize| {
            self.coefficients[power].minus(other.folded(known, power, |_| 1.0)).over(divisor)
        };
        Ok(other.recursive(self.coefficients[0].over(divisor), quotient))
    }

    fn exponential(&self, first: Interval) -> Series {
        self.recursive(first, |known, power| self.folded(known, power, |j| j as f64).scaled(1.0 / power as f64))
    }

    fn logarithm(&self) -> Result {
        let base = self.coefficients[0];
        if base.low <= 0.0 {
            return Err(ANYWHERE);
        }
        Ok(self.recursive(base.rising(libm::log), |known, power| {
            let sum = (1..power).fold(ZERO, |sum, j| {
                sum.plus(known[j].times(self.coefficients[power - j]).scaled(j as f64 / power as f64))
            });
            self.coefficients[power].minus(sum).over(base)
        }))
    }

    /// To a power that is not whole; `first` is the coefficient of power 0.
    fn root(&self, exponent: f64, first: impl Fn(f64) -> f64) -> Result {
        let base = self.coefficients[0];
        if base.low <= 0.0 {
            return Err(ANYWHERE);
        }
        let (a, b) = (first(base.low), first(base.high));
        let first = Interval::new(a.min(b), a.max(b));
        Ok(self.recursive(first, |known, power| {
            let weight = |j: usize| (exponent * j as f64 - (power - j) as f64) / power as f64;
            self.folded(known, power, weight).over(base)
        }))
    }

    fn whole_power(&self, power: i32) -> Result {
        let one = || Series::constant(Interval::point(1.0), self.order);
        let raised = (0..power.unsigned_abs()).fold(one(), |product, _| product.times(self));
        if power < 0 { one().over(&raised) } else { Ok(raised) }
    }

    /// Sine and cosine.
    fn waves(&self) -> (Series, Series) {
        let angle = self.coefficients[0];
        let mut sine = Series::constant(angle.sine(), self.order);
        let mut cosine = Series::constant(angle.cosine(), self.order);
        if self.length > 1 {
            (sine.length, cosine.length) = (self.order + 1, self.order + 1);
            for power in 1..=self.order {
                let share = 1.0 / power as f64;
                sine.coefficients[power] = self.folded(&cosine.coefficients, power, |j| j as f64 * share);
                cosine.coefficients[power] = self.folded(&sine.coefficients, power, |j| -(j as f64) * share);
            }
        }
        (sine, cosine)
    }
}

impl Node {
    /// The series up to a power, its coefficients taken over all of the interval.
    pub(crate) fn series(&self, over: Interval, order: usize) -> Result {
        match self {
            Node::Constant(value) => Ok(Series::constant(Interval::point(*value), order)),
            Node::Variable => {
                let mut series = Series::constant(over, order);
                series.coefficients[1] = Interval::point(1.0);
                series.length = 2.min(order + 1);
                Ok(series)
            }
            Node::Binary(Operator::Power, base, exponent) => base.power_series(exponent, over, order),
            Node::Binary(..) => self.spine_series(over, order),
            Node::Call(function, inner) => inner.function_series(*function, over, order),
            Node::If { left, right, or_equal, then, otherwise } => {
                let is_less = match less(left.range(over), right.range(over), *or_equal) {
                    None => {
                        let (x, y) = (left.series(over, 1)?, right.series(over, 1)?);
                        less_by_slope(left, right, (&x, &y), over, *or_equal)
                    }
                    known => known,
                };
                match is_less.ok_or_else(|| meets(left, right, over.low))? {
                    true => then.series(over, order),
                    false => otherwise.series(over, order),
                }
            }
        }
    }

    /// Of `a + b - c ...`: down the left side and up again, as long sums and products are deep trees.
    fn spine_series(&self, over: Interval, order: usize) -> Result {
        let mut spine = Vec::new();
        let mut node = self;
        while let Node::Binary(operator, left, right) = node
            && *operator != Operator::Power
        {
            spine.push((*operator, left, right));
            node = left;
        }
        let mut series = node.series(over, order)?;
        for (operator, left, right) in spine.into_iter().rev() {
            let (x, y) = (series, right.series(over, order)?);
            let (low, high) = (x.at(0), y.at(0));
            series = match operator {
                Operator::Add => x.combined(&y, Interval::plus),
                Operator::Subtract => x.combined(&y, Interval::minus),
                Operator::Multiply => x.times(&y),
                Operator::Divide => x.over(&y)?,
                Operator::Power => return Err(ANYWHERE),
                Operator::Minimum | Operator::Maximum => {
                    let is_less = less(low, high, true).or_else(|| less_by_slope(left, right, (&x, &y), over, true));
                    match is_less.ok_or_else(|| meets(left, right, over.low))? == (operator == Operator::Minimum) {
                        true => x,
                        false => y,
                    }
                }
                Operator::Remainder => {
                    let turns = low.over(high).rising(libm::floor);
                    if turns.low != turns.high {
                        let quotient = Node::Binary(Operator::Divide, left.clone(), right.clone());
                        return Err(quotient.reaches_whole(over.low));
                    }
                    x.combined(&y.each(|part| part.scaled(turns.low)), Interval::minus)
                }
            };
        }
        Ok(series)
    }

    fn power_series(&self, exponent: &Node, over: Interval, order: usize) -> Result {
        if let Some(power) = whole_exponent(exponent) {
            return self.series(over, order)?.whole_power(power);
        }
        match (self, exponent) {
            (Node::Constant(base), _) if *base > 0.0 => {
                let ln = libm::log(*base);
                let exponent = exponent.series(over, order)?;
                let of = |value: f64| libm::pow(*base, value);
                let (a, b) = (of(exponent.at(0).low), of(exponent.at(0).high));
                let first = Interval::new(a.min(b), a.max(b));
                Ok(exponent.each(|coefficient| coefficient.scaled(ln)).exponential(first))
            }
            (_, Node::Constant(power)) => self.series(over, order)?.root(*power, |base| libm::pow(base, *power)),
            _ => {
                let product = self.series(over, order)?.logarithm()?.times(&exponent.series(over, order)?);
                let first = product.at(0).rising(libm::exp);
                Ok(product.exponential(first))
            }
        }
    }

    fn function_series(&self, function: Function, over: Interval, order: usize) -> Result {
        let inner = self.series(over, order)?;
        let value = inner.at(0);
        match function {
            Function::Log2 => Ok(inner.logarithm()?.each(|part| part.scaled(std::f64::consts::LOG2_E))),
            Function::Ln => inner.logarithm(),
            Function::Exp => Ok(inner.exponential(value.rising(libm::exp))),
            Function::Sqrt => inner.root(0.5, libm::sqrt),
            Function::Cbrt if value.high < 0.0 => {
                Ok(inner.each(Interval::negative).root(1.0 / 3.0, libm::cbrt)?.each(Interval::negative))
            }
            Function::Cbrt => inner.root(1.0 / 3.0, libm::cbrt),
            Function::Sin => Ok(inner.waves().0),
            Function::Cos => Ok(inner.waves().1),
            Function::Abs if value.low >= 0.0 => Ok(inner),
            Function::Abs if value.high <= 0.0 => Ok(inner.each(Interval::negative)),
            Function::Abs => Err(meets(self, &Node::Constant(0.0), over.low)),
            Function::Floor | Function::Ceil => {
                let steps = value.rising(if function == Function::Floor { libm::floor } else { libm::ceil });
                if steps.low == steps.high {
                    Ok(Series::constant(steps, order))
                } else {
                    Err(self.reaches_whole(over.low))
                }
            }
        }
    }

    /// About where it is a whole number next.
    fn reaches_whole(&self, from: f64) -> NotSmooth {
        let (value, slope) = self.value_and_slope(from);
        let next = if slope > 0.0 { libm::floor(value) + 1.0 } else { libm::ceil(value) - 1.0 };
        NotSmooth { at: Some(from + (next - value) / slope).filter(|at| at.is_finite()) }
    }
}

/// As [`less`], from the difference at the beginning and the slopes: it knows that both may rise together.
fn less_by_slope(
    left: &Node,
    right: &Node,
    series: (&Series, &Series),
    over: Interval,
    or_equal: bool,
) -> Option<bool> {
    let slope = series.0.at(1).minus(series.1.at(1));
    let change = slope.times(Interval::new(0.0, over.high - over.low));
    let difference = Interval::point(left.value(over.low) - right.value(over.low)).plus(change);
    less(difference, ZERO, or_equal)
}

/// About where both have the same value.
fn meets(left: &Node, right: &Node, from: f64) -> NotSmooth {
    let ((x, dx), (y, dy)) = (left.value_and_slope(from), right.value_and_slope(from));
    NotSmooth { at: Some(from + (y - x) / (dx - dy)).filter(|at| at.is_finite()) }
}
