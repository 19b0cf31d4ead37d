//! Envelopes whose packets are a polynomial of the time, followed exactly for ever: no table, a few registers.
//!
//! Registers hold the coefficients of N about the time that has been reached, `N(x + g) = r0 + r1 g + r2 g² + ...`, in whole
//! numbers: `x` and `g` count grains, `r` counts 2^-`packet_bits` of a packet, and r0 is what has been sent beyond the last
//! packet. The next gap is the least `g` at which r0 + r1 g + ... is a packet. It is found bit by bit from the top: a bit stays if the
//! packet is still missing after it. To go on by 2^b moves the coefficients, `r[j] += r[j + 1] << b` in turn, which takes
//! shifts and additions alone. Nothing is ever rounded, as the coefficients at time 0 are 64-bit floating-point numbers, hence
//! whole multiples of a power of two; each time is the exact one rounded up to a grain, whatever came before.

use crate::cells::horizon_is_positive;
use crate::envelope::{Envelope, Shape};
use crate::modes::Modes;
use crate::table::{CompileError, first_packet};
use crate::wide::{Wide, Word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most coefficients: those of N for a rate that grows by the cube.
const MOST_COEFFICIENTS: usize = 5;
/// Grains where the words allow it: 2^-40 of the unit.
const FINEST_GRAIN: i32 = 40;
/// Coarser grains are no use.
const COARSEST_GRAIN: i32 = 24;
/// Bits above those of a packet: a gap that is tried too long sends many packets, and one bit is the sign.
const SPARE_BITS: i32 = 16;
/// Packets that are followed at least: 2^40.
const FEWEST_PACKETS: f64 = 1_099_511_627_776.0;
/// Bits of a gap at most.
const GAP_BITS: u32 = 62;

/// The registers at time 0.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Polynomial {
    /// Registers count 2^-this of a packet.
    pub packet_bits: u8,
    /// Bits of a register, in two's complement. They suffice until a packet takes a grain; there the gap stays.
    pub state_bits: u16,
    /// Bits of the first gap: where the search begins. Later gaps begin at the bits of the one before.
    pub gap_bits: u8,
    /// What N is beyond the first packet at time 0, its rate, half its slope and so on.
    pub coefficients: Vec<Coefficient>,
}

/// A whole number, `value · 2^shift`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coefficient {
    /// At most 53 bits and a sign.
    pub value: i64,
    /// How far it is shifted left.
    pub shift: u8,
}

impl Polynomial {
    /// About how many packets are followed until a packet takes a grain, and the gap stays.
    pub fn followed_packets(&self) -> f64 {
        let part =
            |part: &Coefficient| part.value as f64 * libm::exp2(f64::from(part.shift) - f64::from(self.packet_bits));
        let parts: Vec<f64> = self.coefficients.iter().map(part).collect();
        let sum = |time: f64| parts.iter().rev().fold(0.0, |sum, part| sum * time + part);
        let rate = |time: f64| {
            let slopes = parts.iter().enumerate().skip(1).rev();
            slopes.fold(0.0, |sum, (power, part)| sum * time + part * power as f64)
        };
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        while rate(high) < 1.0 {
            (low, high) = (high, 2.0 * high);
            if high > 1e60 {
                return f64::INFINITY;
            }
        }
        for _ in 0..60 {
            let middle = low + (high - low) / 2.0;
            if rate(middle) < 1.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        sum(low)
    }

    /// What is wrong with the numbers of a document that was read.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let count = self.coefficients.len();
        if !(2..=MOST_COEFFICIENTS).contains(&count) {
            return Some("a polynomial has 2 to 5 coefficients");
        }
        if u32::from(self.state_bits) > Wide::BITS
            || i32::from(self.packet_bits) + SPARE_BITS > i32::from(self.state_bits)
        {
            return Some("registers have 16 bits more than the fraction of a packet, and 256 at most");
        }
        if u32::from(self.gap_bits) > GAP_BITS {
            return Some("a gap has at most 62 bits");
        }
        let fits = |coefficient: &Coefficient| {
            let bits = 64 - coefficient.value.unsigned_abs().leading_zeros();
            bits <= 53 && bits + u32::from(coefficient.shift) < u32::from(self.state_bits)
        };
        (!self.coefficients.iter().all(fits)).then_some("a coefficient does not fit its register")
    }
}

/// Runs a polynomial, in the narrowest words that do.
#[derive(Clone, Debug)]
pub(crate) enum Follower {
    Narrow(Registers<i128>),
    Wide(Registers<Wide>),
}

impl Follower {
    pub(crate) fn new(polynomial: &Polynomial) -> Follower {
        if u32::from(polynomial.state_bits) <= <i128 as Word>::BITS {
            Follower::Narrow(Registers::new(polynomial))
        } else {
            Follower::Wide(Registers::new(polynomial))
        }
    }

