//! How far a table is from its envelope.
//!
//! The exact values are 64-bit floating point: T(n) is known to a few parts in 10^16, so at packet 10^6 of a linear increase
//! (1,413 round trips, 2.8 · 10^10 ticks of 5 ns at 100 ms) to 10^-5 ticks, and a gap of 10^-4 round trips to parts in 10^9:
//! far below every error reported here.

use crate::envelope::{Envelope, Shape};
use crate::evolution::EvolutionBlock;
use crate::fault::SolveError;
use crate::table::{Evolution, Then, Watch, times};

/// What a comparison found.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Gaps compared.
    pub packets: u64,
    /// Greatest relative error of a gap, and the packet behind which it is.
    pub gap_error: (f64, u64),
    /// Greatest error of a time before ticks are counted, in units, and the packet.
    pub time_error: (f64, u64),
    /// Greatest error of a time in ticks, and the packet.
    pub tick_error: (f64, u64),
    /// Error of the last packet's time in ticks.
    pub drift: f64,
    /// The longest unit, in ticks, with which no packet of those compared is a tick early or late.
    pub longest_unit: f64,
    /// Some of the gaps, for tables and pictures.
    pub lines: Vec<Line>,
}

/// One gap.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Line {
    /// The packet in front of it.
    pub packet: u64,
    /// The exact gap, in units.
    pub exact: f64,
    /// The gap of the table, in units.
    pub table: f64,
    /// Error of the time of the packet behind it, in ticks.
    pub ticks_late: f64,
}

impl Line {
    /// Relative error of the gap.
    pub fn relative_error(&self) -> f64 {
        relative(self.table - self.exact, self.exact)
    }

    /// Absolute error of the gap, in units.
    pub fn absolute_error(&self) -> f64 {
        self.table - self.exact
    }
}

fn relative(error: f64, exact: f64) -> f64 {
    if exact == 0.0 { error.abs() } else { error.abs() / exact }
}

/// Compares a table with its envelope over so many packets (2^22 at most), the unit being so many ticks.
///
/// Of a Poisson process, the exact gaps are the means of the parts of the distribution, drawn as the table draws them.
pub fn measure(
    envelope: &Envelope,
    evolution: &Evolution,
    packets: u64,
    ticks_per_unit: u64,
) -> Result<Report, SolveError> {
    measure_watched(envelope, evolution, packets, ticks_per_unit, &mut |_| ())
}

/// The same, watched.
pub fn measure_watched(
    envelope: &Envelope,
    evolution: &Evolution,
    packets: u64,
    ticks_per_unit: u64,
    watch: &mut Watch<'_>,
) -> Result<Report, SolveError> {
    let exact = match envelope.shape {
        Shape::Poisson { rate, .. } => drawn(evolution, rate, packets.min(1 << 22)),
        _ => times(envelope, evolution.first, packets.min(1 << 22), watch)?,
    };
    let grain = 1.0 / (1_u64 << evolution.fraction_bits) as f64;
    let mut machine = EvolutionBlock::new(evolution, ticks_per_unit);
    let (mut grain_sum, mut tick_sum) = (0_u128, 0_u128);
    let (mut gap_error, mut time_error, mut tick_error) = ((0.0, 0), (0.0, 0), (0.0, 0));
    let mut report_lines = Vec::new();
    let mut drift = 0.0;
    // Some eighty lines a decade.
    let mut next_line = 0.0;
    let raise = |greatest: &mut (f64, u64), error: f64, packet: u64| {
        if error > greatest.0 {
            *greatest = (error, packet);
        }
    };
    for pair in exact.windows(2) {
        let packet = machine.packet();
        let (gap, ticks) = machine.next_gap();
        grain_sum += u128::from(gap);
        tick_sum += u128::from(ticks);
        let line = Line {
            packet,
            exact: envelope_gap(envelope, packet).unwrap_or(pair[1] - pair[0]),
            table: gap as f64 * grain,
            ticks_late: difference(tick_sum, pair[1] * ticks_per_unit as f64),
        };
        // A gap of nothing but rounding has no relative error to speak of.
        if line.exact > 1e-12 * pair[1] {
            raise(&mut gap_error, line.relative_error(), packet);
        }
        raise(&mut time_error, difference(grain_sum, pair[1] / grain).abs() * grain, packet + 1);
        raise(&mut tick_error, line.ticks_late.abs(), packet + 1);
        drift = line.ticks_late;
        if packet as f64 >= next_line {
            report_lines.push(line);
            next_line = (packet as f64 * 1.03).max(packet as f64 + 1.0);
        }
    }
    Ok(Report {
        packets: exact.len() as u64 - 1,
        gap_error,
        time_error,
        tick_error,
        drift,
        longest_unit: if time_error.0 > 0.0 { 0.5 / time_error.0 } else { f64::INFINITY },
        lines: report_lines,
    })
}

/// A whole number minus a near one, without first rounding the whole number.
fn difference(whole: u128, value: f64) -> f64 {
    let floor = libm::floor(value);
    (whole as i128 - floor as i128) as f64 - (value - floor)
}

/// δ(n) by a form that loses no digits, if there is one.
fn envelope_gap(envelope: &Envelope, packet: u64) -> Option<f64> {
    match envelope.shape {
        Shape::Exponential { window, doubling } if packet as f64 >= window => {
            Some(doubling * libm::log1p(1.0 / packet as f64) / std::f64::consts::LN_2)
        }
        _ => None,
    }
}

/// The times of a Poisson process whose gaps are means of equal parts of the distribution.
fn drawn(evolution: &Evolution, rate: f64, packets: u64) -> Vec<f64> {
    let Then::Draw { seed } = evolution.then else { return vec![0.0, 0.0] };
    let bins = evolution.gaps.len() as f64;
    let until = |bin: f64| if bin == 0.0 { 0.0 } else { bin / bins - bin / bins * libm::log(bin / bins) };
    let shift = 32 - evolution.gaps.len().ilog2();
    let mut state = seed;
    let mut times = vec![0.0];
    let (mut time, mut low) = (0.0_f64, 0.0_f64);
    for _ in 0..packets {
        state = crate::solve::xorshift(state);
        let bin = (u64::from(state) >> shift) as f64;
        let gap = (until(bin + 1.0) - until(bin)) * bins / rate;
        let next = time + gap;
        low += (time - next) + gap;
        time = next;
        times.push(time + low);
    }
    times
}
