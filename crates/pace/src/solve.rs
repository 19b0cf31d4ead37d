//! The time of each packet: T(n) of n - n0 = ∫R.
//!
//! Shapes with a closed form use it. Of N(t) the inverse is found by Newton's method kept inside a bracket; of R(t) the
//! integral is taken by the Gauss-Kronrod rule of 7 and 15 points, halving intervals until both agree, and only from the last
//! packet on. Sums are compensated (Neumaier), so that a million packets lose no more digits than one.

use crate::envelope::{Envelope, Shape};
use crate::expression::Expression;
use crate::fault::SolveError;

/// Halvings of the bracket or doublings of it, in all.
const MOST_STEPS: usize = 400;
/// Intervals into which one integral is cut at most.
const MOST_INTERVALS: usize = 4_096;
/// Agreement asked of both rules, relative to the integral.
const AGREEMENT: f64 = 1e-13;

/// Finds the times of packets, best asked in rising order.
#[derive(Clone, Debug)]
pub struct Solver<'a> {
    envelope: &'a Envelope,
    /// Where the last answer was: time, and packets since the origin.
    time: f64,
    sent: f64,
    /// Low digits of `sent`.
    sent_low: f64,
    /// Of a Poisson process: the random state, and the time and gap of the last whole packet.
    random: u32,
    whole: u64,
    gap: f64,
}