    /// Whether a packet takes less than a grain, so that the last gap stays.
    pub(crate) fn saturated(&self) -> bool {
        match self {
            Follower::Narrow(registers) => registers.saturated,
            Follower::Wide(registers) => registers.saturated,
        }
    }

    /// The next gap in grains.
    pub(crate) fn next_grains(&mut self) -> u64 {
        match self {
            Follower::Narrow(registers) => registers.next_grains(),
            Follower::Wide(registers) => registers.next_grains(),
        }
    }
}

/// The state.
#[derive(Clone, Debug)]
pub(crate) struct Registers<W> {
    coefficients: [W; MOST_COEFFICIENTS],
    degree: usize,
    /// One packet.
    packet: W,
    gap: u64,
    /// By how much the gap changed last.
    change: u64,
    gap_bits: u32,
    saturated: bool,
}

impl<W: Word> Registers<W> {
    fn new(polynomial: &Polynomial) -> Registers<W> {
        let mut coefficients = [W::default(); MOST_COEFFICIENTS];
        for (register, coefficient) in coefficients.iter_mut().zip(&polynomial.coefficients) {
            *register = W::shifted(coefficient.value, u32::from(coefficient.shift));
        }
        Registers {
            coefficients,
            degree: polynomial.coefficients.len().clamp(2, MOST_COEFFICIENTS) - 1,
            packet: W::shifted(1, u32::from(polynomial.packet_bits)),
            gap: 0,
            change: u64::MAX,
            gap_bits: u32::from(polynomial.gap_bits),
            saturated: false,
        }
    }

    fn next_grains(&mut self) -> u64 {
        if self.saturated || !self.coefficients[1].minus(self.packet).is_negative() {
            self.saturated = true;
            return self.gap;
        }
        let mut at = self.coefficients;
        at[0] = at[0].minus(self.packet);
        let gap = if at[0].is_negative() { self.search(&mut at) + 1 } else { 0 };
        if gap > 0 {
            self.moved(&mut at, |register| register);
        }
        self.coefficients = at;
        if gap >> GAP_BITS != 0 {
            // Only a document that was not compiled comes here: a rate that falls to nothing.
            (self.saturated, self.gap) = (true, 1 << GAP_BITS);
            return self.gap;
        }
        self.change = self.gap.abs_diff(gap);
        self.gap = gap;
        self.gap_bits = 64 - gap.leading_zeros();
        gap
    }

    /// Goes on to the last grain at which the packet is missing; how far that is.
    fn search(&self, at: &mut [W; MOST_COEFFICIENTS]) -> u64 {
        let mut gap = 0;
        let mut bits = self.gap_bits;
        // Most of it by one multiplication, as gaps change little. It finds nothing that the bits alone would not find.
        if let Some(most) = self.change.checked_mul(2).and_then(|change| self.gap.checked_sub(change + 2)) {
            let mut there = *at;
            self.moved(&mut there, |register| register.times(most));
            if there[0].is_negative() {
                (*at, gap) = (there, most);
                bits = (66 - self.change.leading_zeros()).min(GAP_BITS);
            }
        }
        // A gap that is longer than what the bits hold: rates that fall.
        while bits < GAP_BITS {
            let mut there = *at;
            self.moved(&mut there, |register| register.shl(bits));
            if !there[0].is_negative() {
                break;
            }
            (*at, gap) = (there, gap + (1 << bits));
            bits += 1;
        }
        for bit in (0..bits).rev() {
            let mut there = *at;
            self.moved(&mut there, |register| register.shl(bit));
            if there[0].is_negative() {
                (*at, gap) = (there, gap + (1 << bit));
            }
        }
        gap
    }

    /// Moves the coefficients on by the grains that `times` multiplies by.
    fn moved(&self, registers: &mut [W; MOST_COEFFICIENTS], times: impl Fn(W) -> W) {
        for first in 0..self.degree {
            for index in (first..self.degree).rev() {
                registers[index] = registers[index].plus(times(registers[index + 1]));
            }
        }
    }
}

