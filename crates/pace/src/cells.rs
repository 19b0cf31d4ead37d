//! Stretches of time over which a formula is known well enough to count packets: *cells*.
//!
//! A rate is cut into cells from the left. In each the packets sent are a polynomial whose error the formula itself bounds
//! ([`series`](crate::series)), or a closed form ([`Modes`]), or the cell is so short that nothing in it counts. Of N(t), a cell is
//! one in which it surely rises, or one in which it surely does not reach the packet wanted. A cell that can't be proven is
//! cut: where the formula switches if that is known, else in the middle. What all this may cost is bounded.

use crate::expression::Expression;
use crate::fault::SolveError;
use crate::interval::Interval;
use crate::modes::Modes;
use crate::series::{NotSmooth, ORDER};
use std::ops::Range;

/// What one search may cost, in nodes of the formula whose series is taken: about half a second.
const MOST_WORK: usize = 1 << 22;
/// Relative error of the packets sent in a cell.
const CELL_ERROR: f64 = 1e-15;
/// Error in cells that hold a jump or a bend, relative to all packets until then.
const JUMP_ERROR: f64 = 1e-17;
/// Packets that a rate just below 0 may take back, relative to all packets until then.
const NEGATIVE: f64 = 1e-14;
/// The end of time.
pub(crate) const LONGEST: f64 = 1e15;
/// Newton steps or halvings.
const MOST_STEPS: usize = 400;

/// A stretch of a rate.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    start: f64,
    end: f64,
    /// Packets sent in it.
    gain: f64,
    sent: Sent,
}

/// Packets sent since the start of a cell.
#[derive(Clone, Debug)]
enum Sent {
    /// Powers of the time since the start; the first coefficient is that of the time itself.
    Polynomial { coefficients: [f64; ORDER], length: usize },
    /// As the formula says.
    Closed,
}

/// Walks a rate from left to right.
#[derive(Clone, Debug)]
pub(crate) struct Walker<'a> {
    rate: &'a Expression,
    modes: Option<Modes>,
    size: usize,
    work: usize,
    /// The width to try next; 0 if the rate is to say.
    width: f64,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(rate: &'a Expression) -> Walker<'a> {
        // Without waves, a polynomial's few cells are the more exact way.
        let modes = Modes::of(&rate.0).filter(Modes::oscillates);
        Walker { rate, modes, size: rate.0.size(), work: 0, width: 0.0 }
    }

    /// A new search: it may cost what it may.
    pub(crate) fn begin(&mut self) {
        self.work = 0;
    }

    /// The cell that begins at `start` and ends at `limit` at the latest; `scale` is how many packets are wanted in all.
    pub(crate) fn cell(&mut self, start: f64, limit: f64, missing: f64, scale: f64) -> Result<Cell, SolveError> {
        if self.width == 0.0 {
            let guess = 4.0 * missing / self.rate.value(start);
            self.width = if guess.is_finite() && guess > 0.0 { guess.clamp(1e-12, 1e12) } else { 1e-3 };
        }
        self.refuse_negative(start, scale)?;
        let mut width = self.width.min(limit - start);
        let mut first = true;
        loop {
            self.work += self.size;
            if self.work > MOST_WORK {
                return Err(SolveError::TooFast { time: start });
            }
            let least = least_width(start);
            if width <= least {
                let end = (start + least).min(limit);
                self.width = 2.0 * least;
                return self.short(start, end, scale);
            }
            let end = start + width;
            let over = Interval::new(start, end);
            let cut = match self.smooth(start, end, scale) {
                Ok(cell) => {
                    self.width = if first { (2.0 * width).max(self.width) } else { width };
                    return Ok(cell);
                }
                Err(NotSmooth { at }) => at,
            };
            let range = self.rate.0.range(over);
            if range.low >= 0.0 && (range.high - range.low) * width <= JUMP_ERROR * scale {
                self.width = 2.0 * width;
                return Ok(flat(start, end, range.middle()));
            }
            width = shorter(start, width, cut);
            first = false;
        }
    }

    /// A cell in which the rate is smooth and not below 0, if that can be proven.
    fn smooth(&self, start: f64, end: f64, scale: f64) -> Result<Cell, NotSmooth> {
        let (over, width) = (Interval::new(start, end), end - start);
        let range = self.rate.0.range(over);
        if let Some(modes) = &self.modes
            && (range.low >= 0.0 || self.stays_positive(over))
        {
            return Ok(Cell { start, end, gain: modes.between(start, end), sent: Sent::Closed });
        }
        let series = self.rate.0.series(over, ORDER)?;
        let at_start = self.rate.0.series(Interval::point(start), ORDER - 1)?;
        let rest = series.at(ORDER).greatest() * libm::pow(width, (ORDER + 1) as f64) / (ORDER + 1) as f64;
        let mut coefficients = [0.0; ORDER];
        let mut length = 1;
        for (power, coefficient) in coefficients.iter_mut().enumerate() {
            *coefficient = at_start.at(power).middle() / (power + 1) as f64;
            if *coefficient != 0.0 {
                length = power + 1;
            }
        }
        let mut cell = Cell { start, end, gain: 0.0, sent: Sent::Polynomial { coefficients, length } };
        cell.gain = cell.sent_after(width, None);
        let error = (CELL_ERROR * cell.gain).max(JUMP_ERROR * scale);
        let positive = range.low >= 0.0 || range.low * width >= -JUMP_ERROR * scale || self.stays_positive(over);
        if rest <= error && cell.gain.is_finite() && positive { Ok(cell) } else { Err(NotSmooth { at: None }) }
    }

    /// Whether the rate is above 0 by its value in the middle and its slope anywhere.
    fn stays_positive(&self, over: Interval) -> bool {
        let middle = over.middle();
        let Ok(series) = self.rate.0.series(over, 1) else { return false };
        self.rate.value(middle) >= series.at(1).greatest() * (over.high - over.low) / 2.0
    }

    /// A cell so short that its middle stands for it.
    fn short(&self, start: f64, end: f64, scale: f64) -> Result<Cell, SolveError> {
        self.refuse_negative(end, scale)?;
        let middle = start + (end - start) / 2.0;
        let rate = self.rate.value(middle);
        if !rate.is_finite() {
            return Err(SolveError::NotFinite { at: middle });
        }
        Ok(flat(start, end, rate.max(0.0)))
    }

    /// A rate below 0 is an error, unless at that rate nothing that counts would be taken back: then it is a 0 that was rounded.
    fn refuse_negative(&self, time: f64, scale: f64) -> Result<(), SolveError> {
        let rate = self.rate.value(time);
        if rate * time.max(1e-9) < -NEGATIVE * scale { Err(SolveError::NegativeRate { time, rate }) } else { Ok(()) }
    }

    /// The time in the cell at which so many packets of it are sent.
    pub(crate) fn time_in(&self, cell: &Cell, missing: f64) -> f64 {
        let modes = self.modes.as_ref();
        let sent = |time: f64| cell.sent_after(time, modes);
        let rate = |time: f64| match cell.sent {
            Sent::Closed => self.rate.value(cell.start + time),
            Sent::Polynomial { .. } => cell.rate_after(time),
        };
        let width = cell.end - cell.start;
        let guess = width * (missing / cell.gain);
        cell.start + first_reached(cell.start, 0.0..width, guess, missing, sent, rate)
    }
}