impl<'a> Solver<'a> {
    /// A solver at time 0.
    pub fn new(envelope: &'a Envelope) -> Solver<'a> {
        let random = match envelope.shape {
            Shape::Poisson { seed, .. } => seed,
            _ => 0,
        };
        Solver { envelope, time: 0.0, sent: 0.0, sent_low: 0.0, random, whole: 0, gap: 0.0 }
    }

    /// T(n): when packet `n` goes. Packets up to the origin go at 0.
    pub fn time_of_packet(&mut self, n: u64) -> Result<f64, SolveError> {
        if let Shape::Time(time) = &self.envelope.shape {
            return checked(time.value(n as f64), n as f64);
        }
        self.time_of(n as f64 - self.envelope.origin())
    }

    /// When so many packets have gone since the one at time 0; also fractions of a packet, for packets of different sizes.
    pub fn time_of(&mut self, amount: f64) -> Result<f64, SolveError> {
        let packet = amount + self.envelope.origin();
        if amount <= 0.0 && !matches!(self.envelope.shape, Shape::Time(_)) {
            return Ok(0.0);
        }
        match &self.envelope.shape {
            Shape::Exponential { window, doubling } => {
                Ok(doubling * libm::log1p(amount / window) / std::f64::consts::LN_2)
            }
            Shape::Pieces { pieces, .. } => {
                let time = pieces.time_of(amount);
                let never = SolveError::NeverSent { packet, sent: packet };
                if time.is_finite() { Ok(time) } else { Err(never) }
            }
            Shape::Time(time) => checked(time.value(amount + 1.0), amount + 1.0),
            Shape::Poisson { rate, seed } => Ok(self.random_time(amount, *seed) / rate),
            Shape::Cubic(cubic) => {
                let cubic = *cubic;
                self.solve(amount, |from, to| Ok(cubic.sent_between(from, to)), |time| Ok(cubic.rate(time)))
            }
            Shape::Rate(rate) => self.solve(amount, |from, to| integral(rate, from, to), |time| rate_at(rate, time)),
            Shape::Sent(sent) => {
                let between = |from: f64, to: f64| checked(sent.value(to) - sent.value(from), to);
                self.solve(amount, between, |time| Ok(sent.value_and_slope(time).1))
            }
        }
    }

    /// The number of the packet at time 0.
    pub(crate) fn origin(&self) -> f64 {
        self.envelope.origin()
    }

    /// δ(n) = T(n + 1) - T(n), without the digits that the difference of two close times would lose, where the shape allows.
    pub fn gap_after(&mut self, n: u64) -> Result<f64, SolveError> {
        if let Shape::Exponential { window, doubling } = self.envelope.shape
            && n as f64 >= window
        {
            return Ok(doubling * libm::log1p(1.0 / n as f64) / std::f64::consts::LN_2);
        }
        let time = self.time_of_packet(n)?;
        Ok(self.time_of_packet(n + 1)? - time)
    }

    /// The time in means of a gap.
    fn random_time(&mut self, amount: f64, seed: u32) -> f64 {
        let wanted = amount as u64;
        if wanted < self.whole {
            (self.whole, self.time, self.random) = (0, 0.0, seed);
        }
        while self.whole < wanted {
            self.random = xorshift(self.random);
            self.time += -libm::log(f64::from(self.random) / 4_294_967_296.0);
            self.whole += 1;
        }
        self.gap = -libm::log(f64::from(xorshift(self.random)) / 4_294_967_296.0);
        self.time + (amount - wanted as f64) * self.gap
    }

    /// Finds the time at which `amount` is sent: `between` is the integral, `rate` the integrand.
    fn solve(
        &mut self,
        amount: f64,
        between: impl Fn(f64, f64) -> Result<f64, SolveError>,
        rate: impl Fn(f64) -> Result<f64, SolveError>,
    ) -> Result<f64, SolveError> {
        if amount < self.sent + self.sent_low {
            (self.time, self.sent, self.sent_low) = (0.0, 0.0, 0.0);
        }
        let packet = amount + self.envelope.origin();
        // A bracket: from the last answer on, in steps that double until they are past it.
        let missing = (amount - self.sent) - self.sent_low;
        if missing <= 0.0 {
            return Ok(self.time);
        }
        let guess = missing / rate(self.time)?;
        let mut step = if guess.is_finite() && guess > 0.0 { guess.clamp(1e-12, 1e12) } else { 1e-3 };
        let mut missing = missing;
        for _ in 0..MOST_STEPS {
            let gained = between(self.time, self.time + step)?;
            if gained >= missing {
                let (time, gained) = inside(self.time, step, missing, &between, &rate)?;
                self.advance(gained);
                self.time = time;
                return Ok(time);
            }
            self.advance(gained.max(0.0));
            self.time += step;
            missing = (amount - self.sent) - self.sent_low;
            step *= 2.0;
            if self.time > 1e15 {
                break;
            }
        }
        let sent = self.sent + self.envelope.origin();
        Err(SolveError::NeverSent { packet, sent })
    }

    /// Adds to the packets sent, keeping the digits that do not fit.
    fn advance(&mut self, gained: f64) {
        let sum = self.sent + gained;
        self.sent_low += if self.sent >= gained { (self.sent - sum) + gained } else { (gained - sum) + self.sent };
        self.sent = sum;
    }
}

/// The time after `start` at which `missing` more is sent, at most `step` later; with what is sent until then.
fn inside(
    start: f64,
    step: f64,
    missing: f64,
    between: impl Fn(f64, f64) -> Result<f64, SolveError>,
    rate: impl Fn(f64) -> Result<f64, SolveError>,
) -> Result<(f64, f64), SolveError> {
    let (mut low, mut low_sent) = (start, 0.0);
    let mut high = start + step;
    // A flat rate makes the end of the first step the answer already.
    let mut time = high;
    for _ in 0..MOST_STEPS {
        let sent = low_sent + between(low, time)?;
        let error = sent - missing;
        if error <= 0.0 {
            (low, low_sent) = (time, sent);
        } else {
            high = time;
        }
        if error.abs() <= 1e-15 * missing.max(1e-6) {
            return Ok((time, sent));
        }
        let newton = time - error / rate(time)?;
        let next = if newton > low && newton < high { newton } else { low + (high - low) / 2.0 };
        if (next - time).abs() <= f64::EPSILON * time.abs() || next <= low || next >= high {
            // No number lies between.
            return Ok((next.clamp(low, high), missing));
        }
        time = next;
    }
    Ok((time, missing))
}

/// The next state of the generator that a Poisson process draws from (Marsaglia, "Xorshift RNGs", 2003): shifts and exclusive
/// ors, one clock in hardware. It visits all 32-bit numbers but 0.
pub(crate) fn xorshift(state: u32) -> u32 {
    let state = state ^ (state << 13);
    let state = state ^ (state >> 17);
    state ^ (state << 5)
}

fn checked(value: f64, at: f64) -> Result<f64, SolveError> {
    if value.is_finite() { Ok(value) } else { Err(SolveError::NotFinite { at }) }
}

fn rate_at(rate: &Expression, time: f64) -> Result<f64, SolveError> {
    let value = checked(rate.value(time), time)?;
    if value < 0.0 { Err(SolveError::NegativeRate { time, rate: value }) } else { Ok(value) }
}

/// The integral of a rate from one time to another.
pub fn integral(rate: &Expression, from: f64, to: f64) -> Result<f64, SolveError> {
    let mut waiting = vec![(from, to)];
    let (mut sum, mut low, mut intervals) = (0.0_f64, 0.0_f64, 0);
    let width = to - from;
    while let Some((from, to)) = waiting.pop() {
        let (fine, coarse) = gauss_kronrod(rate, from, to)?;
        intervals += 1;
        let tolerance = AGREEMENT * fine.abs().max(sum.abs()) + 1e-300;
        let small = (to - from) < width * 1e-14 || to - from <= f64::EPSILON * to.abs();
        if (fine - coarse).abs() <= tolerance || small || intervals + waiting.len() > MOST_INTERVALS {
            let next = sum + fine;
            low += if sum >= fine { (sum - next) + fine } else { (fine - next) + sum };
            sum = next;
        } else {
            let middle = from + (to - from) / 2.0;
            waiting.extend([(middle, to), (from, middle)]);
        }
    }
    Ok(sum + low)
}

/// Places and weights of the 15 points (the last is the middle), and the weights of the 7 among them (every second).
/// Kronrod, "Nodes and Weights of Quadrature Formulas", 1965; as in QUADPACK's qk15.
const PLACES: [f64; 8] = [
    0.991_455_371_120_812_6,
    0.949_107_912_342_758_5,
    0.864_864_423_359_769_1,
    0.741_531_185_599_394_3,
    0.586_087_235_467_691_1,
    0.405_845_151_377_397_2,
    0.207_784_955_007_898_48,
    0.0,
];
const WEIGHTS_15: [f64; 8] = [
    0.022_935_322_010_529_224,
    0.063_092_092_629_978_54,
    0.104_790_010_322_250_17,
    0.140_653_259_715_525_92,
    0.169_004_726_639_267_9,
    0.190_350_578_064_785_42,
    0.204_432_940_075_298_89,
    0.209_482_141_084_727_82,
];
const WEIGHTS_7: [f64; 4] =
    [0.129_484_966_168_869_7, 0.279_705_391_489_276_64, 0.381_830_050_505_118_9, 0.417_959_183_673_469_4];

fn gauss_kronrod(rate: &Expression, from: f64, to: f64) -> Result<(f64, f64), SolveError> {
    let (middle, half) = (from + (to - from) / 2.0, (to - from) / 2.0);
    let (mut fine, mut coarse) = (0.0, 0.0);
    for (index, place) in PLACES.iter().enumerate() {
        let sum = match index {
            7 => rate_at(rate, middle)?,
            _ => rate_at(rate, middle - half * place)? + rate_at(rate, middle + half * place)?,
        };
        fine += WEIGHTS_15[index] * sum;
        if index % 2 == 1 {
            coarse += WEIGHTS_7[index / 2] * sum;
        }
    }
    Ok((fine * half, coarse * half))
}