/// The registers for an envelope, and the bits behind the point of its grain.
pub(crate) fn compiled(envelope: &Envelope, first_gap: f64) -> Result<(Polynomial, u8), CompileError> {
    let coefficients = coefficients(envelope).ok_or(CompileError::NoPolynomial)?;
    if first_gap > 0.0 && first_gap.is_finite() {
        let later = |time: f64| coefficients.iter().rev().fold(0.0, |sum, part| sum * time + part);
        for grain in (COARSEST_GRAIN..=FINEST_GRAIN).rev() {
            let Some((registers, packet_bits)) = registers(&coefficients, grain) else { continue };
            let gap_bits = libm::ceil(libm::log2(first_gap)) as i32 + grain + 1;
            let tried = libm::log2(later(4.0 * first_gap).abs().max(1.0)) as i32;
            let rate = coefficients[1] * libm::exp2(f64::from(-grain));
            if gap_bits > GAP_BITS as i32 || tried + 2 > SPARE_BITS || rate >= 1.0 {
                continue;
            }
            let polynomial = Polynomial {
                packet_bits: packet_bits as u8,
                state_bits: (packet_bits + SPARE_BITS) as u16,
                gap_bits: gap_bits.max(1) as u8,
                coefficients: registers,
            };
            if polynomial.fault().is_none() && polynomial.followed_packets() >= FEWEST_PACKETS {
                return Ok((polynomial, grain as u8));
            }
        }
    }
    Err(CompileError::PolynomialTooWide)
}

/// N(t) - first as a polynomial that never falls.
fn coefficients(envelope: &Envelope) -> Option<Vec<f64>> {
    let beyond = envelope.origin() - first_packet(envelope) as f64;
    let mut coefficients = match &envelope.shape {
        Shape::Pieces { pieces, .. } => {
            let line = pieces.line()?;
            vec![0.0, line.rate, line.slope / 2.0]
        }
        Shape::Cubic(cubic) => {
            let (plateau, growth) = (cubic.plateau(), cubic.growth / cubic.round_trip);
            vec![0.0, cubic.rate(0.0), 1.5 * growth * plateau * plateau, -growth * plateau, growth / 4.0]
        }
        Shape::Rate(rate) => {
            let powers = Modes::of(&rate.0)?.polynomial()?;
            let integral = powers.iter().enumerate().map(|(power, part)| part / (power + 1) as f64);
            let never_falls = powers.iter().all(|part| *part >= 0.0) || horizon_is_positive(rate, &powers);
            never_falls.then(|| [0.0].into_iter().chain(integral).collect())?
        }
        Shape::Sent(sent) => {
            let powers = Modes::of(&sent.0)?.polynomial()?;
            powers[1..].iter().all(|part| *part >= 0.0).then_some(powers)?
        }
        _ => return None,
    };
    coefficients[0] = beyond;
    while coefficients.len() > 2 && coefficients.last() == Some(&0.0) {
        coefficients.pop();
    }
    let usable = coefficients.len() <= MOST_COEFFICIENTS && coefficients[1..].iter().any(|part| *part > 0.0);
    usable.then_some(coefficients)
}