impl Cell {
    /// Packets sent in it.
    pub(crate) fn gain(&self) -> f64 {
        self.gain
    }

    /// When it ends.
    pub(crate) fn end(&self) -> f64 {
        self.end
    }

    fn sent_after(&self, time: f64, modes: Option<&Modes>) -> f64 {
        match &self.sent {
            Sent::Polynomial { coefficients, length } => {
                coefficients[..*length].iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * time)
            }
            Sent::Closed => modes.map_or(0.0, |modes| modes.between(self.start, self.start + time)),
        }
    }

    fn rate_after(&self, time: f64) -> f64 {
        let Sent::Polynomial { coefficients, length } = &self.sent else { return 0.0 };
        let powers = coefficients[..*length].iter().enumerate().rev();
        powers.fold(0.0, |sum, (power, coefficient)| sum * time + coefficient * (power + 1) as f64)
    }
}

fn flat(start: f64, end: f64, rate: f64) -> Cell {
    let mut coefficients = [0.0; ORDER];
    coefficients[0] = rate;
    Cell { start, end, gain: rate * (end - start), sent: Sent::Polynomial { coefficients, length: 1 } }
}

/// No cell is shorter: times as close together can't be told apart.
fn least_width(start: f64) -> f64 {
    (4.0 * f64::EPSILON * start).max(1e-30)
}

/// The next width to try: just short of where the formula switches if that is inside, else the half.
fn shorter(start: f64, width: f64, cut: Option<f64>) -> f64 {
    let least = least_width(start);
    match cut.map(|at| at - start - least) {
        Some(cut) if cut > 0.0 && cut < 0.75 * width => cut.max(least),
        Some(cut) if cut <= 0.0 && cut >= -4.0 * least => least,
        _ => width / 2.0,
    }
}

/// The first place in a bracket at which a function that never falls reaches a value, by Newton's method kept inside. Places
/// are times since `start`, as fine as such times are.
pub(crate) fn first_reached(
    start: f64,
    bracket: Range<f64>,
    guess: f64,
    wanted: f64,
    value: impl Fn(f64) -> f64,
    slope: impl Fn(f64) -> f64,
) -> f64 {
    let Range { start: mut low, end: mut high } = bracket;
    let half = |low: f64, high: f64| low + (high - low) / 2.0;
    let mut at = if guess >= low && guess <= high { guess } else { half(low, high) };
    let mut last_step = high - low;
    for _ in 0..MOST_STEPS {
        let error = value(at) - wanted;
        if error < 0.0 {
            low = at;
        } else {
            high = at;
        }
        let newton = at - error / slope(at);
        let step = (newton - at).abs();
        if newton >= low && newton <= high && step <= f64::EPSILON * (start + at.abs()) {
            return newton;
        }
        // Newton's method that does not come closer quickly is left for a halving.
        let next = if newton > low && newton < high && step <= last_step / 2.0 { newton } else { half(low, high) };
        if next <= low || next >= high {
            break;
        }
        last_step = (next - at).abs();
        at = next;
    }
    if value(low) >= wanted { low } else { high }
}

