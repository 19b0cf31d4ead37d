//! The time of each packet: T(n) of n - n0 = ∫R.
//!
//! Shapes with a closed form use it. Formulas are cut into cells over which they are proven to be known well enough: see the
//! module `cells`. Of N(t) the time is the first at which it reaches n. Sums are compensated (Neumaier), so that a
//! million packets lose no more digits than one.

use crate::cells::{Cell, Climber, LONGEST, Walker, first_reached};
use crate::envelope::{Cubic, Envelope, Shape};
use crate::expression::Expression;
use crate::fault::SolveError;

/// Finds the times of packets, best asked in rising order.
#[derive(Clone, Debug)]
pub struct Solver<'a> {
    envelope: &'a Envelope,
    /// From where to search: a time, and the packets sent until then since the origin.
    time: f64,
    sent: Sum,
    search: Search<'a>,
    /// Of a Poisson process: the random state, and the time and gap of the last whole packet.
    random: u32,
    whole: u64,
    gap: f64,
    /// Of T(n): the greatest number asked for, and its time.
    latest: (f64, f64),
}

/// What a search remembers.
#[derive(Clone, Debug)]
enum Search<'a> {
    /// The shape has no formula, or that of T(n).
    Nothing,
    /// The cell that begins at the solver's time.
    Rate { walker: Box<Walker<'a>>, cell: Option<Box<Cell>> },
    /// Where N(t) was searched, and the greatest number asked for.
    Sent { climber: Climber<'a>, last: f64 },
}

/// A sum, and the digits of it that did not fit.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    value: f64,
    low: f64,
}

impl Sum {
    fn add(&mut self, part: f64) {
        let sum = self.value + part;
        self.low += if self.value >= part { (self.value - sum) + part } else { (part - sum) + self.value };
        self.value = sum;
    }

    /// What is missing to an amount.
    fn missing(&self, amount: f64) -> f64 {
        (amount - self.value) - self.low
    }
}

impl<'a> Solver<'a> {
    /// A solver at time 0.
    pub fn new(envelope: &'a Envelope) -> Solver<'a> {
        let random = match envelope.shape {
            Shape::Poisson { seed, .. } => seed,
            _ => 0,
        };
        let search = match &envelope.shape {
            Shape::Rate(rate) => Search::Rate { walker: Box::new(Walker::new(rate)), cell: None },
            Shape::Sent(sent) => Search::Sent { climber: Climber::new(sent), last: f64::NEG_INFINITY },
            _ => Search::Nothing,
        };
        Solver {
            envelope,
            time: 0.0,
            sent: Sum::default(),
            search,
            random,
            whole: 0,
            gap: 0.0,
            latest: (0.0, f64::NEG_INFINITY),
        }
    }

    /// T(n): when packet `n` goes. Packets up to the origin go at 0.
    pub fn time_of_packet(&mut self, n: u64) -> Result<f64, SolveError> {
        if let Shape::Time(time) = &self.envelope.shape {
            return self.told(n as f64, time);
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
            Shape::Time(time) => self.told(amount + 1.0, time),
            Shape::Poisson { rate, seed } => Ok(self.random_time(amount, *seed) / rate),
            Shape::Cubic(cubic) => self.grown(amount, *cubic),
            Shape::Rate(_) => self.walk(amount),
            Shape::Sent(sent) => self.climb(packet, sent),
        }
    }

    /// The time that the formula T(n) tells. It must not fall from one packet to a later one.
    fn told(&mut self, packet: f64, formula: &Expression) -> Result<f64, SolveError> {
        let time = checked(formula.value(packet), packet)?;
        let (latest, before) = self.latest;
        if packet >= latest {
            if time < before {
                return Err(SolveError::Backwards { packet });
            }
            self.latest = (packet, time);
        }
        Ok(time)
    }

    /// The first time at which N(t) reaches the packet's number.
    fn climb(&mut self, packet: f64, sent: &'a Expression) -> Result<f64, SolveError> {
        if !packet.is_finite() {
            return Err(SolveError::NotFinite { at: 0.0 });
        }
        let Search::Sent { climber, last } = &mut self.search else { return Ok(0.0) };
        if packet < *last {
            *climber = Climber::new(sent);
        }
        *last = packet;
        climber.time_of(packet)
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

    /// Goes from cell to cell until `amount` is sent.
    fn walk(&mut self, amount: f64) -> Result<f64, SolveError> {
        if amount < self.sent.value + self.sent.low {
            *self = Solver::new(self.envelope);
        }
        let origin = self.envelope.origin();
        let Search::Rate { walker, cell } = &mut self.search else { return Ok(0.0) };
        walker.begin();
        loop {
            let missing = self.sent.missing(amount);
            if let Some(here) = cell {
                if missing <= here.gain() {
                    return Ok(walker.time_in(here, missing));
                }
                self.sent.add(here.gain());
                self.time = here.end();
            }
            if self.time >= LONGEST {
                let sent = self.sent.value + origin;
                return Err(SolveError::NeverSent { packet: amount + origin, sent });
            }
            *cell = None;
            let next = walker.cell(self.time, 2.0 * LONGEST, self.sent.missing(amount), amount)?;
            *cell = Some(Box::new(next));
        }
    }

    /// Finds the time at which a window that grows by the cube has sent `amount`.
    fn grown(&mut self, amount: f64, cubic: Cubic) -> Result<f64, SolveError> {
        if amount < self.sent.value + self.sent.low {
            (self.time, self.sent) = (0.0, Sum::default());
        }
        let missing = self.sent.missing(amount);
        if missing <= 0.0 {
            return Ok(self.time);
        }
        // Its rate never falls, so what is missing takes no longer than at the rate now.
        let step = (missing / cubic.rate(self.time)).clamp(1e-12, LONGEST) * 1.000_001;
        let start = self.time;
        let sent = |time: f64| cubic.sent_between(start, start + time);
        let time = first_reached(start, 0.0..step, step, missing, sent, |time| cubic.rate(start + time));
        self.sent.add(sent(time));
        self.time = start + time;
        Ok(self.time)
    }
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

/// The integral of a rate from one time to another, to a few parts in 10^15.
///
/// An error if the rate is below 0 somewhere, or changes too fast.
pub fn integral(rate: &Expression, from: f64, to: f64) -> Result<f64, SolveError> {
    let mut walker = Walker::new(rate);
    let mut sum = Sum::default();
    // How much it is about, so that a jump is cut out as finely as need be.
    let scale = (1..32).map(|part| rate.value(from + (to - from) * f64::from(part) / 32.0).abs()).fold(0.0, f64::max);
    let mut time = from;
    while time < to {
        let cell = walker.cell(time, to, f64::NAN, scale * (to - from))?;
        sum.add(cell.gain());
        time = cell.end();
    }
    Ok(sum.value + sum.low)
}