/// The coefficients as whole numbers, if words are wide enough; and how many bits a fraction of a packet then has.
fn registers(coefficients: &[f64], grain: i32) -> Option<(Vec<Coefficient>, i32)> {
    // value · 2^exponent, in packets and grains.
    let parts: Vec<(i64, i32)> = coefficients
        .iter()
        .enumerate()
        .map(|(power, value)| {
            let (mantissa, exponent) = libm::frexp(*value);
            let whole = (mantissa * libm::exp2(53.0)) as i64;
            let zeros = if whole == 0 { 0 } else { whole.trailing_zeros() };
            (whole >> zeros, exponent - 53 + zeros as i32 - power as i32 * grain)
        })
        .collect();
    let packet_bits = parts.iter().filter(|part| part.0 != 0).map(|part| -part.1).max()?.max(1);
    if packet_bits + SPARE_BITS > Wide::BITS as i32 {
        return None;
    }
    let register = |(value, exponent): &(i64, i32)| {
        let shift = if *value == 0 { 0 } else { exponent + packet_bits };
        Some(Coefficient { value: *value, shift: u8::try_from(shift).ok()? })
    };
    Some((parts.iter().map(register).collect::<Option<_>>()?, packet_bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Setting, parse};

    fn follower(text: &str) -> (Registers<Wide>, Polynomial, u8) {
        let envelope = parse(text, &Setting::default()).unwrap_or_else(|fault| panic!("{}", fault.to_text(text)));
        let mut solver = crate::Solver::new(&envelope);
        let gap = solver.time_of_packet(first_packet(&envelope) + 1).expect("a time");
        let (polynomial, grain) = compiled(&envelope, gap).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(polynomial.fault(), None, "{text}");
        (Registers::new(&polynomial), polynomial, grain)
    }

    /// The value at a time in grains of a polynomial's registers, minus packets.
    fn beyond(polynomial: &Polynomial, time: u64, packets: u64) -> Wide {
        let whole = |part: &Coefficient| Wide::shifted(part.value, u32::from(part.shift));
        let sum =
            polynomial.coefficients.iter().rev().fold(Wide::default(), |sum, part| sum.times(time).plus(whole(part)));
        sum.minus(Wide::shifted(1, u32::from(polynomial.packet_bits)).times(packets))
    }

    const TEXTS: [&str; 9] = [
        "linear",
        "linear(start = 10, slope = 0.1)",
        "ramp(0 pkt/s, 0.3 pkt/s^2)",
        "ramp(1e6 pkt/s, 12345.678 pkt/s^2)",
        "cubic(window = 100, rtt = 100 ms)",
        "cubic(window = 7.5, rtt = 1 s)",
        "token_bucket(30 pkt/RTT, burst = 2.5)",
        "N(t) = 1 + t/RTT * (t/RTT + 1) / 2",
        "R(t) = 3/s + 0.7/s * (t/s - 2)^2",
    ];

    #[test]
    fn each_time_is_the_first_grain_at_which_the_packet_is_due() {
        for text in TEXTS {
            let (mut follower, polynomial, _) = follower(text);
            let mut time = 0;
            let mut narrow = Follower::new(&polynomial);
            for packet in 1..30_000 {
                let gap = follower.next_grains();
                assert_eq!(narrow.next_grains(), gap, "{text}: packet {packet}");
                time += gap;
                assert!(!beyond(&polynomial, time, packet).is_negative(), "{text}: packet {packet} is early");
                assert!(beyond(&polynomial, time - 1, packet).is_negative(), "{text}: packet {packet} is late");
            }
        }
    }

    /// Moves on to a time at once, and back to the last packet before it; how many packets that is. Sums wrap around, which
    /// does no harm: the number of packets is known well enough without them.
    fn jump(follower: &mut Registers<Wide>, polynomial: &Polynomial, grains: u64) -> u64 {
        let part = |part: &Coefficient| {
            part.value as f64 * f64::exp2(f64::from(part.shift) - f64::from(polynomial.packet_bits))
        };
        let about = polynomial.coefficients.iter().rev().fold(0.0, |sum, next| sum * grains as f64 + part(next));
        let mut registers = follower.coefficients;
        follower.moved(&mut registers, |register| register.times(grains));
        let mut packets = about as u64 - 4;
        registers[0] = registers[0].minus(follower.packet.times(packets));
        while !registers[0].minus(follower.packet).is_negative() {
            registers[0] = registers[0].minus(follower.packet);
            packets += 1;
        }
        follower.coefficients = registers;
        packets
    }

    #[test]
    fn so_they_are_after_a_million_million_packets() {
        for text in TEXTS {
            for power in [20.0, 30.0, 40.0, 41.0] {
                let (mut follower, polynomial, grain) = follower(text);
                let envelope = parse(text, &Setting::default()).expect("an envelope");
                let far = crate::Solver::new(&envelope).time_of(f64::exp2(power)).expect("a time");
                let mut time = (far * f64::exp2(f64::from(grain))) as u64;
                if time == u64::MAX {
                    // A constant rate takes longer than this test counts; the machine does not count it.
                    continue;
                }
                let mut packet = jump(&mut follower, &polynomial, time);
                assert!((packet as f64 - f64::exp2(power)).abs() < 10.0, "{text}: {packet}");
                for _ in 0..2_000 {
                    time += follower.next_grains();
                    packet += 1;
                    assert!(!follower.saturated, "{text}: packet {packet}");
                    assert!(!beyond(&polynomial, time, packet).is_negative(), "{text}: packet {packet} is early");
                    assert!(beyond(&polynomial, time - 1, packet).is_negative(), "{text}: packet {packet} is late");
                }
            }
        }
    }

    #[test]
    fn a_rate_of_a_packet_a_grain_stays_and_says_so() {
        let (mut follower, polynomial, grain) = follower("ramp(1 pkt/s, 1e6 pkt/s^2)");
        let near = (f64::exp2(f64::from(grain)) - 2.0) / 1e6;
        jump(&mut follower, &polynomial, (near * f64::exp2(f64::from(grain))) as u64);
        follower.next_grains();
        assert!(!follower.saturated);
        let packets = (0..4_000_000).take_while(|_| follower.next_grains() > 0 && !follower.saturated).count();
        assert!(packets > 100_000 && packets < 4_000_000, "{packets}");
        let gap = follower.next_grains();
        assert!(follower.saturated && gap > 0 && follower.next_grains() == gap);
    }

    #[test]
    fn what_is_no_polynomial_is_refused() {
        for text in [
            "slow_start",
            "bbr(10 pkt/RTT)",
            "R(t) = 1/s * sqrt(t/s)",
            "N(t) = 1 + 3*t/s - t/s*t/s",
            "poisson(3 pkt/s)",
        ] {
            let envelope = parse(text, &Setting::default()).expect("an envelope");
            assert!(matches!(compiled(&envelope, 1.0), Err(CompileError::NoPolynomial)), "{text}");
        }
    }
}