/// Whether a rate that is this polynomial is nowhere below 0, from time 0 for ever.
pub(crate) fn horizon_is_positive(rate: &Expression, powers: &[f64]) -> bool {
    let Some((last, others)) = powers.split_last() else { return false };
    if *last <= 0.0 {
        return false;
    }
    // Cauchy's bound: beyond it there is no root.
    let end = 1.0 + others.iter().fold(0.0, |greatest: f64, part| greatest.max(part.abs())) / last;
    let walker = Walker::new(rate);
    let mut waiting = vec![Interval::new(0.0, end)];
    for _ in 0..4096 {
        let Some(over) = waiting.pop() else { return true };
        if rate.0.range(over).low < 0.0 && !walker.stays_positive(over) {
            waiting.extend([Interval::new(over.low, over.middle()), Interval::new(over.middle(), over.high)]);
        }
    }
    false
}

/// Finds when N(t) first reaches a packet's number.
#[derive(Clone, Debug)]
pub(crate) struct Climber<'a> {
    sent: &'a Expression,
    size: usize,
    /// All before has been searched, for every packet up to the last.
    start: f64,
    /// To here it surely rises.
    rising_until: f64,
    width: f64,
}

impl<'a> Climber<'a> {
    pub(crate) fn new(sent: &'a Expression) -> Climber<'a> {
        Climber { sent, size: sent.0.size(), start: 0.0, rising_until: 0.0, width: 0.0 }
    }

    /// The first time at which N(t) is `wanted`, or more after a jump. What was asked before was less.
    pub(crate) fn time_of(&mut self, wanted: f64) -> Result<f64, SolveError> {
        let mut work = 0;
        loop {
            if self.rising_until > self.start {
                let sent = |time: f64| self.sent.value(time);
                if sent(self.rising_until) >= wanted {
                    let slope = |time: f64| self.sent.value_and_slope(time).1;
                    let (value, slope_here) = self.sent.value_and_slope(self.start);
                    let guess = self.start + (wanted - value) / slope_here;
                    self.start = first_reached(0.0, self.start..self.rising_until, guess, wanted, sent, slope);
                    return Ok(self.start);
                }
                self.start = self.rising_until;
            }
            if self.start > LONGEST {
                return Err(SolveError::NeverSent { packet: wanted, sent: self.sent.value(self.start) });
            }
            if let Some(time) = self.step(wanted, &mut work)? {
                self.start = time;
                return Ok(time);
            }
        }
    }

    /// The next cell: it ends before the packet, rises, or is too short to be cut; then its end is the time if it is reached.
    fn step(&mut self, wanted: f64, work: &mut usize) -> Result<Option<f64>, SolveError> {
        let start = self.start;
        if self.width == 0.0 {
            let (value, slope) = self.sent.value_and_slope(start);
            let guess = (wanted - value) / slope;
            self.width = if guess.is_finite() && guess > 0.0 { guess.clamp(1e-12, 1e12) } else { 1e-3 };
        }
        let mut width = self.width;
        loop {
            *work += self.size;
            if *work > MOST_WORK {
                return Err(SolveError::TooFast { time: start });
            }
            let least = least_width(start);
            if width <= least {
                self.width = 2.0 * least;
                return self.short(start, start + least, wanted);
            }
            let over = Interval::new(start, start + width);
            if self.sent.0.range(over).high < wanted {
                self.start = over.high;
                self.width = 2.0 * width;
                return Ok(None);
            }
            let cut = match self.sent.0.series(over, 1) {
                Ok(series) if series.at(1).low >= 0.0 => {
                    self.rising_until = over.high;
                    self.width = 2.0 * width;
                    return Ok(None);
                }
                Ok(_) => None,
                Err(NotSmooth { at }) => at,
            };
            width = shorter(start, width, cut);
        }
    }

    fn short(&mut self, start: f64, end: f64, wanted: f64) -> Result<Option<f64>, SolveError> {
        let mut time = start;
        while time <= end {
            let value = self.sent.value(time);
            if value.is_nan() {
                return Err(SolveError::NotFinite { at: time });
            }
            if value >= wanted {
                return Ok(Some(time));
            }
            // Near 0 numbers lie closer than a cell is long.
            time = time
                .next_up()
                .max(start + (end - start) / 8.0 * libm::floor((time - start) / (end - start) * 8.0 + 1.0));
        }
        self.start = end;
        Ok(None)
    }
}
