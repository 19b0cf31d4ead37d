//! Rates that are sums of powers, waves and exponentials of time: their integrals in closed form.
//!
//! Every integral is taken in a form that loses no digits if both ends are close together, so that a hundred thousand periods
//! and a hundredth of one are equally exact.

use crate::expression::{Function, Node, Operator};

/// Powers of the time that are kept, and waves and exponentials.
const MOST_TERMS: usize = 32;

/// A sum of powers, waves and exponentials of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Modes {
    /// Of 1, t, t²...
    powers: Vec<f64>,
    /// Amplitude, frequency (radians) and phase.
    waves: Vec<(f64, f64, f64)>,
    /// Amplitude and rate.
    exponentials: Vec<(f64, f64)>,
}

impl Modes {
    /// The formula as such a sum, if it is one.
    pub(crate) fn of(node: &Node) -> Option<Modes> {
        let modes = Modes::of_node(node)?;
        let terms = [modes.powers.len(), modes.waves.len(), modes.exponentials.len()];
        terms.into_iter().all(|count| count <= MOST_TERMS).then_some(modes)
    }

    fn of_node(node: &Node) -> Option<Modes> {
        Some(match node {
            Node::Constant(value) => Modes { powers: vec![*value], ..Modes::default() },
            Node::Variable => Modes { powers: vec![0.0, 1.0], ..Modes::default() },
            Node::Binary(Operator::Add, left, right) => Modes::of(left)?.plus(Modes::of(right)?),
            Node::Binary(Operator::Subtract, left, right) => Modes::of(left)?.plus(Modes::of(right)?.scaled(-1.0)),
            Node::Binary(Operator::Multiply, left, right) => {
                let (left, right) = (Modes::of(left)?, Modes::of(right)?);
                match (left.constant(), right.constant()) {
                    (Some(factor), _) => right.scaled(factor),
                    (_, Some(factor)) => left.scaled(factor),
                    _ => left.times(&right)?,
                }
            }
            Node::Binary(Operator::Divide, left, right) => Modes::of(left)?.scaled(1.0 / Modes::of(right)?.constant()?),
            Node::Binary(Operator::Power, base, exponent) => match (&**base, Modes::of(exponent)?.constant()) {
                (_, Some(power)) if (0.0..=8.0).contains(&power) && power == libm::trunc(power) => {
                    let base = Modes::of(base)?;
                    let one = Modes { powers: vec![1.0], ..Modes::default() };
                    (0..power as usize).try_fold(one, |product, _| product.times(&base))?
                }
                (Node::Constant(base), None) if *base > 0.0 => {
                    let (offset, slope) = Modes::of(exponent)?.line()?;
                    Modes::exponential(libm::pow(*base, offset), libm::log(*base) * slope)
                }
                _ => return None,
            },
            Node::Call(function, inner) => {
                let (offset, slope) = Modes::of(inner)?.line()?;
                match function {
                    Function::Sin => Modes::wave(slope, offset),
                    Function::Cos => Modes::wave(slope, offset + std::f64::consts::FRAC_PI_2),
                    Function::Exp => Modes::exponential(libm::exp(offset), slope),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    fn wave(frequency: f64, phase: f64) -> Modes {
        Modes { waves: vec![(1.0, frequency, phase)], ..Modes::default() }
    }

    fn exponential(amplitude: f64, rate: f64) -> Modes {
        Modes { exponentials: vec![(amplitude, rate)], ..Modes::default() }
    }

    fn plus(mut self, other: Modes) -> Modes {
        self.powers.resize(self.powers.len().max(other.powers.len()), 0.0);
        self.powers.iter_mut().zip(other.powers).for_each(|(sum, part)| *sum += part);
        self.waves.extend(other.waves);
        self.exponentials.extend(other.exponentials);
        self
    }

    fn scaled(mut self, factor: f64) -> Modes {
        self.powers.iter_mut().for_each(|part| *part *= factor);
        self.waves.iter_mut().for_each(|wave| wave.0 *= factor);
        self.exponentials.iter_mut().for_each(|part| part.0 *= factor);
        self
    }

    /// Of two sums of powers.
    fn times(&self, other: &Modes) -> Option<Modes> {
        if !self.has_only_powers() || !other.has_only_powers() || self.powers.len() + other.powers.len() > MOST_TERMS {
            return None;
        }
        let mut powers = vec![0.0; self.powers.len() + other.powers.len() - 1];
        for (i, left) in self.powers.iter().enumerate() {
            for (j, right) in other.powers.iter().enumerate() {
                powers[i + j] += left * right;
            }
        }
        Some(Modes { powers, ..Modes::default() })
    }

    fn has_only_powers(&self) -> bool {
        self.waves.is_empty() && self.exponentials.is_empty()
    }

    fn constant(&self) -> Option<f64> {
        match self.powers[..] {
            [value] if self.has_only_powers() => Some(value),
            _ => None,
        }
    }

    /// Value at 0 and slope.
    fn line(&self) -> Option<(f64, f64)> {
        match self.powers[..] {
            [value] if self.has_only_powers() => Some((value, 0.0)),
            [value, slope] if self.has_only_powers() => Some((value, slope)),
            _ => None,
        }
    }

    /// The coefficients of 1, t, t² and so on, if there is nothing else.
    pub(crate) fn polynomial(self) -> Option<Vec<f64>> {
        self.has_only_powers().then_some(self.powers)
    }

    /// Whether it goes up and down for ever.
    pub(crate) fn oscillates(&self) -> bool {
        !self.waves.is_empty()
    }

    /// The integral from one time to another.
    pub(crate) fn between(&self, from: f64, to: f64) -> f64 {
        let width = to - from;
        let mut sum = 0.0;
        for (power, factor) in self.powers.iter().enumerate() {
            // (to^(k+1) - from^(k+1)) / (to - from) = to^k + to^(k-1) from + ... + from^k.
            let mut total = 0.0;
            let mut from_power = 1.0;
            for _ in 0..=power {
                total = total * to + from_power;
                from_power *= from;
            }
            sum += factor * width * total / (power + 1) as f64;
        }
        for (amplitude, frequency, phase) in &self.waves {
            // cos a - cos b = 2 sin((a + b) / 2) sin((b - a) / 2).
            let half = frequency * width / 2.0;
            let share = if half == 0.0 { 1.0 } else { libm::sin(half) / half };
            sum += amplitude * width * share * libm::sin(frequency * (from + width / 2.0) + phase);
        }
        for (amplitude, rate) in &self.exponentials {
            let exponent = rate * width;
            let share = if exponent == 0.0 { 1.0 } else { libm::expm1(exponent) / exponent };
            sum += amplitude * width * share * libm::exp(rate * from);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Setting, Shape, parse};

    fn modes(text: &str) -> Option<Modes> {
        match parse(text, &Setting::default()).expect("a formula").shape {
            Shape::Rate(rate) => Modes::of(&rate.0),
            _ => None,
        }
    }

    #[test]
    fn sums_of_modes_are_found_and_others_are_not() {
        let found =
            modes("R(t) = 2 pkt/s * (1.5 + sin(3*t/s) + cos(t/s)/4) + t^2*1/s^3 + 2^(-t/s) * 1/s").expect("a sum");
        assert_eq!((found.powers.len(), found.waves.len(), found.exponentials.len()), (3, 2, 1));
        let exact = |t: f64| {
            3.0 * t - 2.0 / 3.0 * (3.0 * t).cos() + 0.5 * t.sin() + t.powi(3) / 3.0
                - (-t).exp2() / std::f64::consts::LN_2
        };
        for (from, to) in [(0.0, 1.0), (0.5, 40.0), (3.0, 3.001)] {
            let wanted = exact(to) - exact(from);
            assert!((found.between(from, to) - wanted).abs() < 1e-12 * exact(to).abs(), "{from} {to}");
        }
        for text in
            ["R(t) = sqrt(1 + t/s)*1/s", "R(t) = sin(t*t/s^2)/s", "R(t) = max(0, sin(t/s))/s", "R(t) = 1/(t + 1 s)"]
        {
            assert_eq!(modes(text), None, "{text}");
        }
    }
}
